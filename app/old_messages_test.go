package app_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/provider"
)

const oldAge = 730 * 24 * time.Hour

// TestForget_deleted: a workspace that is deleted while expired data are deleted is no failure.
func TestForget_deleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, forget := range map[string]func(context.Context) error{
		"all":        w.Forget,
		"messages":   func(ctx context.Context) error { return w.ForgetMessages(ctx, time.Hour) },
		"files":      func(ctx context.Context) error { return w.Media.ForgetOld(ctx, time.Hour) },
		"events":     func(ctx context.Context) error { return w.Feed.Forget(ctx, time.Hour) },
		"broadcasts": func(ctx context.Context) error { return w.Broadcasts.ForgetRows(ctx, time.Hour) },
	} {
		gone, err := w.CreateWorkspace(t.Context(), name, "")
		must(t, err)
		deleted := false
		w.store.spaces = sync.OnceFunc(func() {
			_, err := w.DeleteWorkspace(context.Background(), gone.ID, name, func(int) {})
			must(t, err)
			deleted = true
		})
		if err := forget(t.Context()); err != nil || !deleted {
			t.Errorf("%s: %v; deleted: %t", name, err, deleted)
		}
	}
}

// TestForgetMessages: old messages and notes are deleted with the files that only they have,
// and so are the conversations that they leave empty. Young ones stay. An open conversation
// loses only its preview. Nothing of this is an event.
func TestForgetMessages(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	now := func() desk.Time { return desk.TimeOf(w.clock.now()) }
	says := func(from, id, text string) *desk.Conversation {
		return w.hears(provider.InboundMessage{ExternalID: id, Number: from, Text: text, At: now()})
	}
	closes := func(conversation *desk.Conversation) {
		_, err := w.SetStatus(t.Context(), w.caller(), conversation.ID, desk.StatusClosed, nil)
		must(t, err)
	}
	open := says("905000000001", "open", "are you there?")
	gone := says("905000000002", "gone", "thank you")
	closes(gone)
	mixed := says("905000000003", "mixed 1", "the first")
	w.gets(c, "photo", has(picture), provider.InboundMedia{})
	_, err := w.Media.FetchNext(t.Context(), w.ws)
	must(t, err)
	photo := w.fileOf(w.writes(number, "with a photo").ID, "in-photo")
	noted := says("905000000004", "noted", "please call")
	closes(noted)
	upload, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader("\xff\xd8\xff\xe0 an upload"))
	must(t, err)
	_, err = w.replies("k", mixed.ID, func(r *desk.ReplyRequest) { r.Text, r.Attachment = "", &desk.SentAttachment{Media: upload.ID} })
	must(t, err)
	_, err = w.AddNote(t.Context(), w.caller(), mixed.ID, "an old note", desk.Field[desk.Reference]{})
	must(t, err)
	before := w.stands(open.ID)

	w.clock.advance(oldAge - time.Hour)
	must(t, w.ForgetMessages(t.Context(), oldAge))
	w.holds(5, 5, 7)
	says("905000000003", "mixed 2", "the second")
	_, err = w.AddNote(t.Context(), w.caller(), noted.ID, "called", desk.Field[desk.Reference]{})
	must(t, err)
	_, err = w.replies("k 2", mixed.ID, func(r *desk.ReplyRequest) { r.Text, r.Attachment = "", &desk.SentAttachment{Media: upload.ID} })
	must(t, err)
	newest := w.latest()
	w.clock.advance(2 * time.Hour)
	must(t, w.ForgetMessages(t.Context(), oldAge))

	if place := w.latest(); place != newest {
		t.Error("there are events")
	}
	w.holds(5, 4, 2)
	_, err = w.Conversation(t.Context(), w.caller(), gone.ID)
	refused(t, err, desk.NotFound)
	if got := w.conversation(open.ID); got.Preview != "" || got.Status != desk.StatusOpen || got.LastMessageAt != open.LastMessageAt {
		t.Errorf("the open one: %+v", got)
	}
	after := w.stands(open.ID)
	if before.Window = after.Window; after != before || after.Talk.Unread != 1 || after.Talk.WaitingSince == 0 {
		t.Errorf("state: %+v, want %+v", after, before)
	}
	if got := w.conversation(mixed.ID); got.Preview == "" {
		t.Errorf("the one with new messages: %+v", got)
	}
	if got := w.conversation(noted.ID); got.Preview != "" || got.Status != desk.StatusClosed {
		t.Errorf("the one with a note: %+v", got)
	}
	if notes, _, err := w.Notes(t.Context(), w.caller(), mixed.ID, "", 10); err != nil || len(notes) != 0 {
		t.Errorf("old notes: %v, %v", notes, err)
	}
	_, err = w.Media.Record(t.Context(), w.caller(), photo.ID)
	refused(t, err, desk.NotFound)
	must(t, w.Media.DropContents(t.Context()))
	_, err = w.file.OpenContent(t.Context(), w.ws, photo.SHA256)
	refused(t, err, desk.NotFound)
	if _, err := w.Media.Record(t.Context(), w.caller(), upload.ID); err != nil {
		t.Errorf("a file that a young message has: %v", err)
	}
	// A message that is delivered again is not stored again.
	if again := says("905000000002", "gone", "thank you"); again != nil {
		t.Errorf("stored again: %+v", again)
	}
	// What was unread can be marked, and what the person writes next is counted.
	if s, err := w.MarkRead(t.Context(), w.caller(), open.ID, desk.ID{}, false); err != nil || s.Talk.Unread != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	says("905000000001", "open 2", "hello?")
	if got := w.stands(open.ID); got.Talk.Unread != 1 || got.Talk.WaitingSince != before.Talk.WaitingSince || w.conversation(open.ID).Preview != "hello?" {
		t.Errorf("the next message: %+v", got)
	}
	// One that was emptied while it was open goes when it is closed.
	lone := w.writes(number, "soon gone")
	w.clock.advance(oldAge + time.Hour)
	must(t, w.ForgetMessages(t.Context(), oldAge))
	w.holds(5, 3, 0)
	closes(lone)
	must(t, w.ForgetMessages(t.Context(), oldAge))
	w.holds(5, 2, 0)
}

// TestForgetMessages_unread: messages that were deleted are marked with the others, and those
// after the marked one stay unread.
func TestForgetMessages_unread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	says := func(text string) *desk.Conversation {
		return w.hears(provider.InboundMessage{ExternalID: text, Number: number, Text: text, At: desk.TimeOf(w.clock.now())})
	}
	says("old")
	w.clock.advance(2 * time.Hour)
	says("2")
	w.clock.advance(time.Second)
	c := says("3")
	must(t, w.ForgetMessages(t.Context(), time.Hour))
	if s := w.stands(c.ID); s.Talk.Unread != 3 {
		t.Errorf("%+v", s)
	}
	second := w.messages(c.ID)[1]
	if s, err := w.MarkRead(t.Context(), w.caller(), c.ID, second.ID, false); err != nil || s.Talk.Unread != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestForgetMessages_in_doubt: a reply whose outcome is unknown outlives its conversation,
// which was closed and deleted. If it was sent, it is in the conversation that is open now.
func TestForgetMessages_in_doubt(t *testing.T) {
	t.Parallel()
	for _, another := range []bool{true, false} {
		w := newWorld(t)
		c := w.writes(number, "hello")
		w.provider.plays(losesTheAnswer)
		_, err := w.replies("k", c.ID)
		id := w.doubted(err)
		w.provider.plays(takes)
		_, err = w.SetStatus(t.Context(), w.caller(), c.ID, desk.StatusClosed, nil)
		must(t, err)
		w.clock.advance(2 * time.Hour)
		must(t, w.ForgetMessages(t.Context(), time.Hour))
		w.holds(1, 0, 0)
		want := c.ID
		if another {
			want = w.writes(number, "hello again").ID
		}
		at, err := w.Release(t.Context(), w.operator(), id, true)
		must(t, err)
		if list := w.messages(want); at.Plan.Conversation != want || !slices.ContainsFunc(list, func(m *desk.Message) bool { return m.Direction == desk.Outbound }) {
			t.Errorf("%+v: %+v", at, list)
		}
		if got := w.conversation(want); got.Status != desk.StatusOpen {
			t.Errorf("%+v", got)
		}
	}
}

// TestForgetMessages_clocks: if the server's or the database's clock is far ahead, no message
// is deleted.
func TestForgetMessages_clocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writes(number, "hello")
	for _, ahead := range []struct {
		server, database time.Duration
		messages         int
	}{{2 * time.Hour, 0, 1}, {0, 2 * time.Hour, 1}, {2 * time.Hour, 2 * time.Hour, 0}} {
		w.clock.server.Store(int64(ahead.server))
		w.store.ahead.Store(ahead.database.Milliseconds())
		must(t, w.ForgetMessages(t.Context(), time.Hour))
		w.holds(1, 1, ahead.messages)
	}
}
