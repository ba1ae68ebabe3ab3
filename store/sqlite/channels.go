package sqlite

import (
	"context"
	"reflect"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

func readChannel(s *stmt) (v desk.Channel) {
	v.ID, v.Kind, v.ExternalID = s.readID(), desk.ChannelKind(s.readText()), s.readText()
	v.Enabled, v.CreatedAt, v.Library = s.readInt() != 0, s.readTime(), s.readInt()
	var bindings [][4]string
	s.readJSON(&bindings)
	for _, b := range bindings {
		if v.Bindings == nil {
			v.Bindings = map[desk.BindingPlace]desk.Binding{}
		}
		v.Bindings[desk.BindingPlace{Template: b[0], Language: b[1], Address: b[2]}] = desk.Binding(b[3])
	}
	s.readJSON(&v.Account)
	s.readJSON(&v.Status)
	v.Name = s.readText()
	return v
}

func putChannel(c conn, ws desk.ID, v *desk.Channel) error {
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
	err := c.stmt(`INSERT INTO channels (workspace_id, id, kind, external_id, enabled, created_at, library, bindings, account, status, name)
		VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT (workspace_id, id) DO UPDATE SET kind = excluded.kind,
		external_id = excluded.external_id, enabled = excluded.enabled, created_at = excluded.created_at, bindings = excluded.bindings,
		account = excluded.account, status = excluded.status, name = excluded.name`).
		id(ws).id(v.ID).text(string(v.Kind)).text(v.ExternalID).int(flag(v.Enabled)).time(v.CreatedAt).json(bindings).json(account).json(status).text(v.Name).run()
	if err != nil {
		return err
	}
	return enter(c, stored.Channel, v.ID.String(), ws)
}

const channelsOfKindQuery = `SELECT workspace_id, id FROM channels WHERE kind = ? ORDER BY workspace_id, id`

// ChannelsOfKind lists the channels of a kind in all workspaces.
func (s *Store) ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) (list []store.ChannelRef, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("channels of a kind", c.stmt(channelsOfKindQuery).text(string(kind)), func(s *stmt) store.ChannelRef {
			return store.ChannelRef{Workspace: s.readID(), ID: s.readID()}
		})
		return err
	})
	return list, err
}

const channelSignsQuery = `SELECT synced_at, asked_at FROM channel_signs WHERE workspace_id = ? AND channel_id = ?`

// ChannelSigns returns the times at which a channel last worked, and the database's
// clock.
func (s *Store) ChannelSigns(ctx context.Context, ws, channel desk.ID) (signs desk.ChannelSigns, at desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		signs, err = one("channel signs", c.stmt(channelSignsQuery).id(ws).id(channel), func(s *stmt) desk.ChannelSigns {
			return desk.ChannelSigns{Synced: s.readTime(), Asked: s.readTime()}
		})
		return err
	})
	return signs, s.now(), err
}

// NoteChannel stores the current time for one of a channel's signs.
func (s *Store) NoteChannel(ctx context.Context, ws, channel desk.ID, sign store.ChannelSign) error {
	query := `INSERT INTO channel_signs (workspace_id, channel_id, synced_at) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET synced_at = excluded.synced_at`
	if sign == store.SignAsked {
		query = `INSERT INTO channel_signs (workspace_id, channel_id, asked_at) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET asked_at = excluded.asked_at`
	}
	return s.write(ctx, func(c conn) error {
		return failed("note a channel's sign", c.stmt(query).id(ws).id(channel).time(s.now()).run())
	})
}

func replaceTemplates(c conn, ws desk.ID, l *desk.ChannelLibrary) error {
	err := c.stmt(`DELETE FROM templates WHERE workspace_id = ? AND channel_id = ?`).id(ws).id(l.Channel).run()
	for _, t := range l.Templates {
		if err == nil {
			err = c.stmt(`INSERT INTO templates (workspace_id, channel_id, name, language, source) VALUES (?, ?, ?, ?, ?)`).
				id(ws).id(l.Channel).text(t.Name).text(t.Language).text(t.Source).run()
		}
	}
	if err != nil {
		return err
	}
	return c.stmt(`UPDATE channels SET library = library + 1 WHERE workspace_id = ? AND id = ?`).id(ws).id(l.Channel).run()
}

const templatesQuery = `SELECT c.library, t.name, t.language, t.source FROM channels c
	LEFT JOIN templates t ON t.workspace_id = c.workspace_id AND t.channel_id = c.id WHERE c.workspace_id = ? AND c.id = ?`

// Templates returns a channel's templates in no order, and the version of its library
// at that moment, or NotFound.
func (s *Store) Templates(ctx context.Context, ws, channel desk.ID) (version int64, list []desk.TemplateSource, err error) {
	err = s.read(ctx, templatesRead, func(c conn) error {
		rows := c.stmt(templatesQuery).id(ws).id(channel)
		for rows.next() {
			version = rows.readInt()
			if t := readTemplate(&rows); t.Name != "" { // the row of an empty library has no template
				list = append(list, t)
			}
		}
		return failed("templates", rows.done())
	})
	if err == nil && version == 0 {
		err = desk.NoChannel()
	}
	return version, list, err
}

// templatesRead is the approximate number of pages that reading a library of a hundred
// templates touches.
const templatesRead = 100

func readTemplate(s *stmt) desk.TemplateSource {
	return desk.TemplateSource{Name: s.readText(), Language: s.readText(), Source: s.readText()}
}

const sandboxTemplatesQuery = `SELECT name, language, source FROM sandbox_templates WHERE workspace_id = ? AND channel_id = ?`

// SandboxTemplates returns the library of a sandbox channel, as it is at the simulated
// provider.
func (s *Store) SandboxTemplates(ctx context.Context, ws, channel desk.ID) (list []desk.TemplateSource, err error) {
	err = s.read(ctx, templatesRead, func(c conn) error {
		list, err = all("sandbox templates", c.stmt(sandboxTemplatesQuery).id(ws).id(channel), readTemplate)
		return err
	})
	return list, err
}

// PutSandboxTemplate puts a template into the library of a sandbox channel. It replaces
// a template with the same name and language.
func (s *Store) PutSandboxTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error {
	return s.write(ctx, func(c conn) error {
		return failed("sandbox template", c.stmt(`REPLACE INTO sandbox_templates (workspace_id, channel_id, name, language, source)
			VALUES (?, ?, ?, ?, ?)`).id(ws).id(channel).text(t.Name).text(t.Language).text(t.Source).run())
	})
}

// Resealed tells whether the secrets of the first release have been sealed again.
func (s *Store) Resealed(ctx context.Context) (done bool, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		done, err = one("resealed", c.stmt(`SELECT resealed FROM installation`), func(s *stmt) bool { return s.readInt() != 0 })
		return err
	})
	return done, err
}

// SetResealed stores that the secrets have been sealed again.
func (s *Store) SetResealed(ctx context.Context) error {
	return s.write(ctx, func(c conn) error { return failed("resealed", c.stmt(`UPDATE installation SET resealed = 1`).run()) })
}
