package broadcast

import (
	"context"
	"errors"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// Follow gives the row of an attempt the attempt's outcome, in the transaction that stores it.
// died tells that the attempt is in doubt because its process ended.
func (a *Service) Follow(tx store.Tx, at *desk.Attempt, died bool) error {
	if at.Broadcast.IsZero() {
		return nil
	}
	state, effect := desk.BroadcastRunning, desk.NoEffect
	if at.Phase == desk.Refused {
		b, err := tx.BroadcastToClaim(at.Broadcast)
		if err != nil {
			return err
		}
		if b != nil {
			state = b.State
		}
		if channel := tx.Settings().Channel(at.Plan.Channel); channel != nil && at.Refusal != nil && at.Refusal.Failure != nil {
			effect = a.Machine.EffectOf(channel, at.Refusal.Failure)
		}
	}
	row, err := tx.BroadcastRow(at.Broadcast, at.Row())
	if err != nil || row == nil {
		return err
	}
	change := store.Change(row)
	if row.Data.Died = died; !row.Follow(at, effect, state, tx.Now()) {
		return nil
	}
	return tx.PutRows(at.Broadcast, []store.RowChange{change})
}

// tidy cancels or deletes rows of a broadcast that has ended or was deleted.
func (a *Service) tidy(ctx context.Context, d *drive, b *desk.Broadcast) error {
	n := 0
	return a.Store.InTx(ctx, d.ws, func(tx store.Tx) error {
		now, err := tx.Broadcast(b.ID)
		if err != nil || now == nil || now.State != b.State {
			return err
		}
		cancelled := 0
		switch b.State {
		case desk.BroadcastDeleted:
			if n, err = tx.DropRows(b.ID, false, desk.BroadcastSkips); err != nil {
				return err
			}
		case desk.BroadcastCancelled:
			if cancelled, err = tx.CancelRows(b.ID, now.EndedAt, desk.BroadcastSkips); err != nil {
				return err
			}
		}
		numbers, err := tx.DropNumbers(b.ID, desk.BroadcastSkips)
		if err != nil || n+cancelled+numbers > 0 {
			return err
		}
		if b.State == desk.BroadcastDeleted {
			return tx.DropBroadcast(b.ID)
		}
		now.Untidy = false
		return tx.PutBroadcast(now)
	})
}

// ForgetRows deletes the rows of broadcasts that ended longer ago than keep. Their counts
// stay.
func (a *Service) ForgetRows(ctx context.Context, keep time.Duration) error {
	workspaces, err := a.Store.Workspaces(ctx)
	if err != nil {
		return err
	}
	before := a.Now() - desk.Time(keep.Milliseconds())
	return steps.Abreast(ctx, workspaces, func(w desk.Workspace) error {
		ids, err := a.Store.EndedBroadcasts(ctx, w.ID, before, lookStep)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := a.forgetRows(ctx, w.ID, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *Service) forgetRows(ctx context.Context, ws, id desk.ID) error {
	return steps.InGroups(ctx, desk.BroadcastSkips, func(limit int) (n int, err error) {
		err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
			b, err := tx.Broadcast(id)
			if err != nil || b == nil || !b.State.Ended() {
				return err
			}
			if n, err = tx.DropRows(id, false, limit); err != nil || n == limit {
				return err
			}
			b.Rows = 0
			return tx.PutBroadcast(b)
		})
		return n, err
	})
}

// StopAll pauses all broadcasts that run or are scheduled: the data come from a backup or from
// another database, and do not tell what was sent later.
func StopAll(ctx context.Context, s store.Store, at time.Time) error {
	workspaces, err := s.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		if err := whileAny(ctx, s, w.ID, func(list []*desk.Broadcast) error { return stop(ctx, s, w.ID, list, desk.TimeOf(at)) }); err != nil {
			return err
		}
	}
	return nil
}

func stop(ctx context.Context, s store.Store, ws desk.ID, list []*desk.Broadcast, now desk.Time) error {
	return s.InTx(ctx, ws, func(tx store.Tx) error {
		for _, listed := range list {
			b, err := tx.Broadcast(listed.ID)
			if err != nil {
				return err
			}
			before := *b
			b.Pause(desk.PausedStopped)
			if err := put(tx, &before, b, desk.Actor{Kind: desk.BySystem}, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// deliveries are the events that change how far a row's message got.
var deliveries = []desk.EventType{desk.MessageDelivered, desk.MessageRead, desk.MessageFailed}

const (
	followEvery = 500 * time.Millisecond
	followGroup = 300

	// A place may be this far behind without being stored, if no row has changed.
	far = 1000
)

// FollowDeliveries gives rows the delivery statuses of their messages, until ctx ends.
func (a *Service) FollowDeliveries(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := a.followAll(ctx); err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "follow deliveries of broadcasts", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (a *Service) followAll(ctx context.Context) error {
	list, err := a.news.Workspaces(ctx, a.Store)
	if err != nil || len(list) == 0 {
		a.behind.Store(0)
		return err
	}
	places, err := a.Store.BroadcastPlaces(ctx, list)
	if err != nil {
		a.news.Add(list, false)
		return err
	}
	var failed []error
	behind := int64(0)
	for ws, place := range places {
		left, err := a.follow(ctx, ws, place)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			failed = append(failed, err)
			left = max(left, 1)
		}
		if left > 0 {
			behind += left
			a.news.Add([]desk.ID{ws}, false)
		}
	}
	a.behind.Store(behind)
	return errors.Join(failed...)
}

// follow takes in a group of events of a workspace, and returns how many follow.
func (a *Service) follow(ctx context.Context, ws desk.ID, place desk.EventPlace) (left int64, err error) {
	q := store.EventQuery{From: store.FromPlace, After: place, Limit: followGroup}
	if seen := a.seen[ws]; seen.Seq > place.Seq {
		q.After = seen
	}
	which := func(*desk.Settings) ([]desk.EventType, error) { return deliveries, nil }
	page, err := a.Store.Events(ctx, ws, q, which)
	if err == nil && page.Expired != "" && q.After != place { // the database was restored
		q.After = place
		page, err = a.Store.Events(ctx, ws, q, which)
	}
	if err == nil && page.Expired != "" {
		q.From = store.FromOldest
		page, err = a.Store.Events(ctx, ws, q, which)
	}
	if err != nil {
		return 0, err
	}
	left = page.Newest.Seq - page.Next.Seq
	var messages []desk.ID
	for i := range page.Events {
		if m := page.Messages[page.Events[i].Subject]; m != nil && m.Author.Type == desk.AuthorBroadcast {
			messages = append(messages, m.ID)
		}
	}
	if len(messages) == 0 && page.Next.Seq-place.Seq < far {
		a.seen[ws] = page.Next
		return left, nil // it is not worth a write
	}
	found, err := a.Store.RowsOfMessages(ctx, ws, messages)
	if err != nil {
		return left, err
	}
	return left, a.Store.InTx(ctx, ws, func(tx store.Tx) error {
		moved, err := tx.MoveBroadcasts(place, page.Next)
		if err != nil || !moved {
			return err // another process was faster
		}
		for _, f := range found {
			row, err := tx.BroadcastRow(f.Broadcast, f.ID)
			if err != nil {
				return err
			}
			if row == nil || row.Message != f.Message {
				continue
			}
			change := store.Change(row)
			if m := page.Messages[row.Message]; m == nil || !row.Reach(m, a.Now()) {
				continue
			}
			if err := tx.PutRows(row.Broadcast, []store.RowChange{change}); err != nil {
				return err
			}
		}
		return nil
	})
}
