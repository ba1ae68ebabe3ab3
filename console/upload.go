package console

import (
	"bytes"
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"

	"parley/desk"
	"parley/web"
)

const (
	// maxFields is the largest size of all fields together in a form with a file. A reply
	// needs at most a sixteenth of it; a longer one is refused with its text. It is less than
	// maxForm, because these fields do not count in the memory that bodies share: at most 24
	// such forms are read at a time, and each field is there twice.
	maxFields = 256 << 10

	// The server reads a file to its end if it has at most heard times the allowed size:
	// then the browser sees the response that the file is too large. A browser sends the
	// whole file before it reads the response.
	heard = 4
)

// A keptFile is a file that was uploaded with a form, kept because the form was refused.
type keptFile struct {
	ID         desk.ID
	Name, Size string
}

func isMultipart(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "multipart/form-data"
}

// readFields reads the fields of a form up to its file, which is the last field. The
// handler reads the file, and then calls uploaded.
func (c *call) readFields() error {
	_, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		return errNoForm
	}
	content, err := c.w.Upload(c.p.Workspace(), web.TransferTime, web.TransferStill)
	if err != nil {
		return err
	}
	body := &io.LimitedReader{R: content, N: maxFields}
	head := new(formHead)
	parts := multipart.NewReader(io.TeeReader(body, head), params["boundary"])
	c.form.values = url.Values{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			err = c.w.Patient()
		} else if err == nil && part.FileName() == "" {
			var value []byte
			if value, err = io.ReadAll(part); err == nil {
				c.form.values.Add(part.FormName(), string(value))
				continue
			}
		}
		switch e := (*desk.Error)(nil); {
		case err == nil:
		case errors.As(err, &e):
			return e
		case body.N <= 0:
			return desk.Errorf(desk.PayloadTooLarge, "the form has more text than it may have")
		default:
			return errNoForm
		}
		if c.form.text("member") != c.p.Actor.ID.String() {
			return errOtherMember
		}
		if part != nil {
			body.N = math.MaxInt64
			c.form.file = &sentFile{Name: part.FileName(), Type: part.Header.Get("Content-Type"), Content: part, Size: head.end(c.r.ContentLength, params["boundary"])}
		}
		return nil
	}
}

// A formHead has the beginning of a form with a file: its fields, and the header of the file.
type formHead struct {
	b    bytes.Buffer
	over bool
}

// Write takes a part of the form.
func (h *formHead) Write(p []byte) (int, error) {
	if h.over {
		return len(p), nil
	}
	return h.b.Write(p)
}

// end returns the size of the file, which ends the form, by the length of the form. It returns
// 0 if the length is not known.
func (h *formHead) end(length int64, boundary string) int64 {
	h.over = true
	text := h.b.Bytes()
	at := max(bytes.LastIndex(text, []byte("--"+boundary+"\r\n")), 0)
	header := bytes.Index(text[at:], []byte("\r\n\r\n"))
	if header < 0 {
		return 0
	}
	return max(length-int64(at+header+len("\r\n\r\n")+len("\r\n--"+boundary+"--\r\n")), 0)
}

var errNoForm = desk.Invalidf("the form could not be read")

// uploaded skips the rest of the form after the file. If the file is too large, uploaded
// reads the rest of it, up to a bound: otherwise the browser would not see the error.
func (c *call) uploaded(err error) error {
	if desk.IsType(err, desk.PayloadTooLarge) && c.r.ContentLength > 0 && c.r.ContentLength <= heard*c.s.app.Media.MaxSize {
		_, _ = io.Copy(io.Discard, c.form.file.Content) // an error changes nothing: the response is the same
	}
	c.w.Uploaded()
	c.form.file = nil
	if errors.Is(err, io.ErrUnexpectedEOF) { // the form is cut off
		err = errNoForm
	}
	if e := c.w.Patient(); e != nil && err == nil {
		return e
	}
	return err
}

// formFile stores the form's file, or finds the file that a refused form has kept. It
// returns nil if there is none.
func (c *call) formFile() (m *desk.Media, err error) {
	switch f := c.form.file; {
	case f != nil:
		m, err = c.s.app.Media.Upload(c.r.Context(), c.p, desk.FileHead{Name: f.Name, Type: f.Type}, f.Content)
		err = c.uploaded(err)
	case c.form.text("media") != "" && !c.form.has("without"):
		id, _ := desk.ParseID(c.form.text("media"))
		m, err = c.s.app.Media.Record(c.r.Context(), c.p, id)
		if desk.IsType(err, desk.NotFound) {
			err = desk.Invalidf("the file is not there any more: choose it again")
		}
	}
	c.form.values.Del("media")
	if m != nil && err == nil {
		c.form.values.Set("media", m.ID.String())
	}
	return m, err
}

// A bounded reader refuses content after some bytes.
type bounded struct {
	io.Reader
	left int64
}

// Read reads a part of the content.
func (b *bounded) Read(p []byte) (n int, err error) {
	n, err = b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, desk.Errorf(desk.PayloadTooLarge, "the file is too large")
	}
	return n, err
}
