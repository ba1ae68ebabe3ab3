package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/desk"
)

// anyone is a permission that every member has.
const anyone = desk.MembersRead

// signInData is the data of the sign-in pages.
type signInData struct {
	Next            string
	Token           string
	Name, Workspace string // of the member for whom the link is
	Now             string // the member who is signed in now in this browser
	Choices         []identity
}

// An identity is a member in one of several workspaces.
type identity struct{ Ref, Name, Workspace, Role string }

// known returns the member who is signed in in this browser, if there is one.
func (c *call) known() (desk.Principal, bool, error) {
	p, err := c.s.signedIn(c)
	if desk.IsType(err, desk.Unauthorized) {
		return p, false, nil
	}
	return p, err == nil, err
}

// next returns the path of the page to which a sign-in leads.
func (c *call) next(text string) string { return cmp.Or(c.s.safe(text), "/inbox") }

// maxNext is the greatest length in bytes of a path to which a sign-in leads, with its
// query.
const maxNext = 4 << 10

// clean tells whether a path has no parts that a browser or the router would take out. The page of
// an import ends in a slash.
func clean(p string) bool {
	return strings.TrimSuffix(p, "/") == strings.TrimSuffix(path.Clean(p), "/")
}

// safe returns a text if it is the path of a page, with or without a query. Otherwise it
// returns "".
func (s *Server) safe(text string) string {
	if len(text) > maxNext {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") || !clean(u.Path) || strings.Contains(u.Path, `\`) {
		return ""
	}
	_, pattern := s.after.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: u.Path}})
	if pattern == "" {
		return ""
	}
	to := u.EscapedPath()
	if u.RawQuery != "" {
		to += "?" + u.Query().Encode()
	}
	return to
}

func (s *Server) signInPage(c *call) error {
	_, signedIn, err := c.known()
	if err != nil {
		return err
	}
	if signedIn {
		return c.see(c.next(c.query("next")), "")
	}
	return c.show("sign-in", view{Title: "Sign in", Data: signInData{Next: s.safe(c.query("next"))}})
}

func (s *Server) signIn(c *call) error {
	next, email, password := c.form.text("next"), c.form.text("email"), c.form.values.Get("password")
	c.form.values.Set("password", "")   // the page must not show it again
	if len(email) > desk.MaxReference { // no member has it, and it would only make the page long
		c.form.values.Set("email", "")
	}
	list, err := s.app.Access.SignIn(c.r.Context(), email, password, s.addressOf(c.r))
	if err != nil {
		return c.again("sign-in", view{Title: "Sign in", Data: signInData{Next: s.safe(next)}}, signInError(err))
	}
	slices.SortFunc(list, func(a, b desk.Principal) int { return cmp.Compare(a.Settings.Name, b.Settings.Name) })
	if len(list) == 1 {
		if err := c.begin(list[0], nil); err != nil {
			return err
		}
		return c.see(c.next(next), "")
	}
	refs, proved := make([]string, len(list)), make([]string, len(list))
	for i, p := range list {
		refs[i], proved[i] = refOf(p), numberOf(p)
	}
	if err := c.begin(list[0], map[string]string{mayBe: strings.Join(refs, " "), provedAt: strings.Join(proved, " ")}); err != nil {
		return err
	}
	return c.see("/choose?next="+url.QueryEscape(s.safe(next)), "")
}

func refOf(p desk.Principal) string { return p.Workspace().String() + "/" + p.Member.ID.String() }

// signInError returns the error that the sign-in page shows.
func signInError(err error) error {
	e := desk.AsError(err)
	switch e.Type {
	case desk.Unauthorized:
		return desk.InvalidAt("/password", "%s", e.Message) // the field that has to be filled in again
	case desk.RateLimited:
		wait := *e
		wait.Message = fmt.Sprintf("too many tries: wait %d seconds, or ask an admin for a sign-in link", max(e.RetryAfter, 1))
		return &wait
	}
	return err
}

func (s *Server) choosePage(c *call) error {
	list, err := c.others()
	if err != nil {
		return err
	}
	if len(list) < 2 {
		return c.see(c.next(c.query("next")), "")
	}
	data := signInData{Next: s.safe(c.query("next"))}
	for _, p := range list {
		data.Choices = append(data.Choices, identity{refOf(p), p.Member.Name, p.Settings.Name, roleWord(p.Member.Role)})
	}
	return c.show("choose", view{Title: "Choose a workspace", Data: data})
}

func (s *Server) choose(c *call) error {
	list, err := c.others()
	if err != nil {
		return err
	}
	for _, p := range list {
		if refOf(p) == c.form.text("as") {
			if err := c.begin(p, nil); err != nil {
				return err
			}
			return c.see(c.next(c.form.text("next")), "")
		}
	}
	return c.see("/choose", "")
}

// linkPage shows a button, and the link stays valid until the member clicks it. The
// reason is that mail scanners open links, and some run scripts.
func (s *Server) linkPage(c *call) error {
	now, signedIn, err := c.known()
	if err != nil {
		return err
	}
	owner, err := s.app.Access.LinkOwner(c.r.Context(), c.r.PathValue("token"))
	if desk.IsType(err, desk.NotFound) {
		if signedIn {
			return c.see("/inbox", "")
		}
		return c.spentLink()
	}
	if err != nil {
		return err
	}
	data := signInData{Token: c.r.PathValue("token"), Name: owner.Member.Name, Workspace: owner.Settings.Name}
	if signedIn && now.Actor != owner.Actor {
		data.Now = now.Member.Name
	}
	return c.show("link", view{Title: "Sign in", Data: data})
}

func (c *call) spentLink() error {
	return c.render(http.StatusNotFound, "link", view{Title: "Link not valid", Data: signInData{}})
}

func (s *Server) spendLink(c *call) error {
	p, err := s.app.Access.SpendLink(c.r.Context(), c.r.PathValue("token"))
	if desk.IsType(err, desk.NotFound) {
		if _, signedIn, err := c.known(); err != nil || signedIn {
			return cmp.Or(err, c.see("/inbox", ""))
		}
		return c.spentLink()
	}
	if err != nil {
		return err
	}
	if err := c.begin(p, map[string]string{byLinkAt: strconv.FormatInt(c.now.UnixMilli(), 10)}); err != nil {
		return err
	}
	return c.see("/inbox", "")
}

func (s *Server) signOut(c *call) error {
	if err := c.end(); err != nil {
		return err
	}
	return c.see("/sign-in", "out")
}

// roleWord returns a role as a word.
func roleWord(r desk.Role) string { return capital(string(r)) }
