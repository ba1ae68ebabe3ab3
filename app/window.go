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
	talker := a.talkerOf(s, channel)
	return talker != nil && f != nil && talker.ClosesWindow(f.Code)
}

// talkerOf returns the provider of a channel, or nil if people can't be answered through it.
func (a *App) talkerOf(s *desk.Settings, channel desk.ID) provider.Talker {
	c := s.Channel(channel)
	if c == nil {
		return nil
	}
	talker, _ := a.providers[c.Kind].(provider.Talker)
	return talker
}

// failedBy stores what the failure of a message means: the window may be closed, or the
// provider may have lost the message's file.
func (a *App) failedBy(tx store.Tx, m *desk.Message) error {
	if m.Delivery != desk.Failed || m.Failure == nil {
		return nil
	}
	talker := a.talkerOf(tx.Settings(), m.ChannelID)
	switch {
	case talker == nil:
	case talker.ClosesWindow(m.Failure.Code):
		return shut(tx, m.ChannelID, m.ContactID, m.TS, desk.ByTheProvider)
	case talker.LosesFile(m.Failure.Code) && !m.Media.IsZero():
		return tx.DropMediaRef(m.Media, m.ChannelID)
	}
	return nil
}

// shut closes the window of a contact for messages up to a time.
func shut(tx store.Tx, channel, contact desk.ID, at desk.Time, by desk.WindowReason) error {
	w, err := tx.Window(channel, contact)
	if err != nil || !w.Shut(at, by) {
		return err
	}
	return tx.PutWindow(channel, contact, w)
}
