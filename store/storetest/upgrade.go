package storetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// OldContacts are the rows of contacts in a database of the first release: pairs that
// have the same canonical form by today's rules, but not by the old ones, and a handle
// that would be refused today. Their ids are OldID(1) to OldID(9).
var OldContacts = []struct{ ExternalID, Email, Phone, Further string }{
	{"A", "", "5511987654321", ""},
	{"B", "", "551187654321", ""},
	{"C", "\u00e9@example.com", "", ""},
	{"D", "", "", `["email","e\u0301@example.com"]`},
	{"E", "", "4407700900123", `["whatsapp","447700900123"]`},
	{"F", "a\u200bda@example.com", "", ""},
	{"G", "İ@example.com", "", ""},
	{"H", "", "447700900999", ""},
	{"I", "", "4407700900999", ""},
}

// OldID returns the id of the nth old contact; OldID(0) is their workspace.
func OldID(n byte) (id desk.ID) {
	id[0], id[15] = 1, n
	return id
}

// Upgraded checks a store that was opened on a database of the first release with
// OldContacts.
func Upgraded(t *testing.T, s store.Store) {
	t.Helper()
	ws := OldID(0)
	send := func(kind, value string) []desk.Identity {
		i, err := desk.ParseIdentity(kind, value, "")
		must(t, err)
		return []desk.Identity{i}
	}
	find := func(kind, value string, want byte, refused desk.ErrorType) {
		t.Helper()
		op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: send(kind, value), Note: text("x" + value)}}
		outcomes, errs, err := apply(t.Context(), s, ws, op)
		must(t, err)
		switch {
		case refused != "":
			wantType(t, errs[0], refused)
		case errs[0] != nil || outcomes[0].Contact.ID != OldID(want):
			t.Errorf("%s %q: %v, %v, want contact %d", kind, value, outcomes[0].Contact, errs[0], want)
		}
	}
	for range 2 {
		find("phone", "+5511987654321", 1, "")
		find("phone", "+55 11 8765-4321", 2, "")
		find("whatsapp", "551187654321", 2, "")
		find("phone", "+55 (0) 11 8765-4321", 0, desk.IdentityConflict) // a spelling that neither contact has
		find("email", "\u00c9@example.com", 3, "")
		find("email", "E\u0301@Example.com", 4, "")
		find("phone", "+44 (0)7700 900123", 5, "")
		find("phone", "+447700900123", 5, "")
		find("external_id", "F", 6, "")
		find("email", "İ@example.com", 7, "")
	}
	shared, err := s.Shared(t.Context(), ws)
	must(t, err)
	equal(t, "shared", shared, []desk.SharedClaim{
		{Claim: desk.Claim{Kind: "email", Value: "é@example.com"}, Contacts: []desk.ID{OldID(3), OldID(4)}},
		{Claim: desk.Claim{Kind: "phone", Value: "447700900999"}, Contacts: []desk.ID{OldID(8), OldID(9)}},
		{Claim: desk.Claim{Kind: "phone", Value: "5511987654321"}, Contacts: []desk.ID{OldID(1), OldID(2)}},
	})
	// A phone that is written in its stored spelling keeps it. Otherwise no spelling would
	// find it again.
	for range 2 {
		for spelling, want := range map[string]byte{"+447700900999": 8, "+4407700900999": 9} {
			sent := send("phone", spelling)
			op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: sent, Phone: text(sent[0].Value)}}
			outcomes, errs, err := apply(t.Context(), s, ws, op)
			must(t, err)
			if errs[0] != nil || outcomes[0].Contact.ID != OldID(want) || "+"+outcomes[0].Contact.Phone != spelling {
				t.Errorf("%s written again: %+v, %v, want contact %d as it was", spelling, outcomes[0].Contact, errs[0], want)
			}
		}
	}
	// A third contact can take none of the shared identities; i@ is free, although İ@ held
	// it under the old rules.
	third := upsert("i@example.com", "")
	if got := put(t, s, ws, third); strings.HasPrefix(got.ID.String(), "01000000-") {
		t.Errorf("i@example.com is contact %s", got.ID)
	}
	// If one contact gives the identity up, the other one is found by any spelling.
	put(t, s, ws, remove(OldID(1)))
	find("phone", "+5511987654321", 2, "")
	if shared, err = s.Shared(t.Context(), ws); err != nil || len(shared) != 2 {
		t.Errorf("then shared: %v, %v", shared, err)
	}
	mergesShared(t, s, ws)
}

// mergesShared: a third contact gets a shared identity by a merge, and then holds it alone.
func mergesShared(t *testing.T, s store.Store, ws desk.ID) {
	t.Helper()
	third := put(t, s, ws, upsert("third@example.com", ""))
	number := desk.Claim{Kind: "phone", Value: "447700900999"}
	both := []desk.ID{OldID(8), third.ID}
	slices.SortFunc(both, desk.ID.Compare) // the new id may be the smaller one
	for _, want := range [][]desk.ID{both, nil} {
		from := OldID(8)
		if want != nil {
			from = OldID(9)
		}
		merge(t, s, ws, third.ID, from)
		shared, err := s.Shared(t.Context(), ws)
		must(t, err)
		var holders []desk.ID
		for _, c := range shared {
			if c.Claim == number {
				holders = c.Contacts
			}
		}
		equal(t, "holders", holders, want)
	}
	book, err := s.Book(t.Context(), ws, desk.Lookup{Identities: []desk.Identity{{Kind: desk.KindPhone, Value: "447700900999"}}})
	must(t, err)
	if c := book.Oldest(desk.Identity{Kind: desk.KindPhone, Value: "447700900999"}); c == nil || c.ID != third.ID {
		t.Errorf("the number is of %+v", c)
	}
}

// OldEvents is how many events the workspace OldID(0) has in a database of the first
// release. They are numbered from 1, and all have the time 1.
const OldEvents = 30

// UpgradedEvents checks that the feed begins after the events of an older release, even
// while these events are being dropped. New events continue the numbers of the old ones.
func UpgradedEvents(t *testing.T, s store.Store) {
	t.Helper()
	ws := OldID(0)
	begin := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	check := func(want ...int64) {
		t.Helper()
		for _, q := range []store.EventQuery{{From: store.FromOldest}, {From: store.FromPlace, After: begin}} {
			q.Limit = 50
			page := feed(t, s, ws, q)
			var got []int64
			for _, e := range page.Events {
				got = append(got, e.Place.Seq)
			}
			if page.Expired != "" || !slices.Equal(got, want) {
				t.Errorf("from %v: expired by %q, events %v, want %v", q.From, page.Expired, got, want)
			}
		}
	}
	check()
	put(t, s, ws, upsert("new@example.com", ""))
	check(OldEvents + 1)
	followAll(t, s, ws)
	for left := OldEvents; left > 0; left -= 10 {
		n, err := s.DropEvents(t.Context(), ws, desk.Expired{Before: 2, Now: now()}, 10)
		must(t, err)
		if n != 10 {
			t.Errorf("dropped %d of %d old events", n, left)
		}
		check(OldEvents + 1)
	}
}

// OldMany is how many contacts a large database of the first release has.
var OldMany = flag.Int("old-contacts", 2000, "how many contacts the database of the first release holds that TestManyOfTheFirstReleaseOpen opens. Long run: -old-contacts 1000000")

// UpgradedMany opens a database of the first release in which the workspace OldID(0) has
// OldMany contacts. Contact n (from 0) has the external_id n, the e-mail n@example.com,
// and the phone 49151 followed by n in eight digits. UpgradedMany reports how long
// opening took, and finds and lists the contacts.
func UpgradedMany(t *testing.T, open func() store.Store) {
	t.Helper()
	began := time.Now()
	s := open()
	t.Logf("%d contacts: opened in %v", *OldMany, time.Since(began))
	began = time.Now()
	ws, listed := OldID(0), 0
	for after := (desk.ContactPlace{}); ; {
		contacts, next, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, after, desk.MaxLimit)
		must(t, err)
		if listed += len(contacts); next == nil {
			break
		}
		after = *next
	}
	t.Logf("listed in %v", time.Since(began))
	if listed != *OldMany {
		t.Errorf("%d contacts are listed, want %d", listed, *OldMany)
	}
	last := *OldMany - 1
	for kind, value := range map[string]string{
		"external_id": fmt.Sprint(last), "email": fmt.Sprintf("%d@EXAMPLE.com", last), "phone": fmt.Sprintf("+49151%08d", last),
	} {
		i, err := desk.ParseIdentity(kind, value, "")
		must(t, err)
		outcomes, errs, err := apply(t.Context(), s, ws, &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: []desk.Identity{i}, Note: text("found by " + kind)}})
		must(t, err)
		if errs[0] != nil || outcomes[0].Status != desk.StatusUpdated {
			t.Errorf("the last one by its %s: %v, %v", kind, outcomes[0].Status, errs[0])
		}
	}
}

// oldUnsettled are unsettled attempts of the first release. The attempt n+1 goes to the
// contact n. Deleting the contact must erase the attempt, which is found by the
// contact's id or by the number's other spelling.
var oldUnsettled = []struct{ phase, sentTo, phone, known string }{
	{phase: "in_doubt", sentTo: "905321110001", phone: "905321110002", known: "of the contact"},
	{phase: "in_doubt", sentTo: "551187650001", phone: "5511987650001"},
	{phase: "dispatching", sentTo: "5215512340001", phone: "525512340001"},
	{phase: "in_doubt", sentTo: "5491123450001", phone: "541123450001"},
	{phase: "in_doubt", sentTo: "447700900001", phone: "447700900001"},
}

const (
	oldDone, oldRefused          = 100, 101 // settled attempts
	oldStopped, oldFree, oldMute = 110, 111, 112
)

// OldAging returns statements for a database of the first release. They store records
// that age, and leases of that release. id and blob write values in SQL.
func OldAging(id func(desk.ID) string, blob func([]byte) string) (statements []string) {
	add := func(format string, args ...any) { statements = append(statements, fmt.Sprintf(format, args...)) }
	ws := id(OldID(0))
	contact := func(n byte, phone string) {
		add(`INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
			VALUES (%s, %s, '', '', '', '%s', '', '{}', '', 1, 1, 1)`, ws, id(OldID(n)), phone)
	}
	attempt := func(n byte, phase string, settled int, plan string) {
		add(`INSERT INTO attempts (workspace_id, id, key, hash, actor_id, phase, created_at, lease_until, settled_at, plan, external_id, refusal, notes, erased)
			VALUES (%s, %s, 'key %d', %s, %s, '%s', 1, 0, %d, '%s', '', '', '', %s)`, ws, id(OldID(n)), n, blob(make([]byte, 32)), id(OldID(9)), phase, settled, plan, "false")
		add(`INSERT INTO send_keys (workspace_id, key, attempt_id) VALUES (%s, 'key %d', %s)`, ws, n, id(OldID(n)))
	}
	for i, a := range oldUnsettled {
		n := byte(10 * (i + 1))
		contact(n, a.phone)
		to := OldID(n + 2) // not a contact yet
		if a.known != "" {
			to = OldID(n)
		}
		attempt(n+1, a.phase, 0, fmt.Sprintf(`{"Channel":%q,"Contact":%q,"Number":%q}`, OldID(oldFree), to, a.sentTo))
	}
	attempt(oldDone, "done", 1, `{}`)
	attempt(oldRefused, "refused", 1, `{}`)
	for n, account := range map[byte]string{
		oldStopped: `{"BusinessID":"1","Blocked":"a violation of \"StandingAt\"","BlockedUntil":99,"StandingAt":77}`,
		oldFree:    `{"BusinessID":"1","StandingAt":78}`,
		oldMute:    `{"BusinessID":"1"}`,
	} {
		add(`INSERT INTO channels (workspace_id, id, kind, external_id, enabled, created_at, library, bindings, account)
			VALUES (%s, %s, 'whatsapp', '%d', true, 1, 0, '[]', '%s')`, ws, id(OldID(n)), n, account)
		add(`INSERT INTO early_statuses (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure)
			VALUES (%s, %s, 'early', 1, 'sent', %s, ''), (%s, %s, 'early', 1, 'read', %s, '')`,
			ws, id(OldID(n)), id(desk.ID{}), ws, id(OldID(n)), id(OldID(9))) // the upgrade deletes a status with an attempt's id
	}
	for task, until := range map[string]int64{
		"synced " + OldID(oldStopped).String(): 5000, "handshake " + OldID(oldStopped).String(): 6000,
		"handshake " + OldID(oldFree).String(): 7000, "sweep": time.Now().Add(time.Minute).UnixMilli(),
	} {
		add(`INSERT INTO leases (workspace_id, task, until) VALUES (%s, '%s', %d)`, ws, task, until)
	}
	return statements
}

// UpgradedAging checks a store that was opened on a database with the records of
// OldAging. leases is how many leases the database has now.
func UpgradedAging(t *testing.T, s store.Store, leases int) {
	t.Helper()
	ws := OldID(0)
	for i, a := range oldUnsettled {
		n := byte(10 * (i + 1))
		check := func(erased bool) {
			t.Helper()
			at, err := s.Attempt(t.Context(), ws, OldID(n+1))
			must(t, err)
			if at.Erased != erased || (at.Plan.Number == "") != erased || string(at.Phase) != a.phase {
				t.Errorf("the attempt to %s: %+v, want it erased: %v", a.sentTo, at, erased)
			}
		}
		check(false)
		put(t, s, ws, remove(OldID(n)))
		check(true)
	}

	for n, want := range map[byte]desk.AccountStatus{
		oldStopped: {Blocked: `a violation of "StandingAt"`, Until: 99, Since: 77}, oldFree: {Since: 78}, oldMute: {},
	} {
		settings, err := s.Settings(t.Context(), ws)
		must(t, err)
		c := settings.Channel(OldID(n))
		equal(t, fmt.Sprintf("the status of channel %d", n), c.Status, want)
		equal(t, "its account", c.Account, desk.Account{BusinessID: "1"})
	}
	for n, want := range map[byte]desk.ChannelSigns{oldStopped: {Synced: 5000, Asked: 6000}, oldFree: {Asked: 7000}, oldMute: {}} {
		signs, _, err := s.ChannelSigns(t.Context(), ws, OldID(n))
		must(t, err)
		equal(t, fmt.Sprintf("the signs of channel %d", n), signs, want)
	}
	equal(t, "leases", leases, 1)
	ours, err := s.Lease(t.Context(), ws, "sweep", desk.Time(10*time.Minute/time.Millisecond))
	must(t, err)
	equal(t, "the lease that was held is free", ours, false)

	// Records that were settled or received before the upgrade age from the upgrade on.
	ages := func(want int64, there bool) {
		t.Helper()
		for _, n := range []byte{oldDone, oldRefused} {
			at, err := s.AttemptOfKey(t.Context(), ws, fmt.Sprintf("key %d", n))
			must(t, err)
			if (at != nil) != there || there && (at.ID != OldID(n) || at.Age != want || at.SettledAt != 1) {
				t.Errorf("after %d hours, the attempt that was settled is %+v, want it there: %v", want, at, there)
			}
		}
	}
	early := func(channel byte, want int) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			list, err := tx.TakeStatuses(OldID(channel), "early")
			equal(t, "early statuses", len(list), want)
			return err
		})
	}
	forget := func() {
		t.Helper()
		_, err := s.ForgetAttempts(t.Context(), ws, 3, 100)
		must(t, err)
		commit(t, s, ws, func(tx store.Tx) error { return tx.DropStatuses(3) })
	}
	ages(0, true)
	serve(t, s, 2)
	forget()
	ages(2, true)
	early(oldFree, 1)
	serve(t, s, 1)
	forget()
	ages(3, false)
	early(oldMute, 0)
	at, err := s.Attempt(t.Context(), ws, OldID(11))
	must(t, err)
	if at == nil {
		t.Error("an attempt that is not settled was forgotten")
	}
}

// oldTalks is how many people have conversations in a database of the first release.
// Each has two conversations, on two channels.
const oldTalks = 30

// oldTalkID returns the id of the nth record, in the order of creation.
func oldTalkID(n int) (id desk.ID) {
	id[0], id[1], id[2], id[15] = 3, byte(n>>8), byte(n), 7
	return id
}

// oldTalkAt returns when the nth message was sent.
func oldTalkAt(r *rand.Rand, n int) desk.Time {
	return desk.Time(1_700_000_000_000 + int64(n)*1000 - r.Int64N(2)*r.Int64N(3_000_000))
}

// OldTalk returns statements for a database of the first release. They store
// conversations without messages, and conversations whose messages are late, have failed
// or have no opt-in.
func OldTalk(id func(desk.ID) string) (statements []string) {
	add := func(format string, args ...any) { statements = append(statements, fmt.Sprintf(format, args...)) }
	r := rand.New(rand.NewPCG(1, 2))
	ws, key := id(OldID(0)), id(OldID(9))
	for n := range 2 {
		add(`INSERT INTO channels (workspace_id, id, kind, external_id, enabled, created_at, library, bindings, account)
			VALUES (%s, %s, 'sandbox', '%d', true, 1, 0, '[]', '')`, ws, id(OldID(byte(120+n))), n)
	}
	made := 0
	next := func() desk.ID {
		made++
		return oldTalkID(made)
	}
	for n := range oldTalks {
		contact := next()
		add(`INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
			VALUES (%s, %s, 'talk %d', '', '', '', '', '{}', '', 1, 1, 1)`, ws, id(contact), n)
		for c := range 2 {
			conversation, channel, status := next(), OldID(byte(120+c)), []string{"open", "closed", "archived"}[r.IntN(3)]
			newest := desk.Time(0)
			for range r.IntN(7) * r.IntN(2) {
				m := next()
				at := oldTalkAt(r, made)
				newest = max(newest, at)
				if r.IntN(2) == 0 {
					add(`INSERT INTO messages (workspace_id, conversation_id, ts, id, channel_id, direction, external_id, text, delivery, failure, opt_in_at)
						VALUES (%s, %s, %d, %s, %s, 'inbound', 'in %d', 'Hello %d', '', '', 0)`, ws, id(conversation), at, id(m), id(channel), made, made)
					continue
				}
				delivery, failure := []string{"sent", "delivered", "read", "failed"}[r.IntN(4)], ""
				if delivery == "failed" {
					failure = `{"Code":131026,"Title":"Message undeliverable","Fix":"Check the number."}`
				}
				add(`INSERT INTO messages (workspace_id, conversation_id, ts, id, channel_id, direction, external_id, text, delivery, failure, opt_in_key, opt_in_at, opt_in_request)
					VALUES (%s, %s, %d, %s, %s, 'outbound', 'out %d', 'Order %d', '%s', '%s', %s, %d, %s)`,
					ws, id(conversation), at, id(m), id(channel), made, made, delivery, failure, key, at, key)
			}
			add(`INSERT INTO conversations (workspace_id, id, channel_id, contact_id, status, assigned_via, preview, last_message_at, created_at)
				VALUES (%s, %s, %s, %s, '%s', '', '', %d, 1)`, ws, id(conversation), id(channel), id(contact), status, newest)
		}
	}
	return statements
}

// UpgradedTalk checks a store that was opened on a database with the records of OldTalk.
// Messages have their fields, and the state of each conversation fits its messages.
func UpgradedTalk(t *testing.T, s store.Store) {
	t.Helper()
	ws := OldID(0)
	conversations, messages, waiting, opened := 0, 0, 0, 0
	for after := (*desk.ConversationPlace)(nil); ; {
		list, next, err := s.Conversations(t.Context(), ws, desk.ConversationFilter{}, after, 200)
		must(t, err)
		for _, c := range list {
			conversations++
			of, _, err := s.Messages(t.Context(), ws, c.ID, nil, 200)
			must(t, err)
			var want desk.Talk
			var window desk.Window
			for i, m := range of {
				messages++
				kind, author := desk.KindText, desk.Author{}
				if m.Direction == desk.Outbound {
					kind, author = desk.KindTemplate, desk.Author{Type: desk.AuthorKey, ID: OldID(9)}
				}
				if m.Kind != kind || m.Author != author || !m.ReplyTo.IsZero() || m.Attachment != nil || m.Extra != nil {
					t.Errorf("a message of the first release is %+v", m)
				}
				if i == 0 {
					want.LastDirection = m.Direction
				}
				switch {
				case m.Direction == desk.Inbound:
					window.OpenedAt = max(window.OpenedAt, m.TS)
					if m.ID.Compare(want.Heard) > 0 {
						want.Heard = m.ID
					}
				case m.Delivery != desk.Failed && m.ID.Compare(want.Answered) > 0:
					want.Answered = m.ID
				}
			}
			for _, m := range of {
				if m.Direction == desk.Inbound && m.ID.Compare(want.Answered) > 0 && (want.WaitingSince == 0 || m.TS < want.WaitingSince) {
					want.WaitingSince = m.TS
				}
			}
			equal(t, fmt.Sprintf("how a conversation with %d messages stands", len(of)), c.Talk, want)
			ref := desk.WindowRef{Channel: c.ChannelID, Contact: c.ContactID}
			windows, err := s.Windows(t.Context(), ws, []desk.WindowRef{ref})
			must(t, err)
			equal(t, "its window", windows[ref], window)
			if want.WaitingSince != 0 {
				waiting++
			}
			if window.OpenedAt != 0 {
				opened++
			}
		}
		if after = next; next == nil {
			break
		}
	}
	if conversations != 2*oldTalks || messages < oldTalks || waiting == 0 || waiting == opened {
		t.Errorf("%d conversations, %d messages, in %d somebody waits, in %d somebody wrote", conversations, messages, waiting, opened)
	}
}
