package sqlite

import (
	"context"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/go-json-experiment/json"
)

const authenticateQuery = `SELECT w.id, w.settings_version FROM directory d JOIN workspaces w ON w.id = d.workspace_id
	WHERE d.kind = 'key' AND d.ref = ?`

// Authenticate returns the settings of the workspace that has a key with this
// public id, or NotFound.
func (s *Store) Authenticate(ctx context.Context, publicID string) (settings *desk.Settings, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		row := c.stmt(authenticateQuery).text(publicID)
		if !row.next() {
			if err := row.done(); err != nil {
				return failed("authenticate", err)
			}
			return stored.NoKey()
		}
		ws, version := row.readID(), row.readInt()
		if err := row.done(); err != nil {
			return failed("authenticate", err)
		}
		settings, err = s.settingsAt(c, ws, version)
		return err
	})
	return settings, err
}

// Settings returns a workspace's configuration, or NotFound.
func (s *Store) Settings(ctx context.Context, ws desk.ID) (settings *desk.Settings, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		settings, err = s.currentSettings(c, ws)
		return err
	})
	return settings, err
}

// currentSettings reads the version of the settings, and returns the settings of this
// version.
func (s *Store) currentSettings(c conn, ws desk.ID) (*desk.Settings, error) {
	row := c.stmt(`SELECT settings_version FROM workspaces WHERE id = ? AND NOT deleted`).id(ws)
	if !row.next() {
		if err := row.done(); err != nil {
			return nil, failed("workspace", err)
		}
		return nil, stored.NoWorkspace()
	}
	version := row.readInt()
	if err := row.done(); err != nil {
		return nil, failed("workspace", err)
	}
	return s.settingsAt(c, ws, version)
}

// toWrite is currentSettings for a transaction that is going to write. It returns
// Unavailable if this process may not write any more.
func (s *Store) toWrite(c conn, ws desk.ID) (*desk.Settings, error) {
	settings := s.current[ws]
	if settings == nil || s.edited {
		var err error
		if settings, err = s.currentSettings(c, ws); err != nil {
			return nil, err
		}
		s.current[ws] = settings
	}
	return settings, s.rules.Check()
}

// settingsAt returns the settings of a version that was just read. It takes them from
// memory if they have this version, otherwise from the database, which may have a newer
// version by now. A version of an open transaction is not kept in memory: if it is
// rolled back, another edit gets the same number.
func (s *Store) settingsAt(c conn, ws desk.ID, version int64) (*desk.Settings, error) {
	if known := s.settings.At(ws, version); known != nil {
		return known, nil
	}
	settings, err := loadSettings(c, ws)
	if err == nil { // the rules of identities are read with each new version (see stored.Rules)
		err = s.seeRules(c)
	}
	if err != nil {
		return nil, err
	}
	if c.Conn == s.writer.Conn && s.edited {
		return settings, nil
	}
	s.settings.Keep(settings)
	return settings, nil
}

// loadSettings reads a workspace's whole configuration, all of the same version.
func loadSettings(c conn, ws desk.ID) (settings *desk.Settings, err error) {
	err = c.snapshot(func() error {
		settings, err = readSettings(c, ws)
		return err
	})
	return settings, err
}

// snapshot runs f, whose statements all see the same commit.
func (c conn) snapshot(f func() error) error {
	if !c.AutocommitEnabled() {
		return f()
	}
	if err := c.stmt("BEGIN").run(); err != nil {
		return failed("begin reading", err)
	}
	err := f()
	if e := c.stmt("COMMIT").run(); err == nil {
		err = failed("end reading", e)
	}
	return err
}

func readSettings(c conn, ws desk.ID) (*desk.Settings, error) {
	w := desk.Workspace{ID: ws}
	var version int64
	row := c.stmt(`SELECT name, country, external_ids_fixed, settings_version FROM workspaces WHERE id = ?`).id(ws)
	if row.next() {
		w.Name, w.Country, w.FixedExternalIDs, version = row.readText(), row.readText(), row.readInt() != 0, row.readInt()
	}
	if err := row.done(); err != nil {
		return nil, failed("workspace", err)
	}
	var attributes []desk.Attribute
	row = c.stmt(`SELECT key, label, description, type, options, position, archived FROM attributes WHERE workspace_id = ?`).id(ws)
	for row.next() {
		a := desk.Attribute{
			Key: row.readText(), Label: row.readText(), Description: row.readText(), Type: desk.AttributeType(row.readText()),
		}
		row.fail = json.Unmarshal([]byte(row.readText()), &a.Options)
		a.Position, a.Archived = int(row.readInt()), row.readInt() != 0
		attributes = append(attributes, a)
	}
	if err := row.done(); err != nil {
		return nil, failed("attributes", err)
	}
	var members []desk.Member
	row = c.stmt(`SELECT id, name, email, role, away, sessions_from FROM members WHERE workspace_id = ?`).id(ws)
	for row.next() {
		members = append(members, desk.Member{ID: row.readID(), Name: row.readText(), Email: row.readText(), Role: desk.Role(row.readText()), Away: row.readInt() != 0, SessionsFrom: row.readTime()})
	}
	if err := row.done(); err != nil {
		return nil, failed("members", err)
	}
	var keys []desk.APIKey
	row = c.stmt(`SELECT id, public_id, name, permissions, later, secret_hash, created_at, expires_at, revoked_at FROM api_keys
		WHERE workspace_id = ?`).id(ws)
	for row.next() {
		k := desk.APIKey{ID: row.readID(), PublicID: row.readText(), Name: row.readText()}
		k.Permissions = stored.Permissions(row.readText(), row.readText())
		row.readBytes(k.SecretHash[:])
		k.CreatedAt, k.ExpiresAt, k.RevokedAt = row.readTime(), row.readTime(), row.readTime()
		keys = append(keys, k)
	}
	if err := row.done(); err != nil {
		return nil, failed("keys", err)
	}
	channels, err := all("channels", c.stmt(`SELECT id, kind, external_id, enabled, created_at, library, bindings, account, status, name FROM channels
		WHERE workspace_id = ?`).id(ws), readChannel)
	if err != nil {
		return nil, err
	}
	webhooks, err := all("webhooks", c.stmt(webhooksQuery).id(ws), readWebhook)
	if err != nil {
		return nil, err
	}
	policies, err := all("policies", c.stmt(policiesQuery).id(ws), readPolicy)
	if err != nil {
		return nil, err
	}
	return desk.NewSettings(w, version, attributes, members, keys, channels, webhooks...).WithPolicies(policies), nil
}

// UpdateSettings stores the change that decide returns.
func (s *Store) UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error {
	return s.write(ctx, func(c conn) error {
		settings, err := s.toWrite(c, ws)
		if err != nil {
			return err
		}
		change, err := decide(settings)
		if err != nil || change.IsEmpty() {
			return err
		}
		s.edited = true
		return flushChange(c, ws, settings, change)
	})
}

func flushChange(c conn, ws desk.ID, settings *desk.Settings, change desk.Change) error {
	if w := change.Workspace; w != nil {
		if err := c.stmt(`UPDATE workspaces SET name = ?, country = ?, external_ids_fixed = ? WHERE id = ?`).text(w.Name).text(w.Country).int(flag(w.FixedExternalIDs)).id(ws).run(); err != nil {
			return failed("workspace", err)
		}
	}
	if a := change.Attribute; a != nil {
		options, err := json.Marshal(a.Options, json.FormatNilSliceAsNull(false))
		if err != nil {
			return err
		}
		if err := c.stmt(`REPLACE INTO attributes (workspace_id, key, label, description, type, options, position, archived)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`).id(ws).text(a.Key).text(a.Label).text(a.Description).text(string(a.Type)).
			text(string(options)).int(int64(a.Position)).int(flag(a.Archived)).run(); err != nil {
			return failed("attribute", err)
		}
	}
	if m := change.Member; m != nil {
		err := c.stmt(`INSERT INTO members (workspace_id, id, name, email, email_folded, role, away, sessions_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, id) DO UPDATE SET name = excluded.name, email = excluded.email,
			email_folded = excluded.email_folded, role = excluded.role, away = excluded.away, sessions_from = excluded.sessions_from`).
			id(ws).id(m.ID).text(m.Name).text(m.Email).text(desk.CanonicalEmail(m.Email)).text(string(m.Role)).int(flag(m.Away)).time(m.SessionsFrom).run()
		if err == nil {
			err = enter(c, stored.Member, m.ID.String(), ws)
		}
		if err == nil {
			err = putAccess(c, ws, settings.Member(m.ID), m, change.Password)
		}
		if err != nil {
			return failed("member", err)
		}
	}
	if m := change.RemoveMember; m != nil {
		if err := removeMember(c, ws, m); err != nil {
			return err
		}
	}
	if k := change.Key; k != nil {
		permissions, later := stored.PermissionsOf(k)
		err := c.stmt(`REPLACE INTO api_keys (workspace_id, id, public_id, name, permissions, later, secret_hash, created_at, expires_at, revoked_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`).id(ws).id(k.ID).text(k.PublicID).text(k.Name).text(permissions).text(later).
			bytes(k.SecretHash[:]).time(k.CreatedAt).time(k.ExpiresAt).time(k.RevokedAt).run()
		if err == nil {
			err = enter(c, stored.Key, k.PublicID, ws)
		}
		if err == nil {
			err = enter(c, stored.KeyID, k.ID.String(), ws)
		}
		if err != nil {
			return failed("key", err)
		}
	}
	if v := change.Channel; v != nil {
		if err := putChannel(c, ws, v); err != nil {
			return failed("channel", err)
		}
	}
	if l := change.Templates; l != nil {
		if err := replaceTemplates(c, ws, l); err != nil {
			return failed("templates", err)
		}
	}
	if err := flushEvents(c, ws, change.Events); err != nil {
		return failed("store events", err)
	}
	if err := flushWebhooks(c, ws, change); err != nil {
		return failed("webhook", err)
	}
	if err := flushPolicies(c, ws, change); err != nil {
		return failed("policy", err)
	}
	return failed("workspace", c.stmt(`UPDATE workspaces SET settings_version = settings_version + 1 WHERE id = ?`).id(ws).run())
}

const ownsQuery = `SELECT 1 FROM contacts WHERE workspace_id = ?1 AND owner_id = ?2
	UNION ALL SELECT 1 FROM conversations WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open' LIMIT 1`

func removeMember(c conn, ws desk.ID, m *desk.Member) error {
	id := m.ID
	owned := c.stmt(ownsQuery).id(ws).id(id)
	owns := owned.next()
	if err := owned.done(); err != nil {
		return failed("member", err)
	}
	if owns {
		return store.ErrOwns
	}
	err := c.stmt(`DELETE FROM members WHERE workspace_id = ? AND id = ?`).id(ws).id(id).run()
	if err == nil {
		err = c.stmt(`DELETE FROM turns WHERE workspace_id = ? AND member_id = ?`).id(ws).id(id).run()
	}
	if err == nil {
		err = leave(c, stored.Member, id.String())
	}
	if err == nil {
		err = removeAccess(c, ws, m)
	}
	return failed("member", err)
}

// enter adds a record to the directory, so that it can be found without knowing the
// workspace.
func enter(c conn, kind, ref string, ws desk.ID) error {
	return c.stmt(`INSERT INTO directory (kind, ref, workspace_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`).text(kind).text(ref).id(ws).run()
}

// leave removes a record from the directory.
func leave(c conn, kind, ref string) error {
	return c.stmt(`DELETE FROM directory WHERE kind = ? AND ref = ?`).text(kind).text(ref).run()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// CreateWorkspace stores a new, empty workspace.
func (s *Store) CreateWorkspace(ctx context.Context, w desk.Workspace) error {
	return s.write(ctx, func(c conn) error {
		return failed("workspace", c.stmt(`INSERT INTO workspaces (id, name, country, settings_version) VALUES (?, ?, ?, 1)`).
			id(w.ID).text(w.Name).text(w.Country).run())
	})
}

// Workspaces lists all workspaces by id.
func (s *Store) Workspaces(ctx context.Context) ([]desk.Workspace, error) {
	return s.workspaces(ctx, false)
}

// Deleting returns the workspaces that are marked as deleted.
func (s *Store) Deleting(ctx context.Context) ([]desk.Workspace, error) {
	return s.workspaces(ctx, true)
}

func (s *Store) workspaces(ctx context.Context, deleted bool) (list []desk.Workspace, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		row := c.stmt(`SELECT id, name, country, external_ids_fixed FROM workspaces WHERE deleted = ? ORDER BY id`).int(flag(deleted))
		for row.next() {
			list = append(list, desk.Workspace{ID: row.readID(), Name: row.readText(), Country: row.readText(), FixedExternalIDs: row.readInt() != 0})
		}
		return failed("workspaces", row.done())
	})
	return list, err
}

const workspaceOfQuery = `SELECT workspace_id FROM directory WHERE kind IN ('member', 'key_id', 'channel', 'webhook') AND ref = ?
	UNION ALL SELECT a.workspace_id FROM attempts a WHERE ` + unsettled + ` AND a.id = ? LIMIT 1`

// WorkspaceOf returns the workspace that the member, key, channel, webhook or
// unsettled attempt with this id belongs to, or NotFound.
func (s *Store) WorkspaceOf(ctx context.Context, id desk.ID) (ws desk.ID, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		ws, err = one("directory", c.stmt(workspaceOfQuery).text(id.String()).id(id), (*stmt).readID)
		return err
	})
	if err == nil && ws.IsZero() {
		err = stored.NoRecord(id)
	}
	return ws, err
}

// BindSecret stores the fingerprint of the installation's secret key. From then on, it
// returns InvalidRequest for any other key.
func (s *Store) BindSecret(ctx context.Context, fingerprint string) error {
	bound, err := s.Fingerprint(ctx)
	if err == nil && bound == "" {
		err = s.write(ctx, func(c conn) error {
			return failed("installation", c.stmt(`INSERT INTO installation (one, fingerprint) VALUES (1, ?) ON CONFLICT DO NOTHING`).text(fingerprint).run())
		})
		if err == nil { // another process may have been first
			bound, err = s.Fingerprint(ctx)
		}
	}
	if err != nil {
		return err
	}
	return stored.CheckFingerprint(bound, fingerprint)
}

// Fingerprint returns the fingerprint of the installation's secret key, or "" if there
// is no installation.
func (s *Store) Fingerprint(ctx context.Context) (fingerprint string, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		row := c.stmt(`SELECT fingerprint FROM installation`)
		if row.next() {
			fingerprint = row.readText()
		}
		return failed("installation", row.done())
	})
	return fingerprint, err
}
