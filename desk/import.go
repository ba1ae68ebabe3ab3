package desk

import "time"

// An ImportKind is what the rows of a file are.
type ImportKind string

// The kinds.
const (
	ImportContacts ImportKind = "contacts"
	ImportOptOuts  ImportKind = "opt-outs"
	ImportPeople   ImportKind = "people" // of a broadcast
)

// The limits and lifetimes of imports (contract-data §3).
const (
	// ImportRows and ImportBytes are how much of a file one transaction stores.
	ImportRows  = 1000
	ImportBytes = 8 << 20

	// ImportRowsBeside takes the place of ImportRows while others wait for the database.
	ImportRowsBeside = 70

	// ImportOptOutRows takes the place of ImportRows for opt-outs. Each takes a round trip, and
	// locks the choice of a person until the end: what the person writes meanwhile waits.
	ImportOptOutRows = 100

	// KeepImport is how long an import that was interrupted can go on. After that, the same
	// command begins anew.
	KeepImport = 7 * 24 * time.Hour

	// ImportLease is for how long an import has the workspace. It extends its lease while it
	// works. Another import waits up to ImportWait for it.
	ImportLease = 15 * time.Second
	ImportWait  = 20 * time.Second

	// MaxImportIdentities is how many identities a row may list.
	MaxImportIdentities = 1000
)

// An ImportRun is an import of a file into a workspace, and how far it is. Its place and its
// counts change together with the contacts of its rows.
type ImportRun struct {
	ID        ID
	Key       [32]byte // of the file's bytes and the options: the same command goes on
	StartedAt Time
	EndedAt   Time // 0: it has not ended
	ImportCounts
	ErrorBytes int64 // the size of the file of rejected rows
}

// ImportCounts are numbers of rows.
type ImportCounts struct {
	Rows      int64 // that were read
	Created   int64
	Updated   int64
	Unchanged int64
	Rejected  int64
}

// An OptOutRow is a person's marketing choice in a file.
type OptOutRow struct {
	Number   string // digits
	Since    Time   // when the choice was made, after 1970; 0: now
	OptedOut bool
}
