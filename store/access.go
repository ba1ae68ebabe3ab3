package store

import (
	"context"

	"parley/desk"
)

// Access keeps sessions, sign-in links and password hashes of members. Sessions and
// links are found by hashes of the secrets that the browser holds. Removing a member
// removes all of this. Storing a member with a larger SessionsFrom removes the member's
// sessions and links.
type Access interface {
	// Session returns a session and the settings of its workspace. The session may have
	// expired. It returns nil if there is no such session.
	Session(ctx context.Context, hash string) (*Session, *desk.Settings, error)

	// LoginLink returns a link and the settings of its workspace. The link may have
	// expired. It returns nil if there is no such link.
	LoginLink(ctx context.Context, hash string) (*LoginLink, *desk.Settings, error)

	// MembersByEmail returns the members of all workspaces who have this e-mail (in its
	// canonical form), sorted by id, with their password hashes. The list has at most the
	// given number of members. All of them are read in one snapshot.
	MembersByEmail(ctx context.Context, canonical string, most int) ([]MemberAccess, error)

	// MostRecipes counts, for each e-mail, the different recipes of its password hashes,
	// and returns the largest count. To get the recipe of a hash, the last bytes of the
	// hash are cut off; tail is their number.
	MostRecipes(ctx context.Context, tail int) (int, error)

	// MovePassword replaces the hash of a password by another hash of the same password,
	// unless the password was changed meanwhile.
	MovePassword(ctx context.Context, ws, member desk.ID, from, to string) error

	// Password returns the hash of a member's password, "" if there is none.
	Password(ctx context.Context, ws, member desk.ID) (string, error)

	// LastSeen returns when members of a workspace were last seen (AccessTx.NoteSeen).
	LastSeen(ctx context.Context, ws desk.ID) (map[desk.ID]desk.Time, error)

	// Held returns how many contacts and how many open conversations RemoveMember would
	// release. Neither number is counted beyond most.
	Held(ctx context.Context, ws, member desk.ID, most int) (contacts, conversations int, err error)

	// ForgetAccess deletes the sessions and links of a workspace that expired before the
	// given time.
	ForgetAccess(ctx context.Context, ws desk.ID, before desk.Time) error
}

// An AccessTx reads and writes sessions, links and password hashes. The member must
// exist.
type AccessTx interface {
	// BeginSession stores a new session. If the member then has more than the given number
	// of sessions, it deletes the oldest ones.
	BeginSession(hash string, s Session, most int) error

	// KeepSession stores a session's expiry and data. It returns false if there is no such
	// session.
	KeepSession(hash string, s Session) (bool, error)
	EndSession(hash string) error

	// PutLoginLink stores a new link. TakeLoginLink deletes a link and returns it, or nil
	// if there is none. If several calls take one link, only one gets it.
	PutLoginLink(hash string, l LoginLink) error
	TakeLoginLink(hash string) (*LoginLink, error)

	// NoteSeen stores the time at which a member was seen.
	NoteSeen(member desk.ID, at desk.Time) error
}

// A Session is one member's session in one browser.
type Session struct {
	Workspace, Member  desk.ID
	BegunAt, ExpiresAt desk.Time
	Data               []byte // data of the console
}

// A LoginLink lets a member sign in once.
type LoginLink struct {
	Workspace, Member desk.ID
	ExpiresAt         desk.Time
}

// A MemberRef identifies a member.
type MemberRef struct{ Workspace, ID desk.ID }

// A MemberAccess is a member with the password hash.
type MemberAccess struct {
	MemberRef
	SessionsFrom desk.Time
	Password     string // the hash of the password; "": there is no password
}
