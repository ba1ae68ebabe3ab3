package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
	"parley/store"
	"parley/store/sqlite"
	"parley/store/sqlite/sqlitetest"
	"parley/work"
)

// A world is an App over a real SQLite file, or under TestPostgres over a real PostgreSQL
// database, in a workspace with two members, one channel and a few templates. Only the
// providers, the clocks and failures of the database are simulated.
type world struct {
	*app.App
	t        *testing.T
	file     worldStore
	store    *faultyStore
	path     string                     // the path of the SQLite file; "": PostgreSQL
	postgres *clockedDatabase           // nil: the database is SQLite
	open     func() (worldStore, error) // opens the database like another process
	provider *scripted
	meta     *meta
	others   map[desk.ChannelKind]provider.Provider // more providers, used from the next start on
	files    app.Deps                               // only its limits of files count, from the next start on
	opened   bool                                   // from the next start on, webhooks may go to 127.0.0.1 and to public addresses
	secret   []byte                                 // the installation's secret key
	clock    *clock
	log      *logbook
	receiver *receiver
	rules    desk.DeliveryRules
	ws       desk.ID
	key      string
	keyID    desk.ID
	channel  desk.ID
	ada      desk.Member
	grace    desk.Member
	run      func() // starts the background work, unless it runs
	running  bool
	stop     func() // ends the background work and waits for it
}

func newWorld(t *testing.T) *world { return newWorldWith(t, app.Bounds{}) }

// newWorldOf is like newWorld, with other rules of deliveries.
func newWorldOf(t *testing.T, rules desk.DeliveryRules) *world {
	t.Helper()
	w := newWorld(t)
	w.stop()
	w.rules = rules
	w.start(app.Bounds{})
	return w
}

func newWorldWith(t *testing.T, b app.Bounds) *world {
	t.Helper()
	clock := new(clock) // the machine's clock
	if strings.HasPrefix(t.Name(), overPostgres) {
		return newWorldOver(t, b, clocked(t, databases.Database(t)), clock)
	}
	path := newFile(t)
	open := func() (worldStore, error) {
		return sqlite.Open(t.Context(), sqlite.Config{Serves: true, Path: path, Now: clock.now})
	}
	w := newWorldOn(t, b, opened(t, open), clock)
	w.path, w.open = path, open
	return w
}

// newWorldOver is like newWorldWith, over a PostgreSQL database of its own.
func newWorldOver(t *testing.T, b app.Bounds, d *clockedDatabase, clock *clock) *world {
	t.Helper()
	clock.database = d.set
	w := newWorldOn(t, b, opened(t, d.open), clock)
	w.postgres, w.open = d, d.open
	return w
}

// opened opens a database, and closes it at the end of the test.
func opened(t *testing.T, open func() (worldStore, error)) worldStore {
	t.Helper()
	s, err := open()
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// newWorldOn is like newWorld, in a workspace of a database that others may use also.
func newWorldOn(t *testing.T, b app.Bounds, file worldStore, clock *clock) *world {
	t.Helper()
	w := &world{t: t, file: file, secret: bytes.Repeat([]byte{7}, 32), clock: clock, log: new(logbook), meta: newMeta(), receiver: new(receiver)}
	t.Cleanup(func() { // no personal data of tests may be in the log
		for _, private := range []string{"9053211", "98765432", "example.com", "Hello", "Ann", "TR.9", "s3cret"} {
			for _, line := range w.log.find(private) {
				t.Errorf("the log speaks of people: %s", line)
			}
		}
	})
	w.provider = newProvider(sandbox.New(sandbox.Config{Library: file, Now: w.clock.atServer, NewID: w.clock.newID, Pace: time.Millisecond}))
	w.start(b)

	workspace, err := w.CreateWorkspace(t.Context(), "Acme", "TR")
	must(t, err)
	w.ws = workspace.ID
	w.ada, err = w.AddMember(t.Context(), w.operator(), "Ada Lovelace", "Ada@example.com", "agent")
	must(t, err)
	w.grace, err = w.AddMember(t.Context(), w.operator(), "Grace Hopper", "grace@example.com", "agent")
	must(t, err)
	w.key, w.keyID = w.newKey("all")
	w.channel = w.addChannel()
	return w
}

// checkpoints lets the store work in the background for the rest of the test. A long test on
// SQLite needs it: a log that nobody empties grows, and each read takes longer.
func (w *world) checkpoints() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.file.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		must(w.t, <-done)
	})
}

// newFile makes a file with all tables.
var newFile = sqlitetest.Copies(func(path string) (io.Closer, error) {
	return sqlite.Open(context.Background(), sqlite.Config{Serves: true, Path: path})
})

// start makes the world's App. If it is called again, it simulates a restart.
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
				a.Close()
			}
		})
	}
	w.t.Cleanup(w.stop)
	w.run = func() {
		if !w.running {
			w.running = true
			go func() {
				defer close(ended)
				work.Run(ctx, work.Of(a), work.Keep{}, slog.New(w.log))
				a.Close()
			}()
		}
	}
}

// node makes another App over the same database, as another process would.
func (w *world) node(s store.Store, b app.Bounds) *app.App {
	providers := map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: w.provider, desk.WhatsAppChannel: w.meta}
	maps.Copy(providers, w.others)
	refuses := func(at netip.Addr) bool {
		return at.Unmap().IsLoopback() && at.Unmap() != netip.MustParseAddr("127.0.0.1")
	}
	return app.New(app.Deps{
		PlainHTTP: w.opened, MediaPerWorkspace: w.files.MediaPerWorkspace, KeepFree: w.files.KeepFree, AddressRefused: refuses,
		Store: s, Providers: providers,
		Answer: func(m *desk.SentMessage) []byte {
			body, err := json.Marshal(m)
			if err != nil {
				panic(err)
			}
			return body
		},
		Now: w.clock.atServer, Uptime: w.clock.uptime, NewID: w.clock.newID, Random: w.clock.random, Secret: w.secret,
		Log: slog.New(w.log), Bounds: b,
		ReadContact: readRow, ReadRow: readPerson, ReadOptOut: readOptOut,
		Poster: w.receiver, Event: rendered, Deliveries: w.rules,
	})
}

// serve simulates that the world's server runs for some hours, by its monotonic clock.
func (w *world) serve(hours int) {
	w.t.Helper()
	must(w.t, w.Clock.Look(context.Background()))
	for range hours {
		w.clock.up.Add(int64(time.Hour))
		must(w.t, w.Clock.Look(context.Background()))
		must(w.t, w.Clock.Look(context.Background())) // the second look sees the counter that the first has raised
	}
}

func (w *world) newKey(permissions string) (string, desk.ID) {
	w.t.Helper()
	name := "test"
	text, k, err := w.CreateKey(w.t.Context(), w.operator(), app.KeyEdit{Name: &name, Permissions: &permissions})
	must(w.t, err)
	return text, k.ID
}

// operator returns the principal of the command line in the world's workspace, with the
// current settings.
func (w *world) operator() desk.Principal {
	w.t.Helper()
	settings, err := w.file.Settings(context.Background(), w.ws)
	must(w.t, err)
	return desk.Principal{Actor: desk.Actor{Kind: desk.ByCLI}, Settings: settings}
}

// raised reports whether the version of the settings was raised this number of times since
// it was before. For PostgreSQL, it only checks whether the version has grown.
func (w *world) raised(before int64, times int64) bool {
	w.t.Helper()
	now := w.operator().Settings.Version
	if w.postgres != nil {
		return now > before == (times > 0)
	}
	return now == before+times
}

// addChannel adds a channel with the provider's library.
func (w *world) addChannel() desk.ID {
	w.t.Helper()
	at, _, err := w.AddChannel(w.t.Context(), w.operator(), app.NewChannel{Kind: desk.SandboxChannel})
	must(w.t, err)
	_, _, err = w.SyncChannel(w.t.Context(), w.operator(), at.Channel.ID)
	must(w.t, err)
	return at.Channel.ID
}

// caller returns the principal of the world's key, with the current settings.
func (w *world) caller() desk.Principal {
	w.t.Helper()
	p, err := w.Access.Authenticate(context.Background(), w.key)
	must(w.t, err)
	return p
}

// another makes a second workspace in the same App.
func (w *world) another() *world {
	w.t.Helper()
	other := *w
	workspace, err := w.CreateWorkspace(context.Background(), "Other", "BR")
	must(w.t, err)
	other.ws = workspace.ID
	other.key, other.keyID = other.newKey("all")
	return &other
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for stop := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
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

// refusalOf makes the same check as refused, and returns the refusal.
func refusalOf(t *testing.T, err error, want desk.ErrorType) *desk.Error {
	t.Helper()
	refused(t, err, want)
	return desk.AsError(err)
}

// The number that tests send to, unless they say otherwise.
const number = "905321110010"

// An edit changes a request.
type edit func(*desk.SendRequest)

func to(phone string) edit { return func(r *desk.SendRequest) { r.Phone = phoneOf(phone) } }

func toContact(id desk.ID) edit {
	return func(r *desk.SendRequest) { r.Phone, r.Contact = desk.Identity{}, &id }
}

func on(channel desk.ID) edit { return func(r *desk.SendRequest) { r.Channel = &channel } }

func of(template, language string, values ...string) edit {
	return func(r *desk.SendRequest) {
		r.Template, r.Language, r.Variables = template, language, desk.TemplateValues{List: values}
	}
}

func assignedTo(ref string) edit {
	return func(r *desk.SendRequest) { r.Assignee = refer(ref) }
}

// otherBody is an edit that makes another request of it, because the hash is that of the
// body.
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

func refer(s string) desk.Field[desk.Reference] {
	return desk.Field[desk.Reference]{Set: true, Value: desk.ReferTo(s)}
}

func ownedBy(ref string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) { w.Owner = refer(ref) }
}

func mailed(s string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) {
		w.Email = text(s)
		w.Sent = desk.AddIdentity(w.Sent, desk.Identity{Kind: desk.KindEmail, Value: desk.CanonicalEmail(s)})
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

// A reply is the result of a send.
type reply struct {
	app.SendAnswer
	err error
}

// send sends the template hello with an Idempotency-Key. The edits change the request
// first.
func (w *world) send(key string, edits ...edit) reply {
	return w.sendBy(w.App, w.caller(), key, edits...)
}

func (w *world) sendBy(a *app.App, p desk.Principal, key string, edits ...edit) reply {
	r := &desk.SendRequest{Key: key, Phone: phoneOf(number), Template: "hello", Language: "en", OptInConfirmed: true}
	for _, e := range edits {
		e(r)
	}
	answer, err := a.Send(context.Background(), p, r, desk.ID{0xEE})
	return reply{answer, err}
}

// sent does the same as send, checks that the send has succeeded, and returns the answer.
func (w *world) sent(key string, edits ...edit) desk.SentMessage {
	w.t.Helper()
	return w.read(w.send(key, edits...))
}

// read parses the answer of a send, which must have succeeded.
func (w *world) read(r reply) (m desk.SentMessage) {
	w.t.Helper()
	must(w.t, r.err)
	if err := json.Unmarshal(r.Body, &m); err != nil {
		w.t.Fatalf("the answer %q: %v", r.Body, err)
	}
	return m
}

// inDoubt makes a send whose outcome is unknown, and returns its attempt.
func (w *world) inDoubt(key string, edits ...edit) desk.ID {
	w.t.Helper()
	w.provider.plays(losesTheAnswer)
	defer w.provider.plays(takes)
	return w.doubted(w.send(key, edits...).err)
}

// doubted returns the attempt that a send_outcome_unknown error names.
func (w *world) doubted(err error) desk.ID {
	w.t.Helper()
	return refusalOf(w.t, err, desk.SendOutcomeUnknown).Details.(desk.InDoubtAttempt).AttemptID
}

// put stores a contact.
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

// writes receives a person's text message on the world's channel.
func (w *world) writes(from, text string) *desk.Conversation {
	w.t.Helper()
	c, err := w.ReceiveSimulated(context.Background(), w.operator(), w.channel, "+"+from, "", text)
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
	list, _, err := w.Attempts(context.Background(), w.operator(), app.AttemptFilter{}, "", 1000)
	must(w.t, err)
	return list
}

// deadlocks counts the deadlocks in the database; 0 on SQLite.
func (w *world) deadlocks() int {
	if w.postgres == nil {
		return 0
	}
	return w.postgres.deadlocks()
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

// message returns the stored message of a send.
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

// holds checks the numbers of all contacts, conversations and messages of the world.
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

// tell stores one inbound item for each status. The items are due now, in this order.
func (w *world) tell(statuses ...desk.StatusUpdate) {
	w.t.Helper()
	for _, s := range statuses {
		body, err := json.Marshal([]desk.StatusUpdate{s})
		must(w.t, err)
		w.notify(string(body))
	}
}

func (w *world) notify(body string) desk.InboundItem {
	w.t.Helper()
	n := desk.InboundItem{Channel: w.channel, ID: w.clock.newID(), Due: desk.TimeOf(w.clock.now()), Body: []byte(body)}
	w.keep(n)
	return n
}

// keep stores an inbound item as another process would, and makes the App look for it.
func (w *world) keep(n desk.InboundItem) {
	w.t.Helper()
	ctx := context.Background()
	must(w.t, w.file.InTx(ctx, w.ws, func(tx store.Tx) error { return tx.PutInbound(n) }))
	must(w.t, w.LookForInbound(ctx))
}

// takeIn waits until the background work has processed all due inbound items.
func (w *world) takeIn() {
	w.t.Helper()
	w.run()
	must(w.t, w.LookForInbound(context.Background()))    // the clock may have been set
	for list := w.due(); len(list) > 0; list = w.due() { // it may take long, but not without a change
		waitFor(w.t, "the inbound items to be taken in", func() bool {
			now := w.due()
			return len(now) == 0 || now[0].ID != list[0].ID
		})
	}
}

// due lists the inbound items that are due.
func (w *world) due() []desk.InboundItem {
	list, _, err := w.file.InboundItems(context.Background(), w.ws, 2*time.Hour, 1000)
	must(w.t, err)
	return list
}

// said returns a status of an attempt's message, as the provider reports it.
func said(attempt desk.ID, d desk.DeliveryStatus) desk.StatusUpdate {
	s := desk.StatusUpdate{ExternalID: messageID(attempt), Attempt: attempt, Delivery: d, At: desk.TimeOf(time.Now())}
	if d == desk.Failed {
		s.Failure = refusal.Failure
	}
	return s
}

// saidEarly returns the same status without the attempt's id.
func saidEarly(attempt desk.ID, d desk.DeliveryStatus) desk.StatusUpdate {
	s := said(attempt, d)
	s.Attempt = desk.ID{}
	return s
}

// asOfMessages returns a conversation without its Talk, which depends only on its messages.
func asOfMessages(c desk.Conversation) desk.Conversation {
	c.Talk = desk.Talk{}
	return c
}

// A worldStore is the database of a world.
type worldStore interface {
	store.Store
	sandbox.Library
	io.Closer
	BindSecret(ctx context.Context, fingerprint string) error
	Run(ctx context.Context) error
}
