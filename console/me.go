package console

import (
	"net/http"

	"parley/desk"
)

// meData is what the page of one's own settings shows.
type meData struct {
	Email, Role string
	HasPassword bool
	NeedsOld    bool // to set a password
	MaySet      bool // a password, now
	Theme       []choice
	ThemeNow    string
	KeysOn      bool
	Least       int
	Name, Look  *form
	Password    *form
}

func (c *call) meData() (meData, error) {
	m := c.p.Settings.Member(c.p.Actor.ID)
	has, err := c.s.app.HasPassword(c.r.Context(), c.p)
	if err != nil {
		return meData{}, err
	}
	byLink, err := c.byLink()
	if err != nil {
		return meData{}, err
	}
	return meData{
		Email: m.Email, Role: roleWord(m.Role), HasPassword: has, NeedsOld: has && !byLink, MaySet: has || byLink,
		Theme: []choice{{Value: "", Label: "As the device"}, {Value: "light", Label: "Light"}, {Value: "dark", Label: "Dark"}}, ThemeNow: theme(c.r), KeysOn: keysOn(c.r),
		Least: desk.MinPassword, Name: &form{}, Look: &form{}, Password: &form{},
	}, nil
}

func (s *Server) me(c *call) error {
	data, err := c.meData()
	if err != nil {
		return err
	}
	return c.show("me", view{Title: "You", Data: data})
}

func (s *Server) rename(c *call) error {
	if _, err := s.app.Rename(c.r.Context(), c.p, c.form.text("name")); err != nil {
		data, e := c.meData()
		if e != nil {
			return e
		}
		data.Name = c.form
		return c.again("me", view{Title: "You", Data: data}, err)
	}
	return c.see("/me", "saved")
}

func (s *Server) look(c *call) error {
	switch theme := c.form.text("theme"); theme {
	case "light", "dark", "":
		c.remember("theme", theme)
	}
	keys := "off"
	if c.form.has("keys") {
		keys = "on"
	}
	c.remember("keys", keys)
	return c.see("/me", "saved")
}

// keysOn tells whether keyboard shortcuts are on.
func keysOn(r *http.Request) bool {
	c, err := r.Cookie("keys")
	return err != nil || c.Value != "off"
}

func (s *Server) setPassword(c *call) error {
	old, password := c.form.values.Get("old"), c.form.values.Get("password")
	byLink, err := c.byLink()
	if err != nil {
		return err
	}
	if err := s.app.SetPassword(c.r.Context(), c.p, old, byLink, password); err != nil {
		data, e := c.meData()
		if e != nil {
			return e
		}
		for _, name := range []string{"old", "password"} {
			c.form.values.Set(name, "") // not shown again
		}
		data.Password = c.form
		return c.again("me", view{Title: "You", Data: data}, signInError(err))
	}
	// All sessions have ended; this browser gets a new one.
	p, err := s.app.Member(c.r.Context(), c.p.Workspace(), c.p.Actor.ID)
	if err == nil {
		err = c.begin(p, nil)
	}
	if err != nil {
		return err
	}
	return c.see("/me", "password")
}

func (s *Server) signOutEverywhere(c *call) error {
	if err := s.app.EndSessions(c.r.Context(), c.p, c.p.Actor.ID); err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	return c.see("/sign-in", "everywhere")
}
