package web

import (
	"encoding/hex"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/desk"
)

// TransferTime is how long an upload or a download may take. A download that stands still
// ends like any answer.
const TransferTime = 10 * time.Minute

// TransferStill is how long an upload may stand still.
const TransferStill = 30 * time.Second

// maxRanges is how many ranges of a file a request may ask for. A request for more ranges
// gets the whole file.
const maxRanges = 16

// File answers with the bytes of a file, or with the part that the request asks for, and
// closes the content. No browser runs anything in these bytes: only a few types are
// possible, and the headers forbid the rest.
func (w *Response) File(m *desk.Media, content io.ReadSeekCloser) (err error) {
	defer func() { err = errors.Join(err, content.Close()) }()
	if err := w.Patient(); err != nil {
		return err
	}
	fileHeaders(w.Header(), m)
	boundRanges(w.request, m.Size)
	http.ServeContent(&bare{ResponseWriter: w}, w.request, "", time.Time{}, &timed{content, time.Now().Add(TransferTime)})
	return nil
}

// boundRanges changes the header Range so that net/http answers as RFC 9110 §14 says. It
// removes the header if the unit is not bytes, if the method is not GET, or if there are
// very many ranges, because each may read a part of the file again. It also removes ranges
// of the last 0 bytes, because net/http would answer them with nothing instead of refusing
// them. Numbers may be of any length.
func boundRanges(r *http.Request, size int64) {
	unit, list, ok := strings.Cut(r.Header.Get("Range"), "=")
	ranges := strings.Split(list, ",")
	if !ok || r.Method != http.MethodGet || !strings.EqualFold(unit, "bytes") || len(ranges) > maxRanges {
		r.Header.Del("Range")
		return
	}
	some := slices.DeleteFunc(ranges, func(one string) bool {
		n, suffix := strings.CutPrefix(strings.TrimSpace(one), "-")
		return suffix && n != "" && strings.Trim(n, "0") == ""
	})
	if len(some) == 0 {
		some = []string{strconv.FormatInt(size, 10) + "-"} // a range beyond the end of the file
	}
	r.Header.Set("Range", "bytes="+longNumber.ReplaceAllString(strings.Join(some, ","), strconv.Itoa(math.MaxInt64)))
}

// longNumber matches numbers that may not fit into an int64. No file is so large.
var longNumber = regexp.MustCompile(`[1-9][0-9]{18,}`)

func fileHeaders(h http.Header, m *desk.Media) {
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

// A bare is an http.ResponseWriter that leaves out the body if the answer is that the file
// has no such range.
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

// A timed is the content of a file. Reading it must end in time.
type timed struct {
	io.ReadSeeker
	end time.Time
}

var errSlowReader = errors.New("the download took too long")

// Read reads a part of the content.
func (t *timed) Read(b []byte) (int, error) {
	if time.Now().After(t.end) {
		return 0, errSlowReader
	}
	return t.ReadSeeker.Read(b)
}
