package app_test

import (
	"testing"

	"parley/app"
	"parley/desk"
)

// H1: a person says that a send in doubt was sent; the provider's early "failed" (without
// the attempt's id) is taken in when the message learns its external id. The wait must be
// as the messages say.
func TestAdvBindEarlyFailed(t *testing.T) {
	w := newWorld(t)
	c := w.writes(number, "Hi")
	id := w.inDoubt("k")
	_, err := w.Release(t.Context(), w.operator(), id, true)
	must(t, err)
	w.tell(saidEarly(id, desk.Failed), said(id, desk.Sent))
	w.takeIn()
	m := &talkModel{marked: map[desk.ID]bool{}}
	want := m.state(c.ID, w.messages(c.ID), desk.TimeOf(w.clock.now()))
	if got := w.stands(c.ID); got.Talk.WaitingSince != want.Talk.WaitingSince {
		t.Errorf("got %+v\nwant %+v; messages %+v", got, want, w.messages(c.ID)[0])
	}
}

// H2: the provider did not deliver for 131047 before the first message came in: late
// messages from before open nothing.
func TestAdvShutBeforeFirst(t *testing.T) {
	w := newWorld(t)
	w.sent("k")
	at := w.attempts()[0]
	s := said(at.ID, desk.Failed)
	s.Failure = &desk.Failure{Code: 131047, Title: "No"}
	w.tell(s)
	w.takeIn()
	c := w.hears(app.InboundMessage{ExternalID: "late", Number: number, Text: "Hello", At: at.CreatedAt - 3_600_000})
	if got := w.stands(c.ID); got.Window.Open {
		t.Errorf("got %+v", got.Window)
	}
}

// H3: a number change that the provider dates after the window's end by our clock.
func TestAdvMoveAhead(t *testing.T) {
	w := newWorld(t)
	now := desk.TimeOf(w.clock.now())
	c := w.hears(app.InboundMessage{ExternalID: "a", Number: number, Text: "Hello", At: now - 86_100_000 + 5000})
	win := desk.Window{OpenedAt: now - 86_100_000 + 5000}
	win.Shut(now+6000, desk.NumberChanged)
	if s := win.State(now); s.Open {
		t.Errorf("open although the number changed: %+v", s)
	}
	_ = c
}
