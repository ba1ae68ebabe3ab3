package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

var mediaFull = flag.Bool("media-full", false, "let TestLargeMedia upload files of 100 MB, not of 8 MiB")

// hostileFiles returns files that could run a script: if a browser takes one of them for
// a page, a picture with scripts, a script or a style. A file that runs calls /ran.
func hostileFiles() map[string]string {
	script := `fetch('/ran?%s')`
	page := `<html><body><script>` + script + `</script><img src=x onerror="` + script + `"></body></html>`
	svg := `<svg xmlns="http://www.w3.org/2000/svg" onload="` + script + `"><script>` + script + `</script></svg>`
	utf16 := func(text string) string {
		b := []byte{0xff, 0xfe}
		for _, r := range []byte(text) {
			b = append(b, r, 0)
		}
		return string(b)
	}
	return map[string]string{
		"image/jpeg a.jpg":                    page,
		"image/png b.png":                     svg,
		"image/svg+xml c.svg":                 svg,
		"image/svg+xml d.svgz":                `<?xml version="1.0"?>` + svg,
		"text/html e.html":                    page,
		"application/xhtml+xml f.xhtml":       `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>` + script + `</script></html>`,
		"text/xml g.xml":                      `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#"?><x:script xmlns:x="http://www.w3.org/1999/xhtml">` + script + `</x:script>`,
		"image/gif h.gif":                     "GIF89a/*" + page + "*/=1;" + script,
		"image/gif i.html":                    "GIF87a=1;" + script + "//" + page,
		"image/jpeg j.jpg":                    "\xff\xd8\xff\xe0\x00\x10JFIF\x00" + page,
		"image/webp k.webp":                   "RIFF/*\x00\x00WEBPVP8 */=1;" + script + "//" + page,
		"application/pdf l.pdf":               "%PDF-1.7\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(" + script + ")>>>>endobj\n" + page,
		"text/plain m.txt":                    script + "\n" + page,
		"text/plain n.txt":                    " \n" + page,
		"text/plain; charset=utf-7 o.html":    "+ADw-script+AD4-" + script + "+ADw-/script+AD4-",
		"text/html; charset=utf-16 p.html":    utf16(page),
		"text/javascript q.js":                script,
		"text/css r.css":                      `body{background:url(javascript:` + script + `)} @import '/ran?%s';`,
		"multipart/related s.mhtml":           "MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n" + page,
		"video/mp4 t.mp4":                     "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2" + page,
		"audio/ogg u.ogg":                     "OggS" + page,
		"application/json v.json":             script,
		"application/x-shockwave-flash w\r\n": "FWS" + page,
	}
}

// TestHostileMedia: no uploaded file runs in a browser, however a page uses it.
func TestHostileMedia(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	files := hostileFiles()
	if len(files) < 20 {
		t.Fatalf("%d files", len(files))
	}
	var ids []string
	for as, content := range files {
		claimed, name := as[:strings.LastIndex(as, " ")], as[strings.LastIndex(as, " ")+1:]
		status, answer := s.call(t, key, "POST", "/media?name="+url.QueryEscape("../../"+name), strings.ReplaceAll(content, "%s", url.QueryEscape(as)), "Content-Type", claimed)
		if status != 201 {
			t.Fatalf("%s: %d %s", as, status, answer)
		}
		ids = append(ids, decode[struct{ Data struct{ ID string } }](t, []byte(answer)).Data.ID)
		for _, bad := range []string{"html", "svg", "script", "xml"} {
			_, mime, _ := strings.Cut(answer, `"mime_type":"`)
			if mime, _, _ = strings.Cut(mime, `"`); strings.Contains(mime, bad) {
				t.Errorf("%s is %s", as, answer)
			}
		}
	}

	// This page has the same origin, so only the headers of the response protect it.
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ran := map[string]int{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+key)
	}}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/ran":
			mu.Lock()
			ran[r.URL.RawQuery]++
			mu.Unlock()
		case r.URL.Path == "/control":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<script>fetch('/ran?control')</script>`)
		case strings.HasPrefix(r.URL.Path, "/use/"):
			at := "/v1/media/" + strings.TrimPrefix(r.URL.Path, "/use/") + "/content"
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, `<iframe src="%[1]s"></iframe><object data="%[1]s"></object><embed src="%[1]s"><img src="%[1]s"><script src="%[1]s"></script>
				<script type=module src="%[1]s"></script><link rel=stylesheet href="%[1]s"><video src="%[1]s"></video>
				<script>try{navigator.serviceWorker.register('%[1]s').catch(()=>{}); new Worker('%[1]s')}catch(e){}
				window.addEventListener('load', () => fetch('/loaded').then(() => document.title = 'used'))</script>`, at)
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			proxy.ServeHTTP(w, r)
		}
	}))
	defer origin.Close()
	b := newTab(t, origin.URL)
	defer func() { // the tab reports a violation of the policy, which this test expects
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reports = nil
	}()
	for _, id := range ids {
		b.do(chromedp.Navigate(origin.URL + "/use/" + id))
		b.wait(`document.title == 'used'`)
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		_ = chromedp.Do(ctx, chromedp.Navigate(origin.URL+"/v1/media/"+id+"/content")) // a download makes the navigation fail
		cancel()
	}
	b.do(chromedp.Navigate(origin.URL + "/control"))
	waitFor(t, "the control's script", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ran["control"] > 0
	})
	for what, n := range ran {
		if what != "control" {
			t.Errorf("a script of %s ran %d times", what, n)
		}
	}
}

// TestLargeMedia: uploads do not exceed the limit of size, whatever length they announce,
// nor the limit of memory.
func TestLargeMedia(t *testing.T) {
	t.Parallel()
	size, count := 8<<20, 8
	if *mediaFull {
		size = 100e6
	}
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir, "--max-media", fmt.Sprint(size))
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(rand.Int())
	}
	before := s.peak(t)
	together(count, func(i int) {
		status, answer := s.call(t, key, "POST", "/media", string(content))
		if status != 201 {
			t.Errorf("upload %d: %d %s", i, status, answer)
		}
	})
	if took := s.peak(t) - before; took > 64<<20 {
		t.Errorf("%d uploads of %d MB took %d MB of memory", count, size/1e6, took>>20)
	}
	if status, answer := s.call(t, key, "POST", "/media", string(content)+"x"); status != 413 {
		t.Errorf("a byte more: %d %s", status, answer)
	}
	endless := func(announced string) string {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = fmt.Fprintf(c, "POST /v1/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n", key, announced)
		go func() {
			chunk := "10000\r\n" + strings.Repeat("x", 0x10000) + "\r\n"
			for {
				if _, err := io.WriteString(c, chunk); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, 15)
		_, _ = io.ReadFull(c, buf)
		return string(buf)
	}
	for _, announced := range []string{"Content-Length: 2000000000", "Transfer-Encoding: chunked"} {
		if got := endless(announced); !strings.HasPrefix(got, "HTTP/1.1 413") {
			t.Errorf("%s is answered %q", announced, got)
		}
	}
	left, err := os.ReadDir(filepath.Join(dir, "media", "drafts"))
	if err != nil || len(left) != 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
}
