package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenToRead opens a database as it is: it migrates nothing, and its connections can't
// write. Methods that write must not be called.
func OpenToRead(ctx context.Context, c Config) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, err // pgx leaves the password out of the error
	}
	maps.Copy(config.ConnConfig.RuntimeParams, parameters)
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	config.ConnConfig.RuntimeParams["statement_timeout"] = "0" // a check of all contacts takes long
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, err)
	}
	s := &Store{pool: pool, shares: shares{most: shareOf(config.MaxConns)}, rules: stored.NewRules(desk.IdentityRules(), c.log())}
	if c.Media != "" {
		s.files = &stored.Files{Dir: c.Media}
	}
	err = s.acquired(ctx, func(c *pgx.Conn) error {
		on, err := lookAround(ctx, c)
		s.citus = on.distributed
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// acquired calls f with a connection, without the time limit of a read.
func (s *Store) acquired(ctx context.Context, f func(*pgx.Conn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return stored.Unavailable(err)
	}
	defer c.Release()
	return f(c.Conn())
}

// Fingerprint returns the fingerprint of the secret key, or "" if there is no installation.
func (s *Store) Fingerprint(ctx context.Context) (string, error) { return s.fingerprint(ctx) }

// Schema returns the newest migration that has run, and the newest that is known.
func (s *Store) Schema(ctx context.Context) (has, knows int64, err error) {
	steps, err := stored.Migrations(makeVersions, migrations)
	if err != nil {
		return 0, 0, err
	}
	err = s.acquired(ctx, func(c *pgx.Conn) error {
		ran, err := migrationsRun(ctx, c)
		if err == nil && len(ran) > 0 {
			has = slices.Max(ran)
		}
		return err
	})
	return has, steps[len(steps)-1].Version, err
}

// Doubts says which settings may lose or spoil data. synchronous_commit is that of parley's
// connections.
func (s *Store) Doubts(ctx context.Context) (list []string, err error) {
	err = s.acquired(ctx, func(c *pgx.Conn) error {
		for _, want := range []struct{ name, value string }{{"fsync", "on"}, {"full_page_writes", "on"}, {"synchronous_commit", "on"}, {"server_encoding", "UTF8"}} {
			var is string
			if err := c.QueryRow(ctx, `SELECT current_setting($1)`, want.name).Scan(&is); err != nil {
				return err
			}
			if is != want.value {
				list = append(list, fmt.Sprintf("%s is %s, not %s", want.name, is, want.value))
			}
		}
		return nil
	})
	return list, err
}

const (
	// Among 10,000 events of a workspace, a change is looked for.
	unindexedEvents = `SELECT w.id FROM workspaces w LEFT JOIN search_places p ON p.workspace_id = w.id WHERE NOT w.deleted AND EXISTS (
		SELECT 1 FROM events e WHERE e.workspace_id = w.id AND e.seq > coalesce(p.seq, 0) AND e.seq <= coalesce(p.seq, 0) + 10000
		AND e.kind = ANY ($1) AND e.at < $2) LIMIT $3`
	unindexedContacts = `SELECT w.id FROM workspaces w LEFT JOIN search_places p ON p.workspace_id = w.id
		WHERE NOT w.deleted AND (p.rules IS NULL OR p.rules < $1 OR p.built IS NOT NULL) AND EXISTS (
		SELECT 1 FROM contacts c WHERE c.workspace_id = w.id AND c.id > coalesce(p.built, '00000000-0000-0000-0000-000000000000') AND c.updated_at < $2) LIMIT $3`
	strayClaimsQuery = `SELECT count(*) FROM claims c WHERE workspace_id = $1 AND NOT EXISTS (SELECT 1 FROM contacts WHERE workspace_id = $1 AND id = c.contact_id)`
	claimedQuery     = `SELECT c.kind, c.value, c.contact_id FROM unnest($2::text[], $3::text[]) u (kind, value) JOIN claims c ON c.workspace_id = $1 AND c.kind = u.kind AND c.value = u.value`
	contentsQuery    = `SELECT k.sha256, coalesce(c.size, 0), c.sha256 IS NULL OR c.chunks IS NOT NULL AND c.size <>
			(SELECT coalesce(sum(octet_length(h.bytes)), 0) FROM media_chunks h WHERE h.workspace_id = $1 AND h.chunks = c.chunks)
		FROM (SELECT sha256 FROM media_contents WHERE workspace_id = $1 AND sha256 > $2
			UNION SELECT sha256 FROM media WHERE workspace_id = $1 AND status = 'ready' AND sha256 > $2
			ORDER BY 1 LIMIT $3) k LEFT JOIN media_contents c ON c.workspace_id = $1 AND c.sha256 = k.sha256 ORDER BY 1`
)

// Unindexed returns workspaces with old changes that the search does not know.
func (s *Store) Unindexed(ctx context.Context, types []desk.EventType, before desk.Time, limit int) (list []desk.ID, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found := map[desk.ID]bool{}
		read := func(row pgx.Row) error {
			var ws desk.ID
			err := row.Scan(into(&ws))
			found[ws] = true
			return err
		}
		p.each(read, unindexedContacts, desk.SearchRules, int64(before), limit)
		p.each(read, unindexedEvents, types, int64(before), limit)
		err := p.send("changes to index")
		list = slices.Collect(maps.Keys(found))
		list = list[:min(len(list), limit)]
		return err
	})
	return list, err
}

// Overtaken returns false: PostgreSQL's server shares the data among processes.
func (*Store) Overtaken() bool { return false }

// Damage says that the database is checked on its server.
func (s *Store) Damage(context.Context) (wrong []string, known bool, err error) {
	return nil, false, nil
}

// Claimed returns the contacts that have claims.
func (s *Store) Claimed(ctx context.Context, ws desk.ID, claims []desk.Claim) (held map[desk.Claim][]desk.ID, err error) {
	kinds, values := make([]string, len(claims)), make([]string, len(claims))
	for n, claim := range claims {
		kinds[n], values[n] = claim.Kind, claim.Value
	}
	err = s.read(ctx, func(p *pipe) error {
		held = map[desk.Claim][]desk.ID{}
		p.each(func(row pgx.Row) error {
			var claim desk.Claim
			var id desk.ID
			err := row.Scan(&claim.Kind, &claim.Value, into(&id))
			held[claim] = append(held[claim], id)
			return err
		}, claimedQuery, uuid(ws), kinds, values)
		return p.send("claims")
	})
	return held, err
}

// StrayClaims counts claims without a contact.
func (s *Store) StrayClaims(ctx context.Context, ws desk.ID) (n int64, err error) {
	err = s.acquired(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, strayClaimsQuery, uuid(ws)).Scan(&n) })
	return n, err
}

// Contents returns a page of the stored contents.
func (s *Store) Contents(ctx context.Context, ws desk.ID, after []byte, limit int) ([]store.Content, error) {
	return readAll(ctx, s, "contents", func(row pgx.Row) (v store.Content, err error) {
		err = row.Scan(&v.SHA256, &v.Size, &v.Lost)
		return v, err
	}, contentsQuery, uuid(ws), after, limit)
}
