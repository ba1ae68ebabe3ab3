package app_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/app/deliver"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// webhook adds a webhook. It does not get the events from before.
func (w *world) webhook(url string, types ...string) desk.ID {
	w.t.Helper()
	added, _, err := w.Deliver.AddWebhook(w.t.Context(), w.operator(), desk.WebhookEdit{URL: &url, Types: &types}, nil)
	must(w.t, err)
	return added.ID
}

func (w *world) deliveries(webhook desk.ID) []*desk.WebhookDelivery {
	w.t.Helper()
	list, _, err := w.file.Deliveries(w.t.Context(), w.ws, webhook, desk.DeliveryFilter{}, nil, 100_000)
	must(w.t, err)
	return list
}

func (w *world) state(webhook desk.ID) desk.WebhookState {
	w.t.Helper()
	states, err := w.file.WebhookStates(w.t.Context(), w.ws)
	must(w.t, err)
	return states[webhook]
}

// settled waits until n deliveries are stored and none is pending.
func (w *world) settled(webhook desk.ID, n int) (list []*desk.WebhookDelivery) {
	w.t.Helper()
	waitFor(w.t, "deliveries to settle", func() bool {
		list = w.deliveries(webhook)
		for _, d := range list {
			if d.Status == desk.DeliveryPending {
				return false
			}
		}
		return len(list) >= n
	})
	return list
}

// TestDeliver: every event of the webhook's types is delivered once. First tries begin in
// order, up to eight at a time.
func TestDeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.*")
	w.receiver.plays(func(posted) deliver.Posted { time.Sleep(time.Millisecond); return deliver.Posted{StatusCode: 204} })
	stop := w.deliver(w.App)
	const contacts = 300
	for n := range contacts {
		w.put(mailed(fmt.Sprintf("%d@example.com", n)))
		if n%10 == 0 {
			_, err := w.AddMember(t.Context(), w.operator(), fmt.Sprint(n), fmt.Sprintf("m%d@example.com", n), "agent")
			must(t, err)
		}
	}
	list := w.settled(webhook, contacts)
	stop()
	got := w.receiver.got()
	if len(list) != contacts || len(got) != contacts || w.receiver.most > 8 || w.receiver.most < 2 {
		t.Errorf("%d deliveries, %d attempts, %d at once", len(list), len(got), w.receiver.most)
	}
	for i, d := range list {
		if i > 0 && d.Event.Seq >= list[i-1].Event.Seq || len(d.Tries) != 1 || d.Status != desk.DeliveryDelivered {
			t.Errorf("delivery %d: %+v", i, d)
		}
	}
	if at := w.state(webhook).Cursor; at.Seq < list[0].Event.Seq {
		t.Errorf("the cursor is at %v", at)
	}
}

// TestDeliver_retries: an event that always fails has the tries of its schedule, with their
// pauses, and does not stop other events.
func TestDeliver_retries(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, desk.DeliveryRules{Schedule: []time.Duration{5 * time.Second, time.Minute, 3 * time.Hour}, GiveUp: 72 * time.Hour})
	webhook := w.webhook("https://a.example/in", "contact.created")
	poison := ""
	w.receiver.plays(func(p posted) deliver.Posted {
		if p.Data == "poison@example.com" {
			poison = p.Post.ID
			return refusesWith(500, "no")
		}
		return deliver.Posted{StatusCode: 200}
	})
	w.deliver(w.App)
	w.put(mailed("poison@example.com"))
	for n := range 20 {
		w.put(mailed(fmt.Sprintf("%d@example.com", n)))
	}
	pending := func() (list []*desk.WebhookDelivery) {
		for _, d := range w.deliveries(webhook) {
			if d.Status == desk.DeliveryPending {
				list = append(list, d)
			}
		}
		return list
	}
	tries := func() int {
		n := 0
		for _, p := range w.receiver.got() {
			if p.Post.ID == poison {
				n++
			}
		}
		return n
	}
	for n, pause := range []time.Duration{5 * time.Second, time.Minute, 3 * time.Hour} {
		waitFor(t, "an attempt to be stored", func() bool {
			list := pending()
			return len(w.deliveries(webhook)) == 21 && len(list) == 1 && len(list[0].Tries) == n+1
		})
		d := pending()[0]
		ended := d.Tries[n].At + d.Tries[n].Took
		if wait := time.Duration(d.DueAt-ended) * time.Millisecond; wait < pause || wait > pause*6/5 {
			t.Errorf("after attempt %d it waits %v, want %v", n+1, wait, pause)
		}
		if got := tries(); got != n+1 {
			t.Errorf("%d attempts, want %d", got, n+1)
		}
		w.clock.advance(pause * 6 / 5)
	}
	list := w.settled(webhook, 21)
	d := list[20]
	if d.Status != desk.DeliveryFailed || len(d.Tries) != 4 || d.Tries[3].Response != "no" || tries() != 4 {
		t.Errorf("the poison: %+v, %d attempts", d, tries())
	}
	if s := w.state(webhook); s.Failing() || s.FailingSince == 0 {
		t.Errorf("state: %+v", s)
	}
}

// TestDeliver_failing: after ten failures in a row the endpoint is only probed. A success
// makes all its deliveries due; if it fails for too long, it is disabled.
func TestDeliver_failing(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, desk.DeliveryRules{Schedule: []time.Duration{time.Second, time.Second, time.Second}, GiveUp: 2 * time.Hour})
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.receiver.plays(func(posted) deliver.Posted { return refusesWith(500, "") })
	w.deliver(w.App)
	for n := range 30 {
		w.put(mailed(fmt.Sprintf("%d@example.com", n)))
	}
	waitFor(t, "the endpoint to fail", func() bool { s := w.state(webhook); return s.Failing() })
	for range 5 {
		before := w.state(webhook).Probes
		w.clock.advance(10 * time.Minute)
		waitFor(t, "a probe", func() bool { return w.state(webhook).Probes > before })
	}
	tries := len(w.receiver.got())
	if tries > 10+8+5+2 {
		t.Errorf("%d attempts", tries)
	}
	w.receiver.plays(nil)
	w.clock.advance(10 * time.Minute)
	w.settled(webhook, 30)
	if s := w.state(webhook); s.Failing() || s.FailingSince != 0 || s.HeldUntil != 0 {
		t.Errorf("state: %+v", s)
	}
	if len(w.logged(1, "is failing")) != 1 || len(w.logged(1, "answers again")) != 1 {
		t.Errorf("log: %v", w.log.find("endpoint"))
	}
}

// TestDeliver_holds: if an endpoint asks for a pause, no try begins until the pause is
// over.
func TestDeliver_holds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.receiver.plays(func(p posted) deliver.Posted {
		if p.Data == "0@example.com" && p.n == 1 {
			return deliver.Posted{StatusCode: 429, Error: "status", RetryAfter: 30 * time.Minute}
		}
		return deliver.Posted{StatusCode: 200}
	})
	w.deliver(w.App)
	w.put(mailed("0@example.com"))
	waitFor(t, "the hold", func() bool { return w.state(webhook).HeldUntil != 0 })
	w.put(mailed("1@example.com"))
	w.clock.advance(29 * time.Minute)
	time.Sleep(2 * time.Millisecond)
	if got := w.receiver.got(); len(got) != 1 {
		t.Errorf("%d attempts during the hold", len(got))
	}
	w.clock.advance(time.Minute)
	w.settled(webhook, 2)
}

// TestDeliver_taken: while a try is under way, another process takes over the endpoint. The
// process that made the try stores nothing of it, neither in the delivery nor in the
// endpoint's state.
func TestDeliver_taken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	release := make(chan struct{})
	w.receiver.plays(func(p posted) deliver.Posted {
		if p.n > 1 {
			return deliver.Posted{StatusCode: 200, Took: time.Millisecond}
		}
		<-release
		return refusesWith(500, "")
	})
	stop := w.deliver(w.App)
	w.put(mailed("0@example.com"))
	waitFor(t, "the delivery to begin", func() bool { return len(w.deliveries(webhook)) == 1 })
	w.store.cut.Store(true)
	w.clock.up.Add(int64(11 * time.Second))
	w.clock.advance(11 * time.Second)
	w.deliver(w.node(&faultyStore{Store: w.file}, app.Bounds{}))
	w.settled(webhook, 1)
	close(release)
	stop()
	if d := w.deliveries(webhook)[0]; d.Status != desk.DeliveryDelivered || len(d.Tries) != 1 || d.Tries[0].StatusCode != 200 {
		t.Errorf("the delivery is %+v", d)
	}
	if s := w.state(webhook); s.Failures != 0 || s.FailingSince != 0 {
		t.Errorf("the endpoint's state is %+v", s)
	}
}

// TestDeliver_nodes: when a node stops, another one takes over without repeating a delivery.
// A node that loses the database begins no try once its lease may have ended, and the other
// node goes on.
func TestDeliver_nodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.receiver.plays(func(posted) deliver.Posted { time.Sleep(time.Millisecond); return deliver.Posted{StatusCode: 200} })
	second := &faultyStore{Store: w.file}
	b := w.node(second, app.Bounds{})
	stopA := w.deliver(w.App)
	n := 0
	write := func(count int) {
		for range count {
			w.put(mailed(fmt.Sprintf("%d@example.com", n)))
			n++
		}
	}
	write(50)
	waitFor(t, "the first node to begin", func() bool { return len(w.receiver.got()) > 10 })
	w.deliver(b)
	stopA()
	write(50)
	w.settled(webhook, 100)
	if got := len(w.receiver.got()); got != 100 {
		t.Errorf("%d attempts, want 100", got)
	}
	// The second node loses its database while tries are under way.
	release := make(chan struct{})
	w.receiver.plays(func(posted) deliver.Posted { <-release; return deliver.Posted{StatusCode: 200} })
	write(20)
	waitFor(t, "eight attempts", func() bool { return len(w.receiver.got()) == 108 })
	second.down.Store(true)
	second.cut.Store(true)
	w.deliver(w.node(w.store, app.Bounds{}))
	w.clock.up.Add(int64(11 * time.Second))
	w.clock.advance(11 * time.Second)
	waitFor(t, "the third node to begin", func() bool { return len(w.receiver.got()) == 116 })
	close(release)
	w.receiver.plays(nil)
	w.settled(webhook, 120)
	second.down.Store(false)
	second.cut.Store(false)
	write(30)
	w.settled(webhook, 150)
	if got := len(w.receiver.got()); got != 158 {
		t.Errorf("%d attempts, want 158: 8 were under way", got)
	}
}

// TestDeliver_erasure: after a contact's deletion, an endpoint's response that repeats the
// person's data is not stored, stored responses are deleted, and a redelivery has no data of
// the person.
func TestDeliver_erasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	release := make(chan struct{})
	w.receiver.plays(func(p posted) deliver.Posted {
		if p.n == 2 {
			<-release
		}
		return refusesWith(500, "I can't read "+p.Data)
	})
	w.deliver(w.App)
	c, kept := w.put(mailed("gone@example.com")), w.put(mailed("kept@example.com"))
	stored := func() (texts []string) {
		for _, d := range w.deliveries(webhook) {
			for _, a := range d.Tries {
				texts = append(texts, a.Response)
			}
		}
		return texts
	}
	waitFor(t, "both answers", func() bool { return len(stored()) == 2 })
	w.clock.advance(6 * time.Second)
	waitFor(t, "the second attempts", func() bool { return len(w.receiver.got()) == 4 })
	w.deleteContact(c.ID)
	close(release)
	waitFor(t, "both answers", func() bool { return len(stored()) == 4 })
	w.clock.advance(36 * time.Second)
	waitFor(t, "the third attempts", func() bool { return len(stored()) == 6 })
	for _, text := range stored() {
		if text != "" && text != "I can't read kept@example.com" {
			t.Errorf("an answer is stored: %q", text)
		}
	}
	for _, p := range w.receiver.got()[4:] {
		if want := map[string]string{kept.ID.String(): "kept@example.com"}[p.Subject]; p.Data != want {
			t.Errorf("sent after the deletion: %q, want %q", p.Data, want)
		}
	}
}

// TestDeliver_undone: once the merge is undone during which a delivery began, its tries store no
// response: it may repeat what is of the contact that is back, whose deletion would not reach it.
func TestDeliver_undone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from := w.contact(w.writes("905321110002", "Hello").ContactID)
	into := w.put(mailed("ada@example.com"))
	m := w.merge(into, from)
	webhook := w.webhook("https://a.example/in", "message.received")
	w.receiver.plays(func(posted) deliver.Posted { return refusesWith(500, "I can't read that") })
	w.deliver(w.App)
	w.writes("905321110002", "It's me")
	tries := func() (list []desk.WebhookTry) {
		for _, d := range w.deliveries(webhook) {
			list = append(list, d.Tries...)
		}
		return list
	}
	waitFor(t, "the first try", func() bool { return len(tries()) == 1 && tries()[0].Response != "" })
	_, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
	must(t, err)
	w.clock.advance(6 * time.Second)
	waitFor(t, "the second try", func() bool { return len(tries()) == 2 })
	w.deleteContact(from.ID)
	for _, try := range tries() {
		if try.Response != "" {
			t.Errorf("a response is stored: %+v", try)
		}
	}
}

// TestDeliver_expired: events that expire while the endpoint is behind are counted, and
// a delivery whose event expires fails.
func TestDeliver_expired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created", "webhook.updated")
	w.receiver.plays(func(posted) deliver.Posted { return refusesWith(500, "") })
	w.put(mailed("0@example.com"))
	w.put(mailed("1@example.com"))
	stop := w.deliver(w.App)
	waitFor(t, "attempts", func() bool { return len(w.deliveries(webhook)) == 2 })
	stop()
	w.put(mailed("2@example.com"))
	w.put(mailed("3@example.com"))
	w.clock.advance(time.Hour)
	w.indexed()
	must(t, w.Feed.Forget(t.Context(), time.Minute))
	w.receiver.plays(nil)
	w.deliver(w.App)
	w.put(mailed("4@example.com"))
	list := w.settled(webhook, 4)
	for _, d := range list[2:] {
		if n := len(d.Tries); d.Status != desk.DeliveryFailed || d.Tries[n-1].Error != desk.TryExpired {
			t.Errorf("delivery: %+v", d)
		}
	}
	got := w.receiver.got()[2:]
	if len(got) != 2 || got[0].Type != "webhook.updated" && got[1].Type != "webhook.updated" {
		t.Errorf("got %+v", got)
	}
	if lines := w.logged(1, "expired"); len(lines) != 1 {
		t.Errorf("log: %q", lines)
	}
}

// TestDeliver_slow_database: an event that was read a second ago is read again before its try,
// because the person may have been deleted since.
func TestDeliver_slow_database(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	c := w.put(mailed("gone@example.com"))
	var reads atomic.Int32
	w.store.read = func(page *store.EventPage) {
		if len(page.Events) > 0 && reads.Add(1) <= 2 { // both reads are slow: that of the page, and that of the event alone
			if reads.Load() == 1 {
				w.deleteContact(c.ID)
			}
			<-time.After(1100 * time.Millisecond)
		}
	}
	w.deliver(w.App)
	w.settled(webhook, 1)
	if got := w.receiver.got(); len(got) != 1 || got[0].Data != "" || reads.Load() < 3 {
		t.Errorf("%d reads, %+v", reads.Load(), got)
	}
}

// TestDeliver_busy_database: each read of events waits for more than a second for a
// connection. What it then reads is fresh, so nothing is read again. If it were, a busy
// database would get more reads the busier it is.
func TestDeliver_busy_database(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.put(mailed("ada@example.com"))
	var reads atomic.Int32
	w.store.queue = func() { <-time.After(1100 * time.Millisecond) }
	w.store.read = func(page *store.EventPage) {
		if len(page.Events) > 0 {
			reads.Add(1)
		}
	}
	w.deliver(w.App)
	w.settled(webhook, 1)
	if got := w.receiver.got(); len(got) != 1 || reads.Load() != 1 {
		t.Errorf("%d reads, %+v", reads.Load(), got)
	}
}

// TestDeliver_moved: the owner changes the URL of a webhook while a try is under way. The
// result of this try does not disable the webhook.
func TestDeliver_moved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone, next := "https://gone.example/in", "https://next.example/in"
	webhook := w.webhook(gone, "contact.created")
	release := make(chan struct{})
	w.receiver.plays(func(p posted) deliver.Posted {
		if p.URL == next {
			return deliver.Posted{StatusCode: 200}
		}
		<-release
		return deliver.Posted{StatusCode: 410, Error: desk.TryGone}
	})
	w.deliver(w.App)
	w.put(mailed("0@example.com"))
	waitFor(t, "the attempt", func() bool { return len(w.receiver.got(gone)) == 1 })
	pinged := make(chan error, 1)
	go func() {
		_, err := w.Deliver.Ping(t.Context(), w.operator(), webhook)
		pinged <- err
	}()
	waitFor(t, "the ping", func() bool { return len(w.receiver.got(gone)) == 2 })
	_, err := w.Deliver.EditWebhook(t.Context(), w.operator(), webhook, desk.WebhookEdit{URL: &next})
	must(t, err)
	close(release)
	must(t, <-pinged)
	waitFor(t, "the answer", func() bool { return len(w.deliveries(webhook)) == 1 && len(w.deliveries(webhook)[0].Tries) == 1 })
	w.clock.advance(6 * time.Second)
	w.put(mailed("1@example.com"))
	w.settled(webhook, 2)
	if found := w.operator().Settings.Webhook(webhook); !found.Enabled {
		t.Errorf("it was disabled: %s", found.DisabledReason)
	}
}

// TestDeliver_enabled_anew: the owner disables and enables a webhook while a try is under
// way. The result of this try does not disable the webhook, even if the endpoint had failed
// for long before.
func TestDeliver_enabled_anew(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, desk.DeliveryRules{Schedule: []time.Duration{time.Second, time.Second}, GiveUp: 2 * time.Hour})
	webhook := w.webhook("https://a.example/in", "contact.created")
	release := make(chan struct{})
	w.receiver.plays(func(p posted) deliver.Posted {
		if p.n == 2 {
			<-release
		}
		if p.n == 3 {
			return deliver.Posted{StatusCode: 200}
		}
		return refusesWith(500, "")
	})
	w.deliver(w.App)
	w.put(mailed("0@example.com"))
	waitFor(t, "the failure", func() bool { return w.state(webhook).FailingSince != 0 })
	w.clock.advance(3 * time.Hour)
	waitFor(t, "the second attempt", func() bool { return len(w.receiver.got()) == 2 })
	other := w.node(w.file, app.Bounds{}) // the change is made on another node, so the first node does not notice it at once
	for _, enabled := range []bool{false, true} {
		_, err := other.Deliver.EditWebhook(t.Context(), w.operator(), webhook, desk.WebhookEdit{Enabled: &enabled})
		must(t, err)
	}
	close(release)
	waitFor(t, "the answer", func() bool { return len(w.deliveries(webhook)) == 1 && len(w.deliveries(webhook)[0].Tries) == 2 })
	w.clock.advance(2 * time.Second)
	w.settled(webhook, 1)
	if found := w.operator().Settings.Webhook(webhook); !found.Enabled {
		t.Errorf("it was disabled: %s", found.DisabledReason)
	}
}

// TestDeliver_asked: a redelivery is tried although the endpoint is failing. A successful ping
// makes all deliveries due, a replay delivers events again, and 410 disables the endpoint.
func TestDeliver_asked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.receiver.plays(func(posted) deliver.Posted { return refusesWith(500, "") })
	w.deliver(w.App)
	for n := range 12 {
		w.put(mailed(fmt.Sprintf("%d@example.com", n)))
	}
	waitFor(t, "the endpoint to fail", func() bool { s := w.state(webhook); return s.Failing() })
	list := w.deliveries(webhook)
	last := list[len(list)-1]
	tries := func() (n int) {
		d, err := w.file.Delivery(t.Context(), w.ws, webhook, last.ID)
		must(t, err)
		return len(d.Tries)
	}
	before := tries()
	d, err := w.Deliver.Redeliver(t.Context(), w.operator(), webhook, last.ID)
	must(t, err)
	if d.Next == 0 {
		t.Error("a redelivery is not planned")
	}
	waitFor(t, "the redelivery", func() bool { return tries() == before+1 })
	w.receiver.plays(nil)
	if a, err := w.Deliver.Ping(t.Context(), w.operator(), webhook); err != nil || a.Error != "" {
		t.Fatalf("ping: %+v, %v", a, err)
	}
	w.settled(webhook, 12)
	_, err = w.Deliver.Replay(t.Context(), w.operator(), webhook, "oldest")
	must(t, err)
	w.settled(webhook, 24)
	_, err = w.Deliver.Replay(t.Context(), w.operator(), webhook, "evt_1")
	refused(t, err, desk.InvalidRequest)
	w.receiver.plays(func(posted) deliver.Posted { return deliver.Posted{StatusCode: 410, Error: desk.TryGone} })
	w.put(mailed("last@example.com"))
	waitFor(t, "the webhook to be disabled", func() bool {
		found := w.operator().Settings.Webhook(webhook)
		return !found.Enabled && found.DisabledReason == desk.DisabledGone
	})
	_, err = w.Deliver.Redeliver(t.Context(), w.operator(), webhook, last.ID)
	refused(t, err, desk.EndpointOff)
	must(t, w.Deliver.RemoveWebhook(t.Context(), w.operator(), webhook))
	if left := w.deliveries(webhook); len(left) != 0 {
		t.Errorf("%d deliveries are left", len(left))
	}
}

// TestDeliver_replayedToItsPlace: a replay from the place where a webhook is changes nothing, so
// there is no event about it.
func TestDeliver_replayedToItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(mailed("a@example.com"))
	webhook := w.webhook("https://a.example/in", "contact.created")
	for range 2 {
		_, err := w.Deliver.Replay(t.Context(), w.operator(), webhook, "oldest")
		must(t, err)
	}
	if n := w.told(desk.WebhookUpdated); n != 1 {
		t.Errorf("there are %d events, want one of the first replay", n)
	}
}

// TestDeliver_swept: if the process ends while it deletes the deliveries of a removed
// webhook, the rest is deleted later. Deliveries of other webhooks stay.
func TestDeliver_swept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	removed, other := w.webhook("https://a.example/in", "contact.created"), w.webhook("https://b.example/in", "contact.created")
	w.receiver.plays(func(p posted) deliver.Posted { return refusesWith(500, "no") })
	stop := w.deliver(w.App)
	for n := range 5 {
		w.put(mailed(fmt.Sprintf("%d@example.com", n)))
	}
	waitFor(t, "attempts", func() bool { return len(w.deliveries(removed)) == 5 && len(w.deliveries(other)) == 5 })
	stop()
	w.store.keeps.Store(true)
	must(t, w.Deliver.RemoveWebhook(t.Context(), w.operator(), removed))
	if n := len(w.deliveries(removed)); n != 5 || len(w.log.find("are left")) != 1 {
		t.Fatalf("%d deliveries, %q", n, w.log.find("are left"))
	}
	w.store.keeps.Store(false)
	must(t, w.Forget(t.Context()))
	if n, m := len(w.deliveries(removed)), len(w.deliveries(other)); n != 0 || m != 5 {
		t.Errorf("%d deliveries of the removed webhook, %d of the other", n, m)
	}
}

// TestDeliver_forgotten: old deliveries go. One clock that is far ahead makes none old.
func TestDeliver_forgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	stop := w.deliver(w.App)
	w.put(mailed("a@example.com"))
	w.settled(webhook, 1)
	stop()
	w.leapt(desk.KeepDelivery+time.Hour, func(whose string, old bool) {
		must(t, w.Deliver.Forget(t.Context(), w.ws))
		if n := len(w.deliveries(webhook)); (n == 1) == old {
			t.Errorf("%s is ahead: %d deliveries", whose, n)
		}
	})
}

// probed advances the clock by each pause, and then waits for the next probe of a failing
// endpoint.
func (w *world) probed(webhook desk.ID, pauses ...time.Duration) {
	w.t.Helper()
	for _, pause := range pauses {
		before := w.state(webhook).Probes
		w.clock.advance(pause)
		waitFor(w.t, "a probe", func() bool {
			return w.state(webhook).Probes > before || !w.operator().Settings.Webhook(webhook).Enabled
		})
	}
}

// TestDeliver_gives_up: an endpoint that fails for 72 hours is disabled, with an event and a
// warning, and gets no more events. Enabled again, it continues at its cursor: events that
// have expired meanwhile are counted, the others are delivered.
func TestDeliver_gives_up(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	start := w.latest()
	w.receiver.plays(func(posted) deliver.Posted { return refusesWith(500, "") })
	w.deliver(w.App)
	const before = 12
	for n := range before {
		w.put(mailed(fmt.Sprintf("%d@example.com", n)))
	}
	waitFor(t, "the endpoint to fail", func() bool { s := w.state(webhook); return s.Failing() })
	since := w.state(webhook).FailingSince
	w.probed(webhook, 24*time.Hour, 24*time.Hour, 23*time.Hour)
	if found := w.operator().Settings.Webhook(webhook); !found.Enabled || len(w.log.find("was disabled")) != 0 {
		t.Fatalf("it is disabled too early: %+v, %q", found, w.log.find("was disabled"))
	}
	disabled := func() (list []desk.FeedEvent) {
		t.Helper()
		types, err := desk.ParseEventFilter([]string{"webhook.*"})
		must(t, err)
		page, err := w.Feed.Page(t.Context(), w.caller(), feed.Query{Cursor: start, Limit: 50, Types: types})
		must(t, err)
		return page.Events
	}
	if list := disabled(); len(list) != 0 {
		t.Fatalf("events: %+v", list)
	}
	w.probed(webhook, 2*time.Hour)
	waitFor(t, "parley to give up", func() bool { return !w.operator().Settings.Webhook(webhook).Enabled })
	if found := w.operator().Settings.Webhook(webhook); found.DisabledReason != desk.DisabledFailing || w.state(webhook).FailingSince != since {
		t.Errorf("%+v, failing since %v, before %v", found, w.state(webhook).FailingSince, since)
	}
	if list := disabled(); len(list) != 1 || list[0].Type != desk.WebhookDisabled || list[0].Subject != webhook || list[0].Actor != (desk.Actor{Kind: desk.BySystem}) || len(list[0].Changed) != 0 {
		t.Errorf("events: %+v", list)
	}
	waitFor(t, "a warning", func() bool { return len(w.log.find("was disabled")) == 1 })
	if line := w.log.find("was disabled")[0]; !strings.HasPrefix(line, "WARN ") || !strings.Contains(line, webhook.String()) || !strings.Contains(line, "reason=failing") {
		t.Errorf("log: %q", line)
	}

	// While the endpoint is disabled nothing is tried, and some of its events expire.
	tries, cursor := len(w.receiver.got()), w.state(webhook).Cursor
	w.put(mailed("expires@example.com"))
	w.clock.advance(2 * time.Hour)
	w.indexed()
	must(t, w.Feed.Forget(t.Context(), time.Hour))
	w.put(mailed("stays@example.com"))
	w.clock.advance(10 * time.Minute)
	must(t, w.Feed.Look(t.Context()))
	if n := len(w.receiver.got()); n != tries || w.state(webhook).Cursor != cursor {
		t.Errorf("%d attempts at a disabled endpoint, the cursor is at %v, not %v", n-tries, w.state(webhook).Cursor, cursor)
	}
	w.receiver.plays(nil)
	yes := true
	_, err := w.Deliver.EditWebhook(t.Context(), w.operator(), webhook, desk.WebhookEdit{Enabled: &yes})
	must(t, err)
	waitFor(t, "what is left, and that it has nothing else", func() bool {
		for _, d := range w.deliveries(webhook) {
			if d.Status == desk.DeliveryPending {
				return false
			}
		}
		got := w.receiver.got()
		return len(got) > tries && got[len(got)-1].Data == "stays@example.com"
	})
	got := w.receiver.got()[tries:]
	if len(got) != 1 || got[0].Data != "stays@example.com" {
		t.Errorf("after it was enabled: %+v", got)
	}
	for _, d := range w.settled(webhook, 1) {
		last := d.Tries[len(d.Tries)-1]
		if expired := last.Error == desk.TryExpired; expired == (d.Status == desk.DeliveryDelivered) {
			t.Errorf("%+v", d)
		}
	}
	lines := w.log.find("expired before they were delivered")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "WARN ") || !strings.Contains(lines[0], webhook.String()) {
		t.Fatalf("log: %q", lines)
	}
	// These are all events from the cursor to the oldest one left: those of contacts, and the
	// one that disabled the webhook.
	if want := fmt.Sprintf(" events=%d", w.oldest().Seq-cursor.Seq); !strings.HasSuffix(lines[0], want) {
		t.Errorf("log: %q, want%s", lines[0], want)
	}
	if s := w.state(webhook); s.FailingSince != 0 || s.Failing() {
		t.Errorf("state: %+v", s)
	}
}

// oldest returns the place before the oldest event of the feed.
func (w *world) oldest() desk.EventPlace {
	w.t.Helper()
	page, err := w.Feed.Page(w.t.Context(), w.caller(), feed.Query{Limit: 1})
	must(w.t, err)
	return page.Oldest
}

// TestDeliver_lag: the lag of a waiting delivery is measured from the time of its event,
// not from the beginning of the delivery. This also holds on a node that takes over.
func TestDeliver_lag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	webhook := w.webhook("https://a.example/in", "contact.created")
	w.put(mailed("0@example.com"))
	w.clock.advance(time.Hour)
	w.receiver.plays(func(posted) deliver.Posted { return refusesWith(500, "") })
	late := func(a *app.App) {
		t.Helper()
		waitFor(t, "the lag of an hour", func() bool { return a.Deliver.Lag() >= time.Hour })
	}
	stop := w.deliver(w.App)
	late(w.App)
	waitFor(t, "the delivery to be stored", func() bool { return len(w.deliveries(webhook)) == 1 && len(w.deliveries(webhook)[0].Tries) == 1 })
	stop()
	b := w.node(w.store, app.Bounds{})
	w.deliver(b)
	late(b)
	w.receiver.plays(nil)
	w.clock.advance(10 * time.Minute)
	w.settled(webhook, 1)
	waitFor(t, "no lag", func() bool { return b.Deliver.Lag() == 0 })
}
