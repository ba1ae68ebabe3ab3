package api

import "net/http"

func (s *Server) listMembers(c *call) (answer, error) {
	_, page, err := listQuery(c.r.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	members, next, err := s.app.Members(c.principal, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, members, appendMember, next)}, nil
}
