package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func openAt(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: url, MaxConns: 8})
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

// openTwo opens one database twice, like two nodes; with -citus, at two servers.
func openTwo(t *testing.T) [2]*Store {
	t.Helper()
	url := pgtest.Database(t)
	return [2]*Store{openAt(t, url), openAt(t, pgtest.Entrance(t, url, 1))}
}

func newWorkspace(t *testing.T, s *Store) desk.ID {
	t.Helper()
	ws := desk.ID{7}
	if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "A"}); err != nil {
		t.Fatal(err)
	}
	return ws
}

// query returns the only column of a statement's rows.
func query(t *testing.T, s *Store, sql string, args ...any) []string {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return list
}

// TestCommitsAreDurable reads the settings on a live connection. A test that kills the
// process proves nothing about a loss of power. The store's settings win over those of
// the URL and of the database.
func TestCommitsAreDurable(t *testing.T) {
	t.Parallel()
	s := openAt(t, withSettings(pgtest.Database(t), "synchronous_commit=off&statement_timeout=0"))
	for name, want := range map[string]string{"synchronous_commit": "on", "statement_timeout": "15s", "application_name": "parley"} {
		if got := query(t, s, "SHOW "+name); got[0] != want {
			t.Errorf("%s = %s, want %s", name, got[0], want)
		}
	}
}

// TestKeysLeadWithTheWorkspace: the tables can be distributed over machines by
// workspace.
func TestKeysLeadWithTheWorkspace(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	const tables = `SELECT c.oid FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
		AND c.relname NOT IN ('workspaces', 'directory', 'installation', 'claim_rules', 'uptime', 'goose_db_version')`
	if n := query(t, s, `SELECT count(*)::text FROM (`+tables+`) t`); n[0] != "64" {
		t.Errorf("%s tables of workspaces; is a new one to be shared out, too?", n[0])
	}
	without := `SELECT c.relname::text FROM pg_class c WHERE c.oid IN (` + tables + `) AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)`
	others := `SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		WHERE i.indrelid IN (` + tables + `) AND i.indisunique AND a.attname <> 'workspace_id'`
	foreign := `SELECT k.conname::text FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
		WHERE k.contype = 'f' AND k.conrelid IN (` + tables + `) AND a.attname <> 'workspace_id'`
	// All text that is ordered or unique compares by bytes.
	collated := `SELECT DISTINCT i.indexrelid::regclass::text FROM pg_index i, unnest(i.indcollation) o (id)
		WHERE i.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
		AND o.id <> 0 AND o.id <> '"C"'::regcollation`
	for what, sql := range map[string]string{
		"tables without a primary key": without, "unique indexes that lead with another column": others,
		"foreign keys that lead with another column": foreign, "indexes of another collation": collated,
	} {
		if found := query(t, s, sql); len(found) > 0 {
			t.Errorf("%s: %s", what, strings.Join(found, ", "))
		}
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := openAt(t, url)
	query(t, s, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true) RETURNING ''`)
	if _, err := Open(t.Context(), Config{URL: url}); err == nil || !strings.Contains(err.Error(), "newer parley") {
		t.Errorf("error = %v", err)
	}
}

// TestOpen_may_not_create: a node with a role that may only read and write rows opens a
// database that has all migrations.
func TestOpen_may_not_create(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := openAt(t, url)
	role := "parley_" + strings.ReplaceAll(newID().String(), "-", "")
	for _, sql := range []string{
		`CREATE ROLE ` + role, `REVOKE CREATE ON SCHEMA public FROM PUBLIC`, `GRANT ALL ON ALL TABLES IN SCHEMA public TO ` + role, `GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ` + role,
	} {
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = s.pool.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	join := "?"
	if strings.Contains(url, "?") {
		join = "&"
	}
	other, err := Open(t.Context(), Config{URL: url + join + "role=" + role})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestTenOpenAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			s, err := Open(t.Context(), Config{URL: url, MaxConns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(s.BindSecret(t.Context(), "abc"), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s := openAt(t, url)
	if err := s.BindSecret(t.Context(), "other"); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("another secret key: %v", err)
	}
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0"}
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		want = append(want, strings.TrimLeft(number, "0"))
	}
	if n := query(t, s, `SELECT version_id::text FROM goose_db_version ORDER BY id`); !slices.Equal(n, want) {
		t.Errorf("migrations ran: %v, want each once: %v", n, want)
	}
}

func identity(kind string, n int) desk.Identity {
	return desk.Identity{Kind: kind, Value: fmt.Sprint(n)}
}

// upsertOf returns an upsert with the given identities.
func upsertOf(list ...desk.Identity) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.Sent = list
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: list}
	return op
}

var lastMade struct {
	sync.Mutex
	n uint32
}

func newID() desk.ID {
	lastMade.Lock()
	defer lastMade.Unlock()
	lastMade.n++
	return desk.ID{1, byte(lastMade.n >> 24), byte(lastMade.n >> 16), byte(lastMade.n >> 8), byte(lastMade.n)}
}

func update(s *Store, ws desk.ID, ops ...*desk.Op) (refused, err error) {
	err = s.UpdateContacts(context.Background(), ws, ops, func(b *desk.Book, from, to int) {
		if from == 0 {
			refused = nil
		}
		for _, op := range ops[from:to] {
			if _, err := b.Apply(op, desk.Actor{}, 1, newID); err != nil {
				refused = err
			}
		}
	})
	return refused, err
}

// TestNodesMakeOneContact: two nodes write the same people at once, in batches that name
// them in different orders, and delete some of them. No person exists twice, and the
// event numbers have no gap.
func TestNodesMakeOneContact(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	const writers, people, rounds = 32, 6, 8
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			for round := range rounds {
				var ops []*desk.Op
				for i := range people {
					p := (i*(1+n%2*4) + n + round) % people
					ops = append(ops, upsertOf(identity("a", p), identity("b", p), identity("n", 1000*n+round*people+p)))
				}
				if n%8 == 0 {
					p := identity("a", round%people)
					ops = append(ops, &desk.Op{Kind: desk.OpDelete, Find: []desk.Identity{p}})
				}
				if refused, err := update(stores[n%2], ws, ops...); err != nil || refused != nil {
					t.Error(err, refused)
				}
			}
		})
	}
	group.Wait()
	for _, s := range stores {
		list, _, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		held, claims := map[desk.Identity]bool{}, 0
		for _, c := range list {
			for _, i := range c.Identities() {
				if held[i] {
					t.Errorf("%v is held twice", i)
				}
				held[i] = true
				claims++
			}
		}
		if n := query(t, s, `SELECT count(*)::text FROM claims i JOIN contacts c ON c.workspace_id = i.workspace_id AND c.id = i.contact_id`); n[0] != fmt.Sprint(claims) {
			t.Errorf("%d identities are in contacts, %s in their table", claims, n[0])
		}
		if len(list) == 0 || len(list) > people {
			t.Errorf("%d contacts of %d people", len(list), people)
		}
	}
	if gaps := query(t, stores[0], `SELECT (max(seq) - count(*))::text FROM events`); gaps[0] != "0" {
		t.Errorf("the events' numbers have %s gaps", gaps[0])
	}
	newest, counted := query(t, stores[0], `SELECT max(seq)::text FROM events`), query(t, stores[0], `SELECT max(seq)::text FROM event_counters`)
	if newest[0] != counted[0] {
		t.Errorf("the counter is %s, and the newest event's number is %s", counted[0], newest[0])
	}
}

// TestBook_manyNames: a transaction finds none of many names, and then another node stores one of
// them. It runs again and finds it, so that no person exists twice.
func TestBook_manyNames(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	var ops []*desk.Op
	var names []desk.Identity
	for n := range manyNames + 1 {
		names = append(names, identity("a", n))
		ops = append(ops, upsertOf(names[n]))
	}
	var found []int
	check(t, stores[0].InTx(t.Context(), ws, func(tx store.Tx) error {
		book, err := tx.Book(desk.Lookup{Identities: names})
		if err != nil {
			return err
		}
		if found = append(found, book.Len()); len(found) == 1 {
			if _, err := update(stores[1], ws, upsertOf(names[7], identity("b", 7))); err != nil {
				return err
			}
		}
		for _, op := range ops {
			if _, err := book.Apply(op, desk.Actor{}, 1, newID); err != nil {
				return err
			}
		}
		return tx.Flush(book)
	}))
	if !slices.Equal(found, []int{0, 1}) {
		t.Errorf("the transaction found %v contacts, want 0 and then 1", found)
	}
	if n := query(t, stores[0], `SELECT count(*)::text FROM contacts`); n[0] != fmt.Sprint(len(names)) || holders(t, stores[0], ws, names[7]) != 1 {
		t.Errorf("%s contacts of %d people", n[0], len(names))
	}
}

// TestEventsKeepTheActor: an event's row has the kind and the id of the caller.
func TestEventsKeepTheActor(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	op := upsertOf(identity("a", 1))
	err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		book, err := tx.Book(op.Lookup())
		if err != nil {
			return err
		}
		_, err = book.Apply(op, desk.Actor{Kind: desk.ByCLI}, 1, func() desk.ID { return desk.ID{5} })
		e := desk.Event{Type: desk.ConversationUpdated, Subject: desk.ID{1}, Actor: desk.Actor{Kind: desk.ByProvider, ID: desk.ID{2}}, At: 3}
		return errors.Join(err, tx.Flush(book), tx.Append(e))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"contact.created cli 00000000-0000-0000-0000-000000000000", "conversation.updated provider 02000000-0000-0000-0000-000000000000"}
	if got := query(t, s, `SELECT kind || ' ' || actor_kind || ' ' || actor_id FROM events ORDER BY seq`); !slices.Equal(got, want) {
		t.Errorf("events = %q, want %q", got, want)
	}
}

// TestNodesOpenOneConversation: if several nodes look for an open conversation and open
// one because there is none, only one is opened.
func TestNodesOpenOneConversation(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	for round := range 5 {
		channel, contact := desk.ID{1, byte(round)}, desk.ID{2}
		found := make([]desk.ID, 32)
		var group sync.WaitGroup
		for n := range found {
			group.Go(func() {
				err := stores[n%2].InTx(context.Background(), ws, func(tx store.Tx) error {
					c, err := tx.OpenConversation(channel, contact)
					if err == nil && c == nil {
						c = &desk.Conversation{ID: newID(), ChannelID: channel, ContactID: contact, Status: desk.StatusOpen}
						err = tx.PutConversation(c)
					}
					if err == nil {
						found[n] = c.ID
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if found = slices.Compact(found); len(found) != 1 {
			t.Errorf("%d conversations were found", len(found))
		}
	}
}

// TestEditsCountOnEveryNode: once an edit is acknowledged, no node uses the old
// settings.
func TestEditsCountOnEveryNode(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	key := desk.APIKey{ID: newID(), PublicID: "k", Permissions: desk.Permissions}
	edit := func(s *Store, revoked desk.Time) {
		t.Helper()
		k := key
		k.RevokedAt = revoked
		if err := s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{Key: &k}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 20 {
		for _, revoked := range []desk.Time{0, 1} {
			edit(stores[round%2], revoked)
			for _, s := range stores {
				settings, err := s.Authenticate(t.Context(), "k")
				if err != nil || settings.KeyByPublicID("k").RevokedAt != revoked {
					t.Fatalf("authenticated by old settings: %v", err)
				}
			}
		}
	}
	// A flush that has begun either ends before the revocation is acknowledged, or sees
	// the revocation.
	edit(stores[0], 0)
	var group sync.WaitGroup
	stop := make(chan struct{})
	for n := range 8 {
		group.Go(func() {
			for {
				known := false
				select {
				case <-stop:
					known = true
				default:
				}
				err := stores[n%2].UpdateContacts(context.Background(), ws, nil, func(b *desk.Book, _, _ int) {
					if known && b.Settings().KeyByPublicID("k").RevokedAt == 0 {
						t.Error("a flush after the revocation does not know of it")
					}
				})
				if err != nil || known {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	edit(stores[1], 1) // although the other nodes write all the time
	close(stop)
	group.Wait()
}

// TestTransactionsSeeEdits: a transaction decides with the newest settings, even if it
// began with older settings from memory.
func TestTransactionsSeeEdits(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	refusal := desk.Invalidf("no")
	event := desk.Event{Type: desk.MessageReceived, Subject: newID(), At: 1}
	bodies := map[string]func(store.Tx) error{
		"reads, then writes": func(tx store.Tx) error {
			if _, err := tx.Contact(newID()); err != nil {
				return err
			}
			return tx.Append(event)
		},
		"only writes":            func(tx store.Tx) error { return tx.Append(event) },
		"asks for the time":      func(tx store.Tx) error { tx.Now(); return tx.Append(event) },
		"refuses at once":        func(store.Tx) error { return refusal },
		"refuses after a read":   func(tx store.Tx) error { _, err := tx.Contact(newID()); return cmp.Or(err, error(refusal)) },
		"swallows what it reads": func(tx store.Tx) error { _, _ = tx.Contact(newID()); return nil },
	}
	for name, f := range bodies {
		for range 3 {
			if _, err := stores[1].Settings(t.Context(), ws); err != nil { // puts the settings into memory
				t.Fatal(err)
			}
			if err := stores[0].UpdateSettings(t.Context(), ws, func(s *desk.Settings) (desk.Change, error) {
				return desk.Change{Workspace: &desk.Workspace{ID: ws, Name: s.Name + "+"}}, nil
			}); err != nil {
				t.Fatal(err)
			}
			newest, err := stores[0].Settings(t.Context(), ws)
			if err != nil {
				t.Fatal(err)
			}
			var saw *desk.Settings
			err = stores[1].InTx(t.Context(), ws, func(tx store.Tx) error { saw = tx.Settings(); return f(tx) })
			if want := strings.HasPrefix(name, "refuses"); (err != nil) != want || want && err != refusal { //nolint:errorlint // this very error
				t.Errorf("%s: %v", name, err)
			}
			if saw.Version != newest.Version || saw.Name != newest.Name {
				t.Errorf("%s: it was decided by the settings %d, and those of now are %d", name, saw.Version, newest.Version)
			}
		}
	}
	if err := stores[0].DeleteWorkspace(t.Context(), ws, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for name, f := range bodies {
		if err := stores[1].InTx(t.Context(), ws, f); !desk.IsType(err, desk.NotFound) {
			t.Errorf("%s, of a workspace that is deleted: %v", name, err)
		}
	}
}

// TestRemovedMemberOwnsNothing: one node removes a member while the other node assigns
// to this member.
func TestRemovedMemberOwnsNothing(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	for round := range 10 {
		m := &desk.Member{ID: newID(), Name: "M", Email: fmt.Sprintf("m%d@example.com", round)}
		change := func(s *Store, c desk.Change) error {
			return s.UpdateSettings(context.Background(), ws, func(*desk.Settings) (desk.Change, error) { return c, nil })
		}
		if err := change(stores[0], desk.Change{Member: m}); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for n := range 4 {
			group.Go(func() {
				op := upsertOf(identity("x", 10*round+n))
				op.Write.Owner = desk.Field[desk.Reference]{Set: true, Value: desk.ReferTo(m.ID.String())}
				if _, err := update(stores[0], ws, op); err != nil { // it may be refused
					t.Error(err)
				}
			})
		}
		group.Go(func() {
			if err := change(stores[1], desk.Change{RemoveMember: m}); err != nil && !errors.Is(err, store.ErrOwns) {
				t.Error(err)
			}
		})
		group.Wait()
	}
	if n := query(t, stores[0], `SELECT count(*)::text FROM contacts c WHERE owner_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM members m WHERE m.workspace_id = c.workspace_id AND m.id = c.owner_id)`); n[0] != "0" {
		t.Errorf("%s contacts are owned by somebody who is gone", n[0])
	}
}

// TestEarlyStatusesAreNotLost: a status arrives while its message is being stored.
func TestEarlyStatusesAreNotLost(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	channel := desk.ID{3}
	for round := range 30 {
		external := fmt.Sprint(round)
		var group sync.WaitGroup
		taken, met := 0, false
		group.Go(func() {
			err := stores[0].InTx(context.Background(), ws, func(tx store.Tx) error {
				list, err := tx.TakeStatuses(channel, external)
				taken = len(list)
				return errors.Join(err, tx.PutMessage(&desk.Message{ID: newID(), ConversationID: desk.ID{4}, ChannelID: channel, ExternalID: external}))
			})
			if err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			err := stores[1].InTx(context.Background(), ws, func(tx store.Tx) error {
				m, err := tx.MessageBy(channel, external)
				if met = m != nil; met || err != nil {
					return err
				}
				return tx.KeepStatus(channel, desk.StatusUpdate{ExternalID: external, Delivery: desk.Sent, At: 1})
			})
			if err != nil {
				t.Error(err)
			}
		})
		group.Wait()
		if met == (taken == 1) {
			t.Errorf("the status met its message: %v, and was taken %d times", met, taken)
		}
	}
}

// TestNodesTakeInboundOnce: if one node is taking an item, another node skips it without
// waiting, and gets it if the first node fails.
func TestNodesTakeInboundOnce(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	var list []desk.InboundItem
	for range 3 {
		list = append(list, desk.InboundItem{Channel: newID(), ID: newID(), Due: 1, Body: []byte("x")})
	}
	take := func(s *Store, from []desk.InboundItem, want int, then func() error) error {
		return s.InTx(t.Context(), ws, func(tx store.Tx) error {
			got, err := tx.TakeInbound(from)
			if err != nil || len(got) != want {
				t.Errorf("took %d inbound items, want %d, %v", len(got), want, err)
			}
			return then()
		})
	}
	done := func() error { return nil }
	for _, n := range list {
		if err := stores[0].InTx(t.Context(), ws, func(tx store.Tx) error { return tx.PutInbound(n) }); err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("failed")
	err := take(stores[0], list[:2], 2, func() error {
		return errors.Join(take(stores[1], list, 1, done), failed)
	})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := take(stores[1], list, 2, done); err != nil {
		t.Error(err)
	}
}

// TestVersionsAreNotUsedTwice: a standby that takes over may lack the last edits. Nodes
// still have settings with the versions of these edits in memory, so the versions must
// not be used again.
func TestVersionsAreNotUsedTwice(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	rename := func(s *Store, name string) {
		t.Helper()
		if err := s.UpdateSettings(t.Context(), ws, func(old *desk.Settings) (desk.Change, error) {
			w := old.Workspace
			w.Name = name
			return desk.Change{Workspace: &w}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	before := query(t, stores[0], `SELECT settings_version::text FROM workspaces`)
	rename(stores[0], "lost")
	if s, err := stores[0].Settings(t.Context(), ws); err != nil || s.Name != "lost" {
		t.Fatal(s, err)
	}
	query(t, stores[0], `UPDATE workspaces SET name = 'old', settings_version = `+before[0]+` RETURNING ''`)
	rename(stores[1], "new")
	if s, err := stores[0].Settings(t.Context(), ws); err != nil || s.Name != "new" {
		t.Errorf("a node still knows the edit that was lost: %s, %v", s.Name, err)
	}
}

// TestClaimThatComesLate: the connection of a process broke while the process was storing
// a claim. Another transaction stores the refused attempt in its place, but waits for the
// claim first.
func TestClaimThatComesLate(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	claim := desk.Attempt{ID: newID(), Key: "k", Phase: desk.Dispatching, CreatedAt: 1}
	given := make(chan error, 1)
	err := stores[0].InTx(t.Context(), ws, func(tx store.Tx) error {
		if err := errors.Join(tx.PutAttempt(&claim), tx.TakeKey("k", claim.ID)); err != nil {
			return err
		}
		if _, err := tx.Contact(newID()); err != nil { // sends the queued statements
			return err
		}
		go func() {
			given <- stores[1].InTx(t.Context(), ws, func(tx store.Tx) error {
				if at, err := tx.Attempt(claim.ID); at != nil || err != nil {
					return fmt.Errorf("the attempt is seen before its commit: %v, %w", at, err)
				}
				refused := claim
				refused.Phase, refused.SettledAt = desk.Refused, 2
				if err := tx.PutAttempt(&refused); err != nil {
					return err
				}
				held, err := tx.AttemptOfKey("k")
				if err != nil || held == nil || held.ID != claim.ID {
					return fmt.Errorf("the key is held by %v, %w", held, err)
				}
				return tx.FreeKey("k")
			})
		}()
		return waitForLocks(t, stores[0], given)
	})
	if err := errors.Join(err, <-given); err != nil {
		t.Fatal(err)
	}
	at, err := stores[0].Attempt(t.Context(), ws, claim.ID)
	if err != nil || at.Phase != desk.Refused {
		t.Errorf("the attempt is %+v, %v", at, err)
	}
	if held, err := stores[0].AttemptOfKey(t.Context(), ws, "k"); held != nil || err != nil {
		t.Errorf("the key is held by %+v, %v", held, err)
	}
}

// TestLostBeforeCommit: if the connection breaks before the commit, the transaction runs
// again.
func TestLostBeforeCommit(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	holder, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), lockAlone, uuid(ws), lockOf(ws)); err != nil {
		t.Fatal(err)
	}
	done, broken := make(chan error, 1), 0
	op := upsertOf(identity("a", 1))
	go func() {
		_, err := update(s, ws, op)
		done <- err
	}()
	for err = nil; err == nil; {
		select {
		case err = <-done:
		default:
			broken += breakWaits(t, s)
		}
	}
	if !desk.IsType(err, desk.Unavailable) || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("error = %v", err)
	}
	if broken < writeTries {
		t.Errorf("given up after %d broken connections, want %d", broken, writeTries)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := update(s, ws, op); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestLostAtCommit: if the connection breaks during the commit, the outcome is unknown,
// and the transaction never runs again.
func TestLostAtCommit(t *testing.T) {
	t.Parallel()
	onOneServer(t, "Citus takes no triggers on distributed tables")
	for name, trigger := range map[string]string{
		"in a statement": `CREATE TRIGGER t AFTER INSERT ON contacts FOR EACH ROW EXECUTE FUNCTION die()`,
		"in the commit":  `CREATE CONSTRAINT TRIGGER t AFTER INSERT ON contacts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, pgtest.Database(t))
			ws := newWorkspace(t, s)
			for _, sql := range []string{
				`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'`, trigger,
			} {
				if _, err := s.pool.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			runs := 0
			op := upsertOf(identity("a", 1))
			err := s.UpdateContacts(t.Context(), ws, []*desk.Op{op}, func(b *desk.Book, _, _ int) {
				runs++
				if _, err := b.Apply(op, desk.Actor{}, 1, newID); err != nil {
					t.Error(err)
				}
			})
			if !desk.IsType(err, desk.Unavailable) || !strings.Contains(err.Error(), "unknown") || runs != 1 {
				t.Errorf("error = %v after %d runs", err, runs)
			}
			if _, err := s.pool.Exec(t.Context(), `DROP TRIGGER t ON contacts`); err != nil {
				t.Fatal(err)
			}
			if _, err := update(s, ws, op); err != nil {
				t.Errorf("after it: %v", err)
			}
		})
	}
}

// TestReadsSurviveARestart: reads succeed although the connections in the pool are dead.
func TestReadsSurviveARestart(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	for range 5 {
		query(t, s, `SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		if _, err := s.Settings(t.Context(), ws); err != nil {
			t.Error(err)
		}
	}
}

// TestBlockedIsUnavailable: while another transaction holds the lock, a write returns
// Unavailable.
func TestBlockedIsUnavailable(t *testing.T) {
	t.Parallel()
	onOneServer(t, "the lock is on another server, where the lock_timeout of the session does not count")
	s, err := Open(t.Context(), Config{URL: pgtest.Database(t), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ws := newWorkspace(t, s)
	holder, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), lockAlone, uuid(ws), lockOf(ws)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), `SET lock_timeout = '50ms'`); err != nil { // the only connection that is left
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a write goes on after its caller has left
	if err := s.InTx(ctx, ws, func(store.Tx) error { return nil }); !desk.IsType(err, desk.Unavailable) {
		t.Errorf("while locked: %v", err)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(ctx, ws, func(store.Tx) error { return nil }); err != nil {
		t.Errorf("after: %v", err)
	}
}

func TestWhoseErrorItIs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err     error
		machine bool
	}{
		{&pgconn.PgError{Code: "57P01"}, true},
		{&pgconn.PgError{Code: "57P03"}, true},
		{&pgconn.PgError{Code: "57014"}, true},
		{&pgconn.PgError{Code: "53100"}, true},
		{&pgconn.PgError{Code: "53300"}, true},
		{&pgconn.PgError{Code: "58030"}, true},
		{&pgconn.PgError{Code: "08006"}, true},
		{&pgconn.PgError{Code: "25006"}, true},
		{&pgconn.PgError{Code: "55P03"}, true},
		{&pgconn.PgError{Code: "40P01"}, true},
		{&pgconn.ConnectError{}, true},
		{&net.OpError{Op: "read", Err: io.EOF}, true},
		{context.DeadlineExceeded, true},
		{&pgconn.PgError{Code: "23505"}, false},
		{&pgconn.PgError{Code: "42P01"}, false},
		{errors.New("a bug"), false},
	} {
		if got := desk.IsType(failed("doing", tc.err), desk.Unavailable); got != tc.machine {
			t.Errorf("%v is the machine's: %v", tc.err, got)
		}
	}
}

// onOneServer skips a test on a Citus cluster.
func onOneServer(t *testing.T, why string) {
	t.Helper()
	if pgtest.Citus() {
		t.Skip(why)
	}
}

// withSettings adds settings to the URL of a database.
func withSettings(url, settings string) string {
	if strings.Contains(url, "?") {
		return url + "&" + settings
	}
	return url + "?" + settings
}

// lockWaits returns how many sessions wait for a lock. On a Citus cluster they wait where the
// rows are.
func lockWaits(t *testing.T, s *Store) (n int) {
	t.Helper()
	waits := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	if pgtest.Citus() {
		waits = `SELECT sum(result::int) FROM run_command_on_all_nodes($$` + waits + `$$)`
	}
	check(t, s.pool.QueryRow(t.Context(), waits).Scan(&n))
	return n
}

// breakWaits ends the connections to s's server that wait for a lock, and returns their number.
func breakWaits(t *testing.T, s *Store) (n int) {
	t.Helper()
	if lockWaits(t, s) == 0 {
		return 0
	}
	waits := `wait_event_type = 'Lock'`
	if pgtest.Citus() { // they wait for another server, where somebody waits for a lock
		waits = `state = 'active' AND wait_event_type IS NOT NULL AND application_name LIKE 'parley%' AND pid <> pg_backend_pid()`
	}
	check(t, s.pool.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND `+waits).Scan(&n))
	return n
}

// waitForLocks returns once a transaction waits for another one. If done has an element
// first, waitForLocks returns it as an error.
func waitForLocks(t *testing.T, s *Store, done chan error) error {
	t.Helper()
	for lockWaits(t, s) == 0 {
		select {
		case err := <-done:
			return fmt.Errorf("it did not wait: %w", err)
		default:
		}
	}
	return nil
}

// TestContacts_wait: whoever only keeps contacts, so that they are not deleted, waits for those who
// delete and merge, and they for it. It does not wait for a change, nor a change for it: the
// follower of the search keeps hundreds at a time, and a change of several contacts would often
// wait for it while it waits for the change.
func TestContacts_wait(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	if _, err := update(s, ws, upsertOf(identity(desk.KindPhone, 1)), upsertOf(identity(desk.KindPhone, 2))); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 2)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	ids := []desk.ID{list[0].ID, list[1].ID}
	in := func(do func(store.Tx) error) func() error {
		return func() error { return s.InTx(t.Context(), ws, do) }
	}
	read := func(l desk.Lookup) func(store.Tx) error {
		return func(tx store.Tx) error { _, err := tx.Book(l); return err }
	}
	keep := func(tx store.Tx) error { _, err := tx.KeepContacts(ids); return err }
	change, merge := read(desk.Lookup{IDs: ids}), read((&desk.Op{Kind: desk.OpMerge, ByID: true, Target: ids[0], From: ids[1]}).Lookup())
	one := func(tx store.Tx) error { _, err := tx.Contact(ids[0]); return err }
	renames := 0
	rename := func() error { // of two, so that they are locked first
		renames++
		ops := []*desk.Op{upsertOf(identity(desk.KindPhone, 1)), upsertOf(identity(desk.KindPhone, 2))}
		for _, op := range ops {
			op.Write.Name = desk.Field[string]{Set: true, Value: fmt.Sprintf("Ann %d", renames)}
		}
		_, err := update(s, ws, ops...)
		return err
	}
	for _, c := range []struct {
		name  string
		first func(store.Tx) error
		then  func() error
		waits bool
	}{
		{"to keep, for a change", change, in(keep), false},
		{"a change, for who keeps", keep, in(change), false},
		{"a change of one, for who keeps", keep, in(one), false},
		{"to keep, for a change of one", one, in(keep), false},
		{"a rename, for who keeps", keep, rename, false},
		{"a change, for a change", change, in(change), true},
		{"a change of one, for a change", change, in(one), true},
		{"a rename, for a change", change, rename, true},
		{"to keep, for a merge", merge, in(keep), true},
		{"a merge, for who keeps", keep, in(merge), true},
		{"a merge, for a change", change, in(merge), true},
		{"a deletion, for who keeps", keep, func() error {
			_, err := update(s, ws, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: ids[0]}, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: ids[1]})
			return err
		}, true},
	} {
		waits(t, s, ws, c.name, c.first, c.then, c.waits)
	}
}

// TestCallbackOfADeletedContact: while a callback of a contact is being stored, the
// deletion of the contact waits. Afterwards it also deletes the callback.
func TestCallbackOfADeletedContact(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	if _, err := update(stores[0], ws, upsertOf(identity(desk.KindPhone, 1), identity(desk.KindPhone, 2))); err != nil {
		t.Fatal(err)
	}
	list, _, err := stores[0].Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	n := desk.InboundItem{ID: newID(), Due: 5, ReceivedAt: 5, Body: []byte("x")}
	if err := stores[0].InTx(t.Context(), ws, func(tx store.Tx) error {
		return errors.Join(tx.PutCallback(n), tx.PutInbound(n))
	}); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	err = stores[0].InTx(t.Context(), ws, func(tx store.Tx) error {
		_, err1 := tx.TakeInbound([]desk.InboundItem{n})
		_, err2 := tx.Callback(n)
		_, err3 := tx.Contact(list[0].ID)
		err4 := tx.PutCallbackPeople(n, []string{"2", "3"})
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return err
		}
		if forgotten, err := stores[1].ForgetCallbacks(t.Context(), ws, 0, 10); forgotten != 0 || err != nil {
			t.Errorf("%d callbacks were forgotten that are being taken in, %v", forgotten, err)
		}
		go func() {
			_, err := update(stores[1], ws, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: list[0].ID})
			deleted <- err
		}()
		return waitForLocks(t, stores[0], deleted)
	})
	if err := errors.Join(err, <-deleted); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"contacts", "inbound_items", "callbacks", "callback_people"} {
		if left := query(t, stores[0], `SELECT count(*)::text FROM `+table); left[0] != "0" {
			t.Errorf("%s rows of %s are left", left[0], table)
		}
	}
}

// TestNodesKeepPaceTogether: several nodes take places in the same buckets, and name the
// buckets in different orders. They do not deadlock, and they never take one place too
// many. This holds even if old buckets are deleted meanwhile, and an edit has the
// workspace to itself.
func TestNodesKeepPaceTogether(t *testing.T) {
	t.Parallel()
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	const callers, rounds, burst = 8, 25, 40
	var taken atomic.Int32
	var group sync.WaitGroup
	err := stores[0].UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) {
		for n := range callers {
			group.Go(func() {
				for round := range rounds {
					names := []string{"a", "b", "c", fmt.Sprint("new ", round), fmt.Sprint("a new ", round)}
					list := []desk.Bucket{{Name: "held", Interval: time.Hour, Burst: burst}}
					for i := range names {
						list = append(list, desk.Bucket{Name: names[(i*(1+n%4)+n)%len(names)], Burst: 1}) // a place in such a bucket passes at once
					}
					wait, ok, err := stores[n%2].Pace(context.Background(), ws, list, 0)
					if err != nil || ok == (wait > 0) {
						t.Errorf("pace: %v after %v, %v", ok, wait, err)
					}
					if ok {
						taken.Add(1)
					}
					if err := stores[n%2].ForgetPace(context.Background(), ws, 100*time.Hour); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		return desk.Change{}, nil
	})
	if err != nil || taken.Load() != burst {
		t.Errorf("%d places were taken, want %d, %v", taken.Load(), burst, err)
	}
	if left := query(t, stores[0], `SELECT bucket FROM pace`); !slices.Equal(left, []string{"held"}) {
		t.Errorf("buckets are left: %q", left)
	}
}

// TestDraftOfALeaver: if a client disconnects during an upload, nothing of the upload is
// kept.
func TestDraftOfALeaver(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ctx, leave := context.WithCancel(t.Context())
	d, err := s.NewContent(ctx, newWorkspace(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(make([]byte, 3*chunkBytes+1)); err != nil {
		t.Fatal(err)
	}
	left := func() string {
		return query(t, s, `SELECT concat((SELECT count(*) FROM media_drafts), ' ', (SELECT count(*) FROM media_chunks))`)[0]
	}
	if got := left(); got != "1 3" {
		t.Errorf("an upload under way is %s", got)
	}
	leave()
	if _, err := d.Write(make([]byte, 2*chunkBytes)); err == nil {
		t.Error("it can be written, although the client has left")
	}
	d.Drop()
	if got := left(); got != "0 0" {
		t.Errorf("it leaves %s", got)
	}
}

// TestErasureBesideMediaRef: the sender of a file is deleted while the provider's id of
// the file is being stored. The id is deleted with the file.
func TestErasureBesideMediaRef(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws, media, person := newWorkspace(t, s), desk.ID{1}, desk.ID{2}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.InTx(t.Context(), ws, func(tx store.Tx) error {
		book, err := tx.Book(desk.Lookup{})
		if err != nil {
			return err
		}
		write := desk.ContactWrite{Email: desk.Field[string]{Set: true, Value: "a@example.com"}, Sent: []desk.Identity{desk.EmailIdentity("a@example.com")}}
		if _, err := book.Apply(&desk.Op{Kind: desk.OpUpsert, Write: write}, desk.Actor{Kind: desk.ByCLI}, 1, func() desk.ID { return person }); err != nil {
			return err
		}
		if err := tx.Flush(book); err != nil {
			return err
		}
		return tx.PutMedia(&desk.Media{ID: media, ContactID: person, Kind: desk.KindImage, Status: desk.MediaFailed, CreatedAt: 1})
	}))
	storing, err := s.pool.Begin(t.Context())
	must(err)
	defer func() { _ = storing.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = storing.Exec(t.Context(), putMediaRefQuery, uuid(ws), uuid(media), uuid(desk.ID{3}), "ref", 1)
	must(err)
	deleted := make(chan error, 1)
	go func() {
		op := &desk.Op{Kind: desk.OpDelete, ByID: true, Target: person}
		var failed error
		err := s.UpdateContacts(t.Context(), ws, []*desk.Op{op}, func(book *desk.Book, _, _ int) {
			_, failed = book.Apply(op, desk.Actor{Kind: desk.ByCLI}, 2, nil)
		})
		deleted <- errors.Join(err, failed)
	}()
	for start := time.Now(); lockWaits(t, s) == 0; {
		if time.Since(start) > time.Minute {
			t.Fatal("the deletion does not wait")
		}
	}
	must(storing.Commit(t.Context()))
	must(<-deleted)
	if left := query(t, s, `SELECT concat((SELECT count(*) FROM media), ' ', (SELECT count(*) FROM media_refs))`)[0]; left != "0 0" {
		t.Errorf("files and the provider's ids of them: %s are left", left)
	}
}

func TestStuckContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{URL: pgtest.Database(t), MaxConns: 4, Media: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	storetest.StuckContent(t, s, dir)
}
