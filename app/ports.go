package app

import (
	"context"

	"parley/desk"
)

// A Store is the database. Its methods are safe for concurrent use. Beside the
// errors they name, any may return Unavailable when the database can't answer now;
// other errors are a bug's.
//
// No method sees past the workspace it is given: a record of another one does not
// exist for it.
type Store interface {
	// Authenticate returns the settings of the workspace that has a key with this
	// public id, or NotFound. It says nothing of the secret.
	Authenticate(ctx context.Context, publicID string) (*desk.Settings, error)

	// Contact returns a contact, or NotFound, and with a contact the settings of the
	// very moment at which it was read.
	Contact(ctx context.Context, ws, id desk.ID) (*desk.Contact, *desk.Settings, error)

	// Contacts returns up to limit contacts that pass the filter and stand after
	// the place given, in export order.
	Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) ([]*desk.Contact, error)

	// UpdateContacts loads all that ops can touch into a Book, calls apply, and
	// stores what it changed, all or nothing; when it returns nil, that is durable.
	// apply may run more than once, each time on a fresh Book. It returns NotFound
	// when there is no such workspace. After Unavailable nothing is stored, or, if
	// the answer to a commit was lost, it is unknown whether it is.
	UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(*desk.Book)) error

	// Settings returns a workspace's configuration, or NotFound.
	Settings(ctx context.Context, ws desk.ID) (*desk.Settings, error)

	// UpdateSettings calls decide with the present configuration and stores the
	// change it returns, unless that is an error, which it returns as it is. No
	// other edit comes in between. It returns NotFound when there is no such
	// workspace, and ErrOwns when a member to be removed still owns contacts.
	UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error

	// CreateWorkspace stores a new, empty workspace.
	CreateWorkspace(ctx context.Context, w desk.Workspace) error

	// Workspaces lists all workspaces by id, which is by age.
	Workspaces(ctx context.Context) ([]desk.Workspace, error)

	// WorkspaceOf returns the workspace that the member or key with this id belongs
	// to, or NotFound.
	WorkspaceOf(ctx context.Context, id desk.ID) (desk.ID, error)

	// Ready tells whether the database can answer now.
	Ready(ctx context.Context) error
}
