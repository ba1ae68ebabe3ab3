package sqlite

import (
	"context"
	"slices"
	"strings"

	"parley/desk"
	"parley/store/internal/stored"
)

const (
	putHistoryPlaceQuery = `INSERT OR REPLACE INTO history_places (workspace_id, seq, tag) VALUES (?, ?, ?)`
	thereQuery           = `SELECT 1 FROM contacts WHERE workspace_id = ?1 AND id = ?2
		UNION ALL SELECT 1 FROM merges INDEXED BY merges_from WHERE workspace_id = ?1 AND from_id = ?2 AND survivor_id IS NOT NULL`
	putHistoryQuery = `INSERT OR IGNORE INTO history (workspace_id, contact_id, seq, tag, at, kind, actor_kind, actor_id, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// The parameter ?3 is how many changes stay.
	trimHistoryQuery = `DELETE FROM history WHERE workspace_id = ?1 AND contact_id = ?2 AND kind <> '` + string(desk.ContactCreated) + `' AND seq <=
		(SELECT seq FROM history WHERE workspace_id = ?1 AND contact_id = ?2 AND kind <> '` + string(desk.ContactCreated) + `' ORDER BY seq DESC LIMIT 1 OFFSET ?3)`
	historyQuery = `SELECT seq, tag, at, kind, actor_kind, actor_id, changed FROM history
		WHERE workspace_id = ? AND contact_id = ? AND seq < ? ORDER BY seq DESC LIMIT +?`
)

// hasHistory tells whether a contact's history is kept: the contact must exist,
// or be part of one that does.
func hasHistory(c conn, ws, contact desk.ID) (bool, error) {
	return one("contact", c.stmt(thereQuery).id(ws).id(contact), func(*stmt) bool { return true })
}

// putHistory adds events to the history of their contacts.
func putHistory(c conn, ws desk.ID, events []desk.FeedEvent) error {
	kept := map[desk.ID]bool{}
	changed := map[desk.ID]bool{}
	for i := range events {
		e := &events[i]
		_, contact := e.Of()
		there, known := kept[contact]
		if !known {
			var err error
			if there, err = hasHistory(c, ws, contact); err != nil {
				return err
			}
			kept[contact] = there
		}
		if !there {
			continue
		}
		changed[contact] = changed[contact] || e.Type != desk.ContactCreated
		if err := c.stmt(putHistoryQuery).id(ws).id(contact).int(e.Place.Seq).int(e.Place.Tag).time(e.At).text(string(e.Type)).
			text(string(e.Actor.Kind)).id(e.Actor.ID).text(strings.Join(e.Changed, ",")).run(); err != nil {
			return err
		}
	}
	for contact, trim := range changed {
		if !trim { // it is new
			continue
		}
		if err := c.stmt(trimHistoryQuery).id(ws).id(contact).int(desk.MaxHistory).run(); err != nil {
			return err
		}
	}
	return nil
}

// History returns events of the history of contacts, newest first.
func (s *Store) History(ctx context.Context, ws desk.ID, contacts []desk.ID, before int64, limit int) (list []desk.FeedEvent, err error) {
	err = s.read(ctx, int64(pointRead*len(contacts)), func(c conn) error {
		list = nil
		for _, contact := range contacts {
			of, err := all("history", c.stmt(historyQuery).id(ws).id(contact).int(stored.Before(before)).int(int64(limit)), func(s *stmt) desk.FeedEvent {
				e := desk.FeedEvent{Place: desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}}
				e.At, e.Type, e.Subject = s.readTime(), desk.EventType(s.readText()), contact
				e.Actor = desk.Actor{Kind: desk.ActorKind(s.readText()), ID: s.readID()}
				e.Changed = stored.Words(s.readText())
				return e
			})
			if err != nil {
				return err
			}
			list = append(list, of...)
		}
		slices.SortFunc(list, stored.NewestFirst)
		list = list[:min(limit, len(list))]
		return nil
	})
	return list, err
}
