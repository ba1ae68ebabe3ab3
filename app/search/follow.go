package search

import (
	"context"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

const (
	// leastGroup, group and quietGroup limit how many changes one transaction indexes: on
	// SQLite, everybody's writes wait for it. A group is as large as can be indexed in
	// groupTime; while nobody writes, it may have up to quietGroup changes.
	leastGroup = 10
	group      = 100
	quietGroup = 500
	groupTime  = 40 * time.Millisecond

	// collect is how long news are collected before they are read.
	collect = 100 * time.Millisecond

	// A workspace's place may be up to far events, or longUnstored, behind without being stored,
	// if no contact has changed in them. To store it after each message would cost as much as
	// storing the message. But before the events expire, it must be stored.
	far          = 1000
	longUnstored = time.Hour

	// While contacts change faster than busy a second, a follower that is more than backlog
	// changes behind gives way, and after sustained every follower: then it indexes one group
	// in slow. Indexing a contact costs about five times as much as storing it.
	backlog   = 1000
	busy      = 700
	sustained = time.Second
	slow      = 2 * time.Second

	// window is the least time in which it is measured how fast contacts change.
	window = 200 * time.Millisecond

	// taken is how long to leave a workspace to another process that indexes it.
	taken = 300 * time.Millisecond

	// stepTime is the time limit of a workspace's step: the others wait for the slowest.
	stepTime = 5 * time.Second
)

// measure notes how many changes this process has stored, and the newest events.
func (p *pace) measure(now time.Time, stored int64, heads map[desk.ID]store.Head, share func(desk.ID) float64) {
	since := now.Sub(p.at)
	if since < window {
		return
	}
	n, everywhere := float64(stored-p.stored), 0.0
	newest := make(map[desk.ID]int64, len(heads))
	for ws, head := range heads {
		newest[ws] = head.Event
		if before, known := p.heads[ws]; known { // other processes may have stored more
			everywhere += float64(head.Event-before) * share(ws)
		}
	}
	if p.rate = max(n, everywhere) / since.Seconds(); p.at.IsZero() {
		p.rate = 0
	}
	if p.rate <= busy {
		p.calm = now
	}
	p.at, p.stored, p.heads = now, stored, newest
}

// Run keeps the terms of the contacts of all workspaces, until ctx ends.
func (a *Service) Run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		wait, err := a.Step(ctx)
		if err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "index contacts", "err", err)
		}
		rest := collect
		if wait >= 0 && a.pace.rate == 0 {
			rest = 0 // nobody writes
		} else if wait >= 0 {
			rest = max(wait/10, time.Since(began)) // half of the time is the others'
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		var timer <-chan time.Time // nil: there is nothing to do before the next news
		if wait >= 0 {
			timer = time.After(wait - rest)
		}
		select {
		case <-ctx.Done():
		case <-timer:
		case <-a.news.Woken:
		}
	}
}

// Step indexes a group of changes in each workspace that has some. It returns how long to wait
// until the next step; less than 0: until there is news. It goes on after an error in one
// workspace, which then waits for a while.
func (a *Service) Step(ctx context.Context) (wait time.Duration, err error) {
	list, err := a.toFollow(ctx)
	if err != nil {
		return slow, err
	}
	if len(list) == 0 {
		return -1, nil
	}
	heads, err := a.Store.Heads(ctx, list)
	if err != nil {
		return slow, err
	}
	places, err := a.Store.SearchPlaces(ctx, list)
	if err != nil {
		return slow, err
	}
	now, stored, byType := time.Now(), int64(0), a.Feed.Stored()
	for _, t := range changes {
		stored += byType[t]
	}
	a.pace.measure(now, stored, heads, func(ws desk.ID) float64 { return a.known(ws).share })
	err = steps.Abreast(ctx, list, func(ws desk.ID) error {
		head, there := heads[ws]
		if !there { // the workspace was deleted
			a.forget(ws)
			return nil
		}
		f := a.known(ws)
		if now.Before(f.next) {
			return nil
		}
		was := f.far
		f.taken, f.far = false, float64(head.Event-places[ws].Event.Seq)*f.share > backlog
		if f.far && !was { // how fast they change now is measured first
			f.next = now.Add(window)
			a.note(ws, f)
			return nil
		}
		within, cancel := context.WithTimeout(ctx, stepTime)
		defer cancel()
		err := a.step(within, ws, &f, places[ws], head.Event)
		f.next = now.Add(f.wait(&a.pace))
		if desk.IsType(err, desk.NotFound) {
			err = nil
		}
		if err != nil {
			f.pending, f.next = true, now.Add(slow)
		}
		a.note(ws, f)
		return err
	})
	wait = -1
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.followed {
		if left := max(0, f.next.Sub(now)); f.pending && (wait < 0 || left < wait) {
			wait = left
		}
	}
	return wait, err
}

// toFollow returns the workspaces that may have something to index.
func (a *Service) toFollow(ctx context.Context) (pending []desk.ID, err error) {
	list, err := a.news.Workspaces(ctx, a.Store)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ws := range list {
		f, known := a.followed[ws]
		if !known {
			f = followed{share: 1, group: group, storedAt: time.Now()}
		}
		f.pending = true
		a.followed[ws] = f
	}
	for ws, f := range a.followed {
		if f.pending {
			pending = append(pending, ws)
		}
	}
	return pending, nil
}

func (a *Service) known(ws desk.ID) followed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.followed[ws]
}

func (a *Service) note(ws desk.ID, f followed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followed[ws] = f
}

func (a *Service) forget(ws desk.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.followed, ws)
}

// wait returns how long to leave the workspace before its next group is indexed.
func (f *followed) wait(p *pace) time.Duration {
	switch {
	case f.taken:
		return taken
	case p.rate > busy && (f.behind > backlog || p.at.Sub(p.calm) > sustained):
		return slow
	}
	return 0
}

// size is how many changes of a workspace to index in one transaction.
func (a *Service) size(f *followed) int {
	if a.pace.rate > 0 {
		return min(f.group, group)
	}
	return f.group
}

// step indexes a group of changes of a workspace.
func (a *Service) step(ctx context.Context, ws desk.ID, f *followed, place store.SearchPlace, newest int64) error {
	switch {
	case place.Rules > desk.SearchRules: // a newer release has begun, and its servers go on
		f.pending, f.behind = false, 0
		return nil
	case place.Rules < desk.SearchRules: // all is built anew, from this moment on
		f.pending = true
		page, err := a.Store.Events(ctx, ws, store.EventQuery{From: store.FromNewest, Bare: true}, ofFollowed)
		if err != nil {
			return err
		}
		to := store.SearchPlace{Rules: desk.SearchRules, Event: page.Next, Building: true, History: place.History}
		return a.store(ctx, ws, f, place, to, nil, nil)
	}
	from := place
	if place.Event == place.History && f.seen.Seq > place.Event.Seq {
		from.Event, from.History = f.seen, f.seen
	}
	f.behind = int64(float64(max(0, newest-from.Event.Seq)) * f.share)
	if f.pending = place.Building || from.Event.Seq != newest || from.History.Seq != newest; !f.pending {
		return nil
	}
	// Mostly, search and history have read equally far, and read the same page. After an
	// upgrade, the history is behind: it begins with the oldest event that is kept.
	kept, err := a.read(ctx, ws, from.History, a.size(f))
	if err == nil && kept.Expired != "" {
		kept, err = a.read(ctx, ws, desk.EventPlace{}, a.size(f))
	}
	if err != nil {
		return err
	}
	page, apart := kept, from.Event.Seq < kept.Start.Seq || from.Event.Seq > kept.Next.Seq
	if apart {
		page, err = a.read(ctx, ws, from.Event, a.size(f))
	}
	switch {
	case err != nil:
		return err
	case page.Expired != "" && from != place: // the database was restored
		f.seen = desk.EventPlace{}
		return nil
	case page.Expired != "": // what has changed is not known any more
		return a.store(ctx, ws, f, place, store.SearchPlace{History: place.History}, nil, nil)
	}
	if span := page.Next.Seq - page.Start.Seq; span > 0 {
		f.share = float64(len(page.Events)) / float64(span)
	}
	f.pending = page.More || kept.More
	if f.behind = 0; page.More {
		f.behind = int64(float64(newest-page.Next.Seq) * f.share)
	}
	to, ids, events := place, contactsOf(page.Events, from.Event), historyOf(kept.Events)
	to.Event, to.History = page.Next, kept.Next
	if place.Building {
		if ids, err = a.build(ctx, ws, f, &to, ids); err != nil {
			return err
		}
	} else if len(ids) == 0 && len(events) == 0 && !apart && from.Event == from.History && page.Next.Seq-place.Event.Seq < far && time.Since(f.storedAt) < longUnstored {
		f.seen = page.Next
		return nil
	}
	return a.store(ctx, ws, f, place, to, ids, events)
}

// read reads changes of contacts after a place (zero: the oldest that are kept).
func (a *Service) read(ctx context.Context, ws desk.ID, after desk.EventPlace, limit int) (*store.EventPage, error) {
	q := store.EventQuery{From: store.FromPlace, After: after, Limit: limit, Bare: true}
	if after.Seq == 0 {
		q.From = store.FromOldest
	}
	return a.Store.Events(ctx, ws, q, ofFollowed)
}

// build adds the next contacts of a workspace whose terms are built.
func (a *Service) build(ctx context.Context, ws desk.ID, f *followed, to *store.SearchPlace, changed []desk.ID) ([]desk.ID, error) {
	n := a.size(f)
	ids, err := a.Store.ContactIDs(ctx, ws, to.Built, n)
	if err != nil {
		return nil, err
	}
	if to.Building = len(ids) == n; to.Building {
		to.Built = ids[n-1]
		f.pending = true
		f.behind += backlog // it is not known how many contacts follow
	} else {
		to.Built = desk.ID{}
	}
	for _, id := range changed {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// store stores the terms of contacts and their history, unless another process indexes the
// workspace.
func (a *Service) store(ctx context.Context, ws desk.ID, f *followed, from, to store.SearchPlace, ids []desk.ID, history []desk.FeedEvent) error {
	began := time.Now()
	done, err := a.Store.IndexContacts(ctx, ws, from, to, ids, history)
	switch took := time.Since(began); {
	case err != nil:
		f.group = max(leastGroup, f.group/2)
	case !done:
		f.pending, f.taken = true, true
	default:
		f.storedAt = began
		if len(ids) >= f.group/2 && took > groupTime { // a large group was slow, or its contacts have many terms
			f.group = max(leastGroup, f.group/2)
		} else if took < groupTime/2 {
			f.group = min(quietGroup, 2*f.group)
		}
	}
	return err
}

// followedTypes are the events that the follower reads.
var followedTypes = append([]desk.EventType{desk.ContactDeleted}, desk.HistoryTypes...)

func ofFollowed(*desk.Settings) ([]desk.EventType, error) { return followedTypes, nil }

// contactsOf returns the contacts whose terms may have changed after a place, each once.
func contactsOf(events []desk.FeedEvent, after desk.EventPlace) (ids []desk.ID) {
	known := map[desk.ID]bool{}
	for i := range events {
		e := &events[i]
		if _, contact := e.Of(); e.Place.Seq > after.Seq && slices.Contains(changes, e.Type) && !known[contact] {
			known[contact] = true
			ids = append(ids, contact)
		}
	}
	return ids
}

// historyOf returns the events that the history keeps.
func historyOf(events []desk.FeedEvent) (list []desk.FeedEvent) {
	for i := range events {
		if slices.Contains(desk.HistoryTypes, events[i].Type) {
			list = append(list, events[i])
		}
	}
	return list
}
