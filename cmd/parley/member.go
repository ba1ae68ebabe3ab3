package main

import (
	"context"
	"errors"
	"strconv"

	"parley/app"
	"parley/desk"
)

type memberCmd struct {
	Add    memberAddCmd    `cmd:"" help:"Add a teammate to a workspace."`
	List   memberListCmd   `cmd:"" help:"List a workspace's members by name."`
	Edit   memberEditCmd   `cmd:"" help:"Change a member's name, e-mail or role, and whether they are available."`
	Remove memberRemoveCmd `cmd:"" help:"Remove a member; their contacts go to the shared pool, and their open conversations become unassigned."`
}

// An email is the value of a flag: an e-mail address.
type email string

func (e *email) UnmarshalText(text []byte) error {
	address, err := desk.ParseEmail(string(text))
	*e = email(address)
	return err
}

type memberRecord struct {
	MemberID string `json:"member_id"`
	Name     string `json:"name"`
	Email    string `json:"email"`
	Role     string `json:"role"`

	Available bool `json:"available"`
}

func recordOfMember(m *desk.Member) memberRecord {
	return memberRecord{m.ID.String(), m.Name, m.Email, string(m.Role), !m.Away}
}

// awayText says that a member is away.
func awayText(m *desk.Member) string {
	if m.Away {
		return ", away"
	}
	return ""
}

type memberIDRecord struct {
	MemberID string `json:"member_id"`
}

func (s *session) unknownMember(err error, id string) error {
	return s.unknown(err, "member", id, "member list --workspace W")
}

type memberAddCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
	Name      string `help:"The member's name." required:"" placeholder:"NAME"`
	Email     email  `help:"The member's e-mail, unique in the workspace." required:"" placeholder:"EMAIL"`
	Role      string `help:"${enum}; by default ${default}." enum:"admin,agent" default:"agent" placeholder:"ROLE"`
}

// Help shows examples.
func (*memberAddCmd) Help() string {
	return examples(
		`parley member add --workspace 01980000-0000-7000-8000-000000000001 --name "Ada Lovelace" --email ada@acme.example`,
		`parley member add --workspace 01980000-0000-7000-8000-000000000001 --name "Grace Hopper" --email grace@acme.example --role admin --json`,
	)
}

// Run adds the member.
func (c *memberAddCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		m, err := a.AddMember(ctx, p, c.Name, string(c.Email), c.Role)
		if err != nil {
			return err
		}
		return s.answer(memberIDRecord{m.ID.String()}, "Added %s as %s: %s\n", m.Name, m.Role, m.ID)
	})
}

type memberListCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
}

// Help shows examples.
func (*memberListCmd) Help() string {
	return examples(
		`parley member list --workspace 01980000-0000-7000-8000-000000000001`,
		`parley member list --workspace 01980000-0000-7000-8000-000000000001 --json`,
	)
}

// Run lists the members.
func (c *memberListCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		var records []memberRecord
		for _, m := range p.Settings.Members() {
			records = append(records, recordOfMember(m))
		}
		return answerList(s, records, []string{"MEMBER", "NAME", "E-MAIL", "ROLE", "AVAILABLE"}, func(r memberRecord) []string {
			return []string{r.MemberID, r.Name, r.Email, r.Role, strconv.FormatBool(r.Available)}
		})
	})
}

type memberEditCmd struct {
	Member string  `arg:"" help:"The member's id."`
	Name   *string `help:"The new name." placeholder:"NAME"`
	Email  *email  `help:"The new e-mail." placeholder:"EMAIL"`
	Role   *string `help:"The new role: admin or agent." enum:"admin,agent" placeholder:"ROLE"`

	Available *bool `help:"Whether the reply policy may give the member conversations: --available=true or --available=false."`
}

// Help shows examples.
func (*memberEditCmd) Help() string {
	return examples(
		`parley member edit 01980000-0000-7000-8000-000000000002 --role admin`,
		`parley member edit 01980000-0000-7000-8000-000000000002 --name "Ada King" --email ada.king@acme.example`,
		`parley member edit 01980000-0000-7000-8000-000000000002 --available=false`,
	)
}

// Validate refuses an edit without a change.
func (c *memberEditCmd) Validate() error {
	if c.Name == nil && c.Email == nil && c.Role == nil && c.Available == nil {
		return errors.New("nothing to change: give --name, --email, --role or --available")
	}
	return nil
}

// Run changes the member.
func (c *memberEditCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Member, s.unknownMember, func(a *app.App, p desk.Principal) error {
		m, err := a.EditMember(ctx, p, idOf(c.Member), app.MemberEdit{Name: c.Name, Email: (*string)(c.Email), Role: c.Role, Available: c.Available})
		if err != nil {
			return err
		}
		return s.answer(recordOfMember(&m), "The member %s is now %s, %s, %s%s.\n", m.ID, m.Name, m.Email, m.Role, awayText(&m))
	})
}

type memberRemoveCmd struct {
	Member string `arg:"" help:"The member's id."`
}

// Help shows examples.
func (*memberRemoveCmd) Help() string {
	return examples(`parley member remove 01980000-0000-7000-8000-000000000002`)
}

// Run removes the member.
func (c *memberRemoveCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Member, s.unknownMember, func(a *app.App, p desk.Principal) error {
		id := idOf(c.Member)
		if err := a.RemoveMember(ctx, p, id); err != nil {
			return err
		}
		return s.answer(memberIDRecord{id.String()}, "Removed the member %s; the contacts that they owned are in the shared pool, and their open conversations are unassigned.\n", id)
	})
}
