package desk

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// How many characters (code points) a filled title and a filled message may have. The
// provider counts the filled text, not its parts.
const (
	MaxFilledTitle = 60
	MaxFilledBody  = 1024
)

// TemplateValues is the content of template.variables in a send, before it is checked.
// The zero TemplateValues has no values.
type TemplateValues struct {
	Object bool         // the values are in Named, else in List
	List   []string     // in the order of the template's variables
	Named  []NamedValue // in request order, each address once
}

// A NamedValue is the value for one variable address.
type NamedValue struct{ Address, Value string }

// A VariableProblem says why a variable can't be filled. The address of a surplus value
// in a list is its position, such as "[3]".
type VariableProblem struct{ Address, Message string }

// Values returns the values in the order of t.Variables, exactly as given. If they are not
// valid it returns InvalidVariables with a []VariableProblem. First come the variables that
// can't be filled, in the template's order, and then the needs that are missing or invalid.
// Then come the values that belong to neither, in request order (contract §5,
// contract-broadcast §1).
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

	var problems details[VariableProblem]
	longestInTitle, titleTooLong := t.checkLength(PartHeader, "title", t.Header, MaxFilledTitle, values)
	longest, tooLong := t.checkLength(PartBody, "message", t.Body, MaxFilledBody, values)
	for i, v := range t.Variables {
		address := v.Address()
		_, found := given[address]
		delete(given, address) // values that remain at the end belong to no variable
		message := checkVariable(values[i])
		if !found {
			message = "the value is missing: send one for every variable"
		} else if i == longest {
			message = strings.TrimPrefix(message+"; "+tooLong, "; ")
		} else if i == longestInTitle {
			message = strings.TrimPrefix(message+"; "+titleTooLong, "; ")
		}
		if message != "" {
			problems.add(VariableProblem{address, message}, address, message)
		}
	}
	for _, need := range t.Needs {
		value, found := given[need.Address]
		delete(given, need.Address)
		if message := need.check(value, found); message != "" {
			problems.add(VariableProblem{need.Address, message}, need.Address, message)
		}
	}
	for _, n := range named {
		if _, left := given[n.Address]; left {
			problems.add(VariableProblem{n.Address, noVariable}, n.Address, noVariable)
		}
	}
	if problems.total > 0 {
		return nil, problems.seen(Errorf(InvalidVariables, "%d of the template's values can't be sent, so nothing was sent", problems.total))
	}
	return values, nil
}

const noVariable = "the template has no variable for this value: leave it out"

// nameValues gives the elements of a list the addresses of their variables.
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

// checkVariable returns the reason why the provider or parley's store would refuse a value;
// "" if both accept it. Values are never changed.
func checkVariable(value string) string {
	if Blank(value) {
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

// checkLength checks the length of a filled part. If the part is too long, tooLong is the
// error message, and longest is the index of the part's longest value, which is the best one
// to shorten. longest is -1 if the part is short enough, or if shorter values would not
// help. The length is counted without filling, because one long value can occur in hundreds
// of places.
func (t *Template) checkLength(part Part, name, text string, bound int, values []string) (longest int, tooLong string) {
	longest = -1
	most, size := 0, map[string]int{}
	for i, v := range t.Variables {
		if v.Part == part {
			n := utf8.RuneCountInString(values[i])
			if size[v.Key] = n; n > most {
				longest, most = i, n
			}
		}
	}
	over := utf8.RuneCountInString(placeholder.ReplaceAllLiteralString(text, "")) - bound
	for _, match := range placeholder.FindAllString(text, -1) {
		over += size[placeholderKey(match)]
	}
	if over <= 0 {
		return -1, ""
	}
	return longest, fmt.Sprintf("the filled %s has %d characters more than the %d that it may have: shorten this value, its longest", name, over, bound)
}

// Text returns the message as the person reads it: the filled title, if there is one, as
// *Title* on its own line, and then the filled message (contract §5). values are a result
// of the method Values. A placeholder in a value is plain text.
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

// A Component is the data that the provider gets for one part of a template.
type Component struct {
	Part       Part
	Button     int // of PartButton: the button's place among all buttons, from 0
	Parameters []Parameter
}

// A Parameter is one value of a Component.
type Parameter struct {
	Name string // "" if it is sent by position
	Text string
}

// Components returns the data that the provider gets for a template: one component for each
// part with variables, first for the title, and then one for each link. There is no
// component for a part without variables, because the provider refuses a component without
// parameters. A file in the title is not in the list, because the provider first has to get
// it. values are a result of the method Values, supplied of the method Supplied.
func (t *Template) Components(values, supplied []string) (list []Component) {
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
	for i, need := range t.Needs {
		if !need.IsFile() {
			list = append(list, Component{Part: PartButton, Button: need.Button, Parameters: []Parameter{{Text: supplied[i]}}})
		}
	}
	return list
}
