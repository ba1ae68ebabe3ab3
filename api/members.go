package api

import (
	"net/http"

	"parley/desk"
)

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

func (s *Server) setAvailability(c *call) (answer, error) {
	available, there := false, false
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name != "available" {
				return d.unknown(name, "available")
			}
			there = true
			available, err = d.bool()
			return err
		})
	})
	if err == nil && !there {
		err = desk.InvalidAt("/available", "missing; send true or false")
	}
	if err != nil {
		return answer{}, err
	}
	m, err := s.app.SetAvailable(c.r.Context(), c.principal, c.id(), available)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, &m, appendMember)}, nil
}
