package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/desk"
	"parley/web"
)

// New builds a Server and registers its pages.
func New(c Config) (*Server, error) {
	secure := c.TLS || strings.HasPrefix(c.PublicURL, "https://")
	s := &Server{publicURL: c.PublicURL, sessions: newSessions(c, secure), app: c.App, web: c.Web, now: c.Now, trusted: unmappedAll(c.Trusted), export: c.Export, cross: http.NewCrossOriginProtection(), files: loadAssets(), hubs: hubs{app: c.App}}
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

// Unknown responds to a request whose path belongs to no page.
func (s *Server) Unknown(w *web.Response, r *http.Request) error {
	return s.serve(route{do: func(c *call) error { return s.web.NoRoute(c.w, c.r) }})(w, r)
}

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
		if rt.needs != "" && !strings.HasPrefix(rt.pattern, "POST /broadcasts") {
			s.app.Broadcasts.GiveWay()
		}
		read := func() error { return c.readForm(rt.needs != "") }
		if withFile[rt.pattern] && isMultipart(c.r) {
			read = c.readFields
		}
		if err := read(); err != nil {
			return err
		}
		if zone := knownZone(c.form.text("zone")); zone != nil {
			c.zone = zone // in which the form shows its times
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

// readForm reads the body of a form. It refuses the form if another member filled it in:
// then the browser tab is left from an earlier sign-in.
func (c *call) readForm(known bool) error {
	var body []byte
	var err error
	if known {
		body, err = c.w.Body(maxForm, c.p.Workspace())
	} else {
		body, err = c.w.UncheckedBody(maxOpenForm)
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

func (s *Server) asset(w *web.Response, r *http.Request) error {
	guard(w.Header())
	name := r.PathValue("name")
	body, ok := s.files.bodies[name]
	if !ok {
		return desk.NotFoundf("no such file")
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = s.files.zipped[name]
	}
	w.Reply(http.StatusOK, assetTypes[name], body)
	return nil
}
