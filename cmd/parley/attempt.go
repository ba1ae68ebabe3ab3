package main

import (
	"context"
	"fmt"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
)

type attemptCmd struct {
	List    attemptListCmd    `cmd:"" help:"List a workspace's sends, newest first."`
	Release attemptReleaseCmd `cmd:"" help:"Settle a send whose outcome nobody knows."`
}

// An attemptRecord is an attempt as the API shows it. A settled attempt has only the
// recipient's id, no address.
type attemptRecord struct {
	AttemptID  string         `json:"attempt_id"`
	Key        string         `json:"key"` // the Idempotency-Key
	Phase      string         `json:"phase"`
	CreatedAt  string         `json:"created_at"`
	SettledAt  *string        `json:"settled_at"`
	ChannelID  string         `json:"channel_id"`
	ContactID  string         `json:"contact_id"` // for a new contact: the id that it would get
	Address    *string        `json:"address"`    // the number, until the attempt is settled
	Template   *string        `json:"template"`
	Language   *string        `json:"language"`
	ExternalID *string        `json:"external_id"` // the provider's id of the message
	Refusal    *refusalRecord `json:"refusal"`
	Notes      []string       `json:"notes"`

	ConversationID *string `json:"conversation_id"` // the conversation of the stored message
	MessageID      *string `json:"message_id"`
	Kind           string  `json:"kind"`

	OptIn *optInRecord `json:"opt_in"` // for a template
}

// An optInRecord says who confirmed that the person agreed to get the message, and when.
type optInRecord struct {
	ConfirmedAt string      `json:"confirmed_at"`
	Actor       actorRecord `json:"actor"`
}

// An actorRecord is an actor as in an event. The name is the actor's present name.
type actorRecord struct {
	Kind string  `json:"kind"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// A refusalRecord is a refusal. Only a refusal of the provider has a code, title and
// fix.
type refusalRecord struct {
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Code    *int    `json:"code"`
	Title   *string `json:"title"`
	Fix     *string `json:"fix"`
}

func recordOfAttempt(at *desk.Attempt, s *desk.Settings) attemptRecord {
	r := attemptRecord{
		at.ID.String(), at.Key, string(at.Phase), at.CreatedAt.String(), momentOf(at.SettledAt),
		at.Plan.Channel.String(), at.Plan.Contact.String(), unlessEmpty(at.Address()), unlessEmpty(at.Plan.Template), unlessEmpty(at.Plan.Language), unlessEmpty(at.ExternalID), nil, append([]string{}, at.Notes...), nil, nil, string(at.Plan.Kind()), nil,
	}
	if id := at.InConversation(); !id.IsZero() {
		conversation := id.String()
		r.ConversationID = &conversation
	}
	if at.Stored() {
		message := at.Plan.Message.String()
		r.MessageID = &message
	}
	if o := at.OptIn(); o != nil {
		r.OptIn = &optInRecord{o.At.String(), actorRecord{Kind: string(o.Actor().Kind), Name: unlessEmpty(api.ActorName(s, o.Actor()))}}
		if id := o.Actor().ID; !id.IsZero() {
			r.OptIn.Actor.ID = unlessEmpty(id.String())
		}
	}
	if at.Refusal != nil {
		r.Refusal = &refusalRecord{Type: string(at.Refusal.Type), Message: at.Refusal.Answer().Worded("", advice)}
		if f := at.Refusal.Failure; f != nil {
			r.Refusal.Code, r.Refusal.Title, r.Refusal.Fix = &f.Code, &f.Title, &f.Fix
		}
	}
	return r
}

// outcome describes the refusal. Without a refusal, it returns the provider's id of the
// message.
func (r *attemptRecord) outcome() string {
	switch {
	case r.Refusal != nil && r.Refusal.Code != nil:
		return fmt.Sprintf("%s %d: %s", r.Refusal.Type, *r.Refusal.Code, *r.Refusal.Title)
	case r.Refusal != nil:
		return r.Refusal.Type
	}
	return orDash(r.ExternalID)
}

// what returns the name of the template. For a reply, it returns the kind of the message.
func (r *attemptRecord) what() string {
	if r.Template == nil {
		return r.Kind
	}
	return *r.Template + "/" + orDash(r.Language)
}

type attemptListCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
	InDoubt   bool   `help:"Only those whose outcome nobody knows."`
	Limit     most   `help:"List N at most; by default ${default}." placeholder:"N" default:"1000"`
}

// Help explains the phases, and shows examples.
func (*attemptListCmd) Help() string {
	return paragraphs("An attempt is one try to hand one message to the provider. Its phase is one of these:", indented(
		"dispatching  under way",
		"done         the provider accepted the message; OUTCOME is the provider's id of the message",
		"refused      the message was certainly not sent, and its Idempotency-Key is free;",
		"             OUTCOME says why",
		"in_doubt     nobody knows whether the provider accepted the message; a status of the",
		"             message settles it, or a person does, with parley attempt release",
		"released     a person said that the message was not sent; its Idempotency-Key is free",
	), "ADDRESS is the recipient's number. Search for it at the provider. It is shown until the attempt is settled.",
		"The notes of an attempt say what could not be stored with a message that was sent, such as an assignee who was removed meanwhile. "+
			"Only --json shows them.", examples(
			`parley attempt list --workspace 01980000-0000-7000-8000-000000000001`,
			`parley attempt list --workspace 01980000-0000-7000-8000-000000000001 --in-doubt --json`,
		))
}

// Run lists the attempts.
func (c *attemptListCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		phase := desk.Phase("")
		if c.InDoubt {
			phase = desk.InDoubt
		}
		var records []attemptRecord
		for cursor, more := "", true; more && c.Limit.page(len(records)) > 0; more = cursor != "" {
			attempts, next, err := a.Attempts(ctx, p, app.AttemptFilter{Phase: phase}, cursor, c.Limit.page(len(records)))
			if err != nil {
				return err
			}
			for _, at := range attempts {
				records = append(records, recordOfAttempt(at, p.Settings))
			}
			cursor = next
		}
		return answerList(s, records, []string{"ATTEMPT", "KEY", "PHASE", "TEMPLATE", "ADDRESS", "CREATED", "OUTCOME"}, func(r attemptRecord) []string {
			return []string{r.AttemptID, r.Key, r.Phase, r.what(), orDash(r.Address), r.CreatedAt, r.outcome()}
		})
	})
}

func (s *session) unknownAttempt(err error, id string) error {
	return s.unknown(err, "attempt", id, "attempt list --workspace W --in-doubt")
}

type attemptReleaseCmd struct {
	Attempt   string         `arg:"" optional:"" help:"The attempt's id."`
	Workspace string         `help:"Instead of an attempt: all of this workspace that are in doubt for as long as --older-than says." placeholder:"ID"`
	OlderThan *time.Duration `help:"With --workspace: since when at least." placeholder:"24h"`
	Sent      bool           `help:"The provider took the message: the message is stored, and repeating the call returns it." xor:"outcome" required:""`
	NotSent   bool           `help:"The provider did not take it: nothing is stored, and the same call may send it again." xor:"outcome" required:""`
}

// Validate requires either an attempt, or the flags for many attempts.
func (c *attemptReleaseCmd) Validate() error {
	switch {
	case (c.Attempt == "") == (c.Workspace == ""):
		return usageError("name an attempt, or give --workspace with --older-than")
	case (c.Workspace == "") != (c.OlderThan == nil):
		return usageError("--workspace and --older-than come together")
	case c.OlderThan != nil && *c.OlderThan < 0:
		return usageError("--older-than must not be negative")
	}
	return nil
}

// Help warns, and shows examples.
func (*attemptReleaseCmd) Help() string {
	return paragraphs("Check at the provider first whether it has the message. --not-sent frees the Idempotency-Key, so the same call sends again: "+
		"if the message was sent before, the person gets it twice. --sent stores the message and sends nothing.",
		"With --workspace, all sends that have been in doubt for so long are settled, oldest first, in small steps. If that is interrupted, run it again.", examples(
			`parley attempt release 01980000-0000-7000-8000-000000000005 --sent`,
			`parley attempt release 01980000-0000-7000-8000-000000000005 --not-sent --json`,
			`parley attempt release --workspace 01980000-0000-7000-8000-000000000001 --older-than 24h --sent`,
		))
}

// Run settles one attempt, or many attempts.
func (c *attemptReleaseCmd) Run(ctx context.Context, s *session) error {
	if c.Workspace != "" {
		return c.releaseMany(ctx, s)
	}
	return s.do(ctx, func(a *app.App) error {
		p, err := a.OperatorOfAttempt(ctx, idOf(c.Attempt))
		if err != nil {
			return s.unknownAttempt(err, c.Attempt)
		}
		at, err := a.Release(ctx, p, idOf(c.Attempt), c.Sent)
		if err != nil {
			return err
		}
		meaning := "was not sent, so its Idempotency-Key may send again"
		if c.Sent {
			meaning = "was sent, so its Idempotency-Key answers with it"
		}
		return s.answer(struct {
			AttemptID string `json:"attempt_id"`
			Phase     string `json:"phase"`
		}{at.ID.String(), string(at.Phase)}, "Settled the attempt %s: the message %s.\n", at.ID, meaning)
	})
}

func (c *attemptReleaseCmd) releaseMany(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		said := time.Now()
		n, err := a.ReleaseOld(ctx, p, *c.OlderThan, c.Sent, func(released int) {
			if time.Since(said) > progressEvery {
				said = time.Now()
				_, _ = fmt.Fprintf(s.stderr, "%d sends settled\n", released)
			}
		})
		if err != nil {
			return fmt.Errorf("%d sends were settled; run the same again for the rest: %w", n, err)
		}
		return s.answer(struct {
			Released int `json:"released"`
		}{n}, "Settled %d sends that were in doubt.\n", n)
	})
}
