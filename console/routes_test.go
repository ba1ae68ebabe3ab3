package console

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/app"
	"parley/app/merges"
	"parley/desk"
)

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// filled returns the path of a route with ids of existing records. ids has the id of each
// record. The key is the part of the path that stands before the id.
func (w *world) filled(pattern string, ids map[string]string) (method, path string) {
	w.t.Helper()
	method, path, _ = strings.Cut(pattern, " ")
	path = strings.ReplaceAll(path, "{$}", "")
	for {
		at := placeholder.FindStringIndex(path)
		if at == nil {
			return method, path
		}
		id, ok := ids[path[:at[1]]]
		if !ok {
			id, ok = ids[path[at[0]:at[1]]]
		}
		if !ok {
			w.t.Fatalf("%s: no id for %s", pattern, path[:at[1]])
		}
		path = path[:at[0]] + id + path[at[1]:]
	}
}

// records makes one record of each kind. It returns their ids in the form that filled
// needs.
func (w *world) records() map[string]string {
	w.t.Helper()
	ctx, p := w.t.Context(), w.operator()
	w.template(pickup)
	conversation := w.writes("+34 612 34 56 70", "Secret Sofia", "Secret words")
	name, all := "Secret key", "all"
	_, key, err := w.app.CreateKey(ctx, p, app.KeyEdit{Name: &name, Permissions: &all})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := w.app.PutAttribute(ctx, w.operator(), desk.AttributeInput{Key: "plan", Label: desk.Field[string]{Set: true, Value: "Secret plan"}, Type: desk.Field[string]{Set: true, Value: "text"}}); err != nil {
		w.t.Fatal(err)
	}
	url := "https://secret.example/hook"
	webhook, _, err := w.app.Deliver.AddWebhook(ctx, w.operator(), desk.WebhookEdit{URL: &url}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.app.Send(ctx, w.operator(), &desk.SendRequest{
		Key: "k", Phone: desk.Identity{Kind: desk.KindPhone, Value: "34612345670"}, Channel: &w.channel, Template: "pickup_ready", Language: "en",
		Variables: desk.TemplateValues{List: []string{"a", "b", "c"}}, OptInConfirmed: true,
	}, w.newID()); err != nil {
		w.t.Fatal(err)
	}
	attempts, _, err := w.app.Attempts(ctx, p, app.AttemptFilter{}, "", 1)
	if err != nil || len(attempts) != 1 {
		w.t.Fatal(attempts, err)
	}
	operator, err := w.app.Operator(ctx, w.ws)
	if err != nil {
		w.t.Fatal(err)
	}
	note, err := w.app.AddNote(ctx, operator, conversation.ID, "Secret note", desk.Field[desk.Reference]{})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := w.app.PutSnippet(ctx, w.operator(), "secret", "Secret text"); err != nil {
		w.t.Fatal(err)
	}
	w.segment("secret", "Secret segment", `{"field":"name","is":"present"}`)
	imported := w.as(w.nora).importsText("secret.csv", "Name\nSecret name,and more\n").want(303).header.Get("Location")
	id, _ := desk.ParseID(path.Base(imported))
	boss, err := w.app.Access.Member(ctx, w.ws, w.nora.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	_, options, err := w.app.Imports.Upload(ctx, boss, id)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.app.Imports.Start(ctx, boss, id, options, desk.UploadChecking); err != nil {
		w.t.Fatal(err)
	}
	w.works()
	_, other := w.person("34612345671", "Secret Sara", "")
	merged, err := w.app.Merges.Do(ctx, p, merges.Request{Into: conversation.ContactID, From: other})
	if err != nil {
		w.t.Fatal(err)
	}
	conflict := w.conflict("34612345672", "Secret Two", "34612345673", "Secret Three")
	return map[string]string{
		"/broadcasts/{id}":              w.drafted("Secret broadcast", nil, "34612345670").ID.String(),
		"/conflicts/{id}":               conflict.String(),
		"/contacts/merges/{id}":         merged.ID.String(),
		"/contacts/import/{id}":         path.Base(imported),
		"/settings/snippets/{shortcut}": "secret",
		"/settings/segments/{key}":      "secret",
		"/settings/policy/{id}":         w.channel.String(),
		"{note}":                        note.ID.String(),
		"/media/{id}":                   w.uploads("secret.png", "", "Secret words").ID.String(),
		"/sign-in/{token}":              "nonsense",
		"/inbox/{id}":                   conversation.ID.String(),
		"/contacts/{id}":                conversation.ContactID.String(),
		"/sends/{id}":                   attempts[0].ID.String(),
		"/settings/members/{id}":        w.tomas.ID.String(),
		"/settings/keys/{id}":           key.ID.String(),
		"/settings/attributes/{key}":    "plan",
		"/settings/channels/{id}":       w.channel.String(),
		"/settings/webhooks/{id}":       webhook.ID.String(),
		"{delivery}":                    w.newID().String(),
		"/templates/{channel}":          w.channel.String(),
		"{name}":                        "pickup_ready",
		"{language}":                    "en",
	}
}

// TestRoutes requests every route as each kind of caller. A page about a record of
// another workspace is not found.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.records()
	other, err := w.app.CreateWorkspace(t.Context(), "Other Shop", "ES")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := w.app.Operator(t.Context(), other.ID)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := w.app.AddMember(t.Context(), operator, "Otto Other", "otto@other.example", "admin")
	if err != nil {
		t.Fatal(err)
	}
	foreign := w.as(stranger)
	foreign.ws = other.ID
	nobody := w.as(desk.Member{})
	agent, admin := w.as(w.mei), w.as(w.nora)

	call := func(b *browser, method, path string) got {
		if method == http.MethodPost {
			return b.post(path)
		}
		return b.get(path)
	}
	for _, rt := range w.server.routes() {
		method, at := w.filled(rt.pattern, ids)
		if rt.needs == "" {
			if g := call(nobody, method, at); g.status >= http.StatusInternalServerError {
				t.Errorf("%s signed out: %d", rt.pattern, g.status)
			}
			continue
		}
		if g := call(nobody, method, at); g.status != http.StatusSeeOther || !strings.HasPrefix(g.header.Get("Location"), "/sign-in") {
			t.Errorf("%s signed out: %d to %q", rt.pattern, g.status, g.header.Get("Location"))
		}
		if strings.HasSuffix(rt.pattern, "/live") {
			continue // a stream does not end: see TestLive
		}
		may := slices.Contains(desk.RoleAgent.Permissions(), rt.needs)
		if g := call(agent, method, at); (g.status == http.StatusForbidden) == may {
			t.Errorf("%s as an agent: %d, although the permission is %s", rt.pattern, g.status, rt.needs)
		}
		g := call(foreign, method, at)
		if strings.Contains(rt.pattern, "{") && g.status != http.StatusNotFound {
			t.Errorf("%s with ids of another workspace: %d: %s", rt.pattern, g.status, g.body)
		}
		for _, secret := range []string{"Secret", "secret.example", "Harbour Books", "Nora Lindqvist", "612"} {
			if strings.Contains(g.body, secret) {
				t.Errorf("%s shows another workspace %q", rt.pattern, secret)
			}
		}
		if method == http.MethodGet { // POSTs would end the session, or delete records that other routes need
			if g := call(admin, method, at); g.status != http.StatusOK && g.status != http.StatusSeeOther && !strings.Contains(rt.pattern, "{delivery}") {
				t.Errorf("%s as an admin: %d: %s", rt.pattern, g.status, g.body)
			}
		}
	}
	// Each template must be shown at least once: one that no test shows could fail in
	// production.
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if _, shown := w.server.pages.Load(name); !shown && !slices.Contains(shownElsewhere, name) {
			t.Errorf("no route has shown the template %s", name)
		}
	}
}

// shownElsewhere are the templates that TestRoutes does not reach: parts of other
// templates, and pages that other tests show.
var shownElsewhere = []string{"base", "parts", "chart", "choice", "week", "conditions", "composer", "message", "welcome", "choose", "link", "key-made", "member-link", "channel-made", "webhook-made", "delivery", "releases", "unmerged"}

func TestHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.as(w.nora).get("/").sends("/inbox")
	if _, err := w.app.DeleteWorkspace(t.Context(), w.ws, "Harbour Books", func(int) {}); err != nil {
		t.Fatal(err)
	}
	w.as(desk.Member{}).get("/").want(200, "parley workspace create", "parley member add", "parley login-link", `href="/docs"`).golden("welcome")
}

// TestHeaders: pages forbid all features that they do not need, and are not cached.
func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	for _, g := range []got{nora.get("/inbox"), nora.get("/nowhere"), w.as(desk.Member{}).get("/sign-in"), nora.get("/inbox?view=" + strings.Repeat("x", 1000))} {
		h := g.header
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" ||
			h.Get("Cross-Origin-Opener-Policy") != "same-origin" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%d: %v", g.status, h)
		}
	}
	path := assetPath.FindString(nora.get("/inbox").body)
	for _, name := range []string{"style.css", "app.js", "icon.svg"} {
		g := nora.get(path + name)
		if g.status != 200 || g.header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d, %v", name, g.status, g.header)
		}
	}
	for name, most := range map[string]int{"style.css": 48 << 10, "app.js": 32 << 10} {
		n, zipped := len(w.server.files.bodies[name]), len(w.server.files.zipped[name])
		t.Logf("%s has %d bytes, gzipped %d", name, n, zipped)
		if n > most || n == 0 || zipped > 12<<10 {
			t.Errorf("%s has %d bytes, gzipped %d; %d and %d are allowed", name, n, zipped, most, 12<<10)
		}
	}
}

// TestCrossSite: forms of other sites are refused, and so are forms of a page that was
// made for another member.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 70", "Sofia", "Hello")
	path := "/inbox/" + c.ID.String() + "/assign"
	for name, values := range map[string]string{
		"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example",
	} {
		b := w.as(w.nora)
		b.header.Set(name, values)
		b.post(path, "to", w.nora.ID.String()).want(403, "Another site")
	}
	mine := w.as(w.nora)
	form := url.Values{"member": {w.mei.ID.String()}, "to": {w.nora.ID.String()}}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	mine.do(r).want(409, "signed in as somebody else")
	if got, err := w.app.Conversation(t.Context(), w.operator(), c.ID); err != nil || !got.AssignedMember.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}
