package app_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/app/merges"
	"parley/desk"
	"parley/provider"
)

var broadcastHistories = flag.Int("broadcast-histories", 6, "how many random histories TestBroadcast_histories has. Long run: -run 'TestBroadcast_histories|TestPostgres/TestBroadcast_histories' -broadcast-histories 500 -timeout 60m")

// A castTalk is a conversation as the model of TestBroadcast_histories sees it.
type castTalk struct {
	contact desk.ID
	made    desk.Time
	last    desk.Time // when its newest message was sent
	said    int       // number of messages
	unread  int
	status  desk.ConversationStatus
	dormant bool
	waiting bool
	holder  desk.ID
}

func (c castTalk) String() string {
	return fmt.Sprintf("%s, dormant %t, waiting %t, %d messages, %d unread, held by %s, of %s", c.status, c.dormant, c.waiting, c.said, c.unread, c.holder, c.contact)
}

// A castHistory is what happens to a few people, and the conversations that it must lead to.
type castHistory struct {
	*world
	*rand.Rand
	numbers []string
	holds   map[string]desk.ID // the contact that has a number
	talks   map[desk.ID]*castTalk
	fresh   []*castTalk // made by the last step; the store knows their ids
}

// TestBroadcast_histories: people get broadcasts and single sends, write, are merged, and their
// conversations are closed, in random order. Each message is in the conversation in which the
// model has it, and each conversation is as the model says (contract-broadcast §5).
func TestBroadcast_histories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checkpoints()
	for n := range *broadcastHistories {
		h := &castHistory{world: w, Rand: rand.New(rand.NewPCG(5, uint64(n))), numbers: numbersFrom(10*n, 4), holds: map[string]desk.ID{}, talks: map[desk.ID]*castTalk{}}
		for i, number := range h.numbers {
			parts := []func(*desk.ContactWrite){phoned(number)}
			if i%2 == 0 {
				parts = append(parts, ownedBy([]desk.Member{w.ada, w.grace}[h.IntN(2)].ID.String()))
			}
			h.holds[number] = w.put(parts...).ID
		}
		for step := range 30 {
			w.clock.advance(time.Duration(1+h.IntN(3600)) * time.Second)
			if h.IntN(8) == 0 {
				w.clock.advance(20 * 24 * time.Hour)
			}
			what := h.happens()
			if h.compare(); t.Failed() {
				t.Fatalf("history %d, step %d: %s", n, step, what)
			}
		}
	}
}

// happens lets one thing happen, to the people and in the model.
func (h *castHistory) happens() (what string) {
	t := h.t
	t.Helper()
	number := h.numbers[h.IntN(len(h.numbers))]
	contact, now := h.holds[number], desk.TimeOf(h.clock.now())
	switch what := h.IntN(12); {
	case what < 4:
		h.broadcasts(h.IntN(2) == 0)
		return "broadcast"
	case what < 7:
		said := []string{"Hello", "Is it ready?", "STOP", "START"}[h.IntN(4)]
		in := provider.InboundMessage{ExternalID: h.clock.newID().String(), Number: number, Text: said, At: now}
		_, err := h.Receive(t.Context(), h.ws, h.channel, in)
		must(t, err)
		c := h.into(contact, now, desk.OptWord(said) == desk.OptNone)
		c.unread++
		c.waiting = true
		return "they write " + said
	case what < 9:
		h.sent(h.clock.newID().String(), to(number))
		h.into(contact, now, true).waiting = false
		return "a single send"
	case what < 11:
		list := h.of(contact)
		if len(list) == 0 {
			return "nothing"
		}
		id := list[h.IntN(len(list))]
		status := []desk.ConversationStatus{desk.StatusClosed, desk.StatusArchived}[h.IntN(2)]
		_, err := h.SetStatus(t.Context(), h.caller(), id, status, nil)
		must(t, err)
		if c := h.talks[id]; c.status != status {
			c.status, c.dormant = status, false
		}
		return "closed"
	}
	other := h.holds[h.numbers[h.IntN(len(h.numbers))]]
	if other == contact {
		return "nothing"
	}
	_, err := h.Merges.Do(t.Context(), h.caller(), merges.Request{Into: contact, From: other})
	must(t, err)
	one, two := h.open(contact), h.open(other)
	if one != nil && two != nil {
		if loses(h.conversation(h.idOf(one)), h.conversation(h.idOf(two))) {
			two = one
		}
		two.status = desk.StatusClosed
	}
	for _, c := range h.talks {
		if c.contact == other {
			c.contact = contact
		}
	}
	for number, holder := range h.holds {
		if holder == other {
			h.holds[number] = contact
		}
	}
	return "a merge"
}

// broadcasts sends to some of the people.
func (h *castHistory) broadcasts(skipOpen bool) {
	t := h.t
	t.Helper()
	numbers := slices.DeleteFunc(slices.Clone(h.numbers), func(string) bool { return h.IntN(3) == 0 })
	if len(numbers) == 0 {
		return
	}
	b := h.draft(numbers...)
	_, err := h.Broadcasts.Edit(t.Context(), h.caller(), b.ID, &desk.BroadcastInput{SkipOpen: desk.Field[bool]{Set: true, Value: skipOpen}})
	must(t, err)
	h.startBroadcast(b.ID)
	h.until(b.ID, "its end", in(desk.BroadcastDone))
	now, reached := desk.TimeOf(h.clock.now()), map[desk.ID]bool{}
	for _, number := range numbers {
		contact := h.holds[number]
		c := h.open(contact)
		if reached[contact] || c != nil && skipOpen {
			continue
		}
		reached[contact] = true
		if c == nil {
			if id := h.newest(contact, func(c *castTalk) bool { return c.dormant }); !id.IsZero() {
				c = h.talks[id]
			}
		}
		if c == nil {
			c = &castTalk{contact: contact, made: now, status: desk.StatusArchived, dormant: true}
			h.fresh = append(h.fresh, c)
		}
		c.said++
		c.last = now
	}
}

// into returns the conversation into which a message goes that is no broadcast's: the open one,
// else the newest one, if it is dormant and not too old, else a new one.
func (h *castHistory) into(contact desk.ID, now desk.Time, wakes bool) *castTalk {
	c := h.open(contact)
	if id := h.newest(contact, func(*castTalk) bool { return true }); c == nil && !id.IsZero() {
		if newest := h.talks[id]; newest.dormant && now-newest.last <= desk.Time((30*24*time.Hour).Milliseconds()) {
			c = newest
		}
	}
	opens := c != nil && c.dormant && wakes
	if c == nil {
		c, opens = &castTalk{contact: contact, made: now}, true
		h.fresh = append(h.fresh, c)
	}
	if opens {
		c.status, c.dormant, c.holder = desk.StatusOpen, false, desk.ID{}
		if owner := h.contact(contact).Owner; owner != nil {
			c.holder = owner.ID
		}
	}
	c.said++
	c.last = now
	return c
}

func (h *castHistory) open(contact desk.ID) *castTalk {
	for _, c := range h.talks {
		if c.contact == contact && c.status == desk.StatusOpen {
			return c
		}
	}
	return nil
}

// newest returns the id of the conversation with a contact that was made last; zero: none is such.
func (h *castHistory) newest(contact desk.ID, such func(*castTalk) bool) (id desk.ID) {
	for other, c := range h.talks {
		if c.contact == contact && such(c) && (id.IsZero() || c.made > h.talks[id].made || c.made == h.talks[id].made && other.Compare(id) > 0) {
			id = other
		}
	}
	return id
}

// of returns the ids of the conversations with a contact, in an order that does not change.
func (h *castHistory) of(contact desk.ID) (list []desk.ID) {
	for id, c := range h.talks {
		if c.contact == contact {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, desk.ID.Compare)
	return list
}

func (h *castHistory) idOf(c *castTalk) (id desk.ID) {
	for id, one := range h.talks {
		if one == c {
			return id
		}
	}
	return id
}

// compare compares what is stored with the model.
func (h *castHistory) compare() {
	t := h.t
	t.Helper()
	seen, found := map[desk.ID]bool{}, 0
	for _, contact := range h.holds {
		if seen[contact] {
			continue
		}
		seen[contact] = true
		list, _, err := h.Conversations(t.Context(), h.caller(), desk.ConversationFilter{Contact: contact}, "", 200)
		must(t, err)
		for _, c := range list {
			found++
			if h.talks[c.ID] == nil {
				for i, made := range h.fresh {
					if made.contact == contact {
						made.made = c.CreatedAt // of two rows of a broadcast, the id that was drawn later may be of the older one
						h.talks[c.ID], h.fresh = made, slices.Delete(h.fresh, i, i+1)
						break
					}
				}
			}
			want := h.talks[c.ID]
			got := castTalk{contact: c.ContactID, said: len(h.messages(c.ID)), unread: c.Talk.Unread, status: c.Status, dormant: c.Dormant, waiting: c.Talk.WaitingSince > 0, holder: c.AssignedMember}
			if want == nil || got.String() != want.String() {
				t.Errorf("the conversation %s is\n%s\nwant\n%s", c.ID, got, want)
			}
		}
	}
	if found != len(h.talks) || len(h.fresh) > 0 {
		t.Errorf("%d conversations are there, want %d and %d new ones", found, len(h.talks), len(h.fresh))
	}
}

// TestBroadcast_unnoticed: the team does not see a broadcast. The list of open conversations,
// who waits and since when, and who has the fewest open conversations are the same as before.
func TestBroadcast_unnoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy(assigns(desk.AssignLeastOpen, 0, w.ada, w.grace))
	numbers := numbersFrom(0, *broadcastRows)
	for i, number := range numbers[:5] { // three of Ada's, two of Grace's
		w.clock.advance(time.Second)
		w.held(w.writes(number, "Hello").ID, []desk.Member{w.ada, w.grace}[i%2])
	}
	inbox := func() (list []desk.Conversation) {
		for _, f := range []desk.ConversationFilter{{Status: desk.StatusOpen}, {Status: desk.StatusOpen, Longest: true}, {Status: desk.StatusOpen, Assignee: w.grace.ID}, {Status: desk.StatusArchived, Awake: true}} {
			page, _, err := w.Conversations(t.Context(), w.operator(), f, "", 200)
			must(t, err)
			for _, c := range page {
				c.Preview, c.LastMessageAt, c.Talk.LastDirection = "", 0, "" // they show the broadcast's message
				list = append(list, *c)
			}
		}
		slices.SortStableFunc(list, func(a, b desk.Conversation) int { return a.ID.Compare(b.ID) })
		return list
	}
	before := inbox()
	b := w.draft(numbers...)
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := b.Counts.ByStatus[desk.RowSent] + b.Counts.ByStatus[desk.RowDelivered]; n != int64(len(numbers)) {
		t.Errorf("%d of %d were sent: %v", n, len(numbers), b.Counts.ByStatus)
	}
	if after := inbox(); !slices.Equal(after, before) || len(before) != 5+5+2 {
		t.Errorf("the inbox was\n%+v\nand is\n%+v", before, after)
	}
	if c := w.conversation(w.writes("905330000001", "Hello").ID); c.AssignedMember != w.grace.ID {
		t.Errorf("the next conversation is held by %s; Grace has the fewest", c.AssignedMember)
	}
}
