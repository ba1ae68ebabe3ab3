package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"sync"

	"parley/app"
	"parley/desk"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// A confirmation is the data of a page that asks before something is destroyed.
type confirmation struct {
	Heading, Action, Button, Back string
	Text                          []string
	Harmless                      bool // it takes nothing away
}

func (c *call) confirm(v confirmation) error {
	return c.show("confirm", view{Title: v.Heading, Data: v})
}

// confirmAgain shows the question again, with the error.
func (c *call) confirmAgain(v confirmation, err error) error {
	return c.again("confirm", view{Title: v.Heading, Data: v}, err)
}

// base returns the address of this server for browsers. If a proxy in front adds TLS,
// only the header Origin of a form shows it. The header counts only if it has the same
// host.
func (c *call) base() string {
	if c.s.publicURL != "" {
		return c.s.publicURL
	}
	if c.r.TLS != nil {
		return "https://" + c.r.Host
	}
	if u, err := url.Parse(c.r.Header.Get("Origin")); err == nil && u.Host == c.r.Host && u.Scheme == "https" {
		return "https://" + c.r.Host
	}
	return "http://" + c.r.Host
}

// workspaceData is the data of the workspace's page.
type workspaceData struct {
	Name, Country string
	Countries     []choice
	ExternalIDs   string // replaceIDs or fixedIDs
	Choices       []choice
	Files         fileRoom
}

// What happens if a write finds a contact by a phone or e-mail and has a new external id.
const (
	replaceIDs = "replace"
	fixedIDs   = "fixed"
)

var externalIDChoices = []choice{{Value: replaceIDs, Label: "Replace"}, {Value: fixedIDs, Label: "Fixed"}}

// A fileRoom describes the room for files.
type fileRoom struct {
	Used, Limit string // of the workspace; Limit is "" if there is no limit
	Free, Floor string // of the server's disk; Free is "" if the files are not on a disk of the server
	Full        bool   // so little is free that no file can be stored
}

func (c *call) workspaceView() (view, error) {
	w := c.p.Settings.Workspace
	room, err := c.s.app.Media.Room(c.r.Context(), c.p)
	files := fileRoom{Used: bytesOf(room.Used), Full: room.Known && room.Free < room.Floor}
	if room.Limit > 0 {
		files.Limit = bytesOf(room.Limit)
	}
	if room.Known {
		files.Free = bytesOf(room.Free)
	}
	if room.Floor > 0 {
		files.Floor = bytesOf(room.Floor)
	}
	ids := replaceIDs
	if w.FixedExternalIDs {
		ids = fixedIDs
	}
	return view{Title: "Workspace", Data: workspaceData{w.Name, w.Country, countries(), ids, externalIDChoices, files}}, err
}

func (s *Server) workspace(c *call) error {
	v, err := c.workspaceView()
	if err != nil {
		return err
	}
	return c.show("settings", v)
}

func (s *Server) editWorkspace(c *call) error {
	name, country := c.form.text("name"), c.form.text("country")
	edit := app.WorkspaceEdit{Name: &name, Country: &country}
	var err error
	switch ids := c.form.text("external_ids"); ids {
	case "": // a page of the release before: they stay as they are
	case replaceIDs, fixedIDs:
		fixed := ids == fixedIDs
		edit.FixedExternalIDs = &fixed
	default:
		err = desk.InvalidAt("/external_ids", "choose replace or fixed")
	}
	if err == nil {
		_, err = s.app.EditWorkspace(c.r.Context(), c.p, edit)
	}
	if err != nil {
		v, readErr := c.workspaceView()
		if readErr != nil {
			return readErr
		}
		return c.again("settings", v, err)
	}
	return c.see("/settings", "saved")
}

// countries lists the countries that a workspace can have, by name.
var countries = sync.OnceValue(func() []choice {
	names := display.English.Regions()
	var list []choice
	for code := range phonenumbers.GetSupportedRegions() {
		if region, err := language.ParseRegion(code); err == nil && names.Name(region) != "" {
			list = append(list, choice{Value: code, Label: names.Name(region)})
		}
	}
	slices.SortFunc(list, func(a, b choice) int { return cmp.Compare(a.Label, b.Label) })
	return append([]choice{{Value: "", Label: "None: numbers are written with their country code"}}, list...)
})

// roles are the choices of a member's role.
var roles = []choice{
	{Value: string(desk.RoleAgent), Label: "Agent: contacts, conversations and sends"},
	{Value: string(desk.RoleAdmin), Label: "Admin: all that, and the settings"},
}

// A memberRow is a line of the list of members.
type memberRow struct {
	ID          desk.ID
	Name, Email string
	Admin, Me   bool
	Away        bool
	Role        string
	Seen        moment
	Choices     []choice
	RoleValue   string
}

func (c *call) memberRow(m *desk.Member, seen map[desk.ID]desk.Time) memberRow {
	return memberRow{ID: m.ID, Name: m.Name, Email: m.Email, Admin: m.Role == desk.RoleAdmin, Me: m.ID == c.p.Actor.ID, Away: m.Away, Role: roleWord(m.Role),
		RoleValue: string(m.Role), Seen: c.when(seen[m.ID]), Choices: roles}
}

func (s *Server) members(c *call) error {
	seen, err := s.app.Access.LastSeen(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	var rows []memberRow
	for _, m := range c.p.Settings.Members() {
		rows = append(rows, c.memberRow(m, seen))
	}
	return c.show("members", view{Title: "Members", Data: rows})
}

func (s *Server) newMember(c *call) error {
	return c.show("member-new", view{Title: "Add a member", Data: memberRow{Choices: roles, RoleValue: string(desk.RoleAgent)}})
}

func (s *Server) addMember(c *call) error {
	m, err := s.app.AddMember(c.r.Context(), c.p, c.form.text("name"), c.form.text("email"), c.form.text("role"))
	if err != nil {
		return c.again("member-new", view{Title: "Add a member", Data: memberRow{Choices: roles}}, memberError(err))
	}
	return c.see("/settings/members/"+m.ID.String(), "added")
}

// memberError describes an error without the id of another member.
func memberError(err error) error {
	e := desk.AsError(err)
	if e.At == "/email" && strings.Contains(e.Message, "has it already") {
		return desk.InvalidAt("/email", "another member of this workspace has it already")
	}
	return err
}

// errNotHere is the error for a record that this workspace does not have.
var errNotHere = desk.NotFoundf("no such record")

// aMember returns the member in the path.
func (c *call) aMember() (*desk.Member, error) {
	if m := c.p.Settings.Member(c.id("id")); m != nil {
		return m, nil
	}
	return nil, errNotHere
}

func (c *call) memberView(m *desk.Member) (view, error) {
	seen, err := c.s.app.Access.LastSeen(c.r.Context(), c.p)
	return view{Title: m.Name, Data: c.memberRow(m, seen)}, err
}

func (s *Server) member(c *call) error {
	m, err := c.aMember()
	if err != nil {
		return err
	}
	v, err := c.memberView(m)
	if err != nil {
		return err
	}
	return c.show("member", v)
}

func (s *Server) editMember(c *call) error {
	m, err := c.aMember()
	if err != nil {
		return err
	}
	name, email, role := c.form.text("name"), c.form.text("email"), c.form.text("role")
	if _, err := s.app.EditMember(c.r.Context(), c.p, m.ID, app.MemberEdit{Name: &name, Email: &email, Role: &role}); err != nil {
		v, e := c.memberView(m)
		if e != nil {
			return e
		}
		return c.again("member", v, memberError(err))
	}
	return c.see("/settings/members", "saved")
}

// madeLink is the page of a new sign-in link. The link is shown once.
type madeLink struct {
	Name, URL, Back string
	Until           moment
}

func (s *Server) makeLink(c *call) error {
	m, err := c.aMember()
	if err != nil {
		return err
	}
	token, until, err := s.app.Access.MakeLink(c.r.Context(), c.p, m.ID)
	if err != nil {
		return err
	}
	return c.show("member-link", view{Title: "Sign-in link", Data: madeLink{m.Name, c.base() + "/sign-in/" + token, "/settings/members/" + m.ID.String(), c.clock(until)}})
}

func (s *Server) signOutMember(c *call) error {
	m, err := c.aMember()
	if err != nil {
		return err
	}
	if err := s.app.Access.EndSessions(c.r.Context(), c.p, m.ID); err != nil {
		return err
	}
	if m.ID == c.p.Actor.ID {
		return c.see("/sign-in", "everywhere")
	}
	return c.see("/settings/members/"+m.ID.String(), "they-are-out")
}

func (s *Server) setMemberAvailable(c *call) error {
	m, err := c.aMember()
	if err != nil {
		return err
	}
	here, done := c.form.text("available") == "yes", "they-are-away"
	if here {
		done = "they-are-here"
	}
	if _, err := s.app.SetAvailable(c.r.Context(), c.p, m.ID, here); err != nil {
		return err
	}
	return c.see("/settings/members/"+m.ID.String(), done)
}

func (c *call) removal(m *desk.Member) (confirmation, error) {
	contacts, conversations, err := c.s.app.Access.Held(c.r.Context(), c.p, m.ID)
	v := confirmation{
		Heading: "Remove " + m.Name + "?", Action: "/settings/members/" + m.ID.String() + "/remove", Button: "Remove", Back: "/settings/members/" + m.ID.String(),
		Text: []string{"They are signed out at once, and their password and links end."},
	}
	if contacts == 0 && conversations == 0 {
		v.Text = append(v.Text, "They hold no contact and no open conversation.")
	} else {
		goes := "go"
		if contacts+conversations == 1 {
			goes = "goes"
		}
		v.Text = append(v.Text, capital(countOf(contacts, "contact", "contacts"))+" and "+countOf(conversations, "open conversation", "open conversations")+" "+goes+" back to the pool.")
	}
	if err == nil {
		err = c.addPaused(&v, desk.Actor{Kind: desk.ByMember, ID: m.ID})
	}
	return v, err
}

// addPaused names the broadcasts that pause when somebody may not send any more.
func (c *call) addPaused(v *confirmation, starter desk.Actor) error {
	paused, err := c.s.app.Broadcasts.PauseWithout(c.r.Context(), c.p, starter)
	if err != nil {
		return err
	}
	var names []string
	for _, b := range paused {
		names = append(names, apart(b.Name))
	}
	if len(names) > 0 {
		v.Text = append(v.Text, "This pauses "+several(len(names), "broadcast")+": "+firstFew(names)+". Another admin can resume them.")
	}
	return nil
}

// countOf returns a number with its noun: no key, 1 key, 2 keys. From 100, the number is
// 99+.
func countOf(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return upTo99(n) + " " + many
}

func (s *Server) askRemoval(c *call) error {
	m, err := c.aMember()
	if err != nil {
		return err
	}
	v, err := c.removal(m)
	if err != nil {
		return err
	}
	return c.confirm(v)
}

func (s *Server) removeMember(c *call) error {
	m, err := c.aMember()
	if err != nil {
		return err
	}
	if err := s.app.RemoveMember(c.r.Context(), c.p, m.ID); err != nil {
		if !desk.IsType(err, desk.InvalidRequest) {
			return err
		}
		v, e := c.removal(m)
		if e != nil {
			return e
		}
		return c.confirmAgain(v, err)
	}
	return c.see("/settings/members", "removed")
}
