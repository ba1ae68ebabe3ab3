package console

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"parley/app"
	"parley/desk"
	"parley/web"

	"github.com/alexedwards/scs/v2"
)

// Config has the parts of a Server. All except PublicURL, TLS and Trusted are
// required.
type Config struct {
	App         *app.App
	Web         *web.Server
	PublicURL   string           // the address of the console for browsers; "": unknown
	TLS         bool             // the server itself speaks TLS
	Fingerprint string           // of the installation, so that two installations on one host have different cookies
	Now         func() time.Time // the clock
	Export      Export           // answers with all data of a contact
	Trusted     []netip.Prefix   // the proxies whose X-Forwarded-For has the caller's address, for limiting sign-ins
}

// An Export answers with all data of a contact as JSON, as the API does. Before the answer
// begins, it may return an error.
type Export func(w *web.Response, r *http.Request, a *app.App, p desk.Principal, contact desk.ID) error

// A Server serves the pages of the console.
type Server struct {
	app     *app.App
	web     *web.Server
	now     func() time.Time
	trusted []netip.Prefix
	export  Export
	cross   *http.CrossOriginProtection
	files   assets

	publicURL string
	sessions  *scs.SessionManager
	after     *http.ServeMux // knows the pages to which a sign-in may lead

	pages sync.Map // by name: func() (*template.Template, error)
	hubs  hubs

	// signedIn finds the member of a request's session. It returns Unauthorized if there
	// is none.
	signedIn func(*call) (desk.Principal, error)
}

// A call is one request for a page.
type call struct {
	s    *Server
	w    *web.Response
	r    *http.Request
	p    desk.Principal // zero on open pages
	form *form          // of a POST; empty otherwise
	zone *time.Location
	now  time.Time
	from string // the position in the feed from which the stream of this page continues; "": unknown
}

// maxForm is the largest body of a form. maxOpenForm is the largest body of a form from
// somebody who is not signed in. A body of this size takes nothing from the memory that
// callbacks share.
const (
	maxForm     = 1 << 20
	maxOpenForm = web.Free - 1
)

// takeTurn waits until only few pages of the workspace are being made. Their number is
// limited, because the size of a page is only known after it is made.
func (c *call) takeTurn() error {
	if c.p.Settings == nil { // pages without a member are short
		return nil
	}
	return c.w.PageTurn(c.p.Workspace())
}

// id returns the id that the path has under a name. For an invalid text it returns the
// zero id, which no record has.
func (c *call) id(name string) desk.ID {
	id, _ := desk.ParseID(c.r.PathValue(name))
	return id
}

// query returns a parameter of the URL.
func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

// fromCursor calls read for the part of a list that begins at the cursor in the URL, and
// returns this cursor. If it is the cursor of another list, read is called again for the
// beginning.
func (c *call) fromCursor(read func(after string) error) (after string, err error) {
	after = c.query("after")
	if err = read(after); after != "" && desk.IsType(err, desk.InvalidRequest) {
		after, err = "", read("")
	}
	return after, err
}

// may reports whether the member has a permission. Pages leave out an action that would
// be refused.
func (c *call) may(needs desk.Permission) bool { return c.p.Allow(needs) == nil }

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

// guard sets the security headers. The referrer policy must not be no-referrer: browsers
// would send "Origin: null" with forms over plain HTTP, and such forms are refused.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
