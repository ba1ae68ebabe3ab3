package desk_test

import (
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

func TestParseEventFilter(t *testing.T) {
	t.Parallel()
	may := func(list ...desk.Permission) func(desk.Permission) error {
		return func(p desk.Permission) error {
			if slices.Contains(list, p) {
				return nil
			}
			return desk.Errorf(desk.Forbidden, "lacks %s", p)
		}
	}
	everything := may(desk.Permissions...)
	for _, c := range []struct {
		list  []string
		allow func(desk.Permission) error
		want  []desk.EventType
		err   string // of the list, or lacks X
	}{
		{[]string{"*"}, everything, desk.EventTypes, ""},
		{[]string{"member.*"}, everything, []desk.EventType{desk.MemberCreated, desk.MemberUpdated, desk.MemberDeleted}, ""},
		{[]string{"member.deleted", "key.created", "member.*"}, everything, []desk.EventType{desk.MemberCreated, desk.MemberUpdated, desk.MemberDeleted, desk.KeyCreated}, ""},
		{[]string{"*"}, may(), []desk.EventType{desk.KeyCreated, desk.KeyUpdated, desk.WorkspaceUpdated}, ""},
		{[]string{"*", "attribute.created"}, may(desk.AttributesRead), []desk.EventType{desk.AttributeCreated, desk.AttributeUpdated, desk.KeyCreated, desk.KeyUpdated, desk.WorkspaceUpdated}, ""},
		{[]string{"*", "attribute.created"}, may(), nil, "lacks attributes:read"},
		{[]string{"message.*"}, may(desk.ContactsRead), nil, "lacks conversations:read"},
		{[]string{"key.*", "workspace.updated"}, may(), []desk.EventType{desk.KeyCreated, desk.KeyUpdated, desk.WorkspaceUpdated}, ""},
		{nil, everything, nil, "name 1 to 50"},
		{[]string{""}, everything, nil, "no type"},
		{[]string{"contact"}, everything, nil, "no type"},
		{[]string{"contact.*", "contact.opened"}, everything, nil, "contact.opened"},
		{[]string{" contact.*"}, everything, nil, "no type"},
		{[]string{"*.created"}, everything, nil, "no type"},
		{slices.Repeat([]string{"*"}, 50), everything, desk.EventTypes, ""},
		{slices.Repeat([]string{"*"}, 51), everything, nil, "name 1 to 50"},
	} {
		f, err := desk.ParseEventFilter(c.list)
		var got []desk.EventType
		if err == nil {
			got, err = f.For(c.allow)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v; want %v, %q", c.list, got, err, c.want, c.err)
		}
	}
	var zero desk.EventFilter
	if got, err := zero.For(everything); err != nil || !slices.Equal(got, desk.EventTypes) {
		t.Errorf("the zero filter: %v %v", got, err)
	}
}

// TestEventNeeds: each kind of event needs a permission, or shows no data of a person.
func TestEventNeeds(t *testing.T) {
	t.Parallel()
	free := map[string]bool{"key": true, "workspace": true}
	for i, e := range desk.EventTypes {
		if (e.Needs() == "") != free[e.Kind()] {
			t.Errorf("%s needs %q", e, e.Needs())
		}
		if slices.Contains(desk.EventTypes[:i], e) {
			t.Errorf("%s is there twice", e)
		}
	}
}

// TestTag: another event that gets the same number after a restore has another tag.
func TestTag(t *testing.T) {
	t.Parallel()
	base := desk.Event{Subject: id(1), At: 1_800_000_000_000}
	other, later := base, base
	other.Subject, later.At = id(2), base.At+1
	for name, e := range map[string]desk.Event{"another subject": other, "another time": later} {
		if e.Tag() == base.Tag() {
			t.Errorf("%s: the same tag", name)
		}
	}
	negative := desk.Event{Subject: desk.ID{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}, At: -1}
	for _, e := range []desk.Event{base, other, later, negative, {}} {
		if tag := e.Tag(); tag < 0 || tag >= 1<<48 {
			t.Errorf("tag %x", tag)
		}
	}
}

// TestExpired: events expire oldest first. An event with the time of a wrong clock neither
// keeps other events for ever nor makes newer events expire.
func TestExpired(t *testing.T) {
	t.Parallel()
	x := desk.Expired{Before: 100, Now: 200}
	for _, c := range []struct {
		at   []desk.Time
		want int
	}{
		{nil, 0},
		{[]desk.Time{100}, 0},
		{[]desk.Time{99}, 1},
		{[]desk.Time{1, 50, 99, 100, 150}, 3},
		{[]desk.Time{150, 1}, 0},      // the second time is from a slow clock; the event before it is young
		{[]desk.Time{1, 150, 2}, 1},   // the same, further back in the feed
		{[]desk.Time{900, 1, 2}, 3},   // the first time is from a fast clock
		{[]desk.Time{1, 900, 2}, 3},   //
		{[]desk.Time{1, 900}, 1},      // the first event expires with the one after it
		{[]desk.Time{1, 900, 150}, 1}, //
		{[]desk.Time{900, 900, 200}, 0},
	} {
		var list []desk.FeedEvent
		for _, at := range c.at {
			list = append(list, desk.FeedEvent{Event: desk.Event{At: at}})
		}
		if got := x.Count(list); got != c.want {
			t.Errorf("%v: %d, want %d", c.at, got, c.want)
		}
	}
}

// TestChangeAgainst: each part of a change that differs from what is stored has an
// event with the names of the fields that differ; the others have none, and are not
// stored.
func TestChangeAgainst(t *testing.T) {
	t.Parallel()
	ws := desk.Workspace{ID: id(1), Name: "Acme", Country: "US"}
	attribute := desk.Attribute{Key: "plan", Label: "Plan", Type: "select", Options: []string{"a"}, Position: 1}
	member := desk.Member{ID: id(2), Name: "Ada", Email: "ada@example.com", Role: "agent"}
	key := desk.APIKey{ID: id(3), PublicID: "0123456789", Name: "crm", Permissions: []desk.Permission{desk.ContactsRead}}
	channel := desk.Channel{ID: id(4), Kind: desk.WhatsAppChannel, ExternalID: "1", Enabled: true, Account: desk.Account{BusinessID: "b", Sealed: []byte("s")}}
	stored := desk.NewSettings(ws, 1, []desk.Attribute{attribute}, []desk.Member{member}, []desk.APIKey{key}, []desk.Channel{channel})
	// edit returns the stored record after a change.
	type part = func(*desk.Change)
	workspace := func(edit func(*desk.Workspace)) part {
		return func(c *desk.Change) { v := ws; edit(&v); c.Workspace = &v }
	}
	attributes := func(edit func(*desk.Attribute)) part {
		return func(c *desk.Change) { v := attribute; edit(&v); c.Attribute = &v }
	}
	members := func(edit func(*desk.Member)) part {
		return func(c *desk.Change) { v := member; edit(&v); c.Member = &v }
	}
	keys := func(edit func(*desk.APIKey)) part {
		return func(c *desk.Change) { v := key; edit(&v); c.Key = &v }
	}
	channels := func(edit func(*desk.Channel)) part {
		return func(c *desk.Change) { v := channel; edit(&v); c.Channel = &v }
	}
	actor := desk.Actor{Kind: desk.ByKey, ID: id(9)}
	for name, c := range map[string]struct {
		change  part
		want    desk.EventType // "": none
		subject string         // the id, or the key
		changed string
	}{
		"workspace_same":     {workspace(func(*desk.Workspace) {}), "", "", ""},
		"workspace_all":      {workspace(func(w *desk.Workspace) { w.Name, w.Country, w.FixedExternalIDs = "B", "", true }), desk.WorkspaceUpdated, id(1).String(), "country external_ids name"},
		"attribute_same":     {attributes(func(*desk.Attribute) {}), "", "", ""},
		"attribute_new":      {attributes(func(a *desk.Attribute) { a.Key = "size" }), desk.AttributeCreated, "size", ""},
		"attribute_all":      {attributes(func(a *desk.Attribute) { a.Label, a.Description, a.Options, a.Position = "P", "d", []string{"b"}, 2 }), desk.AttributeUpdated, "plan", "description label options position"},
		"attribute_archived": {attributes(func(a *desk.Attribute) { a.Archived = true }), desk.AttributeUpdated, "plan", "archived"},
		"member_same":        {members(func(*desk.Member) {}), "", "", ""},
		"member_new":         {members(func(m *desk.Member) { m.ID = id(5) }), desk.MemberCreated, id(5).String(), ""},
		"member_all":         {members(func(m *desk.Member) { m.Name, m.Email, m.Role = "B", "b@example.com", "admin" }), desk.MemberUpdated, id(2).String(), "email name role"},
		"member_removed":     {func(c *desk.Change) { c.RemoveMember = &member }, desk.MemberDeleted, id(2).String(), ""},
		"key_same":           {keys(func(*desk.APIKey) {}), "", "", ""},
		"key_new":            {keys(func(k *desk.APIKey) { k.ID = id(6) }), desk.KeyCreated, id(6).String(), ""},
		"key_all":            {keys(func(k *desk.APIKey) { k.Name, k.Permissions, k.ExpiresAt, k.RevokedAt = "b", nil, 5, 6 }), desk.KeyUpdated, id(3).String(), "expires_at name permissions revoked_at"},
		"channel_same":       {channels(func(*desk.Channel) {}), "", "", ""},
		"channel_new":        {channels(func(v *desk.Channel) { v.ID = id(7) }), desk.ChannelCreated, id(7).String(), ""},
		"channel_enabled":    {channels(func(v *desk.Channel) { v.Enabled = false }), desk.ChannelUpdated, id(4).String(), "enabled"},
		"channel_bound": {channels(func(v *desk.Channel) {
			v.Bindings = map[desk.BindingPlace]desk.Binding{{Template: "t"}: desk.Free}
		}), desk.ChannelUpdated, id(4).String(), "bindings"},
		"channel_account":      {channels(func(v *desk.Channel) { v.Account.Version = "v2"; v.Account.Sealed = []byte("t") }), desk.ChannelUpdated, id(4).String(), "account secrets"},
		"channel_blocked":      {channels(func(v *desk.Channel) { v.Status.Blocked = "banned" }), desk.ChannelUpdated, id(4).String(), "account"},
		"channel_hidden_parts": {channels(func(v *desk.Channel) { v.Status.Since = 5 }), "", "", ""},
	} {
		var change desk.Change
		c.change(&change)
		got := change.Against(stored, actor, 77)
		if c.want == "" {
			if len(got.Events) != 0 || got.IsEmpty() != (name != "channel_hidden_parts") {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got.Events) != 1 || got.IsEmpty() {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		e := got.Events[0]
		subject := e.Key
		if subject == "" {
			subject = e.Subject.String()
		}
		if e.Type != c.want || subject != c.subject || strings.Join(e.Changed, " ") != c.changed || e.Actor != actor || e.At != 77 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestChangeAgainst_templates: the events of a synchronisation.
func TestChangeAgainst_templates(t *testing.T) {
	t.Parallel()
	source := func(name, status, body string) desk.TemplateSource {
		text := `{"name":"` + name + `","language":"en","status":"` + status + `","category":"UTILITY","components":[{"type":"BODY","text":"` + body + `"}]}`
		parsed, err := desk.ParseTemplate([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return desk.TemplateSource{Name: parsed.Name, Language: parsed.Language, Source: text}
	}
	library := &desk.ChannelLibrary{
		Channel:   id(4),
		Replaced:  []desk.TemplateSource{source("edited", "APPROVED", "a"), source("gone", "APPROVED", "a"), source("same", "APPROVED", "a"), source("back", "DELETED", "a"), source("spaced", "APPROVED", "a")},
		Templates: []desk.TemplateSource{source("edited", "PENDING", "b {{1}}"), source("gone", "DELETED", "a"), source("same", "APPROVED", "a"), source("back", "APPROVED", "a"), source("new", "APPROVED", "a")},
	}
	spaced := library.Replaced[4]
	spaced.Source += " "
	library.Templates = append(library.Templates, spaced)
	change := desk.Change{Templates: library}.Against(desk.NewSettings(desk.Workspace{ID: id(1)}, 1, nil, nil, nil, nil), desk.Actor{Kind: desk.ByProvider, ID: id(4)}, 1)
	var got []string
	for _, e := range change.Events {
		_, name, language := e.TemplateKey()
		got = append(got, string(e.Type)+" "+name+"/"+language+" "+strings.Join(e.Changed, ","))
	}
	want := []string{
		"template.updated edited/en body,sendable,status,variable_hints,variables", "template.deleted gone/en ", "template.created back/en ", "template.created new/en ",
	}
	if !slices.Equal(got, want) || change.Templates == nil {
		t.Errorf("%q\nwant %q", got, want)
	}
	library.Templates = library.Replaced
	if same := (desk.Change{Templates: library}).Against(desk.NewSettings(desk.Workspace{ID: id(1)}, 1, nil, nil, nil, nil), desk.Actor{}, 1); !same.IsEmpty() || same.Events != nil {
		t.Errorf("%+v", same)
	}
}

// TestEventFilter_hints: the error suggests the type that was probably meant.
func TestEventFilter_hints(t *testing.T) {
	for word, want := range map[string]string{
		"message.recieved": "did you mean message.received?",
		"mesage.received":  "did you mean message.received?",
		"Contact.created":  "did you mean contact.created?",
		"member.nothing":   "use member.created, member.updated, member.deleted, or member.* for all of them",
		"nothing":          "use *, a kind such as contact.*, or a type such as contact.created",
	} {
		if _, err := desk.ParseEventFilter([]string{word}); err == nil || !strings.HasSuffix(err.Error(), " is no type of event: "+want) {
			t.Errorf("%s: %v, want %s", word, err, want)
		}
	}
}
