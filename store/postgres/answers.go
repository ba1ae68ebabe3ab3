package postgres

import (
	"context"
	"math"
	"time"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// assignmentLock locks a workspace's assignment by policy. If two workspaces share a
	// lock, the only effect is that one of them waits.
	assignmentLock = `SELECT pg_advisory_xact_lock(hashtextextended('assignment' || $1::uuid::text, 0))` + ofWorkspace

	// Each member's conversations are counted by an index (see conversationCountsQuery).
	loadsQuery = `SELECT m.id, coalesce((SELECT number FROM turns WHERE workspace_id = $1 AND channel_id = $2 AND member_id = m.id), 0),
		(SELECT count(*) FROM (SELECT 1 FROM conversations WHERE workspace_id = $1 AND assigned_member_id = m.id AND status = $4
			ORDER BY assigned_member_id DESC, status DESC, last_message_at DESC, created_at DESC, id DESC LIMIT $5) v)
		FROM unnest($3::uuid[]) m (id)`
	putTurnQuery = `INSERT INTO turns (workspace_id, channel_id, member_id, number)
		SELECT id, $2, $3, (SELECT coalesce(max(number), 0) + 1 FROM turns WHERE workspace_id = $1 AND channel_id = $2)` + ofWorkspace + `
		ON CONFLICT (workspace_id, channel_id, member_id) DO UPDATE SET number = excluded.number`
	waitsInPool = ` assigned_member_id IS NULL AND status = 'open' AND waiting_since > 0`
	// These two queries leave the planner only the index of the pool (see contactsQuery).
	poolQuery = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = $1 AND channel_id >= $2 AND channel_id <= $2 AND` + waitsInPool + `
		ORDER BY channel_id, waiting_since, created_at, id LIMIT $3 FOR UPDATE`
	poolsQuery   = poolsFrom + `FROM policies) p ` + waitingPools
	poolsOfQuery = poolsFrom + `FROM policies WHERE workspace_id = ANY ($1)) p ` + waitingPools
	poolsFrom    = `SELECT p.workspace_id, w.settings_version, coalesce(e.seq, 0) FROM (SELECT DISTINCT workspace_id `
	waitingPools = `JOIN workspaces w ON w.id = p.workspace_id AND NOT w.deleted LEFT JOIN event_counters e ON e.workspace_id = p.workspace_id CROSS JOIN LATERAL
		(SELECT 1 FROM conversations v WHERE v.workspace_id = p.workspace_id AND` + waitsInPool + ` ORDER BY workspace_id, channel_id, waiting_since, created_at, id LIMIT 1) v`

	autoReplyColumns    = `contact_id, message_id, channel_id, conversation_id, kind, text, decided_at, due_at, tries`
	autoRepliesDueQuery = `SELECT workspace_id, min(CASE WHEN due_at > ` + statementNow + ` + $1::bigint THEN 0 ELSE greatest(due_at - ` + statementNow + `, 0) END)
		FROM auto_replies GROUP BY workspace_id`
	takeAutoReplyQuery = `UPDATE auto_replies SET due_at = $4 WHERE workspace_id = $1 AND (contact_id, message_id) =
		(SELECT contact_id, message_id FROM auto_replies WHERE workspace_id = $1 AND due_at BETWEEN $2 AND $3
		ORDER BY due_at, message_id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING ` + autoReplyColumns
	autoReplyQuery    = `SELECT ` + autoReplyColumns + ` FROM auto_replies WHERE workspace_id = $1 AND contact_id = $2 AND message_id = $3 FOR UPDATE`
	putAutoReplyQuery = `INSERT INTO auto_replies (workspace_id, ` + autoReplyColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (workspace_id, contact_id, message_id) DO UPDATE SET channel_id = excluded.channel_id, conversation_id = excluded.conversation_id,
		kind = excluded.kind, text = excluded.text, decided_at = excluded.decided_at, due_at = excluded.due_at, tries = excluded.tries`
)

// LockAssignment first waits for other transactions of this process (see shares).
func (t *tx) LockAssignment() error {
	if !t.assigns && t.fail == nil {
		select {
		case t.own.assigns <- struct{}{}:
			t.assigns = true
		default:
			t.fail = errAssigning
			return t.fail
		}
	}
	t.put(assignmentLock, uuid(t.ws))
	return t.fail
}

// Loads returns the load of each member.
func (t *tx) Loads(policy desk.ID, members []desk.ID, most int) (map[desk.ID]desk.Load, error) {
	loads, ids := make(map[desk.ID]desk.Load, len(members)), make(pgtype.FlatArray[uuid], len(members))
	for i, m := range members {
		ids[i] = uuid(m)
	}
	t.each(func(row pgx.Row) error {
		var id desk.ID
		var l desk.Load
		err := row.Scan(into(&id), &l.Chosen, &l.Open)
		loads[id] = l
		return err
	}, loadsQuery, uuid(t.ws), uuid(policy), ids, string(desk.StatusOpen), most)
	return loads, t.send("loads of members")
}

func (t *tx) PutTurn(policy, member desk.ID) error {
	t.put(putTurnQuery, uuid(t.ws), uuid(policy), uuid(member))
	return t.fail
}

func (t *tx) Pool(channel desk.ID, limit int) ([]*desk.Conversation, error) {
	return all(t.pipe, "pool", readConversation, poolQuery, uuid(t.ws), uuid(channel), limit)
}

func readAutoReply(row pgx.Row) (*desk.AutoReplyJob, error) {
	var j desk.AutoReplyJob
	err := row.Scan(into(&j.Contact), into(&j.Message), into(&j.Channel), into(&j.Conversation), (*string)(&j.Kind), &j.Text, (*int64)(&j.DecidedAt), (*int64)(&j.Due), &j.Tries)
	return &j, err
}

func (t *tx) PutAutoReply(j desk.AutoReplyJob) error {
	t.put(putAutoReplyQuery, uuid(t.ws), uuid(j.Contact), uuid(j.Message), uuid(j.Channel), uuid(j.Conversation), string(j.Kind), j.Text, int64(j.DecidedAt), int64(j.Due), j.Tries)
	return t.fail
}

func (t *tx) AutoReply(contact, message desk.ID) (*desk.AutoReplyJob, error) {
	return one(t.pipe, "automatic reply", readAutoReply, autoReplyQuery, uuid(t.ws), uuid(contact), uuid(message))
}

func (t *tx) DropAutoReply(contact, message desk.ID) error {
	t.put(`DELETE FROM auto_replies WHERE workspace_id = $1 AND contact_id = $2 AND message_id = $3`, uuid(t.ws), uuid(contact), uuid(message))
	return t.fail
}

// AutoRepliesDue returns the workspaces with automatic replies to send, and how long to
// wait until the first reply of each is due.
func (s *Store) AutoRepliesDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "automatic replies due", autoRepliesDueQuery, longest)
}

// TakeAutoReply gives the oldest due job of a workspace to the caller, or returns nil.
func (s *Store) TakeAutoReply(ctx context.Context, ws desk.ID, lease, longest time.Duration) (job *desk.AutoReplyJob, err error) {
	err = s.write(ctx, ws, false, func(t *tx) error {
		job = nil
		if err := t.open("begin"); err != nil {
			return err
		}
		now := t.Now()
		for _, due := range [][2]desk.Time{{math.MinInt64, now}, {now + desk.Time(longest.Milliseconds()) + 1, math.MaxInt64}} { // the second range: the clock was set back
			if job, err = one(t.pipe, "take automatic reply", readAutoReply, takeAutoReplyQuery,
				uuid(ws), int64(due[0]), int64(due[1]), int64(now)+lease.Milliseconds()); err != nil || job != nil {
				return err
			}
		}
		return nil
	})
	return job, err
}

// Pools returns the workspaces with a policy in which an unassigned conversation waits.
func (s *Store) Pools(ctx context.Context, of []desk.ID) (list []store.Pool, err error) {
	query, args := poolsQuery, []any(nil)
	if of != nil {
		query, args = poolsOfQuery, []any{uuids(of)}
	}
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "pools", func(row pgx.Row) (v store.Pool, err error) {
			err = row.Scan(into(&v.Workspace), &v.Settings, &v.Event)
			return v, err
		}, query, args...)
		return err
	})
	return list, err
}
