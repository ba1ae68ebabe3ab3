package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// newAttempt returns a dispatching attempt to a number.
func newAttempt(number string) *desk.Attempt {
	at := now()
	return &desk.Attempt{
		ID: idAt(at), Key: "key", Hash: [32]byte{1, 31: 255}, Actor: desk.Actor{Kind: desk.ByKey, ID: newID()}, Phase: desk.Dispatching, CreatedAt: at, Lease: desk.LeaseFor(at, 30_000),
		Plan: desk.Plan{
			Channel: newID(), Contact: newID(), Conversation: newID(), Message: newID(), Template: "t", Language: "en",
			Text: "hello", OptIn: desk.OptIn{Key: newID(), At: at, Request: newID()}, Number: number,
		},
	}
}

func putAttempts(t *testing.T, s store.Store, ws desk.ID, list ...*desk.Attempt) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error {
		for _, a := range list {
			if err := tx.PutAttempt(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// fullProfile returns a profile with fields in every state and values of every kind.
func fullProfile() *desk.ContactWrite {
	return &desk.ContactWrite{
		ExternalID: text("x'\"\\"), Name: null(), Phone: text(""), Owner: refer("ada@example.com"), // e-mail and note are absent
		Identities: desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{{Kind: "twitter", Value: "😀\n"}}},
		Attributes: desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{
			{Key: "null"},
			{Key: "bool", Value: desk.Value{Kind: desk.BoolValue, Bool: true}},
			{Key: "no", Value: desk.Value{Kind: desk.BoolValue}},
			{Key: "number", Value: desk.Value{Kind: desk.NumberValue, Text: "12345678901234567890.50"}},
			{Key: "text", Value: desk.Value{Kind: desk.StringValue, Text: "ü"}},
			{Key: "list", Value: desk.Value{Kind: desk.ListValue, Text: "a" + desk.ListEnd + desk.ListEnd}},
			{Key: "empty", Value: desk.Value{Kind: desk.ListValue}},
			{Key: "object", Value: desk.Value{Kind: desk.OtherValue}},
		}},
		Sent: []desk.Identity{{Kind: desk.KindExternalID, Value: "x'\"\\"}, {Kind: "twitter", Value: "😀\n"}},
	}
}

func attemptFieldsSurvive(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	want := newAttempt("905321112233")
	check := func() {
		t.Helper()
		putAttempts(t, s, ws, want)
		got, err := s.Attempt(t.Context(), ws, want.ID)
		must(t, err)
		equal(t, "attempt", got, want)
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.Attempt(want.ID)
			equal(t, "attempt in a transaction", got, want)
			if err != nil {
				return err
			}
			untouched, err := tx.Untouched(want.ID)
			if untouched != (want.Phase == desk.Dispatching && !want.Erased) {
				t.Errorf("%s, erased %t: untouched %t", want.Phase, want.Erased, untouched)
			}
			if err != nil || want.Erased {
				return err
			}
			list, err := tx.AttemptsTo(want.Plan.Contact)
			if unsettled := !want.Phase.Settled(); len(list) > 1 || (len(list) == 1) != unsettled || unsettled && list[0].ID != want.ID {
				t.Errorf("attempts to the contact: %+v", list)
			}
			return err
		})
	}
	check()
	want.Plan.Assignee, want.Plan.Known, want.Plan.Profile = member.ID, true, &desk.ContactWrite{}
	check()
	want.Plan.Profile = fullProfile()
	check()
	want.Plan.Profile.Identities = desk.Field[[]desk.Identity]{Set: true, Null: true}
	want.Plan.Profile.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{}}
	want.Phase, want.Lease = desk.InDoubt, 0
	check()
	want.Erase()
	check()
	want.Refusal = &desk.Refusal{Type: desk.ProviderUnavailable, Message: "later", Advice: desk.Advice{Kind: desk.SyncChannel, Arg: "c"}, Failure: &desk.Failure{Code: 4, Title: "a", Fix: "b"}, RetryAfter: 9}
	want.Settle(desk.Refused, now())
	check()
	want.Refusal = &desk.Refusal{Type: desk.ProviderRejected, Message: "no"}
	want.Settle(desk.Released, now())
	check()
	want.Refusal, want.Response, want.ExternalID, want.Notes = nil, []byte("{\"a\": \"ü\"}\n\x00\xff"), "wamid.1", []string{"one", "", "ü\""}
	want.Settle(desk.Done, now())
	check()
	got, err := s.Attempt(t.Context(), ws, newID())
	must(t, err)
	equal(t, "no attempt", got, (*desk.Attempt)(nil))
	erased := newAttempt("905321112244")
	erased.Erase()
	putAttempts(t, s, ws, erased)
	commit(t, s, ws, func(tx store.Tx) error {
		one, err1 := tx.Untouched(erased.ID)
		none, err2 := tx.Untouched(newID())
		if one || none {
			t.Errorf("untouched: an erased one %t, one that does not exist %t", one, none)
		}
		return errors.Join(err1, err2)
	})
}

func attemptKeys(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first, second := newAttempt("1"), newAttempt("2")
	holder := func(key string, want *desk.Attempt) {
		t.Helper()
		got, err := s.AttemptOfKey(t.Context(), ws, key)
		must(t, err)
		equal(t, "holder", got, want)
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.AttemptOfKey(key)
			equal(t, "holder in a transaction", got, want)
			return err
		})
	}
	holder("key", nil)
	putAttempts(t, s, ws, first, second)
	holder("key", nil) // storing an attempt does not yet give it its key
	take := func(key string, id desk.ID) error {
		return s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.TakeKey(key, id) })
	}
	must(t, take("key", first.ID))
	must(t, take("Key", second.ID)) // keys are exact
	holder("key", first)
	for _, id := range []desk.ID{second.ID, first.ID} {
		if err := take("key", id); err == nil || desk.IsType(err, desk.Unavailable) {
			t.Errorf("a key that is held was taken: %v", err)
		}
	}
	holder("key", first)
	commit(t, s, ws, func(tx store.Tx) error { return tx.FreeKey("key") })
	holder("key", nil)
	commit(t, s, ws, func(tx store.Tx) error { return tx.FreeKey("key") }) // the key is free already
	must(t, take("key", second.ID))
	holder("key", second)
	holder("Key", second)
}

func attemptLists(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var list []*desk.Attempt
	in := map[desk.Phase][]*desk.Attempt{}
	for _, p := range []desk.Phase{desk.InDoubt, desk.Dispatching, desk.Done, desk.InDoubt, desk.Refused, desk.Released, desk.Dispatching, desk.Done, desk.InDoubt} {
		a := newAttempt("1")
		if a.Phase = p; p.Settled() {
			a.Settle(p, now())
		}
		putAttempts(t, s, ws, a)
		list = append([]*desk.Attempt{a}, list...)
		in[p], in[""] = append([]*desk.Attempt{a}, in[p]...), list
	}
	check := func(phase desk.Phase, want []*desk.Attempt) {
		t.Helper()
		for _, limit := range []int{100, 9, 3, 2, 1} {
			var got []*desk.Attempt
			for place, pages := (*desk.ID)(nil), 0; pages == 0 || place != nil; pages++ {
				page, next, err := s.Attempts(t.Context(), ws, phase, place, limit)
				must(t, err)
				if len(page) > limit || pages > len(list) {
					t.Fatalf("%d attempts in page %d of %d", len(page), pages, limit)
				}
				got, place = append(got, page...), next
			}
			equal(t, fmt.Sprintf("attempts in the phase %q, by %d", phase, limit), got, want)
		}
	}
	for phase, want := range in {
		check(phase, want)
	}
	doubtful := in[desk.InDoubt]
	// The workspace of an unsettled attempt is found by the attempt's id; that of a
	// settled one is not.
	for _, a := range list {
		got, err := s.WorkspaceOf(t.Context(), a.ID)
		if a.Phase.Settled() {
			wantType(t, err, desk.NotFound)
			continue
		}
		must(t, err)
		equal(t, "workspace of the attempt", got, ws)
	}
	// A settled attempt is no longer listed.
	doubtful[0].Settle(desk.Released, now())
	putAttempts(t, s, ws, doubtful[0])
	check(desk.InDoubt, doubtful[1:])

	// A page has at most a certain number of bytes, and looks at a bounded number of
	// attempts.
	other, _ := newWorkspace(t, s)
	for from := 0; from < desk.MaxLooked+10; from += 500 {
		commit(t, s, other, func(tx store.Tx) error {
			for n := from; n < from+500; n++ {
				a := &desk.Attempt{ID: idAt(now()), Key: "k", Phase: desk.Done, CreatedAt: now(), SettledAt: 1}
				if n < 100 {
					a.Phase, a.Notes = desk.Refused, []string{strings.Repeat("x", desk.MaxPage/30)}
				}
				if err := tx.PutAttempt(a); err != nil {
					return err
				}
			}
			return nil
		})
	}
	page, next, err := s.Attempts(t.Context(), other, desk.Refused, nil, 50)
	must(t, err)
	if len(page) != 0 || next == nil {
		t.Fatalf("%d attempts beyond what a page looks at, %v", len(page), next)
	}
	page, next, err = s.Attempts(t.Context(), other, desk.Refused, next, 50)
	must(t, err)
	if len(page) < 20 || len(page) > 30 || next == nil || *next != page[len(page)-1].ID {
		t.Errorf("%d large attempts in a page, %v", len(page), next)
	}
	rest := 0
	for next != nil {
		page, next, err = s.Attempts(t.Context(), other, "", next, 50)
		must(t, err)
		if rest += len(page); len(page) > 30 {
			t.Errorf("%d large attempts in a page", len(page))
		}
	}
	if rest < 70 || rest > 80 {
		t.Errorf("%d large attempts in later pages", rest)
	}
}

func attemptsLapse(t *testing.T, s store.Store) {
	one, _ := newWorkspace(t, s)
	two, _ := newWorkspace(t, s)
	const minute = 60_000
	with := func(ws desk.ID, p desk.Phase, ago desk.Time) store.LapsedAttempt {
		t.Helper()
		a := newAttempt("1")
		commit(t, s, ws, func(tx store.Tx) error { // by the database's clock
			a.Phase, a.Lease = p, desk.LeaseFor(tx.Now(), -ago)
			return tx.PutAttempt(a)
		})
		return store.LapsedAttempt{Workspace: ws, ID: a.ID}
	}
	long, short := with(one, desk.Dispatching, 10*minute), with(two, desk.Dispatching, 5*minute)
	with(one, desk.Dispatching, -minute)
	with(one, desk.InDoubt, 10*minute)
	settled := newAttempt("1")
	settled.Settle(desk.Done, now())
	putAttempts(t, s, two, settled)
	for margin, want := range map[desk.Time][]store.LapsedAttempt{
		0: {long, short}, 4 * minute: {long, short}, 6 * minute: {long}, 11 * minute: nil,
	} {
		got, err := s.Lapsed(t.Context(), 2*minute, margin, 10)
		must(t, err)
		found := map[store.LapsedAttempt]bool{}
		for _, a := range got {
			found[a] = true
		}
		if len(found) != len(want) || len(got) != len(want) {
			t.Errorf("margin %d: %d attempts, want %d", margin, len(got), len(want))
		}
		for _, a := range want {
			if !found[a] {
				t.Errorf("margin %d: an attempt is missing", margin)
			}
		}
	}
	got, err := s.Lapsed(t.Context(), 2*minute, 0, 1)
	must(t, err)
	if len(got) != 1 {
		t.Errorf("%d attempts, want the limit of 1", len(got))
	}
}

// serve raises the counter by this many hours, as a running server does.
func serve(t *testing.T, s store.Store, hours int) {
	t.Helper()
	for range hours {
		_, hour, err := s.Clock(t.Context())
		must(t, err)
		must(t, s.RaiseHour(t.Context(), hour))
	}
}

// hours: if several nodes have read the same value and raise the counter, it grows only
// by one.
func hours(t *testing.T, s store.Store) {
	now, hour, err := s.Clock(t.Context())
	must(t, err)
	ws, _ := newWorkspace(t, s)
	commit(t, s, ws, func(tx store.Tx) error {
		if tx.Now() < now {
			t.Errorf("the clock says %d, and then %d", now, tx.Now())
		}
		return nil
	})
	for _, seen := range []int64{hour - 1, hour + 1, hour, hour, hour} {
		must(t, s.RaiseHour(t.Context(), seen))
	}
	_, next, err := s.Clock(t.Context())
	must(t, err)
	equal(t, "hour", next, hour+1)
}

func attemptsAreForgotten(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	age := map[desk.ID]int64{}
	// with is a helper that stores an attempt. The attempt is settled in the current hour
	// of the counter. The given time has no effect on the attempt's age.
	with := func(ws desk.ID, key string, settled desk.Time) *desk.Attempt {
		t.Helper()
		a := newAttempt("1")
		a.Key, a.Phase = key, desk.InDoubt
		if settled%2 == 0 {
			a.ID = idAt(settled + 1)
		}
		if settled != 0 {
			a.Settle(desk.Done, settled)
		}
		commit(t, s, ws, func(tx store.Tx) error {
			if err := tx.FreeKey(key); err != nil {
				return err
			}
			if err := tx.TakeKey(key, a.ID); err != nil {
				return err
			}
			return tx.PutAttempt(a)
		})
		return a
	}
	pass := func(hours int) {
		t.Helper()
		serve(t, s, hours)
		for id := range age {
			age[id] += int64(hours)
		}
	}
	forget := func(limit, want int) {
		t.Helper()
		n, err := s.ForgetAttempts(t.Context(), ws, 5, limit)
		must(t, err)
		if n != want {
			t.Errorf("%d attempts were forgotten, want %d", n, want)
		}
	}
	forget(10, 0)
	const farAhead = desk.Time(9_000_000_000_000)
	gone := []*desk.Attempt{with(ws, "retaken", 1), with(ws, "a", farAhead)}
	apart := with(other, "a", 2)
	doubtful := with(ws, "d", 0)
	pass(1)
	gone = append(gone, with(ws, "b", 3))
	pass(1)
	kept := []*desk.Attempt{with(ws, "retaken", 2), with(ws, "c", 1)} // a newer attempt has that key
	noted := with(ws, "noted", 5)
	age[noted.ID], age[kept[0].ID], age[kept[1].ID] = 0, 0, 0
	pass(2)
	forget(10, 0)
	noted.Notes = []string{"a note does not make it younger"}
	putAttempts(t, s, ws, noted)
	doubtful.Settle(desk.Done, 1) // settled in the current hour of the counter
	putAttempts(t, s, ws, doubtful)
	age[doubtful.ID] = 0
	pass(2)
	forget(2, 2)
	forget(2, 1)
	forget(2, 0)
	for _, a := range gone {
		got, err := s.Attempt(t.Context(), ws, a.ID)
		must(t, err)
		if got != nil {
			t.Errorf("the attempt of %s is still there", a.Key)
		}
	}
	for _, key := range []string{"a", "b"} { // the keys are free
		commit(t, s, ws, func(tx store.Tx) error { return tx.TakeKey(key, newID()) })
	}
	for _, a := range append(kept, noted, doubtful) {
		a.Age = age[a.ID]
		got, err := s.AttemptOfKey(t.Context(), ws, a.Key)
		must(t, err)
		equal(t, "holder of "+a.Key, got, a)
	}
	got, err := s.AttemptOfKey(t.Context(), other, apart.Key)
	must(t, err)
	apart.Age = 6
	equal(t, "holder in the other workspace", got, apart)
	pass(1)
	forget(10, 3)
	forget(10, 0)
}

func deleteErasesAttempts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	op := upsert("a@example.com", "905321112233")
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{{Kind: desk.KindWhatsApp, Value: "4915112345678"}}}
	op.Write.Sent = append(op.Write.Sent, op.Write.Identities.Value...)
	contact, second := put(t, s, ws, op), put(t, s, ws, upsert("b@example.com", "12025550143"))
	byID, byPhone, byAccount, inDoubt, done, foreign, bystander := newAttempt("1"), newAttempt("905321112233"), newAttempt("4915112345678"),
		newAttempt("12025550143"), newAttempt("905321112233"), newAttempt("905321112233"), newAttempt("905329999999")
	byID.Plan.Contact, byID.Plan.Known = contact.ID, true
	byPhone.Plan.Profile = fullProfile()
	inDoubt.Phase = desk.InDoubt
	done.Plan.Contact, done.Response = contact.ID, []byte("{}")
	done.Settle(desk.Done, now())
	foreign.Plan.Contact = contact.ID
	bystander.Plan.Profile = fullProfile()
	putAttempts(t, s, ws, byID, byPhone, byAccount, inDoubt, done, bystander)
	putAttempts(t, s, other, foreign)
	put(t, s, ws, patch(contact.ID, desk.ContactWrite{Name: text("A")})) // an ordinary change erases nothing
	check := func(ws desk.ID, want ...*desk.Attempt) {
		t.Helper()
		for _, a := range want {
			got, err := s.Attempt(t.Context(), ws, a.ID)
			must(t, err)
			equal(t, "attempt", got, a)
		}
	}
	check(ws, byID, byPhone, byAccount, inDoubt, done, bystander)
	put(t, s, ws, remove(contact.ID), remove(second.ID))
	for _, a := range []*desk.Attempt{byID, byPhone, byAccount, inDoubt} {
		a.Erase()
	}
	check(ws, byID, byPhone, byAccount, inDoubt, done, bystander)
	check(other, foreign)
}

// spellings lists pairs of handles of one person. The two handles of a pair are spellings
// of the same handle.
var spellings = [][2]desk.Identity{
	{{Kind: desk.KindPhone, Value: "551187654321"}, {Kind: desk.KindPhone, Value: "5511987654321"}},
	{{Kind: desk.KindPhone, Value: "5215512345678"}, {Kind: desk.KindPhone, Value: "525512345678"}},
	{{Kind: desk.KindPhone, Value: "541123456789"}, {Kind: desk.KindPhone, Value: "5491123456789"}},
	{{Kind: desk.KindPhone, Value: "447700900123"}, {Kind: desk.KindPhone, Value: "4407700900123"}}, // the first release stored this spelling
	{{Kind: desk.KindWhatsApp, Value: "551187654399"}, {Kind: desk.KindPhone, Value: "5511987654399"}},
}

// deleteErasesSpellings: deleting a contact erases the attempts to its number and the
// callbacks that name it, even if each of them has another spelling of the number.
func deleteErasesSpellings(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	for _, pair := range spellings {
		for range 2 {
			held, named := pair[0], pair[1]
			pair[0], pair[1] = named, held
			op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: []desk.Identity{held}}}
			if held.Kind == desk.KindPhone {
				op.Write.Phone = text(held.Value)
			} else {
				op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: op.Write.Sent}
			}
			at, holder := newAttempt(named.Value), put(t, s, ws, op)
			at.Key, at.Phase = named.Value, desk.InDoubt
			putAttempts(t, s, ws, at)
			callback := putCallback(t, s, ws, newCallback(at.Plan.Channel, now()), named.Claim().Value)
			friends := putCallback(t, s, ws, newCallback(at.Plan.Channel, now()), "12025550123")
			put(t, s, ws, remove(holder.ID))
			got, err := s.Attempt(t.Context(), ws, at.ID)
			must(t, err)
			if !got.Erased || got.Plan.Number != "" {
				t.Errorf("the attempt to %s stays when %s is deleted", named.Value, held.Value)
			}
			checkCallbacks(t, s, ws, false, callback)
			checkCallbacks(t, s, ws, true, friends)
		}
	}
}

// deleteBesideDoubts: the time of a deletion does not depend on how many sends to other
// people are in doubt. The test deletes in two workspaces in turn, because the load of
// the machine varies.
func deleteBesideDoubts(t *testing.T, s store.Store) {
	quiet, _ := newWorkspace(t, s)
	doubting, _ := newWorkspace(t, s)
	const doubts, deletions = 300, 50
	var list []*desk.Attempt
	for n := range doubts {
		a := newAttempt(fmt.Sprint(905320000000 + n))
		a.Key, a.Phase = fmt.Sprint(n), desk.InDoubt
		a.Plan.Profile = fullProfile()
		list = append(list, a)
	}
	putAttempts(t, s, doubting, list...)
	took := map[desk.ID][]time.Duration{}
	for range deletions {
		for _, ws := range []desk.ID{quiet, doubting} {
			contact := put(t, s, ws, upsert(newID().String()+"@example.com", fmt.Sprint(905310000000+clock.Add(1))))
			began := time.Now()
			put(t, s, ws, remove(contact.ID))
			took[ws] = append(took[ws], time.Since(began))
		}
	}
	median := func(ws desk.ID) time.Duration {
		slices.Sort(took[ws])
		return took[ws][deletions/2]
	}
	t.Logf("a deletion takes %v, and %v beside %d sends in doubt", median(quiet), median(doubting), doubts)
	if median(doubting) > 2*median(quiet) {
		t.Error("that is more than twice as long")
	}
}

// oldestInDoubt: attempts in doubt are listed from the oldest on.
func oldestInDoubt(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	var want []store.AttemptRef
	for n := range 7 {
		a := newAttempt("905321112233")
		if a.ID[0], a.ID[1] = 1, byte(n); n%3 != 0 {
			a.Phase = desk.InDoubt
			want = append(want, store.AttemptRef{ID: a.ID, CreatedAt: a.CreatedAt})
		}
		putAttempts(t, s, ws, a)
	}
	foreign := newAttempt("1")
	foreign.Phase = desk.InDoubt
	putAttempts(t, s, other, foreign)
	for from := range len(want) + 1 {
		after := desk.ID{}
		if from > 0 {
			after = want[from-1].ID
		}
		got, err := s.OldestInDoubt(t.Context(), ws, after, 2)
		must(t, err)
		equal(t, "oldest in doubt", append([]store.AttemptRef{}, got...), append([]store.AttemptRef{}, want[from:min(from+2, len(want))]...))
	}
}
