package sqlite

import (
	"context"

	"parley/desk"
)

const (
	importColumns = `id, key, started_at, ended_at, read, created, updated, unchanged, rejected, error_bytes`
	importQuery   = `SELECT ` + importColumns + ` FROM imports WHERE workspace_id = ? AND id = ?`
	// A workspace has few imports: they go after a week.
	importOfQuery      = `SELECT ` + importColumns + ` FROM imports WHERE workspace_id = ? AND key = ? ORDER BY id DESC LIMIT 1`
	putImportQuery     = `INSERT OR REPLACE INTO imports (workspace_id, ` + importColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	forgetImportsQuery = `DELETE FROM imports WHERE workspace_id = ?1 AND started_at < ?2
		AND id NOT IN (SELECT run_id FROM import_uploads WHERE workspace_id = ?1)`
)

func readImport(s *stmt) *desk.ImportRun {
	run := &desk.ImportRun{ID: s.readID()}
	s.readBytes(run.Key[:])
	run.StartedAt, run.EndedAt = s.readTime(), s.readTime()
	run.ImportCounts = desk.ImportCounts{Rows: s.readInt(), Created: s.readInt(), Updated: s.readInt(), Unchanged: s.readInt(), Rejected: s.readInt()}
	run.ErrorBytes = s.readInt()
	return run
}

// ImportOf returns the newest import of a workspace with a key, or nil.
func (s *Store) ImportOf(ctx context.Context, ws desk.ID, key [32]byte) (run *desk.ImportRun, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		run, err = one("import", c.stmt(importOfQuery).id(ws).bytes(key[:]), readImport)
		return err
	})
	return run, err
}

// ForgetImports deletes old imports of a workspace, unless they are of uploads.
func (s *Store) ForgetImports(ctx context.Context, ws desk.ID, before desk.Time) error {
	return s.write(ctx, func(c conn) error {
		return failed("forget imports", c.stmt(forgetImportsQuery).id(ws).time(before).run())
	})
}

func (t *tx) Import(id desk.ID) (*desk.ImportRun, error) {
	return one("import", t.c.stmt(importQuery).id(t.ws).id(id), readImport)
}

func (t *tx) PutImport(run desk.ImportRun) error {
	return failed("store import", t.c.stmt(putImportQuery).id(t.ws).id(run.ID).bytes(run.Key[:]).time(run.StartedAt).time(run.EndedAt).
		int(run.Rows).int(run.Created).int(run.Updated).int(run.Unchanged).int(run.Rejected).int(run.ErrorBytes).run())
}
