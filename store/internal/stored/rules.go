package stored

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"parley/desk"
)

// Rules are the rules by which this process computes canonical forms
// (desk.IdentityRules). Another process may rebuild the claims by newer rules while this
// one runs. It then raises the version of all settings. This process reads the
// database's rules together with settings of a new version. From then on it must not
// store anything.
type Rules struct {
	own   string
	log   *slog.Logger
	newer atomic.Pointer[string]
}

// NewRules returns the rules of a process that opens a database.
func NewRules(own string, log *slog.Logger) *Rules { return &Rules{own: own, log: log} }

// See takes the rules that were read from the database. If they are not the rules of this
// process, Check returns an error from then on.
func (r *Rules) See(database string) {
	if database != r.own && r.newer.CompareAndSwap(nil, &database) {
		r.log.Error("the database matches identities by other rules now: this process stores nothing more", "rules", r.own, "database", database)
	}
}

// Check returns Unavailable if the database's rules are not those of this process.
func (r *Rules) Check() error {
	newer := r.newer.Load()
	if newer == nil {
		return nil
	}
	return &desk.Error{Type: desk.Unavailable, Message: fmt.Sprintf(
		"nothing was stored: another release has upgraded the database (identities match by %q, and here by %q): replace this server by that release", *newer, r.own)}
}

// Rebuild tells whether a process with these rules has to rebuild the claims of a
// database. It returns an error if the database's rules are newer. Without this error,
// two releases that are started in turn would rebuild the claims again and again.
func Rebuild(own, database string) (bool, error) {
	if desk.OlderRules(own, database) {
		return false, fmt.Errorf("a newer parley has upgraded the database (identities match by %q, and here by %q): install that version or a later one", database, own)
	}
	return own != database, nil
}

// Unfinished returns the value that stands in place of the rules while the claims are
// rebuilt.
func Unfinished(rules string) string { return "not finished: " + rules }
