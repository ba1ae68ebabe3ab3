package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	// snippetsLock locks a workspace's snippets. If two workspaces share a lock, the only
	// effect is that one of them waits.
	snippetsLock = `SELECT pg_advisory_xact_lock(hashtextextended('snippets' || $1::uuid::text, 0))` + ofWorkspace

	snippetsQuery = `SELECT shortcut, text, updated_at FROM snippets WHERE workspace_id = $1 ORDER BY shortcut`
	snippetQuery  = `SELECT shortcut, text, updated_at FROM snippets WHERE workspace_id = $1 AND shortcut = $2`
	countSnippets = `SELECT count(*) FROM snippets WHERE workspace_id = $1`
)

func readSnippet(row pgx.Row) (s desk.Snippet, err error) {
	err = row.Scan(&s.Shortcut, &s.Text, (*int64)(&s.UpdatedAt))
	return s, err
}

// Snippets lists the snippets of a workspace by shortcut.
func (s *Store) Snippets(ctx context.Context, ws desk.ID) ([]desk.Snippet, error) {
	return readAll(ctx, s, "snippets", readSnippet, snippetsQuery, uuid(ws))
}

func (t *tx) Snippet(shortcut string) (found *desk.Snippet, count int, err error) {
	t.put(snippetsLock, uuid(t.ws))
	t.each(func(row pgx.Row) error {
		s, err := readSnippet(row)
		found = &s
		return err
	}, snippetQuery, uuid(t.ws), shortcut)
	count, err = one(t.pipe, "snippets", scanned[int], countSnippets, uuid(t.ws))
	return found, count, err
}

func (t *tx) PutSnippet(s desk.Snippet) error {
	t.put(`INSERT INTO snippets (workspace_id, shortcut, text, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, shortcut) DO UPDATE SET text = excluded.text, updated_at = excluded.updated_at`,
		uuid(t.ws), s.Shortcut, s.Text, int64(s.UpdatedAt))
	return t.fail
}

func (t *tx) DropSnippet(shortcut string) error {
	t.put(`DELETE FROM snippets WHERE workspace_id = $1 AND shortcut = $2`, uuid(t.ws), shortcut)
	return t.fail
}
