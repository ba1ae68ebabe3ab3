package broadcast

import (
	"context"

	"parley/desk"
	"parley/store"
)

// update changes a broadcast that is in a state, and that this process drives, and stores its
// event.
func (a *Service) update(ctx context.Context, d *drive, id desk.ID, in desk.BroadcastState, do func(tx store.Tx, b *desk.Broadcast) error) error {
	var was, now desk.Broadcast
	err := a.Store.InTx(ctx, d.ws, func(tx store.Tx) error {
		_, ours, err := tx.Leased(desk.BroadcastTask, a.holder())
		if err != nil || !ours {
			return err
		}
		b, err := tx.Broadcast(id)
		if err != nil || b == nil || b.State != in {
			return err
		}
		before := *b
		if err := do(tx, b); err != nil {
			return err
		}
		was, now = before, *b
		if b.Changes(&before) == nil {
			if b.DrivenAt == before.DrivenAt && b.Untidy == before.Untidy {
				return nil
			}
			return tx.PutBroadcast(b)
		}
		return put(tx, &before, b, desk.Actor{Kind: desk.BySystem}, a.Now())
	})
	if err == nil && now.State == desk.BroadcastPaused && was.State != now.State {
		a.warnPaused(ctx, d.ws, id, now.Reason)
	}
	return err
}

// warnPaused logs that a broadcast has paused itself.
func (a *Service) warnPaused(ctx context.Context, ws, id desk.ID, why desk.BroadcastReason) {
	a.Log.WarnContext(ctx, "a broadcast was paused", "workspace_id", ws, "broadcast_id", id, "reason", string(why))
}

// pause pauses a broadcast that runs.
func (a *Service) pause(ctx context.Context, d *drive, b *desk.Broadcast, why desk.BroadcastReason) error {
	return a.update(ctx, d, b.ID, desk.BroadcastRunning, func(_ store.Tx, b *desk.Broadcast) error {
		b.Pause(why)
		return nil
	})
}

// waits notes what a broadcast waits for; "": for nothing.
func (a *Service) waits(ctx context.Context, d *drive, b *desk.Broadcast, why desk.BroadcastReason, until desk.Time) error {
	if b.Reason == why && b.ResumesAt == until {
		return nil
	}
	return a.update(ctx, d, b.ID, desk.BroadcastRunning, func(_ store.Tx, b *desk.Broadcast) error {
		b.Reason, b.ResumesAt = why, until
		return nil
	})
}
