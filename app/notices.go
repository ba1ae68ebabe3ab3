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
	taken, err := a.takeGroup(ctx, ws, list, happeningsAtOnce)
	if err == nil && taken == 0 { // by other processes
		return a.now() + 100, nil
	}
	if err == nil || desk.IsType(err, desk.Unavailable) {
		return a.now(), err // there may be more
	}
	for i, n := range list { // it is one of them, which must not hold up the others
		err = a.takeAlone(ctx, ws, list[i:i+1])
		if err != nil && !desk.IsType(err, desk.Unavailable) {
			err = a.passOver(ctx, ws, n, err)
		}
		if err != nil {
			break
		}
	}
	return a.now(), err
}

// takeAlone takes in a notice by itself. Of a webhook, when that fails, one happening only:
// so that whatever can't be taken in is in the end alone.
func (a *App) takeAlone(ctx context.Context, ws desk.ID, one []Notice) error {
	_, err := a.takeGroup(ctx, ws, one, happeningsAtOnce)
	if err != nil && one[0].Webhook != 0 && !desk.IsType(err, desk.Unavailable) {
		_, err = a.takeGroup(ctx, ws, one, 1)
	}
	return err
}

// passOver puts off a notice that can't be taken in. Of a webhook it leaves out the one
// happening: the body is kept for days.
func (a *App) passOver(ctx context.Context, ws desk.ID, n Notice, why error) error {
	return a.inTx(ctx, ws, func(tx Tx, then *afterwards) error {
		taken, err := tx.TakeNotices([]Notice{n})
		if err != nil || len(taken) == 0 {
			return err // another process goes on with it
		}
		later := taken[0]
		if n.Webhook == 0 {
			later.Due = a.now() + postponed
			*then = append(*then, func() {
				a.log.ErrorContext(ctx, "a notice can't be taken in; it will be tried again in an hour", "workspace_id", ws, "notice_id", n.ID, "err", why)
			})
		} else if later.Skip == n.Skip {
			later.Skip++
			*then = append(*then, func() {
				a.log.ErrorContext(ctx, "a part of a webhook can't be taken in, and is left out", "workspace_id", ws, "channel_id", n.Channel, "webhook_id", n.ID, "part", n.Skip, "err", why)
			})
		}
		return tx.PutNotice(later)
	})
}

// postponed is how long a notice waits that could not be taken in, in milliseconds.
const postponed = desk.Time(60 * 60 * 1000)

// happeningsAtOnce is how many happenings of a webhook share a transaction: a webhook may
// tell a thousand, and requests wait.
const happeningsAtOnce = 50

// takeGroup takes in those of the notices that no other process has, of each webhook the
// next few happenings, and returns how many notices these were.
func (a *App) takeGroup(ctx context.Context, ws desk.ID, list []Notice, atOnce int) (taken int, err error) {
	err = a.inTx(ctx, ws, func(tx Tx, then *afterwards) error {
		ours, err := tx.TakeNotices(list)
		taken = len(ours)
		for i := 0; err == nil && i < len(ours); i++ {
			err = a.takeNotice(ctx, tx, ours[i], atOnce, then)
		}
		return err
	})
	return taken, err
}

func (a *App) takeNotice(ctx context.Context, tx Tx, n Notice, atOnce int, then *afterwards) error {
	if n.Webhook != 0 {
		body, err := tx.Webhook(n)
		if err != nil || body == nil {
			return err
		}
		n.Body = body
	}
	channel := tx.Settings().Channel(n.Channel)
	if channel == nil {
		return nil // channels are never removed
	}
	told, rest, err := a.providers[channel.Kind].Read(n)
	if err != nil {
		*then = append(*then, func() {
			a.log.ErrorContext(ctx, "a notice can't be read, and is dropped", "channel_id", n.Channel, "notice_id", n.ID, "err", err)
		})
		return nil
	}
	if n.Webhook != 0 {
		told, rest = nextPart(n, told, atOnce)
		if reader, ok := a.providers[channel.Kind].(WebhookReader); ok && rest == nil {
			if err := tx.PutWebhookPeople(n, reader.People(n.Body)); err != nil {
				return err
			}
		}
	}
	for _, h := range told {
		if err := a.takeHappening(ctx, tx, channel, h, then); err != nil {
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

// nextPart returns the next happenings of a webhook, and the notice of those after them,
// nil when there are none.
func nextPart(n Notice, told []Happening, atOnce int) ([]Happening, *Notice) {
	rest := n
	rest.Body, rest.Skip = nil, n.Skip+atOnce
	if rest.Skip < len(told) {
		return told[n.Skip:rest.Skip], &rest
	}
	return told[min(n.Skip, len(told)):], nil
}

// takeHappening takes in one thing that a provider told a channel. It may concern another
// channel: several numbers share the address of their webhooks.
func (a *App) takeHappening(ctx context.Context, tx Tx, channel *desk.Channel, h Happening, then *afterwards) error {
	ws := tx.Settings().ID
	switch {
	case h.Template != nil:
		*then = append(*then, func() { a.templateNews(ctx, ws, channel.Kind, h.Business, *h.Template) })
		return nil
	case h.Standing != nil:
		*then = append(*then, func() { a.standing(ctx, ws, channel.Kind, h.Business, *h.Standing) })
		return nil
	case h.Wish != nil:
		return a.wish(tx, ws, h.Wish)
	case h.Move != nil:
		return a.move(tx, h.Move)
	}
	if h.Channel != "" && h.Channel != channel.ExternalID {
		if channel = tx.Settings().ChannelOf(channel.Kind, h.Channel); channel == nil {
			return nil // a number that this workspace has not connected
		}
	}
	if h.Status != nil {
		return a.takeStatus(ctx, tx, channel.ID, *h.Status, then)
	}
	if h.Message != nil {
		_, err := a.receive(tx, channel.ID, *h.Message)
		return err
	}
	return nil
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
// notices when they are due, marks attempts whose process died, fetches templates, and
// forgets what has expired. It never sends. It is called once, and once it returns nothing uses the
// store any more, if no call does.
func (a *App) Run(ctx context.Context) {
	defer a.insisting.Wait()
	defer close(a.stopped)
	a.insisting.Go(func() { a.runSync(ctx) })
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

// webhookGroup is the same for webhooks, which may be long.
const webhookGroup = 50

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

// Forget deletes attempts and their keys when their life is over, early statuses that
// nothing came of, bodies of old webhooks, and what held sends back.
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
		for n := webhookGroup; n == webhookGroup; {
			if n, err = a.store.ForgetWebhooks(ctx, w.ID, a.now()-keepWebhook, webhookGroup); err != nil {
				return err
			}
		}
		err := a.store.InTx(ctx, w.ID, func(tx Tx) error { return tx.DropStatuses(a.now() - keepStatus) })
		if err == nil {
			err = a.store.ForgetPace(ctx, w.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
