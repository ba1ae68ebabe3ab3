package app

import (
	"cmp"
	"context"
	"slices"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// Receive stores an inbound message. It finds or creates the contact and an open
// conversation (a new one is assigned to the contact's owner), and records stop and
// start words. It returns the conversation, and NotFound if there is no such channel.
func (a *App) Receive(ctx context.Context, ws, channel desk.ID, in provider.InboundMessage) (c *desk.Conversation, err error) {
	err = a.store.InTx(ctx, ws, func(tx store.Tx) error {
		if tx.Settings().Channel(channel) == nil {
			return desk.NoChannel()
		}
		if err := lockAssignment(tx); err != nil {
			return err
		}
		c, _, err = a.receive(tx, channel, in)
		return err
	})
	return c, err
}

// receive stores an inbound message, or one that the business typed in the phone app. It
// returns nil for a dropped message: a reaction for which there is no conversation, or a
// message that is delivered again after its person was deleted. It also returns the
// contact if the message is new.
func (a *App) receive(tx store.Tx, channel desk.ID, in provider.InboundMessage) (*desk.Conversation, *desk.Contact, error) {
	known, erased, err := tx.ReceivedMessage(desk.MessageRef{Channel: channel, ExternalID: in.ExternalID})
	if err != nil || erased {
		return nil, nil, err
	}
	if known != nil {
		c, err := tx.Conversation(known.ConversationID)
		return c, nil, err
	}
	now := a.now()
	p := a.person(tx, channel, in.Number, in.UserID)
	var named *desk.Message // the message that it quotes or reacts to
	if in.ReplyTo != "" {
		if named, err = tx.MessageBy(channel, in.ReplyTo); err != nil {
			return nil, nil, err
		}
	}
	var before *desk.Conversation
	if in.Kind == desk.KindReaction {
		if before, err = a.reactsIn(tx, channel, p, named); before == nil || err != nil {
			return nil, nil, err
		}
	}
	contact, err := a.sender(tx, p, in.Name, byProvider(channel), now)
	if err != nil {
		return nil, nil, err
	}
	if before == nil {
		if before, err = tx.OpenConversation(channel, contact.ID); err != nil {
			return nil, nil, err
		}
	}
	wakes := false
	if before == nil {
		if before, err = dormant(tx, channel, contact.ID, now); err != nil {
			return nil, nil, err
		}
		wakes = before != nil && (in.Echo || desk.OptWord(in.Text) == desk.OptNone)
	}
	var c *desk.Conversation
	var newest desk.MessagePlace
	if before == nil {
		opened := desk.NewConversation(a.newID(), channel, contact, now)
		if !tx.Settings().Policy(channel).Receives(contact.Owner) {
			opened.Unassign()
		}
		c = &opened
	} else {
		opened := *before
		c = &opened
		if wakes {
			c.Wake(contact)
			if !tx.Settings().Policy(channel).Receives(contact.Owner) {
				c.Unassign()
			}
		}
		from, before := in.At.Second()
		if newest, err = tx.NewestMessage(c.ID, from, before); err != nil {
			return nil, nil, err
		}
	}
	m := &desk.Message{
		ID: a.newID(), ConversationID: c.ID, ChannelID: channel, Direction: desk.Inbound,
		ExternalID: in.ExternalID, Text: in.Text, TS: desk.InboundTime(in.At, newest.TS), ContactID: contact.ID,
		Kind: cmp.Or(in.Kind, desk.KindText), Extra: in.Extra,
	}
	if named != nil && named.ContactID == contact.ID {
		m.ReplyTo = named.ID
	}
	if in.Echo {
		m.Direction, m.Delivery = desk.Outbound, desk.Sent
	}
	if m.Media, err = a.Media.Keep(tx, m, in.Media); err != nil {
		return nil, nil, err
	}
	if c.Status == desk.StatusOpen || in.Kind != desk.KindReaction {
		c.Note(m)
	}
	by := byProvider(channel)
	if in.Echo {
		early, err := a.typed(tx, c, m)
		if err != nil {
			return nil, nil, err
		}
		return c, contact, tx.Append(append(messageEvents(c, before, m, by, now), early...)...)
	}
	policy, decision, err := a.answerByPolicy(tx, c, contact, m)
	if err != nil {
		return nil, nil, err
	}
	w, err := a.heard(tx, c, m, in)
	if err != nil {
		return nil, nil, err
	}
	if decision.Reply != "" {
		if err := a.autoReply(tx, policy, decision.Reply, m, in, w); err != nil {
			return nil, nil, err
		}
	}
	opener := by
	if decision.Assign && before != nil {
		opener = bySystem()
	}
	if err := tx.Append(append(conversationEvents(c, before, opener, now), m.Event(desk.MessageReceived, by, now))...); err != nil {
		return nil, nil, err
	}
	return c, contact, a.recordChoice(tx, p, desk.OptWord(in.Text), in.At, false, by)
}

// typed is for a message that the business typed in the phone app. It stores the message,
// and updates the state of the conversation. It returns the events of statuses that came
// before the message.
func (a *App) typed(tx store.Tx, c *desk.Conversation, m *desk.Message) ([]desk.Event, error) {
	early, err := a.takeEarly(tx, m)
	if err != nil {
		return nil, err
	}
	if err := tx.PutMessage(m); err != nil {
		return nil, err
	}
	if err := answers(tx, c, m); err != nil {
		return nil, err
	}
	if err := a.replyOfPerson(tx, c, m.TS); err != nil {
		return nil, err
	}
	return early, tx.PutConversation(c)
}

// heard is for an inbound message. It stores the message, updates the state of the
// conversation, and returns the window that the message opens.
func (a *App) heard(tx store.Tx, c *desk.Conversation, m *desk.Message, in provider.InboundMessage) (desk.Window, error) {
	c.Talk.Hear(m)
	if err := tx.PutConversation(c); err != nil {
		return desk.Window{}, err
	}
	if err := tx.PutMessage(m); err != nil {
		return desk.Window{}, err
	}
	w, err := tx.Window(m.ChannelID, m.ContactID)
	if err != nil {
		return desk.Window{}, err
	}
	was := w
	if w.Open(m.TS, in.Number, in.UserID); w == was {
		return w, nil
	}
	return w, tx.PutWindow(m.ChannelID, m.ContactID, w)
}

// reactsIn returns the conversation to which a reaction belongs: the conversation of the
// message that the person reacts to. If this message is not known, it is the person's open
// conversation, or else the newest one. It returns nil if the person has no conversation.
func (a *App) reactsIn(tx store.Tx, channel desk.ID, p person, named *desk.Message) (*desk.Conversation, error) {
	book, err := tx.Book(p.lookup())
	if err != nil {
		return nil, err
	}
	contact := p.known(book)
	switch {
	case contact == nil:
		return nil, nil
	case named != nil && named.ContactID == contact.ID:
		return tx.Conversation(named.ConversationID)
	}
	if c, err := tx.OpenConversation(channel, contact.ID); c != nil || err != nil {
		return c, err
	}
	return tx.NewestConversation(channel, contact.ID)
}

// sender finds or creates the contact of the person who wrote a message.
func (a *App) sender(tx store.Tx, p person, name string, actor desk.Actor, now desk.Time) (*desk.Contact, error) {
	book, err := tx.Book(p.lookup())
	if err != nil {
		return nil, err
	}
	contact := p.known(book)
	if contact != nil {
		if err := learn(book, contact, p.identities, actor, now); err != nil {
			return nil, err
		}
		if err := rename(book, contact.ID, name, actor, now); err != nil {
			return nil, err
		}
		return book.Contact(contact.ID), tx.Flush(book)
	}
	w := desk.ContactWrite{Name: desk.Field[string]{Set: name != "", Value: name}}
	if p.number != "" {
		w.Phone = desk.Field[string]{Set: true, Value: p.number}
		w.Sent = []desk.Identity{{Kind: desk.KindPhone, Value: p.number}}
	}
	// The field phone has the number already.
	own := slices.DeleteFunc(slices.Clone(p.identities), func(i desk.Identity) bool { return i.Claim().Kind == desk.KindPhone })
	w.Identities = desk.Field[[]desk.Identity]{Set: len(own) > 0, Value: own}
	w.Sent = append(w.Sent, own...)
	outcome, err := book.Apply(&desk.Op{Kind: desk.OpUpsert, Write: w}, actor, now, a.newID)
	if err != nil {
		return nil, err
	}
	return outcome.Contact, tx.Flush(book)
}
