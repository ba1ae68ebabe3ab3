package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

// edit stores a change and returns the settings after it.
func edit(t *testing.T, s store.Store, ws desk.ID, change desk.Change) *desk.Settings {
	t.Helper()
	must(t, s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return change, nil }))
	settings, err := s.Settings(t.Context(), ws)
	must(t, err)
	return settings
}

func workspaceSettings(t *testing.T, s store.Store) {
	list, err := s.Workspaces(t.Context())
	must(t, err)
	if len(list) != 0 {
		t.Fatalf("an empty store lists %d workspaces", len(list))
	}
	_, err = s.Settings(t.Context(), newID())
	wantType(t, err, desk.NotFound)
	wantType(t, s.UpdateSettings(t.Context(), newID(), func(*desk.Settings) (desk.Change, error) {
		return desk.Change{}, nil
	}), desk.NotFound)
	w := desk.Workspace{ID: newID(), Name: "Acme", Country: "TR"}
	must(t, s.CreateWorkspace(t.Context(), w))
	before, err := s.Settings(t.Context(), w.ID)
	must(t, err)
	w.Name, w.Country = "Acme & Söhne", ""
	after := edit(t, s, w.ID, desk.Change{Workspace: &w})
	if after.Workspace != w || after.Version <= before.Version {
		t.Errorf("settings = %+v (version %d after %d), want %+v", after.Workspace, after.Version, before.Version, w)
	}
	list, err = s.Workspaces(t.Context())
	must(t, err)
	if len(list) != 1 || list[0] != w {
		t.Errorf("workspaces = %+v", list)
	}
}

func attributeSettings(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	want := desk.Attribute{Key: "colour", Label: "Colour \"x\"", Description: "d", Type: "multiselect",
		Options: []string{"r'ed", "gr\"een", "blü"}, Position: 7, Archived: true}
	got := edit(t, s, ws, desk.Change{Attribute: &want}).Attributes["colour"]
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("attribute = %+v, want %+v", *got, want)
	}
	want.Label, want.Archived, want.Options = "Colour", false, []string{"red"}
	settings := edit(t, s, ws, desk.Change{Attribute: &want})
	if !reflect.DeepEqual(*settings.Attributes["colour"], want) || len(settings.Attributes) != 3 {
		t.Errorf("attributes = %+v", settings.Attributes)
	}
}

func memberSettings(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	got, err := s.WorkspaceOf(t.Context(), ada.ID)
	must(t, err)
	if got != ws {
		t.Error("a member leads to another workspace")
	}
	_, err = s.WorkspaceOf(t.Context(), newID())
	wantType(t, err, desk.NotFound)
	ada.Name, ada.Email, ada.Role, ada.Away = "Ada L.", "ada.l@example.com", desk.RoleAgent, true
	settings := edit(t, s, ws, desk.Change{Member: ada})
	if m := settings.Member(ada.ID); m == nil || *m != *ada {
		t.Errorf("member = %+v, want %+v", m, ada)
	}
	// A member who owns contacts can't be removed; a member without contacts can.
	op := upsert("a@example.com", "")
	op.Write.Owner = refer(ada.ID.String())
	c := put(t, s, ws, op)
	gone := func() error {
		return s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{RemoveMember: ada}, nil })
	}
	if err := gone(); !errors.Is(err, store.ErrOwns) {
		t.Errorf("error = %v, want ErrOwns", err)
	}
	put(t, s, ws, patch(c.ID, desk.ContactWrite{Owner: nobody()}))
	must(t, gone())
	settings, err = s.Settings(t.Context(), ws)
	must(t, err)
	if settings.Member(ada.ID) != nil {
		t.Error("a removed member is still there")
	}
	_, err = s.WorkspaceOf(t.Context(), ada.ID)
	wantType(t, err, desk.NotFound)
	settings, err = s.Settings(t.Context(), other)
	must(t, err)
	if len(settings.Members()) != 1 {
		t.Error("removing a member touched another workspace")
	}
}

func memberHolds(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	c := newConversation(newID(), newID())
	put := func(member desk.ID, status desk.ConversationStatus) {
		t.Helper()
		c.AssignedMember, c.AssignedVia, c.Status = member, desk.ViaMember, status
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(c) })
	}
	gone := func() error {
		return s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{RemoveMember: ada}, nil })
	}
	put(ada.ID, desk.StatusOpen)
	held := func(after *desk.ConversationPlace) (list []*desk.Conversation) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) (err error) {
			list, err = tx.HeldConversations(ada.ID, after, 10)
			return err
		})
		return list
	}
	place := c.Place()
	if list := held(nil); len(list) != 1 || list[0].ID != c.ID || len(held(&place)) != 0 {
		t.Errorf("held: %v", list)
	}
	// Several conversations are stored in one statement: new ones and changed ones.
	second, third := newConversation(newID(), newID()), newConversation(newID(), newID())
	changed := *c
	changed.Preview = "many"
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(second, &changed, third) })
	for _, want := range []*desk.Conversation{second, &changed, third} {
		got, err := s.Conversation(t.Context(), ws, want.ID)
		must(t, err)
		equal(t, "conversation", got, want)
	}
	if err := gone(); !errors.Is(err, store.ErrOwns) {
		t.Errorf("error = %v, want ErrOwns", err)
	}
	// Closed conversations, and conversations of other members, do not count.
	put(ada.ID, desk.StatusClosed)
	other := newConversation(newID(), newID())
	other.AssignedMember, other.AssignedVia = newID(), desk.ViaOwner
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(other) })
	must(t, gone())
}

func keySettings(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	_, err := s.Authenticate(t.Context(), "0123456789")
	wantType(t, err, desk.NotFound)
	k := desk.APIKey{ID: newID(), PublicID: "0123456789", Name: "crm", Permissions: []desk.Permission{desk.ContactsRead, desk.MembersRead},
		SecretHash: [32]byte{1, 2, 255}, CreatedAt: now(), ExpiresAt: now()}
	edit(t, s, ws, desk.Change{Key: &k})
	check := func() {
		t.Helper()
		settings, err := s.Authenticate(t.Context(), k.PublicID)
		must(t, err)
		got := settings.KeyByPublicID(k.PublicID)
		if settings.ID != ws || got == nil || !reflect.DeepEqual(*got, k) {
			t.Errorf("key = %+v, want %+v", got, k)
		}
	}
	check()
	k.RevokedAt, k.Name, k.Permissions = now(), "old", []desk.Permission{desk.ContactsWrite}
	edit(t, s, ws, desk.Change{Key: &k})
	check()
	got, err := s.WorkspaceOf(t.Context(), k.ID)
	must(t, err)
	if got != ws {
		t.Error("a key leads to another workspace")
	}
}

func keyUses(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	var keys []desk.ID
	for n := range 3 {
		k := desk.APIKey{ID: newID(), PublicID: fmt.Sprintf("%010d", n), Name: "k", Permissions: []desk.Permission{desk.ContactsRead}, CreatedAt: now()}
		edit(t, s, ws, desk.Change{Key: &k})
		keys = append(keys, k.ID)
	}
	before, err := s.Settings(t.Context(), ws)
	must(t, err)
	check := func(ws desk.ID, want map[desk.ID]desk.Time) {
		t.Helper()
		got, err := s.KeyUses(t.Context(), ws)
		must(t, err)
		if !maps.Equal(got, want) {
			t.Errorf("uses = %v, want %v", got, want)
		}
	}
	check(ws, nil)
	put := func(ws desk.ID, uses map[desk.ID]desk.Time) {
		t.Helper()
		must(t, s.PutKeyUses(t.Context(), ws, uses))
	}
	put(ws, map[desk.ID]desk.Time{keys[0]: 1000, keys[1]: 2000, newID(): 3000})
	put(other, map[desk.ID]desk.Time{keys[0]: 9000})
	check(ws, map[desk.ID]desk.Time{keys[0]: 1000, keys[1]: 2000})
	put(ws, map[desk.ID]desk.Time{keys[0]: 999, keys[1]: 2001})
	check(ws, map[desk.ID]desk.Time{keys[0]: 1000, keys[1]: 2001})
	check(other, nil)
	after, err := s.Settings(t.Context(), ws)
	must(t, err)
	if after.Version != before.Version {
		t.Error("a use of a key is a new version of the settings")
	}
	must(t, s.DeleteWorkspace(t.Context(), ws, func(string) error { return nil }))
	put(ws, map[desk.ID]desk.Time{keys[2]: 5000})
	check(ws, nil)
}

func settingsRefusal(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	before, err := s.Settings(t.Context(), ws)
	must(t, err)
	refusal := desk.Invalidf("no")
	err = s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) {
		return desk.Change{Workspace: &desk.Workspace{ID: ws, Name: "X"}}, refusal
	})
	if !errors.Is(err, refusal) {
		t.Errorf("error = %v, want the refusal itself", err)
	}
	must(t, s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{}, nil }))
	after, err := s.Settings(t.Context(), ws)
	must(t, err)
	if after.Version != before.Version || after.Name != before.Name {
		t.Errorf("settings = %+v, want them as before", after.Workspace)
	}
}

// settingsSeen: a flush that begins after an edit was acknowledged uses the new
// settings.
func settingsSeen(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	for range 20 {
		for _, archived := range []bool{true, false} {
			edit(t, s, ws, desk.Change{Attribute: &desk.Attribute{Key: "score", Label: "Score", Type: "number", Archived: archived}})
			op := upsert("a@example.com", "")
			op.Write.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{
				{Key: "score", Value: desk.Value{Kind: desk.NumberValue, Text: "1"}},
			}}
			_, errs, err := apply(t.Context(), s, ws, op)
			must(t, err)
			if archived {
				wantType(t, errs[0], desk.InvalidAttributes)
			} else {
				must(t, errs[0])
			}
		}
	}
}

func newChannel() *desk.Channel {
	return &desk.Channel{ID: newID(), Kind: desk.SandboxChannel, ExternalID: "sb", Enabled: true, CreatedAt: now(), Library: 1}
}

func channelSettings(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	want := newChannel()
	settings := edit(t, s, ws, desk.Change{Channel: want})
	equal(t, "channel", settings.Channel(want.ID), want)
	version := settings.Version
	want.Name = "Laden in Köln"
	want.Enabled, want.Bindings = false, map[desk.BindingPlace]desk.Binding{
		{Template: "a'b", Language: "en_US", Address: "header.1"}: "customer_first_name",
		{Template: "a'b", Language: "de", Address: "\"x\""}:       "free",
	}
	change := *want
	change.Library = 7 // a caller can't set it
	settings = edit(t, s, ws, desk.Change{Channel: &change})
	equal(t, "channel", settings.Channel(want.ID), want)
	if settings.Version <= version {
		t.Errorf("version %d after %d", settings.Version, version)
	}
	got, err := s.WorkspaceOf(t.Context(), want.ID)
	must(t, err)
	equal(t, "workspace of the channel", got, ws)

	// Only one channel of a workspace can have an external id.
	second := newChannel()
	if err := s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{Channel: second}, nil }); err == nil {
		t.Error("two channels have one external id")
	}
	_, err = s.WorkspaceOf(t.Context(), second.ID)
	wantType(t, err, desk.NotFound)
	settings = edit(t, s, other, desk.Change{Channel: second})
	equal(t, "channels of the other workspace", settings.Channels(), []*desk.Channel{second})
}

func channelAccounts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	full := desk.Account{
		BusinessID: "1020", BaseURL: "https://example.com/\"x\"?ü", BaseOf: desk.SetByTenant, Version: "v26.0", PerSecond: 80,
		Sealed: []byte("\x00\xff sealed"),
	}
	want := newChannel()
	for _, account := range []desk.Account{{}, full, {Sealed: []byte{}}, {PerSecond: 1}, {}, full} {
		want.Account = account
		want.Status = desk.AccountStatus{Blocked: "no \x00 'payment'", Replies: true, Code: 190, Trace: "x", Token: true, Until: 5, Since: 4, ByCall: true}
		if account.PerSecond == 1 {
			want.Status = desk.AccountStatus{}
		}
		equal(t, "channel", edit(t, s, ws, desk.Change{Channel: want}).Channel(want.ID), want)
	}
	other := newChannel()
	other.ExternalID = "sb2"
	settings := edit(t, s, ws, desk.Change{Channel: other})
	equal(t, "channel beside another", settings.Channel(want.ID), want)
	equal(t, "account of the other", settings.Channel(other.ID).Account, desk.Account{})
	equal(t, "status of the other", settings.Channel(other.ID).Status, desk.AccountStatus{})
}

func channelSigns(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	channel := newID()
	signs := func(ws, channel desk.ID) (signs desk.ChannelSigns, now desk.Time) {
		t.Helper()
		signs, now, err := s.ChannelSigns(t.Context(), ws, channel)
		must(t, err)
		return signs, now
	}
	none, before := signs(ws, channel)
	equal(t, "signs at first", none, desk.ChannelSigns{})
	must(t, s.NoteChannel(t.Context(), ws, channel, store.SignAsked))
	first, now := signs(ws, channel)
	if first.Synced != 0 || first.Asked < before || first.Asked > now {
		t.Errorf("asked between %d and %d: %+v", before, now, first)
	}
	must(t, s.NoteChannel(t.Context(), ws, channel, store.SignSynced))
	must(t, s.NoteChannel(t.Context(), ws, channel, store.SignSynced))
	second, now := signs(ws, channel)
	if second.Asked != first.Asked || second.Synced < first.Asked || second.Synced > now {
		t.Errorf("synced after %+v, by %d: %+v", first, now, second)
	}
	for _, at := range [][2]desk.ID{{other, channel}, {ws, newID()}} {
		others, _ := signs(at[0], at[1])
		equal(t, "signs of another", others, desk.ChannelSigns{})
	}
}

func channelsOfKind(t *testing.T, s store.Store) {
	list := func(kind desk.ChannelKind, want ...store.ChannelRef) {
		t.Helper()
		got, err := s.ChannelsOfKind(t.Context(), kind)
		must(t, err)
		for _, refs := range [][]store.ChannelRef{got, want} {
			slices.SortFunc(refs, func(a, b store.ChannelRef) int {
				return cmp.Or(slices.Compare(a.Workspace[:], b.Workspace[:]), slices.Compare(a.ID[:], b.ID[:]))
			})
		}
		equal(t, "channels of the kind "+string(kind), got, want)
	}
	list(desk.WhatsAppChannel)
	var whatsApp, sandbox []store.ChannelRef
	for range 2 {
		ws, _ := newWorkspace(t, s)
		for n := range 4 {
			c := newChannel()
			c.ExternalID, c.Enabled = fmt.Sprint(n), n < 2
			refs := &sandbox
			if n%2 == 0 {
				c.Kind, refs = desk.WhatsAppChannel, &whatsApp
			}
			edit(t, s, ws, desk.Change{Channel: c})
			*refs = append(*refs, store.ChannelRef{Workspace: ws, ID: c.ID})
		}
	}
	list(desk.WhatsAppChannel, whatsApp...)
	list(desk.SandboxChannel, sandbox...)
	list("other")
}

func templateSettings(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	one, two := newChannel(), newChannel()
	two.ExternalID = "sb2"
	edit(t, s, ws, desk.Change{Channel: one})
	before := edit(t, s, ws, desk.Change{Channel: two})
	newest := map[desk.ID]int64{}
	library := func(channel desk.ID, changed bool, want ...desk.TemplateSource) {
		t.Helper()
		version, list, err := s.Templates(t.Context(), ws, channel)
		must(t, err)
		slices.SortFunc(list, func(a, b desk.TemplateSource) int { return strings.Compare(a.Name+a.Language, b.Name+b.Language) })
		equal(t, "library", list, want)
		if known := newest[channel]; changed && version <= known || !changed && version != known {
			t.Errorf("version %d after %d, changed: %v", version, known, changed)
		}
		newest[channel] = version
	}
	library(one.ID, true)
	library(two.ID, true)
	a, b, c := desk.TemplateSource{Name: "a", Language: "de", Source: `{"x": "ü'"}`}, desk.TemplateSource{Name: "a", Language: "en", Source: "{}"},
		desk.TemplateSource{Name: "b", Language: "de", Source: strings.Repeat("x", 20_000)}
	replace := func(channel desk.ID, list ...desk.TemplateSource) *desk.Settings {
		t.Helper()
		return edit(t, s, ws, desk.Change{Templates: &desk.ChannelLibrary{Channel: channel, Templates: list}})
	}
	after := replace(one.ID, a, b)
	library(one.ID, true, a, b)
	library(two.ID, false)
	if after.Version <= before.Version || after.Channel(one.ID).Library != newest[one.ID] || after.Channel(two.ID).Library != newest[two.ID] {
		t.Errorf("version %d after %d, libraries %d and %d", after.Version, before.Version, after.Channel(one.ID).Library, after.Channel(two.ID).Library)
	}
	replace(two.ID, b)
	library(two.ID, true, b)
	first := b
	b.Source = "[]"
	replace(one.ID, c, b)
	library(one.ID, true, b, c)
	replace(one.ID)
	library(one.ID, true)
	one.Enabled = false
	edit(t, s, ws, desk.Change{Channel: one}) // as it was read before: the version in it is not stored
	library(one.ID, false)
	library(two.ID, false, first)
	_, _, err := s.Templates(t.Context(), ws, newID())
	wantType(t, err, desk.NotFound)
	other, _ := newWorkspace(t, s)
	_, _, err = s.Templates(t.Context(), other, two.ID)
	wantType(t, err, desk.NotFound)
}

// simulated has the methods of a store that the sandbox needs.
type simulated interface {
	SandboxTemplates(ctx context.Context, ws, channel desk.ID) ([]desk.TemplateSource, error)
	PutSandboxTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error
}

func sandboxTemplates(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	channel := newID()
	put := func(ws, channel desk.ID, language, source string) {
		t.Helper()
		must(t, s.(simulated).PutSandboxTemplate(t.Context(), ws, channel, desk.TemplateSource{Name: "a", Language: language, Source: source}))
	}
	put(ws, channel, "de", "1")
	put(ws, channel, "en", "2")
	put(ws, channel, "de", "3")
	put(ws, newID(), "de", "4")
	put(other, channel, "de", "5")
	list, err := s.(simulated).SandboxTemplates(t.Context(), ws, channel)
	must(t, err)
	slices.SortFunc(list, func(a, b desk.TemplateSource) int { return strings.Compare(a.Language, b.Language) })
	equal(t, "sandbox library", list, []desk.TemplateSource{{Name: "a", Language: "de", Source: "3"}, {Name: "a", Language: "en", Source: "2"}})
}
