package web_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/web"
)

// A content is the bytes of a file. It records whether it was closed.
type content struct {
	io.ReadSeeker
	each   time.Duration // how long each part takes
	closed bool
}

func (c *content) Read(b []byte) (int, error) {
	time.Sleep(c.each) // in a bubble, or not at all
	return c.ReadSeeker.Read(b)
}

func (c *content) Close() error {
	c.closed = true
	return nil
}

// fileOf asks a server for a file.
func fileOf(t *testing.T, m desk.Media, text string, header http.Header, each time.Duration) *http.Response {
	t.Helper()
	s, c := newServer(t), &content{ReadSeeker: strings.NewReader(text), each: each}
	m.Size = int64(len(text))
	s.Handle("GET /x", func(w *web.Response, _ *http.Request) error { return w.File(&m, c) }, fail)
	r, w := httptest.NewRequest(http.MethodGet, "/x", nil), httptest.NewRecorder()
	maps.Copy(r.Header, header)
	s.Handler().ServeHTTP(w, r)
	if !c.closed {
		t.Error("the content is left open")
	}
	return w.Result()
}

// TestFile_headers: whatever somebody uploaded, the headers tell a browser to run nothing
// in it, to guess no other type, and to show it on no page of another site. They tell a
// proxy not to keep it.
func TestFile_headers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		media             desk.Media
		kind, disposition string
	}{
		"an image":       {desk.Media{Kind: desk.KindImage, MIME: "image/png", Name: "a.png"}, "image/png", `inline; filename=a.png`},
		"a page":         {desk.Media{Kind: desk.KindDocument, MIME: "text/plain", Name: "a.html"}, "text/plain; charset=utf-8", `attachment; filename=a.html`},
		"a PDF":          {desk.Media{Kind: desk.KindDocument, MIME: "application/pdf"}, "application/pdf", "attachment"},
		"a strange name": {desk.Media{Kind: desk.KindAudio, MIME: "audio/ogg", Name: "ü\"\r\n.ogg"}, "audio/ogg", "inline; filename*=utf-8''%C3%BC%22%0D%0A.ogg"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.media.SHA256 = []byte{0xab, 0xcd}
			answer := fileOf(t, c.media, "<script>alert(1)</script>", nil, 0)
			for header, want := range map[string]string{
				"Content-Type":                 c.kind,
				"Content-Disposition":          c.disposition,
				"Etag":                         `"abcd"`,
				"X-Content-Type-Options":       "nosniff",
				"Content-Security-Policy":      "default-src 'none'; sandbox",
				"Cross-Origin-Resource-Policy": "same-origin",
				"Cache-Control":                "private, no-cache",
			} {
				if got := answer.Header.Values(header); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
		})
	}
}

// TestFile_ranges: a request gets the ranges that it asks for, but not so many that the file
// is read again and again.
func TestFile_ranges(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 10)
	for ranges, want := range map[string]struct {
		status int
		body   string // "": many parts, or none
	}{
		"":                                       {200, text},
		"bytes=2-4":                              {206, "234"},
		"BYTES=2-4":                              {206, "234"},
		"bytes=-3":                               {206, "789"},
		"bytes=97-99999999999999999999":          {206, "789"},
		"bytes=100-":                             {416, ""},
		"bytes=-0":                               {416, ""},
		"lines=1-2":                              {200, text},
		"bytes=1-1" + strings.Repeat(",3-3", 15): {206, ""},
		"bytes=1-1" + strings.Repeat(",3-3", 16): {200, text}, // more ranges than are answered
	} {
		answer := fileOf(t, desk.Media{Kind: desk.KindDocument, MIME: "application/pdf"}, text, http.Header{"Range": {ranges}}, 0)
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != want.status || want.body != "" && string(body) != want.body {
			t.Errorf("%q: %d %q, want %d %q", ranges, answer.StatusCode, body, want.status, want.body)
		}
	}
}

// TestFile_slow: a client that reads for longer than a download may take gets a part.
func TestFile_slow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		text := strings.Repeat("x", 1<<20)
		answer := fileOf(t, desk.Media{Kind: desk.KindDocument, MIME: "application/pdf"}, text, nil, time.Minute)
		got, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); len(got) == 0 || len(got) == len(text) || took > web.TransferTime+time.Minute {
			t.Errorf("%d of %d bytes in %v", len(got), len(text), took)
		}
	})
}
