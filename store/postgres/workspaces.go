package postgres

import (
	"context"
	"fmt"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

// DeleteWorkspace marks a workspace as deleted, unless check refuses its name. The same
// commit removes its keys, members, channels and webhooks, and all records that
// background work looks for.
func (s *Store) DeleteWorkspace(ctx context.Context, ws desk.ID, check func(name string) error) error {
	return s.write(ctx, ws, true, func(t *tx) error {
		var name string
		there, deleted := false, false
		t.each(func(row pgx.Row) error {
			there = true
			return row.Scan(&name, &deleted)
		}, `SELECT name, deleted FROM workspaces WHERE id = $1`, uuid(ws))
		if err := t.send("workspace"); err != nil {
			return err
		}
		if !there {
			return stored.NoWorkspace()
		}
		if err := check(name); err != nil || deleted {
			return err
		}
		settings, err := s.settingsAt(t.pipe, ws, t.version)
		if err != nil {
			return err
		}
		for kind, refs := range stored.Entries(settings) {
			t.put(`DELETE FROM directory WHERE kind = $1 AND ref = ANY ($2::text[])`, kind, refs)
		}
		t.dropListed(stored.Session, `workspace_id = $1`, uuid(ws))
		t.dropListed(stored.LoginLink, `workspace_id = $1`, uuid(ws))
		for _, query := range []string{
			`DELETE FROM member_access WHERE workspace_id = $1`,
			`DELETE FROM api_keys WHERE workspace_id = $1`,
			`DELETE FROM key_uses WHERE workspace_id = $1`,
			`DELETE FROM members WHERE workspace_id = $1`,
			`DELETE FROM channels WHERE workspace_id = $1`,
			`DELETE FROM webhooks WHERE workspace_id = $1`,
			`DELETE FROM webhook_states WHERE workspace_id = $1`,
			`DELETE FROM inbound_items WHERE workspace_id = $1`,
			`DELETE FROM media_jobs WHERE workspace_id = $1`,
			`DELETE FROM policies WHERE workspace_id = $1`,
			`DELETE FROM auto_replies WHERE workspace_id = $1`,
			`DELETE FROM import_uploads WHERE workspace_id = $1`,
			`DELETE FROM attempts a WHERE ` + unsettled + ` AND a.workspace_id = $1`,
			`UPDATE workspaces SET deleted = true, settings_version = ` + nextVersion("settings_version", "id") + ` WHERE id = $1`,
		} {
			t.put(query, uuid(ws))
		}
		return t.send("delete workspace")
	})
}

// EraseWorkspace deletes up to limit records of a workspace that is marked as deleted,
// and returns how many it deleted. When none are left, it deletes the workspace itself.
func (s *Store) EraseWorkspace(ctx context.Context, ws desk.ID, limit int) (n int, err error) {
	marked := false
	var erase []string
	err = s.read(ctx, func(p *pipe) error {
		marked, erase = false, nil
		p.each(func(row pgx.Row) error { return row.Scan(&marked) }, `SELECT deleted FROM workspaces WHERE id = $1`, uuid(ws))
		p.each(func(row pgx.Row) error {
			var table, key string
			err := row.Scan(&table, &key)
			erase = append(erase, fmt.Sprintf(`DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE workspace_id = $1 LIMIT $2) AND workspace_id = $1`, table, key, key, table))
			return err
		}, workspaceTablesQuery)
		return p.send("tables of workspaces")
	})
	if err != nil || !marked {
		return 0, err
	}
	for _, query := range erase {
		tag, err := s.exec(ctx, "erase workspace", query, uuid(ws), limit)
		if n = int(tag.RowsAffected()); n > 0 || err != nil {
			return n, err
		}
	}
	if s.files != nil {
		if err := s.files.RemoveAll(ws); err != nil {
			return 0, err
		}
	}
	_, err = s.exec(ctx, "erase workspace", `DELETE FROM workspaces WHERE id = $1 AND deleted`, uuid(ws))
	return 0, err
}

// workspaceTablesQuery lists the tables whose key begins with the workspace, and the
// keys.
const workspaceTablesQuery = `SELECT quote_ident(c.relname), string_agg(quote_ident(a.attname), ', ' ORDER BY k.n)
	FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
	CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k (attnum, n) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
	WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
	GROUP BY c.oid, c.relname HAVING bool_or(k.n = 1 AND a.attname = 'workspace_id') ORDER BY c.relname`
