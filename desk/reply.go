package desk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a reply, in characters (contract-talk §2).
const (
	MaxReply            = MaxMessage
	MaxReplyWithButtons = 1024
	MaxButtons          = 3
	MaxButtonID         = 256
	MaxButtonTitle      = 20
)

// A ReplyRequest is the input of POST /conversations/{id}/messages, read but not yet checked
// against stored data.
type ReplyRequest struct {
	Key          string   // the Idempotency-Key
	Hash         [32]byte // of the path and the body's JSON value
	Conversation ID
	Text         string
	Attachment   *SentAttachment // instead of the text
	Buttons      []Button
	ReplyTo      Field[ID]        // the quoted message
	Member       Field[Reference] // the author; if absent, the key is the author
	Rule         AutoKind         // of an automatic reply; "" for replies of callers
}

// A SentAttachment is a file in a reply.
type SentAttachment struct {
	Media   ID
	Caption string // "": none
}

// MaxCaption is the greatest number of characters in a caption.
const MaxCaption = 1024

// Check returns InvalidRequest for an input that is wrong, whatever data are stored.
func (r *ReplyRequest) Check() error {
	most := MaxReply
	if r.Buttons != nil {
		most = MaxReplyWithButtons
	}
	if a := r.Attachment; a != nil {
		switch n := utf8.RuneCountInString(a.Caption); {
		case r.Text != "":
			return InvalidAt("/attachment", "send a text or an attachment, which may have a caption")
		case r.Buttons != nil:
			return InvalidAt("/buttons", "buttons come with a text, not with an attachment")
		case n > MaxCaption:
			return InvalidAt("/attachment/caption", "it has %d characters, and may have %d", n, MaxCaption)
		case n > 0 && Blank(a.Caption):
			return InvalidAt("/attachment/caption", "it is blank: leave it out")
		}
		return nil
	}
	if Blank(r.Text) {
		return InvalidAt("/text", "it is empty: say something")
	}
	if n := utf8.RuneCountInString(r.Text); n > most {
		return InvalidAt("/text", "it has %d characters, and may have %d", n, most)
	}
	if r.Buttons == nil {
		return nil
	}
	if n := len(r.Buttons); n < 1 || n > MaxButtons {
		return InvalidAt("/buttons", "send 1 to %d buttons", MaxButtons)
	}
	for i, b := range r.Buttons {
		at := "/buttons/" + string(rune('0'+i))
		switch {
		case b.ID == "" || utf8.RuneCountInString(b.ID) > MaxButtonID || strings.TrimSpace(b.ID) != b.ID:
			return InvalidAt(at+"/id", "send 1 to %d characters, without spaces around", MaxButtonID)
		case Blank(b.Title) || utf8.RuneCountInString(b.Title) > MaxButtonTitle || strings.IndexFunc(b.Title, breaksLine) >= 0:
			return InvalidAt(at+"/title", "send 1 to %d characters on one line", MaxButtonTitle)
		}
		for _, other := range r.Buttons[:i] {
			if other.ID == b.ID {
				return InvalidAt(at+"/id", "another button has this id")
			}
			if other.Title == b.Title {
				return InvalidAt(at+"/title", "another button has this title")
			}
		}
	}
	return nil
}

func breaksLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// A Reply has the fields of a Plan that only free messages need.
type Reply struct {
	Kind    MessageKind `json:"kind"`
	Author  Author      `json:"author"`
	Member  ID          `json:"member,omitzero"` // gets the conversation if it is unassigned
	UserID  string      `json:"user_id,omitzero"`
	Buttons []Button    `json:"buttons,omitzero"`
	ReplyTo ID          `json:"reply_to,omitzero"`
	Quote   string      `json:"quote,omitzero"` // the provider's id of the quoted message
	Media   ID          `json:"media,omitzero"`
}

// AttachmentText is the text of a message with a file: the file's kind in brackets, and the
// caption.
func (m *Media) AttachmentText(caption string) string {
	what := string(m.Kind)
	if m.Kind == KindDocument && m.Name != "" {
		what += ": " + m.Name
	}
	return strings.TrimSpace("[" + what + "] " + caption)
}
