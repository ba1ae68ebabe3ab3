package doctor

import (
	"context"
	"fmt"
	"time"

	"parley/config"
	"parley/store"
)

// A Status is the result of a check.
type Status string

// The results. After Skip, it is unknown whether all is well.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// A Check is one check with its result.
type Check struct {
	ID      string `json:"id"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	Fix     string `json:"fix"` // what to do; "" if nothing is wrong
}

// A Patient is an installation that is examined.
type Patient struct {
	Storage config.Storage
	Secret  string // the value of PARLEY_SECRET_KEY
	Deep    bool   // also read all contacts, files and pages
	Now     func() time.Time

	// Open opens the database without changing it. It returns fs.ErrNotExist if there is none.
	Open func(context.Context) (store.Examined, error)

	// Free returns how many bytes can still be stored in a directory's file system.
	Free func(dir string) (int64, error)
}

const (
	leastFree = 100_000_000     // with less room, writes may fail at any time
	staleness = time.Minute     // the search may be this far behind
	clocks    = 2 * time.Second // clocks may differ by this
)

// An examination has the results so far.
type examination struct {
	Patient
	db     store.Examined // nil: it can't be opened
	checks []Check
}

func (e *examination) add(id string, status Status, fix, format string, args ...any) {
	e.checks = append(e.checks, Check{id, status, fmt.Sprintf(format, args...), fix})
}

// deny adds the result of a check that could not be made.
func (e *examination) deny(id string, err error) {
	e.add(id, Fail, "see the message, and run the command again", "it can't be checked: %v", err)
}

// Well tells whether no check has failed.
func Well(checks []Check) bool {
	for _, c := range checks {
		if c.Status == Fail {
			return false
		}
	}
	return true
}
