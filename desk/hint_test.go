package desk_test

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

func TestParseBinding(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"free", "agent_name", "agent_first_name", "agent_last_name", "customer_name", "customer_first_name", "customer_last_name",
	} {
		if b, err := desk.ParseBinding(name); string(b) != name || err != nil {
			t.Errorf("%q is %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"", "Free", " free", "agent", "agent_email", "customer-name"} {
		b, err := desk.ParseBinding(name)
		if b != "" || !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%q is %q, %v", name, b, err)
			continue
		}
		for _, there := range desk.Bindings {
			if !strings.Contains(err.Error(), string(there)) {
				t.Errorf("%q: %v, which does not name %s", name, err, there)
			}
		}
	}
}

func TestHintValues(t *testing.T) {
	t.Parallel()
	ada := &desk.Member{Name: "Ada Lovelace", Email: "ada@example.com"}
	type values = map[desk.Binding]desk.HintValue
	for _, c := range []struct {
		name     string
		agent    *desk.Member
		customer string
		source   desk.HintSource
		want     values
	}{
		{"nobody", nil, "", desk.FromContact, values{}},
		{"an agent", ada, "", desk.FromContact, values{
			desk.AgentName:      {"Ada Lovelace", desk.FromMember},
			desk.AgentFirstName: {"Ada", desk.FromMember},
			desk.AgentLastName:  {"Lovelace", desk.FromMember},
		}},
		{"a contact", nil, "Mary Ann Evans", desk.FromContact, values{
			desk.CustomerName:      {"Mary Ann Evans", desk.FromContact},
			desk.CustomerFirstName: {"Mary Ann", desk.FromContact},
			desk.CustomerLastName:  {"Evans", desk.FromContact},
		}},
		{"both, of one word", &desk.Member{Name: "Ada"}, "Mary", desk.FromRequest, values{
			desk.AgentName:         {"Ada", desk.FromMember},
			desk.AgentFirstName:    {"Ada", desk.FromMember},
			desk.CustomerName:      {"Mary", desk.FromRequest},
			desk.CustomerFirstName: {"Mary", desk.FromRequest},
		}},
		{"white space", &desk.Member{Name: " "}, "\tMary\n Ann \u00a0 Evans ", desk.FromRequest, values{
			desk.CustomerName:      {"Mary Ann Evans", desk.FromRequest},
			desk.CustomerFirstName: {"Mary Ann", desk.FromRequest},
			desk.CustomerLastName:  {"Evans", desk.FromRequest},
		}},
		{"an agent's white space", &desk.Member{Name: "Ada \t Lovelace"}, " ", desk.FromContact, values{
			desk.AgentName:      {"Ada Lovelace", desk.FromMember},
			desk.AgentFirstName: {"Ada", desk.FromMember},
			desk.AgentLastName:  {"Lovelace", desk.FromMember},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := desk.HintValues(c.agent, c.customer, c.source); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestFirstName_and_LastName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, first, last string }{
		{"", "", ""},
		{" ", "", ""},
		{"Ada", "Ada", ""},
		{" Ada\n", "Ada", ""},
		{"Ada Lovelace", "Ada", "Lovelace"},
		{"Mary  Ann\tEvans ", "Mary Ann", "Evans"},
		{"Ludwig van Beethoven", "Ludwig van", "Beethoven"},
		{"Ayşe\u00a0Yılmaz", "Ayşe", "Yılmaz"},
		{"Ana-María García-López", "Ana-María", "García-López"},
	} {
		if first, last := desk.FirstName(c.name), desk.LastName(c.name); first != c.first || last != c.last {
			t.Errorf("%q: got %q and %q, want %q and %q", c.name, first, last, c.first, c.last)
		}
	}
}

func TestFirstName_and_LastName_lose_no_word(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`\s?(\pL{1,9}\s{1,3}){0,4}`)).Draw(t, "name")
		both := strings.TrimSpace(desk.FirstName(name) + " " + desk.LastName(name))
		if want := strings.Join(strings.Fields(name), " "); both != want {
			t.Fatalf("%q is split into %q, want %q", name, both, want)
		}
	})
}
