// Package whatsapp is the provider.Provider of channels on the WhatsApp Cloud API.
//
//	client.go     one request and its answer, and whether the request was sent
//	send.go       a message, and the outcome that a response proves
//	media.go      files: uploading, fetching; marking messages as read
//	errors.go     every error code: what it means, and what to do
//	templates.go  the template library, page by page
//	account.go    checking an account, its limits, and its callback URL
//	check.go      the problems of a channel; subscribing to callbacks
//	callback.go   signatures, and reading a callback
//	inbound.go    inbound messages, and messages typed in the phone app
//
// A Provider keeps only connections between calls, and is safe for concurrent use. Its
// errors, refusals and log lines contain no tokens, phone numbers or message texts.
package whatsapp

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"parley/provider"
)

// Config has the parts of a Provider. Now is required.
type Config struct {
	Now func() time.Time
	Log *slog.Logger // for failed sends, with the ids that the provider's support needs; default: none

	// Dial connects to HOST:PORT for channels whose address a tenant has set. If it is
	// nil, these channels can't connect. plain is true for http without TLS.
	Dial func(ctx context.Context, address string, plain bool) (net.Conn, error)
	// Opened says that tenants could set an address in earlier releases (see
	// desk.Account.Guarded).
	Opened bool
}

// A Provider is a client of the WhatsApp Cloud API (see provider.Provider).
type Provider struct {
	now    func() time.Time
	log    *slog.Logger
	opened bool
	free   clients                                    // for the provider's own address, and for addresses that the operator has set
	tenant clients                                    // for addresses that tenants have set
	pause  func(context.Context, time.Duration) error // between two pages, when few calls are left
}

// New builds a Provider.
func New(c Config) *Provider {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	guarded := guard(c.Dial)
	if guarded == nil {
		guarded = shutGuard
	}
	return &Provider{
		now: c.Now, log: c.Log, opened: c.Opened, pause: pause,
		free: clients{newClient(nil), newMediaClient(nil)}, tenant: clients{newClient(guarded), newMediaClient(guarded)},
	}
}

// A clients has one HTTP client for the API and another one for files.
type clients struct{ api, files *http.Client }

// clients returns the clients that a channel must use.
func (p *Provider) clients(at provider.Access) clients {
	if at.Channel.Account.Guarded(p.opened) {
		return p.tenant
	}
	return p.free
}
