package console

import (
	"net/url"
	"strings"

	"parley/desk"
)

// A directory is the list of contacts.
type directory struct {
	Find        *field
	Owner       *field
	Sought      string // the search text; "" for the list
	Rows        []contactRow
	First, Next string
	MayWrite    bool
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
	d := directory{Sought: strings.TrimSpace(c.query("find")), MayWrite: c.may(desk.ContactsWrite)}
	d.Find = c.form.Field("find", "Find", "The whole phone number, e-mail or own id", d.Sought).As("search")
	d.Owner = c.form.Field("owner", "Owner", "", ownerValue(owner)).Of(owners(c.p.Settings, "Anyone"))
	var list []*desk.Contact
	var err error
	if d.Sought != "" {
		list, err = c.s.app.FindContacts(c.r.Context(), c.p, d.Sought)
		d.Empty = nothing{"Nobody has this", "Only a whole phone number, e-mail or own id finds its contact, and a number of another country only with its country code. Names are not searched.", "/contacts", "See all contacts"}
	} else {
		list, err = c.newestContacts(&d, owner)
	}
	if err != nil {
		return err
	}
	for _, v := range list {
		row := contactRow{ID: v.ID, Href: "/contacts/" + v.ID.String(), Name: nameOf(v), Address: phone(v.Address()), Changed: c.when(v.UpdatedAt)}
		if row.Address == "" {
			row.Address = v.Email
		}
		if v.Owner != nil {
			row.Owner = c.memberName(v.Owner.ID)
		}
		d.Rows = append(d.Rows, row)
	}
	return c.show("contacts", view{Title: "Contacts", Data: d})
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
	after := c.query("after")
	list, next, err := c.s.app.NewestContacts(c.r.Context(), c.p, owner, after, pageRows)
	if desk.IsType(err, desk.InvalidRequest) { // the cursor of another list
		after = ""
		list, next, err = c.s.app.NewestContacts(c.r.Context(), c.p, owner, "", pageRows)
	}
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
