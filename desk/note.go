package desk

// MaxNoteText is the greatest number of characters in a note (contract-talk §6).
const MaxNoteText = 4000

// A Note is a text of the team about a conversation. The person never sees it: notes are
// records of their own, and the code that sends messages does not use them.
type Note struct {
	ID             ID
	ConversationID ID
	Text           string
	Author         Author
	CreatedAt      Time
	ContactID      ID // of its conversation; only an export fills it in
}

// ParseNoteText returns the text of a note, trimmed: 1 to 4,000 characters.
func ParseNoteText(s string) (string, error) { return parseText(s, "a note", 1, MaxNoteText) }

// NoNote is the answer for an id that no note of the conversation has.
func NoNote() *Error { return NotFoundf("no note of this conversation has this id") }
