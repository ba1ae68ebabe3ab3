// Package sandbox simulates a provider within the process. A new user can send a message
// in the first minute, and a test can cause every outcome. It implements
// provider.Provider, so app treats it like a real provider.
//
// The last digits of the number decide what happens to a message (contract §5):
//
//	0001  refused permanently
//	0002  refused temporarily
//	0003  accepted, but the answer is lost, and no status ever comes
//	0004  accepted, and fails after it was sent
//	0005  accepted after three seconds
//	0006  a reply is accepted, and fails after a second because the window is closed
//	0007  accepted, and fails after a second because the person gets too much marketing
//	0008  refused temporarily, because people block the number
//	else  sent, delivered, read
//
//	sandbox.go  messages, templates, accounts
//	files.go    files: what customers sent, and what goes wrong with it
package sandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/desk"
	"parley/provider"

	"github.com/go-json-experiment/json"
)

// A Library holds the templates of the simulated provider.
type Library interface {
	SandboxTemplates(ctx context.Context, ws, channel desk.ID) ([]desk.TemplateSource, error)

	// PutSandboxTemplate replaces a template with the same name and language.
	PutSandboxTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error
}

// Config has the parts of a Sandbox. Library, Now and NewID are required.
type Config struct {
	Library Library
	Files   Files // nil: there are no files
	Now     func() time.Time
	NewID   func() desk.ID
	Pace    time.Duration // from one status to the next; default 1 s
}

// A Sandbox is a provider (see provider.Provider). It is safe for concurrent use.
type Sandbox struct {
	c Config

	mu    sync.Mutex
	tries map[string]int // of files, by workspace and reference
}

// New builds a Sandbox.
func New(c Config) *Sandbox {
	if c.Pace == 0 {
		c.Pace = time.Second
	}
	return &Sandbox{c: c, tries: map[string]int{}}
}

// slow is how long a send to a number ending 0005 takes.
const slow = 3 * time.Second

// errLost simulates a connection that broke after the provider accepted the message.
var errLost = errors.New("sandbox: the answer was lost")

// Send accepts the message, or simulates the outcome that the number's last digits
// select.
func (s *Sandbox) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	ends := func(digits string) bool { return strings.HasSuffix(d.Number, digits) }
	switch {
	case s.c.Now().After(d.By):
		return provider.Receipt{}, provider.NotSent()
	case ends("0001"):
		return provider.Receipt{}, &desk.Refusal{
			Type: desk.ProviderRejected, Message: "the provider refused this message for good",
			Advice: desk.Advice{Kind: desk.SeeDetails}, Failure: &undeliverable,
		}
	case ends("0002"):
		return provider.Receipt{}, &desk.Refusal{
			Type: desk.ProviderUnavailable, Message: "the provider refused this message for now: send it again later, with the same Idempotency-Key",
			Failure: &desk.Failure{Code: 130429, Title: "Rate limit hit", Fix: "Send more slowly."}, RetryAfter: 30,
		}
	case ends("0008"):
		return provider.Receipt{}, &desk.Refusal{
			Type: desk.ProviderUnavailable, Message: "the provider takes no more messages for now, and nothing was sent: send it again later, with the same Idempotency-Key",
			Failure: &desk.Failure{Code: codeSpam, Title: "Spam rate limit hit", Fix: "Stop campaigns, send what people welcome, and try again after a day."}, RetryAfter: 24 * 60 * 60,
		}
	case ends("0003"):
		return provider.Receipt{}, errLost
	case ends("0005"):
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return provider.Receipt{}, ctx.Err()
		}
	}
	externalID := "sandbox." + s.c.NewID().String()
	steps := []step{{desk.Delivered, 1}, {desk.Read, 3}}
	closed := ends("0006") && d.Template == nil
	crowded := ends("0007")
	if ends("0004") || closed || crowded {
		steps = []step{{desk.Failed, 1}}
	}
	later, err := s.later(story{externalID, d.Attempt, desk.TimeOf(s.c.Now()), steps, closed, crowded}, steps[0].After)
	return provider.Receipt{ExternalID: externalID, Later: []provider.Later{later}}, err
}

// undeliverable is the failure for a person whom a provider can't reach.
var undeliverable = desk.Failure{Code: 131026, Title: "Message undeliverable", Fix: "Check the number or reach the person another way."}

// windowClosed is the failure for a person who wrote too long ago.
var windowClosed = desk.Failure{Code: 131047, Title: "Re-engagement message", Fix: "Send a template: the person wrote more than 24 hours ago."}

// The codes that mean something for a broadcast.
const (
	codeSpam    = 131048
	codeCrowded = 131049
)

// crowdedPerson is the failure for a person who gets too much marketing.
var crowdedPerson = desk.Failure{Code: codeCrowded, Title: "Not delivered to keep the ecosystem healthy", Fix: "Wait at least 24 hours before another marketing message to this person; trying sooner makes it worse."}

// Effect says what a failure means for a broadcast (see provider.Caster).
func (*Sandbox) Effect(f *desk.Failure) desk.Effect {
	switch f.Code {
	case codeSpam:
		return desk.ChannelEffect
	case codeCrowded:
		return desk.NotCounted
	}
	return desk.NoEffect
}

// A story is a message that the sandbox accepted, with its future statuses.
type story struct {
	ExternalID string    `json:"external_id"`
	Attempt    desk.ID   `json:"attempt_id"`
	TakenAt    desk.Time `json:"taken_at"`
	Steps      []step    `json:"steps"`
	Closed     bool      `json:"closed,omitzero"`  // the message fails because the window is closed
	Crowded    bool      `json:"crowded,omitzero"` // it fails because the person gets too much marketing
}

// A step is a status and its time, counted in paces since the message was accepted.
type step struct {
	Status desk.DeliveryStatus `json:"status"`
	After  int                 `json:"after"`
}

// later returns the item that continues a story; it is due after this many paces.
func (s *Sandbox) later(st story, paces int) (provider.Later, error) {
	body, err := json.Marshal(st)
	return provider.Later{Wait: s.c.Pace * time.Duration(paces), Body: body}, err
}

// Read returns the statuses that are due with the inbound item, and an item for the rest.
func (s *Sandbox) Read(n desk.InboundItem) (told []provider.Update, rest *provider.Later, err error) {
	var st story
	if err := json.Unmarshal(n.Body, &st); err != nil {
		return told, nil, err
	}
	later := slices.IndexFunc(st.Steps, func(next step) bool { return next.After > st.Steps[0].After })
	if later < 0 {
		later = len(st.Steps)
	}
	paces := 0 // up to the last status that is due
	for _, now := range st.Steps[:later] {
		paces = now.After
		at := st.TakenAt + desk.Time(s.c.Pace.Milliseconds())*desk.Time(paces)
		status := desk.StatusUpdate{ExternalID: st.ExternalID, Attempt: st.Attempt, Delivery: now.Status, At: at}
		if now.Status == desk.Failed {
			status.Failure = &undeliverable
			switch {
			case st.Closed:
				status.Failure = &windowClosed
			case st.Crowded:
				status.Failure = &crowdedPerson
			}
		}
		told = append(told, provider.Update{Status: &status})
	}
	if st.Steps = st.Steps[later:]; len(st.Steps) == 0 {
		return told, nil, nil
	}
	next, err := s.later(st, st.Steps[0].After-paces)
	return told, &next, err
}

// Templates returns a channel's library.
func (s *Sandbox) Templates(ctx context.Context, at provider.Access) ([]desk.TemplateSource, error) {
	return s.c.Library.SandboxTemplates(ctx, at.Workspace, at.Channel.ID)
}

// PutTemplate writes into a channel's library; see provider.Simulator.
func (s *Sandbox) PutTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error {
	return s.c.Library.PutSandboxTemplate(ctx, ws, channel, t)
}

// Check returns no problems, because a sandbox channel has none.
func (*Sandbox) Check(context.Context, provider.Access) ([]provider.Problem, error) { return nil, nil }

// CheckAccount refuses accounts and secrets, because a sandbox channel has none.
func (*Sandbox) CheckAccount(c *desk.Channel, s *provider.Secrets) error {
	if c.Account.PerSecond != 0 || s != nil && *s != (provider.Secrets{}) {
		return desk.Invalidf("a sandbox channel has no token, no secrets and no limits: only its bindings, and whether it is enabled, can be changed")
	}
	if c.ExternalID == "" {
		c.ExternalID = "sandbox-" + c.ID.String()
	}
	if _, err := desk.ParseExternalID(c.ExternalID); err != nil {
		return desk.InvalidAt("/external_id", "%v", err)
	}
	return nil
}

// Identities returns the identity of a chat account; see provider.Provider.
func (*Sandbox) Identities(number, _ string) []desk.Identity {
	if number == "" {
		return nil
	}
	return []desk.Identity{{Kind: desk.KindWhatsApp, Value: number}}
}

// Limits returns no limits, because a sandbox channel has none.
func (*Sandbox) Limits(*desk.Channel, func() string) provider.Limits { return provider.Limits{} }
