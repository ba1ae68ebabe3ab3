package storetest

import (
	"errors"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

// notes: notes keep their fields. Pages follow each other without a gap, and each has a
// bounded number of bytes. A note is deleted alone or with its contact.
func notes(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	contact := put(t, s, ws, upsert("a@example.com", ""))
	c, beside := newConversation(newID(), contact.ID), newConversation(newID(), newID())
	start := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	var written []*desk.Note
	for n := range 7 {
		at := now()
		note := &desk.Note{ID: idAt(at), ConversationID: c.ID, Text: strings.Repeat("\n", n*desk.MaxNoteText/6) + "ü", Author: desk.Author{Type: desk.AuthorMember, ID: newID(), Name: "Ada"}, CreatedAt: at}
		written = append([]*desk.Note{note}, written...)
	}
	far := *written[0]
	far.ConversationID = beside.ID
	commit(t, s, other, func(tx store.Tx) error { return tx.PutNote(written[0]) })
	commit(t, s, ws, func(tx store.Tx) error {
		errs := []error{tx.PutConversation(c), tx.PutConversation(beside), tx.PutNote(&far)}
		for _, n := range written {
			errs = append(errs, tx.PutNote(n), tx.Append(desk.Event{Type: desk.NoteCreated, Subject: n.ID, Conversation: c.ID, Contact: contact.ID, At: n.CreatedAt}))
		}
		return errors.Join(errs...)
	})
	list := func(conversation desk.ID, limit int) (found []*desk.Note) {
		t.Helper()
		for place := (*desk.ID)(nil); ; {
			page, next, err := s.Notes(t.Context(), ws, conversation, place, limit)
			must(t, err)
			if len(page) > limit {
				t.Errorf("%d notes in a page of %d", len(page), limit)
			}
			if found, place = append(found, page...), next; next == nil {
				return found
			}
		}
	}
	for _, limit := range []int{1, 3, 7, 8} {
		equal(t, "notes", list(c.ID, limit), written)
	}
	page := feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: start, Limit: 50})
	for _, n := range written {
		equal(t, "note of an event", page.Notes[n.ID], n)
	}

	gone := func(conversation, id desk.ID, want bool) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			there, err := tx.DeleteNote(conversation, id)
			equal(t, "deleted", there, want)
			return err
		})
	}
	gone(beside.ID, written[1].ID, false)
	gone(c.ID, written[1].ID, true)
	gone(c.ID, written[1].ID, false)
	equal(t, "notes after a deletion", list(c.ID, 8), append(written[:1:1], written[2:]...))
	put(t, s, ws, remove(contact.ID))
	equal(t, "notes of a deleted contact", list(c.ID, 8), []*desk.Note(nil))
	equal(t, "notes of another", list(beside.ID, 8), []*desk.Note{&far})
	page = feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: start, Limit: 50})
	for id, n := range page.Notes {
		if n != nil {
			t.Errorf("the note %s of a deleted contact is in the page", id)
		}
	}

	// A page ends before it has too many bytes.
	commit(t, s, ws, func(tx store.Tx) error {
		var errs []error
		for n := range 260 {
			at := now()
			errs = append(errs, tx.PutNote(&desk.Note{ID: idAt(at), ConversationID: beside.ID, Text: strings.Repeat("\x01", desk.MaxNoteText), CreatedAt: at + desk.Time(n)}))
		}
		return errors.Join(errs...)
	})
	first, next, err := s.Notes(t.Context(), ws, beside.ID, nil, 200)
	must(t, err)
	if next == nil || len(first) < 100 || len(first) == 200 || *next != first[len(first)-1].ID {
		t.Errorf("a page of long notes has %d, and goes on after %v", len(first), next)
	}
	equal(t, "long notes", len(list(beside.ID, 200)), 261)
}
