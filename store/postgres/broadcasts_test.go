package postgres

import (
	"errors"
	"testing"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
)

// waits checks whether a second change waits until the transaction of a first one has ended.
func waits(t *testing.T, s *Store, ws desk.ID, name string, first func(store.Tx) error, then func() error, want bool) {
	t.Helper()
	ended := make(chan error, 1)
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		if err := first(tx); err != nil {
			return err
		}
		go func() { defer close(ended); ended <- then() }()
		if went := waitForLocks(t, s, ended); (went == nil) != want || errors.Unwrap(went) != nil {
			t.Errorf("%s: %v", name, went)
		}
		return nil
	}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestBroadcasts_wait: a claim keeps its broadcast as it is, and its lease, until it commits. So
// nothing is claimed once a pause is answered, or once another process drives the broadcast. Claims
// do not wait for each other.
func TestBroadcasts_wait(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws, id, driver, other := newWorkspace(t, s), desk.ID{8}, desk.ID{1}, desk.ID{2}
	lease := store.LeaseRef{Workspace: ws, Task: desk.BroadcastTask}
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		return tx.PutBroadcast(&desk.Broadcast{ID: id, Name: "Spring", State: desk.BroadcastRunning, CreatedAt: 1})
	}); err != nil {
		t.Fatal(err)
	}
	if held, err := s.HoldLeases(t.Context(), []store.LeaseRef{lease}, driver, 0); err != nil || len(held) != 1 { // it is over at once
		t.Fatalf("held: %v, %v", held, err)
	}
	in := func(do func(store.Tx) error) func() error {
		return func() error { return s.InTx(t.Context(), ws, do) }
	}
	claim := func(tx store.Tx) error {
		_, driven, err := tx.BroadcastToClaim(id, driver)
		if err == nil && !driven {
			err = errors.New("the lease is lost")
		}
		return err
	}
	change := func(tx store.Tx) error { _, err := tx.Broadcast(id); return err }
	drive := func() error {
		_, err := s.HoldLeases(t.Context(), []store.LeaseRef{lease}, other, 0)
		return err
	}
	for _, c := range []struct {
		name  string
		first func(store.Tx) error
		then  func() error
		waits bool
	}{
		{"a change, for a claim", claim, in(change), true},
		{"a claim, for a change", change, in(claim), true},
		{"a change, for a change", change, in(change), true},
		{"a claim, for a claim", claim, in(claim), false},
		{"another driver, for a claim", claim, drive, true},
	} {
		waits(t, s, ws, c.name, c.first, c.then, c.waits)
	}
	if err := drive(); err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(t.Context(), ws, claim); err == nil {
		t.Error("a process claims whose lease another one has taken")
	}
}

// TestErase_copiedRow: a broadcast copies a row that names its person by the number alone, while the
// person is deleted. Nothing of the person is left in the copy.
func TestErase_copiedRow(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws, person := newWorkspace(t, s), desk.ID{2}
	const number = "905320000001"
	row := func(broadcast desk.ID) *desk.BroadcastRow {
		return &desk.BroadcastRow{ID: desk.ID{3}, Broadcast: broadcast, Number: number, To: number, Status: desk.RowPending, At: 1, Data: desk.RowData{Phone: number}}
	}
	source, next := desk.ID{8}, desk.ID{9}
	check(t, s.InTx(t.Context(), ws, func(tx store.Tx) error {
		for _, id := range []desk.ID{source, next} {
			if err := tx.PutBroadcast(&desk.Broadcast{ID: id, Name: "Spring", State: desk.BroadcastDraft, CreatedAt: 1}); err != nil {
				return err
			}
		}
		return tx.PutRows(source, []store.RowChange{{Row: row(source)}})
	}))
	write := desk.ContactWrite{Phone: desk.Field[string]{Set: true, Value: number}, Sent: []desk.Identity{{Kind: desk.KindPhone, Value: number}}}
	apply := func(op *desk.Op) error {
		var failed error
		err := s.UpdateContacts(t.Context(), ws, []*desk.Op{op}, func(book *desk.Book, _, _ int) {
			_, failed = book.Apply(op, desk.Actor{Kind: desk.ByCLI}, 2, func() desk.ID { return person })
		})
		return errors.Join(err, failed)
	}
	check(t, apply(&desk.Op{Kind: desk.OpUpsert, Write: write}))
	copies := func(tx store.Tx) error {
		if _, err := tx.RowsToChange(source, []desk.ID{{3}}); err != nil {
			return err
		}
		return tx.PutRows(next, []store.RowChange{{Row: row(next)}})
	}
	deletes := func() error { return apply(&desk.Op{Kind: desk.OpDelete, ByID: true, Target: person}) }
	waits(t, s, ws, "a deletion, for a copy", copies, deletes, true)
	if left := query(t, s, `SELECT number || ' ' || status || ' ' || data FROM broadcast_rows WHERE number <> '' OR status <> 'skipped' OR data LIKE '%'||$1||'%'`, number); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
