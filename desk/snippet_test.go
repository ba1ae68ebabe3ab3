package desk_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/desk"
)

func TestNewSnippet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ shortcut, text, wrong string }{
		{"hi", "Hi", ""},
		{"a", " as sent \n", ""},
		{"a-b_c9", strings.Repeat("ü", 4096), ""},
		{strings.Repeat("a", 32), "{{agent_name}}{{agent_first_name}}{{agent_last_name}}{{customer_name}}{{customer_first_name}}{{customer_last_name}}", ""},
		{"a", "{one} }} {", ""},
		{"", "Hi", "/shortcut"},
		{strings.Repeat("a", 33), "Hi", "/shortcut"},
		{"Hi", "Hi", "/shortcut"},
		{"9a", "Hi", "/shortcut"},
		{"a b", "Hi", "/shortcut"},
		{"a\n", "Hi", "/shortcut"},
		{"é", "Hi", "/shortcut"},
		{"a", "", "/text"},
		{"a", " \n", "/text"},
		{"a", strings.Repeat("ü", 4097), "/text"},
		{"a", "{{free}}", "/text"},
		{"a", "Hi {{customer}}", "/text"},
		{"a", "Hi {{ customer_name }}", "/text"},
		{"a", "Hi {{Customer_Name}}", "/text"},
		{"a", "Hi {{}}", "/text"},
		{"a", "Hi {{customer_name}", "/text"},
		{"a", "Hi {{customer_{{customer_name}}}}", "/text"},
		{"a", "{{1}}", "/text"},
	} {
		s, err := desk.NewSnippet(c.shortcut, c.text, 7)
		if c.wrong == "" && (err != nil || s != desk.Snippet{Shortcut: c.shortcut, Text: c.text, UpdatedAt: 7}) {
			t.Errorf("%q %q: %+v, %v", c.shortcut, c.text, s, err)
		}
		if c.wrong != "" && (!desk.IsType(err, desk.InvalidRequest) || desk.AsError(err).At != c.wrong) {
			t.Errorf("%q %q: %v", c.shortcut, c.text, err)
		}
	}
}

// TestSnippet_Fill_bounded: even with long names, an answer with 500 saved replies is not
// huge.
func TestSnippet_Fill_bounded(t *testing.T) {
	t.Parallel()
	s := desk.Snippet{Text: strings.Repeat("{{agent_name}}", 4096/len("{{agent_name}}"))}
	name := strings.Repeat("語", 255)
	if n := utf8.RuneCountInString(s.Fill(desk.HintValues(&desk.Member{Name: name}, "", ""))); n > 4096 || n < 4000 {
		t.Errorf("%d characters", n)
	}
}

func TestSnippet_Fill(t *testing.T) {
	t.Parallel()
	nora := &desk.Member{Name: "Nora  Diaz"}
	for _, c := range []struct {
		text, customer string
		agent          *desk.Member
		want           string
	}{
		{"Hi {{customer_first_name}}, {{agent_name}} here", "Ada Lovelace", nora, "Hi Ada, Nora Diaz here"},
		{"{{customer_name}}{{customer_name}}", "Ada", nil, "AdaAda"},
		{"{{customer_last_name}}, {{agent_last_name}}", "Ada", nil, "{{customer_last_name}}, {{agent_last_name}}"},
		{"{{customer_name}}", "{{agent_name}}", nora, "{{agent_name}}"},
		{"no placeholder $1", "Ada", nora, "no placeholder $1"},
		// A reply has at most 4,096 characters: placeholders whose values do not fit stay.
		{strings.Repeat("x", 4060) + "{{customer_name}} {{customer_name}}", strings.Repeat("ü", 36), nil,
			strings.Repeat("x", 4060) + "{{customer_name}} {{customer_name}}"},
		{strings.Repeat("x", 4060) + "{{customer_name}} {{customer_name}}", strings.Repeat("ü", 18), nil,
			strings.Repeat("x", 4060) + strings.Repeat("ü", 18) + " {{customer_name}}"},
	} {
		s := desk.Snippet{Text: c.text}
		if got := s.Fill(desk.HintValues(c.agent, c.customer, desk.FromContact)); got != c.want {
			t.Errorf("%q is filled as %q, want %q", c.text, got, c.want)
		}
	}
}
