package app_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"parley/app/feed"
	"parley/desk"
)

// sendEvents lists the events since a cursor by their types. For sends, it adds the actor
// and the attempt.
func (w *world) sendEvents(cursor string) (list []string) {
	w.t.Helper()
	page, err := w.Feed.Page(w.t.Context(), w.operator(), feed.Query{Cursor: cursor, Limit: 100})
	must(w.t, err)
	for _, e := range page.Events {
		line := string(e.Type)
		if at := page.Attempts[e.Subject]; at != nil {
			line += " by " + string(e.Actor.Kind) + ": " + string(at.Phase)
			if conversation, contact := e.Of(); contact.IsZero() || conversation.IsZero() == at.Stored() && e.Type == desk.SendSettled {
				w.t.Errorf("%s of the conversation %s with %s", line, conversation, contact)
			}
			if at.Response != nil || at.Plan.Profile != nil {
				w.t.Errorf("%s carries %+v", line, at)
			}
		}
		if e.Type.Kind() == "send" || e.Type.Kind() == "message" {
			list = append(list, line)
		}
	}
	return list
}

// TestSendEvents: if the outcome of a send becomes unknown, there is an event. When the
// outcome is known later, from any source, there is another one. All other sends have no
// such events.
func TestSendEvents(t *testing.T) {
	t.Parallel()
	const sent, doubt = "message.sent", "send.in_doubt by key: "
	// late runs a send that the sweeper marks before the provider answers.
	late := func(then outcome) func(*world) {
		return func(w *world) {
			play, reached, release := blocks(then)
			w.provider.plays(play)
			landed := make(chan reply)
			go func() { landed <- w.send("k") }()
			<-reached
			w.store.ahead.Store((lease + margin + time.Millisecond).Milliseconds())
			must(w.t, w.Sweep(context.Background()))
			must(w.t, w.Sweep(context.Background()))
			close(release)
			<-landed
		}
	}
	release := func(sent bool) func(*world) {
		return func(w *world) {
			id := w.inDoubt("k")
			for range 2 {
				_, err := w.Release(context.Background(), w.operator(), id, sent)
				must(w.t, err)
			}
		}
	}
	for name, c := range map[string]struct {
		act  func(*world)
		want []string
	}{
		"sent":         {func(w *world) { w.sent("k") }, []string{sent}},
		"refused":      {func(w *world) { w.provider.plays(refuses); w.send("k") }, nil},
		"in doubt":     {func(w *world) { w.inDoubt("k"); w.doubted(w.send("k").err) }, []string{doubt + "in_doubt"}},
		"a status":     {func(w *world) { w.tell(said(w.inDoubt("k"), desk.Sent)); w.takeIn() }, []string{doubt + "done", sent, "send.settled by provider: done"}},
		"late":         {late(takes), []string{doubt + "done", sent, "send.settled by provider: done"}},
		"late refusal": {late(refuses), []string{doubt + "refused", "send.settled by provider: refused"}},
		"late doubt":   {late(losesTheAnswer), []string{doubt + "in_doubt"}},
		"was sent":     {release(true), []string{doubt + "done", sent, "send.settled by cli: done"}},
		"was not sent": {release(false), []string{doubt + "released", "send.settled by cli: released"}},
		"a deleted person": {func(w *world) {
			contact := w.put(phoned(number))
			id := w.inDoubt("k")
			w.deleteContact(contact.ID)
			_, err := w.Release(context.Background(), w.operator(), id, true)
			must(w.t, err)
		}, []string{doubt + "done", "send.settled by cli: done"}},
		"nobody has looked": {func(w *world) {
			play, reached, release := blocks(losesTheAnswer)
			w.provider.plays(play)
			landed := make(chan reply)
			go func() { landed <- w.send("k") }()
			<-reached
			w.store.ahead.Store((lease + slack).Milliseconds())
			_, err := w.Release(context.Background(), w.operator(), w.holder("k").ID, false)
			must(w.t, err)
			close(release)
			<-landed
		}, []string{doubt + "released", "send.settled by cli: released"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cursor := w.latest()
			c.act(w)
			if got := w.sendEvents(cursor); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
