package sqlite

import (
	"encoding/binary"
	"errors"
	goflag "flag" // this package has a function named flag
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/storetest"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
)

var listed = goflag.Int("listed", 12_000, "how many contacts and conversations TestListsAreBounded and TestListTimes store. Long run of TestListsAreBounded: -listed 200000")

// steps returns how many instructions SQLite has executed for a statement since the last
// call.
func steps(s stmt) int {
	tls := libc.NewTLS()
	defer tls.Close()
	return int(lib.Xsqlite3_stmt_status(tls, handleOf(s.s), lib.SQLITE_STMTSTATUS_VM_STEP, 1))
}

// Replanned returns the statements that SQLite has planned again since they were
// prepared, and how often. SQLite plans again before each use if the plan depends on the
// value of a parameter. LIMIT ? causes this, LIMIT +? does not.
func Replanned(s *Store) map[string]int {
	list := map[string]int{}
	count := func(c conn) {
		tls := libc.NewTLS()
		defer tls.Close()
		for query, prepared := range c.prepared {
			if n := int(lib.Xsqlite3_stmt_status(tls, handleOf(prepared), lib.SQLITE_STMTSTATUS_REPREPARE, 0)); n > 0 && !strings.HasPrefix(query, "PRAGMA") {
				list[query] += n
			}
		}
	}
	count(s.writer)
	for range len(s.readers) {
		c := <-s.readers
		count(c)
		s.readers <- c
	}
	return list
}

// handleOf returns SQLite's pointer to a statement.
func handleOf(s *sqlite.Stmt) uintptr {
	return uintptr(reflect.ValueOf(s).Elem().FieldByName("stmt").Uint())
}

func planOf(t *testing.T, c conn, query string) []string {
	t.Helper()
	steps, err := all("plan", c.stmt("EXPLAIN QUERY PLAN "+query), func(s *stmt) string { s.col = 3; return s.readText() })
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return steps
}

// The ids by which the lists are filtered: one that owns nearly everything, one that has
// little, and one that has nothing.
var most, little, nothing = desk.ID{1}, desk.ID{2}, desk.ID{3}

// fill stores n contacts and n conversations. It uses SQL because that is faster.
func fill(t *testing.T, c conn, ws desk.ID, n int) {
	t.Helper()
	err := c.stmt(beginWrite).run()
	for i := range n {
		var id desk.ID
		binary.BigEndian.PutUint64(id[8:], uint64(i)*0x9E3779B97F4A7C15) // an order other than that of the lists
		owner, status := most, []string{"open", "closed", "archived"}[i%3]
		if i == n/2 {
			owner = little
		}
		channel := desk.ID{4}
		if i == 1 {
			channel = little
		}
		err = errors.Join(err, c.stmt(`INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, owner_id, created_at, updated_at, version)
			VALUES (?, ?, '', 'Name', '', '', '', '{}', '', ?, 1, ?, 1)`).id(ws).id(id).id(owner).int(int64(1+i)).run(),
			c.stmt(`INSERT INTO claims (workspace_id, kind, value, share, contact_id) VALUES (?, 'email', ?, 0, ?)`).id(ws).text(fmt.Sprint("p", i)).id(id).run(),
			c.stmt(`INSERT INTO conversations (workspace_id, id, channel_id, contact_id, status, assigned_member_id, assigned_via, preview, last_message_at, created_at, waiting_since)
			VALUES (?, ?, ?, ?, ?, ?, 'member', 'Hello', ?, 1, ?)`).id(ws).id(id).id(channel).id(desk.ID{9, byte(i % 7), byte(i), byte(i >> 8), byte(i >> 16)}).text(status).id(owner).int(int64(i)).int(int64(1+i)).run(),
			c.stmt(`INSERT INTO messages (workspace_id, conversation_id, ts, id, channel_id, direction, external_id, text, delivery, failure, opt_in_at)
			VALUES (?, ?, ?, ?, ?, 'inbound', '', 'Hello', '', '', 0)`).id(ws).id(desk.ID{8}).int(int64(i)).id(id).id(channel).run(),
			c.stmt(`INSERT INTO attempts (workspace_id, id, key, hash, actor_id, phase, created_at, lease_until, settled_at, plan, external_id, refusal, notes, erased)
			VALUES (?, ?, '', x'', x'', ?, 1, 1, 1, '', '', '', '', 0)`).id(ws).id(id).text([]string{"done", "in_doubt"}[i%2]).run())
	}
	if err := errors.Join(err, c.stmt("COMMIT").run()); err != nil {
		t.Fatal(err)
	}
}

// A boundedRead is a page of a list with some filter.
type boundedRead struct {
	name string
	read func() error
}

func listReads(t *testing.T, s *Store, ws desk.ID, n int) (reads []boundedRead) {
	ctx := t.Context()
	for name, f := range map[string]desk.ContactFilter{
		"all": {}, "owner": {Owner: most}, "owner of one": {Owner: little}, "owner of none": {Owner: nothing},
		"since": {UpdatedSince: desk.Time(n / 2)}, "since the end": {UpdatedSince: desk.Time(n + 5)},
		"since, owner of none": {UpdatedSince: 5, Owner: nothing}, "since, owner of one": {UpdatedSince: 5, Owner: little},
	} {
		for place, after := range map[string]desk.ContactPlace{"first": {UpdatedAt: f.UpdatedSince - 1, ID: lastID}, "deep": {UpdatedAt: desk.Time(n * 9 / 10), ID: most}} {
			reads = append(reads, boundedRead{"contacts: " + name + ", " + place, func() error {
				_, _, err := s.Contacts(ctx, ws, f, after, desk.MaxLimit)
				return err
			}})
		}
	}
	for _, owner := range []desk.ID{{}, most, little, nothing} {
		for _, before := range []*desk.ContactPlace{nil, {UpdatedAt: desk.Time(n / 10), ID: most}} {
			reads = append(reads, boundedRead{fmt.Sprintf("newest contacts of %x, first: %v", owner[:1], before == nil), func() error {
				_, _, err := s.NewestContacts(ctx, ws, owner, before, desk.MaxLimit)
				return err
			}})
		}
	}
	for _, status := range []desk.ConversationStatus{"", desk.StatusOpen, desk.StatusArchived} {
		for _, assignee := range []desk.ID{{}, most, little, nothing} {
			for _, channel := range []desk.ID{{}, {4}, little, nothing} {
				for _, contact := range []desk.ID{{}, {9, 1, 1}, nothing} {
					for _, unassigned := range []bool{false, true} {
						if unassigned && !assignee.IsZero() {
							continue
						}
						f := desk.ConversationFilter{Status: status, Assignee: assignee, Unassigned: unassigned, Channel: channel, Contact: contact}
						if channel == little {
							f.Looked = desk.MaxMemberLooked
						}
						for _, after := range []*desk.ConversationPlace{nil, {LastMessageAt: desk.Time(n / 2)}} {
							reads = append(reads, boundedRead{fmt.Sprintf("conversations: %q, assignee %x (none: %v), channel %x, contact %x, first: %v",
								status, assignee[:1], unassigned, channel[:1], contact[:1], after == nil), func() error {
								_, _, err := s.Conversations(ctx, ws, f, after, desk.MaxLimit)
								return err
							}})
						}
					}
				}
			}
		}
	}
	for _, f := range []desk.ConversationFilter{
		{Longest: true}, {Longest: true, Assignee: little}, {Longest: true, Assignee: nothing}, {Longest: true, Unassigned: true}, {Longest: true, Unread: true}, {Longest: true, Channel: nothing},
		{Unread: true}, {Unread: true, Assignee: most}, {Unread: true, Unassigned: true}, {Unread: true, Channel: desk.ID{4}},
	} {
		f.Status, f.Looked = desk.StatusOpen, desk.MaxMemberLooked
		for _, after := range []*desk.ConversationPlace{nil, {LastMessageAt: desk.Time(n / 2)}} {
			reads = append(reads, boundedRead{fmt.Sprintf("conversations: %+v, first: %v", f, after == nil), func() error {
				_, _, err := s.Conversations(ctx, ws, f, after, desk.MaxLimit)
				return err
			}})
		}
	}
	for _, channel := range []desk.ID{{}, {4}, nothing} {
		reads = append(reads, boundedRead{fmt.Sprintf("counts of channel %x", channel[:1]), func() error {
			_, err := s.CountConversations(ctx, ws, most, channel)
			return err
		}})
	}
	for _, after := range []*desk.MessagePlace{nil, {TS: desk.Time(n / 2)}} {
		reads = append(reads, boundedRead{"messages", func() error {
			_, _, err := s.Messages(ctx, ws, desk.ID{8}, after, desk.MaxLimit)
			return err
		}})
	}
	for _, after := range []desk.ID{{}, {0x7f}} {
		reads = append(reads, boundedRead{"export of contacts", func() error {
			_, _, err := s.ContactsAfter(ctx, ws, after, desk.MaxLimit)
			return err
		}}, boundedRead{"export of conversations", func() error {
			_, _, err := s.ConversationsAfter(ctx, ws, after, desk.MaxLimit)
			return err
		}}, boundedRead{"export of messages", func() error {
			_, _, err := s.MessagesAfter(ctx, ws, store.MessageKey{Conversation: desk.ID{8}, MessagePlace: desk.MessagePlace{TS: desk.Time(n / 2), ID: after}}, desk.MaxLimit)
			return err
		}}, boundedRead{"export of notes", func() error {
			_, _, err := s.NotesAfter(ctx, ws, after, desk.MaxLimit)
			return err
		}}, boundedRead{"erasures", func() error {
			_, _, err := s.Erasures(ctx, ws, after, desk.MaxLimit)
			return err
		}})
	}
	for _, phase := range append([]desk.Phase{""}, desk.Phases...) {
		reads = append(reads, boundedRead{fmt.Sprintf("attempts in the phase %q", phase), func() error {
			_, _, err := s.Attempts(ctx, ws, phase, &desk.ID{0x7f}, desk.MaxLimit)
			return err
		}})
	}
	return reads
}

// maxSteps is the greatest cost of a page. SQLite executes about 40 instructions for
// each record of a list that is merged from three.
const maxSteps = 50 * desk.MaxLooked

// TestListsAreBounded: with any filters, a page of a list looks at a bounded number of
// rows. This must hold without statistics of the tables (parley never runs ANALYZE),
// with old ones, and with current ones.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	for figures, before := range map[string]int{"absent": -1, "of empty tables": 0, "of few rows": 10, "of today": *listed} {
		t.Run("figures "+figures, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			ws := newWorkspace(t, s)
			rest := *listed
			if before >= 0 {
				fill(t, s.writer, ws, before)
				if err := s.writer.stmt("ANALYZE").run(); err != nil {
					t.Fatal(err)
				}
				rest -= before
			}
			if rest == *listed {
				fill(t, s.writer, ws, rest)
			} else if rest > 0 {
				if err := s.write(t.Context(), func(c conn) error {
					for _, table := range []string{"contacts", "claims", "conversations", "messages", "attempts"} {
						if err := c.stmt("DELETE FROM " + table).run(); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				fill(t, s.writer, ws, *listed)
			}
			for range cap(s.readers) { // a single reader, whose statements are counted
				if len(s.readers) > 1 {
					if err := (<-s.readers).Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			var slowest, worst int
			for _, r := range listReads(t, s, ws, *listed) {
				c := <-s.readers
				for _, prepared := range c.prepared {
					steps(stmt{s: prepared})
				}
				s.readers <- c
				began := time.Now()
				if err := r.read(); err != nil {
					t.Fatalf("%s: %v", r.name, err)
				}
				took := int(time.Since(began).Milliseconds())
				c = <-s.readers
				n := 0
				for _, prepared := range c.prepared {
					n += steps(stmt{s: prepared})
				}
				s.readers <- c
				if slowest, worst = max(slowest, took), max(worst, n); n > maxSteps {
					t.Errorf("%s: %d steps, at most %d are meant", r.name, n, maxSteps)
				}
			}
			t.Logf("of %d: at most %d steps, and %d ms", *listed, worst, slowest)
		})
	}
}

// TestListTimes measures the time of the lists of TestListsAreBounded.
func TestListTimes(t *testing.T) {
	if !storetest.JudgesTimes() {
		t.Parallel()
	}
	s := openStore(t)
	ws := newWorkspace(t, s)
	fill(t, s.writer, ws, *listed)
	storetest.ListTimes(t, s, storetest.Listed{
		Workspace: ws, Count: *listed, Most: most, Little: little, Nothing: nothing, Channel: desk.ID{4},
		Contacts: []desk.ID{{9, 1, 1}}, Conversation: desk.ID{8},
	})
}

// TestListsGoByTheirIndexes: no list sorts, except the few conversations of a contact,
// and no list reads through a whole workspace.
func TestListsGoByTheirIndexes(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	c := s.writer
	check := func(query string, want ...string) {
		t.Helper()
		plan := planOf(t, c, query)
		text := strings.Join(plan, "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s\ngoes by\n%s\nwant %s", query, text, w)
			}
		}
		for _, step := range plan {
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "VIRTUAL TABLE") && !strings.HasPrefix(step, "SCAN (subquery") && step != "SCAN CONSTANT ROW" {
				t.Errorf("%s\nscans: %s", query, step)
			}
		}
	}
	check(contactsQuery(desk.ContactFilter{}), "USING INDEX contacts_updated (workspace_id=? AND (updated_at,id)>(?,?)")
	check(contactsQuery(desk.ContactFilter{Owner: most}), "USING INDEX contacts_owned (workspace_id=? AND owner_id=? AND (updated_at,id)>(?,?)")
	check(newestContactsQuery(false), "USING INDEX contacts_updated (workspace_id=? AND (updated_at,id)<(?,?)")
	check(newestContactsQuery(true), "USING INDEX contacts_owned (workspace_id=? AND owner_id=? AND (updated_at,id)<(?,?)")
	check(settingsLogQuery, "USING INDEX events_settings (workspace_id=? AND seq>? AND seq<?)")
	check(eventLogQuery, "USING PRIMARY KEY (workspace_id=? AND seq>? AND seq<?)")
	const place = "(last_message_at,created_at,id)<(?,?,?)"
	for _, status := range []desk.ConversationStatus{"", desk.StatusOpen} {
		check(newConversationList(desk.ConversationFilter{Status: status}, false).query, "conversations_recent (workspace_id=? AND status=? AND "+place)
		check(newConversationList(desk.ConversationFilter{Status: status, Assignee: most}, false).query, "conversations_held (workspace_id=? AND assigned_member_id=? AND status=? AND "+place)
		check(newConversationList(desk.ConversationFilter{Status: status, Unassigned: true}, false).query, "conversations_unassigned (workspace_id=? AND status=? AND "+place)
		check(newConversationList(desk.ConversationFilter{Status: status, Channel: most}, false).query, "conversations_channel (workspace_id=? AND channel_id=? AND status=? AND "+place)
		for _, f := range []desk.ConversationFilter{{Unassigned: true, Channel: most}, {Unassigned: true, Contact: most}, {Contact: most, Channel: most}, {Assignee: most, Channel: most}} {
			f.Status = status
			index := "conversations_recent"
			switch {
			case f.Unassigned:
				index = "conversations_unassigned"
			case !f.Assignee.IsZero():
				index = "conversations_held"
			}
			check(newConversationList(f, false).query, "USING COVERING INDEX "+index)
		}
		check(newConversationList(desk.ConversationFilter{Status: status, Contact: most, Unassigned: true}, true).query, "conversations_contact (workspace_id=? AND contact_id=?)")
	}
	const walked = "COVERING INDEX conversations_unassigned (workspace_id=? AND status=?)"
	check(countQuery, "USING INDEX conversations_held (workspace_id=? AND assigned_member_id=? AND status=?)", "COVERING INDEX conversations_held (workspace_id=? AND assigned_member_id=? AND status=?)", walked, "COVERING INDEX conversations_recent (workspace_id=? AND status=?)")
	check(countOfQuery, "COVERING INDEX conversations_held (workspace_id=? AND assigned_member_id=? AND status=?)", walked, "COVERING INDEX conversations_channel (workspace_id=? AND channel_id=? AND status=?)")
	check(conversationCountQuery, "conversations_contact (workspace_id=? AND contact_id=?)")
	check(longestQuery, "USING INDEX conversations_waiting (workspace_id=? AND status=? AND (waiting_since,created_at,id)>(?,?,?))")
	for _, query := range []string{longestQuery, countQuery, countOfQuery, newConversationList(desk.ConversationFilter{Unassigned: true, Status: desk.StatusOpen}, false).query, newestContactsQuery(false), newestContactsQuery(true), settingsLogQuery, eventLogQuery, messagesQuery, notesQuery, attemptsQuery, inDoubtQuery, dispatchingQuery, phasesQuery, contactsQuery(desk.ContactFilter{}), contactsQuery(desk.ContactFilter{Owner: most})} {
		check(query)
		if plan := planOf(t, c, query); slices.ContainsFunc(plan, func(step string) bool { return strings.Contains(step, "TEMP B-TREE") }) {
			t.Errorf("%s\nsorts: %q", query, plan)
		}
	}
}

// TestUnassignWritesFewPages: changing a conversation's holder writes the row and the
// four indexes that contain the holder, but not the indexes of contact and channel.
func TestUnassignWritesFewPages(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := desk.ID{1, 1}
	if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws}); err != nil {
		t.Fatal(err)
	}
	fill(t, s.writer, ws, 2000)
	if _, err := checkpoint(s.writer, "TRUNCATE"); err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		held, err := tx.HeldConversations(most, nil, 1)
		if err != nil || len(held) != 1 {
			return fmt.Errorf("%d held: %w", len(held), err)
		}
		held[0].Unassign()
		return tx.PutConversation(held...)
	}); err != nil {
		t.Fatal(err)
	}
	pages, err := checkpoint(s.writer, "PASSIVE")
	if err != nil || pages > 5 {
		t.Errorf("%d pages written, %v", pages, err)
	}
}
