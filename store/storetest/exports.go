package storetest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

// pagesOf reads pages of n records to the end.
func pagesOf[T, P any](t *testing.T, n int, read func(after P) ([]T, bool, error), place func(T) P) (list []T) {
	t.Helper()
	var after P
	for more := true; more; {
		page, rest, err := read(after)
		must(t, err)
		if len(page) > n || rest && len(page) == 0 {
			t.Fatalf("a page of %d, others follow: %v", len(page), rest)
		}
		if list, more = append(list, page...), rest; len(page) > 0 {
			after = place(page[len(page)-1])
		}
	}
	return list
}

func exportedContacts(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	put(t, s, other, called("Bob", 0))
	read := func(ws desk.ID, n int) []*desk.Contact {
		return pagesOf(t, n, func(after desk.ID) ([]*desk.Contact, bool, error) { return s.ContactsAfter(t.Context(), ws, after, n) }, func(c *desk.Contact) desk.ID { return c.ID })
	}
	if last, err := s.LastContact(t.Context(), ws); err != nil || !last.IsZero() {
		t.Errorf("the last contact of none: %s, %v", last, err)
	}
	if list := read(ws, 1); list != nil {
		t.Errorf("%d contacts of none", len(list))
	}
	var want []*desk.Contact
	for n := range 7 {
		op := called("Ada", n)
		if n == 3 {
			op.Write.Owner = refer(member.Email)
		}
		want = append(want, put(t, s, ws, op))
	}
	slices.SortFunc(want, func(a, b *desk.Contact) int { return a.ID.Compare(b.ID) })
	last, err := s.LastContact(t.Context(), ws)
	must(t, err)
	equal(t, "the last contact", last, want[len(want)-1].ID)
	commit(t, s, ws, func(tx store.Tx) error {
		there, err := tx.KeepContacts([]desk.ID{want[2].ID, newID(), want[0].ID})
		equal(t, "contacts that are there", there, map[desk.ID]bool{want[0].ID: true, want[2].ID: true})
		for id, is := range map[desk.ID]bool{want[1].ID: true, newID(): false} {
			there, failed := tx.KeepContactsNext([]desk.ID{id})
			must(t, failed)
			_, failed = tx.AttemptOfKey("none")
			must(t, failed)
			equal(t, "a contact that is there", there[id], is)
		}
		return err
	})
	for _, n := range []int{1, 3, 7, 8} {
		list := read(ws, n)
		equal(t, "contacts", len(list), len(want))
		for i, c := range list {
			same(t, c, want[i])
		}
	}
}

// exportedTalk: conversations, messages and notes come once each, in order, with their contacts.
func exportedTalk(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	var talks []*desk.Conversation
	var messages []*desk.Message
	var written []*desk.Note
	for n := range 5 {
		c := newConversation(newID(), newID())
		commit(t, s, other, func(tx store.Tx) error { return errors.Join(tx.PutConversation(c), tx.PutMessage(newMessage(c))) })
		c = newConversation(newID(), newID())
		talks = append(talks, c)
		for i := range 4 {
			m := newMessage(c)
			m.TS, m.Text, m.ContactID = desk.Time(i/2), strings.Repeat("\n", n%2*desk.MaxPage/4), c.ContactID
			note := &desk.Note{ID: newID(), ConversationID: c.ID, Text: "ü", Author: desk.Author{Type: desk.AuthorMember, ID: newID(), Name: "Ada"}, CreatedAt: now(), ContactID: c.ContactID}
			commit(t, s, ws, func(tx store.Tx) error {
				return errors.Join(tx.PutConversation(c), tx.PutMessage(m), tx.PutNote(note))
			})
			messages, written = append(messages, m), append(written, note)
		}
	}
	slices.SortFunc(talks, func(a, b *desk.Conversation) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(messages, func(a, b *desk.Message) int {
		return cmp.Or(a.ConversationID.Compare(b.ConversationID), cmp.Compare(a.TS, b.TS), a.ID.Compare(b.ID))
	})
	slices.SortFunc(written, func(a, b *desk.Note) int { return a.ID.Compare(b.ID) })
	for _, n := range []int{1, 3, 20, 21} {
		equal(t, "conversations", pagesOf(t, n, func(after desk.ID) ([]*desk.Conversation, bool, error) {
			return s.ConversationsAfter(t.Context(), ws, after, n)
		}, func(c *desk.Conversation) desk.ID { return c.ID }), talks)
		equal(t, "messages", pagesOf(t, n, func(after store.MessageKey) ([]*desk.Message, bool, error) {
			return s.MessagesAfter(t.Context(), ws, after, n)
		}, func(m *desk.Message) store.MessageKey {
			return store.MessageKey{Conversation: m.ConversationID, MessagePlace: m.Place()}
		}), messages)
		equal(t, "notes", pagesOf(t, n, func(after desk.ID) ([]*desk.Note, bool, error) {
			return s.NotesAfter(t.Context(), ws, after, n)
		}, func(n *desk.Note) desk.ID { return n.ID }), written)
	}
	page, more, err := s.MessagesAfter(t.Context(), ws, store.MessageKey{}, 100)
	if must(t, err); !more || len(page) == len(messages) {
		t.Errorf("a page of %d messages has any number of bytes", len(page))
	}
}

// erasures: each deletion of a contact stores its id and its time, in its own transaction, and
// the first time stays.
func erasures(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	read := func(ws desk.ID) []desk.Erasure {
		t.Helper()
		return pagesOf(t, 2, func(after desk.ID) ([]desk.Erasure, bool, error) { return s.Erasures(t.Context(), ws, after, 2) }, func(e desk.Erasure) desk.ID { return e.ID })
	}
	var people []*desk.Contact
	for n := range 5 {
		people = append(people, put(t, s, ws, called("Ada", n)))
	}
	start := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	put(t, s, ws, remove(people[0].ID))
	put(t, s, ws, remove(people[1].ID), remove(people[2].ID))
	commit(t, s, ws, func(tx store.Tx) error {
		book, err := tx.Book(desk.Lookup{IDs: []desk.ID{people[3].ID}})
		if err != nil {
			return err
		}
		if _, err := book.Apply(remove(people[3].ID), desk.Actor{}, now(), newID); err != nil {
			return err
		}
		return tx.Flush(book)
	})
	failed := errors.New("no")
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error { // what is not deleted is not listed
		book, err := tx.Book(desk.Lookup{IDs: []desk.ID{people[4].ID}})
		if err == nil {
			_, err = book.Apply(remove(people[4].ID), desk.Actor{}, now(), newID)
		}
		return errors.Join(err, tx.Flush(book), failed)
	}); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	var want []desk.Erasure
	for _, e := range feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: start, Limit: 50}).Events {
		if e.Type == desk.ContactDeleted {
			want = append(want, desk.Erasure{ID: e.Subject, At: e.At})
		}
	}
	slices.SortFunc(want, func(a, b desk.Erasure) int { return a.ID.Compare(b.ID) })
	equal(t, "deletions", len(want), 4)
	equal(t, "erasures", read(ws), want)
	later, earlier := want[0], want[1]
	later.At, earlier.At = later.At+5, 7
	stranger := desk.Erasure{ID: newID(), At: 9}
	commit(t, s, ws, func(tx store.Tx) error {
		return errors.Join(tx.PutErasures(nil), tx.PutErasures([]desk.Erasure{later, earlier, stranger}))
	})
	want[1] = earlier
	want = append(want, stranger)
	slices.SortFunc(want, func(a, b desk.Erasure) int { return a.ID.Compare(b.ID) })
	equal(t, "erasures, the first of each", read(ws), want)
	if list := read(other); list != nil {
		t.Errorf("%d erasures of another workspace", len(list))
	}
}

func countedOptOuts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	commit(t, s, other, func(tx store.Tx) error { return tx.SetOptOut(store.NumberHash{9}, store.OptOut{Since: 1, At: 1}) })
	for n, o := range []store.OptOut{{Since: 5, At: 7}, {At: 9}, {Since: 11, At: 11}} {
		commit(t, s, ws, func(tx store.Tx) error { return tx.SetOptOut(store.NumberHash{byte(n)}, o) })
	}
	n, err := s.CountOptOuts(t.Context(), ws)
	must(t, err)
	equal(t, "opt-outs", n, 2)
}

// exportedOfContact: what is stored about a contact besides its own records.
func exportedOfContact(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	ada, bob := put(t, s, ws, called("Ada", 1)), put(t, s, ws, called("Bob", 2))
	channel := newID()
	var callbacks []desk.HeldCallback
	for n := range 5 {
		at := desk.Time(10 + n/2)
		item := putCallback(t, s, ws, newCallback(channel, at), "111", "user-1")
		callbacks = append(callbacks, desk.HeldCallback{ReceivedAt: at, ID: item.ID, Channel: channel, Bytes: len(item.Body)})
	}
	putCallback(t, s, ws, newCallback(channel, 20), "222")
	slices.SortFunc(callbacks, func(a, b desk.HeldCallback) int {
		return cmp.Or(cmp.Compare(a.ReceivedAt, b.ReceivedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	for _, n := range []int{1, 2, 10} {
		got := pagesOf(t, n, func(after desk.HeldCallback) ([]desk.HeldCallback, bool, error) {
			list, err := s.CallbacksOf(t.Context(), ws, []string{"user-1", "111", "nobody"}, after, n)
			return list, len(list) == n, err
		}, func(h desk.HeldCallback) desk.HeldCallback { return h })
		equal(t, "callbacks", got, callbacks)
	}
	list, err := s.CallbacksOf(t.Context(), ws, nil, desk.HeldCallback{}, 10)
	must(t, err)
	equal(t, "callbacks of nobody", len(list), 0)

	var responses []desk.EventResponse
	for n := range 3 {
		d := newDelivery(1, []desk.ID{ada.ID, ada.ID, bob.ID}[n])
		for i := range n + 1 {
			at := d.CreatedAt + desk.Time(i)
			d.Tries = append(d.Tries, refused(at, fmt.Sprint("answer ", n, i)))
			if d.Contact == ada.ID {
				responses = append(responses, desk.EventResponse{Delivery: d.ID, At: at, Response: fmt.Sprint("answer ", n, i)})
			}
		}
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutDeliveries(newID(), []*desk.WebhookDelivery{d}) })
	}
	slices.SortFunc(responses, func(a, b desk.EventResponse) int {
		return cmp.Or(bytes.Compare(a.Delivery[:], b.Delivery[:]), cmp.Compare(a.At, b.At))
	})
	for _, n := range []int{1, 2, 10} {
		got := pagesOf(t, n, func(after desk.EventResponse) ([]desk.EventResponse, bool, error) {
			list, err := s.ResponsesOf(t.Context(), ws, ada.ID, after, n)
			return list, len(list) == n, err
		}, func(r desk.EventResponse) desk.EventResponse { return r })
		equal(t, "responses", got, responses)
	}

	attempt := func(phase desk.Phase, contact desk.ID, number string) desk.ID {
		a := desk.Attempt{ID: newID(), Key: newID().String(), Phase: phase, CreatedAt: now(), Plan: desk.Plan{Channel: channel, Contact: contact, Known: !contact.IsZero(), Number: number, Text: "x"}}
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutAttempt(&a) })
		return a.ID
	}
	want := map[desk.ID]bool{attempt(desk.InDoubt, ada.ID, "111"): true, attempt(desk.Dispatching, ada.ID, "111"): true, attempt(desk.InDoubt, desk.ID{}, "111"): true}
	attempt(desk.InDoubt, bob.ID, "222")
	attempt(desk.Refused, ada.ID, "111")
	for _, n := range []int{1, 2, 10} {
		attempts := pagesOf(t, n, func(after desk.ID) ([]*desk.Attempt, bool, error) {
			return s.AttemptsOf(t.Context(), ws, ada.ID, []string{"111"}, after, n)
		}, func(a *desk.Attempt) desk.ID { return a.ID })
		got := map[desk.ID]bool{}
		for _, a := range attempts {
			got[a.ID] = true
		}
		equal(t, "attempts", []any{got, len(attempts)}, []any{want, 3})
	}
	attempts, more, err := s.AttemptsOf(t.Context(), ws, newID(), nil, desk.ID{}, 10)
	must(t, err)
	equal(t, "attempts to nobody", []any{len(attempts), more}, []any{0, false})
}

// exportedRows: the rows of broadcasts that name a contact, or only one of its numbers.
func exportedRows(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	ada, bob := newID(), newID()
	var want []*desk.BroadcastRow
	for range 2 {
		b := aBroadcast()
		putBroadcast(t, s, ws, b)
		own, numbered, moved, others, blank := aRow(b, "333"), aRow(b, "111"), aRow(b, "222"), aRow(b, "444"), aRow(b, "")
		own.Contact, moved.Contact, blank.Contact = ada, bob, bob // 222 was Bob's number when he was written to
		putRow(t, s, ws, b, own, numbered, moved, others, blank)
		want = append(want, own, numbered)
	}
	slices.SortFunc(want, func(a, b *desk.BroadcastRow) int {
		return cmp.Or(bytes.Compare(a.Broadcast[:], b.Broadcast[:]), bytes.Compare(a.ID[:], b.ID[:]))
	})
	for _, n := range []int{1, 3, 10} {
		got := pagesOf(t, n, func(after store.RowRef) ([]*desk.BroadcastRow, bool, error) {
			return s.RowsOf(t.Context(), ws, ada, []string{"111", "222"}, after, n)
		}, func(r *desk.BroadcastRow) store.RowRef { return store.RowRef{Broadcast: r.Broadcast, Row: r.ID} })
		equal(t, "rows", got, want)
	}
	list, more, err := s.RowsOf(t.Context(), ws, newID(), nil, store.RowRef{}, 10)
	must(t, err)
	equal(t, "rows of nobody", []any{len(list), more}, []any{0, false})
}
