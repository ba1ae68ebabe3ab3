package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/whatsapp"
)

type channelCmd struct {
	Add   channelAddCmd   `cmd:"" help:"Connect a workspace to a provider."`
	List  channelListCmd  `cmd:"" help:"List a workspace's channels, oldest first."`
	Edit  channelEditCmd  `cmd:"" help:"Enable or disable a channel, bind variables, replace secrets; it counts from the next request on."`
	Check channelCheckCmd `cmd:"" help:"Say what is wrong with a channel."`
	Sync  channelSyncCmd  `cmd:"" help:"Fetch a channel's templates from its provider now."`
}

type channelAddCmd struct {
	Sandbox  channelAddSandboxCmd  `cmd:"" help:"Add a channel that simulates a provider; nothing leaves this machine."`
	Whatsapp channelAddWhatsAppCmd `cmd:"" help:"Connect a number of the WhatsApp Cloud API."`
}

// A binding is the value of a flag: TEMPLATE/LANGUAGE/ADDRESS=BINDING. An empty BINDING
// means that the binding is guessed from the variable's name.
type binding struct {
	place desk.BindingPlace
	what  desk.Binding
}

func (b *binding) UnmarshalText(text []byte) (err error) {
	b.place, b.what, err = desk.ParseBindingPlace(string(text))
	return plain(err)
}

// joinBindings returns the list of possible bindings for the help.
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
	Status            channelStatus   `json:"status"`
	Blocked           *string         `json:"blocked"`  // the reason why the provider does not let the channel send, or does not let it start conversations
	Bindings          []bindingRecord `json:"bindings"` // the configured bindings
	Name              *string         `json:"name"`     // null: the channel has no name
}

// A channelStatus says whether messages can be sent on a channel, as far as parley knows.
// If not, it gives the reason and the time since when.
type channelStatus struct {
	Up     bool    `json:"up"`
	Reason *string `json:"reason"` // disabled, blocked or refused
	Code   *int    `json:"code"`   // the provider's code, if the reason is refused
	Trace  *string `json:"fbtrace_id"`
	Since  *string `json:"since"`
}

func statusOf(c *desk.Channel, now desk.Time) (s channelStatus) {
	s.Up = c.Up(now)
	reason := ""
	switch status := &c.Status; {
	case !c.Enabled:
		reason = "disabled"
	case status.BlockedAt(now) == "":
	case status.ByCall:
		reason, s.Since = "refused", momentOf(status.Since)
		s.Code, s.Trace = &status.Code, unlessEmpty(status.Trace)
	default:
		reason, s.Since = "blocked", momentOf(status.Since)
	}
	s.Reason = unlessEmpty(reason)
	return s
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
	now := desk.TimeOf(time.Now())
	return channelRecord{
		c.ID.String(), string(c.Kind), c.ExternalID, c.Enabled, c.SupportsTemplates(), c.CreatedAt.String(),
		statusOf(c, now), unlessEmpty(c.Status.BlockedAt(now)), bindings, unlessEmpty(c.Name),
	}
}

// state describes the status in a few words.
func (r *channelRecord) state() string {
	switch {
	case r.Status.Up:
		return "enabled"
	case r.Status.Code != nil:
		return fmt.Sprintf("refused by the provider (code %d)", *r.Status.Code)
	}
	return *r.Status.Reason
}

// bindings returns the configured bindings in the form that --bind takes.
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
	return s.unknown(err, "channel", id, "channel list --workspace W")
}

type channelAddSandboxCmd struct {
	Workspace  string `help:"The workspace's id." required:"" placeholder:"ID"`
	ExternalID string `help:"The channel's external id, unique in the workspace; by default parley chooses one." name:"external-id" placeholder:"X"`
	nameFlag   `embed:""`
}

// A nameFlag is the flag for the name of a new channel.
type nameFlag struct {
	Name string `help:"What people call the channel, to tell it from others; at most 100 characters." placeholder:"NAME"`
}

// Help describes the sandbox, and shows examples.
func (*channelAddSandboxCmd) Help() string {
	return paragraphs("The last digits of the recipient's number decide what happens to a message:", indented(
		"0001       refused for good",
		"0002       refused for now",
		"0003       taken, but the answer is lost, and no status ever comes; settle it with",
		"           parley attempt release ID --sent",
		"0004       taken; failed a second later",
		"0005       taken after three seconds",
		"0006       a reply is taken; failed a second later, because the window is closed",
		"any other  taken; delivered after one second, read after three",
	), "A channel can't be removed, because its conversations belong to it. parley channel edit disables it.", examples(
		`parley channel add sandbox --workspace 01980000-0000-7000-8000-000000000001`,
		`parley channel add sandbox --workspace 01980000-0000-7000-8000-000000000001 --external-id trial --json`,
	))
}

// Run adds the channel.
func (c *channelAddSandboxCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		added, _, err := a.AddChannel(ctx, p, app.NewChannel{Kind: desk.SandboxChannel, ExternalID: c.ExternalID, Name: c.Name})
		if err != nil {
			return err
		}
		id := added.Channel.ID.String()
		return s.answer(struct {
			ChannelID string `json:"channel_id"`
		}{id}, "Added the sandbox channel %s: %s\n\nNext, a template to send; parley help template put shows a small one:\n  %s\n",
			added.Channel.ExternalID, id, s.command("template put --channel %s --file template.json", id))
	})
}

// A secretFrom is a flag with the name of an environment variable that has a secret. A
// secret is not an argument, because other users could read it in the list of processes.
type secretFrom string

// variableName is the usual form of the names of environment variables. A value in
// another form is not printed: it may be the secret itself, given by mistake.
var variableName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// read returns the secret. If the flag names no variable, the secret is empty.
func (v secretFrom) read(flag string) (provider.Secret, error) {
	if v == "" {
		return provider.Secret{}, nil
	}
	variable := "the environment variable that " + flag + " names"
	if variableName.MatchString(string(v)) {
		variable = fmt.Sprintf("the environment variable %s, which %s names,", string(v), flag)
	}
	text := strings.TrimSpace(os.Getenv(string(v)))
	if text == "" {
		return provider.Secret{}, fmt.Errorf("%s is empty or not set: give the variable's name, not the secret, and export it first, with the secret as its value", variable)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return provider.Secret{}, fmt.Errorf("%s holds a line break, a space or a letter that no secret has: copy it anew, on one line", variable)
	}
	return provider.NewSecret(text), nil
}

type secretFlags struct {
	AppSecretEnv   secretFrom `help:"The environment variable with the Meta app's secret, which signs callbacks." name:"app-secret-env" placeholder:"NAME"`
	TokenEnv       secretFrom `help:"The environment variable with the access token of a system user who has the permissions whatsapp_business_messaging and whatsapp_business_management." name:"token-env" placeholder:"NAME"`
	VerifyTokenEnv secretFrom `help:"The environment variable with the verify token, which you also enter at Meta; when a channel is added, by default parley chooses one." name:"verify-token-env" placeholder:"NAME"`
}

func (f *secretFlags) read() (s provider.Secrets, err error) {
	var errs [3]error
	s.AppSecret, errs[0] = f.AppSecretEnv.read("--app-secret-env")
	s.Token, errs[1] = f.TokenEnv.read("--token-env")
	s.VerifyToken, errs[2] = f.VerifyTokenEnv.read("--verify-token-env")
	return s, cmp.Or(errs[:]...)
}

type channelAddWhatsAppCmd struct {
	Workspace     string `help:"The workspace's id." required:"" placeholder:"ID"`
	PhoneNumberID string `help:"The id of the number in WhatsApp Manager, not the number itself." name:"phone-number-id" required:"" placeholder:"P"`
	WabaID        string `help:"The id of the WhatsApp Business Account that the number belongs to." name:"waba-id" required:"" placeholder:"B"`
	secretFlags   `embed:""`
	nameFlag      `embed:""`
	GraphURL      string `help:"Another address of the Graph API, such as a simulator's. Default: https://graph.facebook.com." name:"graph-url" placeholder:"URL"`
	GraphVersion  string `help:"The version of the Graph API. Default: v26.0." name:"graph-version" placeholder:"V"`
	PerSecond     int    `help:"How many messages a second the number may send: 80, or 1000 once Meta has raised it. Default: 80." name:"per-second" placeholder:"N"`
}

// Help says where to find the values, and shows examples.
func (*channelAddWhatsAppCmd) Help() string {
	return paragraphs("The command checks token, number and account at Meta first. If they don't fit together, it stores nothing. "+
		"Secrets are read from the environment and stored encrypted. Afterwards, enter the callback URL and the verify token that this command prints "+
		"in Meta's app, under WhatsApp, Configuration, and subscribe to the fields that it names.", examples(
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
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		added, problems, err := a.AddChannel(ctx, p, app.NewChannel{
			Kind: desk.WhatsAppChannel, ExternalID: c.PhoneNumberID, Name: c.Name, Secrets: secrets,
			Account: desk.Account{BusinessID: c.WabaID, BaseURL: c.GraphURL, Version: c.GraphVersion, PerSecond: c.PerSecond},
		})
		if e := desk.AsError(err); err != nil && e.At == "/external_id" {
			e.At = "/phone_number_id" // the flag of this command has this name
		}
		if err != nil {
			return err
		}
		id := added.Channel.ID.String()
		path := app.CallbackPath(desk.WhatsAppChannel, id)
		verify, madeUp := "the one in "+string(c.VerifyTokenEnv), ""
		if c.VerifyTokenEnv == "" {
			madeUp = added.Secrets.VerifyToken.Reveal()
			verify = madeUp + " (shown once)"
		}
		notes := ""
		for _, p := range problems {
			notes += "Note: " + printable(problemText(p)) + "\n"
		}
		return s.answer(struct {
			ChannelID   string `json:"channel_id"`
			WebhookPath string `json:"webhook_path"`
			VerifyToken string `json:"verify_token,omitempty"` // only if the command has generated the token
		}{id, path, madeUp}, "Added the WhatsApp channel of the number %s: %s\n%s\nIn Meta's app, under WhatsApp, Configuration, set\n  Callback URL   your server's public address with the path %s\n  Verify token   %s\nand subscribe to these fields: %s.\n\nThe server must run to answer Meta then. This says what is still missing:\n  %s\n",
			added.Channel.ExternalID, id, block(notes), path, verify, whatsapp.CallbackFields, s.command("channel check %s", id))
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
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		var records []channelRecord
		for _, channel := range p.Settings.Channels() {
			records = append(records, recordOfChannel(channel))
		}
		return answerList(s, records, []string{"CHANNEL", "KIND", "EXTERNAL ID", "NAME", "STATE", "CREATED", "BINDINGS"}, func(r channelRecord) []string {
			return []string{r.ChannelID, r.Kind, r.ExternalID, orDash(r.Name), r.state(), r.CreatedAt, r.bindings()}
		})
	})
}

type channelEditCmd struct {
	Channel      string  `arg:"" help:"The channel's id."`
	Enabled      *bool   `help:"Whether messages are sent on it: --enabled=true or --enabled=false."`
	Name         *string `help:"What people call the channel, to tell it from others; at most 100 characters, '' for no name." placeholder:"NAME"`
	PerSecond    *int    `help:"How many messages a second a WhatsApp number may send; 0 for the default, 80." name:"per-second" placeholder:"N"`
	secretFlags  `embed:""`
	webhookFlags `embed:""`
	Bind         []binding `help:"What fills a variable: ${bindings}, or guess to guess it from the variable's name. ADDRESS is the variable's name; in a title, header. and its name. May be repeated." placeholder:"TEMPLATE/LANGUAGE/ADDRESS=BINDING" sep:"none"`
}

// Help explains disabling, and shows examples.
func (*channelEditCmd) Help() string {
	return paragraphs("A channel can't be removed, only disabled. Nothing is sent on a disabled channel, its conversations stay, and "+
		"messages still come in.", "A WhatsApp channel's secrets are replaced by those in the environment variables that you name. "+
		"Callbacks signed with the previous app secret are still accepted.", examples(
		`parley channel edit 01980000-0000-7000-8000-000000000004 --enabled=false`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --name "Shop in Izmir"`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --token-env WHATSAPP_TOKEN`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --bind order_update/en_US/1=customer_first_name --bind order_update/en_US/header.1=free`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --bind order_update/en_US/1=guess`,
	))
}

// Validate refuses an edit without a change.
func (c *channelEditCmd) Validate() error {
	if c.Enabled == nil && c.Name == nil && c.PerSecond == nil && c.secretFlags == (secretFlags{}) && c.Bind == nil {
		return errors.New("nothing to change: give --enabled, --name, --bind, --per-second or a secret's environment variable")
	}
	return nil
}

// Run changes the channel.
func (c *channelEditCmd) Run(ctx context.Context, s *session) error {
	s.webhooks = c.config()
	secrets, err := c.read()
	if err != nil {
		return err
	}
	return s.onRecord(ctx, c.Channel, s.unknownChannel, func(a *app.App, p desk.Principal) error {
		edit := app.ChannelEdit{Enabled: c.Enabled, Name: c.Name, PerSecond: c.PerSecond, Secrets: secrets, Bindings: map[desk.BindingPlace]desk.Binding{}}
		for _, b := range c.Bind {
			edit.Bindings[b.place] = b.what
		}
		channel, err := a.EditChannel(ctx, p, idOf(c.Channel), edit)
		if err != nil {
			return err
		}
		r := recordOfChannel(&channel)
		note := ""
		if secrets != (provider.Secrets{}) {
			note = "WhatsApp accepts its new secrets, and reports to it. A new verify token must be entered in Meta's app, too.\n"
		}
		return s.answer(r, "The channel %s is now %s; its bindings: %s.\n%s", r.ChannelID, r.state(), r.bindings(), block(note))
	})
}

type channelCheckCmd struct {
	Channel      string `arg:"" help:"The channel's id."`
	webhookFlags `embed:""`
}

// Help shows examples.
func (*channelCheckCmd) Help() string {
	return examples(
		`parley channel check 01980000-0000-7000-8000-000000000004`,
		`parley channel check 01980000-0000-7000-8000-000000000004 --json`,
	)
}

// Run checks the channel. If there is a problem, the command fails, so a script needs
// only the exit code. With --json the problems are printed too.
func (c *channelCheckCmd) Run(ctx context.Context, s *session) error {
	s.webhooks = c.config()
	return s.onRecord(ctx, c.Channel, s.unknownChannel, func(a *app.App, p desk.Principal) error {
		problems, err := a.CheckChannel(ctx, p, idOf(c.Channel))
		if err != nil {
			return err
		}
		texts, working := []string{}, true
		for _, problem := range problems {
			texts, working = append(texts, problemText(problem)), working && !problem.Blocking
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
		}{texts}, "%s", block(text)))
	})
}

type channelSyncCmd struct {
	Channel      string `arg:"" help:"The channel's id."`
	webhookFlags `embed:""`
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
	s.webhooks = c.config()
	return s.onRecord(ctx, c.Channel, s.unknownChannel, func(a *app.App, p desk.Principal) error {
		count, unreadable, err := a.SyncChannel(ctx, p, idOf(c.Channel))
		if err != nil {
			return err
		}
		return s.answer(struct {
			Templates  int `json:"templates"`
			Unreadable int `json:"unreadable"`
		}{count, unreadable}, "Templates fetched: %d; left out, since they can't be read: %d.\n", count, unreadable)
	})
}
