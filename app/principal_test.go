package app_test

import (
	"testing"

	"parley/app"
	"parley/desk"
)

// TestAdministration: what changes a workspace asks who wants it. No key may, whatever its
// permissions, and nobody reaches a record of another workspace by its id.
func TestAdministration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.CreateWorkspace(t.Context(), "Other", "")
	must(t, err)
	stranger, err := w.Operator(t.Context(), other.ID)
	must(t, err)
	key, all := w.caller(), "all"
	ctx, name := t.Context(), "Renamed"
	doubtful := desk.ID{9}
	for what, do := range map[string]func(app.Principal) error{
		"EditMember": func(p app.Principal) error {
			_, err := w.EditMember(ctx, p, w.ada.ID, app.MemberEdit{Name: &name})
			return err
		},
		"RemoveMember": func(p app.Principal) error { return w.RemoveMember(ctx, p, w.ada.ID) },
		"EditKey": func(p app.Principal) error {
			_, err := w.EditKey(ctx, p, w.keyID, app.KeyEdit{Name: &name})
			return err
		},
		"RevokeKey":    func(p app.Principal) error { _, err := w.RevokeKey(ctx, p, w.keyID); return err },
		"EditChannel":  func(p app.Principal) error { _, err := w.EditChannel(ctx, p, w.channel, app.ChannelEdit{}); return err },
		"CheckChannel": func(p app.Principal) error { _, err := w.CheckChannel(ctx, p, w.channel); return err },
		"SyncChannel":  func(p app.Principal) error { _, _, err := w.SyncChannel(ctx, p, w.channel); return err },
		"TemplatesOf":  func(p app.Principal) error { _, err := w.TemplatesOf(ctx, p, w.channel); return err },
		"PutTemplate":  func(p app.Principal) error { _, err := w.PutTemplate(ctx, p, w.channel, nil); return err },
		"ReceiveSimulated": func(p app.Principal) error {
			_, err := w.ReceiveSimulated(ctx, p, w.channel, "+905321110010", "", "Hi")
			return err
		},
		"Release": func(p app.Principal) error { _, err := w.Release(ctx, p, doubtful, true); return err },
	} {
		if err := do(key); !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s by a key: %v", what, err)
		}
		if err := do(stranger); !desk.IsType(err, desk.NotFound) {
			t.Errorf("%s from another workspace: %v", what, err)
		}
	}
	for what, do := range map[string]func(app.Principal) error{
		"EditWorkspace": func(p app.Principal) error {
			_, err := w.EditWorkspace(ctx, p, app.WorkspaceEdit{Name: &name})
			return err
		},
		"AddMember": func(p app.Principal) error {
			_, err := w.AddMember(ctx, p, "Eve", "eve@example.com", "admin")
			return err
		},
		"CreateKey": func(p app.Principal) error {
			_, _, err := w.CreateKey(ctx, p, app.KeyEdit{Name: &name, Permissions: &all})
			return err
		},
		"AddChannel": func(p app.Principal) error {
			_, _, err := w.AddChannel(ctx, p, account(metaNumber, metaBusiness))
			return err
		},
		"Attempts": func(p app.Principal) error { _, err := w.Attempts(ctx, p, false, 1); return err },
	} {
		if err := do(key); !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s by a key: %v", what, err)
		}
	}
	if s := w.operator().Settings; s.Name == name || s.Member(w.ada.ID).Name == name || len(s.Members()) != 2 || len(s.Keys()) != 1 || len(s.Channels()) != 1 {
		t.Errorf("something was changed: %+v", s)
	}
	if _, err := w.OperatorOf(ctx, desk.ID{9}); !desk.IsType(err, desk.NotFound) {
		t.Errorf("OperatorOf an unknown id: %v", err)
	}
	if p, err := w.OperatorOf(ctx, w.ada.ID); err != nil || p.Workspace() != w.ws || p.Actor.Kind != desk.ByCLI {
		t.Errorf("OperatorOf a member: %+v, %v", p, err)
	}
}
