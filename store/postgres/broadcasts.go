package postgres

import (
	"context"
	"slices"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	broadcastColumns     = `id, state, ended_at, size, driven_at, body`
	broadcastQuery       = `SELECT ` + broadcastColumns + ` FROM broadcasts WHERE workspace_id = $1 AND id = $2`
	broadcastsQuery      = `SELECT ` + broadcastColumns + ` FROM broadcasts WHERE workspace_id = $1 AND id < $2 AND state <> 'deleted' ORDER BY id DESC LIMIT $3`
	broadcastsInQuery    = `SELECT ` + broadcastColumns + ` FROM broadcasts WHERE workspace_id = $1 AND id < $2 AND state = $4 ORDER BY state DESC, id DESC LIMIT $3`
	broadcastsDueQuery   = `SELECT workspace_id, greatest(0, min(due_at) - ` + databaseNow + `) FROM broadcasts WHERE due_at IS NOT NULL GROUP BY workspace_id`
	dueBroadcastsQuery   = `SELECT ` + broadcastColumns + ` FROM broadcasts WHERE workspace_id = $1 AND due_at IS NOT NULL ORDER BY id LIMIT $2`
	endedBroadcastsQuery = `SELECT id FROM broadcasts WHERE workspace_id = $1 AND state IN ('done', 'cancelled') AND ended_at > 0 AND ended_at < $2 AND size > 0 LIMIT $3`
	putBroadcastQuery    = `INSERT INTO broadcasts (workspace_id, id, state, due_at, ended_at, size, driven_at, body, media_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (workspace_id, id) DO UPDATE SET state = excluded.state, due_at = excluded.due_at, ended_at = excluded.ended_at, size = excluded.size,
		driven_at = excluded.driven_at, body = excluded.body, media_id = excluded.media_id`
	broadcastUseQuery = `SELECT count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state IN ('running', 'paused')), count(*) FILTER (WHERE state IN ('draft', 'scheduled')), coalesce(sum(size), 0)::bigint FROM broadcasts WHERE workspace_id = $1`
	countsQuery       = `SELECT broadcast_id, status, reason, code, max(title), sum(n)::bigint FROM broadcast_counts WHERE workspace_id = $1 AND broadcast_id = ANY ($2::uuid[]) GROUP BY broadcast_id, status, reason, code`

	rowColumns  = `broadcast_id, id, contact_id, number, address, status, reason, failure, attempt_id, message_id, conversation_id, at, due_at, sent_at, channel_id, data`
	rowsQuery   = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND id > $3 ORDER BY broadcast_id, id LIMIT $4`
	rowsOfQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND id > $3 AND contact_id = $5 ORDER BY id LIMIT $4`
	// Only the index of pending rows has this order.
	pendingQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND status = 'pending' AND due_at = 0 AND id > $3 ORDER BY due_at, id LIMIT $4`
	againQuery   = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND status = 'pending' AND due_at > 0 AND due_at <= ` + databaseNow + ` AND id > $3 ORDER BY due_at, id LIMIT $4`
	waitingQuery = `SELECT ` + rowColumns + ` FROM (SELECT id FROM (SELECT id FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND status = 'pending' AND due_at > 0 AND id > $3
			ORDER BY due_at, id OFFSET 0) w ORDER BY id LIMIT $4) u (i) CROSS JOIN LATERAL
		(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND id = u.i OFFSET 0) r ORDER BY id`
	nextRowQuery     = `SELECT due_at FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND status = 'pending' AND due_at > 0 ORDER BY due_at, id LIMIT 1`
	claimedRowsQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND status IN ('sending', 'in_doubt') AND status = $3 AND id > $4 ORDER BY status, id LIMIT $5`
	newestOfQuery    = `SELECT key FROM attempts WHERE workspace_id = $1 AND broadcast_id = $2 AND created_at >= $3 ORDER BY broadcast_id DESC, id DESC LIMIT $4`
	claimTimes       = `SELECT created_at FROM attempts WHERE workspace_id = $1 AND broadcast_id = $2 AND created_at >= $3 ORDER BY broadcast_id DESC, id DESC LIMIT $4`
	// Lists are looked up key by key (see wantedContacts).
	rowsByIDQuery = `SELECT ` + rowColumns + ofEach3 + `
		(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND id = u.i OFFSET 0) r`
	lockRowsByIDQuery = `SELECT ` + rowColumns + ` FROM (SELECT DISTINCT unnest($3::uuid[]) ORDER BY 1) u (i) CROSS JOIN LATERAL
		(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND id = u.i` + forUpdate + `) r`
	sameRowsQuery = `SELECT ` + rowColumns + ` FROM unnest($3::uuid[]) u (i) CROSS JOIN LATERAL
			(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND contact_id = u.i AND broadcast_id = $2 OFFSET 0) r
		UNION SELECT ` + rowColumns + ` FROM unnest($4::text[]) u (n) CROSS JOIN LATERAL
			(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND number <> '' AND number = u.n AND broadcast_id = $2 OFFSET 0) r`
	rowBeforeQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND contact_id = coalesce($2, (SELECT contact_id FROM conversations WHERE workspace_id = $1 AND id = $3))
		AND channel_id = $4 AND sent_at > 0 AND sent_at < $5 ORDER BY sent_at DESC LIMIT 1`
	ofMessagesQuery = `SELECT ` + rowColumns + ofEach2 + `
		(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND message_id IS NOT NULL AND message_id = u.i OFFSET 0) r`

	// New rows are stored without ON CONFLICT, which takes longer.
	insertRowsQuery = `INSERT INTO broadcast_rows (workspace_id, ` + rowColumns + `) SELECT w.id, $2::uuid, u.* FROM unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[],
		$9::text[], $10::uuid[], $11::uuid[], $12::uuid[], $13::bigint[], $14::bigint[], $15::bigint[], $16::uuid[], $17::text[]) u` + inWorkspace
	putRowsQuery = insertRowsQuery + `
		ON CONFLICT (workspace_id, broadcast_id, id) DO UPDATE SET contact_id = excluded.contact_id, number = excluded.number, address = excluded.address, status = excluded.status,
		reason = excluded.reason, failure = excluded.failure, attempt_id = excluded.attempt_id, message_id = excluded.message_id, conversation_id = excluded.conversation_id,
		at = excluded.at, due_at = excluded.due_at, sent_at = excluded.sent_at, channel_id = excluded.channel_id, data = excluded.data`
	addCountsQuery = `INSERT INTO broadcast_counts (workspace_id, broadcast_id, share, status, reason, code, title, n)
		SELECT w.id, $2::uuid, u.* FROM unnest($3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bigint[]) u` + inWorkspace + `
		ON CONFLICT (workspace_id, broadcast_id, share, status, reason, code) DO UPDATE SET n = broadcast_counts.n + excluded.n, title = excluded.title`
	lockPendingQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND status = 'pending' ORDER BY due_at, id LIMIT $3 FOR UPDATE`
	lockRowsQuery    = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 ORDER BY broadcast_id, id LIMIT $3 FOR UPDATE`
	dropRowsQuery    = `DELETE FROM broadcast_rows WHERE workspace_id = $1 AND broadcast_id = $2 AND id = ANY ($3::uuid[])`
	numbersToDrop    = `SELECT hash FROM broadcast_numbers WHERE workspace_id = $1 AND broadcast_id = $2 LIMIT $3`
	dropNumbersQuery = `DELETE FROM broadcast_numbers WHERE workspace_id = $1 AND broadcast_id = $2 AND hash = ANY ($3::bytea[])`
	takeNumbersQuery = `INSERT INTO broadcast_numbers (workspace_id, broadcast_id, hash, row_id) SELECT w.id, $2::uuid, u.hash, $4::uuid FROM unnest($3::bytea[]) u (hash)` + inWorkspace + ` ON CONFLICT DO NOTHING`
	passNumberQuery  = `UPDATE broadcast_numbers SET row_id = $4 WHERE workspace_id = $1 AND broadcast_id = $2 AND hash = $3 AND row_id = $5`
	takenQuery       = `SELECT n.hash, n.row_id, coalesce(r.status, '') FROM (SELECT DISTINCT unnest($3::bytea[])) u (h)
		CROSS JOIN LATERAL (SELECT * FROM broadcast_numbers WHERE workspace_id = $1 AND broadcast_id = $2 AND hash = u.h OFFSET 0) n
		LEFT JOIN broadcast_rows r ON r.workspace_id = $1 AND r.broadcast_id = $2 AND r.id = n.row_id`
	claimedForQuery = `SELECT contact_id, id, status` + ofEach3 + `
		(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND contact_id = u.i AND broadcast_id = $2 AND attempt_id IS NOT NULL OFFSET 0) r`
	openWithQuery = `SELECT contact_id` + ofEach3 + `
		(SELECT contact_id FROM conversations WHERE workspace_id = $1 AND channel_id = $2 AND contact_id = u.i AND status = 'open' OFFSET 0) c`
	placesQuery      = `SELECT workspace_id, seq, tag FROM broadcast_places WHERE workspace_id = ANY ($1)`
	moveRowsQuery    = `UPDATE broadcast_rows SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2 RETURNING broadcast_id, id`
	returnRowQuery   = `UPDATE broadcast_rows SET contact_id = $4 WHERE workspace_id = $1 AND broadcast_id = $2 AND id = $3 AND contact_id IS NOT NULL`
	rowsToEraseQuery = `SELECT ` + rowColumns + ` FROM unnest($2::uuid[]) u (i) CROSS JOIN LATERAL
			(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND contact_id = u.i OFFSET 0) r
		UNION SELECT ` + rowColumns + ` FROM unnest($3::text[]) u (n) CROSS JOIN LATERAL
			(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND number <> '' AND number = u.n OFFSET 0) r ORDER BY broadcast_id, id`
)

func readBroadcast(row pgx.Row) (*desk.Broadcast, error) {
	var b desk.Broadcast
	var id desk.ID
	var state string
	var ended, driven, size int64
	err := row.Scan(into(&id), &state, &ended, &size, &driven, document{&b})
	b.ID, b.State, b.EndedAt, b.Rows, b.DrivenAt = id, desk.BroadcastState(state), desk.Time(ended), size, desk.Time(driven)
	return &b, err
}

func readRow(row pgx.Row) (*desk.BroadcastRow, error) {
	var r desk.BroadcastRow
	err := row.Scan(into(&r.Broadcast), into(&r.ID), into(&r.Contact), &r.Number, &r.To, (*string)(&r.Status), (*string)(&r.Reason), document{&r.Failure},
		into(&r.Attempt), into(&r.Message), into(&r.Conversation), (*int64)(&r.At), (*int64)(&r.DueAt), (*int64)(&r.SentAt), into(&r.Channel), document{&r.Data})
	return &r, err
}

// withCounts reads the counts of broadcasts.
func withCounts(p *pipe, ws desk.ID, list []*desk.Broadcast) error {
	byID := map[desk.ID]*desk.Broadcast{}
	var ids []desk.ID
	for _, b := range list {
		b.Counts = &desk.BroadcastCounts{}
		byID[b.ID], ids = b, append(ids, b.ID)
	}
	if ids == nil {
		return p.fail
	}
	p.each(func(row pgx.Row) error {
		var id desk.ID
		var k desk.RowKey
		var n int64
		err := row.Scan(into(&id), (*string)(&k.Status), (*string)(&k.Reason), &k.Code, &k.Title, &n)
		if err == nil {
			byID[id].Counts.Add(k, n)
		}
		return err
	}, countsQuery, uuid(ws), uuids(ids))
	return p.send("counts of broadcasts")
}

// Broadcast returns a broadcast with its counts, or nil.
func (s *Store) Broadcast(ctx context.Context, ws, id desk.ID) (b *desk.Broadcast, err error) {
	err = s.read(ctx, func(p *pipe) error {
		b, err = one(p, "broadcast", readBroadcast, broadcastQuery, uuid(ws), uuid(id))
		if b == nil || b.State == desk.BroadcastDeleted || err != nil {
			b = nil
			return err
		}
		return withCounts(p, ws, []*desk.Broadcast{b})
	})
	return b, err
}

// Broadcasts returns a page of broadcasts, newest first.
func (s *Store) Broadcasts(ctx context.Context, ws desk.ID, state desk.BroadcastState, before *desk.ID, limit int) (list []*desk.Broadcast, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	query, args := broadcastsQuery, []any{uuid(ws), uuid(*before), limit + 1}
	if state != "" {
		query, args = broadcastsInQuery, append(args, string(state))
	}
	err = s.read(ctx, func(p *pipe) error {
		next = nil
		if list, err = all(p, "broadcasts", readBroadcast, query, args...); err != nil {
			return err
		}
		size := desk.NewPageSize(limit)
		for i, b := range list {
			if !size.Add(b.ListBytes()) {
				next, list = &list[i-1].ID, list[:i]
				break
			}
		}
		return withCounts(p, ws, list)
	})
	return list, next, err
}

// BroadcastsDue returns the workspaces that the driver has to look at.
func (s *Store) BroadcastsDue(ctx context.Context) (due map[desk.ID]time.Duration, err error) {
	err = s.read(ctx, func(p *pipe) error {
		due = map[desk.ID]time.Duration{}
		p.each(func(row pgx.Row) error {
			var ws desk.ID
			var wait int64
			err := row.Scan(into(&ws), &wait)
			due[ws] = time.Duration(wait) * time.Millisecond
			return err
		}, broadcastsDueQuery)
		return p.send("due broadcasts")
	})
	return due, err
}

// DueBroadcasts returns the broadcasts of a workspace that the driver has to look at.
func (s *Store) DueBroadcasts(ctx context.Context, ws desk.ID, limit int) (list []*desk.Broadcast, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "due broadcasts", readBroadcast, dueBroadcastsQuery, uuid(ws), limit)
		return err
	})
	return list, err
}

// EndedBroadcasts returns broadcasts that ended before a moment and have rows.
func (s *Store) EndedBroadcasts(ctx context.Context, ws desk.ID, before desk.Time, limit int) ([]desk.ID, error) {
	return readAll(ctx, s, "ended broadcasts", readID, endedBroadcastsQuery, uuid(ws), int64(before), limit)
}

// BroadcastRows returns a page of rows.
func (s *Store) BroadcastRows(ctx context.Context, ws, broadcast desk.ID, f desk.RowFilter, after desk.ID, limit int) (list []*desk.BroadcastRow, next *desk.ID, err error) {
	query, args := rowsQuery, []any{uuid(ws), uuid(broadcast), uuid(after), stored.RowsToRead(f, limit)}
	if f.Contact != nil {
		query, args = rowsOfQuery, append(args, uuid(*f.Contact))
	}
	err = s.read(ctx, func(p *pipe) error {
		page := stored.RowPage{Filter: f, Size: desk.NewPageSize(limit)}
		each(p, readRow, func(r *desk.BroadcastRow) { page.Add(r) }, query, args...)
		err := p.send("rows of a broadcast")
		list, next = page.List, page.Next
		return err
	})
	return list, next, err
}

func (s *Store) rows(ctx context.Context, doing, query string, args ...any) ([]*desk.BroadcastRow, error) {
	return readAll(ctx, s, doing, readRow, query, args...)
}

// PendingRows returns pending rows, in order.
func (s *Store) PendingRows(ctx context.Context, ws, broadcast desk.ID, again bool, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	query := pendingQuery
	if again {
		query = againQuery
	}
	return s.rows(ctx, "pending rows", query, uuid(ws), uuid(broadcast), uuid(after), limit)
}

// WaitingRows returns pending rows that wait for their time, in order.
func (s *Store) WaitingRows(ctx context.Context, ws, broadcast, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	return s.rows(ctx, "waiting rows", waitingQuery, uuid(ws), uuid(broadcast), uuid(after), limit)
}

// NextRow is when the first pending row that waits is due.
func (s *Store) NextRow(ctx context.Context, ws, broadcast desk.ID) (desk.Time, error) {
	return readOne(ctx, s, "next row", readTime, nextRowQuery, uuid(ws), uuid(broadcast))
}

// ClaimedRows returns rows that are being sent, or are in doubt.
func (s *Store) ClaimedRows(ctx context.Context, ws, broadcast desk.ID, status desk.RowStatus, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	return s.rows(ctx, "claimed rows", claimedRowsQuery, uuid(ws), uuid(broadcast), string(status), uuid(after), limit)
}

// NewestClaims returns the rows of the newest attempts.
func (s *Store) NewestClaims(ctx context.Context, ws, broadcast desk.ID, since desk.Time, limit int) (list []*desk.BroadcastRow, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list = nil
		place := map[desk.ID]int{}
		var ids []desk.ID
		p.each(func(row pgx.Row) error {
			var key string
			err := row.Scan(&key)
			if id, known := stored.RowKeyOf(key); known {
				if _, again := place[id]; !again {
					place[id], ids = len(ids), append(ids, id)
				}
			}
			return err
		}, newestOfQuery, uuid(ws), uuid(broadcast), int64(since), limit)
		if err := p.send("newest attempts of a broadcast"); err != nil || ids == nil {
			return err
		}
		list, err = all(p, "rows of attempts", readRow, rowsByIDQuery, uuid(ws), uuid(broadcast), uuids(ids))
		slices.SortFunc(list, func(a, b *desk.BroadcastRow) int { return place[a.ID] - place[b.ID] })
		return err
	})
	return list, err
}

// ClaimTimes returns when the newest attempts were made, oldest first.
func (s *Store) ClaimTimes(ctx context.Context, ws, broadcast desk.ID, since desk.Time, limit int) ([]desk.Time, error) {
	list, err := readAll(ctx, s, "times of claims", readTime, claimTimes, uuid(ws), uuid(broadcast), int64(since), limit)
	slices.Reverse(list)
	return list, err
}

// RowFacts answers questions about people of a broadcast, in one round trip.
func (s *Store) RowFacts(ctx context.Context, ws desk.ID, q store.RowQuestion) (facts store.RowFacts, err error) {
	err = s.read(ctx, func(p *pipe) error {
		facts, err = rowFacts(p, ws, q)
		return err
	})
	return facts, err
}

func rowFacts(p *pipe, ws desk.ID, q store.RowQuestion) (store.RowFacts, error) {
	facts := store.NewRowFacts()
	p.each(func(row pgx.Row) error {
		var contact desk.ID
		var by desk.RowClaim
		err := row.Scan(into(&contact), into(&by.Row), (*string)(&by.Status))
		facts.Claimed[contact] = append(facts.Claimed[contact], by)
		return err
	}, claimedForQuery, uuid(ws), uuid(q.Broadcast), uuids(q.Contacts))
	p.each(readTaken(facts.Taken), takenQuery, uuid(ws), uuid(q.Broadcast), hashes(q.Numbers))
	each(p, readID, func(id desk.ID) { facts.Open[id] = true }, openWithQuery, uuid(ws), uuid(q.Channel), uuids(q.Contacts))
	addChoices(p, facts.Choices, ws, q.Choices)
	return facts, p.send("facts about people")
}

// readTaken returns a function that reads which row has taken a number.
func readTaken(taken map[store.NumberHash]desk.RowClaim) func(pgx.Row) error {
	return func(row pgx.Row) error {
		var h hash
		var by desk.RowClaim
		err := row.Scan(&h, into(&by.Row), (*string)(&by.Status))
		taken[store.NumberHash(h)] = by
		return err
	}
}

// RowsOfMessages returns the rows whose messages have these ids.
func (s *Store) RowsOfMessages(ctx context.Context, ws desk.ID, messages []desk.ID) ([]*desk.BroadcastRow, error) {
	return s.rows(ctx, "rows of messages", ofMessagesQuery, uuid(ws), uuids(messages))
}

// RowsBefore returns the rows of the newest messages before, in one round trip.
func (s *Store) RowsBefore(ctx context.Context, ws desk.ID, places []store.TalkPlace) (list []*desk.BroadcastRow, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list = make([]*desk.BroadcastRow, len(places))
		for i, place := range places {
			p.each(func(row pgx.Row) (err error) {
				list[i], err = readRow(row)
				return err
			}, rowBeforeQuery, uuid(ws), orNull(place.Contact), uuid(place.Conversation), uuid(place.Channel), int64(place.At))
		}
		return p.send("rows before")
	})
	return list, err
}

// BroadcastPlaces returns up to which event deliveries were followed.
func (s *Store) BroadcastPlaces(ctx context.Context, of []desk.ID) (places map[desk.ID]desk.EventPlace, err error) {
	err = s.read(ctx, func(p *pipe) error {
		places = map[desk.ID]desk.EventPlace{}
		p.each(func(row pgx.Row) error {
			var ws desk.ID
			var place desk.EventPlace
			err := row.Scan(into(&ws), &place.Seq, &place.Tag)
			places[ws] = place
			return err
		}, placesQuery, uuids(of))
		return p.send("places of deliveries")
	})
	return places, err
}

func (t *tx) Broadcast(id desk.ID) (*desk.Broadcast, error) {
	return one(t.pipe, "broadcast", readBroadcast, broadcastQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) BroadcastToClaim(id, driver desk.ID) (b *desk.Broadcast, driven bool, err error) {
	t.lease(desk.BroadcastTask, driver, func(int64) { driven = true })
	b, err = one(t.pipe, "broadcast to claim", readBroadcast, broadcastQuery+` FOR SHARE`, uuid(t.ws), uuid(id))
	return b, driven, err
}

func (t *tx) PutBroadcast(b *desk.Broadcast) error {
	var due pgtype.Int8
	if at, has := b.Due(); has {
		due = pgtype.Int8{Int64: int64(at), Valid: true}
	}
	t.put(putBroadcastQuery, uuid(t.ws), uuid(b.ID), string(b.State), due, int64(b.EndedAt), b.Rows, int64(b.DrivenAt), asJSON(stored.BodyOf(b)), orNull(b.Holds()))
	return t.fail
}

func (t *tx) DropBroadcast(id desk.ID) error {
	t.put(`DELETE FROM broadcast_counts WHERE workspace_id = $1 AND broadcast_id = $2`, uuid(t.ws), uuid(id))
	t.put(`DELETE FROM broadcasts WHERE workspace_id = $1 AND id = $2`, uuid(t.ws), uuid(id))
	return t.fail
}

func (t *tx) BroadcastUse() (use store.BroadcastUse, err error) {
	t.put(lockBroadcasts, uuid(t.ws), lockOf(t.ws)+1)
	return one(t.pipe, "use of broadcasts", func(row pgx.Row) (use store.BroadcastUse, err error) {
		return use, row.Scan(&use.Running, &use.Active, &use.Planned, &use.Rows)
	}, broadcastUseQuery, uuid(t.ws))
}

// lockBroadcasts lets one transaction at a time count the broadcasts of a workspace and then
// make, start or fill one.
const lockBroadcasts = `SELECT pg_advisory_xact_lock($2)` + ofWorkspace

func (t *tx) RowsToChange(broadcast desk.ID, ids []desk.ID) (map[desk.ID]*desk.BroadcastRow, error) {
	byID := map[desk.ID]*desk.BroadcastRow{}
	each(t.pipe, readRow, func(r *desk.BroadcastRow) { byID[r.ID] = r }, lockRowsByIDQuery, uuid(t.ws), uuid(broadcast), uuids(ids))
	return byID, t.send("rows to change")
}

func (t *tx) SameRows(broadcast desk.ID, contacts []desk.ID, numbers []string) ([]*desk.BroadcastRow, error) {
	return all(t.pipe, "rows of the same people", readRow, sameRowsQuery, uuid(t.ws), uuid(broadcast), uuids(contacts), slices.Clone(numbers))
}

func (t *tx) PutRows(broadcast desk.ID, rows []store.RowChange) error {
	if len(rows) == 0 {
		return t.fail
	}
	var ids pgtype.FlatArray[uuid]
	var contacts, attempts, messages, conversations, channels pgtype.FlatArray[pgtype.UUID]
	var numbers, addresses, statuses, reasons []string
	var failures, data []jsonText
	var at, due, sent []int64
	for _, c := range stored.SortRows(rows) {
		r := c.Row
		ids, contacts, numbers, addresses = append(ids, uuid(r.ID)), append(contacts, orNull(r.Contact)), append(numbers, r.Number), append(addresses, r.To)
		statuses, reasons, failures = append(statuses, string(r.Status)), append(reasons, string(r.Reason)), append(failures, asJSON(r.Failure))
		attempts, messages, conversations = append(attempts, orNull(r.Attempt)), append(messages, orNull(r.Message)), append(conversations, orNull(r.Conversation))
		at, due, sent = append(at, int64(r.At)), append(due, int64(r.DueAt)), append(sent, int64(r.SentAt))
		channels, data = append(channels, orNull(r.Channel)), append(data, asJSON(r.Data))
	}
	query := insertRowsQuery
	if slices.ContainsFunc(rows, func(c store.RowChange) bool { return c.Was != nil }) {
		query = putRowsQuery
	}
	t.put(query, uuid(t.ws), uuid(broadcast), ids, contacts, numbers, addresses, statuses, reasons, failures, attempts, messages, conversations, at, due, sent, channels, data)
	t.addCounts(broadcast, stored.CountsOf(rows))
	return t.fail
}

func (t *tx) addCounts(broadcast desk.ID, list []stored.Counted) {
	if len(list) == 0 {
		return
	}
	var shares, codes, n []int64
	var statuses, reasons, titles []string
	for _, c := range list {
		shares, codes, n = append(shares, c.Share), append(codes, c.Code), append(n, c.N)
		statuses, reasons, titles = append(statuses, string(c.Status)), append(reasons, string(c.Reason)), append(titles, c.Title)
	}
	t.put(addCountsQuery, uuid(t.ws), uuid(broadcast), shares, statuses, reasons, codes, titles, n)
}

func (t *tx) CancelRows(broadcast desk.ID, at desk.Time, limit int) (int, error) {
	rows, err := all(t.pipe, "rows to cancel", readRow, lockPendingQuery, uuid(t.ws), uuid(broadcast), limit)
	if err != nil {
		return 0, err
	}
	changes := make([]store.RowChange, len(rows))
	for i, r := range rows {
		changes[i] = store.Change(r)
		r.Status, r.At, r.DueAt = desk.RowCancelled, at, 0
	}
	return len(rows), t.PutRows(broadcast, changes)
}

func (t *tx) DropRows(broadcast desk.ID, counted bool, limit int) (int, error) {
	rows, err := all(t.pipe, "rows to drop", readRow, lockRowsQuery, uuid(t.ws), uuid(broadcast), limit)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	ids := make([]desk.ID, len(rows))
	changes := make([]store.RowChange, len(rows))
	for i, r := range rows {
		ids[i], changes[i] = r.ID, store.RowChange{Row: r}
	}
	t.put(dropRowsQuery, uuid(t.ws), uuid(broadcast), uuids(ids))
	if counted {
		t.addCounts(broadcast, stored.CountsWithout(changes))
	}
	return len(rows), t.fail
}

func (t *tx) DropNumbers(broadcast desk.ID, limit int) (int, error) {
	list, err := all(t.pipe, "numbers to drop", func(row pgx.Row) (b []byte, err error) { return b, row.Scan(&b) }, numbersToDrop, uuid(t.ws), uuid(broadcast), limit)
	if err == nil && len(list) > 0 {
		t.put(dropNumbersQuery, uuid(t.ws), uuid(broadcast), list)
	}
	return len(list), err
}

// TakeNumbers waits for other transactions that take one of the numbers.
func (t *tx) TakeNumbers(broadcast, row desk.ID, list []store.NumberHash, passed map[store.NumberHash]desk.ID) (bool, error) {
	list = stored.SortHashes(list)
	t.put(takeNumbersQuery, uuid(t.ws), uuid(broadcast), hashes(list), uuid(row))
	for _, h := range list {
		if from := passed[h]; !from.IsZero() {
			t.put(passNumberQuery, uuid(t.ws), uuid(broadcast), h[:], uuid(row), uuid(from))
		}
	}
	taken := map[store.NumberHash]desk.RowClaim{}
	t.each(readTaken(taken), takenQuery, uuid(t.ws), uuid(broadcast), hashes(list))
	err := t.send("take numbers")
	return !slices.ContainsFunc(list, func(h store.NumberHash) bool { return taken[h].Row != row }), err
}

func (t *tx) RowFacts(q store.RowQuestion) (store.RowFacts, error) { return rowFacts(t.pipe, t.ws, q) }

func (t *tx) BeginBroadcasts() error {
	known, err := one(t.pipe, "place of deliveries", func(row pgx.Row) (known bool, err error) { return true, row.Scan(new(int64)) },
		`SELECT seq FROM broadcast_places WHERE workspace_id = $1`, uuid(t.ws))
	if err != nil || known {
		return err
	}
	// Nobody appends events until the commit.
	place, err := one(t.pipe, "newest event", func(row pgx.Row) (e desk.EventPlace, err error) {
		var at, seq int64
		var subject desk.ID
		if err = row.Scan(&seq, &at, into(&subject)); err == nil {
			e = (desk.Event{Subject: subject, At: desk.Time(at)}).Placed(seq).Place
		}
		return e, err
	}, `SELECT e.seq, e.at, e.subject_id FROM events e WHERE e.workspace_id = $1 ORDER BY e.seq DESC LIMIT 1`, uuid(t.ws))
	if err == nil {
		t.put(`INSERT INTO broadcast_places (workspace_id, seq, tag) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, uuid(t.ws), place.Seq, place.Tag)
	}
	return err
}

func (t *tx) MoveBroadcasts(from, to desk.EventPlace) (bool, error) {
	return one(t.pipe, "move place of deliveries", func(row pgx.Row) (bool, error) { return true, row.Scan(new(int64)) },
		`UPDATE broadcast_places SET seq = $4, tag = $5 WHERE workspace_id = $1 AND seq = $2 AND tag = $3 RETURNING seq`, uuid(t.ws), from.Seq, from.Tag, to.Seq, to.Tag)
}

func (t *tx) MoveRows(from, to desk.ID) ([]store.RowRef, error) {
	return all(t.pipe, "move rows", func(row pgx.Row) (ref store.RowRef, err error) {
		return ref, row.Scan(into(&ref.Broadcast), into(&ref.Row))
	}, moveRowsQuery, uuid(t.ws), uuid(from), uuid(to))
}

func (t *tx) ReturnRows(rows []store.RowRef, to desk.ID) error {
	for _, ref := range rows {
		t.put(returnRowQuery, uuid(t.ws), uuid(ref.Broadcast), uuid(ref.Row), uuid(to))
	}
	return t.fail
}

// eraseRows removes the data of deleted contacts from rows of broadcasts. Until it had the lock of a
// row, a broadcast that takes the people of the row's may have copied it: so it looks until it
// finds none.
func eraseRows(t *tx, deleted []*desk.Contact) error {
	var ids []desk.ID
	numbers := []string{}
	for _, d := range deleted {
		ids, numbers = append(ids, d.ID), append(numbers, d.Numbers()...)
	}
	for {
		found, err := all(t.pipe, "rows to erase", readRow, rowsToEraseQuery, uuid(t.ws), uuids(ids), numbers)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := eraseFound(t, found); err != nil {
			return err
		}
	}
}

// eraseFound locks the rows that were found, in the order of their broadcasts, and erases them.
func eraseFound(t *tx, found []*desk.BroadcastRow) error {
	for len(found) > 0 {
		broadcast := found[0].Broadcast
		var mine []desk.ID
		for len(found) > 0 && found[0].Broadcast == broadcast {
			mine, found = append(mine, found[0].ID), found[1:]
		}
		rows, err := all(t.pipe, "rows to erase", readRow, lockRowsByIDQuery, uuid(t.ws), uuid(broadcast), uuids(mine))
		if err != nil {
			return err
		}
		chose, changes := false, make([]store.RowChange, len(rows))
		for i, r := range rows {
			changes[i] = store.Change(r)
			chose = chose || r.Data.Reply.ChosenAt > 0
			r.Erase(t.Now())
		}
		if err := t.PutRows(broadcast, changes); err != nil {
			return err
		}
		if chose { // titles of buttons that nobody else tapped
			t.put(`DELETE FROM broadcast_counts WHERE workspace_id = $1 AND broadcast_id = $2 AND status = 'choice' AND n = 0`, uuid(t.ws), uuid(broadcast))
		}
	}
	return nil
}
