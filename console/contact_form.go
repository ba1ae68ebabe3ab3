package console

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/desk"
)

// A contactField is a field of a contact in a form. It converts the stored value to text,
// and the typed text to a value. In addition to the typed text, a form sends the text
// that the page showed, so that only changed values are stored.
type contactField struct {
	*field
	Kind  string // the template: input, area, select or boxes
	Was   string // the text that the page showed
	Zone  string // the time zone of a time; "": it is no time
	Boxes []choice
	Both  *bothChanged

	of    func(*desk.Contact) string
	write func(w *desk.ContactWrite, typed string) error
}

// A bothChanged is the state of a field that another member has changed since the page
// was made.
type bothChanged struct {
	Now, Shown string // the value that is stored now: as text of the form, and as people read it
	Keep, Mine bool   // the member's choice: keep the stored value, or store the typed one
}

// contactFields lists the fields of a contact with their values. For nil, it lists the
// fields of a new contact.
func (c *call) contactFields(contact *desk.Contact) []*contactField {
	country := c.p.Settings.Country
	plain := func(kind, typed string) (desk.Identity, error) { return desk.ParseIdentity(kind, typed, country) }
	list := []*contactField{
		{field: c.form.Field("name", "Name", "", ""), of: func(v *desk.Contact) string { return v.Name }, write: func(w *desk.ContactWrite, typed string) (err error) {
			w.Name, err = parsed(typed, desk.ParseName)
			return err
		}},
		{field: c.form.Field("phone", "Phone", "", "").As("tel"), of: func(v *desk.Contact) string { return phone(v.Phone) }, write: func(w *desk.ContactWrite, typed string) (err error) {
			w.Phone, err = handle(w, typed, desk.KindPhone, plain)
			return err
		}},
		{field: c.form.Field("email", "E-mail", "", ""), of: func(v *desk.Contact) string { return v.Email }, write: func(w *desk.ContactWrite, typed string) (err error) {
			if w.Email, err = parsed(typed, desk.ParseEmail); err == nil && w.Email.Has() {
				w.Sent = desk.AddIdentity(w.Sent, desk.EmailIdentity(w.Email.Value))
			}
			return err
		}},
		{field: c.form.Field("external_id", "Own id", "What your other systems call this person", ""), of: func(v *desk.Contact) string { return v.ExternalID }, write: func(w *desk.ContactWrite, typed string) (err error) {
			w.ExternalID, err = handle(w, typed, desk.KindExternalID, plain)
			return err
		}},
		{field: c.form.Field("owner", "Owner", "", ""), Kind: "select", of: func(v *desk.Contact) string {
			if v.Owner == nil {
				return ""
			}
			return v.Owner.ID.String()
		}, write: func(w *desk.ContactWrite, typed string) error {
			w.Owner = desk.Field[desk.Reference]{Set: true, Null: typed == "", Value: desk.ReferTo(typed)}
			return nil
		}},
		{field: c.form.Field("note", "Note", "", ""), Kind: "area", of: func(v *desk.Contact) string { return v.Note }, write: func(w *desk.ContactWrite, typed string) (err error) {
			w.Note, err = parsed(typed, desk.ParseNote)
			return err
		}},
	}
	room := roomForOptions
	for _, a := range c.p.Settings.SortedAttributes() {
		if !a.Archived {
			list = append(list, c.attributeField(a, &room))
		}
	}
	for _, f := range list {
		f.fill(c, contact)
	}
	return list
}

// fill sets the text of the field: the typed text, or the contact's value.
func (f *contactField) fill(c *call, contact *desk.Contact) {
	value := ""
	if contact != nil {
		value = f.of(contact)
	}
	f.Was = value
	if c.form.values != nil {
		f.Was = c.form.was(f.Name)
		f.Value = c.form.typed(f.Name)
	} else {
		f.Value = value
	}
	if f.Kind == "" {
		f.Kind = "input"
		if strings.Contains(f.Value, "\n") || len(f.Value) > 100 {
			f.Kind = "area"
		}
	}
	switch f.Kind {
	case "area":
		f.Rows = 2
	case "select":
		if f.Name == "owner" {
			f.Choices = owners(c.p.Settings, "Nobody (the shared pool)")
		}
		if !slices.ContainsFunc(f.Choices, func(o choice) bool { return o.Value == f.Value }) { // the value is an option or a member that no longer exists
			f.Choices = append(f.Choices, choice{Value: f.Value, Label: f.Value})
		}
		f.Of(f.Choices)
	case "boxes":
		held := strings.Split(f.Value, "\n")
		held = held[:min(len(held), desk.MaxOptions)] // a longer list would be refused
		for _, v := range held {
			if v != "" && !slices.ContainsFunc(f.Boxes, func(o choice) bool { return o.Value == v }) {
				f.Boxes = append(f.Boxes, choice{Value: v, Label: v})
			}
		}
		for i := range f.Boxes {
			f.Boxes[i].Selected = slices.Contains(held, f.Boxes[i].Value)
		}
	}
}

// was returns the text of a field as the page showed it.
func (f *form) was(name string) string { return lines(f.values["was."+name]) }

// typed returns the text that was typed in a field. If the field has several values, each
// is on its own line.
func (f *form) typed(name string) string { return lines(f.values[name]) }

// lines normalizes values from browsers, so that they can be compared.
func lines(values []string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.Join(values, "\n"), "\r\n", "\n"))
}

// parsed converts a typed text to the field of a write. An empty text clears the field.
func parsed(typed string, parse func(string) (string, error)) (f desk.Field[string], err error) {
	f.Set = true
	if f.Null = typed == ""; !f.Null {
		f.Value, err = parse(typed)
	}
	return f, err
}

// handle converts a typed identity to the field of a write, and adds the identity to
// w.Sent.
func handle(w *desk.ContactWrite, typed, kind string, parse func(kind, typed string) (desk.Identity, error)) (f desk.Field[string], err error) {
	f.Set = true
	if f.Null = typed == ""; f.Null {
		return f, nil
	}
	i, err := parse(kind, typed)
	if err == nil {
		f.Value = i.Value
		w.Sent = desk.AddIdentity(w.Sent, i)
	}
	return f, err
}

// shortDatetime and longDatetime are the formats in which browsers send a time.
const (
	shortDatetime = "2006-01-02T15:04"
	longDatetime  = "2006-01-02T15:04:05"
)

// roomForOptions is how many bytes of options the form of a contact offers, of all attributes
// together. Those for which it has no room are typed.
const roomForOptions = 256 << 10

// offers tells whether there is room for the attribute's options, and takes it.
func offers(a *desk.Attribute, room *int) bool {
	n := 0
	for _, o := range a.Options {
		n += len(o) + 64 // and its tags
	}
	if n > *room {
		return false
	}
	*room -= n
	return true
}

// attributeField is the field of an attribute. room is what is left of roomForOptions.
func (c *call) attributeField(a *desk.Attribute, room *int) *contactField {
	f := &contactField{field: c.form.Field(attributeName(a.Key), a.Label, a.Description, "")}
	read := func(typed string) (desk.Value, error) { return desk.Value{Kind: desk.StringValue, Text: typed}, nil }
	switch a.Type {
	case desk.SelectAttribute:
		if !offers(a, room) {
			f.Hint = strings.TrimSpace(f.Hint + " Type one of its options.")
			break
		}
		f.Kind, f.Choices = "select", []choice{{Label: "–"}}
		for _, o := range a.Options {
			f.Choices = append(f.Choices, choice{Value: o, Label: o})
		}
	case desk.BooleanAttribute:
		f.Kind, f.Choices = "select", []choice{{Label: "–"}, {Value: "true", Label: "Yes"}, {Value: "false", Label: "No"}}
	case desk.MultiselectAttribute:
		if offers(a, room) {
			f.Kind = "boxes"
			for _, o := range a.Options {
				f.Boxes = append(f.Boxes, choice{Value: o, Label: o})
			}
		} else {
			f.Kind = "area"
			f.Hint = strings.TrimSpace(f.Hint + " Type those of its options that fit, each on its own line.")
		}
		read = func(typed string) (desk.Value, error) {
			return desk.Value{Kind: desk.ListValue, Text: strings.ReplaceAll(typed, "\n", desk.ListEnd) + desk.ListEnd}, nil
		}
	case desk.DateAttribute:
		f.As("date")
	case desk.URLAttribute:
		f.As("url")
	case desk.DatetimeAttribute:
		f.As("datetime-local")
		f.Zone = c.zone.String()
		f.Hint = strings.TrimSpace(f.Hint + " In the zone " + f.Zone + ".")
		read = func(typed string) (desk.Value, error) {
			for _, layout := range []string{shortDatetime, longDatetime} {
				if at, err := time.ParseInLocation(layout, typed, c.zone); err == nil {
					return desk.Value{Kind: desk.StringValue, Text: at.UTC().Format(time.RFC3339)}, nil
				}
			}
			return desk.Value{}, errors.New("this is no time")
		}
	}
	f.of = func(v *desk.Contact) string { return c.attributeInput(a, attributesOf(v)[a.Key]) }
	f.write = func(w *desk.ContactWrite, typed string) (err error) {
		v := desk.Value{}
		if typed != "" {
			if v, err = read(typed); err != nil {
				return err
			}
		}
		w.Attributes.Set = true
		w.Attributes.Value = append(w.Attributes.Value, desk.AttributeWrite{Key: a.Key, Value: v})
		return nil
	}
	return f
}

// attributeInput returns a stored value as text for the form. For nil, it returns "".
func (c *call) attributeInput(a *desk.Attribute, value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "true"
		}
		return "false"
	case []any:
		words := make([]string, len(v))
		for i, item := range v {
			words[i], _ = item.(string)
		}
		// Sort the options as the attribute has them. A browser sends ticked boxes in the
		// same order.
		at := func(word string) int {
			if i := slices.Index(a.Options, word); i >= 0 {
				return i
			}
			return len(a.Options)
		}
		slices.SortStableFunc(words, func(x, y string) int { return at(x) - at(y) })
		return strings.Join(words, "\n")
	case json.Number:
		return v.String()
	case string:
		if a.Type == desk.DatetimeAttribute {
			at, err := time.Parse(time.RFC3339, v)
			switch {
			case err != nil:
			case at.Second() == 0:
				return at.In(c.zone).Format(shortDatetime)
			default:
				return at.In(c.zone).Format(longDatetime)
			}
		}
		return lines([]string{v})
	}
	return ""
}

// readable returns a field's text as people read it.
func (f *contactField) readable(text string) string {
	for _, o := range f.Choices {
		if o.Value == text {
			return o.Label
		}
	}
	if text == "" {
		return "empty"
	}
	return strings.ReplaceAll(text, "\n", ", ")
}
