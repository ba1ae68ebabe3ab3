package sqlite

import (
	"context"

	"parley/desk"
)

const (
	snippetsQuery = `SELECT shortcut, text, updated_at FROM snippets WHERE workspace_id = ? ORDER BY shortcut`
	snippetQuery  = `SELECT shortcut, text, updated_at FROM snippets WHERE workspace_id = ? AND shortcut = ?`
	countSnippets = `SELECT count(*) FROM snippets WHERE workspace_id = ?`
)

func readSnippet(s *stmt) desk.Snippet {
	return desk.Snippet{Shortcut: s.readText(), Text: s.readText(), UpdatedAt: s.readTime()}
}

// Snippets lists the snippets of a workspace by shortcut.
func (s *Store) Snippets(ctx context.Context, ws desk.ID) (list []desk.Snippet, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("snippets", c.stmt(snippetsQuery).id(ws), readSnippet)
		return err
	})
	return list, err
}

func (t *tx) Snippet(shortcut string) (*desk.Snippet, int, error) {
	found, err := all("snippet", t.c.stmt(snippetQuery).id(t.ws).text(shortcut), readSnippet)
	if err != nil {
		return nil, 0, err
	}
	n, err := one("snippets", t.c.stmt(countSnippets).id(t.ws), (*stmt).readInt)
	if len(found) == 0 {
		return nil, int(n), err
	}
	return &found[0], int(n), err
}

func (t *tx) PutSnippet(s desk.Snippet) error {
	return failed("snippet", t.c.stmt(`REPLACE INTO snippets (workspace_id, shortcut, text, updated_at) VALUES (?, ?, ?, ?)`).
		id(t.ws).text(s.Shortcut).text(s.Text).time(s.UpdatedAt).run())
}

func (t *tx) DropSnippet(shortcut string) error {
	return failed("snippet", t.c.stmt(`DELETE FROM snippets WHERE workspace_id = ? AND shortcut = ?`).id(t.ws).text(shortcut).run())
}
