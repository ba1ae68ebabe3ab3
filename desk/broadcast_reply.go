package desk

import "time"

// ReplyLife is how long after its message a broadcast counts what the person does.
const ReplyLife = 7 * 24 * time.Hour

// A RowReply is what a row's person did after the message of the broadcast. It does not depend
// on the order in which the person's messages were received.
type RowReply struct {
	At       Time   `json:",omitzero"` // of the first message that the person wrote; 0: none
	Choice   string `json:",omitzero"` // the title of the first button that the person tapped
	ChosenAt Time   `json:",omitzero"` // 0: none was tapped
	OptedOut bool   `json:",omitzero"`
}

// A Heard is what a person did that may count for a broadcast: wrote a message, or opted out
// at the provider.
type Heard struct {
	At       Time
	Written  bool   // a message
	Quotes   ID     // the message that it quotes; zero: none is known
	Choice   string // the title of the button that was tapped; "": none
	OptedOut bool
}

// Heard returns what the message tells about broadcasts. It returns false for a message that
// tells them nothing: the person did not write it, or it is a reaction.
func (m *Message) Heard() (Heard, bool) {
	h := Heard{At: m.TS, Written: true, Quotes: m.ReplyTo, OptedOut: OptWord(m.Text) == OptOut}
	if m.Extra != nil && m.Extra.Choice != nil {
		h.Choice = m.Extra.Choice.Title
	}
	return h, m.IsWaitedOn()
}

// hear notes what the person did. quotes tells that it quotes the broadcast's message: a button
// of another message does not count.
func (y *RowReply) hear(h Heard, quotes bool) {
	if h.Written && (y.At == 0 || h.At < y.At) {
		y.At = h.At
	}
	first := y.ChosenAt == 0 || h.At < y.ChosenAt || h.At == y.ChosenAt && h.Choice < y.Choice
	if h.Choice != "" && first && (quotes || h.Quotes.IsZero()) {
		y.Choice, y.ChosenAt = h.Choice, h.At
	}
	y.OptedOut = y.OptedOut || h.OptedOut
}
