package app_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
)

// accountRefused returns a provider's refusal for a channel whose token has expired.
func accountRefused(code int) *desk.Refusal {
	return &desk.Refusal{
		Type: desk.ProviderUnavailable, Message: "refused", RetryAfter: 300, Failure: &desk.Failure{Code: code, Title: "Access token expired", Fix: "Make a new one."},
		Account: &desk.AccountRefusal{Code: code, Title: "Access token expired", Trace: "AbCtrace", Token: code == 190},
	}
}

const statusLine = "WARN a channel's account status has changed"

// up checks whether a channel can send, and how many lines about its status were logged so
// far.
func (w *world) up(channel desk.ID, up bool, lines int) {
	w.t.Helper()
	if c := w.caller().Settings.Channel(channel); c.Up(desk.TimeOf(w.clock.now())) != up {
		w.t.Errorf("up is %v: %+v", !up, c.Status)
	}
	if found := w.log.find(statusLine); len(found) != lines {
		w.t.Errorf("%d lines, want %d:\n%s", len(found), lines, strings.Join(found, "\n"))
	}
}

// TestAccountRefused: an expired token is logged once, however many sends and fetches fail.
// When messages are accepted again, that is also logged once.
func TestAccountRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel, other := w.connect(metaNumber, metaBusiness), w.connect("200300400500601", metaBusiness)
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) { return 0, true, nil }
	send := func(key string, want desk.ErrorType) {
		t.Helper()
		w.clock.advance(time.Second)
		if r := w.send(key, on(channel)); want == "" {
			must(t, r.err)
		} else {
			refused(t, r.err, want)
		}
	}
	send("1", "")
	w.up(channel, true, 0)
	version := w.caller().Settings.Version

	w.meta.change(func() { w.meta.refusal = accountRefused(190) })
	w.clock.advance(time.Second)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { w.send(fmt.Sprint("at once ", i), on(channel)) })
	}
	all.Wait()
	send("2", desk.ProviderUnavailable)
	w.up(channel, false, 1)
	w.up(other, true, 1)
	want := fmt.Sprintf("workspace_id=%s channel_id=%s code=190 fbtrace_id=AbCtrace", w.ws, channel)
	if found := w.logged(1, want); len(found) != 1 {
		t.Errorf("no line has %s: %q", want, w.log.find(statusLine))
	}
	if problems, err := w.CheckChannel(t.Context(), w.operator(), channel); err != nil || len(problems) == 0 || !strings.Contains(problems[0].Text, "code 190, Access token expired; fbtrace_id AbCtrace") {
		t.Errorf("checked: %+v, %v", problems, err)
	}
	w.meta.change(func() { w.meta.refusal = refusal }) // the refusal of one message shows that the token is valid
	send("3", desk.ProviderRejected)
	w.up(channel, false, 1)
	w.meta.change(func() { w.meta.refusal = accountRefused(131031) })
	send("4", desk.ProviderUnavailable)
	w.up(channel, false, 2)
	w.meta.change(func() { w.meta.refusal = nil })
	send("5", "")
	send("6", "")
	w.up(channel, true, 3)
	if !w.raised(version, 3) {
		t.Errorf("three changes took the version of the settings from %d to %d", version, w.caller().Settings.Version)
	}

	// A fetch of templates only shows whether the token is valid.
	fetch := func(away error) {
		w.clock.advance(time.Second)
		w.meta.change(func() { w.meta.away = away })
		_, _, _ = w.SyncChannel(t.Context(), w.operator(), channel)
	}
	fetch(fmt.Errorf("no permission: %w", accountRefused(200).Account))
	w.up(channel, true, 3)
	fetch(fmt.Errorf("expired: %w", accountRefused(190).Account))
	w.up(channel, false, 4)
	fetch(nil)
	w.up(channel, true, 5)
	w.meta.change(func() { w.meta.refusal = accountRefused(131031) })
	send("7", desk.ProviderUnavailable)
	fetch(nil)
	w.up(channel, false, 6)

	// A new token that the provider accepts ends the block.
	_, err := w.EditChannel(t.Context(), w.operator(), channel, app.ChannelEdit{Secrets: provider.Secrets{Token: provider.NewSecret("s3cret-2")}})
	must(t, err)
	w.up(channel, true, 6)
}

// TestSendCounts: each send counts once, by its outcome.
func TestSendCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, c := range []struct {
		key   string
		plays outcome
		want  app.SendCounts
	}{
		{"taken", takes, app.SendCounts{Accepted: 1}},
		{"taken", takes, app.SendCounts{Accepted: 1}}, // a replay
		{"refused", refuses, app.SendCounts{Accepted: 1, Refused: 1}},
		{"refused", refuses, app.SendCounts{Accepted: 1, Refused: 2}}, // sent again, because its key was free
		{"a bug", meanwhile(func(provider.Dispatch) { panic("a bug") }, takes), app.SendCounts{Accepted: 1, Refused: 2, InDoubt: 1}},
		{"lost", losesTheAnswer, app.SendCounts{Accepted: 1, Refused: 2, InDoubt: 2}},
		{"lost", takes, app.SendCounts{Accepted: 1, Refused: 2, InDoubt: 2}}, // the message is not sent again
	} {
		w.provider.plays(c.plays)
		w.send(c.key)
		if got := w.Metrics.Sends(); got != c.want {
			t.Errorf("step %d: %+v, want %+v", i, got, c.want)
		}
	}
	before := w.Metrics.Sends()
	channel := w.connect(metaNumber, metaBusiness)
	w.meta.change(func() { w.meta.refusal = accountRefused(190) })
	w.send("unavailable", on(channel))
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) { return time.Minute, false, nil }
	w.send("held back", on(channel))
	w.send("no such channel", on(w.ws))
	before.Unavailable += 2
	if got := w.Metrics.Sends(); got != before {
		t.Errorf("%+v, want %+v", got, before)
	}
}
