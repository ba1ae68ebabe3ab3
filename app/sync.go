package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/desk"
	"parley/provider"
	"parley/store"

	"golang.org/x/sync/errgroup"
)

const (
	// syncEvery is how old a copy of templates may get.
	syncEvery = time.Hour
	// syncAgain is how long after a failed fetch the next one starts.
	syncAgain = 5 * time.Minute
)

// TemplatesNoted has an element when SyncStale has something to fetch.
func (a *App) TemplatesNoted() <-chan struct{} { return a.libraries.stale.changed }

// syncsAbreast is how many workspaces have templates fetched at a time.
const syncsAbreast = 4

// SyncStale fetches the libraries of channels that changed, or that were not fetched
// for long. Only one of several nodes does so. The channels of one workspace are
// fetched one after the other, and no workspace waits for another's provider.
func (a *App) SyncStale(ctx context.Context) error {
	changed := a.libraries.stale.take()
	var channels []store.ChannelRef
	var err error
	for kind, p := range a.providers {
		if _, simulated := p.(provider.Simulator); !simulated && err == nil {
			var more []store.ChannelRef
			more, err = a.store.ChannelsOfKind(ctx, kind)
			channels = append(channels, more...)
		}
	}
	due := map[desk.ID][]store.ChannelRef{}
	for _, c := range channels {
		var ours bool
		i := slices.Index(changed, c.ID)
		if i < 0 {
			if ours, err = a.syncDue(ctx, c); err != nil {
				break
			}
		}
		if i >= 0 || ours {
			due[c.Workspace] = append(due[c.Workspace], c)
		}
		if i >= 0 {
			changed = slices.Delete(changed, i, i+1)
		}
	}
	a.libraries.stale.again(changed)
	var fetches errgroup.Group
	fetches.SetLimit(syncsAbreast)
	for _, list := range due {
		fetches.Go(func() error {
			for _, c := range list {
				if _, _, err := a.sync(ctx, c.ID); err != nil && ctx.Err() == nil {
					a.log.WarnContext(ctx, "fetching a channel's templates failed", "workspace_id", c.Workspace, "channel_id", c.ID, "err", err)
				}
			}
			return nil
		})
	}
	return errors.Join(err, fetches.Wait())
}

// syncDue tells whether this process should fetch a library now because it was not
// fetched for long.
func (a *App) syncDue(ctx context.Context, c store.ChannelRef) (bool, error) {
	signs, now, err := a.store.ChannelSigns(ctx, c.Workspace, c.ID)
	// If the time is in the future, the clock was set back since.
	if err != nil || signs.Synced <= now && now-signs.Synced < desk.Time(syncEvery.Milliseconds()) {
		return false, err
	}
	return a.store.Lease(ctx, c.Workspace, "sync "+c.ID.String(), desk.Time(syncAgain.Milliseconds()))
}
