package api

import "parley/desk"

// Items of lists as an export has them, a line each: with the ids of the conversation and the
// contact.

// ExportedConversation appends a conversation on a channel of some kind.
func ExportedConversation(b []byte, c *desk.Conversation, kind desk.ChannelKind) []byte {
	return appendConversation(b, c, kind)
}

// ExportedMessage appends a message.
func ExportedMessage(b []byte, m *desk.Message, s *desk.Settings) []byte {
	return appendPlace(appendMessage(b, m, s), m.ConversationID, m.ContactID)
}

// ExportedNote appends a note.
func ExportedNote(b []byte, n *desk.Note) []byte {
	return appendPlace(appendNote(b, n), n.ConversationID, n.ContactID)
}

// appendPlace appends two ids to an object.
func appendPlace(object []byte, conversation, contact desk.ID) []byte {
	b := appendID(append(object[:len(object)-1], `,"conversation_id":`...), conversation)
	return append(appendID(append(b, `,"contact_id":`...), contact), '}')
}

// ExportedErasure appends the erasure of a contact.
func ExportedErasure(b []byte, e desk.Erasure) []byte {
	return append(appendTime(append(appendID(append(b, `{"id":`...), e.ID), `,"at":`...), e.At), '}')
}
