package app

import (
	"parley/desk"
)

// deliveryEvents are those of a status that moves a message forward.
var deliveryEvents = map[desk.DeliveryStatus]desk.EventType{
	desk.Sent: desk.MessageSent, desk.Delivered: desk.MessageDelivered, desk.Read: desk.MessageRead, desk.Failed: desk.MessageFailed,
}

// messageEvents are the events of a new message and of its effect on the conversation,
// which was before, or nil.
func messageEvents(c, before *desk.Conversation, m *desk.Message, actor desk.Actor, now desk.Time) []desk.Event {
	events := conversationEvents(c, before, actor, now)
	t := desk.MessageSent
	if m.Direction == desk.Inbound {
		t = desk.MessageReceived
	}
	return append(events, m.Event(t, actor, now))
}

// settledEvents is the event of an attempt that is settled, if it was in doubt.
func settledEvents(at *desk.Attempt, was desk.Phase, by desk.Actor, now desk.Time) []desk.Event {
	if was != desk.InDoubt {
		return nil
	}
	return []desk.Event{sendEvent(desk.SendSettled, at, by, now)}
}

// sendEvent is an event of an attempt. Its contact is the one that the attempt names, even
// if it does not exist yet: what webhooks answer is kept only with a contact.
func sendEvent(t desk.EventType, at *desk.Attempt, by desk.Actor, now desk.Time) desk.Event {
	return desk.Event{Type: t, Subject: at.ID, Conversation: at.InConversation(), Contact: at.Plan.Contact, Actor: by, At: now}
}

// conversationEvents is the event of a conversation that is new, if before is nil, or
// was changed, if it was.
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
