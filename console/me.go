package console

import (
	"cmp"
	"slices"

	"parley/desk"
)

// meData is the data of the page with the member's own settings.
type meData struct {
	Email, Role string
	Away        bool
	HasPassword bool
	NeedsOld    bool // the old password must be given to set a new one
	MaySet      bool // a password can be set now
	Theme       []choice
	ThemeNow    string
	KeysOn      bool
	EnterOn     bool // Enter sends a reply
	SoundOn     bool
	Least       int
	Name, Look  *form
	Password    *form
}

func (c *call) meData() (meData, error) {
	m := c.p.Settings.Member(c.p.Actor.ID)
	has, err := c.s.app.Access.HasPassword(c.r.Context(), c.p)
	if err != nil {
		return meData{}, err
	}
	byLink, err := c.byLink()
	if err != nil {
		return meData{}, err
	}
	return meData{
		Email: m.Email, Role: roleWord(m.Role), Away: m.Away, HasPassword: has, NeedsOld: has && !byLink, MaySet: has || byLink,
		Theme: []choice{{Value: "", Label: "As the device"}, {Value: "light", Label: "Light"}, {Value: "dark", Label: "Dark"}}, ThemeNow: theme(c.r), KeysOn: keysOn(c.r), SoundOn: soundOn(c.r), EnterOn: enterSends(c.r),
		Least: desk.MinPassword, Name: &form{}, Look: &form{}, Password: &form{},
	}, nil
}

func (s *Server) me(c *call) error {
	data, err := c.meData()
	if err != nil {
		return err
	}
	return c.show("me", view{Title: "You", Data: data})
}

func (s *Server) rename(c *call) error {
	if _, err := s.app.Rename(c.r.Context(), c.p, c.form.text("name")); err != nil {
		data, e := c.meData()
		if e != nil {
			return e
		}
		data.Name = c.form
		return c.again("me", view{Title: "You", Data: data}, err)
	}
	return c.see("/me", "saved")
}

// setAvailable sets whether the reply policy may assign conversations to the member.
func (s *Server) setAvailable(c *call) error {
	here, done := c.form.text("available") == "yes", "away"
	if here {
		done = "here"
	}
	if _, err := s.app.SetAvailable(c.r.Context(), c.p, c.p.Actor.ID, here); err != nil {
		return err
	}
	return c.see("/me", done)
}

// A newsRow is a conversation with unread messages, of the member or unassigned.
type newsRow struct {
	ID   desk.ID
	Name string
	Sort desk.Time // the time of the newest message
	At   moment
	Mine bool
}

// newsRows is the number of conversations that news reads: so many of the member's own,
// and so many unassigned ones.
const newsRows = 5

// news lists people with unread messages, in the member's conversations and in
// unassigned ones. The script shows the names while the page is hidden.
func (s *Server) news(c *call) error {
	if c.onlyParts("waiting") { // asked from a page that has no such part itself
		return c.show("news", view{Title: "New messages"})
	}
	var rows []newsRow
	var contacts []desk.ID
	for _, f := range []desk.ConversationFilter{{Assignee: c.p.Actor.ID}, {Unassigned: true}} {
		f.Status = desk.StatusOpen
		list, _, err := s.app.Conversations(c.r.Context(), c.p, f, "", newsRows)
		if err != nil {
			return err
		}
		for _, v := range list {
			if v.Talk.Unread > 0 && v.Talk.LastDirection == desk.Inbound {
				rows = append(rows, newsRow{ID: v.ID, Sort: v.LastMessageAt, At: c.when(v.LastMessageAt), Mine: !f.Unassigned})
				contacts = append(contacts, v.ContactID)
			}
		}
	}
	people, err := s.app.ContactsByID(c.r.Context(), c.p, contacts)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Name = nameOf(people[contacts[i]])
	}
	slices.SortStableFunc(rows, func(a, b newsRow) int { return cmp.Compare(b.Sort, a.Sort) })
	return c.show("news", view{Title: "New messages", Data: rows})
}

func (s *Server) look(c *call) error {
	switch theme := c.form.text("theme"); theme {
	case "light", "dark", "":
		c.remember("theme", theme)
	}
	for _, name := range []string{"keys", "sound", "enter"} {
		value := "off"
		if c.form.has(name) {
			value = "on"
		}
		c.remember(name, value)
	}
	return c.see("/me", "saved")
}

func (s *Server) setPassword(c *call) error {
	old, password := c.form.values.Get("old"), c.form.values.Get("password")
	byLink, err := c.byLink()
	if err != nil {
		return err
	}
	p, err := s.app.Access.SetPassword(c.r.Context(), c.p, old, byLink, password)
	if err != nil {
		data, e := c.meData()
		if e != nil {
			return e
		}
		for _, name := range []string{"old", "password"} {
			c.form.values.Set(name, "") // the page must not show it again
		}
		data.Password = c.form
		return c.again("me", view{Title: "You", Data: data}, signInError(err))
	}
	// All sessions of the member have ended. This browser gets a new session, unless its own
	// was ended meanwhile.
	if err := c.begin(p, nil); err != nil {
		return err
	}
	return c.see("/me", "password")
}

func (s *Server) signOutEverywhere(c *call) error {
	if err := s.app.Access.EndSessions(c.r.Context(), c.p, c.p.Actor.ID); err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	return c.see("/sign-in", "everywhere")
}
