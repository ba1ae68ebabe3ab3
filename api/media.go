package api

import (
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/desk"
)

const (
	// transferTime is how long an upload or a download may take; uploadStill is how long an
	// upload may stand still. A download that stands still ends like any answer.
	transferTime = 10 * time.Minute
	uploadStill  = 30 * time.Second

	// maxRanges is how many ranges of a file a request may ask for; for more it gets all.
	maxRanges = 16
)

// uploadMedia stores the body as it comes.
func (s *Server) uploadMedia(c *call) (answer, error) {
	q, err := query(c.r.URL.RawQuery, "name")
	if err != nil {
		return answer{}, err
	}
	if c.r.ContentLength > s.app.MaxMedia() {
		c.w.Header()["Connection"] = []string{"close"}
		return answer{}, desk.Errorf(desk.PayloadTooLarge, "the file is larger than the %d bytes that this server takes", s.app.MaxMedia())
	}
	m, err := s.app.Upload(c.r.Context(), c.principal, q.Get("name"), c.r.Header.Get("Content-Type"), c.w.Upload(transferTime, uploadStill))
	if err != nil {
		c.w.Header()["Connection"] = []string{"close"} // the rest of the body was not read
		return answer{}, err
	}
	return answer{http.StatusCreated, dataOf(c.out, m, appendMedia)}, nil
}

func (s *Server) getMedia(c *call) (answer, error) {
	m, err := s.app.Media(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, m, appendMedia)}, nil
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

// appendMediaSize appends null if nothing of the content is known.
func appendMediaSize(b []byte, m *desk.Media) []byte {
	if m.MIME == "" {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, m.Size, 10)
}

// getContent answers with the bytes of a file. No browser runs anything in them: the type
// is one of a few, and the headers forbid the rest.
func (s *Server) getContent(c *call) (answer, error) {
	if _, err := query(c.r.URL.RawQuery); err != nil {
		return answer{}, err
	}
	m, content, err := s.app.MediaContent(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	c.stream = func() (err error) {
		defer func() { err = errors.Join(err, content.Close()) }()
		if err := c.w.Patient(); err != nil {
			return err
		}
		contentHeaders(c.w.Header(), m)
		boundRanges(c.r.Header, m.Size)
		http.ServeContent(&bare{ResponseWriter: c.w}, c.r, "", time.Time{}, &timed{content, time.Now().Add(transferTime)})
		return nil
	}
	return answer{}, nil
}

// boundRanges removes very many ranges, each of which may read a part of the file again, as
// RFC 9110 §14.2 allows; and ranges of the last 0 bytes, which net/http answers with nothing
// instead of refusing them.
func boundRanges(h http.Header, size int64) {
	text := h.Get("Range")
	unit, list, ok := strings.Cut(text, "=")
	if !ok {
		return
	}
	ranges := strings.Split(list, ",")
	if len(ranges) > maxRanges {
		h.Del("Range")
		return
	}
	some := slices.DeleteFunc(ranges, func(one string) bool {
		n, suffix := strings.CutPrefix(strings.TrimSpace(one), "-")
		return suffix && n != "" && strings.Trim(n, "0") == ""
	})
	switch {
	case len(some) == 0:
		h.Set("Range", unit+"="+strconv.FormatInt(size, 10)+"-") // which is beyond the end
	case len(some) < len(ranges):
		h.Set("Range", unit+"="+strings.Join(some, ","))
	}
}

func contentHeaders(h http.Header, m *desk.Media) {
	kind := m.MIME
	if kind == "text/plain" {
		kind += "; charset=utf-8"
	}
	disposition := "attachment"
	switch m.Kind {
	case desk.KindImage, desk.KindSticker, desk.KindAudio, desk.KindVideo:
		disposition = "inline"
	}
	if m.Name != "" {
		disposition = mime.FormatMediaType(disposition, map[string]string{"filename": m.Name})
	}
	for name, value := range map[string]string{
		"Content-Type":                 kind,
		"Content-Disposition":          disposition,
		"Etag":                         `"` + hex.EncodeToString(m.SHA256) + `"`,
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; sandbox",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "private, no-cache",
	} {
		h[name] = []string{value}
	}
}

// bare answers a range that can't be had without a body.
type bare struct {
	http.ResponseWriter
	none bool
}

// WriteHeader begins the answer.
func (w *bare) WriteHeader(status int) {
	if w.none = status == http.StatusRequestedRangeNotSatisfiable; w.none {
		h := w.Header()
		delete(h, "Content-Type")
		h["Content-Length"] = []string{"0"}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer.
func (w *bare) Write(b []byte) (int, error) {
	if w.none {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// timed is content whose reading must end in time.
type timed struct {
	io.ReadSeeker
	end time.Time
}

var errSlowReader = errors.New("the download took too long")

func (t *timed) Read(b []byte) (int, error) {
	if time.Now().After(t.end) {
		return 0, errSlowReader
	}
	return t.ReadSeeker.Read(b)
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
