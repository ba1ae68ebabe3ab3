package app_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/app/merges"
	"parley/app/segments"
	"parley/desk"
	"parley/provider"
)

// draftAgain makes a draft whose people are those of an ended broadcast with some statuses.
func (w *world) draftAgain(source desk.ID, atMost int64, a desk.Audience) *desk.Broadcast {
	w.t.Helper()
	a.Broadcast = source
	return w.draftFor(atMost, a)
}

// draftFor makes a draft with an audience.
func (w *world) draftFor(atMost int64, a desk.Audience) *desk.Broadcast {
	w.t.Helper()
	b := w.draft()
	b, err := w.Broadcasts.Edit(w.t.Context(), w.caller(), b.ID, &desk.BroadcastInput{
		Audience: desk.Field[desk.Audience]{Set: true, Value: a}, AtMost: whole(atMost),
	})
	must(w.t, err)
	return b
}

func whole(n int64) desk.Field[int64] { return desk.Field[int64]{Set: true, Value: n} }

// neverOpen are hours in which nothing is sent.
func neverOpen() desk.Field[desk.HoursInput] {
	utc := "UTC"
	return desk.Field[desk.HoursInput]{Set: true, Value: desk.HoursInput{TimeZone: &utc}}
}

// cancelled makes an ended broadcast whose people were not sent to.
func (w *world) cancelled(numbers ...string) desk.ID {
	w.t.Helper()
	b := w.draft(numbers...)
	_, err := w.Broadcasts.Start(w.t.Context(), w.caller(), b.ID)
	must(w.t, err)
	_, err = w.Broadcasts.Cancel(w.t.Context(), w.caller(), b.ID)
	must(w.t, err)
	return b.ID
}

func (w *world) addressesOf(id desk.ID) (list []string) {
	w.t.Helper()
	for _, r := range w.rowsOf(id) {
		list = append(list, r.To)
	}
	slices.Sort(list)
	return list
}

// TestAudience_broadcast: a broadcast goes to those of an earlier one whose messages were
// refused with a code, with their values; not to those in doubt, nor to those erased since. A
// check judges them before there are rows.
func TestAudience_broadcast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const first, other, taken, lost, erased = "905320000001", "905320000002", "905320000003", "905320000004", "905320000005"
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		switch d.Number {
		case first, erased:
			return refusesByCode(131026)(ctx, d)
		case other:
			return refusesByCode(131027)(ctx, d)
		case lost:
			return losesTheAnswer(ctx, d)
		}
		return takes(ctx, d)
	})
	gone := w.put(phoned(erased))
	source := w.draft(first, other, taken, lost, erased)
	unreached := desk.Audience{Status: []desk.RowStatus{desk.RowRefused}, Code: 131026}
	early := w.draftAgain(source.ID, 10, unreached)
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), early.ID)
	refusedAt(t, err, "/audience/broadcast")
	w.startBroadcast(source.ID)
	w.until(source.ID, "its end", in(desk.BroadcastDone))
	_, err = w.Write(t.Context(), w.caller(), &desk.Op{Kind: desk.OpDelete, ByID: true, Target: gone.ID})
	must(t, err)
	waitFor(t, "the doubt", func() bool { return w.broadcastNow(source.ID).Counts.ByStatus[desk.RowInDoubt] == 1 })

	w.provider.plays(takes)
	checked, next, err := w.Broadcasts.Check(t.Context(), w.caller(), early.ID, "")
	if must(t, err); checked.LookedAt != 1 || checked.Sendable != 1 || next != "" {
		t.Errorf("checked: %+v, next %q", checked, next)
	}
	if n := len(w.rowsOf(early.ID)); n != 0 {
		t.Errorf("the check has left %d rows", n)
	}
	before := len(w.provider.sent())
	w.startBroadcast(early.ID)
	b := w.until(early.ID, "its end", in(desk.BroadcastDone))
	if got := w.addressesOf(b.ID); !slices.Equal(got, []string{first}) {
		t.Errorf("its people are %v", got)
	}
	if n := len(w.provider.sent()) - before; n != 1 || b.Reason != "" || b.Rows != 1 {
		t.Errorf("%d were sent to; %d rows, reason %q", n, b.Rows, b.Reason)
	}
	w.recounted(b)

	nobody := w.draftAgain(source.ID, 10, desk.Audience{Status: []desk.RowStatus{desk.RowRead}})
	_, err = w.Broadcasts.Start(t.Context(), w.caller(), nobody.ID)
	refused(t, err, desk.BroadcastEmpty)
	_, err = w.Broadcasts.Add(t.Context(), w.caller(), nobody.ID, []desk.RowInput{{Find: phoneOf(first)}})
	refused(t, err, desk.InvalidRequest)
	must(t, w.Broadcasts.Delete(t.Context(), w.caller(), source.ID))
	_, err = w.Broadcasts.Start(t.Context(), w.caller(), nobody.ID)
	refusedAt(t, err, "/audience/broadcast")
}

func refusedAt(t *testing.T, err error, at string) {
	t.Helper()
	if !desk.IsType(err, desk.InvalidRequest) || desk.AsError(err).At != at {
		t.Errorf("%v, want a refusal of %s", err, at)
	}
}

// TestAudience_tooMany: if more people fit than may, the broadcast pauses before the first send,
// also if it is resumed; with a greater number it goes on where it stood. It also pauses if the
// number is made smaller than the people it has.
func TestAudience_tooMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.cancelled(numbersFrom(0, 30)...)
	b := w.draftAgain(source, 10, desk.Audience{Status: []desk.RowStatus{desk.RowCancelled}})
	paused := func(b *desk.Broadcast) bool { return b.State == desk.BroadcastPaused }
	w.startBroadcast(b.ID)
	for range 2 {
		b = w.until(b.ID, "the pause", paused)
		if b.Reason != desk.PausedTooMany || b.Rows != 10 || len(w.provider.sent()) != 0 {
			t.Fatalf("paused as %s with %d rows; %d were sent to", b.Reason, b.Rows, len(w.provider.sent()))
		}
		_, err := w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
		must(t, err)
	}
	w.until(b.ID, "the pause", paused)
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{AtMost: whole(30), Hours: neverOpen()})
	must(t, err)
	_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
	must(t, err)
	b = w.until(b.ID, "its hours", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForHours })
	if got := w.addressesOf(b.ID); !slices.Equal(got, numbersFrom(0, 30)) {
		t.Errorf("its people are %v", got)
	}
	_, err = w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{AtMost: whole(29)})
	must(t, err)
	b = w.until(b.ID, "the pause", paused)
	if b.Reason != desk.PausedTooMany || len(w.provider.sent()) != 0 {
		t.Errorf("paused as %s; %d were sent to", b.Reason, len(w.provider.sent()))
	}
	waitFor(t, "a warning", func() bool { return len(w.log.find("too_many")) > 0 })
}

// named makes a contact with a name and a number.
func (w *world) named(name, phone string) *desk.Contact {
	w.t.Helper()
	return w.put(phoned(phone), func(c *desk.ContactWrite) { c.Name = text(name) })
}

// withName returns a filter of contacts that have a name.
func withName() *desk.Filter {
	return &desk.Filter{All: []desk.Clause{{Condition: desk.Condition{Field: "name", Is: desk.IsPresent}}}}
}

// TestAudience_segment: a broadcast goes to the contacts that fit a segment's filter, as it was
// at the start, and not to those that come later. A check judges them before.
func TestAudience_segment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	want := []desk.ID{w.named("Lucia", "905320000001").ID, w.named("Mei", "905320000002").ID}
	w.named("", "905320000003")
	_, _, err := w.Segments.Put(ctx, w.caller(), segments.Edit{Key: "named", Name: "Named", Filter: *withName()})
	must(t, err)
	b := w.draftFor(10, desk.Audience{Segment: "named"})
	_, err = w.Broadcasts.Edit(ctx, w.caller(), b.ID, &desk.BroadcastInput{Hours: neverOpen()})
	must(t, err)
	checked, next, err := w.Broadcasts.Check(ctx, w.caller(), b.ID, "")
	if must(t, err); checked.LookedAt != 2 || checked.Sendable != 2 || next != "" {
		t.Errorf("checked: %+v, next %q", checked, next)
	}
	_, err = w.Broadcasts.Start(ctx, w.caller(), b.ID)
	must(t, err)
	w.named("Late", "905320000004")
	_, _, err = w.Segments.Put(ctx, w.caller(), segments.Edit{Key: "named", Name: "Named", Filter: desk.Filter{All: []desk.Clause{{Condition: desk.Condition{Field: "name", Is: desk.IsAbsent}}}}})
	must(t, err)
	w.run()
	b = w.until(b.ID, "its hours", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForHours })
	var got []desk.ID
	for _, r := range w.rowsOf(b.ID) {
		got = append(got, r.Contact)
	}
	if !slices.Equal(got, want) || b.Rows != 2 {
		t.Errorf("its people are %v, want %v", got, want)
	}
	_, err = w.Broadcasts.Edit(ctx, w.caller(), b.ID, &desk.BroadcastInput{Hours: desk.Field[desk.HoursInput]{Set: true, Null: true}})
	must(t, err)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := len(w.provider.sent()); n != 2 {
		t.Errorf("%d were sent to", n)
	}
	must(t, w.Segments.Delete(ctx, w.caller(), "named"))
	b = w.draftFor(10, desk.Audience{Segment: "named"})
	_, err = w.Broadcasts.Start(ctx, w.caller(), b.ID)
	refusedAt(t, err, "/audience/segment")
}

// TestAudience_scheduled: a broadcast that begins later goes to the contacts of that time, by the
// filter that the segment had when it was started. A draft again has no filter of its own.
func TestAudience_scheduled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	fits := func(is desk.Comparison) {
		t.Helper()
		_, _, err := w.Segments.Put(ctx, w.caller(), segments.Edit{Key: "named", Name: "Named", Filter: desk.Filter{All: []desk.Clause{{Condition: desk.Condition{Field: "name", Is: is}}}}})
		must(t, err)
	}
	want := []desk.ID{w.named("Lucia", "905320000001").ID}
	fits(desk.IsAbsent)
	b := w.draftFor(10, desk.Audience{Segment: "named"})
	sendAt := desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(w.clock.atServer()) + 60_000}
	_, err := w.Broadcasts.Edit(ctx, w.caller(), b.ID, &desk.BroadcastInput{Hours: neverOpen(), SendAt: sendAt})
	must(t, err)
	for range 2 {
		_, err = w.Broadcasts.Start(ctx, w.caller(), b.ID)
		must(t, err)
		fits(desk.IsPresent)
		if b = w.broadcastNow(b.ID); b.State == desk.BroadcastScheduled && b.Collect.Filter.All[0].Is == desk.IsAbsent {
			_, err = w.Broadcasts.Unschedule(ctx, w.caller(), b.ID)
			must(t, err)
		}
	}
	fits(desk.IsAbsent)
	if b = w.broadcastNow(b.ID); b.State != desk.BroadcastScheduled || b.Reason != "" {
		t.Fatalf("it is %s, %s", b.State, b.Reason)
	}
	want = append(want, w.named("Mei", "905320000002").ID)
	w.named("", "905320000003")
	w.clock.advance(2 * time.Minute)
	w.run()
	w.until(b.ID, "its hours", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForHours })
	var got []desk.ID
	for _, r := range w.rowsOf(b.ID) {
		got = append(got, r.Contact)
	}
	if !slices.Equal(got, want) {
		t.Errorf("its people are %v, want %v", got, want)
	}
}

// TestAudience_meanwhile: of people who are deleted or merged after they were found, and before
// they are written down, no row is left. Who is left has one row.
func TestAudience_meanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	erased, merged, stays := w.named("Lucia", "905320000001"), w.named("Mei", "905320000002"), w.named("Mei", "905320000003")
	b := w.draftFor(10, desk.Audience{Filter: withName()})
	_, err := w.Broadcasts.Edit(ctx, w.caller(), b.ID, &desk.BroadcastInput{Hours: neverOpen()})
	must(t, err)
	_, err = w.Broadcasts.Start(ctx, w.caller(), b.ID)
	must(t, err)
	w.store.pages = sync.OnceFunc(func() {
		_, err := w.Write(ctx, w.caller(), &desk.Op{Kind: desk.OpDelete, ByID: true, Target: erased.ID})
		must(t, err)
		_, err = w.Merges.Do(ctx, w.operator(), merges.Request{Into: stays.ID, From: merged.ID})
		must(t, err)
	})
	w.run()
	b = w.until(b.ID, "its hours", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForHours })
	if rows := w.rowsOf(b.ID); len(rows) != 1 || rows[0].Contact != stays.ID || b.Rows != 1 {
		t.Errorf("%d rows: %+v", b.Rows, rows)
	}
	w.recounted(b)
}

// TestAudience_erasedMeanwhile: the number of a person who is deleted while the people of an earlier
// broadcast are written down does not come back, also if the earlier row has nothing but the number.
func TestAudience_erasedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draftAgain(w.cancelled("905320000001", "905320000002"), 10, desk.Audience{Status: []desk.RowStatus{desk.RowCancelled}})
	erased := w.named("Lucia", "905320000001") // after the row was added
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	w.store.copy = sync.OnceFunc(func() { w.deleteContact(erased.ID) })
	w.run()
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if got := w.addressesOf(b.ID); !slices.Equal(got, []string{"905320000002"}) || len(w.provider.sent()) != 1 {
		t.Errorf("its people are %v; %d were sent", got, len(w.provider.sent()))
	}
}

// TestAudience_aside: while the people of a broadcast are written down, another one sends.
func TestAudience_aside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.named("Mei", "905320000001")
	slow := w.draftFor(10, desk.Audience{Filter: withName()})
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), slow.ID)
	must(t, err)
	looks, sent := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(sent) })
	t.Cleanup(goOn)
	w.store.pages = sync.OnceFunc(func() {
		close(looks)
		<-sent
	})
	w.run()
	<-looks
	other := w.draft("905320000002", "905320000003")
	w.startBroadcast(other.ID)
	w.until(other.ID, "its end", in(desk.BroadcastDone))
	goOn()
	if b := w.until(slow.ID, "its end", in(desk.BroadcastDone)); b.Rows != 1 {
		t.Errorf("it has %d rows", b.Rows)
	}
}

// TestAudience_filter: a filter is checked when it is stored, at the start, and while people are
// written down: its attribute may be archived.
func TestAudience_filter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	b := w.draft()
	plan := &desk.Filter{All: []desk.Clause{{Condition: desk.Condition{Field: "attributes.plan", Is: desk.IsPresent}}}}
	change := &desk.BroadcastInput{Audience: desk.Field[desk.Audience]{Set: true, Value: desk.Audience{Filter: plan}}, AtMost: whole(5)}
	_, err := w.Broadcasts.Edit(ctx, w.caller(), b.ID, change)
	refusedAt(t, err, "/audience/filter/all/0/field")
	_, _, err = w.PutAttribute(ctx, w.operator(), desk.AttributeInput{Key: "plan", Label: text("Plan"), Type: text(string(desk.TextAttribute))})
	must(t, err)
	_, err = w.Broadcasts.Edit(ctx, w.caller(), b.ID, change)
	must(t, err)
	_, err = w.Broadcasts.Start(ctx, w.caller(), b.ID)
	refused(t, err, desk.BroadcastEmpty) // there are no contacts
	w.put(phoned("905320000001"))
	_, err = w.Broadcasts.Start(ctx, w.caller(), b.ID)
	must(t, err)
	_, err = w.ArchiveAttribute(ctx, w.operator(), "plan", true)
	must(t, err)
	w.run()
	b = w.until(b.ID, "the pause", in(desk.BroadcastPaused))
	_, err = w.Broadcasts.Resume(ctx, w.caller(), b.ID)
	refusedAt(t, err, "/audience/filter/all/0/field")
	_, err = w.ArchiveAttribute(ctx, w.operator(), "plan", false)
	must(t, err)
	_, err = w.Broadcasts.Resume(ctx, w.caller(), b.ID)
	must(t, err)
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := len(w.provider.sent()); n != 0 || b.Rows != 0 {
		t.Errorf("%d were sent to; %d rows", n, b.Rows)
	}
}

// TestAudience_lost: whatever commit of it is lost, everybody is written down once.
func TestAudience_lost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	people := numbersFrom(0, 1100) // more than are written down at a time
	source := w.cancelled(people...)
	for _, when := range []moment{commit, answer} {
		for n := 2; n < 4; n++ {
			b := w.draftAgain(source, 2000, desk.Audience{Status: []desk.RowStatus{desk.RowCancelled}})
			_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Hours: neverOpen()})
			must(t, err)
			_, err = w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
			must(t, err)
			hit := make(chan struct{}, 1)
			w.store.in(n, when, func() error { hit <- struct{}{}; return lost() })
			w.run()
			<-hit
			b = w.until(b.ID, "its hours", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForHours })
			w.store.in(0, begin, nil)
			if got := w.addressesOf(b.ID); !slices.Equal(got, people) || b.Rows != int64(len(people)) {
				t.Errorf("commit %d lost at %d: %d people in %d rows", n, when, len(got), b.Rows)
			}
			w.recounted(b)
			_, err = w.Broadcasts.Cancel(t.Context(), w.caller(), b.ID)
			must(t, err)
		}
	}
}

// TestAudience_sourceGone: if the broadcast whose people these are is deleted before all are
// written down, the broadcast pauses, and says why when it is resumed.
func TestAudience_sourceGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.cancelled("905320000001")
	b := w.draftAgain(source, 10, desk.Audience{Status: []desk.RowStatus{desk.RowCancelled}})
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	must(t, w.Broadcasts.Delete(t.Context(), w.caller(), source))
	w.run()
	b = w.until(b.ID, "the pause", in(desk.BroadcastPaused))
	if b.Reason != desk.PausedAsked {
		t.Errorf("paused as %s", b.Reason)
	}
	_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
	refusedAt(t, err, "/audience/broadcast")
}
