package desk

// A MessageKind says what a message is (contract-talk §1).
type MessageKind string

// The kinds of messages.
const (
	KindText        MessageKind = "text"
	KindImage       MessageKind = "image"
	KindVideo       MessageKind = "video"
	KindAudio       MessageKind = "audio"
	KindDocument    MessageKind = "document"
	KindSticker     MessageKind = "sticker"
	KindLocation    MessageKind = "location"
	KindContacts    MessageKind = "contacts"
	KindButtons     MessageKind = "buttons"
	KindChoice      MessageKind = "choice" // a tap on a button or a row of a list
	KindOrder       MessageKind = "order"
	KindReaction    MessageKind = "reaction"
	KindTemplate    MessageKind = "template"
	KindUnsupported MessageKind = "unsupported" // any other kind at the provider
)
