package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/desk"
)

func openStore(t *testing.T) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "parley.db"))
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

// TestCommitsAreDurable reads the pragmas on the live connections: a kill alone
// proves nothing about power.
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

// TestSQLiteHasNoWALResetBug refuses the versions in which a checkpoint racing a
// reset of the log could lose committed pages: fixed in 3.51.3, 3.50.7 and 3.44.6.
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
	return s.UpdateContacts(context.Background(), ws, []*desk.Op{op}, func(b *desk.Book) {
		id := desk.ID{1, byte(n >> 16), byte(n >> 8), byte(n)}
		if _, err := b.Apply(op, desk.ID{}, 1, func() desk.ID { return id }); err != nil {
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

// TestDiskFull: a full database is Unavailable, keeps what it acknowledged, still
// reads, and goes on by itself when there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	pragma(t, s.writer, "max_page_count = 60")
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
	list, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 2000)
	if err != nil || len(list) != stored {
		t.Errorf("%d contacts of %d are there, %v", len(list), stored, err)
	}
	pragma(t, s.writer, "max_page_count = 10000")
	if err := createContact(s, ws, stored); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestAReadThatFailsLeavesNothingOpen: a statement that is left in the middle would
// hold its snapshot, and could not be bound again on that connection.
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
			s.writer.stmt(`UPDATE workspaces SET version = version + 1 WHERE id = ?`).id(ws).run()); err != nil {
			t.Fatal(err)
		}
	}
	read := func() error {
		_, _, one := s.Contact(t.Context(), ws, desk.ID{1, 0, 0, 1})
		_, many := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 10)
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

// TestLockedIsUnavailable: a lock that another process does not let go of.
func TestLockedIsUnavailable(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	s.writer.SetBusyTimeout(10 * time.Millisecond)
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

// TestChangesShareACommit: what waits during a commit shares the next one, and a
// change that fails does not touch its neighbours.
func TestChangesShareACommit(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	started, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		if err := s.write(func(conn) (int, error) { close(started); <-release; return 0, nil }); err != nil {
			t.Error(err)
		}
	})
	<-started
	refusal := errors.New("refused")
	transactions := map[int64]int{}
	var mu sync.Mutex
	for n := range 10 {
		group.Go(func() {
			err := s.write(func(c conn) (int, error) {
				err := c.stmt(`INSERT INTO directory (kind, ref, workspace_id) VALUES ('test', ?, ?)`).text(fmt.Sprint(n)).id(ws).run()
				if n == 3 && err == nil {
					err = refusal
				}
				mu.Lock()
				transactions[int64(n)]++
				mu.Unlock()
				return 1, err
			})
			if (n == 3) != errors.Is(err, refusal) {
				t.Errorf("change %d: %v", n, err)
			}
		})
	}
	for waiting := 0; waiting < 10; {
		s.queue.mu.Lock()
		waiting = len(s.queue.waiting)
		s.queue.mu.Unlock()
	}
	close(release)
	group.Wait()
	row := s.writer.stmt(`SELECT count(*), max(ref = '3') FROM directory WHERE kind = 'test'`)
	row.next()
	if n, third := row.readInt(), row.readInt(); n != 9 || third != 0 {
		t.Errorf("%d rows are stored, the refused one: %d", n, third)
	}
	if err := row.done(); err != nil {
		t.Fatal(err)
	}
	if len(transactions) != 10 || transactions[3] != 2 {
		t.Errorf("runs of each change: %v, want the refused one to have run in company and alone", transactions)
	}
}

// TestAnotherProcessGetsItsTurn: a store that writes all the time lets one in that
// asks once.
func TestAnotherProcessGetsItsTurn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
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

// TestTheLogIsBegunAnew: beside writers who never pause, the log is emptied and
// written over in place; it does not grow with the number of writes.
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
		// What was written between two checkpoints is short, however many there were.
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

// TestAReaderDoesNotHoldUpWriters: a backup reads one snapshot for as long as it
// takes; checkpoints go on around it.
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
		s.checkpoints <- struct{}{} // taken only once the last one is done
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

// TestAGrownLogWakesTheCheckpointer counts single writes and large ones.
func TestAGrownLogWakesTheCheckpointer(t *testing.T) {
	t.Parallel()
	for rows, most := range map[int]int{6: 1500, 6000: 12} {
		s := openStore(t)
		for n := 0; len(s.checkpoints) == 0; n++ {
			if n > most {
				t.Errorf("%d commits of %d rows wake nobody", n, rows)
				break
			}
			s.grew(rows)
		}
	}
}

// TestNoQueryScans holds the queries of hot paths to an index, whatever their filters.
func TestNoQueryScans(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	queries := []string{loadBookQuery, contactQuery, authenticateQuery, newestEventQuery}
	for _, f := range []desk.ContactFilter{
		{}, {Owner: desk.ID{1}}, {Held: make([]desk.Identity, 1)}, {Owner: desk.ID{1}, Held: make([]desk.Identity, 3)},
	} {
		queries = append(queries, contactsQuery(f))
	}
	for _, query := range queries {
		plan := s.writer.stmt("EXPLAIN QUERY PLAN " + query)
		steps := 0
		for plan.next() {
			steps++
			plan.col = 3
			step := plan.readText()
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "VIRTUAL TABLE") || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s\nin: %s", step, query)
			}
		}
		if err := plan.done(); err != nil || steps == 0 {
			t.Errorf("%s: %d steps, %v", query, steps, err)
		}
	}
}
