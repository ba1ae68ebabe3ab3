package transfer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/desk"
)

// A field is what a column holds: a member of a contact's body, a part of it, or nothing; or what
// a row of a broadcast has.
type field struct {
	name string // external_id, name, first_name, identity, attributes, …; skipped for none
	key  string // of an attribute; the kind of an identity; the address of a variable
}

const (
	skipped    = "-"
	firstName  = "first_name"
	lastName   = "last_name"
	identities = "identities"
	identityOf = "identity"   // identity.KIND
	attribute  = "attributes" // attributes.KEY
	since      = "since"      // of an opt-out
	optedOut   = "opted_out"
	contactID  = "contact_id" // of a broadcast's row
	variable   = "variables"  // variables.ADDRESS
)

// A Variable is a variable of a template, which a column of people of a broadcast can fill.
type Variable struct{ Address, Label string }

// Field is what Options.Fields has for a column that fills the variable.
func (v Variable) Field() string { return field{variable, v.Address}.String() }

// who are the fields that say who the person of a broadcast's row is: the first of them that a
// file has is the guess.
var who = []string{desk.KindPhone, contactID, desk.KindExternalID, desk.KindEmail}

// NewAttribute in Options.Fields makes an attribute of a column.
const NewAttribute = "+"

func (f field) String() string {
	if f.key != "" {
		return f.name + "." + f.key
	}
	return f.name
}

// fieldsOf are the fields that a file of this kind may have.
func fieldsOf(kind desk.ImportKind) []string {
	switch kind {
	case desk.ImportOptOuts:
		return []string{desk.KindPhone, since, optedOut}
	case desk.ImportPeople:
		return append(slices.Clone(who), "name")
	}
	return []string{desk.KindExternalID, "name", firstName, lastName, desk.KindEmail, desk.KindPhone, "note", "owner", identities}
}

// synonyms are headers of other products and languages, folded.
var synonyms = map[string]string{
	"fullname": "name", "adsoyad": "name", "ad": firstName, "vorname": firstName, "nombre": firstName,
	"soyad": lastName, "surname": lastName, "nachname": lastName, "apellidos": lastName,
	"mail": desk.KindEmail, "eposta": desk.KindEmail, "phonenumber": desk.KindPhone, "mobile": desk.KindPhone, "tel": desk.KindPhone,
	"gsm": desk.KindPhone, "telefon": desk.KindPhone, "notes": "note",
}

// plain folds a header to lower-case letters and digits of ASCII.
func plain(header string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, desk.Fold(header))
}

// parseField reads the name of a field, as --map and exported files have it.
func parseField(kind desk.ImportKind, name string) (field, bool) {
	if name == skipped || slices.Contains(fieldsOf(kind), name) {
		return field{name: name}, true
	}
	before, key, ok := strings.Cut(name, ".")
	if !ok || key == "" {
		return field{}, false
	}
	if kind != desk.ImportContacts {
		return field{variable, key}, kind == desk.ImportPeople && before == variable
	}
	switch before {
	case attribute:
		return field{attribute, key}, true
	case identityOf:
		return field{identityOf, key}, desk.ParseKind(key) == nil
	}
	return field{}, false
}

// ignored tells whether a column or a member is of parley's own.
func ignored(header string) bool {
	return strings.HasPrefix(header, "parley_") || strings.HasPrefix(header, "_")
}

// A mapper finds the fields of columns.
type mapper struct {
	kind       desk.ImportKind
	attributes map[string]*desk.Attribute
	variables  []Variable
	given      map[string]field // by --map
	chosen     []string         // of each column: Options.Fields
	unknown    []int            // columns that nobody knows
	made       []int            // columns that become attributes
}

// guess returns the field of a column, by its header.
func (m *mapper) guess(header string) (field, bool) {
	if f, ok := m.given[header]; ok {
		return f, true
	}
	if ignored(header) {
		return field{name: skipped}, true
	}
	folded := plain(header)
	for _, v := range m.variables {
		if folded != "" && (folded == plain(v.Address) || folded == plain(v.Label)) {
			return field{variable, v.Address}, true
		}
	}
	for _, name := range []string{header, strings.ToLower(header)} {
		if f, ok := parseField(m.kind, name); ok && f.name != skipped && (f.name != attribute || m.attributes[f.key] != nil) {
			return f, true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.attributes)) { // an attribute that was made of this column
		if a := m.attributes[key]; !a.Archived && a.Label == header && !slices.ContainsFunc(fieldsOf(m.kind), func(name string) bool { return plain(name) == folded }) && m.kind == desk.ImportContacts {
			return field{attribute, key}, true
		}
	}
	if folded == "" {
		return field{}, false
	}
	for _, name := range fieldsOf(m.kind) {
		if plain(name) == folded {
			return field{name: name}, true
		}
	}
	if m.kind != desk.ImportContacts {
		name := synonyms[folded]
		return field{name: name}, slices.Contains(fieldsOf(m.kind), name)
	}
	for _, key := range slices.Sorted(maps.Keys(m.attributes)) {
		if a := m.attributes[key]; !a.Archived && (plain(key) == folded || plain(a.Label) == folded) {
			return field{attribute, key}, true
		}
	}
	name, ok := synonyms[folded]
	return field{name: name}, ok
}

// choose returns the field of a column: the one that was chosen, or else its guess.
func (m *mapper) choose(i int, header string) (field, bool) {
	if i >= len(m.chosen) || m.chosen[i] == "" {
		return m.guess(header)
	}
	return parseField(m.kind, m.chosen[i])
}

// columns returns the field of each column.
func (m *mapper) columns(headers []string) ([]field, error) {
	fields, taken := make([]field, len(headers)), map[field]int{}
	known := false
	for name := range m.given {
		if !slices.Contains(headers, name) {
			return nil, fmt.Errorf("--map names the column %s, and the file has none: its columns are %s", desk.Quote(name), quotedList(headers))
		}
	}
	for i, header := range headers {
		fields[i] = field{name: skipped}
		if i < len(m.chosen) && m.chosen[i] == NewAttribute && m.kind == desk.ImportContacts {
			known = true
			if key, label := newAttribute(header); m.madeBefore(key, label) {
				fields[i] = field{attribute, key}
				taken[fields[i]] = i
			} else {
				m.made = append(m.made, i)
			}
			continue
		}
		f, ok := m.choose(i, header)
		if !ok {
			if strings.TrimSpace(header) != "" {
				m.unknown = append(m.unknown, i)
			}
			continue
		}
		if f.name == skipped {
			continue
		}
		fields[i], known = f, true
		if other, twice := taken[f]; twice && f.name != identityOf {
			return nil, twoOf([]int{other, i}, headers, f.String(), header)
		}
		taken[f] = i
	}
	if m.kind == desk.ImportPeople {
		var persons []int
		for i, f := range fields {
			if slices.Contains(who, f.name) {
				persons = append(persons, i)
			}
		}
		switch len(persons) {
		case 0:
			return nil, &ColumnError{Message: "no column says who the person is, by phone, contact, own id or e-mail"}
		case 1:
		default:
			return nil, &ColumnError{Columns: persons, Message: "these columns all say who the person is"}
		}
	}
	for _, part := range []string{firstName, lastName} {
		whole, isWhole := taken[field{name: "name"}]
		of, isPart := taken[field{name: part}]
		if isWhole && isPart {
			return nil, twoOf([]int{whole, of}, headers, "name", headers[of])
		}
	}
	if !known {
		return nil, &ColumnError{Message: "no column is known", Flag: "say which is which with --map 'COLUMN=FIELD', where FIELD is one of " + strings.Join(fieldsOf(m.kind), ", ") + map[desk.ImportKind]string{desk.ImportContacts: ", identity.KIND, attributes.KEY"}[m.kind]}
	}
	return fields, nil
}

// madeBefore tells whether an attribute was made of a column, by this import or an earlier one.
func (m *mapper) madeBefore(key, label string) bool {
	a := m.attributes[key]
	return a != nil && !a.Archived && a.Label == label
}

// twoOf is the error of two columns that are one field.
func twoOf(columns []int, headers []string, field, out string) error {
	both := pick(headers, columns)
	return &ColumnError{columns, fmt.Sprintf("the columns %s and %s are both the field %s", desk.Quote(both[0]), desk.Quote(both[1]), field), flagFor(headers, out, "leave one out with --map '"+out+"=-'")}
}

// flagFor returns what a flag can do about the column of a header, which must be the only one
// for that.
func flagFor(headers []string, header, flag string) string {
	first := slices.Index(headers, header)
	if slices.Contains(headers[first+1:], header) {
		return "rename one of them in the file"
	}
	return flag
}

func pick(headers []string, columns []int) (list []string) {
	for _, i := range columns {
		list = append(list, headers[i])
	}
	return list
}

func quotedList(list []string) string {
	quoted := make([]string, 0, len(list))
	for _, s := range list[:min(len(list), 20)] {
		quoted = append(quoted, desk.Quote(s))
	}
	return strings.Join(quoted, ", ")
}

// newAttribute returns the key and the label of a new attribute for a column: those that the
// header attributes.KEY of an export names, or else made of the header.
func newAttribute(header string) (key, label string) {
	if name, ok := strings.CutPrefix(header, attribute+"."); ok && (desk.AttributeInput{Key: name}).Check() == nil {
		return name, name
	}
	return attributeKey(header), header
}

// attributeKey returns the key of a new attribute for a column.
func attributeKey(header string) string {
	var b strings.Builder
	gap := false
	for _, r := range desk.Fold(header) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
		} else {
			gap = true
		}
	}
	key := b.String()
	if key == "" || key[0] < 'a' || key[0] > 'z' {
		key = "c_" + key
	}
	return strings.TrimRight(key, "_")
}
