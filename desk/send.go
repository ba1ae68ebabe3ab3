package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxIdempotencyKey is the longest Idempotency-Key (spec, Limits).
const MaxIdempotencyKey = 200

// AtIdempotencyKey is the place of the key in an error, see Error.At.
const AtIdempotencyKey = "/idempotency_key"

// CheckIdempotencyKey accepts 1 to 200 printable ASCII characters (contract §5).
func CheckIdempotencyKey(key string) error {
	if key == "" {
		return InvalidAt(AtIdempotencyKey, "missing; send one unique value per send; a retry with the same value never sends twice")
	}
	if len(key) > MaxIdempotencyKey {
		return InvalidAt(AtIdempotencyKey, "at most %d characters", MaxIdempotencyKey)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return InvalidAt(AtIdempotencyKey, "only printable ASCII characters")
		}
	}
	return nil
}

// A SendRequest is the input of POST /conversations/outbound, read but not yet checked
// against stored data.
type SendRequest struct {
	Key            string   // the Idempotency-Key
	Hash           [32]byte // of the body's JSON value
	Phone          Identity // the recipient by number; zero if Contact is set
	Contact        *ID      // the recipient by id; or nil
	Channel        *ID
	Template       string
	Language       string
	Variables      TemplateValues
	OptInConfirmed bool
	Assignee       Field[Reference]
	Profile        *ContactWrite // of a contact that the send creates
}

// Contradicts returns an identity of the profile that has another number than the
// recipient, or nil (contract §5).
func (w *ContactWrite) Contradicts(phone string) *Identity {
	for _, i := range w.Sent {
		if claim := i.Claim(); claim.Kind == KindPhone && claim.Value != CanonicalNumber(phone) {
			return &i
		}
	}
	return nil
}

// Address is the number to which a send to the contact goes: its phone, else its first
// chat account, else its first further phone; "" if the contact has no number.
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

// A Plan has everything that is needed after the provider has accepted the message. It
// is stored before the first byte is sent, so that any process that learns of the
// acceptance, even after a restart, can finish the send.
type Plan struct {
	Channel      ID
	Contact      ID // the recipient's id, or the id for a new contact
	Conversation ID // the id for a new conversation
	Message      ID
	Template     string
	Language     string
	Text         string
	OptIn        OptIn
	Assignee     ID            // zero: none
	Number       string        // digits; "" once erased
	Known        bool          // whether the contact exists
	Profile      *ContactWrite // for a new contact
	Media        ID            `json:",omitzero"` // the file in a template's title; zero: none
	Links        []Link        `json:",omitzero"` // of a template's buttons, filled
	Reply        *Reply        // set for a free message; nil for a template
	Sender       string        `json:",omitzero"` // the name of the broadcast that sends the template
}

// File is the file of the plan's message; zero if it has none.
func (p *Plan) File() ID {
	if p.Reply != nil {
		return p.Reply.Media
	}
	return p.Media
}

// Holds returns the file of a message whose outcome is not known yet. Until it is known, the
// file must be kept. The result is zero if there is no such file.
func (a *Attempt) Holds() ID {
	if a.Phase.Settled() || a.Erased {
		return ID{}
	}
	return a.Plan.File()
}

// Kind is the kind of the plan's message.
func (p *Plan) Kind() MessageKind {
	if p.Reply != nil {
		return p.Reply.Kind
	}
	return KindTemplate
}

// A Phase is the state of an attempt.
type Phase string

// The phases. Only a definite refusal, or a person's decision, frees the key.
const (
	Dispatching Phase = "dispatching" // under way, or the process died
	Done        Phase = "done"        // the provider accepted the message
	Refused     Phase = "refused"     // the provider refused the message
	InDoubt     Phase = "in_doubt"    // the outcome is unknown; parley does not send again
	Released    Phase = "released"    // a person decided that the message was not sent
)

// Phases lists the phases in the order of an attempt's life.
var Phases = []Phase{Dispatching, InDoubt, Done, Refused, Released}

// ParsePhase reads the name of a phase.
func ParsePhase(s string) (Phase, error) {
	if p := Phase(s); slices.Contains(Phases, p) {
		return p, nil
	}
	return "", InvalidAt("/phase", "send dispatching, in_doubt, done, refused or released")
}

// Settled tells whether the phase is final.
func (p Phase) Settled() bool { return p != Dispatching && p != InDoubt }

// A Refusal says why a message was not sent. It can be stored, so that callers who wait for
// the attempt on other nodes get the same answer.
type Refusal struct {
	Type       ErrorType
	Message    string
	Advice     Advice   // what to do about it
	Failure    *Failure // the provider's reason
	RetryAfter int      // seconds
	At         Time     // of WindowClosed: messages up to this time no longer open the window

	StaleTemplate bool            // the provider has another version of the template, or none
	StaleMedia    bool            // the provider no longer has the message's file, or can't use it
	Account       *AccountRefusal // set if all messages of the account would be refused; nil: only this one
}

// Error implements error, so that a provider can return a refusal.
func (r *Refusal) Error() string { return string(r.Type) + ": " + r.Message }

// Answer returns the refusal as an error for the caller.
func (r *Refusal) Answer() *Error {
	e := &Error{Type: r.Type, Message: r.Message, Advice: r.Advice, RetryAfter: r.RetryAfter}
	switch {
	case r.Type == WindowClosed:
		e.Details = WindowState{ClosesAt: r.At, Reason: ByTheProvider}
	case r.Failure != nil:
		e.Details = *r.Failure
	}
	return e
}

// An Attempt is one try to send a template or a free message (docs/internals.md).
type Attempt struct {
	ID         ID
	Key        string // the Idempotency-Key that the attempt holds or held
	Hash       [32]byte
	Actor      Actor // who requested it
	Phase      Phase
	CreatedAt  Time
	Lease      Lease // until when its process may be working on the attempt
	SettledAt  Time  // 0: not settled
	Age        int64 // hours of the database's counter from settling to this read
	Plan       Plan
	ExternalID string   // the provider's id of the message
	Response   []byte   // the stored answer, if done
	Refusal    *Refusal // if refused
	Notes      []string // which writes of a finished send were left out, and why
	Erased     bool     // the contact was deleted meanwhile: answer, but store no rows
	Broadcast  ID       // the broadcast that sends it; zero: none
}

// Address is the recipient's number or user id, by which a person can look for the message
// at the provider; "" once the attempt is settled or erased.
func (a *Attempt) Address() string {
	switch r := a.Plan.Reply; {
	case a.Phase.Settled():
		return ""
	case a.Plan.Number != "":
		return "+" + a.Plan.Number
	case r != nil:
		return r.UserID
	}
	return ""
}

// OptIn is the opt-in that was asserted for this send of a template; nil for a reply, and
// once the contact is deleted.
func (a *Attempt) OptIn() *OptIn {
	if a.Erased || a.Plan.Reply != nil || a.Plan.OptIn.At == 0 {
		return nil
	}
	return &a.Plan.OptIn
}

// Stored tells whether the message is stored in the plan's conversation: the attempt is
// done, and the contact was not deleted in the meantime.
func (a *Attempt) Stored() bool { return a.Phase == Done && !a.Erased }

// Failed tells whether the attempt's message certainly did not reach the person: it was not
// sent, or the provider reported that it could not be delivered. m is the message, or nil.
func (a *Attempt) Failed(m *Message) bool {
	switch a.Phase {
	case Refused, Released:
		return true
	case Done:
		return m != nil && m.Delivery == Failed
	}
	return false
}

// InConversation is the conversation of the attempt's message. It is zero for a template
// whose message is not stored yet, and after the contact was deleted.
func (a *Attempt) InConversation() ID {
	if a.Stored() || a.Plan.Reply != nil && !a.Erased {
		return a.Plan.Conversation
	}
	return ID{}
}

// As returns true if a settled attempt ended in the way that a person chose: sent or not
// sent.
func (a *Attempt) As(sent bool) bool {
	if sent {
		return a.Phase == Done
	}
	return a.Phase == Released
}

// KeyLife is how long an Idempotency-Key is kept after success, in hours of the database's
// counter. It is 30 days (contract §5), and one hour more because the first hour is not a
// whole one.
const KeyLife = 30*24 + 1

// StatusLife is how long a status is kept while its message is not stored yet, in hours of
// the database's counter. It is a day, and one hour more because the first hour is not a
// whole one.
const StatusLife = 24 + 1

// CallTime is how long a call to a provider may take. If the response comes later, the
// outcome is unknown.
const CallTime = 20 * time.Second

// ErasedLife is how long parley remembers the message ids of a deleted person. If the
// provider delivers such a message again, it is ignored (contract-talk §4).
const ErasedLife = 30 * 24 * time.Hour

// Expired tells whether the attempt's key may be used again. Keys expire only after
// success.
func (a *Attempt) Expired() bool { return a.Phase == Done && a.Age >= KeyLife }

// Canonical is the number in canonical form; "" once it is erased.
func (p *Plan) Canonical() string {
	if p.Number == "" {
		return ""
	}
	return CanonicalNumber(p.Number)
}

// Numbers are the canonical numbers to which messages to a contact may go.
func (c *Contact) Numbers() (numbers []string) {
	for _, claim := range c.Claims() {
		if claim.Kind == KindPhone {
			numbers = append(numbers, claim.Value)
		}
	}
	return numbers
}

// Erase removes the personal data of a deleted person from an attempt. If the attempt is
// settled later, its answer has no text, unless the process that sent the message is still
// running.
func (a *Attempt) Erase() {
	a.Erased, a.ExternalID = true, ""
	a.Plan.forget()
	a.Plan.OptIn = OptIn{Request: a.Plan.OptIn.Request}
	for i, note := range a.Notes {
		if strings.HasPrefix(note, took) {
			a.Notes[i], _, _ = strings.Cut(note, ": ")
		}
	}
}

// took is the beginning of the notes that end with the provider's id of a message.
const took = "the provider took "

// TookAnother is the note that the provider accepted a second message of the attempt, or
// accepted a message although the attempt had not ended as done.
func (a *Attempt) TookAnother(externalID string) string {
	note := took + "another message of this attempt"
	if a.Phase != Done {
		note = took + "this message although the attempt had ended as " + string(a.Phase)
	}
	if a.Erased {
		return note
	}
	return note + ": " + externalID
}

// forget removes the personal data from a plan.
func (p *Plan) forget() {
	p.Text, p.Number, p.Profile, p.Links = "", "", nil, nil
	if p.Reply != nil {
		p.Reply = &Reply{Kind: p.Reply.Kind, Author: p.Reply.Author, Member: p.Reply.Member, Media: p.Reply.Media}
	}
}

// Settle ends the attempt, and removes the message's content and the recipient's data from
// its plan.
func (a *Attempt) Settle(p Phase, now Time) {
	a.Phase, a.SettledAt, a.Lease = p, now, 0
	a.Plan.forget()
}

// A StatusUpdate is a provider's report on a message that it has accepted.
type StatusUpdate struct {
	ExternalID string
	Attempt    ID // zero if the provider did not return one
	Delivery   DeliveryStatus
	Failure    *Failure
	UserID     string // the provider's id of the recipient; "": not reported
	At         Time
}

// The types of an error's details, in addition to those of the contact rules.
type (
	// Languages has the languages in which a template exists.
	Languages struct{ Languages []string }
	// Unsendable says why a template can't be sent.
	Unsendable struct {
		Status  string
		Reasons []string
	}
	// OptedOut says since when a person has opted out of marketing.
	OptedOut struct{ Since Time }
	// Unusable says why a channel can't be used.
	Unusable struct{ Reason string }
	// SettledAttempt says how an attempt ended.
	SettledAttempt struct{ Phase Phase }
	// InDoubtAttempt names the attempt whose outcome is unknown.
	InDoubtAttempt struct{ AttemptID ID }
)

// A SentMessage is the answer to a send that the provider accepted.
type SentMessage struct {
	Conversation Conversation
	Kind         ChannelKind
	Existing     bool // the conversation existed before
	Reply        bool // it is a free message
	Message      Message
}

// NoTemplate is the answer for a template that the library does not have.
func (l *Library) NoTemplate(name, language string) error {
	known := details[string]{}
	for _, language := range l.Languages(name) {
		known.add(language, language)
	}
	e := NotFoundf("the channel has no template %q in the language %q", name, language).Advise(ListTemplates)
	if n := known.total; n > len(known.list) {
		e.Message += fmt.Sprintf("; it is there in %d languages", n)
	}
	e.Details = Languages{known.list}
	return e
}
