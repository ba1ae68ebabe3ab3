package sqlite

import (
	"context"
	"slices"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

const (
	broadcastColumns   = `id, state, ended_at, size, driven_at, body`
	broadcastQuery     = `SELECT ` + broadcastColumns + ` FROM broadcasts WHERE workspace_id = ? AND id = ?`
	broadcastsQuery    = `SELECT ` + broadcastColumns + ` FROM broadcasts WHERE workspace_id = ? AND id < ? AND state <> 'deleted' ORDER BY id DESC LIMIT +?`
	broadcastsInQuery  = `SELECT ` + broadcastColumns + ` FROM broadcasts INDEXED BY broadcasts_state WHERE workspace_id = ? AND id < ? AND state = ? ORDER BY id DESC LIMIT +?`
	broadcastsDueQuery = `SELECT workspace_id, min(due_at) FROM broadcasts INDEXED BY broadcasts_due WHERE due_at IS NOT NULL GROUP BY workspace_id`
	dueBroadcastsQuery = `SELECT ` + broadcastColumns + ` FROM broadcasts WHERE workspace_id = ? AND +due_at IS NOT NULL AND state IN ('draft', 'scheduled', 'running', 'done', 'cancelled', 'deleted') ORDER BY id LIMIT +?`
	endedBroadcasts    = `SELECT id FROM broadcasts INDEXED BY broadcasts_state WHERE workspace_id = ? AND state IN ('done', 'cancelled') AND ended_at > 0 AND ended_at < ? AND size > 0 LIMIT +?`
	putBroadcastQuery  = `INSERT OR REPLACE INTO broadcasts (workspace_id, id, state, due_at, ended_at, size, driven_at, body, media_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	dropBroadcastQuery = `DELETE FROM broadcasts WHERE workspace_id = ? AND id = ?`
	dropChoicesQuery   = `DELETE FROM broadcast_counts WHERE workspace_id = ? AND broadcast_id = ? AND status = 'choice' AND n = 0`
	dropCountsQuery    = `DELETE FROM broadcast_counts WHERE workspace_id = ? AND broadcast_id = ?`
	broadcastUseQuery  = `SELECT count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state IN ('running', 'paused')), count(*) FILTER (WHERE state IN ('draft', 'scheduled')), coalesce(sum(size), 0) FROM broadcasts WHERE workspace_id = ?`
	countsQuery        = `SELECT status, reason, code, max(title), sum(n) FROM broadcast_counts WHERE workspace_id = ? AND broadcast_id = ? GROUP BY status, reason, code`

	rowColumns  = `broadcast_id, id, contact_id, number, address, status, reason, failure, attempt_id, message_id, conversation_id, at, due_at, sent_at, channel_id, data`
	rowQuery    = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = ? AND broadcast_id = ? AND id = ?`
	rowsQuery   = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = ? AND broadcast_id = ? AND id > ? ORDER BY id LIMIT +?`
	rowsOfQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows INDEXED BY broadcast_rows_contact WHERE workspace_id = ? AND broadcast_id = ? AND id > ? AND contact_id = ? ORDER BY id LIMIT +?`
	ofTurns     = ` FROM broadcast_rows INDEXED BY broadcast_rows_turn WHERE workspace_id = ? AND broadcast_id = ? AND status = 'pending'`
	// Those that wait are few.
	pendingQuery = `SELECT ` + rowColumns + ofTurns + ` AND due_at = 0 AND id > ? ORDER BY id LIMIT +?`
	againQuery   = `SELECT ` + rowColumns + ofTurns + ` AND due_at > 0 AND due_at <= ? AND id > ? ORDER BY due_at, id LIMIT +?`
	waitingQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = ?1 AND broadcast_id = ?2 AND id IN (SELECT id FROM broadcast_rows INDEXED BY broadcast_rows_turn
		WHERE workspace_id = ?1 AND broadcast_id = ?2 AND status = 'pending' AND due_at > 0 AND id > ?3 ORDER BY id LIMIT +?4) ORDER BY id`
	nextRowQuery     = `SELECT due_at` + ofTurns + ` AND due_at > 0 ORDER BY due_at, id LIMIT 1`
	claimedRowsQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows INDEXED BY broadcast_rows_claimed WHERE workspace_id = ? AND broadcast_id = ? AND status IN ('sending', 'in_doubt') AND status = ? AND id > ? ORDER BY id LIMIT +?`
	newestOfQuery    = `SELECT key FROM attempts INDEXED BY attempts_broadcast WHERE workspace_id = ? AND broadcast_id = ? AND created_at >= ? ORDER BY id DESC LIMIT +?`
	claimTimesQuery  = `SELECT created_at FROM attempts INDEXED BY attempts_broadcast WHERE workspace_id = ? AND broadcast_id = ? AND created_at >= ? ORDER BY id DESC LIMIT +?`
	byContactQuery   = `SELECT ` + rowColumns + ` FROM broadcast_rows INDEXED BY broadcast_rows_contact WHERE workspace_id = ? AND contact_id = ?`
	byNumberQuery    = `SELECT ` + rowColumns + ` FROM broadcast_rows INDEXED BY broadcast_rows_number WHERE workspace_id = ? AND number = ? AND number <> ''`
	inBroadcast      = ` AND broadcast_id = ?`
	rowBeforeQuery   = `SELECT ` + rowColumns + ` FROM broadcast_rows INDEXED BY broadcast_rows_sent WHERE workspace_id = ?1 AND sent_at > 0 AND contact_id = coalesce(?2, (SELECT contact_id FROM conversations WHERE workspace_id = ?1 AND id = ?3))
		AND channel_id = ?4 AND sent_at < ?5 ORDER BY sent_at DESC LIMIT 1`
	ofMessageQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows INDEXED BY broadcast_rows_message WHERE workspace_id = ? AND message_id = ?`
	putRowQuery    = `INSERT OR REPLACE INTO broadcast_rows (workspace_id, ` + rowColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	addCountQuery  = `INSERT INTO broadcast_counts (workspace_id, broadcast_id, share, status, reason, code, title, n) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, broadcast_id, share, status, reason, code) DO UPDATE SET n = n + excluded.n, title = excluded.title`
	toCancelQuery    = `SELECT ` + rowColumns + ofTurns + ` LIMIT +?`
	dropRowQuery     = `DELETE FROM broadcast_rows WHERE workspace_id = ? AND broadcast_id = ? AND id = ?`
	dropNumbersQuery = `DELETE FROM broadcast_numbers WHERE workspace_id = ?1 AND broadcast_id = ?2 AND hash IN (SELECT hash FROM broadcast_numbers WHERE workspace_id = ?1 AND broadcast_id = ?2 LIMIT +?3)`
	takeNumberQuery  = `INSERT INTO broadcast_numbers (workspace_id, broadcast_id, hash, row_id) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET row_id = excluded.row_id`
	takenQuery       = `SELECT n.row_id, r.status FROM broadcast_numbers n
		LEFT JOIN broadcast_rows r ON r.workspace_id = n.workspace_id AND r.broadcast_id = n.broadcast_id AND r.id = n.row_id
		WHERE n.workspace_id = ? AND n.broadcast_id = ? AND n.hash = ?`
	claimedForQuery = `SELECT id, status FROM broadcast_rows INDEXED BY broadcast_rows_contact WHERE workspace_id = ? AND contact_id = ? AND broadcast_id = ? AND attempt_id IS NOT NULL`
	openWithQuery   = `SELECT 1 FROM conversations WHERE workspace_id = ? AND channel_id = ? AND contact_id = ? AND status = 'open'`
	placeQuery      = `SELECT seq, tag FROM broadcast_places WHERE workspace_id = ?`
	beginPlaceQuery = `INSERT INTO broadcast_places (workspace_id, seq, tag) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	movePlaceQuery  = `UPDATE broadcast_places SET seq = ?, tag = ? WHERE workspace_id = ? AND seq = ? AND tag = ?`
	moveRowsQuery   = `UPDATE broadcast_rows SET contact_id = ? WHERE workspace_id = ? AND contact_id = ? RETURNING broadcast_id, id`
	returnRowQuery  = `UPDATE broadcast_rows SET contact_id = ? WHERE workspace_id = ? AND broadcast_id = ? AND id = ? AND contact_id IS NOT NULL`
)

func readBroadcast(s *stmt) *desk.Broadcast {
	id, state, ended, size, driven := s.readID(), desk.BroadcastState(s.readText()), s.readTime(), s.readInt(), s.readTime()
	b := &desk.Broadcast{}
	s.readJSON(b)
	b.ID, b.State, b.EndedAt, b.Rows, b.DrivenAt = id, state, ended, size, driven
	return b
}

func readRow(s *stmt) *desk.BroadcastRow {
	r := &desk.BroadcastRow{
		Broadcast: s.readID(), ID: s.readID(), Contact: s.readID(), Number: s.readText(), To: s.readText(),
		Status: desk.RowStatus(s.readText()), Reason: desk.RowReason(s.readText()),
	}
	s.readJSON(&r.Failure)
	r.Attempt, r.Message, r.Conversation, r.At, r.DueAt = s.readID(), s.readID(), s.readID(), s.readTime(), s.readTime()
	r.SentAt, r.Channel = s.readTime(), s.readID()
	s.readJSON(&r.Data)
	return r
}

// withCounts reads the counts of broadcasts.
func withCounts(c conn, ws desk.ID, list ...*desk.Broadcast) error {
	for _, b := range list {
		b.Counts = &desk.BroadcastCounts{}
		rows := c.stmt(countsQuery).id(ws).id(b.ID)
		for rows.next() {
			k := desk.RowKey{Status: desk.RowStatus(rows.readText()), Reason: desk.RowReason(rows.readText()), Code: rows.readInt(), Title: rows.readText()}
			b.Counts.Add(k, rows.readInt())
		}
		if err := rows.done(); err != nil {
			return failed("counts of broadcasts", err)
		}
	}
	return nil
}

// Broadcast returns a broadcast with its counts, or nil.
func (s *Store) Broadcast(ctx context.Context, ws, id desk.ID) (b *desk.Broadcast, err error) {
	err = s.read(ctx, 2*pointRead, func(c conn) error {
		return c.snapshot(func() error {
			b, err = one("broadcast", c.stmt(broadcastQuery).id(ws).id(id), readBroadcast)
			if b == nil || b.State == desk.BroadcastDeleted || err != nil {
				b = nil
				return err
			}
			return withCounts(c, ws, b)
		})
	})
	return b, err
}

// Broadcasts returns a page of broadcasts, newest first.
func (s *Store) Broadcasts(ctx context.Context, ws desk.ID, state desk.BroadcastState, before *desk.ID, limit int) (list []*desk.Broadcast, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	err = s.read(ctx, int64(2*pointRead*limit), func(c conn) error {
		return c.snapshot(func() error {
			list, next = nil, nil
			rows := c.stmt(broadcastsQuery).id(ws).id(*before)
			if state != "" {
				rows = c.stmt(broadcastsInQuery).id(ws).id(*before).text(string(state))
			}
			rows = rows.int(int64(limit) + 1)
			size := desk.NewPageSize(limit)
			for next == nil && rows.next() {
				if b := readBroadcast(&rows); size.Add(b.ListBytes()) {
					list = append(list, b)
				} else {
					next = &list[len(list)-1].ID
				}
			}
			if err := rows.done(); err != nil {
				return failed("broadcasts", err)
			}
			return withCounts(c, ws, list...)
		})
	})
	return list, next, err
}

// BroadcastsDue returns the workspaces that the driver has to look at.
func (s *Store) BroadcastsDue(ctx context.Context) (due map[desk.ID]time.Duration, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		due = map[desk.ID]time.Duration{}
		rows := c.stmt(broadcastsDueQuery)
		for rows.next() {
			ws, at := rows.readID(), rows.readTime()
			due[ws] = time.Duration(max(0, at-s.now())) * time.Millisecond
		}
		return failed("due broadcasts", rows.done())
	})
	return due, err
}

// DueBroadcasts returns the broadcasts of a workspace that the driver has to look at.
func (s *Store) DueBroadcasts(ctx context.Context, ws desk.ID, limit int) (list []*desk.Broadcast, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		list, err = all("due broadcasts", c.stmt(dueBroadcastsQuery).id(ws).int(int64(limit)), readBroadcast)
		return err
	})
	return list, err
}

// EndedBroadcasts returns broadcasts that ended before a moment and have rows.
func (s *Store) EndedBroadcasts(ctx context.Context, ws desk.ID, before desk.Time, limit int) (list []desk.ID, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		list, err = all("ended broadcasts", c.stmt(endedBroadcasts).id(ws).time(before).int(int64(limit)), (*stmt).readID)
		return err
	})
	return list, err
}

// BroadcastRows returns a page of rows.
func (s *Store) BroadcastRows(ctx context.Context, ws, broadcast desk.ID, f desk.RowFilter, after desk.ID, limit int) (list []*desk.BroadcastRow, next *desk.ID, err error) {
	err = s.read(ctx, int64(pointRead+limit/4), func(c conn) error {
		rows := c.stmt(rowsQuery).id(ws).id(broadcast).id(after)
		if f.Contact != nil {
			rows = c.stmt(rowsOfQuery).id(ws).id(broadcast).id(after).id(*f.Contact)
		}
		rows = rows.int(int64(stored.RowsToRead(f, limit)))
		page := stored.RowPage{Filter: f, Size: desk.NewPageSize(limit)}
		for rows.next() && page.Add(readRow(&rows)) {
		}
		list, next = page.List, page.Next
		return failed("rows of a broadcast", rows.done())
	})
	return list, next, err
}

func (s *Store) rows(ctx context.Context, doing string, cost int, query func(conn) stmt) (list []*desk.BroadcastRow, err error) {
	err = s.read(ctx, int64(pointRead+cost/4), func(c conn) error {
		list, err = all(doing, query(c), readRow)
		return err
	})
	return list, err
}

// PendingRows returns pending rows, in order.
func (s *Store) PendingRows(ctx context.Context, ws, broadcast desk.ID, again bool, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	return s.rows(ctx, "pending rows", limit, func(c conn) stmt {
		if again {
			return c.stmt(againQuery).id(ws).id(broadcast).time(s.now()).id(after).int(int64(limit))
		}
		return c.stmt(pendingQuery).id(ws).id(broadcast).id(after).int(int64(limit))
	})
}

// WaitingRows returns pending rows that wait for their time, in order.
func (s *Store) WaitingRows(ctx context.Context, ws, broadcast, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	return s.rows(ctx, "waiting rows", limit, func(c conn) stmt {
		return c.stmt(waitingQuery).id(ws).id(broadcast).id(after).int(int64(limit))
	})
}

// NextRow is when the first pending row that waits is due.
func (s *Store) NextRow(ctx context.Context, ws, broadcast desk.ID) (at desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		at, err = one("next row", c.stmt(nextRowQuery).id(ws).id(broadcast), (*stmt).readTime)
		return err
	})
	return at, err
}

// ClaimedRows returns rows that are being sent, or are in doubt.
func (s *Store) ClaimedRows(ctx context.Context, ws, broadcast desk.ID, status desk.RowStatus, after desk.ID, limit int) ([]*desk.BroadcastRow, error) {
	return s.rows(ctx, "claimed rows", limit, func(c conn) stmt {
		return c.stmt(claimedRowsQuery).id(ws).id(broadcast).text(string(status)).id(after).int(int64(limit))
	})
}

// NewestClaims returns the rows of the newest attempts.
func (s *Store) NewestClaims(ctx context.Context, ws, broadcast desk.ID, since desk.Time, limit int) (list []*desk.BroadcastRow, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		return c.snapshot(func() error {
			list = nil
			keys, err := all("newest attempts of a broadcast", c.stmt(newestOfQuery).id(ws).id(broadcast).time(since).int(int64(limit)), (*stmt).readText)
			if err != nil {
				return err
			}
			seen := map[desk.ID]bool{}
			for _, key := range keys {
				id, known := stored.RowKeyOf(key)
				if !known || seen[id] {
					continue
				}
				seen[id] = true
				r, err := one("row", c.stmt(rowQuery).id(ws).id(broadcast).id(id), readRow)
				if err != nil {
					return err
				}
				if r != nil {
					list = append(list, r)
				}
			}
			return nil
		})
	})
	return list, err
}

// ClaimTimes returns when the newest attempts were made, oldest first.
func (s *Store) ClaimTimes(ctx context.Context, ws, broadcast desk.ID, since desk.Time, limit int) (list []desk.Time, err error) {
	err = s.read(ctx, int64(pointRead+limit/4), func(c conn) error {
		list, err = all("times of claims", c.stmt(claimTimesQuery).id(ws).id(broadcast).time(since).int(int64(limit)), (*stmt).readTime)
		slices.Reverse(list)
		return err
	})
	return list, err
}

// RowFacts answers questions about people of a broadcast.
func (s *Store) RowFacts(ctx context.Context, ws desk.ID, q store.RowQuestion) (facts store.RowFacts, err error) {
	err = s.read(ctx, int64(pointRead*(1+len(q.Contacts)+len(q.Numbers))), func(c conn) error {
		return c.snapshot(func() error {
			facts, err = rowFacts(c, ws, q)
			return err
		})
	})
	return facts, err
}

func readClaim(s *stmt) desk.RowClaim {
	return desk.RowClaim{Row: s.readID(), Status: desk.RowStatus(s.readText())}
}

func rowFacts(c conn, ws desk.ID, q store.RowQuestion) (store.RowFacts, error) {
	facts := store.NewRowFacts()
	for _, id := range q.Contacts {
		claims, err := all("claims for a contact", c.stmt(claimedForQuery).id(ws).id(id).id(q.Broadcast), readClaim)
		if err != nil {
			return facts, err
		}
		if claims != nil {
			facts.Claimed[id] = claims
		}
		open, err := one("open conversation", c.stmt(openWithQuery).id(ws).id(q.Channel).id(id), func(*stmt) bool { return true })
		if err != nil {
			return facts, err
		}
		if open {
			facts.Open[id] = true
		}
	}
	for _, h := range q.Numbers {
		by, err := one("number", c.stmt(takenQuery).id(ws).id(q.Broadcast).bytes(h[:]), readClaim)
		if err != nil {
			return facts, err
		}
		if !by.Row.IsZero() {
			facts.Taken[h] = by
		}
	}
	for _, h := range q.Choices {
		o, err := optOut(c, ws, h)
		if err != nil {
			return facts, err
		}
		facts.Choices[h] = o
	}
	return facts, nil
}

// RowsOfMessages returns the rows whose messages have these ids.
func (s *Store) RowsOfMessages(ctx context.Context, ws desk.ID, messages []desk.ID) (list []*desk.BroadcastRow, err error) {
	err = s.read(ctx, int64(pointRead*len(messages)), func(c conn) error {
		list = nil
		for _, id := range messages {
			found, err := all("row of a message", c.stmt(ofMessageQuery).id(ws).id(id), readRow)
			if err != nil {
				return err
			}
			list = append(list, found...)
		}
		return nil
	})
	return list, err
}

// RowsBefore returns the rows of the newest messages before.
func (s *Store) RowsBefore(ctx context.Context, ws desk.ID, places []store.TalkPlace) (list []*desk.BroadcastRow, err error) {
	err = s.read(ctx, int64(2*pointRead*len(places)), func(c conn) error {
		list = make([]*desk.BroadcastRow, len(places))
		for i, p := range places {
			row := c.stmt(rowBeforeQuery).id(ws).idOrNull(p.Contact).id(p.Conversation).id(p.Channel).time(p.At)
			if list[i], err = one("row before", row, readRow); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

func readEventPlace(s *stmt) *desk.EventPlace {
	return &desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}
}

// BroadcastPlaces returns up to which event deliveries were followed.
func (s *Store) BroadcastPlaces(ctx context.Context, of []desk.ID) (places map[desk.ID]desk.EventPlace, err error) {
	err = s.read(ctx, int64(pointRead*len(of)), func(c conn) error {
		places = map[desk.ID]desk.EventPlace{}
		for _, ws := range of {
			place, err := one("place of deliveries", c.stmt(placeQuery).id(ws), readEventPlace)
			if err != nil {
				return err
			}
			if place != nil {
				places[ws] = *place
			}
		}
		return nil
	})
	return places, err
}

func (t *tx) Broadcast(id desk.ID) (*desk.Broadcast, error) {
	return one("broadcast", t.c.stmt(broadcastQuery).id(t.ws).id(id), readBroadcast)
}

func (t *tx) BroadcastToClaim(id, driver desk.ID) (b *desk.Broadcast, driven bool, err error) {
	if b, err = t.Broadcast(id); err == nil {
		_, driven, err = t.Leased(desk.BroadcastTask, driver)
	}
	return b, driven, err
}

func (t *tx) PutBroadcast(b *desk.Broadcast) error {
	put := t.c.stmt(putBroadcastQuery).id(t.ws).id(b.ID).text(string(b.State))
	if at, has := b.Due(); has {
		put = put.time(at)
	} else {
		put = put.null()
	}
	return failed("store broadcast", put.time(b.EndedAt).int(b.Rows).time(b.DrivenAt).json(stored.BodyOf(b)).idOrNull(b.Holds()).run())
}

func (t *tx) DropBroadcast(id desk.ID) error {
	if err := t.c.stmt(dropCountsQuery).id(t.ws).id(id).run(); err != nil {
		return failed("drop counts", err)
	}
	return failed("drop broadcast", t.c.stmt(dropBroadcastQuery).id(t.ws).id(id).run())
}

func (t *tx) BroadcastUse() (store.BroadcastUse, error) {
	return one("use of broadcasts", t.c.stmt(broadcastUseQuery).id(t.ws), func(s *stmt) store.BroadcastUse {
		return store.BroadcastUse{Running: int(s.readInt()), Active: int(s.readInt()), Planned: int(s.readInt()), Rows: s.readInt()}
	})
}

func (t *tx) RowsToChange(broadcast desk.ID, ids []desk.ID) (map[desk.ID]*desk.BroadcastRow, error) {
	byID := map[desk.ID]*desk.BroadcastRow{}
	for _, id := range ids {
		r, err := one("row", t.c.stmt(rowQuery).id(t.ws).id(broadcast).id(id), readRow)
		if err != nil {
			return nil, err
		}
		if r != nil {
			byID[id] = r
		}
	}
	return byID, nil
}

func (t *tx) SameRows(broadcast desk.ID, contacts []desk.ID, numbers []string) (list []*desk.BroadcastRow, err error) {
	known := map[desk.ID]bool{}
	add := func(rows stmt) error {
		found, err := all("rows of the same people", rows, readRow)
		for _, r := range found {
			if !known[r.ID] {
				known[r.ID] = true
				list = append(list, r)
			}
		}
		return err
	}
	for _, id := range contacts {
		if err := add(t.c.stmt(byContactQuery + inBroadcast).id(t.ws).id(id).id(broadcast)); err != nil {
			return nil, err
		}
	}
	for _, number := range numbers {
		if err := add(t.c.stmt(byNumberQuery + inBroadcast).id(t.ws).text(number).id(broadcast)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (t *tx) PutRows(broadcast desk.ID, rows []store.RowChange) error {
	return putRows(t.c, t.ws, broadcast, rows)
}

func putRows(c conn, ws, broadcast desk.ID, rows []store.RowChange) error {
	for _, change := range stored.SortRows(rows) {
		r := change.Row
		if err := c.stmt(putRowQuery).id(ws).id(broadcast).id(r.ID).idOrNull(r.Contact).text(r.Number).text(r.To).text(string(r.Status)).text(string(r.Reason)).json(r.Failure).
			idOrNull(r.Attempt).idOrNull(r.Message).idOrNull(r.Conversation).time(r.At).time(r.DueAt).time(r.SentAt).idOrNull(r.Channel).json(r.Data).run(); err != nil {
			return failed("store row", err)
		}
	}
	return addCounts(c, ws, broadcast, stored.CountsOf(rows))
}

func addCounts(c conn, ws, broadcast desk.ID, list []stored.Counted) error {
	for _, n := range list {
		if err := c.stmt(addCountQuery).id(ws).id(broadcast).int(n.Share).text(string(n.Status)).text(string(n.Reason)).int(n.Code).text(n.Title).int(n.N).run(); err != nil {
			return failed("count rows", err)
		}
	}
	return nil
}

func (t *tx) CancelRows(broadcast desk.ID, at desk.Time, limit int) (int, error) {
	rows, err := all("rows to cancel", t.c.stmt(toCancelQuery).id(t.ws).id(broadcast).int(int64(limit)), readRow)
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
	rows, err := all("rows to drop", t.c.stmt(rowsQuery).id(t.ws).id(broadcast).id(desk.ID{}).int(int64(limit)), readRow)
	if err != nil {
		return 0, err
	}
	changes := make([]store.RowChange, len(rows))
	for i, r := range rows {
		changes[i] = store.RowChange{Row: r}
		if err := t.c.stmt(dropRowQuery).id(t.ws).id(broadcast).id(r.ID).run(); err != nil {
			return 0, failed("drop row", err)
		}
	}
	if !counted {
		return len(rows), nil
	}
	return len(rows), addCounts(t.c, t.ws, broadcast, stored.CountsWithout(changes))
}

func (t *tx) DropNumbers(broadcast desk.ID, limit int) (int, error) {
	err := t.c.stmt(dropNumbersQuery).id(t.ws).id(broadcast).int(int64(limit)).run()
	return t.c.Changes(), failed("drop numbers", err)
}

func (t *tx) TakeNumbers(broadcast, row desk.ID, list []store.NumberHash, passed map[store.NumberHash]desk.ID) (bool, error) {
	for _, h := range list {
		by, err := one("number", t.c.stmt(takenQuery).id(t.ws).id(broadcast).bytes(h[:]), readClaim)
		if err != nil || !by.Row.IsZero() && by.Row != row && by.Row != passed[h] {
			return false, err
		}
	}
	for _, h := range list {
		if err := t.c.stmt(takeNumberQuery).id(t.ws).id(broadcast).bytes(h[:]).id(row).run(); err != nil {
			return false, failed("take number", err)
		}
	}
	return true, nil
}

func (t *tx) RowFacts(q store.RowQuestion) (store.RowFacts, error) { return rowFacts(t.c, t.ws, q) }

func (t *tx) BeginBroadcasts() error {
	f := &feed{s: t.s, c: t.c, ws: t.ws}
	_, newest, err := f.Ends()
	if err != nil {
		return err
	}
	return failed("place of deliveries", t.c.stmt(beginPlaceQuery).id(t.ws).int(newest.Seq).int(newest.Tag).run())
}

func (t *tx) MoveBroadcasts(from, to desk.EventPlace) (bool, error) {
	err := t.c.stmt(movePlaceQuery).int(to.Seq).int(to.Tag).id(t.ws).int(from.Seq).int(from.Tag).run()
	return err == nil && t.c.Changes() > 0, failed("move place of deliveries", err)
}

func (t *tx) MoveRows(from, to desk.ID) ([]store.RowRef, error) {
	return all("move rows", t.c.stmt(moveRowsQuery).id(to).id(t.ws).id(from), func(s *stmt) store.RowRef {
		return store.RowRef{Broadcast: s.readID(), Row: s.readID()}
	})
}

func (t *tx) ReturnRows(rows []store.RowRef, to desk.ID) error {
	for _, ref := range rows {
		if err := t.c.stmt(returnRowQuery).id(to).id(t.ws).id(ref.Broadcast).id(ref.Row).run(); err != nil {
			return failed("return row", err)
		}
	}
	return nil
}

// eraseRows removes the data of deleted contacts from rows of broadcasts.
func eraseRows(c conn, ws desk.ID, deleted []*desk.Contact) error {
	for _, d := range deleted {
		rows, err := all("rows to erase", c.stmt(byContactQuery).id(ws).id(d.ID), readRow)
		if err != nil {
			return err
		}
		for _, number := range d.Numbers() {
			more, err := all("rows to erase", c.stmt(byNumberQuery).id(ws).text(number), readRow)
			if err != nil {
				return err
			}
			for _, r := range more {
				if !slices.ContainsFunc(rows, func(known *desk.BroadcastRow) bool { return known.ID == r.ID }) {
					rows = append(rows, r)
				}
			}
		}
		for _, r := range rows {
			change := store.Change(r)
			chose := r.Data.Reply.ChosenAt > 0
			r.Erase(c.forgets.now())
			if err := putRows(c, ws, r.Broadcast, []store.RowChange{change}); err != nil {
				return err
			}
			if chose { // the title of a button that nobody else tapped
				if err := c.stmt(dropChoicesQuery).id(ws).id(r.Broadcast).run(); err != nil {
					return failed("drop choices", err)
				}
			}
		}
	}
	return nil
}
