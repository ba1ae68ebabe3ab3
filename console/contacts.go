package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"parley/app/search"
	"parley/desk"
)

// A directory is the list of contacts.
type directory struct {
	Sought      string // the search text; "" for the list
	Owner       *field
	Attribute   *field     // nil: no attribute has values to choose from
	Hidden      [2][]field // what each of the two forms keeps of the other
	Searched    bool       // by a text or an attribute
	Count       int        // what was found, if one page has it all
	Behind      string     // the changes that the search does not know yet; "": none
	Rows        []contactRow
	First, Next string
	MayWrite    bool
	MayImport   bool
	Empty       nothing
}

// A contactRow is a contact in a list.
type contactRow struct {
	ID                         desk.ID
	Href, Name, Address, Owner string
	Changed                    moment
}

func (s *Server) contacts(c *call) error {
	var owner desk.ID
	if m := c.p.Settings.ResolveMember(desk.ReferTo(c.query("owner"))); m != nil {
		owner = m.ID
	}
	d := directory{Sought: strings.TrimSpace(c.query("q")), MayWrite: c.may(desk.ContactsWrite), MayImport: c.may(desk.Administer)}
	attribute := c.query("attribute")
	d.Owner = c.form.Field("owner", "Owner", "", ownerValue(owner)).Of(owners(c.p.Settings, "Anyone"))
	if choices := attributeChoices(c.p.Settings); len(choices) > 1 {
		d.Attribute = c.form.Field("attribute", "Attribute", "", attribute).Of(choices)
	}
	q := search.Query{Sought: d.Sought, Limit: pageRows}
	q.Owner = owner
	kept := url.Values{}
	for name, value := range map[string]string{"q": d.Sought, "owner": ownerValue(owner), "attribute": attribute} {
		if value == "" {
			continue
		}
		kept.Set(name, value)
		form := 0
		if name == "q" {
			form = 1
		}
		d.Hidden[form] = append(d.Hidden[form], field{Name: name, Value: value})
	}
	slices.SortFunc(d.Hidden[0], func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	var list []*desk.Contact
	var err error
	if d.Searched = d.Sought != "" || attribute != ""; d.Searched {
		list, err = c.seek(&d, q, attribute, kept)
	} else {
		list, err = c.newestContacts(&d, owner)
	}
	if err != nil {
		return err
	}
	for _, v := range list {
		row := contactRow{ID: v.ID, Href: "/contacts/" + v.ID.String(), Name: nameOf(v), Address: addressOf(v), Changed: c.when(v.UpdatedAt)}
		if v.Owner != nil {
			row.Owner = c.memberName(v.Owner.ID)
		}
		d.Rows = append(d.Rows, row)
	}
	return c.show("contacts", view{Title: "Contacts", Data: d})
}

// addressOf returns a number of the contact, or else the e-mail.
func addressOf(v *desk.Contact) string {
	if number := phone(v.Address()); number != "" {
		return number
	}
	return v.Email
}

// seekPages is how many pages of a search are read until one has a contact.
const seekPages = 4

// seek reads a page of what a text or an attribute finds, and the links to other pages.
func (c *call) seek(d *directory, q search.Query, attribute string, kept url.Values) (list []*desk.Contact, err error) {
	d.Empty = nothing{"Nobody fits", "All words are needed: beginnings of names, e-mails, own ids, or at least four digits of a number.", "/contacts", "See all contacts"}
	if d.Sought != "" {
		if q.Text, err = desk.ParseSearch(d.Sought); err != nil {
			d.Empty.Title, d.Empty.Text = "That is too much to search for", "Search for fewer words."
			return nil, nil
		}
	}
	if attribute != "" {
		if q.Attribute, q.Value, err = c.p.Settings.ParseAttributeFilter(attribute); err != nil {
			d.Empty.Title, d.Empty.Text = "No such attribute", "It was archived, or can't be searched."
			return nil, nil
		}
	}
	var page search.Page
	after, err := c.fromCursor(func(after string) (err error) {
		q.Cursor = after
		page, err = c.found(q)
		return err
	})
	if err != nil {
		return nil, err
	}
	if after != "" {
		d.First = "/contacts?" + kept.Encode()
	}
	if page.Next != "" {
		kept.Set("after", page.Next)
		d.Next = "/contacts?" + kept.Encode()
		d.Empty = nothing{Title: "Nobody so far", Text: "There is more to look through."}
	}
	if d.First == "" && page.Next == "" {
		d.Count = len(page.Contacts)
	}
	if page.Behind > 0 {
		d.Behind = several(page.Behind, "change")
	}
	return page.Contacts, nil
}

// found reads pages of a search until one has a contact, but not too many.
func (c *call) found(q search.Query) (page search.Page, err error) {
	for range seekPages {
		page, err = c.s.app.Search.Find(c.r.Context(), c.p, q)
		if q.Cursor = page.Next; err != nil || len(page.Contacts) > 0 || page.Next == "" {
			break
		}
	}
	return page, err
}

// mostAttributeChoices is how many values of attributes the list of contacts offers.
const mostAttributeChoices = 200

// attributeChoices returns the values of attributes by which contacts can be searched, for
// whole attributes, as many as fit.
func attributeChoices(s *desk.Settings) []choice {
	list := []choice{{Label: "Any"}}
	for _, a := range s.SortedAttributes() {
		values := a.Options
		if a.Type == desk.BooleanAttribute {
			values = []string{"true", "false"}
		}
		if _, _, err := s.ParseAttributeFilter(a.Key + ":true"); err != nil || len(list)+len(values) > mostAttributeChoices {
			continue
		}
		for _, value := range values {
			label := a.Label + ": " + value
			if a.Type == desk.BooleanAttribute {
				label = a.Label + ": " + map[string]string{"true": "yes", "false": "no"}[value]
			}
			list = append(list, choice{Value: a.Key + ":" + value, Label: label})
		}
	}
	return list
}

// newestContacts reads a page of the list, and the links to other pages.
func (c *call) newestContacts(d *directory, owner desk.ID) ([]*desk.Contact, error) {
	query := ""
	d.Empty = nothing{Title: "No contacts yet", Text: "People who write, to whom the team sends, or whom your systems store, will be here."}
	if d.MayWrite {
		d.Empty.Link, d.Empty.Action = "/contacts/new", "New contact"
	}
	if !owner.IsZero() {
		query = "?owner=" + url.QueryEscape(owner.String())
		d.Empty = nothing{"No contacts here", "This member owns no contact.", "/contacts", "See everybody's"}
	}
	var list []*desk.Contact
	next := ""
	after, err := c.fromCursor(func(after string) (err error) {
		list, next, err = c.s.app.NewestContacts(c.r.Context(), c.p, owner, after, pageRows)
		return err
	})
	if after != "" {
		d.First = "/contacts" + query
	}
	if next != "" {
		d.Next = "/contacts" + with(query, "after", next)
	}
	return list, err
}

// owners returns the choices for the owner of a contact. nobody is the label of the empty
// choice.
func owners(s *desk.Settings, nobody string) []choice {
	list := []choice{{Label: nobody}}
	for _, m := range s.Members() {
		list = append(list, choice{Value: m.ID.String(), Label: m.Name})
	}
	return list
}

// ownerValue returns the value of an owner's choice; "" for no owner.
func ownerValue(id desk.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
