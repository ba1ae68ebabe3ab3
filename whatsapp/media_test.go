package whatsapp_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"parley/desk"
	"parley/provider"
	"parley/whatsapp"
)

// TestUpload: the request is a form as in the provider's documentation, with its length.
func TestUpload(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789abcdef", 1<<16)
	for name, want := range map[string]string{"Fatura 17.pdf": "Fatura 17.pdf", "": "file", "a\"b\r\nX-Evil: 1\r\n\r\n.pdf": "a%22b%0D%0AX-Evil: 1%0D%0A%0D%0A.pdf"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			base := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "POST" || r.URL.Path != "/v26.0/"+numberID+"/media" || r.URL.RawQuery != "appsecret_proof="+proof || r.Proto != "HTTP/1.1" {
					t.Errorf("%s %s %s", r.Method, r.URL, r.Proto)
				}
				if r.ContentLength < int64(len(content)) || r.TransferEncoding != nil || r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("%d bytes, %v, %v", r.ContentLength, r.TransferEncoding, r.Header)
				}
				if err := r.ParseMultipartForm(1 << 20); err != nil {
					t.Error(err)
					return
				}
				if len(r.MultipartForm.Value) != 2 || r.FormValue("messaging_product") != "whatsapp" || r.FormValue("type") != "application/pdf" {
					t.Errorf("%v", r.MultipartForm.Value)
				}
				file, header, err := r.FormFile("file")
				if err != nil {
					t.Error(err)
					return
				}
				got, _ := io.ReadAll(file)
				if string(got) != content || header.Filename != want || header.Header.Get("Content-Type") != "application/pdf" || len(header.Header) != 2 {
					t.Errorf("%d bytes, %v", len(got), header)
				}
				w.Write([]byte(`{"id":"4490709327384033"}`))
			})
			ref, err := newProvider().Upload(t.Context(), access(base), "application/pdf", name, int64(len(content)), strings.NewReader(content+"more"))
			if err != nil || ref != "4490709327384033" {
				t.Errorf("%q, %v", ref, err)
			}
		})
	}
}

func TestUpload_refusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   desk.ErrorType
	}{
		{"the file", fails(400, 131053), desk.ProviderRejected},
		{"a parameter", fails(400, 100), desk.ProviderRejected},
		{"the token", fails(401, 190), desk.ProviderUnavailable},
		{"too fast", fails(429, 130429), desk.ProviderUnavailable},
		{"a fault", fails(500, 131000), desk.ProviderUnavailable},
		{"a page", answers(502, "<html>"), desk.ProviderUnavailable},
		{"no id", answers(200, `{}`), desk.ProviderUnavailable},
		{"no JSON", answers(200, `id`), desk.ProviderUnavailable},
		{"cut short", hijacks(true, writes("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{\"id\":\"1\"}")), desk.ProviderUnavailable},
		{"reset before it is read", hijacks(false, reset), desk.ProviderUnavailable},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, desk.ProviderUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			base := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				c.answer(w, r)
			})
			ref, err := newProvider().Upload(t.Context(), access(base), "image/png", "a.png", 1<<20, io.LimitReader(zeros{}, 1<<20))
			var refused *desk.Refusal
			if !errors.As(err, &refused) || refused.Type != c.want || refused.Message == "" || ref != "" || calls.Load() != 1 {
				t.Errorf("%q, %+v after %d calls", ref, err, calls.Load())
			}
			if c.want == desk.ProviderUnavailable && refused != nil && refused.RetryAfter == 0 {
				t.Errorf("%+v", refused)
			}
		})
	}
	if _, err := newProvider().Upload(t.Context(), access("http://127.0.0.1:1"), "image/png", "", 1, strings.NewReader("x")); !desk.IsType(refusal(err), desk.ProviderUnavailable) {
		t.Errorf("not reached: %v", err)
	}
}

// refusal returns the answer of the desk.Refusal that an error contains, or else the
// error itself.
func refusal(err error) error {
	var refused *desk.Refusal
	if errors.As(err, &refused) {
		return refused.Answer()
	}
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestUpload_of_what_can_not_be_read: a failure to read the file is not the provider's
// fault.
func TestUpload_of_what_can_not_be_read(t *testing.T) {
	t.Parallel()
	base := serve(t, answers(200, `{"id":"1"}`))
	broken := errors.New("the disk is broken")
	_, err := newProvider().Upload(t.Context(), access(base), "image/png", "", 1<<20, io.MultiReader(strings.NewReader("begin"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err = newProvider().Upload(t.Context(), access(base), "image/png", "", 1<<20, strings.NewReader("short")); !desk.IsType(refusal(err), desk.ProviderUnavailable) {
		t.Errorf("too short: %v", err)
	}
}

// A keeper is a provider with one file. It counts the requests that have the token.
type keeper struct {
	about, file http.HandlerFunc
	tokens      atomic.Int32
	url         string
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "Bearer "+token {
		k.tokens.Add(1)
	}
	switch r.URL.Path {
	case "/v26.0/77":
		k.about(w, r)
	case "/v26.0/" + numberID:
		answers(200, `{"id":"1"}`)(w, r)
	default:
		k.file(w, r)
	}
}

// keep starts a keeper on a port. Its file is at /file, unless about, the description of
// the file, has another address.
func keep(t *testing.T, about string, file http.HandlerFunc) *keeper {
	k := &keeper{file: file}
	k.url = serve(t, k.ServeHTTP)
	k.about = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "appsecret_proof="+proof {
			t.Errorf("%s", r.URL)
		}
		_, _ = fmt.Fprintf(w, cmp.Or(about, `{"messaging_product":"whatsapp","url":"%s/file?ext=1&hash=x","mime_type":"image/png","file_size":4,"id":"77"}`), k.url)
	}
	return k
}

func TestFetch(t *testing.T) {
	t.Parallel()
	sum := hash("file")
	for about, want := range map[string]provider.FetchedMedia{
		`{"url":"%s/file","mime_type":"image/png","sha256":"` + hex.EncodeToString(sum) + `","file_size":4}`:                    {MIME: "image/png", Size: 4, SHA256: sum},
		`{"url":"%s\/file","mime_type":"image\/png","sha256":"` + base64.StdEncoding.EncodeToString(sum) + `","file_size":"4"}`: {MIME: "image/png", Size: 4, SHA256: sum},
		`{"url":"%s/file"}`: {},
	} {
		k := keep(t, about, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token || strings.Contains(r.URL.RawQuery, "proof") || r.Header.Get("Accept-Encoding") != "" || r.Header.Get("User-Agent") == "" {
				t.Errorf("%s %v", r.URL, r.Header)
			}
			_, _ = io.WriteString(w, "file")
		})
		var got bytes.Buffer
		told, err := newProvider().Fetch(t.Context(), access(k.url), "77", hears, &got)
		if err != nil || got.String() != "file" || told.MIME != want.MIME || told.Size != want.Size || !bytes.Equal(told.SHA256, want.SHA256) {
			t.Errorf("%q, %+v, %v", got.String(), told, err)
		}
	}
}

func TestFetch_fails(t *testing.T) {
	t.Parallel()
	var other error // a try that failed before
	never := func(http.ResponseWriter, *http.Request) { t.Error("the file was asked for") }
	missing := answers(400, `{"error":{"code":100,"error_subcode":33,"message":"Unsupported get request."}}`)
	for _, c := range []struct {
		name        string
		about, file http.HandlerFunc
		want        error
	}{
		{"the id is gone", missing, never, provider.ErrMediaGone},
		{"the id is not found", answers(404, ""), never, provider.ErrMediaGone},
		{"the token", fails(401, 190), never, other},
		{"a fault", fails(503, 2), never, other},
		{"nothing from the person", fails(400, 131052), never, provider.ErrMediaFailed},
		{"no URL", answers(200, `{}`), never, other},
		{"no JSON", answers(200, `x`), never, other},
		{"the address has expired", nil, answers(404, "Not Found"), other},
		{"the address has expired, says the provider", nil, answers(410, "Gone"), other},
		{"not for us", nil, answers(403, ""), other},
		{"a fault at the file", nil, answers(500, ""), other},
		{"nothing from the person at the file", nil, fails(400, 131052), provider.ErrMediaFailed},
		{"cut short", nil, hijacks(true, writes("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nxx")), other},
		{"half of it", nil, answers(206, "fi"), other},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := keep(t, "", c.file)
			if c.about != nil {
				k.about = c.about
			}
			_, err := newProvider().Fetch(t.Context(), access(k.url), "77", hears, io.Discard)
			var known error
			for _, k := range []error{provider.ErrMediaGone, provider.ErrMediaFailed} {
				if errors.Is(err, k) {
					known = k
				}
			}
			if err == nil || !errors.Is(known, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "hash=x") || strings.Contains(err.Error(), token)) {
				t.Errorf("the error shows an address: %v", err)
			}
		})
	}
	if _, err := newProvider().Fetch(t.Context(), access("http://127.0.0.1:1"), "", hears, io.Discard); !errors.Is(err, provider.ErrMediaFailed) {
		t.Errorf("without a reference: %v", err)
	}
	if _, err := newProvider().Fetch(t.Context(), access("http://127.0.0.1:1"), "77", hears, io.Discard); err == nil || errors.Is(err, provider.ErrMediaGone) {
		t.Errorf("not reached: %v", err)
	}
}

// TestFetch_without_access: if the token may not use a file, the file does not count as
// gone.
func TestFetch_without_access(t *testing.T) {
	t.Parallel()
	base := serve(t, answers(400, `{"error":{"code":100,"error_subcode":33}}`))
	if _, err := newProvider().Fetch(t.Context(), access(base), "77", hears, io.Discard); err == nil || errors.Is(err, provider.ErrMediaGone) {
		t.Errorf("%v", err)
	}
}

// TestFetch_stops: the fetch ends when the file is not wanted any more.
func TestFetch_stops(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	k := keep(t, "", func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	told, err := newProvider().Fetch(t.Context(), access(k.url), "77", hears, &small{most: 5 << 20})
	if !errors.Is(err, errTooLarge) || told.Size != 4 {
		t.Errorf("%+v, %v", told, err)
	}
	<-left
	k = keep(t, "", func(http.ResponseWriter, *http.Request) { t.Error("the file was asked for") })
	if _, err := newProvider().Fetch(t.Context(), access(k.url), "77", func(f provider.FetchedMedia) error {
		if f.Size != 4 || f.MIME != "image/png" {
			t.Errorf("%+v", f)
		}
		return errTooLarge
	}, io.Discard); !errors.Is(err, errTooLarge) {
		t.Errorf("announced as too large: %v", err)
	}
	k = keep(t, "", hijacks(true, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }))
	ctx, cancel := context.WithCancel(t.Context())
	k.about = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"url":%q}`, k.url+"/file")
		cancel()
	}
	if _, err := newProvider().Fetch(ctx, access(k.url), "77", hears, io.Discard); err == nil {
		t.Error("it did not end with its context")
	}
}

var errTooLarge = errors.New("too large")

// hears is a callback that accepts all announced properties of a file.
func hears(provider.FetchedMedia) error { return nil }

// A small is a writer that accepts only this many bytes.
type small struct{ most int }

func (s *small) Write(b []byte) (int, error) {
	if s.most -= len(b); s.most < 0 {
		return 0, errTooLarge
	}
	return len(b), nil
}

// TestFetch_keeps_the_token: the token goes only to the provider, and never through a
// redirect.
func TestFetch_keeps_the_token(t *testing.T) {
	t.Parallel()
	stranger := keep(t, "", answers(200, "x"))
	for name, k := range map[string]*keeper{
		"another host": keep(t, `{"url":"`+stranger.url+`/file","x":"%s"}`, nil),
		"a redirect": keep(t, "", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.url+"/file", http.StatusFound)
		}),
	} {
		if _, err := newProvider().Fetch(t.Context(), access(k.url), "77", hears, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := stranger.tokens.Load(); n != 0 {
		t.Errorf("the token was shown %d times", n)
	}
	for address, want := range map[string]bool{
		"https://graph.facebook.com/x": true, "https://GRAPH.facebook.com/x": true, "https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1": true,
		"https://a.b.fbsbx.com:443/x": true, "http://graph.facebook.com/x": false, "https://graph.facebook.com:8443/x": false,
		"http://lookaside.fbsbx.com/x": false, "https://lookaside.fbsbx.com:444/x": false, "https://fbsbx.com/x": false,
		"https://evilfbsbx.com/x": false, "https://fbsbx.com.evil.example/x": false, "https://lookaside.fbsbx.com@evil.example/x": false,
		"https://user@lookaside.fbsbx.com/x": false, "https://evil.example/lookaside.fbsbx.com": false, "//lookaside.fbsbx.com/x": false,
		"https://lookaside.fbsbx.com./x": false, "ftp://lookaside.fbsbx.com/x": false, "/x": false, "": false,
	} {
		if got := whatsapp.MayHaveToken("https://graph.facebook.com/v26.0", address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// TestFetch_from_another_host: files are on another host than the API, behind TLS.
func TestFetch_from_another_host(t *testing.T) {
	t.Parallel()
	var host atomic.Value
	files := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host.Store(r.Host)
		_, _ = io.WriteString(w, "file")
	}))
	files.TLS = &tls.Config{}
	files.StartTLS()
	t.Cleanup(files.Close)
	roots := x509.NewCertPool()
	roots.AddCert(files.Certificate())
	p := newProvider()
	p.Trust(&tls.Config{RootCAs: roots, ServerName: "example.com"})
	p.Dial(files.Listener.Addr().String())
	k := keep(t, `{"url":"https://lookaside.fbsbx.com/file","x":"%s"}`, nil)
	var got bytes.Buffer
	if _, err := p.Fetch(t.Context(), access(k.url), "77", hears, &got); err != nil || got.String() != "file" || host.Load() != "lookaside.fbsbx.com" {
		t.Errorf("%q, %v, at %v", got.String(), err, host.Load())
	}
}

func TestMarkRead(t *testing.T) {
	t.Parallel()
	var body map[string]any
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/v26.0/"+numberID+"/messages" || json.NewDecoder(r.Body).Decode(&body) != nil {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		_, _ = io.WriteString(w, `{"success":true}`)
	})
	if err := newProvider().MarkRead(t.Context(), access(base), "wamid.IN0001"); err != nil {
		t.Error(err)
	}
	if len(body) != 3 || body["messaging_product"] != "whatsapp" || body["status"] != "read" || body["message_id"] != "wamid.IN0001" {
		t.Errorf("%v", body)
	}
	for _, h := range []http.HandlerFunc{fails(400, 100), fails(401, 190), answers(502, ""), hijacks(true, reset)} {
		if err := newProvider().MarkRead(t.Context(), access(serve(t, h)), "wamid.IN0001"); err == nil {
			t.Error("a failure is no success")
		}
	}
}
