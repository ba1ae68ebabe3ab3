package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

// The records of a page of events are read in the order of the events, up to the size of
// a page. The queries whose names end in Listed are for events that were read before.
// Those whose names end in Found contain the scan of the events, to save a round trip.
// The planner can't dissolve a subquery with OFFSET 0, so each record is looked up by its
// key, whatever number of rows the planner expects.
const (
	eventsScan = `(SELECT seq, kind, subject_id, conversation_id, message_ts FROM events WHERE workspace_id = $1 AND seq > $2 AND seq <= $3
		AND subject_key IS NOT NULL AND kind = ANY($4) ORDER BY seq LIMIT $5) e`

	contactsListed = `unnest($2::uuid[]) WITH ORDINALITY u (i, n)`
	contactsFound  = `(SELECT subject_id AS i, row_number() OVER (ORDER BY min(seq)) AS n FROM ` + eventsScan + ` WHERE kind LIKE 'contact.%' GROUP BY subject_id) u`

	messagesListed = `unnest($2::uuid[], $3::bigint[], $4::uuid[]) WITH ORDINALITY u (c, t, i, n)`
	messagesFound  = `(SELECT c, t, i, row_number() OVER (ORDER BY seq) AS n FROM (SELECT DISTINCT ON (subject_id) conversation_id AS c, message_ts AS t, subject_id AS i, seq
		FROM ` + eventsScan + ` WHERE kind LIKE 'message.%' ORDER BY subject_id, seq) d) u`

	conversationsListed = `unnest($2::uuid[]) u (i)`
	conversationsFound  = `(SELECT DISTINCT subject_id AS i FROM ` + eventsScan + ` WHERE kind LIKE 'conversation.%') u`

	notesListed = `unnest($2::uuid[], $3::uuid[]) u (c, i)`
	notesFound  = `(SELECT DISTINCT conversation_id AS c, subject_id AS i FROM ` + eventsScan + ` WHERE kind LIKE 'note.%') u`

	attemptsListed = `unnest($2::uuid[]) u (i)`
	attemptsFound  = `(SELECT DISTINCT subject_id AS i FROM ` + eventsScan + ` WHERE kind LIKE 'send.%') u`
)

func eventContacts(of string) string {
	return `SELECT ` + contactColumns + `, c.n, c.there FROM (` +
		upToPage(`SELECT c.*, u.n, octet_length(note) + octet_length(attributes) + octet_length(further) AS bytes FROM `+of+
			` CROSS JOIN LATERAL (SELECT * FROM contacts WHERE workspace_id = $1 AND id = u.i OFFSET 0) c`, `n`) +
		`) c JOIN workspaces w ON w.id = $1`
}

func eventMessages(of string) string {
	return `SELECT ` + messageColumns + `, n, there FROM (` +
		upToPage(`SELECT m.*, u.n, octet_length(text) + octet_length(failure) AS bytes FROM `+of+
			` CROSS JOIN LATERAL (SELECT * FROM messages WHERE workspace_id = $1 AND conversation_id = u.c AND ts = u.t AND id = u.i OFFSET 0) m`, `n`) + `) m`
}

func eventConversations(of string) string {
	return `SELECT ` + conversationColumns + ` FROM ` + of + ` CROSS JOIN LATERAL (SELECT * FROM conversations WHERE workspace_id = $1 AND id = u.i OFFSET 0) c`
}

func eventNotes(of string) string {
	return `SELECT ` + noteColumns + ` FROM ` + of + ` CROSS JOIN LATERAL (SELECT * FROM notes WHERE workspace_id = $1 AND conversation_id = u.c AND id = u.i OFFSET 0) n`
}

func eventAttempts(of string) string {
	return `SELECT ` + attemptColumns + ` FROM ` + of + ` CROSS JOIN LATERAL (SELECT * FROM attempts WHERE workspace_id = $1 AND id = u.i OFFSET 0) a`
}

var (
	eventContactsQuery, foundContactsQuery           = eventContacts(contactsListed), eventContacts(contactsFound)
	eventMessagesQuery, foundMessagesQuery           = eventMessages(messagesListed), eventMessages(messagesFound)
	eventConversationsQuery, foundConversationsQuery = eventConversations(conversationsListed), eventConversations(conversationsFound)
	eventNotesQuery, foundNotesQuery                 = eventNotes(notesListed), eventNotes(notesFound)
	eventAttemptsQuery, foundAttemptsQuery           = eventAttempts(attemptsListed), eventAttempts(attemptsFound)

	foundMediaQuery = `SELECT ` + mediaColumns + ` FROM (SELECT DISTINCT m.media_id AS f FROM ` + messagesFound + ` CROSS JOIN LATERAL
		(SELECT media_id FROM messages WHERE workspace_id = $1 AND conversation_id = u.c AND ts = u.t AND id = u.i OFFSET 0) m WHERE m.media_id IS NOT NULL) m
		CROSS JOIN LATERAL (SELECT * FROM media WHERE workspace_id = $1 AND id = m.f OFFSET 0) f`
)

// Events returns a page of the feed.
func (s *Store) Events(ctx context.Context, ws desk.ID, q store.EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (page *store.EventPage, err error) {
	err = s.read(ctx, func(p *pipe) error {
		if known := s.settings.Newest(ws); q.AtOnce && known != nil && !s.citus { // on a cluster, a statement costs more than a round trip
			if page, err = s.eventsAtOnce(p, known, q, which); page != nil || err != nil {
				return err
			}
		}
		f := &feed{s: s, pipe: p, ws: ws}
		p.put(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
		page, err = stored.ReadFeed(time.Now(), f, q, which)
		p.put(`ROLLBACK`)
		if e := p.send("end reading"); err == nil {
			err = e
		}
		return err
	})
	return page, err
}

// eventsAtOnce does the work of Events in one round trip, with settings from memory. If
// the settings turn out to be out of date, it returns no page. It reads ahead everything
// that the page may need. Then stored.ReadFeed makes the page from this data, as usual.
func (s *Store) eventsAtOnce(p *pipe, known *desk.Settings, q store.EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (*store.EventPage, error) {
	types, err := which(known)
	if err != nil {
		return nil, nil //nolint:nilerr // only the stored settings decide
	}
	from, upTo, limit := q.After.Seq, q.After.Seq+desk.MaxEventsLooked, q.Limit
	if q.From == store.AtPlace {
		from, upTo, limit = q.After.Seq-1, q.After.Seq, 1
	}
	began, f := time.Now(), &feed{s: s, pipe: p, ws: known.ID, settings: known, ahead: true, at: map[int64]desk.EventPlace{}, records: newRecords()}
	p.put(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	f.readEnds()
	for _, seq := range []int64{q.After.Seq, upTo} {
		f.each(func(row pgx.Row) error {
			e, err := readEvent(row)
			f.at[seq] = e.Place
			return err
		}, eventQuery, uuid(f.ws), seq)
	}
	f.each(func(row pgx.Row) error {
		e, err := readEvent(row)
		f.scanned = append(f.scanned, e)
		return err
	}, eventsQuery, uuid(f.ws), from, upTo, types, limit)
	scan := []any{uuid(f.ws), from, upTo, types, limit}
	f.readContacts(foundContactsQuery, scan...)
	f.readConversations(foundConversationsQuery, scan...)
	f.readMessages(foundMessagesQuery, scan...)
	f.readNotes(foundNotesQuery, scan...)
	f.readAttempts(foundAttemptsQuery, scan...)
	f.readFiles(foundMediaQuery, scan...)
	p.put(`ROLLBACK`)
	err = p.send("events")
	if errors.Is(p.fail, errOldSettings) {
		p.fail = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return stored.ReadFeed(began, f, q, func(*desk.Settings) ([]desk.EventType, error) { return types, nil })
}

// errOldSettings means that the data that was read ahead can't be used.
var errOldSettings = errors.New("the settings in memory are out of date")

// A feed reads the events of a workspace in one snapshot.
type feed struct {
	*pipe
	s        *Store
	ws       desk.ID
	settings *desk.Settings
	version  int64 // the version of the settings
	floor    desk.EventPlace
	newest   desk.EventPlace
	*records

	ahead   bool // all data was read ahead
	at      map[int64]desk.EventPlace
	scanned []desk.FeedEvent
}

// readEnds queues reads of the feed's ends and of the settings' version.
func (f *feed) readEnds() {
	f.each(func(row pgx.Row) error {
		err := row.Scan(&f.version)
		if err == nil && f.ahead && f.version != f.settings.Version {
			return errOldSettings
		}
		return err
	}, `SELECT settings_version FROM workspaces WHERE id = $1 AND NOT deleted`, uuid(f.ws))
	f.each(func(row pgx.Row) error { return row.Scan(&f.floor.Seq, &f.floor.Tag) }, eventFloorQuery, uuid(f.ws))
	f.each(func(row pgx.Row) error {
		e, err := readEvent(row)
		f.newest = e.Place
		return err
	}, lastEventQuery, uuid(f.ws))
}

// Settings also reads the ends of the feed, in the same round trip.
func (f *feed) Settings() (settings *desk.Settings, err error) {
	if !f.ahead {
		f.readEnds()
		if err := f.send("events"); err != nil {
			return nil, err
		}
	}
	switch {
	case f.version == 0:
		return nil, stored.NoWorkspace()
	case !f.ahead:
		f.settings, err = f.s.settingsAt(f.pipe, f.ws, f.version)
	}
	if f.newest.Seq == 0 {
		f.newest = f.floor
	}
	return f.settings, err
}

func (f *feed) Ends() (floor, newest desk.EventPlace, err error) { return f.floor, f.newest, nil }

func (f *feed) At(seq int64) (desk.EventPlace, error) {
	if f.ahead {
		return f.at[seq], nil
	}
	e, err := one(f.pipe, "event", readEvent, eventQuery, uuid(f.ws), seq)
	return e.Place, err
}

func (f *feed) Scan(after, upTo int64, types []desk.EventType, limit int) ([]desk.FeedEvent, error) {
	if f.ahead {
		return f.scanned, nil
	}
	return all(f.pipe, "events", readEvent, eventsQuery, uuid(f.ws), after, upTo, types, limit)
}

// records are the records of a page of events.
type records struct {
	contacts      map[desk.ID]*desk.Contact
	conversations map[desk.ID]*desk.Conversation
	messages      map[desk.ID]*desk.Message
	notes         map[desk.ID]*desk.Note
	attempts      map[desk.ID]*desk.Attempt
	files         map[desk.ID]*desk.Media

	// How many contacts and messages the page has, and the number of the last contact and
	// of the last message that were read.
	thereContacts, thereMessages, lastContact, lastMessage int64
}

func newRecords() *records {
	return &records{
		contacts: map[desk.ID]*desk.Contact{}, conversations: map[desk.ID]*desk.Conversation{}, messages: map[desk.ID]*desk.Message{},
		notes: map[desk.ID]*desk.Note{}, attempts: map[desk.ID]*desk.Attempt{}, files: map[desk.ID]*desk.Media{},
	}
}

func (f *feed) readContacts(query string, args ...any) {
	f.each(func(row pgx.Row) error {
		var n int64
		c, err := readContact(row, &n, &f.thereContacts)
		if err == nil {
			f.lastContact = max(f.lastContact, n)
			f.contacts[c.ID] = c.of(f.settings)
		}
		return err
	}, query, args...)
}

func (f *feed) readConversations(query string, args ...any) {
	f.each(func(row pgx.Row) error {
		c, err := readConversation(row)
		if err == nil {
			f.conversations[c.ID] = c
		}
		return err
	}, query, args...)
}

func (f *feed) readMessages(query string, args ...any) {
	f.each(func(row pgx.Row) error {
		var n int64
		m, err := readMessage(row, &n, &f.thereMessages)
		if err == nil {
			f.lastMessage = max(f.lastMessage, n)
			f.messages[m.ID] = m
		}
		return err
	}, query, args...)
}

func (f *feed) readNotes(query string, args ...any) {
	f.each(func(row pgx.Row) error {
		n, err := readNote(row)
		if err == nil {
			f.notes[n.ID] = n
		}
		return err
	}, query, args...)
}

func (f *feed) readAttempts(query string, args ...any) {
	f.each(func(row pgx.Row) error {
		at, err := readAttempt(row)
		if err == nil {
			f.attempts[at.ID] = stored.Listed(at)
		}
		return err
	}, query, args...)
}

func (f *feed) readFiles(query string, args ...any) {
	f.each(func(row pgx.Row) error {
		m, err := readMedia(row)
		if err == nil {
			f.files[m.ID] = m
		}
		return err
	}, query, args...)
}

// Records reads all records in one round trip. Records beyond the size of a page are not
// read, and the page ends before their events.
func (f *feed) Records(page *store.EventPage) error {
	var contacts, conversations, in, messages, noted, notes, attempts []uuid
	var at []int64
	add := func(list *[]uuid, known map[uuid]bool, id desk.ID) bool {
		if known[uuid(id)] {
			return false
		}
		known[uuid(id)] = true
		*list = append(*list, uuid(id))
		return true
	}
	known := map[uuid]bool{}
	for i := range page.Events {
		e := &page.Events[i]
		conversation, contact := e.Of()
		switch e.Type.Kind() {
		case "contact":
			add(&contacts, known, contact)
		case "conversation":
			add(&conversations, known, conversation)
		case "message":
			if add(&messages, known, e.Subject) {
				in, at = append(in, uuid(conversation)), append(at, int64(e.TS))
			}
		case "send":
			add(&attempts, known, e.Subject)
		case "note":
			if add(&notes, known, e.Subject) {
				noted = append(noted, uuid(conversation))
			}
		}
	}
	if f.ahead {
		for _, m := range f.messages {
			m.Attachment = f.files[m.Media]
		}
	} else {
		f.records = newRecords()
		f.readContacts(eventContactsQuery, uuid(f.ws), contacts)
		f.readConversations(eventConversationsQuery, uuid(f.ws), conversations)
		f.readMessages(eventMessagesQuery, uuid(f.ws), in, at, messages)
		f.readNotes(eventNotesQuery, uuid(f.ws), noted, notes)
		f.readAttempts(eventAttemptsQuery, uuid(f.ws), attempts)
		if err := f.send("records of events"); err != nil {
			return err
		}
		if err := attach(f.pipe, f.ws, slices.Collect(maps.Values(f.messages))); err != nil {
			return err
		}
	}
	page.Contacts, page.Conversations, page.Messages, page.Notes, page.Attempts = f.contacts, f.conversations, f.messages, f.notes, f.attempts
	unread := map[uuid]bool{}
	if int64(len(f.contacts)) < f.thereContacts {
		for _, id := range contacts[f.lastContact:] {
			unread[id] = true
		}
	}
	if int64(len(f.messages)) < f.thereMessages {
		for _, id := range messages[f.lastMessage:] {
			unread[id] = true
		}
	}
	for i := range page.Events {
		if unread[uuid(page.Events[i].Subject)] {
			page.Cut(i)
			break
		}
	}
	page.Trim(page.DataBytes)
	return nil
}
