package whatsapp

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"parley/desk"
)

// ErrManyParts is the error of a callback that is not read.
var ErrManyParts = errManyParts

// Pause replaces the wait of the provider between two pages.
func (p *Provider) Pause(wait func(context.Context, time.Duration) error) { p.pause = wait }

// Trust makes the provider trust a test server.
func (p *Provider) Trust(c *tls.Config) {
	for _, client := range []*http.Client{p.free.api, p.free.files, p.tenant.api, p.tenant.files} {
		client.Transport.(*http.Transport).TLSClientConfig = c
	}
}

// Dial makes the provider connect to one address for all hosts of files.
func (p *Provider) Dial(address string) {
	p.free.files.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// MayHaveToken tells whether the token may be sent to a URL.
func MayHaveToken(api, address string) bool {
	a, err := url.Parse(api)
	u, err2 := url.Parse(address)
	return err == nil && err2 == nil && mayHaveToken(a, u)
}

// Failure explains an error code without a subcode.
func Failure(code int, title, details string) desk.Failure { return failureOf(code, 0, title, details) }

// Codes lists the error codes that have their own meaning.
func Codes() (codes []int) {
	for code := range meanings {
		codes = append(codes, code)
	}
	return codes
}

// Refuse returns the refusal for an error body.
var Refuse = func(body string, status int, header http.Header, now time.Time) error {
	return errorOf(answer{status: status, header: header, body: []byte(body), whole: true}, now).refusal()
}
