package stored

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"parley/desk"
)

// Rules are the rules by which this process makes canonical forms (desk.IdentityRules).
// Another process may rebuild the claims by newer ones while this one runs. It then
// raises the version of all settings, and this process reads the database's rules
// together with the settings of the new version. From then on it must store nothing.
type Rules struct {
	own   string
	log   *slog.Logger
	newer atomic.Pointer[string]
}

// NewRules returns the rules of a process that opens a database.
func NewRules(own string, log *slog.Logger) *Rules { return &Rules{own: own, log: log} }

// See takes the rules that were read from the database.
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
// database, and refuses those of a newer one. If it did not, two processes that are
// restarted in turn would rebuild them again and again.
func Rebuild(own, database string) (bool, error) {
	if desk.OlderRules(own, database) {
		return false, fmt.Errorf("a newer parley has upgraded the database (identities match by %q, and here by %q): install that version or a later one", database, own)
	}
	return own != database, nil
}

// Unfinished stands in place of the rules while claims are rebuilt by them.
func Unfinished(rules string) string { return "not finished: " + rules }
