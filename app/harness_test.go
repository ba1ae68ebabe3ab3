package app_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/sandbox"
	"parley/store/sqlite"
)

// A world is an App over a real SQLite file, in a workspace with two members, one
// channel and a few templates. Only what lies outside is played: the providers, the
// clocks, and a database that can go away.
type world struct {
	*app.App
	t        *testing.T
	file     *sqlite.Store
	store    *faultyStore
	path     string
	provider *provider
	meta     *meta
	secret   []byte // the installation's
	clock    *clock
	log      *logbook
	ws       desk.ID
	key      string
	keyID    desk.ID
	channel  desk.ID
	ada      desk.Member
	grace    desk.Member
	run      func() // starts Run, unless it runs
	running  bool
	stop     func() // ends Run and waits for it
}

func newWorld(t *testing.T) *world { return newWorldWith(t, app.Bounds{}) }

func newWorldWith(t *testing.T, b app.Bounds) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.db")
	file, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	w := &world{t: t, file: file, path: path, secret: bytes.Repeat([]byte{7}, 32), clock: new(clock), log: new(logbook), meta: newMeta()}
	t.Cleanup(func() { // the numbers and names that tests use, and what they say
		for _, private := range []string{"9053211", "98765432", "example.com", "Hello", "Ann", "TR.9", "s3cret"} {
			for _, line := range w.log.find(private) {
				t.Errorf("the log speaks of people: %s", line)
			}
		}
	})
	w.provider = newProvider(sandbox.New(sandbox.Config{Library: file, Now: w.clock.now, NewID: w.clock.newID, Pace: time.Millisecond}), w.clock.newID)
	w.start(b)

	workspace, err := w.CreateWorkspace(t.Context(), "Acme", "TR")
	must(t, err)
	w.ws = workspace.ID
	w.ada, err = w.AddMember(t.Context(), w.ws, "Ada Lovelace", "Ada@example.com", "agent")
	must(t, err)
	w.grace, err = w.AddMember(t.Context(), w.ws, "Grace Hopper", "grace@example.com", "agent")
	must(t, err)
	w.key, w.keyID = w.newKey("all")
	w.channel = w.addChannel()
	return w
}

// start makes the world's App: the first one, or, as after a restart, the next.
func (w *world) start(b app.Bounds) {
	w.store = &faultyStore{Store: w.file}
	w.App = w.node(w.store, b)
	ctx, cancel := context.WithCancel(context.Background())
	a, ended := w.App, make(chan struct{})
	var once sync.Once
	w.running = false
	w.stop = func() {
		once.Do(func() {
			cancel()
			if w.running {
				<-ended
			} else {
				a.Run(ctx) // it ends at once, and with it what is repeated until it is stored
			}
		})
	}
	w.t.Cleanup(w.stop)
	w.run = func() {
		if !w.running {
			w.running = true
			go func() {
				defer close(ended)
				a.Run(ctx)
			}()
		}
	}
}

// node is one more App over the same file, as another process has it.
func (w *world) node(s app.Store, b app.Bounds) *app.App {
	return app.New(app.Deps{
		Store: s, Providers: map[desk.ChannelKind]app.Provider{desk.SandboxChannel: w.provider, desk.WhatsAppChannel: w.meta},
		Answer: func(m *desk.SentMessage) []byte {
			body, err := json.Marshal(m)
			if err != nil {
				panic(err)
			}
			return body
		},
		Now: w.clock.now, NewID: w.clock.newID, Random: w.clock.random, Secret: w.secret,
		Log: slog.New(w.log), Bounds: b,
	})
}

func (w *world) newKey(permissions string) (string, desk.ID) {
	w.t.Helper()
	name := "test"
	text, k, err := w.CreateKey(w.t.Context(), w.ws, app.KeyEdit{Name: &name, Permissions: &permissions})
	must(w.t, err)
	return text, k.ID
}

// addChannel adds a channel with the provider's library.
func (w *world) addChannel() desk.ID {
	w.t.Helper()
	c, err := w.AddSandbox(w.t.Context(), w.ws, "")
	must(w.t, err)
	_, _, err = w.SyncChannel(w.t.Context(), c.ID)
	must(w.t, err)
	return c.ID
}

// caller is who calls with the world's key, now.
func (w *world) caller() app.Principal {
	w.t.Helper()
	p, err := w.Authenticate(context.Background(), w.key)
	must(w.t, err)
	return p
}

// A clock is the real one, set ahead. Its ids are of its time.
type clock struct{ ahead, made atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// newID makes an id as UUIDv7 is: milliseconds, then what grows.
func (c *clock) newID() (id desk.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(desk.TimeOf(c.now()))<<16)
	binary.BigEndian.PutUint64(id[8:], uint64(c.made.Add(1)))
	id[6], id[8] = 0x70, 0x80
	return id
}

func (c *clock) random(b []byte) {
	for i := range b {
		b[i] = byte(c.made.Add(1) * 167)
	}
}

// A faultyStore is a Store whose connection to the database can be lost, and whose
// database can have another clock. It holds callers to the promise that a closure may
// run twice, by running each one twice.
type faultyStore struct {
	app.Store
	mu   sync.Mutex
	n    int // transactions begun since something was last set
	at   int // the one in which do is called, when
	when moment
	do   func() error // its error is the transaction's outcome
	drop func(app.Notice) error
	put  func(*desk.Message) error
	ends func(moment) error // of each transaction, at commit and answer
	pace func([]app.Bucket, time.Duration) (time.Duration, bool, error)

	down    atomic.Bool  // no transaction can begin
	blind   atomic.Bool  // no attempt can be looked up
	once    atomic.Bool  // closures run once
	ahead   atomic.Int64 // of the database's clock, in milliseconds
	claimed atomic.Int64 // look-ups of keys
	looked  atomic.Int64 // look-ups of attempts
	listed  atomic.Int64 // look-ups of channels of a kind
}

// lost is a connection that broke.
func lost() error {
	return &desk.Error{Type: desk.Unavailable, Message: "the connection was lost", Err: app.ErrCommitLost}
}

// A moment is one in the life of a transaction.
type moment int

const (
	begin  moment = iota // nothing has happened yet
	commit               // the closure has run, and an error undoes what it did
	answer               // all is stored, and the caller does not know yet
)

// in has the n-th transaction from now on call do at some moment.
func (s *faultyStore) in(n int, when moment, do func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.at, s.when, s.do = 0, n, when, do
}

// next begins a transaction and returns what it calls at each moment.
func (s *faultyStore) next() func(moment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.n != s.at {
		return func(moment) error { return nil }
	}
	when, do := s.when, s.do
	return func(now moment) error {
		if now != when {
			return nil
		}
		return do()
	}
}

func (s *faultyStore) ending(when moment) error {
	if s.ends == nil {
		return nil
	}
	return s.ends(when)
}

var errAgain = errors.New("run it again")

func (s *faultyStore) InTx(ctx context.Context, ws desk.ID, f func(app.Tx) error) error {
	if s.down.Load() {
		return lost()
	}
	reach := s.next()
	if err := reach(begin); err != nil {
		return err
	}
	first := !s.once.Load()
	for {
		err := s.Store.InTx(ctx, ws, func(tx app.Tx) error {
			err := f(&faultyTx{tx, s})
			switch {
			case err != nil:
				return err
			case first:
				return errAgain
			}
			return cmp.Or(reach(commit), s.ending(commit))
		})
		if !errors.Is(err, errAgain) {
			if err == nil {
				err = cmp.Or(reach(answer), s.ending(answer))
			}
			return err
		}
		first = false
	}
}

func (s *faultyStore) AttemptOfKey(ctx context.Context, ws desk.ID, key string) (*desk.Attempt, error) {
	defer s.claimed.Add(1)
	return s.Store.AttemptOfKey(ctx, ws, key)
}

func (s *faultyStore) Attempt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error) {
	defer s.looked.Add(1)
	if s.blind.Load() {
		return nil, lost()
	}
	return s.Store.Attempt(ctx, ws, id)
}

func (s *faultyStore) Lapsed(ctx context.Context, margin desk.Time, limit int) ([]app.LapsedAttempt, error) {
	return s.Store.Lapsed(ctx, margin-desk.Time(s.ahead.Load()), limit)
}

func (s *faultyStore) ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) ([]app.ChannelRef, error) {
	defer s.listed.Add(1)
	if s.down.Load() {
		return nil, lost()
	}
	return s.Store.ChannelsOfKind(ctx, kind)
}

func (s *faultyStore) Pace(ctx context.Context, ws desk.ID, buckets []app.Bucket, most time.Duration) (time.Duration, bool, error) {
	if s.pace != nil {
		return s.pace(buckets, most)
	}
	return s.Store.Pace(ctx, ws, buckets, most)
}

type faultyTx struct {
	app.Tx
	s *faultyStore
}

func (tx *faultyTx) Now() desk.Time { return tx.Tx.Now() + desk.Time(tx.s.ahead.Load()) }

func (tx *faultyTx) TakeNotices(list []app.Notice) ([]app.Notice, error) {
	for _, n := range list {
		if tx.s.drop != nil {
			if err := tx.s.drop(n); err != nil {
				return nil, err
			}
		}
	}
	return tx.Tx.TakeNotices(list)
}

func (tx *faultyTx) PutMessage(m *desk.Message) error {
	if tx.s.put != nil {
		if err := tx.s.put(m); err != nil {
			return err
		}
	}
	return tx.Tx.PutMessage(m)
}

// A provider plays a script, and remembers what it was asked.
type provider struct {
	*sandbox.Sandbox
	mu      sync.Mutex
	script  outcome
	calls   []app.Dispatch
	library []desk.TemplateSource // nil: the sandbox's own
	newID   func() desk.ID
}

// An outcome is what a provider does with a message.
type outcome func(context.Context, app.Dispatch) (app.Receipt, error)

func newProvider(s *sandbox.Sandbox, newID func() desk.ID) *provider {
	return &provider{Sandbox: s, newID: newID, script: takes, library: templates()}
}

func templates() []desk.TemplateSource {
	return []desk.TemplateSource{
		template("hello", "en", "UTILITY", "", "Hello there!"),
		template("hello", "tr", "UTILITY", "", "Merhaba!"),
		template("order_update", "en_US", "UTILITY", "Order {{1}}", "Hi {{1}}, order {{2}} ships today."),
		template("sale", "en", "MARKETING", "", "Everything must go!"),
	}
}

// template is an approved one, in the provider's form.
func template(name, language, category, header, body string) desk.TemplateSource {
	components := []map[string]string{{"type": "BODY", "text": body}}
	if header != "" {
		components = append(components, map[string]string{"type": "HEADER", "format": "TEXT", "text": header})
	}
	source, err := json.Marshal(map[string]any{
		"name": name, "language": language, "status": "APPROVED", "category": category, "components": components,
	})
	if err != nil {
		panic(err)
	}
	return desk.TemplateSource{Name: name, Language: language, Source: string(source)}
}

func (p *provider) plays(o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = o
}

func (p *provider) Send(ctx context.Context, d app.Dispatch) (app.Receipt, error) {
	p.mu.Lock()
	p.calls = append(p.calls, d)
	script := p.script
	p.mu.Unlock()
	return script(ctx, d)
}

func (p *provider) sent() []app.Dispatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

func (p *provider) Templates(ctx context.Context, at app.Access) ([]desk.TemplateSource, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.library == nil {
		return p.Sandbox.Templates(ctx, at)
	}
	return p.library, nil
}

// Bodies of notices that are no list of statuses.
const (
	gibberish = "gibberish"
	poison    = "poison"
	endless   = "endless" // leaves another one, due at once
)

// Read understands a list of statuses, in the place of the sandbox's stories too.
func (p *provider) Read(n app.Notice) (told []app.Happening, rest *app.Notice, err error) {
	switch string(n.Body) {
	case gibberish:
		return told, nil, errors.New("a notice in no language")
	case poison:
		panic("a bug in reading")
	case endless:
		return told, &app.Notice{Channel: n.Channel, ID: p.newID(), Due: n.Due, Body: n.Body}, nil
	}
	if bytes.HasPrefix(n.Body, []byte("{")) {
		return p.Sandbox.Read(n)
	}
	var statuses []desk.StatusNotice
	err = json.Unmarshal(n.Body, &statuses)
	for i := range statuses {
		told = append(told, app.Happening{Status: &statuses[i]})
	}
	return told, nil, err
}

// A meta plays WhatsApp. Its webhooks are lists of happenings, in JSON, and their
// signature is a hash of the app secret and the body.
type meta struct {
	mu       sync.Mutex
	library  []desk.TemplateSource
	away     error // the templates can't be had
	gone     error // nothing can be asked
	deaf     error // nothing can be subscribed to
	heals    error // nothing can be asked once it is subscribed to
	healed   bool  // a subscription mends what blocks
	problems []app.Problem
	asked    []app.Access // of Subscribe and Check
	fetched  map[desk.ID]int
	receipt  app.Receipt // of all messages, but for the id
	refusal  *desk.Refusal

	meanwhile func(app.Dispatch) // while a message is on its way
	fetching  func()             // while a library is
	calls     []app.Dispatch
	sick      bool // reading panics
}

func newMeta() *meta { return &meta{library: templates(), fetched: map[desk.ID]int{}} }

// change changes what it plays.
func (m *meta) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *meta) Send(_ context.Context, d app.Dispatch) (app.Receipt, error) {
	m.mu.Lock()
	meanwhile := m.meanwhile
	m.mu.Unlock()
	if meanwhile != nil {
		meanwhile(d)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, d)
	if m.refusal != nil {
		return app.Receipt{}, m.refusal
	}
	r := m.receipt
	r.ExternalID = messageID(d.Attempt)
	return r, nil
}

func (m *meta) Templates(_ context.Context, at app.Access) ([]desk.TemplateSource, error) {
	m.mu.Lock()
	m.fetched[at.Channel.ID]++
	library, away, fetching := m.library, m.away, m.fetching
	m.mu.Unlock()
	if fetching != nil {
		fetching()
	}
	return library, away
}

func (m *meta) times(channel desk.ID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fetched[channel]
}

func (m *meta) Check(_ context.Context, at app.Access) ([]app.Problem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, at)
	return m.problems, m.gone
}

func (m *meta) Subscribe(_ context.Context, at app.Access) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, at)
	if m.healed {
		m.problems = slices.DeleteFunc(m.problems, func(p app.Problem) bool { return p.Blocking })
	}
	m.gone = m.heals
	return m.deaf
}

func (m *meta) Read(n app.Notice) (told []app.Happening, rest *app.Notice, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sick {
		panic("a bug in reading")
	}
	err = json.Unmarshal(n.Body, &told)
	return told, nil, err
}

func (m *meta) Signed(at app.Access, header string, body []byte) bool {
	signed := false
	for _, s := range []app.Secret{at.Secrets.AppSecret, at.Secrets.OldAppSecret} {
		signed = signed || s != (app.Secret{}) && header == sign(s.Reveal(), body)
	}
	return signed
}

func sign(secret string, body []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(secret), body...)))
}

func (m *meta) People(body []byte) (list []string) {
	var told []app.Happening
	if err := json.Unmarshal(body, &told); err != nil {
		return nil
	}
	for _, h := range told {
		if h.Message != nil {
			list = append(list, h.Message.Number, h.Message.UserID)
		}
		if h.Wish != nil {
			list = append(list, h.Wish.Number, h.Wish.UserID)
		}
	}
	return slices.DeleteFunc(list, func(handle string) bool { return handle == "" })
}

// What the tests' WhatsApp channels are connected with.
const (
	metaNumber, metaBusiness = "200300400500600", "100200300400500"
	appSecret, verifyToken   = "s3cret-app", "s3cret-verify"
)

func account(number, business string) app.WhatsAppAccount {
	return app.WhatsAppAccount{
		PhoneNumberID: number, Account: desk.Account{BusinessID: business, PerSecond: 1000},
		Secrets: app.Secrets{Token: app.NewSecret("s3cret-token"), AppSecret: app.NewSecret(appSecret), VerifyToken: app.NewSecret(verifyToken)},
	}
}

// connect adds a WhatsApp channel.
func (w *world) connect(number, business string) desk.ID {
	w.t.Helper()
	return w.connectAs(account(number, business))
}

func (w *world) connectAs(a app.WhatsAppAccount) desk.ID {
	w.t.Helper()
	c, _, _, err := w.AddWhatsApp(context.Background(), w.ws, a)
	must(w.t, err)
	return c.ID
}

// another is a workspace beside the world's, in the same App.
func (w *world) another() *world {
	w.t.Helper()
	other := *w
	workspace, err := w.CreateWorkspace(context.Background(), "Other", "BR")
	must(w.t, err)
	other.ws = workspace.ID
	other.key, other.keyID = other.newKey("all")
	return &other
}

// hook has WhatsApp report to a channel.
func (w *world) hook(channel desk.ID, told ...app.Happening) {
	w.t.Helper()
	body, err := json.Marshal(told)
	must(w.t, err)
	must(w.t, w.TakeWebhook(context.Background(), channel, sign(appSecret, body), bytes.NewReader(body)))
}

// inbound is a message as a webhook tells it. Its id and its time are of n.
func inbound(n int, number, user, text string) app.Happening {
	return app.Happening{Channel: metaNumber, Message: &app.InboundMessage{
		ExternalID: fmt.Sprint("wamid.in.", n), Number: number, UserID: user, Text: text, At: desk.Time(1000 * n),
	}}
}

// writer is the contact whose message inbound(n, …) is, nil when it is not stored.
func (w *world) writer(channel desk.ID, n int) (c *desk.Contact) {
	w.t.Helper()
	must(w.t, w.file.InTx(context.Background(), w.ws, func(tx app.Tx) error {
		m, err := tx.MessageBy(channel, fmt.Sprint("wamid.in.", n))
		if err != nil || m == nil {
			return err
		}
		conversation, err := tx.Conversation(m.ConversationID)
		if err != nil {
			return err
		}
		c, err = tx.Contact(conversation.ContactID)
		return err
	}))
	return c
}

// messageID is what the provider calls the message of an attempt.
func messageID(attempt desk.ID) string { return "wamid." + attempt.String() }

func takes(_ context.Context, d app.Dispatch) (app.Receipt, error) {
	return app.Receipt{ExternalID: messageID(d.Attempt)}, nil
}

var refusal = &desk.Refusal{
	Type: desk.ProviderRejected, Message: "the provider refused this message for good",
	Failure: &desk.Failure{Code: 131026, Title: "Message undeliverable", Fix: "Check the number."},
}

func refuses(context.Context, app.Dispatch) (app.Receipt, error) { return app.Receipt{}, refusal }

func losesTheAnswer(context.Context, app.Dispatch) (app.Receipt, error) {
	return app.Receipt{}, errors.New("connection reset")
}

func hangs(ctx context.Context, _ app.Dispatch) (app.Receipt, error) {
	<-ctx.Done()
	return app.Receipt{}, ctx.Err()
}

// meanwhile does something while the message is on its way.
func meanwhile(do func(app.Dispatch), then outcome) outcome {
	return func(ctx context.Context, d app.Dispatch) (app.Receipt, error) {
		do(d)
		return then(ctx, d)
	}
}

// blocks keeps the message until release is closed; reached is closed when it has it.
func blocks(then outcome) (o outcome, reached, release chan struct{}) {
	reached, release = make(chan struct{}), make(chan struct{})
	return meanwhile(func(app.Dispatch) {
		close(reached)
		<-release
	}, then), reached, release
}

// A logbook keeps what is logged.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logbook) WithGroup(string) slog.Handler            { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// find lists the lines that hold a text.
func (l *logbook) find(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for stop := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("still waiting for: %s", what)
		}
	}
}

// refused checks that err is a refusal of this type.
func refused(t *testing.T, err error, want desk.ErrorType) {
	t.Helper()
	if !desk.IsType(err, want) {
		t.Fatalf("error = %v, want %s", err, want)
	}
}

// refusalOf is refused, and returns the refusal.
func refusalOf(t *testing.T, err error, want desk.ErrorType) *desk.Error {
	t.Helper()
	refused(t, err, want)
	return desk.AsError(err)
}

// The number that tests send to, unless they say otherwise.
const number = "905321110010"

// An edit changes a request.
type edit func(*desk.SendRequest)

func to(phone string) edit { return func(r *desk.SendRequest) { r.Phone = phone } }

func toContact(id desk.ID) edit {
	return func(r *desk.SendRequest) { r.Phone, r.Contact = "", &id }
}

func on(channel desk.ID) edit { return func(r *desk.SendRequest) { r.Channel = &channel } }

func of(template, language string, values ...string) edit {
	return func(r *desk.SendRequest) {
		r.Template, r.Language, r.Variables = template, language, desk.TemplateValues{List: values}
	}
}

func assignedTo(ref string) edit {
	return func(r *desk.SendRequest) { r.Assignee = desk.Field[string]{Set: true, Value: ref} }
}

// otherBody makes it another request: the hash is of its body.
func otherBody(r *desk.SendRequest) { r.Hash[0]++ }

func profile(parts ...func(*desk.ContactWrite)) edit {
	return func(r *desk.SendRequest) {
		r.Profile = &desk.ContactWrite{}
		for _, p := range parts {
			p(r.Profile)
		}
	}
}

func text(s string) desk.Field[string] { return desk.Field[string]{Set: true, Value: s} }

func named(s string) func(*desk.ContactWrite) { return func(w *desk.ContactWrite) { w.Name = text(s) } }

func ownedBy(ref string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) { w.Owner = text(ref) }
}

func mailed(s string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) {
		w.Email = text(s)
		w.Sent = desk.AddIdentity(w.Sent, desk.Identity{Kind: desk.KindEmail, Value: desk.FoldEmail(s)})
	}
}

func phoned(s string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) {
		w.Phone = text(s)
		w.Sent = desk.AddIdentity(w.Sent, desk.Identity{Kind: desk.KindPhone, Value: s})
	}
}

func alsoKnownAs(kind, value string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) {
		i := desk.Identity{Kind: kind, Value: value}
		w.Identities.Set, w.Identities.Value = true, append(w.Identities.Value, i)
		w.Sent = desk.AddIdentity(w.Sent, i)
	}
}

func having(attribute, value string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) {
		w.Attributes.Set = true
		w.Attributes.Value = append(w.Attributes.Value, desk.AttributeWrite{Key: attribute, Value: desk.Value{Kind: desk.StringValue, Text: value}})
	}
}

// A reply is what a send came to.
type reply struct {
	app.SendAnswer
	err error
}

// send sends hello, or what the edits make of it, with an Idempotency-Key.
func (w *world) send(key string, edits ...edit) reply {
	return w.sendBy(w.App, w.caller(), key, edits...)
}

func (w *world) sendBy(a *app.App, p app.Principal, key string, edits ...edit) reply {
	r := &desk.SendRequest{Key: key, Phone: number, Template: "hello", Language: "en", OptInConfirmed: true}
	for _, e := range edits {
		e(r)
	}
	answer, err := a.Send(context.Background(), p, r, desk.ID{0xEE})
	return reply{answer, err}
}

// sent sends what has to arrive, and returns the answer.
func (w *world) sent(key string, edits ...edit) desk.SentMessage {
	w.t.Helper()
	return w.read(w.send(key, edits...))
}

// read reads the answer of a send that must have succeeded.
func (w *world) read(r reply) (m desk.SentMessage) {
	w.t.Helper()
	must(w.t, r.err)
	if err := json.Unmarshal(r.Body, &m); err != nil {
		w.t.Fatalf("the answer %q: %v", r.Body, err)
	}
	return m
}

// inDoubt sends something whose outcome is unknown, and returns its attempt.
func (w *world) inDoubt(key string, edits ...edit) desk.ID {
	w.t.Helper()
	w.provider.plays(losesTheAnswer)
	defer w.provider.plays(takes)
	return w.doubted(w.send(key, edits...).err)
}

// doubted is the attempt that a send_outcome_unknown names.
func (w *world) doubted(err error) desk.ID {
	w.t.Helper()
	return refusalOf(w.t, err, desk.SendOutcomeUnknown).Details.(desk.InDoubtAttempt).AttemptID
}

// put writes a contact.
func (w *world) put(parts ...func(*desk.ContactWrite)) *desk.Contact {
	w.t.Helper()
	op := &desk.Op{Kind: desk.OpUpsert}
	for _, p := range parts {
		p(&op.Write)
	}
	outcome, err := w.Write(context.Background(), w.caller(), op)
	must(w.t, err)
	return outcome.Contact
}

func (w *world) deleteContact(id desk.ID) {
	w.t.Helper()
	_, err := w.Write(context.Background(), w.caller(), &desk.Op{Kind: desk.OpDelete, ByID: true, Target: id})
	must(w.t, err)
}

// writes plays a person's message into the world's channel.
func (w *world) writes(from, text string) *desk.Conversation {
	w.t.Helper()
	c, err := w.ReceiveSandbox(context.Background(), w.channel, "+"+from, "", text)
	must(w.t, err)
	return c
}

func (w *world) attempt(id desk.ID) *desk.Attempt {
	w.t.Helper()
	at, err := w.file.Attempt(context.Background(), w.ws, id)
	must(w.t, err)
	if at == nil {
		w.t.Fatalf("the attempt %s is gone", id)
	}
	return at
}

func (w *world) attempts() []*desk.Attempt {
	w.t.Helper()
	list, err := w.Attempts(context.Background(), w.ws, false, 1000)
	must(w.t, err)
	return list
}

// holder returns the attempt that holds a key, or nil.
func (w *world) holder(key string) *desk.Attempt {
	w.t.Helper()
	at, err := w.file.AttemptOfKey(context.Background(), w.ws, key)
	must(w.t, err)
	return at
}

func (w *world) contact(id desk.ID) *desk.Contact {
	w.t.Helper()
	c, err := w.Contact(context.Background(), w.caller(), id)
	must(w.t, err)
	return c
}

func (w *world) conversation(id desk.ID) *desk.Conversation {
	w.t.Helper()
	c, err := w.Conversation(context.Background(), w.caller(), id)
	must(w.t, err)
	return c
}

func (w *world) messages(conversation desk.ID) []*desk.Message {
	w.t.Helper()
	list, _, err := w.Messages(context.Background(), w.caller(), conversation, "", 1000)
	must(w.t, err)
	return list
}

// message is the one that a send stored.
func (w *world) message(m desk.SentMessage) *desk.Message {
	w.t.Helper()
	for _, stored := range w.messages(m.Conversation.ID) {
		if stored.ID == m.Message.ID {
			return stored
		}
	}
	w.t.Fatal("the message is not stored")
	return nil
}

// holds checks how many contacts, conversations and messages there are in all.
func (w *world) holds(contacts, conversations, messages int) {
	w.t.Helper()
	ctx := context.Background()
	people, _, err := w.Contacts(ctx, w.caller(), desk.ContactFilter{}, "", 1000)
	must(w.t, err)
	threads, _, err := w.Conversations(ctx, w.caller(), desk.ConversationFilter{}, "", 1000)
	must(w.t, err)
	said := 0
	for _, c := range threads {
		said += len(w.messages(c.ID))
	}
	if got, want := fmt.Sprint(len(people), len(threads), said), fmt.Sprint(contacts, conversations, messages); got != want {
		w.t.Errorf("contacts, conversations, messages: %s, want %s", got, want)
	}
}

// tell keeps one notice for each status, due now, in this order.
func (w *world) tell(statuses ...desk.StatusNotice) {
	w.t.Helper()
	for _, s := range statuses {
		body, err := json.Marshal([]desk.StatusNotice{s})
		must(w.t, err)
		w.notify(string(body))
	}
}

func (w *world) notify(body string) app.Notice {
	w.t.Helper()
	n := app.Notice{Channel: w.channel, ID: w.clock.newID(), Due: desk.TimeOf(w.clock.now()), Body: []byte(body)}
	must(w.t, w.Keep(context.Background(), w.ws, n))
	return n
}

// takeIn lets the background work take in what is due, until nothing is.
func (w *world) takeIn() {
	w.t.Helper()
	w.run()
	waitFor(w.t, "the notices to be taken in", func() bool { return len(w.due()) == 0 })
}

// due lists the notices that are due.
func (w *world) due() []app.Notice {
	list, _, err := w.file.Notices(context.Background(), w.ws, desk.TimeOf(w.clock.now()), 1000)
	must(w.t, err)
	return list
}

// said is a status of an attempt's message, as the provider reports it.
func said(attempt desk.ID, d desk.Delivery) desk.StatusNotice {
	s := desk.StatusNotice{ExternalID: messageID(attempt), Attempt: attempt, Delivery: d, At: desk.TimeOf(time.Now())}
	if d == desk.Failed {
		s.Failure = refusal.Failure
	}
	return s
}

// saidEarly is the same without the attempt's id.
func saidEarly(attempt desk.ID, d desk.Delivery) desk.StatusNotice {
	s := said(attempt, d)
	s.Attempt = desk.ID{}
	return s
}
