package console

import (
	"net/http"
	"net/netip"
	"net/url"
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
	signedIn func(*call) (desk.Principal, error)
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
	p    desk.Principal // zero on open pages
	form *form          // of a POST; otherwise empty
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
	if rt.needs != "" && !streams[rt.pattern] && !waits[rt.pattern] {
		if err := c.takeTurn(); err != nil {
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

// streams are the pages that are sent as they come.
var streams = map[string]bool{"GET /live": true, "GET /media/{id}": true}

// waits are the forms whose handling waits for a provider or an endpoint. They take their
// turn only when they have a page to make: otherwise a slow provider would stop all pages.
var waits = map[string]bool{
	"POST /inbox/{id}/reply": true, "POST /send": true, "POST /settings/channels/new": true, "POST /settings/channels/{id}": true,
	"POST /settings/channels/{id}/check": true, "POST /settings/webhooks/{id}/ping": true, "POST /templates/{channel}/fetch": true,
}

// takeTurn waits until the workspace has few pages under way. How large a page is, is only
// known once it is made.
func (c *call) takeTurn() error {
	if c.p.Settings == nil { // nobody's page is short
		return nil
	}
	return c.w.PageTurn(c.p.Workspace())
}

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
var errOtherMember = desk.Errorf(desk.OtherMember, "you are signed in as somebody else than when this page was opened; nothing was done. Reload the page and try again")

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

// toSignIn sends the browser to the sign-in page, and back afterwards.
func (c *call) toSignIn() error {
	path := "/sign-in"
	if c.r.Method == http.MethodGet && c.r.URL.Path != "/" {
		path += "?next=" + url.QueryEscape(c.r.URL.RequestURI())
	}
	return c.see(path, "")
}
