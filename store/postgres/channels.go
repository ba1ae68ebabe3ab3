package postgres

import (
	"context"
	"reflect"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

func readChannel(row pgx.Row) (v desk.Channel, err error) {
	var bindings [][4]string
	err = row.Scan(into(&v.ID), (*string)(&v.Kind), &v.ExternalID, &v.Enabled, (*int64)(&v.CreatedAt), &v.Library, document{&bindings}, document{&v.Account}, document{&v.Status}, &v.Name)
	for _, b := range bindings {
		if v.Bindings == nil {
			v.Bindings = map[desk.BindingPlace]desk.Binding{}
		}
		v.Bindings[desk.BindingPlace{Template: b[0], Language: b[1], Address: b[2]}] = desk.Binding(b[3])
	}
	return v, err
}

func putChannel(p *pipe, ws desk.ID, v *desk.Channel) {
	var bindings [][4]string
	for place, b := range v.Bindings {
		bindings = append(bindings, [4]string{place.Template, place.Language, place.Address, string(b)})
	}
	var account *desk.Account
	if !reflect.ValueOf(v.Account).IsZero() {
		account = &v.Account
	}
	var status *desk.AccountStatus
	if v.Status != (desk.AccountStatus{}) {
		status = &v.Status
	}
	p.put(`INSERT INTO channels (workspace_id, id, kind, external_id, enabled, created_at, library, bindings, account, status, name)
		VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9, $10) ON CONFLICT (workspace_id, id) DO UPDATE SET kind = excluded.kind,
		external_id = excluded.external_id, enabled = excluded.enabled, created_at = excluded.created_at, bindings = excluded.bindings,
		account = excluded.account, status = excluded.status, name = excluded.name`,
		uuid(ws), uuid(v.ID), string(v.Kind), v.ExternalID, v.Enabled, int64(v.CreatedAt), asJSON(bindings), asJSON(account), asJSON(status), v.Name)
	enter(p, stored.Channel, v.ID.String(), ws)
}

const channelsOfKindQuery = `SELECT workspace_id, id FROM channels WHERE kind = $1 ORDER BY workspace_id, id`

// ChannelsOfKind lists the channels of a kind in all workspaces.
func (s *Store) ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) ([]store.ChannelRef, error) {
	return readAll(ctx, s, "channels of a kind", func(row pgx.Row) (ref store.ChannelRef, err error) {
		err = row.Scan(into(&ref.Workspace), into(&ref.ID))
		return ref, err
	}, channelsOfKindQuery, string(kind))
}

const channelSignsQuery = `SELECT coalesce(max(synced_at), 0), coalesce(max(asked_at), 0), ` + databaseNow + `
	FROM channel_signs WHERE workspace_id = $1 AND channel_id = $2`

// ChannelSigns returns the times at which a channel last worked, and the database's
// clock.
func (s *Store) ChannelSigns(ctx context.Context, ws, channel desk.ID) (signs desk.ChannelSigns, now desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		signs, err = one(p, "channel signs", func(row pgx.Row) (signs desk.ChannelSigns, err error) {
			err = row.Scan((*int64)(&signs.Synced), (*int64)(&signs.Asked), (*int64)(&now))
			return signs, err
		}, channelSignsQuery, uuid(ws), uuid(channel))
		return err
	})
	return signs, now, err
}

// NoteChannel stores the current time for one of a channel's signs.
func (s *Store) NoteChannel(ctx context.Context, ws, channel desk.ID, sign store.ChannelSign) error {
	query := `INSERT INTO channel_signs (workspace_id, channel_id, synced_at) SELECT id, $2, ` + shardNow("id") + ofWorkspace + `
		ON CONFLICT (workspace_id, channel_id) DO UPDATE SET synced_at = excluded.synced_at`
	if sign == store.SignAsked {
		query = `INSERT INTO channel_signs (workspace_id, channel_id, asked_at) SELECT id, $2, ` + shardNow("id") + ofWorkspace + `
		ON CONFLICT (workspace_id, channel_id) DO UPDATE SET asked_at = excluded.asked_at`
	}
	_, err := s.exec(ctx, "note a channel's sign", query, uuid(ws), uuid(channel))
	return err
}

func replaceTemplates(p *pipe, ws desk.ID, l *desk.ChannelLibrary) {
	p.put(`DELETE FROM templates WHERE workspace_id = $1 AND channel_id = $2`, uuid(ws), uuid(l.Channel))
	for _, t := range l.Templates {
		p.put(`INSERT INTO templates (workspace_id, channel_id, name, language, source) VALUES ($1, $2, $3, $4, $5)`,
			uuid(ws), uuid(l.Channel), t.Name, t.Language, t.Source)
	}
	p.put(`UPDATE channels SET library = `+nextVersion("library", "workspace_id")+` WHERE workspace_id = $1 AND id = $2`, uuid(ws), uuid(l.Channel))
}

const templatesQuery = `SELECT c.library, coalesce(t.name, ''), coalesce(t.language, ''), coalesce(t.source, '') FROM channels c
	LEFT JOIN templates t ON t.workspace_id = c.workspace_id AND t.channel_id = c.id WHERE c.workspace_id = $1 AND c.id = $2`

// Templates returns a channel's templates in no order, and the version of its library
// at that moment, or NotFound.
func (s *Store) Templates(ctx context.Context, ws, channel desk.ID) (version int64, list []desk.TemplateSource, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list = nil
		p.each(func(row pgx.Row) error {
			var t desk.TemplateSource
			err := row.Scan(&version, &t.Name, &t.Language, &t.Source)
			if t.Name != "" { // the row of an empty library has no template
				list = append(list, t)
			}
			return err
		}, templatesQuery, uuid(ws), uuid(channel))
		return p.send("templates")
	})
	if err == nil && version == 0 {
		err = desk.NoChannel()
	}
	return version, list, err
}

const sandboxTemplatesQuery = `SELECT name, language, source FROM sandbox_templates WHERE workspace_id = $1 AND channel_id = $2`

// SandboxTemplates returns the library of a sandbox channel, as it is at the simulated
// provider.
func (s *Store) SandboxTemplates(ctx context.Context, ws, channel desk.ID) ([]desk.TemplateSource, error) {
	return readAll(ctx, s, "sandbox templates", func(row pgx.Row) (t desk.TemplateSource, err error) {
		err = row.Scan(&t.Name, &t.Language, &t.Source)
		return t, err
	}, sandboxTemplatesQuery, uuid(ws), uuid(channel))
}

// PutSandboxTemplate puts a template into the library of a sandbox channel. It replaces
// a template with the same name and language.
func (s *Store) PutSandboxTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error {
	_, err := s.exec(ctx, "sandbox template", `INSERT INTO sandbox_templates (workspace_id, channel_id, name, language, source)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (workspace_id, channel_id, name, language) DO UPDATE SET source = excluded.source`,
		uuid(ws), uuid(channel), t.Name, t.Language, t.Source)
	return err
}

// Resealed tells whether the secrets of the first release have been sealed again.
func (s *Store) Resealed(ctx context.Context) (bool, error) {
	return readOne(ctx, s, "resealed", scanned[bool], `SELECT resealed FROM installation`)
}

// SetResealed stores that the secrets have been sealed again.
func (s *Store) SetResealed(ctx context.Context) error {
	_, err := s.exec(ctx, "resealed", `UPDATE installation SET resealed = true`)
	return err
}
