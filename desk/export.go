package desk

import "time"

// ExportStill is how long an export waits for a reader that takes nothing (contract-data §4).
const ExportStill = 30 * time.Second

// An Erasure says that a contact was deleted. It is kept for ever, so that the contact can be
// deleted again after a restore.
type Erasure struct {
	ID ID
	At Time
}

// MaxExportsHere is how many exports of all contacts one process sends to browsers at the same
// time.
const MaxExportsHere = 16
