package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
)

// A Table is a table that is copied to another database.
type Table struct {
	Name    string
	Columns []string // the columns of the key come first, in the key's order
	Key     int      // how many columns the key has
}

// Tables lists the tables to copy. The directory comes last: until then, a server on the
// other database finds none of the workspaces.
func Tables() []Table {
	table := func(name, key, others string) Table {
		columns := strings.Fields(key)
		return Table{name, append(columns, strings.Fields(others)...), len(columns)}
	}
	return []Table{
		table("members", "workspace_id id", "name email email_folded role away sessions_from"),
		table("sessions", "workspace_id hash", "member_id begun_at expires_at data"),
		table("login_links", "workspace_id hash", "member_id expires_at"),
		table("member_access", "workspace_id member_id", "password seen_at"),
		table("api_keys", "workspace_id id", "public_id name permissions later secret_hash created_at expires_at revoked_at"),
		table("attributes", "workspace_id key", "label description type options position archived"),
		table("channels", "workspace_id id", "kind external_id enabled created_at library bindings account status name"),
		table("channel_signs", "workspace_id channel_id", "synced_at asked_at called_at"),
		table("templates", "workspace_id channel_id name language", "source"),
		table("sandbox_templates", "workspace_id channel_id name language", "source"),
		table(contactsTable, "workspace_id id", "external_id name email phone note attributes further owner_id created_at updated_at version"),
		table("claims", "workspace_id kind value share", "contact_id"),
		table("notes", "workspace_id conversation_id id", "text author_type author_id author_name created_at"),
		table("conversations", "workspace_id id", "channel_id contact_id status assigned_member_id assigned_via preview last_message_at created_at last_direction unread read_ts read_id waiting_since answered_id heard_id dormant"),
		table("messages", "workspace_id conversation_id ts id", "channel_id direction external_id text delivery failure opt_in_key opt_in_at opt_in_request opt_in_member template kind author reply_to content unread media_id attempt_id"),
		table("windows", "workspace_id contact_id channel_id", "opened_at number user_id shut_at shut_by replied_at auto_reply_at auto_replies"),
		table(attemptsTable, "workspace_id id", "key hash actor_kind actor_id phase created_at lease_until settled_at settled_hour contact_id number media_id plan external_id refusal notes erased broadcast_id "+answerColumn),
		table("send_keys", "workspace_id key", "attempt_id"),
		table("opt_outs", "workspace_id number_hash", "since at"),
		table("erased_messages", "workspace_id hash", "erased_at"),
		table("early_statuses", "workspace_id channel_id external_id at delivery attempt_id failure", "user_id hour"),
		table("inbound_items", "workspace_id due_at id", "channel_id body received_at skip"),
		table("callbacks", "workspace_id received_at id", "channel_id body"),
		table("callback_people", "workspace_id value received_at id", ""),
		table("events", "workspace_id seq", "at kind subject_id actor_kind actor_id changed subject_key conversation_id contact_id message_ts"),
		table("event_floors", "workspace_id", "seq tag"),
		table("webhooks", "workspace_id id", "url types enabled disabled_reason sealed created_at updated_at"),
		table("policies", "workspace_id channel_id", "policy updated_at"),
		table("turns", "workspace_id channel_id member_id", "number"),
		table("auto_replies", "workspace_id contact_id message_id", "channel_id conversation_id kind text decided_at due_at tries"),
		table("snippets", "workspace_id shortcut", "text updated_at"),
		table("segments", "workspace_id key", "name filter updated_at"),
		table("key_uses", "workspace_id key_id", "used_at"),
		table("media", "workspace_id id", "contact_id kind mime trait name size sha256 status reason created_at used"),
		table("media_used", "workspace_id", "bytes"),
		table("media_contents", "workspace_id sha256", "size unused pins pinned_until"),
		table("media_jobs", "workspace_id media_id", "channel_id contact_id conversation_id message_id message_ts ref mime size sha256 tries due_at holder ended"),
		table("media_refs", "workspace_id media_id channel_id", "ref at"),
		table("daily", "workspace_id day kind key", "label n"),
		table("daily_places", "workspace_id", "seq tag"),
		table("history", "workspace_id contact_id seq", "tag at kind actor_kind actor_id changed"),
		table("history_places", "workspace_id", "seq tag"),
		table("broadcasts", "workspace_id id", "state due_at ended_at size driven_at body media_id"),
		table("broadcast_rows", "workspace_id broadcast_id id", "contact_id number address status reason failure attempt_id message_id conversation_id at due_at sent_at channel_id data"),
		table("broadcast_numbers", "workspace_id broadcast_id hash", "row_id"),
		table("broadcast_counts", "workspace_id broadcast_id share status reason code", "title n"),
		table("broadcast_places", "workspace_id", "seq tag"),
		table("imports", "workspace_id id", "key started_at ended_at read created updated unchanged rejected error_bytes"),
		table("import_uploads", "workspace_id id", "slot media_id member_id name size total options state problem problem_at created_at queued_at ended_at run_id broadcast_id"),
		table("import_rejects", "workspace_id run_id at", "body"),
		table("erasures", "workspace_id id", "at"),
		table("conflicts", "workspace_id id", "contacts_key contacts identities refusals first_at last_at actor_kind actor_id status resolution"),
		table("conflict_contacts", "workspace_id contact_id conflict_id", ""),
		table("merges", "workspace_id id", "into_id from_id survivor_id number at actor_kind actor_id undone_at moved not_restored changes undo"),
		table("webhook_states", "workspace_id webhook_id", "seq tag failing_since failures probes held_until"),
		table("deliveries", "workspace_id webhook_id id", "seq tag type contact_id status created_at due_at tried_at steps settled_at attempts"),
		table("delivery_responses", "workspace_id contact_id delivery_id at", "response"),
		table("workspaces", "id", "name country settings_version deleted external_ids_fixed"),
		table("directory", "kind ref", "workspace_id"),
	}
}

// Only SQLite stores an attempt's answer in a table of its own, send_answers, and large
// values of a contact in large_values. The export has them as columns.
const (
	attemptsTable = "attempts"
	answerColumn  = "response"
	contactsTable = "contacts"
)

// pageBytes is the approximate limit of a page's size, because a row may have megabytes.
const pageBytes = 8 << 20

// An Export reads the database while no process writes to it.
type Export struct{ c conn }

// Export calls f. Until f returns, no process can write to the database.
func (s *Store) Export(ctx context.Context, f func(*Export) error) (err error) {
	c, err := open(s.path, readerCache)
	if err != nil {
		return err
	}
	c.SetInterrupt(ctx.Done())
	defer func() { err = errors.Join(err, failed("close", c.Close())) }()
	if err := c.stmt("BEGIN IMMEDIATE").run(); err != nil {
		return failed("keep others from writing", err)
	}
	return f(&Export{c}) // closing rolls back; nothing was written
}

// Page returns up to limit rows in the order of keys. They follow the row whose key is
// after (nil: they begin with the first row). A page of large rows may be shorter, but it
// is never empty while rows follow. A value is nil, an int64, a string or a []byte.
func (e *Export) Page(t Table, after []any, limit int) (rows [][]any, err error) {
	s := e.c.stmt(pageQuery(t, after != nil))
	for _, v := range after {
		switch v := v.(type) {
		case int64:
			s = s.int(v)
		case string:
			s = s.text(v)
		case []byte:
			s = s.bytes(v)
		default:
			return nil, fmt.Errorf("%s: a key holds %T", t.Name, v)
		}
	}
	s = s.int(int64(limit))
	for size := 0; size < pageBytes && s.next(); {
		row := make([]any, len(t.Columns))
		for i, column := range t.Columns {
			switch s.s.ColumnType(i) {
			case sqlite.TypeNull:
			case sqlite.TypeInteger:
				row[i] = s.s.ColumnInt64(i)
			case sqlite.TypeText:
				row[i] = s.s.ColumnText(i)
			case sqlite.TypeBlob:
				b := make([]byte, s.s.ColumnLen(i))
				s.s.ColumnBytes(i, b)
				row[i] = b
			default:
				s.fail = fmt.Errorf("the column %s holds a %v", column, s.s.ColumnType(i))
			}
			size += s.s.ColumnLen(i)
		}
		rows = append(rows, row)
	}
	return rows, failed("read "+t.Name, s.done())
}

func pageQuery(t Table, after bool) string {
	columns := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		columns[i] = "c." + name
		switch {
		case t.Name == contactsTable && name == attributesField:
			columns[i] = attributesOf
		case t.Name == contactsTable && name == furtherField:
			columns[i] = furtherOf
		}
	}
	key := strings.Join(columns[:t.Key], ", ")
	from, where := t.Name+" c", ""
	if t.Name == attemptsTable {
		columns[len(columns)-1] = "r." + answerColumn
		from += " LEFT JOIN send_answers r ON r.workspace_id = c.workspace_id AND r.attempt_id = c.id"
	}
	if after {
		where = fmt.Sprintf(" WHERE (%s) > (%s)", key, strings.TrimSuffix(strings.Repeat("?, ", t.Key), ", "))
	}
	return fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT +?", strings.Join(columns, ", "), from, where, key)
}
