package desk

import (
	"slices"
	"strings"
)

// Fillable tells whether the template can be sent, perhaps only by a send that supplies its
// needs.
func (t *Template) Fillable() bool { return t.Needs != nil && t.Status == approved }

// TakesFile tells whether each send supplies a file for the title.
func (t *Template) TakesFile() bool { return len(t.Needs) > 0 && t.Needs[0].IsFile() }

// mostNamed is how many needs the method NeededAddresses names.
const mostNamed = 5

// NeededAddresses names the first needs, for people.
func (t *Template) NeededAddresses() string {
	var list []string
	for _, n := range t.Needs[:min(len(t.Needs), mostNamed)] {
		list = append(list, n.Address)
	}
	return strings.Join(list, " and ")
}

// ReasonsAgainst returns the reasons for which a send with these values is refused. A send
// that supplies a file is not refused because of the title, and one that supplies the value
// of a link is not refused because of the buttons. A list of values supplies neither.
func (t *Template) ReasonsAgainst(in TemplateValues) []string {
	if t.Needs == nil {
		return t.Reasons
	}
	return slices.DeleteFunc(slices.Clone(t.Reasons), func(reason string) bool {
		return slices.ContainsFunc(in.Named, func(n NamedValue) bool {
			return reason == ReasonHeaderMedia && n.Address == MediaAddress || reason == ReasonButtonVariable && isLinkAddress(n.Address)
		})
	})
}

func isLinkAddress(address string) bool {
	place, isLink := strings.CutPrefix(address, linkPrefix)
	return isLink && place != "" && strings.Trim(place, "0123456789") == ""
}

// Supplied returns the values of the needs, in their order. in is an input that the method
// Values has accepted.
func (t *Template) Supplied(in TemplateValues) []string {
	given, values := map[string]string{}, make([]string, len(t.Needs))
	for _, n := range in.Named {
		given[n.Address] = n.Value
	}
	for i, need := range t.Needs {
		values[i] = given[need.Address]
	}
	return values
}

// A Link is a button of a sent template that opens a link.
type Link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// Links returns the filled links of the buttons. supplied is a result of the method
// Supplied.
func (t *Template) Links(supplied []string) (list []Link) {
	for i, need := range t.Needs {
		if !need.IsFile() {
			list = append(list, Link{Title: need.Title, URL: need.Begin() + supplied[i]})
		}
	}
	return list
}

// Unsendable says why a ready file can't be in the template's title, or returns nil if it
// can.
func (n Need) Unsendable(m *Media) *UnsendableMedia {
	if !slices.Contains(headerTypes[n.Kind], m.MIME) {
		return &UnsendableMedia{Reason: "type", MIME: m.MIME, Size: m.Size}
	}
	return m.Unsendable(false)
}
