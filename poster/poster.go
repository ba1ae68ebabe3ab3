// Package poster posts signed bodies to webhook endpoints and returns the outcome. It
// has no store and no schedule: one call is one attempt.
//
//	poster.go  an attempt: the request, its bounds, and the word for its outcome
//	dial.go    connections: the address guard at each connect, TLS, the operator's proxy
//	address.go which addresses are refused, from IANA's registries
package poster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"parley/desk"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The outcomes of an attempt other than success. The API shows these words.
const (
	AddressRefused = "address_refused" // the guard, or the proxy, refuses the address
	DNS            = "dns"             // the host's name was not resolved
	Connect        = "connect"         // no connection, or not in time
	TLS            = "tls"             // no TLS session, or not in time
	Timeout        = "timeout"         // no complete response in time
	Protocol       = "protocol"        // no HTTP response, or it was cut off
	Redirect       = "redirect"        // 3xx, which is not followed
	Gone           = "gone"            // 410
	Status         = "status"          // any other status that is not 2xx
)

// The bounds of an attempt.
const (
	postTimeout    = 15 * time.Second
	connectTimeout = 5 * time.Second // for the name and the connection; with a proxy, its CONNECT too
	tlsTimeout     = 5 * time.Second
	maxAnswer      = 16 << 10 // bytes of the body that are read
	maxHeader      = 16 << 10 // bytes of the answer's header
)

// maxRetryAfter limits the pause that a receiver can ask for, so that callers can
// calculate with it.
const maxRetryAfter = 24 * time.Hour

// A Config says how a Poster reaches endpoints. The zero Config reaches only public
// addresses.
type Config struct {
	// Allow lists networks that the guard does not refuse. Only they can be reached by
	// http.
	Allow []netip.Prefix
	// Proxy is an HTTP proxy. If it is set, all connections go through its CONNECT, and
	// the proxy decides about addresses. Proxies of the environment are never used.
	Proxy *url.URL
	// Version is parley's version, for the User-Agent.
	Version string
	// Resolver resolves host names; nil means the system's resolver.
	Resolver *net.Resolver
}

// A Poster makes attempts. It may be used by many goroutines.
type Poster struct {
	config    Config
	agent     string
	bounds    bounds
	tls       *tls.Config
	transport *http.Transport
}

type bounds struct{ post, connect, tls time.Duration }

// New returns a Poster. It returns an error if it can't use the proxy.
func New(c Config) (*Poster, error) {
	if c.Proxy != nil && (c.Proxy.Scheme != "http" && c.Proxy.Scheme != "https" || c.Proxy.Hostname() == "") {
		return nil, fmt.Errorf("the proxy must be http://HOST:PORT or https://HOST:PORT, not %s", c.Proxy.Redacted())
	}
	p := &Poster{
		config: c,
		agent:  "parley/" + c.Version,
		bounds: bounds{postTimeout, connectTimeout, tlsTimeout},
		tls:    &tls.Config{MinVersion: tls.VersionTLS12},
	}
	// One attempt is at most one request. HTTP/2 is off because Go's client may repeat a
	// request there. On HTTP/1 it repeats a POST only if no byte of it was written.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	p.transport = &http.Transport{
		DialContext:            p.dialPlain,
		DialTLSContext:         p.dialTLS,
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    8,
		// Many servers close a connection that was idle for 5 s (Node's default). A POST
		// that is sent at this moment fails, so idle connections are closed earlier.
		IdleConnTimeout: 4 * time.Second,
	}
	return p, nil
}

// Close closes the connections that no attempt uses.
func (p *Poster) Close() { p.transport.CloseIdleConnections() }

// A Request is the content of an attempt.
type Request struct {
	URL     string
	ID      string // the event's id, for the header webhook-id
	Body    []byte
	Secrets [][]byte  // decoded, newest first; each secret signs
	At      time.Time // for the header webhook-timestamp
}

// A Result is the outcome of an attempt.
type Result struct {
	StatusCode int           // 0: there was no response
	Error      string        // a word of this package; "" for success
	Response   string        // if not 2xx: the beginning of the body, if the body is text
	RetryAfter time.Duration // the pause that the receiver asks for after a failure; 0: none
	Took       time.Duration
	Err        error // why no request was made: this machine lacks a resource; contains no address
}

// Post makes one attempt. If ctx ends first, the attempt ends with the error Timeout.
func (p *Poster) Post(ctx context.Context, r Request) Result {
	began := time.Now()
	result := p.post(ctx, r)
	result.Took = time.Since(began)
	return result
}

func (p *Poster) post(ctx context.Context, r Request) Result {
	ctx, cancel := context.WithTimeout(ctx, p.bounds.post)
	defer cancel()
	req, err := p.request(ctx, r)
	if err != nil {
		return Result{Error: AddressRefused}
	}
	// It is not an http.Client, which would follow redirects.
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return Result{Error: outcome(ctx, err), Err: missing(err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 {
		// After a 101, the connection belongs to another protocol, and the body has no end.
		return Result{StatusCode: resp.StatusCode, Error: Protocol}
	}
	result := Result{StatusCode: resp.StatusCode, Error: word(resp.StatusCode)}
	// The whole body is read, within its bound, so that the connection can be used again.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	// 410 disables an endpoint, so it counts even if the response is cut off.
	if err != nil && result.Error != Gone {
		result.Error = outcome(ctx, err)
	}
	if result.Error != "" {
		result.RetryAfter = retryAfter(resp.Header, r.At)
	}
	if resp.StatusCode > 299 {
		result.Response = text(body)
	}
	return result
}

func (p *Poster) request(ctx context.Context, r Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	signature, err := sign(r)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{
		"Content-Type":                          {"application/json"},
		"User-Agent":                            {p.agent},
		standardwebhooks.HeaderWebhookID:        {r.ID},
		standardwebhooks.HeaderWebhookTimestamp: {strconv.FormatInt(r.At.Unix(), 10)},
		standardwebhooks.HeaderWebhookSignature: {signature},
	}
	return req, nil
}

// sign returns the signatures of a request by Standard Webhooks 1.0.0.
func sign(r Request) (string, error) {
	signatures := make([]string, len(r.Secrets))
	for i, secret := range r.Secrets {
		webhook, err := standardwebhooks.NewWebhookRaw(secret)
		if err != nil {
			return "", err
		}
		if signatures[i], err = webhook.Sign(r.ID, r.At, r.Body); err != nil {
			return "", err
		}
	}
	return strings.Join(signatures, " "), nil
}

func word(status int) string {
	switch {
	case status < 300:
		return ""
	case status < 400:
		return Redirect
	case status == http.StatusGone:
		return Gone
	}
	return Status
}

// outcome returns the word for an error of the connection.
func outcome(ctx context.Context, err error) string {
	var failed *dialError
	switch {
	case errors.As(err, &failed):
		return failed.word
	case ctx.Err() != nil:
		return Timeout
	}
	return Protocol
}

// missing returns the machine's limit that made a request fail, or nil if there was
// another reason.
func missing(err error) error {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS} {
		if errors.Is(err, errno) {
			return errno
		}
	}
	return nil
}

// retryAfter reads the header Retry-After: seconds or a date. A date is compared with
// the response's own date, so that different clocks do not matter.
func retryAfter(h http.Header, at time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	wait := maxRetryAfter
	if strings.Trim(value, "0123456789") == "" {
		if seconds, err := strconv.Atoi(value); err == nil && seconds < int(maxRetryAfter/time.Second) {
			wait = time.Duration(seconds) * time.Second
		}
	} else {
		until, err := http.ParseTime(value)
		if err != nil {
			return 0
		}
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			at = date
		}
		wait = until.Sub(at)
	}
	// Zero would mean that the receiver asked for no pause.
	return min(max(wait, time.Second), maxRetryAfter)
}

// text returns the beginning of a body, or "" if it is not UTF-8. A body with a NUL is
// not text either, because PostgreSQL could not store it.
func text(body []byte) string {
	cut := len(body) > desk.MaxTryResponse
	body = body[:min(len(body), desk.MaxTryResponse)]
	// The cut may have divided a character, which is left out.
	for i := 0; cut && i < utf8.UTFMax-1 && !utf8.Valid(body); i++ {
		body = body[:len(body)-1]
	}
	if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
		return ""
	}
	return string(body)
}
