package app_test

import (
	"testing"

	"parley/app"
	"parley/app/feed"
	"parley/desk"
)

// TestAdministration: every change of a workspace checks the caller. No key may make one,
// whatever its permissions. Records of another workspace can't be reached by their ids.
func TestAdministration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.CreateWorkspace(t.Context(), "Other", "")
	must(t, err)
	stranger, err := w.Operator(t.Context(), other.ID)
	must(t, err)
	key, all := w.caller(), "all"
	ctx, name := t.Context(), "Renamed"
	for what, do := range map[string]func(desk.Principal) error{
		"EditMember": func(p desk.Principal) error {
			_, err := w.EditMember(ctx, p, w.ada.ID, app.MemberEdit{Name: &name})
			return err
		},
		"RemoveMember": func(p desk.Principal) error { return w.RemoveMember(ctx, p, w.ada.ID) },
		"EditKey": func(p desk.Principal) error {
			_, err := w.EditKey(ctx, p, w.keyID, app.KeyEdit{Name: &name})
			return err
		},
		"RevokeKey": func(p desk.Principal) error { _, err := w.RevokeKey(ctx, p, w.keyID); return err },
		"EditChannel": func(p desk.Principal) error {
			_, err := w.EditChannel(ctx, p, w.channel, app.ChannelEdit{})
			return err
		},
		"CheckChannel": func(p desk.Principal) error { _, err := w.CheckChannel(ctx, p, w.channel); return err },
		"SyncChannel":  func(p desk.Principal) error { _, _, err := w.SyncChannel(ctx, p, w.channel); return err },
		"TemplatesOf":  func(p desk.Principal) error { _, err := w.TemplatesOf(ctx, p, w.channel); return err },
		"PutTemplate":  func(p desk.Principal) error { _, err := w.PutTemplate(ctx, p, w.channel, nil); return err },
		"ReceiveSimulated": func(p desk.Principal) error {
			_, err := w.ReceiveSimulated(ctx, p, w.channel, "+905321110010", "", "Hi")
			return err
		},
	} {
		if err := do(key); !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s by a key: %v", what, err)
		}
		if err := do(stranger); !desk.IsType(err, desk.NotFound) {
			t.Errorf("%s from another workspace: %v", what, err)
		}
	}
	for what, do := range map[string]func(desk.Principal) error{
		"EditWorkspace": func(p desk.Principal) error {
			_, err := w.EditWorkspace(ctx, p, app.WorkspaceEdit{Name: &name})
			return err
		},
		"AddMember": func(p desk.Principal) error {
			_, err := w.AddMember(ctx, p, "Eve", "eve@example.com", "admin")
			return err
		},
		"CreateKey": func(p desk.Principal) error {
			_, _, err := w.CreateKey(ctx, p, app.KeyEdit{Name: &name, Permissions: &all})
			return err
		},
		"AddChannel": func(p desk.Principal) error {
			_, _, err := w.AddChannel(ctx, p, account(metaNumber, metaBusiness))
			return err
		},
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

// TestMembersAsPrincipals: a member may do what the role allows, by the settings that the
// transaction reads. A principal that was read before the member was removed or got another
// role stores nothing.
func TestMembersAsPrincipals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, admin, name := t.Context(), "admin", "Renamed"
	_, err := w.EditMember(ctx, w.operator(), w.grace.ID, app.MemberEdit{Role: &admin})
	must(t, err)
	agent, err := w.Access.Member(ctx, w.ws, w.ada.ID)
	must(t, err)
	boss, err := w.Access.Member(ctx, w.ws, w.grace.ID)
	must(t, err)
	if agent.Actor != (desk.Actor{Kind: desk.ByMember, ID: w.ada.ID}) || agent.Member.Role != desk.RoleAgent || boss.Member.Role != desk.RoleAdmin {
		t.Errorf("principals: %+v, %+v", agent.Actor, boss.Actor)
	}
	made := func(p desk.Principal, email string) (desk.ID, error) {
		op := &desk.Op{Kind: desk.OpUpsert}
		op.Write.Email = text(email)
		op.Write.Sent = []desk.Identity{{Kind: desk.KindEmail, Value: email}}
		o, err := w.Write(ctx, p, op)
		if err != nil {
			return desk.ID{}, err
		}
		return o.Contact.ID, nil
	}
	person, err := made(agent, "ann@example.com")
	must(t, err)
	page, err := w.Feed.Page(ctx, boss, feed.Query{Cursor: "oldest", Limit: 200})
	must(t, err)
	if last := page.Events[len(page.Events)-1]; last.Type != desk.ContactCreated || last.Actor != agent.Actor {
		t.Errorf("the last event: %+v", last)
	}
	remove := func(p desk.Principal) error {
		_, err := w.Write(ctx, p, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: person})
		return err
	}
	acts := map[string]func(desk.Principal) error{
		"delete": remove,
		"edit workspace": func(p desk.Principal) error {
			_, err := w.EditWorkspace(ctx, p, app.WorkspaceEdit{Name: &name})
			return err
		},
		"put snippet": func(p desk.Principal) error { _, _, err := w.PutSnippet(ctx, p, "hi", "Hi"); return err },
		"set policy": func(p desk.Principal) error {
			_, err := w.SetPolicy(ctx, p, desk.ID{}, desk.PolicyInput{})
			return err
		},
		"put attribute": func(p desk.Principal) error {
			_, _, err := w.PutAttribute(ctx, p, desk.AttributeInput{Key: "colour", Label: text("Colour"), Type: text("text")})
			return err
		},
	}
	for what, act := range acts {
		if err := act(agent); !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s by an agent: %v", what, err)
		}
	}
	for what, act := range acts {
		if err := act(boss); err != nil {
			t.Errorf("%s by an admin: %v", what, err)
		}
	}
	for _, p := range desk.Permissions {
		if boss.Allow(p) != nil {
			t.Errorf("an admin lacks %s", p)
		}
	}

	alan, err := w.AddMember(ctx, w.operator(), "Alan", "alan@example.com", "agent")
	must(t, err)
	for _, c := range []struct {
		by    desk.Principal
		of    desk.ID
		wrong desk.ErrorType
	}{
		{agent, w.ada.ID, ""},
		{agent, alan.ID, desk.Forbidden},
		{agent, desk.ID{9}, desk.Forbidden},
		{boss, alan.ID, ""},
		{boss, desk.ID{9}, desk.NotFound},
		{w.operator(), w.grace.ID, ""},
	} {
		if m, err := w.SetAvailable(ctx, c.by, c.of, false); c.wrong == "" && (err != nil || !m.Away || m.ID != c.of) || c.wrong != "" && !desk.IsType(err, c.wrong) {
			t.Errorf("availability of %s by %+v: %+v, %v", c.of, c.by.Actor, m, err)
		}
	}

	demoted := "agent"
	_, err = w.EditMember(ctx, w.operator(), w.grace.ID, app.MemberEdit{Role: &demoted})
	must(t, err)
	for what, act := range acts {
		if err := act(boss); !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s by an admin who is none any more: %v", what, err)
		}
	}
	must(t, w.RemoveMember(ctx, w.operator(), w.ada.ID))
	if _, err := w.SetAvailable(ctx, agent, w.ada.ID, true); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("availability of a removed member, by themselves: %v", err)
	}
	if _, err := made(agent, "bob@example.com"); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("a write by a removed member: %v", err)
	}
	if _, err := w.Access.Member(ctx, w.ws, w.ada.ID); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("Member of a removed one: %v", err)
	}
	if _, err := w.Access.Member(ctx, desk.ID{9}, w.grace.ID); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("Member of another workspace: %v", err)
	}
}
