package deliver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/app/feed"
	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// An endpoint is a webhook that this process serves.
type endpoint struct {
	service *Service
	ref     store.WebhookRef
	woken   chan struct{}
	places  chan struct{} // has an element for each request under way
	results chan *outcome
	until   atomic.Int64 // the end of the lease, by the monotonic clock
	called  atomic.Int64 // the count of calls, as last read from the lease
	oldest  atomic.Int64 // time of the oldest event that is not delivered; 0: none
	stop    sync.Once
	stopped chan struct{}

	// Only the loop uses the fields below. state and pending are as in the store, plus the
	// results that are not stored yet.
	calls     int64
	version   int64         // of the settings
	webhook   *desk.Webhook // nil: nothing is loaded
	state     desk.WebhookState
	pending   []*desk.WebhookDelivery
	inFlight  int
	unstored  []*outcome
	begun     []*desk.WebhookDelivery // new deliveries that are not stored yet, as they were at their beginning
	changed   []*desk.WebhookDelivery // deliveries that are not stored yet (new or tried), as they are now
	mixed     bool                    // there is more to store than these deliveries, so the store must be read first
	since     time.Time               // when the first change came that is not stored yet; zero: all is stored
	cursorAt  time.Time               // when the cursor was last stored
	stored    desk.EventPlace         // the cursor that is stored
	queue     []desk.FeedEvent        // events whose deliveries are to begin
	page      *feed.Page              // the page with the events of queue; nil if it is too old
	readAt    time.Time
	next      desk.EventPlace // the place after the last event of queue
	more      bool            // there are events after next
	limit     int             // size of the next page: as many events as can begin before the page is too old
	used      bool            // a delivery of the page has begun
	news      bool            // there may be events after next
	newsAt    desk.Time       // the time from which news is true; 0: there are no new events
	lost      desk.EventPlace // a place that this process had reached and the database has lost; zero: none
	retryLast bool            // the last try that began was a repetition
	disable   disabling
	added     int // deliveries stored since old ones were last deleted
	failing   bool
	rests     bool // nothing is left to do, so the lease is to be dropped
}

func (e *endpoint) extend(from time.Duration, calls int64) {
	e.until.Store(int64(from) + int64(holdFor)*int64(time.Millisecond))
	e.call(calls)
}

// call stores how often the holder of the lease was called, and wakes the loop if this
// number has changed. The new number may be smaller: an older read may end last, and a
// database may lose commits.
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

// serve is the loop of an endpoint. It begins tries and stores their results until ctx ends
// or the endpoint is to be left. Then it waits for the tries under way.
func (e *endpoint) serve(ctx context.Context) {
	a := e.service
	end := context.AfterFunc(ctx, e.quit)
	defer end()
	a.Feed.Watch(e.ref.Workspace, e.woken)
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
			a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "deliver", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "err", err)
			failed++
		default:
			failed = 0
		}
		e.tellOldest()
		var rests chan<- struct{} // nil unless the endpoint may rest
		if failed == 0 && stopped != nil && e.idleFor() >= a.RestAfter {
			rests = a.rests
		}
		if failed > 0 {
			timer.Reset(idleStep << min(failed-1, 2)) // until then no step runs, even if the loop is woken
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
			case rests <- struct{}{}:
				e.rest()
				rests = nil
			}
		}
		for more := true; more; { // take all other results that are ready
			select {
			case r := <-e.results:
				e.ended(ctx, r)
			default:
				more = false
			}
		}
	}
	a.Feed.Unwatch(e.ref.Workspace, e.woken)
	if err := e.leave(ctx); err != nil {
		a.Log.WarnContext(ctx, "a lease was not ended; it ends by itself", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "err", err)
	}
	a.mu.Lock()
	delete(a.endpoints, e.ref)
	a.leaveRequests(e.ref)
	a.mu.Unlock()
	if e.rests {
		steps.Wake(a.news.Woken) // there may be news meanwhile
	} else {
		a.Note()
	}
}

// leave drops the lease if the endpoint rests, or else ends it.
func (e *endpoint) leave(ctx context.Context) error {
	a, ref := e.service, taskRef(e.ref)
	if e.rests {
		defer func() { <-a.rests }()
		if dropped, err := a.Store.DropLease(ctx, ref, a.holder, e.calls); err != nil || dropped {
			return err
		}
		e.rests = false // somebody has called: there is something to do
	}
	return a.Store.EndLease(ctx, ref, a.holder)
}

// idleFor returns for how long there has been nothing to do; 0 if there is something.
func (e *endpoint) idleFor() time.Duration {
	if e.webhook == nil || len(e.pending) > 0 || e.inFlight > 0 || !e.since.IsZero() || len(e.queue) > 0 || e.more || e.news ||
		e.stored != e.state.Cursor || e.called.Load() != e.calls || e.disable.reason != "" || e.quitting() {
		return 0
	}
	return time.Since(e.readAt)
}

// rest leaves the endpoint because there is nothing to do.
func (e *endpoint) rest() {
	e.rests = true
	e.quit()
	if len(e.woken) > 0 { // Run may have taken this news already, and left it to this endpoint
		e.service.news.Add([]desk.ID{e.ref.Workspace}, false)
	}
}

// tellNews records that there may be new events.
func (e *endpoint) tellNews() {
	if e.news = true; e.newsAt == 0 {
		e.newsAt = e.service.now()
	}
}

// drop forgets the results and changes that are not stored.
func (e *endpoint) drop() {
	e.unstored, e.begun, e.changed, e.mixed, e.since = nil, nil, nil, false, time.Time{}
}

// step does everything that can be done now.
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
		if err := e.service.disableWebhook(ctx, e.ref, e.disable); err != nil {
			return err
		}
		e.disable = disabling{}
		e.quit()
		return nil
	}
	if e.webhook == nil || e.called.Load() != e.calls {
		if !e.since.IsZero() {
			if err := e.store(ctx); err != nil {
				return err
			}
		}
		if err := e.load(ctx); err != nil || e.webhook == nil {
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

// blocked reports whether no try may begin now, even if there are events to deliver.
func (e *endpoint) blocked() bool {
	return e.inFlight >= desk.MaxInFlight || e.service.Uptime() > time.Duration(e.until.Load())-holdLeast || len(e.unstored) >= storeMost ||
		e.disable.reason != "" || e.quitting()
}

// patience returns how long the loop may wait if nothing wakes it.
func (e *endpoint) patience() time.Duration {
	wait, now := time.Hour, e.service.now()
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
		if wait <= 0 || len(e.queue) > 0 { // a try is due, but something else prevents it
			wait = idleStep / 10
		}
	case e.stored != e.state.Cursor && e.since.IsZero():
		wait = cursorEvery - time.Since(e.cursorAt)
	}
	if idle := e.idleFor(); idle > 0 && idle < e.service.RestAfter {
		wait = min(wait, e.service.RestAfter-idle)
	}
	if e.news && e.wantsMore(now) && !e.blocked() {
		wait = min(wait, deliveredPause-time.Since(e.readAt))
	}
	if !e.since.IsZero() {
		wait = min(wait, storeEvery-time.Since(e.since))
	}
	return max(wait, time.Millisecond)
}

// load reads the state and the pending deliveries of the webhook. Deliveries with a try
// under way are kept.
func (e *endpoint) load(ctx context.Context) error {
	a, ws, id := e.service, e.ref.Workspace, e.ref.ID
	select {
	case a.loads <- struct{}{}:
	case <-e.stopped:
		return nil
	}
	defer func() { <-a.loads }()
	calls := e.called.Load()
	s, err := a.Store.Settings(ctx, ws)
	if err != nil {
		return err
	}
	webhook := s.Webhook(id)
	if webhook == nil {
		return errNotOurs
	}
	states, err := a.Store.WebhookStates(ctx, ws)
	if err != nil {
		return err
	}
	pending, err := a.Store.PendingDeliveries(ctx, ws, id)
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
			old.DueAt, old.TriedAt, old.Steps, old.Tries = d.DueAt, d.TriedAt, d.Steps, d.Tries
			pending[i] = old
		default:
			d.EventAt = old.EventAt
		}
	}
	if err := e.dateOldest(ctx, pending); err != nil {
		return err
	}
	e.calls, e.version, e.webhook, e.state, e.pending = calls, s.Version, webhook, states[id], pending
	e.stored, e.next = e.state.Cursor, e.state.Cursor
	e.queue, e.page, e.more = nil, nil, true
	if e.lost != (desk.EventPlace{}) {
		a.Log.WarnContext(ctx, "the database has lost commits: deliveries to a webhook go on from the cursor that it has; what was delivered since comes again",
			"workspace_id", ws, "webhook_id", id, "was_at", a.Feed.EventID(ws, e.lost), "cursor", a.Feed.EventID(ws, e.state.Cursor))
	}
	if !webhook.Enabled {
		e.quit()
	}
	return nil
}

// begin begins one try if one is due. The caller has checked that the endpoint is not
// blocked.
func (e *endpoint) begin(ctx context.Context) (bool, error) {
	a := e.service
	now := a.now()
	if e.wantsMore(now) && (e.more || e.news && time.Since(e.readAt) >= deliveredPause) {
		if err := e.read(ctx); err != nil || e.webhook == nil {
			return false, err
		}
	}
	d, probe := a.Rules.Next(&e.state, e.pending, now)
	if isNew := len(e.queue) > 0 && e.state.MayBegin(len(e.pending), now); !isNew && d == nil {
		return false, nil
	} else if isNew && (d == nil || e.retryLast) {
		d, probe = nil, e.state.Failing()
	}
	select {
	case a.posts <- struct{}{}:
	default:
		return false, nil
	}
	select {
	case e.places <- struct{}{}:
	default: // pings have taken all places
		<-a.posts
		return false, nil
	}
	var event *desk.FeedEvent
	if e.retryLast = d != nil; !e.retryLast {
		event = &e.queue[0]
		e.queue = e.queue[1:]
		_, contact := event.Of()
		d = &desk.WebhookDelivery{
			ID: a.NewID(), Event: event.Place, EventAt: event.At, Type: event.Type, Contact: contact, Status: desk.DeliveryPending, CreatedAt: now, DueAt: now,
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
	webhook, page, readAt, step := e.webhook, e.page, e.readAt, d.Steps
	if event == nil {
		page = nil
	}
	go func() {
		defer func() {
			<-e.places
			<-a.posts
		}()
		r := a.try(ctx, e.ref, webhook, d, event, page, readAt, probe)
		r.result.Steps = step
		e.results <- r
	}()
	return true, nil
}

// wantsMore reports whether the next events may be read.
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
	a := e.service
	if e.page != nil { // all events of the page have begun
		e.limit = min(2*e.limit, deliveryPage)
	}
	e.readAt = time.Now()
	webhook := e.webhook
	page, err := a.Feed.Read(ctx, e.ref.Workspace, store.EventQuery{From: store.FromPlace, After: e.next, Limit: e.limit, AtOnce: true}, func(s *desk.Settings) ([]desk.EventType, error) {
		if webhook = s.Webhook(e.ref.ID); webhook == nil {
			return nil, errNotOurs
		}
		filter, err := desk.ParseEventFilter(webhook.Types)
		if err != nil {
			return nil, err
		}
		return filter.For(func(desk.Permission) error { return nil }) // the webhook outlives its maker's key
	})
	switch {
	case desk.IsType(err, desk.NotFound): // the workspace is deleted
		return errNotOurs
	case err != nil:
		return err
	case webhook.UpdatedAt != e.webhook.UpdatedAt:
		e.webhook = nil // the webhook was edited; step loads it again
		e.wake()
		return nil
	case page.Expired == desk.ExpiredByHistory && e.lost != e.next:
		e.lose(e.next)
		return nil
	case page.Expired != "":
		return e.skipExpired(ctx, page.EventPage)
	}
	e.readAt = page.ReadAt
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

// stale drops a page that is too old, so that no more tries begin from it. If some tries
// have begun from the page, the other events are read again, in a page of twice as many
// events as have begun. If none has begun, the database is slow: then each try reads its
// own event.
func (e *endpoint) stale() {
	began := len(e.page.Events) - len(e.queue)
	e.page = nil // it may be large
	if !e.used || len(e.queue) == 0 {
		return
	}
	e.limit = min(max(2*began, desk.MaxInFlight), deliveryPage)
	e.newsAt, e.queue, e.next, e.more = e.queue[0].At, nil, e.state.Cursor, true
}

// lose prepares the endpoint to continue from the cursor in the database. The database has
// lost the place that this process had reached: a backup was restored, or another database
// server took over. If the database has also lost the place of its own cursor, skipExpired
// follows.
func (e *endpoint) lose(at desk.EventPlace) {
	e.lost, e.webhook = at, nil
	e.drop()
	e.wake()
}

// skipExpired moves the cursor to the oldest event that is left.
func (e *endpoint) skipExpired(ctx context.Context, page *store.EventPage) error {
	a := e.service
	ours := false
	err := a.Store.InTx(ctx, e.ref.Workspace, func(tx store.Tx) (err error) {
		calls, held, err := tx.Leased(store.WebhookTask(e.ref.ID), a.holder)
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
			a.Log.WarnContext(ctx, "the database does not have the event at a webhook's cursor: deliveries go on from the oldest event that it has", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID)
		} else {
			a.Log.WarnContext(ctx, "events expired before they were delivered to a webhook", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID,
				"events", page.Oldest.Seq-e.next.Seq)
		}
		e.state.Cursor, e.stored, e.next = page.Oldest, page.Oldest, page.Oldest
		return nil
	}
	e.webhook = nil
	return nil
}

// dateOldest reads the time of the event of the oldest pending delivery, unless this time
// is known.
func (e *endpoint) dateOldest(ctx context.Context, pending []*desk.WebhookDelivery) error {
	if len(pending) == 0 {
		return nil
	}
	oldest := oldestOf(pending)
	if oldest.EventAt != 0 {
		return nil
	}
	page, err := e.service.Feed.At(ctx, e.ref.Workspace, oldest.Event)
	if err == nil && len(page.Events) > 0 {
		oldest.EventAt = page.Events[0].At
	}
	return err
}

func oldestOf(pending []*desk.WebhookDelivery) *desk.WebhookDelivery {
	return slices.MinFunc(pending, func(x, y *desk.WebhookDelivery) int { return cmp.Compare(x.Event.Seq, y.Event.Seq) })
}

// tellOldest records the time of the oldest event that is not delivered. For a delivery
// that another process began, perhaps only the time of its beginning is known.
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
