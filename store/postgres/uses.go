package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

// PutKeyUses stores when keys of a workspace were last used. It locks the keys in the
// order of their ids, because several nodes may store the same keys.
func (s *Store) PutKeyUses(ctx context.Context, ws desk.ID, uses map[desk.ID]desk.Time) error {
	ids, times := make([]uuid, 0, len(uses)), make([]int64, 0, len(uses))
	for id, at := range uses {
		ids, times = append(ids, uuid(id)), append(times, int64(at))
	}
	_, err := s.exec(ctx, "uses of keys", `INSERT INTO key_uses (workspace_id, key_id, used_at)
		SELECT k.workspace_id, k.id, u.at FROM unnest($2::uuid[], $3::bigint[]) u (id, at)
		JOIN api_keys k ON k.workspace_id = $1 AND k.id = u.id ORDER BY k.id
		ON CONFLICT (workspace_id, key_id) DO UPDATE SET used_at = excluded.used_at WHERE key_uses.used_at < excluded.used_at`, uuid(ws), ids, times)
	return err
}

type keyUse struct {
	id desk.ID
	at desk.Time
}

// KeyUses returns when the keys of a workspace were last used.
func (s *Store) KeyUses(ctx context.Context, ws desk.ID) (uses map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err := all(p, "uses of keys", func(row pgx.Row) (u keyUse, err error) {
			err = row.Scan(into(&u.id), (*int64)(&u.at))
			return u, err
		}, `SELECT key_id, used_at FROM key_uses WHERE workspace_id = $1`, uuid(ws))
		uses = make(map[desk.ID]desk.Time, len(list))
		for _, u := range list {
			uses[u.id] = u.at
		}
		return err
	})
	return uses, err
}
