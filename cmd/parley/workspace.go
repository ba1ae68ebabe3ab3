package main

import (
	"context"
	"errors"

	"parley/app"
	"parley/desk"
)

type workspaceCmd struct {
	Create workspaceCreateCmd `cmd:"" help:"Make a workspace."`
	List   workspaceListCmd   `cmd:"" help:"List the workspaces, oldest first."`
	Edit   workspaceEditCmd   `cmd:"" help:"Change a workspace's name or country."`
}

// A country is a flag's ISO 3166 code; empty for none.
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
}

func recordOfWorkspace(w desk.Workspace) workspaceRecord {
	return workspaceRecord{w.ID.String(), w.Name, unlessEmpty(w.Country)}
}

type workspaceCreateCmd struct {
	Name    string  `help:"What people call it." required:"" placeholder:"NAME"`
	Country country `help:"The country (ISO 3166, such as US) in which phone numbers without an international prefix are read." placeholder:"CC"`
}

// Help shows examples.
func (*workspaceCreateCmd) Help() string {
	return examples(
		`parley workspace create --name "Acme Support"`,
		`parley workspace create --name "Acme Support" --country US --json`,
	)
}

// Run makes the workspace.
func (c *workspaceCreateCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		w, err := a.CreateWorkspace(ctx, c.Name, string(c.Country))
		if err != nil {
			return err
		}
		id := w.ID.String()
		return s.answer(struct {
			WorkspaceID string `json:"workspace_id"`
		}{id}, "Made the workspace %s: %s\n\nNext, a key to call the API with:\n  parley key create --workspace %s --name first --permissions all\n", w.Name, id, id)
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
		var records []workspaceRecord
		for _, w := range workspaces {
			records = append(records, recordOfWorkspace(w))
		}
		return answerList(s, records, []string{"WORKSPACE", "NAME", "COUNTRY"}, func(r workspaceRecord) []string {
			return []string{r.WorkspaceID, r.Name, orDash(r.Country)}
		})
	})
}

type workspaceEditCmd struct {
	Workspace string   `arg:"" help:"The workspace's id."`
	Name      *string  `help:"The new name." placeholder:"NAME"`
	Country   *country `help:"The new country (ISO 3166), empty for none. It counts for numbers written from now on." placeholder:"CC"`
}

// Help shows examples.
func (*workspaceEditCmd) Help() string {
	return examples(
		`parley workspace edit 01980000-0000-7000-8000-000000000001 --name "Acme Care"`,
		`parley workspace edit 01980000-0000-7000-8000-000000000001 --country TR`,
		`parley workspace edit 01980000-0000-7000-8000-000000000001 --country=`,
	)
}

// Validate refuses an edit of nothing.
func (c *workspaceEditCmd) Validate() error {
	if c.Name == nil && c.Country == nil {
		return errors.New("nothing to change: give --name or --country")
	}
	return nil
}

// Run changes the workspace.
func (c *workspaceEditCmd) Run(ctx context.Context, s *session) error {
	return s.do(ctx, func(a *app.App) error {
		w, err := a.EditWorkspace(ctx, idOf(c.Workspace), c.Name, (*string)(c.Country))
		if err != nil {
			return s.unknownWorkspace(err, c.Workspace)
		}
		r := recordOfWorkspace(w)
		return s.answer(r, "The workspace %s is now named %s, country %s.\n", r.WorkspaceID, r.Name, orDash(r.Country))
	})
}
