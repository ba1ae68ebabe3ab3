package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"parley/api"
	"parley/app"
	"parley/app/deliver"
	"parley/desk"
)

// An attemptOf is an attempt to deliver, as the API shows it.
type attemptOf desk.WebhookTry

// MarshalJSON returns the record of the API.
func (a attemptOf) MarshalJSON() ([]byte, error) { return api.WebhookTry(desk.WebhookTry(a)), nil }

// outcome describes the outcome in a few words.
func (a attemptOf) outcome() string {
	switch {
	case a.Error == "":
		return strconv.Itoa(a.StatusCode)
	case a.StatusCode != 0:
		return fmt.Sprintf("%s (%d)", a.Error, a.StatusCode)
	}
	return a.Error
}

// attemptWords explain the errors of attempts, and what to check.
var attemptWords = map[string]string{
	"":                "It accepts events.",
	"address_refused": "The address is private or reserved; --webhook-allow opens networks of your own.",
	"dns":             "The host's name has no address: look at its spelling, and at DNS.",
	"connect":         "Nothing listens there, or a firewall drops the connection.",
	"tls":             "There was no TLS session: look at the certificate, its chain and its names.",
	"timeout":         "There was no whole answer within 15 seconds: the receiver should answer first, and work later.",
	"protocol":        "The answer was no HTTP, or it was cut off.",
	"redirect":        "Redirects are not followed: give the final URL, often with or without a / at its end.",
	"gone":            "It answered 410, which disables the webhook: parley webhook edit ID --enabled=true enables it again.",
	"status":          "The receiver did not accept it.",
}

// explained returns the error with its explanation, and with the receiver's response.
func (a attemptOf) explained() string {
	text := attemptWords[a.Error]
	if a.Response != "" {
		text += " It answered: " + desk.Quote(a.Response)
	}
	return text
}

// A deliveryRecord is a delivery as the API shows it.
type deliveryRecord struct{ deliver.Delivery }

// MarshalJSON returns the record of the API.
func (r deliveryRecord) MarshalJSON() ([]byte, error) { return api.Delivery(&r.Delivery), nil }

// last describes the outcome of the newest attempt.
func (r *deliveryRecord) last() string {
	if len(r.Tries) == 0 {
		return "-"
	}
	return attemptOf(r.Tries[len(r.Tries)-1]).outcome()
}

type webhookPingCmd struct {
	Webhook      string `arg:"" help:"The webhook's id."`
	webhookFlags `embed:""`
}

// Help explains the ping, and shows examples.
func (*webhookPingCmd) Help() string {
	return paragraphs("The endpoint gets an event of the type webhook.ping, also while the webhook is disabled. The command exits with 1 unless the endpoint answers 2xx.", examples(
		`parley webhook ping 01980000-0000-7000-8000-000000000007`,
		`parley webhook ping 01980000-0000-7000-8000-000000000007 --webhook-allow 127.0.0.0/8 --json`,
	))
}

// Run makes the attempt.
func (c *webhookPingCmd) Run(ctx context.Context, s *session) error {
	s.webhooks = c.config()
	return s.onRecord(ctx, c.Webhook, s.unknownWebhook, func(a *app.App, p desk.Principal) error {
		attempt, err := a.Deliver.Ping(ctx, p, idOf(c.Webhook))
		if err != nil {
			return err
		}
		r := attemptOf(attempt)
		err = s.answer(r, "The endpoint was tried: %s after %d ms. %s\n"+c.reminder(), r.outcome(), int64(r.Took), r.explained())
		if err == nil && r.Error != "" {
			err = errors.New("the endpoint did not accept the ping: " + r.outcome())
		}
		return err
	})
}

type webhookReplayCmd struct {
	Webhook string `arg:"" help:"The webhook's id."`
	Cursor  string `help:"After which place to go on: the id of an event, a cursor, oldest or latest." required:"" placeholder:"C"`
}

// Help says which deliveries a replay drops, and shows examples.
func (*webhookReplayCmd) Help() string {
	return paragraphs("Pending deliveries of later events are dropped, and come again as new ones, like those that were delivered.", examples(
		`parley webhook replay 01980000-0000-7000-8000-000000000007 --cursor oldest`,
	))
}

// Run moves the webhook's cursor.
func (c *webhookReplayCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Webhook, s.unknownWebhook, func(a *app.App, p desk.Principal) error {
		w, err := a.Deliver.Replay(ctx, p, idOf(c.Webhook), c.Cursor)
		if err != nil {
			return err
		}
		return s.answer(webhookRecord{Webhook: w}, "The webhook %s goes on after %s.\n", w.ID, w.Cursor)
	})
}

type webhookDeliveriesCmd struct {
	Webhook string `arg:"" help:"The webhook's id."`
	Status  string `help:"Only those with this status: pending, delivered or failed." placeholder:"STATUS"`
	Limit   most   `help:"List N at most; by default ${default}." placeholder:"N" default:"50"`
}

// Help shows examples.
func (*webhookDeliveriesCmd) Help() string {
	return examples(
		`parley webhook deliveries 01980000-0000-7000-8000-000000000007`,
		`parley webhook deliveries 01980000-0000-7000-8000-000000000007 --status failed --json`,
	)
}

// Validate refuses an unknown status.
func (c *webhookDeliveriesCmd) Validate() error {
	if c.Status != "" {
		if _, err := desk.ParseWebhookDeliveryStatus(c.Status); err != nil {
			return errors.New("--status: give pending, delivered or failed")
		}
	}
	return nil
}

// Run lists the deliveries.
func (c *webhookDeliveriesCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Webhook, s.unknownWebhook, func(a *app.App, p desk.Principal) error {
		q := deliver.Query{Status: desk.WebhookDeliveryStatus(c.Status)}
		var records []deliveryRecord
		for more := true; more && c.Limit.page(len(records)) > 0; more = q.Cursor != "" {
			q.Limit = c.Limit.page(len(records))
			list, next, err := a.Deliver.Deliveries(ctx, p, idOf(c.Webhook), q)
			if err != nil {
				return err
			}
			for _, d := range list {
				records = append(records, deliveryRecord{d})
			}
			q.Cursor = next
		}
		return answerList(s, records, []string{"DELIVERY", "TYPE", "STATUS", "CREATED", "ATTEMPTS", "LAST", "NEXT"}, func(r deliveryRecord) []string {
			return []string{r.ID.String(), string(r.Type), string(r.Status), r.CreatedAt.String(), strconv.Itoa(len(r.Tries)), r.last(), orDash(momentOf(r.Next))}
		})
	})
}

type webhookRedeliverCmd struct {
	Webhook  string `arg:"" help:"The webhook's id."`
	Delivery string `arg:"" help:"The delivery's id."`
}

// Help shows examples.
func (*webhookRedeliverCmd) Help() string {
	return examples(`parley webhook redeliver 01980000-0000-7000-8000-000000000007 01980000-0000-7000-8000-000000000008`)
}

// Run makes the delivery due.
func (c *webhookRedeliverCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Webhook, s.unknownWebhook, func(a *app.App, p desk.Principal) error {
		d, err := a.Deliver.Redeliver(ctx, p, idOf(c.Webhook), idOf(c.Delivery))
		if desk.IsType(err, desk.NotFound) && p.Settings.Webhook(idOf(c.Webhook)) != nil {
			return fmt.Errorf("the webhook has no delivery %q; %s shows them", c.Delivery, s.command("webhook deliveries %s", c.Webhook))
		}
		if err != nil {
			return err
		}
		r := deliveryRecord{d}
		return s.answer(r, "The delivery %s will be tried at once.\n", r.ID)
	})
}
