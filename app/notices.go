package app

import (
	"context"
	"errors"
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
	if err := a.readWebhooks(ctx, ws, list); err != nil {
		return a.now(), err
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

// A partError is why one thing that a notice tells could not be taken in.
type partError struct{ error }

func (e *partError) Unwrap() error { return e.error }

// passOver puts off a notice that can't be taken in. Of a webhook it leaves out the one
// happening, if it is that: the body is kept for days.
func (a *App) passOver(ctx context.Context, ws desk.ID, n Notice, why error) error {
	return a.inTx(ctx, ws, func(tx Tx, then *afterwards) error {
		taken, err := tx.TakeNotices([]Notice{n})
		if err != nil || len(taken) == 0 {
			return err // another process goes on with it
		}
		later := taken[0]
		var part *partError
		if n.Webhook == 0 || !errors.As(why, &part) {
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

// takeGroup takes in those of the notices that no other process has, up to so many
// happenings, and returns how many notices these were. What is left of them stays kept.
func (a *App) takeGroup(ctx context.Context, ws desk.ID, list []Notice, atOnce int) (taken int, err error) {
	err = a.inTx(ctx, ws, func(tx Tx, then *afterwards) error {
		ours, err := tx.TakeNotices(list)
		taken = len(ours)
		for left := atOnce; err == nil && len(ours) > 0; ours = ours[1:] {
			if left <= 0 {
				err = tx.PutNotice(ours[0])
				continue
			}
			var n int
			n, err = a.takeNotice(ctx, tx, ours[0], left, then)
			left -= n
		}
		return err
	})
	return taken, err
}

// takeNotice takes in a notice, of a webhook the next happenings, and returns how many. A
// bug in what reads it is an error like others: it must not end the process, again and again.
func (a *App) takeNotice(ctx context.Context, tx Tx, n Notice, atOnce int, then *afterwards) (taken int, err error) {
	defer caught("notice", &err)
	channel := tx.Settings().Channel(n.Channel)
	if channel == nil {
		return 0, nil // channels are never removed
	}
	var told []Happening
	var rest *Notice
	var people []string
	if n.Webhook != 0 {
		told, rest, people, err = a.nextPart(tx, channel, n, atOnce)
	} else {
		told, rest, err = a.providers[channel.Kind].Read(n)
	}
	var unread *unreadError
	switch {
	case n.Webhook != 0 && err != nil && !errors.As(err, &unread):
		return 0, err
	case err != nil:
		*then = append(*then, func() {
			a.log.ErrorContext(ctx, "a notice can't be read, and is dropped", "channel_id", n.Channel, "notice_id", n.ID, "err", err)
		})
		return 0, nil
	}
	for _, h := range told {
		if err := a.takeHappening(ctx, tx, channel, h, then); err != nil {
			return 0, err
		}
	}
	switch {
	case rest != nil:
		ws := tx.Settings().ID
		*then = append(*then, func() { a.agenda.note(ws, rest.Due) })
		err = tx.PutNotice(*rest)
	case n.Webhook != 0:
		err = keepBody(tx, n, people)
	}
	return len(told), err
}

// A reading is what a webhook tells. It is kept between the transactions that take it in,
// since a body may be large.
type reading struct {
	told   []Happening
	people []string
	err    error
}

// readings are those of the webhooks that are being taken in.
type readings struct {
	mu   sync.Mutex
	byID map[desk.ID]*reading
}

// maxReadings bounds how many are kept. Each can be had again.
const maxReadings = 4 * noticeGroup

func (r *readings) get(id desk.ID) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *readings) put(id desk.ID, one *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil || len(r.byID) >= maxReadings {
		r.byID = map[desk.ID]*reading{}
	}
	r.byID[id] = one
}

func (r *readings) drop(id desk.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// An unreadError is that a webhook's body is in no form that its provider has.
type unreadError struct{ error }

// readWebhooks reads the bodies of webhooks among the notices, before the transaction that
// takes them in: others wait for that.
func (a *App) readWebhooks(ctx context.Context, ws desk.ID, list []Notice) error {
	var unread []Notice
	for _, n := range list {
		if n.Webhook != 0 && a.readings.get(n.ID) == nil {
			unread = append(unread, n)
		}
	}
	if unread == nil {
		return nil
	}
	var settings *desk.Settings
	err := a.store.InTx(ctx, ws, func(tx Tx) (err error) {
		settings = tx.Settings()
		for i := range unread {
			if unread[i].Body, err = tx.Webhook(unread[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, n := range unread {
		if c := settings.Channel(n.Channel); c != nil {
			_, _ = a.read(c, n) // else the transaction meets the bug, and puts the notice off
		}
	}
	return nil
}

// read reads a webhook's body; a bug in that leaves it unread.
func (a *App) read(channel *desk.Channel, n Notice) (one *reading, err error) {
	defer caught("notice", &err)
	one = &reading{}
	if n.Body != nil { // else it was forgotten
		one.told, _, one.err = a.providers[channel.Kind].Read(n)
		if reader, ok := a.providers[channel.Kind].(WebhookReader); ok && one.err == nil {
			one.people = reader.People(n.Body)
		}
	}
	a.readings.put(n.ID, one)
	return one, nil
}

// nextPart returns the next happenings of a webhook, and the notice of those after them,
// or nil and whom the webhook tells of.
func (a *App) nextPart(tx Tx, channel *desk.Channel, n Notice, atOnce int) (told []Happening, rest *Notice, people []string, err error) {
	one := a.readings.get(n.ID)
	if one == nil {
		if n.Body, err = tx.Webhook(n); err != nil {
			return nil, nil, nil, err
		}
		if one, err = a.read(channel, n); err != nil {
			return nil, nil, nil, err
		}
	}
	if one.err != nil {
		a.readings.drop(n.ID)
		return nil, nil, nil, &unreadError{one.err}
	}
	later := n
	later.Body, later.Skip = nil, n.Skip+atOnce
	if later.Skip < len(one.told) {
		return one.told[n.Skip:later.Skip], &later, nil, nil
	}
	a.readings.drop(n.ID)
	return one.told[min(n.Skip, len(one.told)):], nil, one.people, nil
}

// keepBody keeps the body of a webhook that was taken in, to be erased with any of the
// people whom it names. When one of them is no contact, nobody's erasure would reach it,
// and perhaps they were erased just now: then only the time is kept.
func keepBody(tx Tx, n Notice, people []string) error {
	find := make([]desk.Identity, len(people))
	for i, handle := range people {
		find[i] = desk.Identity{Kind: desk.KindWhatsApp, Value: handle}
		if handle[0] < '0' || handle[0] > '9' {
			find[i].Kind = desk.KindWhatsAppUser
		}
	}
	book, err := tx.Book(&desk.Op{Kind: desk.OpDelete, Find: find})
	if err != nil {
		return err
	}
	for _, i := range find {
		if book.Holder(i.Claim()) == nil {
			n.Body = nil
			return tx.PutWebhook(n)
		}
	}
	return tx.PutWebhookPeople(n, people)
}

// takeHappening takes in one thing that a provider told a channel. It may concern another
// channel: several numbers share the address of their webhooks. Its error is a partError.
func (a *App) takeHappening(ctx context.Context, tx Tx, own *desk.Channel, h Happening, then *afterwards) (err error) {
	defer func() {
		if err != nil {
			err = &partError{err}
		}
	}()
	defer caught("notice", &err)
	channel := a.concerned(tx.Settings(), own, h)
	if channel == nil {
		return nil // a number that this workspace has not connected
	}
	ws := tx.Settings().ID
	switch {
	case h.Template != nil:
		*then = append(*then, func() { a.templateNews(ctx, ws, channel.Kind, h.Business, *h.Template) })
		return nil
	case h.Standing != nil:
		*then = append(*then, func() { a.standing(ctx, ws, channel.Kind, h.Business, *h.Standing) })
		return nil
	case h.Wish != nil:
		return a.heed(tx, ws, person{h.Wish.Number, h.Wish.UserID}, h.Wish.Change, h.Wish.At)
	case h.Move != nil:
		return a.move(tx, h.Move)
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

// concerned returns the channel that a happening of a channel's notice concerns, or one
// of the business account, nil when the workspace has none: of those whose notices the
// same secret signs, since whoever has that may speak of them only.
func (a *App) concerned(s *desk.Settings, own *desk.Channel, h Happening) *desk.Channel {
	if h.Channel == own.ExternalID || h.Channel == "" && (h.Business == "" || h.Business == own.Account.BusinessID) {
		return own
	}
	mine, err := a.access(s.ID, own)
	for _, c := range s.Channels() {
		if c.Kind != own.Kind || c.ExternalID != h.Channel && (h.Channel != "" || c.Account.BusinessID != h.Business) {
			continue
		}
		if at, other := a.access(s.ID, c); err == nil && other == nil && at.Secrets.sameApp(mine.Secrets) {
			return c
		}
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
