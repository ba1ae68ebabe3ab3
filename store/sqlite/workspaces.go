package sqlite

import (
	"context"
	"fmt"
	"strings"

	"parley/desk"
	"parley/store/internal/stored"
)

// DeleteWorkspace marks a workspace as deleted, unless check refuses its name. The same
// commit removes its keys, members, channels and webhooks, and all records that
// background work looks for.
func (s *Store) DeleteWorkspace(ctx context.Context, ws desk.ID, check func(name string) error) error {
	return s.write(ctx, func(c conn) error {
		row := c.stmt(`SELECT name, deleted FROM workspaces WHERE id = ?`).id(ws)
		there := row.next()
		var name string
		var deleted bool
		if there {
			name, deleted = row.readText(), row.readInt() != 0
		}
		if err := row.done(); err != nil {
			return failed("workspace", err)
		}
		if !there {
			return stored.NoWorkspace()
		}
		if err := check(name); err != nil || deleted {
			return err
		}
		settings, err := readSettings(c, ws)
		if err != nil {
			return err
		}
		s.edited = true
		for kind, refs := range stored.Entries(settings) {
			for _, ref := range refs {
				if err := leave(c, kind, ref); err != nil {
					return failed("directory", err)
				}
			}
		}
		for _, query := range []string{
			`DELETE FROM directory WHERE kind = '` + stored.Session + `' AND ref IN (SELECT hash FROM sessions WHERE workspace_id = ?)`,
			`DELETE FROM directory WHERE kind = '` + stored.LoginLink + `' AND ref IN (SELECT hash FROM login_links WHERE workspace_id = ?)`,
			`DELETE FROM sessions WHERE workspace_id = ?`,
			`DELETE FROM login_links WHERE workspace_id = ?`,
			`DELETE FROM member_access WHERE workspace_id = ?`,
			`DELETE FROM api_keys WHERE workspace_id = ?`,
			`DELETE FROM key_uses WHERE workspace_id = ?`,
			`DELETE FROM members WHERE workspace_id = ?`,
			`DELETE FROM channels WHERE workspace_id = ?`,
			`DELETE FROM webhooks WHERE workspace_id = ?`,
			`DELETE FROM webhook_states WHERE workspace_id = ?`,
			`DELETE FROM inbound_items WHERE workspace_id = ?`,
			`DELETE FROM media_jobs WHERE workspace_id = ?`,
			`DELETE FROM policies WHERE workspace_id = ?`,
			`DELETE FROM auto_replies WHERE workspace_id = ?`,
			`DELETE FROM import_uploads WHERE workspace_id = ?`,
			`DELETE FROM attempts AS a WHERE ` + unsettled + ` AND a.workspace_id = ?`,
			`UPDATE workspaces SET deleted = 1, settings_version = settings_version + 1 WHERE id = ?`,
		} {
			if err := c.stmt(query).id(ws).run(); err != nil {
				return failed("delete workspace", err)
			}
		}
		return nil
	})
}

// EraseWorkspace deletes up to limit records of a workspace that is marked as deleted,
// and returns how many. When none are left, it deletes the workspace itself.
//
// The workspace's files are deleted between two transactions, because all other writes
// wait while a transaction is open.
func (s *Store) EraseWorkspace(ctx context.Context, ws desk.ID, limit int) (n int, err error) {
	empty := false
	err = s.write(ctx, func(c conn) error {
		n, empty = 0, false
		marked, err := one("workspace", c.stmt(`SELECT deleted FROM workspaces WHERE id = ?`).id(ws), (*stmt).readInt)
		if err != nil || marked == 0 {
			return err
		}
		tables, err := workspaceTables(c)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if err := c.stmt(eraseQuery(t)).id(ws).int(int64(limit)).run(); err != nil {
				return failed("erase "+t.Name, err)
			}
			if n = c.Changes(); n > 0 {
				return wantScrub(c)
			}
		}
		empty = true
		return nil
	})
	if err != nil || !empty {
		return n, err
	}
	if err := s.files.RemoveAll(ws); err != nil {
		return 0, err
	}
	return 0, s.write(ctx, func(c conn) error {
		return failed("erase workspace", c.stmt(`DELETE FROM workspaces WHERE id = ? AND deleted = 1`).id(ws).run())
	})
}

// workspaceTables lists the tables whose key begins with workspace_id, with all columns
// of the key.
func workspaceTables(c conn) (tables []Table, err error) {
	rows := c.stmt(`SELECT m.name, group_concat(k.name, ' ' ORDER BY k.pk) FROM sqlite_master m, pragma_table_info(m.name) k
		WHERE m.type = 'table' AND k.pk > 0 GROUP BY m.name HAVING max(k.name = 'workspace_id' AND k.pk = 1) ORDER BY m.name`)
	for rows.next() {
		t := Table{Name: rows.readText(), Columns: strings.Fields(rows.readText())}
		t.Key = len(t.Columns)
		tables = append(tables, t)
	}
	return tables, failed("tables", rows.done())
}

func eraseQuery(t Table) string {
	key := strings.Join(t.Columns[:t.Key], ", ")
	return fmt.Sprintf(`DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE workspace_id = ?1 LIMIT +?2)`, t.Name, key, key, t.Name)
}
