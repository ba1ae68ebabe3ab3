package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
)

type workspaceCmd struct {
	Create workspaceCreateCmd `cmd:"" help:"Make a workspace."`
	List   workspaceListCmd   `cmd:"" help:"List the workspaces, oldest first."`
	Delete workspaceDeleteCmd `cmd:"" help:"Delete a workspace with everything in it."`
	Edit   workspaceEditCmd   `cmd:"" help:"Change a workspace's name, country or rule for external ids."`
	Check  workspaceCheckCmd  `cmd:"" help:"List identities that contacts share, and identities that today's rules refuse."`
}

// A country is the value of a flag: an ISO 3166 code, or empty.
type country string

func (c *country) UnmarshalText(text []byte) error {
	code, err := desk.ParseCountry(string(text))
	*c = country(code)
	return err
}

type workspaceRecord struct {
	WorkspaceID string  `json:"workspace_id"`
	Name        string  `json:"name"`
	Country     *string `json:"country"`
	ExternalIDs string  `json:"external_ids"` // replace or fixed
	State       string  `json:"state"`
}

// The states of a workspace.
const (
	stateActive       = "active"
	stateBeingDeleted = "being deleted"
)

func recordOfWorkspace(w desk.Workspace) workspaceRecord {
	externalIDs := "replace"
	if w.FixedExternalIDs {
		externalIDs = "fixed"
	}
	return workspaceRecord{w.ID.String(), w.Name, unlessEmpty(w.Country), externalIDs, stateActive}
}

type workspaceCreateCmd struct {
	Name    string  `help:"The workspace's name." required:"" placeholder:"NAME"`
	Country country `help:"The country (ISO 3166, such as US) in which phone numbers without an international prefix are read." placeholder:"CC"`
}

// Help shows examples.
func (*workspaceCreateCmd) Help() string {
	return examples(
		`parley workspace create --name "Acme Support"`,
		`parley workspace create --name "Acme Support" --country US --json`,
	)
}

// Run makes the workspace. If there is no installation, it also makes the installation.
func (c *workspaceCreateCmd) Run(ctx context.Context, s *session) error {
	return s.doOn(ctx, makes, func(a *app.App) error {
		w, err := a.CreateWorkspace(ctx, c.Name, string(c.Country))
		if err != nil {
			return err
		}
		id := w.ID.String()
		return s.answer(struct {
			WorkspaceID string `json:"workspace_id"`
		}{id}, "Made the workspace %s: %s\n\nNext, a key to call the API with:\n  %s\n",
			w.Name, id, s.command("key create --workspace %s --name first --permissions all", id))
	})
}

type workspaceListCmd struct{}

// Help shows examples.
func (*workspaceListCmd) Help() string {
	return examples(`parley workspace list`, `parley workspace list --json`)
}

// Run lists the workspaces.
func (*workspaceListCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		workspaces, err := a.Workspaces(ctx)
		if err != nil {
			return err
		}
		deleting, err := a.Deleting(ctx)
		if err != nil {
			return err
		}
		var records []workspaceRecord
		for _, w := range workspaces {
			records = append(records, recordOfWorkspace(w))
		}
		for _, w := range deleting {
			r := recordOfWorkspace(w)
			r.State = stateBeingDeleted
			records = append(records, r)
			_, _ = fmt.Fprintf(s.stderr, "The workspace %s is being deleted. If that was interrupted, finish it with:\n  %s --name NAME\n", r.WorkspaceID, s.command("workspace delete %s", r.WorkspaceID))
		}
		return answerList(s, records, []string{"WORKSPACE", "NAME", "COUNTRY", "EXTERNAL IDS", "STATE"}, func(r workspaceRecord) []string {
			return []string{r.WorkspaceID, r.Name, orDash(r.Country), r.ExternalIDs, r.State}
		})
	})
}

type workspaceDeleteCmd struct {
	Workspace string `arg:"" help:"The workspace's id."`
	Name      string `help:"The workspace's exact name, as a confirmation." required:"" placeholder:"NAME"`
}

// Help shows examples.
func (*workspaceDeleteCmd) Help() string {
	return examples(`parley workspace delete 01980000-0000-7000-8000-000000000001 --name "Acme Support"`)
}

type workspaceDeletedRecord struct {
	WorkspaceID string `json:"workspace_id"`
	Deleted     bool   `json:"deleted"`
}

// Run deletes the workspace. It shows its progress on standard error.
func (c *workspaceDeleteCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		said := time.Now()
		records, err := a.DeleteWorkspace(ctx, idOf(c.Workspace), c.Name, func(records int) {
			if time.Since(said) > 2*progressEvery {
				said = time.Now()
				_, _ = fmt.Fprintf(s.stderr, "%d records deleted\n", records)
			}
		})
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted after %d records; the workspace's keys are refused already, and the same command deletes the rest", records)
		}
		if err != nil {
			return s.unknownWorkspace(err, c.Workspace)
		}
		return s.answer(workspaceDeletedRecord{c.Workspace, true}, "Deleted the workspace %s with everything in it.\n", c.Workspace)
	})
}

type workspaceEditCmd struct {
	Workspace   string   `arg:"" help:"The workspace's id."`
	Name        *string  `help:"The new name." placeholder:"NAME"`
	Country     *country `help:"The new country (ISO 3166), empty for none. It is used for numbers written from now on." placeholder:"CC"`
	ExternalIDs *string  `help:"What happens when a phone or e-mail matches a contact that has another external_id: replace it, or refuse the write (fixed)." name:"external-ids" enum:"replace,fixed" placeholder:"replace|fixed"`
}

// Help shows examples.
func (*workspaceEditCmd) Help() string {
	return examples(
		`parley workspace edit 01980000-0000-7000-8000-000000000001 --name "Acme Care"`,
		`parley workspace edit 01980000-0000-7000-8000-000000000001 --country TR`,
		`parley workspace edit 01980000-0000-7000-8000-000000000001 --country=`,
		`parley workspace edit 01980000-0000-7000-8000-000000000001 --external-ids fixed`,
	)
}

// Validate refuses an edit without a change.
func (c *workspaceEditCmd) Validate() error {
	if c.Name == nil && c.Country == nil && c.ExternalIDs == nil {
		return errors.New("nothing to change: give --name, --country or --external-ids")
	}
	return nil
}

// Run changes the workspace.
func (c *workspaceEditCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		edit := app.WorkspaceEdit{Name: c.Name, Country: (*string)(c.Country)}
		if c.ExternalIDs != nil {
			fixed := *c.ExternalIDs == "fixed"
			edit.FixedExternalIDs = &fixed
		}
		w, err := a.EditWorkspace(ctx, p, edit)
		if err != nil {
			return err
		}
		r := recordOfWorkspace(w)
		return s.answer(r, "The workspace %s is now named %s, country %s, external ids %s.\n", r.WorkspaceID, r.Name, orDash(r.Country), r.ExternalIDs)
	})
}

type workspaceCheckCmd struct {
	Workspace string `arg:"" help:"The workspace's id."`
}

// Help shows examples.
func (*workspaceCheckCmd) Help() string {
	return paragraphs(
		"shared: several contacts have the same identity in different spellings; an older release allowed that. Each contact is found by its own spelling; other spellings are refused. Clear the identity of one contact, or delete that contact.",
		"refused: an identity that today's rules refuse; an older release allowed it. It stays, but finds no contact. Write it again without invisible characters.",
		examples(`parley workspace check 01980000-0000-7000-8000-000000000001`),
	)
}

type handleProblem struct {
	Kind       string   `json:"kind"`
	Value      string   `json:"value"`
	Reason     string   `json:"reason"`
	ContactIDs []string `json:"contact_ids"`
}

// Run lists the problems.
func (c *workspaceCheckCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		problems, err := a.CheckWorkspace(ctx, p)
		if err != nil {
			return err
		}
		var records []handleProblem
		for _, p := range problems {
			r := handleProblem{p.Kind, p.Value, p.Reason, nil}
			for _, id := range p.Contacts {
				r.ContactIDs = append(r.ContactIDs, id.String())
			}
			records = append(records, r)
		}
		return answerList(s, records, []string{"REASON", "KIND", "VALUE", "CONTACTS"}, func(r handleProblem) []string {
			return []string{r.Reason, r.Kind, r.Value, strings.Join(r.ContactIDs, " ")}
		})
	})
}
