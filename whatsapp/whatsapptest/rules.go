package whatsapptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Kind names the outcome of a message that passed the checks.
type Kind string

// The outcomes. An outcome with the mark * accepts the message only if Outcome.Accepted
// says so.
const (
	Accept             Kind = "accept"               // 200, then sent, delivered, read
	AcceptNoStatus     Kind = "accept_no_status"     // 200, and never a webhook
	AcceptThenFailed   Kind = "accept_then_failed"   // 200, then failed with Code (131026)
	AcceptHeld         Kind = "accept_held"          // 200 and held_for_quality_assessment; then failed, if there is a Code
	Refuse             Kind = "refuse"               // Code, HTTP, Subcode, Details
	RefuseRecipient    Kind = "refuse_recipient"     // Code (131026), immediately if Sync is set; else 200 and then failed, for codes that Meta reports later
	Throttle           Kind = "throttle"             // 130429, N times
	PairThrottle       Kind = "pair_throttle"        // accept until the person's bucket is empty, then 131056
	AuthError          Kind = "auth_error"           // Code (190/463) for every call, until ClearRules
	AcceptLoseResponse Kind = "accept_lose_response" // accepted; the connection is closed before a byte of the response
	AcceptTruncate     Kind = "accept_truncate"      // accepted; 40 of 400 bytes of the response
	AcceptSlow         Kind = "accept_slow"          // accepted at once; the response comes after Delay
	ResetBeforeRead    Kind = "reset_before_read"    // not accepted; reset before the body is read
	ResetAfterRead     Kind = "reset_after_read"     // not accepted; reset after the body was read
	HTTP500HTML        Kind = "http_500_html"        // * an HTML page
	HTTP502Empty       Kind = "http_502_empty"       // * an empty body
	HTTP503JSON        Kind = "http_503_json"        // * Code (2)
	HTTP200Garbage     Kind = "http_200_garbage"     // * 200, but not JSON
	HTTP200NoID        Kind = "http_200_no_id"       // * 200, but without a wamid
	Redirect307        Kind = "redirect_307"         // accepted, and redirected: a client that follows the redirect sends twice
	StatusBefore       Kind = "status_before_response"
	StatusDuplicate    Kind = "status_duplicate" // each status twice
	StatusReorder      Kind = "status_reorder"   // read, delivered, sent; or Statuses
	StatusForeign      Kind = "status_foreign"   // two more statuses, of messages that were never sent
	StatusBatch        Kind = "status_batch"     // N in one webhook, over several entries and changes
	BadSignature       Kind = "bad_signature"    // accept; the statuses are signed with another secret
	NoSignature        Kind = "no_signature"     // accept; the statuses are not signed
	OldSecret          Kind = "old_secret"       // accept; the statuses are signed with the previous secret
)

var kinds = []Kind{
	Accept, AcceptNoStatus, AcceptThenFailed, AcceptHeld, Refuse, RefuseRecipient, Throttle, PairThrottle, AuthError,
	AcceptLoseResponse, AcceptTruncate, AcceptSlow, ResetBeforeRead, ResetAfterRead,
	HTTP500HTML, HTTP502Empty, HTTP503JSON, HTTP200Garbage, HTTP200NoID, Redirect307,
	StatusBefore, StatusDuplicate, StatusReorder, StatusForeign, StatusBatch, BadSignature, NoSignature, OldSecret,
}

// An Outcome is what happens to a message. In JSON, a string is a Kind.
type Outcome struct {
	Kind     Kind     `json:"kind"`
	Code     int      `json:"code,omitempty"`
	Subcode  int      `json:"subcode,omitempty"`
	HTTP     int      `json:"http,omitempty"`
	Details  string   `json:"details,omitempty"`
	N        int      `json:"n,omitempty"`
	Accepted bool     `json:"accepted,omitempty"`
	Sync     bool     `json:"sync,omitempty"`
	Statuses []string `json:"statuses,omitempty"` // instead of the usual ones; empty, not nil: none

	// Delay is the time before the first status, or before the response of accept_slow. In
	// JSON it is a string, such as "2s".
	Delay time.Duration `json:"-"`
}

// UnmarshalJSON reads an outcome and refuses unknown keys.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	type plain Outcome
	var wire struct {
		plain
		Delay string `json:"delay"`
	}
	var err error
	if b[0] == '"' {
		err = json.Unmarshal(b, &wire.Kind)
	} else {
		err = strictly(b, &wire)
	}
	if err == nil && wire.Delay != "" {
		wire.plain.Delay, err = time.ParseDuration(wire.Delay)
	}
	if err == nil && !slices.Contains(kinds, wire.Kind) {
		err = fmt.Errorf("there is no outcome %q; there are %s", wire.Kind, kinds)
	}
	*o = Outcome(wire.plain)
	return err
}

// MarshalJSON writes the outcome with its delay as a string.
func (o Outcome) MarshalJSON() ([]byte, error) {
	type plain Outcome
	wire := struct {
		plain
		Delay string `json:"delay,omitempty"`
	}{plain: plain(o)}
	if o.Delay != 0 {
		wire.Delay = o.Delay.String()
	}
	return json.Marshal(wire)
}

// strictly decodes a text that must contain one JSON value. It refuses unknown keys.
func strictly(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}

// A Match selects messages. An empty field matches every message.
type Match struct {
	To       string  `json:"to,omitempty"` // compared by digits only
	Template string  `json:"template,omitempty"`
	Type     string  `json:"type,omitempty"` // of the message, such as text
	Callback string  `json:"callback,omitempty"`
	Next     int     `json:"next,omitempty"`  // only this many messages
	Share    float64 `json:"share,omitempty"` // only this share of the messages: 0.01 is one in a hundred
}

// A Rule gives messages an outcome.
type Rule struct {
	Match   Match   `json:"match"`
	Outcome Outcome `json:"outcome"`

	taken int
}

// AddRule appends a rule. The first rule that matches a message decides. If none matches,
// the message is accepted.
func (s *Simulator) AddRule(r Rule) {
	if !slices.Contains(kinds, r.Outcome.Kind) {
		panic(fmt.Sprintf("whatsapptest: there is no outcome %q", r.Outcome.Kind))
	}
	if r.Outcome.Kind == Throttle && r.Match.Next == 0 {
		r.Match.Next = r.Outcome.N
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &r)
}

// Rules returns the rules that can still match.
func (s *Simulator) Rules() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Rule{}
	for _, r := range s.rules {
		if r.live() {
			list = append(list, *r)
		}
	}
	return list
}

// ClearRules removes all rules, and ends an auth_error.
func (s *Simulator) ClearRules() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.set.Fault = nil, nil
}

func (r *Rule) live() bool { return r.Match.Next == 0 || r.taken < r.Match.Next }

func (m Match) fits(msg *message) bool {
	return (m.To == "" || m.To == msg.recipient || digits(m.To) != "" && digits(m.To) == digits(msg.to)) &&
		(m.Template == "" || m.Template == msg.template) && (m.Type == "" || m.Type == msg.kind) &&
		(m.Callback == "" || m.Callback == msg.callback)
}

// decide returns the outcome of a message, and whether a rule gave it. The caller holds
// s.mu.
func (s *Simulator) decide(msg *message) (Outcome, bool) {
	for _, r := range s.rules {
		if !r.live() || !r.Match.fits(msg) || r.Match.Share > 0 && s.rand.Float64() >= r.Match.Share {
			continue
		}
		r.taken++
		return r.Outcome, true
	}
	return Outcome{Kind: Accept}, false
}

// resets tells whether the connection of the next message is reset before the message is
// read.
func (s *Simulator) resets() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.rules, (*Rule).live)
	if i < 0 || s.rules[i].Outcome.Kind != ResetBeforeRead || s.rules[i].Match != (Match{Next: s.rules[i].Match.Next}) {
		return false
	}
	s.rules[i].taken++
	return true
}
