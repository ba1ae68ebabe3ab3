package api

import "net/http"

func (s *Server) listMembers(c *call) (answer, error) {
	q, err := query(c.r.URL.RawQuery, "limit", "cursor")
	if err != nil {
		return answer{}, err
	}
	limit, err := pageSize(q)
	if err != nil {
		return answer{}, err
	}
	cursor, err := cursorOf(q)
	if err != nil {
		return answer{}, err
	}
	members, next, err := s.app.Members(c.principal, cursor, limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, members, appendMember, next)}, nil
}
