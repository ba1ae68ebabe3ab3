package console

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/web"
)

// A visitor is a browser with cookies. It signs in through the pages.
type visitor struct {
	w       *world
	cookies map[string]*http.Cookie
	member  string // the member of the last page
	from    string
}

func (w *world) visitor() *visitor {
	return &visitor{w: w, cookies: map[string]*http.Cookie{}, from: "192.0.2.1:5000"}
}

var memberOf = regexp.MustCompile(`data-member="([^"]+)"`)

func (v *visitor) do(r *http.Request) got {
	v.w.t.Helper()
	r.RemoteAddr = v.from
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	v.w.handler.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		} else {
			v.cookies[c.Name] = c
		}
	}
	if m := memberOf.FindStringSubmatch(rec.Body.String()); m != nil {
		v.member = m[1]
	}
	return got{v.w.t, rec.Code, rec.Header(), rec.Body.String()}
}

func (v *visitor) get(path string) got {
	v.w.t.Helper()
	return v.do(httptest.NewRequest(http.MethodGet, path, nil))
}

func (v *visitor) post(path string, pairs ...string) got {
	v.w.t.Helper()
	form := url.Values{"member": {v.member}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "member" {
			form.Del("member")
		}
		form.Add(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return v.do(r)
}

func (w *world) link(m desk.Member) string {
	w.t.Helper()
	token, _, err := w.app.Access.MakeLink(w.t.Context(), w.operator(), m.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return "/sign-in/" + token
}

// signedIn returns a visitor who has signed in by a link.
func (w *world) signedIn(m desk.Member) *visitor {
	w.t.Helper()
	v := w.visitor()
	v.post(w.link(m)).sends("/inbox")
	v.get("/inbox").want(200)
	return v
}

func (w *world) later(d time.Duration) { w.clock.Add(d.Milliseconds()) }

const words = "correct horse battery"

func TestSignIn_byLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link, v := w.link(w.nora), w.visitor()
	v.get("/inbox?view=open").sends("/sign-in?next=%2Finbox%3Fview%3Dopen")
	for range 3 { // the link is opened several times, as mail scanners do
		v.get(link).want(200, "Sign in to", "Harbour Books", "Nora Lindqvist").lacks("data-member")
		v.do(httptest.NewRequest(http.MethodHead, link, nil)).want(200)
	}
	v.get(link).golden("signin/link")
	if len(v.cookies) != 0 {
		t.Errorf("cookies before the sign-in: %v", v.cookies)
	}
	v.post(link).sends("/inbox")
	c := v.cookies["parley_test"]
	if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "/" || c.MaxAge < 6*24*3600 || c.MaxAge > 7*24*3600+1 {
		t.Errorf("the cookie: %+v", c)
	}
	v.get("/inbox").want(200, "Nora Lindqvist")
	v.get(link).sends("/inbox")
	v.post(link).sends("/inbox")
	w.visitor().get(link).want(404, "no longer works").golden("signin/spent")
	w.visitor().post(link).want(404, "no longer works")
	w.visitor().get("/sign-in/nonsense").want(404, "no longer works")

	// A link of another member, in the same browser.
	v.get(w.link(w.mei)).want(200, "You are signed in here as", "Nora Lindqvist")
	v.post(w.link(w.mei)).sends("/inbox")
	if v.cookies["parley_test"].Value == c.Value {
		t.Error("the session keeps its token when another member signs in")
	}
	v.get("/inbox").want(200, "Mei Tanaka")
	old := w.visitor()
	old.cookies["parley_test"] = c
	old.get("/inbox").sends("/sign-in?next=%2Finbox")

	v.get("/sign-in").sends("/inbox")
	v.post("/sign-out").sends("/sign-in?done=out")
	v.get("/sign-in?done=out").want(200, "You are signed out.").golden("signin/sign-in").goldenLayout("layout/visitor")
	v.get("/inbox").sends("/sign-in?next=%2Finbox")
}

func TestSignIn_byPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	v.get("/me").want(200, "You have none yet", "New password").lacks("Password now").golden("me/first")
	v.post("/me/password", "password", "tiny pw").want(422, "Error: ", "Use at least 15 characters").lacks("tiny pw").golden("me/short")
	elsewhere := w.signedIn(w.nora)
	v.post("/me/password", "password", words).sends("/me?done=password")
	v.get("/me?done=password").want(200, "Your password is set", "Password now")
	elsewhere.get("/inbox").sends("/sign-in?next=%2Finbox")
	v.post("/me/password", "old", "wrong", "password", "another horse battery").want(422, "This is not your password").lacks("another horse")
	v.post("/sign-out").sends("/sign-in?done=out")

	w.later(time.Minute)
	v.post("/sign-in", "email", "nora@harbour.example", "password", "wrong horse battery").
		want(422, "The e-mail or the password is wrong", `value="nora@harbour.example"`).lacks("wrong horse").golden("signin/wrong")
	v.post("/sign-in", "email", "nobody@harbour.example", "password", words).want(422, "The e-mail or the password is wrong")
	v.post("/sign-in", "email", "Nora@Harbour.example", "password", words, "next", "/nonsense").sends("/inbox")
	v.get("/me").want(200, "Nora Lindqvist")
	v.post("/sign-out").sends("/sign-in?done=out")
	v.post("/sign-in", "email", "nora@harbour.example", "password", words, "next", "/inbox?view=open").sends("/inbox?view=open")

	// A member without a password can't set one if the sign-in by the link was too long
	// ago.
	m := w.signedIn(w.mei)
	w.later(11 * time.Minute)
	m.get("/me").want(200, "sign in by a new link").lacks("New password")
	m.post("/me/password", "password", words).want(422, "Sign in by a new link")

	// Too many attempts.
	x := w.visitor()
	var g got
	for range 7 {
		g = x.post("/sign-in", "email", "mei@harbour.example", "password", words)
	}
	g.want(429, "Too many tries: wait ", "ask an admin for a sign-in link")
	if g.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	x.post(w.link(w.mei)).sends("/inbox")
}

// TestSignIn_choice: the same e-mail and password belong to members of several
// workspaces.
func TestSignIn_choice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.app.CreateWorkspace(t.Context(), "Alpha <Books>", "")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := w.app.Operator(t.Context(), other.ID)
	if err != nil {
		t.Fatal(err)
	}
	m, err := w.app.AddMember(t.Context(), operator, "Nora at Alpha", "nora@harbour.example", "agent")
	if err != nil {
		t.Fatal(err)
	}
	for ws, id := range map[desk.ID]desk.ID{w.ws: w.nora.ID, other.ID: m.ID} {
		p, err := w.app.Access.Member(t.Context(), ws, id)
		if err == nil {
			_, err = w.app.Access.SetPassword(t.Context(), p, "", true, words)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	v := w.visitor()
	v.post("/sign-in", "email", "nora@harbour.example", "password", words, "next", "/me").sends("/choose?next=%2Fme")
	v.get("/choose?next=%2Fme").want(200, "Alpha &lt;Books&gt;", "Harbour Books").golden("signin/choose")
	before := v.cookies["parley_test"].Value
	v.post("/choose", "as", other.ID.String()+"/"+w.nora.ID.String()).sends("/choose")
	v.post("/choose", "as", w.ws.String()+"/"+w.nora.ID.String(), "next", "/me").sends("/me")
	if v.cookies["parley_test"].Value == before {
		t.Error("the token stays")
	}
	v.get("/me").want(200, "Harbour Books").lacks("Alpha")
	v.get("/choose").sends("/inbox")
}

func TestSessions_end(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := func(what string, v *visitor) {
		t.Helper()
		if g := v.get("/inbox"); g.status != http.StatusSeeOther || g.header.Get("Location") != "/sign-in?next=%2Finbox" {
			t.Errorf("%s: status %d", what, g.status)
		}
	}
	v := w.signedIn(w.nora)
	w.later(desk.SessionIdle - time.Minute)
	v.get("/inbox").want(200)
	w.later(desk.SessionIdle - time.Minute)
	v.get("/inbox").want(200)
	w.later(desk.SessionIdle + time.Minute)
	out("idle", v)

	v = w.signedIn(w.nora)
	for range 29 {
		w.later(24 * time.Hour)
		v.get("/inbox").want(200)
	}
	w.later(25 * time.Hour)
	out("30 days old", v)

	// The role that the member has now counts.
	v, agent := w.signedIn(w.nora), "agent"
	v.get("/inbox").want(200, `href="/settings"`)
	if _, err := w.app.EditMember(t.Context(), w.operator(), w.nora.ID, app.MemberEdit{Role: &agent}); err != nil {
		t.Fatal(err)
	}
	v.get("/inbox").want(200).lacks(`href="/settings"`)

	v, phone := w.signedIn(w.mei), w.signedIn(w.mei)
	v.post("/me/sign-out").sends("/sign-in?done=everywhere")
	out("everywhere", v)
	out("everywhere, on the phone", phone)
	v = w.signedIn(w.mei)
	if err := w.app.RemoveMember(t.Context(), w.operator(), w.mei.ID); err != nil {
		t.Fatal(err)
	}
	out("removed", v)
	v.get("/sign-in").want(200)
}

// TestSessions_writes: a session is stored again only when its expiry has moved by an
// hour, not with each request.
func TestSessions_writes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	seen := func() desk.Time {
		t.Helper()
		seen, err := w.app.Access.LastSeen(t.Context(), w.operator())
		if err != nil {
			t.Fatal(err)
		}
		return seen[w.nora.ID]
	}
	before := seen()
	for range 10 {
		w.later(5 * time.Minute)
		if g := v.get("/inbox").want(200); g.header.Get("Set-Cookie") != "" {
			t.Error("a cookie without a reason")
		}
	}
	if seen() != before {
		t.Error("the session was stored within the hour")
	}
	w.later(10 * time.Minute)
	if g := v.get("/inbox").want(200); !strings.Contains(g.header.Get("Set-Cookie"), "parley_test=") {
		t.Error("no new cookie after an hour")
	}
	if seen() == before {
		t.Error("the session was not stored after an hour")
	}
}

// TestSignIn_secure: with TLS, another site can't set the cookie.
func TestSignIn_secure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, config := range map[string]Config{
		"a proxy's":    {PublicURL: "https://parley.example.com"},
		"the server's": {TLS: true},
	} {
		handlers := web.New(web.Config{Log: slog.New(slog.NewTextHandler(w.log, nil)), NewID: w.newID, Ready: w.app.Ready, Drain: w.app.Drain})
		config.App, config.Web, config.Fingerprint, config.Now = w.app, handlers, "test", time.Now
		if _, err := New(config); err != nil {
			t.Fatal(err)
		}
		token, _, err := w.app.Access.MakeLink(t.Context(), w.operator(), w.nora.ID)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "https://parley.example.com/sign-in/"+token, nil)
		rec := httptest.NewRecorder()
		handlers.Handler().ServeHTTP(rec, r)
		if c := rec.Header().Get("Set-Cookie"); !strings.HasPrefix(c, "__Host-parley_test=") || !strings.Contains(c, "; Secure") || !strings.Contains(c, "Path=/;") || strings.Contains(c, "Domain") {
			t.Errorf("%s TLS: the cookie: %s", name, c)
		}
	}
}

func TestSignIn_next(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for text, want := range map[string]string{
		"/inbox":                     "/inbox",
		"/inbox?view=open&channel=x": "/inbox?channel=x&view=open",
		"/inbox/abc":                 "/inbox/abc",
		"/me#top":                    "/me",
		"":                           "",
		"/":                          "",
		"//evil.example":             "",
		"///evil.example":            "",
		"/\\evil.example":            "",
		"\\\\evil.example":           "",
		"https://evil.example":       "",
		"https:/inbox":               "",
		"http:inbox":                 "",
		"javascript:alert(1)":        "",
		"data:text/html,x":           "",
		"inbox":                      "",
		"./inbox":                    "",
		"/inbox/":                    "",
		"//contacts/import/x/":       "",
		"/contacts/import/x//":       "",
		"/contacts/import/./x/":      "",
		"/contacts/import/x/?a=b":    "/contacts/import/x/?a=b",
		"/inbox/..//evil.example":    "",
		"/inbox/%2e%2e/me":           "",
		"/inbox/%2f%2fevil.example":  "",
		"/%2fevil.example":           "",
		"/%5cevil.example":           "",
		"/inbox/%5cevil":             "",
		"/inbox\r\nLocation: /x":     "",
		"/inbox\x00":                 "",
		"@evil.example/inbox":        "",
		"//user@evil.example/inbox":  "",
		"/sign-in":                   "",
		"/sign-in/abc":               "",
		"/sign-out":                  "",
		"/live":                      "",
		"/choose":                    "",
		"/static/x/app.js":           "",
		"/v1/contacts":               "",
		"/nowhere":                   "",
	} {
		if got := w.server.safe(text); got != want {
			t.Errorf("next %q leads to %q, want %q", text, got, want)
		}
	}
}

// TestSignIn_crossSite: forms of other sites have no effect.
func TestSignIn_crossSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link, v := w.link(w.mei), w.signedIn(w.nora)
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		for _, path := range []string{link, "/sign-in", "/sign-out", "/me", "/me/sign-out"} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("member="+v.member+"&name=Eve"))
			r.Header.Set(header[0], header[1])
			v.do(r).want(403)
		}
	}
	v.get("/me").want(200, "Nora Lindqvist")
	w.visitor().post(link).sends("/inbox")
}

func TestMe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.mei)
	v.post("/me", "name", " ").want(422, "Error: ", "Give 1 to 255 characters")
	v.post("/me", "name", "Mei T. <b>").sends("/me?done=saved")
	v.get("/me?done=saved").want(200, "Mei T. &lt;b&gt;", "Saved.")
	v.get("/me").want(200, `data-keys="on"`).lacks("data-theme")
	v.post("/me/look", "theme", "dark").sends("/me?done=saved")
	v.get("/me").want(200, `data-keys="off"`, `data-theme="dark"`)
	v.post("/me/look", "theme", "", "keys", "yes").sends("/me?done=saved")
	v.get("/me").want(200, `data-keys="on"`).lacks("data-theme")
	// A tab is still open from an earlier sign-in.
	v.post(w.link(w.nora)).sends("/inbox")
	v.post("/me", "name", "Eve").want(409, "signed in as somebody else")
	v.get("/me").want(200, "Nora Lindqvist")
}

// TestSessions_streams: a stream ends soon after its session was ended.
func TestSessions_streams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	listens := func(v *visitor) *listener {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Parley-Part", "stream")
		for _, c := range v.cookies {
			r.AddCookie(c)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		l := &listener{t: t, got: answer, lines: bufio.NewScanner(answer.Body)}
		if answer.StatusCode == http.StatusOK {
			l.next()
		}
		return l
	}
	v, phone, nora := w.signedIn(w.mei), w.signedIn(w.mei), w.signedIn(w.nora)
	one, two, other := listens(v), listens(phone), listens(nora)
	v.post("/sign-out").sends("/sign-in?done=out")
	one.ends()
	phone.post("/me/sign-out").sends("/sign-in?done=everywhere")
	two.ends()
	if l := listens(phone); l.got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stream without a session: %d", l.got.StatusCode)
	}
	w.writes("+34612000001", "Lucía", "Hola")
	other.until("message:")
}

// TestChoose_ended: a visitor has chosen one of two workspaces. Then, in the other one,
// the member's password is changed or the member's sessions are ended. The visitor can't
// switch to that workspace any more.
func TestChoose_ended(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(w *world, p desk.Principal) error
		ended     bool
	}{
		"nothing": {func(*world, desk.Principal) error { return nil }, false},
		"sessions": {func(w *world, p desk.Principal) error {
			return w.app.Access.EndSessions(w.t.Context(), p, p.Member.ID)
		}, true},
		"password": {func(w *world, p desk.Principal) error {
			_, err := w.app.Access.SetPassword(w.t.Context(), p, "", true, "another horse battery")
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			other, m := w.twice(t)
			v := w.visitor()
			v.post("/sign-in", "email", "nora@harbour.example", "password", words).sends("/choose?next=")
			v.get("/choose").want(200, "Harbour Books", other.Name) // this page's form has the member's id
			p, err := w.app.Access.Member(t.Context(), other.ID, m.ID)
			if err == nil {
				err = c.meanwhile(w, p)
			}
			if err != nil {
				t.Fatal(err)
			}
			answer := v.post("/choose", "as", other.ID.String()+"/"+m.ID.String())
			if !c.ended {
				answer.sends("/inbox")
				v.get("/inbox").want(200, other.Name)
				return
			}
			answer.sends("/choose")
			v.get("/choose").sends("/inbox") // there is nothing left to choose
			v.get("/inbox").want(200, "Harbour Books").lacks(other.Name)
		})
	}
}

// TestChoose_older: a session of an older release has no proof for each member. The
// visitor can switch to a member only if the member's sessions were not ended after this
// session began.
func TestChoose_older(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, m := w.twice(t)
	nora, err := w.app.Access.Member(t.Context(), w.ws, w.nora.ID)
	if err != nil {
		t.Fatal(err)
	}
	they, err := w.app.Access.Member(t.Context(), other.ID, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("token"))
	s := w.app.Access.NewSession(nora)
	s.Data, s.ExpiresAt = fmt.Appendf(nil, `{"may_be":"%s %s"}`, refOf(nora), refOf(they)), s.BegunAt+3_600_000
	if err := w.app.Access.PutSession(t.Context(), base64.RawURLEncoding.EncodeToString(sum[:]), *s); err != nil {
		t.Fatal(err)
	}
	v := w.visitor()
	v.cookies["parley_test"] = &http.Cookie{Name: "parley_test", Value: "token"}
	v.get("/choose").want(200, "Harbour Books", other.Name)
	if err := w.app.Access.EndSessions(t.Context(), they, m.ID); err != nil {
		t.Fatal(err)
	}
	v.post("/choose", "as", refOf(they)).sends("/choose")
	v.get("/choose").sends("/inbox")
	v.get("/inbox").want(200, "Harbour Books").lacks(other.Name)
}

// TestSessions_tokens: the database has only hashes of the browser's tokens, and a hash
// does not open a session.
func TestSessions_tokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	token := v.cookies["parley_test"].Value
	sum := sha256.Sum256([]byte(token))
	hash := base64.RawURLEncoding.EncodeToString(sum[:])
	for key, stored := range map[string]bool{token: false, hash: true} {
		if s, err := w.app.Access.Session(t.Context(), key); err != nil || (s != nil) != stored {
			t.Errorf("stored by %q: %+v, %v", key, s, err)
		}
	}
	thief := w.visitor()
	thief.cookies["parley_test"] = &http.Cookie{Name: "parley_test", Value: hash}
	thief.get("/inbox").sends("/sign-in?next=%2Finbox")
	v.get("/inbox").want(200, "Nora Lindqvist")
}

// twice adds a workspace in which an admin has Nora's e-mail and password.
func (w *world) twice(t *testing.T) (other desk.Workspace, m desk.Member) {
	t.Helper()
	other, err := w.app.CreateWorkspace(t.Context(), "Zeta", "ES")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := w.app.Operator(t.Context(), other.ID)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = w.app.AddMember(t.Context(), operator, "Nora at Zeta", "nora@harbour.example", "admin"); err != nil {
		t.Fatal(err)
	}
	for ws, id := range map[desk.ID]desk.ID{w.ws: w.nora.ID, other.ID: m.ID} {
		p, err := w.app.Access.Member(t.Context(), ws, id)
		if err == nil {
			_, err = w.app.Access.SetPassword(t.Context(), p, "", true, words)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return other, m
}

// TestSignIn_longTexts: some texts are too long to be real. The page of a refused sign-in
// does not repeat them. Otherwise anybody could make the server produce many large pages.
func TestSignIn_longTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	quotes := strings.Repeat(`"`, 5_000) // each quote takes three bytes in the form
	for email, next := range map[string]string{quotes + "@harbour.example": "/inbox", "nobody@harbour.example": "/inbox?q=" + quotes} {
		page := w.visitor().post("/sign-in", "email", email, "password", "x", "next", next)
		if page.want(422, "e-mail or the password is wrong"); strings.Contains(page.body, "&#34;&#34;") || strings.Contains(page.body, "%22%22") {
			t.Errorf("the page repeats a long text: it has %d bytes", len(page.body))
		}
	}
	w.visitor().post("/sign-in", "email", "nobody@harbour.example", "password", "x", "next", "/inbox?q=a").want(422, "nobody@harbour.example", "/inbox?q=a")
}

// TestSignIn_memory: a form from somebody who is not signed in takes nothing of the
// memory that providers' callbacks share, however slowly the form arrives. A longer form
// is refused.
func TestSignIn_memory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.web.Handle("GET /all", func(r *web.Response, _ *http.Request) error { return r.ReserveUnchecked(64 << 20) }, func(r *web.Response, e *desk.Error) { r.WriteHeader(web.Status(e.Type)) })
	look := func() {
		if t.Failed() {
			return
		}
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/all", nil))
		if rec.Code != 200 {
			t.Error("a form that is on its way has some of the memory of callbacks")
		}
	}
	for _, path := range []string{"/sign-in", "/sign-in/no-such-link", "/no-such-page"} {
		for n, status := range map[int]int{maxOpenForm: 0, maxOpenForm + 1: 413, 40_000: 413} {
			for _, length := range []int64{int64(n), -1} {
				r := httptest.NewRequest(http.MethodPost, path, &slowly{look, strings.NewReader("email=" + strings.Repeat("x", n-len("email=")))})
				r.ContentLength = length
				rec := httptest.NewRecorder()
				w.handler.ServeHTTP(rec, r)
				if rec.Code != status && (status != 0 || rec.Code == 413) {
					t.Errorf("POST %s with %d bytes answers %d", path, n, rec.Code)
				}
				if status == 413 && !strings.Contains(rec.Body.String(), "16 KiB") {
					t.Errorf("POST %s does not say how long a form may be", path)
				}
			}
		}
	}
}

// A slowly is a reader that returns at most 1 KiB at a time. Before each read, it calls
// look.
type slowly struct {
	look func()
	from io.Reader
}

func (s *slowly) Read(b []byte) (int, error) {
	s.look()
	return s.from.Read(b[:min(len(b), 1<<10)])
}
