package app_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/app/merges"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

var (
	followedPeople = flag.Int("broadcast-followed", 25, "how many people TestBroadcast_followed sends three broadcasts to, each with up to six statuses, replies and opt-outs. Long run: -broadcast-followed 15000")
	followedStops  = flag.Int("broadcast-followed-stops", 3, "how often TestBroadcast_followed stops the server. Long run: 10")
)

// reports stores an inbound item with updates of a provider.
func (w *world) reports(list ...provider.Update) {
	w.t.Helper()
	body, err := json.Marshal(list)
	must(w.t, err)
	w.notify(updatesOf + string(body))
}

// A saying is how a person answers a broadcast.
type saying struct {
	At     desk.Time
	Text   string
	Quotes string // the id of a message at the provider
	Taps   string // the title of a button
}

func (s saying) update(number string, n int) provider.Update {
	in := &provider.InboundMessage{ExternalID: fmt.Sprint("in.", n), Number: number, Text: s.Text, At: s.At, ReplyTo: s.Quotes}
	if s.Taps != "" {
		in.Kind, in.Text, in.Extra = desk.KindChoice, s.Taps, &desk.Extra{Choice: &desk.Button{ID: s.Taps, Title: s.Taps}}
	}
	if s.Text == "" && s.Taps == "" {
		in.Kind, in.Text, in.Extra = desk.KindReaction, "[reaction] 👍", &desk.Extra{Reaction: &desk.Reaction{Emoji: "👍"}}
	}
	return provider.Update{Message: in}
}

// sendsTo sends a broadcast of the greeting to numbers, and returns it when it has ended.
func (w *world) sendsTo(numbers ...string) *desk.Broadcast {
	w.t.Helper()
	no := false
	b := w.draft(numbers...)
	_, err := w.Broadcasts.Edit(w.t.Context(), w.caller(), b.ID, &desk.BroadcastInput{SkipOpen: desk.Field[bool]{Set: true, Value: no}})
	must(w.t, err)
	w.startBroadcast(b.ID)
	return w.until(b.ID, "its end", in(desk.BroadcastDone))
}

// allMessages returns all messages with their contacts.
func (w *world) allMessages() (list []*desk.Message) {
	w.t.Helper()
	after, more := store.MessageKey{}, true
	for more {
		var page []*desk.Message
		var err error
		page, more, err = w.file.MessagesAfter(context.Background(), w.ws, after, 1000)
		must(w.t, err)
		for _, m := range page {
			after = store.MessageKey{Conversation: m.ConversationID, MessagePlace: m.Place()}
		}
		list = append(list, page...)
	}
	return list
}

// A rowWas is what a row shows of its message and of its person.
type rowWas struct {
	Status desk.RowStatus
	Reply  desk.RowReply
}

// A rowOf names a row by its broadcast and its contact.
type rowOf struct{ broadcast, contact desk.ID }

// recomputed computes rows from all messages, from the opt-outs at the provider, and from when each
// message of a broadcast was claimed: from then on, its person can answer it.
func recomputed(messages []*desk.Message, notices, claimed map[desk.ID]desk.Time) map[rowOf]rowWas {
	const week = desk.Time(7 * 24 * 60 * 60 * 1000)
	rows := map[rowOf]rowWas{}
	sent := map[desk.ID][]*desk.Message{} // by contact
	byID := map[desk.ID]*desk.Message{}
	for _, m := range messages {
		if m.Author.Type == desk.AuthorBroadcast {
			status := map[desk.DeliveryStatus]desk.RowStatus{desk.Sent: desk.RowSent, desk.Failed: desk.RowFailed, desk.Delivered: desk.RowDelivered, desk.Read: desk.RowRead}[m.Delivery]
			rows[rowOf{m.Author.ID, m.ContactID}] = rowWas{Status: status}
			sent[m.ContactID] = append(sent[m.ContactID], m)
			byID[m.ID] = m
		}
	}
	of := func(contact desk.ID, at desk.Time, quoted desk.ID) (m *desk.Message) {
		if m = byID[quoted]; m == nil {
			for _, before := range sent[contact] {
				if claimed[before.ID] < at && (m == nil || claimed[before.ID] > claimed[m.ID]) {
					m = before
				}
			}
		}
		if m == nil || at > claimed[m.ID]+week {
			return nil
		}
		return m
	}
	messages = slices.Clone(messages)
	slices.SortStableFunc(messages, func(x, y *desk.Message) int { return int(x.TS - y.TS) })
	for _, m := range messages {
		if m.Direction != desk.Inbound || m.Kind == desk.KindReaction {
			continue
		}
		about := of(m.ContactID, m.TS, m.ReplyTo)
		if about == nil {
			continue
		}
		at := rowOf{about.Author.ID, m.ContactID}
		row := rows[at]
		if row.Reply.At == 0 {
			row.Reply.At = m.TS
		}
		if m.Kind == desk.KindChoice && row.Reply.Choice == "" && (m.ReplyTo == about.ID || m.ReplyTo.IsZero()) {
			row.Reply.Choice, row.Reply.ChosenAt = m.Extra.Choice.Title, m.TS
		}
		row.Reply.OptedOut = row.Reply.OptedOut || m.Text == "STOP"
		rows[at] = row
	}
	for contact, at := range notices {
		if about := of(contact, at, desk.ID{}); about != nil {
			at := rowOf{about.Author.ID, contact}
			row := rows[at]
			row.Reply.OptedOut = true
			rows[at] = row
		}
	}
	return rows
}

// TestBroadcast_followed: statuses, replies and opt-outs come in random order, some twice, while
// the server is stopped and started again. Rows and counts are those that a computation from all
// messages gives.
func TestBroadcast_followed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	numbers := numbersFrom(0, *followedPeople)
	var list []*desk.Broadcast
	sent := map[string][]desk.BroadcastRow{} // by number
	claimed := map[desk.ID]desk.Time{}       // by message
	for range 3 {
		b := w.sendsTo(numbers...)
		list = append(list, b)
		for _, r := range w.rowsOf(b.ID) {
			sent[r.To] = append(sent[r.To], r)
			claimed[r.Message] = r.SentAt
		}
		w.clock.advance(3 * 24 * time.Hour)
	}
	w.clock.advance(10 * 24 * time.Hour)
	var updates []provider.Update
	notices := map[desk.ID]desk.Time{}
	for n, number := range numbers {
		rows := sent[number]
		for _, r := range rows {
			for _, s := range []desk.DeliveryStatus{desk.Sent, desk.Delivered, desk.Read, desk.Failed} {
				if rnd.IntN(2) == 0 {
					status := said(r.Attempt, s)
					updates = append(updates, provider.Update{Status: &status})
				}
			}
		}
		at := func() desk.Time { // from an hour before to nine days after one of the messages, mostly soon
			after := rnd.Int64N(9 * 24 * 3600)
			if rnd.IntN(2) == 0 {
				after = rnd.Int64N(3600)
			}
			return rows[rnd.IntN(len(rows))].SentAt/1000*1000 + desk.Time(after-600)*1000
		}
		if n%5 == 0 {
			notices[rows[0].Contact] = at()
			updates = append(updates, provider.Update{Choice: &provider.MarketingChoice{Number: number, Change: desk.OptOut, At: notices[rows[0].Contact]}})
		}
		for i := range rnd.IntN(6) {
			s := saying{At: at(), Text: "Hello"}
			switch rnd.IntN(5) {
			case 0:
				s.Taps = []string{"Yes", "No", "Later"}[rnd.IntN(3)]
			case 1:
				s.Text = ""
				s.Quotes = messageID(rows[0].Attempt)
			case 2:
				if n%5 > 0 {
					s.Text = "STOP"
				}
			}
			if rnd.IntN(2) == 0 {
				s.Quotes = messageID(rows[rnd.IntN(len(rows))].Attempt)
			}
			updates = append(updates, s.update(number, n*10+i))
		}
	}
	updates = append(updates, updates[:len(updates)/4]...) // some come twice
	rnd.Shuffle(len(updates), func(i, j int) { updates[i], updates[j] = updates[j], updates[i] })
	stops := max(1, len(updates)/(*followedStops+1))
	for i, part := 0, 0; i < len(updates); i += part {
		part = min(1+rnd.IntN(20), len(updates)-i)
		w.reports(updates[i : i+part]...)
		if i/stops != (i+part)/stops {
			w.stop()
			w.start(app.Bounds{})
			w.run()
		}
	}
	w.takeIn()
	want := recomputed(w.allMessages(), notices, claimed)
	shown := func() map[rowOf]rowWas {
		rows := map[rowOf]rowWas{}
		for _, b := range list {
			for _, r := range w.rowsOf(b.ID) {
				rows[rowOf{b.ID, r.Contact}] = rowWas{r.Status, r.Data.Reply}
			}
		}
		return rows
	}
	for left := w.Broadcasts.Behind(); left > 0; left = w.Broadcasts.Behind() { // a long run takes more than one wait
		waitFor(t, "the follower", func() bool { return w.Broadcasts.Behind() < left })
	}
	var got map[rowOf]rowWas
	defer func() {
		for of, row := range want {
			if got[of] != row {
				t.Errorf("the row is %+v, want %+v", got[of], row)
			}
		}
	}()
	waitFor(t, "the rows", func() bool {
		got = shown()
		return maps.Equal(got, want)
	})
	for _, b := range list {
		w.recounted(b)
	}
}

// TestBroadcast_replies: a merge takes replies along, an undo returns them, and a deletion
// removes them, from the rows and from the counts.
func TestBroadcast_replies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.sendsTo("905320000001", "905320000002")
	rows := w.rowsOf(b.ID)
	now := desk.TimeOf(w.clock.now().Add(time.Hour))
	w.clock.advance(2 * time.Hour)
	w.reports(saying{At: now, Taps: "Yes", Quotes: messageID(rows[0].Attempt)}.update("905320000001", 1))
	w.reports(saying{At: now, Text: "STOP"}.update("905320000002", 2))
	counts := func(what string, replied, optedOut int64, choices ...desk.ChoiceCount) {
		t.Helper()
		w.until(b.ID, what, func(b *desk.Broadcast) bool {
			c := b.Counts.As(b.State)
			return c.Replied == replied && c.OptedOut == optedOut && slices.Equal(c.Choices, choices)
		})
		w.recounted(b)
	}
	yes := desk.ChoiceCount{Title: "Yes", N: 1}
	counts("replies", 2, 1, yes)

	m, err := w.Merges.Do(t.Context(), w.operator(), merges.Request{Into: rows[1].Contact, From: rows[0].Contact})
	must(t, err)
	next := w.sendsTo("905320000001")
	later := desk.TimeOf(w.clock.now().Add(time.Hour))
	w.clock.advance(2 * time.Hour)
	w.reports(saying{At: later, Text: "Hello"}.update("905320000002", 3)) // the other number of the same person
	w.until(next.ID, "the reply to the next one", func(b *desk.Broadcast) bool { return b.Counts.Replied == 1 })
	counts("after the merge", 2, 1, yes)
	_, err = w.Merges.Undo(t.Context(), w.operator(), m.ID)
	must(t, err)
	for i, r := range w.rowsOf(b.ID) {
		if r.Contact != rows[i].Contact || r.Data.Reply.At == 0 || (r.Data.Reply.Choice == "Yes") != (i == 0) {
			t.Errorf("after the undo: %+v", r)
		}
	}
	w.deleteContact(rows[0].Contact)
	counts("after the deletion", 1, 1)
	if r := w.rowsOf(b.ID)[0]; r.Data.Reply != (desk.RowReply{}) || r.SentAt != 0 || !r.Channel.IsZero() {
		t.Errorf("after the deletion: %+v", r)
	}
}

// TestBroadcast_repliesInDoubt: somebody who answers a message in doubt has got it. What was
// certainly not sent has no reply.
func TestBroadcast_repliesInDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	numbers := []string{"905320000001", "905320000002"}
	for _, number := range numbers {
		w.put(phoned(number))
	}
	w.provider.plays(losesTheAnswer)
	b := w.sendsTo(numbers...)
	now := desk.TimeOf(w.clock.now().Add(time.Hour))
	w.clock.advance(2 * time.Hour)
	for n, number := range numbers {
		w.reports(saying{At: now, Taps: "Yes"}.update(number, n))
	}
	w.until(b.ID, "replies", func(b *desk.Broadcast) bool { return b.Counts.Replied == 2 })
	for i, r := range w.rowsOf(b.ID) {
		if r.Status != desk.RowInDoubt {
			t.Errorf("the row is %s", r.Status)
		}
		_, err := w.Release(t.Context(), w.operator(), r.Attempt, i == 0)
		must(t, err)
	}
	w.recounted(b)
	counts := w.broadcastNow(b.ID).Counts.As(desk.BroadcastDone)
	if counts.Replied != 1 || len(counts.Choices) != 1 || counts.ByStatus[desk.RowSent] != 1 || counts.ByStatus[desk.RowRefused] != 1 {
		t.Errorf("after the release: %+v", counts)
	}
	if r := w.rowsOf(b.ID)[1]; r.Data.Reply != (desk.RowReply{}) || r.SentAt != 0 {
		t.Errorf("released as not sent: %+v", r)
	}
}

// TestBroadcast_repliesMeanwhile: who answers before the outcome of the message is stored has
// replied, unless it turns out that it was not sent.
func TestBroadcast_repliesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	numbers := []string{"905320000001", "905320000002"}
	for _, number := range numbers {
		w.put(phoned(number))
	}
	rest := make(chan struct{})
	release := sync.OnceFunc(func() { close(rest) })
	defer release()
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		<-rest
		if d.Number == numbers[1] {
			return refuses(ctx, d)
		}
		return takes(ctx, d)
	})
	b := w.draft(numbers...)
	w.startBroadcast(b.ID)
	waitFor(t, "two messages under way", func() bool { return len(w.provider.sent()) == 2 })
	now := desk.TimeOf(w.clock.now()) + 1
	for n, number := range numbers {
		w.reports(saying{At: now, Text: "Yes"}.update(number, n))
	}
	w.until(b.ID, "replies", func(b *desk.Broadcast) bool { return b.Counts.Replied == 2 })
	release()
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if b.Counts.Replied != 1 || b.Counts.ByStatus[desk.RowSent] != 1 {
		t.Errorf("%+v", b.Counts)
	}
	w.recounted(b)
}
