package postgres

import (
	"context"
	"errors"
	"sync"

	"parley/desk"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A write of contacts takes two round trips: one to load what it names, one to store. If a
// client creates contacts one after the other, the first finds nothing each time.
// createGuessed leaves it out. Unique keys detect a wrong guess.

const (
	// guessAfter is how many writes in a row must have found no contact.
	guessAfter = 3
	// mostGuessed is the greatest number of operations of a guess. In a larger group, the
	// round trip matters less, and it is more likely that one operation finds a contact.
	mostGuessed = 8
	// mostStreaks is for how many workspaces a node counts. If there are more, it begins
	// anew.
	mostStreaks = 10_000
)

// newcomers counts for each workspace how many writes in a row have found no contact.
//
// Claims that contacts share since an older release are not all unique, so there is no
// guess in a workspace that has any. Such claims come only from a rebuild of all claims,
// and no node writes beside one (see fence), so a node looks for them once.
type newcomers struct {
	mu      sync.Mutex
	streaks map[desk.ID]int
	shares  map[desk.ID]bool // whether the workspace has shared claims, if it is known
}

const sharesClaimsQuery = `SELECT 1 FROM claims WHERE workspace_id = $1 AND share > 0 ORDER BY workspace_id, kind, value LIMIT 1`

func (n *newcomers) note(ws desk.ID, foundNone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !foundNone {
		delete(n.streaks, ws)
		return
	}
	if n.streaks == nil || len(n.streaks) >= mostStreaks {
		n.streaks, n.shares = map[desk.ID]int{}, map[desk.ID]bool{}
	}
	n.streaks[ws] = min(n.streaks[ws]+1, guessAfter)
}

// likely tells whether the next write in a workspace is likely to find no contact. known
// tells whether shared claims have been looked for.
func (n *newcomers) likely(ws desk.ID) (likely, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	shares, known := n.shares[ws]
	return n.streaks[ws] == guessAfter && !shares, known
}

// lookForShared looks for shared claims of a workspace.
func (s *Store) lookForShared(ctx context.Context, ws desk.ID) error {
	var shares bool
	err := s.read(ctx, func(p *pipe) error {
		shares = false
		p.each(func(pgx.Row) error { shares = true; return nil }, sharesClaimsQuery, uuid(ws))
		return p.send("shared claims")
	})
	if err == nil {
		s.newcomers.mu.Lock()
		defer s.newcomers.mu.Unlock()
		s.newcomers.shares[ws] = shares
	}
	return err
}

// createGuessed runs operations as if no contact had any of their identities, and stores
// the new contacts in one round trip. It returns false, and has stored nothing, if it does
// not guess, if an operation would not create a contact, or if the guess was wrong: a
// contact holds one of the identities, or the settings in memory are not the newest.
func (s *Store) createGuessed(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(book *desk.Book, from, to int)) (done bool, err error) {
	settings := s.settings.Newest(ws)
	if s.citus || settings == nil || len(ops) > mostGuessed {
		return false, nil
	}
	likely, known := s.newcomers.likely(ws)
	if !likely {
		return false, nil
	}
	if !known {
		return false, s.lookForShared(ctx, ws) // the next write may guess
	}
	if err := s.rules.Check(); err != nil {
		return false, err
	}
	for _, op := range ops {
		if op.Kind != desk.OpUpsert {
			return false, nil
		}
	}
	book := desk.NewBook(settings, len(ops))
	apply(book, 0, len(ops))
	changed := book.Changed()
	for _, e := range changed {
		if e.Stored != nil || e.Now == nil {
			return false, nil
		}
	}
	if len(changed) != len(ops) {
		return false, nil
	}
	err = s.atOnceIn(ctx, ws, "create contacts", func(p *pipe) {
		p.put(lockShared, uuid(ws), lockOf(ws))
		p.put(stillSettings, uuid(ws), settings.Version)
		t := &tx{pipe: p, s: s, ws: ws, settings: settings}
		if err = flushBook(t, book); err == nil {
			putEvents(p, ws, t.events)
		}
	})
	switch {
	case sqlState(err) == uniqueViolation || conflicts(err):
		s.newcomers.note(ws, false)
		return false, nil
	case sqlState(err) == readOnlyTransaction, ended(err):
		return false, nil // the ordinary way finds a connection that works
	}
	return err == nil, err
}

// ended tells whether the server has ended the session by an error. Then it has not
// committed what was sent.
func ended(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Severity == "FATAL"
}
