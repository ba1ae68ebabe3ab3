package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"parley/desk"
	"parley/provider"
	"parley/sandbox"
)

// A scripted provider answers as a test tells it, and records the calls.
type scripted struct {
	*sandbox.Sandbox
	mu      sync.Mutex
	script  outcome
	calls   []provider.Dispatch
	library []desk.TemplateSource // nil: the sandbox's own
}

// An outcome is a function that does the provider's part of a send.
type outcome func(context.Context, provider.Dispatch) (provider.Receipt, error)

func newProvider(s *sandbox.Sandbox) *scripted {
	return &scripted{Sandbox: s, script: takes, library: templates()}
}

func templates() []desk.TemplateSource {
	return []desk.TemplateSource{
		template("hello", "en", "UTILITY", "", "Hello there!"),
		template("hello", "tr", "UTILITY", "", "Merhaba!"),
		template("order_update", "en_US", "UTILITY", "Order {{1}}", "Hi {{1}}, order {{2}} ships today."),
		template("sale", "en", "MARKETING", "", "Everything must go!"),
	}
}

// template returns an approved template in the provider's form.
func template(name, language, category, header, body string) desk.TemplateSource {
	components := []map[string]string{{"type": "BODY", "text": body}}
	if header != "" {
		components = append(components, map[string]string{"type": "HEADER", "format": "TEXT", "text": header})
	}
	source, err := json.Marshal(map[string]any{
		"name": name, "language": language, "status": "APPROVED", "category": category, "components": components,
	})
	if err != nil {
		panic(err)
	}
	return desk.TemplateSource{Name: name, Language: language, Source: string(source)}
}

func (p *scripted) plays(o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = o
}

func (p *scripted) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	p.mu.Lock()
	p.calls = append(p.calls, d)
	script := p.script
	p.mu.Unlock()
	return script(ctx, d)
}

func (p *scripted) sent() []provider.Dispatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

func (p *scripted) Templates(ctx context.Context, at provider.Access) ([]desk.TemplateSource, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.library == nil {
		return p.Sandbox.Templates(ctx, at)
	}
	return p.library, nil
}

// These bodies of inbound items are not lists of statuses.
const (
	gibberish = "gibberish"
	poison    = "poison"
	endless   = "endless" // its reading returns another item, which is due at once
	again     = "endless, again"

	updatesOf = "updates " // a list of updates follows
)

// Read reads a list of statuses. It also replaces the sandbox's own items.
func (p *scripted) Read(n desk.InboundItem) (told []provider.Update, rest *provider.Later, err error) {
	switch string(n.Body) {
	case gibberish:
		return told, nil, errors.New("an inbound item in no language")
	case poison:
		panic("a bug in reading")
	case endless, again:
		return told, &provider.Later{Body: []byte(again)}, nil
	}
	if updates, found := bytes.CutPrefix(n.Body, []byte(updatesOf)); found {
		return told, nil, json.Unmarshal(updates, &told)
	}
	if bytes.HasPrefix(n.Body, []byte("{")) {
		return p.Sandbox.Read(n)
	}
	var statuses []desk.StatusUpdate
	err = json.Unmarshal(n.Body, &statuses)
	for i := range statuses {
		told = append(told, provider.Update{Status: &statuses[i]})
	}
	return told, nil, err
}

// messageID returns the provider's id of an attempt's message.
func messageID(attempt desk.ID) string { return "wamid." + attempt.String() }

func takes(_ context.Context, d provider.Dispatch) (provider.Receipt, error) {
	return provider.Receipt{ExternalID: messageID(d.Attempt)}, nil
}

var refusal = &desk.Refusal{
	Type: desk.ProviderRejected, Message: "the provider refused this message for good",
	Failure: &desk.Failure{Code: 131026, Title: "Message undeliverable", Fix: "Check the number."},
}

func refuses(context.Context, provider.Dispatch) (provider.Receipt, error) {
	return provider.Receipt{}, refusal
}

func losesTheAnswer(context.Context, provider.Dispatch) (provider.Receipt, error) {
	return provider.Receipt{}, errors.New("connection reset")
}

func hangs(ctx context.Context, _ provider.Dispatch) (provider.Receipt, error) {
	<-ctx.Done()
	return provider.Receipt{}, ctx.Err()
}

// meanwhile returns an outcome that calls the function do while the message is on its way.
// After that, it calls the outcome in then.
func meanwhile(do func(provider.Dispatch), then outcome) outcome {
	return func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		do(d)
		return then(ctx, d)
	}
}

// blocks returns an outcome that keeps each message until release is closed. When it has the first
// one, it closes reached.
func blocks(then outcome) (o outcome, reached, release chan struct{}) {
	reached, release = make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(reached) })
	return meanwhile(func(provider.Dispatch) {
		first()
		<-release
	}, then), reached, release
}
