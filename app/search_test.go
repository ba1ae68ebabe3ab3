package app_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/app/search"
	"parley/desk"
	"parley/store"
)

// indexed indexes what has changed.
func (w *world) indexed() {
	w.t.Helper()
	for range 1000 + *soughtPeople {
		wait, err := w.Search.Step(w.t.Context())
		if must(w.t, err); wait < 0 {
			return
		}
	}
	w.t.Fatal("the search has never done")
}

// seeks returns the names of the contacts that a text finds, read in pages.
func (w *world) seeks(text string, limit int, edits ...func(*search.Query)) (names []string) {
	w.t.Helper()
	return w.seeksFirst(text, limit, math.MaxInt, edits...)
}

// seeksFirst is seeks, for so many of the first hits.
func (w *world) seeksFirst(text string, limit, most int, edits ...func(*search.Query)) (names []string) {
	w.t.Helper()
	q := search.Query{Sought: text, Limit: limit}
	if text != "" {
		var err error
		q.Text, err = desk.ParseSearch(text)
		must(w.t, err)
	}
	for _, edit := range edits {
		edit(&q)
	}
	for {
		page, err := w.Search.Find(w.t.Context(), w.caller(), q)
		must(w.t, err)
		if len(page.Contacts) > limit || page.Behind > 0 && text == "" {
			w.t.Errorf("%d contacts in a page of %d, %d behind", len(page.Contacts), limit, page.Behind)
		}
		for _, c := range page.Contacts {
			names = append(names, c.Name)
		}
		if page.Next == "" || len(names) >= most {
			return names[:min(len(names), most)]
		}
		q.Cursor = page.Next
	}
}

func identified(kind, value string) func(*desk.ContactWrite) {
	return func(w *desk.ContactWrite) {
		i, err := desk.ParseIdentity(kind, value, "TR")
		if err != nil {
			panic(err)
		}
		switch w.Sent = append(w.Sent, i); kind {
		case desk.KindEmail:
			w.Email = desk.Field[string]{Set: true, Value: value}
		case desk.KindPhone:
			w.Phone = desk.Field[string]{Set: true, Value: i.Value}
		case desk.KindExternalID:
			w.ExternalID = desk.Field[string]{Set: true, Value: value}
		default:
			w.Identities = desk.Field[[]desk.Identity]{Set: true, Value: append(w.Identities.Value, i)}
		}
	}
}

// TestSearch: a contact is found as it is now, also when it has changed since it was indexed,
// and nobody's terms are left when it is deleted.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.indexed()
	ada := w.put(named("Ada Lovelace"), identified("external_id", "1"))
	q := search.Query{Sought: "ada", Limit: 10}
	q.Text, _ = desk.ParseSearch("ada")
	if page, err := w.Search.Find(t.Context(), w.caller(), q); err != nil || len(page.Contacts) != 0 || page.Behind != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	w.indexed()
	if page, err := w.Search.Find(t.Context(), w.caller(), q); err != nil || len(page.Contacts) != 1 || page.Behind != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	w.put(named("Bob"), identified("external_id", "1"))
	if got := w.seeks("ada", 10); got != nil {
		t.Errorf("the old name finds %v", got)
	}
	w.indexed()
	if got := w.seeks("bo", 10); len(got) != 1 {
		t.Errorf("the new name finds %v", got)
	}
	w.deleteContact(ada.ID)
	for range 2 {
		if got := w.seeks("bo", 10); got != nil {
			t.Errorf("the name of a deleted contact finds %v", got)
		}
		w.indexed()
	}
	q.Cursor = "made up"
	if _, err := w.Search.Find(t.Context(), w.caller(), q); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("another cursor: %v", err)
	}
}

// TestSearch_upgrade: the contacts of an older release are indexed, also those that change
// meanwhile, and again if the rules of terms change.
func TestSearch_upgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const count = 700
	for n := range count {
		w.put(named(fmt.Sprintf("Person %03d", n)), identified("external_id", fmt.Sprint(n)))
	}
	for range 2 { // the place is begun, and the first group indexed
		_, err := w.Search.Step(t.Context())
		must(t, err)
	}
	w.put(named("Changed"), identified("external_id", "3"))
	w.put(named("Changed"), identified("external_id", "603"))
	q := search.Query{Sought: "person", Limit: 200}
	q.Text, _ = desk.ParseSearch("person")
	if page, err := w.Search.Find(t.Context(), w.caller(), q); err != nil || page.Behind < 100 {
		t.Errorf("%d behind, %v", page.Behind, err)
	}
	w.indexed()
	if n, changed := len(w.seeks("person", 200)), len(w.seeks("changed", 10)); n != count-2 || changed != 2 {
		t.Errorf("%d persons, %d changed", n, changed)
	}
	if n := w.Search.Behind(); n != 0 {
		t.Errorf("%d behind", n)
	}
}

// TestSearch_sealed: no workspace finds the contacts of another one.
func TestSearch_sealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.another()
	w.put(named("Ada"), identified("external_id", "1"))
	w.indexed()
	if got := other.seeks("ada", 10); got != nil {
		t.Errorf("another workspace finds %v", got)
	}
	if got := w.seeks("ada", 10); len(got) != 1 {
		t.Errorf("its own finds %v", got)
	}
}

var (
	soughtPeople = flag.Int("sought-people", 300, "how many contacts TestSearch_model has, with names of 12 scripts. Long run: -run 'TestSearch_model|TestPostgres/TestSearch_model' -sought-people 100000 -sought-texts 2000 -timeout 90m")
	soughtTexts  = flag.Int("sought-texts", 100, "how many random texts TestSearch_model looks for; see -sought-people")
)

// scripts are words of 12 scripts, some of which are found by each other's beginning.
var scripts = []string{
	"Ada", "Adam", "adele", "Łukasz", "lukas", "O'Brien", "obrien", "Jean-Luc", "jean", "Luc", "de", "x", "ab", "abc", "Straße", "Ågren", "Ilgın", "ILGIN", "ﬁona",
	"Анна", "Аня", "Ёлка", "елка", "Άννα", "αννα", "Σωκράτης", "شارع", "مُحَمَّد", "محمد", "שָׁלוֹם", "שלום", "सीता", "सीताराम", "สมชาย", "สม", "Արամ", "აკაკი",
	"山田太郎", "山田", "さくら", "サクラ", "ｻｸﾗ", "김민수", "김민", "தமிழ்", "தமி", "বাংলা",
}

// drawnPeople makes contacts with random names and handles, and returns them as they are stored.
func (w *world) drawnPeople(r *rand.Rand, count int) (list []*desk.Contact) {
	w.t.Helper()
	word := func() string { return scripts[r.IntN(len(scripts))] }
	for first := 0; first < count; first += 500 {
		var ops []*desk.Op
		for n := first; n < min(count, first+500); n++ {
			name := word()
			for range r.IntN(3) {
				name += " " + word()
			}
			edits := []func(*desk.ContactWrite){named(name), identified("external_id", fmt.Sprintf("Own-%d", n))}
			if n%2 == 0 {
				edits = append(edits, identified("email", fmt.Sprintf("%s%d@%s.example", strings.ToLower([]string{"Ada", "jean", "x"}[n%3]), n, []string{"ab", "luc"}[n%4/2])))
			}
			if n%3 == 0 {
				edits = append(edits, identified("phone", fmt.Sprintf("+90532%07d", n*37)))
			}
			if n%5 == 0 {
				edits = append(edits, identified("crm", fmt.Sprintf("ab-%d", n)))
			}
			op := &desk.Op{Kind: desk.OpUpsert}
			for _, edit := range edits {
				edit(&op.Write)
			}
			ops = append(ops, op)
		}
		outcomes, errs, err := w.WriteAll(w.t.Context(), w.caller(), ops)
		must(w.t, errors.Join(append(errs, err)...))
		var ids []desk.ID
		for _, o := range outcomes {
			ids = append(ids, o.ID)
		}
		found, err := w.ContactsByID(w.t.Context(), w.caller(), ids)
		must(w.t, err)
		for _, id := range ids {
			list = append(list, found[id])
		}
	}
	return list
}

// A termPair is a term of a contact.
type termPair struct {
	term string
	of   int // in the list of contacts
}

// TestSearch_model compares what random texts find with a way that looks at all contacts: the
// same contacts in the same order, however they are paged. Of very many hits it compares the
// first ones.
func TestSearch_model(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checkpoints()
	r := rand.New(rand.NewPCG(3, 4))
	contacts := w.drawnPeople(r, *soughtPeople)
	var pairs []termPair
	terms := make([][]string, len(contacts))
	for n, c := range contacts {
		terms[n] = c.SearchTerms()
		for _, term := range terms[n] {
			pairs = append(pairs, termPair{term, n})
		}
	}
	slices.SortFunc(pairs, func(a, b termPair) int { return strings.Compare(a.term, b.term) })
	begun := func(prefix string) []termPair { // the pairs whose term begins with it
		from, _ := slices.BinarySearchFunc(pairs, prefix, func(p termPair, prefix string) int { return strings.Compare(p.term, prefix) })
		to := from
		for to < len(pairs) && strings.HasPrefix(pairs[to].term, prefix) {
			to++
		}
		return pairs[from:to]
	}
	w.indexed()
	texts := []string{"a", "ad", "ada", "own-1", "own-12 ada", "@ab", "@luc.example", "0532", "053200", "21110", "+90 532 00", "jean-luc", "ab 太郎", "de x ab", "strasse", "o", "1111111111", "--"}
	for range *soughtTexts {
		text := scripts[r.IntN(len(scripts))]
		for range r.IntN(3) {
			text += " " + scripts[r.IntN(len(scripts))]
		}
		texts = append(texts, text[:1+r.IntN(len(text))])
	}
	const compared = 300 // hits of a text
	for _, text := range texts {
		text = strings.ToValidUTF8(text, "")
		s, err := desk.ParseSearch(text)
		if err != nil {
			continue
		}
		counts, found := make([]int, len(s.Prefixes())), make([]map[int]bool, len(s.Prefixes()))
		for i, prefixes := range s.Prefixes() {
			found[i] = map[int]bool{}
			for _, prefix := range prefixes {
				some := begun(prefix)
				counts[i] += len(some)
				for _, pair := range some {
					found[i][pair.of] = true
				}
			}
			counts[i] = min(counts[i], desk.SearchCounted)
		}
		type hit struct {
			by string
			c  *desk.Contact
		}
		var hits []hit
		lead := s.Lead(counts)
		for n := range found[lead] {
			if by, ok := s.Hit(terms[n], lead); ok {
				hits = append(hits, hit{by, contacts[n]})
			}
		}
		slices.SortFunc(hits, func(a, b hit) int {
			if a.by != b.by {
				return strings.Compare(a.by, b.by)
			}
			return bytes.Compare(b.c.ID[:], a.c.ID[:])
		})
		var want []string
		for _, h := range hits[:min(len(hits), compared)] {
			want = append(want, h.c.Name)
		}
		for _, limit := range []int{1 + r.IntN(7), 200} {
			if got := w.seeksFirst(text, limit, compared); !slices.Equal(got, want) {
				t.Errorf("%q by %d: %d hits %q\nwant %d %q", text, limit, len(got), got, len(want), want)
			}
		}
	}
}

// TestSearch_filters: an owner and an attribute narrow what is found. An attribute alone finds
// the newest contacts first.
func TestSearch_filters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.operator()
	_, _, err := w.PutAttribute(context.Background(), p, desk.AttributeInput{Key: "vip", Type: desk.Field[string]{Set: true, Value: "boolean"}})
	must(t, err)
	vip := func(yes bool) func(*desk.ContactWrite) {
		return func(w *desk.ContactWrite) {
			w.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{{Key: "vip", Value: desk.Value{Kind: desk.BoolValue, Bool: yes}}}}
		}
	}
	w.put(named("Ada one"), identified("external_id", "1"), vip(true))
	w.put(named("Ada two"), identified("external_id", "2"), vip(false))
	w.put(named("Ada three"), identified("external_id", "3"), vip(true))
	w.put(named("Bob"), identified("external_id", "4"), vip(true))
	w.indexed()
	filter := func(text string) func(*search.Query) {
		a, value, err := w.caller().Settings.ParseAttributeFilter(text)
		must(t, err)
		return func(q *search.Query) { q.Attribute, q.Value = a, value }
	}
	for _, limit := range []int{1, 10} {
		for _, c := range []struct {
			text, filter string
			want         []string
		}{
			{"ada", "vip:true", []string{"Ada three", "Ada one"}},
			{"ada", "vip:false", []string{"Ada two"}},
			{"", "vip:true", []string{"Bob", "Ada three", "Ada one"}},
		} {
			if got := w.seeks(c.text, limit, filter(c.filter)); !slices.Equal(got, c.want) {
				t.Errorf("%q %s: %q, want %q", c.text, c.filter, got, c.want)
			}
		}
	}
	nobody := func(q *search.Query) { q.Owner = w.NewID() }
	if got := w.seeks("ada", 10, nobody); got != nil {
		t.Errorf("of another owner: %q", got)
	}
}

// historyIs compares the types of events in the history of a contact, the oldest first.
func (w *world) historyIs(contact desk.ID, want ...desk.EventType) {
	w.t.Helper()
	events, next, err := w.Search.History(w.t.Context(), w.caller(), contact, "", desk.MaxLimit)
	must(w.t, err)
	var got []desk.EventType
	for _, e := range slices.Backward(events) {
		got = append(got, e.Type)
	}
	if !slices.Equal(got, want) || next != "" {
		w.t.Errorf("the history is %s, want %s; more at %q", got, want, next)
	}
}

// newestEvent returns the place of the newest event.
func (w *world) newestEvent() desk.EventPlace {
	page, err := w.store.Events(w.t.Context(), w.ws, store.EventQuery{From: store.FromNewest, Bare: true}, func(*desk.Settings) ([]desk.EventType, error) { return nil, nil })
	must(w.t, err)
	return page.Next
}

// TestHistory_upgrade: after an upgrade, search has read all events, and the history begins with
// the oldest that is kept. Meanwhile the search goes on. Terms that are built anew lose no
// history.
func TestHistory_upgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const count = 700
	var first, last *desk.Contact
	for n := range count {
		last = w.put(named(fmt.Sprintf("Person %03d", n)), identified("external_id", fmt.Sprint(n)))
		if n == 0 {
			first = last
		}
	}
	w.put(named("Changed"), identified("external_id", "0"))
	at := store.SearchPlace{Rules: desk.SearchRules, Event: w.newestEvent()}
	done, err := w.store.IndexContacts(t.Context(), w.ws, store.SearchPlace{}, at, nil, nil)
	if must(t, err); !done {
		t.Fatal("not begun")
	}
	after := w.put(named("Later"), identified("external_id", "later"))
	for range 2 { // the first step only measures the pace
		_, err = w.Search.Step(t.Context())
		must(t, err)
	}
	if got := w.seeks("later", 10); len(got) != 1 {
		t.Errorf("before the history is level, the search finds %q", got)
	}
	w.historyIs(last.ID)
	w.indexed()
	w.historyIs(first.ID, desk.ContactCreated, desk.ContactUpdated)
	w.historyIs(last.ID, desk.ContactCreated)
	w.historyIs(after.ID, desk.ContactCreated)

	w.put(named("Changed again"), identified("external_id", "later"))
	places, err := w.store.SearchPlaces(t.Context(), []desk.ID{w.ws})
	must(t, err)
	old := places[w.ws]
	old.Rules, old.Event = desk.SearchRules-1, desk.EventPlace{}
	done, err = w.store.IndexContacts(t.Context(), w.ws, places[w.ws], old, nil, nil)
	if must(t, err); !done {
		t.Fatal("not set back")
	}
	w.put(named("Changed twice"), identified("external_id", "later"))
	w.indexed()
	w.historyIs(after.ID, desk.ContactCreated, desk.ContactUpdated, desk.ContactUpdated)
	if got := w.seeks("twice", 10); len(got) != 1 {
		t.Errorf("built anew, the search finds %q", got)
	}
	w.deleteContact(after.ID)
	w.indexed()
	w.historyIs(after.ID)
}
