package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// TestBroadcast_keyChanged: a caller whose key was revoked, has expired or lost the permission after
// it was authenticated changes no broadcast, whatever the broadcast's state.
func TestBroadcast_keyChanged(t *testing.T) {
	t.Parallel()
	for name, c := range keyChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b, p := w.draft("905320000001"), w.caller()
			must(t, c.change(w))
			for what, call := range map[string]func() (*desk.Broadcast, error){
				"create": func() (*desk.Broadcast, error) {
					return w.Broadcasts.Create(t.Context(), p, &desk.BroadcastInput{Name: text("Spring"), Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: "hello", Language: "en"}}})
				},
				"edit": func() (*desk.Broadcast, error) {
					return w.Broadcasts.Edit(t.Context(), p, b.ID, &desk.BroadcastInput{Name: text("Summer")})
				},
				"start":      func() (*desk.Broadcast, error) { return w.Broadcasts.Start(t.Context(), p, b.ID) },
				"unschedule": func() (*desk.Broadcast, error) { return w.Broadcasts.Unschedule(t.Context(), p, b.ID) },
				"pause":      func() (*desk.Broadcast, error) { return w.Broadcasts.Pause(t.Context(), p, b.ID) },
				"cancel":     func() (*desk.Broadcast, error) { return w.Broadcasts.Cancel(t.Context(), p, b.ID) },
				"delete":     func() (*desk.Broadcast, error) { return nil, w.Broadcasts.Delete(t.Context(), p, b.ID) },
				"clear":      func() (*desk.Broadcast, error) { return nil, w.Broadcasts.Clear(t.Context(), p, b.ID) },
				"add": func() (*desk.Broadcast, error) {
					_, err := w.Broadcasts.Add(t.Context(), p, b.ID, []desk.RowInput{{Find: phoneOf("905320000002")}})
					return nil, err
				},
			} {
				if _, err := call(); !desk.IsType(err, c.want) {
					t.Errorf("%s: %v, want %s", what, err, c.want)
				}
			}
			if now := w.broadcastNow(b.ID); now.State != desk.BroadcastDraft || now.Name != b.Name || now.Rows != 1 {
				t.Errorf("it is %s, %q, with %d rows", now.State, now.Name, now.Rows)
			}
		})
	}
}

// TestBroadcast_startOvertaken: what happens between the checks of a start and its transaction
// counts: nothing starts that was not checked.
func TestBroadcast_startOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.admin()
	start := func(id desk.ID) error { _, err := w.Broadcasts.Start(t.Context(), w.caller(), id); return err }
	startOne := func(id desk.ID) error { _, err := w.Broadcasts.StartFor(t.Context(), w.caller(), id, 1); return err }
	resume := func(id desk.ID) error { _, err := w.Broadcasts.Resume(t.Context(), w.caller(), id); return err }
	edit := func(id desk.ID) error {
		_, err := w.Broadcasts.Edit(t.Context(), w.operator(), id, &desk.BroadcastInput{Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: "sale", Language: "en"}}})
		return err
	}
	rename := func(id desk.ID) error {
		_, err := w.Broadcasts.Edit(t.Context(), w.caller(), id, &desk.BroadcastInput{Name: text("Summer")})
		return err
	}
	starts := func(id desk.ID) error { _, err := w.Broadcasts.Start(t.Context(), admin, id); return err }
	pause := func(id desk.ID) error { _, err := w.Broadcasts.Pause(t.Context(), admin, id); return err }
	cancel := func(id desk.ID) error { _, err := w.Broadcasts.Cancel(t.Context(), admin, id); return err }
	both := func(first, second func(desk.ID) error) func(desk.ID) error {
		return func(id desk.ID) error {
			if err := first(id); err != nil {
				return err
			}
			return second(id)
		}
	}
	add := func(id desk.ID) error { w.addRows(id, "905320000002"); return nil }
	clear := func(id desk.ID) error { return w.Broadcasts.Clear(t.Context(), admin, id) }
	for name, c := range map[string]struct {
		before    func(desk.ID) error // nil: the broadcast is a draft
		call      func(desk.ID) error
		meanwhile func(desk.ID) error
		want      desk.ErrorType // "": none
		state     desk.BroadcastState
	}{
		"started by another":           {nil, start, starts, "", desk.BroadcastRunning},
		"started and paused":           {nil, start, both(starts, pause), desk.BroadcastInState, desk.BroadcastPaused},
		"another template":             {nil, start, edit, desk.Unavailable, desk.BroadcastDraft},
		"other people":                 {nil, startOne, add, desk.Changed, desk.BroadcastDraft},
		"nobody left":                  {nil, start, clear, desk.Unavailable, desk.BroadcastDraft},
		"resumed by another":           {both(starts, pause), resume, func(id desk.ID) error { _, err := w.Broadcasts.Resume(t.Context(), admin, id); return err }, "", desk.BroadcastRunning},
		"cancelled":                    {both(starts, pause), resume, cancel, desk.BroadcastInState, desk.BroadcastCancelled},
		"renamed draft, begun by then": {nil, rename, starts, desk.Unavailable, desk.BroadcastRunning},
	} {
		w.clock.server.Store(0)
		b := w.draft("905320000001")
		w.clock.server.Store(int64(-time.Minute)) // another server's clock is behind
		if c.before != nil {
			must(t, c.before(b.ID))
		}
		w.store.in(1, begin, func() error { return c.meanwhile(b.ID) })
		err := c.call(b.ID)
		now := w.broadcastNow(b.ID)
		if c.want == "" && err != nil || c.want != "" && !desk.IsType(err, c.want) || now.State != c.state || now.Name != b.Name {
			t.Errorf("%s: %v, and it is %s as %q; want %q and %s", name, err, now.State, now.Name, c.want, c.state)
		}
		if now.State == desk.BroadcastRunning && now.StartedBy != admin.Actor {
			t.Errorf("%s: it is started by %+v", name, now.StartedBy)
		}
	}
}

// are puts so many broadcasts like b, in a state.
func (w *world) are(n int, state desk.BroadcastState, b *desk.Broadcast) {
	w.t.Helper()
	must(w.t, w.file.InTx(w.t.Context(), w.ws, func(tx store.Tx) error {
		for range n {
			other := *b
			other.ID, other.State, other.Counts = w.clock.newID(), state, nil
			if err := tx.PutBroadcast(&other); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestBroadcast_active: of the broadcasts of a workspace, at most so many run or are paused. One of
// them can be resumed. If more are paused, because they were scheduled, at most so many run.
func TestBroadcast_active(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, more := w.draft("905320000001"), w.draft("905320000002")
	w.are(desk.MaxActiveBroadcasts-1, desk.BroadcastPaused, b)
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	_, err = w.Broadcasts.Start(t.Context(), w.caller(), more.ID)
	refused(t, err, desk.InvalidRequest)
	resume := func() error {
		t.Helper()
		_, err := w.Broadcasts.Pause(t.Context(), w.caller(), b.ID)
		must(t, err)
		_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
		return err
	}
	must(t, resume())
	w.are(desk.MaxActiveBroadcasts-1, desk.BroadcastRunning, b)
	must(t, resume())
	w.are(1, desk.BroadcastRunning, b)
	refused(t, resume(), desk.InvalidRequest)
}

// TestBroadcast_planned: a broadcast that begins later does not count among those that run or are
// paused, but among the drafts and the scheduled ones.
func TestBroadcast_planned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft("905320000001")
	w.are(desk.MaxActiveBroadcasts, desk.BroadcastRunning, b)
	w.are(desk.MaxPlannedBroadcasts-1, desk.BroadcastDraft, b)
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{SendAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(w.clock.now().Add(time.Hour))}})
	must(t, err)
	_, err = w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	pause := func() {
		t.Helper()
		_, err := w.Broadcasts.Pause(t.Context(), w.caller(), b.ID)
		must(t, err)
	}
	pause()
	b, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
	if must(t, err); b.State != desk.BroadcastScheduled {
		t.Errorf("it is %s", b.State)
	}
	pause()
	w.are(1, desk.BroadcastDraft, b)
	_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
	refused(t, err, desk.InvalidRequest)
}

// TestBroadcast_activeLater: a scheduled broadcast does not begin at its time if so many run or are
// paused by then.
func TestBroadcast_activeLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft("905320000001")
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{SendAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(w.clock.now().Add(time.Minute))}})
	must(t, err)
	_, err = w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	w.are(desk.MaxActiveBroadcasts, desk.BroadcastPaused, w.draft("905320000002"))
	w.clock.advance(2 * time.Minute)
	w.run()
	b = w.until(b.ID, "its time", func(b *desk.Broadcast) bool {
		return b.State != desk.BroadcastScheduled && b.State != desk.BroadcastRunning
	})
	if b.State != desk.BroadcastPaused || b.Reason != desk.PausedAsked || b.StartedAt != 0 || len(w.provider.sent()) != 0 {
		t.Errorf("it is %s as %q, begun at %d", b.State, b.Reason, b.StartedAt)
	}
}

// setLibrary makes the provider's library another one, and fetches it.
func (w *world) setLibrary(list ...desk.TemplateSource) {
	w.t.Helper()
	w.provider.mu.Lock()
	w.provider.library = list
	w.provider.mu.Unlock()
	_, _, err := w.SyncChannel(context.Background(), w.operator(), w.channel)
	must(w.t, err)
}

// TestBroadcast_sendAt: at its time, a scheduled broadcast is checked as at its start. If something
// is against it, it is paused, and nothing is sent.
func TestBroadcast_sendAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   desk.BroadcastReason
	}{
		"key revoked": {func(w *world) { must(w.t, keyChanges["revoked"].change(w)) }, desk.PausedStarter},
		"key edited":  {func(w *world) { must(w.t, keyChanges["edited"].change(w)) }, desk.PausedStarter},
		"channel disabled": {func(w *world) {
			off := false
			_, err := w.EditChannel(context.Background(), w.operator(), w.channel, app.ChannelEdit{Enabled: &off})
			must(w.t, err)
		}, desk.PausedChannel},
		"template gone":          {func(w *world) { w.setLibrary(template("other", "en", "UTILITY", "", "Hello there!")) }, desk.PausedTemplate},
		"template in others":     {func(w *world) { w.setLibrary(template("hello", "tr", "UTILITY", "", "Merhaba!")) }, desk.PausedTemplate},
		"template says else":     {func(w *world) { w.setLibrary(template("hello", "en", "UTILITY", "", "Bye!")) }, desk.PausedTemplate},
		"template is marketing":  {func(w *world) { w.setLibrary(template("hello", "en", "MARKETING", "", "Hello there!")) }, desk.PausedTemplate},
		"template without value": {func(w *world) { w.setLibrary(template("hello", "en", "UTILITY", "", "Hello {{1}}!")) }, desk.PausedTemplate},
		"attribute archived": {func(w *world) {
			_, err := w.ArchiveAttribute(context.Background(), w.operator(), "ok", true)
			must(w.t, err)
		}, desk.PausedAsked},
		"value archived": {func(w *world) {
			_, err := w.ArchiveAttribute(context.Background(), w.operator(), "vip", true)
			must(w.t, err)
		}, desk.PausedAsked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.knowsOK()
			person := w.put(phoned("905320000001"), saysOK(true))
			w.setLibrary(append(templates(), template("vips", "en", "UTILITY", "", "Hello {{1}}!"))...)
			b := w.consented(desk.TemplateName{Name: "hello", Language: "en"}, nil, person)
			if name == "value archived" {
				_, _, err := w.PutAttribute(t.Context(), w.caller(), desk.AttributeInput{Key: "vip", Type: text("boolean")})
				must(t, err)
				b = w.consented(desk.TemplateName{Name: "vips", Language: "en"}, []desk.BroadcastValue{{Address: "1", From: "attributes.vip", Else: "you"}}, person)
			}
			_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{SendAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(w.clock.now().Add(time.Minute))}})
			must(t, err)
			_, err = w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
			must(t, err)
			c.change(w)
			w.clock.advance(2 * time.Minute)
			w.run()
			b = w.until(b.ID, "its time", func(b *desk.Broadcast) bool {
				return b.State != desk.BroadcastScheduled && b.State != desk.BroadcastRunning
			})
			if b.State != desk.BroadcastPaused || b.Reason != c.want || b.StartedAt != 0 || len(w.provider.sent()) != 0 {
				t.Errorf("it is %s as %q, begun at %d; want %s", b.State, b.Reason, b.StartedAt, c.want)
			}
		})
	}
}

// TestBroadcast_rescheduled: a broadcast that gets another time while it is checked at its time waits
// for the other one.
func TestBroadcast_rescheduled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.named("Lucia", "905320000001")
	b := w.draftFor(10, desk.Audience{Filter: withName()})
	plan := func(after time.Duration) {
		_, err := w.Broadcasts.Edit(context.Background(), w.caller(), b.ID, &desk.BroadcastInput{SendAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(w.clock.now().Add(after))}})
		must(t, err)
		_, err = w.Broadcasts.Start(context.Background(), w.caller(), b.ID)
		must(t, err)
	}
	plan(time.Minute)
	w.clock.advance(2 * time.Minute)
	again := make(chan struct{}, 1)
	again <- struct{}{}
	var planned atomic.Bool
	w.store.last = func() {
		select {
		case <-again:
			_, err := w.Broadcasts.Unschedule(context.Background(), w.caller(), b.ID)
			must(t, err)
			plan(time.Hour)
			planned.Store(true)
		default:
		}
	}
	w.run()
	waitFor(t, "another time", planned.Load)
	w.restsBroadcasts()
	if b = w.broadcastNow(b.ID); b.State != desk.BroadcastScheduled || len(w.provider.sent()) != 0 {
		t.Errorf("it is %s; %d were sent", b.State, len(w.provider.sent()))
	}
}

// TestBroadcast_resumed: what failed before a broadcast was resumed does not pause it again.
func TestBroadcast_resumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(refuses)
	b := w.draft(numbersFrom(0, 250)...)
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "a pause", func(b *desk.Broadcast) bool {
		return b.State == desk.BroadcastPaused && b.Counts.ByStatus[desk.RowSending] == 0
	})
	left := b.Counts.ByStatus[desk.RowPending]
	w.restsBroadcasts()
	w.provider.plays(takes)
	_, err := w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
	must(t, err)
	b = w.until(b.ID, "its end", func(b *desk.Broadcast) bool { return b.State != desk.BroadcastRunning })
	if b.State != desk.BroadcastDone || left == 0 || b.Counts.ByStatus[desk.RowSent] != left {
		t.Errorf("it is %s as %q: %v, of which %d were left", b.State, b.Reason, b.Counts.ByStatus, left)
	}
}

// TestBroadcast_probes: after a refusal for now, one message at a time is tried, until the provider
// takes one; also by a process that goes on for another one.
func TestBroadcast_probes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft(numbersFrom(0, 40)...)
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error { // as another process left it
		b, err := tx.Broadcast(b.ID)
		if err != nil {
			return err
		}
		b.Reason = desk.WaitsForProvider
		return tx.PutBroadcast(b)
	}))
	var calls atomic.Int64
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		n, ended := calls.Add(1), w.Broadcasts.Outcomes()
		if n == 2 && ended[desk.RowPending] == 0 || n > 2 && ended[desk.RowSent] == 0 {
			t.Errorf("message %d is sent beside the one that tries", n)
		}
		if n == 1 {
			return refusesForNow(2)(ctx, d)
		}
		return takes(ctx, d)
	})
	w.run()
	w.until(b.ID, "a wait", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForProvider && b.ResumesAt > 0 })
	w.clock.up.Add(int64(time.Hour))
	w.until(b.ID, "its end", in(desk.BroadcastDone))
}

// TestBroadcast_forbidden: a caller without the permission is refused for that, also where the state
// of the broadcast is against the change. Changing a draft needs another permission than changing it
// later.
func TestBroadcast_forbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	draft, running, ended := w.draft("905320000001").ID, w.draft("905320000002").ID, w.cancelled("905320000003")
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), running)
	must(t, err)
	edit := func(in desk.BroadcastInput) func(desk.Principal, desk.ID) error {
		return func(p desk.Principal, id desk.ID) error {
			_, err := w.Broadcasts.Edit(t.Context(), p, id, &in)
			return err
		}
	}
	one := func(call func(context.Context, desk.Principal, desk.ID) (*desk.Broadcast, error)) func(desk.Principal, desk.ID) error {
		return func(p desk.Principal, id desk.ID) error { _, err := call(t.Context(), p, id); return err }
	}
	rename, unasked := edit(desk.BroadcastInput{Name: text("Summer")}), edit(desk.BroadcastInput{Consent: desk.Field[desk.Consent]{Set: true, Null: true}})
	start, resume := one(w.Broadcasts.Start), one(w.Broadcasts.Resume)
	remove := func(p desk.Principal, id desk.ID) error { return w.Broadcasts.Delete(t.Context(), p, id) }
	empty := func(p desk.Principal, id desk.ID) error { return w.Broadcasts.Clear(t.Context(), p, id) }
	add := func(p desk.Principal, id desk.ID) error {
		_, err := w.Broadcasts.Add(t.Context(), p, id, []desk.RowInput{{Find: phoneOf("905320000009")}})
		return err
	}
	writes := map[string]func(desk.Principal, desk.ID) error{
		"unschedule": one(w.Broadcasts.Unschedule), "pause": one(w.Broadcasts.Pause), "cancel": one(w.Broadcasts.Cancel), "delete": remove, "clear": empty, "add": add,
	}
	sends := map[string]func(desk.Principal, desk.ID) error{"start": start, "resume": resume}
	for _, c := range []struct {
		may   string
		of    desk.ID
		calls map[string]func(desk.Principal, desk.ID) error
	}{
		{"broadcasts:read,broadcasts:send,contacts:read", draft, writes},
		{"broadcasts:read,broadcasts:send,contacts:read", running, writes},
		{"broadcasts:read,broadcasts:send,contacts:read", ended, writes},
		{"broadcasts:read,broadcasts:write", draft, sends},
		{"broadcasts:read,broadcasts:write", running, sends},
		{"broadcasts:read,broadcasts:write", ended, sends},
		{"broadcasts:write", draft, map[string]func(desk.Principal, desk.ID) error{"add": add}},
		{"broadcasts:read,broadcasts:send", draft, map[string]func(desk.Principal, desk.ID) error{"rename": rename, "no consent": unasked}},
		{"broadcasts:read,broadcasts:write", running, map[string]func(desk.Principal, desk.ID) error{"rename": rename, "no consent": unasked}},
		{"broadcasts:read,broadcasts:write", ended, map[string]func(desk.Principal, desk.ID) error{"rename": rename, "no consent": unasked}},
	} {
		key, _ := w.newKey(c.may)
		p, err := w.Access.Authenticate(t.Context(), key)
		must(t, err)
		for what, call := range c.calls {
			if err := call(p, c.of); !desk.IsType(err, desk.Forbidden) {
				t.Errorf("%s of one that is %s, with %s: %v", what, w.broadcastNow(c.of).State, c.may, err)
			}
		}
	}
}

// TestBroadcast_notSendable: the reasons against a template are those that are left with what the
// broadcast supplies: the file that it names, and the links, which each row has unless they are named.
func TestBroadcast_notSendable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pending := func(s desk.TemplateSource) desk.TemplateSource {
		s.Source = strings.Replace(s.Source, `"APPROVED"`, `"PENDING"`, 1)
		return s
	}
	w.setLibrary(pending(rich("clip", "VIDEO", "https://shop.example/")))
	b := w.draft("905320000001")
	for _, c := range []struct {
		values []desk.BroadcastValue
		want   string
	}{
		{nil, "[not_approved header_media]"},
		{[]desk.BroadcastValue{{Address: desk.MediaAddress, Value: "x"}}, "[not_approved]"},
		{[]desk.BroadcastValue{{Address: desk.MediaAddress, Value: "x"}, {Address: "button.0", Value: "A-17"}}, "[not_approved]"},
	} {
		_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{
			Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: "clip", Language: "en"}},
			Values:   desk.Field[[]desk.BroadcastValue]{Set: true, Value: c.values},
		})
		must(t, err)
		_, startErr := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
		_, _, checkErr := w.Broadcasts.Check(t.Context(), w.caller(), b.ID, "")
		for _, err := range []error{startErr, checkErr} {
			refused(t, err, desk.TemplateNotSendable)
			if got := fmt.Sprint(desk.AsError(err).Details.(desk.Unsendable).Reasons); got != c.want {
				t.Errorf("%+v: %s, want %s", c.values, got, c.want)
			}
		}
	}
}

// TestBroadcast_category: a draft has the category that its template has now, and none while the
// template is not known. A broadcast that was started keeps the one that was checked.
func TestBroadcast_category(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.draft("905320000001")
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: "news", Language: "en"}}})
	must(t, err)
	has := func(category string) { w.setLibrary(template("news", "en", category, "", "Hello there!")) }
	shows := func(want string) {
		t.Helper()
		list, _, err := w.Broadcasts.List(t.Context(), w.caller(), "", "", desk.MaxLimit)
		must(t, err)
		if one := w.broadcastNow(b.ID); one.Category != want || list[0].Category != want {
			t.Errorf("its category is %q, and in the list %q, want %q", one.Category, list[0].Category, want)
		}
	}
	shows("")
	has("UTILITY")
	shows("UTILITY")
	has("MARKETING")
	shows("MARKETING")
	_, err = w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
	must(t, err)
	has("UTILITY")
	shows("MARKETING")
}

// TestBroadcast_editOrder: a change is refused for the permission first, then for what is wrong with
// it whatever it changes, then because there is no such broadcast, and at last for the state.
func TestBroadcast_editOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	draft, ended, unknown := w.draft("905320000001").ID, w.cancelled("905320000002"), w.clock.newID()
	limited := func(permissions string) desk.Principal {
		key, _ := w.newKey(permissions)
		p, err := w.Access.Authenticate(t.Context(), key)
		must(t, err)
		return p
	}
	all, writes, sends := w.caller(), limited("broadcasts:write"), limited("broadcasts:send")
	nameless := desk.BroadcastInput{Name: text("")}
	slow := desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{Minutes: 1}}}
	unfiltered := desk.BroadcastInput{Audience: desk.Field[desk.Audience]{Set: true, Value: desk.Audience{Filter: &desk.Filter{}}}}
	for i, c := range []struct {
		of   desk.ID
		p    desk.Principal
		in   desk.BroadcastInput
		want desk.ErrorType
		at   string
	}{
		{draft, sends, nameless, desk.Forbidden, ""},
		{draft, sends, unfiltered, desk.Forbidden, ""},
		{ended, writes, slow, desk.Forbidden, ""},
		{unknown, limited("contacts:read"), nameless, desk.Forbidden, ""},
		{draft, writes, nameless, desk.InvalidRequest, "/name"},
		{draft, all, desk.BroadcastInput{Name: desk.Field[string]{Set: true, Null: true}}, desk.InvalidRequest, "/name"},
		{draft, all, desk.BroadcastInput{Template: desk.Field[desk.TemplateName]{Set: true, Null: true}}, desk.InvalidRequest, "/template"},
		{ended, all, desk.BroadcastInput{Template: desk.Field[desk.TemplateName]{Set: true, Null: true}}, desk.InvalidRequest, "/template"},
		{ended, sends, slow, desk.InvalidRequest, "/pace/people"},
		{ended, all, unfiltered, desk.InvalidRequest, "/audience/filter/all"},
		{unknown, sends, nameless, desk.InvalidRequest, "/name"},
		{unknown, all, unfiltered, desk.InvalidRequest, "/audience/filter/all"},
		{unknown, all, desk.BroadcastInput{Name: text("Summer")}, desk.NotFound, ""},
		{ended, sends, desk.BroadcastInput{AtMost: whole(5)}, desk.BroadcastInState, ""},
		{draft, writes, desk.BroadcastInput{Audience: desk.Field[desk.Audience]{Set: true, Value: desk.Audience{Segment: "a"}}}, desk.InvalidRequest, "/audience"}, // it has rows
	} {
		_, err := w.Broadcasts.Edit(t.Context(), c.p, c.of, &c.in)
		if !desk.IsType(err, c.want) || desk.AsError(err).At != c.at {
			t.Errorf("case %d: %v, want %s at %q", i, err, c.want, c.at)
		}
	}
}

// TestBroadcast_clear: once some rows of a draft are deleted, all of them go, also if the process dies
// in between. Until they are gone, nothing starts, and no people are added that would be lost.
func TestBroadcast_clear(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, people := w.admin(), numbersFrom(0, 2*desk.BroadcastSkips+1)
	left := func(b *desk.Broadcast) {
		t.Helper()
		_, err := w.Broadcasts.Start(t.Context(), admin, b.ID)
		refused(t, err, desk.BroadcastEmpty)
		_, _, err = w.Broadcasts.Check(t.Context(), admin, b.ID, "")
		refused(t, err, desk.BroadcastEmpty)
		_, err = w.Broadcasts.Add(t.Context(), admin, b.ID, []desk.RowInput{{Find: phoneOf("905320000001")}})
		refused(t, err, desk.Unavailable)
		_, err = w.Broadcasts.Edit(t.Context(), admin, b.ID, &desk.BroadcastInput{
			Audience: desk.Field[desk.Audience]{Set: true, Value: desk.Audience{Filter: withName()}}, AtMost: whole(5),
		})
		refused(t, err, desk.Unavailable)
		if n := len(w.rowsOf(b.ID)); n == 0 {
			t.Error("all rows are gone already")
		}
	}
	gone := func(b *desk.Broadcast) {
		t.Helper()
		if n := len(w.rowsOf(b.ID)); n > 0 {
			t.Errorf("%d rows are left", n)
		}
		w.addRows(b.ID, "905320000001")
		b = w.broadcastNow(b.ID)
		if b.Rows != 1 {
			t.Errorf("with one person more, it has %d rows", b.Rows)
		}
		w.recounted(b)
		_, err := w.Broadcasts.Start(t.Context(), admin, b.ID)
		must(t, err)
	}
	dies := func(b *desk.Broadcast, n int) {
		t.Helper()
		w.store.in(n, begin, lost)
		refused(t, w.Broadcasts.Clear(t.Context(), admin, b.ID), desk.Unavailable)
		left(b)
	}

	b := w.draft(people...)
	w.store.in(2, begin, func() error { left(b); return nil })
	must(t, w.Broadcasts.Clear(t.Context(), admin, b.ID))
	gone(b)

	b = w.draft(people...)
	dies(b, 2)
	dies(b, 3)
	must(t, w.Broadcasts.Clear(t.Context(), admin, b.ID))
	gone(b)

	b = w.draft(people...)
	dies(b, 3)
	w.run()
	w.until(b.ID, "the rows to go", func(b *desk.Broadcast) bool { return !b.Untidy })
	gone(b)
}

// TestBroadcast_clearAudience: a draft with an audience has no rows that would have to go, so it can
// start at any moment.
func TestBroadcast_clearAudience(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, admin := w.draft(), w.caller()
	_, err := w.Broadcasts.Edit(t.Context(), admin, b.ID, &desk.BroadcastInput{
		Audience: desk.Field[desk.Audience]{Set: true, Value: desk.Audience{Filter: withName()}}, AtMost: whole(5),
	})
	must(t, err)
	w.store.in(1, answer, func() error {
		if w.broadcastNow(b.ID).Untidy {
			t.Error("an audience is cleared, and a start does not notice")
		}
		return nil
	})
	must(t, w.Broadcasts.Clear(t.Context(), admin, b.ID))
}
