package whatsapp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/desk"
	"parley/provider"
	"parley/whatsapp"
)

var attempt = desk.ID{0x01, 0x98, 0xA7}

// dispatch returns a message to the provider at base.
func dispatch(base string) provider.Dispatch {
	return provider.Dispatch{
		Access: access(base), Attempt: attempt, By: began.Add(5 * time.Second), Number: "905321112233",
		Template: &desk.Template{Name: "welcome_plain", Language: "en_US"},
	}
}

// says changes a dispatch to one with a text instead of the template.
func says(d *provider.Dispatch, text string) { d.Template, d.Text = nil, text }

// gives changes a dispatch to one with a file instead of the template.
func gives(d *provider.Dispatch, f provider.SentFile) { d.Template, d.File = nil, &f }

func text(part desk.Part, parameters ...desk.Parameter) desk.Component {
	return desk.Component{Part: part, Parameters: parameters}
}

// TestSend_body compares the request with the provider's documentation.
func TestSend_body(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*provider.Dispatch){
		"send_noparams": func(*provider.Dispatch) {},
		"send_positional": func(d *provider.Dispatch) {
			d.Template = &desk.Template{Name: "order_update", Language: "en_US"}
			d.Components = []desk.Component{
				text(desk.PartHeader, desk.Parameter{Text: "A-17"}),
				text(desk.PartBody, desk.Parameter{Text: "Ann"}, desk.Parameter{Text: "A-17"}, desk.Parameter{Text: "Friday"}),
			}
		},
		"send_named": func(d *provider.Dispatch) {
			d.Template = &desk.Template{Name: "siparis_hazir", Language: "tr", Named: true}
			d.Components = []desk.Component{
				text(desk.PartHeader, desk.Parameter{Name: "musteri_adi", Text: "Ayşe"}),
				text(desk.PartBody, desk.Parameter{Name: "siparis_no", Text: "A-17"}, desk.Parameter{Name: "temsilci_adi", Text: "Ali Kaya"}),
			}
		},
		"send_title_image": func(d *provider.Dispatch) {
			d.Template, d.File = &desk.Template{Name: "promo_image", Language: "tr"}, &provider.SentFile{Ref: "3000000001", Kind: desk.KindImage, Name: "a.jpg"}
			d.Components = []desk.Component{text(desk.PartBody, desk.Parameter{Text: "Ayşe"})}
		},
		"send_title_document": func(d *provider.Dispatch) {
			d.Template, d.File = &desk.Template{Name: "invoice", Language: "en_US", Named: true}, &provider.SentFile{Ref: "3000000002", Kind: desk.KindDocument, Name: "Invoice 17.pdf"}
			d.Components = []desk.Component{
				text(desk.PartBody, desk.Parameter{Name: "name", Text: "Ann"}),
				{Part: desk.PartButton, Button: 1, Parameters: []desk.Parameter{{Text: "A-17"}}}, {Part: desk.PartButton, Button: 2, Parameters: []desk.Parameter{{Text: "17?b=c"}}},
			}
		},
		"send_title_video": func(d *provider.Dispatch) {
			d.Template, d.File = &desk.Template{Name: "tour", Language: "en_US"}, &provider.SentFile{Ref: "3000000003", Kind: desk.KindVideo, Name: "a.mp4"}
		},
		"send_text": func(d *provider.Dispatch) { says(d, "Merhaba, nasıl yardımcı olabiliriz?") },
		"send_quote": func(d *provider.Dispatch) {
			says(d, "Bir tane kaldı.")
			d.Quote = "wamid.IN0001"
		},
		"send_recipient": func(d *provider.Dispatch) {
			says(d, "Merhaba")
			d.Number, d.UserID = "", "TR.9000000000000001"
		},
		"send_buttons": func(d *provider.Dispatch) {
			says(d, "İki tane kaldı. Birini ayırayım mı?")
			d.Buttons = []desk.Button{{ID: "keep", Title: "Ayır"}, {ID: "no", Title: "Gerek yok"}}
		},
		"send_image": func(d *provider.Dispatch) {
			gives(d, provider.SentFile{Ref: "3000000001", Kind: desk.KindImage, Name: "a.jpg", Caption: "Mağazamız"})
		},
		"send_document": func(d *provider.Dispatch) {
			gives(d, provider.SentFile{Ref: "3000000002", Kind: desk.KindDocument, Name: "Fatura 17.pdf", Caption: "Faturanız"})
		},
		"send_audio": func(d *provider.Dispatch) {
			gives(d, provider.SentFile{Ref: "3000000004", Kind: desk.KindAudio, Name: "a.ogg"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var request *http.Request
			var sent []byte
			d := dispatch(serve(t, func(w http.ResponseWriter, r *http.Request) {
				request = r
				sent, _ = io.ReadAll(r.Body)
				w.Write(fixture(t, "send_response"))
			}))
			edit(&d)
			got, err := newProvider().Send(t.Context(), d)
			if want := (provider.Receipt{ExternalID: "wamid.SIM0000000000000000000000001", Number: "905321112233"}); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %v", got, err)
			}
			var want, body map[string]any
			if err := errors.Join(json.Unmarshal(fixture(t, name), &want), json.Unmarshal(sent, &body)); err != nil {
				t.Fatal(err)
			}
			if want["biz_opaque_callback_data"] = attempt.String(); !reflect.DeepEqual(body, want) {
				t.Errorf("sent %s", sent)
			}
			if request.Method != "POST" || request.URL.Path != "/v26.0/"+numberID+"/messages" || request.Proto != "HTTP/1.1" {
				t.Errorf("%s %s %s", request.Method, request.URL, request.Proto)
			}
			if request.URL.RawQuery != "appsecret_proof="+proof || request.Header.Get("Authorization") != "Bearer "+token {
				t.Errorf("%s %v", request.URL, request.Header)
			}
			if request.Header.Get("Content-Type") != "application/json" || request.ContentLength != int64(len(sent)) {
				t.Errorf("%v, %d bytes", request.Header, request.ContentLength)
			}
			for name := range request.Header {
				if strings.Contains(name, "Idempotency") {
					t.Errorf("the header %s lets net/http send twice", name)
				}
			}
		})
	}
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func fails(status, code int) http.HandlerFunc {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "(#0) x", "type": "OAuthException", "code": code, "fbtrace_id": "A"}})
	return answers(status, string(body))
}

// hijacks returns a handler that takes over the connection and passes it to do. If read
// is set, it reads the request first.
func hijacks(read bool, do func(*net.TCPConn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if read {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		do(c.(*net.TCPConn))
		c.Close()
	}
}

func reset(c *net.TCPConn) { _ = c.SetLinger(0) }

func writes(s string) func(*net.TCPConn) {
	return func(c *net.TCPConn) { _, _ = io.WriteString(c, s) }
}

// The results that a response can prove.
const (
	taken    = "taken"
	unknown  = "unknown"
	rejected = string(desk.ProviderRejected)
	later    = string(desk.ProviderUnavailable)
)

// outcome names the result of Send.
func outcome(r provider.Receipt, err error) string {
	var refusal *desk.Refusal
	switch {
	case err == nil && r.ExternalID != "":
		return taken
	case errors.As(err, &refusal):
		return string(refusal.Type)
	case err != nil:
		return unknown
	}
	return "nothing"
}

// TestSend_advice: the advice depends on the reason of the refusal. It does not mention
// commands or pages.
func TestSend_advice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   desk.AdviceKind
	}{
		{"this message", fails(400, 131026), desk.SeeDetails},
		{"the template was changed", fails(404, 132001), desk.SyncChannel},
		{"the whole account", fails(401, 190), desk.CheckChannel},
		{"not reached", nil, desk.CheckChannel},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := "http://127.0.0.1:1"
			if c.answer != nil {
				base = serve(t, c.answer)
			}
			d := dispatch(base)
			_, err := newProvider().Send(t.Context(), d)
			want := desk.Advice{Kind: c.want, Arg: d.Channel.ID.String()}
			if c.want == desk.SeeDetails {
				want.Arg = ""
			}
			var refused *desk.Refusal
			if !errors.As(err, &refused) || refused.Advice != want {
				t.Errorf("%+v, want %+v", err, want)
			}
		})
	}
}

// TestSend_free_refusals: for a message without a template, a closed window is recognized,
// and a lost file for each message with a file.
func TestSend_free_refusals(t *testing.T) {
	t.Parallel()
	template := func(*provider.Dispatch) {}
	words := func(d *provider.Dispatch) { says(d, "Hi") }
	image := func(d *provider.Dispatch) { gives(d, provider.SentFile{Ref: "1", Kind: desk.KindImage}) }
	title := func(d *provider.Dispatch) { d.File = &provider.SentFile{Ref: "1", Kind: desk.KindImage} }
	for _, c := range []struct {
		name   string
		what   func(*provider.Dispatch)
		answer http.HandlerFunc
		want   desk.ErrorType
		stale  bool
	}{
		{"the window is closed", words, fails(400, 131047), desk.WindowClosed, false},
		{"the window is closed, by its old code", image, fails(400, 470), desk.WindowClosed, false},
		{"a template", template, fails(400, 131047), desk.ProviderRejected, false},
		{"a template with a file, and its file is not known", title, fails(400, 100), desk.ProviderRejected, true},
		{"a template with a file, which was not loaded", title, fails(400, 131053), desk.ProviderRejected, true},
		{"a template with a file, which was not fetched", title, fails(400, 131052), desk.ProviderRejected, true},
		{"a template with a file, and the channel is not known", title, answers(400, `{"error":{"code":100,"error_subcode":33}}`), desk.ProviderUnavailable, false},
		{"a template with a file, undeliverable", title, fails(400, 131026), desk.ProviderRejected, false},
		{"a template with a file, paused", title, fails(400, 132015), desk.ProviderRejected, false},
		{"a template with a file, a page", title, answers(400, "<html>"), desk.ProviderRejected, false},
		{"a template without a file", template, fails(400, 131053), desk.ProviderRejected, false},
		{"the file is not known", image, fails(400, 100), desk.ProviderRejected, true},
		{"the file was not loaded", image, fails(400, 131053), desk.ProviderRejected, true},
		{"the channel is not known", image, answers(400, `{"error":{"code":100,"error_subcode":33}}`), desk.ProviderUnavailable, false},
		{"no file", words, fails(400, 100), desk.ProviderRejected, false},
		{"undeliverable", image, fails(400, 131026), desk.ProviderRejected, false},
		{"a page", image, answers(400, "<html>"), desk.ProviderRejected, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := dispatch(serve(t, c.answer))
			c.what(&d)
			_, err := newProvider().Send(t.Context(), d)
			var refused *desk.Refusal
			if !errors.As(err, &refused) || refused.Type != c.want || refused.StaleMedia != c.stale || refused.Failure == nil || refused.Message == "" {
				t.Errorf("%+v", err)
			}
		})
	}
}

func TestSend_outcome(t *testing.T) {
	t.Parallel()
	const ok = `{"messages":[{"id":"wamid.1"}]}`
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"taken", answers(200, ok), taken},
		{"taken with 201", answers(201, ok), taken},
		{"held for quality", answers(200, `{"messages":[{"id":"wamid.1","message_status":"held_for_quality_assessment"}]}`), taken},
		{"odd contacts", answers(200, `{"contacts":{"a":1},"messages":[{"id":"wamid.1","x":[]}]}`), taken},
		{"parameter count", fails(400, 132000), rejected},
		{"missing template", fails(404, 132001), rejected},
		{"undeliverable", fails(400, 131026), rejected},
		{"throughput", fails(429, 130429), later},
		{"token", fails(401, 190), later},
		{"unlisted with 4xx", fails(400, 999999), rejected},
		{"maintenance with 5xx", fails(500, 131057), later},
		{"unavailable with 5xx", fails(503, 131016), later},
		{"registration with 5xx", fails(500, 131045), later},
		{"deregistration with 5xx", fails(500, 133000), later},
		{"server away with 5xx", fails(503, 133004), later},
		{"code 1 with 4xx", fails(400, 1), unknown},
		{"code 2 with 5xx", fails(503, 2), unknown},
		{"code 131000 with 4xx", fails(400, 131000), unknown},
		{"code 131000 with 5xx", fails(500, 131000), unknown},
		{"another code with 5xx", fails(500, 100), unknown},
		{"unlisted with 5xx", fails(500, 999999), unknown},
		{"error with 200", fails(200, 132000), unknown},
		{"page with 500", answers(500, "<html>Oops</html>"), unknown},
		{"nothing with 502", answers(502, ""), unknown},
		{"408", fails(408, 132000), unknown},
		{"499", answers(499, ""), unknown},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, unknown},
		{"no id", answers(200, `{"messages":[{"id":""}]}`), unknown},
		{"no messages", answers(200, `{"messages":[]}`), unknown},
		{"garbage with 200", answers(200, `<html>`), unknown},
		{"cut JSON", answers(200, ok[:len(ok)-1]), unknown},
		{"too long", answers(200, `{"messages":[{"id":"wamid.1"}],"x":"`+strings.Repeat("x", 1<<20)+`"}`), unknown},
		{"cut short", hijacks(true, writes("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n"+ok)), unknown},
		{"refusal cut short", hijacks(true, writes("HTTP/1.1 400 Bad Request\r\nContent-Length: 400\r\n\r\n{")), unknown},
		{"page with 400", answers(400, "<html>"), rejected},
		{"page with 401", answers(401, ""), later},
		{"page with 403", answers(403, "<html>"), later},
		{"page with 404", answers(404, "not here"), later},
		{"page with 413", answers(413, ""), rejected},
		{"page with 415", answers(415, ""), rejected},
		{"page with 429", answers(429, ""), later},
		{"page with 409", answers(409, ""), unknown},
		{"closed", hijacks(true, func(*net.TCPConn) {}), unknown},
		{"reset after reading", hijacks(true, reset), unknown},
		{"reset before reading", hijacks(false, reset), unknown},
		{"no HTTP", hijacks(true, writes("220 smtp\r\n")), unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			var log bytes.Buffer
			p := whatsapp.New(whatsapp.Config{Now: still, Log: slog.New(slog.NewTextHandler(&log, nil))})
			r, err := p.Send(t.Context(), dispatch(serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				c.answer(w, r)
			})))
			if got := outcome(r, err); got != c.want || calls.Load() != 1 {
				t.Errorf("%s after %d calls: %+v, %v", got, calls.Load(), r, err)
			}
			var refusal *desk.Refusal
			if errors.As(err, &refusal) && (refusal.Failure == nil || refusal.Failure.Fix == "" || refusal.Type == desk.ProviderUnavailable && refusal.RetryAfter == 0) {
				t.Errorf("%+v", refusal)
			}
			for _, secret := range []string{token, appSecret, proof, "905321112233"} {
				if err != nil && strings.Contains(err.Error(), secret) || strings.Contains(log.String(), secret) {
					t.Errorf("%q is shown: %v, %s", secret, err, log.String())
				}
			}
		})
	}
}

// TestSend_reuse: if a reused connection dies during a second message, the message is
// not sent again.
func TestSend_reuse(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			answers(200, `{"messages":[{"id":"wamid.1"}]}`)(w, r)
			return
		}
		hijacks(true, func(*net.TCPConn) {})(w, r)
	})
	p := newProvider()
	first, second := outcome(p.Send(t.Context(), dispatch(base))), outcome(p.Send(t.Context(), dispatch(base)))
	if first != taken || second != unknown || calls.Load() != 2 {
		t.Errorf("%s, then %s after %d calls", first, second, calls.Load())
	}
}

func TestSend_notReached(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	untrusted := httptest.NewUnstartedServer(answers(200, ""))
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	for _, base := range []string{nobody.URL, untrusted.URL, "http://nowhere.invalid", "no url", "http://a b"} {
		r, err := newProvider().Send(t.Context(), dispatch(base))
		if got := outcome(r, err); got != later || strings.Contains(err.Error(), proof) {
			t.Errorf("%s: %s, %v", base, got, err)
		}
	}
}

// TestSend_slow: if the response comes too late, the outcome is unknown.
func TestSend_slow(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	base := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-held
	})
	t.Cleanup(func() { close(held) }) // this must run before the server is closed
	if got := outcome(newProvider().Send(ctx, dispatch(base))); got != unknown {
		t.Error(got)
	}
}

// TestSend_late: after the deadline nothing is sent, whatever caused the delay.
func TestSend_late(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	base := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })

	d := dispatch(base)
	d.By = began.Add(-1)
	if _, err := newProvider().Send(t.Context(), d); !reflect.DeepEqual(err, error(provider.NotSent())) {
		t.Errorf("too late at once: %v", err)
	}

	p := whatsapp.New(whatsapp.Config{Now: strikes()})
	if _, err := p.Send(t.Context(), dispatch(base)); !reflect.DeepEqual(err, error(provider.NotSent())) {
		t.Errorf("too late at the first byte: %v", err)
	}

	// The TLS handshake takes too long, because the server does not respond.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	d = dispatch("https://" + mute.Addr().String())
	d.By = began.Add(50 * time.Millisecond)
	if _, err := newProvider().Send(t.Context(), d); !reflect.DeepEqual(err, error(provider.NotSent())) {
		t.Errorf("too late to connect: %v", err)
	}
	if calls.Load() != 0 {
		t.Errorf("%d messages left", calls.Load())
	}
}

// strikes returns a clock that jumps past the deadline between the check before a send
// and its first byte.
func strikes() func() time.Time {
	var looks atomic.Int32
	return func() time.Time {
		if looks.Add(1) > 2 {
			return began.Add(time.Hour)
		}
		return began
	}
}

// TestSend_tls: HTTP/2 is not used even if the server offers it, and the first byte is
// still held back until the deadline is checked.
func TestSend_tls(t *testing.T) {
	t.Parallel()
	var proto atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		answers(200, `{"messages":[{"id":"wamid.1"}],"contacts":[{"user_id":"TR.9000000000000001"}]}`)(w, r)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // discards the errors of connections that were given up
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	p := newProvider()
	p.Trust(&tls.Config{RootCAs: roots})
	r, err := p.Send(t.Context(), dispatch(s.URL))
	if err != nil || r.UserID != "TR.9000000000000001" || proto.Load() != "HTTP/1.1" {
		t.Errorf("%+v, %v, %v", r, err, proto.Load())
	}

	proto.Store("none")
	p = whatsapp.New(whatsapp.Config{Now: strikes()})
	p.Trust(&tls.Config{RootCAs: roots})
	if _, err := p.Send(t.Context(), dispatch(s.URL)); !reflect.DeepEqual(err, error(provider.NotSent())) || proto.Load() != "none" {
		t.Errorf("too late: %v, %v", err, proto.Load())
	}
}

// TestLimits: no bucket allows places further ahead than desk.LongestBucket.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{0, 1, 1000} {
		for _, b := range newProvider().Limits(&desk.Channel{Account: desk.Account{PerSecond: rate}}, func() string { return "somebody" }).Buckets {
			if reach := b.Interval * time.Duration(b.Burst); reach <= 0 || reach > desk.LongestBucket {
				t.Errorf("%s reaches %s", b.Name, reach)
			}
		}
	}
}
