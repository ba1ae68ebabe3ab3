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
	// Among so many events, the next change is looked for.
	unindexedEvents = `SELECT at FROM events WHERE workspace_id = $1 AND kind = ANY ($2) AND seq > coalesce((SELECT seq FROM search_places WHERE workspace_id = $1), 0)
		AND seq <= coalesce((SELECT seq FROM search_places WHERE workspace_id = $1), 0) + 100000 ORDER BY seq LIMIT 1`
	unindexedContact = `SELECT updated_at FROM contacts WHERE workspace_id = $1
		AND NOT EXISTS (SELECT 1 FROM search_places WHERE workspace_id = $1 AND rules >= $2 AND built IS NULL)
		AND id > coalesce((SELECT built FROM search_places WHERE workspace_id = $1), '00000000-0000-0000-0000-000000000000') ORDER BY id LIMIT 1`
	strayClaimsQuery = `SELECT count(*) FROM claims c WHERE workspace_id = $1 AND NOT EXISTS (SELECT 1 FROM contacts WHERE workspace_id = $1 AND id = c.contact_id)`
	claimedQuery     = `SELECT c.kind, c.value, c.contact_id FROM unnest($2::text[], $3::text[]) u (kind, value) JOIN claims c ON c.workspace_id = $1 AND c.kind = u.kind AND c.value = u.value`
	contentsQuery    = `SELECT sha256, size FROM media_contents WHERE workspace_id = $1 AND sha256 > $2 ORDER BY sha256 LIMIT $3`
)

// Unindexed returns the time of the oldest change that the search does not know.
func (s *Store) Unindexed(ctx context.Context, ws desk.ID, types []desk.EventType) (at desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		var contact, event desk.Time
		p.each(func(row pgx.Row) error { return row.Scan((*int64)(&contact)) }, unindexedContact, uuid(ws), desk.SearchRules)
		p.each(func(row pgx.Row) error { return row.Scan((*int64)(&event)) }, unindexedEvents, uuid(ws), types)
		err := p.send("changes to index")
		if at = contact; at == 0 {
			at = event
		}
		return err
	})
	return at, err
}

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
func (s *Store) Contents(ctx context.Context, ws desk.ID, after []byte, limit int) (list []store.Content, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "contents", func(row pgx.Row) (v store.Content, err error) {
			err = row.Scan(&v.SHA256, &v.Size)
			return v, err
		}, contentsQuery, uuid(ws), after, limit)
		return err
	})
	return list, err
}
