package broadcast

import (
	"context"
	"testing"

	"parley/desk"
	"parley/store"
)

// A queue is a store with so many pending rows of one broadcast, of which every second one waits for
// its time.
type queue struct {
	store.Store
	n int
}

func (q queue) PendingRows(_ context.Context, _, _ desk.ID, _ bool, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	return q.rows(1, after, limit), nil
}

func (q queue) WaitingRows(_ context.Context, _, _, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	return q.rows(0, after, limit), nil
}

// rows returns the rows whose numbers have a remainder modulo 2.
func (q queue) rows(remainder int, after desk.ID, limit int) (list []*desk.BroadcastRow) {
	for i := int(after[0]) + 1; i <= q.n && len(list) < limit; i++ {
		if i%2 == remainder {
			list = append(list, &desk.BroadcastRow{ID: desk.ID{byte(i)}})
		}
	}
	return list
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
