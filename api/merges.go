package api

import (
	"net/http"
	"strconv"
	"strings"

	"parley/app/merges"
	"parley/desk"
)

// merge answers POST /contacts/{id}/merge.
func (s *Server) merge(c *call) (answer, error) {
	r, dry := merges.Request{Into: c.id()}, false
	named := false
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			switch name {
			case "from":
				named = true
				r.From, err = d.id()
				return err
			case "take":
				r.Take, err = d.take()
				return err
			case dryRun:
				dry, err = d.bool()
				return err
			}
			return d.unknown(name, "from", "take", dryRun)
		})
	})
	if err == nil && !named {
		err = desk.InvalidAt("/from", "missing; give the id of the contact that becomes part of this one")
	}
	if err != nil {
		return answer{}, err
	}
	if dry {
		return c.tried(s.app.Merges.Try(c.r.Context(), c.principal, r))
	}
	return c.merge(s.app.Merges.Do(c.r.Context(), c.principal, r))
}

// take reads the names of the fields that a merge takes.
func (d *decoder) take() (list []string, err error) {
	err = d.array(func(n int) error {
		if n == desk.MaxTake {
			return d.wrong("a merge takes at most %d fields", desk.MaxTake)
		}
		name, err := d.text()
		list = append(list, name)
		return err
	})
	return list, err
}

func (s *Server) undoMerge(c *call) (answer, error) {
	dry := false
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name != dryRun {
				return d.unknown(name, dryRun)
			}
			dry, err = d.bool()
			return err
		})
	})
	if err != nil {
		return answer{}, err
	}
	if dry {
		return c.tried(s.app.Merges.TryUndo(c.r.Context(), c.principal, c.id()))
	}
	return c.merge(s.app.Merges.Undo(c.r.Context(), c.principal, c.id()))
}

func (s *Server) getMerge(c *call) (answer, error) {
	return c.merge(s.app.Merges.Merge(c.r.Context(), c.principal, c.id()))
}

func (s *Server) listMerges(c *call) (answer, error) {
	q, page, err := listQuery(c.r.URL.RawQuery, "contact_id")
	if err != nil {
		return answer{}, err
	}
	contact, err := idFilter(q, "contact_id")
	if err != nil {
		return answer{}, err
	}
	list, next, err := s.app.Merges.Merges(c.r.Context(), c.principal, contact, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, c.appendMerge, next)}, nil
}

// merge answers with one merge, or with the error.
func (c *call) merge(m *desk.Merge, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, m, c.appendMerge)}, nil
}

// tried is merge for a dry run.
func (c *call) tried(m *desk.Merge, err error) (answer, error) {
	if err == nil {
		c.dryRun()
	}
	return c.merge(m, err)
}

func (c *call) appendMerge(b []byte, m *desk.Merge) []byte {
	return appendMerge(b, m, c.principal.Settings)
}

func appendMerge(b []byte, m *desk.Merge, s *desk.Settings) []byte {
	b = appendID(append(b, `{"id":`...), m.ID)
	b = appendID(append(b, `,"into":`...), m.Into)
	b = appendID(append(b, `,"from":`...), m.From)
	b = appendTime(append(b, `,"at":`...), m.At)
	b = appendActor(append(b, `,"actor":`...), m.Actor, s)
	var until desk.Time
	if m.At != 0 {
		until = m.UndoUntil()
	}
	b = appendTime(append(b, `,"undo_until":`...), until)
	b = appendTime(append(b, `,"undone_at":`...), m.UndoneAt)
	b = appendArray(append(b, `,"changes":`...), m.Changes, func(b []byte, c desk.FieldChange) []byte {
		b = desk.AppendJSONString(append(b, `{"field":`...), c.Field)
		b = appendValue(append(b, `,"kept":`...), c.Field, c.Kept, s)
		return append(appendValue(append(b, `,"lost":`...), c.Field, c.Lost, s), '}')
	})
	b = strconv.AppendInt(append(b, `,"moved":{"identities":`...), int64(m.Moved.Identities), 10)
	b = strconv.AppendInt(append(b, `,"conversations":`...), int64(m.Moved.Conversations), 10)
	b = appendArray(append(b, `,"closed":`...), m.Moved.Closed, appendID)
	b = appendArray(append(b, `},"not_restored":`...), m.NotRestored, func(b []byte, r desk.NotRestored) []byte {
		b = desk.AppendJSONString(append(b, `{"field":`...), r.Field)
		return append(desk.AppendJSONString(append(b, `,"reason":`...), string(r.Reason)), '}')
	})
	return append(b, '}')
}

// appendValue appends the value of a contact's field as the contact shows it.
func appendValue(b []byte, field, value string, s *desk.Settings) []byte {
	switch {
	case value == "":
		return append(b, "null"...)
	case strings.HasPrefix(field, "attributes."):
		return append(b, value...)
	case field == "phone":
		return desk.AppendJSONString(b, "+"+value)
	case field == "owner":
		id, _ := desk.ParseID(value)
		return appendOwner(b, s.Member(id))
	}
	return desk.AppendJSONString(b, value)
}
