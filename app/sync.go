package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

const (
	// syncEvery is how old a copy of templates may get.
	syncEvery = time.Hour
	// syncAgain is how long after a failed fetch the next one starts.
	syncAgain = 5 * time.Minute
)

// TemplatesNoted returns a channel that has an element when SyncStale has something to
// fetch.
func (a *App) TemplatesNoted() <-chan struct{} { return a.libraries.stale.changed }

// SyncStale fetches the templates of up to syncsAbreast channels at a time.
const syncsAbreast = 4

// SyncStale fetches a channel's library if the channel has changed, or if the last fetch
// was long ago. Only one of several nodes does so. The channels of one workspace are fetched one
// after the other, and no workspace waits for another's provider. Workspaces that an
// earlier call is still fetching are left out, so that this call does not wait for them.
func (a *App) SyncStale(ctx context.Context) error {
	l := &a.libraries
	changed := l.stale.take()
	var channels []store.ChannelRef
	var err error
	for kind, p := range a.providers {
		if _, simulated := p.(provider.Simulator); !simulated && err == nil {
			var more []store.ChannelRef
			more, err = a.store.ChannelsOfKind(ctx, kind)
			channels = append(channels, more...)
		}
	}
	due, entered := map[desk.ID][]store.ChannelRef{}, map[desk.ID]bool{}
	for _, c := range channels {
		ours, looked := entered[c.Workspace]
		if !looked {
			ours = l.queue.enter(c.Workspace)
			entered[c.Workspace] = ours
		}
		i := slices.Index(changed, c.ID)
		if !ours {
			if i >= 0 {
				l.queue.again(c.Workspace)
			}
			continue
		}
		if i < 0 {
			if ours, err = a.syncDue(ctx, c); err != nil {
				break
			}
		}
		if ours {
			due[c.Workspace] = append(due[c.Workspace], c)
		}
		if i >= 0 {
			changed = slices.Delete(changed, i, i+1)
		}
	}
	l.stale.again(changed)
	slot := func() bool {
		select {
		case l.slots <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var fetches sync.WaitGroup
	for ws, ours := range entered {
		if !ours {
			continue
		}
		leave := func() {
			if l.queue.leave(ws) {
				steps.Wake(l.stale.changed)
			}
		}
		if due[ws] == nil || !slot() {
			leave()
			continue
		}
		fetches.Go(func() {
			defer leave()
			for i, c := range due[ws] {
				if i > 0 && !slot() {
					return
				}
				if _, _, err := a.sync(ctx, c.Workspace, c.ID); err != nil && ctx.Err() == nil {
					a.log.WarnContext(ctx, "fetching a channel's templates failed", "workspace_id", c.Workspace, "channel_id", c.ID, "err", err)
				}
				<-l.slots
			}
		})
	}
	fetches.Wait()
	return err
}

// syncDue reports whether this process should fetch a library now, because the last fetch
// was long ago.
func (a *App) syncDue(ctx context.Context, c store.ChannelRef) (bool, error) {
	signs, now, err := a.store.ChannelSigns(ctx, c.Workspace, c.ID)
	// A time in the future does not count: the clock was set back after it was stored.
	if err != nil || signs.Synced <= now && now-signs.Synced < desk.Time(syncEvery.Milliseconds()) {
		return false, err
	}
	return a.store.Lease(ctx, c.Workspace, "sync "+c.ID.String(), desk.Time(syncAgain.Milliseconds()))
}
