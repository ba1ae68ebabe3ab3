package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"parley/api"
	"parley/app"
	"parley/app/feed"
	"parley/desk"
	"parley/poster"
	"parley/provider"
)

type webhookCmd struct {
	Add    webhookAddCmd    `cmd:"" help:"Add an endpoint, to which events are posted; its secret is shown once."`
	List   webhookListCmd   `cmd:"" help:"List a workspace's webhooks, oldest first, without their secrets."`
	Edit   webhookEditCmd   `cmd:"" help:"Change a webhook's URL or types, disable or enable it."`
	Remove webhookRemoveCmd `cmd:"" help:"Remove a webhook with its deliveries."`
	Rotate webhookRotateCmd `cmd:"" help:"Replace a webhook's secret; the new one is shown once."`

	Ping       webhookPingCmd       `cmd:"" help:"Make one attempt at a webhook's endpoint now."`
	Replay     webhookReplayCmd     `cmd:"" help:"Let a webhook go on from another place of the feed."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"List a webhook's deliveries, newest first."`
	Redeliver  webhookRedeliverCmd  `cmd:"" help:"Deliver an event again."`
}

// webhookFlags are the flags that say which addresses the server may connect to:
// endpoints of webhooks, and addresses that tenants set for a provider's API.
type webhookFlags struct {
	Allow []prefix  `help:"Private networks that webhooks may reach, and channels whose address a member set, separated by commas, such as 10.1.0.0/16; http is allowed there, too. Every server and command of an installation needs the same." name:"webhook-allow" placeholder:"CIDR"`
	Proxy *proxyURL `help:"An HTTP proxy for all requests to webhooks, which then decides which addresses they may reach. Every server and command of an installation needs the same." name:"webhook-proxy" placeholder:"URL"`
}

func (f *webhookFlags) config() poster.Config {
	c := poster.Config{Proxy: (*url.URL)(f.Proxy)}
	for _, p := range f.Allow {
		c.Allow = append(c.Allow, netip.Prefix(p))
	}
	return c
}

// reminder returns a line which says that the server needs the same flags as this
// command. Without them, the server would refuse addresses that the command could reach.
// It returns "" if the command has none of these flags.
func (f *webhookFlags) reminder() string {
	if f.Allow == nil && f.Proxy == nil {
		return ""
	}
	return "This command used its own --webhook-allow and --webhook-proxy. Start the server with the same: else it can't reach the endpoint.\n"
}

// A prefix is the value of a flag: a network.
type prefix netip.Prefix

func (p *prefix) UnmarshalText(text []byte) error {
	network, err := netip.ParsePrefix(string(text))
	if err != nil {
		if address, e := netip.ParseAddr(string(text)); e == nil {
			return fmt.Errorf("%q is one address: write %s/%d", text, address, address.BitLen())
		}
		return fmt.Errorf("%q is no network: give one such as 10.1.0.0/16 or fd12::/64", text)
	}
	*p = prefix(network)
	return nil
}

// networks converts the networks of a flag.
func networks(list []prefix) []netip.Prefix {
	plain := make([]netip.Prefix, len(list))
	for i, p := range list {
		plain[i] = netip.Prefix(p)
	}
	return plain
}

// A proxyURL is the value of a flag: the URL of an HTTP proxy. It may contain a password,
// so errors do not repeat it.
type proxyURL url.URL

func (p *proxyURL) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err == nil {
		_, err = poster.New(poster.Config{Proxy: u})
	}
	if err != nil {
		return errors.New("give http://HOST:PORT or https://HOST:PORT")
	}
	*p = proxyURL(*u)
	return nil
}

// list returns the types, or nil if the flag was not given.
func (t *eventTypes) list() *[]string {
	if t == nil {
		return nil
	}
	return &t.words
}

// A webhookRecord is a webhook as the API shows it.
type webhookRecord struct {
	feed.Webhook
	secret provider.Secret
}

// MarshalJSON returns the record of the API, with the secret if there is one.
func (r webhookRecord) MarshalJSON() ([]byte, error) { return api.Webhook(&r.Webhook, r.secret), nil }

// state describes the state in one word.
func (r *webhookRecord) state() string {
	switch {
	case r.DisabledReason == desk.DisabledFailing:
		return "disabled (it failed for too long)"
	case r.DisabledReason == desk.DisabledGone:
		return "disabled (it answered 410)"
	case !r.Enabled:
		return "disabled"
	case r.FailingSince != 0:
		return "failing since " + r.FailingSince.String()
	}
	return "enabled"
}

func (s *session) unknownWebhook(err error, id string) error {
	return s.unknown(err, "webhook", id, "webhook list --workspace W")
}

type webhookAddCmd struct {
	Workspace    string      `help:"The workspace's id." required:"" placeholder:"ID"`
	URL          string      `help:"The endpoint's address." name:"url" required:"" placeholder:"URL"`
	Types        *eventTypes `help:"The types of events, separated by commas: names such as message.received, message.* for a kind, * for all. Default: *." placeholder:"T,U"`
	SecretEnv    secretFrom  `help:"The environment variable with the secret: whsec_ and 24 to 64 bytes in base64. By default parley makes one." name:"secret-env" placeholder:"NAME"`
	Disabled     bool        `help:"Post nothing until the webhook is enabled."`
	webhookFlags `embed:""`
}

// Help shows examples.
func (*webhookAddCmd) Help() string {
	return paragraphs("A running server posts every event after this one to the endpoint. docs/webhooks.md and docs/receivers.md show how to build a receiver.", typesHelp(), examples(
		`parley webhook add --workspace 01980000-0000-7000-8000-000000000001 --url https://crm.example.com/in`,
		`parley webhook add --workspace 01980000-0000-7000-8000-000000000001 --url https://crm.example.com/in --types 'message.*,contact.created' --json`,
		`parley webhook add --workspace 01980000-0000-7000-8000-000000000001 --url http://10.1.0.7:3000/in --webhook-allow 10.1.0.0/16`,
	))
}

// Run adds the webhook.
func (c *webhookAddCmd) Run(ctx context.Context, s *session) error {
	given, err := c.SecretEnv.read("--secret-env")
	if err != nil {
		return err
	}
	var secret *string
	if text := given.Reveal(); text != "" {
		secret = &text
	}
	s.webhooks = c.config()
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		enabled := !c.Disabled
		w, key, err := a.Deliver.AddWebhook(ctx, p, desk.WebhookEdit{URL: &c.URL, Types: c.Types.list(), Enabled: &enabled}, secret)
		if e := desk.AsError(err); err != nil && e.At == "/secret" {
			e.At = "/secret_env" // the flag of this command has this name
		}
		if err != nil {
			return err
		}
		return s.answer(struct {
			WebhookID string `json:"webhook_id"`
			Secret    string `json:"secret"`
		}{w.ID.String(), key.Reveal()}, "Added the webhook %s: %s\n\n  %s\n\nKeep the secret now: it is shown this once. It signs what is posted to the endpoint.\n"+c.reminder(), w.URL, w.ID, key.Reveal())
	})
}

type webhookListCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
}

// Help shows examples.
func (*webhookListCmd) Help() string {
	return paragraphs("A failing endpoint is tried every few minutes, until it answers; parley webhook ping tries it now, and its success has all sent that waits.", examples(
		`parley webhook list --workspace 01980000-0000-7000-8000-000000000001`,
		`parley webhook list --workspace 01980000-0000-7000-8000-000000000001 --json`,
	))
}

// Run lists the webhooks.
func (c *webhookListCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		list, err := a.Deliver.Webhooks(ctx, p)
		if err != nil {
			return err
		}
		var records []webhookRecord
		for _, w := range list {
			records = append(records, webhookRecord{Webhook: w})
		}
		return answerList(s, records, []string{"WEBHOOK", "URL", "TYPES", "STATE", "CREATED"}, func(r webhookRecord) []string {
			return []string{r.ID.String(), r.URL, strings.Join(r.Types, ","), r.state(), r.CreatedAt.String()}
		})
	})
}

type webhookEditCmd struct {
	Webhook      string      `arg:"" help:"The webhook's id."`
	URL          *string     `help:"The endpoint's new address." name:"url" placeholder:"URL"`
	Types        *eventTypes `help:"The new types of events, separated by commas: names, message.* for a kind, * for all." placeholder:"T,U"`
	Enabled      *bool       `help:"Whether events are posted: --enabled=true or --enabled=false."`
	webhookFlags `embed:""`
}

// Help explains disabling, and shows examples.
func (*webhookEditCmd) Help() string {
	return paragraphs("What happens while a webhook is disabled waits: once it is enabled, it goes on where it was, as far as the events are kept.", examples(
		`parley webhook edit 01980000-0000-7000-8000-000000000007 --types 'message.*'`,
		`parley webhook edit 01980000-0000-7000-8000-000000000007 --enabled=false`,
		`parley webhook edit 01980000-0000-7000-8000-000000000007 --url https://crm.example.com/v2/in --enabled=true`,
	))
}

// Validate refuses an edit without a change.
func (c *webhookEditCmd) Validate() error {
	if c.URL == nil && c.Types == nil && c.Enabled == nil {
		return errors.New("nothing to change: give --url, --types or --enabled")
	}
	return nil
}

// Run changes the webhook.
func (c *webhookEditCmd) Run(ctx context.Context, s *session) error {
	s.webhooks = c.config()
	return s.onRecord(ctx, c.Webhook, s.unknownWebhook, func(a *app.App, p desk.Principal) error {
		w, err := a.Deliver.EditWebhook(ctx, p, idOf(c.Webhook), desk.WebhookEdit{URL: c.URL, Types: c.Types.list(), Enabled: c.Enabled})
		if err != nil {
			return err
		}
		r := webhookRecord{Webhook: w}
		return s.answer(r, "The webhook %s posts to %s the types %s; it is %s.\n"+c.reminder(), w.ID, w.URL, strings.Join(w.Types, ","), r.state())
	})
}

type webhookRemoveCmd struct {
	Webhook string `arg:"" help:"The webhook's id."`
}

// Help shows examples.
func (*webhookRemoveCmd) Help() string {
	return examples(`parley webhook remove 01980000-0000-7000-8000-000000000007`)
}

// Run removes the webhook, and prints the record as it was before.
func (c *webhookRemoveCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Webhook, s.unknownWebhook, func(a *app.App, p desk.Principal) error {
		w, err := a.Deliver.Webhook(ctx, p, idOf(c.Webhook))
		if err == nil {
			err = a.Deliver.RemoveWebhook(ctx, p, w.ID)
		}
		if err != nil {
			return err
		}
		return s.answer(webhookRecord{Webhook: w}, "Removed the webhook %s: %s\n", w.URL, w.ID)
	})
}

type webhookRotateCmd struct {
	Webhook string        `arg:"" help:"The webhook's id."`
	Overlap time.Duration `help:"How long the secret before signs, too: 0s to 168h; by default ${default}." placeholder:"TIME" default:"24h"`
}

// Help shows examples.
func (*webhookRotateCmd) Help() string {
	return paragraphs("Until the overlap ends, both secrets sign, so the receiver may be changed at any time until then. Only two secrets sign: a second rotation ends the one before the last at once.", examples(
		`parley webhook rotate 01980000-0000-7000-8000-000000000007`,
		`parley webhook rotate 01980000-0000-7000-8000-000000000007 --overlap 0s --json`,
	))
}

// Validate refuses an overlap that the API can't express.
func (c *webhookRotateCmd) Validate() error {
	if c.Overlap < 0 || c.Overlap > desk.MaxOverlap*time.Second || c.Overlap%time.Second != 0 {
		return errors.New("--overlap: give whole seconds from 0s to 168h")
	}
	return nil
}

// Run replaces the secret.
func (c *webhookRotateCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Webhook, s.unknownWebhook, func(a *app.App, p desk.Principal) error {
		w, key, err := a.Deliver.RotateWebhook(ctx, p, idOf(c.Webhook), int64(c.Overlap/time.Second))
		if err != nil {
			return err
		}
		before := fmt.Sprintf("The secret before signs, too, for %s; any earlier one no longer does.", c.Overlap)
		if c.Overlap == 0 {
			before = "No earlier secret signs any more."
		}
		return s.answer(webhookRecord{w, key}, "The new secret of the webhook %s (%s):\n\n  %s\n\nKeep it now: it is shown this once. %s\n", w.URL, w.ID, key.Reveal(), before)
	})
}
