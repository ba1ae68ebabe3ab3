package app

import (
	"context"
	"fmt"
	"math"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
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
		c.Talk.Unread -= n
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

// receiptWaits are the waits between the tries of a receipt.
var receiptWaits = [...]time.Duration{time.Second, 5 * time.Second}

// receiptFor sends, after the transaction, a read receipt for the person's newest message up
// to a position. The provider applies it to all earlier messages, too.
func (a *App) receiptFor(ctx context.Context, tx store.Tx, c *desk.Conversation, upTo desk.MessagePlace, then *afterwards) error {
	channel := tx.Settings().Channel(c.ChannelID)
	talker, ok := a.providers[channel.Kind].(provider.Talker)
	if !ok || !channel.Enabled {
		return nil
	}
	m, err := tx.NewestInbound(c.ID, upTo)
	if err != nil || m == nil || m.TS < a.now()-receiptLife {
		return err
	}
	ws := tx.Settings().ID
	*then = append(*then, func() { a.sendReceipt(context.WithoutCancel(ctx), ws, channel, talker, m.ExternalID) })
	return nil
}

func (a *App) sendReceipt(ctx context.Context, ws desk.ID, channel *desk.Channel, talker provider.Talker, externalID string) {
	if !a.receipts.enter(ws) {
		return
	}
	a.retries.Go(func() {
		defer a.receipts.leave(ws)
		at, err := a.access(ws, channel)
		for try := 0; err == nil; try++ {
			if err = a.tellRead(ctx, talker, at, externalID); err == nil || try == len(receiptWaits) {
				break
			}
			select {
			case <-time.After(receiptWaits[try]):
				err = nil
			case <-a.stopped:
				return
			}
		}
		if err != nil {
			a.log.InfoContext(ctx, "the provider was not told that a message was read", "workspace_id", ws, "channel_id", channel.ID, "err", err)
		}
	})
}

func (a *App) tellRead(ctx context.Context, talker provider.Talker, at provider.Access, externalID string) (err error) {
	defer steps.Caught("provider", &err)
	ctx, cancel := context.WithTimeout(ctx, a.bounds.Provider)
	defer cancel()
	if err = talker.MarkRead(ctx, at, externalID); err != nil {
		return fmt.Errorf("read receipt: %w", err)
	}
	return nil
}
