package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"

	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The SQLSTATEs that the store handles.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03" // lock_timeout
	divisionByZero       = "22012" // rows are missing (see allDone)
	idleInTransaction    = "25P03" // idle_in_transaction_session_timeout
	readOnlyTransaction  = "25006" // a standby, or a primary that has become a standby
	internalError        = "XX000" // see commitLost
)

// machineClasses are the classes of SQLSTATE for faults of the machine, not of the
// request. Such faults end, and then the same request may succeed.
var machineClasses = map[string]bool{
	"08": true, // connection
	"53": true, // no disk space, memory or connections are left
	"57": true, // shutdown, start, or cancelled by a timeout
	"58": true, // the disk, or the system
}

// errConflict means that another transaction has changed data that this one has read.
// Then the transaction runs again. If every run fails, the machine is overloaded.
var errConflict = errors.New("another transaction came first")

// failed wraps an error with the name of the action. If the error is a fault of the
// machine, failed makes it Unavailable.
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

func byMachine(err error) bool {
	switch state := sqlState(err); state {
	case "":
		var lost net.Error
		var connect *pgconn.ConnectError
		return errors.As(err, &lost) || errors.As(err, &connect) || errors.Is(err, errConflict) ||
			errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	case serializationFailure, deadlockDetected, divisionByZero, lockNotAvailable, idleInTransaction, readOnlyTransaction:
		return true
	default:
		return machineClasses[state[:2]]
	}
}

// conflicts tells whether another transaction caused err. Then the transaction may
// succeed if it runs again.
func conflicts(err error) bool {
	switch sqlState(err) {
	case serializationFailure, deadlockDetected, divisionByZero:
		return true
	}
	return errors.Is(err, errConflict)
}

// sqlState returns an error's SQLSTATE, or "" if it is not from the server.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// commitLost tells whether it is unknown if a transaction is stored whose COMMIT was sent and
// failed: the connection is closed, or the coordinator of a cluster has lost the worker
// meanwhile. The coordinator reports this as an internal error and stays connected.
func (s *Store) commitLost(c *pgxpool.Conn, err error) bool {
	return c.Conn().IsClosed() || s.citus && sqlState(err) == internalError
}
