package app

import (
	"context"

	"parley/desk"
	"parley/store"
)

// Policy returns the reply policy in force on a channel, or nil. With the zero id, it returns
// the workspace's policy. It returns NotFound for an unknown channel.
func (a *App) Policy(p desk.Principal, channel desk.ID) (*desk.Policy, error) {
	return p.Settings.Policy(channel), knownChannel(p.Settings, channel)
}

func knownChannel(s *desk.Settings, channel desk.ID) error {
	if !channel.IsZero() && s.Channel(channel) == nil {
		return desk.NoChannel()
	}
	return nil
}

// SetPolicy replaces the reply policy of a channel (zero: of the workspace), and returns the
// policy that is in force afterwards, or nil. It returns InvalidRequest, and NotFound for an
// unknown channel.
func (a *App) SetPolicy(ctx context.Context, p desk.Principal, channel desk.ID, in desk.PolicyInput) (*desk.Policy, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	return a.EditPolicy(ctx, p, channel, func(*desk.Policy) (desk.PolicyInput, error) { return in, nil })
}

// EditPolicy is like SetPolicy, with the result of the function edit. This function gets
// the own policy of the channel or the workspace, or nil. It may run more than once.
func (a *App) EditPolicy(ctx context.Context, p desk.Principal, channel desk.ID, edit func(own *desk.Policy) (desk.PolicyInput, error)) (*desk.Policy, error) {
	var set *desk.Policy
	err := store.UpdateSettingsAs(ctx, a.store, p, desk.PolicyWrite, a.now, func(s *desk.Settings) (desk.Change, error) {
		if err := knownChannel(s, channel); err != nil {
			return desk.Change{}, err
		}
		in, err := edit(s.OwnPolicy(channel))
		if err != nil {
			return desk.Change{}, err
		}
		policy, err := in.Policy(s, channel)
		if err != nil {
			return desk.Change{}, err
		}
		set = &policy
		if old := s.Policy(channel); set.Same(old) {
			set = old
			return desk.Change{}, nil
		}
		return desk.Change{Policies: []*desk.Policy{set}}, nil
	})
	return set, err
}

// ClearPolicy removes a channel's own reply policy or, with the zero id, the workspace's. It
// returns NotFound for an unknown channel.
func (a *App) ClearPolicy(ctx context.Context, p desk.Principal, channel desk.ID) error {
	return store.UpdateSettingsAs(ctx, a.store, p, desk.PolicyWrite, a.now, func(s *desk.Settings) (desk.Change, error) {
		return desk.Change{RemovePolicy: s.OwnPolicy(channel)}, knownChannel(s, channel)
	})
}

// Hours reports whether an instant (nil: now) is within the hours of the policy in force on
// a channel, and when the hours next begin or end. changes is false if they do neither in
// the days that parley looks ahead. It returns NotFound for an unknown channel.
func (a *App) Hours(p desk.Principal, channel desk.ID, at *desk.Time) (open bool, until desk.Time, changes bool, err error) {
	if err := knownChannel(p.Settings, channel); err != nil {
		return false, 0, false, err
	}
	if at == nil {
		now := a.now()
		at = &now
	}
	var h *desk.Hours
	if policy := p.Settings.Policy(channel); policy != nil {
		h = policy.Hours
	}
	until, changes = h.Until(*at)
	return h.Open(*at), until, changes, nil
}
