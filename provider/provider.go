package provider

import (
	"context"

	"parley/desk"
)

// A Provider implements a kind of channel.
type Provider interface {
	// Send hands one message to the provider. It returns a Receipt if the provider
	// accepted it, a *desk.Refusal as its error if it certainly was not sent, and any
	// other error if the outcome is unknown.
	Send(ctx context.Context, d Dispatch) (Receipt, error)

	// Templates returns the channel's whole library, or an error, but never a part of
	// it. The error of a library that is too large is desk.LibraryTooLarge.
	Templates(ctx context.Context, at Access) ([]desk.TemplateSource, error)

	// Read returns the updates of an inbound item, in order, and an item to process later,
	// or nil. It skips updates that it does not understand; its error concerns the whole
	// item.
	Read(n desk.InboundItem) ([]Update, *Later, error)

	// Check returns the problems of a channel. An error means that the check itself failed.
	Check(ctx context.Context, at Access) ([]Problem, error)

	// CheckAccount returns InvalidRequest for an external id, an account or secrets that the
	// provider can't have. It makes no call to the provider. s is nil if the secrets do not
	// change. If the external id is "", CheckAccount may set one.
	CheckAccount(c *desk.Channel, s *Secrets) error

	// Identities returns the identities of a person whom the provider knows by a number,
	// by its own id, or by both, the most reliable first. "" means unknown.
	Identities(number, userID string) []desk.Identity

	// Limits returns the provider's limits for messages of a channel to a person. person
	// returns a text that identifies the person in the name of a bucket.
	Limits(c *desk.Channel, person func() string) Limits
}

// A CallbackProvider is a Provider that reports by callbacks: its requests to us.
type CallbackProvider interface {
	// Subscribe makes the provider send callbacks.
	Subscribe(ctx context.Context, at Access) error

	// ReportingAdvice tells the operator how to make the provider send callbacks to a path
	// of this server.
	ReportingAdvice(path string) string

	// Handshake reads the request by which the provider verifies a callback URL. query
	// returns a parameter of that request. It returns the verify token and the answer
	// that the provider expects if the token is right; ok is false for another request.
	Handshake(query func(string) string) (token, answer string, ok bool)

	// Signed tells whether the provider signed a callback's body. header returns a
	// header of the callback.
	Signed(at Access, header func(string) string, body []byte) bool

	// OnlyReports tells, by a short look, whether a callback's body seems only to report about
	// messages of the business. Such a callback is processed after others, so a wrong answer
	// changes only the order.
	OnlyReports(body []byte) bool

	// People lists the people whom a callback's body names, so that the body can be
	// erased with them.
	People(body []byte) []desk.Identity
}

// A Simulator is a Provider inside this process. Its templates and the messages of its
// customers come from the operator, so there is nothing to fetch.
type Simulator interface {
	// PutTemplate puts a template into a channel's library, replacing one with the same
	// name and language.
	PutTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error

	// FileRef returns a provider's id of a stored file. Fetching the file by this id has the
	// given fault. It returns InvalidRequest if there is no such fault.
	FileRef(file desk.ID, fault string) (ref string, err error)
}

// A Caster is a Provider whose failures may mean something for a whole broadcast.
type Caster interface {
	Effect(f *desk.Failure) desk.Effect
}

// Limits are the buckets in which a message takes a place before it is sent, and the refusal
// if there is no place in time. A provider without limits has no buckets. A bucket's
// Interval times its Burst is at most LongestBucket.
type Limits struct {
	Buckets  []desk.Bucket
	HeldBack desk.Refusal
}

// A Problem is a problem of a channel, described in a sentence.
type Problem struct {
	Text         string
	Blocking     bool        // until it is solved, nothing can be sent or received
	Unsubscribed bool        // the provider sends no callbacks; Subscribe solves this
	Advice       desk.Advice // what to do, unless the text says it
}
