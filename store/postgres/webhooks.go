package postgres

import (
	"context"

	"parley/app"
	"parley/desk"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	webhookQuery    = `SELECT body FROM webhooks WHERE workspace_id = $1 AND at = $2 AND id = $3`
	putWebhookQuery = `INSERT INTO webhooks (workspace_id, at, id, channel_id, body) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (workspace_id, at, id) DO UPDATE SET channel_id = excluded.channel_id, body = excluded.body`
	putWebhookPeopleQuery = `INSERT INTO webhook_people (workspace_id, value, at, id) SELECT $1, u.value, $2, $3 FROM unnest($4::text[]) u (value)
	WHERE EXISTS (SELECT FROM webhooks WHERE workspace_id = $1 AND at = $2 AND id = $3) ON CONFLICT DO NOTHING`
	newestWebhookQuery = `SELECT at FROM webhooks WHERE workspace_id = $1 AND channel_id = $2 ORDER BY at DESC LIMIT 1`
)

func (t *tx) PutWebhook(n app.Notice) error {
	t.put(putWebhookQuery, uuid(t.ws), int64(n.Webhook), uuid(n.ID), uuid(n.Channel), notNull(n.Body))
	return t.fail
}

func (t *tx) Webhook(n app.Notice) ([]byte, error) {
	return one(t.pipe, "webhook", func(row pgx.Row) (body []byte, err error) {
		err = row.Scan(&body)
		return body, err
	}, webhookQuery+forUpdate, uuid(t.ws), int64(n.Webhook), uuid(n.ID))
}

// PutWebhookPeople holds the webhook, as whoever deletes one does first: of one that is
// gone, nothing is to be known.
func (t *tx) PutWebhookPeople(n app.Notice, people []string) error {
	if len(people) == 0 {
		return t.fail
	}
	key := []any{uuid(t.ws), int64(n.Webhook), uuid(n.ID)}
	t.put(`SELECT 1 FROM webhooks WHERE workspace_id = $1 AND at = $2 AND id = $3`+forUpdate, key...)
	t.put(putWebhookPeopleQuery, append(key, people)...)
	return t.fail
}

// NewestWebhook returns when the newest webhook of a channel came that is still kept, 0
// for none.
func (s *Store) NewestWebhook(ctx context.Context, ws, channel desk.ID) (at desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		at, err = one(p, "newest webhook", readTime, newestWebhookQuery, uuid(ws), uuid(channel))
		return err
	})
	return at, err
}

// The rows of people are deleted by a statement of their own: it sees those that were
// stored before the webhooks were locked.
const (
	outdatedWebhooksQuery = `SELECT at, id FROM webhooks WHERE workspace_id = $1 AND at < $2 ORDER BY at, id LIMIT $3 FOR UPDATE SKIP LOCKED`
	eachWebhook           = ` USING unnest($2::bigint[], $3::uuid[]) u (at, id) CROSS JOIN LATERAL `
	forgetWebhookPeople   = `DELETE FROM webhook_people p` + eachWebhook +
		`(SELECT ctid AS place FROM webhook_people WHERE workspace_id = $1 AND at = u.at AND id = u.id OFFSET 0) l WHERE p.ctid = l.place`
	forgetWebhooks = `DELETE FROM webhooks w` + eachWebhook +
		`(SELECT ctid AS place FROM webhooks WHERE workspace_id = $1 AND at = u.at AND id = u.id LIMIT 1) l WHERE w.ctid = l.place`
)

// ForgetWebhooks deletes up to limit webhooks of a workspace that came before a time,
// the oldest first, with what is known of whom they tell, and returns how many. It passes
// over one that is being taken in.
func (s *Store) ForgetWebhooks(ctx context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	err = s.write(ctx, ws, false, func(t *tx) error {
		var at []int64
		ids := pgtype.FlatArray[uuid]{}
		t.each(func(row pgx.Row) error {
			var a int64
			var id uuid
			err := row.Scan(&a, &id)
			at, ids = append(at, a), append(ids, id)
			return err
		}, outdatedWebhooksQuery, uuid(ws), int64(before), limit)
		if n = 0; t.send("webhooks to forget") == nil && at != nil {
			n = len(at)
			t.put(forgetWebhookPeople, uuid(ws), at, ids)
			t.put(forgetWebhooks, uuid(ws), at, ids)
		}
		return failed("forget webhooks", t.fail)
	})
	return n, err
}

// Of what tells of a person, OFFSET 0 lets the planner do nothing but look it up by the
// person, see wantedContacts.
const (
	toldWebhooks = `(SELECT DISTINCT p.at, p.id FROM unnest($2::text[]) u (value) CROSS JOIN LATERAL
			(SELECT at, id FROM webhook_people WHERE workspace_id = $1 AND value = u.value OFFSET 0) p ORDER BY 1, 2) p CROSS JOIN LATERAL
		(SELECT ctid AS place FROM webhooks w WHERE workspace_id = $1 AND at = p.at AND id = p.id
			AND NOT EXISTS (SELECT FROM notices WHERE workspace_id = $1 AND webhook_at > 0 AND webhook_at = w.at AND id = w.id) FOR UPDATE) l`
	lockWebhooks       = `SELECT FROM ` + toldWebhooks
	eraseWebhooksQuery = `WITH gone AS (DELETE FROM webhooks w USING ` + toldWebhooks + ` WHERE w.ctid = l.place RETURNING w.at, w.id)
	DELETE FROM webhook_people p USING gone CROSS JOIN LATERAL
		(SELECT ctid AS place FROM webhook_people WHERE workspace_id = $1 AND at = gone.at AND id = gone.id OFFSET 0) l WHERE p.ctid = l.place`
)

// eraseWebhooks deletes the webhooks that tell of contacts that are deleted, but for
// those that are still to be taken in. They are locked first, for the second statement
// to see of whom they tell.
func eraseWebhooks(p *pipe, ws desk.ID, deleted []*desk.Contact) {
	people := peopleOf(deleted)
	if people == nil {
		return
	}
	p.put(lockWebhooks, uuid(ws), people)
	p.put(eraseWebhooksQuery, uuid(ws), people)
}

// peopleOf are the values by which a provider may name the contacts.
func peopleOf(contacts []*desk.Contact) (values []string) {
	for _, c := range contacts {
		for _, i := range c.Identities() {
			switch i.Kind {
			case desk.KindPhone, desk.KindWhatsApp, desk.KindWhatsAppUser:
				values = append(values, i.Value)
			}
		}
	}
	return values
}
