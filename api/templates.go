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
	q, all, err := templateQuery(c.r.URL.RawQuery, c.principal.Settings.Country)
	if err != nil {
		return answer{}, err
	}
	list, err := s.app.Templates(c.r.Context(), c.principal, q)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, s.forms.of(&list, all).fill(c, &list)}, nil
}

// templateQuery reads the query of GET /templates. all tells whether the list includes
// templates that can't be sent.
func templateQuery(rawQuery, country string) (q app.TemplateQuery, all bool, err error) {
	values, err := query(rawQuery, "channel_id", "status", "agent", "contact_id", "phone", "contact_name")
	if err != nil {
		return q, false, err
	}
	all = values.Has("status")
	if all && values.Get("status") != "all" {
		return q, all, desk.InvalidAt("/status", "send all, or leave it out for those that can be sent")
	}
	if values.Has("contact_id") && values.Has("phone") {
		return q, all, desk.InvalidAt("/phone", "send phone or contact_id, not both")
	}
	if q.Channel, err = idParameter(values, "channel_id"); err != nil {
		return q, all, err
	}
	if q.Contact, err = idParameter(values, "contact_id"); err != nil {
		return q, all, err
	}
	if values.Has("agent") {
		agent := values.Get("agent")
		if strings.Contains(agent, "\x00") {
			return q, all, desk.InvalidAt("/agent", "send a member's id or e-mail")
		}
		q.Agent = &agent
	}
	if values.Has("phone") {
		if q.Phone, err = desk.ParseIdentity(desk.KindPhone, values.Get("phone"), country); err != nil {
			return q, all, desk.InvalidAt("/phone", "%v", err)
		}
	}
	if q.Name, err = desk.ParseName(values.Get("contact_name")); err != nil {
		return q, all, desk.InvalidAt("/contact_name", "%v", err)
	}
	return q, all, nil
}
