package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/app"
	"parley/desk"
	"parley/web"

	"github.com/alexedwards/scs/v2"
)

// Config has the parts of a Server. All but PublicURL and Trusted are required.
type Config struct {
	App         *app.App
	Web         *web.Server
	PublicURL   string           // the address at which browsers reach the console; "": unknown
	Fingerprint string           // of the installation: two on one host have different cookies
	Now         func() time.Time // the clock
	Trusted     []netip.Prefix   // the proxies whose X-Forwarded-For tells the caller's address, for the throttle of sign-ins
}

// A Server answers the pages of the console.
type Server struct {
	app     *app.App
	web     *web.Server
	now     func() time.Time
	trusted []netip.Prefix
	cross   *http.CrossOriginProtection
	files   assets

	publicURL string
	sessions  *scs.SessionManager
	after     *http.ServeMux // knows the pages to which a sign-in may lead

	pages sync.Map // by name: func() (*template.Template, error)
	hubs  hubs

	// signedIn finds the member of a request's session: Unauthorized if there is none.
	signedIn func(*call) (app.Principal, error)
}

// New builds a Server and registers its pages.
func New(c Config) (*Server, error) {
	secure := strings.HasPrefix(c.PublicURL, "https://")
	s := &Server{publicURL: c.PublicURL, sessions: newSessions(c, secure), app: c.App, web: c.Web, now: c.Now, trusted: unmappedAll(c.Trusted), cross: http.NewCrossOriginProtection(), files: loadAssets(), hubs: hubs{app: c.App}}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil {
			return nil, err
		}
		if err := s.cross.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, err
		}
	}
	s.signedIn, s.after = s.bySession, pagesAfterSignIn(s.routes())
	for _, rt := range s.routes() {
		s.web.Handle(rt.pattern, s.serve(rt), s.fail)
	}
	s.web.Handle("GET "+s.files.path+"{name}", s.asset, s.fail)
	return s, nil
}

// Unknown answers a path that is no page.
func (s *Server) Unknown(w *web.Response, r *http.Request) error {
	return s.serve(route{do: func(c *call) error { return s.web.NoRoute(c.w, c.r) }})(w, r)
}

// A call is one request for a page.
type call struct {
	s    *Server
	w    *web.Response
	r    *http.Request
	p    app.Principal // zero on open pages
	form *form         // of a POST; otherwise empty
	zone *time.Location
	now  time.Time
	from string // where in the feed a stream goes on after this page; "": unknown
}

// maxForm is the largest body of a form.
const maxForm = 1 << 20

// serve finds the member, checks the permission, reads the form, and runs the page.
func (s *Server) serve(rt route) web.Handler {
	return func(w *web.Response, r *http.Request) error {
		guard(w.Header())
		c := &call{s: s, w: w, r: r, form: &form{}, zone: time.UTC, now: s.now()}
		if zone := zoneOf(r); zone != nil {
			c.zone = zone
		}
		err := s.run(rt, c)
		if err != nil {
			return s.refuse(c, err)
		}
		return nil
	}
}

func (s *Server) run(rt route, c *call) (err error) {
	defer c.w.Release()
	if err := s.cross.Check(c.r); err != nil {
		return errCrossSite
	}
	if rt.needs != "" {
		if c.p, err = s.signedIn(c); err != nil {
			return err
		}
		c.w.Actor("member_id", c.p.Actor.ID)
		if zoneOf(c.r) == nil {
			c.zone = teamZone(c.p.Settings)
		}
		if err := c.p.Allow(rt.needs); err != nil {
			return err
		}
		c.from = s.hubs.cursor(c.p.Workspace())
	}
	if c.r.Method == http.MethodPost {
		read := func() error { return c.readForm(rt.needs != "") }
		if withFile[rt.pattern] && isMultipart(c.r) {
			read = c.readFields
		}
		if err := read(); err != nil {
			return err
		}
	}
	if c.r.Method != http.MethodPost && rt.needs != "" && !streams[rt.pattern] {
		if err := c.w.Reserve(maxPage, c.p.Workspace()); err != nil {
			return err
		}
	}
	return rt.do(c)
}

// maxPage is the memory that is taken before a page is made. The few that have more wait for
// it once they are made.
const maxPage = 512 << 10

// streams are the pages that are sent as they come.
var streams = map[string]bool{"GET /live": true, "GET /media/{id}": true}

// readForm reads the body of a form, and refuses one that another member filled in: the
// tab is left from another sign-in.
func (c *call) readForm(known bool) error {
	var body []byte
	var err error
	if known {
		body, err = c.w.Body(maxForm, c.p.Workspace())
	} else {
		body, err = c.w.UncheckedBody(maxForm)
	}
	if err != nil {
		return err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return errNoForm
	}
	c.form.values = values
	if known && values.Get("member") != c.p.Actor.ID.String() {
		return errOtherMember
	}
	return nil
}

// errCrossSite is the answer to a form of another site.
var errCrossSite = desk.Errorf(desk.Forbidden, "another site sent this form, so nothing was done")

// errOtherMember is the answer to a form of a tab that is left from another sign-in.
var errOtherMember = desk.Errorf(desk.ConversationOpen, "you are signed in as somebody else than when this page was opened; nothing was done. Reload the page and try again")

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

// guard sets the security headers. The referrer policy is not no-referrer: with that,
// forms of pages over plain HTTP send "Origin: null" and are refused.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// id returns an id of the path; a text that is no id becomes the zero id, which no
// record has.
func (c *call) id(name string) desk.ID {
	id, _ := desk.ParseID(c.r.PathValue(name))
	return id
}

// query returns a parameter of the URL.
func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

// may tells whether the member has a permission, so that pages leave out what would be
// refused.
func (c *call) may(needs desk.Permission) bool { return c.p.Allow(needs) == nil }

// A view is what a handler shows.
type view struct {
	Title string // of the window and, on most pages, the heading
	Data  any
	Form  *form

	Live bool // the title is renewed with the page's own parts
}

// A page is what a template gets: the view, and what surrounds it.
type page struct {
	view
	Me        *desk.Member // nil on open pages
	Admin     bool
	Team      string // the workspace's name
	Section   string // the part of the navigation that the page belongs to
	Sub       string // the part of the settings that it belongs to
	From      string // where in the feed its stream goes on
	At        string // where its parts are; "": at its own URL
	Theme     string // "", light or dark
	Keys      bool   // whether keyboard shortcuts are on
	Sound     bool   // whether the script rings when somebody writes
	Enter     bool   // whether Enter sends a reply
	Waiting   string // in how many of the member's own conversations somebody waits; "" for none
	Toast     string // what was just done
	ToastLink string // to what it was done; "" if the page shows it
	Files     *assets
}

// show answers a page.
func (c *call) show(name string, v view) error { return c.render(http.StatusOK, name, v) }

// again answers a form that was refused, with what was typed and the errors beside the
// fields.
func (c *call) again(name string, v view, err error) error {
	e := desk.AsError(err)
	if e.Type == desk.Unauthorized {
		return err
	}
	c.w.Explain(e)
	errorHeaders(c.w.Header(), e)
	if v.Form == nil {
		v.Form = c.form
	}
	v.Form.refuse(e)
	v.Title = "Error: " + v.Title
	return c.render(statusOf(e), name, v)
}

// see sends the browser to another page, which then says what was done: done is a key of
// toasts, "" for none.
func (c *call) see(path, done string) error {
	if done != "" {
		path = with(path, "done", done)
	}
	c.w.Header().Set("Location", path)
	c.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// maxParts is how many parts of a page one request may ask for.
const maxParts = 16

// render answers a page, or only the parts of it that the script asks for, each in an
// element with its name as id.
func (c *call) render(status int, name string, v view) error {
	t, err := c.s.template(name)
	if err != nil {
		return err
	}
	if v.Form == nil {
		v.Form = c.form
	}
	p := page{view: v, From: c.from, At: c.partsAt(), Section: section(c.r.URL.Path, 0), Sub: section(c.r.URL.Path, 1), Theme: theme(c.r), Keys: keysOn(c.r), Sound: soundOn(c.r), Enter: enterSends(c.r), Toast: toasts[c.query("done")], Files: &c.s.files}
	if c.p.Settings != nil {
		p.Me, p.Team, p.Admin = c.p.Settings.Member(c.p.Actor.ID), c.p.Settings.Name, c.may(desk.Administer)
	}
	if of, ok := desk.ParseID(c.query("of")); ok && (c.query("done") == statusWords[desk.StatusClosed].done || c.query("done") == "sent-and-closed") {
		p.ToastLink = "/inbox/" + of.String()
	}
	var b bytes.Buffer
	parts := strings.Fields(c.r.Header.Get("Parley-Part"))
	if len(parts) == 0 || slices.Contains(parts, "title") || slices.Contains(parts, "waiting") {
		p.Waiting = c.waiting(status)
	}
	for _, part := range parts {
		if t.Lookup("part-"+part) == nil || len(parts) > maxParts {
			return desk.NotFoundf("this page has no such part")
		}
		fmt.Fprintf(&b, "<div id=%q>", part)
		if err := t.ExecuteTemplate(&b, "part-"+part, p); err != nil {
			return fmt.Errorf("page %s: %w", name, err)
		}
		b.WriteString("</div>")
	}
	if len(parts) == 0 {
		if err := t.ExecuteTemplate(&b, "base", p); err != nil {
			return fmt.Errorf("page %s: %w", name, err)
		}
	} else if status == http.StatusOK {
		sum := sha256.Sum256(b.Bytes())
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
		c.w.Header().Set("ETag", tag)
		if c.r.Header.Get("If-None-Match") == tag {
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return c.reply(status, b.Bytes())
}

// waiting is in how many of the member's own conversations somebody waits, for every page;
// "" for none. A page is shown without it rather than not at all.
func (c *call) waiting(status int) string {
	if c.p.Settings == nil || !c.may(desk.ConversationsRead) || status >= http.StatusInternalServerError {
		return ""
	}
	counts, err := c.s.app.InboxCounts(c.r.Context(), c.p, desk.ID{})
	if err != nil || counts.Waiting == 0 {
		return ""
	}
	return upTo99(counts.Waiting)
}

// asks tells whether the script asks for a part.
func (c *call) asks(name string) bool {
	return slices.Contains(strings.Fields(c.r.Header.Get("Parley-Part")), name)
}

// onlyParts tells whether the script asks for nothing but some of these parts.
func (c *call) onlyParts(names ...string) bool {
	parts := strings.Fields(c.r.Header.Get("Parley-Part"))
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(part string) bool { return !slices.Contains(names, part) })
}

// partsAt is where the script fetches parts of a page that answers a form: the page that
// the form is on. It is "" for all other pages, whose parts are at their own URL.
func (c *call) partsAt() string {
	if c.r.Method != http.MethodPost {
		return ""
	}
	at := *c.r.URL
	if _, page := c.s.after.Handler(&http.Request{Method: http.MethodGet, URL: &at}); page == "" {
		at.Path = path.Dir(at.Path)
	}
	return at.RequestURI()
}

func (c *call) reply(status int, body []byte) error {
	if !c.w.Fit(len(body)) {
		reserve := func() error { return c.w.ReserveUnchecked(len(body)) }
		if c.p.Settings != nil {
			reserve = func() error { return c.w.Reserve(len(body), c.p.Workspace()) }
		}
		if err := reserve(); err != nil {
			return err
		}
	}
	c.w.Release() // of the form, whose texts the page may have
	c.w.Reply(status, "text/html; charset=utf-8", body)
	return nil
}

//go:embed templates
var templates embed.FS

// partsOf are the pages whose template is in several files.
var partsOf = map[string][]string{"conversation": {"composer", "message"}, "notes": {"message"}}

// template returns a page's template, parsed at its first use.
func (s *Server) template(name string) (*template.Template, error) {
	parse, _ := s.pages.LoadOrStore(name, sync.OnceValues(func() (*template.Template, error) {
		files := []string{"templates/base.html", "templates/parts.html"}
		for _, name := range append(partsOf[name], name) {
			files = append(files, "templates/"+name+".html")
		}
		return template.New(name).Funcs(funcs).ParseFS(templates, files...)
	}))
	return parse.(func() (*template.Template, error))()
}

// section is the n-th part of a path, "" if there is none.
func section(path string, n int) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if n < len(parts) {
		return parts[n]
	}
	return ""
}

// theme is the member's choice of colours: light, dark, or "" for the browser's own.
func theme(r *http.Request) string {
	if c, err := r.Cookie("theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// refuse shows an error as a page. Without a session, it sends the browser to the
// sign-in page.
func (s *Server) refuse(c *call, err error) error {
	if c.w.Begun() {
		return err
	}
	e := desk.AsError(err)
	if e.Type == desk.Unauthorized && c.r.Header.Get("Parley-Part") == "" {
		return c.toSignIn()
	}
	c.w.Explain(e)
	errorHeaders(c.w.Header(), e)
	c.r.Header.Del("Parley-Part")
	v := problemOf(c.w, e)
	if e.Type == desk.Forbidden && c.p.Settings != nil {
		v.Admins, v.Advice = admins(c.p.Settings), "An admin can do it:"
	}
	return c.render(v.Status, "error", view{Title: v.Heading, Data: v})
}

// toSignIn sends the browser to the sign-in page, and back afterwards.
func (c *call) toSignIn() error {
	path := "/sign-in"
	if c.r.Method == http.MethodGet && c.r.URL.Path != "/" {
		path += "?next=" + url.QueryEscape(c.r.URL.RequestURI())
	}
	return c.see(path, "")
}

// A problem is the data of the error page.
type problem struct {
	Status    int
	Heading   string
	Message   string
	Advice    string
	RequestID string
	Admins    []string // whom to ask, if a permission is missing
}

func problemOf(w *web.Response, e *desk.Error) problem {
	v := problem{Status: statusOf(e), Message: message(e), Advice: advise(e), RequestID: w.RequestID()}
	v.Heading = heading(v.Status)
	return v
}

func admins(settings *desk.Settings) (names []string) {
	for _, m := range settings.Members() {
		if m.Role == desk.RoleAdmin {
			names = append(names, m.Name)
		}
	}
	return names
}

func errorHeaders(h http.Header, e *desk.Error) {
	if e.Type == desk.Unavailable || e.Type == desk.RateLimited {
		h.Set("Retry-After", strconv.Itoa(max(e.RetryAfter, 1)))
	}
}

// fail shows an error of a request for which there is no call: its handler has panicked.
func (s *Server) fail(w *web.Response, e *desk.Error) {
	guard(w.Header())
	errorHeaders(w.Header(), e)
	v := problemOf(w, e)
	var b bytes.Buffer
	t, err := s.template("error")
	if err == nil {
		err = t.ExecuteTemplate(&b, "base", page{view: view{Title: v.Heading, Data: v}, Files: &s.files})
	}
	if err != nil { // a fault in the template itself
		w.Reply(v.Status, "text/plain; charset=utf-8", []byte(v.Heading+"\n"))
		return
	}
	w.Reply(v.Status, "text/html; charset=utf-8", b.Bytes())
}
