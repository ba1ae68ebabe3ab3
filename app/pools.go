package app

import (
	"context"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

const (
	// poolEvery is how often a process looks for waiting conversations. They must be
	// assigned within 10 seconds after a member becomes eligible.
	poolEvery = 2 * time.Second

	// poolStep is how many conversations are assigned in one transaction. Others wait for it.
	poolStep = 50

	maxPools = 4 // workspaces at a time
)

// longest is the filter for the order in which conversations are assigned: the longest wait
// first.
var longest = desk.ConversationFilter{Longest: true}

// AssignWaiting assigns unassigned conversations in which a person waits, until ctx ends.
// They can be assigned when a member has capacity again or is back, when the hours begin,
// or when the policy is changed.
func (a *App) AssignWaiting(ctx context.Context) {
	steps.Jobs{Work: "assign waiting conversations", Every: poolEvery, Most: maxPools, MostOf: 1, Due: a.poolsDue, Next: a.assignSome}.Run(ctx, a.log)
}

// After poolAnyway, a workspace is looked at again, even if nothing seems to have changed.
// After a restore, a changed workspace may have the same version numbers as before.
const poolAnyway = desk.Time(60 * 60 * 1000)

// poolsAnyway is how often the pools of all workspaces are read, even of those without news.
const poolsAnyway = time.Minute

// poolsDue returns the workspaces in which a member may be eligible for waiting
// conversations. Other workspaces need no query, however many there are.
func (a *App) poolsDue(ctx context.Context) (due []desk.ID, err error) {
	if err := a.readPools(ctx); err != nil {
		return nil, err
	}
	p := &a.pools
	p.mu.Lock()
	none := len(p.found) == 0
	p.mu.Unlock()
	if none {
		return nil, nil
	}
	now, _, err := a.store.Clock(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	vain := make(map[desk.ID]vainLook, len(p.vain))
	for _, pool := range p.found {
		if v, known := p.vain[pool.Workspace]; known && v.pool == pool && v.from <= now && now < v.until {
			vain[pool.Workspace] = v
		} else {
			due = append(due, pool.Workspace)
		}
	}
	p.vain = vain
	return due, nil
}

// readPools reads the pools of the workspaces with news, and sometimes those of all.
func (a *App) readPools(ctx context.Context) error {
	p, began := &a.pools, time.Now()
	news, all := p.news.Take()
	p.mu.Lock()
	all = all || began.Sub(p.allAt) >= poolsAnyway
	p.mu.Unlock()
	if all {
		news = nil
	} else if len(news) == 0 {
		return nil
	}
	list, err := a.store.Pools(ctx, news)
	if err != nil {
		p.news.Add(news, all)
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if all {
		p.found, p.allAt = make(map[desk.ID]store.Pool, len(list)), began
	}
	for _, ws := range news {
		delete(p.found, ws)
	}
	for _, pool := range list {
		p.found[pool.Workspace] = pool
	}
	return nil
}

// assignSome assigns waiting conversations of a workspace, the longest wait first. It
// reports whether there may be more.
func (a *App) assignSome(ctx context.Context, ws desk.ID) (more bool, err error) {
	defer steps.Caught("waiting conversations", &err)
	pool := a.pools.look(ws)
	now, _, err := a.store.Clock(ctx)
	if err != nil {
		return false, err
	}
	settings, err := a.store.Settings(ctx, ws)
	if err != nil {
		return false, err
	}
	channels, opening := settings.Assigning(now)
	if len(channels) > 0 {
		more, err = a.assignPool(ctx, ws)
	}
	if err == nil && !more {
		a.pools.wasVain(vainLook{pool, now, min(opening, now+poolAnyway)})
	}
	return more, err
}

// assignPool assigns up to poolStep waiting conversations. It reports whether it assigned
// any.
func (a *App) assignPool(ctx context.Context, ws desk.ID) (more bool, err error) {
	err = a.store.InTx(ctx, ws, func(tx store.Tx) error {
		more = false
		if err := tx.LockAssignment(); err != nil {
			return err
		}
		var pool []*desk.Conversation
		channels, _ := tx.Settings().Assigning(tx.Now())
		for _, channel := range channels {
			list, err := tx.Pool(channel, poolStep)
			if err != nil {
				return err
			}
			pool = append(pool, list...)
		}
		slices.SortFunc(pool, func(v, w *desk.Conversation) int { return v.PlaceIn(longest).Compare(w.PlaceIn(longest)) })
		nobody := map[desk.ID]bool{} // by the policy's channel: no member is eligible
		assigned := 0
		for _, c := range pool {
			p := tx.Settings().Policy(c.ChannelID)
			if nobody[p.Channel] || assigned == poolStep {
				continue
			}
			before := *c
			ok, err := a.assignByRule(tx, p, c)
			if err != nil {
				return err
			}
			if !ok {
				nobody[p.Channel] = true
				continue
			}
			if err := tx.PutConversation(c); err != nil {
				return err
			}
			if err := tx.Append(conversationEvents(c, &before, bySystem(), a.now())...); err != nil {
				return err
			}
			assigned++
		}
		more = assigned > 0
		return nil
	})
	return more, err
}
