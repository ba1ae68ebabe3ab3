package app_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"parley/desk"
	"parley/store"
)

// body returns the stored body of a callback.
func (w *world) body(n desk.InboundItem) (body []byte) {
	w.t.Helper()
	must(w.t, w.file.InTx(context.Background(), w.ws, func(tx store.Tx) (err error) {
		body, err = tx.Callback(n)
		return err
	}))
	return body
}

// TestCallback_bodies: a body that names only contacts is kept until one of them is erased.
// A body that names other people is not kept, because no erasure would ever delete it.
func TestCallback_bodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	elsewhere := inbound(3, "905321119999", "", "Hello")
	elsewhere.Channel = "999999999999999" // a number that is not connected
	w.callback(channel, inbound(1, "905321110001", "TR.1", "Hello"), inbound(2, "905321110002", "", "Hello"))
	w.callback(channel, inbound(4, "905321110001", "TR.1", "Hello again"), elsewhere)
	w.callback(channel)
	kept := w.due()
	if len(kept) != 3 {
		t.Fatalf("%d inbound items", len(kept))
	}
	w.takeIn()
	w.stop()
	for i, want := range []bool{true, false, true} {
		if body := w.body(kept[i]); body == nil || len(body) > 0 != want {
			t.Errorf("of callback %d is kept: %q", i, body)
		}
	}
	w.deleteContact(w.writer(channel, 2).ID)
	if body := w.body(kept[0]); body != nil {
		t.Errorf("after the erasure of one whom it names: %q", body)
	}
}

// TestSend_twins: concurrent calls with one key take one place in the provider's limits,
// and send one message. A call with another body that comes meanwhile is refused.
func TestSend_twins(t *testing.T) {
	t.Parallel()
	const calls, burst = 32, 10
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	p := w.caller()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if r := w.sendBy(w.App, p, "k", on(channel)); r.err != nil {
				t.Error(r.err)
			}
		})
	}
	all.Wait()
	for i := range burst - 1 {
		if r := w.sendBy(w.App, p, fmt.Sprint("more-", i), on(channel)); r.err != nil {
			t.Errorf("message %d to the person: %v", i+2, r.err)
		}
	}
	refused(t, w.sendBy(w.App, p, "too many", on(channel)).err, desk.ProviderUnavailable)
}
