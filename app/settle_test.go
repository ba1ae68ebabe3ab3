package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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

// The database goes away in the middle of a send. The first transaction of a send holds the
// key, the second stores the result of the provider's answer.

func TestLost_before_the_hold(t *testing.T) {
	t.Parallel()
	away := func() error { return desk.Errorf(desk.Unavailable, "the database is away") }
	for name, tc := range map[string]struct {
		when   moment
		lost   func() error
		logged int
	}{
		"at its beginning":           {begin, away, 0},
		"at its end":                 {commit, away, 0},
		"at its end, nobody knows":   {commit, lost, 1}, // a refused attempt replaces the one that may be stored
		"at its start, nobody knows": {begin, lost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.store.in(1, tc.when, tc.lost)
			refused(t, w.send("k").err, desk.Unavailable)
			log := w.attempts()
			if len(w.provider.sent()) != 0 || len(log) != tc.logged || w.holder("k") != nil {
				t.Errorf("it went on: %+v", log)
			}
			for _, at := range log {
				if at.Phase != desk.Refused || at.Refusal.Type != desk.Unavailable {
					t.Errorf("logged: %+v", at)
				}
			}
			if r := w.send("k"); r.err != nil || r.Replayed {
				t.Errorf("the same again: %+v", r)
			}
		})
	}
}

// TestLost_with_the_answer_to_the_hold: the connection is lost after the hold was stored.
// The key is held, so the send goes on.
func TestLost_with_the_answer_to_the_hold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.in(1, answer, lost)
	w.sent("k")
	if r := w.send("k"); r.err != nil || !r.Replayed {
		t.Errorf("the same again: %+v", r)
	}
	w.holds(1, 1, 1)
	if n := len(w.provider.sent()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestLost_for_good_after_the_hold: it is unknown whether the key is held, so nothing is
// sent, and the key is freed once the database is back.
func TestLost_for_good_after_the_hold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.in(1, answer, func() error {
		w.store.down.Store(true)
		w.store.blind.Store(true)
		return lost()
	})
	refused(t, w.send("k").err, desk.Unavailable)
	if at := w.holder("k"); at == nil || at.Phase != desk.Dispatching {
		t.Errorf("the key is held by %+v", at)
	}
	w.store.blind.Store(false)
	w.store.down.Store(false)
	waitFor(t, "the key to be free", func() bool { return w.holder("k") == nil })
	if len(w.provider.sent()) != 0 {
		t.Error("something was sent")
	}
	if at := w.attempts()[0]; at.Phase != desk.Refused || at.Refusal.Type != desk.Unavailable {
		t.Errorf("the attempt: %+v", at)
	}
	w.sent("k")
	w.holds(1, 1, 1)
}

// TestLost_with_its_person: while it is unknown whether the key is held, the person is
// deleted. The refused attempt has no data of the person.
func TestLost_with_its_person(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := w.sent("before").Conversation.ContactID
	w.store.in(1, answer, func() error {
		w.store.down.Store(true)
		w.store.blind.Store(true)
		return lost()
	})
	refused(t, w.send("k").err, desk.Unavailable)
	claimed := w.holder("k")
	w.deleteContact(person)
	w.store.blind.Store(false)
	w.store.down.Store(false)
	waitFor(t, "the key to be free", func() bool { return w.holder("k") == nil })
	if at := w.attempt(claimed.ID); at.Phase != desk.Refused || !at.Erased || at.Plan.Number != "" {
		t.Errorf("the attempt: %+v", at)
	}
}

// TestDeleted_before_the_hold: a contact is deleted after the send was planned. It gets no
// message, and none of its data stays. A send to its number then makes a new contact.
func TestDeleted_before_the_hold(t *testing.T) {
	t.Parallel()
	const text = "Order A-17"
	template := of("order_update", "en_US", "A-17", "Ann", "A-17")
	onBothStores(t, func(t *testing.T, w erasable) {
		deletes := func(c *desk.Contact) {
			w.store.in(1, begin, func() error { w.deleteContact(c.ID); return nil })
		}
		forgotten := func(t *testing.T, marks ...string) {
			t.Helper()
			for table, content := range w.dump() {
				for _, mark := range marks {
					if bytes.Contains(content, []byte(mark)) {
						t.Errorf("%s has %q", table, mark)
					}
				}
			}
		}
		ann := w.put(named("Ann"), phoned(number))
		deletes(ann)
		refused(t, w.send("by id", toContact(ann.ID), template).err, desk.NotFound)
		if n := len(w.provider.sent()); n != 0 || len(w.attempts()) != 0 || w.holder("by id") != nil {
			t.Errorf("%d calls, attempts: %+v", n, w.attempts())
		}
		forgotten(t, number, text)

		before := w.put(phoned(number))
		deletes(before)
		m := w.sent("by number", template)
		if m.Conversation.ContactID == before.ID || len(w.provider.sent()) != 1 {
			t.Errorf("sent to %+v with %d calls", m.Conversation, len(w.provider.sent()))
		}
		w.holds(1, 1, 1)
		w.deleteContact(m.Conversation.ContactID)
		forgotten(t, number, text, m.Message.ExternalID)
	})
}

// TestDeleted_after_a_hold_without_a_look: a server of the previous release takes the key
// without a look at the contact. If the contact was deleted before, the attempt is erased
// when it ends.
func TestDeleted_after_a_hold_without_a_look(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.put(phoned(number))
	id := w.inDoubt("k")
	claimed := w.attempt(id)
	w.deleteContact(c.ID)
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error { return tx.PutAttempt(claimed) }))
	w.tell(said(id, desk.Delivered))
	w.takeIn()
	if at := w.attempt(id); at.Phase != desk.Done || !at.Erased || at.ExternalID != "" || at.Plan.Number != "" || at.OptIn() != nil || at.Stored() {
		t.Errorf("the attempt: %+v", at)
	}
	w.holds(0, 0, 0)
}

// TestLost_with_a_deleted_person: it is unknown whether a hold is stored, and its contact
// is deleted meanwhile. No data of the person stays.
func TestLost_with_a_deleted_person(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.put(phoned(number))
	w.store.in(1, begin, func() error { w.deleteContact(c.ID); return lost() })
	refused(t, w.send("k").err, desk.Unavailable)
	if list := w.attempts(); len(list) != 1 || list[0].Phase != desk.Refused || !list[0].Erased || list[0].OptIn() != nil {
		t.Errorf("attempts: %+v", list)
	}
}

// TestLost_after_the_provider_took_it: the caller learns that the outcome is unknown,
// and the process goes on until it is stored.
func TestLost_after_the_provider_took_it(t *testing.T) {
	t.Parallel()
	for name, arm := range map[string]func(*world){
		"before it was stored": func(w *world) { w.store.in(2, begin, lost) },
		"while it was stored":  func(w *world) { w.store.in(2, commit, lost) },
		"after it was stored":  func(w *world) { w.store.in(2, answer, lost) },
		"for a while": func(w *world) {
			w.store.in(1, answer, func() error { w.store.down.Store(true); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			arm(w)
			id := w.doubted(w.send("k", profile(named("Ann"))).err)
			w.store.down.Store(false)
			waitFor(t, "the message to be stored", func() bool { return w.attempt(id).Phase == desk.Done })
			r := w.send("k", profile(named("Ann")))
			if m := w.read(r); !r.Replayed || m.Message.ExternalID != messageID(id) || w.message(m).Delivery != desk.Sent {
				t.Errorf("the same again: %+v", r)
			}
			w.stop() // so that no work is left
			w.holds(1, 1, 1)
			if n := len(w.provider.sent()); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestLost_with_inbound_items: the future updates of a provider's receipt are stored with the
// message, however often storing must be repeated.
func TestLost_with_inbound_items(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]moment{"at its beginning": begin, "at its end": commit, "after it": answer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.plays(func(_ context.Context, d provider.Dispatch) (provider.Receipt, error) {
				body, err := json.Marshal([]desk.StatusUpdate{said(d.Attempt, desk.Delivered)})
				return provider.Receipt{ExternalID: messageID(d.Attempt), Later: []provider.Later{{Body: body}}}, err
			})
			w.store.in(2, when, lost)
			w.doubted(w.send("k").err)
			w.run() // the background work has transactions of its own
			waitFor(t, "the message to be stored", func() bool { return w.holder("k").Phase == desk.Done })
			m := w.read(w.send("k"))
			waitFor(t, "its status", func() bool { return w.message(m).Delivery == desk.Delivered })
			w.holds(1, 1, 1)
		})
	}
}

// TestLost_after_the_provider_refused: the caller gets the refusal, and the key is
// freed once the database is back.
func TestLost_after_the_provider_refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(refuses)
	w.store.in(2, begin, lost)
	refused(t, w.send("k").err, desk.ProviderRejected)
	waitFor(t, "the key to be free", func() bool { return w.holder("k") == nil })
	w.provider.plays(takes)
	w.sent("k")
	w.holds(1, 1, 1)
}

// TestLost_with_the_doubt: an attempt could not be marked as in doubt. The sweeper finds it
// later.
func TestLost_with_the_doubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(losesTheAnswer)
	w.store.in(2, begin, lost)
	id := w.doubted(w.send("k").err)
	if at := w.attempt(id); at.Phase != desk.Dispatching {
		t.Fatalf("the attempt is %s", at.Phase)
	}
	w.store.ahead.Store(time.Minute.Milliseconds())
	must(t, w.Sweep(t.Context()))
	if at := w.attempt(id); at.Phase != desk.InDoubt {
		t.Errorf("the attempt is %s", at.Phase)
	}
	if again := w.doubted(w.send("k").err); again != id {
		t.Errorf("the same again is of %s", again)
	}
}

// TestLate_before_the_first_byte: a process that is delayed between the hold of the key and
// the call does not send. Its answer is a certain refusal.
func TestLate_before_the_first_byte(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late time.Duration
		sent bool
	}{"late": {5*time.Second + time.Millisecond, false}, "in time": {4 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.store.in(1, answer, func() error {
				w.clock.advance(c.late)
				return nil
			})
			r := w.send("k")
			if sent := len(w.provider.sent()) == 1; sent != c.sent {
				t.Fatalf("sent: %v, %v", sent, r.err)
			}
			if c.sent {
				w.read(r)
				return
			}
			refused(t, r.err, desk.Unavailable)
			if at := w.attempts()[0]; at.Phase != desk.Refused || w.holder("k") != nil {
				t.Errorf("the attempt: %+v", at)
			}
			w.sent("k")
		})
	}
}

// The length of a lease follows from the default bounds of a send.
const (
	lease  = 30 * time.Second // first byte, provider and margin
	margin = 5 * time.Second
	slack  = 2 * time.Second // longer than a test takes between two steps
)

// TestSweep: Sweep marks dispatching attempts whose lease has ended by the database's clock,
// and no others. It never sends.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settled := w.sent("settled")
	play, reached, release := blocks(takes)
	w.provider.plays(play)
	var r reply
	landed := make(chan struct{})
	go func() {
		defer close(landed)
		r = w.send("k")
	}()
	<-reached
	id := w.holder("k").ID
	for _, c := range []struct {
		ahead time.Duration
		want  desk.Phase
	}{{0, desk.Dispatching}, {lease, desk.Dispatching}, {lease + margin - slack, desk.Dispatching}, {lease + margin + time.Millisecond, desk.InDoubt}} {
		w.store.ahead.Store(c.ahead.Milliseconds())
		must(t, w.Sweep(t.Context()))
		if got := w.attempt(id).Phase; got != c.want {
			t.Errorf("after %v it is %s, want %s", c.ahead, got, c.want)
		}
	}
	if at := w.holder("settled"); at.Phase != desk.Done || at.Plan.Message != settled.Message.ID {
		t.Errorf("what was settled: %+v", at)
	}
	// The process was only slow. Its result still counts.
	close(release)
	<-landed
	w.read(r)
	if at := w.attempt(id); at.Phase != desk.Done {
		t.Errorf("in the end it is %s", at.Phase)
	}
	w.holds(1, 1, 2)
	if n := len(w.provider.sent()); n != 2 {
		t.Errorf("%d calls", n)
	}
}

func TestRelease_sent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.inDoubt("k", profile(named("Ann")), assignedTo("grace@example.com"))
	at, err := w.Release(t.Context(), w.operator(), id, true)
	must(t, err)
	if at.ID != id || at.Phase != desk.Done {
		t.Errorf("released: %+v", at)
	}
	r := w.send("k", profile(named("Ann")))
	m := w.read(r)
	if !r.Replayed || m.Message.ExternalID != "" || w.message(m).Delivery != desk.Sent {
		t.Errorf("the same again: %+v", r)
	}
	if c := w.contact(m.Conversation.ContactID); c.Name != "Ann" || c.Phone != number {
		t.Errorf("contact: %+v", c)
	}
	if c := w.conversation(m.Conversation.ID); c.AssignedMember != w.grace.ID {
		t.Errorf("conversation: %+v", c)
	}
	w.holds(1, 1, 1)
	if again, err := w.Release(t.Context(), w.operator(), id, true); err != nil || again.Phase != desk.Done || again.SettledAt != at.SettledAt {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	_, err = w.Release(t.Context(), w.operator(), id, false)
	if e := refusalOf(t, err, desk.AttemptSettled); e.Details != (desk.SettledAttempt{Phase: desk.Done}) {
		t.Errorf("the other decision: %+v", e.Details)
	}
	w.holds(1, 1, 1)
	// Later statuses still find the message, in any order.
	w.tell(saidEarly(id, desk.Delivered), said(id, desk.Sent), said(id, desk.Failed))
	w.takeIn()
	if got := w.message(m); got.ExternalID != messageID(id) || got.Delivery != desk.Delivered || got.Failure == nil {
		t.Errorf("after the statuses: %+v", got)
	}
	if at := w.attempt(id); at.ExternalID != messageID(id) || at.Notes != nil {
		t.Errorf("the attempt: %+v", at)
	}
	if again := w.send("k", profile(named("Ann"))); !bytes.Equal(again.Body, r.Body) {
		t.Errorf("the answer has become %q", again.Body)
	}
}

func TestRelease_not_sent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.inDoubt("k")
	at, err := w.Release(t.Context(), w.operator(), id, false)
	must(t, err)
	if at.Phase != desk.Released || w.holder("k") != nil {
		t.Errorf("released: %+v", at)
	}
	w.holds(0, 0, 0)
	if r := w.send("k", otherBody); r.err != nil || r.Replayed {
		t.Errorf("the free key: %+v", r)
	}
	w.holds(1, 1, 1)
}

func TestRelease_refuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	play, reached, release := blocks(takes)
	w.provider.plays(play)
	landed := make(chan reply)
	go func() { landed <- w.send("k") }()
	<-reached
	id := w.holder("k").ID
	for _, ahead := range []time.Duration{0, lease - slack} {
		w.store.ahead.Store(ahead.Milliseconds())
		for _, sent := range []bool{true, false} {
			_, err := w.Release(t.Context(), w.operator(), id, sent)
			if e := refusalOf(t, err, desk.SendInProgress); e.RetryAfter < 1 {
				t.Errorf("it can be tried again after %d s", e.RetryAfter)
			}
		}
	}
	if at := w.attempt(id); at.Phase != desk.Dispatching {
		t.Errorf("the attempt is %s", at.Phase)
	}
	close(release)
	w.read(<-landed)
	for _, unknown := range []desk.ID{id, {9}, {}} { // a settled attempt, and two ids that never were attempts
		if _, err := w.Release(t.Context(), w.operator(), unknown, false); !desk.IsType(err, desk.NotFound) && !desk.IsType(err, desk.AttemptSettled) {
			t.Errorf("%s: %v", unknown, err)
		}
	}
	w.holds(1, 1, 1)
}

// TestRelease_two_at_once: two decisions come at once, and the first one counts.
func TestRelease_two_at_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.node(&faultyStore{Store: w.file}, app.Bounds{})
	id := w.inDoubt("k")
	w.store.in(1, begin, func() error {
		_, err := other.Release(context.Background(), w.operator(), id, true)
		return err
	})
	_, err := w.Release(t.Context(), w.operator(), id, false)
	refused(t, err, desk.AttemptSettled)
	if at := w.holder("k"); at == nil || at.Phase != desk.Done {
		t.Errorf("the attempt: %+v", at)
	}
	w.holds(1, 1, 1)
}

// TestRelease_and_a_late_acceptance: a person decided that the message was not sent, and the
// provider accepted it after all. This can't be undone; it is logged once.
func TestRelease_and_a_late_acceptance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	play, reached, release := blocks(takes)
	w.provider.plays(play)
	landed := make(chan reply)
	go func() { landed <- w.send("k") }()
	<-reached
	id := w.holder("k").ID
	w.store.ahead.Store((lease + slack).Milliseconds())
	_, err := w.Release(t.Context(), w.operator(), id, false)
	must(t, err)
	w.provider.plays(takes)
	second := w.sent("k")
	close(release)
	if late := w.doubted((<-landed).err); late != id {
		t.Errorf("the caller learns of %s", late)
	}
	w.tell(said(id, desk.Sent), said(id, desk.Delivered), said(id, desk.Read))
	w.takeIn()
	at := w.attempt(id)
	if len(at.Notes) != 1 || !strings.Contains(at.Notes[0], messageID(id)) || at.Phase != desk.Released {
		t.Errorf("the attempt: %s, notes %q", at.Phase, at.Notes)
	}
	waitFor(t, "the incident in the log", func() bool { return len(w.log.find("incident")) > 0 })
	incidents := w.log.find("incident")
	if len(incidents) != 1 || !strings.HasPrefix(incidents[0], "ERROR") || !strings.Contains(incidents[0], id.String()) || !strings.Contains(incidents[0], messageID(id)) {
		t.Errorf("logged: %q", incidents)
	}
	w.holds(1, 1, 1)
	if again := w.send("k"); w.read(again).Message.ID != second.Message.ID {
		t.Errorf("the same again: %s", again.Body)
	}
}

// TestAccepted_twice: the provider reports a second message of one attempt.
func TestAccepted_twice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.sent("k")
	id := w.holder("k").ID
	other := said(id, desk.Delivered)
	other.ExternalID = "wamid.other"
	w.tell(other, other)
	w.takeIn()
	if at := w.attempt(id); len(at.Notes) != 1 || at.ExternalID != messageID(id) {
		t.Errorf("the attempt: %+v", at)
	}
	waitFor(t, "the incident in the log", func() bool { return len(w.log.find("incident")) > 0 }) // it is written after the commit
	if incidents := w.log.find("incident"); len(incidents) != 1 || !strings.Contains(incidents[0], "wamid.other") {
		t.Errorf("logged: %q", incidents)
	}
	if got := w.message(m); got.Delivery != desk.Sent {
		t.Errorf("the message is %s", got.Delivery)
	}
}

// TestFinish_in_between: data changes while a message is on its way. The send is not
// refused any more: writes that are no longer possible are left out, and noted.
func TestFinish_in_between(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	full := profile(named("Bob"), mailed("bob@example.com"), alsoKnownAs("telegram", "bob"), having("city", "Ankara"), having("size", "M"), ownedBy("ada@example.com"))
	for name, c := range map[string]struct {
		meanwhile func(*world)
		edits     []edit
		want      desk.Contact // the fields of the contact that the send decides
		notes     []string     // parts of the notes
	}{
		"nothing": {func(*world) {}, nil, desk.Contact{Name: "Bob", Email: "bob@example.com", Attributes: desk.StoredAttributes(`{"city":"Ankara","size":"M"}`),
			Further: []desk.Identity{{Kind: "telegram", Value: "bob"}}}, nil},
		"the e-mail is taken": {func(w *world) { w.put(named("Other"), mailed("BOB@example.com")) }, nil,
			desk.Contact{Name: "Bob", Attributes: desk.StoredAttributes(`{"city":"Ankara","size":"M"}`), Further: []desk.Identity{{Kind: "telegram", Value: "bob"}}},
			[]string{"taken by another contact"}},
		"the handle is taken": {func(w *world) { w.put(named("Other"), alsoKnownAs("telegram", "bob")) }, nil,
			desk.Contact{Name: "Bob", Email: "bob@example.com", Attributes: desk.StoredAttributes(`{"city":"Ankara","size":"M"}`)},
			[]string{"taken by another contact"}},
		"both are taken, by two": {func(w *world) {
			w.put(named("Other"), mailed("bob@example.com"))
			w.put(named("Third"), alsoKnownAs("telegram", "bob"))
		}, nil, desk.Contact{Name: "Bob", Attributes: desk.StoredAttributes(`{"city":"Ankara","size":"M"}`)}, []string{"taken by another contact"}},
		"an attribute is archived": {func(w *world) {
			_, err := w.ArchiveAttribute(ctx, w.caller(), "city", true)
			must(w.t, err)
		}, nil, desk.Contact{Name: "Bob", Email: "bob@example.com", Attributes: desk.StoredAttributes(`{"size":"M"}`), Further: []desk.Identity{{Kind: "telegram", Value: "bob"}}},
			[]string{"attributes city"}},
		"the owner is removed": {func(w *world) { must(w.t, w.RemoveMember(ctx, w.operator(), w.ada.ID)) }, nil,
			desk.Contact{Name: "Bob", Email: "bob@example.com", Attributes: desk.StoredAttributes(`{"city":"Ankara","size":"M"}`), Further: []desk.Identity{{Kind: "telegram", Value: "bob"}}},
			[]string{"the owner was removed"}},
		"the assignee is removed": {func(w *world) { must(w.t, w.RemoveMember(ctx, w.operator(), w.grace.ID)) }, []edit{assignedTo("grace@example.com")},
			desk.Contact{Name: "Bob", Email: "bob@example.com", Attributes: desk.StoredAttributes(`{"city":"Ankara","size":"M"}`), Further: []desk.Identity{{Kind: "telegram", Value: "bob"}}},
			[]string{"the assignee was removed"}},
		"everything at once": {func(w *world) {
			must(w.t, w.RemoveMember(ctx, w.operator(), w.ada.ID))
			must(w.t, w.RemoveMember(ctx, w.operator(), w.grace.ID))
			w.put(named("Other"), mailed("bob@example.com"), alsoKnownAs("telegram", "bob"))
			for _, key := range []string{"city", "size"} {
				_, err := w.ArchiveAttribute(ctx, w.caller(), key, true)
				must(w.t, err)
			}
		}, []edit{assignedTo("grace@example.com")}, desk.Contact{Name: "Bob"},
			[]string{"the owner was removed", "attributes city, size", "taken by another contact", "the assignee was removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, key := range []string{"city", "size"} {
				_, _, err := w.PutAttribute(t.Context(), w.caller(), desk.AttributeInput{Key: key, Type: text(string(desk.TextAttribute))})
				must(t, err)
			}
			w.provider.plays(meanwhile(func(provider.Dispatch) { c.meanwhile(w) }, takes))
			r := w.send("k", append(slices.Clone(c.edits), full)...)
			m := w.read(r)
			got := w.contact(m.Conversation.ContactID)
			if got.Name != c.want.Name || got.Phone != number || got.Email != c.want.Email || got.Attributes != c.want.Attributes || !slices.Equal(got.Further, c.want.Further) {
				t.Errorf("contact: %+v", got)
			}
			at := w.holder("k")
			if len(at.Notes) != len(c.notes) {
				t.Fatalf("notes: %q", at.Notes)
			}
			for n, part := range c.notes {
				if !strings.Contains(at.Notes[n], part) {
					t.Errorf("notes: %q, want %q", at.Notes, c.notes)
				}
			}
			stored := w.conversation(m.Conversation.ID)
			if asOfMessages(*stored) != asOfMessages(m.Conversation) || (stored.AssignedMember.IsZero()) == (got.Owner != nil) {
				t.Errorf("conversation: %+v", stored)
			}
			if w.message(m).Text != "Hello there!" {
				t.Error("the message is not there")
			}
			if again := w.send("k", append(slices.Clone(c.edits), full)...); !bytes.Equal(again.Body, r.Body) {
				t.Errorf("the same again: %v %v", again, again.err)
			}
			for _, line := range at.Notes { // the log outlives the contact
				if strings.Contains(line, "bob") || strings.Contains(line, number) {
					t.Errorf("a note speaks of the person: %q", line)
				}
			}
		})
	}
}

// TestFinish_the_recipient_was_deleted: the answer is made from the plan, no data of the
// person is stored, and the key keeps its answer.
func TestFinish_the_recipient_was_deleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known bool // the contact existed before the send
		doubt bool // the outcome is unknown at first, and then learnt from a status
	}{"a known one": {true, false}, "one made meanwhile": {false, false}, "a known one, in doubt": {true, true}, "one made meanwhile, in doubt": {false, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.known {
				w.put(named("Ann"), phoned(number))
			}
			play := meanwhile(func(provider.Dispatch) { w.deleteContact(w.put(phoned(number)).ID) }, takes)
			edits := []edit{of("order_update", "en_US", "A-17", "Ann", "A-17"), assignedTo("grace@example.com")}
			var r reply
			if c.doubt {
				w.provider.plays(meanwhile(func(provider.Dispatch) { w.deleteContact(w.put(phoned(number)).ID) }, losesTheAnswer))
				id := w.doubted(w.send("k", edits...).err)
				w.tell(said(id, desk.Delivered), said(id, desk.Read))
				w.takeIn()
				r = w.send("k", edits...)
			} else {
				w.provider.plays(play)
				r = w.send("k", edits...)
			}
			m := w.read(r)
			text := "*Order A-17*\nHi Ann, order A-17 ships today."
			if c.doubt { // the text was erased, and no process has it in memory
				text = ""
			}
			if m.Message.Text != text || m.Conversation.AssignedMember != w.grace.ID || m.Existing {
				t.Errorf("the answer: %+v", m)
			}
			w.holds(0, 0, 0)
			if again := w.send("k", edits...); again.err != nil || !again.Replayed || !bytes.Equal(again.Body, r.Body) {
				t.Errorf("the same again: %+v, %v", again, again.err)
			}
			at := w.holder("k")
			if at.Phase != desk.Done || at.Plan.Number != "" || at.Plan.Text != "" {
				t.Errorf("the attempt: %+v", at)
			}
			must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error { // nobody will ever read these items
				kept, err := tx.TakeStatuses(w.channel, messageID(at.ID))
				if len(kept) != 0 {
					t.Errorf("statuses are kept: %+v", kept)
				}
				return err
			}))
			if n := len(w.provider.sent()); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestFinish_the_number_was_taken: the message belongs to the contact that has the number
// when the send ends.
func TestFinish_the_number_was_taken(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(string) func(*desk.ContactWrite){
		"as a phone": phoned, "as a chat account": func(s string) func(*desk.ContactWrite) { return alsoKnownAs(desk.KindWhatsApp, s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var taker *desk.Contact
			w.provider.plays(meanwhile(func(provider.Dispatch) { taker = w.put(named("Taker"), how(number), ownedBy("ada@example.com")) }, takes))
			m := w.sent("k", profile(named("Bob")))
			if m.Conversation.ContactID != taker.ID || m.Conversation.AssignedMember != w.ada.ID || m.Conversation.AssignedVia != desk.ViaOwner {
				t.Errorf("the conversation: %+v", m.Conversation)
			}
			if got := w.contact(taker.ID); got.Name != "Taker" {
				t.Errorf("the profile went to %q", got.Name)
			}
			w.holds(1, 1, 1)
		})
	}
}

// TestFinish_another_send_was_faster: two sends to one new number share the contact
// and the conversation that the faster one made.
func TestFinish_another_send_was_faster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var faster desk.SentMessage
	w.provider.plays(meanwhile(func(provider.Dispatch) {
		w.provider.plays(takes)
		faster = w.sent("faster", profile(named("Faster")))
	}, takes))
	slower := w.sent("slower", profile(named("Slower")))
	if faster.Existing || !slower.Existing || slower.Conversation.ID != faster.Conversation.ID || slower.Conversation.ContactID != faster.Conversation.ContactID {
		t.Errorf("faster %+v, slower %+v", faster, slower)
	}
	if c := w.contact(faster.Conversation.ContactID); c.Name != "Faster" {
		t.Errorf("contact: %+v", c)
	}
	if at := w.holder("slower"); at.Plan.Contact != faster.Conversation.ContactID || at.Plan.Conversation != faster.Conversation.ID {
		t.Errorf("the attempt: %+v", at.Plan)
	}
	w.holds(1, 1, 2)
}

// TestForget: keys of accepted sends and refused attempts are kept for 30 days. Attempts in
// doubt are kept until a person settles them.
func TestForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doubt := w.inDoubt("doubt")
	released := w.inDoubt("released")
	_, err := w.Release(t.Context(), w.operator(), released, false)
	must(t, err)
	w.provider.plays(refuses)
	refused(t, w.send("refused").err, desk.ProviderRejected)
	w.provider.plays(takes)
	w.sent("done")
	const month = 30 * 24
	phases := func() (list []desk.Phase) {
		for _, at := range w.attempts() {
			list = append(list, at.Phase)
		}
		slices.Sort(list)
		return list
	}
	w.clock.advance(400 * 24 * time.Hour)
	w.serve(month)
	must(t, w.Forget(t.Context()))
	if got, want := phases(), []desk.Phase{desk.Done, desk.InDoubt, desk.Refused, desk.Released}; !slices.Equal(got, want) {
		t.Errorf("after almost 30 days: %v, want %v", got, want)
	}
	w.serve(1)
	must(t, w.Forget(t.Context()))
	if got, want := phases(), []desk.Phase{desk.InDoubt}; !slices.Equal(got, want) {
		t.Errorf("after 30 days: %v, want %v", got, want)
	}
	if w.holder("done") != nil || w.holder("doubt") == nil {
		t.Errorf("keys: %v, %v", w.holder("done"), w.holder("doubt"))
	}
	w.clock.advance(-800 * 24 * time.Hour)
	w.serve(2 * month)
	must(t, w.Forget(t.Context()))
	if again := w.doubted(w.send("doubt").err); again != doubt {
		t.Errorf("in doubt is %s", again)
	}
	w.holds(1, 1, 1) // the message stays
}

// TestAttempts: the log of attempts, newest first. Settled attempts have no personal data.
func TestAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doubt := w.inDoubt("1")
	w.sent("2")
	list := w.attempts()
	if len(list) != 2 || list[0].Key != "2" || list[1].ID != doubt || list[1].Actor.ID != w.keyID {
		t.Errorf("the log: %+v", list)
	}
	if few, _, err := w.Attempts(t.Context(), w.operator(), app.AttemptFilter{}, "", 1); err != nil || !reflect.DeepEqual(few, list[:1]) {
		t.Errorf("the newest: %+v, %v", few, err)
	}
	if _, err := w.Operator(t.Context(), desk.ID{9}); !desk.IsType(err, desk.NotFound) {
		t.Errorf("of no workspace: %v", err)
	}
}

// TestFailedAttempts: pages of attempts whose message did not reach the person. Each page
// looks at a limited number of attempts.
func TestFailedAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	for _, key := range []string{"a", "b", "c"} {
		w.sent(key)
	}
	doubt := w.inDoubt("d", to("905321110003"))
	bounced := w.attempts()[1] // c
	must(t, w.store.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		m, err := tx.MessageBy(bounced.Plan.Channel, bounced.ExternalID)
		must(t, err)
		m.Reach(desk.Failed, &desk.Failure{Code: 131026, Title: "undeliverable"})
		return tx.PutMessage(m)
	}))
	keys := func(limit int) (keys []string, pages int) {
		t.Helper()
		for cursor := ""; cursor != "" || pages == 0; pages++ {
			list, next, err := w.FailedAttempts(t.Context(), p, nil, cursor, limit)
			must(t, err)
			for _, at := range list {
				keys = append(keys, at.Key)
			}
			if cursor = next; next != "" {
				_, _, err = w.Attempts(t.Context(), p, app.AttemptFilter{}, next, 3)
				refused(t, err, desk.InvalidRequest)
			}
		}
		return keys, pages
	}
	if got, _ := keys(10); !slices.Equal(got, []string{"c"}) {
		t.Errorf("failed: %q", got)
	}
	_, err = w.Release(t.Context(), w.operator(), doubt, false)
	must(t, err)
	for i := range app.FailedLooked {
		w.sent(fmt.Sprint("new ", i))
	}
	if got, pages := keys(1); !slices.Equal(got, []string{"d", "c"}) || pages < 3 {
		t.Errorf("failed: %q, in %d pages", got, pages)
	}
	if list, next, err := w.FailedAttempts(t.Context(), p, nil, "", 10); err != nil || len(list) != 0 || next == "" {
		t.Errorf("a page looks at more than %d: %+v, %v", app.FailedLooked, list, err)
	}
	caller := w.caller()
	caller.Key.Permissions = slices.DeleteFunc(slices.Clone(desk.Permissions), func(p desk.Permission) bool { return p == desk.AttemptsRead })
	_, _, err = w.FailedAttempts(t.Context(), caller, nil, "", 1)
	refused(t, err, desk.Forbidden)
}

// TestAttempts_pages: members see all attempts, page by page.
func TestAttempts_pages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	for _, key := range []string{"a", "b", "c"} {
		w.sent(key)
	}
	doubtful := w.inDoubt("d", to("905321110003"))
	var keys []string
	for cursor, pages := "", 0; cursor != "" || pages == 0; pages++ {
		list, next, err := w.Attempts(t.Context(), p, app.AttemptFilter{}, cursor, 3)
		must(t, err)
		for _, at := range list {
			keys = append(keys, at.Key)
		}
		if cursor = next; next != "" {
			_, _, err = w.Attempts(t.Context(), p, app.AttemptFilter{Phase: desk.InDoubt}, next, 3)
			refused(t, err, desk.InvalidRequest)
		}
	}
	if !slices.Equal(keys, []string{"d", "c", "b", "a"}) {
		t.Errorf("attempts %q", keys)
	}
	at, err := w.Attempt(t.Context(), p, doubtful)
	if err != nil || at.Phase != desk.InDoubt {
		t.Errorf("%+v, %v", at, err)
	}
	_, err = w.Attempt(t.Context(), p, desk.ID{9})
	refused(t, err, desk.NotFound)
	caller := w.caller()
	caller.Key.Permissions = slices.DeleteFunc(slices.Clone(desk.Permissions), func(p desk.Permission) bool { return p == desk.AttemptsRead })
	_, err = w.Attempt(t.Context(), caller, doubtful)
	refused(t, err, desk.Forbidden)
	_, err = w.Release(t.Context(), p, doubtful, true)
	refused(t, err, desk.Forbidden)
}

// TestMessagesSent: an accepted attempt leads to its message in the current state. Other
// attempts have no message.
func TestMessagesSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, ctx := w.operator(), t.Context()
	failed, sent := w.sent("failed"), w.sent("sent")
	gone := w.sent("gone", func(r *desk.SendRequest) { r.Phone = phoneOf("905321119999") })
	w.deleteContact(gone.Conversation.ContactID)
	why := &desk.Failure{Code: 131026, Title: "Undeliverable", Fix: "Check the number."}
	w.tell(desk.StatusUpdate{ExternalID: failed.Message.ExternalID, Delivery: desk.Failed, Failure: why, At: desk.TimeOf(w.clock.now())})
	w.takeIn()
	decided := w.inDoubt("decided") // the provider's id of its message is not known
	_, err := w.Release(ctx, p, decided, true)
	must(t, err)
	w.inDoubt("in doubt")
	list := w.attempts()
	found, err := w.MessagesSent(ctx, p, list)
	must(t, err)
	if len(list) != 5 || len(found) != 2 {
		t.Fatalf("%d messages of %d attempts", len(found), len(list))
	}
	for key, want := range map[string]desk.Message{"failed": failed.Message, "sent": sent.Message} {
		m := found[w.holder(key).ID]
		if m == nil || m.ID != want.ID || m.ConversationID != want.ConversationID || (m.Delivery == desk.Failed) != (key == "failed") || (m.Failure != nil) != (key == "failed") {
			t.Errorf("%s: %+v", key, m)
		}
	}
	if found, err := w.MessagesSent(ctx, w.another().operator(), list); err != nil || len(found) != 0 {
		t.Errorf("from another workspace: %+v, %v", found, err)
	}
	limited := w.caller()
	limited.Key.Permissions = []desk.Permission{desk.AttemptsRead}
	_, err = w.MessagesSent(ctx, limited, list)
	refused(t, err, desk.Forbidden)
}

// TestReleaseOld: two concurrent calls release old attempts in doubt, oldest first. Each
// attempt is released by one of them. An attempt that may still be under way stays.
func TestReleaseOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var old []desk.ID
	for n := range 5 {
		old = append(old, w.inDoubt(fmt.Sprint("old ", n), to(fmt.Sprint("90532111000", n))))
	}
	w.clock.advance(24 * time.Hour)
	young := w.inDoubt("young", to("905321110009"))
	var first []int
	n, err := w.ReleaseOld(t.Context(), w.operator(), 25*time.Hour, false, func(int) {})
	if n != 0 || err != nil {
		t.Errorf("%d are too young, %v", n, err)
	}
	counts := make([]int, 2)
	var both sync.WaitGroup
	for i := range counts {
		both.Go(func() {
			var err error
			counts[i], err = w.ReleaseOld(context.Background(), w.operator(), 24*time.Hour, false, func(n int) {
				if i == 0 {
					first = append(first, n)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if counts[0]+counts[1] != len(old) || len(first) != 1 || first[0] != counts[0] {
		t.Errorf("released %v, told %v", counts, first)
	}
	for _, id := range old {
		if at := w.attempt(id); at.Phase != desk.Released {
			t.Errorf("%s is %s", at.Key, at.Phase)
		}
	}
	if at := w.attempt(young); at.Phase != desk.InDoubt {
		t.Errorf("the young one is %s", at.Phase)
	}
	r, err := w.ReleaseMany(t.Context(), w.operator(), []desk.ID{young, old[0], w.clock.newID(), young}, true)
	if want := (app.Releases{Released: 1, Same: 1, Otherwise: 2}); r != want || err != nil {
		t.Errorf("many: %+v, %v", r, err)
	}
	running := w.inDoubt("running", to("905321110008"))
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		at, err := tx.Attempt(running)
		if err != nil {
			return err
		}
		at.CreatedAt -= 100_000_000
		at.Lease = desk.LeaseFor(tx.Now(), 10_000)
		return tx.PutAttempt(at)
	}))
	if n, err := w.ReleaseOld(t.Context(), w.operator(), 24*time.Hour, true, func(int) {}); n != 0 || err != nil || w.attempt(running).Phase != desk.InDoubt {
		t.Errorf("one under way: %d, %v", n, err)
	}
}
