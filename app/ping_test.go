package app_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/app/deliver"
	"parley/desk"
)

// TestPing_pace: an endpoint is pinged at most ten times in any minute, on all nodes
// together. The ten pings may come at once. Each endpoint has its own limit.
func TestPing_pace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook, other := w.webhook("https://a.example/in", "contact.created"), w.webhook("https://b.example/in", "contact.created")
	nodes := []*app.App{w.App, w.node(w.file, app.Bounds{})}
	pass := func(d time.Duration) {
		w.clock.advance(d)
		w.clock.up.Add(int64(d))
	}
	allowed := func(times int) {
		t.Helper()
		for n := range times {
			_, err := nodes[n%2].Deliver.Ping(t.Context(), w.operator(), webhook)
			must(t, err)
		}
	}
	refuses := func(seconds int) {
		t.Helper()
		for range 100 {
			for _, node := range nodes {
				_, err := node.Deliver.Ping(t.Context(), w.operator(), webhook)
				if e := refusalOf(t, err, desk.RateLimited); e.RetryAfter < seconds-5 || e.RetryAfter > seconds {
					t.Fatalf("Retry-After: %d, want %d", e.RetryAfter, seconds)
				}
			}
		}
	}
	allowed(4) // four pings at once
	pass(20 * time.Second)
	allowed(6)
	refuses(40)
	_, err := w.Deliver.Ping(t.Context(), w.operator(), other)
	must(t, err)
	pass(30 * time.Second)
	refuses(10)
	pass(10 * time.Second)
	allowed(4)
	refuses(20)
	pass(time.Minute)
	allowed(10)
	if got := len(w.receiver.got()); got != 4+6+1+4+10 {
		t.Errorf("%d requests", got)
	}
}

// TestPing_places: pings and deliveries share the places of an endpoint. A ping gets the next
// free place before a delivery.
func TestPing_places(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	release := make(chan struct{})
	w.receiver.plays(func(posted) deliver.Posted { <-release; return deliver.Posted{StatusCode: 200} })
	var paced atomic.Int64
	w.store.pace = func(buckets []desk.Bucket, most time.Duration) (time.Duration, bool, error) {
		defer paced.Add(1)
		return w.file.Pace(t.Context(), w.ws, buckets, most)
	}
	w.deliver(w.App)
	for n := range 20 {
		w.put(mailed(string(rune('a'+n)) + "@example.com"))
	}
	waitFor(t, "eight deliveries", func() bool { return len(w.receiver.got()) == 8 })
	pinged := make(chan error, 10)
	ping := func() {
		_, err := w.Deliver.Ping(t.Context(), w.operator(), webhook)
		pinged <- err
	}
	for range 8 {
		go ping()
	}
	waitFor(t, "eight pings that wait", func() bool { return paced.Load() == 8 })
	_, err := w.Deliver.Ping(t.Context(), w.operator(), webhook)
	refused(t, err, desk.RateLimited)
	if got := w.receiver.got(); len(got) != 8 {
		t.Fatalf("%d requests at once", len(got))
	}
	close(release)
	for range 8 {
		must(t, <-pinged)
	}
	w.settled(webhook, 20)
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	if w.receiver.most != 8 {
		t.Errorf("%d requests at once", w.receiver.most)
	}
}

// TestPing_caller: if the caller leaves, its ping ends and frees its place. The ping has no
// effect on the endpoint's state.
func TestPing_caller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.receiver.plays(func(p posted) deliver.Posted {
		<-p.ctx.Done()
		return deliver.Posted{Error: "timeout"}
	})
	before := w.Deliver.Tries()
	for range 10 {
		ctx, leave := context.WithCancel(t.Context())
		n := len(w.receiver.got())
		ended := make(chan error, 1)
		go func() {
			_, err := w.Deliver.Ping(ctx, w.operator(), webhook)
			ended <- err
		}()
		waitFor(t, "the request", func() bool { return len(w.receiver.got()) > n })
		leave()
		refused(t, <-ended, desk.Unavailable)
	}
	if after := w.Deliver.Tries(); after["timeout"] != before["timeout"] {
		t.Errorf("%v are counted", after)
	}
}

// TestPing_machine: if this machine can't open a connection, that does not count as a failure
// of the endpoint, for a ping or for a delivery. The delivery is made as soon as possible.
func TestPing_machine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.receiver.plays(func(posted) deliver.Posted {
		return deliver.Posted{Error: "connect", Err: errors.New("too many open files")}
	})
	_, err := w.Deliver.Ping(t.Context(), w.operator(), webhook)
	refused(t, err, desk.Unavailable)
	w.deliver(w.App)
	w.put(mailed("0@example.com"))
	waitFor(t, "a warning", func() bool { return len(w.log.find("did not begin")) > 0 })
	w.receiver.plays(nil)
	waitFor(t, "the delivery", func() bool {
		w.clock.advance(time.Second)
		list := w.deliveries(webhook)
		return len(list) == 1 && list[0].Status == desk.DeliveryDelivered && len(list[0].Tries) == 1
	})
	if s := w.state(webhook); s.FailingSince != 0 {
		t.Errorf("state: %+v", s)
	}
}
