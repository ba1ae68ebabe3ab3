package console

import (
	"net/url"
	"slices"
	"strings"

	"parley/desk"
)

// linesBefore is the number of messages that are shown from the earlier conversation.
// lineText is the number of characters that are shown of each of them.
const (
	linesBefore = 3
	lineText    = 160
)

// editable are the fields that can be changed beside a thread, in addition to the
// attributes.
var editable = []string{"name", "note"}

func (c *call) readPerson(t *thread, contact *desk.Contact, conv *desk.Conversation) error {
	p := &t.Person
	p.Open, p.Shut, p.Shown = with(t.Path, "person", "open"), t.Path, c.query("person") == "open"
	if contact == nil {
		return nil
	}
	p.Address = phone(contact.Address())
	add := func(f fact) {
		if f.Value != "" {
			p.Facts = append(p.Facts, f)
		}
	}
	add(fact{Label: "Phone", Value: phone(contact.Phone), Tel: contact.Phone})
	add(fact{Label: "E-mail", Value: contact.Email, Mail: url.PathEscape(contact.Email)})
	add(fact{Label: "Own id", Value: contact.ExternalID})
	if contact.Owner != nil {
		add(fact{Label: "Owner", Value: contact.Owner.Name})
	}
	for _, f := range c.attributeFacts(contact) {
		add(f)
	}
	add(fact{Label: "Note", Value: contact.Note, Name: "note"})
	if c.may(desk.ContactsWrite) {
		c.offerEdits(t, contact)
	}
	list, next, err := c.s.app.ContactConversations(c.r.Context(), c.p, contact.ID, "", "", otherConversations)
	if err != nil {
		return err
	}
	p.Older = next != ""
	for _, v := range list {
		if v.ID == conv.ID {
			continue
		}
		p.Others = append(p.Others, conversationLink{
			Href: "/inbox/" + v.ID.String(), Label: capital(standing(v, c.memberName(v.AssignedMember))), At: c.when(v.LastMessageAt),
		})
		if t.Before == nil && v.LastMessageAt <= conv.CreatedAt {
			t.Before = &talkBefore{Href: p.Others[len(p.Others)-1].Href, Label: p.Others[len(p.Others)-1].Label, At: c.when(v.LastMessageAt)}
			if err := c.readBefore(t, v.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// readBefore reads the last messages of the person's earlier conversation.
func (c *call) readBefore(t *thread, id desk.ID) error {
	page, _, err := c.s.app.Messages(c.r.Context(), c.p, id, "", linesBefore)
	for _, m := range slices.Backward(page) {
		t.Before.Lines = append(t.Before.Lines, lineBefore{c.authorOf(t, m), beginning(glimpse(m.Text), lineText)})
	}
	return err
}

// offerEdits adds the links for changing a field, and the form for the field that the
// URL names.
func (c *call) offerEdits(t *thread, contact *desk.Contact) {
	p, edit := &t.Person, c.query("edit")
	link := func(name string) string { return with(p.Open, "edit", name) }
	p.Rename = link("name")
	held := map[string]bool{}
	for i := range p.Facts {
		if f := &p.Facts[i]; f.Name != "" {
			f.Edit, held[f.Name] = link(f.Name), true
		}
	}
	for _, f := range c.contactFields(contact) {
		if !slices.Contains(editable, f.Name) && !strings.HasPrefix(f.Name, attributeName("")) {
			continue
		}
		if f.Name == edit {
			p.Edit = f
		}
		if !held[f.Name] && f.Name != "name" {
			if edit == "more" {
				p.Facts = append(p.Facts, fact{Label: f.Label, Name: f.Name, Edit: link(f.Name)})
			} else {
				p.More = link("more")
			}
		}
	}
}

// editPerson changes one field of the person of a conversation. It does so like the
// contact's page: if another member has changed the field meanwhile, it asks which value
// to keep.
func (s *Server) editPerson(c *call) error {
	ctx, id, name := c.r.Context(), c.id("id"), c.query("edit")
	conv, err := s.app.Conversation(ctx, c.p, id)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		contact, err := s.app.Contact(ctx, c.p, conv.ContactID)
		if err != nil {
			return err
		}
		form := c.contactForm(contact, "")
		form.ID = contact.ID
		form.keep(name)
		op := &desk.Op{Kind: desk.OpPatch, ByID: true, Target: contact.ID, Version: contact.Version}
		problem := error(desk.Errorf(desk.InvalidRequest, "this could not be saved"))
		if c.read(form, contact, &op.Write) {
			_, problem = s.app.Write(ctx, c.p, op)
			if problem == nil {
				return c.see(with("/inbox/"+id.String()+c.listQuery(), "person", "open"), "saved")
			}
			if desk.IsType(problem, desk.Changed) && try < saveTries {
				c.form.errors = nil
				continue
			}
			if details, ok := desk.AsError(problem).Details.([]desk.AttributeProblem); ok {
				for _, d := range details {
					c.form.wrong(attributeName(d.Key), sentence(d.Message))
				}
				form.note(c.form)
			}
		} else if f := form.fields(); len(f) == 1 && f[0].Both != nil {
			problem = desk.Errorf(desk.Changed, "somebody has changed this meanwhile, so nothing was saved")
		}
		if kind := desk.AsError(problem).Type; kind == desk.NotFound || kind == desk.Unauthorized || kind == desk.Forbidden || kind == desk.Internal {
			return problem
		}
		t, err := c.readThread(id)
		if err != nil {
			return err
		}
		if t.Person.Shown = true; len(form.fields()) == 1 {
			t.Person.Edit = form.fields()[0]
		}
		return c.again("conversation", t.view(), problem)
	}
}

// keep removes the form for a further address and all fields except the named one. It
// removes that one as well if it can't be changed beside a thread.
func (p *contactPage) keep(name string) {
	other := func(f *contactField) bool { return f.Name != name }
	p.Main, p.Own = slices.DeleteFunc(p.Main, func(f *contactField) bool { return other(f) || !slices.Contains(editable, f.Name) }), slices.DeleteFunc(p.Own, other)
}
