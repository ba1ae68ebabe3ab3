package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/desk"
	"parley/store"
)

// newDelivery returns a pending delivery of an event about a contact.
func newDelivery(seq int64, contact desk.ID) *desk.WebhookDelivery {
	at := now()
	return &desk.WebhookDelivery{
		ID: idAt(at), Event: desk.EventPlace{Seq: seq, Tag: seq * 7}, Type: desk.ContactUpdated, Contact: contact, Status: desk.DeliveryPending,
		CreatedAt: at, DueAt: at + 5000, TriedAt: at, Steps: 1,
	}
}

func refused(at desk.Time, response string) desk.WebhookTry {
	return desk.WebhookTry{At: at, Took: 12, StatusCode: 503, Error: "status", Response: response}
}

func deliveries(t *testing.T, s store.Store, ws, webhook desk.ID, f desk.DeliveryFilter, limit int) (list []*desk.WebhookDelivery) {
	t.Helper()
	var after *desk.ID
	for {
		page, next, err := s.Deliveries(t.Context(), ws, webhook, f, after, limit)
		must(t, err)
		if list = append(list, page...); next == nil {
			return list
		}
		after = next
	}
}

// deliveryFields: deliveries keep their fields, and are listed newest first, by status
// and by event. Deliveries of other webhooks or workspaces are not found.
func deliveryFields(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	webhook, contact := newID(), put(t, s, ws, upsert("ada@example.com", ""))
	var all []*desk.WebhookDelivery
	for n := range int64(7) {
		d := newDelivery(n/2, contact.ID)
		if n == 3 {
			d.Contact = desk.ID{}
		}
		if d.Tries = []desk.WebhookTry{refused(d.TriedAt, fmt.Sprintf("response %d", n))}; n%3 == 1 {
			d.Tries = append(d.Tries, desk.WebhookTry{At: d.TriedAt + 1, StatusCode: 204})
			d.Status, d.DueAt, d.SettledAt = desk.DeliveryDelivered, 0, d.TriedAt+1
		}
		all = append(all, d)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutDeliveries(newID(), []*desk.WebhookDelivery{newDelivery(1, contact.ID)}); err != nil {
			return err
		}
		return tx.PutDeliveries(webhook, all)
	})
	slices.Reverse(all)
	for _, limit := range []int{1, 3, 7, 50} {
		equal(t, "all", deliveries(t, s, ws, webhook, desk.DeliveryFilter{}, limit), all)
	}
	only := func(keep func(*desk.WebhookDelivery) bool) (list []*desk.WebhookDelivery) {
		for _, d := range all {
			if keep(d) {
				list = append(list, d)
			}
		}
		return list
	}
	pending := only(func(d *desk.WebhookDelivery) bool { return d.Status == desk.DeliveryPending })
	equal(t, "pending", deliveries(t, s, ws, webhook, desk.DeliveryFilter{Status: desk.DeliveryPending}, 2), pending)
	place := desk.EventPlace{Seq: 2, Tag: 14}
	ofEvent := only(func(d *desk.WebhookDelivery) bool { return d.Event == place })
	equal(t, "of an event", deliveries(t, s, ws, webhook, desk.DeliveryFilter{Event: &place}, 1), ofEvent)
	equal(t, "of an event, delivered", deliveries(t, s, ws, webhook, desk.DeliveryFilter{Event: &place, Status: desk.DeliveryDelivered}, 1),
		only(func(d *desk.WebhookDelivery) bool { return d.Event == place && d.Status == desk.DeliveryDelivered }))
	found, err := s.Delivery(t.Context(), ws, webhook, all[0].ID)
	must(t, err)
	equal(t, "one", found, all[0])
	other, _ := newWorkspace(t, s)
	for _, of := range [][2]desk.ID{{other, webhook}, {ws, newID()}} {
		if found, err := s.Delivery(t.Context(), of[0], of[1], all[0].ID); found != nil || err != nil {
			t.Errorf("another's: %v, %v", found, err)
		}
	}
	if list := deliveries(t, s, other, webhook, desk.DeliveryFilter{}, 9); list != nil {
		t.Errorf("another workspace has %v", list)
	}

	waiting, err := s.PendingDeliveries(t.Context(), ws, webhook)
	must(t, err)
	slices.Reverse(pending)
	for i, d := range pending {
		bare := *d
		bare.Tries = slices.Clone(d.Tries)
		for n := range bare.Tries {
			bare.Tries[n].Response = ""
		}
		equal(t, "waiting", waiting[i], &bare)
	}
	commit(t, s, ws, func(tx store.Tx) error { return tx.DuePending(webhook, 77) })
	commit(t, s, ws, func(tx store.Tx) error { return tx.DropPending(webhook, 1) })
	waiting, err = s.PendingDeliveries(t.Context(), ws, webhook)
	must(t, err)
	for _, d := range waiting {
		if d.Event.Seq > 1 || d.DueAt != 77 {
			t.Errorf("waiting: %+v", d)
		}
	}
	if left := deliveries(t, s, ws, webhook, desk.DeliveryFilter{}, 9); len(waiting) == 0 || len(left) != len(waiting)+len(all)-len(pending) {
		t.Errorf("%d are waiting, %d are left", len(waiting), len(left))
	}
}

// deliveriesHeld: the holder of a webhook's deliveries can store them without reading.
// This ends when another process has the task or has called the holder, when the settings
// have changed, or when the feed does not have the cursor.
func deliveriesHeld(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	contact := put(t, s, ws, upsert("ada@example.com", ""))
	webhook := &desk.Webhook{ID: newID(), URL: "https://a.example", Types: []string{"*"}, Enabled: true, Sealed: []byte("sealed"), CreatedAt: now(), UpdatedAt: now()}
	edit(t, s, ws, desk.Change{Webhook: webhook, Events: []desk.Event{{Type: desk.WebhookCreated, Subject: webhook.ID, At: now()}}})
	settings, err := s.Settings(t.Context(), ws)
	must(t, err)
	const task = "deliver"
	me, other := newID(), newID()
	ref := store.LeaseRef{Workspace: ws, Task: task}
	calls, err := s.HoldLeases(t.Context(), []store.LeaseRef{ref}, me, 10_000)
	must(t, err)
	put(t, s, ws, upsert("grace@example.com", ""))
	newest := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	hold := store.DeliveryHold{WebhookRef: store.WebhookRef{Workspace: ws, ID: webhook.ID}, Task: task, Holder: me, Calls: calls[ref], Settings: settings.Version}
	state := desk.WebhookState{Cursor: newest, FailingSince: now(), Failures: 3, Probes: 1, HeldUntil: now() + 5}
	d := newDelivery(newest.Seq, contact.ID)
	d.Tries = []desk.WebhookTry{refused(d.TriedAt, "no")}
	try := func(hold store.DeliveryHold, state desk.WebhookState, d *desk.WebhookDelivery) bool {
		t.Helper()
		stored, err := s.StoreDeliveries(t.Context(), hold, state, []*desk.WebhookDelivery{d})
		must(t, err)
		found, err := s.Delivery(t.Context(), ws, webhook.ID, d.ID)
		must(t, err)
		states, err := s.WebhookStates(t.Context(), ws)
		must(t, err)
		if stored {
			equal(t, "delivery", found, d)
			equal(t, "state", states[webhook.ID], state)
		} else if found != nil {
			t.Errorf("it is stored: %+v", found)
		}
		return stored
	}
	if !try(hold, state, d) {
		t.Fatal("it is not stored")
	}
	d.Status, d.SettledAt, d.Tries = desk.DeliveryDelivered, now(), append(d.Tries, desk.WebhookTry{At: now(), StatusCode: 200})
	if !try(hold, state, d) {
		t.Error("it is not stored again")
	}
	for name, change := range map[string]func(*store.DeliveryHold, *desk.WebhookState){
		"another holder":    func(h *store.DeliveryHold, _ *desk.WebhookState) { h.Holder = other },
		"a call":            func(h *store.DeliveryHold, _ *desk.WebhookState) { h.Calls-- },
		"other settings":    func(h *store.DeliveryHold, _ *desk.WebhookState) { h.Settings-- },
		"no such event yet": func(_ *store.DeliveryHold, s *desk.WebhookState) { s.Cursor.Seq++ },
		"another event":     func(_ *store.DeliveryHold, s *desk.WebhookState) { s.Cursor.Tag++ },
	} {
		h, s := hold, state
		change(&h, &s)
		if try(h, s, newDelivery(newest.Seq, contact.ID)) {
			t.Errorf("%s: it is stored", name)
		}
	}
	commit(t, s, ws, func(tx store.Tx) error {
		for place, want := range map[desk.EventPlace]bool{newest: true, {Seq: newest.Seq, Tag: newest.Tag + 1}: false, {Seq: newest.Seq + 1}: false} {
			if passed, err := tx.Passed(place); err != nil || passed != want {
				t.Errorf("passed %v: %t, %v", place, passed, err)
			}
		}
		return nil
	})
	followAll(t, s, ws)
	for more := 1; more > 0; {
		more, err = s.DropEvents(t.Context(), ws, desk.Expired{Before: now() + 60_000, Now: now() + 60_000}, 100)
		must(t, err)
	}
	if !try(hold, state, newDelivery(newest.Seq, contact.ID)) {
		t.Error("the cursor's event has expired, and it is not stored")
	}
	must(t, s.EndLease(t.Context(), ref, me))
	if try(hold, state, newDelivery(newest.Seq, contact.ID)) {
		t.Error("it is stored without the lease")
	}
}

// deliveryAttempts: a changed delivery keeps the responses of the tries that it still
// has.
func deliveryAttempts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	webhook, contact := newID(), put(t, s, ws, upsert("ada@example.com", ""))
	d := newDelivery(1, contact.ID)
	rules, state := desk.DefaultDeliveryRules(), desk.WebhookState{}
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutDeliveries(webhook, []*desk.WebhookDelivery{d}) })
	for n := range 15 {
		commit(t, s, ws, func(tx store.Tx) error {
			rows, err := tx.DeliveriesOf(webhook, []desk.ID{newID(), d.ID})
			if err != nil || len(rows) != 1 {
				return fmt.Errorf("%d rows: %w", len(rows), err)
			}
			rules.Tried(&state, rows[0], &desk.WebhookResult{WebhookTry: refused(now(), fmt.Sprint("response ", n)), Probe: true})
			return tx.PutDeliveries(webhook, rows)
		})
	}
	found, err := s.Delivery(t.Context(), ws, webhook, d.ID)
	must(t, err)
	for i, a := range found.Tries {
		if a.Response != fmt.Sprint("response ", i+3) {
			t.Errorf("attempt %d has %q", i, a.Response)
		}
	}
	if len(found.Tries) != 12 {
		t.Errorf("%d attempts", len(found.Tries))
	}
}

// deleteErasesResponses: the responses of endpoints are deleted with the contact, and no
// later one is stored. Responses of other contacts stay.
func deleteErasesResponses(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	webhook := newID()
	contact, other := put(t, s, ws, upsert("ada@example.com", "")), put(t, s, ws, upsert("bob@example.com", ""))
	d, late, kept := newDelivery(1, contact.ID), newDelivery(2, contact.ID), newDelivery(3, other.ID)
	d.Tries, kept.Tries = []desk.WebhookTry{refused(d.TriedAt, "ada")}, []desk.WebhookTry{refused(kept.TriedAt, "bob")}
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutDeliveries(webhook, []*desk.WebhookDelivery{d, late, kept}) })
	put(t, s, ws, remove(contact.ID))
	late.Tries = []desk.WebhookTry{refused(late.TriedAt, "ada")}
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutDeliveries(webhook, []*desk.WebhookDelivery{late}) })
	for _, found := range deliveries(t, s, ws, webhook, desk.DeliveryFilter{}, 9) {
		want := ""
		if found.ID == kept.ID {
			want = "bob"
		}
		if len(found.Tries) != 1 || found.Tries[0].Response != want {
			t.Errorf("%+v, want the response %q", found.Tries, want)
		}
	}
	// Responses are stored and contacts are deleted at the same time. In whatever order
	// this happens, no response is left.
	var group sync.WaitGroup
	for n := range 20 {
		c := put(t, s, ws, upsert(fmt.Sprintf("%d@example.com", n), ""))
		d := newDelivery(int64(10+n), c.ID)
		d.Tries = []desk.WebhookTry{refused(d.TriedAt, "someone")}
		group.Go(func() { put(t, s, ws, remove(c.ID)) })
		group.Go(func() {
			if err := s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.PutDeliveries(webhook, []*desk.WebhookDelivery{d}) }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, found := range deliveries(t, s, ws, webhook, desk.DeliveryFilter{}, 50) {
		if found.Event.Seq >= 10 && found.Tries[0].Response != "" {
			t.Errorf("left of a deleted contact: %+v", found)
		}
	}
}

// deliveriesAreForgotten: settled deliveries are deleted by their age and by their
// number. Pending deliveries are deleted only with their webhook.
func deliveriesAreForgotten(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	webhook := newID()
	var list []*desk.WebhookDelivery
	for n := range int64(10) {
		d := newDelivery(n, desk.ID{})
		if d.Tries = []desk.WebhookTry{refused(d.TriedAt, "no")}; n != 4 {
			d.Status, d.SettledAt = desk.DeliveryFailed, d.TriedAt
		}
		list = append(list, d)
	}
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutDeliveries(webhook, list) })
	forget := func(before desk.Time, keep, limit, want int) {
		t.Helper()
		if n, err := s.ForgetDeliveries(t.Context(), ws, webhook, before, keep, limit); n != want || err != nil {
			t.Errorf("forgot %d, %v; want %d", n, err, want)
		}
	}
	forget(list[0].SettledAt, 100, 100, 0)
	forget(list[3].SettledAt, 100, 2, 2)
	forget(list[3].SettledAt, 100, 2, 1)
	forget(0, 5, 100, 1) // of seven, the two oldest are to go, but one of them is pending
	left := deliveries(t, s, ws, webhook, desk.DeliveryFilter{}, 50)
	if len(left) != 6 || left[5].ID != list[4].ID || left[5].Tries[0].Response != "no" {
		t.Errorf("left: %+v", left)
	}
	var webhooks []desk.ID
	for range 3 {
		webhooks = append(webhooks, newID())
		commit(t, s, ws, func(tx store.Tx) error {
			return tx.PutDeliveries(webhooks[len(webhooks)-1], []*desk.WebhookDelivery{newDelivery(1, desk.ID{}), newDelivery(2, desk.ID{})})
		})
	}
	delivered := func(ws desk.ID, want ...desk.ID) {
		t.Helper()
		got, err := s.DeliveredWebhooks(t.Context(), ws)
		must(t, err)
		want = slices.Clone(want)
		byID := func(a, b desk.ID) int { return bytes.Compare(a[:], b[:]) }
		slices.SortFunc(got, byID)
		slices.SortFunc(want, byID)
		if !slices.Equal(got, want) {
			t.Errorf("webhooks with deliveries: %v, want %v", got, want)
		}
	}
	delivered(ws, append(webhooks, webhook)...)
	forget(0, 0, 4, 4)
	forget(0, 0, 4, 2)
	forget(0, 0, 4, 0)
	delivered(ws, webhooks...)
	other, _ := newWorkspace(t, s)
	delivered(other)
}

// enabledWebhooks: the list has the enabled webhooks of all workspaces, and none of a
// workspace that is being deleted.
func enabledWebhooks(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	gone, _ := newWorkspace(t, s)
	want := map[store.WebhookRef]bool{}
	for i, at := range []desk.ID{ws, ws, other, gone} {
		id := newID()
		edit(t, s, at, desk.Change{Webhook: &desk.Webhook{ID: id, URL: fmt.Sprintf("https://%d.example/in", i), Types: []string{"*"}, Enabled: i != 1, Sealed: []byte{1}}})
		if i != 1 && at != gone {
			want[store.WebhookRef{Workspace: at, ID: id}] = true
		}
	}
	must(t, s.DeleteWorkspace(t.Context(), gone, func(string) error { return nil }))
	list, err := s.EnabledWebhooks(t.Context())
	must(t, err)
	got := map[store.WebhookRef]bool{}
	for _, w := range list {
		got[w.WebhookRef] = true
	}
	equal(t, "enabled webhooks", got, want)
}

// busyWebhooks: a webhook is busy while there are events after its cursor, and while its
// task has a lease, even one that has ended. A lease is not dropped by somebody who does not
// hold it, or who was called since.
func busyWebhooks(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	webhook := &desk.Webhook{ID: newID(), URL: "https://a.example", Types: []string{"*"}, Enabled: true, Sealed: []byte("sealed"), CreatedAt: now(), UpdatedAt: now()}
	edit(t, s, ws, desk.Change{Webhook: webhook, Events: []desk.Event{{Type: desk.WebhookCreated, Subject: webhook.ID, At: now()}}})
	is := func(when string, want bool) {
		t.Helper()
		list, err := s.EnabledWebhooks(t.Context())
		must(t, err)
		equal(t, when, list, []store.EnabledWebhook{{WebhookRef: store.WebhookRef{Workspace: ws, ID: webhook.ID}, Busy: want}})
	}
	is("new", false)
	seen := func() {
		t.Helper()
		state := desk.WebhookState{Cursor: feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next}
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutWebhookState(webhook.ID, state) })
	}
	seen()
	is("it has seen all events", false)
	put(t, s, ws, upsert("ada@example.com", ""))
	is("a new event", true)
	seen()
	is("and that one", false)

	me, other := newID(), newID()
	ref := store.LeaseRef{Workspace: ws, Task: store.WebhookTask(webhook.ID)}
	hold := func(by desk.ID) int64 {
		t.Helper()
		held, err := s.HoldLeases(t.Context(), []store.LeaseRef{ref}, by, 10_000)
		must(t, err)
		return held[ref]
	}
	drop := func(when string, by desk.ID, calls int64, want bool) {
		t.Helper()
		dropped, err := s.DropLease(t.Context(), ref, by, calls)
		must(t, err)
		if dropped != want {
			t.Errorf("%s: the lease is dropped: %t", when, dropped)
		}
	}
	calls := hold(me)
	is("held", true)
	drop("by another", other, calls, false)
	commit(t, s, ws, func(tx store.Tx) error { return tx.CallHolder(ref.Task) })
	drop("after a call", me, calls, false)
	is("still held", true)
	calls = hold(me)
	drop("by its holder", me, calls, true)
	is("dropped", false)
	drop("again", me, calls, false)
	commit(t, s, ws, func(tx store.Tx) error { return tx.CallHolder(ref.Task) })
	is("called, and nobody holds it", true)
	hold(me)
	must(t, s.EndLease(t.Context(), ref, me))
	is("ended: something may be left to do", true)
	calls = hold(me)
	drop("by its holder, again", me, calls, true)
	is("dropped again", false)
	d := newDelivery(1, desk.ID{})
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutDeliveries(webhook.ID, []*desk.WebhookDelivery{d}) })
	is("a delivery is pending, as after an import", true)
}

// extendedLeases: only a holder extends a lease. A task that was taken and dropped by another
// holder since is not the first one's any more, although nobody holds it.
func extendedLeases(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	a, b := newID(), newID()
	ref := store.LeaseRef{Workspace: ws, Task: "one"}
	extend := func(when string, holder desk.ID, want map[store.LeaseRef]int64) {
		t.Helper()
		held, err := s.ExtendLeases(t.Context(), []store.LeaseRef{ref, {Workspace: ws, Task: "none"}}, holder, 1_000_000)
		must(t, err)
		equal(t, when, held, want)
	}
	hold := func(holder desk.ID, length desk.Time) int64 {
		t.Helper()
		held, err := s.HoldLeases(t.Context(), []store.LeaseRef{ref}, holder, length)
		must(t, err)
		return held[ref]
	}
	none := map[store.LeaseRef]int64{}
	extend("a task that nobody has had", a, none)
	hold(a, 1_000_000)
	extend("held", a, map[store.LeaseRef]int64{ref: 0})
	extend("by another", b, none)
	hold(b, 1_000_000)
	commit(t, s, ws, func(tx store.Tx) error { return tx.CallHolder("one") })
	extend("extended, and called", a, map[store.LeaseRef]int64{ref: 1})
	hold(a, -5) // it has ended
	calls := hold(b, 1_000_000)
	extend("taken over", a, none)
	if dropped, err := s.DropLease(t.Context(), ref, b, calls); err != nil || !dropped {
		t.Errorf("not dropped: %v", err)
	}
	extend("dropped since", a, none)
}

// heldLeases: one holder has a task at a time, and learns that it was called, or that
// another holder had the task meanwhile.
func heldLeases(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	a, b := newID(), newID()
	one, two := store.LeaseRef{Workspace: ws, Task: "one"}, store.LeaseRef{Workspace: ws, Task: "two"}
	hold := func(holder desk.ID, length desk.Time, list ...store.LeaseRef) map[store.LeaseRef]int64 {
		t.Helper()
		held, err := s.HoldLeases(t.Context(), list, holder, length)
		must(t, err)
		return held
	}
	leased := func(holder desk.ID) (calls int64, ours bool) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) (err error) {
			calls, ours, err = tx.Leased("one", holder)
			return err
		})
		return calls, ours
	}
	const long = 1_000_000
	equal(t, "taken", hold(a, long, one, two), map[store.LeaseRef]int64{one: 0, two: 0})
	equal(t, "by another", hold(b, long, one, two), map[store.LeaseRef]int64{})
	equal(t, "extended", hold(a, long, one), map[store.LeaseRef]int64{one: 0})
	commit(t, s, ws, func(tx store.Tx) error { return tx.CallHolder("one") })
	equal(t, "called", hold(a, long, one), map[store.LeaseRef]int64{one: 1})
	if calls, ours := leased(a); calls != 1 || !ours {
		t.Errorf("leased: %d, %v", calls, ours)
	}
	if _, ours := leased(b); ours {
		t.Error("leased to another")
	}
	must(t, s.EndLease(t.Context(), one, b)) // it does not hold the lease
	equal(t, "still", hold(b, long, one), map[store.LeaseRef]int64{})
	must(t, s.EndLease(t.Context(), one, a))
	if _, ours := leased(a); ours {
		t.Error("leased after its end")
	}
	equal(t, "handed over", hold(b, long, one), map[store.LeaseRef]int64{one: 2})
	must(t, s.EndLease(t.Context(), one, b))
	equal(t, "handed back", hold(a, long, one), map[store.LeaseRef]int64{one: 3})
	equal(t, "void", hold(b, long/2, one), map[store.LeaseRef]int64{one: 4}) // b's lease is invalid: it ends later than a lease that is given now
	hold(a, -5, two)
	equal(t, "expired", hold(b, long, two), map[store.LeaseRef]int64{two: 1})
	commit(t, s, ws, func(tx store.Tx) error { return tx.CallHolder("three") })
	three := store.LeaseRef{Workspace: ws, Task: "three"}
	if held := hold(a, long, three); held[three] == 0 {
		t.Errorf("a call without a holder is lost: %v", held)
	}
}
