package desk_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"parley/desk"
)

// guessed has every name from which a binding is guessed, as the authors of templates spell
// it.
//
//nolint:misspell // Turkish
var guessed = map[desk.Binding]string{
	desk.AgentName: `
		agent, Agent Name, agentFullName, ADVISOR, advisor_name, adviser, adviser-name, consultant, ConsultantName,
		representative, representative_name, rep_name, Sales Rep, sales_rep_name, salesperson, salesperson_name,
		salesAgent, sales-agent-name, account.manager, AccountManagerName, staff_name, StaffMember, staff_member_name,
		employee_name, OPERATOR_NAME, teammate, teammate_name, support_agent, supportAgentName, assignee_name,
		attendant name,
		temsilci, TEMSİLCİ_ADI, temsilci_ad, Temsilci İsmi, temsilci_adı_soyadı, temsilciAdSoyad, MÜŞTERİ TEMSİLCİSİ,
		müşteri_temsilcisi_adı, Satış Temsilcisi, SATIŞ_TEMSİLCİSİ_ADI, danışman, Danışman Adı, DANIŞMAN_AD,
		danışman-ismi, DanışmanAdSoyad, danışman_adı_soyadı, satış danışmanı, SATIŞ DANIŞMANI ADI, uzman_adı,
		Personel Adı, çalışan_adı, OPERATÖR ADI, Görevli Adı,
		agente, agente_nombre, nombre_agente, Nombre del Agente, asesor, ASESORA, nombreAsesor, nombre_del_asesor,
		asesor-nombre, ejecutivo, nombre_ejecutivo, representante, nombre_representante, vendedor, Nombre Vendedor,
		atendente, nome_atendente, nome_do_atendente, consultor, consultora, nomeConsultor, Nome do Consultor,
		nome_agente, nome_do_agente, nome_vendedor, NOME DO VENDEDOR, nome_representante,
		Berater, berater_name, Beraterin, MitarbeiterName, Mitarbeiter, ansprechpartner, Ansprechpartner-Name,
		Sachbearbeiter, sachbearbeiter_name, conseiller, Conseillère, nom_conseiller, Nom du Conseiller, nom_agent,
		nom de l’agent, agent_nom, commercial_nom, nom commercial`,
	desk.AgentFirstName: `
		agent_first_name, AgentFirst, agent_given_name, advisorFirstName, representative_first_name, rep first name,
		SALES_REP_FIRST_NAME, staff_first_name, Employee-First-Name, operator_first_name,
		temsilci_ilk_adı, TEMSİLCİ ÖN ADI, danışman_ilk_adı, Danışman Ön Adı, temsilci_sadece_adı,
		primer_nombre_agente, primeiro_nome_agente, Primeiro Nome Atendente, primeiro_nome_do_atendente,
		primeiroNomeConsultor,
		Berater-Vorname, MITARBEITER_VORNAME, Prénom Agent, prénom de l'agent, prénom_conseiller,
		PRÉNOM DU CONSEILLER, agent_prénom`,
	desk.AgentLastName: `
		agent_last_name, agentSurname, Agent Family Name, advisor_last_name, ADVISOR_SURNAME, representative-last-name,
		sales_rep_last_name, staffLastName, employee_last_name,
		temsilci_soyadı, TEMSİLCİ SOYAD, danışman_soyadı, DANIŞMAN SOYAD, satış_temsilcisi_soyadı,
		apellido_agente, Apellido del Agente, apellidoAsesor, sobrenome_agente, Sobrenome do Agente,
		sobrenome_atendente, SOBRENOME DO ATENDENTE,
		Berater-Nachname, MitarbeiterNachname, nom_de_famille_agent, Nom de Famille Conseiller`,
	desk.CustomerName: `
		customer, Customer Name, CUSTOMER_FULL_NAME, client, clientName, client_full_name, contact_name,
		contact-full-name, Full Name, name, buyer_name, guestName, patient_name, recipient.name, Lead Name,
		subscriber_name, shopper_name,
		MÜŞTERİ, müşteri_adı, Müşteri İsmi, müşteriAdSoyad, MÜŞTERİ ADI SOYADI, müşteri_adı_soyad, Ad Soyad,
		adı_soyadı, Adı ve Soyadı, İSİM SOYİSİM, isim_soyad, isim, İsmi, ALICI, alıcı_adı, Misafir Adı, hasta_adı,
		danışan_adı, KİŞİ ADI, üye_ad_soyad,
		cliente, nombre_cliente, Nombre del Cliente, clienteNombre, nombre_completo, NOMBRE, nombre y apellido,
		nombre_y_apellidos, paciente, nombre_paciente, nome_cliente, Nome do Cliente, cliente_nome, nomeCompleto,
		nome, nome_paciente, nome do paciente,
		Kunde, Kundenname, kunde_name, voller_name, vollstaendiger_name, Vollständiger Name, KontaktName, nom_client,
		Nom du Client, client-nom, nom_complet, nom et prénom, Prénom et Nom, prénom_nom, Nom`,
	desk.CustomerFirstName: `
		First Name, given_name, FORENAME, fName, customer_first_name, CustomerGivenName, client-first-name,
		contact first name, guest_first_name, patientFirstName, lead_first_name,
		ilk_ad, İLK ADI, ilk_isim, ön_ad, Ön Adı, müşteri_ilk_adı, MÜŞTERİ ÖN ADI, müşteri_ilk_ismi,
		primer_nombre, Primer Nombre Cliente, primeiro_nome, primeiroNomeCliente, PRIMEIRO NOME DO CLIENTE,
		nombre_de_pila,
		Vorname, kunden_vorname, Kunde-Vorname, Prénom, prénom_client, PRÉNOM DU CLIENT, client_prénom`,
	desk.CustomerLastName: `
		Last Name, surname, FAMILY_NAME, lName, customer_last_name, CustomerSurname, client-last-name, client surname,
		contact_last_name, guestLastName, patient_last_name, lead_last_name,
		Soyad, SOYADI, soy_isim, soyismi, müşteri_soyadı, MÜŞTERİ SOYAD, müşteri_soyismi,
		apellido, Apellidos, apellido_cliente, Apellido del Cliente, apellidosCliente, sobrenome, sobrenome_cliente,
		SOBRENOME DO CLIENTE, Último Nome,
		Nachname, Familien-Name, kunden_nachname, KundeNachname, nom de famille, nom_de_famille_client`,
}

// unguessed has names that must stay free. First come first names that do not belong to
// people, then names that don't say which side they mean.
//
//nolint:misspell // Turkish
const unguessed = `
	1, 2, 12, code, KOD, código, otp, PIN, order, order_id, orderNumber, SİPARİŞ, sipariş_no, pedido, Bestellung,
	commande, date, tarih, fecha, data, Datum, time, saat, hora, amount, tutar, total, price, FİYAT, valor, Betrag,
	montant, link, url, product, product_name, ÜRÜN, ürün_adı, company, CompanyName, firma, Firma Adı, empresa, brand,
	store, MAĞAZA, phone, telefon, email, e_posta, address, adres, city, country, text, message, var1, param, value, x,
	user, user_name, member, memberName, manager, Manager Name, owner, owner_name, sender, sender_name, doctor,
	DoctorName, teacher, yetkili, YETKİLİ ADI, sorumlu, ad, ADI, adı, title, hitap, bey, HANIM, señor, Herr, Frau, person,
	kişi, student, parent, veli, driver, SÜRÜCÜ, kurye, technician, técnico, technico, teknisyen`

func namesIn(names string) []string {
	list := strings.Split(names, ",")
	for i, name := range list {
		list[i] = strings.TrimSpace(name)
	}
	return list
}

func inBody(keys ...string) []desk.Variable {
	variables := make([]desk.Variable, len(keys))
	for i, key := range keys {
		variables[i] = desk.Variable{Part: desk.PartBody, Key: key}
	}
	return variables
}

func TestGuessBindings_known_names(t *testing.T) {
	t.Parallel()
	for want, names := range guessed {
		for _, name := range namesIn(names) {
			if got := desk.GuessBindings(inBody(name)); got[0] != want {
				t.Errorf("%q is guessed to be %s, want %s", name, got[0], want)
			}
		}
	}
}

func TestGuessBindings_when_unsure_says_free(t *testing.T) {
	t.Parallel()
	for _, name := range append(namesIn(unguessed),
		"", "_", "имя", "名前", "٣", "\xff", "customer_name_2", "my_name", "names", "namename",
		strings.Repeat("name", 11), strings.Repeat("1", 100), strings.Repeat("x", 100_000)) {
		if got := desk.GuessBindings(inBody(name)); got[0] != desk.Free {
			t.Errorf("%.60q is guessed to be %s", name, got[0])
		}
	}
	if got := desk.GuessBindings(nil); len(got) != 0 {
		t.Errorf("no variables are guessed to be %s", got)
	}
}

func TestGuessBindings_spellings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"musteri ismi", "MUSTERI ISMI", "MÜŞTERİ İSMİ", "müşteri ısmı", "Mu\u0308s\u0327teri I\u0307smi",
		"Müs\u0327teri-i\u0307smi", "müşteri.ismi", "müşteri/ismi", "müşteriİsmi", "müşteri\u00a0ismi", "müşteri👋ismi",
		"\xffmüşteri ismi\xff",
	} {
		if got := desk.GuessBindings(inBody(name)); got[0] != desk.CustomerName {
			t.Errorf("%q is guessed to be %s", name, got[0])
		}
	}
	for name, want := range map[string]desk.Binding{
		"aßignee_name":       desk.AgentName,
		"AẞIGNEE_NAME":       desk.AgentName,
		"vollstændiger_name": desk.CustomerName,
		"VOLLSTÆNDIGER NAME": desk.CustomerName,
		"vollstǽndiger name": desk.CustomerName,
		"nømbre":             desk.CustomerName,
		"NØMBRE":             desk.CustomerName,
		"nǿmbre":             desk.CustomerName,
		"Müşterinin Adı":     desk.Free,
		"Görevlı Adi":        desk.AgentName,
	} {
		if got := desk.GuessBindings(inBody(name)); got[0] != want {
			t.Errorf("%q is guessed to be %s, want %s", name, got[0], want)
		}
	}
}

// sideBySide has names of variables of one template, with the wanted bindings in their order.
var sideBySide = []struct {
	names string
	want  []desk.Binding
}{
	{"müşteri_ad, müşteri_soyad", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"MÜŞTERİ SOYADI, MÜŞTERİ AD", []desk.Binding{desk.CustomerLastName, desk.CustomerFirstName}},
	{"müşteri_adı, müşteri_soyad", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"müşteri_adı, müşteri_soyadı", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"müşteri_ad", []desk.Binding{desk.Free}},
	{"müşteri_ad, soyad", []desk.Binding{desk.Free, desk.CustomerLastName}},
	{"müşteri_adı, soyadı", []desk.Binding{desk.CustomerName, desk.CustomerLastName}},

	{"ad, soyad", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"ad, soyadı", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"ad, soy_isim", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"Adı, Soyadı", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"SOYİSİM, İSİM", []desk.Binding{desk.CustomerLastName, desk.CustomerFirstName}},
	{"ad, last_name", []desk.Binding{desk.Free, desk.CustomerLastName}},
	{"ad, adı", []desk.Binding{desk.Free, desk.Free}},
	{"1, ad, tarih, soyad", []desk.Binding{desk.Free, desk.CustomerFirstName, desk.Free, desk.CustomerLastName}},

	{"temsilci_ad, temsilci_soyad", []desk.Binding{desk.AgentFirstName, desk.AgentLastName}},
	{"temsilci_adı, temsilci_soyad", []desk.Binding{desk.AgentFirstName, desk.AgentLastName}},
	{"temsilci_adı, temsilci_soyadı", []desk.Binding{desk.AgentFirstName, desk.AgentLastName}},
	{"danışman_ad, danışman_soyad", []desk.Binding{desk.AgentFirstName, desk.AgentLastName}},
	{"danışman_adı, danışman_soyad", []desk.Binding{desk.AgentFirstName, desk.AgentLastName}},
	{"danışman_adı, danışman_soyadı", []desk.Binding{desk.AgentFirstName, desk.AgentLastName}},
	{"temsilci_adı, danışman_soyadı", []desk.Binding{desk.AgentName, desk.AgentLastName}},
	{"danışman_adı, temsilci_soyadı", []desk.Binding{desk.AgentName, desk.AgentLastName}},
	{"temsilci_adı, soyadı", []desk.Binding{desk.AgentName, desk.CustomerLastName}},

	{"nombre, apellido", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"nombre, apellidos", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"nome, sobrenome", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"nome, apellido", []desk.Binding{desk.CustomerName, desk.CustomerLastName}},
	{"name, surname", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"last_name, name", []desk.Binding{desk.CustomerLastName, desk.CustomerFirstName}},
	{"customer_name, last_name", []desk.Binding{desk.CustomerName, desk.CustomerLastName}},

	{"nom, prénom", []desk.Binding{desk.CustomerLastName, desk.CustomerFirstName}},
	{"nom, vorname", []desk.Binding{desk.CustomerName, desk.CustomerFirstName}},
	{"Vorname, Name", []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName}},
	{"prénom, name", []desk.Binding{desk.CustomerFirstName, desk.CustomerName}},
	{"name, vorname, surname", []desk.Binding{desk.CustomerFirstName, desk.CustomerFirstName, desk.CustomerLastName}},
}

func TestGuessBindings_siblings(t *testing.T) {
	t.Parallel()
	for _, c := range sideBySide {
		variables := inBody(namesIn(c.names)...)
		if got := desk.GuessBindings(variables); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.names, got, c.want)
		}
		variables[0].Part = desk.PartHeader
		if got := desk.GuessBindings(variables); !slices.Equal(got, c.want) {
			t.Errorf("%s, the first in the header: got %s, want %s", c.names, got, c.want)
		}
	}
}

func TestGuessBindings_spelling_changes_nothing(t *testing.T) {
	t.Parallel()
	names := namesIn(unguessed)
	for _, b := range desk.Bindings[1:] {
		names = append(names, namesIn(guessed[b])...)
	}
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "names")
		keys = append(keys, namesIn(rapid.SampledFrom(sideBySide).Draw(t, "template").names)...)
		respelt := make([]string, len(keys))
		for i, key := range keys {
			respelt[i] = respell(t, key, []string{"", "", "", "_", "-", ".", " ", "\u0301", "’"})
		}
		got, want := desk.GuessBindings(inBody(respelt...)), desk.GuessBindings(inBody(keys...))
		if !slices.Equal(got, want) {
			t.Fatalf("%q are %s, but %q are %s", keys, want, respelt, got)
		}
	})
}

// respell changes the case and the accents of each letter of s. After each letter it puts
// one of the strings in the list between.
func respell(t *rapid.T, s string, between []string) string {
	accent := rapid.SampledFrom([]string{"", "", "", "\u0300", "\u0308", "\u0327", "\u0307"})
	var b strings.Builder
	for _, r := range s {
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			r = unicode.ToUpper(r)
		case 1:
			r = unicode.TurkishCase.ToUpper(r)
		case 2:
			r = unicode.TurkishCase.ToLower(r)
		}
		b.WriteRune(r)
		if unicode.IsLetter(r) {
			b.WriteString(accent.Draw(t, "accent"))
		}
		b.WriteString(rapid.SampledFrom(between).Draw(t, "between"))
	}
	return rapid.SampledFrom([]norm.Form{norm.NFC, norm.NFD}).Draw(t, "form").String(b.String())
}

func FuzzGuessBindings(f *testing.F) {
	f.Add("Müşteri_Adı,müşteri_soyadı,1")
	f.Add("vorname,NAME,,\xff")
	f.Add("nom\u0327,prénom,ſurname")
	f.Fuzz(func(t *testing.T, names string) {
		variables := inBody(strings.Split(names, ",")...)
		got := desk.GuessBindings(variables)
		if len(got) != len(variables) {
			t.Fatalf("%d bindings for %d variables", len(got), len(variables))
		}
		for _, b := range got {
			if !slices.Contains(desk.Bindings, b) {
				t.Fatalf("%q is no binding", b)
			}
		}
		slices.Reverse(variables)
		for i := range variables {
			variables[i].Part = desk.PartHeader
		}
		turned := desk.GuessBindings(variables)
		slices.Reverse(turned)
		if !slices.Equal(got, turned) {
			t.Fatalf("%q are %s, but the other way round, in the header, %s", names, got, turned)
		}
	})
}
