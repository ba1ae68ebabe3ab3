package postgres

import (
	"context"
	"time"

	"parley/app"
	"parley/desk"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// A tx is a transaction on one workspace. What it writes waits for its next read or for
// the commit, and so costs no round trip of its own.
type tx struct {
	*pipe
	s        *Store
	ws       desk.ID
	settings *desk.Settings

	version int64     // of the settings
	now     desk.Time // the database's clock at
	nowAt   time.Time

	events     []desk.Event
	unheard    map[app.NumberHash]bool // numbers of which nothing was known
	committing bool
}

// begin lets the transaction begin with what is sent next.
func (t *tx) begin(alone bool) {
	t.put(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	lock := lockShared
	if alone {
		lock = lockAlone
	}
	t.put(lock, lockOf(t.ws))
	t.each(func(row pgx.Row) error {
		t.nowAt = time.Now()
		return row.Scan(&t.version, (*int64)(&t.now))
	}, `SELECT version, `+databaseNow+` FROM workspaces WHERE id = $1`, uuid(t.ws))
}

// databaseNow is the clock by which leases are measured on all nodes.
const databaseNow = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// open sends what waits and returns NotFound when there is no such workspace.
func (t *tx) open(doing string) (err error) {
	if err := t.send(doing); err != nil {
		return err
	}
	if t.version == 0 {
		return errNoWorkspace
	}
	t.settings, err = t.s.settingsAt(t.pipe, t.ws, t.version)
	return err
}

// commit stores what waits and the events, and commits, in one round trip. The events
// come last, since they hold the workspace's counter until the commit.
func (t *tx) commit() error {
	putEvents(t.pipe, t.ws, t.events)
	t.put(`COMMIT`)
	t.committing = true
	return t.send("commit")
}

// lost tells what became of a transaction whose connection is gone: nothing is stored,
// unless its commit was under way.
func (t *tx) lost() (again bool, err error) {
	if t.committing {
		return false, unknown(t.fail)
	}
	return t.ctx.Err() == nil, unavailable(t.fail)
}

// InTx runs f in a transaction on one workspace and returns once what it wrote is
// durable, or with f's error, as it is, and nothing stored.
func (s *Store) InTx(ctx context.Context, ws desk.ID, f func(app.Tx) error) error {
	return s.write(ctx, ws, false, func(t *tx) error {
		if err := t.open("begin"); err != nil {
			return err
		}
		return f(t)
	})
}

// What a read returns is locked until the transaction ends.
const forUpdate = ` FOR UPDATE`

func (t *tx) Settings() *desk.Settings { return t.settings }

func (t *tx) Now() desk.Time { return t.now + desk.Time(time.Since(t.nowAt).Milliseconds()) }

// Book locks the contacts before it loads them: whoever waited for a lock would see the
// locked rows as they are now, and the identities as they were before.
func (t *tx) Book(ops ...*desk.Op) (*desk.Book, error) {
	w := wanted(ops)
	locked := map[desk.ID]bool{}
	t.each(func(row pgx.Row) error {
		var id desk.ID
		err := row.Scan(into(&id))
		locked[id] = true
		return err
	}, lockBookQuery, w.args(t.ws)...)
	loaded := putLoad(t.pipe, t.ws, w)
	if err := t.send("load contacts"); err != nil {
		return nil, err
	}
	for _, c := range *loaded {
		if !locked[c.ID] {
			t.fail = errConflict // an identity has moved between the two
			return nil, failed("load contacts", t.fail)
		}
	}
	return bookOf(t.settings, len(ops), *loaded), nil
}

func (t *tx) Flush(book *desk.Book) error { return flushBook(t, book) }

func (t *tx) Contact(id desk.ID) (*desk.Contact, error) {
	c, err := one(t.pipe, "contact", readContact, contactQuery+` FOR UPDATE OF c`, uuid(t.ws), uuid(id))
	if err != nil || c == nil {
		return nil, err
	}
	return c.of(t.settings), nil
}

func (t *tx) Conversation(id desk.ID) (*desk.Conversation, error) {
	return one(t.pipe, "conversation", readConversation, conversationQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) OpenConversation(channel, contact desk.ID) (*desk.Conversation, error) {
	return one(t.pipe, "open conversation", readConversation, openConversationQuery+forUpdate, uuid(t.ws), uuid(channel), uuid(contact))
}

func (t *tx) PutConversation(v *desk.Conversation) error { return putConversation(t.pipe, t.ws, v) }

func (t *tx) Message(conversation, id desk.ID) (*desk.Message, error) {
	return one(t.pipe, "message", readMessage, messageQuery+forUpdate, uuid(t.ws), uuid(conversation), uuid(id))
}

func (t *tx) MessageBy(channel desk.ID, externalID string) (*desk.Message, error) {
	return one(t.pipe, "message", readMessage, messageByQuery+forUpdate, uuid(t.ws), uuid(channel), externalID)
}

func (t *tx) PutMessage(m *desk.Message) error { return putMessage(t.pipe, t.ws, m) }

func (t *tx) AttemptOfKey(key string) (*desk.Attempt, error) {
	return one(t.pipe, "attempt of key", readAttempt, attemptOfKeyQuery+forUpdate, uuid(t.ws), key)
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

func (t *tx) PutAttempt(a *desk.Attempt) error { return putAttempt(t.pipe, t.ws, a) }

func (t *tx) OptOut(number app.NumberHash) (app.OptOut, error) {
	o, err := one(t.pipe, "opt-out", readOptOut, optOutQuery+forUpdate, uuid(t.ws), number[:])
	if o == nil {
		if t.unheard == nil {
			t.unheard = map[app.NumberHash]bool{}
		}
		t.unheard[number] = true
		return app.OptOut{}, err
	}
	return *o, err
}

// SetOptOut inserts what was not there to be locked plainly: whoever was faster is then
// met as a conflict.
func (t *tx) SetOptOut(number app.NumberHash, o app.OptOut) error {
	query := `INSERT INTO opt_outs (workspace_id, number_hash, since, at) VALUES ($1, $2, $3, $4)`
	if !t.unheard[number] {
		query += ` ON CONFLICT (workspace_id, number_hash) DO UPDATE SET since = excluded.since, at = excluded.at`
	}
	delete(t.unheard, number)
	t.put(query, uuid(t.ws), number[:], int64(o.Since), int64(o.At))
	return t.fail
}

// KeepStatus and TakeStatuses exclude each other for a message, which is not there to be
// locked: else a status could be kept just after its message was stored and has asked.
func (t *tx) KeepStatus(channel desk.ID, n desk.StatusNotice) error {
	t.put(statusLock, uuid(t.ws), uuid(channel), n.ExternalID)
	known := false
	t.each(func(pgx.Row) error { known = true; return nil }, messageByQuery, uuid(t.ws), uuid(channel), n.ExternalID)
	t.put(`INSERT INTO early_statuses (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		uuid(t.ws), uuid(channel), n.ExternalID, int64(n.At), string(n.Delivery), uuid(n.Attempt), asJSON(n.Failure))
	err := t.send("keep status")
	if err == nil && known {
		t.fail = errConflict
		err = failed("keep status", t.fail)
	}
	return err
}

func (t *tx) TakeStatuses(channel desk.ID, externalID string) ([]desk.StatusNotice, error) {
	t.put(statusLock, uuid(t.ws), uuid(channel), externalID)
	return all(t.pipe, "take statuses", readStatus, takeStatusesQuery, uuid(t.ws), uuid(channel), externalID)
}

func (t *tx) DropStatuses(before desk.Time) error {
	t.put(`DELETE FROM early_statuses WHERE workspace_id = $1 AND at < $2`, uuid(t.ws), int64(before))
	return t.fail
}

func (t *tx) PutNotice(n app.Notice) error { return putNotice(t.pipe, t.ws, n) }

// TakeNotices passes over what another transaction is taking. It returns them as they
// are by now: of a webhook, another process may have taken in a part.
func (t *tx) TakeNotices(list []app.Notice) (taken []app.Notice, err error) {
	due, ids := make([]int64, len(list)), make(pgtype.FlatArray[uuid], len(list))
	for i, n := range list {
		due[i], ids[i] = int64(n.Due), uuid(n.ID)
	}
	return all(t.pipe, "take notices", readNotice, takeNoticesQuery, uuid(t.ws), due, ids)
}

func (t *tx) Append(events ...desk.Event) error {
	t.events = append(t.events, events...)
	return t.fail
}
