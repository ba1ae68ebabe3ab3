package postgres

import (
	"context"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

const authenticateQuery = `SELECT w.id, w.settings_version FROM directory d JOIN workspaces w ON w.id = d.workspace_id
	WHERE d.kind = 'key' AND d.ref = $1`

// Authenticate returns the settings of the workspace that has a key with this
// public id, or NotFound.
func (s *Store) Authenticate(ctx context.Context, publicID string) (settings *desk.Settings, err error) {
	err = s.read(ctx, func(p *pipe) error {
		if s.citus {
			settings, err = s.authenticateOn(p, publicID)
			return err
		}
		var ws desk.ID
		version, err := one(p, "authenticate", func(row pgx.Row) (version int64, err error) {
			err = row.Scan(into(&ws), &version)
			return version, err
		}, authenticateQuery, publicID)
		if err != nil {
			return err
		}
		if version == 0 {
			return stored.NoKey()
		}
		settings, err = s.settingsAt(p, ws, version)
		return err
	})
	return settings, err
}

// authenticateOn is Authenticate on a cluster. A known key costs one round trip, as
// elsewhere.
func (s *Store) authenticateOn(p *pipe, publicID string) (*desk.Settings, error) {
	ws := s.keys.get(publicID)
	known := !ws.IsZero()
	if !known {
		var err error
		if ws, err = one(p, "authenticate", readID, placeQuery, stored.Key, publicID); err != nil {
			return nil, err
		}
		if ws.IsZero() {
			return nil, stored.NoKey()
		}
	}
	settings, err := s.currentSettings(p, ws)
	switch {
	case desk.IsType(err, desk.NotFound), err == nil && settings.KeyByPublicID(publicID) == nil:
		return nil, stored.NoKey()
	case err == nil && !known:
		s.keys.put(publicID, ws)
	}
	return settings, err
}

// Settings returns a workspace's configuration, or NotFound.
func (s *Store) Settings(ctx context.Context, ws desk.ID) (settings *desk.Settings, err error) {
	err = s.read(ctx, func(p *pipe) error {
		settings, err = s.currentSettings(p, ws)
		return err
	})
	return settings, err
}

// nextVersion returns an expression for a version that was never used. workspace is the
// column with the row's workspace. A standby that
// takes over may have missed the newest versions, which nodes still have in memory. If
// it simply counted on, two different settings could get the same version.
func nextVersion(column, workspace string) string {
	return `greatest(` + column + ` + 1, ` + shardNow(workspace) + `)`
}

// currentSettings reads the version of the settings, and returns the settings of this
// version.
func (s *Store) currentSettings(p *pipe, ws desk.ID) (*desk.Settings, error) {
	version, err := one(p, "workspace", scanned[int64], `SELECT settings_version FROM workspaces WHERE id = $1 AND NOT deleted`, uuid(ws))
	if err != nil {
		return nil, err
	}
	if version == 0 {
		return nil, stored.NoWorkspace()
	}
	return s.settingsAt(p, ws, version)
}

// settingsAt returns the settings of a version that was just read. It takes them from
// memory if they have this version, otherwise from the database, which may have a newer
// version by now. Transactions read settings before they edit them, so settings that may
// be rolled back are never kept in memory.
func (s *Store) settingsAt(p *pipe, ws desk.ID, version int64) (*desk.Settings, error) {
	if known := s.settings.At(ws, version); known != nil {
		return known, nil
	}
	settings, err := s.loadSettings(p, ws)
	if err != nil {
		return nil, err
	}
	s.settings.Keep(settings)
	return settings, nil
}

// loadSettings reads a workspace's configuration in one round trip, all of one version.
// In a transaction, the caller holds the workspace's lock. Without a transaction, the
// queries share a snapshot. loadSettings also reads the rules of identities (see
// stored.Rules).
func (s *Store) loadSettings(p *pipe, ws desk.ID) (*desk.Settings, error) {
	outside := p.c.Conn().PgConn().TxStatus() == 'I'
	if outside {
		p.put(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	}
	w := desk.Workspace{ID: ws}
	var version int64
	p.each(func(row pgx.Row) error {
		return row.Scan(&w.Name, &w.Country, &w.FixedExternalIDs, &version)
	}, `SELECT name, country, external_ids_fixed, settings_version FROM workspaces WHERE id = $1`, uuid(ws))
	var attributes []desk.Attribute
	p.each(func(row pgx.Row) error {
		var a desk.Attribute
		err := row.Scan(&a.Key, &a.Label, &a.Description, (*string)(&a.Type), document{&a.Options}, &a.Position, &a.Archived)
		attributes = append(attributes, a)
		return err
	}, `SELECT key, label, description, type, options, position, archived FROM attributes WHERE workspace_id = $1`, uuid(ws))
	var members []desk.Member
	p.each(func(row pgx.Row) error {
		var m desk.Member
		err := row.Scan(into(&m.ID), &m.Name, &m.Email, (*string)(&m.Role), &m.Away, (*int64)(&m.SessionsFrom))
		members = append(members, m)
		return err
	}, `SELECT id, name, email, role, away, sessions_from FROM members WHERE workspace_id = $1`, uuid(ws))
	var keys []desk.APIKey
	p.each(func(row pgx.Row) error {
		var k desk.APIKey
		var permissions, later string
		err := row.Scan(into(&k.ID), &k.PublicID, &k.Name, &permissions, &later, (*hash)(&k.SecretHash),
			(*int64)(&k.CreatedAt), (*int64)(&k.ExpiresAt), (*int64)(&k.RevokedAt))
		k.Permissions = stored.Permissions(permissions, later)
		keys = append(keys, k)
		return err
	}, `SELECT id, public_id, name, permissions, later, secret_hash, created_at, expires_at, revoked_at FROM api_keys WHERE workspace_id = $1`, uuid(ws))
	var channels []desk.Channel
	p.each(func(row pgx.Row) error {
		v, err := readChannel(row)
		channels = append(channels, v)
		return err
	}, `SELECT id, kind, external_id, enabled, created_at, library, bindings, account, status, name FROM channels WHERE workspace_id = $1`, uuid(ws))
	var webhooks []desk.Webhook
	p.each(func(row pgx.Row) error {
		w, err := readWebhook(row)
		webhooks = append(webhooks, w)
		return err
	}, webhooksQuery, uuid(ws))
	var policies []desk.Policy
	p.each(func(row pgx.Row) error {
		v, err := readPolicy(row)
		policies = append(policies, v)
		return err
	}, policiesQuery, uuid(ws))
	s.seeRules(p)
	if outside {
		p.put(`COMMIT`)
	}
	if err := p.send("settings"); err != nil {
		return nil, err
	}
	return desk.NewSettings(w, version, attributes, members, keys, channels, webhooks...).WithPolicies(policies), nil
}

// UpdateSettings stores the change that decide returns.
func (s *Store) UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error {
	return s.write(ctx, ws, true, func(t *tx) error {
		if err := t.open("workspace"); err != nil {
			return err
		}
		change, err := decide(t.settings)
		if err != nil || change.IsEmpty() {
			return err
		}
		t.events, t.webhook = change.Events, change.Webhook
		return flushChange(t.pipe, ws, t.settings, change)
	})
}

func flushChange(p *pipe, ws desk.ID, settings *desk.Settings, change desk.Change) error {
	if w := change.Workspace; w != nil {
		p.put(`UPDATE workspaces SET name = $2, country = $3, external_ids_fixed = $4 WHERE id = $1`, uuid(ws), w.Name, w.Country, w.FixedExternalIDs)
	}
	if a := change.Attribute; a != nil {
		options, err := json.Marshal(a.Options, json.FormatNilSliceAsNull(false))
		if err != nil {
			return err
		}
		p.put(`INSERT INTO attributes (workspace_id, key, label, description, type, options, position, archived)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (workspace_id, key) DO UPDATE SET label = excluded.label,
			description = excluded.description, type = excluded.type, options = excluded.options, position = excluded.position,
			archived = excluded.archived`,
			uuid(ws), a.Key, a.Label, a.Description, string(a.Type), string(options), a.Position, a.Archived)
	}
	if m := change.Member; m != nil {
		p.put(`INSERT INTO members (workspace_id, id, name, email, email_folded, role, away, sessions_from) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (workspace_id, id) DO UPDATE SET name = excluded.name, email = excluded.email,
			email_folded = excluded.email_folded, role = excluded.role, away = excluded.away, sessions_from = excluded.sessions_from`,
			uuid(ws), uuid(m.ID), m.Name, m.Email, desk.CanonicalEmail(m.Email), string(m.Role), m.Away, int64(m.SessionsFrom))
		enter(p, stored.Member, m.ID.String(), ws)
		putAccess(p, ws, settings.Member(m.ID), m, change.Password)
	}
	if m := change.RemoveMember; m != nil {
		if err := removeMember(p, ws, m); err != nil {
			return err
		}
	}
	if k := change.Key; k != nil {
		permissions, later := stored.PermissionsOf(k)
		p.put(`INSERT INTO api_keys (workspace_id, id, public_id, name, permissions, later, secret_hash, created_at, expires_at, revoked_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (workspace_id, id) DO UPDATE SET public_id = excluded.public_id,
			name = excluded.name, permissions = excluded.permissions, later = excluded.later, secret_hash = excluded.secret_hash,
			created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at`,
			uuid(ws), uuid(k.ID), k.PublicID, k.Name, permissions, later, k.SecretHash[:],
			int64(k.CreatedAt), int64(k.ExpiresAt), int64(k.RevokedAt))
		enter(p, stored.Key, k.PublicID, ws)
		enter(p, stored.KeyID, k.ID.String(), ws)
	}
	if v := change.Channel; v != nil {
		putChannel(p, ws, v)
	}
	if l := change.Templates; l != nil {
		replaceTemplates(p, ws, l)
	}
	putWebhooks(p, ws, change)
	if err := putPolicies(p, ws, change); err != nil {
		return err
	}
	p.put(`UPDATE workspaces SET settings_version = `+nextVersion("settings_version", "id")+` WHERE id = $1`, uuid(ws))
	return p.send("settings")
}

const ownsQuery = `(SELECT true FROM contacts WHERE workspace_id = $1 AND owner_id = $2 LIMIT 1)
	UNION ALL (SELECT true FROM conversations WHERE workspace_id = $1 AND assigned_member_id = $2 AND status = 'open' LIMIT 1)`

func removeMember(p *pipe, ws desk.ID, m *desk.Member) error {
	id := m.ID
	owns, err := one(p, "member", scanned[bool], ownsQuery, uuid(ws), uuid(id))
	if err != nil {
		return err
	}
	if owns {
		return store.ErrOwns
	}
	p.put(`DELETE FROM members WHERE workspace_id = $1 AND id = $2`, uuid(ws), uuid(id))
	p.put(`DELETE FROM turns WHERE workspace_id = $1 AND member_id = $2`, uuid(ws), uuid(id))
	leave(p, stored.Member, id.String())
	removeAccess(p, ws, m)
	return nil
}

// enter adds a record to the directory, so that it can be found without knowing the
// workspace.
func enter(p *pipe, kind, ref string, ws desk.ID) {
	p.put(`INSERT INTO directory (kind, ref, workspace_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, kind, ref, uuid(ws))
}

// leave removes a record from the directory.
func leave(p *pipe, kind, ref string) {
	p.put(`DELETE FROM directory WHERE kind = $1 AND ref = $2`, kind, ref)
}

// CreateWorkspace stores a new, empty workspace.
func (s *Store) CreateWorkspace(ctx context.Context, w desk.Workspace) error {
	_, err := s.exec(ctx, "workspace", `INSERT INTO workspaces (id, name, country, settings_version) VALUES ($1, $2, $3, 1)`,
		uuid(w.ID), w.Name, w.Country)
	return err
}

// Workspaces lists all workspaces by id.
func (s *Store) Workspaces(ctx context.Context) ([]desk.Workspace, error) {
	return s.workspaces(ctx, false)
}

// Deleting returns the workspaces that are marked as deleted.
func (s *Store) Deleting(ctx context.Context) ([]desk.Workspace, error) {
	return s.workspaces(ctx, true)
}

func (s *Store) workspaces(ctx context.Context, deleted bool) ([]desk.Workspace, error) {
	return readAll(ctx, s, "workspaces", func(row pgx.Row) (w desk.Workspace, err error) {
		err = row.Scan(into(&w.ID), &w.Name, &w.Country, &w.FixedExternalIDs)
		return w, err
	}, `SELECT id, name, country, external_ids_fixed FROM workspaces WHERE deleted = $1 ORDER BY id`, deleted)
}

const (
	workspaceOfRecord  = `SELECT workspace_id FROM directory WHERE kind IN ('member', 'key_id', 'channel', 'webhook') AND ref = $1 LIMIT 1`
	workspaceOfAttempt = `SELECT a.workspace_id FROM attempts a WHERE ` + unsettled + ` AND a.id = $1 LIMIT 1`
)

// WorkspaceOf returns the workspace that the member, key, channel, webhook or
// unsettled attempt with this id belongs to, or NotFound.
func (s *Store) WorkspaceOf(ctx context.Context, id desk.ID) (ws desk.ID, err error) {
	err = s.read(ctx, func(p *pipe) error {
		if ws, err = one(p, "directory", readID, workspaceOfRecord, id.String()); ws.IsZero() && err == nil {
			ws, err = one(p, "attempts", readID, workspaceOfAttempt, uuid(id)) // on a cluster, this asks all shards
		}
		return err
	})
	if err == nil && ws.IsZero() {
		err = stored.NoRecord(id)
	}
	return ws, err
}

// BindSecret stores the fingerprint of the installation's secret key. From then on, it
// returns InvalidRequest for any other key. It also returns InvalidRequest while an
// installation is being copied into the database.
func (s *Store) BindSecret(ctx context.Context, fingerprint string) error {
	importing, err := s.importing(ctx)
	if err == nil && importing {
		return desk.Invalidf("an installation is being copied into this database").Advise(desk.FinishMigration)
	}
	if err != nil {
		return err
	}
	return s.bind(ctx, fingerprint)
}

func (s *Store) bind(ctx context.Context, fingerprint string) error {
	bound, err := s.fingerprint(ctx)
	if err == nil && bound == "" {
		_, err = s.exec(ctx, "installation", `INSERT INTO installation (one, fingerprint) VALUES (1, $1) ON CONFLICT DO NOTHING`, fingerprint)
		if err == nil { // another node may have been first
			bound, err = s.fingerprint(ctx)
		}
	}
	if err != nil {
		return err
	}
	if err := stored.CheckFingerprint(bound, fingerprint); err != nil {
		return err
	}
	return s.bindMedia(ctx)
}

func (s *Store) fingerprint(ctx context.Context) (string, error) {
	return readOne(ctx, s, "installation", scanned[string], `SELECT fingerprint FROM installation`)
}
