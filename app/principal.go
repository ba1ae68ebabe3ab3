package app

import (
	"context"
	"errors"

	"parley/desk"
	"parley/store"
)

// Operator returns the principal of the command line in a workspace, or NotFound. It has
// all permissions, because a person who can run commands can read the database anyway.
func (a *App) Operator(ctx context.Context, ws desk.ID) (desk.Principal, error) {
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return desk.Principal{}, err
	}
	return desk.Principal{Actor: desk.Actor{Kind: desk.ByCLI}, Settings: s}, nil
}

// OperatorOf is like Operator, for the workspace of a member, key, channel or unsettled
// attempt with this id.
func (a *App) OperatorOf(ctx context.Context, id desk.ID) (desk.Principal, error) {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return desk.Principal{}, err
	}
	return a.Operator(ctx, ws)
}

// OperatorOfAttempt is like Operator, for the workspace of an attempt. It returns NotFound
// if there is no such attempt.
func (a *App) OperatorOfAttempt(ctx context.Context, id desk.ID) (desk.Principal, error) {
	p, err := a.OperatorOf(ctx, id)
	if !desk.IsType(err, desk.NotFound) {
		return p, err
	}
	workspaces, err := a.store.Workspaces(ctx) // a settled attempt must be searched in each workspace
	if err != nil {
		return desk.Principal{}, err
	}
	for _, w := range workspaces {
		at, err := a.store.Attempt(ctx, w.ID, id)
		if at != nil && err == nil {
			return a.Operator(ctx, w.ID)
		}
		if err != nil {
			return desk.Principal{}, err
		}
	}
	return desk.Principal{}, noAttempt()
}

// OperatorOfMedia is like Operator, for the workspace of a file. It returns NotFound if
// there is no such file.
func (a *App) OperatorOfMedia(ctx context.Context, id desk.ID) (desk.Principal, error) {
	workspaces, err := a.store.Workspaces(ctx)
	if err != nil {
		return desk.Principal{}, err
	}
	for _, w := range workspaces {
		m, err := a.store.Media(ctx, w.ID, id)
		if err != nil {
			return desk.Principal{}, err
		}
		if m != nil {
			return a.Operator(ctx, w.ID)
		}
	}
	return desk.Principal{}, desk.NoMedia()
}

// byProvider is the actor for reports of a channel's provider.
func byProvider(channel desk.ID) desk.Actor { return desk.Actor{Kind: desk.ByProvider, ID: channel} }

// ErrStale is returned for a presumed principal if the workspace's settings have
// changed. Nothing was done; the caller must Authenticate and try again.
var ErrStale = errors.New("the workspace's settings have changed since this principal was authenticated")

// configure changes the principal's workspace, if the principal may administer it.
func (a *App) configure(ctx context.Context, p desk.Principal, decide func(*desk.Settings) (desk.Change, error)) error {
	if err := p.Allow(desk.Administer); err != nil {
		return err
	}
	return store.UpdateSettings(ctx, a.store, p.Workspace(), p.Actor, a.now, func(s *desk.Settings) (desk.Change, error) {
		if err := p.Still(s, desk.Administer, 0); err != nil { // p is not a key, so no time is needed
			return desk.Change{}, err
		}
		return decide(s)
	})
}

// administered returns a channel of the principal's workspace if the principal may
// administer it, or NotFound.
func administered(p desk.Principal, channel desk.ID) (*desk.Channel, error) {
	if err := p.Allow(desk.Administer); err != nil {
		return nil, err
	}
	if c := p.Settings.Channel(channel); c != nil {
		return c, nil
	}
	return nil, errNoChannel
}

var errNoChannel = desk.NotFoundf("no channel has this id").Advise(desk.ListChannels)
