package console

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
	"parley/store"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/sqlite"
	"parley/store/sqlite/sqlitetest"
	"parley/web"
	"parley/whatsapp"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// A world is the console of a workspace with three members and a sandbox channel. The
// test sets the clock. The ids are numbered.
type world struct {
	t       testing.TB
	app     *app.App
	store   database
	handler http.Handler
	server  *Server
	clock   *atomic.Int64 // in milliseconds; each reading adds one
	ids     *atomic.Uint64
	log     *bytes.Buffer
	ws      desk.ID
	nora    desk.Member // an admin
	mei     desk.Member // an agent
	tomas   desk.Member // an agent
	channel desk.ID

	receiver receiver // of webhooks
}

// A database is a store that also keeps the sandbox's templates.
type database interface {
	store.Store
	sandbox.Library
	io.Closer
}

// overPostgres is the beginning of the names of tests that run on PostgreSQL. All other
// tests run on a SQLite file.
const overPostgres = "TestPostgres/"

// databases are the databases of TestPostgres.
var databases *pgtest.Pool

// newFile makes a file with all tables.
var newFile = sqlitetest.Copies(func(path string) (io.Closer, error) {
	return sqlite.Open(context.Background(), sqlite.Config{Serves: true, Path: path})
})

func openStore(t testing.TB) database {
	t.Helper()
	var s database
	var err error
	if strings.HasPrefix(t.Name(), overPostgres) {
		s, err = postgres.Open(t.Context(), postgres.Config{URL: databases.Database(t), MaxConns: 8})
	} else {
		s, err = sqlite.Open(t.Context(), sqlite.Config{Serves: true, Path: newFile(t)})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// onClock is a store whose transactions see the time of the test's clock.
type onClock struct {
	database
	clock *atomic.Int64
}

func (s onClock) InTx(ctx context.Context, ws desk.ID, do func(store.Tx) error) error {
	return s.database.InTx(ctx, ws, func(tx store.Tx) error { return do(clockTx{tx, s.clock}) })
}

type clockTx struct {
	store.Tx
	clock *atomic.Int64
}

func (tx clockTx) Now() desk.Time { return desk.Time(tx.clock.Load()) }

func newWorld(t testing.TB) *world { return newWorldWith(t, func(*app.Deps) {}) }

// exported stands for the export of a contact, which is the API's.
func exported(w *web.Response, r *http.Request, a *app.App, p desk.Principal, contact desk.ID) error {
	c, err := a.Exports.Still(r.Context(), p, contact)
	if err == nil {
		w.Reply(http.StatusOK, web.JSON, []byte(`{"data":{"contact":{"name":"`+c.Name+`"}}}`))
	}
	return err
}

// newWorldWith makes a world. With change, a test can change the dependencies of the app.
func newWorldWith(t testing.TB, change func(*app.Deps)) *world {
	t.Helper()
	w := &world{t: t, store: openStore(t), clock: new(atomic.Int64), ids: new(atomic.Uint64), log: new(bytes.Buffer)}
	w.store = onClock{w.store, w.clock}
	w.clock.Store(time.Date(2026, 3, 12, 9, 30, 0, 0, time.UTC).UnixMilli())
	now := func() time.Time { return time.UnixMilli(w.clock.Add(1)) }
	log := slog.New(slog.NewTextHandler(w.log, nil))
	deps := app.Deps{
		Store: w.store,
		Providers: map[desk.ChannelKind]provider.Provider{
			desk.SandboxChannel: sandbox.New(sandbox.Config{Library: w.store, Now: now, NewID: w.newID}),
			desk.WhatsAppChannel: whatsapp.New(whatsapp.Config{Now: now, Dial: func(ctx context.Context, address string, _ bool) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}}),
		},
		Answer: func(*desk.SentMessage) []byte { return []byte("{}") },
		Now:    now,
		NewID:  w.newID,
		Random: func(b []byte) { fill(b, w.ids.Add(1)) },
		Secret: bytes.Repeat([]byte{7}, 32),
		Log:    log,
		Poster: &w.receiver,
		Event:  api.Event,

		ReadRow: api.ReadRow,
	}
	change(&deps)
	w.app = app.New(deps)
	handlers := web.New(web.Config{Log: log, NewID: w.newID, Ready: w.app.Ready, Drain: w.app.Drain})
	var err error
	if w.server, err = New(Config{App: w.app, Web: handlers, Fingerprint: "test", Now: now, Export: exported}); err != nil {
		t.Fatal(err)
	}
	handlers.Handle("/", w.server.Unknown, w.server.fail) // as the API does
	w.handler = handlers.Handler()
	made, err := w.app.CreateWorkspace(t.Context(), "Harbour Books", "ES")
	if err != nil {
		t.Fatal(err)
	}
	w.ws = made.ID
	w.nora = w.member("Nora Lindqvist", "nora@harbour.example", "admin")
	w.mei = w.member("Mei Tanaka", "mei@harbour.example", "agent")
	w.tomas = w.member("Tomás Rivera", "tomas@harbour.example", "agent")
	added, _, err := w.app.AddChannel(t.Context(), w.operator(), app.NewChannel{Kind: desk.SandboxChannel, ExternalID: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	w.channel = added.Channel.ID
	return w
}

// fill fills b with bytes that differ from call to call.
func fill(b []byte, n uint64) {
	for i := range b {
		b[i] = byte(n>>(8*(i%8))) ^ byte(i)
	}
}

func (w *world) newID() desk.ID {
	var id desk.ID
	n := w.ids.Add(1)
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint64(id[8:], n|0x80<<56)
	return id
}

func (w *world) operator() desk.Principal {
	w.t.Helper()
	p, err := w.app.Operator(context.Background(), w.ws)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) member(name, email, role string) desk.Member {
	w.t.Helper()
	m, err := w.app.AddMember(context.Background(), w.operator(), name, email, role)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// writes simulates a message from a customer. It returns the conversation.
func (w *world) writes(phone, name, text string) *desk.Conversation {
	w.t.Helper()
	c, err := w.app.ReceiveSimulated(context.Background(), w.operator(), w.channel, phone, name, text)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// A browser is the browser of a member. It runs no script.
type browser struct {
	w      *world
	ws     desk.ID
	member desk.Member
	header http.Header
}

// as returns the browser of a member who is signed in.
func (w *world) as(m desk.Member) *browser {
	return &browser{w: w, ws: w.ws, member: m, header: http.Header{}}
}

// A got is a response.
type got struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

func (b *browser) get(path string) got {
	b.w.t.Helper()
	return b.do(httptest.NewRequest(http.MethodGet, path, nil))
}

// post sends a form with the member's id, as pages do. Pairs are names and values.
func (b *browser) post(path string, pairs ...string) got {
	b.w.t.Helper()
	form := url.Values{"member": {b.member.ID.String()}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r)
}

func (b *browser) do(r *http.Request) got {
	b.w.t.Helper()
	for name, values := range b.header {
		r.Header[name] = values
	}
	b.w.server.signedIn = func(c *call) (desk.Principal, error) {
		return b.w.app.Access.Member(c.r.Context(), b.ws, b.member.ID)
	}
	rec := httptest.NewRecorder()
	b.w.handler.ServeHTTP(rec, r)
	for _, id := range idsTwice(rec.Body.String()) { // checks every page that a test opens
		b.w.t.Errorf("%s %s: the id %q is there twice", r.Method, r.URL, id)
	}
	return got{b.w.t, rec.Code, rec.Header(), rec.Body.String()}
}

var anID = regexp.MustCompile(`<[^>]*?\sid="([^"]*)"`)

// idsTwice lists the ids that a page gives to more than one element.
func idsTwice(page string) (twice []string) {
	seen := map[string]int{}
	for _, found := range anID.FindAllStringSubmatch(page, -1) {
		if seen[found[1]]++; seen[found[1]] == 2 {
			twice = append(twice, found[1])
		}
	}
	return twice
}

// want checks the status, and that the page has each of these texts.
func (g got) want(status int, texts ...string) got {
	g.t.Helper()
	if g.status != status {
		g.t.Fatalf("status %d, want %d: %s", g.status, status, g.body)
	}
	for _, text := range texts {
		if !strings.Contains(g.body, text) {
			g.t.Errorf("no %q in %s", text, g.body)
		}
	}
	return g
}

// lacks checks that the page has none of these texts.
func (g got) lacks(texts ...string) got {
	g.t.Helper()
	for _, text := range texts {
		if strings.Contains(g.body, text) {
			g.t.Errorf("%q in %s", text, g.body)
		}
	}
	return g
}

// sends checks that the response redirects to a path. It returns the page at this path.
func (g got) sends(to string) got {
	g.t.Helper()
	if at := g.header.Get("Location"); g.status != http.StatusSeeOther || at != to {
		g.t.Fatalf("status %d to %q, want 303 to %q: %s", g.status, at, to, g.body)
	}
	return g
}

var assetPath = regexp.MustCompile(`/static/[0-9a-f]+/`)

// golden compares the parts of the page that are not the layout with a file under
// testdata: the title, the tag of the body, the toast and the main part.
func (g got) golden(name string) got {
	g.t.Helper()
	g.same(name, shownOf(g.body))
	return g
}

// goldenLayout compares the layout around the page's main part.
func (g got) goldenLayout(name string) got {
	g.t.Helper()
	g.same(name, mainPart.ReplaceAllLiteralString(g.body, "<main></main>"))
	return g
}

var mainPart = regexp.MustCompile(`(?s)<main.*</main>`)

var shownParts = regexp.MustCompile(`(?s)<title.*?</title>|<body.*?>|<div id="toasts".*?</div>|<main.*</main>`)

// shownOf returns a page without its layout. It returns a part of a page as it is.
func shownOf(page string) string {
	if !strings.HasPrefix(page, "<!doctype") {
		return page
	}
	return strings.Join(shownParts.FindAllString(page, -1), "\n") + "\n"
}

// same compares a text with a file under testdata.
func (g got) same(name, text string) {
	g.t.Helper()
	file := filepath.Join("testdata", name+".html")
	text = assetPath.ReplaceAllString(text, "/static/HASH/")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			g.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			g.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		g.t.Fatalf("%v; go test ./console -update makes it", err)
	}
	if text != string(want) {
		g.t.Errorf("%s differs from the page:\n%s", file, text)
	}
}

// TestLayout checks the layout of pages for an admin, and for an agent, whose pages have
// no settings. TestSignIn_byLink checks it for somebody who is not signed in.
func TestLayout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.as(w.nora).get("/contacts").want(200).goldenLayout("layout/admin")
	w.as(w.mei).get("/contacts").want(200).goldenLayout("layout/agent")
}
