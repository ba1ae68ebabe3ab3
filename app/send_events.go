package app

import (
	"parley/desk"
)

// deliveryEvents are the types of events for statuses that move a message forward.
var deliveryEvents = map[desk.DeliveryStatus]desk.EventType{
	desk.Sent: desk.MessageSent, desk.Delivered: desk.MessageDelivered, desk.Read: desk.MessageRead, desk.Failed: desk.MessageFailed,
}

// messageEvents returns the events of a new message and of the change of its conversation.
// The parameter before is the conversation before the message, or nil if the conversation
// is new.
func messageEvents(c, before *desk.Conversation, m *desk.Message, actor desk.Actor, now desk.Time) []desk.Event {
	events := conversationEvents(c, before, actor, now)
	t := desk.MessageSent
	if m.Direction == desk.Inbound {
		t = desk.MessageReceived
	}
	return append(events, m.Event(t, actor, now))
}

// settledEvents returns the event of settling an attempt, if the attempt was in doubt.
func settledEvents(at *desk.Attempt, was desk.Phase, by desk.Actor, now desk.Time) []desk.Event {
	if was != desk.InDoubt {
		return nil
	}
	return []desk.Event{sendEvent(desk.SendSettled, at, by, now)}
}

// sendEvent returns an event of an attempt. The event names the attempt's contact, even if
// this contact is not stored yet. So the answers of webhooks are deleted with the contact.
func sendEvent(t desk.EventType, at *desk.Attempt, by desk.Actor, now desk.Time) desk.Event {
	return desk.Event{Type: t, Subject: at.ID, Conversation: at.InConversation(), Contact: at.Plan.Contact, Actor: by, At: now}
}

// conversationEvents returns the event of a new conversation if before is nil. Otherwise it
// returns the event of the change, if any field changed.
func conversationEvents(c, before *desk.Conversation, actor desk.Actor, now desk.Time) []desk.Event {
	e := desk.Event{Type: desk.ConversationCreated, Subject: c.ID, Contact: c.ContactID, Actor: actor, At: now}
	if before != nil {
		e.Type = desk.ConversationUpdated
		if e.Changed = c.Changes(before); e.Changed == nil {
			return nil
		}
	}
	return []desk.Event{e}
}
