package desk

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Part is where in a template a variable stands.
type Part string

// The parts that hold variables: the title and the message.
const (
	PartHeader Part = "header"
	PartBody   Part = "body"
)

// A Variable is a place in a template that each send fills. One that occurs twice in
// a part is still one; the same key in title and message is two.
type Variable struct {
	Part Part
	Key  string // exactly as the template spells it, without the braces
}

// Address is the name by which callers fill the variable (spec, Variable addresses).
func (v Variable) Address() string {
	if v.Part == PartHeader {
		return "header." + v.Key
	}
	return v.Key
}

func (v Variable) isNumber() bool { return strings.Trim(v.Key, "0123456789") == "" }

// MaxFilledBody is how many characters (code points) a message has at most once it
// is filled. The provider counts the filled text, not its parts.
const MaxFilledBody = 1024

// TemplateValues is what a send gives for template.variables, before it is judged.
// The zero TemplateValues gives nothing.
type TemplateValues struct {
	Object bool         // Named is what was given, else List
	List   []string     // in the order of the template's variables
	Named  []NamedValue // in request order, each address once
}

// A NamedValue is the value for one variable address.
type NamedValue struct{ Address, Value string }

// A VariableProblem says why a variable can't be filled. The address of a value that
// a list has too many is its place in the list, "[3]".
type VariableProblem struct{ Address, Message string }

// Values returns the values in the order of t.Variables, exactly as they were given.
// When they don't fit it returns InvalidVariables with a []VariableProblem: first
// one for each variable that can't be filled, in the template's order, then the
// values that belong to none, in request order (contract §5).
func (t *Template) Values(in TemplateValues) ([]string, error) {
	given, named := map[string]string{}, in.Named
	if !in.Object {
		named = t.nameValues(in.List)
	}
	for _, n := range named {
		given[n.Address] = n.Value
	}
	values := make([]string, len(t.Variables))
	for i, v := range t.Variables {
		values[i] = given[v.Address()]
	}

	var problems []VariableProblem
	longest, tooLong := t.checkLength(values)
	for i, v := range t.Variables {
		address := v.Address()
		_, found := given[address]
		delete(given, address) // what is left at the end belongs to no variable
		message := checkVariable(values[i])
		if !found {
			message = "the value is missing: send one for every variable"
		} else if i == longest {
			message = strings.TrimPrefix(message+"; "+tooLong, "; ")
		}
		if message != "" {
			problems = append(problems, VariableProblem{address, message})
		}
	}
	for _, n := range named {
		if _, left := given[n.Address]; left {
			problems = append(problems, VariableProblem{n.Address, "the template has no variable for this value: leave it out"})
		}
	}
	if problems != nil {
		e := Errorf(InvalidVariables, "%d of the template's values can't be sent, so nothing was: details names each with its reason", len(problems))
		e.Details = problems
		return nil, e
	}
	return values, nil
}

// nameValues gives the elements of a list the addresses of the variables they are for.
func (t *Template) nameValues(list []string) []NamedValue {
	named := make([]NamedValue, len(list))
	for i, value := range list {
		named[i] = NamedValue{fmt.Sprintf("[%d]", i), value}
		if i < len(t.Variables) {
			named[i].Address = t.Variables[i].Address()
		}
	}
	return named
}

// checkVariable says what the provider, or our store, refuses in a value; "" when
// nothing. Nothing is taken out on the way: the caller's text is the caller's.
func checkVariable(value string) string {
	if strings.TrimSpace(value) == "" {
		return "the value is empty: the provider takes none that is empty or only blanks"
	}
	if err := checkStorable(value); err != nil {
		return err.Error()
	}
	var refused []string
	if strings.ContainsAny(value, "\n\r\v\f\u0085\u2028\u2029") {
		refused = append(refused, "line breaks")
	}
	if strings.Contains(value, "\t") {
		refused = append(refused, "tabs")
	}
	if strings.Contains(value, "     ") {
		refused = append(refused, "more than four spaces in a row")
	}
	if refused == nil {
		return ""
	}
	return "the provider refuses " + strings.Join(refused, ", and ") + " in a value: take them out"
}

// checkLength holds the filled message to MaxFilledBody. When it is longer, tooLong
// says so and longest is the index of its longest value, where shortening helps
// most; -1 when it is not, or when no value can help. It counts without filling: one
// long value can stand in hundreds of places.
func (t *Template) checkLength(values []string) (longest int, tooLong string) {
	longest = -1
	most, size := 0, map[string]int{}
	for i, v := range t.Variables {
		if v.Part == PartBody {
			n := utf8.RuneCountInString(values[i])
			if size[v.Key] = n; n > most {
				longest, most = i, n
			}
		}
	}
	over := utf8.RuneCountInString(placeholder.ReplaceAllLiteralString(t.Body, "")) - MaxFilledBody
	for _, match := range placeholder.FindAllString(t.Body, -1) {
		over += size[placeholderKey(match)]
	}
	if over <= 0 {
		return -1, ""
	}
	return longest, fmt.Sprintf("the filled message has %d characters more than the %d that it may have: shorten this value, its longest", over, MaxFilledBody)
}

// Text is the message as the person reads it: the filled title as *Title* on a line
// of its own, when there is one, then the filled message (contract §5). values are
// those that Values returned. A placeholder in a value is plain text.
func (t *Template) Text(values []string) string {
	body := t.fill(PartBody, t.Body, values)
	if t.Header == "" {
		return body
	}
	return "*" + t.fill(PartHeader, t.Header, values) + "*\n" + body
}

// fill replaces the placeholders of a part's text, all in one pass.
func (t *Template) fill(part Part, text string, values []string) string {
	filling := map[string]string{}
	for i, v := range t.Variables {
		if v.Part == part {
			filling[v.Key] = values[i]
		}
	}
	return placeholder.ReplaceAllStringFunc(text, func(match string) string { return filling[placeholderKey(match)] })
}

// A Component is what the provider is sent for one part of a template.
type Component struct {
	Part       Part
	Parameters []Parameter
}

// A Parameter is one value of a Component.
type Parameter struct {
	Name string // "" for one that travels by place
	Text string
}

// Components is what the provider is sent for a template: one for each part that has
// variables, the title's first, and nil when neither has. The provider refuses a
// component without parameters. values are those that Values returned.
func (t *Template) Components(values []string) (list []Component) {
	for i, v := range t.Variables {
		if len(list) == 0 || list[len(list)-1].Part != v.Part {
			list = append(list, Component{Part: v.Part})
		}
		p := Parameter{Text: values[i]}
		if t.Named {
			p.Name = v.Key
		}
		last := &list[len(list)-1]
		last.Parameters = append(last.Parameters, p)
	}
	return list
}
