package poster_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"parley/desk"
	"parley/poster"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// newPoster returns a Poster with a version.
func newPoster(t *testing.T, c poster.Config) *poster.Poster {
	t.Helper()
	c.Version = "1.2.3"
	p, err := poster.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// to returns a request to a URL.
func to(url string) poster.Request {
	return poster.Request{URL: url, ID: "evt_1", Body: []byte(`{"id":"evt_1"}`), Secrets: [][]byte{[]byte("secret")}, At: time.Unix(1614265330, 0)}
}

// check posts to a URL and compares the outcome.
func check(t *testing.T, p *poster.Poster, url, want string) poster.Result {
	t.Helper()
	got := p.Post(t.Context(), to(url))
	if got.Error != want {
		t.Errorf("%s: the error is %q, want %q (%+v)", url, got.Error, want, got)
	}
	return got
}

// listen accepts connections, counts them, and runs serve on each.
func listen(t *testing.T, address string, serve func(net.Conn)) (at string, count *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	count = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String(), count
}

// hangUp closes a connection at once.
func hangUp(net.Conn) {}

// answering returns a function for listen. The function reads a request, responds with raw
// bytes, and closes the connection.
func answering(raw string) func(net.Conn) {
	return func(conn net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(conn, raw)
		}
	}
}

// hang waits until the other end closes the connection.
func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// resolver returns a resolver whose name server responds with the given addresses. If
// there are none, the name does not exist.
func resolver(t *testing.T, answer func(name string) []string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
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
			question := m.Questions[0]
			reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RCode: dnsmessage.RCodeSuccess}, Questions: m.Questions}
			addresses := answer(question.Name.String())
			if len(addresses) == 0 {
				reply.RCode = dnsmessage.RCodeNameError
			}
			for _, a := range addresses {
				addr := netip.MustParseAddr(a)
				header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: dnsmessage.ClassINET}
				if addr.Is4() && question.Type == dnsmessage.TypeA {
					reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
				} else if addr.Is6() && question.Type == dnsmessage.TypeAAAA {
					reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
				}
			}
			packed, err := reply.Pack()
			if err == nil {
				_, _ = server.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// always is for resolver: the function that it returns answers every name with the same
// addresses.
func always(addresses ...string) func(string) []string {
	return func(string) []string { return addresses }
}

// TestPost checks a delivery as the receiver gets it.
func TestPost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got *http.Request
	var body []byte
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	roots := x509.NewCertPool()
	roots.AddCert(receiver.Certificate())
	p := newPoster(t, poster.Config{Allow: loopback})
	p.Trust(roots)

	// The example of the Standard Webhooks libraries. The second secret is the older one.
	secret, _ := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	r := poster.Request{
		URL: receiver.URL + "/in?a=b", ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Body: []byte(`{"test": 2432232314}`),
		Secrets: [][]byte{secret, []byte("older")}, At: time.Unix(1614265330, 999e6),
	}
	for range 2 {
		result := p.Post(t.Context(), r)
		if result.Took <= 0 {
			t.Errorf("it took %s", result.Took)
		}
		result.Took = 0
		if result != (poster.Result{StatusCode: 204}) {
			t.Errorf("got %+v", result)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	want := http.Header{
		"Content-Length": {"20"}, "Content-Type": {"application/json"}, "User-Agent": {"parley/1.2.3"},
		"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,fowbz7UjCF458LYEnLEdsIvev1lW4GzxthFqz1+3rcU="},
	}
	if fmt.Sprint(got.Header) != fmt.Sprint(want) {
		t.Errorf("the headers are\n%v, want\n%v", got.Header, want)
	}
	if got.Method != "POST" || got.RequestURI != "/in?a=b" || got.Host != receiver.Listener.Addr().String() || !bytes.Equal(body, r.Body) {
		t.Errorf("got %s %s at %s: %s", got.Method, got.RequestURI, got.Host, body)
	}
}

func TestPost_outcomes(t *testing.T) {
	t.Parallel()
	p := newPoster(t, poster.Config{Allow: loopback})
	long := strings.Repeat("é", 600)
	for _, test := range []struct {
		raw, want string
		result    poster.Result
	}{
		{raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{raw: "HTTP/1.1 299 OK\r\nRetry-After: 9\r\n\r\nok"},
		{raw: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 OK\r\n\r\n"},
		{raw: "HTTP/1.0 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20)},
		{raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 20000)}, // cut off behind the part that is read
		{raw: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", want: "protocol"},
		{raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", want: "protocol"},
		{raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n", want: "protocol"},
		{raw: "HTTP/1.1 200", want: "protocol"},
		{raw: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20), want: "protocol"},
		{raw: strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: x\r\n\r\n", 1000), want: "protocol"},
		{raw: "", want: "protocol"},
		{raw: "SSH-2.0-OpenSSH_9.2\r\n", want: "protocol"},
		{raw: "HTTP/1.1 099 No\r\n\r\n", want: "protocol"},
		{raw: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", want: "protocol"},
		{raw: "HTTP/1.1 304 Not Modified\r\n\r\n", want: "redirect"},
		{raw: "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 2\r\n\r\nok", want: "redirect", result: poster.Result{Response: "ok"}},
		{raw: "HTTP/1.1 410 Gone\r\nContent-Length: 3\r\n\r\nbye", want: "gone", result: poster.Result{Response: "bye"}},
		{raw: "HTTP/1.1 410 Gone\r\nContent-Length: 99\r\n\r\nbye", want: "gone", result: poster.Result{Response: "bye"}},
		{raw: "HTTP/1.1 400 No\r\nContent-Length: 3\r\n\r\nbad", want: "status", result: poster.Result{Response: "bad"}},
		{raw: "HTTP/1.1 999 No\r\n\r\nbad", want: "status", result: poster.Result{Response: "bad"}},
		{raw: "HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\ncut", want: "protocol", result: poster.Result{Response: "cut"}},
		{raw: "HTTP/1.1 500 No\r\n\r\n" + long, want: "status", result: poster.Result{Response: long[:1024]}},
		{raw: "HTTP/1.1 500 No\r\n\r\nx" + long, want: "status", result: poster.Result{Response: "x" + long[:1022]}},
		{raw: "HTTP/1.1 500 No\r\n\r\n\xff", want: "status"},
		{raw: "HTTP/1.1 500 No\r\n\r\na\x00b", want: "status"},
		{raw: "HTTP/1.1 503 No\r\nRetry-After: 7\r\n\r\n", want: "status", result: poster.Result{RetryAfter: 7 * time.Second}},
		{raw: "HTTP/1.1 301 No\r\nRetry-After: 0\r\n\r\n", want: "redirect", result: poster.Result{RetryAfter: time.Second}},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: 99999999999999999999999\r\n\r\n", want: "status", result: poster.Result{RetryAfter: 24 * time.Hour}},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: 9223372036854775807\r\n\r\n", want: "status", result: poster.Result{RetryAfter: 24 * time.Hour}},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: soon\r\n\r\n", want: "status"},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: -5\r\n\r\n", want: "status"},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: 1.5\r\n\r\n", want: "status"},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: Thu, 25 Feb 2021 15:02:30 GMT\r\n\r\n", want: "status", result: poster.Result{RetryAfter: 20 * time.Second}},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: Thu, 25 Feb 2021 15:02:30 GMT\r\nDate: Thu, 25 Feb 2021 15:02:00 GMT\r\n\r\n", want: "status", result: poster.Result{RetryAfter: 30 * time.Second}},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: Thu, 25 Feb 1999 15:02:30 GMT\r\n\r\n", want: "status", result: poster.Result{RetryAfter: time.Second}},
		{raw: "HTTP/1.1 429 No\r\nRetry-After: Thu, 25 Feb 9999 15:02:30 GMT\r\n\r\n", want: "status", result: poster.Result{RetryAfter: 24 * time.Hour}},
	} {
		at, count := listen(t, "127.0.0.1:0", answering(test.raw))
		name := test.raw[:min(len(test.raw), 60)]
		got := check(t, p, "http://"+at+"/", test.want)
		if got.Response != test.result.Response || got.RetryAfter != test.result.RetryAfter {
			t.Errorf("%q: got %+v", name, got)
		}
		if count.Load() != 1 {
			t.Errorf("%q: %d connections, want 1", name, count.Load())
		}
	}
}

func TestPost_connections(t *testing.T) {
	t.Parallel()
	p := newPoster(t, poster.Config{Allow: loopback, Resolver: resolver(t, always())})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	check(t, p, "http://"+listener.Addr().String()+"/", poster.Connect)
	check(t, p, "https://nowhere.test/", poster.DNS)
	check(t, p, "ftp://127.0.0.1/", poster.Protocol)
	check(t, p, "http://127.0.0.1:port/", poster.AddressRefused)

	plain, _ := listen(t, "127.0.0.1:0", answering("HTTP/1.1 200 OK\r\n\r\n"))
	check(t, p, "https://"+plain+"/", poster.TLS)
	unknown := httptest.NewTLSServer(http.NotFoundHandler())
	defer unknown.Close()
	check(t, p, unknown.URL, poster.TLS)

	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // what must be refused
	old.StartTLS()
	defer old.Close()
	trusting := newPoster(t, poster.Config{Allow: loopback})
	roots := x509.NewCertPool()
	roots.AddCert(old.Certificate())
	trusting.Trust(roots)
	check(t, trusting, old.URL, poster.TLS)
}

// TestPost_timeouts: each bound ends an attempt. The last two servers send data all the
// time.
func TestPost_timeouts(t *testing.T) {
	t.Parallel()
	drip := func(conn net.Conn, first, more string) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, err := io.WriteString(conn, first)
		for err == nil {
			time.Sleep(time.Millisecond)
			_, err = io.WriteString(conn, more)
		}
	}
	long, short := time.Minute, 50*time.Millisecond
	for _, test := range []struct {
		name               string
		serve              func(net.Conn)
		post, connect, tls time.Duration
		scheme, want       string
	}{
		{"silence", hang, short, long, long, "http", poster.Timeout},
		{"half a header", func(c net.Conn) { answering("HTTP/1.1 200 OK\r\n")(c); hang(c) }, short, long, long, "http", poster.Timeout},
		{"half a body", func(c net.Conn) { answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")(c); hang(c) }, short, long, long, "http", poster.Timeout},
		{"no TLS", hang, long, long, short, "https", poster.TLS},
		{"slow headers", func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nX: ", "x") }, short, long, long, "http", poster.Timeout},
		{"slow body", func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\n\r\n", "x") }, short, long, long, "http", poster.Timeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPoster(t, poster.Config{Allow: loopback})
			p.Hurry(test.post, test.connect, test.tls)
			at, _ := listen(t, "127.0.0.1:0", test.serve)
			check(t, p, test.scheme+"://"+at+"/", test.want)
		})
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		p := newPoster(t, poster.Config{Allow: loopback})
		ctx, cancel := context.WithCancel(t.Context())
		at, _ := listen(t, "127.0.0.1:0", func(c net.Conn) { cancel(); hang(c) })
		if got := p.Post(ctx, to("http://"+at+"/")); got.Error != poster.Timeout {
			t.Errorf("got %+v", got)
		}
	})
}

// spellings are URLs of this machine; %s is the port. Names resolve to loopback.
var spellings = strings.Fields(`
	https://127.0.0.1:%s/ https://127.0.0.2:%s/ https://127.255.255.254:%s/ https://127.1:%s/ https://127.0.1:%s/
	https://2130706433:%s/ https://0x7f000001:%s/ https://0X7F000001:%s/ https://0x7f.0.0.1:%s/ https://0x7f.0x0.0x0.0x1:%s/
	https://0177.0.0.1:%s/ https://017700000001:%s/ https://0177.0.1:%s/ https://0x7f.1:%s/ https://127.000.000.001:%s/
	https://00000177.0.0.1:%s/ https://6425673729:%s/ https://0:%s/ https://0.0.0.0:%s/ https://00000:%s/ https://0x0:%s/
	https://127.0.0.1.:%s/ https://127.0.0.1..:%s/ https://127.0.0.1%%00:%s/ https://%%31%%32%%37.0.0.1:%s/
	https://[::1]:%s/ https://[::]:%s/ https://[0:0:0:0:0:0:0:1]:%s/ https://[0000:0000:0000:0000:0000:0000:0000:0001]:%s/
	https://[::0001]:%s/ https://[0::1]:%s/ https://[::1%%25lo]:%s/ https://[::1%%25]:%s/ https://[::%%25lo]:%s/
	https://[::ffff:127.0.0.1]:%s/ https://[::ffff:7f00:1]:%s/ https://[::FFFF:7F00:0001]:%s/ https://[0:0:0:0:0:ffff:127.0.0.1]:%s/
	https://[::ffff:127.0.0.1%%25lo]:%s/ https://[::ffff:0.0.0.0]:%s/ https://[::127.0.0.1]:%s/ https://[::7f00:1]:%s/
	https://[::ffff:0:127.0.0.1]:%s/ https://[64:ff9b::127.0.0.1]:%s/ https://[64:ff9b::7f00:1]:%s/ https://[64:ff9b:1::7f00:1]:%s/
	https://[2002:7f00:1::]:%s/ https://[2002:7f00:1::1]:%s/ https://[2001::80ff:fffe]:%s/ https://[fe80::1%%25lo]:%s/
	https://localhost:%s/ https://LOCALHOST:%s/ https://localhost.:%s/ https://localhost.localdomain:%s/ https://a.localhost:%s/
	https://ip6-localhost:%s/ https://127.0.0.1.nip.test:%s/ https://receiver.test:%s/ https://receiver.test.:%s/ https://xn--rcever-hta.test:%s/
	https://user@127.0.0.1:%s/ https://example.com@127.0.0.1:%s/ https://example.com:443@127.0.0.1:%s/ https://example.com%%40127.0.0.1:%s/
	https://127.0.0.1:%s@127.0.0.1/ https://127.0.0.1:%s#@example.com/ https://127.0.0.1:%s?@example.com/ https://127.0.0.1:%s\@example.com/
	https://example.com\@127.0.0.1:%s/ https://①②⑦.⓪.⓪.①:%s/ https://127。0。0。1:%s/ https://１２７.０.０.１:%s/ https://127．0．0．1:%s/
	https://127｡0｡0｡1:%s/ https://①②⑦.1:%s/ https://٢٧.0.0.1:%s/ https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:%s/ https://LOCALHOſT:%s/ https://127.0.0.1\u00ad:%s/
	https:127.0.0.1:%s/ https:///127.0.0.1:%s/ https:\\127.0.0.1:%s/ //127.0.0.1:%s/ http://127.0.0.1:%s/ http://[::1]:%s/ http://localhost:%s/`)

// TestRefusedAddresses: no spelling of an address of this machine makes a connection, by
// https or by http. If the addresses are allowed, many of the same URLs make one. So these
// URLs really lead to this machine.
func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	at, count := listen(t, "127.0.0.1:0", hangUp)
	_, port, _ := net.SplitHostPort(at)
	_, count2 := listen(t, "127.0.0.2:"+port, hangUp)
	_, count6 := listen(t, "[::1]:"+port, hangUp)
	connections := func() int64 { return count.Load() + count2.Load() + count6.Load() }
	names := resolver(t, always("127.0.0.1", "::1", "::ffff:127.0.0.1"))
	elsewhere := []netip.Prefix{netip.MustParsePrefix("127.0.0.77/32"), netip.MustParsePrefix("::ffff:0:0/96")}
	for _, allow := range [][]netip.Prefix{nil, elsewhere} {
		p := newPoster(t, poster.Config{Allow: allow, Resolver: names})
		for _, spelling := range spellings {
			for _, scheme := range []string{"https:", "http:"} {
				where := strings.Replace(fmt.Sprintf(spelling, port), "https:", scheme, 1)
				switch got := p.Post(t.Context(), to(where)); got.Error {
				case poster.AddressRefused, poster.DNS:
				case poster.Protocol: // the URL has no host, or no scheme
				default:
					t.Errorf("%s: %+v", where, got)
				}
			}
		}
	}
	if n := connections(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	p := newPoster(t, poster.Config{Allow: loopback, Resolver: names})
	led := 0
	for _, spelling := range spellings {
		before := connections()
		if strings.Contains(spelling, "[64:ff9b:") {
			continue // only a translator could bring it here, and this machine has none
		}
		p.Post(t.Context(), to(fmt.Sprintf(spelling, port)))
		if connections() > before {
			led++
		}
	}
	t.Logf("%d spellings, of which %d lead here if that is allowed", len(spellings), led)
	if len(spellings) < 60 || led < 40 {
		t.Errorf("of %d spellings only %d lead here if that is allowed", len(spellings), led)
	}
}

// TestRefuses: http is open only to exempt addresses.
func TestRefuses(t *testing.T) {
	t.Parallel()
	public, private, exempt := netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.1.0.1")
	for _, test := range []struct {
		addr          netip.Addr
		plain, secure bool // whether it is refused
	}{
		{public, true, false},
		{private, true, true},
		{exempt, false, false},
		{netip.MustParseAddr("::ffff:10.1.0.1"), false, false},
		{netip.MustParseAddr("64:ff9b::10.1.0.1"), false, false},
		{netip.MustParseAddr("64:ff9b::10.0.0.1"), true, true},
		{netip.MustParseAddr("fd00::1%eth0"), false, false},
	} {
		p := newPoster(t, poster.Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}})
		if got := p.Refuses(test.addr, true); got != test.plain {
			t.Errorf("%s is refused for http: %v", test.addr, got)
		}
		if got := p.Refuses(test.addr, false); got != test.secure {
			t.Errorf("%s is refused for https: %v", test.addr, got)
		}
		if got := p.Refused(test.addr); got != test.secure {
			t.Errorf("%s is refused in a URL: %v", test.addr, got)
		}
		behind := newPoster(t, poster.Config{Proxy: &url.URL{Scheme: "http", Host: "127.0.0.1:3128"}})
		if behind.Refused(test.addr) {
			t.Errorf("%s is refused although the proxy judges", test.addr)
		}
		if !newPoster(t, poster.Config{}).Refuses(test.addr, true) {
			t.Errorf("%s is open to http without an exemption", test.addr)
		}
	}
}

// TestRebinding: a name server first returns a good address and then a bad one, for the
// next connection or in the same response. The bad one is not reached.
func TestRebinding(t *testing.T) {
	t.Parallel()
	at, good := listen(t, "127.0.0.3:0", answering("HTTP/1.1 200 OK\r\n\r\n"))
	_, port, _ := net.SplitHostPort(at)
	_, bad := listen(t, "127.0.0.2:"+port, answering("HTTP/1.1 200 OK\r\n\r\n"))
	var turned atomic.Bool
	answers := func(name string) []string {
		switch {
		case strings.HasPrefix(name, "both."):
			return []string{"127.0.0.2", "127.0.0.3"}
		case !turned.Load():
			return []string{"127.0.0.3"}
		}
		return []string{"127.0.0.2", "::ffff:127.0.0.2"}
	}
	p := newPoster(t, poster.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}, Resolver: resolver(t, answers)})
	check(t, p, "http://rebinding.test.:"+port, "")
	turned.Store(true)
	check(t, p, "http://rebinding.test.:"+port, poster.AddressRefused)
	check(t, p, "https://rebinding.test.:"+port, poster.AddressRefused)
	check(t, p, "http://both.test.:"+port, "")
	if good.Load() != 2 || bad.Load() != 0 {
		t.Errorf("%d connections to the good address, %d to the other", good.Load(), bad.Load())
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	refused, count := listen(t, "127.0.0.2:0", hangUp)
	p := newPoster(t, poster.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	for _, status := range []int{300, 301, 302, 303, 305, 307, 308} {
		at, same := listen(t, "127.0.0.1:0", answering(fmt.Sprintf("HTTP/1.1 %d No\r\nLocation: http://%s/\r\nRefresh: 0\r\n\r\n", status, refused)))
		check(t, p, "http://"+at, poster.Redirect)
		if same.Load() != 1 {
			t.Errorf("%d: %d connections", status, same.Load())
		}
	}
	if count.Load() != 0 {
		t.Errorf("%d connections", count.Load())
	}
}

// TestConnectionsAreReused: connections are used again, but only a few are kept.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	states := map[net.Conn]http.ConnState{}
	full := make(chan struct{})
	var waiting atomic.Int64
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/together" {
			if waiting.Add(1) == 12 {
				close(full)
			}
			<-full
		}
		_, _ = w.Write(make([]byte, 15<<10)) // nearly as much as is read
	}))
	receiver.Config.ConnState = func(c net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		states[c] = s
	}
	receiver.Start()
	defer receiver.Close()
	p := newPoster(t, poster.Config{Allow: loopback})
	for range 20 {
		check(t, p, receiver.URL, "")
	}
	mu.Lock()
	if len(states) != 1 {
		t.Errorf("20 attempts made %d connections", len(states))
	}
	mu.Unlock()
	var attempts sync.WaitGroup
	for range 12 {
		attempts.Go(func() { check(t, p, receiver.URL+"/together", "") })
	}
	attempts.Wait()
	for open := 99; open > 8; {
		open = 0
		mu.Lock()
		for _, state := range states {
			if state != http.StateClosed {
				open++
			}
		}
		mu.Unlock()
		if t.Context().Err() != nil {
			t.Fatalf("%d connections stay open", open)
		}
	}
}

// TestProxy: only the operator's proxy is used, by CONNECT for http and https, and the
// proxy decides about addresses.
func TestProxy(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	judge := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		mu.Unlock()
		host, port, _ := net.SplitHostPort(r.Host)
		switch {
		case host == "forbidden.test":
			w.WriteHeader(http.StatusForbidden)
			return
		case host != "example.com": // certificates of httptest have this name
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		out, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Error(err)
			return
		}
		defer out.Close()
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(out, in); out.Close() }()
		_, _ = io.Copy(in, out)
	})
	proxy := httptest.NewServer(judge)
	defer proxy.Close()
	secureProxy := httptest.NewTLSServer(judge)
	defer secureProxy.Close()
	at, _ := listen(t, "127.0.0.1:0", answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	_, port, _ := net.SplitHostPort(at)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secure.Close()
	_, securePort, _ := net.SplitHostPort(secure.Listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())

	through, _ := url.Parse(proxy.URL)
	through.User = url.UserPassword("u", "p")
	// The Poster itself does not resolve names.
	p := newPoster(t, poster.Config{Proxy: through, Allow: loopback, Resolver: resolver(t, always())})
	p.Trust(roots)
	check(t, p, "http://example.com:"+port, "")
	check(t, p, "https://example.com:"+securePort, "")
	check(t, p, "https://forbidden.test/", poster.AddressRefused)
	check(t, p, "https://nowhere.test/", poster.Connect)
	want := fmt.Sprintf("[CONNECT example.com:%s Basic dTpw CONNECT example.com:%s Basic dTpw CONNECT forbidden.test:443 Basic dTpw CONNECT nowhere.test:443 Basic dTpw]", port, securePort)
	if got := fmt.Sprint(asked); got != want {
		t.Errorf("the proxy was asked\n%s, want\n%s", got, want)
	}
	byTLS, _ := url.Parse(secureProxy.URL)
	p = newPoster(t, poster.Config{Proxy: byTLS})
	check(t, p, "https://example.com:"+securePort, poster.Connect) // the proxy's certificate is not trusted
	p.Trust(roots)
	check(t, p, "https://example.com:"+securePort, "")

	// Without exempt addresses, http is refused. If the proxy is down, no connection goes
	// around it.
	check(t, newPoster(t, poster.Config{Proxy: through}), "http://example.com:"+port, poster.AddressRefused)
	down := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	check(t, newPoster(t, poster.Config{Proxy: down, Allow: loopback}), "http://"+at, poster.Connect)
	silent, _ := listen(t, "127.0.0.1:0", hang)
	hurried := newPoster(t, poster.Config{Proxy: &url.URL{Scheme: "http", Host: silent}, Allow: loopback})
	hurried.Hurry(time.Minute, 50*time.Millisecond, time.Minute)
	check(t, hurried, "http://"+at, poster.Connect)

	for _, bad := range []string{"socks5://127.0.0.1:1080", "http://", "127.0.0.1:3128"} {
		proxy, err := url.Parse(bad)
		if err != nil {
			continue
		}
		if _, err := poster.New(poster.Config{Proxy: proxy}); err == nil {
			t.Errorf("%s is taken for a proxy", bad)
		}
	}
}

// TestEnvironmentProxyIsNotUsed: proxies of the environment are for other programs.
func TestEnvironmentProxyIsNotUsed(t *testing.T) {
	at, count := listen(t, "127.0.0.1:0", hangUp)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+at)
	}
	receiver, _ := listen(t, "127.0.0.1:0", answering("HTTP/1.1 200 OK\r\n\r\n"))
	_, port, _ := net.SplitHostPort(receiver)
	p := newPoster(t, poster.Config{Allow: loopback, Resolver: resolver(t, always("127.0.0.1"))})
	check(t, p, "http://receiver.test:"+port, "")
	check(t, p, "https://receiver.test:"+port, poster.TLS)
	if count.Load() != 0 {
		t.Errorf("%d connections to the environment's proxy", count.Load())
	}
}

// TestWords: desk.TryErrors lists the words of outcomes. The metrics have a counter for each
// of them from the start.
func TestWords(t *testing.T) {
	t.Parallel()
	words := []string{poster.AddressRefused, poster.DNS, poster.Connect, poster.TLS, poster.Timeout, poster.Protocol, poster.Redirect, poster.Gone, poster.Status}
	if !slices.Equal(words, desk.TryErrors) {
		t.Errorf("%q, but desk lists %q", words, desk.TryErrors)
	}
}
