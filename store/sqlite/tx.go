package sqlite

import (
	"context"
	"time"

	"parley/app"
	"parley/desk"
)

// now is the database's clock: all its processes are on this machine.
func now() desk.Time { return desk.TimeOf(time.Now()) }

// A tx is one closure's part of a transaction, on the writing connection.
type tx struct {
	s        *Store
	c        conn
	ws       desk.ID
	settings *desk.Settings
}

// InTx runs f in a transaction on one workspace and returns once what it wrote is
// durable, or with f's error, as it is, and nothing stored.
func (s *Store) InTx(_ context.Context, ws desk.ID, f func(app.Tx) error) error {
	return s.write(func(c conn) error {
		settings, err := s.currentSettings(c, ws)
		if err != nil {
			return err
		}
		return f(&tx{s, c, ws, settings})
	})
}

func (t *tx) Settings() *desk.Settings { return t.settings }

func (t *tx) Now() desk.Time { return now() }

func (t *tx) Book(ops ...*desk.Op) (*desk.Book, error) {
	ids, claims := wanted(ops)
	return loadBook(t.c, t.settings, len(ops), ids, claims)
}

func (t *tx) Flush(book *desk.Book) error { return flushBook(t.c, t.ws, book) }

func (t *tx) Contact(id desk.ID) (*desk.Contact, error) {
	return one("contact", t.c.stmt(contactQuery).id(t.ws).id(id), func(s *stmt) *desk.Contact {
		s.readInt() // the version of t.settings
		return readContact(s, t.settings)
	})
}

func (t *tx) Conversation(id desk.ID) (*desk.Conversation, error) {
	return one("conversation", t.c.stmt(conversationQuery).id(t.ws).id(id), readConversation)
}

func (t *tx) OpenConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one("open conversation", t.c.stmt(openConversationQuery).id(t.ws).id(channel).id(contact), readConversation)
}

func (t *tx) PutConversation(v *desk.Conversation) error { return putConversation(t.c, t.ws, v) }

func (t *tx) Message(conversation, id desk.ID) (*desk.Message, error) {
	return one("message", t.c.stmt(messageQuery).id(t.ws).id(conversation).id(id), readMessage)
}

func (t *tx) MessageBy(channel desk.ID, externalID string) (*desk.Message, error) {
	return one("message", t.c.stmt(messageByQuery).id(t.ws).id(channel).text(externalID), readMessage)
}

func (t *tx) PutMessage(m *desk.Message) error { return putMessage(t.c, t.ws, m) }

func (t *tx) AttemptOfKey(key string) (*desk.Attempt, error) {
	return one("attempt of key", t.c.stmt(attemptOfKeyQuery).id(t.ws).text(key), readAttempt)
}

func (t *tx) TakeKey(key string, attempt desk.ID) error {
	return failed("take key", t.c.stmt(`INSERT INTO send_keys (workspace_id, key, attempt_id) VALUES (?, ?, ?)`).
		id(t.ws).text(key).id(attempt).run())
}

func (t *tx) FreeKey(key string) error {
	return failed("free key", t.c.stmt(`DELETE FROM send_keys WHERE workspace_id = ? AND key = ?`).id(t.ws).text(key).run())
}

func (t *tx) Attempt(id desk.ID) (*desk.Attempt, error) {
	return one("attempt", t.c.stmt(attemptQuery).id(t.ws).id(id), readAttempt)
}

func (t *tx) PutAttempt(a *desk.Attempt) error { return putAttempt(t.c, t.ws, a) }

func (t *tx) OptOut(number app.NumberHash) (app.OptOut, error) { return optOut(t.c, t.ws, number) }

func (t *tx) SetOptOut(number app.NumberHash, o app.OptOut) error {
	return failed("store opt-out", t.c.stmt(`REPLACE INTO opt_outs (workspace_id, number_hash, since, at) VALUES (?, ?, ?, ?)`).
		id(t.ws).bytes(number[:]).time(o.Since).time(o.At).run())
}

func (t *tx) KeepStatus(channel desk.ID, n desk.StatusNotice) error {
	return failed("keep status", t.c.stmt(`INSERT INTO early_statuses (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`).
		id(t.ws).id(channel).text(n.ExternalID).time(n.At).text(string(n.Delivery)).id(n.Attempt).json(n.Failure).run())
}

func (t *tx) TakeStatuses(channel desk.ID, externalID string) ([]desk.StatusNotice, error) {
	list, err := all("early statuses", t.c.stmt(earlyStatusesQuery).id(t.ws).id(channel).text(externalID), readStatus)
	if err == nil && list != nil {
		err = failed("take statuses", t.c.stmt(takeStatusesQuery).id(t.ws).id(channel).text(externalID).run())
	}
	return list, err
}

func (t *tx) DropStatuses(before desk.Time) error {
	return failed("drop statuses", t.c.stmt(dropStatusesQuery).id(t.ws).time(before).run())
}

func (t *tx) PutNotice(n app.Notice) error { return putNotice(t.c, t.ws, n) }

// TakeNotices returns them as they are by now: of a webhook, another process may have
// taken in a part.
func (t *tx) TakeNotices(list []app.Notice) (taken []app.Notice, err error) {
	for _, n := range list {
		kept, err := all("take notice", t.c.stmt(takeNoticeQuery).id(t.ws).time(n.Due).id(n.ID), readNotice)
		if err != nil {
			return nil, err
		}
		taken = append(taken, kept...)
	}
	return taken, nil
}

func (t *tx) Append(events ...desk.Event) error {
	return failed("store events", flushEvents(t.c, t.ws, events))
}
