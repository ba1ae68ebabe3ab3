package broadcast

import (
	"context"
	"testing"

	"parley/desk"
	"parley/store"
)

// A queue is a store with so many pending rows of one broadcast.
type queue struct {
	store.Store
	n int
}

func (q queue) PendingRows(_ context.Context, _, _ desk.ID, _ bool, after desk.ID, limit int) (list []*desk.BroadcastRow, err error) {
	for i := int(after[0]) + 1; i <= q.n && len(list) < limit; i++ {
		list = append(list, &desk.BroadcastRow{ID: desk.ID{byte(i)}})
	}
	return list, nil
}

// TestNextPeople: others come after a page of rows only if there are more rows than it has.
func TestNextPeople(t *testing.T) {
	t.Parallel()
	const limit = 5
	for n, more := range map[int]bool{0: false, 4: false, 5: false, 6: true} {
		a := &Service{Deps: Deps{Store: queue{n: n}}}
		p, err := a.nextPeople(t.Context(), &desk.Settings{}, &desk.Broadcast{}, desk.ID{}, limit)
		last := desk.ID{byte(min(n, limit))}
		if err != nil || len(p.list) != min(n, limit) || p.more != more || p.next != last {
			t.Errorf("of %d rows: %d, then %s, more %t, %v; want more %t", n, len(p.list), p.next, p.more, err, more)
		}
	}
}
