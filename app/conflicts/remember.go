package conflicts

import (
	"context"
	"slices"
	"time"

	"parley/desk"
	"parley/store"
)

const (
	// gather is how long refusals are gathered before they are stored.
	gather = 300 * time.Millisecond
	// longest is how long they wait while the database does not store them.
	longest = time.Second
	// atOnce is how many sets one transaction stores; then it is the turn of another workspace.
	atOnce = 50
	// mostSets is how many sets of all workspaces wait in memory.
	mostSets = 20_000
	// lastTime is how long a process that stops may take to store what waits.
	lastTime = 5 * time.Second
)

// Note remembers a refusal for a conflict between several contacts. It costs no read or write;
// other errors are ignored.
func (a *Service) Note(ws desk.ID, actor desk.Actor, refusal error) {
	c := desk.ConflictOf(refusal, actor)
	if c == nil {
		return
	}
	c.FirstAt = a.Now()
	c.LastAt = c.FirstAt
	key, now := c.Key(), a.Uptime()
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.waitingOf(ws, now)
	w.room = min(desk.ConflictBurst, w.room+(now-w.at).Seconds()*desk.ConflictRate)
	w.at = now
	if known := w.sets[key]; known != nil {
		known.Add(c)
		return
	}
	if w.room < 1 || a.sets >= mostSets {
		return // a flood
	}
	w.room--
	a.add(w, key, c)
}

// waitingOf returns what waits of a workspace. It is for a locked Service.
func (a *Service) waitingOf(ws desk.ID, now time.Duration) *waiting {
	w := a.waiting[ws]
	if w == nil {
		w = &waiting{sets: map[[32]byte]*desk.Conflict{}, room: desk.ConflictBurst, at: now}
		a.waiting[ws] = w
	}
	return w
}

// add lets a new set wait. It is for a locked Service.
func (a *Service) add(w *waiting, key [32]byte, c *desk.Conflict) {
	w.sets[key], w.order = c, append(w.order, key)
	a.sets++
	select {
	case a.noted <- struct{}{}:
	default:
	}
}

// putBack lets sets wait again that could not be stored, unless too many wait by now.
func (a *Service) putBack(ws desk.ID, sets []*desk.Conflict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.waitingOf(ws, a.Uptime())
	for _, c := range sets {
		key := c.Key()
		if known := w.sets[key]; known != nil {
			known.Add(c)
		} else if a.sets < mostSets {
			a.add(w, key, c)
		}
	}
}

// NoteAll is Note for several refusals; nil for what was not refused.
func (a *Service) NoteAll(ws desk.ID, actor desk.Actor, refusals []error) {
	for _, err := range refusals {
		if err != nil {
			a.Note(ws, actor, err)
		}
	}
}

// Remember stores conflicts until ctx ends, and then what still waits.
func (a *Service) Remember(ctx context.Context) {
	wait := gather
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-a.noted:
			pause := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			if wait = min(2*wait, longest); a.StoreNow(ctx) {
				wait = gather
			}
		}
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer stop()
	a.StoreNow(last)
}

// StoreNow stores what waits, the workspaces in turn, and tells whether nothing has to wait for the
// next call because the database is away. Remember calls it soon after each refusal; a process
// without Remember calls it by itself.
func (a *Service) StoreNow(ctx context.Context) (all bool) {
	failed := map[desk.ID][]*desk.Conflict{}
	for more := true; more && ctx.Err() == nil; {
		more = false
		for ws, sets := range a.take() {
			if left := a.storeGroup(ctx, ws, sets); left == nil {
				more = true
			} else {
				failed[ws] = append(failed[ws], left...)
			}
		}
	}
	for ws, sets := range failed {
		a.putBack(ws, sets)
	}
	return len(failed) == 0
}

// storeGroup stores conflicts of a workspace, and returns those that have to wait because the
// database is away. One that can't be stored must not block the rest, so then each is stored alone,
// and that one is dropped.
func (a *Service) storeGroup(ctx context.Context, ws desk.ID, sets []*desk.Conflict) (left []*desk.Conflict) {
	err := a.store(ctx, ws, sets)
	switch {
	case err == nil, desk.IsType(err, desk.NotFound): // the workspace was deleted
	case desk.IsType(err, desk.Unavailable), ctx.Err() != nil:
		a.Log.WarnContext(ctx, "conflicts between contacts were not stored; they will be stored again later", "workspace_id", ws, "err", err)
		return sets
	case len(sets) == 1:
		a.Log.ErrorContext(ctx, "a conflict between contacts could not be stored; it is dropped", "workspace_id", ws, "err", err)
	default:
		for n := range sets {
			if a.storeGroup(ctx, ws, sets[n:n+1]) != nil {
				return sets[n:]
			}
		}
	}
	return nil
}

// take takes a few sets of each workspace.
func (a *Service) take() map[desk.ID][]*desk.Conflict {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Uptime()
	taken := map[desk.ID][]*desk.Conflict{}
	for ws, w := range a.waiting {
		n := min(atOnce, len(w.order))
		for _, key := range w.order[:n] {
			taken[ws] = append(taken[ws], w.sets[key])
			delete(w.sets, key)
		}
		w.order = w.order[n:]
		a.sets -= n
		if len(w.order) == 0 && w.room+(now-w.at).Seconds()*desk.ConflictRate >= desk.ConflictBurst {
			delete(a.waiting, ws)
		}
	}
	return taken
}

// store stores conflicts of a workspace.
func (a *Service) store(ctx context.Context, ws desk.ID, sets []*desk.Conflict) error {
	return a.Store.InTx(ctx, ws, func(tx store.Tx) error {
		created := false
		for _, noted := range sets {
			c := *noted
			var err error
			merged := desk.Time(0)
			if c.Contacts, merged, err = there(tx, c.Contacts); err != nil {
				return err
			}
			if len(c.Contacts) < 2 {
				continue // one was deleted meanwhile, or they were merged
			}
			c.LastAt = max(c.LastAt, merged) // then an undo of the merge looks at it
			known, err := tx.ConflictOf(c.Key())
			if err != nil {
				return err
			}
			event := desk.Event{}
			if known == nil {
				c.ID, created = a.NewID(), true
				known, event = &c, c.Event(desk.ConflictCreated, c.Actor, c.LastAt)
			} else if known.Add(&c) {
				event = known.Event(desk.ConflictUpdated, c.Actor, c.LastAt, "status")
			}
			if err := tx.PutConflict(known); err != nil {
				return err
			}
			if event.Type != "" {
				if err := tx.Append(event); err != nil {
					return err
				}
			}
		}
		if !created {
			return nil
		}
		return tx.TrimConflicts(desk.MaxConflicts)
	})
}

// there returns the contacts, sorted. In the place of a contact that was merged stands the one that has
// its data now; merged is the time of the newest such merge. It returns none if one of the contacts was
// deleted: nothing may name its identities any more.
func there(tx store.Tx, ids []desk.ID) (list []desk.ID, merged desk.Time, err error) {
	exist, err := tx.KeepContacts(ids)
	if err != nil {
		return nil, 0, err
	}
	for _, id := range ids {
		if !exist[id] {
			m, err := tx.MergeOf(id)
			if err != nil || m == nil {
				return nil, 0, err
			}
			id, merged = m.Survivor, max(merged, m.At)
		}
		list = append(list, id)
	}
	slices.SortFunc(list, desk.ID.Compare)
	return slices.Compact(list), merged, nil
}
