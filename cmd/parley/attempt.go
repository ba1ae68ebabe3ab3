package main

import (
	"context"
	"errors"
	"fmt"

	"parley/app"
	"parley/desk"
)

type attemptCmd struct {
	List    attemptListCmd    `cmd:"" help:"List a workspace's sends, newest first."`
	Release attemptReleaseCmd `cmd:"" help:"Settle a send whose outcome nobody knows."`
}

// An attemptRecord tells nothing of the person whom the message was for but an id.
type attemptRecord struct {
	AttemptID  string         `json:"attempt_id"`
	Key        string         `json:"key"` // the Idempotency-Key
	Phase      string         `json:"phase"`
	CreatedAt  string         `json:"created_at"`
	SettledAt  *string        `json:"settled_at"`
	ChannelID  string         `json:"channel_id"`
	ContactID  string         `json:"contact_id"` // of a new contact, the one that it was to get
	Template   string         `json:"template"`
	Language   string         `json:"language"`
	ExternalID *string        `json:"external_id"` // the provider's id of the message
	Refusal    *refusalRecord `json:"refusal"`
	Notes      []string       `json:"notes"`
}

// Of a refusal that is not the provider's, code, title and fix are null.
type refusalRecord struct {
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Code    *int    `json:"code"`
	Title   *string `json:"title"`
	Fix     *string `json:"fix"`
}

func recordOfAttempt(at *desk.Attempt) attemptRecord {
	r := attemptRecord{
		at.ID.String(), at.Key, string(at.Phase), at.CreatedAt.String(), momentOf(at.SettledAt),
		at.Plan.Channel.String(), at.Plan.Contact.String(), at.Plan.Template, at.Plan.Language, unlessEmpty(at.ExternalID), nil, append([]string{}, at.Notes...),
	}
	if at.Refusal != nil {
		r.Refusal = &refusalRecord{Type: string(at.Refusal.Type), Message: at.Refusal.Message}
		if f := at.Refusal.Failure; f != nil {
			r.Refusal.Code, r.Refusal.Title, r.Refusal.Fix = &f.Code, &f.Title, &f.Fix
		}
	}
	return r
}

// outcome is what a person wants to know beyond the phase.
func (r *attemptRecord) outcome() string {
	switch {
	case r.Refusal != nil && r.Refusal.Code != nil:
		return fmt.Sprintf("%s %d: %s", r.Refusal.Type, *r.Refusal.Code, *r.Refusal.Title)
	case r.Refusal != nil:
		return r.Refusal.Type
	}
	return orDash(r.ExternalID)
}

type attemptListCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
	InDoubt   bool   `help:"Only those whose outcome nobody knows."`
	Limit     int    `help:"At most so many; by default ${default}." placeholder:"N" default:"1000"`
}

// Help explains the phases, and shows examples.
func (*attemptListCmd) Help() string {
	return paragraphs("An attempt is one try to hand one message to the provider. Its phase is one of these:", indented(
		"dispatching  under way",
		"done         the provider took the message; OUTCOME is its id of it",
		"refused      it was certainly not sent, and its Idempotency-Key is free; OUTCOME says why",
		"in_doubt     nobody knows whether the provider took it; a status of the message settles",
		"             it, or a person does, with parley attempt release",
		"released     a person said that it was not sent, and its Idempotency-Key is free",
	), "What could not be stored with a message that was sent, such as an assignee who was removed meanwhile, is among "+
		"an attempt's notes. They show with --json only.", examples(
		`parley attempt list --workspace 01980000-0000-7000-8000-000000000001`,
		`parley attempt list --workspace 01980000-0000-7000-8000-000000000001 --in-doubt --json`,
	))
}

// Validate refuses an empty list.
func (c *attemptListCmd) Validate() error {
	if c.Limit < 1 {
		return errors.New("--limit: give a number of 1 or more")
	}
	return nil
}

// Run lists the attempts.
func (c *attemptListCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		attempts, err := a.Attempts(ctx, idOf(c.Workspace), c.InDoubt, c.Limit)
		if err != nil {
			return s.unknownWorkspace(err, c.Workspace)
		}
		var records []attemptRecord
		for _, at := range attempts {
			records = append(records, recordOfAttempt(at))
		}
		return answerList(s, records, []string{"ATTEMPT", "KEY", "PHASE", "TEMPLATE", "CREATED", "OUTCOME"}, func(r attemptRecord) []string {
			return []string{r.AttemptID, r.Key, r.Phase, r.Template + "/" + r.Language, r.CreatedAt, r.outcome()}
		})
	})
}

type attemptReleaseCmd struct {
	Attempt string `arg:"" help:"The attempt's id."`
	Sent    bool   `help:"The provider took the message: it is stored, and its key answers so." xor:"outcome" required:""`
	NotSent bool   `help:"It did not: nothing is stored, and the same call may send it again." xor:"outcome" required:""`
}

// Help warns, and shows examples.
func (*attemptReleaseCmd) Help() string {
	return paragraphs("Look at what the provider shows first. --not-sent frees the Idempotency-Key, so the same call sends again: "+
		"if the message did go out, the person gets it twice. --sent stores the message and sends nothing.", examples(
		`parley attempt release 01980000-0000-7000-8000-000000000005 --sent`,
		`parley attempt release 01980000-0000-7000-8000-000000000005 --not-sent --json`,
	))
}

// Run settles the attempt.
func (c *attemptReleaseCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		at, err := a.Release(ctx, idOf(c.Attempt), c.Sent)
		if err != nil {
			return s.unknown(err, "unsettled attempt", c.Attempt, "parley attempt list --workspace W --in-doubt")
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
