package api

import (
	"encoding/hex"
	"net/http"
	"strconv"

	"parley/desk"
	"parley/web"
)

// uploadMedia stores the body while it arrives.
func (s *Server) uploadMedia(c *call) (answer, error) {
	q, err := query(c.r.URL.RawQuery, "name")
	if err != nil {
		return answer{}, err
	}
	if c.r.ContentLength > s.app.Media.MaxSize {
		c.w.Header()["Connection"] = []string{"close"}
		return answer{}, desk.Errorf(desk.PayloadTooLarge, "the file is larger than the %d bytes that this server takes", s.app.Media.MaxSize)
	}
	content, err := c.w.Upload(c.principal.Workspace(), web.TransferTime, web.TransferStill)
	if err != nil {
		return answer{}, err
	}
	m, err := s.app.Media.Upload(c.r.Context(), c.principal, desk.FileHead{Name: q.Get("name"), Type: c.r.Header.Get("Content-Type"), Size: c.r.ContentLength}, content)
	if err != nil {
		c.w.Header()["Connection"] = []string{"close"} // the rest of the body was not read
		return answer{}, err
	}
	return answer{http.StatusCreated, dataOf(c.out, m, appendMedia)}, nil
}

func (s *Server) getMedia(c *call) (answer, error) {
	m, err := s.app.Media.Record(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, m, appendMedia)}, nil
}

// deleteMedia deletes a file that is in no message.
func (s *Server) deleteMedia(c *call) (answer, error) {
	return answer{status: http.StatusNoContent}, s.app.Media.Delete(c.r.Context(), c.principal, c.id())
}

func appendMedia(b []byte, m *desk.Media) []byte {
	b = appendID(append(b, `{"id":`...), m.ID)
	b = desk.AppendJSONString(append(b, `,"kind":`...), string(m.Kind))
	b = appendText(append(b, `,"mime_type":`...), m.MIME)
	b = appendText(append(b, `,"name":`...), m.Name)
	b = appendMediaSize(append(b, `,"size":`...), m)
	b = appendText(append(b, `,"sha256":`...), hex.EncodeToString(m.SHA256))
	b = desk.AppendJSONString(append(b, `,"status":`...), string(m.Status))
	b = appendText(append(b, `,"reason":`...), string(m.Reason))
	return append(appendTime(append(b, `,"created_at":`...), m.CreatedAt), '}')
}

// appendMediaSize appends the size of a file; null while the content is not known.
func appendMediaSize(b []byte, m *desk.Media) []byte {
	if m.MIME == "" {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, m.Size, 10)
}

// getContent answers with the bytes of a file.
func (s *Server) getContent(c *call) (answer, error) {
	m, content, err := s.app.Media.Open(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	c.stream = func() error { return c.w.File(m, content) }
	return answer{}, nil
}

func appendAttachment(b []byte, m *desk.Media) []byte {
	b = appendID(append(b, `{"media_id":`...), m.ID)
	b = desk.AppendJSONString(append(b, `,"kind":`...), string(m.Kind))
	b = appendText(append(b, `,"mime_type":`...), m.MIME)
	b = appendText(append(b, `,"name":`...), m.Name)
	b = appendMediaSize(append(b, `,"size":`...), m)
	b = desk.AppendJSONString(append(b, `,"status":`...), string(m.Status))
	return append(appendText(append(b, `,"reason":`...), string(m.Reason)), '}')
}
