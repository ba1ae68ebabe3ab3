package storetest

import (
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// holding stores a conversation of this status that is assigned to a member.
func holding(t *testing.T, s store.Store, ws, member desk.ID, status desk.ConversationStatus) {
	t.Helper()
	c := newConversation(newID(), newID())
	c.AssignedMember, c.AssignedVia, c.Status = member, desk.ViaRule, status
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(c) })
}

// loadsAndTurns: the open conversations of a member are counted up to a bound, and each
// policy has its own turns.
func loadsAndTurns(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	ada, bo, policy := newID(), newID(), newID()
	for range 3 {
		holding(t, s, ws, ada, desk.StatusOpen)
	}
	holding(t, s, ws, ada, desk.StatusClosed)
	holding(t, s, ws, bo, desk.StatusOpen)
	holding(t, s, other, bo, desk.StatusOpen)
	check := func(ws, policy desk.ID, most int, want map[desk.ID]desk.Load) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			if err := tx.LockAssignment(); err != nil {
				return err
			}
			got, err := tx.Loads(policy, []desk.ID{ada, bo}, most)
			equal(t, "loads", got, want)
			return err
		})
	}
	check(ws, policy, 10, map[desk.ID]desk.Load{ada: {Open: 3}, bo: {Open: 1}})
	check(ws, policy, 2, map[desk.ID]desk.Load{ada: {Open: 2}, bo: {Open: 1}})
	check(ws, policy, 0, map[desk.ID]desk.Load{ada: {}, bo: {}})
	for _, m := range []desk.ID{ada, bo, ada} {
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutTurn(policy, m) })
	}
	check(ws, policy, 0, map[desk.ID]desk.Load{ada: {Chosen: 3}, bo: {Chosen: 2}})
	check(ws, desk.ID{}, 0, map[desk.ID]desk.Load{ada: {}, bo: {}})
	check(other, policy, 9, map[desk.ID]desk.Load{ada: {}, bo: {Open: 1}})
	commit(t, s, ws, func(tx store.Tx) error { // the transaction's own writes count too
		c := newConversation(newID(), newID())
		c.AssignByRule(bo)
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		got, err := tx.Loads(policy, []desk.ID{bo}, 9)
		equal(t, "loads", got, map[desk.ID]desk.Load{bo: {Open: 2, Chosen: 2}})
		return err
	})
}

// pool tests Pool and Pools. Unassigned conversations that wait are listed, longest wait
// first. A workspace with such conversations is found only if it has a policy.
func pool(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	channel := newID()
	var want []*desk.Conversation
	add := func(waiting desk.Time, edit func(*desk.Conversation)) *desk.Conversation {
		c := newConversation(channel, newID())
		c.Talk.WaitingSince = waiting
		edit(c)
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(c) })
		return c
	}
	for _, at := range []desk.Time{30, 10, 20} {
		want = append(want, add(at, func(*desk.Conversation) {}))
	}
	want = []*desk.Conversation{want[1], want[2], want[0]}
	add(0, func(*desk.Conversation) {})
	add(5, func(c *desk.Conversation) { c.Status = desk.StatusClosed })
	add(5, func(c *desk.Conversation) { c.AssignByRule(newID()) })
	add(5, func(c *desk.Conversation) { c.ChannelID = newID() })
	commit(t, s, ws, func(tx store.Tx) error {
		got, err := tx.Pool(channel, 9)
		equal(t, "pool", got, want)
		if err != nil {
			return err
		}
		got, err = tx.Pool(channel, 2)
		equal(t, "pool", got, want[:2])
		return err
	})
	pools := func(want ...desk.ID) (list []store.Pool) {
		t.Helper()
		list, err := s.Pools(t.Context(), nil)
		must(t, err)
		var got []desk.ID
		for _, p := range list {
			got = append(got, p.Workspace)
		}
		equal(t, "pools", got, want)
		return list
	}
	pools()
	other, _ := newWorkspace(t, s)
	for _, ws := range []desk.ID{ws, other} {
		edit(t, s, ws, desk.Change{Policies: []*desk.Policy{{}, {Channel: channel}}})
	}
	before := pools(ws)[0]
	equal(t, "a pool that has not changed", pools(ws)[0], before)
	put(t, s, ws, upsert("a@example.com", ""))
	after := pools(ws)[0]
	if after.Event != before.Event+1 || after.Settings != before.Settings {
		t.Errorf("after an event: %+v, then %+v", before, after)
	}
	edit(t, s, ws, desk.Change{Policies: []*desk.Policy{{Assign: &desk.Assign{Mode: desk.AssignNone}}}})
	if last := pools(ws)[0]; last.Settings <= after.Settings {
		t.Errorf("after a change of the settings: %+v, then %+v", after, last)
	}
	must(t, s.DeleteWorkspace(t.Context(), ws, func(string) error { return nil }))
	pools()
}

// autoReplies: only one caller has a reply until its lease ends. The oldest reply is
// taken first. Replies are deleted with their contact.
func autoReplies(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	person := put(t, s, ws, upsert("a@example.com", "")).ID
	now, _, err := s.Clock(t.Context())
	must(t, err)
	due := func(want ...desk.ID) {
		t.Helper()
		waits, err := s.AutoRepliesDue(t.Context(), time.Hour)
		must(t, err)
		var got []desk.ID
		for id, wait := range waits {
			if wait == 0 {
				got = append(got, id)
			}
		}
		equal(t, "due", got, want)
	}
	take := func() *desk.AutoReplyJob {
		t.Helper()
		j, err := s.TakeAutoReply(t.Context(), ws, time.Minute, time.Hour)
		must(t, err)
		return j
	}
	due()
	if j := take(); j != nil {
		t.Errorf("taken: %+v", j)
	}
	old := desk.AutoReplyJob{
		Message: newID(), Channel: newID(), Contact: person, Conversation: newID(), Kind: desk.AutoAway, Text: "a'b\"c 😀", DecidedAt: now - 9, Due: now - 5000, Tries: 2,
	}
	young, far := old, old
	young.Message, young.Due = newID(), now-4000
	far.Message, far.Due, far.Contact = newID(), now+2*3_600_000, newID() // stored before the clock was set back
	commit(t, s, ws, func(tx store.Tx) error {
		for _, j := range []desk.AutoReplyJob{far, young, old} {
			if err := tx.PutAutoReply(j); err != nil {
				return err
			}
		}
		return nil
	})
	due(ws)
	for _, want := range []desk.AutoReplyJob{old, young, far} {
		got := take()
		if got == nil || got.Due < now+50_000 {
			t.Fatalf("taken: %+v", got)
		}
		got.Due = want.Due
		equal(t, "job", *got, want)
	}
	due()
	commit(t, s, ws, func(tx store.Tx) error {
		young.Due = now + 1
		if err := tx.PutAutoReply(young); err != nil {
			return err
		}
		got, err := tx.AutoReply(person, young.Message)
		equal(t, "job", got, &young)
		if err != nil {
			return err
		}
		if err := tx.DropAutoReply(person, young.Message); err != nil {
			return err
		}
		got, err = tx.AutoReply(person, young.Message)
		equal(t, "job", got, (*desk.AutoReplyJob)(nil))
		return err
	})
	put(t, s, ws, remove(person))
	commit(t, s, ws, func(tx store.Tx) error {
		got, err := tx.AutoReply(person, old.Message)
		equal(t, "job of an erased person", got, (*desk.AutoReplyJob)(nil))
		return err
	})
}

// oneAssigns: between the lock and the commit, no other transaction assigns.
func oneAssigns(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	ada := newID()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
				if err := tx.LockAssignment(); err != nil {
					return err
				}
				loads, err := tx.Loads(desk.ID{}, []desk.ID{ada}, 100)
				if err != nil || loads[ada].Open >= 7 {
					return err
				}
				c := newConversation(newID(), newID())
				c.AssignByRule(ada)
				if err := tx.PutTurn(desk.ID{}, ada); err != nil {
					return err
				}
				return tx.PutConversation(c)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	commit(t, s, ws, func(tx store.Tx) error {
		loads, err := tx.Loads(desk.ID{}, []desk.ID{ada}, 100)
		equal(t, "loads", loads, map[desk.ID]desk.Load{ada: {Open: 7, Chosen: 7}})
		return err
	})
}
