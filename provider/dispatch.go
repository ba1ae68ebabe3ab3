package provider

import (
	"time"

	"parley/desk"
)

// A Later is an update that the Provider itself creates after a wait, such as a simulated
// status. It does not come from outside.
type Later struct {
	Wait time.Duration
	Body []byte // the body of its inbound item
}

// A Dispatch is a message to be sent.
type Dispatch struct {
	Access
	Attempt    desk.ID   // sent with the message, and returned with its statuses
	By         time.Time // the first byte must not be sent after this time
	Number     string    // digits; "" if only UserID is known
	UserID     string    // the provider's id of the person, used if Number is ""
	Template   *desk.Template
	Components []desk.Component

	File *SentFile // in the template's title, or instead of the text of a free message; nil: none

	// The rest of a free message, if Template is nil.
	Text    string
	Buttons []desk.Button // under the text
	Quote   string        // the provider's id of the quoted message; "": none
}

// A SentFile is a file in a message.
type SentFile struct {
	Ref     string // the provider's id of the file, from Upload
	Kind    desk.MessageKind
	Name    string // of a document
	Caption string // of a free message; "": none
}

// A Receipt is the provider's acknowledgement.
type Receipt struct {
	ExternalID string
	Number     string  // digits by which the provider knows the person; "": not reported
	UserID     string  // the provider's id of the person; "": not reported
	Later      []Later // future updates, stored with the message
}

// NotSent is the refusal of an attempt that this process certainly did not send.
func NotSent() *desk.Refusal {
	return &desk.Refusal{Type: desk.Unavailable, Message: "this could not be prepared in time, so nothing was sent: try again", RetryAfter: 1}
}
