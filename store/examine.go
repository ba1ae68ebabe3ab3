package store

import (
	"context"

	"parley/desk"
)

// Examined is what parley doctor asks of a database. It is a part of the stores themselves,
// which their OpenToRead opens without changing anything.
type Examined interface {
	Store

	// Fingerprint returns the fingerprint of the secret key, or "" if there is no installation.
	Fingerprint(ctx context.Context) (string, error)

	// Schema returns the newest migration that the database has run, and the newest that this
	// release knows.
	Schema(ctx context.Context) (has, knows int64, err error)

	// Doubts says which settings of the database may lose or spoil data.
	Doubts(ctx context.Context) ([]string, error)

	// Unindexed returns up to limit workspaces with changes, of these types, that are older than
	// a time and that the search does not know. While the contacts of a workspace are first
	// indexed, a contact that was last changed before this time counts.
	Unindexed(ctx context.Context, types []desk.EventType, before desk.Time, limit int) ([]desk.ID, error)

	// Overtaken tells whether another process has begun to use the database, while this one
	// reads it without locks because nobody did. What was read may then be wrong.
	Overtaken() bool

	// Damage checks the file of the database, and lists what is wrong. known is false if the
	// database can't be checked from here.
	Damage(ctx context.Context) (wrong []string, known bool, err error)

	// Claimed returns the contacts that have claims, as the table of claims says.
	Claimed(ctx context.Context, ws desk.ID, claims []desk.Claim) (map[desk.Claim][]desk.ID, error)

	// StrayClaims counts the claims of a workspace whose contact does not exist.
	StrayClaims(ctx context.Context, ws desk.ID) (int64, error)

	// Contents returns up to limit contents that are stored for a workspace, or that a file of it
	// should have, by their hashes, after a hash.
	Contents(ctx context.Context, ws desk.ID, after []byte, limit int) ([]Content, error)

	Close() error
}

// Content is stored content of files.
type Content struct {
	SHA256 []byte
	Size   int64
	Lost   bool // the database lacks its record, or bytes of it; what is in a file is not looked at
}
