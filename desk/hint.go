package desk

import (
	"slices"
	"strings"
)

// A Binding says what fills a variable (spec, VariableHint).
type Binding string

// The bindings. Free means that a person types the value.
const (
	Free              Binding = "free"
	AgentName         Binding = "agent_name"
	AgentFirstName    Binding = "agent_first_name"
	AgentLastName     Binding = "agent_last_name"
	CustomerName      Binding = "customer_name"
	CustomerFirstName Binding = "customer_first_name"
	CustomerLastName  Binding = "customer_last_name"
)

// Bindings lists all bindings, in the order in which they are shown.
var Bindings = []Binding{
	Free, AgentName, AgentFirstName, AgentLastName, CustomerName, CustomerFirstName, CustomerLastName,
}

// ParseBinding reads a binding's name. It returns InvalidRequest for any other text.
func ParseBinding(s string) (Binding, error) {
	if b := Binding(s); slices.Contains(Bindings, b) {
		return b, nil
	}
	names := make([]string, len(Bindings))
	for i, b := range Bindings {
		names[i] = string(b)
	}
	return "", InvalidAt("/bind", "%q is no binding: use one of %s", s, strings.Join(names, ", "))
}

// A HintSource says where a hint's value comes from (spec, VariableHint).
type HintSource string

// The sources.
const (
	FromContact HintSource = "contact" // the contact
	FromMember  HintSource = "member"  // the member
	FromRequest HintSource = "request" // a name that the caller sent
)

// A HintValue is a suggested value for a variable. The zero HintValue means none: value
// and source are null.
type HintValue struct {
	Value  string
	Source HintSource
}

// HintValues returns the values of the bindings. The agent_* bindings have values if there
// is an agent. The customer_* bindings have values if the customer has a name, which comes
// from source. A binding without a value isn't in the map. Free never has a value, and the
// last name has one only if the name has two or more words. Values are on one line with
// single spaces, because a variable takes neither line breaks nor tabs (contract §5).
func HintValues(agent *Member, customer string, source HintSource) map[Binding]HintValue {
	values := make(map[Binding]HintValue, len(Bindings))
	put := func(b Binding, value string, source HintSource) {
		if value != "" {
			values[b] = HintValue{value, source}
		}
	}
	if agent != nil {
		put(AgentName, oneLine(agent.Name), FromMember)
		put(AgentFirstName, FirstName(agent.Name), FromMember)
		put(AgentLastName, LastName(agent.Name), FromMember)
	}
	put(CustomerName, oneLine(customer), source)
	put(CustomerFirstName, FirstName(customer), source)
	put(CustomerLastName, LastName(customer), source)
	return values
}

// FirstName returns a name without its last word, or the whole name if it has only one word
// (contract §6). The words have single spaces between them. Particles such as "van" are
// ordinary words: no rule distinguishes them from first names everywhere.
func FirstName(name string) string {
	words := strings.Fields(name)
	if len(words) > 1 {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}

// LastName returns the last word of a name of two or more words, otherwise "" (contract
// §6).
func LastName(name string) string {
	words := strings.Fields(name)
	if len(words) < 2 {
		return ""
	}
	return words[len(words)-1]
}

// oneLine returns s on one line. Each run of white space becomes one space. White space at
// the beginning and at the end is removed.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
