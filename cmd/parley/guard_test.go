package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/desk"
	"parley/poster"
	"parley/provider"

	"golang.org/x/net/dns/dnsmessage"
)

// names returns a resolver. It resolves every name to the address that is in at.
func names(t *testing.T, at *atomic.Value) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response = true
			m.Additionals = nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(at.Load().(string)).As4()},
				}}
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// graph starts a server at an address. It serves the record of a file, which has the
// file's URL, and the file itself.
func graph(t *testing.T, at string, url func() string, calls *atomic.Int32) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Skipf("this system has no %s: %v", at, err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		switch {
		case strings.HasPrefix(r.URL.Path, "/redirect"):
			http.Redirect(w, r, "http://127.0.0.2:"+port+"/file", http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/file"):
			_, _ = io.WriteString(w, "internal")
		default:
			_, _ = fmt.Fprintf(w, `{"url":%q}`, url())
		}
	}))
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}

// TestGuard: the server connects to an address that a tenant sets only if webhooks may go
// there. The same holds for redirects from this address, and for the addresses of its
// files. A tenant can't avoid this by changing a name's address in between. Addresses
// that the operator sets are not restricted.
func TestGuard(t *testing.T) {
	t.Parallel()
	var good, bad atomic.Int32
	var address atomic.Value
	address.Store("127.0.0.3")
	turn, file := false, ""
	url := func() string {
		if turn {
			address.Store("127.0.0.2")
		}
		return file
	}
	port := graph(t, "127.0.0.3:0", url, &good)
	graph(t, "127.0.0.2:"+port, url, &bad)
	byName, inside := "http://graph.test.:"+port, "http://127.0.0.2:"+port
	c := poster.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}, Resolver: names(t, &address)}
	posts, err := poster.New(c)
	if err != nil {
		t.Fatal(err)
	}
	opened := newWhatsApp(time.Now, slog.New(slog.DiscardHandler), posts, c)
	shut := newWhatsApp(time.Now, slog.New(slog.DiscardHandler), posts, poster.Config{})
	for _, test := range []struct {
		name, base string
		by         desk.Setter
		before     bool // the server runs without the flag --webhook-allow
		file       string
		turn       bool
		want       string
	}{
		{name: "what is allowed", base: byName, by: desk.SetByTenant, file: byName + "/file", want: "internal"},
		{name: "a name that turns", base: byName, by: desk.SetByTenant, file: byName + "/file", turn: true},
		{name: "a name that has turned", base: byName, by: desk.SetByTenant, file: byName + "/file", turn: true},
		{name: "a literal address", base: inside, by: desk.SetByTenant, file: inside + "/file"},
		{name: "a mapped address", base: "http://[::ffff:127.0.0.2]:" + port, by: desk.SetByTenant},
		{name: "TLS", base: "https://127.0.0.2:" + port, by: desk.SetByTenant},
		{name: "the url of a file", base: byName, by: desk.SetByTenant, file: inside + "/file"},
		{name: "a redirect", base: byName, by: desk.SetByTenant, file: byName + "/redirect"},
		{name: "from before, where the flag is set", base: inside, file: inside + "/file"},
		{name: "from before, where it is not", base: inside, before: true, file: inside + "/file", want: "internal"},
		{name: "the operator's", base: inside, by: desk.SetByOperator, file: inside + "/file", want: "internal"},
	} {
		good.Store(0)
		bad.Store(0)
		if !test.turn {
			address.Store("127.0.0.3")
		}
		turn, file = test.turn, test.file
		p := opened
		if test.before {
			p = shut
		}
		at := provider.Access{Channel: &desk.Channel{Kind: desk.WhatsAppChannel, ExternalID: "1", Account: desk.Account{BusinessID: "2", BaseURL: test.base, BaseOf: test.by}}, Secrets: provider.Secrets{Token: provider.NewSecret("t"), AppSecret: provider.NewSecret("s")}}
		var got strings.Builder
		_, err := p.Fetch(t.Context(), at, "77", func(provider.FetchedMedia) error { return nil }, &got)
		if (err == nil) != (test.want != "") || got.String() != test.want {
			t.Errorf("%s: %q, %v", test.name, got.String(), err)
		}
		if (bad.Load() > 0) != (test.want != "" && test.base == inside) {
			t.Errorf("%s: what is inside was asked %d times", test.name, bad.Load())
		}
		if test.want == "" && strings.Contains(test.base, "127.0.0.2") {
			if _, err := p.Send(t.Context(), provider.Dispatch{Access: at, Number: "1", Text: "x"}); err == nil || bad.Load() > 0 {
				t.Errorf("%s: sending: %v", test.name, err)
			}
			if _, err := p.Upload(t.Context(), at, "image/png", "", 1, strings.NewReader("x")); err == nil || bad.Load() > 0 {
				t.Errorf("%s: uploading: %v", test.name, err)
			}
		}
	}
}
