package whatsapp

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// Pause has the provider wait in another way between two pages.
func (p *Provider) Pause(wait func(context.Context, time.Duration) error) { p.pause = wait }

// Trust has the provider trust a test server.
func (p *Provider) Trust(c *tls.Config) { p.client.Transport.(*http.Transport).TLSClientConfig = c }

// Codes lists the error codes that have a meaning of their own.
func Codes() (codes []int) {
	for code := range meanings {
		codes = append(codes, code)
	}
	return codes
}

// Refuse is the refusal that an error body becomes.
var Refuse = func(body string, status int, header http.Header, now time.Time) error {
	return errorOf(answer{status: status, header: header, body: []byte(body), whole: true}, now).refusal()
}
