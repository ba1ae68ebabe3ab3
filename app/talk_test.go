package app_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
)

var talkHistories = flag.Int("talk-histories", 12, "how many random histories TestTalk_histories plays")

// hears is a helper that receives an inbound message, or a message typed in the phone app.
func (w *world) hears(in provider.InboundMessage) *desk.Conversation {
	w.t.Helper()
	c, err := w.Receive(w.t.Context(), w.ws, w.channel, in)
	must(w.t, err)
	return c
}

// stands returns the state of a conversation.
func (w *world) stands(id desk.ID) desk.State {
	w.t.Helper()
	s, err := w.State(w.t.Context(), w.caller(), id)
	must(w.t, err)
	return *s
}

// A talkModel computes a conversation's state by its definition, each time from all its
// messages.
type talkModel struct {
	marked   map[desk.ID]bool // messages that were marked as read
	farthest desk.MessagePlace
	shut     desk.Time
	shutBy   desk.WindowReason
}

func (m *talkModel) mark(list []*desk.Message, upTo desk.MessagePlace) {
	for _, v := range list {
		if !v.Place().After(upTo) {
			m.marked[v.ID] = true
		}
	}
	if upTo.After(m.farthest) {
		m.farthest = upTo
	}
}

// state returns the state by its definition. list has the messages, newest first.
func (m *talkModel) state(id desk.ID, list []*desk.Message, now desk.Time) desk.State {
	s := desk.State{Conversation: id}
	var answered desk.ID
	var opened desk.Time
	s.Talk.Read = m.farthest
	for _, v := range list {
		if v.Direction == desk.Inbound {
			opened = max(opened, v.TS)
			if !m.marked[v.ID] {
				s.Talk.Unread++
			}
			if v.Kind != desk.KindReaction && v.ID.Compare(s.Talk.Heard) > 0 {
				s.Talk.Heard = v.ID
			}
		} else if v.Author.Type != desk.AuthorRule && v.Delivery != desk.Failed && v.ID.Compare(answered) > 0 {
			answered = v.ID
		}
	}
	for _, v := range list {
		if v.Direction == desk.Inbound && v.Kind != desk.KindReaction && v.ID.Compare(answered) > 0 && (s.Talk.WaitingSince == 0 || v.TS < s.Talk.WaitingSince) {
			s.Talk.WaitingSince = v.TS
		}
	}
	s.Talk.Answered = answered
	if len(list) > 0 {
		s.Talk.LastDirection = list[0].Direction
	}
	end := opened + 86_100_000
	switch {
	case opened == 0:
		s.Window.Reason = desk.NeverWrote
	case opened <= m.shut && m.shut < end:
		s.Window = desk.WindowState{ClosesAt: m.shut, Reason: m.shutBy}
	case now >= end:
		s.Window = desk.WindowState{ClosesAt: end, Reason: desk.WindowExpired}
	default:
		s.Window = desk.WindowState{Open: true, ClosesAt: end}
	}
	return s
}

// TestTalk_histories: after any changes in any order, the stored state of a conversation is
// the one that follows from its messages by definition.
func TestTalk_histories(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		talkHistoriesOn(t, *talkHistories, newWorld)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.Database(t), MaxConns: 4})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		n, clock := *talkHistories, new(clock)
		if n < 100 {
			n /= 4
		}
		talkHistoriesOn(t, n, func(t *testing.T) *world { return newWorldOn(t, app.Bounds{}, s, clock) })
	})
}

func talkHistoriesOn(t *testing.T, histories int, newWorld func(*testing.T) *world) {
	seed := rand.Uint64()
	for n := range histories {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		w := newWorld(t)
		c := w.hears(provider.InboundMessage{ExternalID: "first", Number: number, Text: "Hello", At: desk.TimeOf(w.clock.now()) - desk.Time(r.Int64N(100_000_000))})
		m := &talkModel{marked: map[desk.ID]bool{}}
		var done []string
		for step := range 40 {
			list := w.messages(c.ID)
			one := list[r.IntN(len(list))]
			what := r.IntN(10)
			switch what {
			case 0, 1, 2: // the message comes now, late, or by a clock that is ahead
				at := desk.TimeOf(w.clock.now()) + []desk.Time{0, -desk.Time(r.Int64N(100_000_000)), desk.Time(r.Int64N(50_000))}[what]
				w.hears(provider.InboundMessage{ExternalID: fmt.Sprint("in", step), Number: number, Text: "More", At: at, ReplyTo: one.ExternalID})
			case 3:
				w.hears(provider.InboundMessage{ExternalID: fmt.Sprint("in", step), Number: number, Text: "[reaction] +", At: desk.TimeOf(w.clock.now()), Kind: desk.KindReaction, ReplyTo: one.ExternalID,
					Extra: &desk.Extra{Reaction: &desk.Reaction{Emoji: "+"}}})
			case 4:
				w.hears(provider.InboundMessage{ExternalID: fmt.Sprint("echo", step), Number: number, Text: "Typed", At: desk.TimeOf(w.clock.now()), Echo: true})
				all := w.messages(c.ID)
				m.mark(all, all[0].Place())
			case 5:
				w.sent(fmt.Sprint(seed, n, step))
			case 6, 7: // a status of a message that we sent
				i := slices.IndexFunc(list, func(v *desk.Message) bool { return v.Direction == desk.Outbound && v.Template != "" })
				if i < 0 {
					continue
				}
				status := desk.StatusUpdate{ExternalID: list[i].ExternalID, Delivery: []desk.DeliveryStatus{desk.Failed, desk.Delivered}[what-6], At: desk.TimeOf(w.clock.now())}
				if status.Delivery == desk.Failed {
					status.Failure = &desk.Failure{Code: []int{131047, 131026}[r.IntN(2)], Title: "No"}
				}
				if status.Delivery == desk.Failed && status.Failure.Code == 131047 && list[i].Delivery != desk.Delivered && list[i].Failure == nil && list[i].TS > m.shut {
					m.shut, m.shutBy = list[i].TS, desk.ByTheProvider
				}
				w.tell(status)
				w.takeIn()
			case 8:
				_, err := w.MarkRead(t.Context(), w.caller(), c.ID, one.ID, false)
				must(t, err)
				m.mark(list, one.Place())
			case 9:
				if w.path == "" { // PostgreSQL has its own clock
					continue
				}
				w.clock.advance(time.Duration(r.Int64N(int64(9 * time.Hour))))
			}
			done = append(done, fmt.Sprint(what))
			want := m.state(c.ID, w.messages(c.ID), desk.TimeOf(w.clock.now()))
			if got := w.stands(c.ID); got != want {
				t.Fatalf("seed %d, history %d, after %v:\ngot  %+v\nwant %+v", seed, n, done, got, want)
			}
			inbox, _, err := w.Inbox(t.Context(), w.caller(), desk.ConversationFilter{Status: desk.StatusOpen}, "", 10)
			must(t, err)
			if len(inbox) != 1 || inbox[0].State != want {
				t.Fatalf("seed %d, history %d, after %v: inbox %+v, want %+v", seed, n, done, inbox, want)
			}
		}
		w.stop() // otherwise it would read the database of the next history
	}
}

// TestTalk_failedBeforeItWasBound: a person decides that a send in doubt was sent. An early
// status "failed" without the attempt's id is applied once the message's external id is
// known. Then the person waits or not as the messages say.
func TestTalk_failedBeforeItWasBound(t *testing.T) {
	t.Parallel()
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

// TestTalk_shutBeforeTheFirst: the provider refused a message with 131047 (window closed)
// before the first inbound message came. Late messages from before do not open the window.
func TestTalk_shutBeforeTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sent("k")
	at := w.attempts()[0]
	s := said(at.ID, desk.Failed)
	s.Failure = &desk.Failure{Code: 131047, Title: "No"}
	w.tell(s)
	w.takeIn()
	c := w.hears(provider.InboundMessage{ExternalID: "late", Number: number, Text: "Hello", At: at.CreatedAt - 3_600_000})
	if got := w.stands(c.ID); got.Window.Open {
		t.Errorf("got %+v", got.Window)
	}
}
