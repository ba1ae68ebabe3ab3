package postgres

import (
	"sync"

	"parley/desk"
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
	// A Book of more than manyNames is loaded only if one is locked: looking costs as much as finding.
	manyNames = 200
	// mostStreaks is for how many workspaces a node counts. If there are more, it begins anew.
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
