package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"parley/desk"
	"parley/store"
)

func ownWrites(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	wantType(t, s.InTx(t.Context(), newID(), func(store.Tx) error { t.Error("ran without a workspace"); return nil }), desk.NotFound)
	_, err := s.Book(t.Context(), newID(), desk.Lookup{})
	wantType(t, err, desk.NotFound)
	op := upsert("a@example.com", "905321112233")
	op.Write.Owner = refer(member.ID.String())
	var contact *desk.Contact
	commit(t, s, ws, func(tx store.Tx) error {
		if tx.Settings().ID != ws || tx.Settings().Member(member.ID) == nil {
			t.Errorf("settings = %+v", tx.Settings())
		}
		book, err := tx.Book(op.Lookup())
		if err != nil {
			return err
		}
		o, err := book.Apply(op, desk.Actor{}, now(), newID)
		if err != nil {
			return err
		}
		if contact, err = tx.Contact(o.Contact.ID); err != nil || contact != nil {
			return fmt.Errorf("before the flush: %v, %w", contact, err)
		}
		if err := tx.Flush(book); err != nil {
			return err
		}
		if contact, err = tx.Contact(o.Contact.ID); err != nil {
			return err
		}
		same(t, contact, o.Contact)
		if book, err = tx.Book(op.Lookup()); err != nil {
			return err
		}
		same(t, book.Oldest(op.Write.Sent[0]), o.Contact)
		c := newConversation(newID(), contact.ID)
		m, a := newMessage(c), newAttempt("1")
		m.ExternalID = "x"
		if err := errors.Join(tx.PutConversation(c), tx.PutMessage(m), tx.PutAttempt(a), tx.TakeKey("k", a.ID), tx.Append(desk.Event{Type: desk.MessageReceived})); err != nil {
			return err
		}
		one, err1 := tx.Conversation(c.ID)
		equal(t, "conversation", one, c)
		open, err2 := tx.OpenConversation(c.ChannelID, contact.ID)
		equal(t, "open conversation", open, c)
		m.ContactID = contact.ID
		message, err3 := tx.Message(c.ID, m.ID)
		equal(t, "message", message, m)
		by, err4 := tx.MessageBy(c.ChannelID, "x")
		equal(t, "message by the provider's id", by, m)
		holder, err5 := tx.AttemptOfKey("k")
		equal(t, "attempt", holder, a)
		m.Text, c.Preview = "other", "other"
		return errors.Join(err1, err2, err3, err4, err5, tx.PutMessage(m), tx.PutConversation(c))
	})
	got, _, err := s.Contact(t.Context(), ws, contact.ID)
	must(t, err)
	same(t, got, contact)
	book, err := s.Book(t.Context(), ws, op.Lookup())
	must(t, err)
	same(t, book.Oldest(op.Write.Sent[0]), contact)
	_, err = book.Apply(remove(contact.ID), desk.Actor{}, now(), newID) // not stored
	must(t, err)
	_, _, err = s.Contact(t.Context(), ws, contact.ID)
	must(t, err)
	commit(t, s, ws, func(tx store.Tx) error {
		c, err1 := tx.Contact(newID())
		v, err2 := tx.Conversation(newID())
		m, err3 := tx.Message(newID(), newID())
		a, err4 := tx.Attempt(newID())
		if c != nil || v != nil || m != nil || a != nil {
			t.Errorf("found %v, %v, %v, %v by ids that nobody has", c, v, m, a)
		}
		return errors.Join(err1, err2, err3, err4)
	})
}

// txErrors runs transactions that fail in every possible way, and other transactions that
// succeed at the same time.
func txErrors(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	held := newID()
	commit(t, s, ws, func(tx store.Tx) error { return tx.TakeKey("held", held) })
	refusal := desk.Invalidf("no")
	conversations := make([]*desk.Conversation, 120)
	var group sync.WaitGroup
	for n := range conversations {
		c := newConversation(newID(), newID())
		conversations[n] = c
		group.Go(func() {
			err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
				if n%8 == 1 {
					return refusal // before any write
				}
				if n%8 == 2 {
					return tx.TakeKey("held", c.ID)
				}
				if err := errors.Join(tx.PutConversation(c), tx.PutMessage(newMessage(c)), tx.Append(desk.Event{Type: desk.MessageReceived})); err != nil {
					return err
				}
				if n%24 == 3 {
					return refusal
				}
				if n%24 == 4 {
					return tx.TakeKey("held", c.ID)
				}
				return nil
			})
			switch {
			case n%8 == 1 || n%24 == 3:
				if err != refusal { //nolint:errorlint // the promise is this very error
					t.Errorf("error = %v, want the refusal as it is", err)
				}
			case n%8 == 2 || n%24 == 4:
				if err == nil || desk.IsType(err, desk.Unavailable) {
					t.Errorf("error = %v, want one that is not the machine's", err)
				}
			case err != nil:
				t.Errorf("a neighbour of those that fail: %v", err)
			}
		})
	}
	group.Wait()
	for n, c := range conversations {
		fails := n%8 == 1 || n%8 == 2 || n%24 == 3 || n%24 == 4
		messages, _, err := s.Messages(t.Context(), ws, c.ID, nil, 10)
		must(t, err)
		if found, err := s.Conversation(t.Context(), ws, c.ID); err != nil || (found == nil) != fails || (len(messages) == 0) != fails {
			t.Errorf("transaction %d: %v, and %d messages are stored", n, err, len(messages))
		}
	}
}

// openOrCreate: if many look for an open conversation at once and create one if there is
// none, only one is created.
func openOrCreate(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	channel, contact := newID(), newID()
	const callers = 32
	found := make([]desk.ID, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
				c, err := tx.OpenConversation(channel, contact)
				if err != nil {
					return err
				}
				if c == nil {
					c = newConversation(channel, contact)
					err = tx.PutConversation(c)
				}
				found[n] = c.ID
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	list, _, err := s.Conversations(t.Context(), ws, desk.ConversationFilter{}, nil, 10)
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%d conversations, want 1", len(list))
	}
	for _, id := range found {
		equal(t, "conversation found", id, list[0].ID)
	}
}

// recordsAreSealed: two workspaces have records with the same ids and keys, and neither
// sees the other's records. Lists, templates, opt-outs and the rest are tested in their
// own cases.
func recordsAreSealed(t *testing.T, s store.Store) {
	one, _ := newWorkspace(t, s)
	two, _ := newWorkspace(t, s)
	type records struct {
		c *desk.Conversation
		m *desk.Message
		a *desk.Attempt
	}
	inOne := records{c: newConversation(newID(), newID()), a: newAttempt("1")}
	inOne.m = newMessage(inOne.c)
	inOne.m.ExternalID, inOne.m.ContactID, inOne.a.Phase = "x", inOne.c.ContactID, desk.InDoubt
	write := func(ws desk.ID, r records) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			return errors.Join(tx.PutConversation(r.c), tx.PutMessage(r.m), tx.PutAttempt(r.a), tx.TakeKey("k", r.a.ID))
		})
	}
	// check is a helper that reads the records with all methods.
	check := func(ws desk.ID, want records) {
		t.Helper()
		id, c := inOne.m.ID, inOne.c
		commit(t, s, ws, func(tx store.Tx) error {
			var got, by, open, held records
			var errs [6]error
			got.c, errs[0] = tx.Conversation(c.ID)
			open.c, errs[1] = tx.OpenConversation(c.ChannelID, c.ContactID)
			got.m, errs[2] = tx.Message(c.ID, id)
			by.m, errs[3] = tx.MessageBy(c.ChannelID, "x")
			got.a, errs[4] = tx.Attempt(inOne.a.ID)
			held.a, errs[5] = tx.AttemptOfKey("k")
			equal(t, "records", got, want)
			equal(t, "records otherwise", records{open.c, by.m, held.a}, want)
			return errors.Join(errs[:]...)
		})
		conversation, err := s.Conversation(t.Context(), ws, c.ID)
		must(t, err)
		messages, _, err := s.Messages(t.Context(), ws, c.ID, nil, 10)
		must(t, err)
		held, err := s.AttemptOfKey(t.Context(), ws, "k")
		must(t, err)
		attempt, err := s.Attempt(t.Context(), ws, inOne.a.ID)
		must(t, err)
		equal(t, "attempt of the key", held, attempt)
		if want.m != nil {
			listed := *want.m
			listed.ContactID = desk.ID{}
			equal(t, "messages", messages, []*desk.Message{&listed})
			messages = nil
		}
		equal(t, "records", records{conversation, nil, attempt}, records{want.c, nil, want.a})
		equal(t, "more messages", messages, []*desk.Message(nil))
		for _, f := range []desk.ConversationFilter{{}, {Status: desk.StatusOpen}, {Contact: c.ContactID}} {
			list, _, err := s.Conversations(t.Context(), ws, f, nil, 10)
			must(t, err)
			if (len(list) == 0) != (want.c == nil) || len(list) > 0 && !reflect.DeepEqual(list, []*desk.Conversation{want.c}) {
				t.Errorf("conversations of %+v = %+v", f, list)
			}
		}
		for _, phase := range []desk.Phase{"", desk.InDoubt} {
			list, _, err := s.Attempts(t.Context(), ws, phase, nil, 10)
			must(t, err)
			if (len(list) == 0) != (want.a == nil) || len(list) > 0 && !reflect.DeepEqual(list, []*desk.Attempt{want.a}) {
				t.Errorf("attempts = %+v", list)
			}
		}
	}
	write(one, inOne)
	check(one, inOne)
	check(two, records{})
	c, m, a := *inOne.c, *inOne.m, *inOne.a
	c.Preview, m.Text, a.Key = "two", "two", "two"
	inTwo := records{&c, &m, &a}
	write(two, inTwo)
	check(one, inOne)
	check(two, inTwo)
	commit(t, s, one, func(tx store.Tx) error { return tx.FreeKey("k") }) // freeing a key of one workspace does not free the other's
	check(two, inTwo)
}
