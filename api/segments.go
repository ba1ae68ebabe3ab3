package api

import (
	"net/http"
	"net/url"

	"parley/app/segments"
	"parley/desk"
)

func appendSegment(b []byte, s *desk.Segment) []byte {
	b = desk.AppendJSONString(append(b, `{"key":`...), s.Key)
	b = desk.AppendJSONString(append(b, `,"name":`...), s.Name)
	b = s.Filter.AppendJSON(append(b, `,"filter":`...))
	return append(appendTime(append(b, `,"updated_at":`...), s.UpdatedAt), '}')
}

func (s *Server) listSegments(c *call) (answer, error) {
	list, err := s.app.Segments.Segments(c.r.Context(), c.principal)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, func(b []byte, v desk.Segment) []byte { return appendSegment(b, &v) }, "")}, nil
}

func (s *Server) putSegment(c *call) (answer, error) {
	e := segments.Edit{Key: c.r.PathValue("key")}
	named, filtered := false, false
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			switch name {
			case "name":
				named = true
				e.Name, err = d.text()
			case "filter":
				filtered = true
				e.Filter, err = d.filter()
			default:
				err = d.unknown(name, "name", "filter")
			}
			return err
		})
	})
	switch {
	case err != nil:
		return answer{}, err
	case !named:
		return answer{}, desk.InvalidAt("/name", "missing; give the segment a name")
	case !filtered:
		return answer{}, desk.InvalidAt("/filter", "missing; say which contacts belong to the segment")
	}
	segment, created, err := s.app.Segments.Put(c.r.Context(), c.principal, e)
	if err != nil {
		return answer{}, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return answer{status, dataOf(c.out, &segment, appendSegment)}, nil
}

func (s *Server) deleteSegment(c *call) (answer, error) {
	if err := s.app.Segments.Delete(c.r.Context(), c.principal, c.r.PathValue("key")); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

// segmentContacts answers a list of the contacts of a segment.
func (s *Server) segmentContacts(c *call, q url.Values, page page) (answer, error) {
	for other := range q {
		if other != "segment" && other != "limit" && other != "cursor" {
			return answer{}, desk.InvalidAt("/"+other, "segment can only be combined with limit and cursor")
		}
	}
	contacts, next, err := s.app.Segments.Contacts(c.r.Context(), c.principal, q.Get("segment"), page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, contacts, appendContact, next)}, nil
}

// filter reads a filter. Its rules are checked later (desk.Filter.Matcher).
func (d *decoder) filter() (f desk.Filter, err error) {
	err = d.object(func(name string) error {
		if name != "all" {
			return d.unknown(name, "all")
		}
		return d.array(func(i int) error {
			if err := d.atMost(i, desk.MaxConditions, "conditions"); err != nil {
				return err
			}
			var clause desk.Clause
			err := d.condition(&clause.Condition, &clause.Any)
			f.All = append(f.All, clause)
			return err
		})
	})
	return f, err
}

// condition reads a condition, or several. If several is nil, it reads one of them.
func (d *decoder) condition(c *desk.Condition, several *[]desk.Condition) error {
	return d.object(func(name string) (err error) {
		switch name {
		case "field":
			c.Field, err = d.text()
		case "is":
			var is string
			is, err = d.text()
			c.Is = desk.Comparison(is)
		case "values":
			c.Values = []desk.Value{}
			err = d.array(func(i int) error {
				if err := d.atMost(i, desk.MaxFilterValues, "values"); err != nil {
					return err
				}
				v, err := d.value()
				c.Values = append(c.Values, v)
				return err
			})
		case "value":
			if c.Value, err = d.value(); err == nil && c.Value.Kind == desk.NullValue {
				err = d.wrong("null is no value")
			}
		case "days":
			c.Days, err = pointer(d.integer)
		case "any":
			if several == nil {
				return d.wrong("any can't be inside any")
			}
			*several = []desk.Condition{}
			err = d.array(func(i int) error {
				if err := d.atMost(i, desk.MaxConditions, "conditions"); err != nil {
					return err
				}
				var one desk.Condition
				err := d.condition(&one, nil)
				*several = append(*several, one)
				return err
			})
		default:
			known := []string{"field", "is", "values", "value", "days"}
			if several != nil {
				known = append(known, "any")
			}
			err = d.unknown(name, known...)
		}
		return err
	})
}

// atMost refuses the element of an array at an index for which there is no room.
func (d *decoder) atMost(i, most int, what string) error {
	if i < most {
		return nil
	}
	if err := d.skip(); err != nil {
		return err
	}
	return d.wrong("send at most %d %s", most, what)
}
