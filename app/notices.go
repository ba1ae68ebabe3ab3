package app

import (
	"context"
	"sync"
	"time"

	"parley/desk"
)

// noticeGroup is how many notices share a transaction: few, since requests wait for it.
const noticeGroup = 10

// Keep stores a provider's notice, to be taken in when it is due.
func (a *App) Keep(ctx context.Context, ws desk.ID, n Notice) error {
	err := a.store.PutNotice(ctx, ws, n)
	if err == nil {
		a.agenda.note(ws, n.Due)
	}
	return err
}

// takeNotices takes in up to noticeGroup notices of a workspace that are due, and
// returns when the next one is, 0 for none.
func (a *App) takeNotices(ctx context.Context, ws desk.ID) (next desk.Time, err error) {
	list, next, err := a.store.Notices(ctx, ws, a.now(), noticeGroup)
	if err != nil || len(list) == 0 {
		return next, err
	}
	taken, err := a.takeGroup(ctx, ws, list)
	if err == nil && taken == 0 { // by other processes
		return a.now() + 100, nil
	}
	if err == nil || desk.IsType(err, desk.Unavailable) {
		return a.now(), err // there may be more
	}
	for i, n := range list { // it is one of them, which must not hold up the others
		_, err = a.takeGroup(ctx, ws, list[i:i+1])
		if err != nil && !desk.IsType(err, desk.Unavailable) {
			a.log.ErrorContext(ctx, "a notice can't be taken in; it will be tried again in an hour", "workspace_id", ws, "notice_id", n.ID, "err", err)
			err = a.store.InTx(ctx, ws, func(tx Tx) error {
				taken, err := tx.TakeNotices(list[i : i+1])
				if err != nil || len(taken) == 0 {
					return err
				}
				later := n
				later.Due = a.now() + postponed
				return tx.PutNotice(later)
			})
		}
		if err != nil {
			break
		}
	}
	return a.now(), err
}

// postponed is how long a notice waits that could not be taken in, in milliseconds.
const postponed = desk.Time(60 * 60 * 1000)

// takeGroup takes in those of the notices that no other process has, and returns how
// many these were.
func (a *App) takeGroup(ctx context.Context, ws desk.ID, list []Notice) (taken int, err error) {
	err = a.inTx(ctx, ws, func(tx Tx, then *afterwards) error {
		ours, err := tx.TakeNotices(list)
		taken = len(ours)
		for i := 0; err == nil && i < len(ours); i++ {
			err = a.takeNotice(ctx, tx, ours[i], then)
		}
		return err
	})
	return taken, err
}

func (a *App) takeNotice(ctx context.Context, tx Tx, n Notice, then *afterwards) error {
	channel := tx.Settings().Channel(n.Channel)
	told, rest, err := a.providers[channel.Kind].Read(n)
	if err != nil {
		*then = append(*then, func() {
			a.log.ErrorContext(ctx, "a notice can't be read, and is dropped", "channel_id", n.Channel, "notice_id", n.ID, "err", err)
		})
		return nil
	}
	for _, s := range told.Statuses {
		if err := a.takeStatus(ctx, tx, n.Channel, s, then); err != nil {
			return err
		}
	}
	if rest == nil {
		return nil
	}
	ws := tx.Settings().ID
	*then = append(*then, func() { a.agenda.note(ws, rest.Due) })
	return tx.PutNotice(*rest)
}

// takeStatus moves a message forward. A status that carries the id of an unsettled
// attempt proves that the provider took it, and finishes it; one of a message that is
// not known yet is kept for a day.
func (a *App) takeStatus(ctx context.Context, tx Tx, channel desk.ID, n desk.StatusNotice, then *afterwards) error {
	m, err := tx.MessageBy(channel, n.ExternalID)
	if err != nil {
		return err
	}
	if m == nil && !n.Attempt.IsZero() { // the news that it was taken, perhaps
		at, err := tx.Attempt(n.Attempt)
		if err != nil {
			return err
		}
		if at != nil && at.Plan.Channel == channel {
			if err := a.accept(ctx, tx, at, n.ExternalID, at.CreatedAt, a.now(), then); err != nil {
				return err
			}
			if at.Erased {
				return nil // no rows: nothing will ever ask for this status
			}
			if m, err = tx.MessageBy(channel, n.ExternalID); err != nil {
				return err
			}
		}
	}
	if m == nil {
		return tx.KeepStatus(channel, n)
	}
	if m.Direction != desk.Outbound || !m.Reach(n.Delivery, n.Failure) {
		return nil
	}
	if err := tx.PutMessage(m); err != nil {
		return err
	}
	return tx.Append(desk.Event{Kind: desk.MessageUpdated, Subject: m.ID, At: a.now(), Changed: []string{"delivery_status"}})
}

// An agenda knows which workspaces have notices, and when the first is due.
type agenda struct {
	mu      sync.Mutex
	due     map[desk.ID]desk.Time
	changed chan struct{} // has an element when due has
}

func (g *agenda) note(ws desk.ID, due desk.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.due == nil {
		g.due = map[desk.ID]desk.Time{}
	}
	if at, ok := g.due[ws]; ok && at <= due {
		return
	}
	g.due[ws] = due
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// take removes and returns the workspaces that are due at now, and when the next is.
func (g *agenda) take(now desk.Time) (list []desk.ID, next desk.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ws, due := range g.due {
		switch {
		case due <= now:
			list = append(list, ws)
			delete(g.due, ws)
		case next == 0 || due < next:
			next = due
		}
	}
	return list, next
}

// How often the background work that has no notice of its own is done.
const (
	sweepEvery  = time.Second
	lookEvery   = 5 * time.Second                // for notices that other processes have kept
	forgetEvery = time.Hour                      // on one node of many
	keepStatus  = desk.Time(24 * 60 * 60 * 1000) // how long an early status is kept, in milliseconds
)

// Run does the work that no request waits for, until the context ends: it takes in
// notices when they are due, marks attempts whose process died, and forgets what has
// expired. It never sends. It is called once, and once it returns nothing uses the
// store any more, if no call does.
func (a *App) Run(ctx context.Context) {
	defer a.insisting.Wait()
	defer close(a.stopped)
	sweep, look, forget := time.NewTicker(sweepEvery), time.NewTicker(lookEvery), time.NewTicker(forgetEvery)
	defer sweep.Stop()
	defer look.Stop()
	defer forget.Stop()
	a.attempt(ctx, "look for notices", a.LookForNotices)
	a.attempt(ctx, "sweep", a.Sweep)
	a.attempt(ctx, "forget", a.forgetAlone)
	for {
		list, next := a.agenda.take(a.now())
		for _, ws := range list {
			a.attempt(ctx, "take notices", func(ctx context.Context) error {
				due, err := a.takeNotices(ctx, ws)
				if err != nil {
					due = a.now() + 1000 // the database is away
				}
				if due != 0 {
					a.agenda.note(ws, due)
				}
				return err
			})
		}
		wait := time.Hour
		switch {
		case len(list) > 0: // look again at once, but not before the other work had its turn
			wait = 0
		case next != 0:
			wait = time.Duration(max(0, next-a.now())) * time.Millisecond
		}
		due := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			return
		case <-a.agenda.changed:
		case <-due.C:
		case <-sweep.C:
			a.attempt(ctx, "sweep", a.Sweep)
		case <-look.C:
			a.attempt(ctx, "look for notices", a.LookForNotices)
		case <-forget.C:
			a.attempt(ctx, "forget", a.forgetAlone)
		}
		due.Stop()
	}
}

func (a *App) attempt(ctx context.Context, what string, do func(context.Context) error) {
	if err := do(ctx); err != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "background work failed, and will be tried again", "work", what, "err", err)
	}
}

// LookForNotices puts the notices on the agenda that other processes have kept.
func (a *App) LookForNotices(ctx context.Context) error {
	due, err := a.store.NoticesDue(ctx)
	for ws, at := range due {
		a.agenda.note(ws, at)
	}
	return err
}

// sweepGroup is how many records one step of the background work takes.
const sweepGroup = 500

// Sweep marks the attempts as in doubt whose process must have died on the way. It
// never sends anything again.
func (a *App) Sweep(ctx context.Context) error {
	margin := desk.Time(a.bounds.Margin.Milliseconds())
	lapsed, err := a.store.Lapsed(ctx, margin, sweepGroup)
	if err != nil {
		return err
	}
	for _, l := range lapsed {
		if _, err := a.doubt(ctx, l.Workspace, l.ID); err != nil {
			return err
		}
		a.log.WarnContext(ctx, "the outcome of a send is unknown: its process ended on the way", "workspace_id", l.Workspace, "attempt_id", l.ID)
	}
	return nil
}

// forgetAlone forgets unless another process has done so within the hour.
func (a *App) forgetAlone(ctx context.Context) error {
	ours, err := a.store.Lease(ctx, desk.ID{}, "forget", desk.Time(forgetEvery.Milliseconds())*9/10)
	if err != nil || !ours {
		return err
	}
	return a.Forget(ctx)
}

// Forget deletes attempts and their keys when their life is over, and early statuses
// that nothing came of.
func (a *App) Forget(ctx context.Context) error {
	workspaces, err := a.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		for n := sweepGroup; n == sweepGroup; {
			if n, err = a.store.ForgetAttempts(ctx, w.ID, a.now()-desk.KeyLife, sweepGroup); err != nil {
				return err
			}
		}
		err := a.store.InTx(ctx, w.ID, func(tx Tx) error { return tx.DropStatuses(a.now() - keepStatus) })
		if err != nil {
			return err
		}
	}
	return nil
}
