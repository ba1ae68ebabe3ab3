package whatsapp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"
	"parley/provider"
)

// The bounds of one request.
const (
	connectTimeout = 5 * time.Second
	maxAnswer      = 1 << 20 // bytes
)

// newClient returns a client that never sends a message twice.
//
// HTTP/2 is off, because Go's client repeats a request there after errors that do not
// prove that the server ignored it. Redirects are not followed. Never add a header
// Idempotency-Key or X-Idempotency-Key: with it, net/http repeats a POST whose
// connection died.
//
// With a guard, all connections are made by it, and the environment's proxy is not used.
func newClient(guarded guard) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		Protocols:              protocols,
		TLSHandshakeTimeout:    connectTimeout,
		MaxIdleConnsPerHost:    100,
		IdleConnTimeout:        30 * time.Second, // if a connection has just died, a request on it is in doubt
		MaxResponseHeaderBytes: 256 << 10,
	}
	if guarded != nil {
		t.Proxy, t.DialContext = nil, guarded.dialPlain
		t.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
			return guarded.dialTLS(ctx, address, t.TLSClientConfig)
		}
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// A guard connects to addresses that tenants set; see Config.Dial.
type guard func(ctx context.Context, address string, plain bool) (net.Conn, error)

func (g guard) dialPlain(ctx context.Context, _, address string) (net.Conn, error) {
	return g.connect(ctx, address, true)
}

func (g guard) dialTLS(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	c, err := g.connect(ctx, address, false)
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	config.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secure, nil
}

func (g guard) connect(ctx context.Context, address string, plain bool) (net.Conn, error) {
	c, err := g(ctx, address, plain)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// shutGuard is a guard that lets nothing through.
func shutGuard(context.Context, string, bool) (net.Conn, error) {
	return nil, errors.New("no address of a tenant can be reached")
}

// A flight is a request under way. It records whether a byte of it was sent, and decides
// whether the first byte may still be sent.
type flight struct {
	now func() time.Time
	by  time.Time // the first byte must not be sent later; zero: no limit

	mu      sync.Mutex
	started bool // the first byte was passed to the system
	over    bool // the request must not start any more
	late    bool // because it was too late
	cut     bool // writing ended before the request's end
}

// start tells whether a byte may be sent.
func (f *flight) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.started && !f.over && !f.by.IsZero() && f.now().After(f.by) {
		f.over, f.late = true, true
	}
	f.started = f.started || !f.over
	return f.started
}

// ground cancels a flight that has not started, and tells whether it did so.
func (f *flight) ground(late bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started {
		return false
	}
	f.late = f.late || late && !f.over
	f.over = true
	return true
}

// incomplete tells whether the server certainly does not have the whole request.
func (f *flight) incomplete() bool {
	if f.ground(false) {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

func (f *flight) wasLate() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.late
}

// trace returns callbacks that watch the request. net/http reports a request as written
// before it has flushed the last part, so success proves nothing. A failure proves that
// the last part of the body was never sent.
func (f *flight) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			f.mu.Lock()
			f.cut = false
			f.mu.Unlock()
			board(info.Conn, f)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			f.mu.Lock()
			f.cut = info.Err != nil
			f.mu.Unlock()
		},
	}
}

// A conn is a connection that asks its current flight before each write.
type conn struct {
	net.Conn
	flight atomic.Pointer[flight]
}

var errGrounded = errors.New("the request was given up before its first byte")

func (c *conn) Write(b []byte) (int, error) {
	if f := c.flight.Load(); f != nil && !f.start() {
		return 0, errGrounded
	}
	return c.Conn.Write(b)
}

// board makes f the current flight of the conn that is inside c.
func board(c net.Conn, f *flight) {
	for c != nil {
		switch layer := c.(type) {
		case *conn:
			layer.flight.Store(f)
			return
		case interface{ NetConn() net.Conn }: // TLS
			c = layer.NetConn()
		default:
			c = nil
		}
	}
	f.start() // nothing can stop this connection's writes, so the request counts as sent
}

// A call is one request to the API.
type call struct {
	at     provider.Access
	method string
	path   []string
	query  url.Values
	body   []byte    // JSON
	bearer string    // instead of the channel's token
	bare   bool      // without a proof made with the app secret
	by     time.Time // see flight
	most   int64     // bytes of the answer; default maxAnswer

	stream io.Reader // instead of body, with its length and its content type
	length int64
	form   string
}

// An answer is an HTTP response, with any status.
type answer struct {
	status int
	header http.Header
	body   []byte
	whole  bool // the body is not cut short
}

// A failure is the error of a call without an answer. It contains no URL and no body.
type failure struct {
	certain bool // the server certainly does not have the request
	late    bool // the first byte would have been sent too late
	err     error
}

func (f *failure) Error() string { return "whatsapp: " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// do makes a call, once. Its error is a *failure.
func (p *Provider) do(ctx context.Context, c call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, desk.CallTime)
	defer cancel()
	f := &flight{now: p.now, by: c.by}
	if !c.by.IsZero() {
		takeOff := time.AfterFunc(c.by.Sub(p.now()), func() {
			if f.ground(true) {
				cancel()
			}
		})
		defer takeOff.Stop()
	}
	request, err := c.request(httptrace.WithClientTrace(ctx, f.trace()))
	if err != nil {
		return answer{}, &failure{certain: true, err: err}
	}
	response, err := p.clients(c.at).api.Do(request)
	if err != nil {
		var of *url.Error // it shows the URL, and a URL can hold a secret
		if errors.As(err, &of) {
			err = of.Err
		}
		certain := f.incomplete()
		return answer{}, &failure{certain, certain && f.wasLate(), err}
	}
	defer response.Body.Close()
	return answerOf(response, max(c.most, maxAnswer)), nil
}

// answerOf reads a response, but no more than a number of bytes.
func answerOf(response *http.Response, most int64) answer {
	a := answer{status: response.StatusCode, header: response.Header}
	var err error
	a.body, err = io.ReadAll(io.LimitReader(response.Body, most+1))
	a.whole = err == nil && int64(len(a.body)) <= most
	return a
}

func (c *call) request(ctx context.Context) (*http.Request, error) {
	account := c.at.Channel.Account
	base, version := account.BaseURL, account.Version
	if base == "" {
		base = defaultBase
	}
	if version == "" {
		version = defaultVersion
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" {
		return nil, errors.New("the API's base URL is no URL")
	}
	u = u.JoinPath(url.PathEscape(version))
	for _, part := range c.path {
		u = u.JoinPath(url.PathEscape(part))
	}
	bearer, query := c.bearer, url.Values{}
	if bearer == "" {
		bearer = c.at.Secrets.Token.Reveal()
	}
	for name, values := range c.query {
		query[name] = values
	}
	if secret := c.at.Secrets.AppSecret.Reveal(); secret != "" && !c.bare {
		query.Set("appsecret_proof", sign(secret, []byte(bearer)))
	}
	u.RawQuery = query.Encode()
	var body io.Reader = bytes.NewReader(c.body)
	if c.stream != nil {
		body = c.stream
	}
	r, err := http.NewRequestWithContext(ctx, c.method, u.String(), body)
	if err != nil {
		return nil, errors.New("the API's base URL is no URL")
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	switch {
	case c.stream != nil:
		r.ContentLength = c.length
		r.Header.Set("Content-Type", c.form)
	case c.body != nil:
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// sign is the HMAC-SHA256 of a message in lower-case hex.
func sign(secret string, message []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

// The headers of any answer can say how many percent of the hourly call limit are used,
// and for how many minutes further calls are refused.

// usage returns the highest percentage in an answer's headers, or 0.
func (a answer) usage() (percent float64) {
	a.eachUsage(func(u map[string]any) {
		for _, name := range []string{"call_count", "total_cputime", "total_time"} {
			n, _ := u[name].(float64)
			percent = max(percent, n)
		}
	})
	return percent
}

// maxWait bounds the wait that an answer asks for.
const maxWait = 24 * time.Hour

// wait returns the wait that the answer asks for, or 0.
func (a answer) wait(now time.Time) time.Duration {
	var longest time.Duration
	a.eachUsage(func(u map[string]any) {
		minutes, _ := u["estimated_time_to_regain_access"].(float64)
		longest = max(longest, time.Duration(min(minutes, maxWait.Minutes())*float64(time.Minute)))
	})
	after := a.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		longest = max(longest, time.Duration(min(seconds, int(maxWait.Seconds())))*time.Second)
	} else if at, err := http.ParseTime(after); err == nil {
		longest = max(longest, at.Sub(now))
	}
	return min(longest, maxWait)
}

// eachUsage calls f with every usage report in the headers. It skips malformed ones.
func (a answer) eachUsage(f func(map[string]any)) {
	for _, value := range a.header.Values("X-App-Usage") {
		var report map[string]any
		if json.Unmarshal([]byte(value), &report) == nil {
			f(report)
		}
	}
	for _, value := range a.header.Values("X-Business-Use-Case-Usage") {
		var businesses map[string]json.RawMessage
		if json.Unmarshal([]byte(value), &businesses) != nil {
			continue
		}
		for _, b := range businesses {
			var reports []map[string]any
			if json.Unmarshal(b, &reports) != nil {
				continue
			}
			for _, report := range reports {
				f(report)
			}
		}
	}
}

// decodeObject reads a JSON object into v, and tells whether data is a JSON object. It
// skips members that have another type than expected and reads the rest, because the
// provider changes its formats sometimes.
func decodeObject(data []byte, v any) bool {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return false
	}
	err := json.Unmarshal(data, v)
	var other *json.UnmarshalTypeError
	return err == nil || errors.As(err, &other)
}

// A text is a JSON string or number, as it is written. Any other value becomes "". The
// provider writes ids and times sometimes as strings, and sometimes as numbers that do
// not fit into a float.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	var s string
	switch {
	case b[0] == '"':
		if json.Unmarshal(b, &s) == nil {
			*t = text(s)
		}
	case b[0] == '-' || '0' <= b[0] && b[0] <= '9':
		*t = text(b)
	}
	return nil
}

// number reads an integer. If the text is not an integer, ok is false.
func (t text) number() (int64, bool) {
	n, err := strconv.ParseInt(string(t), 10, 64)
	return n, err == nil
}

// list returns the elements of a JSON array, or nil if raw is not an array.
func list(raw json.RawMessage) (elements []json.RawMessage) {
	if json.Unmarshal(raw, &elements) != nil {
		return nil
	}
	return elements
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting because of the call limit: %w", context.Cause(ctx))
	}
}
