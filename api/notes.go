package api

import (
	"net/http"

	"parley/desk"
)

func appendNote(b []byte, n *desk.Note) []byte {
	b = appendID(append(b, `{"id":`...), n.ID)
	b = desk.AppendJSONString(append(b, `,"text":`...), n.Text)
	b = appendAuthor(append(b, `,"author":`...), n.Author)
	return append(appendTime(append(b, `,"created_at":`...), n.CreatedAt), '}')
}

// appendAuthor appends an author, or null when there is none.
func appendAuthor(b []byte, a desk.Author) []byte {
	if a.IsZero() {
		return append(b, "null"...)
	}
	b = append(append(b, `{"type":"`...), a.Type...)
	b = appendID(append(b, `","id":`...), a.ID)
	return append(appendText(append(b, `,"name":`...), a.Name), '}')
}

func (s *Server) listNotes(c *call) (answer, error) {
	_, page, err := listQuery(c.r.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	list, next, err := s.app.Notes(c.r.Context(), c.principal, c.id(), page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, appendNote, next)}, nil
}

func (s *Server) addNote(c *call) (answer, error) {
	var text desk.Field[string]
	var member desk.Field[desk.Reference]
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			switch name {
			case "text":
				text.Set = true
				text.Value, err = d.parsed(desk.ParseNoteText)
				return err
			case "member":
				return field(d, &member, d.member)
			}
			return d.unknown(name, "text", "member")
		})
	})
	if err == nil && !text.Set {
		err = desk.InvalidAt("/text", "missing; write 1 to %d characters", desk.MaxNoteText)
	}
	if err != nil {
		return answer{}, err
	}
	n, err := s.app.AddNote(c.r.Context(), c.principal, c.id(), text.Value, member)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, dataOf(c.out, n, appendNote)}, nil
}

func (s *Server) deleteNote(c *call) (answer, error) {
	note, _ := desk.ParseID(c.r.PathValue("note_id"))
	if err := s.app.DeleteNote(c.r.Context(), c.principal, c.id(), note); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}
