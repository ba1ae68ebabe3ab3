// Package sandbox plays a provider without leaving the machine, so that a newcomer
// sends a template in the first minute and a test provokes every outcome. It stands
// behind the same interface as a real one, app.Provider, and the code around it does
// not know the difference.
//
// What becomes of a message is written in the last digits of the number (contract §5):
//
//	0001  refused for good
//	0002  refused for now
//	0003  taken, but the answer is lost, and no status ever comes
//	0004  taken, and fails after it was sent
//	0005  taken, after three seconds
//	else  sent, delivered, read
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
)

// A Library holds the templates of the provider that the sandbox plays.
type Library interface {
	SandboxTemplates(ctx context.Context, ws, channel desk.ID) ([]desk.TemplateSource, error)
}

// Config is what a Sandbox is built from. All but Pace are required.
type Config struct {
	Library Library
	Now     func() time.Time
	NewID   func() desk.ID
	Pace    time.Duration // from one status to the next; default 1 s
}

// A Sandbox is a provider; see app.Provider. It is safe for concurrent use.
type Sandbox struct{ c Config }

// New builds a Sandbox.
func New(c Config) *Sandbox {
	if c.Pace == 0 {
		c.Pace = time.Second
	}
	return &Sandbox{c}
}

// slow is how long a number ending 0005 takes.
const slow = 3 * time.Second

// errLost stands for a connection that broke after the provider took the message.
var errLost = errors.New("sandbox: the answer was lost")

// Send takes the message, or does what the number's last digits say.
func (s *Sandbox) Send(ctx context.Context, d app.Dispatch) (app.Receipt, error) {
	ends := func(digits string) bool { return strings.HasSuffix(d.Number, digits) }
	switch {
	case s.c.Now().After(d.By):
		return app.Receipt{}, app.NotSent()
	case ends("0001"):
		return app.Receipt{}, &desk.Refusal{
			Type: desk.ProviderRejected, Message: "the provider refused this message for good: details says why, and what to do",
			Failure: &undeliverable,
		}
	case ends("0002"):
		return app.Receipt{}, &desk.Refusal{
			Type: desk.ProviderUnavailable, Message: "the provider refused this message for now: send it again later, with the same Idempotency-Key",
			Failure: &desk.Failure{Code: 130429, Title: "Rate limit hit", Fix: "Send more slowly."}, RetryAfter: 30,
		}
	case ends("0003"):
		return app.Receipt{}, errLost
	case ends("0005"):
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return app.Receipt{}, ctx.Err()
		}
	}
	externalID := "sandbox." + s.c.NewID().String()
	steps := []step{{desk.Delivered, 1}, {desk.Read, 3}}
	if ends("0004") {
		steps = []step{{desk.Failed, 1}}
	}
	n, err := s.notice(d.Channel.ID, story{externalID, d.Attempt, desk.TimeOf(s.c.Now()), steps})
	return app.Receipt{ExternalID: externalID, Notices: []app.Notice{n}}, err
}

// undeliverable is what a provider says of a person whom it can't, or won't, reach.
var undeliverable = desk.Failure{Code: 131026, Title: "Message undeliverable", Fix: "Check the number or reach the person another way."}

// A story is a message that the sandbox took, and the statuses that are still to come.
type story struct {
	ExternalID string    `json:"external_id"`
	Attempt    desk.ID   `json:"attempt_id"`
	TakenAt    desk.Time `json:"taken_at"`
	Steps      []step    `json:"steps"`
}

// A step is a status, and when it comes, counted in paces since the message was taken.
type step struct {
	Status desk.Delivery `json:"status"`
	After  int           `json:"after"`
}

// notice is the one that is due with the story's next step.
func (s *Sandbox) notice(channel desk.ID, st story) (app.Notice, error) {
	body, err := json.Marshal(st)
	return app.Notice{Channel: channel, ID: s.c.NewID(), Due: s.due(st, st.Steps[0]), Body: body}, err
}

func (s *Sandbox) due(st story, next step) desk.Time {
	return st.TakenAt + desk.Time(s.c.Pace.Milliseconds())*desk.Time(next.After)
}

// Read tells the statuses that are due with the notice, and keeps the later ones.
func (s *Sandbox) Read(n app.Notice) (told []app.Happening, rest *app.Notice, err error) {
	var st story
	if err := json.Unmarshal(n.Body, &st); err != nil {
		return told, nil, err
	}
	later := slices.IndexFunc(st.Steps, func(next step) bool { return next.After > st.Steps[0].After })
	if later < 0 {
		later = len(st.Steps)
	}
	for _, now := range st.Steps[:later] {
		status := desk.StatusNotice{ExternalID: st.ExternalID, Attempt: st.Attempt, Delivery: now.Status, At: s.due(st, now)}
		if now.Status == desk.Failed {
			status.Failure = &undeliverable
		}
		told = append(told, app.Happening{Status: &status})
	}
	if st.Steps = st.Steps[later:]; len(st.Steps) == 0 {
		return told, nil, nil
	}
	next, err := s.notice(n.Channel, st)
	next.ID = n.ID // so that a story which two processes read at once stays one
	return told, &next, err
}

// Templates returns the library that template put has written.
func (s *Sandbox) Templates(ctx context.Context, at app.Access) ([]desk.TemplateSource, error) {
	return s.c.Library.SandboxTemplates(ctx, at.Workspace, at.Channel.ID)
}

// Check finds nothing wrong: there is nothing that could be.
func (*Sandbox) Check(context.Context, app.Access) ([]app.Problem, error) { return nil, nil }

// Subscribe has nothing to do: the sandbox gives its notices along with its receipts.
func (*Sandbox) Subscribe(context.Context, app.Access) error { return nil }
