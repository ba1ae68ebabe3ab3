package app

import (
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// answers updates the state of a conversation after an outbound message was stored.
func answers(tx store.Tx, c *desk.Conversation, m *desk.Message) (err error) {
	if m.IsAnswer() && !c.Talk.Answer(m) {
		c.Talk.Answered, c.Talk.WaitingSince, err = tx.Waiting(c.ID)
	}
	return err
}

// failedOrNot updates the state of the conversation after a message has failed, or was
// delivered after a failure.
func failedOrNot(tx store.Tx, m *desk.Message) error {
	c, err := tx.Conversation(m.ConversationID)
	if err != nil || c == nil {
		return err
	}
	switch {
	case m.IsAnswer():
		err = answers(tx, c, m)
	case m.ID == c.Talk.Answered:
		c.Talk.Answered, c.Talk.WaitingSince, err = tx.Waiting(c.ID)
	}
	if err != nil {
		return err
	}
	return tx.PutConversation(c)
}

// ClosesWindow tells whether a failure on a channel means that the window is closed.
func (a *App) ClosesWindow(s *desk.Settings, channel desk.ID, f *desk.Failure) bool {
	c := s.Channel(channel)
	if c == nil || f == nil {
		return false
	}
	talker, ok := a.providers[c.Kind].(provider.Talker)
	return ok && talker.ClosesWindow(f.Code)
}

// shutBy closes the window if the provider refused a message because the window is closed.
func (a *App) shutBy(tx store.Tx, m *desk.Message) error {
	if m.Delivery != desk.Failed || !a.ClosesWindow(tx.Settings(), m.ChannelID, m.Failure) {
		return nil
	}
	return shut(tx, m.ChannelID, m.ContactID, m.TS, desk.ByTheProvider)
}

// shut closes the window of a contact for messages up to a time.
func shut(tx store.Tx, channel, contact desk.ID, at desk.Time, by desk.WindowReason) error {
	w, err := tx.Window(channel, contact)
	if err != nil || !w.Shut(at, by) {
		return err
	}
	return tx.PutWindow(channel, contact, w)
}
