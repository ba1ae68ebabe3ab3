package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"

	"parley/app"
	"parley/desk"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs that are acted on.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03" // lock_timeout
	divisionByZero       = "22012" // rows were missed, see allDone
	readOnlyTransaction  = "25006" // a standby, or a primary that has become one
)

// machineClasses are the classes of SQLSTATE that speak of the machine rather than of
// what was asked: they pass, and the same request may then succeed.
var machineClasses = map[string]bool{
	"08": true, // connection
	"53": true, // disk, memory, connections are used up
	"57": true, // shutdown, start, cancelled by a timeout
	"58": true, // the disk, the system
}

// errConflict is met when another transaction has changed what this one has read. Should
// no run come through, it is the machine's: it has too much to do.
var errConflict = errors.New("another transaction came first")

// failed adds what was being done to an error, and makes it Unavailable when it is the
// machine's.
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

func byMachine(err error) bool {
	switch state := sqlState(err); state {
	case "":
		var lost net.Error
		var connect *pgconn.ConnectError
		return errors.As(err, &lost) || errors.As(err, &connect) || errors.Is(err, errConflict) ||
			errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	case serializationFailure, deadlockDetected, divisionByZero, lockNotAvailable, readOnlyTransaction:
		return true
	default:
		return machineClasses[state[:2]]
	}
}

// conflicts tells whether err comes of another transaction, so that a fresh one may do
// better.
func conflicts(err error) bool {
	switch sqlState(err) {
	case serializationFailure, deadlockDetected, divisionByZero:
		return true
	}
	return errors.Is(err, errConflict)
}

// sqlState returns an error's SQLSTATE, or "" when it is not the server's.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func unavailable(err error) error {
	return &desk.Error{
		Type:    desk.Unavailable,
		Message: "the database can't answer now: nothing was stored, try again shortly",
		Err:     err,
	}
}

// unknown is the answer when the one to a commit was lost.
func unknown(err error) error {
	return &desk.Error{
		Type:    desk.Unavailable,
		Message: "the connection to the database was lost during the commit: it is unknown whether this was stored",
		Err:     fmt.Errorf("%w: %w", app.ErrCommitLost, err),
	}
}
