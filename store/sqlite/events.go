package sqlite

import (
	"time"

	"context"
	"strings"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/go-json-experiment/json"
)

// eventColumns are all columns except the workspace and the number. Nodes of the
// previous release do not write subject_key, so their events are not in the feed. Events
// without a conversation leave the last three columns NULL.
const (
	eventColumns      = plainEventColumns + `, conversation_id, contact_id, message_ts`
	plainEventColumns = `at, kind, subject_id, actor_kind, actor_id, changed, subject_key`
)

// newestEventQuery selects the number of the newest event, even if the event has
// expired.
const newestEventQuery = `SELECT coalesce((SELECT seq FROM events WHERE workspace_id = ?1 ORDER BY seq DESC LIMIT 1),
	(SELECT seq FROM event_floors WHERE workspace_id = ?1), 0)`

// flushEvents numbers the events after the newest one. There is one writer at a time, so
// the numbers are in the order of commits. A counter row is not needed: it would be one
// more page to write in every commit.
func flushEvents(c conn, ws desk.ID, events []desk.Event) error {
	if len(events) == 0 {
		return nil
	}
	seq, known := c.newest[ws]
	if !known {
		row := c.stmt(newestEventQuery).id(ws)
		if row.next() {
			seq = row.readInt()
		}
		if err := row.done(); err != nil {
			return err
		}
	}
	c.newest[ws] = seq + int64(len(events))
	for len(events) > 0 {
		// Several events go into one statement, since a statement costs as much as a row.
		plain, n := isPlain(&events[0]), 1
		for n < eventsAtOnce && n < len(events) && isPlain(&events[n]) == plain {
			n++
		}
		if n < eventsAtOnce {
			n = 1
		}
		s := c.stmt(insertEvents[insertKind{plain, n}])
		for i := range events[:n] {
			e := &events[i]
			seq++
			s = s.id(ws).int(seq).time(e.At).text(string(e.Type)).id(e.Subject).text(string(e.Actor.Kind)).id(e.Actor.ID).text(strings.Join(e.Changed, ",")).text(e.Key)
			if !plain {
				s = s.idOrNull(e.Conversation).idOrNull(e.Contact).timeOrNull(e.TS)
			}
		}
		if err := s.run(); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// isPlain tells whether an event has no conversation.
func isPlain(e *desk.Event) bool {
	return e.Conversation.IsZero() && e.Contact.IsZero() && e.TS == 0
}

const (
	eventsAtOnce     = 8
	insertEventQuery = `INSERT OR FAIL INTO events (workspace_id, seq, ` + eventColumns + `) VALUES ` + eventParameters
	eventParameters  = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertPlainQuery = `INSERT OR FAIL INTO events (workspace_id, seq, ` + plainEventColumns + `) VALUES ` + plainParameters
	plainParameters  = `(?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

type insertKind struct {
	plain bool
	rows  int
}

var insertEvents = map[insertKind]string{
	{false, 1}:            insertEventQuery,
	{false, eventsAtOnce}: insertEventQuery + strings.Repeat(", "+eventParameters, eventsAtOnce-1),
	{true, 1}:             insertPlainQuery,
	{true, eventsAtOnce}:  insertPlainQuery + strings.Repeat(", "+plainParameters, eventsAtOnce-1),
}

func readEvent(s *stmt) desk.FeedEvent {
	seq := s.readInt()
	e := desk.Event{At: s.readTime(), Type: desk.EventType(s.readText()), Subject: s.readID()}
	e.Actor = desk.Actor{Kind: desk.ActorKind(s.readText()), ID: s.readID()}
	e.Changed = stored.Words(s.readText())
	e.Key, e.Conversation, e.Contact, e.TS = s.readText(), s.readID(), s.readID(), s.readTime()
	return e.Placed(seq)
}

const (
	eventFloorQuery = `SELECT seq, tag FROM event_floors WHERE workspace_id = ?`
	lastEventQuery  = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = ? ORDER BY seq DESC LIMIT 1`
	eventQuery      = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = ? AND seq = ?`
	eventsQuery     = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = ?1 AND seq > ?2 AND seq <= ?3
		AND subject_key IS NOT NULL AND kind IN (SELECT value FROM json_each(?4)) ORDER BY seq LIMIT +?5`
	eventMessageQuery = `SELECT ` + messageColumns + ` FROM messages WHERE workspace_id = ? AND conversation_id = ? AND ts = ? AND id = ?`
)

// Events returns a page of the feed.
func (s *Store) Events(ctx context.Context, ws desk.ID, q store.EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (page *store.EventPage, err error) {
	err = s.read(ctx, int64(pointRead+q.Limit), func(c conn) error {
		return c.snapshot(func() error {
			page, err = stored.ReadFeed(time.Now(), &feed{s: s, c: c, ws: ws}, q, which)
			return err
		})
	})
	return page, err
}

// A feed reads the events of a workspace in one snapshot.
type feed struct {
	s        *Store
	c        conn
	ws       desk.ID
	settings *desk.Settings
}

func (f *feed) Settings() (settings *desk.Settings, err error) {
	f.settings, err = f.s.currentSettings(f.c, f.ws)
	return f.settings, err
}

func (f *feed) Ends() (floor, newest desk.EventPlace, err error) {
	floor, err = one("event floor", f.c.stmt(eventFloorQuery).id(f.ws), func(s *stmt) desk.EventPlace {
		return desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}
	})
	if err != nil {
		return floor, newest, err
	}
	last, err := one("newest event", f.c.stmt(lastEventQuery).id(f.ws), readEvent)
	if newest = last.Place; newest.Seq == 0 {
		newest = floor
	}
	return floor, newest, err
}

func (f *feed) At(seq int64) (desk.EventPlace, error) {
	e, err := one("event", f.c.stmt(eventQuery).id(f.ws).int(seq), readEvent)
	return e.Place, err
}

func (f *feed) Scan(after, upTo int64, types []desk.EventType, limit int) ([]desk.FeedEvent, error) {
	names, err := json.Marshal(types)
	if err != nil {
		return nil, err
	}
	return all("events", f.c.stmt(eventsQuery).id(f.ws).int(after).int(upTo).text(string(names)).int(int64(limit)), readEvent)
}

// Records reads one record after the other, until the page is full.
func (f *feed) Records(page *store.EventPage) error {
	return stored.Fill(page, func(e *desk.FeedEvent) (err error) {
		conversation, contact := e.Of()
		switch e.Type.Kind() {
		case "contact":
			if _, known := page.Contacts[contact]; known {
				return nil
			}
			row := f.c.stmt(contactQuery).id(f.ws).id(contact)
			page.Contacts[contact] = nil
			if row.next() {
				row.readInt() // skips the version of the settings: it is that of the snapshot
				page.Contacts[contact] = readContact(f.c, &row, f.settings)
			}
			return failed("contact", row.done())
		case "conversation":
			if _, known := page.Conversations[conversation]; !known {
				page.Conversations[conversation], err = one("conversation", f.c.stmt(conversationQuery).id(f.ws).id(conversation), readConversation)
			}
		case "message":
			if _, known := page.Messages[e.Subject]; !known {
				page.Messages[e.Subject], err = one("message", f.c.stmt(eventMessageQuery).id(f.ws).id(conversation).time(e.TS).id(e.Subject), readMessage)
				if m := page.Messages[e.Subject]; m != nil && err == nil {
					err = attach(f.c, f.ws, []*desk.Message{m})
				}
			}
		case "send":
			if _, known := page.Attempts[e.Subject]; !known {
				var at *desk.Attempt
				at, err = one("attempt", f.c.stmt(attemptQuery).id(f.ws).id(e.Subject), readAttempt)
				page.Attempts[e.Subject] = stored.Listed(at)
			}
		case "note":
			if _, known := page.Notes[e.Subject]; !known {
				page.Notes[e.Subject], err = one("note", f.c.stmt(noteQuery).id(f.ws).id(conversation).id(e.Subject), readNote)
			}
		}
		return err
	})
}

// ofSettings is the condition for the types of desk.EventType.OfSettings. A query must
// contain it in exactly the same words as the partial index. Otherwise SQLite does not
// use the index.
const ofSettings = `(kind < 'con' OR kind >= 'k' AND kind < 'mes' OR kind >= 'po' AND kind < 'pp' OR kind >= 'sn' AND kind < 'so' OR kind >= 'w')`

const (
	eventLogQuery = `SELECT seq, ` + eventColumns + ` FROM events WHERE workspace_id = ?1 AND seq > ?2 AND seq < ?3
		AND subject_key IS NOT NULL AND kind IN (SELECT value FROM json_each(?4)) ORDER BY seq DESC LIMIT +?5`
	settingsLogQuery = `SELECT seq, ` + eventColumns + ` FROM events INDEXED BY events_settings WHERE workspace_id = ?1 AND seq > ?2 AND seq < ?3 AND ` + ofSettings + `
		AND subject_key IS NOT NULL AND kind IN (SELECT value FROM json_each(?4)) ORDER BY seq DESC LIMIT +?5`
)

// EventLog returns up to limit events of the types, newest first.
func (s *Store) EventLog(ctx context.Context, ws desk.ID, types []desk.EventType, before int64, limit int) (found []desk.FeedEvent, next int64, err error) {
	names, err := json.Marshal(types)
	if err != nil {
		return nil, 0, err
	}
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		return c.snapshot(func() error {
			found, next, err = stored.ReadLog(&feed{s: s, c: c, ws: ws}, types, before, limit, func(from, before int64, ofSettings bool) ([]desk.FeedEvent, error) {
				query := eventLogQuery
				if ofSettings {
					query = settingsLogQuery
				}
				return all("event log", c.stmt(query).id(ws).int(from).int(before).text(string(names)).int(int64(limit)+1), readEvent)
			})
			return err
		})
	})
	return found, next, err
}

const headVersionQuery = `SELECT settings_version FROM workspaces WHERE id = ? AND NOT deleted`

// Heads returns the head of each of the workspaces.
func (s *Store) Heads(ctx context.Context, list []desk.ID) (heads map[desk.ID]store.Head, err error) {
	heads = make(map[desk.ID]store.Head, len(list))
	err = s.read(ctx, int64(len(list)), func(c conn) error {
		for _, ws := range list {
			head := store.Head{}
			if head.Settings, err = one("workspace", c.stmt(headVersionQuery).id(ws), (*stmt).readInt); err != nil || head.Settings == 0 {
				continue
			}
			if head.Event, err = one("newest event", c.stmt(newestEventQuery).id(ws), (*stmt).readInt); err != nil {
				return err
			}
			heads[ws] = head
		}
		return err
	})
	return heads, err
}

// newestEventsQuery is newestEventQuery for all workspaces.
const newestEventsQuery = `SELECT w.id, coalesce((SELECT seq FROM events e WHERE e.workspace_id = w.id ORDER BY seq DESC LIMIT 1),
	(SELECT seq FROM event_floors f WHERE f.workspace_id = w.id), 0) FROM workspaces w WHERE NOT w.deleted`

// NewestEvents returns the number of the newest event of each workspace, or nothing if
// nobody has written to the file since the mark. The mark is SQLite's counter of changes
// that other connections have made, here of a connection that makes none.
func (s *Store) NewestEvents(ctx context.Context, since store.Mark) (newest map[desk.ID]int64, mark store.Mark, err error) {
	version, err := s.watcher.version()
	if err != nil || store.Mark(version) == since {
		return nil, since, err
	}
	newest = map[desk.ID]int64{}
	err = s.read(ctx, pointRead, func(c conn) error {
		row := c.stmt(newestEventsQuery)
		for row.next() {
			newest[row.readID()] = row.readInt()
		}
		s.touched.Add(int64(len(newest)))
		return failed("newest events", row.done())
	})
	return newest, store.Mark(version), err
}
