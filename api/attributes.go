package api

import (
	"net/http"
	"slices"
	"strconv"

	"parley/desk"
)

func (s *Server) putAttribute(c *call) (answer, error) {
	var in desk.AttributeInput
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			switch name {
			case "key":
				in.Key, err = d.text()
			case "label":
				err = field(d, &in.Label, d.text)
			case "description":
				err = field(d, &in.Description, d.text)
			case "type":
				err = field(d, &in.Type, d.text)
			case "options":
				err = field(d, &in.Options, d.texts)
			case "position":
				err = field(d, &in.Position, d.integer)
			default:
				err = d.unknown(name, "key", "label", "description", "type", "options", "position")
			}
			return err
		})
	})
	if err != nil {
		return answer{}, err
	}
	attribute, created, err := s.app.PutAttribute(c.r.Context(), c.principal, in)
	if err != nil {
		return answer{}, err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return answer{code, dataOf(c.out, &attribute, appendAttribute)}, nil
}

func (d *decoder) texts() (list []string, err error) {
	err = d.array(func(int) error {
		s, err := d.text()
		list = append(list, s)
		return err
	})
	return list, err
}

// integer reads a whole number that an int64 holds, in any spelling that JSON allows.
func (d *decoder) integer() (int64, error) {
	t, err := d.want('0')
	if err != nil {
		return 0, err
	}
	canonical, ok := desk.ParseDecimal(t.String())
	n, err := strconv.ParseInt(canonical, 10, 64)
	if !ok || err != nil {
		return 0, d.wrong("expected a whole number")
	}
	return n, nil
}

func (s *Server) listAttributes(c *call) (answer, error) {
	q, err := query(c.r.URL.RawQuery, "archived")
	if err != nil {
		return answer{}, err
	}
	active, archived := true, false
	if q.Has("archived") {
		switch q.Get("archived") {
		case "true":
			active, archived = false, true
		case "all":
			archived = true
		case "false":
		default:
			return answer{}, desk.InvalidAt("/archived", "send true, false or all")
		}
	}
	list := c.principal.Settings.SortedAttributes()
	list = slices.DeleteFunc(list, func(a *desk.Attribute) bool { return a.Archived && !archived || !a.Archived && !active })
	return answer{http.StatusOK, listOf(c.out, list, appendAttribute, "")}, nil
}

func (s *Server) archiveAttribute(c *call) (answer, error) {
	q, err := query(c.r.URL.RawQuery, "restore")
	if err != nil {
		return answer{}, err
	}
	restore := q.Get("restore")
	if q.Has("restore") && restore != "true" && restore != "false" {
		return answer{}, desk.InvalidAt("/restore", "send true or false")
	}
	attribute, err := s.app.ArchiveAttribute(c.r.Context(), c.principal, c.r.PathValue("key"), restore != "true")
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, &attribute, appendAttribute)}, nil
}
