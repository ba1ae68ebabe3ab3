package search

import (
	"context"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

const (
	// group is how many changes one transaction indexes. On SQLite, everybody's writes wait for
	// it. While nobody writes, it is quietGroup.
	group      = 100
	quietGroup = 500

	// collect is how long news are collected before they are read.
	collect = 100 * time.Millisecond

	// far is how many events a workspace's place may be behind without being stored, if no
	// contact has changed in them. To store it after each message would cost as much as
	// storing the message.
	far = 1000

	// A follower that is more than backlog events behind gives way while contacts change
	// faster than busy a second: then it indexes one group in slow. Indexing a contact costs
	// about five times as much as storing it.
	backlog = 1000
	busy    = 500
	slow    = 2 * time.Second

	// window is the least time in which it is measured how fast contacts change.
	window = 200 * time.Millisecond

	// taken is how long to leave a workspace to another process that indexes it.
	taken = 300 * time.Millisecond
)

// measure notes how many changes this process has stored, and the newest events.
func (p *pace) measure(now time.Time, stored int64, heads map[desk.ID]store.Head) {
	since := now.Sub(p.at)
	if since < window {
		return
	}
	n := stored - p.stored
	newest := make(map[desk.ID]int64, len(heads))
	for ws, head := range heads {
		newest[ws] = head.Event
		if before, known := p.heads[ws]; known { // other processes may have stored more
			n = max(n, head.Event-before)
		}
	}
	if p.rate = float64(n) / since.Seconds(); p.at.IsZero() {
		p.rate = 0
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
			wait = slow
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
// until the next step; less than 0: until there is news.
func (a *Service) Step(ctx context.Context) (wait time.Duration, err error) {
	list, err := a.toFollow(ctx)
	if err != nil || len(list) == 0 {
		return -1, err
	}
	heads, err := a.Store.Heads(ctx, list)
	if err != nil {
		return 0, err
	}
	places, err := a.Store.SearchPlaces(ctx, list)
	if err != nil {
		return 0, err
	}
	now, stored := time.Now(), int64(0)
	for _, t := range changes {
		stored += a.Feed.Stored()[t]
	}
	a.pace.measure(now, stored, heads)
	err = steps.Abreast(ctx, list, func(ws desk.ID) error {
		f := a.known(ws)
		if now.Before(f.next) {
			return nil
		}
		f.taken = false
		head, there := heads[ws]
		was := f.far
		if f.far = there && head.Event-places[ws].Event.Seq > backlog; f.far && !was { // how fast they change now is measured first
			f.next = now.Add(window)
			a.note(ws, f)
			return nil
		}
		if !there { // the workspace was deleted
			f.pending, f.behind = false, 0
		} else if err := a.step(ctx, ws, &f, places[ws], head.Event); err != nil && !desk.IsType(err, desk.NotFound) {
			return err
		}
		if f.next = now.Add(f.wait(a.pace.rate)); !f.pending {
			f.next = time.Time{}
		}
		a.note(ws, f)
		return nil
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
	list, all := a.news.Take()
	if all {
		workspaces, err := a.Store.Workspaces(ctx)
		if err != nil {
			a.news.Add(list, true)
			return nil, err
		}
		list = nil
		for _, w := range workspaces {
			list = append(list, w.ID)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ws := range list {
		f := a.followed[ws]
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

// wait returns how long to leave the workspace before its next group is indexed. rate is how
// many contacts change a second.
func (f *followed) wait(rate float64) time.Duration {
	switch {
	case f.taken:
		return taken
	case rate > busy && f.behind > backlog:
		return slow
	}
	return 0
}

// group is how many changes to index in one transaction.
func (p *pace) group() int {
	if p.rate == 0 {
		return quietGroup
	}
	return group
}

// step indexes a group of changes of a workspace.
func (a *Service) step(ctx context.Context, ws desk.ID, f *followed, place store.SearchPlace, newest int64) error {
	if place.Rules == desk.SearchRules && !place.Building {
		return a.index(ctx, ws, f, place, newest)
	}
	to, ids, n := place, []desk.ID(nil), a.pace.group()
	f.pending, f.behind = true, newest-place.Event.Seq
	if place.Rules != desk.SearchRules { // all is built anew, from this moment on
		page, err := a.Store.Events(ctx, ws, store.EventQuery{From: store.FromNewest, Bare: true}, ofChanges)
		if err != nil {
			return err
		}
		to = store.SearchPlace{Rules: desk.SearchRules, Event: page.Next, Building: true}
	} else {
		var err error
		if ids, err = a.Store.ContactIDs(ctx, ws, place.Built, n); err != nil {
			return err
		}
		if to.Built, to.Building = (desk.ID{}), len(ids) == n; to.Building {
			to.Built = ids[n-1]
			f.behind += backlog // it is not known how many contacts follow
		}
	}
	return a.store(ctx, ws, f, place, to, ids)
}

// index indexes a group of the changes after a workspace's place.
func (a *Service) index(ctx context.Context, ws desk.ID, f *followed, place store.SearchPlace, newest int64) error {
	from := place.Event
	if f.seen.Seq > from.Seq {
		from = f.seen
	}
	f.behind = max(0, newest-from.Seq)
	if f.pending = from.Seq != newest; !f.pending {
		return nil
	}
	page, err := a.Store.Events(ctx, ws, store.EventQuery{From: store.FromPlace, After: from, Limit: a.pace.group(), Bare: true}, ofChanges)
	switch {
	case err != nil:
		return err
	case page.Expired != "" && from != place.Event: // the database was restored
		f.seen = desk.EventPlace{}
		return nil
	case page.Expired != "": // what has changed is not known any more
		return a.store(ctx, ws, f, place, store.SearchPlace{}, nil)
	}
	f.pending = page.More
	if f.behind = 0; page.More {
		f.behind = newest - page.Next.Seq
	}
	if len(page.Events) == 0 && page.Next.Seq-place.Event.Seq < far {
		f.seen = page.Next
		return nil
	}
	to := place
	to.Event = page.Next
	return a.store(ctx, ws, f, place, to, contactsOf(page.Events))
}

// store stores the terms of contacts, unless another process indexes the workspace.
func (a *Service) store(ctx context.Context, ws desk.ID, f *followed, from, to store.SearchPlace, ids []desk.ID) error {
	done, err := a.Store.IndexContacts(ctx, ws, from, to, ids)
	if err == nil && !done {
		f.pending, f.taken = true, true
	}
	return err
}

func ofChanges(*desk.Settings) ([]desk.EventType, error) { return changes, nil }

// contactsOf returns the contacts of events, each once.
func contactsOf(events []desk.FeedEvent) (ids []desk.ID) {
	known := map[desk.ID]bool{}
	for i := range events {
		if _, contact := events[i].Of(); !known[contact] {
			known[contact] = true
			ids = append(ids, contact)
		}
	}
	return ids
}
