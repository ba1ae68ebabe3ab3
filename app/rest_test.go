package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// A lateStore calls late when a node looks at all webhooks. A node looks rarely, so this must
// not be what finds an event.
type lateStore struct {
	store.Store
	late func()
}

func (s lateStore) EnabledWebhooks(ctx context.Context) ([]store.EnabledWebhook, error) {
	s.late()
	return s.Store.EnabledWebhooks(ctx)
}

// resting reports whether no process has a lease of a webhook, and no event waits for it.
func (w *world) resting() bool {
	list, err := w.file.EnabledWebhooks(w.t.Context())
	must(w.t, err)
	return len(list) == 1 && !list[0].Busy
}

// TestDeliver_rests: nodes leave an endpoint for which nothing happens. Every later event is
// delivered once, in order, at whatever moment it comes and whichever node stores it.
func TestDeliver_rests(t *testing.T) {
	t.Parallel()
	const events, rest = 60, 20 * time.Millisecond
	w := newWorldWith(t, app.Bounds{Rest: rest})
	webhook := w.webhook("https://a.example/in", "contact.created")
	var total, wroteAt atomic.Int64
	late := func() {
		since := time.Since(time.UnixMilli(wroteAt.Load())).Round(time.Millisecond)
		if n := total.Load(); since > 2*time.Second && len(w.receiver.got()) < int(n) {
			t.Errorf("event %d was not delivered for %v, and no news told the nodes", n, since)
		}
	}
	var nodes [2]*app.App
	for i := range nodes {
		nodes[i] = w.node(lateStore{w.file, late}, app.Bounds{Rest: rest})
		w.deliver(nodes[i])
	}
	rested := 0
	for n := range events {
		op := &desk.Op{Kind: desk.OpUpsert}
		mailed(fmt.Sprintf("%d@example.com", n))(&op.Write)
		_, err := nodes[n%2].Write(t.Context(), w.caller(), op)
		must(t, err)
		wroteAt.Store(time.Now().UnixMilli())
		total.Add(1)
		if n%3 > 0 { // about when the nodes begin to rest
			time.Sleep(rand.N(3 * rest))
		} else {
			w.settled(webhook, int(total.Load()))
			waitFor(t, "both nodes to rest", w.resting)
			rested++
		}
	}
	list := w.settled(webhook, int(total.Load()))
	if len(list) != events || len(w.receiver.got()) != events || rested == 0 {
		t.Errorf("%d events, %d deliveries, %d tries", events, len(list), len(w.receiver.got()))
	}
	for i, d := range list {
		if i > 0 && d.Event.Seq >= list[i-1].Event.Seq {
			t.Errorf("delivery %d is not in order", i)
		}
	}
}

// TestDeliver_called: a resting endpoint is served again when a delivery is repeated, and when
// its deliveries go back to an older event, even if another node is told to.
func TestDeliver_called(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, app.Bounds{Rest: 20 * time.Millisecond})
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.deliver(w.App)
	other := w.node(w.file, app.Bounds{})
	w.put(mailed("ada@example.com"))
	first := w.settled(webhook, 1)[0]
	tries := func(n int) {
		t.Helper()
		waitFor(t, "another try", func() bool { return len(w.receiver.got()) == n })
		w.settled(webhook, 1)
		waitFor(t, "the node to rest", w.resting)
	}
	tries(1)
	_, err := w.Deliver.Redeliver(t.Context(), w.operator(), webhook, first.ID)
	must(t, err)
	tries(2)
	_, err = other.Deliver.Replay(t.Context(), w.operator(), webhook, "oldest")
	must(t, err)
	tries(3)
	if desk.DeliveryDelivered != w.settled(webhook, 2)[0].Status {
		t.Error("the last delivery has failed")
	}
}
