package console

import (
	"bytes"
	"net/http"
	"net/url"

	"parley/desk"
	"parley/web"
)

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

// A problem is the data of the error page.
type problem struct {
	Status    int
	Heading   string
	Message   string
	Advice    string
	RequestID string
	Admins    []string // the admins to ask, if a permission is missing
	Link      string   // a page that helps; "": none
	Action    string   // what the link says
}

func problemOf(w *web.Response, e *desk.Error) problem {
	v := problem{Status: statusOf(e), Message: message(e), Advice: advise(e), RequestID: w.RequestID()}
	v.Heading = heading(v.Status)
	if e.Type == desk.UndoBlocked || e.Type == desk.UndoExpired {
		v.Heading = "Not undone"
	}
	if doubtOf(e) != nil {
		v.Heading, v.Message, v.Advice = "It may have been sent", sentence(answerLost), "Do not send it again."
		v.Link, v.Action = "/sends?doubt=yes", "See how it ends"
	}
	switch details := e.Details.(type) {
	case desk.Merged:
		v.Heading, v.Message = "Merged", "This contact was merged into another one."
		v.Link, v.Action = "/contacts/"+details.Into.String(), "Open that contact"
	case desk.BlockedUndo:
		v.Link, v.Action = undoPath(details.Merge), "See the later merge"
	}
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

// fail shows the error of a request without a call: its handler has panicked.
func (s *Server) fail(w *web.Response, e *desk.Error) {
	guard(w.Header())
	errorHeaders(w.Header(), e)
	v := problemOf(w, e)
	var b bytes.Buffer
	t, err := s.template("error")
	if err == nil {
		err = t.ExecuteTemplate(&b, "base", page{view: view{Title: v.Heading, Data: v}, Files: &s.files})
	}
	if err != nil { // the template itself has a fault
		w.Reply(v.Status, "text/plain; charset=utf-8", []byte(v.Heading+"\n"))
		return
	}
	w.Reply(v.Status, "text/html; charset=utf-8", b.Bytes())
}

// toSignIn redirects to the sign-in page. After the sign-in, the browser returns to the
// page that was asked for.
func (c *call) toSignIn() error {
	path := "/sign-in"
	if c.r.Method == http.MethodGet && c.r.URL.Path != "/" {
		path += "?next=" + url.QueryEscape(c.r.URL.RequestURI())
	}
	return c.see(path, "")
}
