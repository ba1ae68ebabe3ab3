package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
)

type channelCmd struct {
	Add   channelAddCmd   `cmd:"" help:"Connect a workspace to a provider."`
	List  channelListCmd  `cmd:"" help:"List a workspace's channels, oldest first."`
	Edit  channelEditCmd  `cmd:"" help:"Enable or disable a channel, bind variables, replace secrets; the next request already obeys."`
	Check channelCheckCmd `cmd:"" help:"Say what is wrong with a channel."`
	Sync  channelSyncCmd  `cmd:"" help:"Fetch a channel's templates from its provider now."`
}

type channelAddCmd struct {
	Sandbox  channelAddSandboxCmd  `cmd:"" help:"Add a channel that plays a provider and never leaves this machine."`
	Whatsapp channelAddWhatsAppCmd `cmd:"" help:"Connect a number of the WhatsApp Cloud API."`
}

// A binding is a flag's TEMPLATE/LANGUAGE/ADDRESS=BINDING; "" of a binding is the guess.
type binding struct {
	place desk.BindingPlace
	what  desk.Binding
}

func (b *binding) UnmarshalText(text []byte) (err error) {
	b.place, b.what, err = desk.ParseBindingPlace(string(text))
	return plain(err)
}

// joinBindings lists the bindings for the help.
func joinBindings() string {
	words := make([]string, len(desk.Bindings))
	for i, b := range desk.Bindings {
		words[i] = string(b)
	}
	return strings.Join(words, ", ")
}

type channelRecord struct {
	ChannelID         string          `json:"channel_id"`
	Kind              string          `json:"kind"`
	ExternalID        string          `json:"external_id"`
	Enabled           bool            `json:"enabled"`
	SupportsTemplates bool            `json:"supports_templates"`
	CreatedAt         string          `json:"created_at"`
	Blocked           *string         `json:"blocked"`  // why the provider lets it send nothing
	Bindings          []bindingRecord `json:"bindings"` // those that were configured
}

type bindingRecord struct {
	Template string `json:"template"`
	Language string `json:"language"`
	Address  string `json:"address"`
	Binding  string `json:"binding"`
}

func recordOfChannel(c *desk.Channel) channelRecord {
	bindings := make([]bindingRecord, 0, len(c.Bindings))
	for place, b := range c.Bindings {
		bindings = append(bindings, bindingRecord{place.Template, place.Language, place.Address, string(b)})
	}
	slices.SortFunc(bindings, func(a, b bindingRecord) int {
		return cmp.Or(cmp.Compare(a.Template, b.Template), cmp.Compare(a.Language, b.Language), cmp.Compare(a.Address, b.Address))
	})
	return channelRecord{
		c.ID.String(), string(c.Kind), c.ExternalID, c.Enabled, c.SupportsTemplates(), c.CreatedAt.String(),
		unlessEmpty(c.Account.BlockedAt(desk.TimeOf(time.Now()))), bindings,
	}
}

// state is what people call enabled.
func (r *channelRecord) state() string {
	switch {
	case !r.Enabled:
		return "disabled"
	case r.Blocked != nil:
		return "blocked"
	}
	return "enabled"
}

// bindings spells the configured bindings as --bind takes them.
func (r *channelRecord) bindings() string {
	if len(r.Bindings) == 0 {
		return "-"
	}
	words := make([]string, len(r.Bindings))
	for i, b := range r.Bindings {
		words[i] = fmt.Sprintf("%s/%s/%s=%s", b.Template, b.Language, b.Address, b.Binding)
	}
	return strings.Join(words, ", ")
}

func (s *session) unknownChannel(err error, id string) error {
	return s.unknown(err, "channel", id, "parley channel list --workspace W")
}

type channelAddSandboxCmd struct {
	Workspace  string `help:"The workspace's id." required:"" placeholder:"ID"`
	ExternalID string `help:"What to call it, one of a kind in the workspace; by default made up." name:"external-id" placeholder:"X"`
}

// Help says what a sandbox does, and shows examples.
func (*channelAddSandboxCmd) Help() string {
	return paragraphs("What becomes of a message is in the last digits of the number it goes to:", indented(
		"0001       refused for good",
		"0002       refused for now",
		"0003       taken, but the answer is lost, and no status ever comes; as it was taken,",
		"           parley attempt release ID --sent settles it",
		"0004       taken; failed a second later",
		"0005       taken after three seconds",
		"any other  taken; delivered after one second, read after three",
	), "A channel can't be removed, since its conversations lead to it. parley channel edit disables it.", examples(
		`parley channel add sandbox --workspace 01980000-0000-7000-8000-000000000001`,
		`parley channel add sandbox --workspace 01980000-0000-7000-8000-000000000001 --external-id trial --json`,
	))
}

// Run adds the channel.
func (c *channelAddSandboxCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		channel, err := a.AddSandbox(ctx, idOf(c.Workspace), c.ExternalID)
		if err != nil {
			return s.unknownWorkspace(err, c.Workspace)
		}
		id := channel.ID.String()
		return s.answer(struct {
			ChannelID string `json:"channel_id"`
		}{id}, "Added the sandbox channel %s: %s\n\nNext, a template to send; parley help template put shows a small one:\n  parley template put --channel %s --file template.json\n", channel.ExternalID, id, id)
	})
}

// A secretFrom is a flag that names the environment variable which holds a secret: an
// argument could be read by others, in the list of processes.
type secretFrom string

// read returns the secret, the empty one when no variable is named.
func (v secretFrom) read() (app.Secret, error) {
	if v == "" {
		return app.Secret{}, nil
	}
	text := strings.TrimSpace(os.Getenv(string(v)))
	if text == "" {
		return app.Secret{}, errors.New("an environment variable that a flag names is empty: give the variable's name, not the secret, and export it first, with the secret as its value")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return app.Secret{}, errors.New("a secret holds a line break, a space or a letter that none has: copy it anew, on one line")
	}
	return app.NewSecret(text), nil
}

type secretFlags struct {
	AppSecretEnv   secretFrom `help:"The environment variable that holds the Meta app's secret, which signs webhooks." name:"app-secret-env" placeholder:"NAME"`
	TokenEnv       secretFrom `help:"The one that holds the access token, of a system user with the permissions whatsapp_business_messaging and whatsapp_business_management." name:"token-env" placeholder:"NAME"`
	VerifyTokenEnv secretFrom `help:"The one that holds the verify token, which you also give to Meta; when a channel is added, by default made up." name:"verify-token-env" placeholder:"NAME"`
}

func (f *secretFlags) read() (s app.Secrets, err error) {
	var errs [3]error
	s.AppSecret, errs[0] = f.AppSecretEnv.read()
	s.Token, errs[1] = f.TokenEnv.read()
	s.VerifyToken, errs[2] = f.VerifyTokenEnv.read()
	return s, cmp.Or(errs[:]...)
}

type channelAddWhatsAppCmd struct {
	Workspace     string `help:"The workspace's id." required:"" placeholder:"ID"`
	PhoneNumberID string `help:"The id of the number in WhatsApp Manager, not the number itself." name:"phone-number-id" required:"" placeholder:"P"`
	WabaID        string `help:"The id of the WhatsApp Business Account that the number belongs to." name:"waba-id" required:"" placeholder:"B"`
	secretFlags   `embed:""`
	GraphURL      string `help:"Another address of the Graph API, as of a simulator. Default: https://graph.facebook.com." name:"graph-url" placeholder:"URL"`
	GraphVersion  string `help:"The version of the Graph API. Default: v26.0." name:"graph-version" placeholder:"V"`
	PerSecond     int    `help:"How many messages a second the number may send: 80, or 1000 once Meta has raised it. Default: 80." name:"per-second" placeholder:"N"`
}

// Help says where the values are found, and shows examples.
func (*channelAddWhatsAppCmd) Help() string {
	return paragraphs("Token, number and account are checked at Meta first, and nothing is stored when they don't fit together. "+
		"Secrets are read from the environment, and stored encrypted. Then give Meta's app, under WhatsApp, Configuration, "+
		"the callback URL and the verify token that this command prints, and subscribe to the fields it names.", examples(
		`export WHATSAPP_TOKEN=... WHATSAPP_APP_SECRET=...`,
		`parley channel add whatsapp --workspace 01980000-0000-7000-8000-000000000001 --phone-number-id 200300400500600 --waba-id 100200300400500 --app-secret-env WHATSAPP_APP_SECRET --token-env WHATSAPP_TOKEN`,
	))
}

// Validate refuses a channel without secrets.
func (c *channelAddWhatsAppCmd) Validate() error {
	if c.AppSecretEnv == "" || c.TokenEnv == "" {
		return errors.New("give --app-secret-env and --token-env: the names of environment variables that hold the secrets")
	}
	return nil
}

// Run adds the channel.
func (c *channelAddWhatsAppCmd) Run(ctx context.Context, s *session) error {
	secrets, err := c.read()
	if err != nil {
		return err
	}
	return s.do(ctx, func(a *app.App) error {
		channel, secrets, problems, err := a.AddWhatsApp(ctx, idOf(c.Workspace), app.WhatsAppAccount{
			PhoneNumberID: c.PhoneNumberID, Secrets: secrets,
			Account: desk.Account{BusinessID: c.WabaID, BaseURL: c.GraphURL, Version: c.GraphVersion, PerSecond: c.PerSecond},
		})
		if err != nil {
			return s.unknownWorkspace(err, c.Workspace)
		}
		id := channel.ID.String()
		verify, madeUp := "the one in "+string(c.VerifyTokenEnv), ""
		if c.VerifyTokenEnv == "" {
			madeUp = secrets.VerifyToken.Reveal()
			verify = madeUp + " (shown once)"
		}
		notes := ""
		for _, p := range problems {
			notes += "Note: " + p.Text + "\n"
		}
		return s.answer(struct {
			ChannelID   string `json:"channel_id"`
			WebhookPath string `json:"webhook_path"`
			VerifyToken string `json:"verify_token,omitempty"` // when it was made up
		}{id, app.WebhookPath(channel.ID), madeUp}, "Added the WhatsApp channel of the number %s: %s\n%s\nIn Meta's app, under WhatsApp, Configuration, set\n  Callback URL   your server's public address with the path %s\n  Verify token   %s\nand subscribe to these fields: %s.\n\nThe server must run to answer Meta then. parley channel check %s says what is still missing.\n",
			channel.ExternalID, id, notes, app.WebhookPath(channel.ID), verify, app.WebhookFields, id)
	})
}

type channelListCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
}

// Help shows examples.
func (*channelListCmd) Help() string {
	return examples(
		`parley channel list --workspace 01980000-0000-7000-8000-000000000001`,
		`parley channel list --workspace 01980000-0000-7000-8000-000000000001 --json`,
	)
}

// Run lists the channels.
func (c *channelListCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		channels, err := a.ChannelsOf(ctx, idOf(c.Workspace))
		if err != nil {
			return s.unknownWorkspace(err, c.Workspace)
		}
		var records []channelRecord
		for _, channel := range channels {
			records = append(records, recordOfChannel(channel))
		}
		return answerList(s, records, []string{"CHANNEL", "KIND", "EXTERNAL ID", "STATE", "CREATED", "BINDINGS"}, func(r channelRecord) []string {
			return []string{r.ChannelID, r.Kind, r.ExternalID, r.state(), r.CreatedAt, r.bindings()}
		})
	})
}

type channelEditCmd struct {
	Channel     string `arg:"" help:"The channel's id."`
	Enabled     *bool  `help:"Whether messages are sent on it: --enabled=true or --enabled=false."`
	PerSecond   *int   `help:"How many messages a second a WhatsApp number may send; 0 for the default, 80." name:"per-second" placeholder:"N"`
	secretFlags `embed:""`
	Bind        []binding `help:"What fills a variable: ${bindings}, or guess for what its name suggests. ADDRESS is the variable's name, with header. before it in a title. May be repeated." placeholder:"TEMPLATE/LANGUAGE/ADDRESS=BINDING" sep:"none"`
}

// Help says what disabling means, and shows examples.
func (*channelEditCmd) Help() string {
	return paragraphs("A channel can't be removed, only disabled: nothing is sent on it then, and its conversations stay. "+
		"Messages still come in.", "A WhatsApp channel's secrets are replaced by those in the environment variables named. "+
		"Webhooks that the previous app secret signed are still taken.", examples(
		`parley channel edit 01980000-0000-7000-8000-000000000004 --enabled=false`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --token-env WHATSAPP_TOKEN`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --bind order_update/en_US/1=customer_first_name --bind order_update/en_US/header.1=free`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --bind order_update/en_US/1=guess`,
	))
}

// Validate refuses an edit of nothing.
func (c *channelEditCmd) Validate() error {
	if c.Enabled == nil && c.PerSecond == nil && c.secretFlags == (secretFlags{}) && c.Bind == nil {
		return errors.New("nothing to change: give --enabled, --bind, --per-second or a secret's environment variable")
	}
	return nil
}

// Run changes the channel.
func (c *channelEditCmd) Run(ctx context.Context, s *session) error {
	secrets, err := c.read()
	if err != nil {
		return err
	}
	return s.do(ctx, func(a *app.App) error {
		edit := app.ChannelEdit{Enabled: c.Enabled, PerSecond: c.PerSecond, Secrets: secrets, Bindings: map[desk.BindingPlace]desk.Binding{}}
		for _, b := range c.Bind {
			edit.Bindings[b.place] = b.what
		}
		channel, err := a.EditChannel(ctx, idOf(c.Channel), edit)
		if err != nil {
			return s.unknownChannel(err, c.Channel)
		}
		r := recordOfChannel(&channel)
		note := ""
		if secrets != (app.Secrets{}) {
			note = "WhatsApp accepts its new secrets, and reports to it. A new verify token must be entered in Meta's app, too.\n"
		}
		return s.answer(r, "The channel %s is now %s; its bindings: %s.\n%s", r.ChannelID, r.state(), r.bindings(), note)
	})
}

type channelCheckCmd struct {
	Channel string `arg:"" help:"The channel's id."`
}

// Help shows examples.
func (*channelCheckCmd) Help() string {
	return examples(
		`parley channel check 01980000-0000-7000-8000-000000000004`,
		`parley channel check 01980000-0000-7000-8000-000000000004 --json`,
	)
}

// Run checks the channel. That something is wrong with it is a failure, so that a
// script needs to look at the exit code only; with --json the problems are answered
// all the same.
func (c *channelCheckCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		problems, err := a.CheckChannel(ctx, idOf(c.Channel))
		if err != nil {
			return s.unknownChannel(err, c.Channel)
		}
		texts, working := []string{}, true
		for _, p := range problems {
			texts, working = append(texts, p.Text), working && !p.Blocking
		}
		text := fmt.Sprintf("Nothing is wrong with the channel %s.\n", c.Channel)
		switch {
		case len(texts) > 0 && working:
			err = fmt.Errorf("the channel works, but %s", strings.Join(texts, "; and "))
		case len(texts) > 0:
			err = fmt.Errorf("the channel does not work: %s", strings.Join(texts, "; and "))
		}
		if err != nil && !s.flags.JSON {
			return err
		}
		return errors.Join(err, s.answer(struct {
			Problems []string `json:"problems"`
		}{texts}, "%s", text))
	})
}

type channelSyncCmd struct {
	Channel string `arg:"" help:"The channel's id."`
}

// Help shows examples.
func (*channelSyncCmd) Help() string {
	return examples(
		`parley channel sync 01980000-0000-7000-8000-000000000004`,
		`parley channel sync 01980000-0000-7000-8000-000000000004 --json`,
	)
}

// Run fetches the templates.
func (c *channelSyncCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		count, unreadable, err := a.SyncChannel(ctx, idOf(c.Channel))
		if err != nil {
			return s.unknownChannel(err, c.Channel)
		}
		return s.answer(struct {
			Templates  int `json:"templates"`
			Unreadable int `json:"unreadable"`
		}{count, unreadable}, "Templates fetched: %d; left out, since they can't be read: %d.\n", count, unreadable)
	})
}
