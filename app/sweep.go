package app

import (
	"context"
	"errors"

	"parley/app/access"
	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// callbackGroup is how many callbacks one step deletes. It is small because their bodies may
// be long.
const callbackGroup = 50

// Sweep marks attempts as in doubt if their process must have died. It never sends.
func (a *App) Sweep(ctx context.Context) error {
	margin := desk.Time(a.bounds.Margin.Milliseconds())
	lapsed, err := a.store.Lapsed(ctx, a.bounds.lease(), margin, steps.Group)
	if err != nil {
		return err
	}
	var failed []error
	for _, l := range lapsed {
		if _, err := a.doubt(ctx, l.Workspace, l.ID, true); err != nil {
			failed = append(failed, err) // go on: the next attempt may be of another workspace
			continue
		}
		a.Metrics.sends.inDoubt.Add(1)
		a.log.WarnContext(ctx, "the outcome of a send is unknown: its process ended during the send", "workspace_id", l.Workspace, "attempt_id", l.ID)
	}
	return errors.Join(failed...)
}

// ForgetAlone runs Forget, unless another process has run it within the hour.
func (a *App) ForgetAlone(ctx context.Context) error {
	ours, err := a.store.Lease(ctx, desk.ID{}, "forget", steps.ForgetAgain)
	if err != nil || !ours {
		return err
	}
	return a.Forget(ctx)
}

// Forget deletes expired attempts and their keys, early statuses of unknown messages,
// hashes of deleted messages, values in old merges, old conflicts, bodies of old callbacks, old imports of the console, unused uploads, expired sessions and sign-in links, old counts
// of messages, and expired places in the pace.
func (a *App) Forget(ctx context.Context) error {
	workspaces, err := a.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	failed := []error{
		a.store.ForgetPace(ctx, desk.ID{}, access.LongestThrottle), a.Media.DropDrafts(ctx),
		steps.Abreast(ctx, workspaces, func(w desk.Workspace) error { return a.forget(ctx, w.ID) }),
	}
	return errors.Join(failed...)
}

func (a *App) forget(ctx context.Context, ws desk.ID) error {
	if err := steps.InGroups(ctx, steps.Group, func(limit int) (int, error) {
		return a.store.ForgetAttempts(ctx, ws, desk.KeyLife, limit)
	}); err != nil {
		return err
	}
	if err := steps.InGroups(ctx, callbackGroup, func(limit int) (int, error) {
		return a.store.ForgetCallbacks(ctx, ws, desk.KeepCallback, limit)
	}); err != nil {
		return err
	}
	if err := steps.InGroups(ctx, steps.Group, func(limit int) (int, error) {
		return a.store.ForgetErased(ctx, ws, desk.ErasedLife, limit)
	}); err != nil {
		return err
	}
	if err := a.store.InTx(ctx, ws, func(tx store.Tx) error {
		if err := tx.DropStatuses(desk.StatusLife); err != nil {
			return err
		}
		return tx.DropDays(desk.DayOf(desk.Ago(0, tx.Now(), a.now())) - desk.KeepDays)
	}); err != nil {
		return err
	}
	if err := a.Deliver.Forget(ctx, ws); err != nil {
		return err
	}
	if err := a.Imports.Forget(ctx, ws); err != nil {
		return err
	}
	if err := steps.InGroups(ctx, steps.Group, func(limit int) (int, error) {
		return a.Merges.Forget(ctx, ws, limit)
	}); err != nil {
		return err
	}
	if err := steps.InGroups(ctx, steps.Group, func(limit int) (int, error) {
		return a.Conflicts.Forget(ctx, ws, limit)
	}); err != nil {
		return err
	}
	if err := a.Media.Forget(ctx, ws); err != nil {
		return err
	}
	if err := a.store.ForgetAccess(ctx, ws, a.now()); err != nil {
		return err
	}
	return a.store.ForgetPace(ctx, ws, longestHold)
}
