package sqlite

import (
	"errors"
	"fmt"

	"parley/store/internal/stored"

	"zombiezen.com/go/sqlite"
)

// machine lists the result codes of SQLite for faults of the machine. The request is not
// the cause: the disk is full, locked, read-only or failing. Such faults end, and then
// the same request may succeed.
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

// failed wraps an error of SQLite with the name of the action. If the error is a fault
// of the machine, failed makes it Unavailable.
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
