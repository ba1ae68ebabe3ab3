package app_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app/merges"
	"parley/desk"
	"parley/provider"
)

var mergeRounds = flag.Int("merge-rounds", 25, "TestMerge_undone: how many merges are undone. Long run: -run 'TestMerge_undone|TestPostgres/TestMerge_undone' -merge-rounds 10000 -timeout 4h")

func (w *world) merge(into, from *desk.Contact, take ...string) *desk.Merge {
	w.t.Helper()
	m, err := w.Merges.Do(w.t.Context(), w.caller(), merges.Request{Into: into.ID, From: from.ID, Take: take})
	must(w.t, err)
	return m
}

// TestMerge: one contact becomes part of another, with all that it has.
func TestMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	into := w.put(named("Ada L."), mailed("ada@example.com"), phoned("905321110001"))
	from := w.put(named("Ada Lovelace"), mailed("lovelace@example.com"), alsoKnownAs("shop", "77"), ownedBy("grace@example.com"))
	talk := w.writes("905321110002", "Hi")
	third := w.contact(talk.ContactID)
	dry, err := w.Merges.Try(t.Context(), w.caller(), merges.Request{Into: into.ID, From: from.ID, Take: []string{"name"}})
	must(t, err)
	m := w.merge(into, from, "name")
	if !dry.ID.IsZero() || dry.At != 0 || fmt.Sprint(dry.Changes, dry.Moved) != fmt.Sprint(m.Changes, m.Moved) {
		t.Errorf("the dry run said %+v, and it became %+v", dry, m)
	}
	if m.Into != into.ID || m.From != from.ID || m.Moved.Identities != 2 || m.Undo != nil {
		t.Errorf("record: %+v", m)
	}
	c := w.contact(into.ID)
	if c.Name != "Ada Lovelace" || c.Email != "ada@example.com" || c.Owner == nil || c.Owner.ID != w.grace.ID {
		t.Errorf("survivor: %+v", c)
	}
	if got := fmt.Sprint(c.Further); !strings.Contains(got, "lovelace@example.com") || !strings.Contains(got, "shop 77") {
		t.Errorf("further: %s", got)
	}
	e := refusalOf(t, errOf(w.Contact(t.Context(), w.caller(), from.ID)), desk.NotFound)
	if e.Details != (desk.Merged{Into: into.ID, Merge: m.ID}) {
		t.Errorf("the merged contact is answered with %+v", e.Details)
	}
	if again := w.merge(into, from); again.ID != m.ID {
		t.Errorf("the same merge again: %+v", again)
	}
	w.merge(into, third)
	if c := w.conversation(talk.ID); c.ContactID != into.ID {
		t.Errorf("the conversation is %v's", c.ContactID)
	}
	if again := w.writes("905321110002", "Hi again"); again.ID != talk.ID {
		t.Error("a message of the merged contact's number opens another conversation")
	}
	refused(t, errOf(w.Merges.Undo(t.Context(), w.caller(), m.ID)), desk.UndoBlocked)
}

func errOf[T any](_ T, err error) error { return err }

// TestMerge_tried: a dry run of a merge lists the conversations that it would close in the
// order of the merge. A dry run of the undo tells which ones are gone or stay closed.
func TestMerge_tried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	into, from := w.put(phoned("905321110001")), w.put(phoned("905321110002"))
	channels := []desk.ID{w.addChannel(), w.channel, w.addChannel(), w.addChannel()}
	hears := func(channel desk.ID, number, text string) *desk.Conversation {
		c, err := w.Receive(t.Context(), w.ws, channel, provider.InboundMessage{ExternalID: text + channel.String(), Number: number, Text: text, At: desk.TimeOf(w.clock.now())})
		must(t, err)
		return c
	}
	for n, channel := range channels {
		if n%2 == 0 { // some lose one of this contact, others one of the other
			hears(channel, into.Phone, "into")
			w.clock.advance(time.Second)
			hears(channel, from.Phone, "from")
		} else {
			hears(channel, from.Phone, "from")
			w.clock.advance(time.Second)
			hears(channel, into.Phone, "into")
		}
	}
	dry, err := w.Merges.Try(t.Context(), w.caller(), merges.Request{Into: into.ID, From: from.ID})
	must(t, err)
	m := w.merge(into, from)
	if len(m.Moved.Closed) != len(channels) || !slices.Equal(dry.Moved.Closed, m.Moved.Closed) {
		t.Errorf("a dry run says that %v are closed, and a merge closes %v", dry.Moved.Closed, m.Moved.Closed)
	}
	undo := func() []desk.NotRestored {
		t.Helper()
		tried, err := w.Merges.TryUndo(t.Context(), w.caller(), m.ID)
		must(t, err)
		return tried.NotRestored
	}
	if missing := undo(); len(missing) != 0 {
		t.Errorf("nothing has changed: %v", missing)
	}
	// One of those that were moved was closed by the merge, and becomes old.
	w.clock.advance(2 * time.Hour)
	must(t, w.ForgetMessages(t.Context(), time.Hour))
	tried := undo()
	undone, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
	must(t, err)
	want := []desk.NotRestored{{Field: "conversations", Reason: desk.RestoreGone}, {Field: "conversations", Reason: desk.RestoreChanged}}
	if !slices.Equal(undone.NotRestored, want) || !slices.Equal(tried, want) {
		t.Errorf("not restored: %v, a dry run says %v", undone.NotRestored, tried)
	}
}

// TestMerge_tried_reopened: a dry run of an undo knows which conversation is reopened: none if
// its contact would have two that are open on a channel.
func TestMerge_tried_reopened(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"", "905321110001", "905321110002"} {
		w := newWorld(t)
		into, from := w.put(phoned("905321110001")), w.put(phoned("905321110002"))
		lost := w.writes(from.Phone, "from")
		w.clock.advance(time.Second)
		stays := w.hears(provider.InboundMessage{ExternalID: "into", Number: into.Phone, Text: "into", At: desk.TimeOf(w.clock.now())})
		m := w.merge(into, from)
		if again != "" { // the open one is closed, and the person writes anew
			_, err := w.SetStatus(t.Context(), w.caller(), stays.ID, desk.StatusClosed, nil)
			must(t, err)
			if again == from.Phone { // into the one that the merge has closed
				_, err = w.SetStatus(t.Context(), w.caller(), lost.ID, desk.StatusOpen, nil)
				must(t, err)
			}
			w.writes(again, "again")
		}
		tried, err := w.Merges.TryUndo(t.Context(), w.caller(), m.ID)
		must(t, err)
		undone, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
		must(t, err)
		if !slices.Equal(tried.NotRestored, undone.NotRestored) || (len(undone.NotRestored) > 0) != (again == from.Phone) {
			t.Errorf("after %q: a dry run says %v, and it becomes %v", again, tried.NotRestored, undone.NotRestored)
		}
	}
}

// TestMerge_version: a form that was opened before a merge and its undo does not change the
// contact that returned.
func TestMerge_version(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	into, seen := w.put(mailed("a@example.com")), w.put(mailed("b@example.com"))
	w.put(mailed("b@example.com"), named("Bob")) // somebody else has saved
	m := w.merge(into, w.contact(seen.ID))
	_, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
	must(t, err)
	now := w.contact(seen.ID)
	if now.Version <= seen.Version+1 {
		t.Errorf("the contact returned with the version %d, and had %d before", now.Version, seen.Version+1)
	}
	name := func(version int64) error {
		return errOf(w.Write(t.Context(), w.caller(), &desk.Op{Kind: desk.OpPatch, ByID: true, Target: seen.ID, Version: version, Write: desk.ContactWrite{Name: text("Old")}}))
	}
	for old := int64(1); old < now.Version; old++ {
		refused(t, name(old), desk.Changed)
	}
	must(t, name(now.Version))
}

// TestMerge_expired: a merge can be undone for 30 days. Then its values are shown no more, and
// soon they are not kept either. A server's clock that is far ahead does not end that time.
func TestMerge_expired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.put(mailed("a@example.com")), w.put(mailed("b@example.com"), named("Bob")), w.put(mailed("c@example.com"))
	first, second := w.merge(a, b), w.merge(a, c)
	w.clock.server.Store(int64(31 * 24 * time.Hour))
	must(t, errOf(w.Merges.Undo(t.Context(), w.caller(), second.ID)))
	w.clock.server.Store(0)
	w.clock.advance(desk.UndoMerge + time.Second)
	for n := range 2 {
		refused(t, errOf(w.Merges.Undo(t.Context(), w.caller(), first.ID)), desk.UndoExpired)
		refused(t, errOf(w.Merges.TryUndo(t.Context(), w.caller(), first.ID)), desk.UndoExpired)
		if m, err := w.Merges.Merge(t.Context(), w.caller(), first.ID); err != nil || len(m.Changes) != 0 || m.Moved.Identities != 1 {
			t.Errorf("%+v, %v", m, err)
		}
		if forgotten, err := w.Merges.Forget(t.Context(), w.ws, 100); err != nil || forgotten != 2*(1-n) {
			t.Errorf("%d merges lost values, %v", forgotten, err)
		}
	}
	w.clock.advance(2 * desk.UndoMerge) // an undone merge goes 30 days after its undo, by the time that the undo noted
	if forgotten, err := w.Merges.Forget(t.Context(), w.ws, 100); err != nil || forgotten != 1 {
		t.Errorf("%d merges were deleted, %v", forgotten, err)
	}
	refused(t, errOf(w.Merges.Merge(t.Context(), w.caller(), second.ID)), desk.NotFound)
	must(t, errOf(w.Merges.Merge(t.Context(), w.caller(), first.ID)))
}

// TestLost_with_a_merged_person: it is unknown whether a hold is stored, and its contact is
// merged meanwhile. The attempt becomes the surviving contact's, and keeps its data.
func TestLost_with_a_merged_person(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	into, from := w.put(mailed("a@example.com")), w.put(phoned(number))
	w.store.in(1, begin, func() error { w.merge(into, from); return lost() })
	refused(t, w.send("k").err, desk.Unavailable)
	list := w.attempts()
	if len(list) != 1 || list[0].Phase != desk.Refused || list[0].Erased || list[0].OptIn() == nil || list[0].Plan.Contact != into.ID {
		t.Errorf("attempts: %+v", list)
	}
	w.deleteContact(into.ID) // and goes with it
	if list := w.attempts(); len(list) != 1 || !list[0].Erased || list[0].OptIn() != nil {
		t.Errorf("attempts: %+v", list)
	}
}

// TestMerge_refuses: a merge that is refused stores nothing.
func TestMerge_refuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.put(mailed("a@example.com")), w.put(mailed("b@example.com"))
	for name, c := range map[string]struct {
		r    merges.Request
		want desk.ErrorType
	}{
		"itself":           {merges.Request{Into: a.ID, From: a.ID}, desk.InvalidRequest},
		"nobody":           {merges.Request{Into: a.ID, From: desk.ID{1}}, desk.NotFound},
		"into nobody":      {merges.Request{Into: desk.ID{1}, From: a.ID}, desk.NotFound},
		"no ids":           {merges.Request{}, desk.NotFound},
		"unknown field":    {merges.Request{Into: a.ID, From: b.ID, Take: []string{"nose"}}, desk.InvalidRequest},
		"unknown property": {merges.Request{Into: a.ID, From: b.ID, Take: []string{"attributes.nose"}}, desk.InvalidRequest},
	} {
		refused(t, errOf(w.Merges.Do(t.Context(), w.caller(), c.r)), c.want)
		if err := errOf(w.Merges.Try(t.Context(), w.caller(), c.r)); !desk.IsType(err, c.want) {
			t.Errorf("%s, tried: %v", name, err)
		}
	}
	w.holds(2, 0, 0)
}

// picture is everything of some contacts that readers see, but when they changed.
func (w *world) picture(contacts ...desk.ID) string {
	w.t.Helper()
	var b strings.Builder
	for _, id := range contacts {
		c := *w.contact(id)
		c.UpdatedAt, c.Version, c.Apart = 0, 0, desk.Apart{}
		owner := desk.ID{}
		if c.Owner != nil {
			owner = c.Owner.ID
		}
		c.Owner = nil
		fmt.Fprintf(&b, "%+v %s %v\n", c, owner, c.Identities())
		list, _, err := w.Conversations(w.t.Context(), w.caller(), desk.ConversationFilter{Contact: id}, "", 200)
		must(w.t, err)
		slices.SortFunc(list, func(x, y *desk.Conversation) int { return x.ID.Compare(y.ID) })
		for _, v := range list {
			s, err := w.State(w.t.Context(), w.caller(), v.ID)
			must(w.t, err)
			fmt.Fprintf(&b, "  %+v %+v\n", *v, *s)
			for _, m := range w.messages(v.ID) {
				fmt.Fprintf(&b, "    %s %s %s %s\n", m.ID, m.ContactID, m.Direction, m.Text)
			}
		}
	}
	return b.String()
}

// drawn makes a contact with random fields, of which some conversations are open. k is 0 or 1
// for the two of a round n.
func (w *world) drawn(random *rand.Rand, channels []desk.ID, n, k int) desk.ID {
	w.t.Helper()
	number := fmt.Sprintf("90532%07d", 10*n+k)
	parts := []func(*desk.ContactWrite){alsoKnownAs("round", fmt.Sprint(n, k))}
	for _, part := range []func(*desk.ContactWrite){
		named(fmt.Sprint("Person ", k)), mailed(fmt.Sprintf("p%d.%d@example.com", n, k)), phoned(number),
		ownedBy([]string{"grace@example.com", "ada@example.com"}[k]), having("plan", fmt.Sprint("plan", k)), alsoKnownAs("whatsapp", number),
	} {
		if random.IntN(2) == 0 {
			parts = append(parts, part)
		}
	}
	id := w.put(parts...).ID
	address := w.contact(id).Address()
	if address != "" && random.IntN(3) == 0 { // a conversation in which the person has not written
		w.sent(fmt.Sprint("drawn ", n, k), toContact(id), on(channels[random.IntN(2)]))
	}
	for range random.IntN(3) {
		if address != "" {
			v, err := w.ReceiveSimulated(w.t.Context(), w.operator(), channels[random.IntN(2)], address, "", "Hello")
			must(w.t, err)
			if random.IntN(4) == 0 {
				must(w.t, errOf(w.SetStatus(w.t.Context(), w.operator(), v.ID, desk.StatusClosed, nil)))
			}
		}
	}
	return id
}

// TestMerge_undone: a merge that is undone leaves everything as it was.
func TestMerge_undone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channels := []desk.ID{w.channel, w.addChannel()}
	_, _, err := w.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: "plan", Label: text("Plan"), Type: text("text")})
	must(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range *mergeRounds {
		a, b := w.drawn(random, channels, n, 0), w.drawn(random, channels, n, 1)
		var take []string
		for _, field := range []string{"name", "email", "phone", "owner", "attributes.plan", "note"} {
			if random.IntN(2) == 0 {
				take = append(take, field)
			}
		}
		before := w.picture(a, b)
		r := merges.Request{Into: a, From: b, Take: take}
		dry, err := w.Merges.Try(t.Context(), w.caller(), r)
		must(t, err)
		m, err := w.Merges.Do(t.Context(), w.caller(), r)
		must(t, err)
		slices.SortFunc(dry.Moved.Closed, desk.ID.Compare)
		closed := slices.SortedFunc(slices.Values(m.Moved.Closed), desk.ID.Compare)
		if fmt.Sprint(dry.Changes, dry.Moved.Identities, dry.Moved.Conversations, dry.Moved.Closed) != fmt.Sprint(m.Changes, m.Moved.Identities, m.Moved.Conversations, closed) {
			t.Fatalf("the dry run said %+v, and it became %+v", dry, m)
		}
		undone, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
		must(t, err)
		if len(undone.NotRestored) > 0 || undone.UndoneAt == 0 {
			t.Fatalf("undone: %+v", undone)
		}
		if after := w.picture(a, b); after != before {
			t.Fatalf("round %d, take %v\nbefore:\n%s\nafter:\n%s", n, take, before, after)
		}
		if again, err := w.Merges.Undo(t.Context(), w.caller(), m.ID); err != nil || again.UndoneAt != undone.UndoneAt {
			t.Fatalf("undone again: %+v %v", again, err)
		}
	}
}

// TestMerge_part_erased: an older merge that was undone names a contact that is part of another one
// now. It is shown with that one, and goes with it, with its values.
func TestMerge_part_erased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	part, other, top := w.put(mailed("a@x.example")), w.put(mailed("b@x.example")), w.put(mailed("s@x.example"))
	for _, pair := range [][2]desk.ID{{other.ID, part.ID}, {part.ID, other.ID}} {
		_, err := w.Merges.Undo(t.Context(), w.caller(), w.merge(w.contact(pair[0]), w.contact(pair[1])).ID)
		must(t, err)
	}
	w.merge(top, w.contact(part.ID))
	merged := func(of desk.ID) int {
		list, _, err := w.Merges.Merges(t.Context(), w.caller(), of, "", 10)
		must(t, err)
		return len(list)
	}
	if n := merged(top.ID); n != 3 {
		t.Errorf("%d merges of the contact with the part, want 3", n)
	}
	w.deleteContact(top.ID)
	if n := merged(desk.ID{}); n != 0 {
		t.Errorf("%d merges are left", n)
	}
}

var (
	ringClients = flag.Int("ring-clients", 8, "how many clients merge contacts into each other at once in TestMerge_rings. Long run: -run 'TestMerge_rings|TestPostgres/TestMerge_rings' -ring-clients 64 -ring-rounds 200 -timeout 60m")
	ringRounds  = flag.Int("ring-rounds", 1, "how often the clients of TestMerge_rings do so; see -ring-clients")
)

// TestMerge_rings: many clients merge contacts that stand in a ring into each other, and undo
// that, all at once. Each handle, conversation and message is still there once. When all merges
// are undone, everything is as it was.
func TestMerge_rings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, deadlocks := w.caller(), w.deadlocks()
	for round := range *ringRounds {
		ids := make([]desk.ID, *ringClients)
		for i := range ids {
			number := fmt.Sprintf("90532%07d", 1000*round+i)
			ids[i] = w.put(mailed(fmt.Sprintf("ring%d.%d@example.com", round, i)), phoned(number)).ID
			if i%2 == 0 {
				w.writes(number, "Hello")
			}
		}
		before := w.picture(ids...)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				random, ctx := rand.New(rand.NewPCG(uint64(round), uint64(i))), context.WithoutCancel(t.Context())
				for range 4 {
					from := (i + random.IntN(2)) % len(ids)
					m, err := w.Merges.Do(ctx, p, merges.Request{Into: ids[(from+1)%len(ids)], From: ids[from]})
					if err == nil && random.IntN(2) == 0 {
						_, err = w.Merges.Undo(ctx, p, m.ID)
					}
					if err != nil && !desk.IsType(err, desk.NotFound) && !desk.IsType(err, desk.UndoBlocked) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		w.wantRing(ids)
		w.undoAll()
		if after := w.picture(ids...); after != before {
			t.Fatalf("round %d, before:\n%s\nafter:\n%s", round, before, after)
		}
	}
	if n := w.deadlocks() - deadlocks; n > 0 {
		t.Errorf("%d transactions have waited for each other", n)
	}
}

// wantRing checks that of contacts that were merged into each other nothing is missing or there
// twice. Each has a phone and an e-mail, and every other one a conversation with a message.
func (w *world) wantRing(ids []desk.ID) {
	w.t.Helper()
	handles, talks, messages, left := map[desk.Identity]int{}, map[desk.ID]int{}, map[desk.ID]int{}, map[desk.ID]bool{}
	var gone []*desk.Error
	for _, id := range ids {
		c, err := w.Contact(w.t.Context(), w.caller(), id)
		if err != nil {
			gone = append(gone, refusalOf(w.t, err, desk.NotFound))
			continue
		}
		left[id] = true
		for _, i := range c.Identities() {
			handles[i]++
		}
		list, _, err := w.Conversations(w.t.Context(), w.caller(), desk.ConversationFilter{Contact: id}, "", 200)
		must(w.t, err)
		for _, v := range list {
			talks[v.ID]++
			for _, m := range w.messages(v.ID) {
				messages[m.ID]++
			}
		}
	}
	for _, e := range gone {
		if m, ok := e.Details.(desk.Merged); !ok || !left[m.Into] {
			w.t.Errorf("a contact is gone, and not part of one that is there: %+v", e.Details)
		}
	}
	few := (len(ids) + 1) / 2
	if len(left) == 0 || len(handles) != 2*len(ids) || len(talks) != few || len(messages) != few {
		w.t.Errorf("%d contacts, %d handles, %d conversations, %d messages; want at least 1, %d, %d, %d", len(left), len(handles), len(talks), len(messages), 2*len(ids), few, few)
	}
	for what, n := range handles {
		if n > 1 {
			w.t.Errorf("%v is there %d times", what, n)
		}
	}
	for what, n := range talks {
		if n > 1 {
			w.t.Errorf("the conversation %v is there %d times", what, n)
		}
	}
}

// undoAll undoes all merges that are in force.
func (w *world) undoAll() {
	w.t.Helper()
	for more, cursor := true, ""; more; {
		list, next, err := w.Merges.Merges(w.t.Context(), w.caller(), desk.ID{}, cursor, 200)
		must(w.t, err)
		blocked := false
		more = false
		for _, m := range list {
			if m.UndoneAt != 0 {
				continue
			}
			more = true
			switch _, err := w.Merges.Undo(w.t.Context(), w.caller(), m.ID); {
			case desk.IsType(err, desk.UndoBlocked):
				blocked = true
			default:
				must(w.t, err)
			}
		}
		if !blocked { // else once more from here: a newer one came first
			cursor, more = next, next != ""
		}
	}
}

var mergeSends = flag.Int("merge-sends", 8, "TestMerge_beside_sends: how many messages are sent while contacts are merged and separated. Long run: -run 'TestMerge_beside_sends|TestPostgres/TestMerge_beside_sends' -merge-sends 200")

// TestMerge_beside_sends: messages that are sent while their contacts are merged and
// separated again go out once, and each is stored with a contact that exists.
func TestMerge_beside_sends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	numbers := []string{"905321110071", "905321110072"}
	var ids, talks []desk.ID
	for _, n := range numbers {
		c := w.opens(n)
		ids, talks = append(ids, c.ContactID), append(talks, c.ID)
	}
	p, done := w.caller(), make(chan struct{})
	var merging, sending sync.WaitGroup
	merging.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			m, err := w.Merges.Do(context.WithoutCancel(t.Context()), p, merges.Request{Into: ids[n%2], From: ids[1-n%2]})
			if err == nil {
				_, err = w.Merges.Undo(context.WithoutCancel(t.Context()), p, m.ID)
			}
			if err != nil && !desk.IsType(err, desk.Unavailable) {
				t.Error(err)
				return
			}
		}
	})
	var mu sync.Mutex
	taken := 0
	took := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			taken++
		case desk.IsType(err, desk.ConversationNotOpen), desk.IsType(err, desk.WindowClosed): // a merge has closed the conversation
		default:
			t.Error(err)
		}
	}
	for worker := range 2 {
		sending.Go(func() {
			for n := range *mergeSends / 2 {
				key := fmt.Sprintf("m%d-%d", worker, n)
				if n%2 == 0 {
					took(w.send(key, to(numbers[worker])).err)
					continue
				}
				_, err := w.replies(key, talks[worker])
				took(err)
			}
		})
	}
	sending.Wait()
	close(done)
	merging.Wait()
	if sent := len(w.provider.sent()); sent != taken {
		t.Errorf("%d messages went out, and %d calls had success", sent, taken)
	}
	stored := 0
	for _, id := range ids {
		list, _, err := w.Conversations(t.Context(), p, desk.ConversationFilter{Contact: w.contact(id).ID}, "", 200)
		must(t, err)
		for _, c := range list {
			for _, m := range w.messages(c.ID) {
				if m.Direction == desk.Outbound {
					stored++
				}
			}
		}
	}
	if stored != taken {
		t.Errorf("%d messages are stored, of %d", stored, taken)
	}
}

// TestMerge_reply: a reply that was planned before its contact was merged goes to the contact
// that has the conversation when it is sent.
func TestMerge_reply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	talk := w.writes(number, "Hi")
	into := w.put(mailed("a@example.com"))
	w.store.in(1, begin, func() error { w.merge(into, w.contact(talk.ContactID)); return nil })
	_, err := w.replies("k", talk.ID)
	must(t, err)
	if at := w.holder("k"); at.Phase != desk.Done || at.Plan.Contact != into.ID {
		t.Errorf("attempt: %+v", at)
	}
	if c := w.conversation(talk.ID); c.ContactID != into.ID || len(w.messages(talk.ID)) != 2 {
		t.Errorf("conversation: %+v", c)
	}
}

// TestMerge_reply_planned: a reply whose contact is merged while the reply is planned goes to
// the contact that has the conversation then.
func TestMerge_reply_planned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	talk := w.writes(number, "Hi")
	into := w.put(mailed("a@example.com"))
	w.store.talk = func() {
		w.store.talk = nil
		w.merge(into, w.contact(talk.ContactID))
	}
	_, err := w.replies("k", talk.ID)
	must(t, err)
	if at := w.holder("k"); at.Phase != desk.Done || at.Plan.Contact != into.ID {
		t.Errorf("attempt: %+v", at)
	}
}

// TestMerge_template: a template that was planned while two contacts were one is stored with the
// contact that has its number when it was sent.
func TestMerge_template(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	into, from := w.put(mailed("a@example.com")), w.put(phoned(number))
	m := w.merge(into, from)
	w.store.in(2, begin, func() error { // the send is held, and the provider has taken it
		_, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
		return err
	})
	if got := w.sent("k"); got.Conversation.ContactID != from.ID {
		t.Errorf("the message is %v's, and the number %v's", got.Conversation.ContactID, from.ID)
	}
	if at := w.holder("k"); at.Plan.Contact != from.ID {
		t.Errorf("attempt: %+v", at)
	}
}

// TestMerge_file: a reply with a file of its contact is refused if the file is another contact's
// by then.
func TestMerge_file(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	photo, _ := w.gets(c, "photo", has(picture), provider.InboundMedia{})
	_, err := w.Media.FetchNext(t.Context(), w.ws)
	must(t, err)
	file := w.fileOf(photo.ID, "in-photo")
	talk := w.writes("905321110009", "Hi")
	m := w.merge(w.contact(photo.ContactID), w.contact(talk.ContactID))
	_, err = w.SetStatus(t.Context(), w.caller(), photo.ID, desk.StatusClosed, nil)
	must(t, err)
	_, err = w.SetStatus(t.Context(), w.caller(), talk.ID, desk.StatusOpen, nil)
	must(t, err)
	undo := func() error {
		_, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
		return err
	}
	w.store.in(1, begin, undo)
	_, err = w.replies("k", talk.ID, func(r *desk.ReplyRequest) { r.Text, r.Attachment = "", &desk.SentAttachment{Media: file.ID} })
	refused(t, err, desk.NotFound)
	if sent := w.provider.sent(); len(sent) != 0 {
		t.Errorf("sent: %+v", sent)
	}
}
