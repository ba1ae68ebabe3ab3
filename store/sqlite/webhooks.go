package sqlite

import (
	"context"

	"parley/app"
	"parley/desk"
)

const (
	webhookQuery       = `SELECT body FROM webhooks WHERE workspace_id = ? AND at = ? AND id = ?`
	newestWebhookQuery = `SELECT at FROM webhooks WHERE workspace_id = ? AND channel_id = ? ORDER BY at DESC LIMIT 1`
	// Of a webhook that is gone, nothing is to be known.
	putWebhookPeopleQuery = `INSERT INTO webhook_people (workspace_id, value, at, id) SELECT ?1, j.value, ?2, ?3 FROM json_each(?4) j
	WHERE EXISTS (SELECT 1 FROM webhooks WHERE workspace_id = ?1 AND at = ?2 AND id = ?3) ON CONFLICT DO NOTHING`
)

func (t *tx) PutWebhook(n app.Notice) error {
	t.s.frames += len(n.Body) / pageSize // far more than other rows take
	return failed("store webhook", t.c.stmt(`REPLACE INTO webhooks (workspace_id, at, id, channel_id, body) VALUES (?, ?, ?, ?, ?)`).
		id(t.ws).time(n.Webhook).id(n.ID).id(n.Channel).bytes(n.Body).run())
}

func (t *tx) Webhook(n app.Notice) ([]byte, error) {
	return one("webhook", t.c.stmt(webhookQuery).id(t.ws).time(n.Webhook).id(n.ID), func(s *stmt) []byte {
		if body := s.readBlob(); body != nil {
			return body
		}
		return []byte{} // it is there, and empty
	})
}

func (t *tx) PutWebhookPeople(n app.Notice, people []string) error {
	if len(people) == 0 {
		return nil
	}
	return failed("store whom a webhook tells of", t.c.stmt(putWebhookPeopleQuery).id(t.ws).time(n.Webhook).id(n.ID).json(people).run())
}

// NewestWebhook returns when the newest webhook of a channel came that is still kept, 0
// for none.
func (s *Store) NewestWebhook(ctx context.Context, ws, channel desk.ID) (at desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		at, err = one("newest webhook", c.stmt(newestWebhookQuery).id(ws).id(channel), (*stmt).readTime)
		return err
	})
	return at, err
}

// outdated are the webhooks that ForgetWebhooks deletes.
const outdated = ` (SELECT at, id FROM webhooks WHERE workspace_id = ?1 AND at < ?2 ORDER BY at, id LIMIT ?3)`

const (
	forgetWebhookPeopleQuery = `DELETE FROM webhook_people WHERE workspace_id = ?1 AND (at, id) IN` + outdated
	forgetWebhooksQuery      = `DELETE FROM webhooks WHERE workspace_id = ?1 AND (at, id) IN` + outdated
)

// ForgetWebhooks deletes up to limit webhooks of a workspace that came before a time,
// the oldest first, with what is known of whom they tell, and returns how many.
func (s *Store) ForgetWebhooks(_ context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	err = s.write(func(c conn) error {
		for _, query := range []string{forgetWebhookPeopleQuery, forgetWebhooksQuery} {
			if err := c.stmt(query).id(ws).time(before).int(int64(limit)).run(); err != nil {
				return failed("forget webhooks", err)
			}
		}
		n = c.Changes()
		return nil
	})
	return n, err
}

// told are the webhooks that tell of any of the people, but for those that are still to
// be taken in.
const told = ` (SELECT p.at, p.id FROM json_each(?2) j CROSS JOIN webhook_people p ON p.workspace_id = ?1 AND p.value = j.value
	WHERE NOT EXISTS (SELECT 1 FROM notices n WHERE n.workspace_id = ?1 AND n.webhook_at > 0 AND n.webhook_at = p.at AND n.id = p.id))`

const (
	eraseWebhooksQuery      = `DELETE FROM webhooks WHERE workspace_id = ?1 AND (at, id) IN` + told
	eraseWebhookPeopleQuery = `DELETE FROM webhook_people WHERE workspace_id = ?1 AND (at, id) IN` + told
)

// eraseWebhooks deletes the webhooks that tell of contacts that are deleted.
func eraseWebhooks(c conn, ws desk.ID, deleted []*desk.Contact) error {
	people := peopleOf(deleted)
	if people == nil {
		return nil
	}
	if err := c.stmt(eraseWebhooksQuery).id(ws).json(people).run(); err != nil {
		return err
	}
	return c.stmt(eraseWebhookPeopleQuery).id(ws).json(people).run()
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
