package console

// home redirects to the inbox. If there is no workspace, it shows how to create one.
// This is the only page that names commands.
func (s *Server) home(c *call) error {
	list, err := s.app.Workspaces(c.r.Context())
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return c.see("/inbox", "")
	}
	return c.show("welcome", view{Title: "Welcome", Data: []string{
		`parley workspace create --name "My shop"`,
		`parley member add --workspace WORKSPACE --name "My name" --email me@example.com --role admin`,
		`parley login-link --workspace WORKSPACE --member me@example.com`,
	}})
}
