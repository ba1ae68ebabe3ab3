package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/desk"
)

// This file has the fields of a filter: a line for each condition. A line that is joined by
// "or" is one alternative with the line before it.

// mostBoxes is how many choices of a condition are boxes. More are typed, one on each line.
const mostBoxes = 20

// The names of a filter's fields are c.N.field, and so on, by line.
const (
	joinOr    = "or"
	addPart   = "c.add"    // the field of a new line
	addLine   = "c.new"    // the button that adds it
	dropLine  = "c.remove" // the button that removes a line
	condition = "c."
)

// A typedCondition is a condition as a form has it.
type typedCondition struct {
	Field, Is, Value, Days string
	Or                     bool
	Values                 []string // one of each box, or of each line
}

// A conditionForm is a filter as a page shows it.
type conditionForm struct {
	Lines []conditionLine
	Add   *field // nil: there is no room for more
	Zone  string // the time zone of the lines' times
}

// A conditionLine is a condition as a page shows it. Fields that its comparisons don't take are
// nil.
type conditionLine struct {
	N           int
	Label       string
	Name, Field string // of the hidden field that names the condition's field
	ID          string
	Join, Is    *field
	Boxes       *boxesField
	Values      *field // a text area
	Value, Days *field
	Error       string
}

// A boxesField is a group of boxes.
type boxesField struct {
	*field
	Boxes []choice
}

// typedConditions reads the lines of a form. A button may have added or removed one.
func (c *call) typedConditions(values url.Values) (list []typedCondition) {
	for n := range desk.MaxConditions {
		at := condition + strconv.Itoa(n) + "."
		if !values.Has(at + "field") {
			continue
		}
		if values.Get(dropLine) == strconv.Itoa(n) {
			continue
		}
		t := typedCondition{Field: values.Get(at + "field"), Is: values.Get(at + "is"), Value: strings.TrimSpace(values.Get(at + "value")),
			Days: strings.TrimSpace(values.Get(at + "days")), Or: values.Get(at+"join") == joinOr}
		for _, v := range values[at+"values"] {
			t.Values = append(t.Values, optionsOf(v).Value...)
		}
		list = append(list, t)
	}
	if values.Has(addLine) && values.Get(addPart) != "" && len(list) < desk.MaxConditions {
		f := c.filterField(values.Get(addPart))
		t := typedCondition{Field: f.Name}
		if len(f.Is) > 0 { // as the browser shows it
			t.Is = string(f.Is[0])
		}
		list = append(list, t)
	}
	return list
}

// editsConditions tells whether a button adds or removes a line, so that nothing is stored.
func (f *form) editsConditions() bool { return f.has(addLine) || f.has(dropLine) }

// typed returns the lines that show a filter.
func (c *call) typed(f *desk.Filter) (list []typedCondition) {
	add := func(v desk.Condition, or bool) {
		t := typedCondition{Field: v.Field, Is: string(v.Is), Or: or}
		for _, one := range v.Values {
			text := one.Text
			if one.Kind == desk.BoolValue {
				text = strconv.FormatBool(one.Bool)
			}
			t.Values = append(t.Values, text)
		}
		if v.Value.Kind != desk.NullValue {
			t.Value = v.Value.Text
			if at, ok := desk.ParseTime(t.Value); ok {
				t.Value = c.exactTime(at)
			}
		}
		if v.Days != nil {
			t.Days = strconv.FormatInt(*v.Days, 10)
		}
		list = append(list, t)
	}
	for _, clause := range f.All {
		if clause.Any == nil {
			add(clause.Condition, false)
		}
		for i, v := range clause.Any {
			add(v, i > 0)
		}
	}
	return list
}

// exactLayout is localLayout with seconds. In a time that is read they may have a fraction.
const exactLayout = localLayout + ":05"

// exactTime is a time as an input shows it, so that it stays as it is.
func (c *call) exactTime(t desk.Time) string {
	text := c.localTime(t)
	if rest := t % 60_000; rest != 0 {
		text += time.UnixMilli(int64(rest)).UTC().Format(":05.000")
	}
	return text
}

// filterOf returns the filter of the lines. problems are by name of the field: what only a form
// can have wrong, and what the rules refuse.
func (c *call) filterOf(list []typedCondition) (m *desk.Matcher, problems map[string]string) {
	var f desk.Filter
	problems = map[string]string{}
	lines := map[string]int{} // by place in the filter
	for n, t := range list {
		at := condition + strconv.Itoa(n) + "."
		v := desk.Condition{Field: t.Field, Is: desk.Comparison(t.Is)}
		field := c.filterField(t.Field)
		switch v.Is.Takes() {
		case "values":
			for _, text := range t.Values {
				value, ok := c.conditionValue(field, text)
				if !ok {
					problems[at+"values"] = "Nobody of the team has the e-mail " + desk.Quote(text) + "."
				}
				v.Values = append(v.Values, value)
			}
		case "value":
			v.Value = desk.Value{Kind: desk.StringValue, Text: t.Value}
			switch a := field.Attribute; {
			case a != nil && a.Type == desk.NumberAttribute:
				v.Value.Kind = desk.NumberValue
			case a == nil || a.Type == desk.DatetimeAttribute:
				when, err := time.ParseInLocation(localLayout, t.Value, c.zone)
				if err != nil {
					when, err = time.ParseInLocation(exactLayout, t.Value, c.zone)
				}
				if v.Value.Text = desk.TimeOf(when).String(); err != nil {
					problems[at+"value"] = "Give a date and a time."
				}
			}
		case "days":
			if days, err := strconv.ParseInt(t.Days, 10, 64); err == nil {
				v.Days = &days
			}
		}
		switch last := len(f.All) - 1; {
		case !t.Or || last < 0:
			f.All = append(f.All, desk.Clause{Condition: v})
			lines["/all/"+strconv.Itoa(last+1)] = n
		default:
			clause := &f.All[last]
			if clause.Any == nil {
				first := "/all/" + strconv.Itoa(last)
				clause.Any, clause.Condition = []desk.Condition{clause.Condition}, desk.Condition{}
				lines[first+"/any/0"] = lines[first]
			}
			lines["/all/"+strconv.Itoa(last)+"/any/"+strconv.Itoa(len(clause.Any))] = n
			clause.Any = append(clause.Any, v)
		}
	}
	m, err := f.Matcher(c.p.Settings)
	if err != nil {
		e := desk.AsError(err)
		at, what := e.At, ""
		for part := at; part != ""; part = part[:strings.LastIndexByte(part, '/')] {
			if n, ok := lines[part]; ok {
				what, _, _ = strings.Cut(strings.TrimPrefix(at[len(part):], "/"), "/")
				at = condition + strconv.Itoa(n) + "." + what
				break
			}
		}
		if what == "" {
			at = addPart
		}
		if problems[at] == "" {
			problems[at] = conditionProblem(what, e)
		}
	}
	return m, problems
}

// conditionProblem words an error of a part of a condition.
func conditionProblem(what string, e *desk.Error) string {
	switch what {
	case "":
		return "Add at least one condition."
	case "is":
		return "Choose one."
	case "values":
		if e.At[len(e.At)-1] == 's' {
			return "Give 1 to " + count(desk.MaxFilterValues) + " of them."
		}
	}
	return sentence(e.Message)
}

func (c *call) filterField(name string) desk.FilterField {
	for _, f := range c.p.Settings.FilterFields() {
		if f.Name == name {
			return f
		}
	}
	return desk.FilterField{Name: name}
}

// conditionValue reads a value of a condition. It returns false for an unknown member.
func (c *call) conditionValue(f desk.FilterField, text string) (desk.Value, bool) {
	switch {
	case f.Attribute != nil && f.Attribute.Type == desk.BooleanAttribute:
		return desk.Value{Kind: desk.BoolValue, Bool: text == "true"}, true
	case f.Name == "owner":
		m := c.p.Settings.ResolveMember(desk.ReferTo(text))
		if m == nil {
			_, known := desk.ParseID(text) // of a member who was removed
			return desk.Value{Kind: desk.StringValue, Text: text}, known
		}
		text = m.ID.String()
	}
	return desk.Value{Kind: desk.StringValue, Text: text}, true
}

// conditions returns the fields of the lines. problems may be nil.
func (c *call) conditions(list []typedCondition, problems map[string]string) conditionForm {
	d := conditionForm{Zone: c.zone.String()}
	for n, t := range list {
		d.Lines = append(d.Lines, c.conditionLine(n, t, problems))
	}
	for name, text := range problems {
		c.form.wrong(name, text)
	}
	if len(list) < desk.MaxConditions {
		d.Add = (&form{}).Field(addPart, "Add a condition about", "", "")
		d.Add.Error = problems[addPart]
		choices := []choice{{Label: "Choose"}}
		for _, f := range c.p.Settings.FilterFields() {
			choices = append(choices, choice{Value: f.Name, Label: filterFieldWords(f)})
		}
		d.Add.Of(choices)
		c.form.call(addPart, "Conditions")
	}
	return d
}

func (c *call) conditionLine(n int, t typedCondition, problems map[string]string) conditionLine {
	at, f := condition+strconv.Itoa(n)+".", c.filterField(t.Field)
	line := conditionLine{N: n, Label: filterFieldWords(f), Name: at + "field", ID: idOf(at + "field"), Field: t.Field, Error: problems[at+"field"]}
	input := func(name, label, hint, value string) *field {
		d := (&form{}).Field(at+name, label, hint, value)
		d.Error = problems[d.Name]
		c.form.call(d.Name, line.Label)
		return d
	}
	c.form.call(at+"field", line.Label)
	if n > 0 {
		join := "and"
		if t.Or {
			join = joinOr
		}
		line.Join = input("join", "This and the line before", "", join).Of([]choice{{Value: "and", Label: "Both must hold"}, {Value: joinOr, Label: "One of them is enough"}})
	}
	var choices []choice
	takes := map[string]bool{}
	for _, is := range f.Is {
		choices = append(choices, choice{Value: string(is), Label: comparisonWords(f, is)})
		takes[is.Takes()] = true
	}
	line.Is = input("is", line.Label, "", t.Is).Of(choices)
	if takes["values"] {
		if boxes := c.valueBoxes(f); boxes != nil && len(boxes) <= mostBoxes {
			for i := range boxes {
				boxes[i].Selected = slices.Contains(t.Values, boxes[i].Value)
			}
			line.Boxes = &boxesField{input("values", "Which", "", ""), boxes}
		} else {
			line.Values = input("values", "Which", valuesHint(f), strings.Join(t.Values, "\n")).Tall(4)
		}
	}
	if takes["value"] {
		line.Value = input("value", "Which value", "", t.Value)
		switch a := f.Attribute; {
		case a == nil || a.Type == desk.DatetimeAttribute:
			line.Value.As("datetime-local").Label, line.Value.Hint = "When", "In the zone "+c.zone.String()+"."
		case a.Type == desk.DateAttribute:
			line.Value.As("date").Label = "When"
		}
	}
	if takes["days"] {
		line.Days = input("days", "Days", "From 0 to "+count(desk.MaxFilterDays)+".", t.Days).As("number")
	}
	return line
}

// valueBoxes are the values that a field can have; nil if they are typed.
func (c *call) valueBoxes(f desk.FilterField) (boxes []choice) {
	switch a := f.Attribute; {
	case f.Name == "owner":
		for _, m := range c.p.Settings.Members() {
			boxes = append(boxes, choice{Value: m.ID.String(), Label: m.Name})
		}
	case a != nil && a.Type == desk.BooleanAttribute:
		boxes = []choice{{Value: "true", Label: "Yes"}, {Value: "false", Label: "No"}}
	case a != nil:
		for _, o := range a.Options {
			boxes = append(boxes, choice{Value: o, Label: o})
		}
	}
	return boxes
}

func valuesHint(f desk.FilterField) string {
	switch f.Name {
	case "owner":
		return "The e-mail of a member on each line."
	case "country":
		return "A code on each line, such as TR or US."
	}
	return "One on each line. Letter case and accents do not count."
}

// filterFieldWords are the words for a field of a filter.
func filterFieldWords(f desk.FilterField) string {
	switch f.Name {
	case "phone":
		return "Phone or chat account"
	case "country":
		return "Country of the number"
	case "created_at":
		return "Added"
	case "wrote_at":
		return "Last wrote"
	}
	if f.Attribute != nil {
		return f.Attribute.Label
	}
	return labelOf(f.Name)
}

// comparisonWords are the words for a comparison of a field.
func comparisonWords(f desk.FilterField, is desk.Comparison) string {
	number := f.Attribute != nil && f.Attribute.Type == desk.NumberAttribute
	switch is {
	case desk.IsPresent:
		if f.Name == "wrote_at" {
			return "at some time"
		}
		return "known"
	case desk.IsAbsent:
		if f.Name == "wrote_at" {
			return "never"
		}
		return "not known"
	case desk.IsIn:
		return "one of"
	case desk.IsNotIn:
		return "none of"
	case desk.IsAtLeast:
		if number {
			return "at least"
		}
		return "not before"
	case desk.IsBelow:
		if number {
			return "below"
		}
		return "before"
	case desk.IsWithin:
		return "at most so many days ago"
	case desk.IsOlder:
		return "more than so many days ago"
	}
	return "in at most so many days"
}

// filterWords says in words which contacts fit.
func (c *call) filterWords(f *desk.Filter) string {
	var all []string
	for i, t := range c.typed(f) {
		of := c.filterField(t.Field)
		words := filterFieldWords(of) + ": " + comparisonWords(of, desk.Comparison(t.Is))
		switch {
		case t.Days != "":
			words = strings.Replace(words, "so many", t.Days, 1)
		case t.Value != "":
			words += " " + strings.Replace(t.Value, "T", " ", 1)
		case len(t.Values) > 0:
			words += " " + c.valueWords(of, t.Values)
		}
		if t.Or && i > 0 {
			all[len(all)-1] += ", or " + words
		} else {
			all = append(all, words)
		}
	}
	return strings.Join(all, "; ")
}

// shownValues is how many values of a condition its words name.
const shownValues = 3

func (c *call) valueWords(f desk.FilterField, values []string) string {
	boxes := c.valueBoxes(f)
	var names []string
	for _, v := range values[:min(len(values), shownValues)] {
		if i := slices.IndexFunc(boxes, func(b choice) bool { return b.Value == v }); i >= 0 {
			v = boxes[i].Label
		}
		names = append(names, v)
	}
	if more := len(values) - shownValues; more > 0 {
		names = append(names, count(more)+" more")
	}
	return strings.Join(names, ", ")
}
