package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// A disabling is why a webhook is to be disabled. It concerns one URL: the owner may have
// changed it while the attempt was under way.
type disabling struct {
	reason desk.DisabledReason // "": it is not to be disabled
	url    string
}

// An attempted is an attempt that has ended.
type attempted struct {
	delivery *desk.WebhookDelivery
	url      string // to which it went
	result   desk.WebhookResult
	expired  bool  // the event is gone
	dropped  bool  // the delivery is, by a replay
	err      error // it did not begin
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

func (e *endpoint) wake() { wakeOne(e.woken) }

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

// ended takes in the result of an attempt, for what begins next. store stores it.
func (e *endpoint) ended(ctx context.Context, r *attempted) {
	a, d := e.app, r.delivery
	d.Trying = false
	e.inFlight--
	if errors.Is(r.err, errNotOurs) {
		e.hook = nil
	}
	if r.err != nil { // the database can't be read, or the webhook has changed
		if d.DueAt = a.now() + desk.Time(idleStep.Milliseconds()); !errors.Is(r.err, errNotOurs) {
			a.log.WarnContext(ctx, "an attempt did not begin; it will be tried again", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "err", r.err)
		}
		return
	}
	r.dropped = !slices.Contains(e.pending, d)
	e.unstored = append(e.unstored, r)
	e.toStore()
	e.take(&e.state, d, r, func(at desk.Time) {
		e.mixed = true
		for _, other := range e.pending {
			other.DueAt = at
		}
	})
	if !r.dropped && !slices.Contains(e.changed, d) {
		e.changed = append(e.changed, d)
	}
	if d.Status != desk.DeliveryPending {
		e.pending = slices.DeleteFunc(e.pending, func(p *desk.WebhookDelivery) bool { return p == d })
	}
}

// take applies a result. recovered is called if all pending deliveries become due.
func (e *endpoint) take(s *desk.WebhookState, d *desk.WebhookDelivery, r *attempted, recovered func(desk.Time)) {
	if r.expired {
		d.Expire(e.app.now())
		return
	}
	verdict := e.app.rules.Attempted(s, d, &r.result)
	if verdict.Recovered {
		recovered(r.result.At + r.result.Took)
	}
	if verdict.Disable != "" {
		e.disable = disabling{verdict.Disable, r.url}
	}
}

// store stores what has ended and what has begun, with the cursor, unless this process
// no longer has the lease.
func (e *endpoint) store(ctx context.Context) error {
	a := e.app
	if e.disable.reason == "" && !e.mixed {
		hold := store.DeliveryHold{WebhookRef: e.ref, Task: taskOf(e.ref.ID), Holder: a.delivering.holder, Calls: e.calls, Settings: e.version}
		if stored, err := a.store.StoreDeliveries(ctx, hold, e.state, e.changed); err != nil {
			return err
		} else if stored {
			e.isStored(ctx, &e.state)
			return e.forget(ctx)
		}
	}
	return e.reconcile(ctx)
}

// isStored notes that all is stored, with a state.
func (e *endpoint) isStored(ctx context.Context, s *desk.WebhookState) {
	e.tellFailing(ctx, s, e.unstored)
	e.added += len(e.begun)
	for _, d := range e.changed {
		for i := range d.Attempts {
			d.Attempts[i].Response = ""
		}
	}
	e.drop()
	e.stored, e.cursorAt = s.Cursor, time.Now()
}

// errLost says that the database has lost commits, with events that this process has read.
var errLost = errors.New("the database has lost commits")

// reconcile is store when something has changed, or may have: it reads what the store has,
// and applies the results to that. If another has changed it meanwhile (a replay, an edit,
// a ping), the cursor stays as the other set it, and all is loaded anew.
func (e *endpoint) reconcile(ctx context.Context) error {
	a, id := e.app, e.ref.ID
	var state desk.WebhookState
	var version int64
	var ours, changed bool
	err := a.store.InTx(ctx, e.ref.Workspace, func(tx store.Tx) error {
		e.disable = disabling{} // what is stored decides
		calls, held, err := tx.Leased(taskOf(id), a.delivering.holder)
		if err != nil {
			return err
		}
		hook := tx.Settings().Webhook(id)
		if ours = held && hook != nil; !ours {
			return nil
		}
		e.call(calls)
		if state, err = tx.WebhookState(id); err != nil {
			return err
		}
		version = tx.Settings().Version
		changed = calls != e.calls || e.hook == nil || hook.UpdatedAt != e.hook.UpdatedAt
		moved := changed && state.Cursor != e.stored
		passed := calls >= e.calls
		if passed && !moved {
			passed, err = tx.Passed(e.state.Cursor)
		}
		switch {
		case err != nil:
			return err
		case !passed:
			return errLost
		}
		put, due, err := e.reapply(tx, &state)
		if err != nil {
			return err
		}
		if due != 0 {
			if err := tx.DuePending(id, due); err != nil {
				return err
			}
		}
		if moved {
			put = slices.DeleteFunc(put, func(d *desk.WebhookDelivery) bool {
				return d.Event.Seq > state.Cursor.Seq && d.Status == desk.DeliveryPending // it will come again
			})
		} else {
			state.Cursor = e.state.Cursor
		}
		if err := tx.PutWebhookState(id, state); err != nil {
			return err
		}
		return tx.PutDeliveries(id, put)
	})
	switch {
	case errors.Is(err, errLost):
		e.lose(e.state.Cursor)
		return nil
	case desk.IsType(err, desk.NotFound) || err == nil && !ours:
		return errNotOurs
	case err != nil:
		return err
	}
	e.isStored(ctx, &state)
	if changed {
		e.hook = nil
		return e.forget(ctx)
	}
	e.state, e.version = state, version
	return e.forget(ctx)
}

// reapply applies what is not stored yet to what the store has. It returns the deliveries
// to be stored, and the time at which all pending ones are due, 0 if they are not. What an
// earlier try has stored, whose answer was lost, is not applied again.
func (e *endpoint) reapply(tx store.Tx, state *desk.WebhookState) (put []*desk.WebhookDelivery, due desk.Time, err error) {
	byID, ids := map[desk.ID]*desk.WebhookDelivery{}, []desk.ID(nil)
	for _, d := range e.begun {
		ids = append(ids, d.ID)
	}
	for _, r := range e.unstored {
		ids = append(ids, r.delivery.ID)
	}
	if ids != nil {
		if put, err = tx.DeliveriesOf(e.ref.ID, slices.CompactFunc(slices.SortedFunc(slices.Values(ids), compareIDs), func(a, b desk.ID) bool { return a == b })); err != nil {
			return nil, 0, err
		}
	}
	for _, d := range put {
		byID[d.ID] = d
	}
	for _, began := range e.begun {
		if byID[began.ID] == nil {
			d := *began
			byID[d.ID] = &d
			put = append(put, &d)
		}
	}
	for _, r := range e.unstored {
		d := byID[r.delivery.ID]
		if d == nil { // a replay has dropped it
			d = &desk.WebhookDelivery{Status: desk.DeliveryPending}
		}
		if !r.expired && slices.ContainsFunc(d.Attempts, func(a desk.WebhookAttempt) bool { return a.At == r.result.At }) {
			continue
		}
		e.take(state, d, r, func(at desk.Time) {
			due = at
			for _, other := range put {
				if other.Status == desk.DeliveryPending {
					other.DueAt = at
				}
			}
		})
	}
	return put, due, nil
}

func compareIDs(a, b desk.ID) int { return bytes.Compare(a[:], b[:]) }

// tellFailing logs when the endpoint begins or ends to fail.
func (e *endpoint) tellFailing(ctx context.Context, s *desk.WebhookState, results []*attempted) {
	failing, last := s.Failing(), ""
	for _, r := range results {
		last = cmp.Or(r.result.Error, last)
	}
	switch {
	case failing && !e.failing:
		e.app.log.WarnContext(ctx, "a webhook's endpoint is failing: it is only probed until it answers", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "error", last)
	case !failing && e.failing:
		e.app.log.InfoContext(ctx, "a webhook's endpoint answers again", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID)
	}
	e.failing = failing
}

// forgetDeliveriesAfter is how many new deliveries bring about a step that deletes old
// ones.
const forgetDeliveriesAfter = sweepGroup / 2

// forget deletes old deliveries once enough have been added.
func (e *endpoint) forget(ctx context.Context) error {
	if e.added < forgetDeliveriesAfter {
		return nil
	}
	e.added = 0
	_, err := e.app.store.ForgetDeliveries(ctx, e.ref.Workspace, e.ref.ID, e.app.now()-desk.Time(desk.KeepDelivery.Milliseconds()), desk.MaxDeliveries, sweepGroup)
	return err
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
