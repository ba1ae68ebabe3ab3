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

// A tx is a transaction on one workspace. Its writes are queued until its next read or
// the commit, so they cost no round trip of their own.
type tx struct {
	*pipe
	s        *Store
	ws       desk.ID
	settings *desk.Settings

	version int64     // version of the settings
	now     desk.Time // the database's clock at nowAt
	nowAt   time.Time
	hour    int64 // the database's counter of hours

	events     []desk.Event
	webhook    *desk.Webhook             // the change's webhook, which may be new
	unheard    map[store.NumberHash]bool // numbers without a stored choice
	committing bool

	own     *share // the workspace's share
	assigns bool   // this transaction has taken the place to assign
}

// begin queues the statements that begin the transaction.
func (t *tx) begin(alone bool) {
	t.put(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	if t.citus {
		t.put(pinShards, uuid(t.ws))
	}
	lock := lockShared
	if alone {
		lock = lockAlone
	}
	t.put(lock, uuid(t.ws), lockOf(t.ws))
	t.each(func(row pgx.Row) error {
		t.nowAt = time.Now()
		err := row.Scan(&t.version, (*int64)(&t.now), &t.hour)
		if err == nil && t.settings != nil && t.settings.Version != t.version {
			return errConflict
		}
		return err
	}, `SELECT settings_version, `+databaseNow+`, `+thisHour+` FROM workspaces WHERE id = $1 AND NOT deleted`, uuid(t.ws))
}

// open sends the queued statements. It returns NotFound if there is no such workspace,
// and Unavailable if the process may not write any more.
func (t *tx) open(doing string) (err error) {
	if err := t.send(doing); err != nil {
		return err
	}
	if t.version == 0 {
		return stored.NoWorkspace()
	}
	if t.settings == nil {
		if t.settings, err = t.s.settingsAt(t.pipe, t.ws, t.version); err != nil {
			return err
		}
	}
	return t.s.rules.Check()
}

// commit stores the queued writes and the events, and commits, in one round trip. The
// events come last, because they lock the workspace's counter until the commit.
func (t *tx) commit() error {
	putEvents(t.pipe, t.ws, t.events)
	if t.webhook != nil {
		beginWebhook(t)
	}
	t.put(`COMMIT`)
	t.committing = true
	return t.send("commit")
}

// InTx runs f in a transaction on one workspace. It returns nil once the changes are
// durable. If f returns an error, InTx returns it unchanged and stores nothing.
//
// f runs with the settings that are in memory. The transaction begins together with the
// first read of f, so its beginning costs no round trip. If the settings are not the
// newest ones, this first read fails, and f runs again with the settings of the
// database.
func (s *Store) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	known := s.settings.Newest(ws)
	return s.write(ctx, ws, false, func(t *tx) error {
		t.settings, known = known, nil
		if t.settings == nil {
			if err := t.open("begin"); err != nil {
				return err
			}
			return f(t)
		}
		if err := s.rules.Check(); err != nil {
			return err
		}
		err := f(t)
		if t.nowAt.IsZero() { // f has not read anything, or its first read has failed
			if e := t.open("begin"); e != nil {
				return e
			}
		}
		return err
	})
}

// A read with forUpdate locks the rows that it returns until the transaction ends. With
// forChange, it does so as a change does: those who only keep the rows from being deleted, by
// FOR KEY SHARE, neither wait nor are waited for.
const (
	forUpdate = ` FOR UPDATE`
	forChange = ` FOR NO KEY UPDATE`
)

func (t *tx) Settings() *desk.Settings { return t.settings }

func (t *tx) Now() desk.Time {
	if t.nowAt.IsZero() {
		_ = t.send("begin") // the pipe keeps the error
	}
	return t.now + desk.Time(time.Since(t.nowAt).Milliseconds())
}

// thisHour returns the database's counter of hours.
func (t *tx) thisHour() int64 {
	t.Now()
	return t.hour
}

// Book locks the contacts before it loads them. A single statement that waits for a lock and loads
// would see the locked rows as they are now, but the identities as they were before the wait.
func (t *tx) Book(l desk.Lookup) (*desk.Book, error) {
	w, lock := named(l), lockBookQuery
	if l.Merges {
		lock = lockMergeBook
	}
	locked := map[desk.ID]bool{}
	each(t.pipe, readID, func(id desk.ID) { locked[id] = true }, lock, w.args(t.ws)...)
	if len(l.Identities) > manyNames && len(l.IDs) == 0 && (t.send("lock contacts") != nil || len(locked) == 0) {
		return desk.NewBook(t.settings, 1), failed("lock contacts", t.fail)
	}
	loaded := putLoad(t.pipe, t.ws, w, l.Most)
	if err := t.send("load contacts"); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(loaded.contacts, func(c *contactRow) bool { return !locked[c.ID] }) {
		t.fail = errConflict // an identity has moved between the two statements
		return nil, failed("load contacts", t.fail)
	}
	book := bookOf(t.settings, 1, loaded)
	return book, loadMerged(t.pipe, t.ws, book, l.IDs)
}

func (t *tx) Flush(book *desk.Book) error { return flushBook(t, book) }

func (t *tx) Contact(id desk.ID) (*desk.Contact, error) {
	c, err := one(t.pipe, "contact", readOneContact, contactQuery+forChange+` OF c`, uuid(t.ws), uuid(id))
	if err != nil || c == nil {
		return nil, err
	}
	return c.of(t.settings), nil
}

func (t *tx) KeepContacts(ids []desk.ID) (map[desk.ID]bool, error) {
	there, _ := t.KeepContactsNext(ids)
	return there, t.send("keep contacts")
}

func (t *tx) KeepContactsNext(ids []desk.ID) (map[desk.ID]bool, error) {
	there := map[desk.ID]bool{}
	each(t.pipe, readID, func(id desk.ID) { there[id] = true }, keepContacts, uuid(t.ws), uuids(ids))
	return there, t.fail
}

func (t *tx) Conversation(id desk.ID) (*desk.Conversation, error) {
	return one(t.pipe, "conversation", readConversation, conversationQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) OpenConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one(t.pipe, "open conversation", readConversation, openConversationQuery+forUpdate, uuid(t.ws), uuid(channel), uuid(contact))
}

func (t *tx) HeldConversations(member desk.ID, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error) {
	f := desk.ConversationFilter{Assignee: member, Status: desk.StatusOpen}
	if after == nil {
		after = f.Start()
	}
	query, args := conversationsQuery(t.ws, f, after, limit-1, false)
	return all(t.pipe, "held conversations", readConversation, query+forUpdate, args...)
}

func (t *tx) PutConversation(list ...*desk.Conversation) error {
	putConversations(t.pipe, t.ws, list)
	return t.fail
}

func (t *tx) Message(conversation, id desk.ID) (*desk.Message, error) {
	return one(t.pipe, "message", readOneMessage, messageQuery+forUpdate, uuid(t.ws), uuid(conversation), uuid(id))
}

func (t *tx) MessageBy(channel desk.ID, externalID string) (*desk.Message, error) {
	return one(t.pipe, "message", readOneMessage, messageByQuery+forUpdate, uuid(t.ws), uuid(channel), externalID)
}

func (t *tx) NewestMessage(conversation desk.ID, from, before desk.Time) (desk.MessagePlace, error) {
	return one(t.pipe, "newest message", func(row pgx.Row) (place desk.MessagePlace, err error) {
		err = row.Scan((*int64)(&place.TS), into(&place.ID))
		return place, err
	}, newestMessageQuery, uuid(t.ws), uuid(conversation), int64(from), int64(before))
}

func (t *tx) PutMessage(m *desk.Message) error { return putMessage(t.pipe, t.ws, m) }

func (t *tx) PutMessageDelivery(m *desk.Message) error {
	t.put(putMessageDeliveryQuery, uuid(t.ws), uuid(m.ConversationID), int64(m.TS), uuid(m.ID), string(m.Delivery), asJSON(m.Failure))
	return t.fail
}

func (t *tx) NewestConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one(t.pipe, "newest conversation", readConversation, newestConversationQuery+forUpdate, uuid(t.ws), uuid(contact), uuid(channel))
}

func (t *tx) DormantConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one(t.pipe, "dormant conversation", readConversation, dormantConversationQuery+forUpdate, uuid(t.ws), uuid(contact), uuid(channel))
}

func (t *tx) NewestInbound(conversation desk.ID, upTo desk.MessagePlace) (*desk.Message, error) {
	return one(t.pipe, "newest inbound message", func(row pgx.Row) (*desk.Message, error) { return readMessage(row) },
		newestInboundQuery, uuid(t.ws), uuid(conversation), int64(upTo.TS), uuid(upTo.ID))
}

func (t *tx) MarkRead(conversation desk.ID, upTo desk.MessagePlace, most int) (int, error) {
	marked, err := all(t.pipe, "mark read", func(row pgx.Row) (n int, err error) { return n, row.Scan(&n) },
		markReadQuery, uuid(t.ws), uuid(conversation), int64(upTo.TS), uuid(upTo.ID), most)
	return len(marked), err
}

func (t *tx) CountUnread(conversation desk.ID, after desk.MessagePlace) (int, error) {
	return one(t.pipe, "count unread", func(row pgx.Row) (n int, err error) { return n, row.Scan(&n) },
		countUnreadQuery, uuid(t.ws), uuid(conversation), int64(after.TS), uuid(after.ID))
}

func (t *tx) Waiting(conversation desk.ID) (answered desk.ID, since desk.Time, err error) {
	answered, err = one(t.pipe, "answered", func(row pgx.Row) (id desk.ID, err error) { return id, row.Scan(into(&id)) },
		waitQuery, uuid(t.ws), uuid(conversation))
	if err == nil {
		since, err = one(t.pipe, "waiting", func(row pgx.Row) (at desk.Time, err error) { return at, row.Scan((*int64)(&at)) },
			heardQuery, uuid(t.ws), uuid(conversation), uuid(answered))
	}
	return answered, since, err
}

// Window locks the window, if it exists. If it does not exist yet, only one transaction
// at a time can store it, because each such transaction has locked the contact's
// conversation.
func (t *tx) Window(channel, contact desk.ID) (desk.Window, error) {
	found, err := one(t.pipe, "window", readWindow, windowQuery+forUpdate, uuid(t.ws), uuid(contact), uuid(channel))
	if err != nil || found == nil {
		return desk.Window{}, err
	}
	return found.Window, nil
}

func (t *tx) PutWindow(channel, contact desk.ID, w desk.Window) error {
	t.put(putWindowQuery, uuid(t.ws), uuid(contact), uuid(channel), int64(w.OpenedAt), w.Number, w.UserID, int64(w.ShutAt), string(w.ShutBy),
		int64(w.RepliedAt), int64(w.AutoReplyAt), w.AutoReplies)
	return t.fail
}

func (t *tx) AttemptOfKey(key string) (*desk.Attempt, error) {
	return one(t.pipe, "attempt of key", readAttempt, attemptOfKeyQuery+forUpdate, uuid(t.ws), key)
}

func (t *tx) AttemptsTo(contact desk.ID) ([]*desk.Attempt, error) {
	return all(t.pipe, "attempts to a contact", readAttempt, attemptsTo(t.pipe), uuid(t.ws), pgtype.FlatArray[uuid]{uuid(contact)}, []string{})
}

func (t *tx) TakeKey(key string, attempt desk.ID) error {
	t.put(`INSERT INTO send_keys (workspace_id, key, attempt_id) VALUES ($1, $2, $3)`, uuid(t.ws), key, uuid(attempt))
	return t.fail
}

func (t *tx) FreeKey(key string) error {
	t.put(`DELETE FROM send_keys WHERE workspace_id = $1 AND key = $2`, uuid(t.ws), key)
	return t.fail
}

func (t *tx) Attempt(id desk.ID) (*desk.Attempt, error) {
	return one(t.pipe, "attempt", readAttempt, attemptQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) Untouched(id desk.ID) (bool, error) {
	return one(t.pipe, "attempt", func(row pgx.Row) (bool, error) { var n int; return true, row.Scan(&n) }, untouchedQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) PutAttempt(a *desk.Attempt) error { return putAttempt(t, a) }

func (t *tx) OptOut(number store.NumberHash) (store.OptOut, error) {
	o, err := one(t.pipe, "opt-out", readOptOut, optOutQuery+forUpdate, uuid(t.ws), number[:])
	if o == nil {
		if t.unheard == nil {
			t.unheard = map[store.NumberHash]bool{}
		}
		t.unheard[number] = true
		return store.OptOut{}, err
	}
	return *o, err
}

// SetOptOut uses a plain INSERT if OptOut found no row, because a missing row can't be
// locked. If another transaction has inserted the row meanwhile, that is a conflict.
func (t *tx) SetOptOut(number store.NumberHash, o store.OptOut) error {
	query := `INSERT INTO opt_outs (workspace_id, number_hash, since, at) VALUES ($1, $2, $3, $4)`
	if !t.unheard[number] {
		query += ` ON CONFLICT (workspace_id, number_hash) DO UPDATE SET since = excluded.since, at = excluded.at`
	}
	delete(t.unheard, number)
	t.put(query, uuid(t.ws), number[:], int64(o.Since), int64(o.At))
	return t.fail
}

// KeepStatus and TakeStatuses exclude each other by an advisory lock for the message,
// because the message may not exist yet. Without the lock, KeepStatus could store a
// status just after another transaction has stored the message and taken its statuses.
func (t *tx) KeepStatus(channel desk.ID, n desk.StatusUpdate) error {
	t.put(statusLock, uuid(t.ws), uuid(channel), n.ExternalID)
	known := false
	t.each(func(pgx.Row) error { known = true; return nil }, messageByQuery, uuid(t.ws), uuid(channel), n.ExternalID)
	t.put(`INSERT INTO early_statuses (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure, user_id, hour)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		uuid(t.ws), uuid(channel), n.ExternalID, int64(n.At), string(n.Delivery), uuid(n.Attempt), asJSON(n.Failure), n.UserID, t.thisHour())
	err := t.send("keep status")
	if err == nil && known {
		t.fail = errConflict
		err = failed("keep status", t.fail)
	}
	return err
}

func (t *tx) TakeStatuses(channel desk.ID, externalID string) ([]desk.StatusUpdate, error) {
	t.put(statusLock, uuid(t.ws), uuid(channel), externalID)
	return all(t.pipe, "take statuses", readStatus, takeStatusesQuery, uuid(t.ws), uuid(channel), externalID)
}

func (t *tx) DropStatuses(hours int64) error {
	t.put(`DELETE FROM early_statuses WHERE workspace_id = $1 AND hour <= `+thisHour+` - $2::bigint`, uuid(t.ws), hours)
	return t.fail
}

func (t *tx) PutInbound(n desk.InboundItem) error { return putInbound(t.pipe, t.ws, n) }

// TakeInbound skips items that another transaction is taking. It returns the others as
// they are stored now: another process may have processed a part of a callback.
func (t *tx) TakeInbound(list []desk.InboundItem) (taken []desk.InboundItem, err error) {
	due, ids := make([]int64, len(list)), make(pgtype.FlatArray[uuid], len(list))
	for i, n := range list {
		due[i], ids[i] = int64(n.Due), uuid(n.ID)
	}
	return all(t.pipe, "take inbound items", readInbound, form(t.citus, takeInboundQuery, takeInboundOnCitus), uuid(t.ws), due, ids)
}

func (t *tx) Append(events ...desk.Event) error {
	t.events = append(t.events, events...)
	return t.fail
}
