package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// An endpoint is a webhook that this process serves.
type endpoint struct {
	app     *App
	ref     store.WebhookRef
	woken   chan struct{}
	places  chan struct{} // has an element for each request under way
	results chan *attempted
	until   atomic.Int64 // how long the lease lasts, by the monotonic clock
	called  atomic.Int64 // the calls, as the lease last said
	oldest  atomic.Int64 // time of the oldest event that is not delivered; 0: none
	stop    sync.Once
	stopped chan struct{}

	// The rest belongs to the loop. What it knows of state and pending is as the store
	// has it, with the results that are not stored yet.
	calls     int64
	version   int64         // of the settings
	hook      *desk.Webhook // nil: nothing is loaded
	state     desk.WebhookState
	pending   []*desk.WebhookDelivery
	inFlight  int
	unstored  []*attempted
	begun     []*desk.WebhookDelivery // not stored yet, as they began
	changed   []*desk.WebhookDelivery // not stored yet, as they are: those that have begun or been tried
	mixed     bool                    // something else is to be stored, so the store must be read first
	since     time.Time               // of the first that is not stored; zero: all is stored
	cursorAt  time.Time               // when the cursor was last stored
	stored    desk.EventPlace         // the cursor that is stored
	queue     []desk.FeedEvent        // to begin
	page      *FeedPage               // of the queue, while it is fresh
	readAt    time.Time
	next      desk.EventPlace // after the queue
	more      bool            // there are events after next
	limit     int             // of the next page: as many as can begin while they are fresh
	used      bool            // something has begun from the page
	news      bool            // there may be events after next
	newsAt    desk.Time       // since when; 0: there are none
	lost      desk.EventPlace // the place that the database does not have any more; zero: none
	retryLast bool            // the last attempt that began was a repetition
	disable   disabling
	added     int // deliveries stored since old ones were last deleted
	failing   bool
}

func (e *endpoint) extend(from time.Duration, calls int64) {
	e.until.Store(int64(from) + int64(holdFor)*int64(time.Millisecond))
	e.call(calls)
}

// call notes how often the holder of the lease was called. It may be less than before: of
// two reads the older one may come last, and a database may lose commits.
func (e *endpoint) call(calls int64) {
	if e.called.Swap(calls) != calls {
		e.wake()
	}
}

func (e *endpoint) quit() { e.stop.Do(func() { close(e.stopped) }) }

func (e *endpoint) quitting() bool {
	select {
	case <-e.stopped:
		return true
	default:
		return false
	}
}

func (e *endpoint) wake() { steps.Wake(e.woken) }

// serve is the loop of an endpoint: it begins attempts and stores their results, until
// ctx ends or the endpoint is to be left. Then the attempts under way end.
func (e *endpoint) serve(ctx context.Context) {
	a := e.app
	end := context.AfterFunc(ctx, e.quit)
	defer end()
	_ = a.followers.add(e.ref.Workspace, desk.ID{}, e.woken) // the zero id has no limits
	e.cursorAt, e.limit = time.Now(), deliveryPage
	e.tellNews()
	ctx = context.WithoutCancel(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped, failed := e.stopped, 0
	for stopped != nil || e.inFlight > 0 || !e.since.IsZero() && failed < lastStores {
		err := e.step(ctx)
		switch {
		case errors.Is(err, errNotOurs):
			e.quit()
			e.drop()
			failed = 0
		case err != nil:
			a.log.WarnContext(ctx, "background work failed; it will be tried again", "work", "deliver", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "err", err)
			failed++
		default:
			failed = 0
		}
		e.tellOldest()
		if failed > 0 {
			timer.Reset(idleStep << min(failed-1, 2)) // whatever happens meanwhile, it does not try again sooner
		} else {
			timer.Reset(e.patience())
		}
		for waiting := true; waiting; {
			select {
			case <-timer.C:
				waiting = false
			case <-e.woken:
				e.tellNews()
				waiting = failed > 0
			case r := <-e.results:
				e.ended(ctx, r)
				waiting = failed > 0
			case <-stopped:
				stopped, waiting = nil, failed > 0
			}
		}
		for more := true; more; { // what else has ended
			select {
			case r := <-e.results:
				e.ended(ctx, r)
			default:
				more = false
			}
		}
	}
	a.followers.remove(e.ref.Workspace, desk.ID{}, e.woken)
	if err := a.store.EndLease(ctx, taskRef(e.ref), a.delivering.holder); err != nil {
		a.log.WarnContext(ctx, "a lease was not ended; it ends by itself", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "err", err)
	}
	a.delivering.mu.Lock()
	delete(a.delivering.endpoints, e.ref)
	a.delivering.leaveRequests(e.ref)
	a.delivering.mu.Unlock()
	a.delivering.note()
}

// tellNews notes that there may be new events.
func (e *endpoint) tellNews() {
	if e.news = true; e.newsAt == 0 {
		e.newsAt = e.app.now()
	}
}

// drop forgets what is not stored.
func (e *endpoint) drop() {
	e.unstored, e.begun, e.changed, e.mixed, e.since = nil, nil, nil, false, time.Time{}
}

// errNotOurs says that another process has the lease now, or the webhook is gone.
var errNotOurs = errors.New("the webhook is not ours")

// step does all that can be done now.
func (e *endpoint) step(ctx context.Context) error {
	if e.page != nil && time.Since(e.readAt) > freshFor {
		e.stale()
	}
	if e.stored != e.state.Cursor && time.Since(e.cursorAt) >= cursorEvery {
		e.toStore()
	}
	due := !e.since.IsZero() && (len(e.unstored) >= storeGroup || time.Since(e.since) >= storeEvery || e.disable.reason != "")
	if due || e.quitting() && !e.since.IsZero() && e.inFlight == 0 {
		if err := e.store(ctx); err != nil {
			return err
		}
	}
	if e.quitting() {
		return nil
	}
	if e.disable.reason != "" {
		if err := e.app.disableWebhook(ctx, e.ref, e.disable); err != nil {
			return err
		}
		e.disable = disabling{}
		e.quit()
		return nil
	}
	if e.hook == nil || e.called.Load() != e.calls {
		if !e.since.IsZero() {
			if err := e.store(ctx); err != nil {
				return err
			}
		}
		if err := e.load(ctx); err != nil {
			return err
		}
	}
	for !e.blocked() {
		began, err := e.begin(ctx)
		if err != nil || !began {
			return err
		}
	}
	return nil
}

// blocked tells whether no attempt may begin, whatever there is to deliver.
func (e *endpoint) blocked() bool {
	return e.inFlight >= desk.MaxInFlight || e.app.uptime() > time.Duration(e.until.Load())-holdLeast || len(e.unstored) >= storeMost ||
		e.disable.reason != "" || e.quitting()
}

// patience is how long nothing is to be done, unless something happens.
func (e *endpoint) patience() time.Duration {
	wait, now := time.Hour, e.app.now()
	switch {
	case e.blocked():
		wait = idleStep
	case e.more && e.wantsMore(now):
		wait = 0
	case len(e.pending) > e.inFlight || e.state.HeldUntil != 0 || e.page != nil || len(e.queue) > 0:
		wait = idleStep
		for _, d := range e.pending {
			if !d.Trying {
				wait = min(wait, time.Duration(max(d.DueAt, e.state.HeldUntil)-now)*time.Millisecond)
			}
		}
		if wait <= 0 || len(e.queue) > 0 { // something else is in the way
			wait = idleStep / 10
		}
	case e.stored != e.state.Cursor && e.since.IsZero():
		wait = cursorEvery - time.Since(e.cursorAt)
	}
	if e.news && e.wantsMore(now) && !e.blocked() {
		wait = min(wait, deliveredPause-time.Since(e.readAt))
	}
	if !e.since.IsZero() {
		wait = min(wait, storeEvery-time.Since(e.since))
	}
	return max(wait, time.Millisecond)
}

// load reads how far the deliveries are. What is under way stays so.
func (e *endpoint) load(ctx context.Context) error {
	a, ws, id := e.app, e.ref.Workspace, e.ref.ID
	calls := e.called.Load()
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return err
	}
	hook := s.Webhook(id)
	if hook == nil {
		return errNotOurs
	}
	states, err := a.store.WebhookStates(ctx, ws)
	if err != nil {
		return err
	}
	pending, err := a.store.PendingDeliveries(ctx, ws, id)
	if err != nil {
		return err
	}
	known := map[desk.ID]*desk.WebhookDelivery{}
	for _, d := range e.pending {
		known[d.ID] = d
	}
	for i, d := range pending {
		switch old := known[d.ID]; {
		case old == nil:
		case old.Trying:
			old.DueAt, old.TriedAt, old.Steps, old.Attempts = d.DueAt, d.TriedAt, d.Steps, d.Attempts
			pending[i] = old
		default:
			d.EventAt = old.EventAt
		}
	}
	if err := e.dateOldest(ctx, pending); err != nil {
		return err
	}
	e.calls, e.version, e.hook, e.state, e.pending = calls, s.Version, hook, states[id], pending
	e.stored, e.next = e.state.Cursor, e.state.Cursor
	e.queue, e.page, e.more = nil, nil, true
	if e.lost != (desk.EventPlace{}) {
		a.log.WarnContext(ctx, "the database has lost commits: deliveries to a webhook go on from the cursor that it has; what was delivered since comes again",
			"workspace_id", ws, "webhook_id", id, "was_at", a.EventID(ws, e.lost), "cursor", a.EventID(ws, e.state.Cursor))
	}
	if !hook.Enabled {
		e.quit()
	}
	return nil
}

// begin begins one attempt, if there is one to begin. e is not blocked.
func (e *endpoint) begin(ctx context.Context) (bool, error) {
	a := e.app
	now := a.now()
	if e.wantsMore(now) && (e.more || e.news && time.Since(e.readAt) >= deliveredPause) {
		if err := e.read(ctx); err != nil || e.hook == nil {
			return false, err
		}
	}
	d, probe := a.rules.Next(&e.state, e.pending, now)
	if isNew := len(e.queue) > 0 && e.state.MayBegin(len(e.pending), now); !isNew && d == nil {
		return false, nil
	} else if isNew && (d == nil || e.retryLast) {
		d, probe = nil, e.state.Failing()
	}
	select {
	case a.delivering.posts <- struct{}{}:
	default:
		return false, nil
	}
	select {
	case e.places <- struct{}{}:
	default: // by pings
		<-a.delivering.posts
		return false, nil
	}
	var event *desk.FeedEvent
	if e.retryLast = d != nil; !e.retryLast {
		event = &e.queue[0]
		e.queue = e.queue[1:]
		_, contact := event.Of()
		d = &desk.WebhookDelivery{
			ID: a.newID(), Event: event.Place, EventAt: event.At, Type: event.Type, Contact: contact, Status: desk.DeliveryPending, CreatedAt: now, DueAt: now,
		}
		began := *d
		e.begun, e.changed, e.pending, e.used = append(e.begun, &began), append(e.changed, d), append(e.pending, d), true
		if e.state.Cursor = event.Place; len(e.queue) == 0 {
			e.state.Cursor = e.next
		}
		e.toStore()
	}
	d.Trying = true
	e.inFlight++
	hook, page, readAt, steps := e.hook, e.page, e.readAt, d.Steps
	if event == nil {
		page = nil
	}
	go func() {
		defer func() {
			<-e.places
			<-a.delivering.posts
		}()
		r := a.deliverOne(ctx, e.ref, hook, d, event, page, readAt, probe)
		r.result.Steps = steps
		e.results <- r
	}()
	return true, nil
}

// wantsMore tells whether the next events may be read.
func (e *endpoint) wantsMore(now desk.Time) bool {
	return len(e.queue) == 0 && e.state.MayBegin(len(e.pending), now)
}

func (e *endpoint) toStore() {
	if e.since.IsZero() {
		e.since = time.Now()
	}
}

// read reads the next events.
func (e *endpoint) read(ctx context.Context) error {
	a := e.app
	if e.page != nil { // all of it has begun
		e.limit = min(2*e.limit, deliveryPage)
	}
	e.readAt = time.Now()
	hook := e.hook
	read, err := a.store.Events(ctx, e.ref.Workspace, store.EventQuery{From: store.FromPlace, After: e.next, Limit: e.limit, AtOnce: true}, func(s *desk.Settings) ([]desk.EventType, error) {
		if hook = s.Webhook(e.ref.ID); hook == nil {
			return nil, errNotOurs
		}
		filter, err := desk.ParseEventFilter(hook.Types)
		if err != nil {
			return nil, err
		}
		return filter.For(func(desk.Permission) error { return nil }) // the webhook outlives its maker's key
	})
	var page *FeedPage
	if err == nil {
		page, err = a.complete(ctx, read)
	}
	switch {
	case desk.IsType(err, desk.NotFound): // the workspace is deleted
		return errNotOurs
	case err != nil:
		return err
	case hook.UpdatedAt != e.hook.UpdatedAt:
		e.hook = nil // it is another one now; step loads it
		e.wake()
		return nil
	case page.Expired == desk.ExpiredByHistory && e.lost != e.next:
		e.lose(e.next)
		return nil
	case page.Expired != "":
		return e.skipExpired(ctx, read)
	}
	e.queue, e.page, e.used, e.next, e.more = page.Events, page, false, page.Next, page.More
	e.news, e.newsAt, e.lost, e.version = false, 0, desk.EventPlace{}, page.Settings.Version
	if len(page.Events) == 0 {
		e.state.Cursor, e.page = page.Next, nil
	}
	if e.more {
		e.newsAt = a.now()
		if n := len(page.Events); n > 0 {
			e.newsAt = page.Events[n-1].At
		}
	}
	return nil
}

// stale drops a page that is too old for attempts to begin from it. If it was used, what is
// left is read again, with as many events as two such pages. If none could begin from it,
// the database is slow: then each event is read by its own attempt.
func (e *endpoint) stale() {
	began := len(e.page.Events) - len(e.queue)
	e.page = nil // it may be large
	if !e.used || len(e.queue) == 0 {
		return
	}
	e.limit = min(max(2*began, desk.MaxInFlight), deliveryPage)
	e.newsAt, e.queue, e.next, e.more = e.queue[0].At, nil, e.state.Cursor, true
}

// lose prepares the endpoint to go on from the cursor that the database has: the one that
// this process has reached was lost with commits, when a backup was restored or another
// server took over. If the database's own cursor is lost, too, skipExpired follows.
func (e *endpoint) lose(at desk.EventPlace) {
	e.lost, e.hook = at, nil
	e.drop()
	e.wake()
}

// skipExpired moves the cursor to the oldest event that is left.
func (e *endpoint) skipExpired(ctx context.Context, page *store.EventPage) error {
	a := e.app
	ours := false
	err := a.store.InTx(ctx, e.ref.Workspace, func(tx store.Tx) (err error) {
		calls, held, err := tx.Leased(taskOf(e.ref.ID), a.delivering.holder)
		if ours = held && calls == e.calls; err != nil || !ours {
			return err
		}
		state, err := tx.WebhookState(e.ref.ID)
		if err != nil {
			return err
		}
		state.Cursor = page.Oldest
		if err := tx.PutWebhookState(e.ref.ID, state); err != nil {
			return err
		}
		return tx.Append(desk.Event{
			Type: desk.WebhookUpdated, Subject: e.ref.ID, Actor: desk.Actor{Kind: desk.BySystem}, At: a.now(), Changed: []string{"cursor"},
		})
	})
	if err != nil {
		return err
	}
	if ours {
		if page.Expired == desk.ExpiredByHistory {
			a.log.WarnContext(ctx, "the database does not have the event at a webhook's cursor: deliveries go on from the oldest event that it has", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID)
		} else {
			a.log.WarnContext(ctx, "events expired before they were delivered to a webhook", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID,
				"events", page.Oldest.Seq-e.next.Seq)
		}
		e.state.Cursor, e.stored, e.next = page.Oldest, page.Oldest, page.Oldest
		return nil
	}
	e.hook = nil
	return nil
}

// dateOldest reads when the oldest event of the pending deliveries happened, unless that
// is known.
func (e *endpoint) dateOldest(ctx context.Context, pending []*desk.WebhookDelivery) error {
	if len(pending) == 0 {
		return nil
	}
	oldest := oldestOf(pending)
	if oldest.EventAt != 0 {
		return nil
	}
	page, err := e.app.eventAt(ctx, e.ref, oldest.Event)
	if err == nil && len(page.Events) > 0 {
		oldest.EventAt = page.Events[0].At
	}
	return err
}

func oldestOf(pending []*desk.WebhookDelivery) *desk.WebhookDelivery {
	return slices.MinFunc(pending, func(x, y *desk.WebhookDelivery) int { return cmp.Compare(x.Event.Seq, y.Event.Seq) })
}

// tellOldest notes since when something is not delivered. Of a delivery that another
// process began, perhaps only the beginning is known.
func (e *endpoint) tellOldest() {
	oldest := e.newsAt
	earlier := func(at desk.Time) {
		if oldest == 0 || at < oldest {
			oldest = at
		}
	}
	if len(e.pending) > 0 {
		d := oldestOf(e.pending)
		earlier(cmp.Or(d.EventAt, d.CreatedAt))
	}
	if len(e.queue) > 0 {
		earlier(e.queue[0].At)
	}
	e.oldest.Store(int64(oldest))
}
