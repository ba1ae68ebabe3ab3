package api

import (
	"net/http"
	"net/url"
	"strings"

	"parley/app"
	"parley/desk"
)

// appendSnippet appends a snippet. filled is its text with values, "" for none.
func appendSnippet(b []byte, s *desk.Snippet, filled string) []byte {
	b = desk.AppendJSONString(append(b, `{"shortcut":`...), s.Shortcut)
	b = desk.AppendJSONString(append(b, `,"text":`...), s.Text)
	b = appendText(append(b, `,"filled":`...), filled)
	return append(appendTime(append(b, `,"updated_at":`...), s.UpdatedAt), '}')
}

func (s *Server) listSnippets(c *call) (answer, error) {
	// As in listTemplates: a contact's name needs a permission of its own.
	if values, _ := url.ParseQuery(c.r.URL.RawQuery); values.Has("contact_id") {
		if err := c.principal.Allow(desk.ContactsRead); err != nil {
			return answer{}, err
		}
	}
	values, err := query(c.r.URL.RawQuery, "contact_id", "agent")
	if err != nil {
		return answer{}, err
	}
	var q app.SnippetQuery
	if q.Contact, err = idParameter(values, "contact_id"); err != nil {
		return answer{}, err
	}
	if values.Has("agent") {
		agent := values.Get("agent")
		if strings.Contains(agent, "\x00") {
			return answer{}, desk.InvalidAt("/agent", "send a member's id or e-mail")
		}
		q.Agent = &agent
	}
	list, fill, err := s.app.Snippets(c.r.Context(), c.principal, q)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, func(b []byte, v desk.Snippet) []byte {
		filled := ""
		if q.Asked() {
			filled = v.Fill(fill)
		}
		return appendSnippet(b, &v, filled)
	}, "")}, nil
}

func (s *Server) putSnippet(c *call) (answer, error) {
	text, err := c.decodeOnly("text", "send the text of the saved reply")
	if err != nil {
		return answer{}, err
	}
	snippet, created, err := s.app.PutSnippet(c.r.Context(), c.principal, c.r.PathValue("shortcut"), text)
	if err != nil {
		return answer{}, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return answer{status, dataOf(c.out, &snippet, func(b []byte, v *desk.Snippet) []byte { return appendSnippet(b, v, "") })}, nil
}

func (s *Server) deleteSnippet(c *call) (answer, error) {
	if err := s.app.DeleteSnippet(c.r.Context(), c.principal, c.r.PathValue("shortcut")); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}
