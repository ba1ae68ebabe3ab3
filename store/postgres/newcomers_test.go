package postgres

import (
	"context"
	"sync"
	"testing"

	"parley/desk"
	"parley/store/postgres/pgtest"
)

// noGuesses skips a test on a Citus cluster, where no write is a guess.
func noGuesses(t *testing.T) {
	t.Helper()
	onOneServer(t, "on a cluster, no write is a guess")
}

// guesses makes the next write of a node in the workspace a guess.
func guesses(t *testing.T, s *Store, ws desk.ID) {
	t.Helper()
	for range guessAfter {
		s.newcomers.note(ws, true)
	}
	check(t, s.lookForShared(t.Context(), ws))
	if likely, known := s.newcomers.likely(ws); !likely || !known {
		t.Fatalf("the next write is no guess: %t, %t", likely, known)
	}
}

func holders(t *testing.T, s *Store, ws desk.ID, i desk.Identity) int {
	t.Helper()
	return len(query(t, s, `SELECT contact_id::text FROM claims WHERE workspace_id = $1 AND kind = $2 AND value = $3`, uuid(ws), i.Kind, i.Value))
}

// TestGuess_round_trips: a client that creates contacts one after the other waits for one
// round trip for each. A client that writes contacts which exist waits for two, and its
// writes are no guesses.
func TestGuess_round_trips(t *testing.T) {
	t.Parallel()
	noGuesses(t)
	p := pgtest.NewProxy(t, pgtest.Database(t))
	s, err := Open(t.Context(), Config{URL: p.URL, MaxConns: 1})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	ws := newWorkspace(t, s)
	for n := range guessAfter + 1 { // the last one looks for shared claims
		_, err := update(s, ws, upsertOf(identity("warm", n)))
		check(t, err)
	}
	for n := range 5 {
		before := p.Requests()
		refused, err := update(s, ws, upsertOf(identity("new", n)))
		check(t, err)
		if n > 0 && p.Requests()-before != 1 || refused != nil { // the first prepares its statements
			t.Errorf("contact %d: %d round trips, %v", n, p.Requests()-before, refused)
		}
	}
	for n := range 3 {
		before := p.Requests()
		refused, err := update(s, ws, upsertOf(identity("new", n), identity("more", n)))
		check(t, err)
		if want := 2; n > 0 && p.Requests()-before != want || refused != nil { // the first is a wrong guess
			t.Errorf("contact %d again: %d round trips, want %d, %v", n, p.Requests()-before, want, refused)
		}
	}
	if n := query(t, s, `SELECT count(*)::text FROM contacts`); n[0] != "9" {
		t.Errorf("%s contacts", n[0])
	}
	if n := query(t, s, `SELECT (max(seq) - count(*))::text FROM events`); n[0] != "0" {
		t.Errorf("the numbers of events have a gap of %s", n[0])
	}
}

// TestGuess_wrong: a guess that is wrong stores nothing, and the write does what it does
// without a guess.
func TestGuess_wrong(t *testing.T) {
	t.Parallel()
	noGuesses(t)
	stores := openTwo(t)
	s := stores[0]
	ws := newWorkspace(t, s)
	there := identity("there", 1)
	_, err := update(s, ws, upsertOf(there))
	check(t, err)

	guesses(t, s, ws)
	_, err = update(s, ws, upsertOf(there, identity("further", 1)))
	check(t, err)
	if holders(t, s, ws, there) != 1 || holders(t, s, ws, identity("further", 1)) != 1 {
		t.Error("the person who exists did not get the identity, or exists twice")
	}

	// Another node has edited the settings: the write sees the new ones.
	guesses(t, s, ws)
	check(t, stores[1].UpdateSettings(t.Context(), ws, func(before *desk.Settings) (desk.Change, error) {
		return desk.Change{Attribute: &desk.Attribute{Key: "k", Label: "K", Type: "text"}}, nil
	}))
	versions := map[int64]bool{}
	check(t, s.UpdateContacts(t.Context(), ws, []*desk.Op{upsertOf(identity("late", 1))}, func(b *desk.Book, _, _ int) {
		versions[b.Settings().Version] = true
		_, err := b.Apply(upsertOf(identity("late", 1)), desk.Actor{}, 1, newID)
		check(t, err)
	}))
	if len(versions) != 2 || holders(t, s, ws, identity("late", 1)) != 1 {
		t.Errorf("the write used the settings %v", versions)
	}
}

// TestGuess_of_shared_claims: in a workspace in which contacts have shared an identity
// since an older release, no write is a guess. If one of these contacts is deleted, the
// other one is still found.
func TestGuess_of_shared_claims(t *testing.T) {
	t.Parallel()
	noGuesses(t)
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	shared := identity("shared", 1)
	_, err := update(s, ws, upsertOf(shared, identity("own", 1)))
	check(t, err)
	query(t, s, `UPDATE claims SET share = 1 WHERE workspace_id = $1 AND kind = 'shared' RETURNING ''`, uuid(ws)) // as after the deletion of the first holder
	for n := range guessAfter + 1 {
		_, err := update(s, ws, upsertOf(identity("warm", n)))
		check(t, err)
	}
	_, err = update(s, ws, upsertOf(shared))
	check(t, err)
	if n := holders(t, s, ws, shared); n != 1 {
		t.Errorf("%d contacts hold the identity", n)
	}
}

// TestGuess_beside_others: two nodes guess at the same time that the same people are new.
// Nobody exists twice.
func TestGuess_beside_others(t *testing.T) {
	t.Parallel()
	noGuesses(t)
	stores := openTwo(t)
	ws := newWorkspace(t, stores[0])
	for n := range 10 {
		for _, s := range stores {
			guesses(t, s, ws)
		}
		var group sync.WaitGroup
		for writer := range 8 {
			group.Go(func() {
				refused, err := update(stores[writer%2], ws, upsertOf(identity("person", n), identity("of writer", 100*n+writer)))
				if err != nil || refused != nil {
					t.Error(err, refused)
				}
			})
		}
		group.Wait()
		if holders(t, stores[0], ws, identity("person", n)) != 1 {
			t.Fatalf("the person %d exists twice", n)
		}
	}
	if n := query(t, stores[0], `SELECT count(*)::text FROM contacts`); n[0] != "10" {
		t.Errorf("%s contacts", n[0])
	}
}

// TestGuess_lost: if the server ends the session during a guess, nothing was stored, and
// the write runs in the ordinary way.
func TestGuess_lost(t *testing.T) {
	t.Parallel()
	noGuesses(t)
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	guesses(t, s, ws)
	holder, err := s.pool.Begin(t.Context())
	check(t, err)
	defer func() { _ = holder.Rollback(context.Background()) }()
	_, err = holder.Exec(t.Context(), lockAlone, uuid(ws), lockOf(ws))
	check(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := update(s, ws, upsertOf(identity("lost", 1)))
		done <- err
	}()
	for breakWaits(t, s) == 0 {
	}
	check(t, holder.Rollback(t.Context()))
	if err := <-done; err != nil {
		t.Errorf("the write after the lost guess: %v", err)
	}
	if n := holders(t, s, ws, identity("lost", 1)); n != 1 {
		t.Errorf("%d contacts hold the identity", n)
	}
}
