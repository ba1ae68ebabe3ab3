package desk

import "slices"

// MaxIdempotencyKey is the longest Idempotency-Key (spec, Limits).
const MaxIdempotencyKey = 200

// CheckIdempotencyKey accepts 1 to 200 printable ASCII characters (contract §5).
func CheckIdempotencyKey(key string) error {
	if key == "" {
		return Invalidf("send an Idempotency-Key header, one unique value per send: a retry with the same value never sends twice")
	}
	if len(key) > MaxIdempotencyKey {
		return Invalidf("Idempotency-Key: at most %d characters", MaxIdempotencyKey)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return Invalidf("Idempotency-Key: only printable ASCII characters")
		}
	}
	return nil
}

// A SendRequest is what a caller asks of POST /conversations/outbound, read but not
// yet checked against what is stored.
type SendRequest struct {
	Key            string   // the Idempotency-Key
	Hash           [32]byte // of the body as a JSON value
	Phone          string   // digits; or else
	Contact        *ID      // the recipient
	Channel        *ID
	Template       string
	Language       string
	Variables      TemplateValues
	OptInConfirmed bool
	Assignee       Field[string] // a member's id or e-mail
	Profile        *ContactWrite // of a contact that the send creates
}

// Contradicts returns the identity of a profile that names another number than the
// recipient's, or nil (contract §5).
func (w *ContactWrite) Contradicts(phone string) *Identity {
	for _, i := range w.Sent {
		if i.Claim().Kind == KindPhone && i.Value != phone {
			return &i
		}
	}
	return nil
}

// Address is the number that a send to the contact goes to: its phone, else the
// first chat account, else the first further phone; "" when it has none.
func (c *Contact) Address() string {
	if c.Phone != "" {
		return c.Phone
	}
	for _, kind := range []string{KindWhatsApp, KindPhone} {
		if i := slices.IndexFunc(c.Further, func(i Identity) bool { return i.Kind == kind }); i >= 0 {
			return c.Further[i].Value
		}
	}
	return ""
}

// MarketingCategory is the category of the templates that a person can opt out of.
const MarketingCategory = "MARKETING"

// A Plan is all that an attempt needs once the provider has taken the message. It is
// stored before the first byte leaves, so that whoever learns of the acceptance,
// even after a restart, can finish the send.
type Plan struct {
	Channel      ID
	Contact      ID // the recipient's, or the one that a new contact gets
	Conversation ID // the one that a new conversation gets
	Message      ID
	Template     string
	Language     string
	Text         string
	OptIn        OptIn
	Assignee     ID            // zero: none
	Number       string        // digits; "" once erased
	Known        bool          // the contact exists
	Profile      *ContactWrite // of a new contact
}

// A Phase is how far an attempt has come.
type Phase string

// The phases. Only a definite refusal, and a person's word, free the key.
const (
	Dispatching Phase = "dispatching" // on its way to the provider, or the process died
	Done        Phase = "done"        // the provider took it
	Refused     Phase = "refused"     // it did not
	InDoubt     Phase = "in_doubt"    // nobody knows; never sent again by itself
	Released    Phase = "released"    // a person said that it was not sent
)

// Settled tells whether the phase is final.
func (p Phase) Settled() bool { return p != Dispatching && p != InDoubt }

// A Refusal is why an attempt did not go out, in a form that can be stored, so that
// callers who wait for the attempt on other nodes get the same answer.
type Refusal struct {
	Type       ErrorType
	Message    string
	Failure    *Failure // what the provider said
	RetryAfter int      // seconds

	StaleTemplate bool // the provider knows the template otherwise, or not at all
}

// Error makes a refusal what a provider can return.
func (r *Refusal) Error() string { return string(r.Type) + ": " + r.Message }

// Answer is the refusal as the caller gets it.
func (r *Refusal) Answer() *Error {
	e := &Error{Type: r.Type, Message: r.Message, RetryAfter: r.RetryAfter}
	if r.Failure != nil {
		e.Details = *r.Failure
	}
	return e
}

// An Attempt is one try to send a template message (docs/architecture.md, Sending).
type Attempt struct {
	ID         ID
	Key        string // the Idempotency-Key that it holds, or held
	Hash       [32]byte
	Actor      ID // the API key that asked
	Phase      Phase
	CreatedAt  Time
	LeaseUntil Time // by the database's clock: until then its process may be at work
	SettledAt  Time // 0: not settled
	Plan       Plan
	ExternalID string   // the provider's id of the message
	Response   []byte   // the stored answer, once done
	Refusal    *Refusal // once refused
	Notes      []string // what was left out of a finished send, and why
	Erased     bool     // the contact was deleted meanwhile: answer, and store no rows
}

// KeyLife is how long an Idempotency-Key lives after success, in milliseconds
// (contract §5).
const KeyLife Time = 30 * 24 * 60 * 60 * 1000

// Expired tells whether the attempt's key may be used anew. Only success starts the
// clock.
func (a *Attempt) Expired(now Time) bool { return a.Phase == Done && now >= a.SettledAt+KeyLife }

// Concerns tells whether the attempt says something of a contact.
func (a *Attempt) Concerns(c *Contact) bool {
	if a.Plan.Contact == c.ID {
		return true
	}
	return a.Plan.Number != "" && slices.ContainsFunc(c.Identities(), func(i Identity) bool {
		return i.Claim() == Identity{KindPhone, a.Plan.Number}
	})
}

// Erase drops what an unsettled attempt knows of a person who was deleted. The answer
// that its key then gives has no text, unless the process that sent it is still there.
func (a *Attempt) Erase() {
	a.Erased = true
	a.Plan.Text, a.Plan.Number, a.Plan.Profile = "", "", nil
}

// Settle ends the attempt. Its plan is of no further use and is dropped, but for the
// ids and the template.
func (a *Attempt) Settle(p Phase, now Time) {
	a.Phase, a.SettledAt, a.LeaseUntil = p, now, 0
	a.Plan.Text, a.Plan.Number, a.Plan.Profile = "", "", nil
}

// A StatusNotice is what a provider reports of a message that it has taken.
type StatusNotice struct {
	ExternalID string
	Attempt    ID // zero when the notice does not carry one
	Delivery   Delivery
	Failure    *Failure
	At         Time
}

// What details can be, beside the contact rules'.
type (
	// Languages are those in which a template exists.
	Languages struct{ Languages []string }
	// Unsendable says why a template can't be sent.
	Unsendable struct {
		Status  string
		Reasons []string
	}
	// OptedOut says since when a person takes no marketing.
	OptedOut struct{ Since Time }
	// Unusable says why a channel can't be used.
	Unusable struct{ Reason string }
	// InDoubtAttempt names the attempt whose outcome is unknown.
	InDoubtAttempt struct{ AttemptID ID }
)

// A SentMessage is the answer to a send that the provider took.
type SentMessage struct {
	Conversation Conversation
	Kind         ChannelKind
	Existing     bool // the conversation was there before
	Message      Message
}
