package store

import (
	"context"

	"parley/desk"
)

// Imports keeps how far imports of files are.
type Imports interface {
	// ImportOf returns the newest import of a workspace with this key, or nil.
	ImportOf(ctx context.Context, ws desk.ID, key [32]byte) (*desk.ImportRun, error)

	// ForgetImports deletes the imports of a workspace that began before a moment, except
	// those of uploads, which go with them.
	ForgetImports(ctx context.Context, ws desk.ID, before desk.Time) error

	// Contended tells whether other writers had to wait within the last moments, because this
	// database has one writer at a time. Long work then makes its transactions smaller.
	Contended() bool
}

// An ImportTx reads and writes imports.
type ImportTx interface {
	// Import returns an import, or nil. No other transaction changes it meanwhile.
	Import(id desk.ID) (*desk.ImportRun, error)
	PutImport(desk.ImportRun) error
}
