package main

import (
	"context"
	"fmt"
	"strings"

	"parley/api"
	"parley/app"
	"parley/desk"
)

type policyCmd struct {
	Show  policyShowCmd  `cmd:"" help:"Show the reply policy of a workspace, or the one in force on a channel."`
	Set   policySetCmd   `cmd:"" help:"Replace the reply policy of a workspace or of a channel."`
	Clear policyClearCmd `cmd:"" help:"Remove the reply policy of a workspace, or a channel's own."`
}

// policyFlags are the flags that name the workspace or channel of a policy.
type policyFlags struct {
	Workspace string  `help:"The workspace's id." required:"" placeholder:"ID"`
	Channel   *string `help:"The id of a channel of the workspace; without it, the workspace's own policy." placeholder:"ID"`
}

// on calls f with the workspace and the channel. The channel is zero if the flags name
// none.
func (c *policyFlags) on(ctx context.Context, s *session, f func(a *app.App, p desk.Principal, channel desk.ID) error) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		channel := desk.ID{}
		if c.Channel != nil {
			if channel = idOf(*c.Channel); p.Settings.Channel(channel) == nil {
				return s.unknownChannel(desk.NoChannel(), *c.Channel)
			}
		}
		return f(a, p, channel)
	})
}

// A policyRecord is a policy as the API shows it.
type policyRecord struct{ policy *desk.Policy }

// MarshalJSON returns the record of the API.
func (r policyRecord) MarshalJSON() ([]byte, error) { return api.Policy(r.policy), nil }

// lines is a text of several lines whose values are already printable.
type lines string

// text describes the policy for people.
func (r policyRecord) text(s *desk.Settings) lines {
	p := r.policy
	if p == nil {
		return "There is no reply policy.\n"
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s  %s\n", name, fmt.Sprintf(format, args...))
	}
	if p.Channel.IsZero() {
		line("Of", "the workspace")
	} else {
		line("Of", "the channel %s", p.Channel)
	}
	if a := p.Assign; a == nil {
		line("Assign", "off")
	} else {
		names := make([]string, len(a.Members))
		for i, id := range a.Members {
			names[i] = id.String() // the name of a member who was added meanwhile is not known
			if m := s.Member(id); m != nil {
				names[i] = printable(m.Name)
			}
		}
		text := string(a.Mode)
		if len(names) > 0 {
			text += " among " + strings.Join(names, ", ")
		}
		if a.MaxOpen > 0 {
			text += fmt.Sprintf(", at most %d open each", a.MaxOpen)
		}
		line("Assign", "%s", text)
	}
	owner := "gets new conversations all the same"
	if p.OwnerAway == desk.OwnerPool {
		owner = "gets no new conversations: they are assigned as if there were no owner"
	}
	line("Owner away", "%s", owner)
	if h := p.Hours; h == nil {
		line("Hours", "always open")
	} else {
		line("Hours", "in %s, with %d exceptions", h.TimeZone, len(h.Exceptions))
		for _, day := range desk.Weekdays {
			line("", "%s %s", day, spansText(h.Week[day]))
		}
	}
	if r := p.AutoReply; r == nil {
		line("Auto reply", "off")
	} else {
		line("Auto reply", "at most every %d hours", r.EveryHours)
		line("", "away: %s", orNone(r.Away))
		line("", "queued: %s", orNone(r.Queued))
		if r.WhenHeld {
			line("", "away also if somebody holds the conversation")
		}
	}
	line("Updated", "%s", p.UpdatedAt)
	return lines(b.String())
}

func spansText(list []desk.Span) string {
	if len(list) == 0 {
		return "closed"
	}
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = s[0].String() + "-" + s[1].String()
	}
	return strings.Join(words, ", ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return fmt.Sprintf("%q", text)
}

type policyShowCmd struct {
	policyFlags `embed:""`
}

// Help shows examples.
func (*policyShowCmd) Help() string {
	return examples(
		`parley policy show --workspace 01980000-0000-7000-8000-000000000001`,
		`parley policy show --workspace 01980000-0000-7000-8000-000000000001 --channel 01980000-0000-7000-8000-000000000004 --json`,
	)
}

// Run shows the policy.
func (c *policyShowCmd) Run(ctx context.Context, s *session) error {
	return c.on(ctx, s, func(a *app.App, p desk.Principal, channel desk.ID) error {
		found, err := a.Policy(p, channel)
		if err != nil {
			return err
		}
		r := policyRecord{found}
		return s.answer(r, "%s", r.text(p.Settings))
	})
}

type policySetCmd struct {
	policyFlags `embed:""`
	File        string `help:"The policy, the JSON of PUT /policy; - reads standard input." required:"" placeholder:"FILE"`
}

const policyExample = `{"assign": {"mode": "least_open", "members": ["nora@acme.example", "mei@acme.example"], "max_open": 20},
 "owner_away": "pool",
 "hours": {"time_zone": "Europe/Istanbul",
  "week": {"mon": [["09:00", "12:30"], ["13:30", "18:00"]], "tue": [["09:00", "18:00"]]},
  "exceptions": [{"date": "2026-12-31", "open": []}]},
 "auto_reply": {"away": "We are back at nine.", "queued": null, "every_hours": 12, "when_held": false}}`

// Help shows a complete policy, and examples.
func (*policySetCmd) Help() string {
	return paragraphs("A file holds one policy, which replaces the one before as a whole; a part that is left out is off. This is a whole one:",
		indented(strings.Split(policyExample, "\n")...),
		"Members are named by id or e-mail. A day that is left out is closed.",
		examples(
			`parley policy set --workspace 01980000-0000-7000-8000-000000000001 --file policy.json`,
			`parley policy set --workspace 01980000-0000-7000-8000-000000000001 --channel 01980000-0000-7000-8000-000000000004 --file - <policy.json`,
		))
}

// Run replaces the policy.
func (c *policySetCmd) Run(ctx context.Context, s *session) error {
	text, err := s.readFile(c.File)
	if err != nil {
		return err
	}
	in, err := api.ReadPolicy(text)
	if err != nil {
		return desk.Within("/file", err)
	}
	return c.on(ctx, s, func(a *app.App, p desk.Principal, channel desk.ID) error {
		set, err := a.SetPolicy(ctx, p, channel, in)
		if err != nil {
			return desk.Within("/file", err)
		}
		r := policyRecord{set}
		return s.answer(r, "%s", r.text(p.Settings))
	})
}

type policyClearCmd struct {
	policyFlags `embed:""`
}

// Help shows examples.
func (*policyClearCmd) Help() string {
	return examples(
		`parley policy clear --workspace 01980000-0000-7000-8000-000000000001`,
		`parley policy clear --workspace 01980000-0000-7000-8000-000000000001 --channel 01980000-0000-7000-8000-000000000004`,
	)
}

// Run removes the policy.
func (c *policyClearCmd) Run(ctx context.Context, s *session) error {
	return c.on(ctx, s, func(a *app.App, p desk.Principal, channel desk.ID) error {
		if err := a.ClearPolicy(ctx, p, channel); err != nil {
			return err
		}
		r, text := policyRecord{}, "The workspace has no reply policy."
		if !channel.IsZero() {
			r.policy, text = p.Settings.Policy(desk.ID{}), "The channel has no reply policy of its own; the workspace's is in force."
		}
		return s.answer(r, "%s\n", text)
	})
}
