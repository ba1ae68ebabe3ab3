package postgres

import (
	"context"
	"reflect"

	"parley/app"
	"parley/desk"

	"github.com/jackc/pgx/v5"
)

func readChannel(row pgx.Row) (v desk.Channel, err error) {
	var bindings [][4]string
	err = row.Scan(into(&v.ID), (*string)(&v.Kind), &v.ExternalID, &v.Enabled, (*int64)(&v.CreatedAt), &v.Library, document{&bindings}, document{&v.Account})
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
	p.put(`INSERT INTO channels (workspace_id, id, kind, external_id, enabled, created_at, library, bindings, account)
		VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8) ON CONFLICT (workspace_id, id) DO UPDATE SET kind = excluded.kind,
		external_id = excluded.external_id, enabled = excluded.enabled, created_at = excluded.created_at, bindings = excluded.bindings,
		account = excluded.account`,
		uuid(ws), uuid(v.ID), string(v.Kind), v.ExternalID, v.Enabled, int64(v.CreatedAt), asJSON(bindings), asJSON(account))
	enter(p, entryChannel, v.ID.String(), ws)
}

const channelsOfKindQuery = `SELECT workspace_id, id FROM channels WHERE kind = $1 ORDER BY workspace_id, id`

// ChannelsOfKind lists the channels of a kind in all workspaces.
func (s *Store) ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) (list []app.ChannelRef, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "channels of a kind", func(row pgx.Row) (ref app.ChannelRef, err error) {
			err = row.Scan(into(&ref.Workspace), into(&ref.ID))
			return ref, err
		}, channelsOfKindQuery, string(kind))
		return err
	})
	return list, err
}

func replaceTemplates(p *pipe, ws desk.ID, l *desk.ChannelLibrary) {
	p.put(`DELETE FROM templates WHERE workspace_id = $1 AND channel_id = $2`, uuid(ws), uuid(l.Channel))
	for _, t := range l.Templates {
		p.put(`INSERT INTO templates (workspace_id, channel_id, name, language, source) VALUES ($1, $2, $3, $4, $5)`,
			uuid(ws), uuid(l.Channel), t.Name, t.Language, t.Source)
	}
	p.put(`UPDATE channels SET library = `+nextVersion("library")+` WHERE workspace_id = $1 AND id = $2`, uuid(ws), uuid(l.Channel))
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
			if t.Name != "" { // else the library is empty
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

// SandboxTemplates returns the library of a sandbox channel, as the provider that the
// sandbox plays holds it.
func (s *Store) SandboxTemplates(ctx context.Context, ws, channel desk.ID) (list []desk.TemplateSource, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "sandbox templates", func(row pgx.Row) (t desk.TemplateSource, err error) {
			err = row.Scan(&t.Name, &t.Language, &t.Source)
			return t, err
		}, sandboxTemplatesQuery, uuid(ws), uuid(channel))
		return err
	})
	return list, err
}

// PutSandboxTemplate puts a template there, replacing one of the same name and language.
func (s *Store) PutSandboxTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error {
	_, err := s.exec(ctx, "sandbox template", `INSERT INTO sandbox_templates (workspace_id, channel_id, name, language, source)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (workspace_id, channel_id, name, language) DO UPDATE SET source = excluded.source`,
		uuid(ws), uuid(channel), t.Name, t.Language, t.Source)
	return err
}
