package api

import (
	"net/http"
	"net/url"
	"strings"

	"parley/app"
	"parley/desk"
)

func (s *Server) listTemplates(c *call) (answer, error) {
	// Malformed parts of the query are ignored here; they are refused after the
	// permission was checked.
	if values, _ := url.ParseQuery(c.r.URL.RawQuery); values.Has("contact_id") || values.Has("phone") {
		if err := c.principal.Allow(desk.ContactsRead); err != nil {
			return answer{}, err
		}
	}
	q, which, err := templateQuery(c.r.URL.RawQuery, c.principal.Settings.Country)
	if err != nil {
		return answer{}, err
	}
	list, err := s.app.Templates(c.r.Context(), c.principal, q)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, s.forms.of(&list, which).fill(c, &list)}, nil
}

// templateQuery reads the query of GET /templates.
func templateQuery(rawQuery, country string) (q app.TemplateQuery, which listed, err error) {
	values, err := query(rawQuery, "channel_id", "status", "needs", "agent", "contact_id", "phone", "contact_name")
	if err != nil {
		return q, which, err
	}
	which.all = values.Has("status")
	if which.all && values.Get("status") != "all" {
		return q, which, desk.InvalidAt("/status", "send all, or leave it out for those that can be sent")
	}
	which.needs = values.Get("needs") == "true"
	if values.Has("needs") && !which.needs && values.Get("needs") != "false" {
		return q, which, desk.InvalidAt("/needs", "send true or false")
	}
	if values.Has("contact_id") && values.Has("phone") {
		return q, which, desk.InvalidAt("/phone", "send phone or contact_id, not both")
	}
	if q.Channel, err = idParameter(values, "channel_id"); err != nil {
		return q, which, err
	}
	if q.Contact, err = idParameter(values, "contact_id"); err != nil {
		return q, which, err
	}
	if values.Has("agent") {
		agent := values.Get("agent")
		if strings.Contains(agent, "\x00") {
			return q, which, desk.InvalidAt("/agent", "send a member's id or e-mail")
		}
		q.Agent = &agent
	}
	if values.Has("phone") {
		if q.Phone, err = desk.ParseIdentity(desk.KindPhone, values.Get("phone"), country); err != nil {
			return q, which, desk.InvalidAt("/phone", "%v", err)
		}
	}
	if q.Name, err = desk.ParseName(values.Get("contact_name")); err != nil {
		return q, which, desk.InvalidAt("/contact_name", "%v", err)
	}
	return q, which, nil
}
