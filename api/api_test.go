package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/api"
	"parley/api/apitest"
	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
	"parley/store"
	"parley/store/postgres"
	"parley/store/sqlite"
	"parley/store/sqlite/sqlitetest"
	"parley/web"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// description is openapi.json. Every request and answer of every test is compared with it.
var description = sync.OnceValues(func() (*apitest.Document, error) {
	doc, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	return apitest.Load(doc)
})

// A server is a real app on a real database. A test sets its clock. Its ids are consecutive
// numbers.
type server struct {
	t       testing.TB
	app     *app.App
	store   database
	handler http.Handler
	web     *web.Server
	clock   *atomic.Int64 // milliseconds; each reading of the clock adds one
	ids     *atomic.Uint64
	log     *bytes.Buffer
	ws      desk.ID
	key     string
	members []desk.Member
	dry     bool // whether a dry run is made before every write that has one: see TestDryRun
	dumps   dumps
}

func newServer(t *testing.T) *server { return newServerWith(t, api.Config{}) }

// newServerWith builds a server. A test can change the parts of which the server and its
// app are built.
func newServerWith(t testing.TB, c api.Config, changes ...func(*app.Deps)) *server {
	t.Helper()
	return newServerOn(t, openStore(t, nil), new(atomic.Int64), c, changes...)
}

// newServerOn builds a server on a store. The store may use the same clock as the server.
func newServerOn(t testing.TB, store database, clock *atomic.Int64, c api.Config, changes ...func(*app.Deps)) *server {
	t.Helper()
	s := &server{t: t, store: store, clock: clock, ids: new(atomic.Uint64), log: new(bytes.Buffer), dry: strings.Contains(t.Name(), underDryRun)}
	s.clock.Store(time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC).UnixMilli())
	now := func() time.Time { return time.UnixMilli(s.clock.Add(1)) }
	log := slog.New(slog.NewTextHandler(&lockedWriter{w: s.log}, nil))
	deps := app.Deps{
		Store:     store,
		Providers: map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: sandbox.New(sandbox.Config{Library: store, Now: now, NewID: s.newID})},
		Answer:    api.SendAnswer,
		Now:       now,
		NewID:     s.newID,
		Random:    func(b []byte) { fill(b, s.ids.Add(1)) },
		Secret:    bytes.Repeat([]byte{7}, 32),
		Log:       log,
	}
	for _, change := range changes {
		change(&deps)
	}
	s.app = app.New(deps)
	c.App = s.app
	c.Web = web.New(web.Config{Log: log, NewID: s.newID, Ready: s.app.Ready, Drain: s.app.Drain})
	api.New(c)
	s.web, s.handler = c.Web, c.Web.Handler()
	s.ws, s.key = s.workspace("Acme", "US")
	for _, name := range []string{"Ada Lovelace", "Grace Hopper", "Alan Turing"} {
		m, err := s.app.AddMember(t.Context(), s.operator(s.ws), name, strings.Fields(name)[0]+"@example.com", "agent")
		if err != nil {
			t.Fatal(err)
		}
		s.members = append(s.members, m)
	}
	return s
}

// urls has the URLs of the PostgreSQL stores.
var urls sync.Map

// A database is a store that also keeps the sandbox's templates.
type database interface {
	store.Store
	sandbox.Library
	io.Closer
}

// An onClock is a PostgreSQL store whose transactions have the time that a test has set.
type onClock struct {
	database
	now func() time.Time
}

func (s onClock) InTx(ctx context.Context, ws desk.ID, do func(store.Tx) error) error {
	return s.database.InTx(ctx, ws, func(tx store.Tx) error { return do(clockTx{tx, s.now}) })
}

func (s onClock) Clock(ctx context.Context) (desk.Time, int64, error) {
	_, hour, err := s.database.Clock(ctx)
	return desk.TimeOf(s.now()), hour, err
}

type clockTx struct {
	store.Tx
	now func() time.Time
}

func (tx clockTx) Now() desk.Time { return desk.TimeOf(tx.now()) }

// newFile makes a file with all tables.
var newFile = sqlitetest.Copies(func(path string) (io.Closer, error) {
	return sqlite.Open(context.Background(), sqlite.Config{Serves: true, Path: path})
})

// openStore opens an empty database of the kind that the test runs over. now is its clock;
// nil means the machine's clock.
func openStore(t testing.TB, now func() time.Time) database {
	t.Helper()
	var store database
	var err error
	if strings.HasPrefix(t.Name(), overPostgres) {
		url := databases.Database(t)
		store, err = postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 8})
		urls.Store(store, url)
	} else {
		store, err = sqlite.Open(t.Context(), sqlite.Config{Serves: true, Path: newFile(t), Now: now})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if now != nil && strings.HasPrefix(t.Name(), overPostgres) {
		return onClock{store, now}
	}
	return store
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// newID returns consecutive ids, in the form of a UUIDv7.
func (s *server) newID() (id desk.ID) {
	binary.BigEndian.PutUint64(id[8:], s.ids.Add(1))
	id[6], id[8] = 0x70, id[8]&0x3f|0x80
	return id
}

func fill(b []byte, seed uint64) {
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
}

// workspace makes a workspace and a key that may do everything.
func (s *server) workspace(name, country string) (desk.ID, string) {
	s.t.Helper()
	w, err := s.app.CreateWorkspace(s.t.Context(), name, country)
	if err != nil {
		s.t.Fatal(err)
	}
	return w.ID, s.newKey(w.ID, "all")
}

// operator returns the principal of the command line in a workspace.
func (s *server) operator(ws desk.ID) desk.Principal {
	s.t.Helper()
	p, err := s.app.Operator(s.t.Context(), ws)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// addSandbox adds a sandbox channel without templates.
func (s *server) addSandbox(externalID string) desk.ID {
	s.t.Helper()
	at, _, err := s.app.AddChannel(s.t.Context(), s.operator(s.ws), app.NewChannel{Kind: desk.SandboxChannel, ExternalID: externalID})
	if err != nil {
		s.t.Fatal(err)
	}
	return at.Channel.ID
}

func (s *server) newKey(ws desk.ID, permissions string) string {
	s.t.Helper()
	name := "test"
	key, _, err := s.app.CreateKey(s.t.Context(), s.operator(ws), app.KeyEdit{Name: &name, Permissions: &permissions})
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// A reply is an answer as it came.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// do sends "METHOD /path" with the server's own key. It compares the request and the answer
// with the API description.
func (s *server) do(call, body string) reply { return s.as(s.key, call, body) }

func (s *server) as(key, call, body string) reply {
	s.t.Helper()
	method, target, _ := strings.Cut(call, " ")
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return s.send(method, target, header, body)
}

func (s *server) send(method, target string, header http.Header, body string) reply {
	s.t.Helper()
	if !s.dry || !canBeTried(method, target, body) {
		return s.exchange(method, target, header, body)
	}
	trial := s.try(method, target, header, body)
	real := s.exchange(method, target, header, body)
	trial.compare(s.t, method+" "+target+" "+body, real)
	return real
}

func (s *server) exchange(method, target string, header http.Header, body string) reply {
	s.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body)).WithContext(context.WithoutCancel(s.t.Context()))
	r.Header = header
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	answer := reply{w.Code, w.Header(), w.Body.Bytes()}
	if method == http.MethodHead { // which net/http does
		answer.body = nil
	}
	doc, err := description()
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.HasPrefix(r.URL.Path, "/v1") {
		if err := doc.Check(r, []byte(body), answer.status, answer.header, answer.body); err != nil {
			s.t.Errorf("%s %s: outside the API description: %v\nrequest: %.300s\nanswer: %d %.600s", method, target, err, body, w.Code, answer.body)
		}
	}
	return answer
}

// want makes a call, and returns the body of the answer. The test fails unless the answer
// has the given status.
func (s *server) want(status int, call, body string) []byte {
	s.t.Helper()
	r := s.do(call, body)
	if r.status != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", call, body, r.status, status, r.body)
	}
	return r.body
}

// contact decodes the contact under data.
func contact(t testing.TB, body []byte) (c struct {
	ID         string                            `json:"id"`
	ExternalID *string                           `json:"external_id"`
	Name       *string                           `json:"name"`
	Email      *string                           `json:"email"`
	Phone      *string                           `json:"phone"`
	Note       *string                           `json:"note"`
	Attributes map[string]json.RawMessage        `json:"attributes"`
	Owner      *struct{ MemberID, Email string } `json:"owner"`
	CreatedAt  string                            `json:"created_at"`
	UpdatedAt  string                            `json:"updated_at"`
}) {
	t.Helper()
	if err := json.Unmarshal(body, &struct{ Data any }{&c}); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return c
}

// errorType is the type of an error body, or "".
func errorType(body []byte) string {
	var e struct{ Error struct{ Type string } }
	_ = json.Unmarshal(body, &e)
	return e.Error.Type
}

// golden compares an answer with testdata/NAME.golden, which is the same for both stores.
func golden(t *testing.T, r reply) {
	t.Helper()
	if strings.Contains(t.Name(), underDryRun) {
		return // the dry runs have read the clock, so the times differ
	}
	got := fmt.Appendf(nil, "%d\n", r.status)
	for _, name := range []string{"Allow", "Content-Type", "Idempotent-Replayed", "Retry-After", "Www-Authenticate"} {
		for _, v := range r.header[name] {
			got = fmt.Appendf(got, "%s: %s\n", name, v)
		}
	}
	got = append(append(append(got, '\n'), r.body...), '\n')
	path := filepath.Join("testdata", strings.TrimPrefix(t.Name(), overPostgres)+".golden")
	if *update && !strings.HasPrefix(t.Name(), overPostgres) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./api -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("answer differs from %s:\n%s\nwant:\n%s", path, got, want)
	}
}
