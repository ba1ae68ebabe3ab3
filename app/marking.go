package app

import (
	"context"
	"math"

	"parley/desk"
	"parley/store"
)

// MarkRead marks the messages of a conversation as read for the whole team, up to a message
// (zero: to the newest), and returns the new state of the conversation. If receipt is set, a
// read receipt is sent to the provider in the background. It returns NotFound if there is no
// such conversation, or no such message in it.
func (a *App) MarkRead(ctx context.Context, p desk.Principal, id, message desk.ID, receipt bool) (*desk.State, error) {
	err := a.inTx(ctx, p.Workspace(), func(tx store.Tx, then *afterwards) error {
		if err := p.Still(tx.Settings(), desk.ConversationsWrite, a.now()); err != nil {
			return err
		}
		c, err := tx.Conversation(id)
		if err != nil {
			return err
		}
		if c == nil {
			return desk.NoConversation()
		}
		var upTo desk.MessagePlace
		if message.IsZero() {
			upTo, err = tx.NewestMessage(id, math.MinInt64, math.MaxInt64)
		} else {
			var m *desk.Message
			if m, err = tx.Message(id, message); err == nil && m == nil {
				err = desk.NoMessage()
			}
			if m != nil {
				upTo = m.Place()
			}
		}
		if err != nil {
			return err
		}
		before := *c
		if err := a.markUpTo(tx, c, upTo); err != nil || c.Talk == before.Talk {
			return err
		}
		if err := tx.PutConversation(c); err != nil || c.Talk.Unread == before.Talk.Unread {
			return err
		}
		if receipt {
			if err := a.receiptFor(ctx, tx, c, upTo, then); err != nil {
				return err
			}
		}
		return tx.Append(desk.Event{Type: desk.ConversationUpdated, Subject: c.ID, Contact: c.ContactID, Actor: p.Actor, At: a.now(), Changed: []string{"unread"}})
	})
	if err != nil {
		return nil, err
	}
	return a.State(ctx, p, id)
}

// markUpTo marks the messages of a conversation up to a position as read.
func (a *App) markUpTo(tx store.Tx, c *desk.Conversation, upTo desk.MessagePlace) error {
	if c.Talk.Unread > 0 {
		n, err := tx.MarkRead(c.ID, upTo, c.Talk.Unread)
		if err != nil {
			return err
		}
		if c.Talk.Unread -= n; c.Talk.Unread > 0 {
			// Some are newer. Others may have been deleted because of their age: they are older
			// than all that exist, so they are marked, too.
			if c.Talk.Unread, err = tx.CountUnread(c.ID, upTo); err != nil {
				return err
			}
		}
	}
	if upTo.After(c.Talk.Read) {
		c.Talk.Read = upTo
	}
	return nil
}

// markAll marks all messages of a conversation as read, because it was answered.
func (a *App) markAll(tx store.Tx, c *desk.Conversation) error {
	newest, err := tx.NewestMessage(c.ID, math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	return a.markUpTo(tx, c, newest)
}

// replyOfPerson records that a person has replied in a conversation: it marks all messages
// as read, and stores the time, so that no automatic reply follows soon.
func (a *App) replyOfPerson(tx store.Tx, c *desk.Conversation, at desk.Time) error {
	if err := a.markAll(tx, c); err != nil {
		return err
	}
	w, err := tx.Window(c.ChannelID, c.ContactID)
	if err != nil {
		return err
	}
	w.Replied(at)
	return tx.PutWindow(c.ChannelID, c.ContactID, w)
}
