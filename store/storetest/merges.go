package storetest

import (
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

// merge merges one contact into another, as app does: the Book, then what each of the tables
// has.
func merge(t *testing.T, s store.Store, ws, into, from desk.ID) (m *desk.Merge) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error {
		op := &desk.Op{Kind: desk.OpMerge, ByID: true, Target: into, From: from}
		book, err := tx.Book(op.Lookup())
		must(t, err)
		outcome, err := book.Apply(op, desk.Actor{Kind: desk.ByCLI}, now(), nil)
		must(t, err)
		m = outcome.Merge
		m.ID = idAt(now())
		must(t, tx.Flush(book))
		parts, _, err := tx.Parts(from, 100)
		must(t, err)
		for _, part := range parts {
			m.Undo.Conversations = append(m.Undo.Conversations, part.ID)
		}
		m.Undo.Merges, err = tx.MoveContact(from, into)
		must(t, err)
		return tx.PutMerge(m)
	})
	return m
}

// mergesMove: what a contact has becomes another one's, and returns.
func mergesMove(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	channel := desk.ID{7}
	into, from, first := put(t, s, ws, upsert("a@example.com", "")), put(t, s, ws, upsert("b@example.com", "905321110001")), put(t, s, ws, upsert("c@example.com", ""))
	talk := desk.NewConversation(newID(), channel, from, now())
	other := desk.NewConversation(newID(), channel, into, now())
	file := &desk.Media{ID: newID(), ContactID: from.ID, Kind: desk.KindImage, Status: desk.MediaPending, CreatedAt: now()}
	message := &desk.Message{ID: newID(), ConversationID: talk.ID, ChannelID: channel, Direction: desk.Inbound, TS: 5000, Kind: desk.KindImage, Media: file.ID, ContactID: from.ID}
	window := desk.Window{OpenedAt: 5000, Number: "905321110001"}
	job := store.MediaJob{Media: file.ID, Channel: channel, Contact: from.ID, Conversation: talk.ID, Message: message.ID, TS: 5000, Ref: "r", Due: now()}
	refusedOne := &desk.Attempt{ID: newID(), Key: "refused", Phase: desk.Refused, CreatedAt: 1, SettledAt: 2, Plan: desk.Plan{Channel: channel, Contact: from.ID}}
	refusedOne.Plan.Number, refusedOne.Plan.Text = "905321110001", "to from"
	refusedReply := &desk.Attempt{ID: newID(), Key: "refused reply", Phase: desk.Refused, CreatedAt: 1, SettledAt: 2,
		Plan: desk.Plan{Channel: channel, Contact: from.ID, Conversation: talk.ID, Reply: &desk.Reply{}}}
	refusedOther := &desk.Attempt{ID: newID(), Key: "refused other", Phase: desk.Refused, CreatedAt: 1, SettledAt: 2,
		Plan: desk.Plan{Channel: channel, Contact: into.ID, Conversation: other.ID, Reply: &desk.Reply{}}}
	sent := &desk.Media{ID: newID(), ContactID: into.ID, Kind: desk.KindImage, Status: desk.MediaReady, CreatedAt: now()}
	forwarded := &desk.Message{ID: newID(), ConversationID: talk.ID, ChannelID: channel, Direction: desk.Outbound, TS: 4000, Kind: desk.KindImage, Media: sent.ID, ContactID: from.ID}
	commit(t, s, ws, func(tx store.Tx) error {
		must(t, tx.PutConversation(&talk, &other))
		must(t, tx.PutAttempt(refusedReply))
		must(t, tx.PutAttempt(refusedOther))
		must(t, tx.PutMedia(sent))
		must(t, tx.PutMessage(forwarded))
		must(t, tx.PutMedia(file))
		must(t, tx.PutMediaJob(job))
		must(t, tx.PutMessage(message))
		must(t, tx.PutWindow(channel, from.ID, window))
		must(t, tx.PutAttempt(refusedOne))
		return tx.PutAutoReply(desk.AutoReplyJob{Message: message.ID, Channel: channel, Contact: from.ID, Conversation: talk.ID, Text: "x"})
	})
	conversations, files, err := s.CountParts(t.Context(), ws, from.ID, 100)
	must(t, err)
	equal(t, "parts", [2]int{conversations, files}, [2]int{1, 1})
	for contact, want := range map[desk.ID]int{from.ID: 1, into.ID: 1, first.ID: 0} {
		n, err := s.CountConversationsOf(t.Context(), ws, contact, []desk.ID{talk.ID, newID(), other.ID})
		must(t, err)
		equal(t, "conversations of a contact", n, want)
	}
	earlier := merge(t, s, ws, from.ID, first.ID)
	commit(t, s, ws, func(tx store.Tx) error { // two conversations of one person can't both be open on a channel
		other.Status = desk.StatusClosed
		return tx.PutConversation(&other)
	})
	m := merge(t, s, ws, into.ID, from.ID)
	equal(t, "the earlier merges", m.Undo.Merges, []desk.ID{earlier.ID})

	of := func(contact desk.ID) func(tx store.Tx) error {
		return func(tx store.Tx) error {
			t.Helper()
			c, err := tx.Conversation(talk.ID)
			must(t, err)
			f, err := tx.Media(file.ID)
			must(t, err)
			j, err := tx.MediaJob(file.ID)
			must(t, err)
			equal(t, "whose they are", []desk.ID{c.ContactID, f.ContactID, j.Contact}, []desk.ID{contact, contact, contact})
			reply, err := tx.AutoReply(contact, message.ID)
			must(t, err)
			if reply == nil {
				t.Error("the automatic reply is not the contact's")
			}
			return nil
		}
	}
	commit(t, s, ws, of(into.ID))
	found, err := s.Merged(t.Context(), ws, []desk.ID{first.ID, from.ID, into.ID})
	must(t, err)
	equal(t, "merged", found, map[desk.ID]desk.Merged{first.ID: {Into: into.ID, Merge: earlier.ID}, from.ID: {Into: into.ID, Merge: m.ID}})
	ids, err := s.MergedInto(t.Context(), ws, into.ID)
	must(t, err)
	want := []desk.ID{first.ID, from.ID}
	slices.SortFunc(want, desk.ID.Compare)
	equal(t, "merged into", ids, want)
	book, err := s.Book(t.Context(), ws, desk.Lookup{IDs: []desk.ID{first.ID}})
	must(t, err)
	_, err = book.ByID(first.ID)
	equal(t, "details", desk.AsError(err).Details, any(desk.Merged{Into: into.ID, Merge: earlier.ID}))

	commit(t, s, ws, func(tx store.Tx) error {
		newest, err := tx.NewestMerge(into.ID)
		must(t, err)
		of, err := tx.NewestMerge(from.ID)
		must(t, err)
		stored, err := tx.MergeOf(from.ID)
		must(t, err)
		equal(t, "newest", []desk.ID{newest, of, stored.ID}, []desk.ID{m.ID, m.ID, m.ID})
		equal(t, "stored", stored, m)
		windows, err := tx.WindowsOf(from.ID)
		must(t, err)
		equal(t, "windows", windows, map[desk.ID]desk.Window{channel: window})
		heard, err := tx.HeardSince(channel, into.ID, 4999)
		must(t, err)
		none, err := tx.HeardSince(channel, into.ID, 5000)
		must(t, err)
		equal(t, "heard", []desk.Time{heard, none}, []desk.Time{5000, 0})
		back, err := tx.Book(m.UndoLookup())
		must(t, err)
		_, err = back.Apply(&desk.Op{Kind: desk.OpUnmerge, ByID: true, Target: into.ID, Unmerge: m}, desk.Actor{}, now(), nil)
		must(t, err)
		must(t, tx.Flush(back))
		moved, err := tx.MoveConversations(into.ID, from.ID, []desk.ID{talk.ID, newID()}, []string{"905321110001"}, m.Undo.Merges)
		must(t, err)
		equal(t, "moved back", moved, []desk.ID{talk.ID})
		undone := *m
		undone.Survivor, undone.UndoneAt, undone.NotRestored = desk.ID{}, now(), []desk.NotRestored{{Field: "name", Reason: desk.RestoreChanged}}
		must(t, tx.DropWindow(channel, from.ID))
		return tx.PutMerge(&undone)
	})
	commit(t, s, ws, of(from.ID))
	if ids, err := s.MergedInto(t.Context(), ws, into.ID); err != nil || ids != nil {
		t.Errorf("after the undo, %v is part of the contact: %v", ids, err)
	}
	ids, err = s.MergedInto(t.Context(), ws, from.ID)
	must(t, err)
	equal(t, "the earlier merge is of the merged contact again", ids, []desk.ID{first.ID})
	f, err := s.Media(t.Context(), ws, sent.ID)
	must(t, err)
	if f == nil || f.ContactID != into.ID {
		t.Errorf("a file of the other contact, which was also sent to this one: %+v", f)
	}
	put(t, s, ws, remove(from.ID))
	for _, a := range []*desk.Attempt{refusedOne, refusedReply} {
		found, err := s.Attempt(t.Context(), ws, a.ID)
		must(t, err)
		if !found.Erased {
			t.Errorf("%q of the deleted contact is left", found.Key)
		}
	}
	untouched, err := s.Attempt(t.Context(), ws, refusedOther.ID)
	must(t, err)
	if untouched.Erased {
		t.Error("a reply to the other contact is erased")
	}
}

// mergesList: pages of merges, their values' life, and that a deleted contact leaves none.
func mergesList(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	elsewhere, _ := newWorkspace(t, s)
	into := put(t, s, ws, upsert("a@example.com", ""))
	var want []desk.ID
	for _, mail := range []string{"b@example.com", "c@example.com", "d@example.com"} {
		want = append([]desk.ID{merge(t, s, ws, into.ID, put(t, s, ws, upsert(mail, "")).ID).ID}, want...)
	}
	list := func(ws, contact desk.ID, limit int) (ids []desk.ID) {
		t.Helper()
		var before *desk.ID
		for {
			page, next, err := s.Merges(t.Context(), ws, contact, before, limit)
			must(t, err)
			for _, m := range page {
				if m.Undo != nil {
					t.Error("a list has what an undo needs")
				}
				ids = append(ids, m.ID)
			}
			if next == nil {
				return ids
			}
			before = next
		}
	}
	equal(t, "all", list(ws, desk.ID{}, 2), want)
	equal(t, "of the contact", list(ws, into.ID, 2), want)
	if list(ws, newID(), 2) != nil || list(elsewhere, desk.ID{}, 2) != nil {
		t.Error("merges of another contact, or of another workspace, are listed")
	}
	n, err := s.ForgetMerges(t.Context(), ws, 1<<60, 2)
	must(t, err)
	equal(t, "forgotten", n, 2)
	n, err = s.ForgetMerges(t.Context(), ws, 1<<60, 2)
	must(t, err)
	equal(t, "the rest", n, 1)
	found, err := s.MergesByID(t.Context(), ws, want)
	must(t, err)
	for _, m := range found {
		if m.Undo != nil || m.Changes != nil {
			t.Errorf("values are left: %+v", m)
		}
	}
	equal(t, "by id", len(found), 3)
	webhook, d := newID(), newDelivery(1, into.ID)
	at := found[0].At
	for _, m := range found {
		at = min(at, m.At)
	}
	d.Tries = []desk.WebhookTry{refused(at-1, "before"), refused(at, "since")}
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutDeliveries(webhook, []*desk.WebhookDelivery{d}) })
	for _, id := range want { // the older ones are undone after the newer one
		commit(t, s, ws, func(tx store.Tx) error {
			m, err := tx.Merge(id)
			must(t, err)
			m.Changes, m.UndoneAt, m.Survivor = []desk.FieldChange{{Field: "name", Lost: "of both"}}, now(), desk.ID{}
			return tx.PutMerge(m)
		})
	}
	found, err = s.MergesByID(t.Context(), ws, want)
	must(t, err)
	for _, m := range found {
		equal(t, "values of the undone merges", m.Changes != nil, m.ID == want[len(want)-1])
	}
	of, err := s.Delivery(t.Context(), ws, webhook, d.ID)
	must(t, err)
	var left []string
	for _, try := range of.Tries {
		left = append(left, try.Response)
	}
	equal(t, "responses of endpoints", left, []string{"before", ""})
	put(t, s, ws, remove(into.ID))
	if left := list(ws, desk.ID{}, 10); left != nil {
		t.Errorf("the merges %v of a deleted contact are left", left)
	}
}
