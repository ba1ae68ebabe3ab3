package desk

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxRowBytes is the size limit of a row's JSON.
const MaxRowBytes = 4 << 10

// A BroadcastRow is a person of a broadcast.
type BroadcastRow struct {
	ID           ID
	Broadcast    ID
	Contact      ID     // zero: none is known
	Number       string // the canonical number; "": not known yet, or erased
	To           string // digits of the address; "": not known yet, or erased
	Status       RowStatus
	Reason       RowReason
	Failure      *Failure
	Attempt      ID
	Message      ID
	Conversation ID
	At           Time // of the status
	DueAt        Time // of a pending one: not before this time, by the database's clock; 0: in its turn
	SentAt       Time // when its message was claimed, since nobody answers it before; 0: there is none, or it is erased
	Channel      ID   // of that message
	Data         RowData
}

// RowData is the content of a row, and what happened to it that is not shown.
type RowData struct {
	Phone  string // digits: the row names its person by this number; "": by the contact
	Values []NamedValue
	Person *ContactWrite // for the contact that the send creates
	Claims int           // how often it was claimed
	Held   int           // how often the provider refused the person for now
	Died   bool          // it is in doubt because its process ended
	Reply  RowReply      `json:",omitzero"`
}

// ListBytes is the row's size in a page.
func (r *BroadcastRow) ListBytes() int {
	n := 2*recordRoom + jsonBytes(r.Data.Reply.Choice)
	if r.Failure != nil {
		n += jsonBytes(r.Failure.Title) + jsonBytes(r.Failure.Fix)
	}
	return n
}

// As returns the row as callers see it. The rows of a cancelled broadcast are cancelled some
// time after it.
func (r BroadcastRow) As(b *Broadcast) BroadcastRow {
	if b.State == BroadcastCancelled && r.Status == RowPending {
		r.Status, r.At = RowCancelled, b.EndedAt
	}
	return r
}

// broadcastKeys is how the keys of a broadcast's attempts begin. Callers can't send such a key.
const broadcastKeys = "broadcast → "

// NextKey is the Idempotency-Key of the attempt that the next claim of the row makes.
func (r *BroadcastRow) NextKey() string {
	return broadcastKeys + r.ID.String() + " " + strconv.Itoa(r.Data.Claims+1)
}

// Row is the row of a broadcast that the attempt sends to; zero for other attempts.
func (a *Attempt) Row() ID {
	rest, found := strings.CutPrefix(a.Key, broadcastKeys)
	if !found || len(rest) < 36 {
		return ID{}
	}
	id, _ := ParseID(rest[:36])
	return id
}

// An Effect says what a failure at the provider means for a broadcast.
type Effect uint8

// The effects.
const (
	NoEffect       Effect = iota // on this message only
	PersonEffect                 // a refusal for now, of this person only
	NotCounted                   // it does not tell that something is wrong
	TemplateEffect               // the template can't be sent any more
	FileEffect                   // the file can't be sent
	ChannelEffect                // the provider wants less to be sent
)

// TheirTurn has what is known about a row's person at the row's turn.
type TheirTurn struct {
	Now            Time
	Contact        *Contact // nil: there is none
	Taken          bool     // a row that was claimed before has the contact, or a number of it
	OptedOut       bool
	InConversation bool // open, on the channel
}

// A RowClaim is a row that was claimed for a person.
type RowClaim struct {
	Row    ID
	Status RowStatus
}

// Bars tells whether the claim keeps another row of its person from being sent. A row that was
// skipped since has reached nobody. If both rows were refused for now, because two people became
// one in between, the row that was added first is sent.
func (c RowClaim) Bars(r *BroadcastRow) bool {
	switch {
	case c.Row == r.ID, c.Status == RowSkipped:
		return false
	case c.Status == RowPending && !r.Attempt.IsZero():
		return c.Row.Compare(r.ID) < 0
	}
	return true
}

// A RowVerdict is the result of a row's turn: the reason why it is skipped, or what is sent.
type RowVerdict struct {
	Reason  RowReason // "": it is sent
	Failure *Failure
	Number  string // digits
	Given   TemplateValues
	Values  []string // of the template's variables
}

// Judge decides about a row. The first reason that holds counts.
func (b *Broadcast) Judge(t *Template, s *Settings, r *BroadcastRow, is TheirTurn) (v RowVerdict) {
	v.Number = r.Data.Phone
	if v.Number == "" && is.Contact != nil {
		v.Number = is.Contact.Address()
	}
	switch {
	case b.StopAt > 0 && is.Now >= b.StopAt:
		v.Reason = SkipLate
	case r.Data.Phone == "" && is.Contact == nil:
		v.Reason = SkipDeleted
	case is.Taken:
		v.Reason = SkipDuplicate
	case v.Number == "":
		v.Reason = SkipUnreachable
	case b.CheckConsent(s) != nil, !b.Consent.Confirmed && s.fact(b.Consent.Attribute, r, is.Contact) != "true":
		v.Reason = SkipNoConsent
	case t.Marketing() && is.OptedOut:
		v.Reason = SkipOptedOut
	case b.SkipsOpen() && is.InConversation:
		v.Reason = SkipInConversation
	}
	if v.Reason != "" {
		return v
	}
	v.Given = b.valuesFor(t, s, r, is.Contact)
	var err error
	if v.Values, err = t.Values(v.Given); err != nil {
		v.Reason = SkipVariables
		v.Failure = &Failure{Title: "a value can't be sent", Fix: "Correct the value."}
		if problems, ok := AsError(err).Details.([]VariableProblem); ok && len(problems) > 0 {
			v.Failure.Title = problems[0].Address + ": " + problems[0].Message
		}
	}
	return v
}

// fact is the text of an attribute of a row's contact, or of the contact that the row would
// create; "" if it has none.
func (s *Settings) fact(key string, r *BroadcastRow, c *Contact) string {
	if c != nil {
		return factText(c.Attributes.get(key))
	}
	if a := s.Attributes[key]; a != nil && r.Data.Person != nil {
		for _, w := range r.Data.Person.Attributes.Value {
			if w.Key == key {
				text, _ := a.Canonical(w.Value)
				return factText(text)
			}
		}
	}
	return ""
}

// valuesFor returns what the broadcast gives the template's variables for a person.
func (b *Broadcast) valuesFor(t *Template, s *Settings, r *BroadcastRow, c *Contact) TemplateValues {
	given := TemplateValues{Object: true}
	add := func(address, value string) {
		if value != "" {
			given.Named = append(given.Named, NamedValue{address, value})
		}
	}
	var owner *Member
	name := ""
	switch {
	case c != nil:
		owner, name = c.Owner, c.Name
	case r.Data.Person != nil:
		name = r.Data.Person.Name.Value
	}
	hints := HintValues(owner, name, FromContact)
	addresses := t.Addresses()
	for _, address := range addresses {
		from := BroadcastValue{From: FromRow}
		if i := slices.IndexFunc(b.Values, func(v BroadcastValue) bool { return v.Address == address }); i >= 0 {
			from = b.Values[i]
		}
		value := from.Value
		switch key, attribute := strings.CutPrefix(from.From, fromAttribute); {
		case value != "":
		case attribute:
			value = s.fact(key, r, c)
		case from.From == FromRow:
			if i := slices.IndexFunc(r.Data.Values, func(v NamedValue) bool { return v.Address == address }); i >= 0 {
				value = r.Data.Values[i].Value
			}
		default:
			value = hints[Binding(from.From)].Value
		}
		if value == "" {
			value = from.Else
		}
		add(address, value)
	}
	for _, v := range r.Data.Values { // what the row has for no variable is refused, as in a send
		if !slices.Contains(addresses, v.Address) {
			add(v.Address, v.Value)
		}
	}
	return given
}

// Claimed makes the row one that is being sent by an attempt. Its person may answer before the
// attempt has an outcome.
func (r *BroadcastRow) Claimed(at *Attempt, now Time) {
	r.Status, r.Reason, r.Failure, r.At, r.DueAt = RowSending, "", nil, now, 0
	r.Attempt, r.To, r.Number = at.ID, at.Plan.Number, at.Plan.Canonical()
	r.SentAt, r.Channel = at.CreatedAt, at.Plan.Channel
	if at.Plan.Known {
		r.Contact = at.Plan.Contact
	}
	r.Data.Claims++
	r.Data.Died = false
}

// Skip passes over the row.
func (r *BroadcastRow) Skip(why RowReason, f *Failure, now Time) {
	r.Status, r.Reason, r.Failure, r.At, r.DueAt = RowSkipped, why, f, now, 0
}

// Hold lets the row wait: the provider takes nothing for this person now. wait is in seconds.
// It returns false if the person is given up.
func (r *BroadcastRow) Hold(wait int, now Time) bool {
	r.Data.Held++
	if r.Data.Held >= MaxPersonRefusals {
		return false
	}
	r.Status, r.At = RowPending, now
	r.DueAt = now + Time(BroadcastWait(wait, r.Data.Held).Milliseconds())
	return true
}

// BroadcastWait is how long to wait after the n-th refusal for now in a row. seconds is how
// long the provider asks to wait.
func BroadcastWait(seconds, n int) time.Duration {
	wait := time.Duration(max(1, seconds)) * time.Second
	for ; n > 1 && wait < LongestBroadcastWait; n-- {
		wait *= 2
	}
	return min(wait, LongestBroadcastWait)
}

// Follow gives the row the outcome of its attempt, and tells whether it changed. An attempt
// that the row has left behind changes nothing.
func (r *BroadcastRow) Follow(at *Attempt, effect Effect, state BroadcastState, now Time) bool {
	if r.Attempt != at.ID || r.Status != RowSending && r.Status != RowInDoubt {
		return false
	}
	was := r.Status
	switch at.Phase {
	case Done:
		r.Status = RowSent
		if at.Stored() {
			r.Contact, r.Message, r.Conversation = at.Plan.Contact, at.Plan.Message, at.Plan.Conversation
			r.SentAt, r.Channel = at.CreatedAt, at.Plan.Channel
		}
	case InDoubt:
		r.Status = RowInDoubt
		if !at.Erased { // whoever answers it has got it
			r.SentAt, r.Channel = at.CreatedAt, at.Plan.Channel
		}
	case Released:
		r.Status, r.Reason = RowRefused, RowReleased
		r.notSent()
	case Refused:
		r.notSent()
		r.Refuse(at.Refusal, effect, state, now)
	}
	if r.Status != was {
		r.At = now
	}
	return r.Status != was
}

// notSent forgets what the row has of a message that is known not to have been sent.
func (r *BroadcastRow) notSent() { r.SentAt, r.Channel, r.Data.Reply = 0, ID{}, RowReply{} }

// Refuse gives the row the status after a refusal of its message, in a broadcast of this state: it
// waits for another try if the refusal was for now and the broadcast has not ended.
func (r *BroadcastRow) Refuse(refusal *Refusal, effect Effect, state BroadcastState, now Time) {
	if !r.HasPerson() { // erased meanwhile: the row has nothing left to send
		r.Status, r.Reason = RowSkipped, SkipDeleted
		return
	}
	final := RowPending
	switch state {
	case BroadcastCancelled:
		final = RowCancelled
	case BroadcastDone: // it was in doubt at the end, and nobody tries again
		final = RowRefused
	}
	switch {
	case refusal == nil || !refusal.ForNow():
		final = RowRefused
	case effect == PersonEffect && final == RowPending:
		if r.Hold(refusal.RetryAfter, now) {
			return
		}
		final = RowRefused
	}
	r.Status, r.DueAt = final, 0
	if final == RowRefused && refusal != nil {
		r.Failure = refusal.Failure
		if r.Failure == nil {
			r.Failure = &Failure{Title: refusal.Message}
		}
	}
}

// HasPerson tells whether the row still says to whom it goes.
func (r *BroadcastRow) HasPerson() bool { return r.Data.Phone != "" || !r.Contact.IsZero() }

// ForNow tells whether a later try may succeed.
func (r *Refusal) ForNow() bool {
	switch r.Type {
	case ProviderUnavailable, RateLimited, Unavailable, SendInProgress:
		return true
	}
	return false
}

// reachedBy orders the statuses of rows by delivery.
var reachedBy = map[DeliveryStatus]RowStatus{Failed: RowFailed, Delivered: RowDelivered, Read: RowRead}

// Reach moves a row that was sent to the delivery status of its message, and tells whether it
// changed.
func (r *BroadcastRow) Reach(m *Message, now Time) bool {
	next := reachedBy[m.Delivery]
	order := []RowStatus{RowSent, RowFailed, RowDelivered, RowRead}
	from, to := slices.Index(order, r.Status), slices.Index(order, next)
	if from < 0 || to <= from {
		return false
	}
	r.Status, r.At = next, now
	if r.Failure = nil; next == RowFailed {
		r.Failure = m.Failure
	}
	return true
}

// Hear notes what the row's person did, if it counts for the row, and tells whether the row
// changed. It counts if it quotes the row's message or comes after it, within ReplyLife. The
// caller gives what quotes no broadcast to the row of the newest message before.
func (r *BroadcastRow) Hear(h Heard) bool {
	quotes := !h.Quotes.IsZero() && h.Quotes == r.Message
	if r.SentAt == 0 || h.At > r.SentAt+Time(ReplyLife.Milliseconds()) || h.At <= r.SentAt && !quotes {
		return false
	}
	was := r.Data.Reply
	r.Data.Reply.hear(h, quotes)
	return r.Data.Reply != was
}

// Erase removes all that a row of a deleted person says, but its status and the reason. One
// that is being sent, or is in doubt, keeps its attempt's id until it is settled.
func (r *BroadcastRow) Erase(now Time) {
	if r.Status == RowPending {
		r.Skip(SkipDeleted, nil, now)
	}
	r.Contact, r.Number, r.To, r.Failure, r.Message, r.Conversation = ID{}, "", "", nil, ID{}, ID{}
	if r.Status != RowSending && r.Status != RowInDoubt {
		r.Attempt = ID{}
	}
	r.SentAt, r.Channel = 0, ID{}
	r.Data = RowData{Claims: r.Data.Claims, Died: r.Data.Died}
}

// Outcome tells whether the row's outcome is one of the bad ones that can pause a broadcast.
func (r *BroadcastRow) Outcome(effect Effect) (bad, counts bool) {
	switch r.Status {
	case RowSent, RowDelivered, RowRead:
		return false, true
	case RowInDoubt:
		return true, !r.Data.Died
	case RowRefused, RowFailed:
		return true, effect != NotCounted && r.Reason != RowReleased
	}
	return false, false
}

// TooManyFailed tells whether a broadcast with these newest outcomes is to be paused.
func (b *Broadcast) TooManyFailed(bad, outcomes int) bool {
	return outcomes >= LeastOutcomes && bad*100 > b.MaxFailed*outcomes
}

// A RowInput is a row as it was sent.
type RowInput struct {
	Contact *ID      // the person by id; or nil
	Find    Identity // the person by number, external id or e-mail
	Values  []NamedValue
	Person  *ContactWrite
	Err     error // why it can't be read
}

// SameInput tells whether another row says the same.
func (r *BroadcastRow) SameInput(other *BroadcastRow) bool {
	if r.Contact != other.Contact || r.Data.Phone != other.Data.Phone || !slices.Equal(r.Data.Values, other.Data.Values) {
		return false
	}
	mine, _ := json.Marshal(r.Data.Person)
	theirs, _ := json.Marshal(other.Data.Person)
	return string(mine) == string(theirs)
}

// StillMay returns an error if an actor who started something has lost the permission since:
// its key is revoked or has expired, or the member was removed or has another role.
func (s *Settings) StillMay(by Actor, needs Permission, now Time) error {
	p := Principal{Actor: by, Settings: s}
	switch by.Kind {
	case ByKey:
		if p.Key = s.Key(by.ID); p.Key == nil {
			return ErrUnauthorized
		}
	case ByMember:
		if p.Member = s.Member(by.ID); p.Member == nil {
			return ErrSignedOut
		}
	}
	return p.Still(s, needs, now)
}

// A RowFilter narrows the list of rows; its zero value matches all.
type RowFilter struct {
	Status  RowStatus // "": any
	Reason  RowReason // "": any
	Contact *ID       // nil: any
	Replied *bool     // nil: any
}

// Passes tells whether a row matches the filter.
func (f RowFilter) Passes(r *BroadcastRow) bool {
	return (f.Status == "" || r.Status == f.Status) && (f.Reason == "" || r.Reason == f.Reason) && (f.Contact == nil || r.Contact == *f.Contact) &&
		(f.Replied == nil || (r.Data.Reply.At > 0) == *f.Replied)
}

// A RowRef identifies a row.
type RowRef struct{ Broadcast, Row ID }

// TakesRow tells whether the person of an ended broadcast's row belongs to the audience. A row
// that was erased names nobody.
func (a *Audience) TakesRow(r *BroadcastRow) bool {
	return r.HasPerson() && slices.Contains(a.Status, r.Status) && (a.Code == 0 || r.Failure != nil && r.Failure.Code == a.Code) &&
		RowFilter{Replied: a.Replied}.Passes(r)
}

// Again returns a row for the same person with the same values, to be sent to in another
// broadcast. It has no id yet.
func (r *BroadcastRow) Again(now Time) *BroadcastRow {
	again := &BroadcastRow{Contact: r.Contact, Status: RowPending, At: now, Data: RowData{Phone: r.Data.Phone, Values: r.Data.Values, Person: r.Data.Person}}
	if again.Data.Phone != "" {
		again.To, again.Number = again.Data.Phone, CanonicalNumber(again.Data.Phone)
	}
	return again
}
