package sqlite

import (
	"errors"
	"fmt"

	"parley/desk"

	"zombiezen.com/go/sqlite"
)

// machine holds the results that speak of the machine rather than of what was
// asked: the disk is full, locked, read-only or ill. They pass, and the same
// request may then succeed.
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

// failed adds what was being done to an error of SQLite, and makes it Unavailable
// when it is the machine's.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, err)
	if byMachine(err) {
		return unavailable(err)
	}
	return err
}

// byMachine tells whether err is one of SQLite's that speak of the machine, or comes
// of one.
func byMachine(err error) bool {
	return machine[sqlite.ErrCode(err).ToPrimary()] || errors.Is(err, errRolledBack)
}

func unavailable(err error) error {
	return &desk.Error{
		Type:    desk.Unavailable,
		Message: "the database can't answer now: nothing was stored, try again shortly",
		Err:     err,
	}
}
