package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// called returns an upsert of a contact with a name, which is found by an own id.
func called(name string, n int) *desk.Op {
	id := fmt.Sprint("own-", n)
	return &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{
		Name: text(name), ExternalID: text(id), Sent: []desk.Identity{{Kind: desk.KindExternalID, Value: id}},
	}}
}

// placeOf returns how far a workspace is indexed.
func placeOf(t *testing.T, s store.Store, ws desk.ID) store.SearchPlace {
	t.Helper()
	places, err := s.SearchPlaces(t.Context(), []desk.ID{ws, newID()})
	must(t, err)
	return places[ws]
}

// index stores the terms of contacts, without a change of what is indexed otherwise.
func index(t *testing.T, s store.Store, ws desk.ID, contacts ...*desk.Contact) {
	t.Helper()
	var ids []desk.ID
	for _, c := range contacts {
		ids = append(ids, c.ID)
	}
	from := placeOf(t, s, ws)
	done, err := s.IndexContacts(t.Context(), ws, from, store.SearchPlace{Rules: desk.SearchRules, Event: from.Event}, ids, nil)
	if must(t, err); !done {
		t.Fatal("nothing was indexed")
	}
}

// foundBy returns the terms of contacts that begin with prefixes, read in pages.
func foundBy(t *testing.T, s store.Store, ws desk.ID, page int, prefixes ...string) []desk.TermPair {
	t.Helper()
	return foundWith(t, s, ws, page, nil, prefixes...)
}

// foundWith is foundBy, with the prefixes of other parts.
func foundWith(t *testing.T, s store.Store, ws desk.ID, page int, others [][]string, prefixes ...string) (list []desk.TermPair) {
	t.Helper()
	for after := (desk.TermPlace{}); ; {
		pairs, err := s.TermPairs(t.Context(), ws, prefixes, others, after, page)
		must(t, err)
		if len(pairs) > page {
			t.Fatalf("%d of %d pairs", len(pairs), page)
		}
		list = append(list, pairs...)
		if len(pairs) < page {
			return list
		}
		after = pairs[page-1].TermPlace
	}
}

func searchTerms(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	ada, bob := put(t, s, ws, called("Ada Lovelace", 1)), put(t, s, ws, called("Bob Ross", 2))
	equal(t, "the place at first", placeOf(t, s, ws), store.SearchPlace{})
	begun := store.SearchPlace{Rules: desk.SearchRules, Event: desk.EventPlace{Seq: 1, Tag: 2}, Building: true}
	done, err := s.IndexContacts(t.Context(), ws, store.SearchPlace{}, begun, nil, nil)
	must(t, err)
	equal(t, "begun", []any{done, placeOf(t, s, ws)}, []any{true, begun})
	next := begun
	next.Built = ada.ID
	done, err = s.IndexContacts(t.Context(), ws, begun, next, []desk.ID{ada.ID, newID()}, nil)
	must(t, err)
	equal(t, "one is indexed", []any{done, placeOf(t, s, ws), len(foundBy(t, s, ws, 10, "A"))}, []any{true, next, 2})
	done, err = s.IndexContacts(t.Context(), ws, begun, next, []desk.ID{bob.ID}, nil) // another process has moved the place
	must(t, err)
	equal(t, "from another place", []any{done, len(foundBy(t, s, ws, 10, "A"))}, []any{false, 2})
	built := store.SearchPlace{Rules: desk.SearchRules, Event: next.Event}
	done, err = s.IndexContacts(t.Context(), ws, next, built, []desk.ID{bob.ID}, nil)
	must(t, err)
	equal(t, "built", []any{done, placeOf(t, s, ws), placeOf(t, s, other)}, []any{true, built, store.SearchPlace{}})

	// A contact's terms are those that it had when it was indexed.
	terms := func(prefix string) (list []string) {
		for _, p := range foundBy(t, s, ws, 10, prefix) {
			list = append(list, p.Term)
		}
		return list
	}
	put(t, s, ws, called("Ada King", 1))
	equal(t, "before it is indexed", terms("A"), []string{"Aada", "Abob", "Alovelace", "Aross"})
	index(t, s, ws, ada)
	index(t, s, ws, ada)
	equal(t, "indexed", terms("A"), []string{"Aada", "Abob", "Aking", "Aross"})
	put(t, s, ws, remove(ada.ID))
	equal(t, "deleted", terms("A"), []string{"Abob", "Aross"})
	index(t, s, ws, ada)
	equal(t, "indexed after its deletion", terms("A"), []string{"Abob", "Aross"})
	if pairs := foundBy(t, s, other, 10, "A"); len(pairs) > 0 {
		t.Errorf("another workspace finds %v", pairs)
	}

	// Terms of a contact that was deleted by a server which does not know them.
	eve := put(t, s, ws, called("Eve", 3))
	index(t, s, ws, eve)
	again := store.SearchPlace{Rules: desk.SearchRules, Event: next.Event, Building: true}
	for _, to := range []store.SearchPlace{again, built} {
		from := placeOf(t, s, ws)
		done, err = s.IndexContacts(t.Context(), ws, from, to, []desk.ID{bob.ID}, nil)
		if must(t, err); !done {
			t.Error("not built anew")
		}
	}
	equal(t, "built anew without one", terms("A"), []string{"Abob", "Aross"})
	_, err = s.IndexContacts(t.Context(), newID(), store.SearchPlace{}, begun, nil, nil)
	wantType(t, err, desk.NotFound)
}

func searchPairs(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var all []*desk.Contact
	for n, name := range []string{"Ada", "Adam", "ada x", "Ad Ada", "Adb", "Bada", "Ada", "\U0010FFFF", "Ada"} {
		all = append(all, put(t, s, ws, called(name, n)))
	}
	index(t, s, ws, all...)
	begins := func(prefixes []string) func(string) bool {
		return func(term string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(term, p) })
		}
	}
	for n, prefixes := range [][]string{{"Aad"}, {"Aada"}, {"A"}, {"Aadb"}, {"Aada", "Bown-"}, {"B"}, {"Azz"}, {"Bown-", "C"}} {
		others := [][][]string{nil, {{"Bown-0", "Bown-2"}}, {{"Bown-"}, {"Aada", "Axyz"}}, {{}}}[n%4]
		var want []desk.TermPair
		for _, c := range all {
			terms := c.SearchTerms()
			for _, term := range terms {
				if begins(prefixes)(term) {
					fits := !slices.ContainsFunc(others, func(other []string) bool { return !slices.ContainsFunc(terms, begins(other)) })
					want = append(want, desk.TermPair{TermPlace: desk.TermPlace{Term: term, Contact: c.ID}, Fits: fits})
				}
			}
		}
		slices.SortFunc(want, func(a, b desk.TermPair) int {
			if a.Term != b.Term {
				return bytes.Compare([]byte(a.Term), []byte(b.Term))
			}
			return bytes.Compare(b.Contact[:], a.Contact[:])
		})
		for _, page := range []int{1, 2, 3, 100} {
			equal(t, fmt.Sprint(prefixes, " by ", page), foundWith(t, s, ws, page, others, prefixes...), want)
		}
		counts, err := s.CountTerms(t.Context(), ws, [][]string{prefixes, {"Azz"}, prefixes}, 4)
		must(t, err)
		equal(t, "counts", counts, []int{min(4, len(want)), 0, min(4, len(want))})
	}
}

func searchBehind(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var all []*desk.Contact
	for n := range 5 {
		all = append(all, put(t, s, ws, called("Ada", n)))
	}
	behind := func(most, want int) {
		t.Helper()
		n, err := s.SearchBehind(t.Context(), ws, []desk.EventType{desk.ContactCreated, desk.ContactUpdated}, most)
		must(t, err)
		equal(t, "behind", n, want)
	}
	newest := func() desk.EventPlace {
		page, err := s.Events(t.Context(), ws, store.EventQuery{From: store.FromNewest, Bare: true}, func(*desk.Settings) ([]desk.EventType, error) { return nil, nil })
		must(t, err)
		return page.Next
	}
	move := func(to store.SearchPlace) {
		t.Helper()
		done, err := s.IndexContacts(t.Context(), ws, placeOf(t, s, ws), to, nil, nil)
		if must(t, err); !done {
			t.Error("not moved")
		}
	}
	behind(10, 5)
	behind(3, 3)
	move(store.SearchPlace{Rules: desk.SearchRules, Event: newest(), Building: true, Built: all[1].ID})
	ids, err := s.ContactIDs(t.Context(), ws, all[1].ID, 2)
	must(t, err)
	after := slices.DeleteFunc(slices.Clone(all), func(c *desk.Contact) bool { return bytes.Compare(c.ID[:], all[1].ID[:]) <= 0 })
	slices.SortFunc(after, func(a, b *desk.Contact) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	var want []desk.ID
	for _, c := range after[:min(2, len(after))] {
		want = append(want, c.ID)
	}
	equal(t, "contacts to index", ids, want)
	behind(10, len(after))
	put(t, s, ws, called("Eve", 1))
	behind(10, len(after)+1)
	move(store.SearchPlace{Rules: desk.SearchRules, Event: placeOf(t, s, ws).Event})
	behind(10, 1)
	move(store.SearchPlace{Rules: desk.SearchRules, Event: newest()})
	behind(10, 0)
	must(t, s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { // an event of another type
		return desk.Change{Attribute: &desk.Attribute{Key: "a", Label: "A", Type: desk.TextAttribute}, Events: []desk.Event{{Type: desk.AttributeCreated, Key: "a", At: now()}}}, nil
	}))
	behind(10, 0)
	move(store.SearchPlace{Rules: desk.SearchRules + 1, Event: newest()}) // of a newer release
	behind(10, 0)
}

func contactsByID(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var all []*desk.Contact
	for n := range 7 {
		all = append(all, put(t, s, ws, called("Ada", n)))
	}
	slices.SortFunc(all, func(a, b *desk.Contact) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	ids := func(contacts []*desk.Contact) (list []string) {
		for _, c := range contacts {
			list = append(list, c.ID.String()+" "+c.Name)
		}
		return list
	}
	var list []*desk.Contact
	for before, more := (desk.ID{}), true; more; {
		var page []*desk.Contact
		var err error
		page, more, err = s.ContactsBefore(t.Context(), ws, before, 3)
		if must(t, err); len(page) == 0 || len(page) > 3 {
			t.Fatalf("a page of %d", len(page))
		}
		list, before = append(list, page...), page[len(page)-1].ID
	}
	equal(t, "contacts", ids(list), ids(all))
}

// indexBesideDeletions: whichever of the two is first, a deleted contact has no terms and no
// history.
func indexBesideDeletions(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	index(t, s, ws)
	var all []*desk.Contact
	for n := range 40 {
		all = append(all, put(t, s, ws, called("Ada", n)))
	}
	var both sync.WaitGroup
	both.Go(func() {
		for from := 0; from < len(all); {
			place, ids, events := placeOf(t, s, ws), []desk.ID(nil), []desk.FeedEvent(nil)
			for i, c := range all[from : from+4] {
				ids, events = append(ids, c.ID), append(events, changeOf(c.ID, int64(from+i), desk.ContactCreated))
			}
			done, err := s.IndexContacts(t.Context(), ws, place, place, ids, events)
			if err != nil {
				t.Error(err)
				return
			}
			if done {
				from += 4
			}
		}
	})
	both.Go(func() {
		for _, c := range all {
			if _, errs, err := apply(t.Context(), s, ws, remove(c.ID)); err != nil || errs[0] != nil {
				t.Error(err, errs)
			}
		}
	})
	both.Wait()
	if pairs := foundBy(t, s, ws, 100, "A", "B"); len(pairs) > 0 {
		t.Errorf("%d terms of deleted contacts", len(pairs))
	}
	for _, c := range all {
		if list := historyOf(t, s, ws, 10, c.ID); len(list) > 0 {
			t.Errorf("%d events of a deleted contact", len(list))
		}
	}
}

// changeOf returns an event of a contact.
func changeOf(contact desk.ID, seq int64, kind desk.EventType, changed ...string) desk.FeedEvent {
	e := desk.Event{Type: kind, Subject: contact, At: desk.Time(1000 + seq), Actor: desk.Actor{Kind: desk.ByKey, ID: desk.ID{9}}, Changed: changed}
	return e.Placed(seq)
}

// remember adds events to the history, without a change of what is indexed.
func remember(t *testing.T, s store.Store, ws desk.ID, events ...desk.FeedEvent) {
	t.Helper()
	from := placeOf(t, s, ws)
	to := from
	to.Rules, to.History = desk.SearchRules, events[len(events)-1].Place
	done, err := s.IndexContacts(t.Context(), ws, from, to, nil, events)
	if must(t, err); !done || placeOf(t, s, ws) != to {
		t.Fatalf("done: %v, the place is %+v, want %+v", done, placeOf(t, s, ws), to)
	}
}

// historyOf returns the history of contacts, read in pages.
func historyOf(t *testing.T, s store.Store, ws desk.ID, page int, contacts ...desk.ID) (list []desk.FeedEvent) {
	t.Helper()
	for before := int64(0); ; {
		part, err := s.History(t.Context(), ws, contacts, before, page)
		if must(t, err); len(part) > page {
			t.Fatalf("%d of %d events", len(part), page)
		}
		list = append(list, part...)
		if len(part) < page {
			return list
		}
		before = part[page-1].Place.Seq
	}
}

// followAll moves the places of search and history to the newest event, so that all events may
// expire.
func followAll(t *testing.T, s store.Store, ws desk.ID) {
	t.Helper()
	newest := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	done, err := s.IndexContacts(t.Context(), ws, placeOf(t, s, ws), store.SearchPlace{Rules: desk.SearchRules, Event: newest, History: newest}, nil, nil)
	if must(t, err); !done {
		t.Fatal("the places were not moved")
	}
}

// history: a contact's creation and its newest changes stay, with all that their events say.
// Nothing is kept of a contact that does not exist.
func history(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	ada, bob, gone := put(t, s, ws, called("Ada", 1)), put(t, s, ws, called("Bob", 2)), newID()
	var all []desk.FeedEvent
	all = append(all, changeOf(ada.ID, 10, desk.ContactCreated), changeOf(bob.ID, 11, desk.ContactCreated), changeOf(gone, 12, desk.ContactCreated))
	for seq := int64(13); seq < 300; seq++ {
		all = append(all, changeOf(ada.ID, seq, desk.ContactUpdated, "attributes.plan", fmt.Sprint("field", seq)))
	}
	all = append(all, changeOf(bob.ID, 300, desk.ContactOptedOut), changeOf(gone, 301, desk.ContactUpdated, "name"))
	for part := range slices.Chunk(all, 100) {
		remember(t, s, ws, part...)
	}
	newest := func(list ...desk.FeedEvent) []desk.FeedEvent { slices.Reverse(list); return list }
	ofAda := newest(append([]desk.FeedEvent{all[0]}, all[len(all)-2-desk.MaxHistory:len(all)-2]...)...)
	equal(t, "Ada's", historyOf(t, s, ws, 500, ada.ID), ofAda)
	equal(t, "Ada's in pages", historyOf(t, s, ws, 7, ada.ID), ofAda)
	equal(t, "Bob's", historyOf(t, s, ws, 10, bob.ID), newest(all[1], all[len(all)-2]))
	equal(t, "of both, in pages", historyOf(t, s, ws, 9, bob.ID, ada.ID, gone), slices.Concat([]desk.FeedEvent{all[len(all)-2]}, ofAda[:desk.MaxHistory], []desk.FeedEvent{all[1], all[0]}))
	equal(t, "of nobody", len(historyOf(t, s, ws, 10, gone))+len(historyOf(t, s, ws, 10)), 0)
	equal(t, "in another workspace", len(historyOf(t, s, other, 10, ada.ID)), 0)

	remember(t, s, ws, changeOf(bob.ID, 300, desk.ContactOptedOut)) // the place was set back by a restore
	equal(t, "Bob's again", len(historyOf(t, s, ws, 10, bob.ID)), 2)
	from := placeOf(t, s, ws)
	from.History.Seq++
	done, err := s.IndexContacts(t.Context(), ws, from, from, nil, []desk.FeedEvent{changeOf(bob.ID, 302, desk.ContactUpdated)})
	must(t, err)
	equal(t, "from another place", []any{done, len(historyOf(t, s, ws, 10, bob.ID))}, []any{false, 2})

	put(t, s, ws, remove(ada.ID))
	equal(t, "after the deletion", len(historyOf(t, s, ws, 10, ada.ID)), 0)
	remember(t, s, ws, changeOf(ada.ID, 303, desk.ContactUpdated, "name"))
	equal(t, "late events", len(historyOf(t, s, ws, 10, ada.ID)), 0)
}

// eventsStay: events of contacts leave the feed only after search and history have had them.
func eventsStay(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	setting := func(key string) {
		must(t, s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) {
			return desk.Change{Attribute: &desk.Attribute{Key: key, Label: "A", Type: desk.TextAttribute}, Events: []desk.Event{{Type: desk.AttributeCreated, Key: key, At: now()}}}, nil
		}))
	}
	setting("a")
	put(t, s, ws, called("Ada", 1))
	setting("b")
	put(t, s, ws, called("Bob", 2))
	page, err := s.Events(t.Context(), ws, store.EventQuery{From: store.FromOldest, Limit: 10, Bare: true}, func(*desk.Settings) ([]desk.EventType, error) { return desk.EventTypes, nil })
	if must(t, err); len(page.Events) != 4 {
		t.Fatalf("%d events", len(page.Events))
	}
	dropped := func(what string, want int) {
		t.Helper()
		n, err := s.DropEvents(t.Context(), ws, desk.Expired{Before: now() + 60_000, Now: now() + 60_000}, 100)
		must(t, err)
		equal(t, what, n, want)
	}
	move := func(search, history desk.EventPlace) {
		t.Helper()
		done, err := s.IndexContacts(t.Context(), ws, placeOf(t, s, ws), store.SearchPlace{Rules: desk.SearchRules, Event: search, History: history}, nil, nil)
		if must(t, err); !done {
			t.Error("not moved")
		}
	}
	dropped("before anybody has read", 1)
	move(page.Events[3].Place, page.Events[0].Place)
	dropped("the history has not read", 0)
	move(page.Events[1].Place, page.Events[3].Place)
	dropped("the search has read one", 2)
	move(page.Events[3].Place, page.Events[3].Place)
	dropped("both have read", 1)
}

// unindexed: the workspaces with old changes that the search does not know.
func unindexed(t *testing.T, of store.Store) {
	s := of.(store.Examined)
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	put(t, s, other, called("Eve", 1))
	types, far := []desk.EventType{desk.ContactCreated, desk.ContactUpdated}, desk.TimeOf(time.Now().Add(time.Hour))
	behind := func(before desk.Time) bool {
		t.Helper()
		list, err := s.Unindexed(t.Context(), types, before, 1000)
		must(t, err)
		return slices.Contains(list, ws)
	}
	check := func(what string, before desk.Time, want bool) {
		t.Helper()
		equal(t, what, behind(before), want)
	}
	check("without contacts", far, false)
	ada, bob := put(t, s, ws, called("Ada", 1)), put(t, s, ws, called("Bob", 2))
	check("contacts that are not indexed", far, true)
	check("contacts that were changed since", min(ada.UpdatedAt, bob.UpdatedAt), false)
	if list, err := s.Unindexed(t.Context(), types, far, 1); len(list) != 1 || err != nil {
		t.Errorf("at most one workspace: %v, %v", list, err)
	}
	index(t, s, ws, ada, bob)
	place := placeOf(t, s, ws)
	place.Building, place.Event = false, feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	if done, err := s.IndexContacts(t.Context(), ws, placeOf(t, s, ws), place, nil, nil); !done || err != nil {
		t.Fatal(done, err)
	}
	check("all are indexed", far, false)
	cyd := put(t, s, ws, called("Cyd", 3))
	check("a later change", far, true)
	check("a later change, not yet old", cyd.UpdatedAt, false)
}
