package desk_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

func TestParsePermissions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent, want string // if want begins with "!", the rest of it is a part of the refusal
	}{
		{"all", "contacts:read,contacts:write,attributes:read,attributes:write,conversations:read,conversations:write,messages:send,templates:read,channels:read,members:read,events:read,webhooks:read,webhooks:write,attempts:read,attempts:write,policy:write,snippets:write,members:write,contacts:merge,broadcasts:read,broadcasts:write,broadcasts:send,segments:write"},
		{" all\n", "contacts:read,contacts:write,attributes:read,attributes:write,conversations:read,conversations:write,messages:send,templates:read,channels:read,members:read,events:read,webhooks:read,webhooks:write,attempts:read,attempts:write,policy:write,snippets:write,members:write,contacts:merge,broadcasts:read,broadcasts:write,broadcasts:send,segments:write"},
		{"messages:send", "messages:send"},
		{"members:read,contacts:read", "members:read,contacts:read"},
		{" members:read ,\tcontacts:read", "members:read,contacts:read"},
		{"contacts:read,members:read,contacts:read", "contacts:read,members:read"},
		{"", `!"" is no permission`},
		{"contacts:read,", `!"" is no permission`},
		{",", `!"" is no permission`},
		{"contacts:delete", `!"contacts:delete" is no permission`},
		{"contacts:read contacts:write", `!"contacts:read contacts:write" is no permission`},
		{"Contacts:Read", `!"Contacts:Read" is no permission`},
		{"ALL", `!"ALL" is no permission`},
		{"all,contacts:read", `!"all" is no permission`},
		{"contacts:read,nope", `!use all, or some of contacts:read,contacts:write,`},
	} {
		got, err := desk.ParsePermissions(c.sent)
		if why, refused := strings.CutPrefix(c.want, "!"); refused {
			if !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), why) || got != nil {
				t.Errorf("%q: %v, %v; want %s", c.sent, got, err, why)
			}
			continue
		}
		if desk.JoinPermissions(got) != c.want || err != nil {
			t.Errorf("%q: %v, %v\nwant %s", c.sent, got, err, c.want)
		}
	}
	if desk.JoinPermissions(nil) != "" {
		t.Error("no permissions are not empty")
	}
}

// TestParsePermissions_gives_its_own_list: a caller who changes the list must not change the
// meaning of "all".
func TestParsePermissions_gives_its_own_list(t *testing.T) {
	t.Parallel()
	list, err := desk.ParsePermissions("all")
	if err != nil {
		t.Fatal(err)
	}
	if &list[0] == &desk.Permissions[0] {
		t.Error("the list is the package's own")
	}
}

func TestPermissions_read_back(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.SampledFrom(desk.Permissions), 1, -1, rapid.ID[desk.Permission]).Draw(t, "permissions")
		if again, err := desk.ParsePermissions(desk.JoinPermissions(list)); !slices.Equal(again, list) || err != nil {
			t.Fatalf("%v is read as %v, %v", list, again, err)
		}
	})
}

func TestAPIKey_Valid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		key  desk.APIKey
		now  desk.Time
		want bool
	}{
		{"for good", desk.APIKey{}, 1 << 50, true},
		{"before it expires", desk.APIKey{ExpiresAt: 100}, 99, true},
		{"when it expires", desk.APIKey{ExpiresAt: 100}, 100, false},
		{"after it expired", desk.APIKey{ExpiresAt: 100}, 101, false},
		{"revoked", desk.APIKey{RevokedAt: 100}, 101, false},
		{"revoked, and the clock went back", desk.APIKey{RevokedAt: 100}, 99, false},
		{"revoked before it expires", desk.APIKey{RevokedAt: 100, ExpiresAt: 200}, 150, false},
	} {
		if got := c.key.Valid(c.now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestSettings_finds(t *testing.T) {
	t.Parallel()
	zoe := desk.Member{ID: desk.ID{3}, Name: "Zoe", Email: "Zoe@Desk.example"}
	anna := desk.Member{ID: desk.ID{2}, Name: "anna", Email: "anna@desk.example"}
	otherZoe := desk.Member{ID: desk.ID{1}, Name: "Zoe", Email: "zoë@desk.example"}
	keys := []desk.APIKey{
		{ID: desk.ID{9}, PublicID: "AAAAAAAAAA", CreatedAt: 5},
		{ID: desk.ID{8}, PublicID: "aaaaaaaaaa", CreatedAt: 5},
		{ID: desk.ID{7}, PublicID: "BBBBBBBBBB", CreatedAt: 4},
	}
	attributes := []desk.Attribute{
		{Key: "b", Position: 1}, {Key: "a_", Position: 1}, {Key: "a", Position: 1, Archived: true}, {Key: "z", Position: 0},
	}
	s := desk.NewSettings(desk.Workspace{ID: desk.ID{5}, Name: "Desk", Country: "TR"}, 7, attributes, []desk.Member{zoe, anna, otherZoe}, keys, nil)

	if s.ID != (desk.ID{5}) || s.Name != "Desk" || s.Country != "TR" || s.Version != 7 {
		t.Errorf("settings of %+v, version %d", s.Workspace, s.Version)
	}
	for ref, want := range map[string]desk.ID{
		zoe.ID.String():                      zoe.ID,
		strings.ToUpper(zoe.ID.String()):     zoe.ID,
		"zoe@desk.example":                   zoe.ID,
		"\tZOE@DESK.EXAMPLE":                 zoe.ID,
		"ZOË@desk.example":                   otherZoe.ID,
		" " + anna.ID.String():               anna.ID,
		"":                                   {},
		"Zoe":                                {},
		"zoe@desk":                           {},
		zeroID:                               {},
		someID:                               {},
		"{" + zoe.ID.String() + "}":          {},
		strings.Repeat("0", 31) + "3":        {},
		"zoe@desk.example,anna@desk.example": {},
	} {
		got := s.ResolveMember(desk.ReferTo(ref))
		if (got == nil) != want.IsZero() || got != nil && got.ID != want {
			t.Errorf("%q leads to %+v, want %s", ref, got, want)
		}
	}
	if m := s.Member(anna.ID); m == nil || *m != anna {
		t.Errorf("by id: %+v", m)
	}
	if s.Member(desk.ID{}) != nil || s.Key(desk.ID{}) != nil || s.KeyByPublicID("") != nil {
		t.Error("there is something behind the zero id")
	}
	if k := s.Key(desk.ID{8}); k == nil || k.PublicID != "aaaaaaaaaa" {
		t.Errorf("key by id: %+v", k)
	}
	if k := s.KeyByPublicID("AAAAAAAAAA"); k == nil || k.ID != (desk.ID{9}) {
		t.Errorf("key by public id: %+v", k)
	}
	if a := s.Attributes["a"]; a == nil || !a.Archived || s.Attributes["A"] != nil {
		t.Errorf("attribute: %+v", a)
	}

	var order []string
	for _, m := range s.Members() { // by bytes: upper case first
		order = append(order, m.Email)
	}
	for _, a := range s.SortedAttributes() {
		order = append(order, a.Key)
	}
	for _, k := range s.Keys() {
		order = append(order, k.PublicID)
	}
	if got, want := strings.Join(order, " "), "zoë@desk.example Zoe@Desk.example anna@desk.example z a a_ b BBBBBBBBBB aaaaaaaaaa AAAAAAAAAA"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	empty := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, nil)
	if len(empty.Members())+len(empty.SortedAttributes())+len(empty.Keys()) != 0 || empty.ResolveMember(desk.Reference{}) != nil {
		t.Error("an empty workspace holds something")
	}
}
