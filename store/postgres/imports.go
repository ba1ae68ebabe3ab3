package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	importColumns = `id, key, started_at, ended_at, read, created, updated, unchanged, rejected, error_bytes`
	importQuery   = `SELECT ` + importColumns + ` FROM imports WHERE workspace_id = $1 AND id = $2`
	// A workspace has few imports: they go after a week.
	importOfQuery  = `SELECT ` + importColumns + ` FROM imports WHERE workspace_id = $1 AND key = $2 ORDER BY id DESC LIMIT 1`
	putImportQuery = `INSERT INTO imports (workspace_id, ` + importColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (workspace_id, id) DO UPDATE SET ended_at = excluded.ended_at, read = excluded.read, created = excluded.created,
		updated = excluded.updated, unchanged = excluded.unchanged, rejected = excluded.rejected, error_bytes = excluded.error_bytes`
	forgetImportsQuery = `DELETE FROM imports WHERE workspace_id = $1 AND started_at < $2
		AND NOT EXISTS (SELECT 1 FROM import_uploads u WHERE u.workspace_id = $1 AND u.run_id = imports.id)`
)

func readImport(row pgx.Row) (*desk.ImportRun, error) {
	var run desk.ImportRun
	var key []byte
	err := row.Scan(into(&run.ID), &key, (*int64)(&run.StartedAt), (*int64)(&run.EndedAt), &run.Rows, &run.Created, &run.Updated, &run.Unchanged, &run.Rejected, &run.ErrorBytes)
	copy(run.Key[:], key)
	return &run, err
}

// ImportOf returns the newest import of a workspace with a key, or nil.
func (s *Store) ImportOf(ctx context.Context, ws desk.ID, key [32]byte) (*desk.ImportRun, error) {
	return readOne(ctx, s, "import", readImport, importOfQuery, uuid(ws), key[:])
}

// Contended returns false: transactions of others go on beside an import.
func (*Store) Contended() bool { return false }

// ForgetImports deletes old imports of a workspace, unless they are of uploads.
func (s *Store) ForgetImports(ctx context.Context, ws desk.ID, before desk.Time) error {
	_, err := s.exec(ctx, "forget imports", forgetImportsQuery, uuid(ws), int64(before))
	return err
}

func (t *tx) Import(id desk.ID) (*desk.ImportRun, error) {
	return one(t.pipe, "import", readImport, importQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) PutImport(run desk.ImportRun) error {
	t.put(putImportQuery, uuid(t.ws), uuid(run.ID), run.Key[:], int64(run.StartedAt), int64(run.EndedAt), run.Rows, run.Created, run.Updated, run.Unchanged, run.Rejected, run.ErrorBytes)
	return t.fail
}
