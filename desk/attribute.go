package desk

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An AttributeType says which values an attribute takes. It never changes.
type AttributeType string

// The attribute types (contract §3).
const (
	TextAttribute        AttributeType = "text"
	NumberAttribute      AttributeType = "number"
	SelectAttribute      AttributeType = "select"
	DateAttribute        AttributeType = "date"
	BooleanAttribute     AttributeType = "boolean"
	URLAttribute         AttributeType = "url"
	MultiselectAttribute AttributeType = "multiselect"
	DatetimeAttribute    AttributeType = "datetime"
)

// AttributeTypes lists all types, in the order in which they are shown.
var AttributeTypes = []AttributeType{
	TextAttribute, NumberAttribute, SelectAttribute, DateAttribute,
	BooleanAttribute, URLAttribute, MultiselectAttribute, DatetimeAttribute,
}

// hasOptions tells whether the values are options of the attribute.
func (t AttributeType) hasOptions() bool { return t == SelectAttribute || t == MultiselectAttribute }

// Limits of attributes (contract §3 and §4). Characters are Unicode code points.
const (
	MaxAttributes           = 300     // of a workspace, including archived attributes
	MaxAttributesJSON       = 4 << 20 // bytes of an answer with all of them
	MaxAttributeKey         = 64      // bytes
	MaxAttributeLabel       = 140
	MaxAttributeDescription = 300
	MaxOptions              = 500
	MaxOption               = 255
	MaxPosition             = 1<<53 - 1 // readers of JSON round greater numbers
	MaxText                 = 4000
	MaxURL                  = 2000
)

// An Attribute is a typed field that a workspace defines for its contacts (spec,
// Workspace attribute). Once built it is shared and never changed.
type Attribute struct {
	Key         string // [a-z][a-z0-9_]{0,63}
	Label       string
	Description string
	Type        AttributeType
	Options     []string // of a select or multiselect; empty for the other types
	Position    int
	Archived    bool // values stay, writes are refused
}

// Equal tells whether a and b are the same in every field.
func (a *Attribute) Equal(b *Attribute) bool {
	return a.Key == b.Key && a.Label == b.Label && a.Description == b.Description && a.Type == b.Type &&
		slices.Equal(a.Options, b.Options) && a.Position == b.Position && a.Archived == b.Archived
}

// An AttributeInput is an attribute as POST /attributes sent it.
type AttributeInput struct {
	Key                      string
	Label, Description, Type Field[string]
	Options                  Field[[]string]
	Position                 Field[int64]
}

// Check returns InvalidRequest for an input that would be wrong for every type of
// attribute. An input that passes has no text that is too long.
func (in AttributeInput) Check() error {
	if !isWord(in.Key, MaxAttributeKey) {
		return InvalidAt("/key", "send a lower-case letter and up to %d lower-case letters, digits or _", MaxAttributeKey-1)
	}
	var unused Attribute
	for _, check := range []func(*Attribute) error{in.setLabel, in.setDescription, in.setPosition(1), in.checkOptions} {
		if err := check(&unused); err != nil {
			return err
		}
	}
	return nil
}

// Apply returns the attribute as it is after the request: a new one if existing is nil,
// otherwise existing with the request's changes (contract §4). count is how many
// attributes the workspace has, archived ones included; nextPosition is one more than
// the greatest position among them. It returns InvalidRequest, or TypeConflict if the
// existing attribute has another type.
func (in AttributeInput) Apply(existing *Attribute, count, nextPosition int) (Attribute, error) {
	if err := in.Check(); err != nil {
		return Attribute{}, err
	}
	a := Attribute{Key: in.Key, Label: in.Key, Position: min(nextPosition, MaxPosition)}
	if existing != nil {
		a = *existing
	}
	for _, set := range []func(*Attribute) error{
		in.setLabel, in.setDescription, in.setPosition(nextPosition), in.setType, in.setOptions,
	} {
		if err := set(&a); err != nil {
			return Attribute{}, err
		}
	}
	if existing == nil && count >= MaxAttributes {
		return Attribute{}, Invalidf("the workspace has %d attributes, archived ones included, which is the most it can have: update one of them instead", count)
	}
	return a, nil
}

// CheckAttributes refuses a definition that makes the workspace's attributes larger
// than 4 MiB in an answer (contract §4), unless it makes them smaller than before.
func (s *Settings) CheckAttributes(next *Attribute) error {
	total := len(`{"data":[]}`) + next.jsonLength()
	for key, a := range s.Attributes {
		if key != next.Key {
			total += a.jsonLength()
		}
	}
	if existing := s.Attributes[next.Key]; total <= MaxAttributesJSON || existing != nil && next.jsonLength() <= existing.jsonLength() {
		return nil
	}
	return InvalidAt("/options", "with these the workspace's attributes would take more than the 4 MiB that all of them may: send fewer or shorter options, or shorten those of other attributes")
}

// jsonLength is the length of an attribute in an answer, or slightly more.
func (a *Attribute) jsonLength() int {
	n := len(`{"key":,"label":,"description":,"type":"multiselect","options":[],"position":9007199254740991,"archived":false},`) +
		jsonLength(a.Key) + jsonLength(a.Label) + jsonLength(a.Description)
	for _, o := range a.Options {
		n += jsonLength(o) + 1
	}
	return n
}

func (in AttributeInput) setLabel(a *Attribute) error {
	if in.Label.Null {
		a.Label = a.Key
	}
	if !in.Label.Has() {
		return nil
	}
	label, err := parseText(in.Label.Value, "a label", 1, MaxAttributeLabel)
	if err != nil {
		return InvalidAt("/label", "%v", err)
	}
	a.Label = label
	return nil
}

func (in AttributeInput) setDescription(a *Attribute) error {
	if !in.Description.Set {
		return nil
	}
	description, err := parseText(in.Description.Value, "a description", 0, MaxAttributeDescription) // "" when null
	if err != nil {
		return InvalidAt("/description", "%v", err)
	}
	a.Description = description
	return nil
}

// setPosition returns a function that sets the position. The workspace's last position is
// next-1.
func (in AttributeInput) setPosition(next int) func(*Attribute) error {
	return func(a *Attribute) error {
		switch p := in.Position; {
		case !p.Set:
		case p.Null:
			if a.Position != next-1 { // otherwise it is last already, and nothing changes
				a.Position = min(next, MaxPosition)
			}
		case p.Value < 0 || p.Value > MaxPosition:
			return InvalidAt("/position", "send a whole number from 0 to %d, or null for the last position", MaxPosition)
		default:
			a.Position = int(p.Value)
		}
		return nil
	}
}

func (in AttributeInput) setType(a *Attribute) error {
	t := AttributeType(in.Type.Value)
	switch {
	case !in.Type.Has() && a.Type != "":
		return nil
	case !in.Type.Has():
		return InvalidAt("/type", "a new attribute needs one: send %s", Alternatives(AttributeTypes))
	case !slices.Contains(AttributeTypes, t):
		return InvalidAt("/type", "this is no type of attribute: send %s", Alternatives(AttributeTypes))
	case a.Type != "" && a.Type != t:
		return Errorf(TypeConflict, "the attribute %s is of type %s, and a type never changes: archive it and create a new key to store %s",
			a.Key, a.Type, t)
	}
	a.Type = t
	return nil
}

// checkOptions checks the options alone, for any type.
func (in AttributeInput) checkOptions(*Attribute) error {
	options := in.Options.Value
	if len(options) > MaxOptions {
		return InvalidAt("/options", "an attribute has at most %d options, these are %d: leave some out", MaxOptions, len(options))
	}
	first := make(map[string]int, len(options))
	for i, o := range options {
		if err := checkStorable(o); err != nil {
			return InvalidAt(optionAt(i), "%v", err)
		}
		if n := utf8.RuneCountInString(o); n < 1 || n > MaxOption {
			return InvalidAt(optionAt(i), "an option has 1 to %d characters, this one has %d", MaxOption, n)
		}
		if j, twice := first[o]; twice {
			return InvalidAt(optionAt(i), "this option is there twice: it is also number %d", j+1)
		}
		first[o] = i
	}
	return nil
}

func optionAt(i int) string { return "/options/" + strconv.Itoa(i) }

// setOptions checks the options together with the type. The type is checked first: if
// it is wrong, the error is about the type and not about the options.
func (in AttributeInput) setOptions(a *Attribute) error {
	options := in.Options.Value
	switch {
	case !a.Type.hasOptions() && len(options) > 0:
		return InvalidAt("/options", "an attribute of type %s takes none: leave them out, or use select or multiselect", a.Type)
	case a.Type.hasOptions() && len(options) == 0 && (in.Options.Set || len(a.Options) == 0):
		return InvalidAt("/options", "an attribute of type %s needs 1 to %d of them", a.Type, MaxOptions)
	case len(options) > 0:
		a.Options = slices.Clone(options)
	}
	return nil
}

// NoSuchAttribute is the reason for a key for which the workspace has no attribute
// (spec, Errors).
const NoSuchAttribute = "no such workspace attribute"

// The other reasons for which a value can't be stored (spec, Errors; contract §3).
const (
	reasonArchived = "this workspace attribute is archived"
	reasonText     = "expected text"
	reasonLong     = "longer than 4000 characters"
	reasonNumber   = "expected a number"
	reasonSelect   = "expected one of: " // the options follow
	reasonDate     = "expected a date as YYYY-MM-DD"
	reasonBoolean  = "expected true or false"
	reasonURL      = "expected a URL"
	reasonList     = "expected a list of: " // the options follow
	reasonDatetime = "expected a time as RFC 3339"
)

// Canonical judges a value that a caller sent for the attribute. It returns one of
//
//   - json: the value as it is stored and answered, one form for each value:
//     a number as ParseDecimal writes it, a datetime in UTC cut to milliseconds, a
//     list in the order sent with each option once, and any text exactly as sent,
//     as AppendJSONString writes it;
//   - neither: the value clears (null, an empty text or an empty list);
//   - reason: why the value can't be stored, in the words of spec, Errors.
func (a *Attribute) Canonical(v Value) (json, reason string) {
	if a.Archived {
		return "", reasonArchived
	}
	if v.Kind == NullValue {
		return "", ""
	}
	if json, reason = a.canonical(v); reason != "" && reason != reasonLong {
		switch {
		case v.Kind == StringValue && v.Text == "":
			reason += "; " + emptyClears
		case a.Type.hasOptions(), a.Type == DateAttribute, a.Type == DatetimeAttribute:
			reason += v.got(a)
		}
	}
	return json, reason
}

// emptyClears is the advice for an empty string.
const emptyClears = "empty; send null to clear"

// got returns a refused value as messages show it: quoted and shortened.
func (v Value) got(a *Attribute) string {
	switch v.Kind {
	case StringValue:
		return "; got " + Quote(v.Text)
	case NumberValue:
		return "; got " + shorten(v.Text)
	case ListValue:
		for option := range strings.SplitSeq(strings.TrimSuffix(v.Text, ListEnd), ListEnd) {
			if a.Type == MultiselectAttribute && !slices.Contains(a.Options, option) {
				return "; got " + Quote(option)
			}
		}
	}
	return ""
}

// maxQuoted is the number of characters that a message quotes of a sent value.
const maxQuoted = 60

// Quote quotes a sent text for a message.
func Quote(s string) string { return `"` + shorten(s) + `"` }

func shorten(s string) string {
	n := 0
	for i := range s {
		if n == maxQuoted {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// canonical is Canonical without the quoted value in the reason.
func (a *Attribute) canonical(v Value) (json, reason string) {
	switch a.Type {
	case NumberAttribute:
		return canonicalNumber(v)
	case BooleanAttribute:
		return canonicalBoolean(v)
	case MultiselectAttribute:
		return a.canonicalList(v)
	case SelectAttribute:
		if v.Kind != StringValue || !slices.Contains(a.Options, v.Text) {
			return "", a.reason(reasonSelect)
		}
		return quoteJSON(v.Text), ""
	case DateAttribute:
		if _, ok := scanDate(v.Text); v.Kind != StringValue || !ok {
			return "", reasonDate
		}
		return quoteJSON(v.Text), ""
	case DatetimeAttribute:
		return canonicalDatetime(v)
	case URLAttribute:
		if v.Kind != StringValue || !isURL(v.Text) {
			return "", reasonURL
		}
		return quoteJSON(v.Text), ""
	}
	return canonicalText(v)
}

func canonicalText(v Value) (json, reason string) {
	switch {
	case v.Kind != StringValue || checkStorable(v.Text) != nil:
		return "", reasonText
	case v.Text == "":
		return "", ""
	case len(v.Text) > MaxText && utf8.RuneCountInString(v.Text) > MaxText:
		return "", reasonLong
	}
	return quoteJSON(v.Text), ""
}

func canonicalNumber(v Value) (json, reason string) {
	if v.Kind == NumberValue || v.Kind == StringValue {
		if n, ok := ParseDecimal(v.Text); ok {
			return n, ""
		}
	}
	return "", reasonNumber
}

func canonicalBoolean(v Value) (json, reason string) {
	switch {
	case v.Kind == BoolValue && v.Bool, v.Kind == StringValue && v.Text == "true":
		return "true", ""
	case v.Kind == BoolValue, v.Kind == StringValue && v.Text == "false":
		return "false", ""
	}
	return "", reasonBoolean
}

// canonicalList accepts at most as many elements as an attribute can have options. Further
// elements could only be repetitions, and comparing millions of them would cost too much.
func (a *Attribute) canonicalList(v Value) (json, reason string) {
	n := strings.Count(v.Text, ListEnd)
	if v.Kind != ListValue || n > MaxOptions {
		return "", a.reason(reasonList)
	}
	if n == 0 {
		return "", ""
	}
	b := make([]byte, 0, len(v.Text)+2*n+2)
	sep := byte('[')
	taken := make([]string, 0, n)
	for rest := v.Text; rest != ""; {
		var option string
		option, rest, _ = strings.Cut(rest, ListEnd)
		if !slices.Contains(a.Options, option) {
			return "", a.reason(reasonList)
		}
		if slices.Contains(taken, option) {
			continue
		}
		taken = append(taken, option)
		b = AppendJSONString(append(b, sep), option)
		sep = ','
	}
	return string(append(b, ']')), ""
}

// maxReason is the greatest number of characters of options in a reason (contract §3).
const maxReason = 1000

// reason returns a reason: its start, and the attribute's options.
func (a *Attribute) reason(start string) string {
	b := []byte(start)
	room := maxReason
	for i, o := range a.Options {
		if i > 0 {
			room -= len(", ")
		}
		if room -= utf8.RuneCountInString(o); room < 0 {
			return string(fmt.Appendf(b, " and %d more", len(a.Options)-i))
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, o...)
	}
	return string(b)
}

func canonicalDatetime(v Value) (json, reason string) {
	t, ok := ParseTime(v.Text)
	if v.Kind != StringValue || !ok {
		return "", reasonDatetime
	}
	var b [len(`"2006-01-02T15:04:05.000Z"`)]byte
	return string(append(t.Append(append(b[:0], '"')), '"')), ""
}

// isURL tells whether s is an absolute web address: http or https, a host, at most
// MaxURL characters, no white space or control characters.
func isURL(s string) bool {
	if len(s) > MaxURL && utf8.RuneCountInString(s) > MaxURL || !utf8.ValidString(s) {
		return false
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
