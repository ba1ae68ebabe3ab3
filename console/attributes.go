package console

import (
	"slices"
	"strings"
	"unicode"

	"parley/desk"

	"golang.org/x/text/unicode/norm"
)

// typeWords are the names of attribute types on pages.
var typeWords = map[desk.AttributeType]string{
	desk.TextAttribute:        "Text",
	desk.NumberAttribute:      "Number",
	desk.SelectAttribute:      "One of several options",
	desk.MultiselectAttribute: "Several options",
	desk.DateAttribute:        "Date",
	desk.DatetimeAttribute:    "Date and time",
	desk.BooleanAttribute:     "Yes or no",
	desk.URLAttribute:         "Web address",
}

// An attributeRow is a line of the list of attributes.
type attributeRow struct {
	Key, Label, Description, Type string
	Options                       string // one on each line
	HasOptions                    bool
	Archived                      bool
	First, Last                   bool
	Types                         []choice
	TypeNow                       string
}

type attributesData struct{ Active, Archived []attributeRow }

func attributeRowOf(a *desk.Attribute) attributeRow {
	return attributeRow{Key: a.Key, Label: a.Label, Description: a.Description, Type: typeWords[a.Type], Options: strings.Join(a.Options, "\n"),
		HasOptions: a.Type == desk.SelectAttribute || a.Type == desk.MultiselectAttribute, Archived: a.Archived}
}

func (s *Server) attributes(c *call) error {
	var data attributesData
	for _, a := range c.p.Settings.SortedAttributes() {
		if a.Archived {
			data.Archived = append(data.Archived, attributeRowOf(a))
		} else {
			data.Active = append(data.Active, attributeRowOf(a))
		}
	}
	if n := len(data.Active); n > 0 {
		data.Active[0].First, data.Active[n-1].Last = true, true
	}
	return c.show("attributes", view{Title: "Attributes", Data: data})
}

func newAttributeView() view {
	row := attributeRow{TypeNow: string(desk.TextAttribute)}
	for _, t := range desk.AttributeTypes {
		row.Types = append(row.Types, choice{Value: string(t), Label: typeWords[t]})
	}
	return view{Title: "New attribute", Data: row}
}

func (s *Server) newAttribute(c *call) error { return c.show("attribute-new", newAttributeView()) }

// optionsOf reads options, one on each line.
func optionsOf(text string) desk.Field[[]string] {
	list := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return desk.Field[[]string]{Set: true, Value: list}
}

func set(text string) desk.Field[string] { return desk.Field[string]{Set: true, Value: text} }

func (s *Server) addAttribute(c *call) error {
	in := desk.AttributeInput{Key: c.form.text("key"), Label: set(c.form.text("label")), Description: set(c.form.text("description")), Type: set(c.form.text("type"))}
	if t := desk.AttributeType(in.Type.Value); t == desk.SelectAttribute || t == desk.MultiselectAttribute {
		in.Options = optionsOf(c.form.raw("options"))
	}
	var err error
	if in.Key == "" {
		in.Key = c.freeKey(in.Label.Value)
	} else if c.p.Settings.Attributes[in.Key] != nil {
		err = desk.InvalidAt("/key", "another attribute has this key, perhaps an archived one")
	}
	if err == nil {
		_, _, err = s.app.PutAttribute(c.r.Context(), c.p, in)
	}
	if err != nil {
		return c.again("attribute-new", newAttributeView(), attributeError(err))
	}
	return c.see("/settings/attributes", "added")
}

// attributeError prepares an error for a form: an error of one option becomes an error of
// the field with all options.
func attributeError(err error) error {
	e := *desk.AsError(err)
	if strings.HasPrefix(e.At, "/options") {
		e.At = "/options"
	}
	return &e
}

// freeKey makes an unused key from a label: Favourite colour becomes favourite_colour.
func (c *call) freeKey(label string) string {
	return keyFrom(label, "attribute", func(key string) bool { return c.p.Settings.Attributes[key] != nil })
}

// keyFrom makes a key from a label. usual is the key of a label without letters.
func keyFrom(label, usual string, taken func(key string) bool) string {
	var b strings.Builder
	for _, r := range strings.ToLower(norm.NFD.String(label)) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r): // an accent
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		if b.Len() == 28 {
			break
		}
	}
	key := strings.TrimSuffix(b.String(), "_")
	if key == "" {
		key = usual
	}
	for n, base := 2, key; taken(key); n++ {
		key = base + "_" + count(n)
	}
	return key
}

func (c *call) anAttribute() (*desk.Attribute, error) {
	if a := c.p.Settings.Attributes[c.r.PathValue("key")]; a != nil {
		return a, nil
	}
	return nil, errNotHere
}

func (s *Server) attribute(c *call) error {
	a, err := c.anAttribute()
	if err != nil {
		return err
	}
	return c.show("attribute", view{Title: a.Label, Data: attributeRowOf(a)})
}

func (s *Server) editAttribute(c *call) error {
	a, err := c.anAttribute()
	if err != nil {
		return err
	}
	row := attributeRowOf(a)
	in := desk.AttributeInput{Key: a.Key, Label: set(c.form.text("label")), Description: set(c.form.text("description"))}
	if row.HasOptions {
		in.Options = optionsOf(c.form.raw("options"))
	}
	if _, _, err := s.app.PutAttribute(c.r.Context(), c.p, in); err != nil {
		return c.again("attribute", view{Title: a.Label, Data: row}, attributeError(err))
	}
	return c.see("/settings/attributes", "saved")
}

// moveAttribute moves an attribute up or down by one line of the list.
func (s *Server) moveAttribute(c *call) error {
	a, err := c.anAttribute()
	if err != nil {
		return err
	}
	var order []string
	for _, other := range c.p.Settings.SortedAttributes() {
		if !other.Archived {
			order = append(order, other.Key)
		}
	}
	from := slices.Index(order, a.Key)
	to := from + 1
	if c.form.has("up") {
		to = from - 1
	}
	if from < 0 || to < 0 || to >= len(order) {
		return c.see("/settings/attributes", "")
	}
	order[from], order[to] = order[to], order[from]
	if err := s.app.OrderAttributes(c.r.Context(), c.p, order); err != nil {
		return err
	}
	return c.see("/settings/attributes#a-"+a.Key, "")
}

func archival(a *desk.Attribute) confirmation {
	path := "/settings/attributes/" + a.Key
	return confirmation{Heading: "Archive " + a.Label + "?", Action: path + "/archive", Button: "Archive", Back: path,
		Text: []string{"The values that contacts have stay, but nobody sees or changes them here. You can restore it at any time."}}
}

func (s *Server) askArchival(c *call) error {
	a, err := c.anAttribute()
	if err != nil {
		return err
	}
	return c.confirm(archival(a))
}

func (s *Server) archiveAttribute(c *call) error { return s.archive(c, true, "attribute-archived") }

func (s *Server) restoreAttribute(c *call) error { return s.archive(c, false, "restored") }

func (s *Server) archive(c *call, archived bool, done string) error {
	a, err := c.anAttribute()
	if err == nil {
		_, err = s.app.ArchiveAttribute(c.r.Context(), c.p, a.Key, archived)
	}
	if err != nil {
		return err
	}
	return c.see("/settings/attributes", done)
}
