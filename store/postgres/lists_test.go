package postgres

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"parley/desk"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"

	"github.com/jackc/pgx/v5"
)

var listed = flag.Int("listed", 12_000, "how many contacts and conversations TestListsAreBounded and TestListTimes store. Long run of TestListsAreBounded: -listed 200000")

// The ids by which the lists are filtered: one that owns nearly everything, one that has
// little, and one that has nothing.
var most, little, nothing = desk.ID{1}, desk.ID{2}, desk.ID{3}

// fill stores n contacts and n conversations.
func fill(t *testing.T, s *Store, ws desk.ID, n int) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO contacts SELECT $1, md5(i::text)::uuid, '', 'Name', '', '', '', '{}', '', CASE WHEN i = $2 / 2 THEN $4::uuid ELSE $3::uuid END, 1, i, 1 FROM generate_series(1, $2) i`,
		`INSERT INTO conversations (workspace_id, id, channel_id, contact_id, status, assigned_member_id, assigned_via, preview, last_message_at, created_at, waiting_since)
			SELECT $1, md5(i::text)::uuid, CASE WHEN i = 2 THEN $4::uuid ELSE '04000000-0000-0000-0000-000000000000' END,
			md5((i % 7)::text)::uuid, CASE WHEN i <= 2 * (i % 7) THEN 'open' ELSE (ARRAY['closed', 'archived'])[1 + i % 2] END,
			CASE WHEN i = $2 / 2 THEN $4::uuid ELSE $3::uuid END, 'member', 'Hello', i, 1, i FROM generate_series(1, $2) i`,
		`INSERT INTO messages SELECT $1, '08000000-0000-0000-0000-000000000000', i, md5(i::text)::uuid, $3::uuid, 'inbound', i::text, 'Hello', '', '', NULL, 0, NULL FROM generate_series(1, $2) i WHERE $4::uuid IS NOT NULL`,
		`INSERT INTO attempts (workspace_id, id, key, hash, actor_id, phase, created_at, lease_until, settled_at, plan, external_id, refusal, notes, erased)
			SELECT $1, md5(i::text)::uuid, '', '', $3::uuid, (ARRAY['done', 'in_doubt'])[1 + i % 2], 1, 1, 1, '', '', '', '', false FROM generate_series(1, $2) i WHERE $4::uuid IS NOT NULL`,
		`INSERT INTO events (workspace_id, seq, at, kind, subject_id, actor_kind, actor_id, changed, subject_key)
			SELECT $1, i, 1, CASE WHEN i IN (3, $2 - 3) THEN 'member.updated' ELSE 'contact.updated' END, $3::uuid, 'key', $3::uuid, '', '' FROM generate_series(1, $2) i WHERE $4::uuid IS NOT NULL`,
	} {
		if _, err := s.pool.Exec(t.Context(), sql, uuid(ws), n, uuid(most), uuid(little)); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// A node is a step of a plan.
type node struct {
	Kind    string  `json:"Node Type"`
	Index   string  `json:"Index Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Recheck float64 `json:"Rows Removed by Index Recheck"`
	Hit     int     `json:"Shared Hit Blocks"`
	Read    int     `json:"Shared Read Blocks"`
	Plans   []node
}

// looked returns how many table rows a step and the steps below it have read, and a list
// of how they were read.
func (n node) looked() (rows float64, by []string) {
	if n.Index != "" || strings.Contains(n.Kind, "Seq Scan") {
		rows = (n.Rows + n.Removed + n.Recheck) * n.Loops
		by = append(by, fmt.Sprintf("%s %s: %v", n.Kind, n.Index, rows))
	}
	for _, p := range n.Plans {
		r, b := p.looked()
		rows, by = rows+r, append(by, b...)
	}
	return rows, by
}

// lookedAt runs a query. It returns how many rows the query has read, how it read them,
// and how many blocks it has read.
func lookedAt(t *testing.T, s *Store, query string, args []any) (int, []string, int) {
	t.Helper()
	// The query is prepared, as in the store: one plan must serve all parameters.
	var literals []string
	for _, arg := range args {
		if id, ok := arg.(uuid); ok {
			literals = append(literals, "'"+desk.ID(id).String()+"'")
		} else {
			literals = append(literals, fmt.Sprintf("'%v'", arg))
		}
	}
	c, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	var text string
	_, err = c.Exec(t.Context(), "PREPARE q AS "+query)
	if err == nil {
		err = c.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE q ("+strings.Join(literals, ", ")+")", pgx.QueryExecModeSimpleProtocol).Scan(&text)
	}
	if err == nil {
		_, err = c.Exec(t.Context(), "DEALLOCATE q")
	}
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var plan []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		t.Fatal(err)
	}
	rows, by := plan[0].Plan.looked()
	return int(rows), by, plan[0].Plan.Hit + plan[0].Plan.Read
}

// TestListsAreBounded: with any filters, a page of a list looks at a bounded number of
// rows. This must hold without statistics of the tables, with old ones, and with current
// ones.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	onOneServer(t, "the plans are made on other servers")
	for figures, before := range map[string]int{"absent": -1, "of empty tables": 0, "of few rows": 10, "of today": *listed} {
		t.Run("figures "+figures, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, pgtest.Database(t))
			ws := newWorkspace(t, s)
			tables := []string{"contacts", "claims", "conversations", "messages", "attempts", "events"}
			for _, table := range tables {
				if _, err := s.pool.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`); err != nil {
					t.Fatal(err)
				}
			}
			if before >= 0 {
				fill(t, s, ws, before)
				if _, err := s.pool.Exec(t.Context(), `ANALYZE`); err != nil {
					t.Fatal(err)
				}
			}
			if before < *listed {
				for _, table := range tables {
					if _, err := s.pool.Exec(t.Context(), `DELETE FROM `+table); err != nil {
						t.Fatal(err)
					}
				}
				fill(t, s, ws, *listed)
			}
			worst := 0
			check := func(bound int, what string, query string, args []any) {
				t.Helper()
				rows, by, _ := lookedAt(t, s, query, args)
				if worst = max(worst, rows); rows > bound {
					t.Errorf("%s: looks at %d rows, at most %d are meant: %s", what, rows, bound, strings.Join(by, "; "))
				}
			}
			const page = desk.MaxLimit + 1
			for name, f := range map[string]desk.ContactFilter{
				"all": {}, "owner": {Owner: most}, "owner of one": {Owner: little}, "owner of none": {Owner: nothing},
				"since": {UpdatedSince: desk.Time(*listed / 2)}, "since, owner of none": {UpdatedSince: 5, Owner: nothing},
			} {
				for _, after := range []desk.ContactPlace{{UpdatedAt: f.UpdatedSince - 1, ID: lastID}, {UpdatedAt: desk.Time(*listed * 9 / 10), ID: most}} {
					query, args := contactsQuery(ws, f, after, desk.MaxLimit)
					check(2*page+3, "contacts: "+name, query, args)
				}
			}
			for _, owner := range []desk.ID{{}, most, little, nothing} {
				for _, before := range []desk.ContactPlace{{UpdatedAt: endOfTime, ID: lastID}, {UpdatedAt: desk.Time(*listed / 10), ID: most}} {
					query, args := newestContactsQuery(ws, owner, before, desk.MaxLimit)
					check(2*page+3, fmt.Sprintf("newest contacts of %x", owner[:1]), query, args)
				}
			}
			var first, seventh desk.ID
			if err := s.pool.QueryRow(t.Context(), `SELECT md5('1')::uuid, md5('6')::uuid`).Scan(into(&first), into(&seventh)); err != nil {
				t.Fatal(err)
			}
			for _, status := range []desk.ConversationStatus{"", desk.StatusOpen, desk.StatusArchived} {
				for _, assignee := range []desk.ID{{}, most, little, nothing} {
					for _, channel := range []desk.ID{{}, {4}, little, nothing} {
						for _, contact := range []desk.ID{{}, first, seventh, nothing} {
							for _, unassigned := range []bool{false, true} {
								f := desk.ConversationFilter{Status: status, Assignee: assignee, Unassigned: unassigned, Channel: channel, Contact: contact}
								for _, after := range []*desk.ConversationPlace{{LastMessageAt: endOfTime, CreatedAt: endOfTime, ID: lastID}, {LastMessageAt: desk.Time(*listed / 2)}} {
									if unassigned && !assignee.IsZero() {
										continue
									}
									bound := 3*page + 3
									if !contact.IsZero() || !channel.IsZero() && (unassigned || !assignee.IsZero()) {
										bound = desk.MaxLooked + 3 // one more row for each status
									}
									if channel == little {
										f.Looked, bound = desk.MaxMemberLooked, min(bound, desk.MaxMemberLooked+3)
										if contact == nothing { // few conversations of a contact are sorted
											bound = max(bound, fewConversations+3)
										}
									}
									query, args := conversationsQuery(ws, f, after, desk.MaxLimit, contact == nothing)
									check(bound, fmt.Sprintf("conversations: %+v", f), query, args)
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
				f.Status, f.Looked = desk.StatusArchived, desk.MaxMemberLooked
				query, args := conversationsQuery(ws, f, f.Start(), desk.MaxLimit, false)
				check(desk.MaxMemberLooked+3, fmt.Sprintf("conversations: %+v", f), query, args)
				f.Looked = desk.MaxLimit
				place := &desk.ConversationPlace{LastMessageAt: desk.Time(*listed / 2)}
				query, args = conversationsQuery(ws, f, place, desk.MaxLimit, false)
				check(2*page+3, fmt.Sprintf("conversations, deep: %+v", f), query, args)
			}
			// The member has few open conversations. The scan must end with them. The count
			// of rows does not include further entries of the index, so the test counts
			// blocks.
			query, args := conversationsQuery(ws, desk.ConversationFilter{Status: desk.StatusOpen, Assignee: most}, (desk.ConversationFilter{}).Start(), desk.MaxLimit, false)
			if _, by, blocks := lookedAt(t, s, query, args); blocks > 30 {
				t.Errorf("few open conversations of a member: %d blocks are read: %q", blocks, by)
			}
			counts := func(what string) {
				t.Helper()
				query, args := conversationCountsQuery(ws, most, desk.ID{})
				check(desk.MaxMemberLooked+3*desk.MaxCount+4, what+": counts", query, args)
				for _, channel := range []desk.ID{{4}, little, nothing} {
					query, args := conversationCountsQuery(ws, most, channel)
					check(3*desk.MaxMemberLooked+desk.MaxCount+4, what+": counts of a channel", query, args)
				}
			}
			counts("all assigned")
			// The planner's statistics are not updated after this change.
			if _, err := s.pool.Exec(t.Context(), `UPDATE conversations SET assigned_member_id = NULL`); err != nil {
				t.Fatal(err)
			}
			counts("all unassigned")
			for _, f := range []desk.ConversationFilter{{Assignee: most}, {Unassigned: true}, {Unassigned: true, Status: desk.StatusClosed}, {Channel: desk.ID{4}, Status: desk.StatusClosed}} {
				query, args := conversationsQuery(ws, f, (desk.ConversationFilter{}).Start(), desk.MaxLimit, false)
				check(3*page+3, fmt.Sprintf("all unassigned: %+v", f), query, args)
			}
			check(fewConversations+1, "conversations of a contact", conversationCountQuery, []any{uuid(ws), uuid(first), fewConversations + 1})
			check(page, "messages", messagesQuery, []any{uuid(ws), uuid(desk.ID{8}), int64(*listed / 2), uuid(lastID), page})
			for _, after := range []desk.ID{{}, {0x7f}} {
				check(2*page+3, "export of contacts", contactsAfterQuery, []any{uuid(ws), uuid(after), page})
				check(page, "export of conversations", conversationsAfterQuery, []any{uuid(ws), uuid(after), page})
				check(2*page, "export of messages", messagesAfterQuery, []any{uuid(ws), uuid(desk.ID{8}), int64(*listed / 2), uuid(after), page})
				check(2*page, "export of notes", notesAfterQuery, []any{uuid(ws), uuid(after), page})
				check(page, "erasures", erasuresQuery, []any{uuid(ws), uuid(after), page})
			}
			// One row more is read: the hour by which attempts age.
			for _, before := range []desk.ID{lastID, {0x7f}} {
				check(page+1, "attempts", attemptsQuery, []any{uuid(ws), uuid(before), page})
				check(page+1, "attempts in doubt", inDoubtQuery, []any{uuid(ws), uuid(before), page})
				check(page+1, "attempts under way", dispatchingQuery, []any{uuid(ws), uuid(before), page})
				check(desk.MaxLooked+1, "attempts in a phase", phasesQuery, []any{uuid(ws), uuid(before), desk.MaxLooked + 1})
			}
			check(2, "settings in the log of events", settingsLogQuery, []any{uuid(ws), 0, *listed + 1, "{member.updated,key.updated}", page})
			t.Logf("of %d: at most %d rows", *listed, worst)
		})
	}
}

// TestLookUpsReadKeys: a connection keeps the plan of its first use, which it may have
// made while the tables were empty. Even with this plan, looking up a record by id must
// read only a few pages, not an index of the whole workspace.
func TestLookUpsReadKeys(t *testing.T) {
	t.Parallel()
	onOneServer(t, "the plans are made on other servers")
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	for _, table := range []string{"contacts", "conversations", "messages"} {
		if _, err := s.pool.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	exec := func(sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	var id desk.ID
	if err := c.QueryRow(t.Context(), `SELECT md5('5')::uuid`).Scan(into(&id)); err != nil {
		t.Fatal(err)
	}
	nobody := desk.ID{0x77} // a contact without a conversation
	one := fmt.Sprintf("'%s', '{}', '{}', '{%s}'", ws, id)
	key := fmt.Sprintf("'%s', '%s'", ws, id)
	row := fmt.Sprintf("'%s', '{%s}', '{\"\"}', '{Name}', '{\"\"}', '{\"\"}', '{\"\"}', '{{}}', '{\"\"}', '{NULL}', '{1}', '{5}', '{1}'", ws, id)
	looks := []struct{ name, query, args string }{
		{"contact", contactQuery, key},
		{"contact for update", contactQuery + forChange + ` OF c`, key},
		{"conversation", conversationQuery, key},
		{"conversation for update", conversationQuery + forUpdate, key},
		{"open conversation", openConversationQuery, fmt.Sprintf("'%s', '%s', '%s'", ws, desk.ID{4}, nobody)},
		{"newest conversation", newestConversationQuery + forUpdate, fmt.Sprintf("'%s', '%s', '%s'", ws, nobody, desk.ID{4})},
		{"dormant conversation", dormantConversationQuery + forUpdate, fmt.Sprintf("'%s', '%s', '%s'", ws, nobody, desk.ID{4})},
		{"message by reference", messageByQuery, fmt.Sprintf("'%s', '%s', '7000'", ws, most)},
		{"messages by reference", messagesByQuery, fmt.Sprintf("'%s', '{%s,%[2]s}', '{5,7000}'", ws, most)},
		{"load", loadBookQuery, one},
		{"lock those named", lockBookQuery, one},
		{"lock", lockToChange, fmt.Sprintf("'%s', '{%s}'", ws, id)},
		{"update", updateContacts, strings.Replace(row, "'{{}}'", "'{\"{}\"}'", 1)},
	}
	for n, look := range looks {
		exec(fmt.Sprintf("PREPARE look%d AS %s", n, look.query))
		if look.name != "update" { // it would fail, because there is no row yet
			exec(fmt.Sprintf("EXECUTE look%d (%s)", n, look.args))
		} else {
			exec(fmt.Sprintf("EXPLAIN EXECUTE look%d (%s)", n, look.args))
		}
	}
	fill(t, s, ws, *listed)
	for n, look := range looks {
		var text string
		query := fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE look%d (%s)", n, look.args)
		if err := c.QueryRow(t.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
			t.Fatalf("%s: %v", look.name, err)
		}
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		if err := json.Unmarshal([]byte(text), &plan); err != nil {
			t.Fatal(err)
		}
		if pages := plan[0].Plan.Hit + plan[0].Plan.Read; pages > 40 {
			t.Errorf("%s: reads %d pages: %s", look.name, pages, text)
		} else {
			t.Logf("%s: %d pages", look.name, pages)
		}
	}
}

// TestDeliveriesAreFoundByKey: a connection keeps the plan that it made while there were
// no deliveries. With this plan, deleting some deliveries must read only these
// deliveries. It must not read all deliveries of the webhook for each deleted one.
func TestDeliveriesAreFoundByKey(t *testing.T) {
	t.Parallel()
	onOneServer(t, "the plans are made on other servers")
	const stored, limit = desk.MaxDeliveries + 2000, 500
	s := openAt(t, pgtest.Database(t))
	ws, webhook := newWorkspace(t, s), desk.ID{7}
	c, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	exec := func(sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`ALTER TABLE deliveries SET (autovacuum_enabled = false)`)
	exec(`ALTER TABLE delivery_responses SET (autovacuum_enabled = false)`)
	exec(`SET plan_cache_mode = force_generic_plan`)
	key := fmt.Sprintf("'%s', '%s'", ws, webhook)
	queries := []struct {
		name, query, args string
		bound             float64
	}{
		{"forget", forgetDeliveriesQuery, fmt.Sprintf("%s, 1, %d, %d", key, desk.MaxDeliveries, limit), desk.MaxDeliveries + 1 + 4*limit},
		{"drop pending", dropPendingQuery, fmt.Sprintf("%s, %d", key, stored-limit), 4 * limit},
	}
	for n, q := range queries {
		exec(fmt.Sprintf("PREPARE q%d AS %s", n, q.query))
		exec(fmt.Sprintf("EXECUTE q%d (%s)", n, q.args))
	}
	exec(fmt.Sprintf(`INSERT INTO deliveries SELECT '%s', '%s', lpad(to_hex(i), 32, '0')::uuid, i, 1, 'contact.updated', NULL,
		CASE WHEN i > %d THEN 'pending' ELSE 'delivered' END, 1, 1, 1, 1, CASE WHEN i > %[3]d THEN 0 ELSE 5 END, '' FROM generate_series(1, %d) i`, ws, webhook, stored-limit, stored))
	for n, q := range queries {
		var text string
		if err := c.QueryRow(t.Context(), fmt.Sprintf("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE q%d (%s)", n, q.args), pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
			t.Fatal(err)
		}
		var plan []struct{ Plan node }
		if err := json.Unmarshal([]byte(text), &plan); err != nil {
			t.Fatal(err)
		}
		if rows, by := plan[0].Plan.looked(); rows > q.bound {
			t.Errorf("%s: looks at %.0f rows, at most %.0f are meant: %s", q.name, rows, q.bound, strings.Join(by, "; "))
		} else {
			t.Logf("%s: %.0f rows", q.name, rows)
		}
	}
	var left int
	if err := c.QueryRow(t.Context(), `SELECT count(*) FROM deliveries`).Scan(&left); err != nil || left != stored-2*limit {
		t.Errorf("%d are left, want %d; %v", left, stored-2*limit, err)
	}
}

// TestListTimes measures the time of the lists of TestListsAreBounded.
func TestListTimes(t *testing.T) {
	if !storetest.JudgesTimes() {
		t.Parallel()
	}
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	fill(t, s, ws, *listed)
	var first, seventh desk.ID
	if err := s.pool.QueryRow(t.Context(), `SELECT md5('1')::uuid, md5('6')::uuid`).Scan(into(&first), into(&seventh)); err != nil {
		t.Fatal(err)
	}
	storetest.ListTimes(t, s, storetest.Listed{
		Workspace: ws, Count: *listed, Most: most, Little: little, Nothing: nothing, Channel: desk.ID{4},
		Contacts: []desk.ID{first, seventh}, Conversation: desk.ID{8},
	})
}
