package api

import (
	"net/http"

	"parley/desk"
)

func (s *Server) listHistory(c *call) (answer, error) {
	_, page, err := listQuery(c.r.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	if _, err := s.app.Contact(c.r.Context(), c.principal, c.id()); err != nil {
		return answer{}, err
	}
	events, next, err := s.app.Search.History(c.r.Context(), c.principal, c.id(), page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, events, func(b []byte, e desk.FeedEvent) []byte {
		return appendHistory(b, &e, c.principal.Settings)
	}, next)}, nil
}

// appendHistory appends an event of a contact's history.
func appendHistory(b []byte, e *desk.FeedEvent, s *desk.Settings) []byte {
	b = append(append(b, `{"id":"`...), e.ID...)
	b = append(append(b, `","type":"`...), e.Type...)
	b = appendTime(append(b, `","timestamp":`...), e.At)
	b = appendActor(append(b, `,"actor":`...), e.Actor, s)
	b = appendArray(append(b, `,"changed":`...), e.Changed, desk.AppendJSONString)
	_, contact := e.Of()
	return append(appendID(append(b, `,"contact_id":`...), contact), '}')
}
