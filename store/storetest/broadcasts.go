package storetest

import (
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

// aBroadcast returns a broadcast that runs.
func aBroadcast() *desk.Broadcast {
	skip := true
	return &desk.Broadcast{
		ID: idAt(now()), Name: "Spring", State: desk.BroadcastRunning, Template: "spring", Language: "es", Category: "MARKETING", MaxFailed: 20,
		Values:  []desk.BroadcastValue{{Address: "1", From: "customer_name", Else: "you"}},
		Consent: &desk.Consent{Attribute: "ok"}, SkipOpen: &skip, Pace: &desk.BroadcastPace{People: 5, Minutes: 60},
		CreatedBy: desk.Actor{Kind: desk.ByMember, ID: newID()}, CreatedAt: now(), UpdatedAt: now(), DrivenAt: 7,
		Hours: &desk.Hours{TimeZone: "UTC", Week: map[string][]desk.Span{"mon": {{540, 600}}}, Exceptions: []desk.Exception{}},
	}
}

// aRow returns a pending row for a number.
func aRow(b *desk.Broadcast, number string) *desk.BroadcastRow {
	return &desk.BroadcastRow{
		ID: idAt(now()), Broadcast: b.ID, Number: number, To: number, Status: desk.RowPending, At: now(),
		Data: desk.RowData{Phone: number, Values: []desk.NamedValue{{Address: "1", Value: "A"}}},
	}
}

func putRow(t *testing.T, s store.Store, ws desk.ID, b *desk.Broadcast, rows ...*desk.BroadcastRow) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error {
		var changes []store.RowChange
		for _, r := range rows {
			changes = append(changes, store.RowChange{Row: r})
		}
		return tx.PutRows(b.ID, changes)
	})
}

// changeRow changes a stored row.
func changeRow(t *testing.T, s store.Store, ws desk.ID, r *desk.BroadcastRow, do func(*desk.BroadcastRow)) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error {
		list, err := tx.RowsToChange(r.Broadcast, []desk.ID{r.ID})
		stored := list[r.ID]
		if err != nil || stored == nil {
			t.Errorf("the row is missing: %v", err)
			return err
		}
		change := store.Change(stored)
		do(stored)
		*r = *stored
		return tx.PutRows(r.Broadcast, []store.RowChange{change})
	})
}

func putBroadcast(t *testing.T, s store.Store, ws desk.ID, list ...*desk.Broadcast) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error {
		for _, b := range list {
			if err := tx.PutBroadcast(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// broadcastRecords: broadcasts survive with all fields; lists, due ones, limits.
func broadcastRecords(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	b, draft, scheduled, gone := aBroadcast(), aBroadcast(), aBroadcast(), aBroadcast()
	draft.State, scheduled.State, gone.State, gone.Untidy = desk.BroadcastDraft, desk.BroadcastScheduled, desk.BroadcastDeleted, true
	scheduled.SendAt = 9_000_000_000_000
	draft.Rows = 5
	putBroadcast(t, s, ws, b, draft, scheduled, gone)
	find := func(ws, id desk.ID) *desk.Broadcast {
		t.Helper()
		found, err := s.Broadcast(t.Context(), ws, id)
		must(t, err)
		if found != nil {
			found.Counts = nil
		}
		return found
	}
	equal(t, "stored", find(ws, b.ID), b)
	if find(other, b.ID) != nil || find(ws, gone.ID) != nil {
		t.Error("a broadcast of another workspace, or a deleted one, is found")
	}
	list, next, err := s.Broadcasts(t.Context(), ws, "", nil, 2)
	must(t, err)
	if len(list) != 2 || next == nil || list[0].ID != scheduled.ID || list[1].ID != draft.ID {
		t.Fatalf("first page: %v, next %v", list, next)
	}
	list, next, err = s.Broadcasts(t.Context(), ws, "", next, 2)
	if must(t, err); len(list) != 1 || next != nil || list[0].ID != b.ID {
		t.Errorf("second page: %v, next %v", list, next)
	}
	list, _, err = s.Broadcasts(t.Context(), ws, desk.BroadcastDraft, nil, 2)
	if must(t, err); len(list) != 1 || list[0].ID != draft.ID {
		t.Errorf("drafts: %v", list)
	}
	waits, err := s.BroadcastsDue(t.Context())
	must(t, err)
	if wait, there := waits[ws]; !there || wait != 0 {
		t.Errorf("due after %v, %v", wait, there)
	}
	if _, there := waits[other]; there {
		t.Error("a workspace without broadcasts is due")
	}
	due, err := s.DueBroadcasts(t.Context(), ws, 10)
	if must(t, err); len(due) != 3 || due[0].ID != b.ID || due[1].ID != scheduled.ID || due[2].ID != gone.ID {
		t.Errorf("due: %v", due)
	}
	draft.Untidy = true
	putBroadcast(t, s, ws, draft)
	due, err = s.DueBroadcasts(t.Context(), ws, 10)
	if must(t, err); len(due) != 4 || due[1].ID != draft.ID {
		t.Errorf("due with a draft whose rows go: %v", due)
	}
	counted, err := s.Metrics(t.Context(), now())
	must(t, err)
	equal(t, "broadcasts by state", counted.Broadcasts, map[desk.BroadcastState]int64{desk.BroadcastRunning: 1, desk.BroadcastDraft: 1, desk.BroadcastScheduled: 1})
	commit(t, s, ws, func(tx store.Tx) error {
		use, err := tx.BroadcastUse()
		equal(t, "use", use, store.BroadcastUse{Running: 1, Active: 1, Planned: 2, Rows: 5})
		return err
	})
	b.End(desk.BroadcastDone, now())
	b.Rows, b.Untidy = 3, false
	putBroadcast(t, s, ws, b)
	ended, err := s.EndedBroadcasts(t.Context(), ws, b.EndedAt+1, 10)
	if must(t, err); len(ended) != 1 || ended[0] != b.ID {
		t.Errorf("ended: %v", ended)
	}
	if ended, _ := s.EndedBroadcasts(t.Context(), ws, b.EndedAt, 10); len(ended) > 0 {
		t.Errorf("ended before its end: %v", ended)
	}
	_, err = s.HoldLeases(t.Context(), []store.LeaseRef{{Workspace: ws, Task: desk.BroadcastTask}}, desk.ID{9}, 60_000)
	must(t, err)
	commit(t, s, ws, func(tx store.Tx) error {
		for _, by := range []byte{8, 9} {
			found, driven, err := tx.BroadcastToClaim(b.ID, desk.ID{by})
			equal(t, "to claim", []any{found, driven, err}, []any{b, by == 9, nil})
		}
		return tx.DropBroadcast(b.ID)
	})
	if find(ws, b.ID) != nil {
		t.Error("a dropped broadcast is found")
	}
}

// broadcastRows: rows survive, have their order, are counted, and are found again.
func broadcastRows(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	b := aBroadcast()
	putBroadcast(t, s, ws, b)
	var rows []*desk.BroadcastRow
	for _, number := range []string{"34612345601", "34612345602", "34612345603", "34612345604"} {
		rows = append(rows, aRow(b, number))
	}
	contact := newID()
	rows[3].Contact, rows[3].Number = contact, ""
	rows[3].Data.Person = &desk.ContactWrite{Name: desk.Field[string]{Set: true, Value: "Lucia"}}
	putRow(t, s, ws, b, rows...)
	page := func(f desk.RowFilter, after desk.ID, limit int) (ids []desk.ID, next *desk.ID) {
		t.Helper()
		list, next, err := s.BroadcastRows(t.Context(), ws, b.ID, f, after, limit)
		must(t, err)
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids, next
	}
	first, next := page(desk.RowFilter{}, desk.ID{}, 3)
	if len(first) != 3 || first[0] != rows[0].ID || next == nil {
		t.Fatalf("first page: %v, next %v", first, next)
	}
	second, next := page(desk.RowFilter{}, *next, 3)
	if len(second) != 1 || second[0] != rows[3].ID || next != nil {
		t.Errorf("second page: %v, next %v", second, next)
	}
	stored, _, err := s.BroadcastRows(t.Context(), ws, b.ID, desk.RowFilter{Contact: &contact}, desk.ID{}, 3)
	if must(t, err); len(stored) != 1 {
		t.Fatalf("of the contact: %v", stored)
	}
	equal(t, "a row", stored[0], rows[3])
	message, attempt := newID(), newID()
	changeRow(t, s, ws, rows[0], func(r *desk.BroadcastRow) {
		r.Status, r.Attempt, r.Message, r.Conversation, r.Contact = desk.RowSending, attempt, message, newID(), newID()
	})
	changeRow(t, s, ws, rows[1], func(r *desk.BroadcastRow) { r.DueAt = 5 })
	changeRow(t, s, ws, rows[2], func(r *desk.BroadcastRow) { r.DueAt = 9_000_000_000_000 })
	ids := func(list []*desk.BroadcastRow, err error) (ids []desk.ID) {
		t.Helper()
		must(t, err)
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	one := func(what string, got []desk.ID, want desk.ID) {
		t.Helper()
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	one("in their turn", ids(s.PendingRows(t.Context(), ws, b.ID, false, desk.ID{}, 9)), rows[3].ID)
	one("again", ids(s.PendingRows(t.Context(), ws, b.ID, true, desk.ID{}, 9)), rows[1].ID)
	one("waiting", append(ids(s.WaitingRows(t.Context(), ws, b.ID, desk.ID{}, 1)), ids(s.WaitingRows(t.Context(), ws, b.ID, rows[2].ID, 9))...), rows[1].ID)
	one("sending", ids(s.ClaimedRows(t.Context(), ws, b.ID, desk.RowSending, desk.ID{}, 9)), rows[0].ID)
	one("of a message", ids(s.RowsOfMessages(t.Context(), ws, []desk.ID{message, newID()})), rows[0].ID)
	if at, err := s.NextRow(t.Context(), ws, b.ID); err != nil || at != 5 {
		t.Errorf("the next is due at %d: %v", at, err)
	}
	got, _ := page(desk.RowFilter{Status: desk.RowSending}, desk.ID{}, 9)
	one("by status", got, rows[0].ID)
	changeRow(t, s, ws, rows[1], func(r *desk.BroadcastRow) { r.Skip(desk.SkipOptedOut, nil, now()) })
	got, _ = page(desk.RowFilter{Reason: desk.SkipOptedOut}, desk.ID{}, 9)
	one("by reason", got, rows[1].ID)
	changeRow(t, s, ws, rows[2], func(r *desk.BroadcastRow) {
		r.Status, r.Failure = desk.RowRefused, &desk.Failure{Code: 131026, Title: "Message undeliverable: because", Fix: "Check."}
	})
	counted, err := s.Broadcast(t.Context(), ws, b.ID)
	must(t, err)
	c := counted.Counts.As(desk.BroadcastRunning)
	if c.Total() != 4 || c.ByStatus[desk.RowSending] != 1 || c.Skips[desk.SkipOptedOut] != 1 || c.ByStatus[desk.RowPending] != 1 ||
		len(c.Failures) != 1 || c.Failures[0] != (desk.FailureCount{Code: 131026, Title: "Message undeliverable", N: 1}) {
		t.Errorf("counts: %+v", c)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		same, err := tx.SameRows(b.ID, []desk.ID{contact}, []string{"34612345603", "1"})
		if len(same) != 2 {
			t.Errorf("the same people: %v", same)
		}
		return err
	})
	drop := func(do func(tx store.Tx) (int, error), want int) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			n, err := do(tx)
			if n != want {
				t.Errorf("%d rows, want %d", n, want)
			}
			return err
		})
	}
	drop(func(tx store.Tx) (int, error) { return tx.CancelRows(b.ID, now(), 9) }, 1)
	drop(func(tx store.Tx) (int, error) { return tx.DropRows(b.ID, true, 1) }, 1)
	drop(func(tx store.Tx) (int, error) { return tx.DropRows(b.ID, false, 9) }, 3)
	counted, err = s.Broadcast(t.Context(), ws, b.ID)
	must(t, err)
	if c := counted.Counts.As(desk.BroadcastRunning); c.Total() != 3 || c.ByStatus[desk.RowCancelled] != 1 {
		t.Errorf("counts that stay: %+v", c)
	}
}

// broadcastReplies: replies are stored with their rows, counted, and forgotten with them; the row
// of the newest message before a moment is found.
func broadcastReplies(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	person, channel, conversation := put(t, s, ws, called("Ann", 1)), newID(), newID()
	commit(t, s, ws, func(tx store.Tx) error {
		return tx.PutConversation(&desk.Conversation{ID: conversation, ChannelID: channel, ContactID: person.ID, Status: desk.StatusArchived, CreatedAt: 1})
	})
	var list []*desk.Broadcast
	var rows []*desk.BroadcastRow
	for i, at := range []desk.Time{10, 20, 0, 30} { // the third one has no message, and the last is on another channel
		b := aBroadcast()
		r := aRow(b, "34612345601")
		r.Contact, r.Status, r.SentAt, r.Channel = person.ID, desk.RowSent, at, channel
		if i == 3 {
			r.Channel = newID()
		}
		list, rows = append(list, b), append(rows, r)
		putBroadcast(t, s, ws, b)
		putRow(t, s, ws, b, r)
	}
	places := []store.TalkPlace{
		{Channel: channel, Contact: person.ID, At: 10}, {Channel: channel, Contact: person.ID, At: 11},
		{Channel: channel, Conversation: conversation, At: 20}, {Channel: channel, Conversation: conversation, At: 99},
		{Channel: channel, Contact: newID(), At: 99}, {Channel: channel, Conversation: newID(), At: 99}, {Channel: newID(), Contact: person.ID, At: 99},
	}
	found, err := s.RowsBefore(t.Context(), ws, places)
	must(t, err)
	equal(t, "rows before", found, []*desk.BroadcastRow{nil, rows[0], rows[0], rows[1], nil, nil, nil})
	if found, err := s.RowsBefore(t.Context(), other, places[3:4]); err != nil || found[0] != nil {
		t.Errorf("in another workspace: %v, %v", found, err)
	}

	b, r := list[0], rows[0]
	counts := func(what string, replied, optedOut int64, choices ...desk.ChoiceCount) {
		t.Helper()
		stored, err := s.Broadcast(t.Context(), ws, b.ID)
		must(t, err)
		c := stored.Counts.As(desk.BroadcastRunning)
		if c.Total() != 1 || c.ByStatus[r.Status] != 1 || c.Replied != replied || c.OptedOut != optedOut || !slices.Equal(c.Choices, choices) {
			t.Errorf("%s: the counts are %+v", what, c)
		}
	}
	counts("before", 0, 0)
	changeRow(t, s, ws, r, func(r *desk.BroadcastRow) { r.Data.Reply = desk.RowReply{At: 12, Choice: "Yes", ChosenAt: 13} })
	counts("a reply", 1, 0, desk.ChoiceCount{Title: "Yes", N: 1})
	changeRow(t, s, ws, r, func(r *desk.BroadcastRow) {
		r.Data.Reply = desk.RowReply{At: 11, Choice: "No", ChosenAt: 11, OptedOut: true}
	})
	counts("an earlier one", 1, 1, desk.ChoiceCount{Title: "No", N: 1})
	yes, no := true, false
	for _, want := range []struct {
		replied *bool
		n       int
	}{{&yes, 1}, {&no, 0}, {nil, 1}} {
		page, _, err := s.BroadcastRows(t.Context(), ws, b.ID, desk.RowFilter{Replied: want.replied}, desk.ID{}, 9)
		if must(t, err); len(page) != want.n {
			t.Errorf("%d rows, want %d", len(page), want.n)
		} else if want.n > 0 {
			equal(t, "stored", page[0], r)
		}
	}
	must(t, s.UpdateContacts(t.Context(), ws, []*desk.Op{{Kind: desk.OpDelete, ByID: true, Target: person.ID}}, func(book *desk.Book, _, _ int) {
		_, err := book.Apply(&desk.Op{Kind: desk.OpDelete, ByID: true, Target: person.ID}, desk.Actor{}, now(), newID)
		must(t, err)
	}))
	counts("the person is deleted", 0, 0)
	page, _, err := s.BroadcastRows(t.Context(), ws, b.ID, desk.RowFilter{}, desk.ID{}, 9)
	must(t, err)
	page[0].At = 0
	equal(t, "erased", page[0], &desk.BroadcastRow{ID: r.ID, Broadcast: b.ID, Status: desk.RowSent})
}

// broadcastClaims: a number is claimed for one row; facts about people; attempts.
func broadcastClaims(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	b := aBroadcast()
	putBroadcast(t, s, ws, b)
	first, second, channel, contact := aRow(b, "34612345601"), aRow(b, "34612345602"), newID(), newID()
	first.Contact = contact
	first.Attempt = newID()
	putRow(t, s, ws, b, first, second)
	take := func(row desk.ID, want bool, hashes ...store.NumberHash) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			ours, err := tx.TakeNumbers(b.ID, row, hashes, nil)
			if ours != want {
				t.Errorf("taken: %v, want %v", ours, want)
			}
			return err
		})
	}
	one, two, three := store.NumberHash{1}, store.NumberHash{2}, store.NumberHash{3}
	take(first.ID, true, two, one)
	take(first.ID, true, one)
	take(second.ID, true, three)
	commit(t, s, ws, func(tx store.Tx) error {
		ours, err := tx.TakeNumbers(b.ID, second.ID, []store.NumberHash{two}, nil)
		if ours {
			t.Error("a number is claimed for two rows")
		}
		return err
	})
	open := desk.Conversation{ID: newID(), ChannelID: channel, ContactID: contact, Status: desk.StatusOpen, CreatedAt: 1}
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.SetOptOut(two, store.OptOut{Since: 9, At: 9}); err != nil {
			return err
		}
		return tx.PutConversation(&open)
	})
	q := store.RowQuestion{Broadcast: b.ID, Channel: channel, Contacts: []desk.ID{contact, newID()}, Numbers: []store.NumberHash{one, {9}}, Choices: []store.NumberHash{one, two}}
	check := func(facts store.RowFacts, err error) {
		t.Helper()
		must(t, err)
		claim := desk.RowClaim{Row: first.ID, Status: first.Status}
		if !slices.Equal(facts.Claimed[contact], []desk.RowClaim{claim}) || len(facts.Claimed) != 1 || facts.Taken[one] != claim || len(facts.Taken) != 1 ||
			!facts.Open[contact] || len(facts.Open) != 1 || facts.Choices[two].Since != 9 || facts.Choices[one].Since != 0 {
			t.Errorf("facts: %+v", facts)
		}
	}
	check(s.RowFacts(t.Context(), ws, q))
	commit(t, s, ws, func(tx store.Tx) error {
		facts, err := tx.RowFacts(q)
		check(facts, nil)
		return err
	})
	// A row is passed by another one, which gets its numbers, and no third row's.
	third := aRow(b, "34612345603")
	putRow(t, s, ws, b, third)
	passes := func(passed map[store.NumberHash]desk.ID, want bool) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			ours, err := tx.TakeNumbers(b.ID, third.ID, []store.NumberHash{one, {4}}, passed)
			if ours != want {
				t.Errorf("taken from %v: %v, want %v", passed, ours, want)
			}
			return err
		})
	}
	passes(map[store.NumberHash]desk.ID{one: second.ID}, false)
	passes(map[store.NumberHash]desk.ID{two: first.ID}, false)
	passes(map[store.NumberHash]desk.ID{one: first.ID}, true)
	passes(nil, true)
	facts, err := s.RowFacts(t.Context(), ws, store.RowQuestion{Broadcast: b.ID, Channel: channel, Numbers: []store.NumberHash{one, two}})
	if must(t, err); facts.Taken[one].Row != third.ID || facts.Taken[two].Row != first.ID {
		t.Errorf("taken: %v", facts.Taken)
	}
	for i, r := range []*desk.BroadcastRow{first, second, first} {
		at := &desk.Attempt{ID: idAt(now()), Key: r.NextKey(), Actor: desk.Actor{Kind: desk.ByCLI}, Phase: desk.Refused, CreatedAt: desk.Time(10 + i), SettledAt: 1, Broadcast: b.ID}
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutAttempt(at) })
		stored, err := s.Attempt(t.Context(), ws, at.ID)
		if must(t, err); stored.Broadcast != b.ID || stored.Row() != r.ID {
			t.Errorf("the attempt is of the broadcast %s, and the row %s", stored.Broadcast, stored.Row())
		}
	}
	page, before, err := s.BroadcastAttempts(t.Context(), ws, b.ID, nil, 2)
	if must(t, err); len(page) != 2 || before == nil {
		t.Fatalf("attempts: %v, next %v", page, before)
	}
	page, before, err = s.BroadcastAttempts(t.Context(), ws, b.ID, before, 2)
	if must(t, err); len(page) != 1 || before != nil {
		t.Errorf("attempts: %v, next %v", page, before)
	}
	newest, err := s.NewestClaims(t.Context(), ws, b.ID, 11, 9)
	if must(t, err); len(newest) != 2 || newest[0].ID != first.ID || newest[1].ID != second.ID {
		t.Errorf("newest claims: %v", newest)
	}
	times, err := s.ClaimTimes(t.Context(), ws, b.ID, 0, 2)
	must(t, err)
	equal(t, "times", times, []desk.Time{11, 12})
	commit(t, s, ws, func(tx store.Tx) error {
		n, err := tx.DropNumbers(b.ID, 9)
		if n != 4 {
			t.Errorf("%d numbers are dropped", n)
		}
		return err
	})
	facts, err = s.RowFacts(t.Context(), ws, q)
	if must(t, err); len(facts.Taken) > 0 {
		t.Errorf("numbers are left: %v", facts.Taken)
	}
}

// broadcastErasure: a deletion leaves nothing of the person in rows; rows move with a merge.
func broadcastErasure(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	b := aBroadcast()
	putBroadcast(t, s, ws, b)
	person := put(t, s, ws, called("Ann", 1))
	byContact, byNumber, other := aRow(b, ""), aRow(b, "90555"), aRow(b, "905551")
	byContact.Contact, byContact.Status, byContact.Attempt, byContact.Message = person.ID, desk.RowDelivered, newID(), newID()
	byContact.SentAt, byContact.Channel = now(), newID()
	if numbers := person.Numbers(); len(numbers) > 0 {
		byNumber.Number = numbers[0]
	} else {
		byNumber.Contact = person.ID
	}
	putRow(t, s, ws, b, byContact, byNumber, other)
	survivor := newID()
	commit(t, s, ws, func(tx store.Tx) error {
		moved, err := tx.MoveRows(person.ID, survivor)
		if err != nil || len(moved) == 0 {
			t.Errorf("moved %v: %v", moved, err)
			return err
		}
		return tx.ReturnRows(moved, person.ID)
	})
	must(t, s.UpdateContacts(t.Context(), ws, []*desk.Op{{Kind: desk.OpDelete, ByID: true, Target: person.ID}}, func(book *desk.Book, _, _ int) {
		_, err := book.Apply(&desk.Op{Kind: desk.OpDelete, ByID: true, Target: person.ID}, desk.Actor{}, now(), newID)
		must(t, err)
	}))
	list, _, err := s.BroadcastRows(t.Context(), ws, b.ID, desk.RowFilter{}, desk.ID{}, 9)
	must(t, err)
	for _, r := range list {
		switch r.ID {
		case byContact.ID:
			r.At = 0
			equal(t, "the row that was sent", r, &desk.BroadcastRow{ID: r.ID, Broadcast: b.ID, Status: desk.RowDelivered})
		case byNumber.ID:
			r.At = 0
			equal(t, "the pending row", r, &desk.BroadcastRow{ID: r.ID, Broadcast: b.ID, Status: desk.RowSkipped, Reason: desk.SkipDeleted})
		default:
			equal(t, "the row of another person", r, other)
		}
	}
	stored, err := s.Broadcast(t.Context(), ws, b.ID)
	if must(t, err); stored.Counts.Skips[desk.SkipDeleted] != 1 || stored.Counts.Total() != 3 {
		t.Errorf("counts: %+v", stored.Counts)
	}
}

// broadcastPlace: the place of the deliveries begins once, and moves only from where it is.
func broadcastPlace(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	place := func() (desk.EventPlace, bool) {
		t.Helper()
		places, err := s.BroadcastPlaces(t.Context(), []desk.ID{ws})
		must(t, err)
		place, there := places[ws]
		return place, there
	}
	if _, there := place(); there {
		t.Error("there is a place before the first broadcast")
	}
	begin := func() { t.Helper(); commit(t, s, ws, func(tx store.Tx) error { return tx.BeginBroadcasts() }) }
	commit(t, s, ws, func(tx store.Tx) error {
		return tx.Append(desk.Event{Type: desk.NoteDeleted, Subject: newID(), Actor: desk.Actor{Kind: desk.ByCLI}, At: now()})
	})
	begin()
	page, err := s.Events(t.Context(), ws, store.EventQuery{From: store.FromNewest}, func(*desk.Settings) ([]desk.EventType, error) { return nil, nil })
	must(t, err)
	from, _ := place()
	equal(t, "begins", from, page.Newest)
	to := desk.EventPlace{Seq: from.Seq + 5, Tag: 3}
	for _, want := range []bool{true, false} {
		commit(t, s, ws, func(tx store.Tx) error {
			moved, err := tx.MoveBroadcasts(from, to)
			if moved != want {
				t.Errorf("moved: %v, want %v", moved, want)
			}
			return err
		})
	}
	begin()
	now, _ := place()
	equal(t, "it stays", now, to)
}

// dormantConversations: a conversation stays dormant until that is changed.
func dormantConversations(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	c := desk.Conversation{ID: newID(), ChannelID: newID(), ContactID: newID(), Status: desk.StatusArchived, CreatedAt: 1, LastMessageAt: 1, Dormant: true}
	other := c
	other.ID, other.Dormant = newID(), false
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(&c, &other) })
	for _, dormant := range []bool{true, false} {
		c.Dormant = dormant
		c.LastMessageAt++
		commit(t, s, ws, func(tx store.Tx) error {
			if _, err := tx.Conversation(c.ID); err != nil {
				return err
			}
			return tx.PutConversation(&c)
		})
		stored, err := s.Conversation(t.Context(), ws, c.ID)
		must(t, err)
		equal(t, "stored", stored, &c)
		commit(t, s, ws, func(tx store.Tx) error {
			found, err := tx.DormantConversation(c.ChannelID, c.ContactID)
			if (found != nil) != dormant {
				t.Errorf("dormant: %+v", found)
			}
			return err
		})
	}
}

// broadcastFile: a file is kept while a broadcast needs it: from the draft on until its end.
func broadcastFile(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	m, other := newFile(t, s, ws, desk.ID{}, filler(10, 1)), newFile(t, s, ws, desk.ID{}, filler(10, 2))
	b := aBroadcast()
	b.Values = append(b.Values, desk.BroadcastValue{Address: desk.MediaAddress, Value: m.ID.String()})
	for _, state := range []desk.BroadcastState{desk.BroadcastDraft, desk.BroadcastScheduled, desk.BroadcastRunning, desk.BroadcastPaused} {
		b.State = state
		putBroadcast(t, s, ws, b)
		commit(t, s, ws, func(tx store.Tx) error {
			if _, err := tx.Media(m.ID); err != nil {
				return err
			}
			if used, err := tx.MediaInUse(m.ID); !used || err != nil {
				t.Errorf("%s: in use is %t, %v", state, used, err)
			}
			old, err := tx.OldMedia(now()+1000, 10)
			if slices.ContainsFunc(old, func(found *desk.Media) bool { return found.ID == m.ID }) {
				t.Errorf("%s: its content is deleted", state)
			}
			if err == nil {
				_, err = tx.DropUploads(now()+1000, 10)
			}
			return err
		})
		if found, err := s.Media(t.Context(), ws, m.ID); found == nil || err != nil {
			t.Fatalf("%s: %v, %v", state, found, err)
		}
	}
	missing(s.Media(t.Context(), ws, other.ID))(t)

	// The deletion of a person who got the file leaves it to the others.
	person := put(t, s, ws, called("Ann", 1))
	c := newConversation(newID(), person.ID)
	message := newMessage(c)
	message.Direction, message.Media = desk.Outbound, m.ID
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		return tx.PutMessage(message)
	})
	must(t, s.UpdateContacts(t.Context(), ws, []*desk.Op{{Kind: desk.OpDelete, ByID: true, Target: person.ID}}, func(book *desk.Book, _, _ int) {
		_, err := book.Apply(&desk.Op{Kind: desk.OpDelete, ByID: true, Target: person.ID}, desk.Actor{}, now(), newID)
		must(t, err)
	}))
	if found, err := s.Media(t.Context(), ws, m.ID); found == nil || err != nil {
		t.Fatalf("after the deletion of a recipient: %v, %v", found, err)
	}
	for _, end := range []func(){
		func() { b.End(desk.BroadcastCancelled, now()) },
		func() { b.State = desk.BroadcastDeleted },
	} {
		end()
		putBroadcast(t, s, ws, b)
		commit(t, s, ws, func(tx store.Tx) error {
			if _, err := tx.Media(m.ID); err != nil {
				return err
			}
			used, err := tx.MediaInUse(m.ID)
			if used {
				t.Errorf("%s: it is in use", b.State)
			}
			return err
		})
	}
	commit(t, s, ws, func(tx store.Tx) error {
		_, err := tx.DropUploads(now()+1000, 10)
		return err
	})
	missing(s.Media(t.Context(), ws, m.ID))(t)
}
