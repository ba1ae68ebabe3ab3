package feed

import (
	"slices"
	"testing"

	"parley/desk"
)

// TestFollowersShare: one workspace may have half of a process's followers. All workspaces
// together may have 1,024. The followers of parley itself count for neither limit.
func TestFollowersShare(t *testing.T) {
	t.Parallel()
	var f followers
	const ofKey, half = 16, 512
	keys := 0
	// fill adds followers of new keys until one is refused. It returns functions that remove
	// them.
	fill := func(ws desk.ID) (leave []func(), refused error) {
		for {
			keys++
			for range ofKey {
				key, woken := desk.ID{1, byte(keys >> 8), byte(keys)}, make(chan struct{}, 1)
				if err := f.add(ws, key, woken); err != nil {
					return leave, err
				}
				leave = append(leave, func() { f.remove(ws, key, woken) })
			}
		}
	}
	refused := func(err error, kind desk.ErrorType) bool {
		e := desk.AsError(err)
		return e.Type == kind && e.RetryAfter == 5
	}
	ada, bob, cem := desk.ID{1}, desk.ID{2}, desk.ID{3}
	for range 3 {
		_ = f.add(ada, desk.ID{}, make(chan struct{}, 1))
	}
	first, err := fill(ada)
	if len(first) != half || !refused(err, desk.RateLimited) {
		t.Errorf("a workspace has %d: %v", len(first), err)
	}
	second, err := fill(bob)
	if len(second) != half || !refused(err, desk.RateLimited) {
		t.Errorf("another has %d: %v", len(second), err)
	}
	if third, err := fill(cem); len(third) != 0 || !refused(err, desk.Unavailable) {
		t.Errorf("a third has %d: %v", len(third), err)
	}
	first[0]()
	if third, err := fill(cem); len(third) != 1 || !refused(err, desk.Unavailable) {
		t.Errorf("after one has left, a third has %d: %v", len(third), err)
	}
	for _, leave := range slices.Concat(first[1:], second) {
		leave()
	}
	if again, _ := fill(ada); len(again) != half {
		t.Errorf("after all have left, a workspace has %d", len(again))
	}
}

// TestFollowersOfAKey: a key has at most 16 followers on a server, whatever others have.
func TestFollowersOfAKey(t *testing.T) {
	t.Parallel()
	var f followers
	ws, key, other := desk.ID{1}, desk.ID{2}, desk.ID{3}
	var woken []chan struct{}
	for range 16 {
		woken = append(woken, make(chan struct{}, 1))
		if err := f.add(ws, key, woken[len(woken)-1]); err != nil {
			t.Fatalf("follower %d: %v", len(woken), err)
		}
	}
	if err := f.add(ws, key, make(chan struct{}, 1)); !desk.IsType(err, desk.RateLimited) || desk.AsError(err).RetryAfter != 5 {
		t.Errorf("one more: %v", err)
	}
	if err := f.add(ws, other, make(chan struct{}, 1)); err != nil {
		t.Errorf("another key: %v", err)
	}
	f.remove(ws, key, woken[0])
	if err := f.add(ws, key, woken[0]); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}
