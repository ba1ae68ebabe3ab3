package desk

import (
	"slices"
	"time"
)

// A WebhookDelivery is an event on its way to an endpoint. It exists from its first
// try (contract-events §3).
type WebhookDelivery struct {
	ID        ID
	Event     EventPlace
	Type      EventType
	Contact   ID // the contact whose data the endpoint's response may repeat; zero: none
	Status    WebhookDeliveryStatus
	CreatedAt Time
	DueAt     Time // of the next try by the schedule
	TriedAt   Time // when the newest try began; 0: none was stored
	Steps     int  // used steps of the schedule; below 0: a person asked for the delivery, see Redeliver
	SettledAt Time // 0: pending
	Tries     []WebhookTry
	Trying    bool // a try is under way, in this process
	EventAt   Time // when the event happened, if this process knows; not stored
}

// A WebhookDeliveryStatus is the outcome of a delivery so far.
type WebhookDeliveryStatus string

// The statuses.
const (
	DeliveryPending   WebhookDeliveryStatus = "pending"
	DeliveryDelivered WebhookDeliveryStatus = "delivered"
	DeliveryFailed    WebhookDeliveryStatus = "failed"
)

// WebhookDeliveryStatuses lists the statuses.
var WebhookDeliveryStatuses = []WebhookDeliveryStatus{DeliveryPending, DeliveryDelivered, DeliveryFailed}

// ParseWebhookDeliveryStatus reads a status of the filter of a list.
func ParseWebhookDeliveryStatus(text string) (WebhookDeliveryStatus, error) {
	if s := WebhookDeliveryStatus(text); slices.Contains(WebhookDeliveryStatuses, s) {
		return s, nil
	}
	return "", InvalidAt("/status", "send pending, delivered or failed")
}

// A WebhookTry is one request to an endpoint, and its outcome.
type WebhookTry struct {
	At         Time
	Took       Time   // milliseconds
	StatusCode int    // 0: there was no answer
	Error      string // "" for a success, else one of the words of contract-events §3
	Response   string `json:"-"` // stored in a place of its own, from which it is deleted with the contact
}

// Some of the errors of a try; the others come from the Poster.
const (
	TryGone    = "gone"    // the endpoint answered 410
	TryExpired = "expired" // the event has left the feed
)

// TryErrors are the errors of a request to an endpoint.
var TryErrors = []string{"address_refused", "dns", "connect", "tls", "timeout", "protocol", "redirect", TryGone, "status"}

// statusTooMany is the status code by which an endpoint asks for a pause.
const statusTooMany = 429

// A WebhookResult is a try that has ended, with the facts that the rules need.
type WebhookResult struct {
	WebhookTry
	RetryAfter time.Duration // 0: the answer did not say
	Probe      bool          // the endpoint was failing
	Steps      int           // of the delivery when the try began
	Jitter     float64       // from 0 to 1, chosen at random
}

func (r *WebhookResult) ended() Time { return r.At + r.Took }

// The rules of deliveries that can't be configured.
const (
	// If an endpoint has MaxPending pending deliveries, its cursor waits. At most MaxInFlight
	// of its tries are under way at a time.
	MaxPending  = 1000
	MaxInFlight = 8

	// MaxPings is the greatest number of pings of an endpoint in any minute.
	MaxPings = 10

	// KeepDelivery is how long a settled delivery is kept. MaxDeliveries is how many settled
	// deliveries of one endpoint are kept.
	KeepDelivery  = 7 * 24 * time.Hour
	MaxDeliveries = 10_000

	// MaxTryResponse is the number of bytes that are kept of an endpoint's answer to a try.
	MaxTryResponse = 1 << 10

	keptTries      = 12
	failuresInARow = 10 // after so many failures in a row, an endpoint counts as failing
	jitter         = 0.2
	holdUnsaid     = time.Minute
	longestHold    = time.Hour
)

// probeAfter are the pauses before the probes of a failing endpoint; the last one repeats.
var probeAfter = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// DeliveryRules are the rules of deliveries that the operator can configure.
type DeliveryRules struct {
	Schedule []time.Duration // the pauses between the tries of a delivery
	GiveUp   time.Duration   // how long an endpoint may fail
}

// DefaultDeliveryRules returns the rules for an operator who configures none.
func DefaultDeliveryRules() DeliveryRules {
	return DeliveryRules{
		Schedule: []time.Duration{
			5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
			2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour,
		},
		GiveUp: 72 * time.Hour,
	}
}

func millis(d time.Duration) Time { return Time(d.Milliseconds()) }

// A Verdict says what a try changes besides the delivery and the endpoint's state.
type Verdict struct {
	Disable   DisabledReason // disable the endpoint for this reason; "": do not
	Recovered bool           // the endpoint was failing and works again: all its pending deliveries are due
}

// Tried applies the result of a try to the delivery and to its endpoint. If a person has
// asked for a redelivery since the try began, the delivery stays due.
func (rules DeliveryRules) Tried(s *WebhookState, d *WebhookDelivery, r *WebhookResult) Verdict {
	d.record(r.WebhookTry)
	askedSince := d.Asked() && d.Steps < r.Steps
	if r.Error == "" {
		if !askedSince {
			d.settle(DeliveryDelivered, r.ended())
		}
		return Verdict{Recovered: s.succeed()}
	}
	switch {
	case d.Status != DeliveryPending || r.Probe || askedSince:
	case max(d.Steps, 0) >= len(rules.Schedule):
		d.settle(DeliveryFailed, r.ended())
	default:
		d.Steps = max(d.Steps, 0)
		pause := rules.Schedule[d.Steps]
		d.DueAt = r.ended() + millis(pause+time.Duration(float64(pause)*jitter*r.Jitter))
		d.Steps++
	}
	return Verdict{Disable: rules.fail(s, r)}
}

// Pinged applies the result of a ping. The only failure that has an effect is the answer
// 410.
func (s *WebhookState) Pinged(r *WebhookResult) Verdict {
	switch r.Error {
	case "":
		return Verdict{Recovered: s.succeed()}
	case TryGone:
		return Verdict{Disable: DisabledGone}
	}
	return Verdict{}
}

// succeed resets the failures of the endpoint, and tells whether it was failing.
func (s *WebhookState) succeed() (recovered bool) {
	if recovered = s.Failing(); recovered {
		s.HeldUntil = 0
	}
	s.FailingSince, s.Failures, s.Probes = 0, 0, 0
	return recovered
}

func (rules DeliveryRules) fail(s *WebhookState, r *WebhookResult) DisabledReason {
	now := r.ended()
	if s.FailingSince == 0 {
		s.FailingSince = now
	}
	s.Failures++
	hold := min(r.RetryAfter, longestHold)
	if r.StatusCode == statusTooMany && hold <= 0 {
		hold = holdUnsaid
	}
	if s.Failing() && (r.Probe || s.Failures == failuresInARow) {
		hold = max(hold, probeAfter[min(s.Probes, len(probeAfter)-1)])
		s.Probes++
	}
	if hold > 0 {
		s.HeldUntil = max(s.HeldUntil, now+millis(hold))
	}
	switch {
	case r.Error == TryGone:
		return DisabledGone
	case now-s.FailingSince >= millis(rules.GiveUp):
		return DisabledFailing
	}
	return ""
}

// Failing tells whether the endpoint has failed so often in a row that it is only probed.
func (s *WebhookState) Failing() bool { return s.Failures >= failuresInARow }

// Held tells whether tries must wait until the hold ends. A hold that ends more than
// longestHold from now is void: the clock was set back after the hold was stored.
func (s *WebhookState) Held(now Time) bool {
	return s.HeldUntil > now && s.HeldUntil <= now+millis(longestHold)
}

// Next returns the pending delivery to try now, or nil, and whether the try is a probe. A
// failing endpoint without pending deliveries is probed with its next event, see MayBegin.
func (rules DeliveryRules) Next(s *WebhookState, pending []*WebhookDelivery, now Time) (next *WebhookDelivery, probe bool) {
	failing, held, trying := s.Failing(), s.Held(now), 0
	var asked, due, longestAgo *WebhookDelivery
	for _, d := range pending {
		if d.Trying {
			trying++
			continue
		}
		isDue := d.DueAt <= now || d.DueAt > now+rules.longest(d) // too far ahead: the clock was set back, see Held
		if d.Asked() && isDue && before(d.DueAt, asked, (*WebhookDelivery).due) {
			asked = d
		}
		if isDue && before(d.DueAt, due, (*WebhookDelivery).due) {
			due = d
		}
		if before(d.TriedAt, longestAgo, func(d *WebhookDelivery) Time { return d.TriedAt }) {
			longestAgo = d
		}
	}
	switch {
	case failing && asked != nil:
		return asked, false
	case held || failing && trying > 0:
		return nil, false
	case failing:
		return longestAgo, longestAgo != nil
	}
	return due, false
}

// longest is the longest time for which a delivery can wait for its next try.
func (rules DeliveryRules) longest(d *WebhookDelivery) Time {
	wait := Time(1000) // after a try that did not begin
	if step := min(d.Steps, len(rules.Schedule)); step > 0 {
		wait += millis(rules.Schedule[step-1]) * 6 / 5
	}
	return wait
}

func (d *WebhookDelivery) due() Time { return d.DueAt }

func before(at Time, other *WebhookDelivery, of func(*WebhookDelivery) Time) bool {
	return other == nil || at < of(other)
}

// MayBegin tells whether a new delivery may begin. pending is the number of pending
// deliveries.
func (s *WebhookState) MayBegin(pending int, now Time) bool {
	return !s.Held(now) && pending < MaxPending && (!s.Failing() || pending == 0)
}

// NextTry is when the delivery's next try is planned; 0: no try is planned. probed says
// that the failing endpoint is probed with this delivery.
func (d *WebhookDelivery) NextTry(w *Webhook, s *WebhookState, probed bool) Time {
	switch {
	case d.Status != DeliveryPending || !w.Enabled:
		return 0
	case s.Failing() && d.Asked():
		return d.DueAt
	case s.Failing() && !probed:
		return 0
	case s.Failing():
		return s.HeldUntil
	}
	return max(d.DueAt, s.HeldUntil)
}

// Redeliver makes the delivery due now. Its next try begins even while the endpoint is
// failing, and a new schedule begins after it. A try that is already under way does not
// count as the requested one. So each request gets its own number in Steps: -1, then -2,
// and so on.
func (d *WebhookDelivery) Redeliver(now Time) {
	d.Status, d.SettledAt, d.DueAt, d.Steps = DeliveryPending, 0, now, min(d.Steps, 0)-1
}

// Asked tells whether a person asked for the delivery's next try.
func (d *WebhookDelivery) Asked() bool { return d.Status == DeliveryPending && d.Steps < 0 }

// Expire ends the delivery, because its event has left the feed.
func (d *WebhookDelivery) Expire(now Time) {
	d.record(WebhookTry{At: now, Error: TryExpired})
	d.settle(DeliveryFailed, now)
}

func (d *WebhookDelivery) settle(status WebhookDeliveryStatus, now Time) {
	d.Status, d.SettledAt, d.DueAt = status, now, 0
}

// record keeps the newest tries.
func (d *WebhookDelivery) record(a WebhookTry) {
	d.TriedAt = a.At
	d.Tries = append(d.Tries, a)
	d.Tries = d.Tries[max(0, len(d.Tries)-keptTries):]
}

// Dropped tells whether older tries may have been dropped.
func (d *WebhookDelivery) Dropped() bool { return len(d.Tries) == keptTries }

// Respond adds the response to the try that began at a time.
func (d *WebhookDelivery) Respond(at Time, response string) {
	for i := range d.Tries {
		if d.Tries[i].At == at {
			d.Tries[i].Response = response
		}
	}
}

// ListBytes is the delivery's size in a page.
func (d *WebhookDelivery) ListBytes() int {
	n := recordRoom
	for _, a := range d.Tries {
		n += 128 + jsonBytes(a.Response)
	}
	return n
}

// A DeliveryFilter narrows the list of an endpoint's deliveries; its zero value matches
// all.
type DeliveryFilter struct {
	Status WebhookDeliveryStatus // "": any
	Event  *EventPlace           // nil: any
}

// An EventResponse is what an endpoint answered to an event of a contact, if it did not accept
// the event.
type EventResponse struct {
	Delivery ID
	At       Time // when the attempt began
	Response string
}
