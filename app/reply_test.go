package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// replies sends a free message into a conversation, as a call of the API does.
func (w *world) replies(key string, c desk.ID, edits ...func(*desk.ReplyRequest)) (app.SendAnswer, error) {
	r := &desk.ReplyRequest{Key: key, Conversation: c, Text: "Two left."}
	for _, edit := range edits {
		edit(r)
	}
	r.Hash = w.BodyHash(fmt.Appendf(nil, "%s %+v", c, *r))
	return w.Reply(context.WithoutCancel(w.t.Context()), w.caller(), r, desk.ID{0xEE}, nil)
}

func (w *world) enabled(on bool) {
	w.t.Helper()
	_, err := w.EditChannel(w.t.Context(), w.operator(), w.channel, app.ChannelEdit{Enabled: &on})
	must(w.t, err)
}

// opens receives a message from a number. This opens the window.
func (w *world) opens(from string) *desk.Conversation {
	w.t.Helper()
	return w.hears(provider.InboundMessage{ExternalID: "wamid." + w.clock.newID().String(), Number: from, Text: "How much?", At: desk.TimeOf(w.clock.now())})
}

func TestReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.opens(number)
	asked := w.messages(c.ID)[0]
	answer, err := w.replies("k", c.ID, func(r *desk.ReplyRequest) {
		r.Buttons, r.ReplyTo = []desk.Button{{ID: "a", Title: "Yes"}}, desk.Field[desk.ID]{Set: true, Value: asked.ID}
		r.Member = refer("grace@example.com")
	})
	must(t, err)
	d := w.provider.sent()[0]
	if d.Number != number || d.Text != "Two left." || d.Quote != asked.ExternalID || len(d.Buttons) != 1 || d.Template != nil {
		t.Errorf("dispatched: %+v", d)
	}
	m := w.messages(c.ID)[0]
	if m.Kind != desk.KindButtons || m.Author != (desk.Author{Type: desk.AuthorMember, ID: w.grace.ID, Name: "Grace Hopper"}) || m.ReplyTo != asked.ID ||
		m.Extra.Buttons[0].Title != "Yes" || m.Delivery != desk.Sent || m.OptIn != nil {
		t.Errorf("stored: %+v", m)
	}
	stored := w.conversation(c.ID)
	if stored.AssignedMember != w.grace.ID || stored.AssignedVia != desk.ViaMember || stored.Preview != "Two left." {
		t.Errorf("conversation: %+v", stored)
	}
	if s := w.stands(c.ID); s.Talk.Unread != 0 || s.Talk.WaitingSince != 0 || s.Talk.Read.ID != m.ID {
		t.Errorf("state: %+v", s)
	}
	again, err := w.replies("k", c.ID, func(r *desk.ReplyRequest) {
		r.Buttons, r.ReplyTo = []desk.Button{{ID: "a", Title: "Yes"}}, desk.Field[desk.ID]{Set: true, Value: asked.ID}
		r.Member = refer("grace@example.com")
	})
	if err != nil || !again.Replayed || !bytes.Equal(again.Body, answer.Body) || len(w.provider.sent()) != 1 {
		t.Errorf("again: %+v %v", again, err)
	}
	if _, err := w.replies("k", c.ID); !desk.IsType(err, desk.IdempotencyKeyReused) {
		t.Errorf("another reply with the key: %v", err)
	}
	// A person who has opted out can still be answered. An assigned conversation keeps its
	// assignee.
	w.hears(provider.InboundMessage{ExternalID: "stop", Number: number, Text: "STOP", At: desk.TimeOf(w.clock.now())})
	if _, err := w.replies("k2", c.ID, func(r *desk.ReplyRequest) { r.Member = refer(w.ada.ID.String()) }); err != nil {
		t.Error(err)
	}
	if stored := w.conversation(c.ID); stored.AssignedMember != w.grace.ID {
		t.Errorf("conversation: %+v", stored)
	}
}

// TestReply_receipt: like marking, a reply sends one read receipt, for the newest message.
// This also holds if a reply in doubt later proves to be sent. An automatic reply sends no
// receipt.
func TestReply_receipt(t *testing.T) {
	t.Parallel()
	w, courier := newCourier(t)
	courier.deaf = 1
	c := w.opens(number)
	newest := w.hears(provider.InboundMessage{ExternalID: "newest", Number: number, Text: "Well?", At: desk.TimeOf(w.clock.now())})
	if newest.ID != c.ID {
		t.Fatal("another conversation")
	}
	_, err := w.replies("k", c.ID)
	must(t, err)
	waitFor(t, "the receipt, which is not heard at first", func() bool { return slices.Equal(courier.receipts(), []string{"newest", "newest"}) })
	_, err = w.replies("again", c.ID) // all messages are read already
	must(t, err)

	lost := w.hears(provider.InboundMessage{ExternalID: "lost", Number: "905321110003", Text: "Well?", At: desk.TimeOf(w.clock.now())})
	w.provider.plays(func(context.Context, provider.Dispatch) (provider.Receipt, error) {
		return provider.Receipt{}, errors.New("lost")
	})
	_, err = w.replies("in doubt", lost.ID)
	refused(t, err, desk.SendOutcomeUnknown)
	w.provider.plays(takes)
	_, err = w.Release(t.Context(), w.operator(), w.holder("in doubt").ID, true)
	must(t, err)
	waitFor(t, "the receipt of what was sent", func() bool { return slices.Contains(courier.receipts(), "lost") })
	if got := courier.receipts(); len(got) != 3 {
		t.Errorf("receipts: %v", got)
	}
}

// TestReply_refused: a refusal stores nothing and frees the key. If two checks fail, the
// earlier one gives the error.
func TestReply_refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.opens(number)
	other := w.opens("905321110011")
	ours := w.messages(other.ID)[0].ID
	nobody := refer("nobody@example.com")
	set := func(status desk.ConversationStatus) func() {
		return func() { w.status(c.ID, status) }
	}
	checks := []struct {
		name   string
		breaks func()
		mends  func()
		edit   func(*desk.ReplyRequest)
		want   desk.ErrorType
		at     string
	}{
		{"conversation", nil, nil, func(r *desk.ReplyRequest) { r.Conversation = desk.ID{9} }, desk.NotFound, ""},
		{"status", set(desk.StatusClosed), set(desk.StatusOpen), nil, desk.ConversationNotOpen, ""},
		{"member", nil, nil, func(r *desk.ReplyRequest) { r.Member = nobody }, desk.InvalidRequest, "/member"},
		{"reply_to", nil, nil, func(r *desk.ReplyRequest) { r.ReplyTo = desk.Field[desk.ID]{Set: true, Value: ours} }, desk.InvalidRequest, "/reply_to"},
		{"channel", func() { w.enabled(false) }, func() { w.enabled(true) }, nil, desk.ChannelNotUsable, ""},
		{"window", func() { w.clock.advance(24 * time.Hour) }, func() { w.clock.advance(-24 * time.Hour) }, nil, desk.WindowClosed, ""},
	}
	for i, one := range checks {
		before := w.story()
		var edits []func(*desk.ReplyRequest)
		for _, check := range checks[i:min(i+2, len(checks))] { // the request fails this check and the next one
			if check.breaks != nil {
				check.breaks()
			}
			if check.edit != nil {
				edits = append(edits, check.edit)
			}
		}
		_, err := w.replies("k", c.ID, edits...)
		if e := desk.AsError(err); err == nil || e.Type != one.want || e.At != one.at {
			t.Errorf("%s: %v", one.name, err)
		}
		for _, check := range checks[i:min(i+2, len(checks))] {
			if check.mends != nil {
				check.mends()
			}
		}
		if after := w.story(); after != before {
			t.Errorf("%s: something was stored:\n%s\nwas\n%s", one.name, after, before)
		}
	}
	if len(w.provider.sent()) != 0 || len(w.attempts()) != 0 {
		t.Errorf("sent: %v, attempts %v", w.provider.sent(), w.attempts())
	}
	if _, err := w.replies("k", c.ID); err != nil {
		t.Errorf("the key is not free: %v", err)
	}
}

// TestReply_changed: changes that are made after the checks, before the attempt holds the
// key, also count.
func TestReply_changed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world, *desk.Conversation)
		want   desk.ErrorType // "": the reply is sent
	}{
		"closed":   {func(w *world, c *desk.Conversation) { w.status(c.ID, desk.StatusClosed) }, desk.ConversationNotOpen},
		"archived": {func(w *world, c *desk.Conversation) { w.status(c.ID, desk.StatusArchived) }, desk.ConversationNotOpen},
		"expired":  {func(w *world, _ *desk.Conversation) { w.clock.advance(24 * time.Hour) }, desk.WindowClosed},
		"elsewhere": {func(w *world, _ *desk.Conversation) {
			w.hears(provider.InboundMessage{ExternalID: "from another", Number: "905321110099", UserID: "TR.1", Text: "Hi", At: desk.TimeOf(w.clock.now())})
		}, ""},
		"deleted":              {func(w *world, c *desk.Conversation) { w.deleteContact(c.ContactID) }, desk.NotFound},
		"number changed":       {func(w *world, c *desk.Conversation) { w.shuts(c, desk.NumberChanged) }, desk.WindowClosed},
		"shut by the provider": {func(w *world, c *desk.Conversation) { w.shuts(c, desk.ByTheProvider) }, desk.WindowClosed},
		"closed, and open again": {func(w *world, c *desk.Conversation) {
			w.status(c.ID, desk.StatusClosed)
			w.status(c.ID, desk.StatusOpen)
		}, ""},
		"closed, and another is open": {func(w *world, c *desk.Conversation) {
			w.status(c.ID, desk.StatusClosed)
			w.opens(number)
		}, desk.ConversationNotOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			v := w.opens(number)
			first := true
			w.store.in(1, begin, func() error {
				if first {
					first = false
					c.change(w, v)
				}
				return nil
			})
			_, err := w.replies("k", v.ID)
			if c.want == "" && err != nil || c.want != "" && !desk.IsType(err, c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if n := len(w.provider.sent()); (n == 1) != (c.want == "") {
				t.Errorf("%d were sent", n)
			}
		})
	}
}

// shuts closes the window of a conversation's contact, like a report of the provider.
func (w *world) shuts(c *desk.Conversation, by desk.WindowReason) {
	w.t.Helper()
	must(w.t, w.file.InTx(w.t.Context(), w.ws, func(tx store.Tx) error {
		window, err := tx.Window(w.channel, c.ContactID)
		window.Shut(desk.TimeOf(w.clock.now())+5, by)
		return errors.Join(err, tx.PutWindow(w.channel, c.ContactID, window))
	}))
}

// TestReply_fileDeleted: if a file is deleted while it is handed over, because its person was
// deleted, nothing is sent. A concurrent deletion never takes the file of a message.
func TestReply_fileDeleted(t *testing.T) {
	t.Parallel()
	w, courier := newCourier(t)
	first, second := w.opens(number), w.opens("905321110011")
	file, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
	must(t, err)
	sent := &desk.SentAttachment{Media: file.ID}
	attached := func(r *desk.ReplyRequest) { r.Text, r.Attachment = "", sent }
	_, err = w.replies("first", first.ID, attached)
	must(t, err)
	w.clock.advance(30 * time.Minute)
	must(t, w.file.PutMediaRef(t.Context(), w.ws, file.ID, w.channel, "", 0))
	courier.uploading = sync.OnceFunc(func() {
		w.deleteContact(first.ContactID)
		must(t, w.Media.DropContents(t.Context()))
	})
	_, err = w.replies("second", second.ID, attached)
	refused(t, err, desk.NotFound)
	if len(w.provider.sent()) != 1 || len(w.messages(second.ID)) != 1 {
		t.Errorf("%d were sent", len(w.provider.sent()))
	}
	_, err = w.replies("third", second.ID, attached)
	refused(t, err, desk.NotFound)
}

// TestReply_fileOfAnother: a reply can have an upload, or a file that its own person sent, but
// not a file that another person sent.
func TestReply_fileOfAnother(t *testing.T) {
	t.Parallel()
	w, courier := newCourier(t)
	own, sent := w.gets(courier, "1", has(picture), provider.InboundMedia{})
	_, err := w.Media.FetchNext(t.Context(), w.ws)
	must(t, err)
	uploaded, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
	must(t, err)
	another := w.opens("905321110011")
	replies := func(key string, c *desk.Conversation, file *desk.Media) error {
		_, err := w.replies(key, c.ID, func(r *desk.ReplyRequest) { r.Text, r.Attachment = "", &desk.SentAttachment{Media: file.ID} })
		return err
	}
	refused(t, replies("theirs", another, sent), desk.NotFound)
	if list := w.messages(another.ID); len(list) != 1 || len(w.provider.sent()) != 0 {
		t.Errorf("it is sent: %+v", list)
	}
	must(t, replies("their own", own, sent))
	must(t, replies("an upload", another, uploaded))
}

// TestReply_once: concurrent calls, and retries after lost answers, send one message.
func TestReply_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.opens(number)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := w.replies("k", c.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(w.provider.sent()); n != 1 {
		t.Errorf("%d were sent", n)
	}
	lost := w.opens("905321110003")
	w.provider.plays(func(context.Context, provider.Dispatch) (provider.Receipt, error) {
		return provider.Receipt{}, errors.New("lost")
	})
	for range 2 {
		if _, err := w.replies("lost", lost.ID); !desk.IsType(err, desk.SendOutcomeUnknown) {
			t.Errorf("the answer is lost: %v", err)
		}
	}
	at := w.holder("lost")
	if at.Plan.Reply == nil || at.Plan.Text != "Two left." || at.Address() != "+905321110003" {
		t.Errorf("in doubt: %+v", at)
	}
	if _, err := w.Release(t.Context(), w.operator(), at.ID, true); err != nil {
		t.Fatal(err)
	}
	m := w.messages(lost.ID)[0]
	if m.Text != "Two left." || m.Author.Type != desk.AuthorKey || m.Kind != desk.KindText {
		t.Errorf("released: %+v", m)
	}
	if at := w.holder("lost"); at.Plan.Text != "" || at.Plan.Reply.Quote != "" {
		t.Errorf("settled: %+v", at.Plan)
	}
}

// TestReply_refusedByProvider: if the provider says that the window is closed, parley
// closes it.
func TestReply_refusedByProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.opens(number)
	w.provider.plays(func(context.Context, provider.Dispatch) (provider.Receipt, error) {
		return provider.Receipt{}, &desk.Refusal{Type: desk.WindowClosed, Message: "no", Failure: &desk.Failure{Code: 131047, Title: "Re-engagement message"}}
	})
	_, err := w.replies("k", c.ID)
	if e := desk.AsError(err); e.Type != desk.WindowClosed || e.Details.(desk.WindowState).Reason != desk.ByTheProvider || e.Details.(desk.WindowState).ClosesAt == 0 {
		t.Errorf("%v", err)
	}
	if s := w.stands(c.ID); s.Window.Open || s.Window.Reason != desk.ByTheProvider {
		t.Errorf("state: %+v", s)
	}
	_, err = w.replies("k", c.ID)
	var e *desk.Error
	if !errors.As(err, &e) || e.Details.(desk.WindowState).Reason != desk.ByTheProvider {
		t.Errorf("%v", err)
	}
	w.clock.advance(time.Second)
	w.provider.plays(takes)
	w.opens(number)
	if _, err := w.replies("k", c.ID); err != nil {
		t.Errorf("once the person has written: %v", err)
	}
	if kinds := slices.Collect(func(yield func(desk.MessageKind) bool) {
		for _, m := range w.messages(c.ID) {
			if !yield(m.Kind) {
				return
			}
		}
	}); len(kinds) != 3 {
		t.Errorf("messages: %v", kinds)
	}
}

// TestReply_seen: a reply that was written while seeing an old state of the conversation is
// not sent, and its key stays free.
func TestReply_seen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.opens(number)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	reply := func(seen *app.Seen) error {
		r := &desk.ReplyRequest{Key: "k", Conversation: c.ID, Text: "Two left."}
		_, err := w.Reply(t.Context(), p, r, desk.ID{0xEE}, seen)
		return err
	}
	see := func() *app.Seen {
		now := w.conversation(c.ID)
		return &app.Seen{Message: w.messages(c.ID)[0].ID, Assignee: now.AssignedMember, Status: now.Status}
	}
	old := see()
	w.opens(number)
	refused(t, reply(old), desk.Changed)
	old = see()
	_, err = w.Assign(t.Context(), w.operator(), c.ID, "grace@example.com", nil)
	must(t, err)
	refused(t, reply(old), desk.Changed)
	if n := len(w.provider.sent()); n != 0 {
		t.Errorf("%d sent", n)
	}
	must(t, reply(see()))
	must(t, reply(old)) // a repeated request gets its answer
	if now := w.conversation(c.ID); len(w.provider.sent()) != 1 || now.AssignedMember != w.grace.ID {
		t.Errorf("%d sent, and the conversation is %+v", len(w.provider.sent()), now)
	}
}

// TestReply_serverClock: a wrong clock of a server neither closes a window nor keeps one
// open, because the database's clock counts.
func TestReply_serverClock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server time.Duration // how far the server's clock is ahead of the database's
		wrote  time.Duration // how long ago the person wrote
		want   desk.ErrorType
	}{
		"ahead":                {30 * time.Hour, time.Hour, ""},
		"ahead, and expired":   {30 * time.Hour, 24 * time.Hour, desk.WindowClosed},
		"behind":               {-30 * time.Hour, time.Hour, ""},
		"behind, and expired":  {-30 * time.Hour, 24 * time.Hour, desk.WindowClosed},
		"ahead, and never was": {30 * time.Hour, 0, desk.WindowClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var c *desk.Conversation
			if tc.wrote == 0 {
				w.sent("first")
				list, _, err := w.Conversations(t.Context(), w.caller(), desk.ConversationFilter{}, "", 1)
				must(t, err)
				c = list[0]
			} else {
				c = w.hears(provider.InboundMessage{ExternalID: "1", Number: number, Text: "Hi", At: desk.TimeOf(w.clock.now().Add(-tc.wrote))})
			}
			before := len(w.provider.sent())
			w.clock.server.Store(int64(tc.server))
			_, err := w.replies("k", c.ID)
			if tc.want == "" {
				must(t, err)
			} else {
				refused(t, err, tc.want)
			}
			if n := len(w.provider.sent()) - before; (n == 1) != (tc.want == "") {
				t.Errorf("%d were sent", n)
			}
		})
	}
}

// TestReply_overtaken: something changes while the provider has the message. The message is
// sent once; the change may only affect where it is stored.
func TestReply_overtaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*world, *desk.Conversation)
		check  func(*testing.T, *world, *desk.Conversation)
	}{
		"closed": {func(w *world, c *desk.Conversation) { w.status(c.ID, desk.StatusClosed) }, func(t *testing.T, w *world, c *desk.Conversation) {
			if got := w.conversation(c.ID); got.Status != desk.StatusClosed || !got.AssignedMember.IsZero() || len(w.messages(c.ID)) != 2 {
				t.Errorf("%+v", got)
			}
		}},
		"closed, and the person writes again": {func(w *world, c *desk.Conversation) {
			w.status(c.ID, desk.StatusArchived)
			w.opens(number)
		}, func(t *testing.T, w *world, c *desk.Conversation) {
			if got := w.messages(c.ID); len(got) != 2 || w.conversation(c.ID).Status != desk.StatusArchived {
				t.Errorf("%+v", got)
			}
			w.holds(1, 2, 3)
		}},
		"taken by another": {func(w *world, c *desk.Conversation) {
			_, err := w.Assign(w.t.Context(), w.operator(), c.ID, w.ada.ID.String(), nil)
			must(w.t, err)
		}, func(t *testing.T, w *world, c *desk.Conversation) {
			if got := w.conversation(c.ID); got.AssignedMember != w.ada.ID {
				t.Errorf("%+v", got)
			}
		}},
		"the member leaves": {func(w *world, _ *desk.Conversation) {
			must(w.t, w.RemoveMember(w.t.Context(), w.operator(), w.grace.ID))
		}, func(t *testing.T, w *world, c *desk.Conversation) {
			if got := w.conversation(c.ID); !got.AssignedMember.IsZero() || w.messages(c.ID)[0].Author.Name != "Grace Hopper" {
				t.Errorf("%+v", got)
			}
		}},
		"the person writes": {func(w *world, _ *desk.Conversation) { w.opens(number) }, func(t *testing.T, w *world, c *desk.Conversation) {
			if s := w.stands(c.ID); s.Talk.WaitingSince == 0 {
				t.Errorf("nobody waits, although the person wrote after the reply had begun: %+v", s)
			}
		}},
		"the person is deleted": {func(w *world, c *desk.Conversation) { w.deleteContact(c.ContactID) }, func(t *testing.T, w *world, _ *desk.Conversation) {
			w.holds(0, 0, 0)
			at := w.holder("k")
			if at == nil || at.Phase != desk.Done || !at.Erased || at.Plan.Number != "" || at.Plan.Text != "" {
				t.Errorf("%+v", at)
			}
		}},
		"the person is deleted, and writes again": {func(w *world, c *desk.Conversation) {
			w.deleteContact(c.ContactID)
			w.opens(number)
		}, func(t *testing.T, w *world, _ *desk.Conversation) { w.holds(1, 1, 1) }},
		"the number changes": {func(w *world, c *desk.Conversation) { w.shuts(c, desk.NumberChanged) }, func(t *testing.T, w *world, c *desk.Conversation) {
			_, err := w.replies("next", c.ID)
			if e := desk.AsError(err); e.Type != desk.WindowClosed || e.Details.(desk.WindowState).Reason != desk.NumberChanged {
				t.Errorf("%v", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.opens(number)
			once := sync.OnceFunc(func() { tc.change(w, c) })
			w.provider.plays(meanwhile(func(provider.Dispatch) { once() }, takes))
			byGrace := func(r *desk.ReplyRequest) { r.Member = refer("grace@example.com") }
			first, err := w.replies("k", c.ID, byGrace)
			must(t, err)
			tc.check(t, w, c)
			again, err := w.replies("k", c.ID, byGrace)
			if err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) {
				t.Errorf("again: %s, %v; first %s", again.Body, err, first.Body)
			}
			if n := len(w.provider.sent()); n != 1 {
				t.Errorf("%d were sent", n)
			}
		})
	}
}

// TestReply_refusedAfterDeletion: a person is deleted while a reply is on its way, and the
// provider refuses the reply. No data of the person is stored again.
func TestReply_refusedAfterDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.opens(number)
	w.provider.plays(meanwhile(func(provider.Dispatch) { w.deleteContact(c.ContactID) }, func(context.Context, provider.Dispatch) (provider.Receipt, error) {
		return provider.Receipt{}, &desk.Refusal{Type: desk.WindowClosed, Message: "no", Failure: &desk.Failure{Code: 131047, Title: "Re-engagement message"}}
	}))
	_, err := w.replies("k", c.ID)
	refused(t, err, desk.WindowClosed)
	ref := desk.WindowRef{Channel: w.channel, Contact: c.ContactID}
	windows, err := w.file.Windows(t.Context(), w.ws, []desk.WindowRef{ref})
	must(t, err)
	if len(windows) != 0 {
		t.Errorf("the window of a deleted person is stored: %+v", windows)
	}
}

// TestReply_races: if two members answer the same message at once, one reply is sent.
func TestReply_races(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	members := make([]desk.Principal, 2)
	for i, id := range []desk.ID{w.ada.ID, w.grace.ID} {
		var err error
		members[i], err = w.Access.Member(t.Context(), w.ws, id)
		must(t, err)
	}
	for n := range 30 {
		c := w.opens(fmt.Sprint(905321112200 + n))
		if n%2 == 0 { // the conversation is assigned
			_, err := w.Assign(t.Context(), w.operator(), c.ID, "grace@example.com", nil)
			must(t, err)
		}
		seen := &app.Seen{Message: w.messages(c.ID)[0].ID, Assignee: w.conversation(c.ID).AssignedMember}
		var errs [2]error
		var both sync.WaitGroup
		for i, p := range members {
			both.Go(func() {
				r := &desk.ReplyRequest{Key: fmt.Sprint("k", n, i), Hash: [32]byte{byte(i)}, Conversation: c.ID, Text: "Two left."}
				_, errs[i] = w.Reply(t.Context(), p, r, desk.ID{0xEE}, seen)
			})
		}
		both.Wait()
		winner := slices.Index(errs[:], nil)
		if winner < 0 || len(w.messages(c.ID)) != 2 {
			t.Fatalf("%d messages after %v", len(w.messages(c.ID)), errs)
		}
		refused(t, errs[1-winner], desk.Changed)
	}
}
