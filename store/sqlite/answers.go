package sqlite

import (
	"context"
	"math"
	"time"

	"parley/desk"
	"parley/store"
)

const (
	openOfMemberQuery = `SELECT count(*) FROM (SELECT 1 FROM conversations INDEXED BY conversations_held WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open' LIMIT +?3)`
	turnQuery         = `SELECT number FROM turns WHERE workspace_id = ? AND channel_id = ? AND member_id = ?`
	putTurnQuery      = `REPLACE INTO turns (workspace_id, channel_id, member_id, number)
	SELECT ?1, ?2, ?3, coalesce(max(number), 0) + 1 FROM turns WHERE workspace_id = ?1 AND channel_id = ?2`
	poolQuery = `SELECT ` + conversationColumns + ` FROM conversations INDEXED BY conversations_pool WHERE workspace_id = ?1 AND channel_id = ?2
	AND assigned_member_id IS NULL AND status = 'open' AND waiting_since > 0 ORDER BY waiting_since, created_at, id LIMIT +?3`
	poolsQuery  = poolsFrom + `policies) p ` + waitingPools
	poolOfQuery = poolsFrom + `policies WHERE workspace_id = ?) p ` + waitingPools
	poolsFrom   = `SELECT p.workspace_id, w.settings_version, coalesce((SELECT seq FROM events e WHERE e.workspace_id = p.workspace_id ORDER BY seq DESC LIMIT 1),
	(SELECT seq FROM event_floors f WHERE f.workspace_id = p.workspace_id), 0)
	FROM (SELECT DISTINCT workspace_id FROM `
	waitingPools = `CROSS JOIN workspaces w ON w.id = p.workspace_id AND NOT w.deleted
	WHERE EXISTS (SELECT 1 FROM conversations v INDEXED BY conversations_pool
	WHERE v.workspace_id = p.workspace_id AND v.assigned_member_id IS NULL AND v.status = 'open' AND v.waiting_since > 0)`

	autoReplyColumns   = `contact_id, message_id, channel_id, conversation_id, kind, text, decided_at, due_at, tries`
	autoRepliesDue     = `SELECT workspace_id, min(CASE WHEN due_at > ?1 + ?2 THEN 0 ELSE max(due_at - ?1, 0) END) FROM auto_replies INDEXED BY auto_replies_due GROUP BY workspace_id`
	takeAutoReplyQuery = `UPDATE auto_replies SET due_at = ?4 WHERE workspace_id = ?1 AND (contact_id, message_id) =
	(SELECT contact_id, message_id FROM auto_replies INDEXED BY auto_replies_due WHERE workspace_id = ?1 AND due_at BETWEEN ?2 AND ?3 ORDER BY due_at, message_id LIMIT 1)
	RETURNING ` + autoReplyColumns
	autoReplyQuery        = `SELECT ` + autoReplyColumns + ` FROM auto_replies WHERE workspace_id = ? AND contact_id = ? AND message_id = ?`
	putAutoReplyQuery     = `REPLACE INTO auto_replies (workspace_id, ` + autoReplyColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	dropAutoReplyQuery    = `DELETE FROM auto_replies WHERE workspace_id = ? AND contact_id = ? AND message_id = ?`
	eraseAutoRepliesQuery = `DELETE FROM auto_replies WHERE workspace_id = ? AND contact_id = ?`
)

// LockAssignment does nothing: one transaction at a time writes.
func (t *tx) LockAssignment() error { return nil }

// Loads returns the load of each member.
func (t *tx) Loads(policy desk.ID, members []desk.ID, most int) (map[desk.ID]desk.Load, error) {
	loads := make(map[desk.ID]desk.Load, len(members))
	for _, m := range members {
		var l desk.Load
		var err error
		if l.Chosen, err = one("turn", t.c.stmt(turnQuery).id(t.ws).id(policy).id(m), (*stmt).readInt); err != nil {
			return nil, err
		}
		if most > 0 {
			open, err := one("open conversations", t.c.stmt(openOfMemberQuery).id(t.ws).id(m).int(int64(most)), (*stmt).readInt)
			if err != nil {
				return nil, err
			}
			l.Open = int(open)
		}
		loads[m] = l
	}
	return loads, nil
}

func (t *tx) PutTurn(policy, member desk.ID) error {
	return failed("store turn", t.c.stmt(putTurnQuery).id(t.ws).id(policy).id(member).run())
}

func (t *tx) Pool(channel desk.ID, limit int) ([]*desk.Conversation, error) {
	return all("pool", t.c.stmt(poolQuery).id(t.ws).id(channel).int(int64(limit)), readConversation)
}

func readAutoReply(s *stmt) *desk.AutoReplyJob {
	return &desk.AutoReplyJob{
		Contact: s.readID(), Message: s.readID(), Channel: s.readID(), Conversation: s.readID(), Kind: desk.AutoKind(s.readText()), Text: s.readText(),
		DecidedAt: s.readTime(), Due: s.readTime(), Tries: int(s.readInt()),
	}
}

func (t *tx) PutAutoReply(j desk.AutoReplyJob) error {
	return failed("store automatic reply", t.c.stmt(putAutoReplyQuery).id(t.ws).id(j.Contact).id(j.Message).id(j.Channel).id(j.Conversation).
		text(string(j.Kind)).text(j.Text).time(j.DecidedAt).time(j.Due).int(int64(j.Tries)).run())
}

func (t *tx) AutoReply(contact, message desk.ID) (*desk.AutoReplyJob, error) {
	return one("automatic reply", t.c.stmt(autoReplyQuery).id(t.ws).id(contact).id(message), readAutoReply)
}

func (t *tx) DropAutoReply(contact, message desk.ID) error {
	return failed("drop automatic reply", t.c.stmt(dropAutoReplyQuery).id(t.ws).id(contact).id(message).run())
}

// AutoRepliesDue returns the workspaces with automatic replies to send, and how long to
// wait until the first reply of each is due.
func (s *Store) AutoRepliesDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "automatic replies due", autoRepliesDue, longest)
}

// TakeAutoReply gives the oldest due job of a workspace to the caller, or returns nil.
func (s *Store) TakeAutoReply(ctx context.Context, ws desk.ID, lease, longest time.Duration) (job *desk.AutoReplyJob, err error) {
	err = s.write(ctx, func(c conn) error {
		job = nil
		if _, err := s.toWrite(c, ws); err != nil {
			return err
		}
		now := s.now()
		for _, due := range [][2]desk.Time{{math.MinInt64, now}, {now + desk.Time(longest.Milliseconds()) + 1, math.MaxInt64}} { // the second range: the clock was set back
			if job, err = one("take automatic reply", c.stmt(takeAutoReplyQuery).id(ws).time(due[0]).time(due[1]).time(now+desk.Time(lease.Milliseconds())), readAutoReply); err != nil || job != nil {
				return err
			}
		}
		return nil
	})
	return job, err
}

// Pools returns the workspaces with a policy in which an unassigned conversation waits.
func (s *Store) Pools(ctx context.Context, of []desk.ID) (list []store.Pool, err error) {
	pool := func(s *stmt) store.Pool {
		return store.Pool{Workspace: s.readID(), Settings: s.readInt(), Event: s.readInt()}
	}
	err = s.read(ctx, pointRead+int64(len(of)), func(c conn) error {
		if of == nil {
			list, err = all("pools", c.stmt(poolsQuery), pool)
			return err
		}
		for _, ws := range of {
			found, err := all("pool", c.stmt(poolOfQuery).id(ws), pool)
			if err != nil {
				return err
			}
			list = append(list, found...)
		}
		return nil
	})
	return list, err
}
