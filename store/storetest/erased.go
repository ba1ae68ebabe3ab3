package storetest

import (
	"fmt"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// erasedIsKnown: messages of a deleted contact are recognized by their ids at the
// provider, until the hashes of these ids have expired. Messages of other contacts are
// not.
func erasedIsKnown(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	gone, kept := put(t, s, ws, upsert("a@example.com", "905321112233")), put(t, s, ws, upsert("b@example.com", "905321112244"))
	channel, elsewhere := newID(), newID()
	ref := func(id string) desk.MessageRef { return desk.MessageRef{Channel: channel, ExternalID: id} }
	talks := func(contact *desk.Contact, conversations, messages int, name string) (refs []desk.MessageRef) {
		for i := range conversations {
			c := newConversation(channel, contact.ID)
			if i > 0 {
				c.Status = desk.StatusClosed
			}
			commit(t, s, ws, func(tx store.Tx) error {
				refs = refs[:i*messages]
				if err := tx.PutConversation(c); err != nil {
					return err
				}
				for n := range messages {
					m := newMessage(c)
					m.ExternalID, m.TS = fmt.Sprintf("%s %d.%d", name, i, n), desk.Time(n/2)
					refs = append(refs, ref(m.ExternalID))
					if err := tx.PutMessage(m); err != nil {
						return err
					}
				}
				silent := newMessage(c) // its id at the provider is not known
				return tx.PutMessage(silent)
			})
		}
		return refs
	}
	third := put(t, s, ws, upsert("c@example.com", "905321112255"))
	long, many, others := talks(gone, 1, 2007, "long"), talks(third, 45, 2, "many"), talks(kept, 1, 3, "kept")
	put(t, s, ws, remove(gone.ID), remove(third.ID))
	check := func(want bool, refs ...desk.MessageRef) {
		t.Helper()
		for _, m := range refs {
			commit(t, s, ws, func(tx store.Tx) error {
				known, erased, err := tx.ReceivedMessage(m)
				if known != nil || erased != want {
					t.Fatalf("%s: %v, erased %v, want %v", m.ExternalID, known, erased, want)
				}
				return err
			})
		}
	}
	check(true, long[0], long[1], long[999], long[1000], long[1001], long[2000], long[2006])
	check(true, many...)
	check(false, ref("unknown"), ref(""), desk.MessageRef{Channel: elsewhere, ExternalID: long[0].ExternalID})
	any := func(ws desk.ID, want bool, refs ...desk.MessageRef) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.AnyErased(refs)
			equal(t, "any erased", got, want)
			return err
		})
	}
	any(ws, true, others[0], ref("unknown"), many[89])
	any(ws, false, others...)
	any(ws, false)
	any(other, false, long...)
	commit(t, s, ws, func(tx store.Tx) error {
		known, erased, err := tx.ReceivedMessage(others[1])
		if known == nil || known.ExternalID != others[1].ExternalID || known.ContactID != kept.ID || erased {
			t.Errorf("one that is stored: %+v, erased %v", known, erased)
		}
		return err
	})

	forget := func(ws desk.ID, age time.Duration, limit, want int) {
		t.Helper()
		n, err := s.ForgetErased(t.Context(), ws, age, limit)
		must(t, err)
		equal(t, "forgotten", n, want)
	}
	forget(ws, time.Hour, 5000, 0)
	forget(other, -time.Hour, 5000, 0)
	forget(ws, -time.Hour, 2000, 2000)
	forget(ws, -time.Hour, 2000, len(long)+len(many)-2000)
	any(ws, false, append(long, many...)...)
}

// deleteErasesSettled: a deletion finds the settled attempts that sent a message to the
// contact, and those that sent nothing.
func deleteErasesSettled(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	contact, kept := put(t, s, ws, upsert("a@example.com", "905321112233")), put(t, s, ws, upsert("b@example.com", "905321112244"))
	c, bystanders := newConversation(newID(), contact.ID), newConversation(newID(), kept.ID)
	settled := func(phase desk.Phase, contact *desk.Contact) *desk.Attempt {
		a := newAttempt("905321112233")
		a.Plan.Contact, a.Plan.Known = contact.ID, true
		if phase == desk.Done {
			a.ExternalID, a.Response = "wamid."+a.ID.String(), []byte("{}")
			a.Notes = []string{a.TookAnother("wamid.x")}
		}
		a.Settle(phase, now())
		return a
	}
	done, apart, foreign := settled(desk.Done, contact), settled(desk.Done, kept), settled(desk.Refused, contact)
	gone, stay := []*desk.Attempt{done}, []*desk.Attempt{apart, settled(desk.Refused, kept), settled(desk.Released, kept)}
	for range 101 {
		gone = append(gone, settled(desk.Refused, contact))
	}
	gone = append(gone, settled(desk.Released, contact))
	sent := func(at *desk.Attempt, c *desk.Conversation) {
		m := newMessage(c)
		m.Direction, m.ExternalID, m.Attempt = desk.Outbound, at.ExternalID, at.ID
		commit(t, s, ws, func(tx store.Tx) error {
			if err := tx.PutConversation(c); err != nil {
				return err
			}
			if err := tx.PutMessage(m); err != nil {
				return err
			}
			again := *m // as it was read
			again.Attempt = desk.ID{}
			return tx.PutMessage(&again)
		})
	}
	sent(done, c)
	sent(apart, bystanders)
	putAttempts(t, s, ws, append(gone, stay...)...)
	putAttempts(t, s, other, foreign)
	put(t, s, ws, remove(contact.ID))
	for _, a := range gone {
		a.Erase()
	}
	check := func(ws desk.ID, list ...*desk.Attempt) {
		t.Helper()
		for _, want := range list {
			got, err := s.Attempt(t.Context(), ws, want.ID)
			must(t, err)
			equal(t, "attempt", got, want)
		}
	}
	check(ws, gone...)
	check(ws, stay...)
	check(other, foreign)
}
