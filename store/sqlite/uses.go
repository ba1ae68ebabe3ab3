package sqlite

import (
	"context"

	"parley/desk"
)

// PutKeyUses stores when keys of a workspace were last used.
func (s *Store) PutKeyUses(ctx context.Context, ws desk.ID, uses map[desk.ID]desk.Time) error {
	return s.write(ctx, func(c conn) error {
		for id, at := range uses {
			if err := c.stmt(`INSERT INTO key_uses (workspace_id, key_id, used_at) SELECT workspace_id, id, ?3 FROM api_keys WHERE workspace_id = ?1 AND id = ?2
				ON CONFLICT (workspace_id, key_id) DO UPDATE SET used_at = excluded.used_at WHERE used_at < excluded.used_at`).
				id(ws).id(id).time(at).run(); err != nil {
				return failed("uses of keys", err)
			}
		}
		return nil
	})
}

// KeyUses returns when the keys of a workspace were last used.
func (s *Store) KeyUses(ctx context.Context, ws desk.ID) (uses map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		uses = map[desk.ID]desk.Time{}
		row := c.stmt(`SELECT key_id, used_at FROM key_uses WHERE workspace_id = ?`).id(ws)
		for row.next() {
			id := row.readID()
			uses[id] = row.readTime()
		}
		return failed("uses of keys", row.done())
	})
	return uses, err
}
