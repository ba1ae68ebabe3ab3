package app_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

var saidAgain = flag.Int("said-again", 4, "of how many deleted people TestSaidAgain delivers every callback again. Long run: -said-again 200")

// An erasable is a world for tests of deletion: all its tables can be read, and its clocks
// are set together.
type erasable struct {
	*world
	advance func(time.Duration)
	dump    func() map[string][]byte // without the stored answers of sends
}

// onBothStores runs a test of an erasable world on each store.
func onBothStores(t *testing.T, test func(*testing.T, erasable)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		test(t, erasable{w, w.clock.advance, w.dumpSQLite})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := clocked(t, pgtest.Database(t))
		c, err := pgx.Connect(t.Context(), d.url)
		must(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		w := newWorldOver(t, app.Bounds{}, d, new(clock))
		test(t, erasable{w, w.clock.advance, func() map[string][]byte { return dumpPostgres(t, c) }})
	})
}

func (w *world) dumpSQLite() map[string][]byte {
	w.t.Helper()
	c, err := sqlite.OpenConn(w.path, sqlite.OpenReadOnly)
	must(w.t, err)
	defer c.Close()
	read := func(query string) (rows [][]byte) {
		must(w.t, sqlitex.Execute(c, query, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			var row []byte
			for i := range s.ColumnCount() {
				value := make([]byte, s.ColumnLen(i))
				s.ColumnBytes(i, value)
				row = append(append(row, value...), '|')
			}
			rows = append(rows, row)
			return nil
		}}))
		return rows
	}
	tables := map[string][]byte{}
	for _, row := range read(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'send_answers'`) {
		table := strings.TrimSuffix(string(row), "|")
		tables[table] = bytes.Join(read(`SELECT * FROM "`+table+`"`), []byte("\n"))
	}
	return tables
}

func dumpPostgres(t *testing.T, c *pgx.Conn) map[string][]byte {
	t.Helper()
	read := func(query string) (list [][]byte) {
		rows, err := c.Query(context.Background(), query)
		must(t, err)
		for rows.Next() {
			list = append(list, bytes.Join(rows.RawValues(), []byte("|")))
		}
		must(t, rows.Err())
		return list
	}
	tables := map[string][]byte{}
	for _, table := range read(`SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'`) {
		columns := read(`SELECT quote_ident(column_name::text) FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '` + string(table) +
			`' AND NOT (table_name = 'attempts' AND column_name = 'response')`)
		tables[string(table)] = bytes.Join(read(`SELECT `+string(bytes.Join(columns, []byte(", ")))+` FROM "`+string(table)+`"`), []byte("\n"))
	}
	return tables
}

// callbacks delivers callbacks to the world, and waits until they are processed.
func (w *world) callbacks(channel desk.ID, list ...[]provider.Update) {
	w.t.Helper()
	for _, told := range list {
		w.callback(channel, told...)
	}
	w.takeIn()
}

// A deletee is a person who will be deleted, with the provider's reports about them.
type deletee struct {
	number, user string
	contact      desk.ID
	attempts     []desk.ID // of messages to the person
	marks        []string  // texts that only this person's data contain
	told, late   []provider.Update
}

// TestSaidAgain: the provider delivers messages of a deleted person again, and reports some
// statuses of messages to them only after the deletion. None of this creates a record, and
// no data of the person stay.
func TestSaidAgain(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, w erasable) {
		channel := w.connect(metaNumber, metaBusiness)
		var people []*deletee
		for n := range *saidAgain {
			people = append(people, w.deletee(channel, n))
		}
		for n, p := range people { // for half of the people, the late statuses also come before the deletion
			w.callbacks(channel, p.told)
			if n%2 == 0 {
				w.callbacks(channel, p.late)
			}
		}
		w.callbacks(channel, []provider.Update{inbound(1, "90532110"+"9999", "", "Who stays")})
		stays := w.writer(channel, 1)
		for _, p := range people {
			w.deleteContact(p.contact)
		}
		nothing := func(when string) {
			t.Helper()
			w.holds(1, 1, 1)
			for table, content := range w.dump() {
				for _, p := range people {
					for _, mark := range p.marks {
						if bytes.Contains(content, []byte(mark)) {
							t.Errorf("%s: %s has %q", when, table, mark)
						}
					}
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		nothing("deleted")
		for _, later := range []time.Duration{time.Second, 24 * time.Hour, 28 * 24 * time.Hour} {
			w.advance(later)
			w.stop() // a new process has no memory of these people
			w.start(app.Bounds{})
			must(t, w.Forget(t.Context()))
			for n, p := range people {
				switch n % 3 {
				case 0: // one callback for everything
					w.callbacks(channel, append(append([]provider.Update{}, p.told...), p.late...))
				case 1: // one callback for each update
					for _, u := range append(append([]provider.Update{}, p.late...), p.told...) {
						w.callback(channel, u)
					}
				default: // a long callback, processed in several parts
					long := append([]provider.Update{}, p.told...)
					for range 120 {
						long = append(long, inbound(1, stays.Phone, "", "Who stays"))
					}
					w.callback(channel, append(long, p.late...)...)
				}
			}
			w.takeIn()
			nothing("after another " + later.String())
		}
		if len(w.dump()["erased_messages"]) == 0 {
			t.Error("nothing is known of what was erased")
		}
		w.advance(2 * 24 * time.Hour)
		must(t, w.Forget(t.Context()))
		if kept := w.dump()["erased_messages"]; len(kept) != 0 {
			t.Errorf("after 31 days: %q", kept)
		}
		w.callbacks(channel, people[0].told[:1])
		if w.holds(2, 2, 2); t.Failed() {
			t.Error("a message that comes after 31 days is one like any other")
		}
	})
}

// deletee makes a person whom the provider names in every way: by a message, a reaction, a
// choice, an echo, a new number, and by statuses. The statuses are of a template, of a
// reply, of a refused send, and of a send with an unknown outcome.
func (w *world) deletee(channel desk.ID, n int) *deletee {
	w.t.Helper()
	p := &deletee{number: fmt.Sprintf("9053211%05d", n), user: fmt.Sprintf("TR.9X%05d", n)}
	id := func(kind string) string { return fmt.Sprintf("wamid.%s.of.%05d", kind, n) }
	at := desk.TimeOf(w.clock.now())
	message := func(kind string, edit func(*provider.InboundMessage)) provider.Update {
		m := &provider.InboundMessage{ExternalID: id(kind), Number: p.number, UserID: p.user, Text: "Hello " + id("text"), At: at}
		edit(m)
		return provider.Update{Channel: metaNumber, Message: m}
	}
	p.told = []provider.Update{
		message("in", func(*provider.InboundMessage) {}),
		message("user", func(m *provider.InboundMessage) { m.Number = "" }),
		message("reaction", func(m *provider.InboundMessage) {
			m.Kind, m.ReplyTo, m.Extra = desk.KindReaction, id("in"), &desk.Extra{Reaction: &desk.Reaction{Emoji: "+"}}
		}),
		message("echo", func(m *provider.InboundMessage) { m.Echo = true }),
		{Channel: metaNumber, Choice: &provider.MarketingChoice{Number: p.number, UserID: p.user, Change: desk.OptOut, At: at}},
		{Channel: metaNumber, Move: &provider.Move{Number: p.number, UserID: p.user, NewNumber: fmt.Sprintf("9053212%05d", n), At: at}},
	}
	p.marks = []string{p.number, p.user, id(""), fmt.Sprintf("of.%05d", n), fmt.Sprintf("9053212%05d", n)}
	w.callbacks(channel, p.told[:1])
	m := w.sent(fmt.Sprint("sent ", n), on(channel), to(p.number))
	p.contact = m.Conversation.ContactID
	ids := []string{m.Message.ExternalID}
	w.meta.change(func() { w.meta.refusal = refusal })
	w.send(fmt.Sprint("refused ", n), on(channel), to(p.number))
	w.meta.change(func() { w.meta.refusal = nil })
	status := func(external string, attempt desk.ID, d desk.DeliveryStatus) provider.Update {
		return provider.Update{Channel: metaNumber, Status: &desk.StatusUpdate{ExternalID: external, Attempt: attempt, Delivery: d, UserID: p.user, At: at}}
	}
	for _, at := range w.attempts() {
		if at.Plan.Contact == p.contact && at.Plan.Channel == channel {
			p.attempts = append(p.attempts, at.ID)
			p.late = append(p.late, status(messageID(at.ID), at.ID, desk.Delivered))
			ids = append(ids, messageID(at.ID))
		}
	}
	if len(p.attempts) != 2 {
		w.t.Fatalf("%d attempts", len(p.attempts))
	}
	p.late = append(p.late, status(m.Message.ExternalID, desk.ID{}, desk.Read), status(id("echo"), desk.ID{}, desk.Read), status(id("in"), desk.ID{}, desk.Read))
	p.marks = append(p.marks, ids...)
	return p
}

// TestSaidAgain_of_somebody_who_is_back: a deleted person writes again. Their old messages
// do not come back, and neither do the callback bodies with these messages.
func TestSaidAgain_of_somebody_who_is_back(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, w erasable) {
		channel := w.connect(metaNumber, metaBusiness)
		before, after := inbound(1, number, "TR.9A", "Hello before"), inbound(2, number, "TR.9A", "Hello after")
		w.callbacks(channel, []provider.Update{before})
		w.deleteContact(w.writer(channel, 1).ID)
		w.callbacks(channel, []provider.Update{after})
		long := []provider.Update{before}
		for range 2 * 50 {
			long = append(long, after)
		}
		w.callbacks(channel, []provider.Update{before}, []provider.Update{after, before}, long)
		w.holds(1, 1, 1)
		for table, content := range w.dump() {
			if bytes.Contains(content, []byte("Hello before")) {
				t.Errorf("%s has the message from before", table)
			}
		}
		if !bytes.Contains(w.dump()["callbacks"], []byte("Hello after")) {
			t.Error("the body that tells of nobody who was deleted is gone")
		}
	})
}

// TestSaidAgain_simulated: if a message of a deleted customer is repeated, its file is not
// stored.
func TestSaidAgain_simulated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	say := func() (*desk.Conversation, *desk.Message) {
		t.Helper()
		c, m, err := w.Simulate(t.Context(), w.operator(), w.channel, app.Simulated{From: "+" + number, ExternalID: "said", File: &app.SimulatedFile{
			Name: "a.png", Type: "image/png", Content: strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
		}})
		must(t, err)
		return c, m
	}
	c, _ := say()
	w.deleteContact(c.ContactID)
	if c, m := say(); c != nil || m != nil {
		t.Errorf("it makes %+v, %+v", c, m)
	}
	w.holds(0, 0, 0)
	if files, err := w.Media.List(t.Context(), w.operator(), false, desk.ID{}, 10); err != nil || len(files) != 0 {
		t.Errorf("files: %+v, %v", files, err)
	}
}

// TestEcho_early_statuses: statuses that come before a message typed in the phone app are
// applied to the message, and none of them stays stored.
func TestEcho_early_statuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	echo := inbound(1, number, "", "Hello")
	echo.Message.Echo = true
	status := provider.Update{Channel: metaNumber, Status: &desk.StatusUpdate{ExternalID: echo.Message.ExternalID, Delivery: desk.Read, At: 1}}
	w.callbacks(channel, []provider.Update{status}, []provider.Update{echo})
	list, _, err := w.Conversations(t.Context(), w.caller(), desk.ConversationFilter{}, "", 10)
	must(t, err)
	if m := w.messages(list[0].ID)[0]; m.Delivery != desk.Read {
		t.Errorf("the message is %s", m.Delivery)
	}
	if kept := w.dumpSQLite()["early_statuses"]; len(kept) != 0 {
		t.Errorf("kept: %q", kept)
	}
}
