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

const (
	historyPlaceQuery  = `SELECT seq, tag FROM history_places WHERE workspace_id = $1`
	historyPlacesQuery = `SELECT workspace_id, seq, tag FROM history_places WHERE workspace_id = ANY ($1)`
	moveHistoryPlace   = `INSERT INTO history_places (workspace_id, seq, tag) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id) DO UPDATE SET seq = excluded.seq, tag = excluded.tag`
	// As keepContacts, for contacts that are part of another one: whoever deletes that one waits
	// for the merges.
	keepMergedQuery = `SELECT m.from_id FROM (SELECT unnest($2::uuid[]) ORDER BY 1) u (id) CROSS JOIN LATERAL
		(SELECT from_id FROM merges WHERE workspace_id = $1 AND from_id = u.id AND survivor_id IS NOT NULL FOR KEY SHARE) m`
	historyColumns = `contact_id, seq, tag, at, kind, actor_kind, actor_id, changed`
	insertHistory  = `INSERT INTO history (workspace_id, ` + historyColumns + `) SELECT w.id, u.*
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::uuid[], $9::text[]) u (` + historyColumns + `)` + inWorkspace + `
		ON CONFLICT DO NOTHING`
	// The parameter $3 is how many changes stay. Of a contact with fewer changes, the subquery
	// returns no row. Its order leaves the planner only the primary key.
	trimHistory = `DELETE FROM history h USING unnest($2::uuid[]) u (id) CROSS JOIN LATERAL
		(SELECT contact_id, seq FROM history WHERE workspace_id = $1 AND contact_id = u.id AND kind <> '` + string(desk.ContactCreated) + `'
			ORDER BY workspace_id DESC, contact_id DESC, seq DESC OFFSET $3 LIMIT 1) l
		WHERE h.workspace_id = $1 AND h.contact_id = l.contact_id AND h.seq <= l.seq AND h.kind <> '` + string(desk.ContactCreated) + `'`
	historyQuery = `SELECT ` + historyColumns + ` FROM unnest($2::uuid[]) u (id) CROSS JOIN LATERAL
		(SELECT * FROM history WHERE workspace_id = $1 AND contact_id = u.id AND seq < $3 ORDER BY workspace_id DESC, contact_id DESC, seq DESC LIMIT $4) h
		ORDER BY seq DESC LIMIT $4`
)

// readHistoryPlace queues a read of the place of the history.
func (p *pipe) readHistoryPlace(ws desk.ID, place *store.SearchPlace) {
	p.each(func(row pgx.Row) error { return row.Scan(&place.History.Seq, &place.History.Tag) }, historyPlaceQuery, uuid(ws))
}

// hasHistory queues a read of the contacts whose history is kept: they must exist, or be part of one that does. Those to
// index are locked with them, so that all are locked in one order.
func (t *tx) hasHistory(events []desk.FeedEvent, toIndex []desk.ID) (kept map[desk.ID]bool) {
	kept = map[desk.ID]bool{}
	if len(events) == 0 {
		return kept
	}
	named := map[desk.ID]bool{}
	var ids []desk.ID
	add := func(id desk.ID) {
		if !named[id] {
			named[id] = true
			ids = append(ids, id)
		}
	}
	for i := range events {
		_, contact := events[i].Of()
		add(contact)
	}
	for _, id := range toIndex {
		add(id)
	}
	for _, query := range []string{keepContacts, keepMergedQuery} {
		each(t.pipe, readID, func(id desk.ID) { kept[id] = true }, query, uuid(t.ws), uuids(ids))
	}
	return kept
}

// putHistory queues the events of contacts whose history is kept.
func putHistory(t *tx, events []desk.FeedEvent, kept map[desk.ID]bool) {
	var of, trimmed []desk.ID
	var actors pgtype.FlatArray[uuid]
	var seqs, tags, at []int64
	var kinds, actorKinds, changed []string
	trims := map[desk.ID]bool{}
	for i := range events {
		e := &events[i]
		_, contact := e.Of()
		if !kept[contact] {
			continue
		}
		of, seqs, tags, at = append(of, contact), append(seqs, e.Place.Seq), append(tags, e.Place.Tag), append(at, int64(e.At))
		kinds, actorKinds, actors = append(kinds, string(e.Type)), append(actorKinds, string(e.Actor.Kind)), append(actors, uuid(e.Actor.ID))
		changed = append(changed, strings.Join(e.Changed, ","))
		if e.Type != desk.ContactCreated && !trims[contact] {
			trims[contact] = true
			trimmed = append(trimmed, contact)
		}
	}
	if of != nil {
		t.put(insertHistory, uuid(t.ws), uuids(of), seqs, tags, at, kinds, actorKinds, actors, changed)
	}
	if trimmed != nil {
		t.put(trimHistory, uuid(t.ws), uuids(trimmed), desk.MaxHistory)
	}
}

// History returns events of the history of contacts, newest first.
func (s *Store) History(ctx context.Context, ws desk.ID, contacts []desk.ID, before int64, limit int) ([]desk.FeedEvent, error) {
	return readAll(ctx, s, "history", func(row pgx.Row) (e desk.FeedEvent, err error) {
		var changed string
		err = row.Scan(into(&e.Subject), &e.Place.Seq, &e.Place.Tag, (*int64)(&e.At), (*string)(&e.Type), (*string)(&e.Actor.Kind), into(&e.Actor.ID), &changed)
		e.Changed = stored.Words(changed)
		return e, err
	}, historyQuery, uuid(ws), uuids(contacts), stored.Before(before), limit)
}
