// Package whatsapp stands behind channels of the WhatsApp Cloud API: it is their
// app.Provider.
//
//	client.go     one request and its answer, and whether the request ever left
//	send.go       a template message, and what an answer proves of it
//	errors.go     every error code: what it means, and what to do
//	templates.go  the template library, page by page
//	check.go      what is wrong with a channel; subscribing to webhooks
//	webhook.go    signatures, and what a webhook tells
//	inbound.go    what people write, as text
//
// A Provider keeps nothing between calls but connections, and is safe for concurrent
// use. Whatever it says in an error, a refusal or a log line is free of tokens, phone
// numbers and message texts.
package whatsapp

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Config is what a Provider is built from. Now is required.
type Config struct {
	Now func() time.Time
	Log *slog.Logger // of refused sends, with what the provider's support asks for; default: none
}

// A Provider speaks to the WhatsApp Cloud API; see app.Provider.
type Provider struct {
	now    func() time.Time
	log    *slog.Logger
	client *http.Client
	pause  func(context.Context, time.Duration) error // between two pages, when reads are short
}

// New builds a Provider.
func New(c Config) *Provider {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Provider{now: c.Now, log: c.Log, client: newClient(), pause: pause}
}
