package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// TestStatus_before_the_answer: a status with the attempt's id proves that the provider
// accepted the message, and finishes the send. The provider's later response changes nothing:
// the caller gets the stored answer.
func TestStatus_before_the_answer(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]outcome{"taken": takes, "lost": losesTheAnswer, "refused": refuses} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var stored []byte
			w.provider.plays(meanwhile(func(d provider.Dispatch) {
				w.tell(said(d.Attempt, desk.Delivered))
				w.takeIn()
				stored = w.attempt(d.Attempt).Response
			}, then))
			first := w.send("k", profile(named("Ann")))
			m := w.read(first)
			if first.Replayed || !bytes.Equal(first.Body, stored) || m.Message.Delivery != desk.Sent {
				t.Errorf("answered %q, %v; stored was %q", first.Body, first.Replayed, stored)
			}
			if again := w.send("k", profile(named("Ann"))); !again.Replayed || !bytes.Equal(again.Body, stored) {
				t.Errorf("the same again: %+v", again)
			}
			if got := w.message(m); got.Delivery != desk.Delivered {
				t.Errorf("the message is %s", got.Delivery)
			}
			if at := w.holder("k"); at.Phase != desk.Done || at.Notes != nil {
				t.Errorf("the attempt: %+v", at)
			}
			w.holds(1, 1, 1)
		})
	}
}

// TestStatus_settles_a_doubt: any status with the attempt's id settles an attempt in doubt,
// whichever status comes first.
func TestStatus_settles_a_doubt(t *testing.T) {
	t.Parallel()
	for _, delivery := range []desk.DeliveryStatus{desk.Sent, desk.Delivered, desk.Read, desk.Failed} {
		t.Run(string(delivery), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.inDoubt("k")
			w.tell(saidEarly(id, desk.Sent)) // without the attempt's id, it proves nothing, but is kept
			w.takeIn()
			if at := w.attempt(id); at.Phase != desk.InDoubt {
				t.Fatalf("the attempt is %s", at.Phase)
			}
			status := said(id, delivery)
			w.tell(status)
			w.takeIn()
			r := w.send("k")
			m := w.read(r)
			got := w.message(m)
			if !r.Replayed || m.Message.Delivery != desk.Sent || got.Delivery != delivery || (got.Failure != nil) != (delivery == desk.Failed) {
				t.Errorf("answered %+v, stored %+v", m.Message, got)
			}
			if got.TS > status.At || got.ExternalID != messageID(id) {
				t.Errorf("the message is of %s, the status of %s", got.TS, status.At)
			}
			if n := len(w.provider.sent()); n != 1 {
				t.Errorf("%d calls", n)
			}
			w.holds(1, 1, 1)
		})
	}
}

// TestStatus_of_long_ago: the message and the conversation get the time of the call that sent
// it, whatever the provider's clock says. The contact gets the time at which it is stored;
// otherwise a client that reads the changes since its last look would miss it.
func TestStatus_of_long_ago(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ delivered, told time.Duration }{
		"told late":           {time.Minute, 48 * time.Hour},
		"in whole seconds":    {-time.Second, time.Minute},
		"by a clock ahead":    {time.Hour, time.Minute},
		"told as it happened": {time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.inDoubt("k")
			asked := w.attempt(id).CreatedAt
			w.clock.advance(c.told)
			status := said(id, desk.Delivered)
			status.At = asked + desk.Time(c.delivered.Milliseconds())
			stored := desk.TimeOf(w.clock.now())
			w.tell(status)
			w.takeIn()
			m := w.message(w.read(w.send("k")))
			conversation := w.conversation(m.ConversationID)
			if m.TS != asked || conversation.CreatedAt != asked || conversation.LastMessageAt != asked {
				t.Errorf("asked %s, delivered %s, stored %s: the message is of %s, the conversation of %s", asked, status.At, stored, m.TS, conversation.CreatedAt)
			}
			contact := w.contact(conversation.ContactID)
			if contact.UpdatedAt < stored || contact.CreatedAt < stored || w.attempt(id).SettledAt < stored {
				t.Errorf("stored %s: the contact is of %s and %s", stored, contact.CreatedAt, contact.UpdatedAt)
			}
		})
	}
}

// TestStatus_too_early: a status comes without the attempt's id, and its message is not
// known yet. It is kept for a day of service, and counts once the message is known.
func TestStatus_too_early(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hours int
		want  desk.DeliveryStatus
	}{"in time": {24, desk.Delivered}, "too late": {25, desk.Sent}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.plays(meanwhile(func(d provider.Dispatch) {
				w.tell(saidEarly(d.Attempt, desk.Delivered), saidEarly(d.Attempt, desk.Sent), saidEarly(d.Attempt, desk.Delivered))
				w.takeIn()
				w.serve(c.hours)
				must(t, w.Forget(context.Background()))
			}, takes))
			m := w.sent("k")
			if got := w.message(m); got.Delivery != c.want || m.Message.Delivery != desk.Sent {
				t.Errorf("answered %s, stored %s, want %s", m.Message.Delivery, got.Delivery, c.want)
			}
		})
	}
}

// TestStatus_any_order sends a thousand messages, or a hundred over PostgreSQL. Their
// statuses come twice and in any order: before the answer, after it, or instead of it; with
// the attempt's id or without; one or several in an inbound item. Each message gets the
// furthest of its statuses, and over SQLite, where each change can be watched, never moves back.
func TestStatus_any_order(t *testing.T) {
	t.Parallel()
	const numbers, callers = 10, 64
	order := []desk.DeliveryStatus{desk.Queued, desk.Sent, desk.Failed, desk.Delivered, desk.Read}
	place := func(d desk.DeliveryStatus) int { return slices.Index(order, d) }
	w, messages := newWorld(t), 1000
	if w.postgres != nil {
		messages = 100
	}
	w.store.once.Store(true) // so that only stored changes are watched
	// Over PostgreSQL a transaction may run again after a conflict, for example of two new
	// contacts with one number. What its first run put is not stored.
	watched := w.postgres == nil
	var mu sync.Mutex
	now, stories := map[desk.ID]desk.DeliveryStatus{}, map[desk.ID]story{}
	w.store.put = func(m *desk.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if was, ok := now[m.ID]; ok && watched && place(m.Delivery) < place(was) {
			t.Errorf("message %s moves from %s back to %s", m.ID, was, m.Delivery)
		}
		now[m.ID] = m.Delivery
		return nil
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	tell := func(statuses []desk.StatusUpdate, size int) {
		for part := range slices.Chunk(statuses, size) {
			body, err := json.Marshal(part)
			if err != nil {
				t.Error(err)
			}
			w.notify(string(body))
		}
	}
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		mu.Lock()
		s := newStory(rand.New(rand.NewPCG(seed, uint64(len(stories)))), d.Attempt)
		stories[d.Attempt] = s
		mu.Unlock()
		tell(s.statuses[:s.before], s.size)
		defer tell(s.statuses[s.before:], s.size)
		if s.lost {
			return losesTheAnswer(ctx, d)
		}
		return takes(ctx, d)
	})
	w.run()
	p := w.caller()
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for n := caller; n < messages; n += callers {
				r := w.sendBy(w.App, p, fmt.Sprint(n), to(fmt.Sprintf("90532111%04d", n%numbers)))
				if r.err != nil && !desk.IsType(r.err, desk.SendOutcomeUnknown) {
					t.Error(r.err)
				}
			}
		})
	}
	group.Wait()
	w.takeIn()

	stored := map[string]*desk.Message{}
	list, _, err := w.Conversations(t.Context(), p, desk.ConversationFilter{}, "", 2*numbers)
	must(t, err)
	for _, c := range list {
		for _, m := range w.messages(c.ID) {
			stored[m.ExternalID] = m
		}
	}
	for id, s := range stories {
		m := stored[messageID(id)]
		if m == nil {
			if at := w.attempt(id); s.proven() || at.Phase != desk.InDoubt {
				t.Errorf("%+v: there is no message, and the attempt is %s", s, at.Phase)
			}
			continue
		}
		want, failed := desk.Sent, false
		for _, status := range s.statuses {
			if place(status.Delivery) > place(want) {
				want = status.Delivery
			}
			failed = failed || status.Delivery == desk.Failed
		}
		if m.Delivery != want || (m.Failure != nil) != failed || !s.proven() {
			t.Errorf("%+v ends as %s, %v; want %s", s, m.Delivery, m.Failure, want)
		}
	}
	if len(stories) != messages {
		t.Errorf("%d messages were sent", len(stories))
	}
}

// A story is the sequence of a provider's reports on one message.
type story struct {
	statuses []desk.StatusUpdate
	before   int // this many statuses come before the answer
	size     int // this many statuses share an inbound item
	lost     bool
}

func newStory(r *rand.Rand, attempt desk.ID) story {
	s := story{lost: r.IntN(4) == 0, size: 1 + r.IntN(4)}
	all := []desk.DeliveryStatus{desk.Sent, desk.Delivered, desk.Read, desk.Failed}
	for range r.IntN(8) {
		status := said(attempt, all[r.IntN(len(all))])
		if r.IntN(2) == 0 {
			status.Attempt = desk.ID{}
		}
		s.statuses = append(s.statuses, status)
	}
	s.before = r.IntN(len(s.statuses) + 1)
	return s
}

// proven reports whether the answer or a status proves that the provider accepted the
// message.
func (s story) proven() bool {
	return !s.lost || slices.ContainsFunc(s.statuses, func(n desk.StatusUpdate) bool { return !n.Attempt.IsZero() })
}

// TestStatus_of_others: statuses of messages that parley does not have, or did not send,
// change nothing.
func TestStatus_of_others(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.sent("k")
	conversation := w.writes(number, "Hi")
	inbound := w.messages(conversation.ID)[0]
	doubt := w.inDoubt("doubt")
	elsewhere := w.addChannel()
	before := [2]*desk.Message{inbound, w.message(m)}

	unknown := said(desk.ID{9}, desk.Read)
	toInbound := desk.StatusUpdate{ExternalID: inbound.ExternalID, Delivery: desk.Failed, Failure: refusal.Failure, At: unknown.At}
	odd := said(w.holder("k").ID, "played")
	w.tell(unknown, unknown, toInbound, odd)
	for _, s := range []desk.StatusUpdate{said(doubt, desk.Read), saidEarly(w.holder("k").ID, desk.Read)} { // the statuses come through the wrong channel
		body, err := json.Marshal([]desk.StatusUpdate{s})
		must(t, err)
		w.keep(desk.InboundItem{Channel: elsewhere, ID: w.clock.newID(), Due: s.At, Body: body})
	}
	w.takeIn()
	for n, want := range before {
		got := w.messages(conversation.ID)[n]
		if got.ID != want.ID || got.Delivery != want.Delivery || got.Failure != nil {
			t.Errorf("a message has become %+v", got)
		}
	}
	if at := w.attempt(doubt); at.Phase != desk.InDoubt {
		t.Errorf("the attempt is %s", at.Phase)
	}
	if lines := w.log.find("incident"); lines != nil {
		t.Errorf("logged: %q", lines)
	}
	w.holds(1, 1, 2)
}

// TestInbound_that_can_not_be_taken_in: an item that can't be processed waits for an hour, and
// does not delay others.
func TestInbound_that_can_not_be_taken_in(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.sent("1"), w.sent("2")
	w.tell(said(w.holder("1").ID, desk.Read))
	bad := w.notify(poison)
	w.notify(gibberish)
	w.tell(said(w.holder("2").ID, desk.Read))
	w.takeIn()
	if a, b := w.message(first).Delivery, w.message(second).Delivery; a != desk.Read || b != desk.Read {
		t.Errorf("the others are %s and %s", a, b)
	}
	w.stop()
	if lines := w.logged(1, "an hour"); len(lines) != 1 || !strings.Contains(lines[0], bad.ID.String()) {
		t.Errorf("logged: %q", lines)
	}
	if lines := w.logged(1, "dropped"); len(lines) != 1 {
		t.Errorf("logged: %q", lines)
	}
	w.clock.advance(59 * time.Minute)
	if list := w.due(); len(list) != 0 {
		t.Errorf("after 59 minutes %d are due", len(list))
	}
	w.clock.advance(2 * time.Minute)
	if list := w.due(); len(list) != 1 || list[0].ID != bad.ID || string(list[0].Body) != poison {
		t.Errorf("after an hour: %+v", list)
	}
}

// TestInbound_while_the_database_is_away: one of several items is bad, so the items are
// processed one by one. If the database is away at this moment, the good items are not
// postponed for an hour.
func TestInbound_while_the_database_is_away(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.once.Store(true)
	m := w.sent("k")
	times := map[desk.ID]int{}
	good := said(w.holder("k").ID, desk.Read)
	w.store.drop = func(n desk.InboundItem) error {
		if times[n.ID]++; string(n.Body) != poison && times[n.ID] == 2 { // it is tried with the others, then alone
			return lost()
		}
		return nil
	}
	w.tell(good)
	bad := w.notify(poison)
	w.takeIn()
	if got := w.message(m); got.Delivery != desk.Read {
		t.Errorf("the message is %s", got.Delivery)
	}
	w.stop()
	for _, line := range w.log.find("an hour") {
		if !strings.Contains(line, bad.ID.String()) {
			t.Errorf("logged: %s", line)
		}
	}
}

// TestInbound_of_other_processes: a look finds the items that another process has stored.
func TestInbound_of_other_processes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.sent("k")
	body, err := json.Marshal([]desk.StatusUpdate{said(w.holder("k").ID, desk.Delivered)})
	must(t, err)
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		return tx.PutInbound(desk.InboundItem{Channel: w.channel, ID: w.clock.newID(), Due: desk.TimeOf(w.clock.now()), Body: body})
	}))
	w.takeIn()
	if got := w.message(m); got.Delivery != desk.Delivered {
		t.Errorf("the message is %s", got.Delivery)
	}
}

// TestInbound_beside_one_that_is_stuck: reading a callback of one workspace takes long.
// This does not delay other workspaces or other background work.
func TestInbound_beside_one_that_is_stuck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	stuck := make(chan struct{})
	release := sync.OnceFunc(func() { close(stuck) })
	t.Cleanup(release)
	w.callback(channel, many(3)...)
	w.stop() // another process has to read it
	w.start(app.Bounds{})
	w.meta.change(func() { w.meta.stuck = stuck })
	w.run()
	other, err := w.CreateWorkspace(t.Context(), "Other", "")
	must(t, err)
	operator, err := w.Operator(t.Context(), other.ID)
	must(t, err)
	sandbox, _, err := w.AddChannel(t.Context(), operator, app.NewChannel{Kind: desk.SandboxChannel})
	must(t, err)
	must(t, w.file.InTx(t.Context(), other.ID, func(tx store.Tx) error {
		return tx.PutInbound(desk.InboundItem{Channel: sandbox.Channel.ID, ID: w.clock.newID(), Due: 1, Body: []byte("[]")})
	}))
	must(t, w.LookForInbound(t.Context()))
	waitFor(t, "the other workspace's item to be taken in", func() bool {
		list, _, err := w.file.InboundItems(t.Context(), other.ID, 2*time.Hour, 1)
		must(t, err)
		return list == nil
	})
	if list := w.due(); len(list) != 1 || list[0].Skip != 0 {
		t.Errorf("the first workspace's items: %+v", list)
	}
	release()
	w.takeIn()
	w.holds(3, 3, 3)
}

// TestRun_stops_amid_a_callback: Run stops between two parts of a callback, and the next
// process continues there.
func TestRun_stops_amid_a_callback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	w.callback(channel, many(1000)...)
	w.run()
	waitFor(t, "a part to be taken in", func() bool { list := w.due(); return len(list) == 0 || list[0].Skip > 0 })
	began := time.Now()
	w.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it stopped after %v", took)
	}
	list := w.due()
	if len(list) != 1 || list[0].Skip == 0 || list[0].Skip%50 != 0 {
		t.Fatalf("what is left: %+v", list)
	}
	w.start(app.Bounds{})
	w.takeIn()
	w.holds(3, 3, 1000)
}

// TestRun_sweeps: if a process dies, another process marks its attempt as in doubt.
func TestRun_sweeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(losesTheAnswer)
	w.store.in(2, begin, lost)
	id := w.doubted(w.send("k").err)
	w.stop()
	w.start(app.Bounds{})
	w.store.ahead.Store(time.Hour.Milliseconds())
	w.run()
	waitFor(t, "it to be marked", func() bool { return w.attempt(id).Phase == desk.InDoubt })
	w.stop()
	if lines := w.logged(1, "its process ended"); len(lines) != 1 || !strings.HasPrefix(lines[0], "WARN") || !strings.Contains(lines[0], id.String()) {
		t.Errorf("logged: %q", lines)
	}
}

// TestRun_sweeps_under_load: an endless supply of inbound items does not stop other work.
func TestRun_sweeps_under_load(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.notify(endless)
	w.run()
	waitFor(t, "the inbound items to go round", func() bool {
		list := w.due()
		return len(list) == 1 && string(list[0].Body) == again
	})
	w.provider.plays(losesTheAnswer)
	r := w.sendBy(w.node(&faultyStore{Store: w.file, do: lost, at: 2}, app.Bounds{}), w.caller(), "k")
	id := w.doubted(r.err)
	w.store.ahead.Store(time.Hour.Milliseconds())
	waitFor(t, "it to be marked", func() bool { return w.attempt(id).Phase == desk.InDoubt })
}
