package stored

import (
	"fmt"

	"parley/desk"
	"parley/store"
)

// Unavailable returns the error for a failure of the machine after which nothing is
// stored.
func Unavailable(err error) error {
	return &desk.Error{
		Type:    desk.Unavailable,
		Message: "the database can't answer now: nothing was stored, try again shortly",
		Err:     err,
	}
}

// CommitLost returns the error for a commit whose response was lost.
func CommitLost(err error) error {
	return &desk.Error{
		Type:    desk.Unavailable,
		Message: "the connection to the database was lost during the commit: it is unknown whether this was stored",
		Err:     fmt.Errorf("%w: %w", store.ErrCommitLost, err),
	}
}

// NoWorkspace returns the error for an unknown workspace id.
func NoWorkspace() error {
	e := desk.NotFoundf("no workspace has this id").Advise(desk.ListWorkspaces)
	e.Err = store.ErrNoWorkspace
	return e
}

// NoKey returns the error for the public id of an unknown key.
func NoKey() error { return desk.NotFoundf("no such key") }

// NoRecord returns the error for an id that is not in the directory.
func NoRecord(id desk.ID) error {
	return desk.NotFoundf("no member, key, channel, webhook or unsettled attempt has the id %s", id)
}

// CheckFingerprint refuses a secret key other than the installation's.
func CheckFingerprint(stored, given string) error {
	if stored == given {
		return nil
	}
	return desk.Invalidf("this installation was made with another secret key (fingerprint %s, not %s): start with that key, from PARLEY_SECRET_KEY or secret.key in the data directory", stored, given)
}
