package main

import (
	"context"
	"fmt"

	"parley/app"
	"parley/config"
	"parley/desk"
)

type loginLinkCmd struct {
	Workspace string    `help:"The workspace's id." required:"" placeholder:"ID"`
	Member    email     `help:"The member's e-mail." required:"" placeholder:"EMAIL"`
	PublicURL publicURL `help:"The address at which the member reaches the server, as serve --public-url has it." name:"public-url" placeholder:"URL"`
	Listen    address   `help:"Without --public-url, where the server listens, by default ${default}." placeholder:"HOST:PORT" default:"127.0.0.1:8480" env:"PARLEY_LISTEN"`
}

// Help shows examples.
func (*loginLinkCmd) Help() string {
	return paragraphs("The link can be used once, within ten minutes. Whoever has it signs in as the member.",
		examples(
			`parley login-link --workspace 01980000-0000-7000-8000-000000000001 --member ada@acme.example`,
			`parley login-link --workspace 01980000-0000-7000-8000-000000000001 --member ada@acme.example --public-url https://parley.example.com --json`,
		))
}

type loginLinkRecord struct {
	URL string `json:"url"`
}

// Run makes a link.
func (c *loginLinkCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		m := p.Settings.ResolveMember(desk.ReferTo(string(c.Member)))
		if m == nil {
			return fmt.Errorf("no member of the workspace %s has the e-mail %s; %s shows the members", c.Workspace, c.Member, s.command("member list --workspace %s", c.Workspace))
		}
		token, _, err := a.Access.MakeLink(ctx, p, m.ID)
		if err != nil {
			return err
		}
		root := string(c.PublicURL)
		if root == "" {
			root = "http://" + config.ListenHost(string(c.Listen))
		}
		link := signInURL(root, token)
		return s.answer(loginLinkRecord{link}, "%s\nIt signs %s in once, within ten minutes.\n", block(link), m.Name)
	})
}

// signInURL returns the address of a sign-in link.
func signInURL(root, token string) string { return root + "/sign-in/" + token }
