package storetest

import (
	"errors"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// workspaceDeletion: a deleted workspace can't be found any more, at once. Its records
// are deleted in steps. Other workspaces do not change.
func workspaceDeletion(t *testing.T, s store.Store) {
	ctx := t.Context()
	type tenant struct {
		ws, contact, channel desk.ID
		key                  string
		conversation         *desk.Conversation
	}
	var tenants [2]tenant
	for n := range tenants {
		ws, member := newWorkspace(t, s)
		at := tenant{ws: ws, channel: newID(), key: "key" + newID().String()}
		for _, change := range []desk.Change{
			{Key: &desk.APIKey{ID: newID(), PublicID: at.key, Name: "k", Permissions: desk.Permissions}},
			{Channel: &desk.Channel{ID: at.channel, Kind: desk.SandboxChannel, ExternalID: at.key, Enabled: true}},
			webhookChange(newWebhook("https://example.com")),
			{Templates: &desk.ChannelLibrary{Channel: at.channel, Templates: []desk.TemplateSource{{Name: "a", Language: "en", Source: "{}"}}}},
		} {
			must(t, s.UpdateSettings(ctx, ws, func(*desk.Settings) (desk.Change, error) { return change, nil }))
		}
		op := upsert("a@example.com", "905321112233")
		op.Write.Owner = refer(member.ID.String())
		at.contact = put(t, s, ws, op).ID
		for range 5 {
			put(t, s, ws, upsert(newID().String()+"@example.com", ""))
		}
		at.conversation = newConversation(at.channel, at.contact)
		item := desk.InboundItem{Channel: at.channel, ID: newID(), Due: 5, ReceivedAt: 5, Body: []byte("{}")}
		commit(t, s, ws, func(tx store.Tx) error {
			m := newMessage(at.conversation)
			m.ExternalID = "x"
			attempt := desk.Attempt{ID: newID(), Key: "k", Phase: desk.InDoubt, CreatedAt: 1}
			return errors.Join(tx.PutConversation(at.conversation), tx.PutMessage(m), tx.PutNote(&desk.Note{ID: newID(), ConversationID: at.conversation.ID, Text: "x"}), tx.PutAttempt(&attempt), tx.TakeKey("k", attempt.ID),
				tx.SetOptOut(store.NumberHash{1}, store.OptOut{Since: 1, At: 1}), tx.KeepStatus(at.channel, desk.StatusUpdate{ExternalID: "y", Delivery: desk.Sent, At: 1}),
				tx.PutCallback(item), tx.PutInbound(item), tx.PutCallbackPeople(item, []string{"905321112233"}))
		})
		must(t, s.(simulated).PutSandboxTemplate(ctx, ws, at.channel, desk.TemplateSource{Name: "a", Language: "en", Source: "{}"}))
		if _, err := s.Lease(ctx, ws, "task", 1000); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Pace(ctx, ws, []desk.Bucket{{Name: "b", Burst: 1}}, 0); err != nil {
			t.Fatal(err)
		}
		tenants[n] = at
	}
	gone, neighbour := tenants[0], tenants[1]
	refusal := desk.Invalidf("another name")
	err := s.DeleteWorkspace(ctx, gone.ws, func(name string) error {
		equal(t, "name", name, "Acme")
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("a refused deletion: %v", err)
	}
	if n, err := s.EraseWorkspace(ctx, gone.ws, 100); n != 0 || err != nil {
		t.Fatalf("of a workspace that is not marked, %d records were deleted, %v", n, err)
	}
	if _, err := s.Authenticate(ctx, gone.key); err != nil {
		t.Fatalf("after a refused deletion: %v", err)
	}
	yes := func(string) error { return nil }
	must(t, s.DeleteWorkspace(ctx, gone.ws, yes))
	unknown := func() {
		t.Helper()
		_, err1 := s.Authenticate(ctx, gone.key)
		_, err2 := s.Settings(ctx, gone.ws)
		_, err3 := s.WorkspaceOf(ctx, gone.channel)
		_, _, err4 := apply(ctx, s, gone.ws, upsert("b@example.com", ""))
		for n, err := range []error{
			err1, err2, err3, err4, s.InTx(ctx, gone.ws, func(store.Tx) error { return nil }),
			s.UpdateSettings(ctx, gone.ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{}, nil }),
		} {
			if !desk.IsType(err, desk.NotFound) {
				t.Errorf("a deleted workspace is found by %d: %v", n, err)
			}
		}
		list, err := s.Workspaces(ctx)
		if err != nil || len(list) != 1 || list[0].ID != neighbour.ws {
			t.Errorf("workspaces = %v, %v", list, err)
		}
		due, err := s.InboundDue(ctx, time.Hour)
		if _, there := due[gone.ws]; there || err != nil {
			t.Errorf("inbound items of a deleted workspace are due: %v", err)
		}
		if states := webhookStates(t, s, gone.ws); len(states) != 0 {
			t.Errorf("webhooks of a deleted workspace: %v", states)
		}
		channels, err := s.ChannelsOfKind(ctx, desk.SandboxChannel)
		if err != nil || len(channels) != 1 {
			t.Errorf("channels = %v, %v", channels, err)
		}
	}
	unknown()
	deleting, err := s.Deleting(ctx)
	if err != nil || len(deleting) != 1 || deleting[0].ID != gone.ws || deleting[0].Name == "" {
		t.Errorf("being deleted = %v, %v", deleting, err)
	}
	must(t, s.DeleteWorkspace(ctx, gone.ws, yes)) // again, as after an interruption
	for n, rounds := 1, 0; n > 0; rounds++ {
		n, err = s.EraseWorkspace(ctx, gone.ws, 2)
		must(t, err)
		if n > 2 || rounds > 100 {
			t.Fatalf("%d records in one of %d rounds", n, rounds)
		}
	}
	unknown()
	if deleting, err = s.Deleting(ctx); err != nil || len(deleting) != 0 {
		t.Errorf("being deleted = %v, %v, after the end", deleting, err)
	}
	wantType(t, s.DeleteWorkspace(ctx, gone.ws, yes), desk.NotFound)
	missingContact(s.Contact(ctx, gone.ws, gone.contact))(t)
	missing(s.Conversation(ctx, gone.ws, gone.conversation.ID))(t)
	if _, err := s.Authenticate(ctx, neighbour.key); err != nil {
		t.Errorf("the neighbour's key: %v", err)
	}
	if list := all(t, s, neighbour.ws); len(list) != 6 {
		t.Errorf("the neighbour has %d contacts", len(list))
	}
	if messages, _, err := s.Messages(ctx, neighbour.ws, neighbour.conversation.ID, nil, 10); err != nil || len(messages) != 1 {
		t.Errorf("the neighbour has %d messages, %v", len(messages), err)
	}
}
