package provider

import "parley/desk"

// An Update is one report in an inbound item: one of the pointers is set.
type Update struct {
	Channel  string // the provider's id of the channel that the update is about; "": the item's own channel
	Business string // the business account, if the update is about all its channels; otherwise ""

	Status   *desk.StatusUpdate
	Message  *InboundMessage
	Choice   *MarketingChoice
	Move     *Move
	Template *TemplateUpdate
	Account  *AccountStatus
}

// Names returns the provider's id of the message that the update is, or reports about; "": none.
func (u *Update) Names() string {
	switch {
	case u.Status != nil:
		return u.Status.ExternalID
	case u.Message != nil:
		return u.Message.ExternalID
	}
	return ""
}

// An InboundMessage is a message that a person wrote to a channel. The provider knows
// the person by a number, by its own id, or by both.
type InboundMessage struct {
	ExternalID string // the provider's id, by which a repeated message is recognised
	Number     string // digits; "" if hidden
	UserID     string // "" if the provider does not report it
	Name       string // the name of the person's profile; "": none
	Text       string
	At         desk.Time
	Kind       desk.MessageKind // "": text
	Extra      *desk.Extra
	ReplyTo    string        // the provider's id of the message that it quotes or reacts to; "": none
	Media      *InboundMedia // nil: none
	Echo       bool          // the business typed it in the phone app; Number and UserID are the recipient's
}

// An InboundMedia is the file of an inbound message.
type InboundMedia struct {
	Ref    string  // the provider's id of the file
	MIME   string  // as the provider claims
	Name   string  // "": none
	Size   int64   // 0: not reported
	SHA256 []byte  // nil: not reported
	Stored desk.ID // the id of a simulated file, which is stored already; otherwise zero
}

// A MarketingChoice is a person's marketing choice, as reported by the provider.
type MarketingChoice struct {
	Number, UserID string // either may be ""
	Change         desk.OptChange
	At             desk.Time
}

// A Move is the report that a person has another number, or another id at the provider.
// An empty string is unknown or unchanged.
type Move struct {
	Number, UserID       string // the old number and id
	NewNumber, NewUserID string
	At                   desk.Time
}

// A TemplateUpdate is the report that a template has changed at the provider.
type TemplateUpdate struct {
	Name, Language string
	Status         string // the new status, in upper case as in the provider's JSON; "": fetch the template again
}

// An AccountStatus is the report that an account may send, or may not.
type AccountStatus struct {
	Blocked string    // why the account may not send; "": it may
	Replies bool      // the account may still reply to people who wrote
	Until   desk.Time // 0: until the provider reports a change
	At      desk.Time // the time of the report; older reports are ignored
}
