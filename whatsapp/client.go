package whatsapp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
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

	"parley/app"
)

// Where the API is, unless the channel says otherwise.
const (
	defaultBase    = "https://graph.facebook.com"
	defaultVersion = "v26.0"
)

// The bounds of one request.
const (
	connectTimeout = 5 * time.Second
	callTimeout    = 20 * time.Second
	maxAnswer      = 1 << 20 // bytes
)

// newClient returns a client that never sends a message twice.
//
// HTTP/2 is off, since Go repeats a request there after errors that do not prove that
// the server left it alone. Redirects are answers. Nobody must ever add a header
// Idempotency-Key or X-Idempotency-Key: net/http takes it for the leave to repeat a
// POST whose connection died.
func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := dialer.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &conn{Conn: c}, nil
			},
			Protocols:              protocols,
			TLSHandshakeTimeout:    connectTimeout,
			MaxIdleConnsPerHost:    100,
			IdleConnTimeout:        30 * time.Second, // a request on a connection that just died is in doubt
			MaxResponseHeaderBytes: 256 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A flight is a request on its way. It knows whether a byte of it has left, and
// decides whether one still may.
type flight struct {
	now func() time.Time
	by  time.Time // the first byte must not leave later; zero: whenever

	mu      sync.Mutex
	started bool // the first byte was handed to the system
	over    bool // it must not start any more
	late    bool // since it was too late
	cut     bool // writing ended before the request's end
}

// start tells whether a byte may leave.
func (f *flight) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.started && !f.over && !f.by.IsZero() && f.now().After(f.by) {
		f.over, f.late = true, true
	}
	f.started = f.started || !f.over
	return f.started
}

// ground ends a flight that has not started, and tells whether it did.
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

// incomplete tells whether the server can't have the whole request, for certain.
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

// trace follows the request. net/http says that a request was written before it has
// flushed the last of it, so success proves nothing; a failure proves that the last
// part of the body never left.
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

// A conn is a connection that asks the flight on it before it writes.
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

// board puts a flight on the conn that lies under c.
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
	f.start() // nothing holds it back, so it counts as gone
}

// A call is one request to the API.
type call struct {
	at     app.Access
	method string
	path   []string
	query  url.Values
	body   []byte    // JSON
	bearer string    // instead of the channel's token
	bare   bool      // without a proof of the app secret
	by     time.Time // see flight
	most   int64     // bytes of the answer; default maxAnswer
}

// An answer is what came back, whatever its status.
type answer struct {
	status int
	header http.Header
	body   []byte
	whole  bool // the body is not cut short
}

// A failure is a call without an answer. It holds neither the URL nor the body.
type failure struct {
	certain bool // that the server does not have the request
	late    bool // the first byte would have left too late
	err     error
}

func (f *failure) Error() string { return "whatsapp: " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// do makes a call, once. Its error is a *failure.
func (p *Provider) do(ctx context.Context, c call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
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
	response, err := p.client.Do(request)
	if err != nil {
		var of *url.Error // it shows the URL, and a URL can hold a secret
		if errors.As(err, &of) {
			err = of.Err
		}
		certain := f.incomplete()
		return answer{}, &failure{certain, certain && f.wasLate(), err}
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	most := max(c.most, maxAnswer)
	a.body, err = io.ReadAll(io.LimitReader(response.Body, most+1))
	a.whole = err == nil && int64(len(a.body)) <= most
	return a, nil
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
	r, err := http.NewRequestWithContext(ctx, c.method, u.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, errors.New("the API's base URL is no URL")
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	if c.body != nil {
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

// The provider says how much of an hour's allowance is used, in percent, and for how
// many minutes it takes no more calls, on answers of every kind.

// usage is the highest percentage that an answer names; 0 when it names none.
func (a answer) usage() (percent float64) {
	a.eachUsage(func(u map[string]any) {
		for _, name := range []string{"call_count", "total_cputime", "total_time"} {
			n, _ := u[name].(float64)
			percent = max(percent, n)
		}
	})
	return percent
}

// maxWait is the longest wait that an answer is believed.
const maxWait = 24 * time.Hour

// wait is how long the answer asks to wait; 0 when it doesn't.
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

// eachUsage calls f with every usage report of the headers; what is none is passed over.
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

// decodeObject reads what of a JSON object fits into v, and tells whether it is one.
// What has another type than expected is left out, and the rest read: the provider
// changes its shapes, and nothing of what still fits must be lost.
func decodeObject(data []byte, v any) bool {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return false
	}
	err := json.Unmarshal(data, v)
	var other *json.UnmarshalTypeError
	return err == nil || errors.As(err, &other)
}

// A text is a JSON string, or a number as it is written; anything else reads as "".
// The provider writes the same ids and times now as strings, now as numbers greater
// than a float can hold.
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

// number reads a whole number; not ok when it is none.
func (t text) number() (int64, bool) {
	n, err := strconv.ParseInt(string(t), 10, 64)
	return n, err == nil
}

// list reads a JSON array's elements; nil when it is none.
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
		return fmt.Errorf("waiting for the allowance: %w", context.Cause(ctx))
	}
}
