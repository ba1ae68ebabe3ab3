package main

import (
	"fmt"
	"strings"

	"parley/desk"
)

// The demo's people are invented, and the same each time. Their e-mails end in .example,
// which nobody can own. Their phone numbers are from ranges that the countries reserve
// for films and books, so they belong to nobody.

// demoContacts is the number of people.
const demoContacts = 200

var demoMembers = []struct {
	name, email string
	role        desk.Role
}{
	{"Nora Lindqvist", "nora@parley.example", desk.RoleAdmin},
	{"Tomás Rivera", "tomas@parley.example", desk.RoleAgent},
	{"Mei Tanaka", "mei@parley.example", desk.RoleAgent},
}

var (
	demoPlans     = []string{"Free", "Team", "Business"}
	demoInterests = []string{"Analytics", "Automation", "Integrations", "Training"}
	demoCompanies = []string{
		"Alder Books", "Bluewater Cafe", "Cedar Clinic", "Dunes Travel", "Ember Ceramics", "Fjord Outdoor",
		"Granite Gym", "Harbor Logistics", "Iris Optics", "Juniper Hotel", "Kite Software",
	}
)

// demoAttributes has one attribute of each type.
func demoAttributes() []desk.AttributeInput {
	attribute := func(key, label string, t desk.AttributeType, options ...string) desk.AttributeInput {
		in := desk.AttributeInput{Key: key, Label: set(label), Type: set(string(t))}
		if options != nil {
			in.Options = set(options)
		}
		return in
	}
	return []desk.AttributeInput{
		attribute("company", "Company", desk.TextAttribute),
		attribute("plan", "Plan", desk.SelectAttribute, demoPlans...),
		attribute("lifetime_value", "Lifetime value", desk.NumberAttribute),
		attribute("customer_since", "Customer since", desk.DateAttribute),
		attribute("newsletter", "Newsletter", desk.BooleanAttribute),
		attribute("website", "Website", desk.URLAttribute),
		attribute("interests", "Interests", desk.MultiselectAttribute, demoInterests...),
		attribute("last_order_at", "Last order", desk.DatetimeAttribute),
	}
}

// A demoHome is a place where some of the people live.
type demoHome struct {
	first, last []string
	phone       func(n int) string // returns the digits of the nth person there
}

var demoHomes = []demoHome{
	{ // United States: 555-0100 to 0199 in each area
		[]string{"Olivia", "James", "Maya", "Ethan", "Grace", "Marcus", "Hannah", "Diego", "Chloe", "Andre", "Naomi", "Caleb"},
		[]string{"Whitfield", "Okafor", "Brennan", "Castillo", "Holloway", "Nakamura", "Pruitt", "Delgado", "Sterling", "Abara", "Lindgren"},
		func(n int) string {
			areas := []string{"202", "212", "312", "415", "503", "206", "617", "713"}[n/90*4:]
			return fmt.Sprintf("1%s55501%02d", areas[n%4], 10+n%90)
		},
	},
	{ // United Kingdom: London 7946 0000 to 0999
		[]string{"Amelia", "Callum", "Priya", "Rhys", "Isla", "Kwame", "Freya"},
		[]string{"Ashworth", "Mackenzie", "Patel", "Penrose", "Hargreaves"},
		func(n int) string { return fmt.Sprintf("44207946%04d", 200+n) },
	},
	{ // Germany: 0171 39200 00 to 99
		[]string{"Jonas", "Lena", "Emre", "Jürgen", "Sophie", "Käthe", "Felix"},
		[]string{"Brückner", "Öztürk", "Hoffmann", "Weißer", "Lorenz"},
		func(n int) string { return fmt.Sprintf("4917139200%02d", 10+n) },
	},
	{ // Canada: 555-0100 to 0199
		[]string{"Élodie", "Liam", "Noémie", "Arjun", "Claire", "Mateo", "Zoë"},
		[]string{"Tremblay", "Singh", "MacLeod", "Gagnon", "Fraser"},
		func(n int) string { return fmt.Sprintf("1%s55501%02d", []string{"416", "604"}[n%2], 10+n) },
	},
	{ // Sweden: 070-174 06 05 to 99
		[]string{"Elsa", "Björn", "Saga", "Åke", "Linnéa", "Nils", "Amina"},
		[]string{"Sjöberg", "Holm", "Lindahl", "Ek", "Nyström"},
		func(n int) string { return fmt.Sprintf("467017406%02d", 10+n) },
	},
	{ // Australia: 02 5550 0000 to 9999; a sandbox fails with the first, and is slow with the second
		[]string{"Matilda", "Jack", "Ruby", "Lachlan", "Indira", "Bruno", "Tess"},
		[]string{"Gallagher", "Nguyen", "Fairweather", "Rossi", "Marlow"},
		func(n int) string { return fmt.Sprintf("6125550%04d", 4+n) },
	},
}

// demoScripts are the people whose names are long or in other scripts.
var demoScripts = map[int]struct{ name, mailbox string }{
	19: {"سارة الخطيب", "sara.alkhatib"},
	20: {"Олена Шевченко", "olena.shevchenko"},
	23: {"田中 美咲", "misaki.tanaka"},
	24: {"अनन्या शर्मा", "ananya.sharma"},
	27: {"נועה לוי", "noa.levi"},
	31: {"Maximiliana Alexandra von Hohenstein-Wittelsbach", "maximiliana.hohenstein"},
}

// demoOps returns the operations that create the people. Their values are already in the
// normal forms of desk. The printed curl lines use the first person.
func demoOps() []*desk.Op {
	ops := make([]*desk.Op, demoContacts)
	for i := range ops {
		ops[i] = demoPerson(i)
	}
	return ops
}

func demoPerson(i int) *desk.Op {
	// Half of the people live in the first country. The others are spread over the other
	// countries.
	at, n := 0, i/2
	if i%2 == 1 {
		at, n = 1+n%(len(demoHomes)-1), n/(len(demoHomes)-1)
	}
	home := demoHomes[at]
	first, last := home.first[n%len(home.first)], home.last[n%len(home.last)]
	company := demoCompanies[i%len(demoCompanies)]
	domain := strings.ToLower(strings.ReplaceAll(company, " ", "-")) + ".example"
	name, mailbox := first+" "+last, asciiLower.Replace(strings.ToLower(first+"."+last))
	if script, ok := demoScripts[i]; ok {
		name, mailbox = script.name, script.mailbox
	}

	w := desk.ContactWrite{Name: set(name)}
	holds := func(kind, value string) { w.Sent = append(w.Sent, desk.Identity{Kind: kind, Value: value}) }

	w.ExternalID = set(fmt.Sprintf("demo-%03d", i+1))
	holds(desk.KindExternalID, w.ExternalID.Value)
	if i%9 != 5 {
		w.Email = set(mailbox + "@" + domain)
		holds(desk.KindEmail, desk.CanonicalEmail(w.Email.Value))
	}
	phone := home.phone(n)
	if i%11 != 7 {
		w.Phone = set(phone)
		holds(desk.KindPhone, phone)
	}
	var further []desk.Identity
	also := func(kind, value string) {
		further = append(further, desk.Identity{Kind: kind, Value: value})
		holds(kind, value)
	}
	if i%5 == 0 {
		also(desk.KindWhatsApp, phone)
	}
	if i%7 == 3 {
		also("instagram", fmt.Sprintf("%s_%d", strings.ReplaceAll(mailbox, ".", "_"), i+1))
	}
	if i%10 == 4 {
		also(desk.KindEmail, fmt.Sprintf("%s%d@home.example", mailbox, i+1))
	}
	if further != nil {
		w.Identities = set(further)
	}
	if i%4 < len(demoMembers) {
		w.Owner = set(desk.ReferTo(demoMembers[i%4].email))
	}
	if i%13 == 2 {
		w.Note = set("Prefers a call in the morning.")
	}
	w.Attributes = set(demoValues(i, company, domain))
	return &desk.Op{Kind: desk.OpUpsert, Write: w}
}

// demoValues returns a person's attributes. Nobody has all of them.
func demoValues(i int, company, domain string) []desk.AttributeWrite {
	text := func(s string) desk.Value { return desk.Value{Kind: desk.StringValue, Text: s} }
	values := []desk.AttributeWrite{
		{Key: "company", Value: text(company)},
		{Key: "plan", Value: text(demoPlans[i%len(demoPlans)])},
		{Key: "lifetime_value", Value: desk.Value{Kind: desk.NumberValue, Text: fmt.Sprintf("%d.%02d", i*i%4900, i*37%100)}},
		{Key: "customer_since", Value: text(fmt.Sprintf("%d-%02d-%02d", 2019+i%6, 1+i*5%12, 1+i*11%28))},
		{Key: "newsletter", Value: desk.Value{Kind: desk.BoolValue, Bool: i%3 != 0}},
		{Key: "website", Value: text("https://" + domain)},
		{Key: "interests", Value: desk.Value{
			Kind: desk.ListValue, Text: demoInterests[i%4] + desk.ListEnd + demoInterests[(i+1+i/4%2)%4] + desk.ListEnd,
		}},
		{Key: "last_order_at", Value: text(fmt.Sprintf("2026-%02d-%02dT%02d:%02d:00Z", 1+i%9, 1+i*3%28, 8+i%10, i*7%60))},
	}
	leftOut := i % len(values)
	return append(values[:leftOut], values[leftOut+1:]...)
}

// asciiLower replaces letters of lower-case names for use in mailboxes.
var asciiLower = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "å", "a", "é", "e", "ë", "e")

// set returns a field that was sent.
func set[T any](v T) desk.Field[T] { return desk.Field[T]{Set: true, Value: v} }

// demoAdmin returns the first admin of the demo.
func demoAdmin(operator desk.Principal) (id desk.ID, found bool) {
	for _, m := range operator.Settings.Members() {
		if m.Role == desk.RoleAdmin {
			return m.ID, true
		}
	}
	return id, false
}
