package console

import (
	"slices"
	"strings"

	"parley/desk"
)

// A contactPage is the page of a contact, or the form for a new one.
type contactPage struct {
	ID        desk.ID // zero for a new one
	Action    string
	Name      string
	Main      []*contactField // the fields that every contact has
	Own       []*contactField // the workspace's attributes
	Archived  []fact
	Also      []handleRow
	Add       [2]*field // the kind and the value of a further address
	Holders   []holderRow
	Moved     string // the address that was moved although the rest was refused
	Talks     talkList
	Timeline  timeline
	Merges    []mergedRow // that can be undone
	Since     moment      // since when the person has opted out
	Known     moment      // when the contact was created
	Changed   moment
	MayWrite  bool
	MaySend   bool
	MayDelete bool
	MayExport bool
	MayMerge  bool
}

// A handleRow is a further identity.
type handleRow struct{ Kind, Value, Label, Shown string }

// A holderRow is a contact that has an address from the form already.
type holderRow struct {
	Href, Name string
	What       string // the address
	Field      string // the field in which the address was typed
	Merge      string // the page that merges them; "": the member may not, or the form is of a new contact
	Move       string // the value of the buttons that ask about a move, and do it; "" as for Merge
	Asked      bool   // the page asks whether to move the address

	holder   desk.ID
	identity desk.Identity
}

// kindLabels are the words for the kinds of identities that parley knows.
var kindLabels = map[string]string{
	desk.KindPhone:        "Phone",
	desk.KindEmail:        "E-mail",
	desk.KindExternalID:   "Own id",
	desk.KindWhatsApp:     "WhatsApp number",
	desk.KindWhatsAppUser: "WhatsApp user",
}

func kindLabel(kind string) string {
	if label := kindLabels[kind]; label != "" {
		return label
	}
	return capital(strings.ReplaceAll(kind, "_", " "))
}

// identityText returns an identity's value as people read it.
func identityText(i desk.Identity) string {
	if i.Kind == desk.KindPhone || i.Kind == desk.KindWhatsApp {
		return phone(i.Value)
	}
	return i.Value
}

func (s *Server) contact(c *call) error {
	contact, err := s.app.Contact(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	page, err := c.contactPage(contact)
	if err != nil {
		return err
	}
	return c.show("contact", view{Title: page.Name, Data: page})
}

func (c *call) contactPage(contact *desk.Contact) (*contactPage, error) {
	p := c.contactForm(contact, "/contacts/"+contact.ID.String())
	p.ID, p.Name, p.Known, p.Changed = contact.ID, nameOf(contact), c.when(contact.CreatedAt), c.when(contact.UpdatedAt)
	p.MaySend, p.MayDelete = c.may(desk.MessagesSend), c.may(desk.ContactsDelete)
	p.MayExport, p.MayMerge = c.may(desk.Administer), c.may(desk.ContactsMerge)
	values := attributesOf(contact)
	for _, a := range c.p.Settings.SortedAttributes() {
		if v, held := values[a.Key]; held && a.Archived {
			p.Archived = append(p.Archived, fact{Label: a.Label, Value: c.attributeText(a, v)})
		}
	}
	for _, i := range contact.Further {
		p.Also = append(p.Also, handleRow{i.Kind, i.Value, kindLabel(i.Kind), identityText(i)})
	}
	since, err := c.s.app.OptedOut(c.r.Context(), c.p, contact)
	if err != nil {
		return nil, err
	}
	p.Since = c.when(since)
	if p.Talks, err = c.talks(contact.ID); err != nil {
		return nil, err
	}
	if p.Merges, err = c.mergesOf(contact.ID); err != nil {
		return nil, err
	}
	p.Timeline, err = c.timeline(contact.ID)
	return p, err
}

// A talkList is a part of the conversations of a contact, newest first.
type talkList struct {
	Rows        []conversationLink
	First, Next string
}

// talks returns the conversations of a contact after the place that the page's address names. The
// parameter after belongs to the changes.
func (c *call) talks(contact desk.ID) (t talkList, err error) {
	page, after := "/contacts/"+contact.String(), c.query("talks")
	list, next, err := c.s.app.ContactConversations(c.r.Context(), c.p, contact, "", after, otherConversations)
	if after != "" && desk.IsType(err, desk.InvalidRequest) { // it is the place of another list
		after = ""
		list, next, err = c.s.app.ContactConversations(c.r.Context(), c.p, contact, "", "", otherConversations)
	}
	if err != nil {
		return t, err
	}
	for _, v := range list {
		label := capital(standing(v, c.memberName(v.AssignedMember)))
		if channel := c.p.Settings.Channel(v.ChannelID); channel != nil {
			label = channelName(c.p.Settings, channel, false) + ", " + standing(v, c.memberName(v.AssignedMember))
		}
		t.Rows = append(t.Rows, conversationLink{Href: "/inbox/" + v.ID.String(), Label: label, At: c.when(v.LastMessageAt)})
	}
	if after != "" {
		t.First = page
	}
	if next != "" {
		t.Next = page + with("", "talks", next)
	}
	return t, nil
}

// contactForm returns the form of a contact. For nil, it returns the form of a new
// contact.
func (c *call) contactForm(contact *desk.Contact, action string) *contactPage {
	p := &contactPage{Action: action, MayWrite: c.may(desk.ContactsWrite)}
	for _, f := range c.contactFields(contact) {
		if strings.Contains(f.Name, ".") {
			p.Own = append(p.Own, f)
		} else {
			p.Main = append(p.Main, f)
		}
	}
	p.Add = [2]*field{
		c.form.Field("add_kind", "Kind", "", desk.KindPhone).Of([]choice{
			{Value: desk.KindPhone, Label: "Phone"}, {Value: desk.KindEmail, Label: "E-mail"}, {Value: desk.KindWhatsApp, Label: "WhatsApp number"}, {Value: desk.KindExternalID, Label: "Own id"},
		}),
		c.form.Field("add_value", "Another address", "", ""),
	}
	return p
}

func (p *contactPage) fields() []*contactField { return slices.Concat(p.Main, p.Own) }

// read puts the typed values into w. For a stored contact, it takes only the values that
// differ from the values that the page showed. It records an error for each value that
// can't be read, and for each field that another member has changed as well. It returns
// true if there is no such error.
func (c *call) read(p *contactPage, contact *desk.Contact, w *desk.ContactWrite) bool {
	good, leave := true, c.form.text("leave")
	for _, f := range p.fields() {
		if f.Value == f.Was || f.Name == leave {
			continue
		}
		if contact != nil {
			now := f.of(contact)
			if now == f.Value {
				continue // both have stored the same value
			}
			if now != f.Was {
				both := &bothChanged{Now: now, Shown: f.readable(now)}
				if c.form.typed("now."+f.Name) == now {
					both.Keep, both.Mine = c.form.text("choose."+f.Name) == "keep", c.form.text("choose."+f.Name) == "mine"
				}
				f.Both = both
				if both.Keep {
					continue
				}
				if !both.Mine {
					good = false
					c.form.wrong(f.Name, "Somebody has changed this meanwhile. Choose which to keep.")
				}
			}
		}
		if err := f.write(w, f.Value); err != nil {
			good = false
			c.form.wrong(f.Name, sentence(err.Error()))
		}
	}
	if value := c.form.text("add_value"); value != "" && leave != "add_value" {
		i, err := desk.ParseIdentity(c.form.text("add_kind"), value, c.p.Settings.Country)
		if err != nil {
			good = false
			c.form.wrong("add_value", sentence(err.Error()))
		} else {
			w.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{i}}
			w.Sent = desk.AddIdentity(w.Sent, i)
		}
	}
	p.note(c.form)
	return good
}

// note gives each field of the page its error.
func (p *contactPage) note(f *form) {
	for _, field := range p.fields() {
		field.Error = f.errors[field.Name]
	}
	p.Add[1].Error = f.errors["add_value"]
}

// saveTries is the number of attempts to save a form. An attempt fails if another member
// changes the contact at the same moment. Each attempt compares the form with the contact
// again.
const saveTries = 5

func (s *Server) saveContact(c *call) error {
	ctx, id, moved := c.r.Context(), c.id("id"), ""
	for try := 1; ; try++ {
		contact, err := s.app.Contact(ctx, c.p, id)
		if err != nil {
			return err
		}
		page, err := c.contactPage(contact)
		if err != nil {
			return err
		}
		page.Moved = moved
		op := &desk.Op{Kind: desk.OpPatch, ByID: true, Target: id, Version: contact.Version}
		if !c.read(page, contact, &op.Write) {
			problem := desk.Errorf(desk.InvalidRequest, "not everything could be saved, so nothing was")
			if slices.ContainsFunc(page.fields(), func(f *contactField) bool { return f.Both != nil }) {
				problem = desk.Errorf(desk.Changed, "somebody has changed this contact meanwhile, so nothing was saved")
			}
			return c.again("contact", view{Title: page.Name, Data: page}, problem)
		}
		row, err := c.rowToMove(page, op.Write.Sent)
		switch {
		case err != nil:
			return err
		case row != nil && row.Asked:
			return c.again("contact", view{Title: page.Name, Data: page}, desk.Errorf(desk.IdentityConflict, "move %s to %s?", apart(row.What), apart(page.Name)))
		case row != nil:
			if err := s.app.Conflicts.Move(ctx, c.p, row.identity, row.holder, id); err != nil {
				return c.refusedContact("contact", page, err)
			}
			moved = row.What
			continue // the contact has the address now, so that the form can be saved
		}
		page.Holders = nil
		_, err = s.app.Write(ctx, c.p, op)
		switch {
		case err == nil:
			return c.see(page.Action, "saved")
		case desk.IsType(err, desk.Changed) && try < saveTries:
			c.form.errors = nil
		default:
			return c.refusedContact("contact", page, err)
		}
	}
}

// refusedContact shows the form of a contact again, because it was refused. The page has
// the reason: errors beside the attributes, or the contacts that already have the typed
// addresses.
func (c *call) refusedContact(name string, p *contactPage, err error) error {
	e := desk.AsError(err)
	switch details := e.Details.(type) {
	case []desk.AttributeProblem:
		for _, problem := range details {
			c.form.wrong(attributeName(problem.Key), sentence(problem.Message))
		}
		p.note(c.form)
	case []desk.Identity:
		if err := c.addHolders(p, details); err != nil {
			return err
		}
	}
	switch e.Type {
	case desk.NotFound, desk.Unauthorized, desk.Forbidden, desk.Internal:
		return err
	case desk.IdentityConflict:
		e = desk.Errorf(desk.IdentityConflict, "somebody else has this address, so nothing was saved")
		if p.Moved != "" {
			e = desk.Errorf(desk.IdentityConflict, "somebody else has another address, so nothing else was saved")
		}
	}
	return c.again(name, view{Title: p.Name, Data: p}, e)
}

// addHolders adds the other contacts that hold the identities.
func (c *call) addHolders(p *contactPage, list []desk.Identity) error {
	holders, err := c.s.app.ContactsHolding(c.r.Context(), c.p, list)
	if err != nil {
		return err
	}
	for _, i := range list {
		for _, h := range holders {
			if h.ID != p.ID && slices.ContainsFunc(h.Identities(), func(held desk.Identity) bool { return held.Claim() == i.Claim() }) {
				row := holderRow{Href: "/contacts/" + h.ID.String(), Name: nameOf(h), What: identityText(i), Field: c.fieldOfIdentity(p, i), holder: h.ID, identity: desk.Identity{Kind: i.Kind, Value: i.Value}}
				if p.MayMerge {
					row.Merge = p.Action + "/merge?with=" + h.ID.String()
					row.Move = h.ID.String() + ":" + i.Kind + ":" + i.Value
					row.Asked = c.form.text("ask") == row.Move
				}
				p.Holders = append(p.Holders, row)
			}
		}
	}
	return nil
}

// rowToMove returns the holder whose address the member wants to move. If its Asked is true, the
// page asks first. It returns nil if there is none: no button of a move was pressed, the address
// was not typed, or the contact that the page showed does not hold it any more.
func (c *call) rowToMove(p *contactPage, typed []desk.Identity) (*holderRow, error) {
	ask, move := c.form.text("ask"), c.form.text("move")
	if ask == "" && move == "" {
		return nil, nil
	}
	if err := c.addHolders(p, typed); err != nil {
		return nil, err
	}
	for i := range p.Holders {
		if row := &p.Holders[i]; row.Asked || row.Move != "" && row.Move == move {
			return row, nil
		}
	}
	return nil, nil
}

// fieldOfIdentity returns the field in which an identity was typed.
func (c *call) fieldOfIdentity(p *contactPage, i desk.Identity) string {
	for _, f := range p.Main {
		typed, err := desk.ParseIdentity(f.Name, f.Value, c.p.Settings.Country)
		if f.Value != f.Was && err == nil && typed.Claim() == i.Claim() && kindLabels[f.Name] != "" {
			return f.Name
		}
	}
	return "add_value"
}

func (s *Server) newContact(c *call) error {
	return c.show("contact-new", view{Title: "New contact", Data: c.contactForm(nil, "/contacts/new")})
}

func (s *Server) createContact(c *call) error {
	p := c.contactForm(nil, "/contacts/new")
	p.Name = "New contact"
	op := &desk.Op{Kind: desk.OpUpsert, New: true}
	good := c.read(p, nil, &op.Write)
	if good && len(op.Write.Sent) == 0 {
		good = false
		c.form.wrong("phone", "Give a phone number, an e-mail or an own id: without one, nobody could find this contact again.")
		p.note(c.form)
	}
	if !good {
		return c.again("contact-new", view{Title: p.Name, Data: p}, desk.Errorf(desk.InvalidRequest, "not everything could be saved, so nothing was"))
	}
	outcome, err := s.app.Write(c.r.Context(), c.p, op)
	if err != nil {
		return c.refusedContact("contact-new", p, err)
	}
	return c.see("/contacts/"+outcome.ID.String(), "created")
}

func (s *Server) removeIdentity(c *call) error {
	id := c.id("id")
	op := &desk.Op{Kind: desk.OpRemoveIdentity, ByID: true, Target: id, Remove: []desk.Identity{{Kind: c.form.text("kind"), Value: c.form.values.Get("value")}}}
	if _, err := s.app.Write(c.r.Context(), c.p, op); err != nil {
		return err
	}
	return c.see("/contacts/"+id.String(), "removed")
}

func askDelete(contact *desk.Contact) confirmation {
	path := "/contacts/" + contact.ID.String()
	return confirmation{
		Heading: "Delete " + nameOf(contact) + "?", Action: path + "/delete", Button: "Delete", Back: path,
		Text: []string{
			"The contact goes for good, with its addresses, its conversations and all their messages, and with what the logs say of this person.",
			"An opt-out stays: it belongs to the number, and is kept without it.",
		},
	}
}

func (s *Server) deletingContact(c *call) error {
	contact, err := s.app.Contact(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	return c.confirm(askDelete(contact))
}

func (s *Server) deleteContact(c *call) error {
	if _, err := s.app.Write(c.r.Context(), c.p, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: c.id("id")}); err != nil {
		return err
	}
	return c.see("/contacts", "deleted")
}

// otherConversations is the number of other conversations of a person that are listed
// beside a thread.
const otherConversations = 10
