package app_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/app/broadcast"
	"parley/app/merges"
	"parley/desk"
	"parley/provider"
)

var (
	broadcastRows  = flag.Int("broadcast-rows", 300, "how many people TestBroadcast_once and TestBroadcast_pause send to. Long run: -broadcast-rows 20000")
	broadcastStops = flag.Int("broadcast-stops", 5, "how often TestBroadcast_pause pauses. Long run: -broadcast-stops 200")
)

// draft makes a broadcast of the greeting to numbers.
func (w *world) draft(numbers ...string) *desk.Broadcast {
	w.t.Helper()
	in := &desk.BroadcastInput{
		Name:     text("Spring"),
		Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: "hello", Language: "en"}},
		Consent:  desk.Field[desk.Consent]{Set: true, Value: desk.Consent{Confirmed: true}},
	}
	b, err := w.Broadcasts.Create(w.t.Context(), w.caller(), in)
	must(w.t, err)
	w.addRows(b.ID, numbers...)
	return b
}

// posters is draft with a template that has a file in its title.
func (w *world) posters(file *desk.Media, numbers ...string) *desk.Broadcast {
	w.t.Helper()
	b := w.draft(numbers...)
	_, err := w.Broadcasts.Edit(w.t.Context(), w.caller(), b.ID, &desk.BroadcastInput{
		Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: "poster", Language: "en"}},
		Values:   desk.Field[[]desk.BroadcastValue]{Set: true, Value: []desk.BroadcastValue{{Address: desk.MediaAddress, Value: file.ID.String()}, {Address: "button.0", Value: "A-17"}}},
	})
	must(w.t, err)
	return b
}

func (w *world) addRows(id desk.ID, numbers ...string) {
	w.t.Helper()
	for part := range slices.Chunk(numbers, 1000) {
		var rows []desk.RowInput
		for _, number := range part {
			rows = append(rows, desk.RowInput{Find: phoneOf(number)})
		}
		results, err := w.Broadcasts.Add(w.t.Context(), w.caller(), id, rows)
		must(w.t, err)
		for _, r := range results {
			must(w.t, r.Err)
		}
	}
}

func numbersFrom(first, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("90532%07d", first+i))
	}
	return list
}

func (w *world) broadcastNow(id desk.ID) *desk.Broadcast {
	w.t.Helper()
	b, err := w.Broadcasts.Get(context.Background(), w.operator(), id)
	must(w.t, err)
	return b
}

func (w *world) until(id desk.ID, what string, ok func(*desk.Broadcast) bool) *desk.Broadcast {
	w.t.Helper()
	var b *desk.Broadcast
	defer func() {
		if w.t.Failed() {
			w.t.Logf("it is %s as %q until %s: %v", b.State, b.Reason, b.ResumesAt, b.Counts.ByStatus)
		}
	}()
	// It may take long, but not without a change.
	for counts, done := "", false; !done; {
		waitFor(w.t, what, func() bool {
			b = w.broadcastNow(id)
			was := counts
			counts = fmt.Sprint(b.Counts)
			done = ok(b)
			return done || was != "" && was != counts
		})
	}
	return b
}

func in(state desk.BroadcastState) func(*desk.Broadcast) bool {
	return func(b *desk.Broadcast) bool { return b.State == state }
}

func (w *world) startBroadcast(id desk.ID) {
	w.t.Helper()
	_, err := w.Broadcasts.Start(w.t.Context(), w.caller(), id)
	must(w.t, err)
	w.run()
}

func (w *world) rowsOf(id desk.ID) (list []desk.BroadcastRow) {
	w.t.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := w.Broadcasts.Rows(context.Background(), w.operator(), id, desk.RowFilter{}, cursor, desk.MaxLimit)
		must(w.t, err)
		list, cursor = append(list, page...), next
	}
	return list
}

// recounted compares the counts of a broadcast with its rows.
func (w *world) recounted(b *desk.Broadcast) {
	w.t.Helper()
	byStatus, choices := map[desk.RowStatus]int64{}, map[string]int64{}
	var replied, optedOut int64
	for _, r := range w.rowsOf(b.ID) {
		byStatus[r.Status]++
		if r.Data.Reply.At > 0 {
			replied++
		}
		if r.Data.Reply.OptedOut {
			optedOut++
		}
		if r.Data.Reply.Choice != "" {
			choices[r.Data.Reply.Choice]++
		}
	}
	counts := w.broadcastNow(b.ID).Counts.As(b.State)
	maps.DeleteFunc(counts.ByStatus, func(_ desk.RowStatus, n int64) bool { return n == 0 })
	chosen := map[string]int64{}
	for _, c := range counts.Choices {
		chosen[c.Title] = c.N
	}
	if !maps.Equal(byStatus, counts.ByStatus) || replied != counts.Replied || optedOut != counts.OptedOut || !maps.Equal(choices, chosen) {
		w.t.Errorf("the counts are %+v, and the rows %v, %d replied, %d opted out, %v", counts, byStatus, replied, optedOut, choices)
	}
}

// TestBroadcast_once: everybody gets the message once, while answers are lost and messages are
// refused for now, on two nodes, and the counts are those of the rows.
func TestBroadcast_once(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, app.Bounds{Broadcast: 2 * time.Second})
	var mu sync.Mutex
	seen, lost, n := map[string]int{}, map[string]bool{}, 0
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		mu.Lock()
		n++
		turn := n
		if turn%100 == 7 {
			mu.Unlock()
			return refusesForNow(2)(ctx, d)
		}
		seen[d.Number]++
		if turn%10 == 3 {
			lost[d.Number] = true
			mu.Unlock()
			return losesTheAnswer(ctx, d)
		}
		mu.Unlock()
		return takes(ctx, d)
	})
	b := w.draft(numbersFrom(0, *broadcastRows)...)
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	_, err = w.Broadcasts.Start(t.Context(), w.caller(), b.ID) // the same
	must(t, err)
	_, err = w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{MaxFailed: desk.Field[int64]{Set: true, Value: 100}})
	must(t, err)
	w.run()
	other := w.node(w.file, app.Bounds{Broadcast: 2 * time.Second})
	ctx, stop := context.WithCancel(context.Background())
	defer other.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); other.Broadcasts.Run(ctx) }()
	defer func() { stop(); <-ended }()
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	mu.Lock()
	defer mu.Unlock()
	for number, times := range seen {
		if times != 1 {
			t.Errorf("%s was sent to %d times", number, times)
		}
	}
	w.recounted(b)
	for _, r := range w.rowsOf(b.ID) {
		switch {
		case r.Status == desk.RowInDoubt && !lost[r.To], lost[r.To] && r.Status != desk.RowInDoubt:
			t.Errorf("%s is %s; its answer was lost: %t", r.To, r.Status, lost[r.To])
		case seen[r.To] == 0:
			t.Errorf("%s is %s, and nothing was sent", r.To, r.Status)
		}
	}
	released, err := w.Broadcasts.Release(t.Context(), w.caller(), b.ID, true)
	if must(t, err); released != (broadcast.Released{Released: int64(len(lost))}) {
		t.Errorf("released: %+v of %d", released, len(lost))
	}
	w.recounted(b)
	if n := strings.Join(w.log.find("incident"), "\n"); n != "" {
		t.Error(n)
	}
}

// refusesForNow is the outcome of a message that the provider may take later.
func refusesForNow(code int) outcome {
	return func(context.Context, provider.Dispatch) (provider.Receipt, error) {
		return provider.Receipt{}, &desk.Refusal{Type: desk.ProviderUnavailable, Message: "later", Failure: &desk.Failure{Code: code, Title: "Later", Fix: "Wait."}, RetryAfter: 1}
	}
}

// refusesByCode is the outcome of a message that the provider refuses for good with a code.
func refusesByCode(code int) outcome {
	return func(context.Context, provider.Dispatch) (provider.Receipt, error) {
		return provider.Receipt{}, &desk.Refusal{Type: desk.ProviderRejected, Message: "no", Failure: &desk.Failure{Code: code, Title: "No", Fix: "Look."}}
	}
}

// TestBroadcast_patient: what broadcasts and callbacks store lets people go first; a send does not.
func TestBroadcast_patient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var patient, other atomic.Int64
	w.store.puts = func(is bool) {
		if is {
			patient.Add(1)
		} else {
			other.Add(1)
		}
	}
	b := w.sendsTo(numbersFrom(0, 3)...)
	if patient.Load() != 3 || other.Load() > 0 {
		t.Errorf("of the messages of a broadcast to 3 people, %d are patient, and %d not", patient.Load(), other.Load())
	}
	row := w.rowsOf(b.ID)[0]
	w.reports(saying{At: row.SentAt/1000*1000 + 1000, Text: "Hello"}.update(row.To, 1))
	w.takeIn()
	waitFor(t, "the store to tell of the callback's message, which it does after its commit", func() bool { return patient.Load()+other.Load() > 3 })
	if patient.Load() != 4 || other.Load() > 0 {
		t.Errorf("of the messages so far, with one that came in a callback, %d are patient, and %d not", patient.Load(), other.Load())
	}
	w.sent("k", to("905329999999"))
	if patient.Load() != 4 || other.Load() != 1 {
		t.Errorf("after a send, %d were patient, and %d not", patient.Load(), other.Load())
	}
}

// TestBroadcast_pause: once a pause from another node is answered, nothing is claimed any more;
// a broadcast that is resumed goes on, and 50 starts at once are one run.
func TestBroadcast_pause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft(numbersFrom(0, *broadcastRows)...)
	var starts sync.WaitGroup
	for range 50 {
		starts.Go(func() {
			if _, err := w.Broadcasts.Start(context.Background(), w.caller(), b.ID); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	w.run()
	other := w.node(w.file, app.Bounds{})
	defer other.Close()
	for range *broadcastStops {
		_, err := other.Broadcasts.Pause(t.Context(), w.caller(), b.ID)
		if desk.IsType(err, desk.BroadcastInState) {
			break
		}
		must(t, err)
		claimed := func() (n int) {
			for _, r := range w.rowsOf(b.ID) {
				if r.Status != desk.RowPending {
					n++
				}
			}
			return n
		}
		before := claimed()
		waitFor(t, "what was claimed to end", func() bool { return w.broadcastNow(b.ID).Counts.ByStatus[desk.RowSending] == 0 })
		if after := claimed(); after != before {
			t.Fatalf("%d rows were claimed after the pause", after-before)
		}
		_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
		must(t, err)
	}
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	seen := map[string]bool{}
	for _, d := range w.provider.sent() {
		if seen[d.Number] {
			t.Errorf("%s was sent to twice", d.Number)
		}
		seen[d.Number] = true
	}
	w.recounted(b)
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	refused(t, err, desk.BroadcastInState)
}

// TestBroadcast_cancel: what is not claimed is cancelled.
func TestBroadcast_cancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o, reached, release := blocks(takes)
	w.provider.plays(o)
	b := w.draft(numbersFrom(0, 200)...)
	w.startBroadcast(b.ID)
	<-reached
	_, err := w.Broadcasts.Cancel(t.Context(), w.caller(), b.ID)
	must(t, err)
	close(release)
	b = w.until(b.ID, "nothing to be sent", func(b *desk.Broadcast) bool { return b.Counts.ByStatus[desk.RowSending] == 0 && !b.Untidy })
	c := b.Counts
	if sent := int64(len(w.provider.sent())); c.ByStatus[desk.RowCancelled] != 200-sent || c.ByStatus[desk.RowPending] != 0 || sent > desk.BroadcastFlights {
		t.Errorf("%d were sent to; %v", sent, c.ByStatus)
	}
	if n := w.Broadcasts.Outcomes()[desk.RowCancelled]; n != c.ByStatus[desk.RowCancelled] {
		t.Errorf("%d rows are counted as cancelled", n)
	}
	w.recounted(b)
}

// TestBroadcast_skips: each reason, at the turn. The opt-in of who is sent to names the attribute and
// who started the broadcast.
func TestBroadcast_skips(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := &desk.BroadcastInput{
		Name: text("Sale"), Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: "order_update", Language: "en_US"}},
		Values:   desk.Field[[]desk.BroadcastValue]{Set: true, Value: []desk.BroadcastValue{{Address: "header.1", Value: "7"}, {Address: "1", From: "customer_first_name"}, {Address: "2", From: "row", Else: "x"}}},
		Consent:  desk.Field[desk.Consent]{Set: true, Value: desk.Consent{Attribute: "ok"}},
		SkipOpen: desk.Field[bool]{Set: true, Value: true},
	}
	_, _, err := w.PutAttribute(t.Context(), w.caller(), desk.AttributeInput{Key: "ok", Type: text("boolean")})
	must(t, err)
	b, err := w.Broadcasts.Create(t.Context(), w.caller(), in)
	must(t, err)
	yes := func(wr *desk.ContactWrite) {
		wr.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{{Key: "ok", Value: desk.Value{Kind: desk.BoolValue, Bool: true}}}}
	}
	contact := func(name, phone string, more ...func(*desk.ContactWrite)) *desk.Contact {
		t.Helper()
		wr := desk.ContactWrite{}
		for _, part := range append([]func(*desk.ContactWrite){named(name), alsoKnownAs("crm", name), yes}, more...) {
			part(&wr)
		}
		if phone != "" {
			phoned(phone)(&wr)
		}
		outcome, err := w.Write(t.Context(), w.caller(), &desk.Op{Kind: desk.OpUpsert, Write: wr})
		must(t, err)
		return outcome.Contact
	}
	good := contact("Good One", "905320000001")
	two := contact("Two Numbers", "905320000002", alsoKnownAs(desk.KindPhone, "905320000003"))
	silent := contact("No Number", "")
	no := contact("No Consent", "905320000004", func(wr *desk.ContactWrite) { wr.Attributes = desk.Field[[]desk.AttributeWrite]{} })
	nameless := contact("", "905320000005")
	gone := contact("Gone", "905320000006")
	talking := contact("Talking", "905320000007")
	_, err = w.Receive(t.Context(), w.ws, w.channel, provider.InboundMessage{ExternalID: "in.1", Number: "905320000007", Text: "Ann?", At: desk.TimeOf(w.clock.now())})
	must(t, err)
	byID := func(c *desk.Contact) desk.RowInput { return desk.RowInput{Contact: &c.ID} }
	results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, []desk.RowInput{
		byID(good), byID(two), byID(silent), byID(no), byID(nameless), byID(gone), byID(talking),
		{Find: phoneOf("905320000009"), Person: &desk.ContactWrite{Name: text("New One"), Attributes: desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{{Key: "ok", Value: desk.Value{Kind: desk.BoolValue, Bool: true}}}}}},
		{Find: phoneOf("905320000003")}, // the same person as two: it replaces the row
	})
	must(t, err)
	if results[8].Status != "replaced" || results[8].ID != results[1].ID {
		t.Errorf("another number of the same person: %+v", results[8])
	}
	_, err = w.Write(t.Context(), w.caller(), &desk.Op{Kind: desk.OpDelete, ByID: true, Target: gone.ID})
	must(t, err)
	want := map[desk.RowReason]int64{desk.SkipDeleted: 1, desk.SkipUnreachable: 1, desk.SkipNoConsent: 1, desk.SkipVariables: 1, desk.SkipInConversation: 1}
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "its end", func(b *desk.Broadcast) bool { return b.State == desk.BroadcastDone })
	if c := b.Counts.As(b.State); !maps.Equal(c.Skips, want) || len(w.provider.sent()) != 3 {
		t.Errorf("skips %v, want %v; sent to %d", c.Skips, want, len(w.provider.sent()))
	}
	for _, d := range w.provider.sent() {
		if d.Number == "905320000002" {
			t.Error("the row went to another number than it names")
		}
	}
	for _, at := range w.attempts() {
		if o := at.OptIn(); o == nil || o.Attribute != "ok" || o.Actor() != b.StartedBy {
			t.Errorf("the opt-in is %+v", o)
		}
	}
}

// TestBroadcast_file: the file in a template's title is kept until the broadcast ends, however
// old it is.
func TestBroadcast_file(t *testing.T) {
	t.Parallel()
	w, _ := newPostman(t)
	loose, sent, dropped := w.upload(picture), w.upload(picture), w.upload(picture)
	b, other := w.posters(sent, "905320000001"), w.posters(dropped, "905320000001")
	forget := func() {
		t.Helper()
		w.clock.advance(desk.UploadLife + time.Hour)
		must(t, w.Media.Forget(t.Context(), w.ws))
	}
	forget()
	_, err := w.Media.Record(t.Context(), w.caller(), loose.ID)
	refused(t, err, desk.NotFound)
	for _, file := range []*desk.Media{sent, dropped} {
		_, err := w.Media.Record(t.Context(), w.caller(), file.ID)
		must(t, err)
		refused(t, w.Media.Delete(t.Context(), w.caller(), file.ID), desk.MediaInUse)
	}
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	if d := w.provider.sent(); len(d) != 1 || d[0].File == nil {
		t.Errorf("sent: %+v", d)
	}
	must(t, w.Broadcasts.Delete(t.Context(), w.caller(), other.ID))
	forget()
	_, err = w.Media.Record(t.Context(), w.caller(), sent.ID) // it is in a message
	must(t, err)
	_, err = w.Media.Record(t.Context(), w.caller(), dropped.ID)
	refused(t, err, desk.NotFound)
}

// TestBroadcast_pausesItself: each cause of pausing.
func TestBroadcast_pausesItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plays outcome
		then  func(w *world, b *desk.Broadcast)
		want  desk.BroadcastReason
	}{
		"starter": {takes, func(w *world, _ *desk.Broadcast) {
			_, err := w.RevokeKey(context.Background(), w.operator(), w.keyID)
			must(w.t, err)
		}, desk.PausedStarter},
		"no admin": {takes, func(w *world, b *desk.Broadcast) {
			role := string(desk.RoleAgent)
			_, err := w.Broadcasts.Pause(context.Background(), w.operator(), b.ID)
			must(w.t, err)
			_, err = w.Broadcasts.Resume(context.Background(), w.admin(), b.ID)
			must(w.t, err)
			_, err = w.EditMember(context.Background(), w.operator(), w.admin().Member.ID, app.MemberEdit{Role: &role})
			must(w.t, err)
		}, desk.PausedStarter},
		"template changed":  {takes, func(w *world, _ *desk.Broadcast) { w.setLibrary(template("hello", "en", "UTILITY", "", "Bye!")) }, desk.PausedTemplate},
		"template gone":     {takes, func(w *world, _ *desk.Broadcast) { w.setLibrary(template("other", "en", "UTILITY", "", "Bye!")) }, desk.PausedTemplate},
		"template paused":   {refusesByCode(132015), nil, desk.PausedTemplate},
		"template disabled": {refusesByCode(132016), nil, desk.PausedTemplate},
		"file":              {refusesByCode(131053), nil, desk.PausedFile},
		"misclassified":     {refusesForNow(131064), nil, desk.PausedChannel},
		"channel": {takes, func(w *world, _ *desk.Broadcast) {
			off := false
			_, err := w.EditChannel(context.Background(), w.operator(), w.channel, app.ChannelEdit{Enabled: &off})
			must(w.t, err)
		}, desk.PausedChannel},
		"spam":         {refusesForNow(131048), nil, desk.PausedChannel},
		"too many bad": {refuses, nil, desk.PausedFailures},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBetween(t, nil)
			w.provider.plays(c.plays)
			b := w.draft(numbersFrom(0, 400)...)
			_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
			must(t, err)
			if c.then != nil {
				c.then(w, b)
			}
			w.run()
			b = w.until(b.ID, "a pause", in(desk.BroadcastPaused))
			if b.Reason != c.want {
				t.Errorf("it is paused as %s, want %s", b.Reason, c.want)
			}
			waitFor(t, "a warning", func() bool { return len(w.log.find("a broadcast was paused")) > 0 })
			w.restsBroadcasts()
			if got, c := w.Broadcasts.Outcomes(), w.broadcastNow(b.ID).Counts.ByStatus; got[desk.RowRefused] != c[desk.RowRefused] {
				t.Errorf("the outcomes are %v, and the rows %v", got, c)
			}
		})
	}
}

// TestBroadcast_waits: while the provider is away, nothing is refused, and one message at a time
// tries whether it is back.
func TestBroadcast_waits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(refusesForNow(2))
	b := w.draft(numbersFrom(0, 100)...)
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "a wait", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForProvider })
	if b.ResumesAt == 0 || b.State != desk.BroadcastRunning {
		t.Errorf("%s until %d", b.State, b.ResumesAt)
	}
	w.provider.plays(takes)
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := b.Counts.ByStatus[desk.RowSent]; n != 100 {
		t.Errorf("%d were sent: %v", n, b.Counts.ByStatus)
	}
}

// TestBroadcast_fileWaits: while the provider does not take the file, the waits become longer, and
// one message at a time tries.
func TestBroadcast_fileWaits(t *testing.T) {
	t.Parallel()
	w, courier := newPostman(t)
	b := w.posters(w.upload(picture), numbersFrom(0, 40)...)
	refuses := func(err error) {
		courier.mu.Lock()
		defer courier.mu.Unlock()
		courier.refuses = err
	}
	refuses(&desk.Refusal{Type: desk.ProviderUnavailable, Message: "later", Failure: &desk.Failure{Code: 2}, RetryAfter: 10})
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "a wait", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForProvider && b.ResumesAt > 0 })
	for n, wait := range []desk.Time{20_000, 40_000} {
		before, first := courier.handedOver(), b.ResumesAt
		w.clock.up.Add(int64(time.Minute))
		b = w.until(b.ID, "the next wait", func(b *desk.Broadcast) bool { return b.ResumesAt > first })
		if got := courier.handedOver() - before; n > 0 && got != 1 { // before the first one, others may be under way
			t.Errorf("try %d: the file is handed over %d times", n, got)
		}
		if left := b.ResumesAt - desk.TimeOf(w.clock.now()); left > wait || left < wait-5_000 {
			t.Errorf("try %d: it waits %d ms, want %d", n, left, wait)
		}
	}
	refuses(nil)
	w.clock.up.Add(int64(time.Minute))
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := b.Counts.ByStatus[desk.RowSent]; n != 40 {
		t.Errorf("%d were sent: %v", n, b.Counts.ByStatus)
	}
}

// TestBroadcast_mergedTwins: of two rows whose contacts were merged, the one that will be sent is
// replaced.
func TestBroadcast_mergedTwins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.phoned("905320000001").ID, w.phoned("905320000002").ID
	b := w.draft()
	add := func(value string, contacts ...desk.ID) (list []desk.ID) {
		t.Helper()
		var rows []desk.RowInput
		for _, id := range contacts {
			rows = append(rows, desk.RowInput{Contact: &id, Values: []desk.NamedValue{{Address: "1", Value: value}}})
		}
		results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, rows)
		must(t, err)
		for _, r := range results {
			must(t, r.Err)
			list = append(list, r.ID)
		}
		return list
	}
	ids := add("old", one, other)
	_, err := w.Merges.Do(t.Context(), w.operator(), merges.Request{Into: one, From: other})
	must(t, err)
	if again := add("new", one); again[0] != ids[0] {
		t.Errorf("row %s was replaced, and %s comes first", again[0], ids[0])
	}
	if again := add("newer", one, one); again[0] != ids[0] || again[1] != ids[0] {
		t.Errorf("rows %s were replaced, and %s comes first", again, ids[0])
	}
}

// TestBroadcast_stopped: a broadcast that nobody drove for a quarter of an hour is paused, and so
// is one that should have begun so long ago. Those of which it is less go on.
func TestBroadcast_stopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var list []*desk.Broadcast
	for i, at := range []time.Duration{0, time.Minute, 5 * time.Minute} { // when they begin
		b := w.draft(numbersFrom(10*i, 10)...)
		_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{SendAt: desk.Field[desk.Time]{Set: at > 0, Value: desk.TimeOf(w.clock.now().Add(at))}})
		must(t, err)
		_, err = w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
		must(t, err)
		list = append(list, b)
	}
	w.clock.advance(17 * time.Minute)
	w.run()
	for _, b := range list[:2] {
		if b = w.until(b.ID, "a pause", in(desk.BroadcastPaused)); b.Reason != desk.PausedStopped {
			t.Errorf("it is paused as %s", b.Reason)
		}
	}
	w.until(list[2].ID, "its end", in(desk.BroadcastDone))
	if n := len(w.provider.sent()); n != 10 {
		t.Errorf("%d were sent", n)
	}
}

// TestBroadcast_suspended: a broadcast is also paused if the process that did not drive it for a
// quarter of an hour is the one that goes on, because it was stopped. Its monotonic clock stood still.
func TestBroadcast_suspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft(numbersFrom(0, 10)...)
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: 1, Minutes: 1}}})
	must(t, err)
	w.startBroadcast(b.ID)
	w.until(b.ID, "its pace", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForPace && len(w.provider.sent()) == 1 })
	w.clock.advance(desk.BroadcastStopped + time.Minute)
	if b = w.until(b.ID, "a pause", in(desk.BroadcastPaused)); b.Reason != desk.PausedStopped || len(w.provider.sent()) != 1 {
		t.Errorf("it is paused as %s, and %d were sent", b.Reason, len(w.provider.sent()))
	}
}

// passes lets time pass, while a broadcast is driven.
func (w *world) passes(b *desk.Broadcast, d time.Duration) {
	w.t.Helper()
	for step := desk.BroadcastStopped / 2; d > 0; d -= step {
		w.clock.advance(min(d, step))
		w.until(b.ID, "somebody to drive it", func(b *desk.Broadcast) bool {
			return b.State != desk.BroadcastRunning || desk.TimeOf(w.clock.now())-b.DrivenAt < desk.Time(step.Milliseconds())/2
		})
	}
}

// TestBroadcast_dormant: a broadcast's conversation is archived and held by nobody, until the
// person writes; a stop word alone leaves it dormant.
func TestBroadcast_dormant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(phoned("905320000001"), ownedBy(w.ada.ID.String()))
	b := w.draft("905320000001", "905320000002")
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	rows := w.rowsOf(b.ID)
	for i, want := range []struct {
		text   string
		status desk.ConversationStatus
	}{{"Yes please", desk.StatusOpen}, {"STOP", desk.StatusArchived}} {
		c, err := w.Conversation(t.Context(), w.operator(), rows[i].Conversation)
		must(t, err)
		if c.Status != desk.StatusArchived || !c.AssignedMember.IsZero() || !c.Dormant {
			t.Errorf("the conversation is %+v", c)
		}
		messages, _, err := w.Messages(t.Context(), w.operator(), c.ID, "", 10)
		must(t, err)
		if m := messages[0]; m.Author.Type != desk.AuthorBroadcast || m.Author.ID != b.ID || m.Author.Name != "Spring" {
			t.Errorf("its author is %+v", m.Author)
		}
		_, err = w.Receive(t.Context(), w.ws, w.channel, provider.InboundMessage{ExternalID: "in." + want.text, Number: rows[i].To, Text: want.text, At: desk.TimeOf(w.clock.now())})
		must(t, err)
		c, err = w.Conversation(t.Context(), w.operator(), c.ID)
		must(t, err)
		if (c.AssignedMember == w.ada.ID) != (want.status == desk.StatusOpen) {
			t.Errorf("after %q it is held by %s", want.text, c.AssignedMember)
		}
		if c.Status != want.status || c.Dormant != (want.status != desk.StatusOpen) || c.Talk.Unread != 1 {
			t.Errorf("after %q it is %s, dormant %t, %d unread", want.text, c.Status, c.Dormant, c.Talk.Unread)
		}
	}
}

// TestBroadcast_deliveries: rows follow the statuses of their messages.
func TestBroadcast_deliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		return w.provider.Sandbox.Send(ctx, d)
	})
	b := w.draft("905320000101", "905320000102", "905320000007", "905320000004")
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "deliveries", func(b *desk.Broadcast) bool {
		return b.Counts.ByStatus[desk.RowRead] == 2 && b.Counts.ByStatus[desk.RowFailed] == 2
	})
	w.recounted(b)
	if f := b.Counts.As(b.State).Failures; len(f) != 2 || f[0].N != 1 {
		t.Errorf("failures: %+v", f)
	}
}

// leapt calls try while the server's clock, the database's, or both are ahead. Only of both is it told
// that what is older is old.
func (w *world) leapt(ahead time.Duration, try func(whose string, old bool)) {
	for _, c := range []struct {
		whose            string
		server, database time.Duration
	}{{"the server's clock", ahead, 0}, {"the database's clock", 0, ahead}, {"both clocks", ahead, ahead}} {
		w.clock.server.Store(int64(c.server))
		w.store.ahead.Store(c.database.Milliseconds())
		try(c.whose, c.server == c.database)
	}
}

// TestBroadcast_rowsForgotten: old rows go, and their counts stay. One clock that is far ahead makes
// nothing old.
func TestBroadcast_rowsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft(numbersFrom(0, 3)...)
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	w.stop()
	w.leapt(desk.KeepRows+time.Hour, func(whose string, old bool) {
		must(t, w.Broadcasts.ForgetRows(t.Context(), desk.KeepRows))
		if n := len(w.rowsOf(b.ID)); n != 3 && !old || n > 0 && old {
			t.Errorf("%s is ahead: %d rows", whose, n)
		}
	})
	if n := w.broadcastNow(b.ID).Counts.ByStatus[desk.RowSent]; n != 3 {
		t.Errorf("%d are counted as sent", n)
	}
}

// TestBroadcast_pace: at most so many people in any so many minutes. After the last one, the
// broadcast ends without waiting for more room.
func TestBroadcast_pace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft(numbersFrom(0, 60)...)
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: 20, Minutes: 10}}})
	must(t, err)
	w.startBroadcast(b.ID)
	for _, want := range []int{20, 40} {
		b = w.until(b.ID, "a wait", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForPace && len(w.provider.sent()) >= want })
		if n := len(w.provider.sent()); n != want {
			t.Fatalf("%d were sent, want %d", n, want)
		}
		w.clock.advance(11 * time.Minute)
	}
	w.until(b.ID, "its end", in(desk.BroadcastDone))
}

// TestBroadcast_paceChanged: the messages before a change of the pace count, too: those that the pace
// before had forgotten already, and more than it allowed.
func TestBroadcast_paceChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft(numbersFrom(0, 60)...)
	paced := func(people, minutes int) {
		t.Helper()
		_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: people, Minutes: minutes}}})
		must(t, err)
	}
	sent := func(want int) {
		t.Helper()
		w.until(b.ID, fmt.Sprint("a wait after ", want), func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForPace && len(w.provider.sent()) >= want })
		if n := len(w.provider.sent()); n != want {
			t.Fatalf("%d were sent, want %d", n, want)
		}
	}
	paced(10, 1)
	w.startBroadcast(b.ID)
	sent(10)
	w.clock.advance(2 * time.Minute)
	sent(20)
	paced(25, 60) // in the last hour, 20 were sent
	sent(25)
	paced(40, 60)
	sent(40)
	w.passes(b, 61*time.Minute)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
}

// phoned creates a contact with a number.
func (w *world) phoned(phone string) *desk.Contact {
	w.t.Helper()
	wr := desk.ContactWrite{}
	phoned(phone)(&wr)
	outcome, err := w.Write(w.t.Context(), w.caller(), &desk.Op{Kind: desk.OpUpsert, Write: wr})
	must(w.t, err)
	return outcome.Contact
}

// TestBroadcast_merge: a contact that was merged into another one, of whom a row was claimed
// before, gets nothing more; an undo moves the rows back.
func TestBroadcast_merge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.phoned("905320000001"), w.phoned("905320000002")
	o, reached, release := blocks(takes)
	w.provider.plays(o)
	b := w.draft("905320000001", "905320000002")
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: 1, Minutes: 1}}})
	must(t, err)
	w.startBroadcast(b.ID)
	<-reached
	m, err := w.Merges.Do(t.Context(), w.operator(), merges.Request{Into: other.ID, From: one.ID})
	must(t, err)
	close(release)
	w.clock.advance(2 * time.Minute)
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := len(w.provider.sent()); n != 1 || b.Counts.Skips[desk.SkipDuplicate] != 1 {
		t.Errorf("%d were sent; %v", n, b.Counts.Skips)
	}
	_, err = w.Merges.Undo(t.Context(), w.operator(), m.ID)
	must(t, err)
	if r := w.rowsOf(b.ID)[0]; r.Contact != one.ID {
		t.Errorf("after the undo, the row is of %s, want %s", r.Contact, one.ID)
	}
}
