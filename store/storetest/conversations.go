package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

func newConversation(channel, contact desk.ID) *desk.Conversation {
	return &desk.Conversation{ID: newID(), ChannelID: channel, ContactID: contact, Status: desk.StatusOpen, CreatedAt: now(), LastMessageAt: now()}
}

func conversationFieldsSurvive(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	want := newConversation(newID(), newID())
	check := func() {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(want) })
		got, err := s.Conversation(t.Context(), ws, want.ID)
		must(t, err)
		equal(t, "conversation", got, want)
	}
	check()
	want.AssignedMember, want.AssignedVia, want.Preview, want.LastMessageAt = member.ID, desk.ViaOwner, "a'b\"c 😀", 0
	check()
	want.Talk.WaitingSince = 7
	check()
	want.Talk.Unread, want.Talk.Read, want.Talk.Answered, want.Talk.Heard = 3, desk.MessagePlace{TS: 5, ID: newID()}, newID(), newID()
	want.LastMessageAt, want.Talk.LastDirection = 9, desk.Inbound
	check()
	want.Talk.Unread, want.Talk.WaitingSince, want.Talk.Read.ID = 0, 0, newID()
	check()
	want.Status = desk.StatusArchived
	want.Unassign()
	check()
	missing(s.Conversation(t.Context(), ws, newID()))(t)
}

func oneOpenConversation(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first := newConversation(newID(), newID())
	open := func(want *desk.Conversation) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.OpenConversation(first.ChannelID, first.ContactID)
			equal(t, "open conversation", got, want)
			return err
		})
	}
	open(nil)
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(first) })
	open(first)
	second, beside := newConversation(first.ChannelID, first.ContactID), newMessage(first)
	err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		if err := tx.PutMessage(beside); err != nil {
			return err
		}
		return tx.PutConversation(second)
	})
	if err == nil || desk.IsType(err, desk.Unavailable) {
		t.Errorf("a second open conversation: %v, want an error that is not the machine's", err)
	}
	open(first)
	missing(s.Conversation(t.Context(), ws, second.ID))(t)
	messages, _, err := s.Messages(t.Context(), ws, first.ID, nil, 10)
	must(t, err)
	if len(messages) != 0 {
		t.Error("what was written beside it is stored")
	}
	// A second conversation is allowed on another channel, with another contact, or if the
	// first is not open.
	otherChannel, otherContact := newConversation(newID(), first.ContactID), newConversation(first.ChannelID, newID())
	first.Status = desk.StatusClosed
	commit(t, s, ws, func(tx store.Tx) error {
		for _, c := range []*desk.Conversation{otherChannel, otherContact, first} {
			if err := tx.PutConversation(c); err != nil {
				return err
			}
		}
		return nil
	})
	open(nil)
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(second) })
	open(second)
	first.Status = desk.StatusOpen
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.PutConversation(first) }); err == nil {
		t.Error("the first was opened again beside the second")
	}
}

// newestFirst compares two conversations by the order of the lists.
func newestFirst(a, b *desk.Conversation) int {
	return -cmp.Or(cmp.Compare(a.LastMessageAt, b.LastMessageAt), cmp.Compare(a.CreatedAt, b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
}

// walk reads a list page by page to its end, and returns all of it.
func walk[T, P any](t *testing.T, size int, page func(after *P, limit int) ([]T, *P, error)) (list []T) {
	t.Helper()
	for after, pages := (*P)(nil), 0; ; pages++ {
		found, next, err := page(after, size)
		must(t, err)
		if list = append(list, found...); len(found) > size || pages > 10_000 {
			t.Fatalf("a page of %d of at most %d, %d in all", len(found), size, len(list))
		}
		if next == nil {
			return list
		}
		after = next
	}
}

func conversationOrder(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	contact := newID()
	var want []*desk.Conversation
	for i := range 24 { // few different times, so that each part of the position decides somewhere
		c := newConversation(newID(), contact)
		c.LastMessageAt, c.CreatedAt = desk.Time(i%2), desk.Time(i%4)
		c.Status = []desk.ConversationStatus{desk.StatusOpen, desk.StatusClosed, desk.StatusArchived}[i%3]
		c.AssignedMember, c.AssignedVia = member.ID, desk.ViaMember
		want = append(want, c)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		for _, c := range want {
			if err := tx.PutConversation(c); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(want, newestFirst)
	for name, f := range map[string]desk.ConversationFilter{
		"all": {}, "open": {Status: desk.StatusOpen}, "held": {Assignee: member.ID}, "contact": {Contact: contact},
		"contact_open": {Contact: contact, Status: desk.StatusOpen}, "held_open": {Assignee: member.ID, Status: desk.StatusOpen},
	} {
		want := want
		if f.Status != "" {
			want = slices.DeleteFunc(slices.Clone(want), func(c *desk.Conversation) bool { return c.Status != f.Status })
		}
		for size := 1; size <= len(want)+1; size++ {
			got := walk(t, size, func(after *desk.ConversationPlace, limit int) ([]*desk.Conversation, *desk.ConversationPlace, error) {
				return s.Conversations(t.Context(), ws, f, after, limit)
			})
			equal(t, fmt.Sprintf("%s in pages of %d", name, size), got, want)
		}
	}
}

func conversationFilters(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	bob := newID()
	channels, contacts := [2]desk.ID{newID(), newID()}, [2]desk.ID{newID(), newID()}
	var stored []*desk.Conversation
	statuses := []desk.ConversationStatus{desk.StatusOpen, desk.StatusClosed, desk.StatusArchived}
	for _, channel := range channels {
		for _, contact := range contacts {
			for _, status := range statuses {
				for _, holder := range []desk.ID{{}, ada.ID, bob} {
					if status == desk.StatusOpen && holder != (map[desk.ID]desk.ID{contacts[0]: ada.ID})[contact] {
						continue // only one may be open
					}
					c := newConversation(channel, contact)
					if c.Status = status; !holder.IsZero() {
						c.Assign(holder)
					}
					c.LastMessageAt, c.CreatedAt = desk.Time(100+len(stored)), desk.Time(len(stored))
					if n := len(stored) % 5; n < 3 {
						c.Talk.Unread, c.Talk.WaitingSince = n, desk.Time(n*(50-len(stored)/3))
					}
					c.Dormant = status == desk.StatusArchived && len(stored)%2 == 0
					stored = append(stored, c)
				}
			}
		}
	}
	commit(t, s, ws, func(tx store.Tx) error {
		for _, c := range stored {
			if err := tx.PutConversation(c); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(stored, newestFirst)
	kinds := 0
	for _, status := range append(statuses, "") {
		for _, channel := range []desk.ID{{}, channels[0], newID()} {
			for _, contact := range []desk.ID{{}, contacts[0], newID()} {
				for _, holder := range []desk.ID{{}, ada.ID, newID()} {
					for _, unassigned := range []bool{false, true} {
						f := desk.ConversationFilter{Status: status, Assignee: holder, Unassigned: unassigned, Channel: channel, Contact: contact}
						var want []*desk.Conversation
						for _, c := range stored {
							if (status == "" || c.Status == status) && (channel.IsZero() || c.ChannelID == channel) && (contact.IsZero() || c.ContactID == contact) &&
								(holder.IsZero() || c.AssignedMember == holder) && (!unassigned || c.AssignedMember.IsZero()) {
								want = append(want, c)
							}
						}
						if f.Channel != channels[0] {
							f.Looked = desk.MaxMemberLooked
						}
						for how := range 8 {
							f, want := f, slices.Clone(want)
							f.Unread, f.Waiting = how == 1 || how == 5, how == 2 || how == 6
							f.Awake = how == 0 || how == 6
							if how >= 4 {
								f.ActiveSince = stored[len(stored)/2].LastMessageAt
							}
							want = slices.DeleteFunc(want, func(c *desk.Conversation) bool {
								return f.Awake && c.Dormant || f.Unread && c.Talk.Unread == 0 || f.Waiting && c.Talk.WaitingSince == 0 || c.LastMessageAt < f.ActiveSince
							})
							if f.Longest = status != "" && how%4 == 3; f.Longest {
								want = slices.DeleteFunc(want, func(c *desk.Conversation) bool { return c.Talk.WaitingSince == 0 })
								slices.SortFunc(want, func(a, b *desk.Conversation) int {
									return cmp.Or(cmp.Compare(a.Talk.WaitingSince, b.Talk.WaitingSince), cmp.Compare(a.CreatedAt, b.CreatedAt), a.ID.Compare(b.ID))
								})
							}
							if len(want) == 0 {
								want = nil
							}
							got := walk(t, 2+how, func(after *desk.ConversationPlace, limit int) ([]*desk.Conversation, *desk.ConversationPlace, error) {
								return s.Conversations(t.Context(), ws, f, after, limit)
							})
							equal(t, fmt.Sprintf("conversations of %+v", f), got, want)
							if len(want) > 0 {
								kinds++
							}
						}
					}
				}
			}
		}
	}
	if kinds < 200 {
		t.Errorf("only %d filters let something through", kinds)
	}
}

// conversationCounts: counts end at a hundred. Some counts of a channel look only at the
// member's newest conversations.
func conversationCounts(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	bob, channels := newID(), [3]desk.ID{newID(), newID(), newID()}
	check := func(member, channel desk.ID, want desk.ConversationCounts) {
		t.Helper()
		got, err := s.CountConversations(t.Context(), ws, member, channel)
		must(t, err)
		equal(t, "counts", got, want)
	}
	check(ada.ID, desk.ID{}, desk.ConversationCounts{})
	put := func(ws desk.ID, n int, channel, holder desk.ID, status desk.ConversationStatus, at desk.Time) {
		commit(t, s, ws, func(tx store.Tx) error {
			for range n {
				c := newConversation(channel, newID())
				if c.Status, c.LastMessageAt = status, at; !holder.IsZero() {
					c.Assign(holder)
				}
				if at != 2 {
					c.Talk.WaitingSince = at
				}
				if err := tx.PutConversation(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	put(ws, 3, channels[0], ada.ID, desk.StatusOpen, 1)
	put(ws, 4, channels[1], ada.ID, desk.StatusOpen, 2)
	put(ws, 5, channels[0], bob, desk.StatusOpen, 3)
	put(ws, 6, channels[0], desk.ID{}, desk.StatusOpen, 4)
	put(ws, 7, channels[0], desk.ID{}, desk.StatusClosed, 5)
	put(ws, 8, channels[1], ada.ID, desk.StatusArchived, 6)
	put(other, 9, channels[0], ada.ID, desk.StatusOpen, 7)
	check(ada.ID, desk.ID{}, desk.ConversationCounts{Held: 7, Unassigned: 6, Open: 18, Waiting: 3})
	check(ada.ID, channels[0], desk.ConversationCounts{Held: 3, Unassigned: 6, Open: 14, Waiting: 3})
	check(ada.ID, channels[1], desk.ConversationCounts{Held: 4, Open: 4})
	check(bob, channels[1], desk.ConversationCounts{Open: 4})
	check(desk.ID{}, desk.ID{}, desk.ConversationCounts{Unassigned: 6, Open: 18})
	put(ws, desk.MaxMemberLooked-6, channels[2], desk.ID{}, desk.StatusOpen, 8)
	put(ws, desk.MaxCount, channels[2], ada.ID, desk.StatusOpen, 9)
	check(ada.ID, desk.ID{}, desk.ConversationCounts{Held: desk.MaxCount, Unassigned: desk.MaxCount, Open: desk.MaxCount, Waiting: desk.MaxCount})
	check(ada.ID, channels[0], desk.ConversationCounts{Held: 3, Unassigned: 6, Open: 14, Waiting: 3})
	check(ada.ID, channels[2], desk.ConversationCounts{Held: desk.MaxCount, Unassigned: desk.MaxCount, Open: desk.MaxCount, Waiting: desk.MaxCount})
	put(ws, 2, channels[2], desk.ID{}, desk.StatusOpen, 10)
	check(ada.ID, channels[0], desk.ConversationCounts{Held: 3, Unassigned: 4, Open: 14, Waiting: 3})
}

// conversationLoads: counts end at a hundred, and only the longest waits are looked at.
func conversationLoads(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	bob, none := newID(), newID()
	check := func(later desk.Time, want map[desk.ID]desk.Workload) {
		t.Helper()
		got, since, err := s.Workloads(t.Context(), ws, []desk.ID{ada.ID, bob, none})
		must(t, err)
		for _, id := range []desk.ID{ada.ID, bob, none, {}} {
			equal(t, "load", got[id], want[id])
		}
		equal(t, "later", since, later)
	}
	check(0, nil)
	put := func(ws desk.ID, n int, holder desk.ID, status desk.ConversationStatus, waiting desk.Time) {
		commit(t, s, ws, func(tx store.Tx) error {
			for range n {
				c := newConversation(newID(), newID())
				c.Talk.WaitingSince, c.Status = waiting, status
				if !holder.IsZero() {
					c.Assign(holder)
				}
				if err := tx.PutConversation(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	put(ws, 2, ada.ID, desk.StatusOpen, 0)
	put(ws, 1, ada.ID, desk.StatusOpen, 9)
	put(ws, 1, ada.ID, desk.StatusOpen, 7)
	put(ws, 3, ada.ID, desk.StatusClosed, 3)
	put(other, 1, ada.ID, desk.StatusOpen, 1)
	put(ws, 1, bob, desk.StatusOpen, 0)
	put(ws, 2, desk.ID{}, desk.StatusOpen, 8)
	put(ws, 1, newID(), desk.StatusOpen, 2) // of a member that is not in the list
	check(0, map[desk.ID]desk.Workload{ada.ID: {Open: 4, Waiting: 7}, bob: {Open: 1}, {}: {Open: 2, Waiting: 8}})
	put(ws, desk.MaxMemberLooked-6, ada.ID, desk.StatusOpen, 10)
	put(ws, 1, none, desk.StatusOpen, 11)
	check(0, map[desk.ID]desk.Workload{ada.ID: {Open: desk.MaxCount, Waiting: 7}, bob: {Open: 1}, none: {Open: 1, Waiting: 11}, {}: {Open: 2, Waiting: 8}})
	put(ws, 1, bob, desk.StatusOpen, 12)
	check(12, map[desk.ID]desk.Workload{ada.ID: {Open: desk.MaxCount, Waiting: 7}, bob: {Open: 2}, none: {Open: 1, Waiting: 11}, {}: {Open: 2, Waiting: 8}})
}

func deleteErasesConversations(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	channel := newID()
	gone := []*desk.Contact{put(t, s, ws, upsert("a@example.com", "")), put(t, s, ws, upsert("b@example.com", ""))}
	stays := put(t, s, ws, upsert("c@example.com", ""))
	type pair struct {
		ws desk.ID
		c  *desk.Conversation
		m  *desk.Message
	}
	make := func(ws, contact desk.ID, status desk.ConversationStatus) pair {
		t.Helper()
		c := newConversation(channel, contact)
		c.Status = status
		m := newMessage(c)
		m.ExternalID = newID().String()
		commit(t, s, ws, func(tx store.Tx) error {
			if err := tx.PutConversation(c); err != nil {
				return err
			}
			if err := tx.PutMessage(newMessage(c)); err != nil {
				return err
			}
			return tx.PutMessage(m)
		})
		return pair{ws, c, m}
	}
	erased := []pair{make(ws, gone[0].ID, desk.StatusOpen), make(ws, gone[0].ID, desk.StatusClosed), make(ws, gone[1].ID, desk.StatusArchived)}
	kept := []pair{make(ws, stays.ID, desk.StatusOpen), make(other, gone[0].ID, desk.StatusOpen)}
	put(t, s, ws, remove(gone[0].ID), patch(stays.ID, desk.ContactWrite{Name: text("C")}), remove(gone[1].ID))
	count := func(p pair, want int) {
		t.Helper()
		messages, _, err := s.Messages(t.Context(), p.ws, p.c.ID, nil, 10)
		must(t, err)
		list, _, err := s.Conversations(t.Context(), p.ws, desk.ConversationFilter{Contact: p.c.ContactID}, nil, 10)
		must(t, err)
		if c, err := s.Conversation(t.Context(), p.ws, p.c.ID); err != nil || (c != nil) != (want > 0) || len(messages) != want || (len(list) > 0) != (want > 0) {
			t.Errorf("of a conversation: %v, %d messages, %d listed, want %d messages", err, len(messages), len(list), want)
		}
		commit(t, s, p.ws, func(tx store.Tx) error {
			m, err := tx.MessageBy(channel, p.m.ExternalID)
			if (m != nil) != (want > 0) {
				t.Errorf("by the provider's id: %v", m)
			}
			return err
		})
	}
	for _, p := range erased {
		count(p, 0)
	}
	for _, p := range kept {
		count(p, 2)
	}
	// A deletion inside the caller's transaction does the same.
	commit(t, s, ws, func(tx store.Tx) error {
		op := remove(stays.ID)
		book, err := tx.Book(op.Lookup())
		if err != nil {
			return err
		}
		if _, err := book.Apply(op, desk.Actor{}, now(), newID); err != nil {
			return err
		}
		return tx.Flush(book)
	})
	count(kept[0], 0)
}

// talkOfMessages: MarkRead marks exactly the messages up to its position, and Waiting is
// computed from the messages.
func talkOfMessages(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	c := newConversation(newID(), newID())
	var list []*desk.Message
	add := func(at desk.Time, edit func(*desk.Message)) *desk.Message {
		m := newMessage(c)
		m.ID, m.TS = desk.ID{0: 7, 15: byte(len(list))}, at // ids ascend
		edit(m)
		list = append(list, m)
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutMessage(m) })
		return m
	}
	as := func(external string) func(*desk.Message) { return func(m *desk.Message) { m.ExternalID = external } }
	ours := func(m *desk.Message) { m.Direction, m.Delivery = desk.Outbound, desk.Sent }
	waiting := func(answered *desk.Message, since desk.Time) {
		t.Helper()
		want := desk.ID{}
		if answered != nil {
			want = answered.ID
		}
		commit(t, s, ws, func(tx store.Tx) error {
			id, at, err := tx.Waiting(c.ID)
			equal(t, "answered", id, want)
			equal(t, "waiting since", at, since)
			return err
		})
	}
	mark := func(ws desk.ID, upTo desk.MessagePlace, most, want int) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			n, err := tx.MarkRead(c.ID, upTo, most)
			equal(t, "marked", n, want)
			return err
		})
	}
	waiting(nil, 0)
	add(10, as("first"))
	add(5, as("late"))
	waiting(nil, 5)
	answer := add(20, ours)
	waiting(answer, 0)
	add(15, func(m *desk.Message) { m.Kind = desk.KindReaction })
	waiting(answer, 0)
	add(12, as(""))
	waiting(answer, 12)
	add(30, func(m *desk.Message) { ours(m); m.Author = desk.Author{Type: desk.AuthorRule, Name: "away"} })
	waiting(answer, 12)
	failed := add(31, func(m *desk.Message) { ours(m); m.Delivery = desk.Failed })
	waiting(answer, 12)
	failed.Delivery = desk.Delivered
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutMessage(failed) })
	waiting(failed, 0)

	newest := func(upTo desk.Time, want *desk.Message) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.NewestInbound(c.ID, desk.MessagePlace{TS: upTo, ID: desk.ID{0xff}})
			equal(t, "newest inbound message", got, want)
			return err
		})
	}
	newest(99, list[0])
	newest(9, list[1])
	newest(4, (*desk.Message)(nil))
	mark(other, desk.MessagePlace{TS: 99}, 9, 0)
	mark(ws, desk.MessagePlace{TS: 11}, 9, 2)
	mark(ws, desk.MessagePlace{TS: 11}, 9, 0)
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutMessage(list[0]) }) // the message stays marked as read
	mark(ws, desk.MessagePlace{TS: 12, ID: desk.ID{}}, 9, 0)
	mark(ws, list[4].Place(), 9, 1)
	mark(ws, desk.MessagePlace{TS: 99}, 9, 1)
}

func windowsSurvive(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	one, two := desk.WindowRef{Channel: newID(), Contact: newID()}, desk.WindowRef{Channel: newID(), Contact: newID()}
	check := func(ws desk.ID, want map[desk.WindowRef]desk.Window) {
		t.Helper()
		got, err := s.Windows(t.Context(), ws, []desk.WindowRef{one, two})
		must(t, err)
		equal(t, "windows", got, want)
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.Window(one.Channel, one.Contact)
			equal(t, "window", got, want[one])
			return err
		})
	}
	check(ws, map[desk.WindowRef]desk.Window{})
	for _, w := range []desk.Window{
		{OpenedAt: 5, Number: "905321112233", RepliedAt: 11, AutoReplyAt: 12, AutoReplies: 3},
		{OpenedAt: 7, UserID: "TR.1", ShutAt: 8, ShutBy: desk.ByTheProvider},
	} {
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutWindow(one.Channel, one.Contact, w) })
		check(ws, map[desk.WindowRef]desk.Window{one: w})
	}
	check(other, map[desk.WindowRef]desk.Window{})
}

// wroteAt: when people wrote their newest message on any channel. A window that was only shut
// has no message.
func wroteAt(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	one, two, never := newID(), newID(), newID()
	commit(t, s, ws, func(tx store.Tx) error {
		for _, w := range []struct {
			contact desk.ID
			desk.Window
		}{{one, desk.Window{OpenedAt: 7}}, {one, desk.Window{OpenedAt: 9, Number: "905321112233"}}, {one, desk.Window{OpenedAt: 8}}, {two, desk.Window{OpenedAt: 5}}, {never, desk.Window{ShutAt: 6, ShutBy: desk.ByTheProvider}}} {
			if err := tx.PutWindow(newID(), w.contact, w.Window); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range []struct {
		ws    desk.ID
		asked []desk.ID
		want  map[desk.ID]desk.Time
	}{
		{ws, []desk.ID{one, never, newID(), two}, map[desk.ID]desk.Time{one: 9, two: 5}},
		{ws, []desk.ID{never}, map[desk.ID]desk.Time{}},
		{ws, nil, map[desk.ID]desk.Time{}},
		{other, []desk.ID{one}, map[desk.ID]desk.Time{}},
	} {
		got, err := s.WroteAt(t.Context(), c.ws, c.asked)
		must(t, err)
		equal(t, "newest messages", got, c.want)
	}
}

// newestConversation: the newest conversation with a person on a channel is found,
// whatever its status is.
func newestConversation(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first := newConversation(newID(), newID())
	first.Status, first.CreatedAt = desk.StatusClosed, 5
	second := newConversation(first.ChannelID, first.ContactID)
	second.Status, second.CreatedAt = desk.StatusArchived, 9
	elsewhere := newConversation(newID(), first.ContactID)
	elsewhere.CreatedAt = 11
	commit(t, s, ws, func(tx store.Tx) error {
		got, err := tx.NewestConversation(first.ChannelID, first.ContactID)
		equal(t, "newest conversation", got, (*desk.Conversation)(nil))
		if err != nil {
			return err
		}
		return tx.PutConversation(second, first, elsewhere)
	})
	commit(t, s, ws, func(tx store.Tx) error {
		got, err := tx.NewestConversation(first.ChannelID, first.ContactID)
		equal(t, "newest conversation", got, second)
		return err
	})
}
