package console

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/desk"
)

// maxPage is the memory that is reserved before a page is made. A longer page is rare: it is dropped,
// waits for longPage, and is made again. No page is longer than that.
const (
	maxPage  = 512 << 10
	longPage = 8 << 20
)

// A pageBuffer has the beginning of a page.
type pageBuffer struct {
	made bytes.Buffer
	most int
}

var errLongPage = errors.New("the page is longer than its memory")

// Write takes a part of the page.
func (b *pageBuffer) Write(p []byte) (int, error) {
	if b.made.Len()+len(p) > b.most {
		return 0, errLongPage
	}
	return b.made.Write(p)
}

// show sends a page as the response.
func (c *call) show(name string, v view) error {
	if err := c.takeTurn(); err != nil {
		return err
	}
	return c.render(http.StatusOK, name, v)
}

// again sends the page of a form again, because the form was refused. The page has the
// typed values, and the errors beside the fields.
func (c *call) again(name string, v view, err error) error {
	e := desk.AsError(err)
	if e.Type == desk.Unauthorized {
		return err
	}
	if turn := c.takeTurn(); turn != nil {
		return cmp.Or(doubtOf(err), turn)
	}
	c.w.Explain(e)
	errorHeaders(c.w.Header(), e)
	if v.Form == nil {
		v.Form = c.form
	}
	v.Form.refuse(e)
	v.Title, v.Refresh = "Error: "+v.Title, false // loading it again would take the reason away
	return c.render(statusOf(e), name, v)
}

// doubtOf returns the error of a send that may have gone out; nil for another error. If there is no
// room for the page of the form, the error is shown without it: to try again later is the wrong advice.
func doubtOf(err error) error {
	if desk.IsType(err, desk.SendOutcomeUnknown) || desk.IsType(err, desk.SendInProgress) {
		return err
	}
	return nil
}

// alone tells whether an error has a page of its own: what the form was for is not there, or not
// for this member. After any other error, the form is shown again, with what was typed.
func alone(err error) bool {
	t := desk.AsError(err).Type
	return t == desk.NotFound || t == desk.Unauthorized || t == desk.Forbidden
}

// see redirects the browser to another page. That page shows the text of toasts with the
// key done, which says what was done; "": no text.
func (c *call) see(path, done string) error {
	if done != "" {
		path = with(path, "done", done)
	}
	c.w.Header().Set("Location", path)
	c.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// maxParts is the greatest number of parts of a page in one request.
const maxParts = 16

// render sends a page, or only those parts of it that the script asks for. Each part is
// in an element whose id is the part's name.
func (c *call) render(status int, name string, v view) error {
	t, err := c.s.template(name)
	if err != nil {
		return err
	}
	if v.Form == nil {
		v.Form = c.form
	}
	p := page{view: v, From: c.from, At: c.partsAt(), Section: cmp.Or(v.In, navigation(c.r.URL.Path)), Sub: section(c.r.URL.Path, 1), Theme: theme(c.r), Keys: keysOn(c.r), Sound: soundOn(c.r), Enter: enterSends(c.r), Toast: toasts[c.query("done")], Files: &c.s.files}
	if c.p.Settings != nil {
		p.Me, p.Team, p.Admin = c.p.Settings.Member(c.p.Actor.ID), c.p.Settings.Name, c.may(desk.Administer)
	}
	if of, ok := desk.ParseID(c.query("of")); ok && (c.query("done") == statusWords[desk.StatusClosed].done || c.query("done") == "sent-and-closed") {
		p.ToastLink = "/inbox/" + of.String()
	}
	parts := strings.Fields(c.r.Header.Get("Parley-Part"))
	if len(parts) == 0 || slices.Contains(parts, "title") || slices.Contains(parts, "waiting") {
		p.Waiting = c.waiting(status)
	}
	for i, part := range parts {
		if t.Lookup("part-"+part) == nil || len(parts) > maxParts || slices.Contains(parts[:i], part) {
			return desk.NotFoundf("this page has no such part")
		}
	}
	b, err := write(t, p, parts, maxPage)
	if errors.Is(err, errLongPage) {
		if err := c.reserve(longPage); err != nil {
			return err
		}
		b, err = write(t, p, parts, longPage)
	}
	if err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	if len(parts) > 0 && status == http.StatusOK {
		sum := sha256.Sum256(b)
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
		c.w.Header().Set("ETag", tag)
		if c.r.Header.Get("If-None-Match") == tag {
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return c.reply(status, b)
}

// write makes a page, or parts of it, of up to most bytes.
func write(t *template.Template, p page, parts []string, most int) ([]byte, error) {
	b := &pageBuffer{most: most}
	if len(parts) == 0 {
		err := t.ExecuteTemplate(b, "base", p)
		return b.made.Bytes(), err
	}
	for _, part := range parts {
		if _, err := fmt.Fprintf(b, "<div id=%q>", part); err != nil {
			return nil, err
		}
		if err := t.ExecuteTemplate(b, "part-"+part, p); err != nil {
			return nil, err
		}
		if _, err := b.Write([]byte("</div>")); err != nil {
			return nil, err
		}
	}
	return b.made.Bytes(), nil
}

// reserve waits for memory for an answer.
func (c *call) reserve(n int) error {
	if c.p.Settings == nil {
		return c.w.ReserveUnchecked(n)
	}
	return c.w.Reserve(n, c.p.Workspace())
}

// waiting returns a number for every page: in how many of the member's own conversations
// a customer waits. It returns "" for none, and if the number can't be read, so that the
// page is still shown.
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

// asks reports whether the script asks for a part.
func (c *call) asks(name string) bool {
	return slices.Contains(strings.Fields(c.r.Header.Get("Parley-Part")), name)
}

// onlyParts reports whether the script asks for some of these parts and for no other
// part.
func (c *call) onlyParts(names ...string) bool {
	parts := strings.Fields(c.r.Header.Get("Parley-Part"))
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(part string) bool { return !slices.Contains(names, part) })
}

// partsAt returns the URL from which the script fetches the parts of a page that is the
// response to a form. This is the URL of the page with the form. For all other pages it
// returns "": their parts are at their own URL.
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

// reply sends an answer that is made. After a form it is sent even if there is no memory for it: it
// may tell what was done.
func (c *call) reply(status int, body []byte) error {
	switch {
	case c.w.Fit(len(body)):
	case c.p.Settings != nil && c.r.Method == http.MethodPost:
		c.w.Room(len(body), c.p.Workspace())
	default:
		if err := c.reserve(len(body)); err != nil {
			return err
		}
	}
	c.w.Release() // the memory of the form, whose texts the page may contain
	c.w.Reply(status, "text/html; charset=utf-8", body)
	return nil
}

//go:embed templates
var templates embed.FS

// partsOf lists the pages whose template consists of several files.
var partsOf = map[string][]string{"conversation": {"composer", "message"}, "notes": {"message"}, "overview": {"chart"}, "send": {"choice"}, "broadcast-edit": {"choice", "week"}, "policy": {"week"}, "broadcast": {"chart"}, "segment": {"conditions"}, "broadcast-audience": {"conditions"}}

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

// navigation returns the section of the navigation that the page at a path is in.
func navigation(path string) string {
	if at := section(path, 0); at != "conflicts" {
		return at
	}
	return "contacts" // its list leads to the conflicts
}

// section returns the part of a path with the index n, or "" if there is none.
func section(path string, n int) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if n < len(parts) {
		return parts[n]
	}
	return ""
}

// theme returns the colours that the member has chosen: light, dark, or "" for those of
// the browser.
func theme(r *http.Request) string {
	if c, err := r.Cookie("theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// enterSends reports whether Enter sends a reply; Shift+Enter then begins a line.
func enterSends(r *http.Request) bool {
	c, err := r.Cookie("enter")
	return err == nil && c.Value == "on"
}

// keysOn reports whether keyboard shortcuts are on.
func keysOn(r *http.Request) bool {
	c, err := r.Cookie("keys")
	return err != nil || c.Value != "off"
}

// soundOn reports whether the browser plays a sound when a customer writes.
func soundOn(r *http.Request) bool {
	c, err := r.Cookie("sound")
	return err == nil && c.Value == "on"
}

func errorHeaders(h http.Header, e *desk.Error) {
	if e.Type == desk.Unavailable || e.Type == desk.RateLimited {
		h.Set("Retry-After", strconv.Itoa(max(e.RetryAfter, 1)))
	}
}
