package sqlite

import (
	"context"

	"parley/desk"
	"parley/store"
)

// A tx is the transaction of one closure, on the writing connection. Other closures may
// share its commit.
type tx struct {
	s        *Store
	c        conn
	ws       desk.ID
	settings *desk.Settings
	stored   map[desk.ID]desk.Conversation // as this transaction has read or written it
}

// InTx runs f in a transaction on one workspace. It returns nil once the changes are
// durable. If f returns an error, InTx returns it unchanged and stores nothing.
func (s *Store) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	return s.write(ctx, func(c conn) error {
		settings, err := s.toWrite(c, ws)
		if err != nil {
			return err
		}
		return f(&tx{s: s, c: c, ws: ws, settings: settings, stored: map[desk.ID]desk.Conversation{}})
	})
}

func (t *tx) Settings() *desk.Settings { return t.settings }

func (t *tx) Now() desk.Time { return t.s.now() }

func (t *tx) Book(l desk.Lookup) (*desk.Book, error) { return lookUp(t.c, t.settings, l) }

func (t *tx) Flush(book *desk.Book) error { return flushBook(t.c, t.ws, book) }

func (t *tx) Contact(id desk.ID) (*desk.Contact, error) {
	return one("contact", t.c.stmt(contactQuery).id(t.ws).id(id), func(s *stmt) *desk.Contact {
		s.readInt() // skips the version of t.settings
		return readContact(t.c, s, t.settings)
	})
}

// KeepContacts tells which contacts there are. No other transaction writes meanwhile.
func (t *tx) KeepContacts(ids []desk.ID) (map[desk.ID]bool, error) {
	there := map[desk.ID]bool{}
	for _, id := range ids {
		found, err := one("contact", t.c.stmt(contactThereQuery).id(t.ws).id(id), func(*stmt) bool { return true })
		if err != nil {
			return nil, err
		}
		if found {
			there[id] = true
		}
	}
	return there, nil
}

func (t *tx) KeepContactsNext(ids []desk.ID) (map[desk.ID]bool, error) { return t.KeepContacts(ids) }

func (t *tx) Conversation(id desk.ID) (*desk.Conversation, error) {
	return one("conversation", t.c.stmt(conversationQuery).id(t.ws).id(id), t.readConversation)
}

func (t *tx) OpenConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one("open conversation", t.c.stmt(openConversationQuery).id(t.ws).id(channel).id(contact), t.readConversation)
}

func (t *tx) HeldConversations(member desk.ID, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error) {
	f := desk.ConversationFilter{Assignee: member, Status: desk.StatusOpen}
	if after == nil {
		after = f.Start()
	}
	return all("held conversations", newConversationList(f, false).bind(t.c, t.ws, f, after, limit-1), t.readConversation)
}

func (t *tx) readConversation(s *stmt) *desk.Conversation {
	v := readConversation(s)
	t.stored[v.ID] = *v
	return v
}

func (t *tx) PutConversation(list ...*desk.Conversation) error {
	for _, v := range list {
		var was *desk.Conversation
		if stored, known := t.stored[v.ID]; known {
			was = &stored
		}
		if err := putConversation(t.c, t.ws, was, v); err != nil {
			return err
		}
		t.stored[v.ID] = *v
	}
	return nil
}

func (t *tx) Message(conversation, id desk.ID) (*desk.Message, error) {
	return one("message", t.c.stmt(messageQuery).id(t.ws).id(conversation).id(id), readOneMessage)
}

func (t *tx) MessageBy(channel desk.ID, externalID string) (*desk.Message, error) {
	return one("message", t.c.stmt(messageByQuery).id(t.ws).id(channel).text(externalID), readOneMessage)
}

func (t *tx) NewestMessage(conversation desk.ID, from, before desk.Time) (desk.MessagePlace, error) {
	return one("newest message", t.c.stmt(newestMessageQuery).id(t.ws).id(conversation).time(from).time(before), func(s *stmt) desk.MessagePlace {
		return desk.MessagePlace{TS: s.readTime(), ID: s.readID()}
	})
}

func (t *tx) PutMessage(m *desk.Message) error { return putMessage(t.c, t.ws, m) }

func (t *tx) PutMessageDelivery(m *desk.Message) error {
	return failed("store delivery", t.c.stmt(putMessageDeliveryQuery).text(string(m.Delivery)).json(m.Failure).
		id(t.ws).id(m.ConversationID).time(m.TS).id(m.ID).run())
}

func (t *tx) NewestConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one("newest conversation", t.c.stmt(newestConversationQuery).id(t.ws).id(contact).id(channel), t.readConversation)
}

func (t *tx) DormantConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one("dormant conversation", t.c.stmt(dormantConversationQuery).id(t.ws).id(contact).id(channel), t.readConversation)
}

func (t *tx) NewestInbound(conversation desk.ID, upTo desk.MessagePlace) (*desk.Message, error) {
	return one("newest inbound message", t.c.stmt(newestInboundQuery).id(t.ws).id(conversation).time(upTo.TS).id(upTo.ID), readMessage)
}

func (t *tx) MarkRead(conversation desk.ID, upTo desk.MessagePlace, most int) (int, error) {
	marked, err := all("mark read", t.c.stmt(markReadQuery).id(t.ws).id(conversation).time(upTo.TS).id(upTo.ID).int(int64(most)), (*stmt).readInt)
	return len(marked), err
}

func (t *tx) CountUnread(conversation desk.ID, after desk.MessagePlace) (int, error) {
	n, err := one("count unread", t.c.stmt(countUnreadQuery).id(t.ws).id(conversation).time(after.TS).id(after.ID), (*stmt).readInt)
	return int(n), err
}

func (t *tx) Waiting(conversation desk.ID) (answered desk.ID, since desk.Time, err error) {
	if answered, err = one("answered", t.c.stmt(waitQuery).id(t.ws).id(conversation), (*stmt).readID); err == nil {
		since, err = one("waiting", t.c.stmt(heardQuery).id(t.ws).id(conversation).id(answered), (*stmt).readTime)
	}
	return answered, since, err
}

func (t *tx) Window(channel, contact desk.ID) (w desk.Window, err error) {
	found, err := one("window", t.c.stmt(windowQuery).id(t.ws).id(contact).id(channel), readWindow)
	if found != nil {
		w = *found
	}
	return w, err
}

func (t *tx) PutWindow(channel, contact desk.ID, w desk.Window) error {
	return failed("store window", t.c.stmt(putWindowQuery).id(t.ws).id(contact).id(channel).time(w.OpenedAt).text(w.Number).text(w.UserID).
		time(w.ShutAt).text(string(w.ShutBy)).time(w.RepliedAt).time(w.AutoReplyAt).int(int64(w.AutoReplies)).run())
}

func (t *tx) AttemptOfKey(key string) (*desk.Attempt, error) {
	return one("attempt of key", t.c.stmt(attemptOfKeyQuery).id(t.ws).text(key), readAttempt)
}

func (t *tx) AttemptsTo(contact desk.ID) ([]*desk.Attempt, error) {
	return all("attempts to a contact", t.c.stmt(attemptsToContactsQuery).id(t.ws).json([]string{contact.String()}), readAttempt)
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

func (t *tx) Untouched(id desk.ID) (bool, error) {
	return one("attempt", t.c.stmt(untouchedQuery).id(t.ws).id(id), func(*stmt) bool { return true })
}

func (t *tx) PutAttempt(a *desk.Attempt) error { return putAttempt(t.c, t.ws, a) }

func (t *tx) OptOut(number store.NumberHash) (store.OptOut, error) { return optOut(t.c, t.ws, number) }

func (t *tx) SetOptOut(number store.NumberHash, o store.OptOut) error {
	return failed("store opt-out", t.c.stmt(`REPLACE INTO opt_outs (workspace_id, number_hash, since, at) VALUES (?, ?, ?, ?)`).
		id(t.ws).bytes(number[:]).time(o.Since).time(o.At).run())
}

func (t *tx) KeepStatus(channel desk.ID, n desk.StatusUpdate) error {
	return failed("keep status", t.c.stmt(`INSERT INTO early_statuses (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure, user_id, hour)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, `+thisHour+`) ON CONFLICT DO NOTHING`).
		id(t.ws).id(channel).text(n.ExternalID).time(n.At).text(string(n.Delivery)).id(n.Attempt).json(n.Failure).text(n.UserID).run())
}

func (t *tx) TakeStatuses(channel desk.ID, externalID string) ([]desk.StatusUpdate, error) {
	list, err := all("early statuses", t.c.stmt(earlyStatusesQuery).id(t.ws).id(channel).text(externalID), readStatus)
	if err == nil && list != nil {
		err = failed("take statuses", t.c.stmt(takeStatusesQuery).id(t.ws).id(channel).text(externalID).run())
	}
	return list, err
}

func (t *tx) DropStatuses(hours int64) error {
	return failed("drop statuses", t.c.stmt(dropStatusesQuery).id(t.ws).int(hours).run())
}

func (t *tx) PutInbound(n desk.InboundItem) error { return putInbound(t.c, t.ws, n) }

// TakeInbound returns the items as they are stored now: another process may have
// processed a part of a callback.
func (t *tx) TakeInbound(list []desk.InboundItem) (taken []desk.InboundItem, err error) {
	for _, n := range list {
		kept, err := all("take inbound item", t.c.stmt(takeInboundQuery).id(t.ws).time(n.Due).id(n.ID), readInbound)
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
