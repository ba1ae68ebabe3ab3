package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/store"
)

// A file is a record of media.
type file struct {
	ID, Kind, Status     string
	MIME                 *string `json:"mime_type"`
	Name, SHA256, Reason *string
	Size                 *int64
}

func (s *server) upload(t *testing.T, query, contentType, body string, status int) (f file, answer reply) {
	t.Helper()
	answer = s.send("POST", "/v1/media"+query, http.Header{"Authorization": {"Bearer " + s.key}, "Content-Type": {contentType}}, body)
	if answer.status != status {
		t.Fatalf("upload: %d %s, want %d", answer.status, answer.body, status)
	}
	if err := json.Unmarshal(answer.body, &struct{ Data *file }{&f}); err != nil {
		t.Fatal(err)
	}
	return f, answer
}

func (s *server) content(id string, headers ...string) reply {
	header := http.Header{"Authorization": {"Bearer " + s.key}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return s.send("GET", "/v1/media/"+id+"/content", header, "")
}

const jpeg = "\xff\xd8\xff\xe0 and so on"

// TestDeleteMedia: an upload can be deleted once. An upload of the same bytes by another
// key stays.
func TestDeleteMedia(t *testing.T) {
	s := newServer(t)
	f, _ := s.upload(t, "", "", jpeg, 201)
	other, _ := s.upload(t, "", "", jpeg, 201)
	if body := s.want(204, "DELETE /v1/media/"+f.ID, ""); len(body) != 0 {
		t.Errorf("%s", body)
	}
	s.want(404, "DELETE /v1/media/"+f.ID, "")
	s.want(404, "GET /v1/media/"+f.ID, "")
	if r := s.content(other.ID); string(r.body) != jpeg {
		t.Errorf("the other upload: %d %q", r.status, r.body)
	}
	s.want(204, "DELETE /v1/media/"+other.ID+"?force=true", "") // the query is ignored
}

func TestMedia(t *testing.T) {
	s := newServer(t)
	f, answer := s.upload(t, "?name="+url.QueryEscape("../../ünï \"x\"\r\n.jpg"), "text/html", jpeg, 201)
	sum := sha256.Sum256([]byte(jpeg))
	if *f.Name != `ünï "x".jpg` || *f.MIME != "image/jpeg" || f.Kind != "image" || *f.Size != int64(len(jpeg)) || *f.SHA256 != hex.EncodeToString(sum[:]) ||
		f.Status != "ready" || f.Reason != nil {
		t.Errorf("%s", answer.body)
	}
	if again := s.want(200, "GET /v1/media/"+f.ID, ""); !bytes.Equal(again, answer.body) {
		t.Errorf("read: %s, uploaded: %s", again, answer.body)
	}
	r := s.content(f.ID)
	if r.status != 200 || string(r.body) != jpeg {
		t.Errorf("content: %d %q", r.status, r.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "image/jpeg", "Etag": `"` + *f.SHA256 + `"`, "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "private, no-cache",
		"Content-Disposition": "inline; filename*=utf-8''%C3%BCn%C3%AF%20%22x%22.jpg", "Accept-Ranges": "bytes", "Content-Length": fmt.Sprint(len(jpeg)),
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	head := s.send("HEAD", "/v1/media/"+f.ID+"/content", http.Header{"Authorization": {"Bearer " + s.key}}, "")
	if head.status != 200 || len(head.body) != 0 || head.header.Get("Content-Length") != fmt.Sprint(len(jpeg)) || head.header.Get("Etag") != r.header.Get("Etag") {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	if r := s.send("GET", "/v1/media/"+f.ID+"/content?v=2", http.Header{"Authorization": {"Bearer " + s.key}}, ""); r.status != 200 || string(r.body) != jpeg {
		t.Errorf("with a parameter: %d %s", r.status, r.body)
	}
	document, _ := s.upload(t, "", "application/octet-stream", "MZ", 201)
	if got := s.content(document.ID); got.header.Get("Content-Disposition") != "attachment" || got.header.Get("Content-Type") != "application/octet-stream" || document.Name != nil {
		t.Errorf("a document: %v", got.header)
	}
	text, _ := s.upload(t, "?name=a.txt", "text/plain", "grüße", 201)
	if got := s.content(text.ID); got.header.Get("Content-Disposition") != `attachment; filename=a.txt` || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("a text: %v", got.header)
	}

	if r := s.content(f.ID, "If-None-Match", `"`+*f.SHA256+`"`); r.status != 304 || len(r.body) != 0 {
		t.Errorf("the same: %d %s", r.status, r.body)
	}
	if r := s.content(f.ID, "Range", "bytes=99-"); r.status != 416 || len(r.body) != 0 || r.header.Get("Content-Range") != fmt.Sprintf("bytes */%d", len(jpeg)) {
		t.Errorf("beyond the end: %d %v %s", r.status, r.header, r.body)
	}
	if r := s.content(f.ID, "Range", "bytes=2-4", "If-Range", `"other"`); r.status != 200 || string(r.body) != jpeg {
		t.Errorf("a range of another version: %d %s", r.status, r.body)
	}
	if r := s.content(f.ID, "If-Match", `"other"`); r.status != 412 {
		t.Errorf("another version: %d", r.status)
	}
	if r := s.content(f.ID, "Range", "bytes=0-1,3-4"); r.status != 206 || !strings.HasPrefix(r.header.Get("Content-Type"), "multipart/byteranges") {
		t.Errorf("two ranges: %d %v", r.status, r.header)
	}
}

// Whatever name a file was given, the stored name is short, is on one line, and comes back
// in the header.
func TestMediaNames(t *testing.T) {
	s := newServer(t)
	for sent, want := range map[string]string{
		strings.Repeat("ü", 5000) + ".jpg": strings.Repeat("ü", 255), "\u202e\x00\r\n\u2028\u2066": "", "..": "", "a/..": "", `..\..\b.txt`: "b.txt", "/": "",
		"a\"; filename=\"b.html\r\nSet-Cookie: x=1": `a"; filename="b.htmlSet-Cookie: x=1`, "x\u202egpj.exe": "xgpj.exe", " ": "", "%2e%2e%2fc": "%2e%2e%2fc",
		"\U0001F468\u200d\U0001F469.jpg": "\U0001F468\u200d\U0001F469.jpg", strings.Repeat("\U0001F600", 300): strings.Repeat("\U0001F600", 255),
	} {
		f, answer := s.upload(t, "?name="+url.QueryEscape(sent), "", jpeg, 201)
		got := ""
		if f.Name != nil {
			got = *f.Name
		}
		if got != want || (want == "") != (f.Name == nil) {
			t.Errorf("%.40q is named %.40q, want %.40q", sent, got, want)
		}
		r := s.content(f.ID)
		disposition, params, err := mime.ParseMediaType(r.header.Get("Content-Disposition"))
		if err != nil || disposition != "inline" || params["filename"] != want || len(params) > 1 || len(r.header["Set-Cookie"]) > 0 {
			t.Errorf("%.40q: %v %q %q (%s)", sent, err, disposition, params, answer.body)
		}
	}
}

var mediaRanges = flag.Int("media-ranges", 60, "how many places in a file TestMediaRanges asks for, in four ways each")

// The answer to a range is this part of the file.
func TestMediaRanges(t *testing.T) {
	s := newServer(t)
	all := make([]byte, 2<<20+12345)
	fill(all, 7)
	f, _ := s.upload(t, "", "", string(all), 201)
	seed := make([]byte, 8**mediaRanges)
	fill(seed, 9)
	for i := 0; i < len(seed); i += 8 {
		a := (int(seed[i])<<16 | int(seed[i+1])<<8 | int(seed[i+2])) % len(all)
		b := min(len(all)-1, a+int(seed[i+3])<<int(seed[i+4]%15))
		for rng, want := range map[string][]byte{
			fmt.Sprintf("bytes=%d-%d", a, b):        all[a : b+1],
			fmt.Sprintf("bytes=%d-", a):             all[a:],
			fmt.Sprintf("bytes=-%d", len(all)-a):    all[a:],
			fmt.Sprintf("bytes=%d-%d", a, 10<<20+b): all[a:],
		} {
			r := s.content(f.ID, "Range", rng)
			if r.status != 206 || !bytes.Equal(r.body, want) {
				t.Fatalf("%s: %d, %d bytes, want %d", rng, r.status, len(r.body), len(want))
			}
		}
	}
	// Unusual headers: a malformed range is ignored. A request for very many ranges is also
	// ignored, because it would read the file again and again.
	for rng, want := range map[string]int{
		"bytes=": 200, "bytes=-": 416, "bytes=-0": 416, "bytes= -0 , -00": 416, "bytes=-0,3-4": 206, "bytes=5-2": 416, "bytes=a-b": 416, "bytes=99999999999999999999-": 416,
		"bytes=0-99999999999999999999": 206, "bytes=-99999999999999999999": 206, "bytes=0-0,3-00000000000000000000005": 206, "BYTES=3-4": 206, "pages=1-2": 200, "bytes": 200, "": 200, "bytes=0-": 206, "bytes=-99999999": 206, "bytes=0-0, 2-2": 206, "bytes=0-0,99999999-": 206,
		"bytes=0-0" + strings.Repeat(",2000000-2000000,1-1", 8): 200, "bytes=0-0" + strings.Repeat(",1-1", 15): 206, "bytes=0-,0-,0-,0-": 200,
	} {
		r := s.content(f.ID, "Range", rng)
		if r.status != want || want == 200 && !bytes.Equal(r.body, all) || want == 416 && len(r.body) != 0 {
			t.Errorf("%q: %d, %d bytes, want %d", rng, r.status, len(r.body), want)
		}
		// Ranges apply only to GET.
		head := s.send("HEAD", "/v1/media/"+f.ID+"/content", http.Header{"Authorization": {"Bearer " + s.key}, "Range": {rng}}, "")
		if head.status != 200 || head.header.Get("Content-Length") != fmt.Sprint(len(all)) {
			t.Errorf("HEAD %q: %d %v", rng, head.status, head.header)
		}
	}
}

func TestMediaRefused(t *testing.T) {
	s := newServerWith(t, api.Config{}, func(d *app.Deps) { d.MaxMedia = 1000 })
	s.upload(t, "", "", strings.Repeat("x", 1000), 201)
	if _, r := s.upload(t, "", "", strings.Repeat("x", 1001), 413); errorType(r.body) != "payload_too_large" {
		t.Errorf("%s", r.body)
	}
	if _, r := s.upload(t, "", "", "", 400); errorType(r.body) != "invalid_request" {
		t.Errorf("%s", r.body)
	}
	s.upload(t, "?title=x", "", "x", 400)
	s.upload(t, "?name=%ff", "", "x", 400)
	for _, path := range []string{"/v1/media/nothing", "/v1/media/nothing/content"} {
		if r := s.do("GET "+path, ""); r.status != 404 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	for _, m := range []*desk.Media{
		{Status: desk.MediaPending, Kind: desk.KindImage},
		{Status: desk.MediaFailed, Kind: desk.KindImage, Reason: desk.MediaGone},
		{Status: desk.MediaDeleted, Kind: desk.KindImage, MIME: "image/jpeg", Size: 3},
	} {
		m.ID, m.CreatedAt = s.newID(), 1
		if err := s.store.InTx(t.Context(), s.ws, func(tx store.Tx) error { return tx.PutMedia(m) }); err != nil {
			t.Fatal(err)
		}
		s.want(200, "GET /v1/media/"+m.ID.String(), "")
		r := s.content(m.ID.String())
		if r.status != 409 || errorType(r.body) != "media_unavailable" || (r.header.Get("Retry-After") != "") != (m.Status == desk.MediaPending) ||
			!bytes.Contains(r.body, []byte(`"status":"`+string(m.Status)+`"`)) {
			t.Errorf("%s: %d %v %s", m.Status, r.status, r.header, r.body)
		}
	}
}
