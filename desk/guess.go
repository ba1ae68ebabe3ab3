package desk

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// vocabulary lists the names that say what fills a variable, in the form that
// foldKey gives them: English, then Turkish, then Spanish and Portuguese, then
// German and French. A name that several languages share is listed once.
//
// Other names are not guessed, on purpose. Some words for people are missing because they
// can mean either side: a member, a manager or a sender may be a teammate or a customer.
var vocabulary = []struct {
	binding Binding
	words   string
}{
	{AgentName, `
		agent agentname agentfullname advisor advisorname adviser advisername consultant consultantname
		representative representativename repname salesrep salesrepname salesperson salespersonname salesagent
		salesagentname accountmanager accountmanagername staffname staffmember staffmembername employeename
		operatorname teammate teammatename supportagent supportagentname assigneename attendantname
		temsilci temsilciadi temsilciad temsilciismi temsilciadisoyadi temsilciadsoyad musteritemsilcisi
		musteritemsilcisiadi satistemsilcisi satistemsilcisiadi danisman danismanadi danismanad danismanismi
		danismanadsoyad danismanadisoyadi satisdanismani satisdanismaniadi uzmanadi personeladi calisanadi
		operatoradi gorevliadi
		agente agentenombre nombreagente nombredelagente asesor asesora nombreasesor nombredelasesor
		asesornombre ejecutivo nombreejecutivo representante nombrerepresentante vendedor nombrevendedor
		atendente nomeatendente nomedoatendente consultor consultora nomeconsultor nomedoconsultor nomeagente
		nomedoagente nomevendedor nomedovendedor nomerepresentante
		berater beratername beraterin mitarbeitername mitarbeiter ansprechpartner ansprechpartnername
		sachbearbeiter sachbearbeitername conseiller conseillere nomconseiller nomduconseiller nomagent
		nomdelagent agentnom commercialnom nomcommercial
	`},
	{AgentFirstName, `
		agentfirstname agentfirst agentgivenname advisorfirstname representativefirstname repfirstname
		salesrepfirstname stafffirstname employeefirstname operatorfirstname
		temsilciilkadi temsilcionadi danismanilkadi danismanonadi temsilcisadeceadi
		primernombreagente primeironomeagente primeironomeatendente primeironomedoatendente
		primeironomeconsultor
		beratervorname mitarbeitervorname prenomagent prenomdelagent prenomconseiller prenomduconseiller
		agentprenom
	`},
	{AgentLastName, `
		agentlastname agentsurname agentfamilyname advisorlastname advisorsurname representativelastname
		salesreplastname stafflastname employeelastname
		temsilcisoyadi temsilcisoyad danismansoyadi danismansoyad satistemsilcisisoyadi
		apellidoagente apellidodelagente apellidoasesor sobrenomeagente sobrenomedoagente sobrenomeatendente
		sobrenomedoatendente
		beraternachname mitarbeiternachname nomdefamilleagent nomdefamilleconseiller
	`},
	{CustomerName, `
		customer customername customerfullname client clientname clientfullname contactname contactfullname
		fullname name buyername guestname patientname recipientname leadname subscribername shoppername
		musteri musteriadi musteriismi musteriadsoyad musteriadisoyadi musteriadisoyad adsoyad adisoyadi
		adivesoyadi isimsoyisim isimsoyad isim ismi alici aliciadi misafiradi hastaadi danisanadi kisiadi
		uyeadsoyad
		cliente nombrecliente nombredelcliente clientenombre nombrecompleto nombre nombreyapellido
		nombreyapellidos paciente nombrepaciente nomecliente nomedocliente clientenome nomecompleto nome
		nomepaciente nomedopaciente
		kunde kundenname kundename vollername vollstaendigername vollstandigername kontaktname nomclient
		nomduclient clientnom nomcomplet nometprenom prenometnom prenomnom nom
	`},
	{CustomerFirstName, `
		firstname givenname forename fname customerfirstname customergivenname clientfirstname
		contactfirstname guestfirstname patientfirstname leadfirstname
		ilkad ilkadi ilkisim onad onadi musteriilkadi musterionadi musteriilkismi
		primernombre primernombrecliente primeironome primeironomecliente primeironomedocliente nombredepila
		vorname kundenvorname kundevorname prenom prenomclient prenomduclient clientprenom
	`},
	{CustomerLastName, `
		lastname surname familyname lname customerlastname customersurname clientlastname clientsurname
		contactlastname guestlastname patientlastname leadlastname
		soyad soyadi soyisim soyismi musterisoyadi musterisoyad musterisoyismi
		apellido apellidos apellidocliente apellidodelcliente apellidoscliente sobrenome sobrenomecliente
		sobrenomedocliente ultimonome
		nachname familienname kundennachname kundenachname nomdefamille nomdefamilleclient
	`},
}

// A sibling is a rule for names that mean something else if the same template also has
// a variable with one of certain other names.
type sibling struct {
	names, beside []string
	binding       Binding
}

// siblings lists these rules. For example, "name" is a first name if there is also a
// "surname". The first rule that matches decides.
var siblings = []sibling{
	{[]string{"musteriad", "musteriadi"}, []string{"musterisoyad", "musterisoyadi"}, CustomerFirstName},
	{[]string{"ad", "adi", "isim"}, []string{"soyad", "soyadi", "soyisim"}, CustomerFirstName},
	{[]string{"temsilciad", "temsilciadi"}, []string{"temsilcisoyad", "temsilcisoyadi"}, AgentFirstName},
	{[]string{"danismanad", "danismanadi"}, []string{"danismansoyad", "danismansoyadi"}, AgentFirstName},
	{[]string{"nombre"}, []string{"apellido", "apellidos"}, CustomerFirstName},
	{[]string{"nome"}, []string{"sobrenome"}, CustomerFirstName},
	{[]string{"name"}, []string{"surname", "lastname"}, CustomerFirstName},
	{[]string{"nom"}, []string{"prenom"}, CustomerLastName},
	{[]string{"name"}, []string{"vorname"}, CustomerLastName},
}

// bindingsByWord is the vocabulary as a map. It is built on first use, because most
// commands never guess.
var bindingsByWord = sync.OnceValue(func() map[string]Binding {
	bindings := make(map[string]Binding)
	for _, v := range vocabulary {
		for word := range strings.FieldsSeq(v.words) {
			bindings[word] = v.binding
		}
	}
	return bindings
})

// GuessBindings guesses each variable's binding from its name, for variables that are not
// configured (contract §6). variables are all variables of the template, of both parts,
// because some names have no clear meaning alone. The result has one binding for each, in
// their order. Letter case, accents and separators do not matter. A name that is not in the
// vocabulary is Free: after a wrong guess a customer is greeted with another person's name;
// without a guess, a person only has to type the value.
func GuessBindings(variables []Variable) []Binding {
	words := make([]string, len(variables))
	for i, v := range variables {
		words[i] = foldKey(v.Key)
	}
	var near []sibling // the rules whose other variable exists
	for _, s := range siblings {
		if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(s.beside, word) }) {
			near = append(near, s)
		}
	}
	guesses := make([]Binding, len(variables))
	for i, word := range words {
		guesses[i] = guessBinding(word, near)
	}
	return guesses
}

// guessBinding compares whole words only. musteritemsilcisi begins with the Turkish
// word for customer but means the agent, and productname is not a person's name.
func guessBinding(word string, near []sibling) Binding {
	for _, s := range near {
		if slices.Contains(s.names, word) {
			return s.binding
		}
	}
	if b, known := bindingsByWord()[word]; known {
		return b
	}
	return Free
}

// foldKey returns the form in which a variable's name is looked up, as appendFolded
// makes it. customer_first_name, customerFirstName and "Customer-First-Name" are the
// same.
func foldKey(key string) string {
	b := make([]byte, 0, len(key))
	for _, r := range key {
		b = appendFolded(b, r)
	}
	return string(b)
}

// appendFolded appends a Latin letter as one or two of a-z, without case and accents,
// or a digit as it is. It appends nothing for other characters, such as a separate
// accent. The result does not depend on the locale: all four Turkish letters I, ı, İ
// and i become i.
func appendFolded(b []byte, r rune) []byte {
	if r > unicode.MaxASCII {
		// The letter comes first, then its accents.
		if letter := norm.NFD.PropertiesString(string(r)).Decomposition(); letter != nil {
			r, _ = utf8.DecodeRune(letter)
		}
	}
	switch r = unicode.ToLower(unicode.ToUpper(r)); { // ToUpper first: it makes I of ı, which ToLower leaves as it is
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return append(b, byte(r))
	case r == 'ß':
		return append(b, "ss"...)
	case r == 'æ':
		return append(b, "ae"...)
	case r == 'ø':
		return append(b, 'o')
	}
	return b
}
