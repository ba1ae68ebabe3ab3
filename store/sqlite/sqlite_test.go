package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
	"parley/store/sqlite/sqlitetest"
	"parley/store/storetest"
)

// NewFile makes a file with all tables.
var NewFile = sqlitetest.Copies(func(path string) (io.Closer, error) {
	return Open(context.Background(), Config{Path: path})
})

func openStore(t *testing.T) *Store {
	t.Helper()
	return openAt(t, NewFile(t))
}

func openAt(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path})
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

func pragma(t *testing.T, c conn, name string) string {
	t.Helper()
	row := c.stmt("PRAGMA " + name)
	if !row.next() {
		t.Fatalf("PRAGMA %s answers nothing: %v", name, row.done())
	}
	value := row.readText()
	if err := row.done(); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestCommitsAreDurable reads the pragmas on the live connections. A test that kills the
// process proves nothing about a loss of power.
func TestCommitsAreDurable(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for name, want := range map[string]string{
		"synchronous": "2", "journal_mode": "wal", "wal_autocheckpoint": "0", "busy_timeout": "5000",
	} {
		if got := pragma(t, s.writer, name); got != want {
			t.Errorf("PRAGMA %s = %s on the writer, want %s", name, got, want)
		}
	}
	reader := <-s.readers
	defer func() { s.readers <- reader }()
	if got := pragma(t, reader, "synchronous"); got != "2" {
		t.Errorf("PRAGMA synchronous = %s on a reader", got)
	}
}

// TestSQLiteHasNoWALResetBug refuses versions with a bug: a checkpoint at the same time
// as a reset of the log could lose committed pages. It is fixed in 3.51.3, 3.50.7 and
// 3.44.6.
func TestSQLiteHasNoWALResetBug(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	row := s.writer.stmt("SELECT sqlite_version()")
	row.next()
	version := row.readText()
	if err := row.done(); err != nil {
		t.Fatal(err)
	}
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatal(err)
	}
	fixed := minor > 51 || minor == 51 && patch >= 3 || minor == 50 && patch >= 7 || minor == 44 && patch >= 6
	if major != 3 || !fixed {
		t.Errorf("SQLite %s has the WAL-reset bug", version)
	}
}

func TestFilesAreThisUsersOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, filepath.Join(dir, "parley.db"))
	if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: desk.ID{1}, Name: "A"}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "parley.db": 0o600, "parley.db-wal": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", path, got, want)
		}
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
	s := openAt(t, path)
	if err := s.writer.stmt(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`).run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Path: path}); err == nil || !strings.Contains(err.Error(), "newer parley") {
		t.Errorf("error = %v", err)
	}
}

func TestTenOpenAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			s, err := Open(t.Context(), Config{Path: path})
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
	s := openAt(t, path)
	if err := s.BindSecret(t.Context(), "other"); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("another secret key: %v", err)
	}
}

// createContact writes one contact.
func createContact(s *Store, ws desk.ID, n int) error {
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.ExternalID = desk.Field[string]{Set: true, Value: fmt.Sprint("x", n)}
	op.Write.Note = desk.Field[string]{Set: true, Value: strings.Repeat("n", 2000)}
	op.Write.Sent = []desk.Identity{{Kind: desk.KindExternalID, Value: op.Write.ExternalID.Value}}
	return s.UpdateContacts(context.Background(), ws, []*desk.Op{op}, func(b *desk.Book, _, _ int) {
		id := desk.ID{1, byte(n >> 16), byte(n >> 8), byte(n)}
		if _, err := b.Apply(op, desk.Actor{}, 1, func() desk.ID { return id }); err != nil {
			panic(err)
		}
	})
}

func newWorkspace(t *testing.T, s *Store) desk.ID {
	t.Helper()
	ws := desk.ID{7}
	if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "A"}); err != nil {
		t.Fatal(err)
	}
	return ws
}

// TestDiskFull: writes to a full database return Unavailable. The database keeps all
// acknowledged data, can still be read, and accepts writes as soon as there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	pragma(t, s.writer, "max_page_count = 160")
	stored := 0
	for ; stored < 1000; stored++ {
		if err := createContact(s, ws, stored); err != nil {
			if !desk.IsType(err, desk.Unavailable) {
				t.Fatalf("a full database: %v", err)
			}
			break
		}
	}
	if stored == 0 || stored == 1000 {
		t.Fatalf("%d contacts fitted", stored)
	}
	list, _, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 2000)
	if err != nil || len(list) != stored {
		t.Errorf("%d contacts of %d are there, %v", len(list), stored, err)
	}
	pragma(t, s.writer, "max_page_count = 10000")
	if err := createContact(s, ws, stored); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestAReadThatFailsLeavesNothingOpen: a failed read resets its statement. Otherwise the
// statement would keep its snapshot, and could not be bound again on this connection.
func TestAReadThatFailsLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	if err := createContact(s, ws, 1); err != nil {
		t.Fatal(err)
	}
	settings := func(options string) {
		t.Helper()
		if err := errors.Join(
			s.writer.stmt(`REPLACE INTO attributes (workspace_id, key, label, description, type, options, position, archived)
				VALUES (?, 'a', '', '', 'select', ?, 0, 0)`).id(ws).text(options).run(),
			s.writer.stmt(`UPDATE workspaces SET settings_version = settings_version + 1 WHERE id = ?`).id(ws).run()); err != nil {
			t.Fatal(err)
		}
	}
	read := func() error {
		_, _, one := s.Contact(t.Context(), ws, desk.ID{1, 0, 0, 1})
		_, _, many := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 10)
		if (one == nil) != (many == nil) {
			t.Errorf("one contact: %v, the list: %v", one, many)
		}
		return errors.Join(one, many)
	}
	settings("no JSON")
	if read() == nil {
		t.Fatal("settings that can't be read were read")
	}
	settings("[]")
	for range 2 * cap(s.readers) {
		if err := read(); err != nil {
			t.Fatalf("after the failure: %v", err)
		}
	}
}

// TestLockedIsUnavailable: while another process holds the lock, a write returns
// Unavailable.
func TestLockedIsUnavailable(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	s.patience = 10 * time.Millisecond
	other, err := open(s.path, readerCache)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.stmt(beginWrite).run(); err != nil {
		t.Fatal(err)
	}
	if err := createContact(s, ws, 1); !desk.IsType(err, desk.Unavailable) {
		t.Errorf("while locked: %v", err)
	}
	if err := errors.Join(other.stmt("ROLLBACK").run(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if err := createContact(s, ws, 1); err != nil {
		t.Errorf("after: %v", err)
	}
}

// together is a helper that lets n changes run in one group: it blocks the queue until
// all of them wait.
func together(t *testing.T, s *Store, n int, change func(n int) error) []error {
	t.Helper()
	started, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		if err := s.alone(func() error { close(started); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-started
	errs := make([]error, n)
	for i := range n {
		group.Go(func() { errs[i] = change(i) })
		for waiting := 0; waiting <= i; { // so that the changes queue up in this order
			s.queue.mu.Lock()
			waiting = len(s.queue.waiting)
			s.queue.mu.Unlock()
			runtime.Gosched()
		}
	}
	close(release)
	group.Wait()
	return errs
}

// TestChangesJoinATransaction: a change that arrives while others run is committed with
// them, unless they have run for long.
func TestChangesJoinATransaction(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	// joins is a helper: it tells whether the second change ran before the row of the first
	// one was committed.
	joins := func(ref string, long bool) (joined bool) {
		before := s.testRows(t)
		began := time.Now()
		first := func(c conn) error {
			for waiting := 0; waiting == 0 || long && time.Since(began) <= joinFor; runtime.Gosched() {
				s.queue.mu.Lock()
				waiting = len(s.queue.waiting)
				s.queue.mu.Unlock()
			}
			return putTestRow(c, ref)
		}
		started := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			if err := s.write(t.Context(), func(c conn) error { close(started); began = time.Now(); return first(c) }); err != nil {
				t.Error(err)
			}
		})
		<-started
		if err := s.write(t.Context(), func(conn) error { joined = s.testRows(t) == before; return nil }); err != nil {
			t.Error(err)
		}
		group.Wait()
		if s.testRows(t) != before+1 {
			t.Error("the first change is not stored")
		}
		return joined
	}
	if joins("long", true) {
		t.Error("a change joined a transaction that had run for long")
	}
	for n := range 1000 { // on a slow machine, even a short one may take long
		if joins(fmt.Sprint(n), false) {
			return
		}
	}
	t.Error("no change ever joined those that ran")
}

// TestChangesShareACommit: changes that arrive during a commit share the next one. A
// change that fails does not affect the others in its group. If it fails before it wrote
// anything, the others do not even run again.
func TestChangesShareACommit(t *testing.T) {
	t.Parallel()
	refusal := errors.New("refused")
	for name, tc := range map[string]struct {
		fail func(conn) error
		runs int // how often each change runs
	}{
		"refused":                 {func(conn) error { return refusal }, 1},
		"refused_as_unavailable":  {func(conn) error { return stored.Unavailable(refusal) }, 1},
		"constraint":              {func(c conn) error { return errors.Join(putTestRow(c, "taken"), refusal) }, 1},
		"panic":                   {func(conn) error { panic(refusal) }, 1},
		"wrote_and_refused":       {func(c conn) error { return errors.Join(putTestRow(c, "3"), refusal) }, 2},
		"wrote_and_constraint":    {func(c conn) error { return errors.Join(putTestRow(c, "3"), putTestRow(c, "taken"), refusal) }, 2},
		"wrote_and_panic":         {func(c conn) error { panic(putTestRow(c, "3")) }, 2},
		"deleted_and_unavailable": {func(c conn) error { _ = c.stmt(`DELETE FROM directory`).run(); return stored.Unavailable(refusal) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			if err := s.write(t.Context(), func(c conn) error { return putTestRow(c, "taken") }); err != nil {
				t.Fatal(err)
			}
			runs := make([]int, 10)
			errs := together(t, s, len(runs), func(n int) error {
				return s.write(t.Context(), func(c conn) error {
					runs[n]++
					if n == 3 {
						return tc.fail(c)
					}
					return putTestRow(c, fmt.Sprint(n))
				})
			})
			for n, err := range errs {
				if (n == 3) != (err != nil) {
					t.Errorf("change %d: %v", n, err)
				}
				// When a change wrote and then failed, the changes behind it have not run
				// yet. They run only once, after it.
				if want := tc.runs; runs[n] != want && (n <= 3 || runs[n] != 1) {
					t.Errorf("change %d ran %d times, want %d", n, runs[n], want)
				}
			}
			row := s.writer.stmt(`SELECT count(*), max(ref = '3'), max(ref = 'taken') FROM directory WHERE kind = 'test'`)
			row.next()
			if n, third, taken := row.readInt(), row.readInt(), row.readInt(); n != 10 || third != 0 || taken != 1 {
				t.Errorf("%d rows are stored; the one that failed: %d, the one before: %d", n, third, taken)
			}
			if err := row.done(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestAnIdleTransactionCostsNoSync: a transaction that only reads, or is refused, writes
// nothing to the log.
func TestAnIdleTransactionCostsNoSync(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	length := func() int64 {
		info, err := os.Stat(s.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := length()
	refusal := desk.Invalidf("no")
	for _, want := range []error{nil, refusal} {
		err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
			_, err := tx.AttemptOfKey("k")
			return errors.Join(err, want)
		})
		if !errors.Is(err, want) {
			t.Error(err)
		}
	}
	if after := length(); after != before || s.frames > 10 {
		t.Errorf("the log grew from %d to %d bytes", before, after)
	}
}

// TestARefusalIsNotAnsweredBeforeItsGround: a refused change may have seen data of other
// changes of its group. If this data is not stored, the refused change runs again.
func TestARefusalIsNotAnsweredBeforeItsGround(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	undone := errors.New("undone")
	runs := 0
	errs := together(t, s, 3, func(n int) error {
		return s.InTx(t.Context(), ws, func(tx store.Tx) error {
			switch n {
			case 0:
				if runs++; runs > 1 {
					return undone
				}
				return tx.TakeKey("k", desk.ID{9})
			case 1:
				return tx.TakeKey("k", desk.ID{8}) // refused because of the data of the first change
			}
			return errors.Join(tx.TakeKey("other", desk.ID{7}), undone)
		})
	})
	if !errors.Is(errs[0], undone) || errs[1] != nil || !errors.Is(errs[2], undone) {
		t.Errorf("errors = %v", errs)
	}
}

// fillDisk writes more than there is room for, and returns the error.
func fillDisk(t *testing.T, s *Store, tx store.Tx) error {
	t.Helper()
	pragma(t, s.writer, "max_page_count = "+pragma(t, s.writer, "page_count"))
	err := tx.PutInbound(desk.InboundItem{ID: desk.ID{1}, Body: make([]byte, 1<<20)})
	if err == nil || !s.writer.AutocommitEnabled() {
		t.Errorf("on a full disk SQLite did not roll back by itself, so this test has lost its subject; %v", err)
	}
	pragma(t, s.writer, "max_page_count = 10000")
	return err
}

// TestNothingIsStoredOutsideOfATransaction: a full disk can make SQLite roll back by
// itself. If the change goes on, the rest of its writes must not be stored.
func TestNothingIsStoredOutsideOfATransaction(t *testing.T) {
	t.Parallel()
	for regardless := range 3 {
		s := openStore(t)
		ws := newWorkspace(t, s)
		for n, err := range together(t, s, 3, func(n int) error {
			return s.InTx(t.Context(), ws, func(tx store.Tx) error {
				if n == regardless {
					_ = fillDisk(t, s, tx)
					_ = tx.TakeKey("rest", desk.ID{9})
					return nil
				}
				return tx.TakeKey(fmt.Sprint(n), desk.ID{9})
			})
		}) {
			if !desk.IsType(err, desk.Unavailable) {
				t.Errorf("change %d beside %d: %v", n, regardless, err)
			}
		}
		stored, err := all("keys", s.writer.stmt(`SELECT key FROM send_keys`), (*stmt).readText)
		if err != nil || stored != nil {
			t.Errorf("stored: %q, %v", stored, err)
		}
		if err := s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.TakeKey("1", desk.ID{9}) }); err != nil {
			t.Errorf("with room again: %v", err)
		}
	}
}

// TestSettingsThatWereRolledBackAreForgotten: after a rollback, another edit gets the
// same version number, maybe in another process.
func TestSettingsThatWereRolledBackAreForgotten(t *testing.T) {
	t.Parallel()
	path := NewFile(t)
	s, other := openAt(t, path), openAt(t, path)
	ws := newWorkspace(t, s)
	rename := func(s *Store, name string) error {
		return s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) {
			return desk.Change{Workspace: &desk.Workspace{ID: ws, Name: name}}, nil
		})
	}
	read := func() error { return s.InTx(t.Context(), ws, func(store.Tx) error { return nil }) }
	for n, err := range together(t, s, 3, func(n int) error {
		switch n {
		case 0:
			return rename(s, "never")
		case 1:
			return read()
		}
		return s.InTx(t.Context(), ws, func(tx store.Tx) error { return fillDisk(t, s, tx) })
	}) {
		if !desk.IsType(err, desk.Unavailable) {
			t.Fatalf("change %d: %v", n, err)
		}
	}
	if err := rename(other, "B"); err != nil {
		t.Fatal(err)
	}
	settings, err := s.Settings(t.Context(), ws)
	if err != nil || settings.Name != "B" {
		t.Errorf("settings = %+v, %v", settings, err)
	}
	// Committed settings are kept in memory.
	err = errors.Join(rename(s, "C"), read())
	if kept := s.settings.At(ws, settings.Version+1); err != nil || kept == nil || kept.Name != "C" {
		t.Errorf("in memory are %+v, %v", kept, err)
	}
}

// TestEventsAreNumberedOn: events continue the numbers, in one transaction or several,
// for all kinds of writes.
func TestEventsAreNumberedOn(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.ExternalID = desk.Field[string]{Set: true, Value: "x"}
	op.Write.Sent = []desk.Identity{{Kind: desk.KindExternalID, Value: "x"}}
	for range 2 {
		err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
			book, err := tx.Book(op.Lookup())
			if err != nil {
				return err
			}
			_, err = book.Apply(op, desk.Actor{Kind: desk.ByCLI}, 1, func() desk.ID { return desk.ID{5} })
			e := desk.Event{Type: desk.ConversationUpdated, Subject: desk.ID{1}, Actor: desk.Actor{Kind: desk.ByKey, ID: desk.ID{2}}, At: 3, Changed: []string{"assignee", "status"}}
			return errors.Join(err, tx.Append(e, e), tx.Append(), tx.Flush(book), tx.Append(e))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := all("events", s.writer.stmt(`SELECT seq, kind, actor_kind, changed FROM events WHERE workspace_id = ? ORDER BY seq`).id(ws), func(s *stmt) string {
		return fmt.Sprint(s.readInt(), " ", s.readText(), " ", s.readText(), " ", s.readText())
	})
	want := []string{
		"1 conversation.updated key assignee,status", "2 conversation.updated key assignee,status", "3 contact.created cli ", "4 conversation.updated key assignee,status",
		"5 conversation.updated key assignee,status", "6 conversation.updated key assignee,status", "7 conversation.updated key assignee,status",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("events = %q, %v", got, err)
	}
}

// TestEventsAreNumberedOn_by_all: another process, such as a command, may have written
// the newest event. A failed transaction leaves no gap in the numbers.
func TestEventsAreNumberedOn_by_all(t *testing.T) {
	t.Parallel()
	path := NewFile(t)
	a, b := openAt(t, path), openAt(t, path)
	ws := newWorkspace(t, a)
	failed := errors.New("failed")
	for i, s := range []*Store{a, b, b, a, a, b} {
		for _, outcome := range []error{failed, nil} {
			err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
				e := desk.Event{Type: desk.ConversationUpdated, Subject: desk.ID{1}, Actor: desk.Actor{Kind: desk.ByCLI}, At: desk.Time(i)}
				return errors.Join(tx.Append(e), outcome)
			})
			if !errors.Is(err, outcome) {
				t.Fatalf("write %d: %v", i, err)
			}
		}
	}
	got, err := all("events", a.writer.stmt(`SELECT seq, at FROM events WHERE workspace_id = ? ORDER BY seq`).id(ws), func(s *stmt) string {
		return fmt.Sprint(s.readInt(), " at ", s.readInt())
	})
	if want := []string{"1 at 0", "2 at 1", "3 at 2", "4 at 3", "5 at 4", "6 at 5"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("events = %q, %v", got, err)
	}
}

// TestAnotherProcessGetsItsTurn: a store that writes all the time lets another process
// write.
func TestAnotherProcessGetsItsTurn(t *testing.T) {
	t.Parallel()
	path := NewFile(t)
	server, command := openAt(t, path), openAt(t, path)
	ws := newWorkspace(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	var written int
	group.Go(func() {
		for ctx.Err() == nil {
			if err := createContact(server, ws, written); err != nil {
				t.Error(err)
			}
			written++
		}
	})
	for n := range 10 {
		name := fmt.Sprint("name ", n)
		err := command.UpdateSettings(t.Context(), ws, func(s *desk.Settings) (desk.Change, error) {
			return desk.Change{Workspace: &desk.Workspace{ID: ws, Name: name}}, nil
		})
		if err != nil {
			t.Error(err)
		}
		settings, err := server.Settings(t.Context(), ws)
		if err != nil || settings.Name != name {
			t.Errorf("the server sees %v after the command has ended, %v", settings, err)
		}
	}
	cancel()
	group.Wait()
}

// TestTheLogIsBegunAnew: while writers never pause, the log is emptied and overwritten
// in place. It does not grow with the number of writes.
func TestTheLogIsBegunAnew(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := createContact(s, ws, n<<16+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	c, err := open(s.path, readerCache)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := s.empty(c); err != nil {
			t.Error(err)
		}
		// The log between two checkpoints is short, however many checkpoints there were.
		if frames, err := checkpoint(c, "PASSIVE"); err != nil || frames > 2000 {
			t.Errorf("the log holds %d frames, %v", frames, err)
		}
	}
	cancel()
	group.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestACommandShortensTheLog: a command makes checkpoints itself, because the server does not know how
// much it writes.
func TestACommandShortensTheLog(t *testing.T) {
	t.Parallel()
	server, command := serverAndCommand(t)
	ws := newWorkspace(t, server)
	const written = 24 << 20
	for n := range written >> 20 {
		command.frames = commandFrames*checkpointFrames - 1
		if err := command.InTx(t.Context(), ws, func(tx store.Tx) error {
			return tx.PutCallback(desk.InboundItem{ReceivedAt: desk.Time(n), Body: make([]byte, 1<<20)})
		}); err != nil {
			t.Fatal(err)
		}
	}
	if log, err := os.Stat(server.path + "-wal"); err != nil || log.Size() > written/4 {
		t.Errorf("the log has %d bytes after %d were written, %v", log.Size(), written, err)
	}
}

// TestAReaderDoesNotHoldUpWriters: a backup reads one snapshot for a long time, and
// writes go on without waiting for it.
func TestAReaderDoesNotHoldUpWriters(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	backup, err := open(s.path, readerCache)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(createContact(s, ws, 1), backup.stmt("BEGIN").run(), backup.stmt("SELECT count(*) FROM contacts").run(), createContact(s, ws, 2)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	for range 10 {
		s.checkpoints <- struct{}{} // received only after the last checkpoint is done
		if err := createContact(s, ws, 3); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > busyTimeout {
		t.Errorf("10 writes beside checkpoints and a reader took %v", took)
	}
	cancel()
	group.Wait()
	if err := errors.Join(backup.stmt("COMMIT").run(), backup.Close()); err != nil {
		t.Error(err)
	}
}

// TestAGrownLogWakesTheCheckpointer: many small commits start a checkpoint, and so do a
// few large ones. A large callback counts with all its pages.
func TestAGrownLogWakesTheCheckpointer(t *testing.T) {
	t.Parallel()
	for rows, most := range map[int]int{6: 1500, 6000: 12} {
		s := openStore(t)
		s.serving.Store(true)
		for n := 0; len(s.checkpoints) == 0; n++ {
			if n > most {
				t.Errorf("%d commits of %d rows wake nobody", n, rows)
				break
			}
			s.grew(rows)
		}
	}
	s := openStore(t)
	ws := newWorkspace(t, s)
	s.serving.Store(true)
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		return tx.PutCallback(desk.InboundItem{ReceivedAt: 1, Body: make([]byte, 1<<20)})
	}); err != nil {
		t.Fatal(err)
	}
	if s.frames < (1<<20)/pageSize || s.frames > 300 {
		t.Errorf("a megabyte counts as %d pages", s.frames)
	}
}

// TestNoQueryScans checks that the queries of hot paths use an index. Tests of lists are
// in lists_test.go.
func TestNoQueryScans(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	queries := []string{
		loadBookQuery, holdersQuery, contactQuery, authenticateQuery, newestEventQuery, workspaceOfQuery, ownsQuery, templatesQuery, sandboxTemplatesQuery,
		conversationQuery, openConversationQuery, messagesQuery, messageQuery, messageByQuery, messagesByQuery, newestMessageQuery, putMessageDeliveryQuery,
		attemptQuery, untouchedQuery, attemptOfKeyQuery, attemptsQuery, inDoubtQuery, oldestInDoubtQuery, dispatchingQuery, phasesQuery, attemptsToContactsQuery, attemptsToNumbersQuery, unsentToQuery, eraseSettledQuery, forgottenMessagesQuery, erasedQuery, dropErasedQuery, hourQuery, raiseHourQuery, lapsedQuery, forgetKeysQuery, forgetAttemptsQuery,
		optOutQuery, takeStatusesQuery, dropStatusesQuery, inboundQuery, farInboundQuery, takeInboundQuery, eraseMessagesQuery, eraseNotesQuery, eraseConversationsQuery, notesQuery, noteQuery,
		channelsOfKindQuery, channelSignsQuery, paceQuery, callbackQuery, newestCallbackQuery, putCallbackPeopleQuery,
		forgetCallbackPeopleQuery, forgetCallbacksQuery, eraseCallbacksQuery, eraseCallbackPeopleQuery, eraseStatusesQuery,
		turnQuery, poolQuery, takeAutoReplyQuery, autoReplyQuery, eraseAutoRepliesQuery,
		deliveryQuery, deliveriesQuery, deliveriesOfStateQuery, deliveriesOfEventQuery, deliveryResponsesQuery, nextDeliveredQuery,
	}
	for _, query := range queries {
		steps, err := all("plan", s.writer.stmt("EXPLAIN QUERY PLAN "+query), func(s *stmt) string { s.col = 3; return s.readText() })
		if err != nil || len(steps) == 0 {
			t.Errorf("%s: %v, %v", query, steps, err)
		}
		for _, step := range steps {
			scans := strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "VIRTUAL TABLE") && step != "SCAN CONSTANT ROW"
			all := strings.HasSuffix(step, "(workspace_id=?)") && !strings.Contains(query, "LIMIT") // all rows of a workspace
			if scans || all || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s\nin: %s", step, query)
			}
		}
	}
}

// TestGaugesScanNoWorkspace: a request for /metrics reads all channels, but attempts and
// callbacks only through an index.
func TestGaugesScanNoWorkspace(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for query, want := range map[string][]string{
		countInDoubtQuery:   {"USING COVERING INDEX attempts_unsettled (phase=?)"},
		countInboundQuery:   {"SCAN inbound_items"}, // all rows are counted
		channelMetricsQuery: {"SCAN c", "USING COVERING INDEX callbacks_channel (workspace_id=? AND channel_id=?)"},
	} {
		steps, err := all("plan", s.writer.stmt("EXPLAIN QUERY PLAN "+query), func(s *stmt) string { s.col = 3; return s.readText() })
		plan := strings.Join(steps, "; ")
		for _, part := range want {
			if err != nil || !strings.Contains(plan, part) {
				t.Errorf("%v, %s\nin: %s", err, plan, query)
			}
		}
		for _, large := range []string{"contacts", "conversations", "messages", "SCAN a"} {
			if strings.Contains(plan, large) {
				t.Errorf("%s\nin: %s", plan, query)
			}
		}
	}
}

// TestBucketsAreForgotten: buckets without future places are deleted.
func TestBucketsAreForgotten(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	for n := range 5 {
		if _, ok, err := s.Pace(t.Context(), ws, []desk.Bucket{{Name: fmt.Sprint(n), Burst: 1}, {Name: "held", Interval: time.Hour, Burst: 9}}, 0); !ok || err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ForgetPace(t.Context(), ws, 1000*time.Hour); err != nil {
		t.Fatal(err)
	}
	left, err := all("buckets", s.writer.stmt(`SELECT bucket FROM pace`), (*stmt).readText)
	if err != nil || !slices.Equal(left, []string{"held"}) {
		t.Errorf("buckets are left: %q, %v", left, err)
	}
}

func TestStuckContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.StuckContent(t, openAt(t, filepath.Join(dir, "parley.db")), filepath.Join(dir, "media"))
}

// TestFilesGoBesideWrites: while a transaction is open, all other writes wait, so files
// are deleted only after the transaction. A change in the same transaction still sees the
// files.
func TestFilesGoBesideWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "parley.db"))
	ctx := t.Context()
	ws := desk.ID{7}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.CreateWorkspace(ctx, desk.Workspace{ID: ws, Name: "Acme"}))
	keep := func(text string) (sum []byte) {
		t.Helper()
		d, err := s.NewContent(ctx, ws)
		must(err)
		defer d.Drop()
		_, err = d.Write([]byte(text))
		must(err)
		sum, _, err = d.Keep(ctx, 0)
		must(err)
		must(s.InTx(ctx, ws, func(tx store.Tx) error {
			if err := tx.UseContent(sum); err != nil {
				return err
			}
			return tx.ReleaseContent(sum)
		}))
		return sum
	}
	files := func(below string) (n int) {
		t.Helper()
		err := filepath.WalkDir(filepath.Join(dir, "media", below), func(_ string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				n++
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		return n
	}
	// beside is a helper that runs do. In the transaction of do's first change, it also
	// runs look.
	beside := func(do func() error, look func()) {
		t.Helper()
		blocked, free := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		change := func(f func()) func() {
			return func() {
				if err := s.write(t.Context(), func(conn) error { f(); return nil }); err != nil {
					t.Error(err)
				}
			}
		}
		queued := func(n int) {
			for {
				s.queue.mu.Lock()
				waiting := len(s.queue.waiting)
				s.queue.mu.Unlock()
				if waiting == n {
					return
				}
				runtime.Gosched()
			}
		}
		all.Go(change(func() { close(blocked); <-free }))
		<-blocked
		all.Go(func() {
			if err := do(); err != nil {
				t.Error(err)
			}
		})
		queued(1)
		all.Go(change(look))
		queued(2)
		close(free)
		all.Wait()
	}
	keep("one")
	keep("two")
	beside(func() error {
		n, err := s.DropContents(ctx, 50)
		if n != 2 {
			t.Errorf("%d contents", n)
		}
		return err
	}, func() {
		if kept, aside := files(ws.String()), files("drafts"); kept != 0 || aside != 2 {
			t.Errorf("in the transaction, %d files are in their place, and %d are set aside", kept, aside)
		}
	})
	if n := files(""); n != 0 {
		t.Errorf("%d files are left", n)
	}

	_, err := s.files.SetAside(ws, keep("three")) // by a process that is killed then
	must(err)
	must(s.DropDrafts(ctx, -time.Hour))
	if n, err := s.DropContents(ctx, 50); n != 1 || err != nil || files("") != 0 {
		t.Errorf("after a kill: %d contents, %v, %d files", n, err, files(""))
	}

	keep("four")
	must(s.DeleteWorkspace(ctx, ws, func(string) error { return nil }))
	for n := 1; n > 0; { // all records, but not yet the workspace
		must(s.write(t.Context(), func(c conn) error {
			n = 0
			tables, err := workspaceTables(c)
			for _, table := range tables {
				if err == nil {
					err = c.stmt(eraseQuery(table)).id(ws).int(1000).run()
					n += c.Changes()
				}
			}
			return err
		}))
	}
	beside(func() error {
		_, err := s.EraseWorkspace(ctx, ws, 10)
		return err
	}, func() {
		if n := files(ws.String()); n != 1 {
			t.Errorf("in the transaction, %d files are left", n)
		}
	})
	if left, err := s.Deleting(ctx); files("") != 0 || len(left) != 0 || err != nil {
		t.Errorf("%d files, %v, %v", files(""), left, err)
	}
}

// TestBalance: for pages that readers have touched, each transaction drops some of a full cache, and
// for very many no more than it has.
func TestBalance(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	if err := s.write(t.Context(), writesNothing); err != nil {
		t.Fatal(err)
	}
	s.touched.Store(3 * poolPages)
	for n := 1; n <= poolPages/trimPages+2; n++ {
		if err := s.write(t.Context(), writesNothing); err != nil {
			t.Fatal(err)
		}
		if left, want := s.touched.Load(), int64(max(0, poolPages-n*trimPages)); left != want {
			t.Fatalf("after %d transactions, %d pages are left, want %d", n, left, want)
		}
	}
	size := s.writer.stmt("PRAGMA cache_size")
	size.next()
	if n := size.readInt(); n != -writerCache {
		t.Errorf("the cache has %d", n)
	}
	if err := size.done(); err != nil {
		t.Error(err)
	}
}
