package store

import (
	"context"

	"parley/desk"
)

// Access keeps what members sign in with. Sessions and links are found by hashes
// of what the browser has. Removing a member removes all of this, and storing a member
// whose SessionsFrom has grown removes all sessions and links of the member.
type Access interface {
	// Session returns a session, also an expired one, and the settings of its workspace.
	// It returns nil if there is none.
	Session(ctx context.Context, hash string) (*Session, *desk.Settings, error)

	// LoginLink returns a link, also an expired one, and the settings of its workspace.
	// It returns nil if there is none.
	LoginLink(ctx context.Context, hash string) (*LoginLink, *desk.Settings, error)

	// MembersByEmail returns up to most members of all workspaces who have an e-mail,
	// given in its canonical form, by their ids, with what their passwords are proved by.
	// All is as it was at one moment.
	MembersByEmail(ctx context.Context, canonical string, most int) ([]MemberAccess, error)

	// MostRecipes returns how many different beginnings the hashes of passwords of one
	// e-mail have at most, without the last bytes of each, of which there are tail.
	MostRecipes(ctx context.Context, tail int) (int, error)

	// MovePassword stores another hash of the same password, unless it was replaced.
	MovePassword(ctx context.Context, ws, member desk.ID, from, to string) error

	// Password returns the hash of a member's password, "" if there is none.
	Password(ctx context.Context, ws, member desk.ID) (string, error)

	// LastSeen returns when members of a workspace were last seen (AccessTx.NoteSeen).
	LastSeen(ctx context.Context, ws desk.ID) (map[desk.ID]desk.Time, error)

	// Held counts what RemoveMember releases, each up to most.
	Held(ctx context.Context, ws, member desk.ID, most int) (contacts, conversations int, err error)

	// ForgetAccess deletes the sessions and links of a workspace that expired before a
	// time.
	ForgetAccess(ctx context.Context, ws desk.ID, before desk.Time) error
}

// An AccessTx reads and writes what members sign in with. They must be members.
type AccessTx interface {
	// BeginSession stores a new session, and deletes the member's oldest ones beyond
	// most.
	BeginSession(hash string, s Session, most int) error

	// KeepSession stores the expiry and the data of a session. It returns false if there
	// is no such session.
	KeepSession(hash string, s Session) (bool, error)
	EndSession(hash string) error

	// PutLoginLink stores a new link. TakeLoginLink deletes a link and returns it, nil if
	// there is none; only one of several calls gets it.
	PutLoginLink(hash string, l LoginLink) error
	TakeLoginLink(hash string) (*LoginLink, error)

	// NoteSeen stores that a member was seen.
	NoteSeen(member desk.ID, at desk.Time) error
}

// A Session is a member's, in one browser.
type Session struct {
	Workspace, Member  desk.ID
	BegunAt, ExpiresAt desk.Time
	Data               []byte // of the console
}

// A LoginLink lets a member sign in once.
type LoginLink struct {
	Workspace, Member desk.ID
	ExpiresAt         desk.Time
}

// A MemberRef identifies a member.
type MemberRef struct{ Workspace, ID desk.ID }

// A MemberAccess is what a member's password is proved by.
type MemberAccess struct {
	MemberRef
	SessionsFrom desk.Time
	Password     string // its hash; "": none
}
