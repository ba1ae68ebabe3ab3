package app_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"reflect"
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

// TestReceive: the first message of a person creates a contact and an open conversation.
// Further messages go into the same conversation.
func TestReceive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.ReceiveSimulated(t.Context(), w.operator(), w.channel, "0532 111 00 10", " Ann ", " Hi\n there ")
	must(t, err)
	m := w.messages(c.ID)[0]
	if m.Direction != desk.Inbound || m.Text != "Hi\n there" || m.Delivery != "" || m.OptIn != nil || m.ExternalID == "" || m.ChannelID != w.channel {
		t.Errorf("message: %+v", m)
	}
	if c.Status != desk.StatusOpen || c.Preview != "Hi there" || c.LastMessageAt != m.TS || !c.AssignedMember.IsZero() || c.AssignedVia != "" {
		t.Errorf("conversation: %+v", c)
	}
	if person := w.contact(c.ContactID); person.Name != "Ann" || person.Phone != "905321110010" {
		t.Errorf("contact: %+v", person)
	}
	next, err := w.ReceiveSimulated(t.Context(), w.operator(), w.channel, "+905321110010", "Another", "Hello?")
	must(t, err)
	if next.ID != c.ID || next.Preview != "Hello?" || w.contact(c.ContactID).Name != "Ann" {
		t.Errorf("the next: %+v", next)
	}
	channel := w.addChannel()
	elsewhere, err := w.ReceiveSimulated(t.Context(), w.operator(), channel, "+905321110010", "", "Here too")
	must(t, err)
	if elsewhere.ID == c.ID || elsewhere.ContactID != c.ContactID {
		t.Errorf("on another channel: %+v", elsewhere)
	}
	w.holds(1, 2, 3)
}

func TestReceive_refuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		channel          desk.ID
		from, name, text string
		want             desk.ErrorType
	}{
		"no channel": {desk.ID{9}, number, "", "Hi", desk.NotFound},
		"no number":  {w.channel, "call me", "", "Hi", desk.InvalidRequest},
		"no text":    {w.channel, number, "", " ", desk.InvalidRequest},
		"a bad name": {w.channel, number, "\x00", "Hi", desk.InvalidRequest},
	} {
		_, err := w.ReceiveSimulated(t.Context(), w.operator(), c.channel, c.from, c.name, c.text)
		if !desk.IsType(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.Receive(t.Context(), w.ws, desk.ID{9}, provider.InboundMessage{ExternalID: "x", Number: number}); !desk.IsType(err, desk.NotFound) {
		t.Errorf("on no channel: %v", err)
	}
	w.holds(0, 0, 0)
}

// TestReceive_twice: a repeated message adds nothing, even if the conversation was closed
// meanwhile.
func TestReceive_twice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := provider.InboundMessage{ExternalID: "wamid.in", Number: number, Text: "Hi", At: desk.TimeOf(w.clock.now())}
	first, err := w.Receive(t.Context(), w.ws, w.channel, in)
	must(t, err)
	w.status(first.ID, desk.StatusClosed)
	again, err := w.Receive(t.Context(), w.ws, w.channel, in)
	must(t, err)
	if again.ID != first.ID || again.Status != desk.StatusClosed {
		t.Errorf("again: %+v", again)
	}
	w.holds(1, 1, 1)
}

// status changes the status of a conversation.
func (w *world) status(id desk.ID, s desk.ConversationStatus) *desk.Conversation {
	w.t.Helper()
	c, err := w.SetStatus(context.Background(), w.caller(), id, s, nil)
	must(w.t, err)
	return c
}

// TestConversation_ended: neither a message of the person nor a send goes into a closed or
// archived conversation.
func TestConversation_ended(t *testing.T) {
	t.Parallel()
	for _, ended := range []desk.ConversationStatus{desk.StatusClosed, desk.StatusArchived} {
		t.Run(string(ended), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.writes(number, "Hi")
			w.status(first.ID, ended)
			second := w.writes(number, "Hi again")
			if second.ID == first.ID || second.ContactID != first.ContactID {
				t.Errorf("inbound goes on in %+v", second)
			}
			w.status(second.ID, ended)
			m := w.sent("k")
			if m.Existing || m.Conversation.ID == second.ID {
				t.Errorf("outbound goes on in %+v", m.Conversation)
			}
			if got := w.conversation(first.ID); got.Status != ended || got.Preview != "Hi" {
				t.Errorf("the first has become %+v", got)
			}
			w.holds(1, 3, 3)
		})
	}
}

// TestConversation_goes_to_the_owner: a new conversation is assigned to the contact's owner,
// unless the send names a member. An open conversation keeps its assignee.
func TestConversation_goes_to_the_owner(t *testing.T) {
	t.Parallel()
	type holder struct {
		member string
		via    desk.AssignedVia
	}
	for name, c := range map[string]struct {
		do   func(*world) desk.Conversation
		want holder
	}{
		"inbound":                  {func(w *world) desk.Conversation { return *w.writes(number, "Hi") }, holder{"Ada Lovelace", desk.ViaOwner}},
		"outbound":                 {func(w *world) desk.Conversation { return w.sent("k").Conversation }, holder{"Ada Lovelace", desk.ViaOwner}},
		"outbound to another":      {func(w *world) desk.Conversation { return w.sent("k", assignedTo("GRACE@example.com")).Conversation }, holder{"Grace Hopper", desk.ViaMember}},
		"outbound to the owner":    {func(w *world) desk.Conversation { return w.sent("k", assignedTo("ada@example.com")).Conversation }, holder{"Ada Lovelace", desk.ViaMember}},
		"outbound, and then again": {func(w *world) desk.Conversation { w.sent("k"); return w.sent("2").Conversation }, holder{"Ada Lovelace", desk.ViaOwner}},
		"outbound over a holder": {func(w *world) desk.Conversation {
			w.sent("k", assignedTo(w.ada.ID.String()))
			return w.sent("2", assignedTo(w.grace.ID.String())).Conversation
		}, holder{"Grace Hopper", desk.ViaMember}},
		"outbound beside a holder": {func(w *world) desk.Conversation {
			w.sent("k", assignedTo("grace@example.com"))
			return w.sent("2").Conversation
		}, holder{"Grace Hopper", desk.ViaMember}},
		"the owner of a profile": {func(w *world) desk.Conversation {
			return w.sent("k", to("905321110099"), profile(ownedBy("grace@example.com"))).Conversation
		}, holder{"Grace Hopper", desk.ViaOwner}},
		"an owner who comes later": {func(w *world) desk.Conversation {
			open := w.writes("905321110099", "Hi")
			w.put(phoned("905321110099"), ownedBy("ada@example.com"))
			return *w.conversation(open.ID)
		}, holder{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(phoned(number), ownedBy("ada@example.com"))
			answered := c.do(w)
			stored := w.conversation(answered.ID)
			var member string
			if m := w.caller().Settings.Member(stored.AssignedMember); m != nil {
				member = m.Name
			}
			if got := (holder{member, stored.AssignedVia}); got != c.want || asOfMessages(*stored) != asOfMessages(answered) {
				t.Errorf("held by %v, want %v; answered %+v", got, c.want, answered)
			}
		})
	}
}

func TestAssign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes(number, "Hi")
	for _, to := range []struct {
		ref  string
		want desk.ID
	}{{"ADA@example.com", w.ada.ID}, {"ada@example.com", w.ada.ID}, {w.grace.ID.String(), w.grace.ID}} {
		got, err := w.Assign(t.Context(), w.caller(), c.ID, to.ref, nil)
		must(t, err)
		if stored := w.conversation(c.ID); *stored != *got || stored.AssignedMember != to.want || stored.AssignedVia != desk.ViaMember {
			t.Errorf("%s: %+v, stored %+v", to.ref, got, stored)
		}
	}
	_, err := w.Assign(t.Context(), w.caller(), c.ID, "nobody@example.com", nil)
	refused(t, err, desk.InvalidRequest)
	_, err = w.Assign(t.Context(), w.caller(), desk.ID{9}, "nobody@example.com", nil)
	refused(t, err, desk.NotFound)
	p := w.caller()
	_, err = w.RevokeKey(t.Context(), w.operator(), w.keyID)
	must(t, err)
	_, err = w.Assign(t.Context(), p, c.ID, "ada@example.com", nil)
	refused(t, err, desk.Unauthorized)
	_, err = w.SetStatus(t.Context(), p, c.ID, desk.StatusClosed, nil)
	refused(t, err, desk.Unauthorized)
	if stored, err := w.Conversation(t.Context(), p, c.ID); err != nil || stored.AssignedMember != w.grace.ID || stored.Status != desk.StatusOpen {
		t.Errorf("in the end: %+v, %v", stored, err)
	}
}

// TestSeen: an action that a member chose while seeing an old state is refused, and the
// refusal has the new state. An action that would change nothing is not refused.
func TestSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	c := w.writes(number, "Hi")
	see := func() *app.Seen {
		t.Helper()
		list, _, err := w.Messages(t.Context(), p, c.ID, "", 1)
		must(t, err)
		return &app.Seen{Message: list[0].ID, Assignee: w.conversation(c.ID).AssignedMember}
	}
	changed := func(_ *desk.Conversation, err error) {
		t.Helper()
		refused(t, err, desk.Changed)
		if now := w.conversation(c.ID); !reflect.DeepEqual(desk.AsError(err).Details, now) {
			t.Errorf("details %+v, want %+v", desk.AsError(err).Details, now)
		}
	}
	done := func(_ *desk.Conversation, err error) {
		t.Helper()
		must(t, err)
	}
	old := see()
	w.writes(number, "And this")
	changed(w.SetStatus(t.Context(), p, c.ID, desk.StatusClosed, old))
	changed(w.Assign(t.Context(), p, c.ID, "ada@example.com", old))
	done(w.Assign(t.Context(), p, c.ID, "ada@example.com", see()))
	old = see()
	done(w.Assign(t.Context(), p, c.ID, "grace@example.com", old))
	done(w.Assign(t.Context(), p, c.ID, "grace@example.com", old)) // the member has clicked twice
	changed(w.Assign(t.Context(), p, c.ID, "ada@example.com", old))
	changed(w.SetStatus(t.Context(), p, c.ID, desk.StatusClosed, old))
	if now := w.conversation(c.ID); now.AssignedMember != w.grace.ID || now.Status != desk.StatusOpen {
		t.Errorf("%+v", now)
	}
	done(w.SetStatus(t.Context(), p, c.ID, desk.StatusClosed, see()))
	done(w.SetStatus(t.Context(), p, c.ID, desk.StatusClosed, old))
	done(w.SetStatus(t.Context(), p, c.ID, desk.StatusOpen, nil))
}

// TestSeen_races: two members act at once on the state that they saw. The later action is
// refused with the change that the other member has made, and does not overwrite it.
func TestSeen_races(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	members := make([]desk.Principal, 2)
	for i, id := range []desk.ID{w.ada.ID, w.grace.ID} {
		var err error
		members[i], err = w.Access.Member(t.Context(), w.ws, id)
		must(t, err)
	}
	for n := range 30 {
		c := w.writes(fmt.Sprint(905321112200+n), "Hi")
		seen := &app.Seen{Message: w.messages(c.ID)[0].ID}
		var took [2]error
		var both sync.WaitGroup
		for i, p := range members {
			both.Go(func() { _, took[i] = w.Assign(t.Context(), p, c.ID, p.Member.ID.String(), seen) })
		}
		both.Wait()
		winner := slices.Index(took[:], nil)
		if winner < 0 || w.conversation(c.ID).AssignedMember != members[winner].Member.ID {
			t.Fatalf("assigned to %s after %v", w.conversation(c.ID).AssignedMember, took)
		}
		refused(t, took[1-winner], desk.Changed)
	}
}

// TestInboxCounts: a member's own conversations are counted separately.
func TestInboxCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	first, _ := w.writes(number, "Hi"), w.writes("905321112234", "Hi")
	_, err = w.Assign(t.Context(), p, first.ID, "ada@example.com", nil)
	must(t, err)
	for _, c := range []struct {
		p       desk.Principal
		channel desk.ID
		want    desk.ConversationCounts
	}{
		{p, desk.ID{}, desk.ConversationCounts{Held: 1, Unassigned: 1, Open: 2, Waiting: 1}},
		{p, w.channel, desk.ConversationCounts{Held: 1, Unassigned: 1, Open: 2, Waiting: 1}},
		{p, desk.ID{9}, desk.ConversationCounts{}},
		{w.caller(), desk.ID{}, desk.ConversationCounts{Unassigned: 1, Open: 2}},
	} {
		if got, err := w.InboxCounts(t.Context(), c.p, c.channel); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.channel, got, err, c.want)
		}
	}
	found, err := w.ContactsByID(t.Context(), p, []desk.ID{first.ContactID, {9}, first.ContactID})
	if err != nil || len(found) != 1 || found[first.ContactID].Phone != number {
		t.Errorf("contacts %+v, %v", found, err)
	}
}

// TestSetStatus tries every change of a status. Each is possible if no other conversation
// of the contact is open on the channel.
func TestSetStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []desk.ConversationStatus{desk.StatusOpen, desk.StatusClosed, desk.StatusArchived}
	first := w.writes(number, "Hi")
	for _, from := range all {
		for _, to := range all {
			w.status(first.ID, from)
			want := *w.conversation(first.ID)
			want.Status = to
			if got := w.status(first.ID, to); *got != want || *w.conversation(first.ID) != want {
				t.Errorf("from %s to %s: %+v", from, to, got)
			}
		}
	}
	w.status(first.ID, desk.StatusClosed)
	second := w.writes(number, "Hi again")
	for _, from := range all[1:] {
		w.status(first.ID, from)
		_, err := w.SetStatus(t.Context(), w.caller(), first.ID, desk.StatusOpen, nil)
		refused(t, err, desk.ConversationOpen)
		if got := w.conversation(first.ID); got.Status != from {
			t.Errorf("it is %s", got.Status)
		}
	}
	w.status(second.ID, desk.StatusOpen) // the conversation is open, so nothing changes
	w.status(second.ID, desk.StatusArchived)
	w.status(first.ID, desk.StatusOpen)
	if next := w.writes(number, "Still here"); next.ID != first.ID {
		t.Errorf("written on in %+v", next)
	}
	_, err := w.SetStatus(t.Context(), w.caller(), desk.ID{9}, desk.StatusOpen, nil)
	refused(t, err, desk.NotFound)
}

// TestRemoveMember: the open conversations go back to the pool, however many. Closed ones
// keep their assignee.
func TestRemoveMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.once.Store(true)
	closed := w.sent("closed", to("905321110001"), assignedTo("ada@example.com")).Conversation.ID
	w.status(closed, desk.StatusClosed)
	others := w.sent("others", to("905321110002"), assignedTo("grace@example.com")).Conversation.ID
	const held = desk.MaxLimit + 5
	p := w.caller()
	var group sync.WaitGroup
	for n := range held {
		group.Go(func() {
			if r := w.sendBy(w.App, p, fmt.Sprint(n), to(fmt.Sprintf("90532111%04d", 1000+n)), assignedTo("ada@example.com")); r.err != nil {
				t.Error(r.err)
			}
		})
	}
	group.Wait()
	owned := w.put(phoned("905321110003"), ownedBy("ada@example.com"))
	list := func(f desk.ConversationFilter) int {
		t.Helper()
		page, _, err := w.Conversations(t.Context(), p, f, "", 1000)
		must(t, err)
		return len(page)
	}
	if n := list(desk.ConversationFilter{Assignee: w.ada.ID, Status: desk.StatusOpen}); n != held {
		t.Fatalf("Ada holds %d", n)
	}
	must(t, w.RemoveMember(t.Context(), w.operator(), w.ada.ID))
	if n := list(desk.ConversationFilter{Assignee: w.ada.ID, Status: desk.StatusOpen}); n != 0 {
		t.Errorf("she still holds %d", n)
	}
	if n := list(desk.ConversationFilter{Unassigned: true, Status: desk.StatusOpen}); n != held {
		t.Errorf("%d are in the pool", n)
	}
	if c := w.conversation(closed); c.AssignedMember != w.ada.ID || c.AssignedVia != desk.ViaMember {
		t.Errorf("the closed one: %+v", c)
	}
	if c := w.conversation(others); c.AssignedMember != w.grace.ID {
		t.Errorf("another's: %+v", c)
	}
	if c := w.contact(owned.ID); c.Owner != nil {
		t.Errorf("her contact is owned by %+v", c.Owner)
	}
	if err := w.RemoveMember(t.Context(), w.operator(), w.ada.ID); !desk.IsType(err, desk.NotFound) {
		t.Errorf("removed again: %v", err)
	}
	// When such a conversation is opened again, the removed assignee is cleared.
	if c := w.status(closed, desk.StatusOpen); !c.AssignedMember.IsZero() || c.AssignedVia != "" || *w.conversation(closed) != *c {
		t.Errorf("opened again: %+v", c)
	}
}

// TestDeleteContact: a deletion erases the contact's messages, and no other contact's.
func TestDeleteContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sent("other", to("905321110001"))
	m := w.sent("k", profile(named("Ann")))
	w.writes(number, "Hi")
	w.status(m.Conversation.ID, desk.StatusClosed)
	w.writes(number, "Hi again")
	doubt := w.inDoubt("doubt", profile(named("Ann")))
	w.holds(2, 3, 4)
	w.deleteContact(m.Conversation.ContactID)
	w.holds(1, 1, 1)
	_, err := w.Conversation(t.Context(), w.caller(), m.Conversation.ID)
	refused(t, err, desk.NotFound)
	_, _, err = w.Messages(t.Context(), w.caller(), m.Conversation.ID, "", 10)
	refused(t, err, desk.NotFound)
	_, _, err = w.ContactConversations(t.Context(), w.caller(), m.Conversation.ContactID, "", "", 10)
	refused(t, err, desk.NotFound)
	if at := w.attempt(doubt); !at.Erased || at.Plan.Number != "" || at.Plan.Profile != nil {
		t.Errorf("the attempt: %+v", at)
	}
	// Statuses of erased messages find nothing, and create nothing.
	w.tell(said(w.holder("k").ID, desk.Read), said(doubt, desk.Read))
	w.takeIn()
	w.holds(1, 1, 1)
	if r := w.send("k", profile(named("Ann"))); !r.Replayed || w.read(r).Message.ID != m.Message.ID {
		t.Errorf("the stored answer: %+v", r)
	}
}

// TestConversations_lists: conversations are listed by their newest message, the newest
// first, with filters and in pages.
func TestConversations_lists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.addChannel()
	receive := func(channel desk.ID, from string, at desk.Time) *desk.Conversation {
		t.Helper()
		c, err := w.Receive(t.Context(), w.ws, channel, provider.InboundMessage{ExternalID: fmt.Sprint(from, at), Number: from, Text: "Hi", At: at})
		must(t, err)
		return c
	}
	old := receive(w.channel, "905321110001", 1000)
	middle := receive(w.channel, "905321110002", 2000)
	elsewhere := receive(second, "905321110001", 3000)
	alike := receive(w.channel, "905321110003", 2000) // made last, so it is listed first
	receive(w.channel, "905321110001", 4000)          // moves the oldest conversation to the front
	w.status(middle.ID, desk.StatusClosed)
	_, err := w.Assign(t.Context(), w.caller(), alike.ID, "ada@example.com", nil)
	must(t, err)

	for name, c := range map[string]struct {
		filter desk.ConversationFilter
		want   []desk.ID
	}{
		"all":             {desk.ConversationFilter{}, []desk.ID{old.ID, elsewhere.ID, alike.ID, middle.ID}},
		"open":            {desk.ConversationFilter{Status: desk.StatusOpen}, []desk.ID{old.ID, elsewhere.ID, alike.ID}},
		"closed":          {desk.ConversationFilter{Status: desk.StatusClosed}, []desk.ID{middle.ID}},
		"archived":        {desk.ConversationFilter{Status: desk.StatusArchived}, nil},
		"Ada's":           {desk.ConversationFilter{Assignee: w.ada.ID}, []desk.ID{alike.ID}},
		"nobody's":        {desk.ConversationFilter{Unassigned: true}, []desk.ID{old.ID, elsewhere.ID, middle.ID}},
		"of a channel":    {desk.ConversationFilter{Channel: second}, []desk.ID{elsewhere.ID}},
		"of a contact":    {desk.ConversationFilter{Contact: old.ContactID}, []desk.ID{old.ID, elsewhere.ID}},
		"several at once": {desk.ConversationFilter{Contact: old.ContactID, Channel: w.channel, Status: desk.StatusOpen, Unassigned: true}, []desk.ID{old.ID}},
	} {
		for limit := 1; limit <= 5; limit++ {
			got := walk(t, func(cursor string) ([]*desk.Conversation, string, error) {
				return w.Conversations(t.Context(), w.caller(), c.filter, cursor, limit)
			}, limit, func(c *desk.Conversation) desk.ID { return c.ID })
			if !slices.Equal(got, c.want) {
				t.Errorf("%s, by %d: %v, want %v", name, limit, got, c.want)
			}
		}
	}
	got := walk(t, func(cursor string) ([]*desk.Conversation, string, error) {
		return w.ContactConversations(t.Context(), w.caller(), old.ContactID, desk.StatusOpen, cursor, 1)
	}, 1, func(c *desk.Conversation) desk.ID { return c.ID })
	if want := []desk.ID{old.ID, elsewhere.ID}; !slices.Equal(got, want) {
		t.Errorf("the contact's: %v, want %v", got, want)
	}
	times := walk(t, func(cursor string) ([]*desk.Message, string, error) {
		return w.Messages(t.Context(), w.caller(), old.ID, cursor, 1)
	}, 1, func(m *desk.Message) desk.Time { return m.TS })
	if want := []desk.Time{4000, 1000}; !slices.Equal(times, want) {
		t.Errorf("messages: %v, want %v", times, want)
	}
}

// walk follows the cursors of a list and returns what it saw.
func walk[T, K any](t *testing.T, page func(cursor string) ([]T, string, error), limit int, key func(T) K) (seen []K) {
	t.Helper()
	for cursor := ""; ; {
		list, next, err := page(cursor)
		must(t, err)
		for _, v := range list {
			seen = append(seen, key(v))
		}
		if next == "" {
			return seen
		}
		if len(list) != limit {
			t.Fatalf("a page of %d in the middle", len(list))
		}
		cursor = next
	}
}

// TestConversations_cursors: a cursor is valid for its own list only.
func TestConversations_cursors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	c := w.writes(number, "1")
	w.writes(number, "2")
	other := w.writes("905321110001", "3")
	another := w.addChannel()
	_, err := w.ReceiveSimulated(ctx, w.operator(), another, "+"+number, "", "4")
	must(t, err)
	p := w.caller()
	_, ofAll, err := w.Conversations(ctx, p, desk.ConversationFilter{}, "", 1)
	must(t, err)
	_, ofContact, err := w.ContactConversations(ctx, p, c.ContactID, "", "", 1)
	must(t, err)
	_, ofInbox, err := w.Inbox(ctx, p, desk.ConversationFilter{}, "", 1)
	must(t, err)
	_, ofMessages, err := w.Messages(ctx, p, c.ID, "", 1)
	must(t, err)
	lists := map[string]func(cursor string) error{
		ofAll: func(cursor string) error {
			_, _, err := w.Conversations(ctx, p, desk.ConversationFilter{}, cursor, 5)
			return err
		},
		ofInbox: func(cursor string) error {
			_, _, err := w.Inbox(ctx, p, desk.ConversationFilter{}, cursor, 5)
			return err
		},
		ofContact: func(cursor string) error {
			_, _, err := w.ContactConversations(ctx, p, c.ContactID, "", cursor, 5)
			return err
		},
		ofMessages: func(cursor string) error {
			_, _, err := w.Messages(ctx, p, c.ID, cursor, 5)
			return err
		},
	}
	for own, list := range lists {
		for _, cursor := range []string{ofAll, ofInbox, ofContact, ofMessages, "nonsense"} {
			if err := list(cursor); (err == nil) != (cursor == own) || err != nil && !desk.IsType(err, desk.InvalidRequest) {
				t.Errorf("a cursor of another list: %v", err)
			}
		}
	}
	for _, f := range []desk.ConversationFilter{{Status: desk.StatusOpen}, {Unassigned: true}, {Channel: w.channel}, {Contact: c.ContactID}, {Assignee: w.ada.ID}} {
		if _, _, err := w.Conversations(ctx, p, f, ofAll, 1); !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("with the filter %+v: %v", f, err)
		}
	}
	_, _, err = w.Messages(ctx, p, other.ID, ofMessages, 5)
	refused(t, err, desk.InvalidRequest)
	_, _, err = w.ContactConversations(ctx, p, other.ContactID, "", ofContact, 5)
	refused(t, err, desk.InvalidRequest)
	_, _, err = w.ContactConversations(ctx, p, c.ContactID, desk.StatusOpen, ofContact, 5)
	refused(t, err, desk.InvalidRequest)
}

// TestWorkspaces_are_sealed: records of another workspace are NotFound.
func TestWorkspaces_are_sealed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	m := w.sent("k")
	other, err := w.CreateWorkspace(ctx, "Other", "")
	must(t, err)
	own := w.ws
	w.ws = other.ID
	key, _ := w.newKey("all")
	w.ws = own
	p, err := w.Access.Authenticate(ctx, key)
	must(t, err)
	_, err = w.Conversation(ctx, p, m.Conversation.ID)
	refused(t, err, desk.NotFound)
	_, _, err = w.Messages(ctx, p, m.Conversation.ID, "", 10)
	refused(t, err, desk.NotFound)
	_, err = w.Assign(ctx, p, m.Conversation.ID, "ada@example.com", nil)
	refused(t, err, desk.NotFound)
	_, err = w.SetStatus(ctx, p, m.Conversation.ID, desk.StatusClosed, nil)
	refused(t, err, desk.NotFound)
	refused(t, w.sendBy(w.App, p, "k", on(w.channel)).err, desk.NotFound) // the key may be used in its own workspace, but the channel is not there
	refused(t, w.sendBy(w.App, p, "k").err, desk.NotFound)
	if list, _, err := w.Conversations(ctx, p, desk.ConversationFilter{}, "", 10); err != nil || len(list) != 0 {
		t.Errorf("it sees %+v, %v", list, err)
	}
}

// TestReceive_in_one_second: a provider reports times in whole seconds. Messages of one
// second stay in the order in which they came, also relative to messages that were sent
// meanwhile. A message of an earlier second comes before them.
func TestReceive_in_one_second(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := (desk.TimeOf(w.clock.now())/1000 + 3600) * 1000
	var c *desk.Conversation
	receive := func(id string, at desk.Time) {
		t.Helper()
		var err error
		c, err = w.Receive(t.Context(), w.ws, w.channel, provider.InboundMessage{ExternalID: id, Number: number, Text: id, At: at})
		must(t, err)
	}
	receive("b", second)
	receive("c", second)
	w.clock.advance(time.Duration(int64(second)+500-int64(desk.TimeOf(w.clock.now()))) * time.Millisecond)
	answer := w.message(w.sent("k")) // on a slow machine, it may be of the next second
	receive("d", second)
	receive("e", second)
	receive("a", second-1000)
	receive("f", second+1000)
	times := map[string]desk.Time{}
	for _, m := range w.messages(c.ID) {
		times[m.ExternalID] = m.TS
	}
	d := second + 2
	if answer.TS < second+1000 {
		d = answer.TS + 1
	}
	want := map[string]desk.Time{"a": second - 1000, "b": second, "c": second + 1, "d": d, "e": d + 1, answer.ExternalID: answer.TS}
	delete(times, "f") // this message may come after the answer
	if !maps.Equal(times, want) {
		t.Errorf("%v, want %v", times, want)
	}
}

// TestOptOut: a person opts out and in by stop and start words. The newest choice counts, and
// messages that are not marketing are still sent.
func TestOptOut(t *testing.T) {
	t.Parallel()
	type word struct {
		text string
		at   desk.Time
	}
	w, from := newWorld(t), 0
	for name, c := range map[string]struct {
		said  []word
		since desk.Time
	}{
		"nothing":                    {nil, 0},
		"something else":             {[]word{{"please stop", 10}}, 0},
		"stop":                       {[]word{{"STOP", 10}}, 10},
		"stop, in Turkish":           {[]word{{" iptal!", 10}}, 10},
		"stop, then again":           {[]word{{"stop", 10}, {"STOP", 20}}, 10},
		"stop, then talk":            {[]word{{"stop", 10}, {"thanks", 20}}, 10},
		"stop, then start":           {[]word{{"stop", 10}, {"START", 20}}, 0},
		"stop, start, stop":          {[]word{{"stop", 10}, {"start", 20}, {"stop", 30}}, 30},
		"start only":                 {[]word{{"start", 10}}, 0},
		"start that came late":       {[]word{{"stop", 20}, {"start", 10}}, 20},
		"stop that came late":        {[]word{{"start", 20}, {"stop", 10}}, 0},
		"an older stop":              {[]word{{"stop", 20}, {"stop", 10}}, 20},
		"in one moment, the last":    {[]word{{"stop", 10}, {"start", 10}}, 0},
		"stop, late start, start":    {[]word{{"stop", 20}, {"start", 10}, {"start", 30}}, 0},
		"start, late stop, stop":     {[]word{{"start", 20}, {"stop", 10}, {"stop", 30}}, 30},
		"stop, an older talk, start": {[]word{{"stop", 20}, {"hi", 5}, {"start", 25}}, 0},
	} {
		from++
		person := fmt.Sprintf("90532111%04d", from)
		for _, s := range c.said {
			_, err := w.Receive(t.Context(), w.ws, w.channel, provider.InboundMessage{ExternalID: name + s.text + s.at.String(), Number: person, Text: s.text, At: s.at})
			must(t, err)
		}
		t.Run(name, func(*testing.T) { w.wants(c.since, to(person)) })
	}
}

// wants checks the time since which the test's number has opted out of marketing; 0: it has
// not opted out.
func (w *world) wants(since desk.Time, edits ...edit) {
	w.t.Helper()
	r := w.send("sale "+w.clock.newID().String(), append([]edit{of("sale", "en")}, edits...)...)
	if since == 0 {
		must(w.t, r.err)
	} else if e := refusalOf(w.t, r.err, desk.RecipientOptedOut); e.Details != (desk.OptedOut{Since: since}) {
		w.t.Errorf("details: %+v, want since %s", e.Details, since)
	}
	w.sent("order "+w.clock.newID().String(), append([]edit{of("hello", "en")}, edits...)...)
}

// TestOptOut_follows_the_number: an opt-out applies to the number on every channel, in each
// way of naming the person, and also after the contact is deleted. It does not apply to other
// numbers.
func TestOptOut_follows_the_number(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.Receive(t.Context(), w.ws, w.channel, provider.InboundMessage{ExternalID: "1", Number: number, Text: "STOP", At: 10})
	must(t, err)
	another := w.addChannel()
	first := on(w.channel)
	w.wants(10, first)
	w.wants(10, on(another))
	w.wants(10, first, toContact(c.ContactID))
	w.wants(0, first, to("905321110099"))
	w.deleteContact(c.ContactID)
	w.wants(10, first)
	byChat := w.put(alsoKnownAs(desk.KindWhatsApp, number))
	w.wants(10, first, toContact(byChat.ID))
	_, err = w.Receive(t.Context(), w.ws, another, provider.InboundMessage{ExternalID: "2", Number: number, Text: "start", At: 20})
	must(t, err)
	w.wants(0, first)
}

// TestOptOut_of_a_category_in_any_case: the provider writes a category in upper case, but
// template files for the sandbox may have any case.
func TestOptOut_of_a_category_in_any_case(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.library = append(w.provider.library, template("promo", "en", "marketing", "", "Come and buy!"))
	_, _, err := w.SyncChannel(t.Context(), w.operator(), w.channel)
	must(t, err)
	w.writes(number, "STOP")
	refused(t, w.send("k", of("promo", "en")).err, desk.RecipientOptedOut)
}

// TestOptOut_replays: a stored answer is returned before anything is checked.
func TestOptOut_replays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.sent("k", of("sale", "en"))
	w.clock.advance(time.Second)
	w.writes(number, "STOP")
	if r := w.send("k", of("sale", "en")); !r.Replayed || w.read(r).Message.ID != m.Message.ID {
		t.Errorf("the stored answer: %+v, %v", r, r.err)
	}
}

// A steppingStore records the positions at which a removal begins to read lists.
type steppingStore struct {
	store.Store
	contacts      []desk.ContactPlace
	conversations []*desk.ConversationPlace
}

func (s *steppingStore) Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error) {
	s.contacts = append(s.contacts, after)
	return s.Store.Contacts(ctx, ws, f, after, limit)
}

func (s *steppingStore) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	return s.Store.InTx(ctx, ws, func(tx store.Tx) error { return f(steppingTx{tx, s}) })
}

type steppingTx struct {
	store.Tx
	s *steppingStore
}

func (tx steppingTx) HeldConversations(member desk.ID, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error) {
	tx.s.conversations = append(tx.s.conversations, after)
	return tx.Tx.HeldConversations(member, after, limit)
}

// TestRemoveMember_goes_on: no step of a removal reads again the rows that an earlier step
// has released. PostgreSQL keeps these rows in its indexes for some time, which made each
// step slower than the last.
func TestRemoveMember_goes_on(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.once.Store(true)
	w.sent("held", to("905321110001"), assignedTo("ada@example.com"))
	owned := w.put(phoned("905321110002"), ownedBy("ada@example.com"))
	store := &steppingStore{Store: w.store}
	must(t, w.node(store, app.Bounds{}).RemoveMember(t.Context(), w.operator(), w.ada.ID))
	if n := len(store.contacts); n != 2 || store.contacts[1] != owned.Place() {
		t.Errorf("contacts from %v", store.contacts)
	}
	if n := len(store.conversations); n != 2 || store.conversations[0] != nil || store.conversations[1] == nil {
		t.Errorf("conversations from %v", store.conversations)
	}
}

var removedContacts = flag.Int("removed-contacts", 3000, "how many contacts, and how many open conversations, the member of TestRemoveMember_steps has; from 100000 on the steps are judged")

// A timedStore records the longest time of a transaction.
type timedStore struct {
	store.Store
	mu      sync.Mutex
	steps   int
	longest time.Duration
}

func (s *timedStore) note(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps++
	s.longest = max(s.longest, time.Since(began))
}

func (s *timedStore) UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(*desk.Book, int, int)) error {
	defer s.note(time.Now())
	return s.Store.UpdateContacts(ctx, ws, ops, apply)
}

func (s *timedStore) UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error {
	defer s.note(time.Now())
	return s.Store.UpdateSettings(ctx, ws, decide)
}

func (s *timedStore) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	defer s.note(time.Now())
	return s.Store.InTx(ctx, ws, f)
}

// TestRemoveMember_steps: a member with very many contacts is removed in steps of at most 200
// ms, even if contacts are large, because others wait for each step.
func TestRemoveMember_steps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const group, largest = 500, 200 // every largest-th contact is large
	p := w.operator()
	for from := 0; from < *removedContacts; from += group {
		var ops []*desk.Op
		var held []*desk.Conversation
		for n := from; n < min(from+group, *removedContacts); n++ {
			op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Owner: refer("ada@example.com")}}
			op.Write.ExternalID = desk.Field[string]{Set: true, Value: fmt.Sprint("x", n)}
			op.Write.Sent = []desk.Identity{{Kind: desk.KindExternalID, Value: fmt.Sprint("x", n)}}
			if n%largest == 0 {
				op.Write.Note = desk.Field[string]{Set: true, Value: strings.Repeat("x", desk.MaxNote)}
			}
			ops = append(ops, op)
			c := &desk.Conversation{ID: w.clock.newID(), ChannelID: w.channel, ContactID: w.clock.newID(), Status: desk.StatusOpen, CreatedAt: w.at(), LastMessageAt: w.at()}
			c.AssignByRule(w.ada.ID)
			held = append(held, c)
		}
		_, errs, err := w.WriteAll(t.Context(), p, ops)
		must(t, errors.Join(append(errs, err)...))
		must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error { return tx.PutConversation(held...) }))
	}
	store := &timedStore{Store: w.store}
	neighbour := w.another()
	done := make(chan error, 1)
	go func() { done <- w.node(store, app.Bounds{}).RemoveMember(t.Context(), p, w.ada.ID) }()
	var waits []time.Duration // the times of other writes meanwhile
	for removing := true; removing; {
		select {
		case err := <-done:
			must(t, err)
			removing = false
		default:
			began := time.Now()
			op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Name: desk.Field[string]{Set: true, Value: fmt.Sprint(len(waits))}}}
			op.Write.ExternalID = desk.Field[string]{Set: true, Value: "n"}
			op.Write.Sent = []desk.Identity{{Kind: desk.KindExternalID, Value: "n"}}
			_, err := neighbour.Write(t.Context(), neighbour.caller(), op)
			must(t, err)
			waits = append(waits, time.Since(began))
		}
	}
	slices.Sort(waits)
	t.Logf("%d writes of a neighbour: p50 %v, p99 %v, slowest %v", len(waits), waits[len(waits)/2], waits[len(waits)*99/100], waits[len(waits)-1])
	owned, _, err := w.file.Contacts(t.Context(), w.ws, desk.ContactFilter{Owner: w.ada.ID}, desk.ContactPlace{}, 10)
	must(t, err)
	held, _, err := w.file.Conversations(t.Context(), w.ws, desk.ConversationFilter{Assignee: w.ada.ID}, nil, 10)
	must(t, err)
	if len(owned)+len(held) > 0 || w.operator().Settings.Member(w.ada.ID) != nil {
		t.Errorf("%d contacts and %d conversations are still the member's", len(owned), len(held))
	}
	t.Logf("%d contacts and conversations: %d steps, the longest %v", *removedContacts, store.steps, store.longest)
	if least := *removedContacts / desk.MaxOperations; store.steps < least {
		t.Errorf("%d steps, want %d at least", store.steps, least)
	}
	if *removedContacts >= 100_000 && store.longest > 200*time.Millisecond { // measured only if run alone: other tests distort times
		t.Errorf("a step took %v", store.longest)
	}
}
