package postgres

import (
	"context"
	"strings"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// The first statement locks the workspace's counter, so the second one reads what the
// first one has stored.
const (
	countEvents = `INSERT INTO event_counters (workspace_id, seq, counted_at) VALUES ($1, $2, ` + statementNow + `)
	ON CONFLICT (workspace_id) DO UPDATE SET seq = event_counters.seq + excluded.seq, counted_at = excluded.counted_at`
	insertEvents = `INSERT INTO events (workspace_id, seq, ` + eventColumns + `)
	SELECT c.workspace_id, c.seq - cardinality($2::bigint[]) + u.n, ` + eventColumns + `
	FROM event_counters c CROSS JOIN unnest($2::bigint[], $3::text[], $4::uuid[], $5::text[], $6::uuid[], $7::text[], $8::text[], $9::uuid[], $10::uuid[], $11::bigint[])
		WITH ORDINALITY u (` + eventColumns + `, n) WHERE c.workspace_id = $1`
)

// eventColumns are all columns except the workspace and the number. Nodes of the
// previous release do not write subject_key, so their events are not in the feed.
const eventColumns = `at, kind, subject_id, actor_kind, actor_id, changed, subject_key, conversation_id, contact_id, message_ts`

// putEvents queues the events for the commit.
func putEvents(p *pipe, ws desk.ID, events []desk.Event) {
	if len(events) == 0 {
		return
	}
	n := len(events)
	at, kinds, changed := make([]int64, n), make([]string, n), make([]string, n)
	actorKinds, keys := make([]string, n), make([]string, n)
	subjects, actors := make(pgtype.FlatArray[uuid], n), make(pgtype.FlatArray[uuid], n)
	conversations, contacts := make([]pgtype.UUID, n), make([]pgtype.UUID, n)
	messages := make([]*int64, n)
	for i, e := range events {
		at[i], kinds[i], changed[i] = int64(e.At), string(e.Type), strings.Join(e.Changed, ",")
		subjects[i], actors[i] = uuid(e.Subject), uuid(e.Actor.ID)
		actorKinds[i], keys[i] = string(e.Actor.Kind), e.Key
		conversations[i], contacts[i] = orNull(e.Conversation), orNull(e.Contact)
		if e.TS != 0 {
			messages[i] = (*int64)(&events[i].TS)
		}
	}
	p.put(countEvents, uuid(ws), n)
	p.put(insertEvents, uuid(ws), at, kinds, subjects, actorKinds, actors, changed, keys, conversations, contacts, messages)
}

func readEvent(row pgx.Row) (desk.FeedEvent, error) {
	var e desk.Event
	var seq int64
	var changed string
	var key *string
	var ts *int64
	err := row.Scan(&seq, (*int64)(&e.At), (*string)(&e.Type), into(&e.Subject), (*string)(&e.Actor.Kind), into(&e.Actor.ID), &changed,
		&key, into(&e.Conversation), into(&e.Contact), &ts)
	e.Changed = stored.Words(changed)
	if key != nil {
		e.Key = *key
	}
	if ts != nil {
		e.TS = desk.Time(*ts)
	}
	return e.Placed(seq), err
}

const (
	eventFloorQuery = `SELECT seq, tag FROM event_floors WHERE workspace_id = $1`
	lastEventQuery  = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1`
	eventQuery      = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = $1 AND seq = $2`
	eventsQuery     = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = $1 AND seq > $2 AND seq <= $3
		AND subject_key IS NOT NULL AND kind = ANY($4) ORDER BY seq LIMIT $5`
)

// ofSettings is the condition of the index events_settings. It selects the types of
// desk.EventType.OfSettings.
const ofSettings = `(kind COLLATE "C" < 'con' OR kind COLLATE "C" >= 'k' AND kind COLLATE "C" < 'mes' OR kind COLLATE "C" >= 'po' AND kind COLLATE "C" < 'pp'
	OR kind COLLATE "C" >= 'sn' AND kind COLLATE "C" < 'so' OR kind COLLATE "C" >= 'w')`

const (
	eventLogQuery = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = $1 AND seq > $2 AND seq < $3
		AND subject_key IS NOT NULL AND kind = ANY($4) ORDER BY seq DESC LIMIT $5`
	// Only the index events_settings has this order.
	settingsLogQuery = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = $1 AND seq > $2 AND seq < $3 AND ` + ofSettings + `
		AND subject_key IS NOT NULL AND kind = ANY($4) ORDER BY seq DESC NULLS LAST LIMIT $5`
)

// EventLog returns up to limit events of the types, newest first.
func (s *Store) EventLog(ctx context.Context, ws desk.ID, types []desk.EventType, before int64, limit int) (found []desk.FeedEvent, next int64, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, next, err = stored.ReadLog(&feed{s: s, pipe: p, ws: ws}, types, before, limit, func(from, before int64, ofSettings bool) ([]desk.FeedEvent, error) {
			query := eventLogQuery
			if ofSettings {
				query = settingsLogQuery
			}
			return all(p, "event log", readEvent, query, uuid(ws), from, before, types, limit+1)
		})
		return err
	})
	return found, next, err
}

// Heads returns the head of each of the workspaces.
func (s *Store) Heads(ctx context.Context, list []desk.ID) (heads map[desk.ID]store.Head, err error) {
	err = s.read(ctx, func(p *pipe) error {
		heads = make(map[desk.ID]store.Head, len(list))
		p.each(func(row pgx.Row) error {
			var ws desk.ID
			var head store.Head
			err := row.Scan(into(&ws), &head.Settings, &head.Event)
			heads[ws] = head
			return err
		}, `SELECT w.id, w.settings_version, coalesce(e.seq, 0) FROM workspaces w LEFT JOIN event_counters e ON e.workspace_id = w.id
			WHERE w.id = ANY($1) AND NOT w.deleted`, uuids(list))
		return p.send("heads")
	})
	return heads, err
}

// A transaction that has counted its events commits soon. markMargin is longer than that,
// and than the difference between the clocks of several database servers, in milliseconds.
const markMargin = 5_000

// NewestEvents returns the number of the newest event of each workspace that has counted
// events since the mark. The mark is a time of the database's clock.
func (s *Store) NewestEvents(ctx context.Context, since store.Mark) (newest map[desk.ID]int64, mark store.Mark, err error) {
	err = s.read(ctx, func(p *pipe) error {
		newest = map[desk.ID]int64{}
		p.each(func(row pgx.Row) error { return row.Scan((*int64)(&mark)) }, `SELECT `+databaseNow)
		p.each(func(row pgx.Row) error {
			var ws desk.ID
			var seq int64
			err := row.Scan(into(&ws), &seq)
			newest[ws] = seq
			return err
		}, `SELECT workspace_id, seq FROM event_counters WHERE counted_at >= $1`, max(0, int64(since)-markMargin))
		return p.send("newest events")
	})
	return newest, mark, err
}
