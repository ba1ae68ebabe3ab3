package desk

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
)

// The limits of a filter (contract-broadcast §6).
const (
	MaxConditions   = 20 // of a filter, those of each "any" included
	MaxFilterValues = 100
	MaxFilterDays   = 3650
)

// A Filter says which contacts fit: those for which all its clauses hold. It is as it was
// sent, or as Matcher made it canonical.
type Filter struct{ All []Clause }

// A Clause is a condition, or several of which one must hold.
type Clause struct {
	Condition
	Any []Condition // nil: the clause is its condition
}

// A Condition compares a field of a contact.
type Condition struct {
	Field  string
	Is     Comparison
	Values []Value // of in and not_in
	Value  Value   // of at_least and below; a NullValue for the others
	Days   *int64  // of within, older and ahead
}

// A Comparison is what a condition asks about its field.
type Comparison string

// The comparisons.
const (
	IsPresent Comparison = "present"
	IsAbsent  Comparison = "absent"
	IsIn      Comparison = "in"
	IsNotIn   Comparison = "not_in"
	IsAtLeast Comparison = "at_least"
	IsBelow   Comparison = "below"
	IsWithin  Comparison = "within" // at most so many days ago
	IsOlder   Comparison = "older"  // more days ago
	IsAhead   Comparison = "ahead"  // in at most so many days
)

// Groups of comparisons, by what they are sent with.
var (
	plainComparisons = []Comparison{IsPresent, IsAbsent}
	listComparisons  = []Comparison{IsIn, IsNotIn}
	valueComparisons = []Comparison{IsAtLeast, IsBelow}
	dayComparisons   = []Comparison{IsWithin, IsOlder, IsAhead}
)

// Takes tells what a comparison is sent with: "values", "value" or "days"; "" for nothing.
func (c Comparison) Takes() string {
	switch {
	case slices.Contains(listComparisons, c):
		return "values"
	case slices.Contains(valueComparisons, c):
		return "value"
	case slices.Contains(dayComparisons, c):
		return "days"
	}
	return ""
}

// A FilterField is a field that conditions compare.
type FilterField struct {
	Name      string
	Is        []Comparison
	Attribute *Attribute // nil: it is a field of each contact
}

// The fields of each contact that conditions compare. Attributes have the names attributes.KEY.
const (
	filterOwner   = "owner"
	filterCountry = "country"
	filterCreated = "created_at"
	filterWrote   = "wrote_at"

	filterAttribute = "attributes."
)

var contactFields = []FilterField{
	{Name: "name", Is: plainComparisons},
	{Name: "email", Is: plainComparisons},
	{Name: "external_id", Is: plainComparisons},
	{Name: "phone", Is: plainComparisons},
	{Name: filterOwner, Is: slices.Concat(plainComparisons, listComparisons)},
	{Name: filterCountry, Is: listComparisons},
	{Name: filterCreated, Is: slices.Concat(valueComparisons, dayComparisons)},
	{Name: filterWrote, Is: slices.Concat(plainComparisons, valueComparisons, dayComparisons)},
}

// FilterFields lists the fields that conditions can compare: those of each contact, then the
// active attributes.
func (s *Settings) FilterFields() []FilterField {
	list := slices.Clone(contactFields)
	for _, a := range s.SortedAttributes() {
		if !a.Archived {
			list = append(list, attributeField(a))
		}
	}
	return list
}

func attributeField(a *Attribute) FilterField {
	f := FilterField{Name: filterAttribute + a.Key, Attribute: a}
	switch a.Type {
	case NumberAttribute:
		f.Is = slices.Concat(plainComparisons, valueComparisons)
	case DateAttribute, DatetimeAttribute:
		f.Is = slices.Concat(plainComparisons, valueComparisons, dayComparisons)
	default:
		f.Is = slices.Concat(plainComparisons, listComparisons)
	}
	return f
}

// filterField returns the field with a name. Its errors have the place /field.
func (s *Settings) filterField(name string) (FilterField, error) {
	if key, ok := strings.CutPrefix(name, filterAttribute); ok {
		switch a := s.Attributes[key]; {
		case a == nil:
			return FilterField{}, InvalidAt("/field", "there is no attribute with the key %s", Quote(key)).Advise(ListAttributes)
		case a.Archived:
			return FilterField{}, InvalidAt("/field", "the attribute %s is archived", key)
		default:
			return attributeField(a), nil
		}
	}
	for _, f := range contactFields {
		if f.Name == name {
			return f, nil
		}
	}
	names := make([]string, 0, len(contactFields)+1)
	for _, f := range contactFields {
		names = append(names, f.Name)
	}
	return FilterField{}, InvalidAt("/field", "this is no field of a filter: send %s", Alternatives(append(names, filterAttribute+"KEY")))
}

// A Matcher decides which contacts fit a filter. It is safe for concurrent use.
type Matcher struct {
	Filter Filter // in its canonical form
	Wrote  bool   // the filter asks when people wrote
	all    [][]condition
}

// Matcher checks the filter against the workspace's attributes. Its errors are InvalidRequest.
// Their place is relative to the filter.
func (f *Filter) Matcher(s *Settings) (*Matcher, error) {
	m := &Matcher{}
	n := 0
	for i, clause := range f.All {
		at := "/all/" + strconv.Itoa(i)
		list := clause.Any
		switch {
		case clause.Any == nil:
			list = []Condition{clause.Condition}
		case clause.Field != "" || clause.Is != "" || clause.sends() != nil:
			return nil, InvalidAt(at, "send a condition, or any with conditions, not both")
		case len(list) == 0:
			return nil, InvalidAt(at+"/any", "send at least one condition")
		}
		if n += len(list); n > MaxConditions {
			break // before many are checked
		}
		var canonical Clause
		var tests []condition
		for j, sent := range list {
			c, err := sent.check(s)
			if err != nil {
				if clause.Any != nil {
					at += "/any/" + strconv.Itoa(j)
				}
				return nil, Within(at, err)
			}
			m.Wrote = m.Wrote || c.field.Name == filterWrote
			tests = append(tests, c)
			if canonical.Condition = c.Condition; clause.Any != nil {
				canonical.Condition = Condition{}
				canonical.Any = append(canonical.Any, c.Condition)
			}
		}
		m.Filter.All = append(m.Filter.All, canonical)
		m.all = append(m.all, tests)
	}
	if n < 1 || n > MaxConditions {
		return nil, InvalidAt("/all", "send 1 to %d conditions in all", MaxConditions)
	}
	return m, nil
}

// sends names what is sent beside the field and the comparison.
func (c *Condition) sends() (names []string) {
	if c.Values != nil {
		names = append(names, "values")
	}
	if c.Value.Kind != NullValue {
		names = append(names, "value")
	}
	if c.Days != nil {
		names = append(names, "days")
	}
	return names
}

// A condition is a Condition that was checked.
type condition struct {
	Condition // canonical
	field     FilterField
	values    []string // of in and not_in, in the form in which they are compared
	bound     string   // of at_least and below: a decimal, if the field is a number
	moment    Time     // of at_least and below, if it is none
}

func (c *Condition) check(s *Settings) (checked condition, err error) {
	field, err := s.filterField(c.Field)
	if err != nil {
		return checked, err
	}
	checked = condition{Condition: *c, field: field}
	if !slices.Contains(field.Is, c.Is) {
		return checked, InvalidAt("/is", "%s takes %s", field.Name, Alternatives(field.Is))
	}
	takes := c.Is.Takes()
	for _, name := range c.sends() {
		if name != takes {
			return checked, InvalidAt("/"+name, "%s takes no %s: leave it out", c.Is, name)
		}
	}
	switch takes {
	case "values":
		err = checked.checkValues()
	case "value":
		err = checked.checkValue()
	case "days":
		if c.Days == nil || *c.Days < 0 || *c.Days > MaxFilterDays {
			err = InvalidAt("/days", "send a whole number from 0 to %d", MaxFilterDays)
		}
	}
	return checked, err
}

func (c *condition) checkValues() error {
	if n := len(c.Values); n < 1 || n > MaxFilterValues {
		return InvalidAt("/values", "send 1 to %d values", MaxFilterValues)
	}
	c.Values = slices.Clone(c.Values)
	for i, v := range c.Values {
		compared, problem := "", ""
		switch {
		case c.field.Attribute != nil && c.field.Attribute.Type == BooleanAttribute:
			if compared = strconv.FormatBool(v.Bool); v.Kind != BoolValue {
				problem = "send true or false"
			}
		case v.Kind != StringValue:
			problem = "send a text"
		case c.field.Name == filterOwner:
			if id, ok := ParseID(v.Text); ok {
				compared = id.String()
				c.Values[i].Text = compared
			} else {
				problem = "send the id of a member"
			}
		case c.field.Name == filterCountry:
			if country, err := ParseCountry(v.Text); err == nil && country != "" {
				compared = country
				c.Values[i].Text = compared
			} else {
				problem = "send the code of a country in ISO 3166, such as TR or US"
			}
		default:
			if n := utf8.RuneCountInString(v.Text); n < 1 || n > MaxText || checkStorable(v.Text) != nil {
				problem = "send a text of 1 to " + strconv.Itoa(MaxText) + " characters"
			}
			compared = Fold(v.Text)
		}
		if problem != "" {
			return InvalidAt("/values/"+strconv.Itoa(i), "%s", problem)
		}
		c.values = append(c.values, compared)
	}
	return nil
}

func (c *condition) checkValue() error {
	ok, want := false, "a time as RFC 3339, such as 2026-01-31T09:30:00Z"
	switch a := c.field.Attribute; {
	case a != nil && a.Type == NumberAttribute:
		want = "a number"
		if c.bound, ok = ParseDecimal(c.Value.Text); c.Value.Kind != NumberValue {
			ok = false
		}
		c.Value.Text = c.bound
	case c.Value.Kind != StringValue:
		if a != nil && a.Type == DateAttribute {
			want = "a date as YYYY-MM-DD"
		}
	case a != nil && a.Type == DateAttribute:
		want = "a date as YYYY-MM-DD"
		c.moment, ok = dateTime(c.Value.Text)
	default:
		c.moment, ok = ParseTime(c.Value.Text)
		c.Value.Text = c.moment.String()
	}
	if !ok {
		return InvalidAt("/value", "send %s", want)
	}
	return nil
}

// dateTime is the beginning of a day in UTC.
func dateTime(s string) (Time, bool) {
	d, ok := scanDate(s)
	return TimeOf(time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)), ok
}

// Fits tells whether a contact fits. wrote is the time of the newest message that the contact
// wrote on any channel, 0 if there is none.
func (m *Matcher) Fits(c *Contact, wrote, now Time) bool {
	of := &compared{contact: c, wrote: wrote, now: now}
	for _, clause := range m.all {
		if !slices.ContainsFunc(clause, func(c condition) bool { return c.holds(of) }) {
			return false
		}
	}
	return true
}

// A compared contact keeps the values that several conditions compare.
type compared struct {
	contact    *Contact
	wrote, now Time
	known      map[string][]string // by name of the field
}

func (c *condition) holds(of *compared) bool {
	switch c.Is {
	case IsPresent:
		return len(of.values(&c.field)) > 0
	case IsAbsent:
		return len(of.values(&c.field)) == 0
	case IsIn, IsNotIn:
		in := slices.ContainsFunc(of.values(&c.field), func(v string) bool { return slices.Contains(c.values, v) })
		return in == (c.Is == IsIn)
	}
	if c.bound != "" {
		values := of.values(&c.field)
		return len(values) > 0 && (compareDecimals(values[0], c.bound) >= 0) == (c.Is == IsAtLeast)
	}
	at, ok := of.moment(&c.field)
	if !ok {
		return false
	}
	switch c.Is {
	case IsAtLeast:
		return at >= c.moment
	case IsBelow:
		return at < c.moment
	}
	days := Time(*c.Days) * Time((24 * time.Hour).Milliseconds())
	switch c.Is {
	case IsWithin:
		return at <= of.now && of.now-at <= days
	case IsOlder:
		return of.now-at > days
	}
	return at >= of.now && at-of.now <= days // ahead
}

// values returns the values of a field in the form in which they are compared; none if the
// contact lacks the field.
func (of *compared) values(f *FilterField) []string {
	values, ok := of.known[f.Name]
	if !ok {
		values = of.read(f)
		if of.known == nil {
			of.known = map[string][]string{}
		}
		of.known[f.Name] = values
	}
	return values
}

func (of *compared) read(f *FilterField) []string {
	c, value := of.contact, ""
	switch f.Name {
	case "name":
		value = c.Name
	case "email":
		value = c.Email
	case "external_id":
		value = c.ExternalID
	case "phone":
		value = c.Address()
	case filterOwner:
		if c.Owner != nil {
			value = c.Owner.ID.String()
		}
	case filterCountry:
		value = countryOf(c.Address())
	case filterWrote:
		if of.wrote > 0 {
			value = of.wrote.String()
		}
	default:
		return comparedValues(f.Attribute, c.Attributes.get(f.Attribute.Key))
	}
	if value == "" {
		return nil
	}
	return []string{value}
}

// comparedValues returns the canonical value of an attribute in the form in which it is
// compared. Texts are folded.
func comparedValues(a *Attribute, canonical string) []string {
	var list []string
	switch {
	case canonical == "":
		return nil
	case a.Type == MultiselectAttribute:
		_ = json.Unmarshal([]byte(canonical), &list) // it is canonical
	default:
		list = []string{factText(canonical)}
	}
	for i := range list {
		list[i] = Fold(list[i])
	}
	return list
}

// moment returns the time that a field has. A date is the beginning of its day.
func (of *compared) moment(f *FilterField) (Time, bool) {
	switch f.Name {
	case filterCreated:
		return of.contact.CreatedAt, true
	case filterWrote:
		return of.wrote, of.wrote > 0
	}
	text := factText(of.contact.Attributes.get(f.Attribute.Key))
	if f.Attribute.Type == DateAttribute {
		return dateTime(text)
	}
	return ParseTime(text)
}

// countryOf returns the country of a number, digits with their country code; "" if it is of
// none.
func countryOf(digits string) string {
	n, err := phonenumbers.Parse("+"+digits, "")
	if err != nil {
		return ""
	}
	country, err := ParseCountry(phonenumbers.GetRegionCodeForNumber(n))
	if err != nil { // a worldwide service
		return ""
	}
	return country
}

// AppendJSON appends the filter as JSON.
func (f *Filter) AppendJSON(b []byte) []byte {
	b = append(b, `{"all":[`...)
	for i, clause := range f.All {
		if i > 0 {
			b = append(b, ',')
		}
		if clause.Any == nil {
			b = clause.appendJSON(b)
			continue
		}
		b = append(b, `{"any":[`...)
		for j, c := range clause.Any {
			if j > 0 {
				b = append(b, ',')
			}
			b = c.appendJSON(b)
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

func (c *Condition) appendJSON(b []byte) []byte {
	b = AppendJSONString(append(b, `{"field":`...), c.Field)
	b = AppendJSONString(append(b, `,"is":`...), string(c.Is))
	for i, v := range c.Values {
		if i == 0 {
			b = append(b, `,"values":[`...)
		} else {
			b = append(b, ',')
		}
		b = v.appendJSON(b)
	}
	if len(c.Values) > 0 {
		b = append(b, ']')
	}
	if c.Value.Kind != NullValue {
		b = c.Value.appendJSON(append(b, `,"value":`...))
	}
	if c.Days != nil {
		b = strconv.AppendInt(append(b, `,"days":`...), *c.Days, 10)
	}
	return append(b, '}')
}

// appendJSON appends a text, a number or a boolean.
func (v Value) appendJSON(b []byte) []byte {
	switch v.Kind {
	case BoolValue:
		return strconv.AppendBool(b, v.Bool)
	case NumberValue:
		return append(b, v.Text...)
	}
	return AppendJSONString(b, v.Text)
}

// MarshalJSON is AppendJSON, for stores.
func (f Filter) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil), nil }

// UnmarshalJSON reads a stored filter, as AppendJSON wrote it.
func (f *Filter) UnmarshalJSON(text []byte) error {
	var sent struct {
		All []struct {
			storedCondition
			Any []storedCondition
		}
	}
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	*f = Filter{}
	for _, s := range sent.All {
		clause := Clause{Condition: s.condition()}
		if s.Any != nil {
			clause.Any = make([]Condition, 0, len(s.Any))
		}
		for _, one := range s.Any {
			clause.Any = append(clause.Any, one.condition())
		}
		f.All = append(f.All, clause)
	}
	return nil
}

type storedCondition struct {
	Field  string
	Is     Comparison
	Values []storedValue
	Value  storedValue
	Days   *int64
}

func (s storedCondition) condition() Condition {
	c := Condition{Field: s.Field, Is: s.Is, Value: Value(s.Value), Days: s.Days}
	for _, v := range s.Values {
		c.Values = append(c.Values, Value(v))
	}
	return c
}

// A storedValue is a Value that Value.appendJSON wrote.
type storedValue Value

func (v *storedValue) UnmarshalJSON(text []byte) error {
	switch text[0] {
	case '"':
		v.Kind = StringValue
		return json.Unmarshal(text, &v.Text)
	case 't', 'f':
		v.Kind, v.Bool = BoolValue, text[0] == 't'
	default:
		v.Kind, v.Text = NumberValue, string(text)
	}
	return nil
}
