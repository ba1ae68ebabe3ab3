package sqlite

import (
	"context"
	"time"

	"parley/desk"
)

const (
	callbackQuery = `SELECT body FROM callbacks WHERE workspace_id = ? AND received_at = ? AND id = ?`
	// If the callback is gone, the people whom it names are not stored.
	putCallbackPeopleQuery = `INSERT INTO callback_people (workspace_id, value, received_at, id) SELECT ?1, j.value, ?2, ?3 FROM json_each(?4) j
	WHERE EXISTS (SELECT 1 FROM callbacks WHERE workspace_id = ?1 AND received_at = ?2 AND id = ?3) ON CONFLICT DO NOTHING`
)

var newestCallbackQuery = `SELECT ` + newestCallback("?1", "?2")

// newestCallback returns an expression for the time of a channel's newest callback, even
// if the callback was deleted.
func newestCallback(ws, channel string) string {
	of := ` WHERE workspace_id = ` + ws + ` AND channel_id = ` + channel
	return `max(coalesce((SELECT received_at FROM callbacks` + of + ` ORDER BY received_at DESC LIMIT 1), 0), coalesce((SELECT called_at FROM channel_signs` + of + `), 0))`
}

func (t *tx) PutCallback(n desk.InboundItem) error {
	t.s.frames += len(n.Body) / pageSize // a callback takes far more pages than other rows
	return failed("store callback", t.c.stmt(`REPLACE INTO callbacks (workspace_id, received_at, id, channel_id, body) VALUES (?, ?, ?, ?, ?)`).
		id(t.ws).time(n.ReceivedAt).id(n.ID).id(n.Channel).bytes(n.Body).run())
}

// EraseCallback also asks for a scrub, which clears copies of the body in pages.
func (t *tx) EraseCallback(n desk.InboundItem) error {
	n.Body = nil
	if err := t.PutCallback(n); err != nil {
		return err
	}
	return wantScrub(t.c)
}

func (t *tx) Callback(n desk.InboundItem) ([]byte, error) {
	return one("callback", t.c.stmt(callbackQuery).id(t.ws).time(n.ReceivedAt).id(n.ID), func(s *stmt) []byte {
		if body := s.readBlob(); body != nil {
			return body
		}
		return []byte{} // the callback exists, and is empty
	})
}

func (t *tx) PutCallbackPeople(n desk.InboundItem, people []string) error {
	if len(people) == 0 {
		return nil
	}
	return failed("store whom a callback tells of", t.c.stmt(putCallbackPeopleQuery).id(t.ws).time(n.ReceivedAt).id(n.ID).json(people).run())
}

// NewestCallback returns when the newest callback of a channel came, 0 for none.
func (s *Store) NewestCallback(ctx context.Context, ws, channel desk.ID) (at desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		at, err = one("newest callback", c.stmt(newestCallbackQuery).id(ws).id(channel), (*stmt).readTime)
		return err
	})
	return at, err
}

// outdated is a subquery that selects the callbacks for ForgetCallbacks to delete.
const outdated = ` (SELECT w.received_at, w.id FROM callbacks w WHERE w.workspace_id = ?1 AND w.received_at < ?2
	AND NOT EXISTS (SELECT 1 FROM inbound_items n WHERE n.workspace_id = ?1 AND n.received_at > 0 AND n.received_at = w.received_at AND n.id = w.id)
	ORDER BY w.received_at, w.id LIMIT +?3)`

const (
	forgetCallbackPeopleQuery = `DELETE FROM callback_people WHERE workspace_id = ?1 AND (received_at, id) IN` + outdated
	forgetCallbacksQuery      = `DELETE FROM callbacks WHERE workspace_id = ?1 AND (received_at, id) IN` + outdated + ` RETURNING channel_id, received_at`
)

// ForgetCallbacks deletes up to limit processed callbacks of a workspace that are older
// than age, the oldest first. With each callback it deletes the list of the people whom
// the callback names.
func (s *Store) ForgetCallbacks(ctx context.Context, ws desk.ID, age time.Duration, limit int) (n int, err error) {
	err = s.write(ctx, func(c conn) error {
		before := s.now() - desk.Time(age.Milliseconds())
		if err := c.stmt(forgetCallbackPeopleQuery).id(ws).time(before).int(int64(limit)).run(); err != nil {
			return failed("forget callbacks", err)
		}
		n, err = deleteCallbacks(c, ws, c.stmt(forgetCallbacksQuery).id(ws).time(before).int(int64(limit)))
		return failed("forget callbacks", err)
	})
	return n, err
}

const noteCallQuery = `INSERT INTO channel_signs (workspace_id, channel_id, called_at) VALUES (?, ?, ?)
	ON CONFLICT DO UPDATE SET called_at = max(called_at, excluded.called_at)`

// deleteCallbacks runs a statement that deletes callbacks. It stores the time of the
// newest callback of each channel, because this time is kept longer than the callbacks.
func deleteCallbacks(c conn, ws desk.ID, rows stmt) (n int, err error) {
	newest := map[desk.ID]desk.Time{}
	for ; rows.next(); n++ {
		channel := rows.readID()
		newest[channel] = max(newest[channel], rows.readTime())
	}
	err = rows.done()
	for channel, at := range newest {
		if err == nil {
			err = c.stmt(noteCallQuery).id(ws).id(channel).time(at).run()
		}
	}
	return n, err
}

// told is a subquery that selects the processed callbacks in which any of the people is
// named.
const told = ` (SELECT p.received_at, p.id FROM json_each(?2) j CROSS JOIN callback_people p ON p.workspace_id = ?1 AND p.value = j.value
	WHERE NOT EXISTS (SELECT 1 FROM inbound_items n WHERE n.workspace_id = ?1 AND n.received_at > 0 AND n.received_at = p.received_at AND n.id = p.id))`

const (
	eraseCallbacksQuery      = `DELETE FROM callbacks WHERE workspace_id = ?1 AND (received_at, id) IN` + told + ` RETURNING channel_id, received_at`
	eraseCallbackPeopleQuery = `DELETE FROM callback_people WHERE workspace_id = ?1 AND (received_at, id) IN` + told
	eraseStatusesQuery       = `DELETE FROM early_statuses INDEXED BY early_statuses_user
		WHERE workspace_id = ?1 AND user_id IN (SELECT value FROM json_each(?2)) AND user_id <> ''`
)

// eraseCallbacks deletes the callbacks and the early statuses that name deleted
// contacts.
func eraseCallbacks(c conn, ws desk.ID, deleted []*desk.Contact) error {
	people := desk.ProviderHandles(deleted)
	if people == nil {
		return nil
	}
	if _, err := deleteCallbacks(c, ws, c.stmt(eraseCallbacksQuery).id(ws).json(people)); err != nil {
		return err
	}
	if err := c.stmt(eraseCallbackPeopleQuery).id(ws).json(people).run(); err != nil {
		return err
	}
	if users := desk.UserIDs(deleted); users != nil {
		return c.stmt(eraseStatusesQuery).id(ws).json(users).run()
	}
	return nil
}
