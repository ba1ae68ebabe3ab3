package app

import (
	"context"
	"fmt"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// receiptLife is how old a message may be for its receipt, in milliseconds.
const receiptLife = desk.Time(30 * 24 * 60 * 60 * 1000)

// receiptWaits are the waits between the tries of a receipt.
var receiptWaits = [...]time.Duration{time.Second, 5 * time.Second}

// receiptFor sends a read receipt to the provider, after the transaction. The receipt is
// for the person's newest message up to a position. The provider then counts all earlier
// messages as read also.
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
