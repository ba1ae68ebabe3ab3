package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

// manyConversations is more than one page of a filtered list looks at.
const manyConversations = desk.MaxLooked + 300

// conversationWalks: each page of a filtered list looks at a bounded number of
// conversations. A client that reads all pages gets each matching conversation once.
func conversationWalks(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	channels, contact := [3]desk.ID{newID(), newID(), newID()}, newID()
	var stored []*desk.Conversation
	for i := range manyConversations {
		c := newConversation(channels[0], newID())
		c.LastMessageAt = desk.Time(1000 + i/3) // several have the same time
		switch i % 4 {
		case 1:
			c.Status = desk.StatusClosed
		case 2:
			c.Status = desk.StatusArchived
		}
		if c.Assign(member.ID); i%97 == 0 {
			c.ChannelID = channels[1]
		}
		switch {
		case i < 2:
			c.Unassign() // the two that are looked at last
		case i%7 == 0:
			c.ContactID, c.Status = contact, desk.StatusClosed // more conversations than are sorted for a page
		}
		stored = append(stored, c)
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
	for name, f := range map[string]desk.ConversationFilter{
		"channel":            {Channel: channels[1]},
		"channel_of_nobody":  {Channel: channels[2]},
		"channel_open":       {Channel: channels[1], Status: desk.StatusOpen},
		"unassigned":         {Unassigned: true},
		"unassigned_open":    {Unassigned: true, Status: desk.StatusOpen},
		"contact":            {Contact: contact},
		"contact_closed":     {Contact: contact, Status: desk.StatusClosed},
		"contact_held":       {Contact: contact, Assignee: member.ID},
		"held":               {Assignee: member.ID},
		"held_channel":       {Assignee: member.ID, Channel: channels[1]},
		"held_channel_open":  {Assignee: member.ID, Channel: channels[1], Status: desk.StatusOpen},
		"all_of_it":          {Channel: channels[1], Contact: contact, Unassigned: true, Status: desk.StatusArchived},
		"contact_of_nothing": {Contact: newID(), Channel: channels[0]},
	} {
		var want, got []desk.ID
		for _, c := range stored {
			if f.Passes(c) {
				want = append(want, c.ID)
			}
		}
		pages := 0
		for _, c := range walk(t, desk.MaxLimit, func(after *desk.ConversationPlace, limit int) ([]*desk.Conversation, *desk.ConversationPlace, error) {
			pages++
			return s.Conversations(t.Context(), ws, f, after, limit)
		}) {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d conversations in %d pages, want %d", name, len(got), pages, len(want))
		}
		if most := 4 + len(want)/desk.MaxLimit + manyConversations/desk.MaxLooked; pages > most {
			t.Errorf("%s: %d pages of %d conversations", name, pages, len(want))
		}
	}
}

// pageBytes: a page has at most a few megabytes, but at least one record of any size.
func pageBytes(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	large := strings.Repeat("\"0123456789", 1+desk.MaxPage/8/11) // an eighth of a page, and a little more as JSON
	c := newConversation(newID(), newID())
	var people []desk.ID
	var said []*desk.Message
	for i := range 20 {
		op := upsert(fmt.Sprintf("p%d@example.com", i), "")
		op.Write.Note = text(large)
		if i == 12 {
			op.Write.Note = text(strings.Repeat(large, 12)) // larger than a page
		}
		people = append(people, put(t, s, ws, op).ID)
		m := newMessage(c)
		m.Text = op.Write.Note.Value
		said = append(said, m)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		for _, m := range said {
			if err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
	check := func(what string, sizes [][]int) {
		t.Helper()
		for n, page := range sizes {
			bytes := 0
			for _, size := range page {
				bytes += size
			}
			if len(page) == 0 || len(page) > 1 && bytes > desk.MaxPage {
				t.Errorf("%s: page %d holds %d records of %d bytes", what, n, len(page), bytes)
			}
		}
		if len(sizes) != 4 {
			t.Errorf("%s: %d pages", what, len(sizes))
		}
	}
	var sizes [][]int
	var ids []desk.ID
	for _, f := range []desk.ContactFilter{{}, {UpdatedSince: 1}} {
		sizes, ids = nil, nil
		for _, found := range walk(t, 50, func(after *desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error) {
			if after == nil {
				after = &desk.ContactPlace{}
			}
			page, next, err := s.Contacts(t.Context(), ws, f, *after, limit)
			var size []int
			for _, c := range page {
				size = append(size, c.ListBytes())
			}
			sizes = append(sizes, size)
			return page, next, err
		}) {
			ids = append(ids, found.ID)
		}
		check("contacts", sizes)
		equal(t, "contacts", ids, people)
	}
	sizes, ids = nil, nil
	for _, m := range walk(t, 50, func(after *desk.MessagePlace, limit int) ([]*desk.Message, *desk.MessagePlace, error) {
		page, next, err := s.Messages(t.Context(), ws, c.ID, after, limit)
		var size []int
		for _, m := range page {
			size = append(size, m.ListBytes())
		}
		sizes = append(sizes, size)
		return page, next, err
	}) {
		ids = append([]desk.ID{m.ID}, ids...)
	}
	check("messages", sizes)
	if len(ids) != len(said) || ids[0] != said[0].ID {
		t.Errorf("%d messages of %d", len(ids), len(said))
	}
}
