package sqlite

import (
	"errors"
	"fmt"

	"parley/store/internal/stored"

	"zombiezen.com/go/sqlite"
)

// machine holds the results that are faults of the machine, not of the request: the
// disk is full, locked, read-only or failing. They end, and the same request may then
// succeed.
var machine = map[sqlite.ResultCode]bool{
	sqlite.ResultBusy:      true,
	sqlite.ResultLocked:    true,
	sqlite.ResultNoMem:     true,
	sqlite.ResultReadOnly:  true,
	sqlite.ResultInterrupt: true,
	sqlite.ResultIOErr:     true,
	sqlite.ResultFull:      true,
	sqlite.ResultCantOpen:  true,
	sqlite.ResultProtocol:  true,
}

// failed adds the failed action to an error of SQLite, and makes it Unavailable if it
// is a fault of the machine.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, err)
	if byMachine(err) {
		return stored.Unavailable(err)
	}
	return err
}

// byMachine tells whether err is, or wraps, a fault of the machine.
func byMachine(err error) bool {
	return machine[sqlite.ErrCode(err).ToPrimary()] || errors.Is(err, errRolledBack)
}
