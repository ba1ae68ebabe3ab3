package store

import (
	"context"
	"errors"

	"parley/desk"
)

// ErrOwns is the error of a Store that is asked to remove a member who still owns
// contacts or holds open conversations.
var ErrOwns = errors.New("the member still owns contacts or holds open conversations")

// Settings keeps workspaces and their configuration.
type Settings interface {
	// Authenticate returns the settings of the workspace that has a key with this
	// public id, or NotFound. It does not check the secret.
	Authenticate(ctx context.Context, publicID string) (*desk.Settings, error)

	// Settings returns a workspace's configuration, or NotFound.
	Settings(ctx context.Context, ws desk.ID) (*desk.Settings, error)

	// UpdateSettings calls decide with the current configuration and stores the change
	// that decide returns. No other edit happens in between. If decide returns an error,
	// UpdateSettings returns it unchanged. It returns NotFound if there is no such
	// workspace, and ErrOwns if a member to be removed still owns contacts or holds open
	// conversations.
	UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error

	// DeleteWorkspace marks a workspace as deleted. It first calls check with the
	// workspace's name; if check returns an error, DeleteWorkspace returns it unchanged.
	// From the commit on, only this method, EraseWorkspace and Deleting find the workspace,
	// its keys, members and channels. It returns NotFound if there is no such workspace.
	// Marking a workspace twice has no further effect.
	DeleteWorkspace(ctx context.Context, ws desk.ID, check func(name string) error) error

	// EraseWorkspace deletes up to limit records of a workspace that is marked as deleted,
	// in one transaction, and returns how many it deleted. When it returns 0, the
	// workspace itself is deleted too.
	EraseWorkspace(ctx context.Context, ws desk.ID, limit int) (int, error)

	// CreateWorkspace stores a new, empty workspace.
	CreateWorkspace(ctx context.Context, w desk.Workspace) error

	// Shared lists the claims that several contacts of a workspace have shared since an
	// older release, by kind and value, with the contacts by id.
	Shared(ctx context.Context, ws desk.ID) ([]desk.SharedClaim, error)

	// Workspaces lists all workspaces by id, so the oldest comes first.
	Workspaces(ctx context.Context) ([]desk.Workspace, error)

	// Deleting returns the workspaces that are marked as deleted and not erased yet, by
	// id.
	Deleting(ctx context.Context) ([]desk.Workspace, error)

	// ChannelsOfKind lists the channels of a kind in all workspaces.
	ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) ([]ChannelRef, error)

	// Resealed tells whether the secrets of the first release have been sealed again.
	// SetResealed stores that this has been done.
	Resealed(ctx context.Context) (bool, error)
	SetResealed(ctx context.Context) error

	// ChannelSigns returns the times at which a channel last worked, and the database's
	// clock.
	ChannelSigns(ctx context.Context, ws, channel desk.ID) (signs desk.ChannelSigns, now desk.Time, err error)

	// NoteChannel stores the database's current time for one of a channel's signs.
	NoteChannel(ctx context.Context, ws, channel desk.ID, sign ChannelSign) error

	// PutKeyUses stores when keys of a workspace were last used. It does not change the
	// version of the settings. It ignores keys that do not exist any more, and keys with a
	// later use. KeyUses returns the times of the keys that were used.
	PutKeyUses(ctx context.Context, ws desk.ID, uses map[desk.ID]desk.Time) error
	KeyUses(ctx context.Context, ws desk.ID) (map[desk.ID]desk.Time, error)

	// Metrics returns the values of /metrics that concern the whole database. now is the
	// caller's time: it decides whether a channel's block has ended. Metrics reads all
	// channels, and at most a hundred thousand attempts in doubt, waiting items and
	// broadcasts. It reads no contacts, conversations or messages.
	Metrics(ctx context.Context, now desk.Time) (Metrics, error)

	// WorkspaceOf returns the workspace of the member, key, channel, webhook or unsettled
	// attempt with this id, or NotFound.
	WorkspaceOf(ctx context.Context, id desk.ID) (desk.ID, error)
}

// A ChannelSign names one of the times of desk.ChannelSigns.
type ChannelSign string

// The signs that a channel works.
const (
	SignSynced ChannelSign = "synced"
	SignAsked  ChannelSign = "asked"
)

// A ChannelRef identifies a channel and its workspace.
type ChannelRef struct{ Workspace, ID desk.ID }

// UpdateSettings changes a workspace and appends an event for each real change, with the
// given actor and clock. It returns the errors of Settings.UpdateSettings.
func UpdateSettings(ctx context.Context, all Settings, ws desk.ID, by desk.Actor, now func() desk.Time, decide func(*desk.Settings) (desk.Change, error)) error {
	return all.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		change, err := decide(s)
		if err != nil {
			return desk.Change{}, err
		}
		return change.Against(s, by, now()), nil
	})
}

// UpdateSettingsAs is UpdateSettings in a principal's workspace. It checks inside the
// transaction that the principal has a permission.
func UpdateSettingsAs(ctx context.Context, all Settings, p desk.Principal, needs desk.Permission, now func() desk.Time, decide func(*desk.Settings) (desk.Change, error)) error {
	return UpdateSettings(ctx, all, p.Workspace(), p.Actor, now, func(s *desk.Settings) (desk.Change, error) {
		if err := p.Still(s, needs, now()); err != nil {
			return desk.Change{}, err
		}
		return decide(s)
	})
}
