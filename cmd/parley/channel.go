package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/app"
	"parley/desk"
)

type channelCmd struct {
	Add   channelAddCmd   `cmd:"" help:"Connect a workspace to a provider."`
	List  channelListCmd  `cmd:"" help:"List a workspace's channels, oldest first."`
	Edit  channelEditCmd  `cmd:"" help:"Enable or disable a channel, or bind variables; the next request already obeys."`
	Check channelCheckCmd `cmd:"" help:"Say what is wrong with a channel."`
	Sync  channelSyncCmd  `cmd:"" help:"Fetch a channel's templates from its provider now."`
}

type channelAddCmd struct {
	Sandbox channelAddSandboxCmd `cmd:"" help:"Add a channel that plays a provider and never leaves this machine."`
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
		c.ID.String(), string(c.Kind), c.ExternalID, c.Enabled, c.SupportsTemplates(), c.CreatedAt.String(), bindings,
	}
}

// state is what people call enabled.
func (r *channelRecord) state() string {
	if r.Enabled {
		return "enabled"
	}
	return "disabled"
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
	Channel string    `arg:"" help:"The channel's id."`
	Enabled *bool     `help:"Whether messages are sent on it: --enabled=true or --enabled=false."`
	Bind    []binding `help:"What fills a variable: ${bindings}, or guess for what its name suggests. ADDRESS is the variable's name, with header. before it in a title. May be repeated." placeholder:"TEMPLATE/LANGUAGE/ADDRESS=BINDING" sep:"none"`
}

// Help says what disabling means, and shows examples.
func (*channelEditCmd) Help() string {
	return paragraphs("A channel can't be removed, only disabled: nothing is sent on it then, and its conversations stay. "+
		"Messages still come in.", examples(
		`parley channel edit 01980000-0000-7000-8000-000000000004 --enabled=false`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --bind order_update/en_US/1=customer_first_name --bind order_update/en_US/header.1=free`,
		`parley channel edit 01980000-0000-7000-8000-000000000004 --bind order_update/en_US/1=guess`,
	))
}

// Validate refuses an edit of nothing.
func (c *channelEditCmd) Validate() error {
	if c.Enabled == nil && c.Bind == nil {
		return errors.New("nothing to change: give --enabled or --bind")
	}
	return nil
}

// Run changes the channel.
func (c *channelEditCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		edit := app.ChannelEdit{Enabled: c.Enabled, Bindings: map[desk.BindingPlace]desk.Binding{}}
		for _, b := range c.Bind {
			edit.Bindings[b.place] = b.what
		}
		channel, err := a.EditChannel(ctx, idOf(c.Channel), edit)
		if err != nil {
			return s.unknownChannel(err, c.Channel)
		}
		r := recordOfChannel(&channel)
		return s.answer(r, "The channel %s is now %s; its bindings: %s.\n", r.ChannelID, r.state(), r.bindings())
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
		if len(problems) > 0 {
			err = fmt.Errorf("the channel does not work: %s", strings.Join(problems, "; "))
			if !s.flags.JSON {
				return err
			}
		}
		return errors.Join(err, s.answer(struct {
			Problems []string `json:"problems"`
		}{append([]string{}, problems...)}, "Nothing is wrong with the channel %s.\n", c.Channel))
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
