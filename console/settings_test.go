package console

import (
	"fmt"
	"html"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// settingsPages returns the pages of this file, with the world's own records.
func (w *world) settingsPages() (get, post []string) {
	w.t.Helper()
	name, all := "crm", "all"
	_, k, err := w.app.CreateKey(w.t.Context(), w.operator(), app.KeyEdit{Name: &name, Permissions: &all})
	if err == nil {
		_, _, err = w.app.PutAttribute(w.t.Context(), w.operator(), desk.AttributeInput{Key: "plan", Label: set("Plan"), Type: set("text")})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	member, key, attribute := "/settings/members/"+w.tomas.ID.String(), "/settings/keys/"+k.ID.String(), "/settings/attributes/plan"
	channel := "/settings/channels/" + w.channel.String()
	get = []string{"/settings", "/settings/members", "/settings/members/new", member, member + "/remove", "/settings/keys", "/settings/keys/new", key, key + "/revoke",
		"/settings/attributes", "/settings/attributes/new-attribute", attribute, attribute + "/archive", "/settings/channels", "/settings/channels/new", "/settings/channels/new-sandbox", channel}
	post = []string{"/settings", "/settings/members/new", member, member + "/link", member + "/sign-out", "/settings/keys/new", key, key + "/revoke",
		"/settings/attributes/new-attribute", attribute, attribute + "/move", attribute + "/archive", attribute + "/restore", member + "/remove",
		"/settings/channels/new", "/settings/channels/new-sandbox", channel, channel + "/enable", channel + "/check", channel + "/customer"}
	return get, post
}

// TestSettings_roles: agents are refused, and for another workspace's admin the pages do
// not exist.
func TestSettings_roles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	get, post := w.settingsPages()
	mei, nora := w.signedIn(w.mei), w.signedIn(w.nora)
	out := w.visitor()
	version := w.operator().Settings.Version
	for _, path := range get {
		out.get(path)
		mei.get(path).want(403, "Your role does not allow this.", "Nora Lindqvist").lacks("tomas@")
		nora.get(path).want(200)
		nora.get(path).lacks("parley workspace", "parley member", "/v1/")
	}
	for _, path := range post {
		mei.post(path).want(403)
		out.post(path).sends("/sign-in")
	}
	if w.operator().Settings.Version != version {
		t.Error("a refused form changed something")
	}

	other, err := w.app.CreateWorkspace(t.Context(), "Elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := w.app.Operator(t.Context(), other.ID)
	if err != nil {
		t.Fatal(err)
	}
	m, err := w.app.AddMember(t.Context(), operator, "Olivia", "olivia@example.com", "admin")
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := w.app.Access.MakeLink(t.Context(), operator, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	olivia := w.visitor()
	olivia.post("/sign-in/" + token).sends("/inbox")
	olivia.get("/me").want(200)
	for _, path := range append(get, post...) {
		if strings.Count(path, "/") < 3 || strings.HasSuffix(path, "/new") || strings.HasSuffix(path, "new-attribute") || strings.HasSuffix(path, "new-sandbox") {
			continue
		}
		method := "GET"
		for _, p := range post {
			if p == path {
				method = "POST"
			}
		}
		r := httptest.NewRequest(method, path, strings.NewReader("member="+olivia.member))
		olivia.do(r).want(404, "Not here").lacks("Tom")
	}
	if w.operator().Settings.Version != version {
		t.Error("another workspace's admin changed something")
	}
}

// A roomy is a store on a disk of 100 GB. The test sets the free space of the disk.
type roomy struct {
	store.Store
	free *int64
}

func (s roomy) Room() (free, total int64, known bool, err error) {
	return *s.free, 100e9, *s.free >= 0, nil
}

func TestSettings_workspace(t *testing.T) {
	t.Parallel()
	free := int64(48.2e9)
	w := newWorldWith(t, func(d *app.Deps) {
		d.Store, d.MediaPerWorkspace, d.KeepFree = roomy{d.Store, &free}, desk.DefaultMediaPerWorkspace, desk.DefaultKeepFree
	})
	v := w.signedIn(w.nora)
	v.get("/settings").want(200, `value="Harbour Books"`, `<option value="ES" selected>Spain</option>`).golden("settings/workspace")
	v.post("/settings", "name", " ", "country", "ES", "external_ids", "replace").want(422, "Error: Workspace", "Give 1 to 255 characters").golden("settings/workspace-error")
	v.post("/settings", "name", "Harbour", "country", "XX", "external_ids", "replace").want(422)
	v.post("/settings", "name", "Harbour & Sons", "country", "", "external_ids", "replace").sends("/settings?done=saved")
	v.get("/settings?done=saved").want(200, "Saved.", "Harbour &amp; Sons")
	if s := w.operator().Settings; s.Name != "Harbour & Sons" || s.Country != "" {
		t.Errorf("the workspace is %+v", s.Workspace)
	}

	// What happens to own ids.
	v.post("/settings", "name", "Harbour", "country", "", "external_ids", "fixed").sends("/settings?done=saved")
	v.get("/settings").want(200, `<option value="fixed" selected>`)
	v.post("/settings", "name", "Harbour 2", "country", "", "external_ids", "both").want(422, `<a href="#f-external_ids">Own ids</a>: Choose replace or fixed`)
	v.post("/settings", "name", "Harbour", "country", "").sends("/settings?done=saved") // it says nothing about them
	if s := w.operator().Settings; s.Name != "Harbour" || !s.FixedExternalIDs {
		t.Errorf("the workspace is %+v", s.Workspace)
	}
	v.get("/settings/events?types=settings").want(200, "how own ids change", "Nora Lindqvist")
	v.post("/settings", "name", "Harbour", "country", "", "external_ids", "replace").sends("/settings?done=saved")
	if s := w.operator().Settings; s.FixedExternalIDs {
		t.Errorf("the workspace is %+v", s.Workspace)
	}

	// The room for files.
	v.get("/settings").want(200, "<dd>0 bytes of 21.5 GB</dd>", "48.2 GB", "With less than 1.1 GB, no file is taken.")
	if _, err := w.app.Media.Upload(t.Context(), w.operator(), desk.FileHead{Name: "a.txt", Type: "text/plain"}, strings.NewReader(strings.Repeat("x", 7_200_000))); err != nil {
		t.Fatal(err)
	}
	free = 200e6
	v.get("/settings").want(200, "<dd>7.2 MB of 21.5 GB</dd>", "200 MB", "No file is taken until 1.1 GB are free.")
	free = -1 // the files are in the database
	v.get("/settings").want(200, "<dd>7.2 MB of 21.5 GB</dd>").lacks("Free on the server", "no file is taken")
	w = newWorld(t)
	w.signedIn(w.nora).get("/settings").want(200, "<dd>0 bytes</dd>").lacks("no file is taken")
}

func TestSettings_members(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	v.get("/settings/members").want(200, "Mei Tanaka", "tomas@harbour.example", "Never").golden("settings/members")
	v.get("/settings/members/new").want(200).golden("settings/member-new")
	v.post("/settings/members/new", "name", "", "email", "MEI@harbour.example", "role", "agent").want(422, "Give 1 to 255")
	v.post("/settings/members/new", "name", "Mei 2", "email", "MEI@harbour.example", "role", "agent").want(422, "Another member of this workspace has it already").lacks(w.mei.ID.String())
	v.post("/settings/members/new", "name", "Ivo", "email", "ivo", "role", "agent").want(422, "Error: ").golden("settings/member-error")
	g := v.post("/settings/members/new", "name", "Ivo <i>", "email", "ivo@harbour.example", "role", "agent")
	path := strings.TrimSuffix(g.header.Get("Location"), "?done=added")
	g.sends(path + "?done=added")
	v.get(path).want(200, "Ivo &lt;i&gt;", "Never signed in")

	// A sign-in link, shown once.
	g = v.post(path+"/link").want(200, "It works once").golden("settings/member-link")
	link := regexp.MustCompile(`http://example\.com(/sign-in/[A-Za-z0-9_-]+)`).FindStringSubmatch(g.body)
	if link == nil {
		t.Fatalf("no link in %s", g.body)
	}
	ivo := w.visitor()
	ivo.get(link[1]).want(200, "Ivo &lt;i&gt;")
	ivo.post(link[1]).sends("/inbox")
	ivo.get("/inbox").want(200)
	v.get(path).want(200, "Last seen")
	v.post(path + "/sign-out").sends(path + "?done=they-are-out")
	ivo.get("/inbox").sends("/sign-in?next=%2Finbox")

	// Roles change, but the last admin stays an admin.
	v.post(path, "name", "Ivo", "email", "ivo@harbour.example", "role", "admin").sends("/settings/members?done=saved")
	me := "/settings/members/" + w.nora.ID.String()
	v.post(path, "name", "Ivo", "email", "ivo@harbour.example", "role", "agent").sends("/settings/members?done=saved")
	v.post(me, "name", "Nora", "email", "nora@harbour.example", "role", "agent").want(422, "would have no admin")
	v.get(me + "/remove").want(200)
	v.post(me+"/remove").want(422, "would have no admin")

	// Before a removal, the page lists the conversations and contacts that return to the
	// pool.
	c := w.writes("+34 612 34 56 78", "Lucía", "Hello")
	if _, err := w.app.Assign(t.Context(), w.operator(), c.ID, w.mei.ID.String(), nil); err != nil {
		t.Fatal(err)
	}
	owner := &desk.Op{Kind: desk.OpAssign, ByID: true, Target: c.ContactID, Owner: desk.Field[desk.Reference]{Set: true, Value: desk.ReferTo(w.mei.ID.String())}}
	if _, err := w.app.Write(t.Context(), w.operator(), owner); err != nil {
		t.Fatal(err)
	}
	mei := "/settings/members/" + w.mei.ID.String()
	v.get(mei+"/remove").want(200, "1 contact and 1 open conversation go back to the pool.", "Cancel").golden("settings/member-remove")
	v.get("/settings/members/"+w.tomas.ID.String()+"/remove").want(200, "They hold no contact and no open conversation.")
	v.post(mei + "/remove").sends("/settings/members?done=removed")
	v.get("/settings/members?done=removed").want(200, "Removed.").lacks("Mei Tanaka")
	v.get(mei).want(404)
	v.post(me + "/sign-out").sends("/sign-in?done=everywhere")
	v.get("/inbox").sends("/sign-in?next=%2Finbox")
}

// TestSettings_presets: the form of a new key begins without permissions. A preset ticks
// a set of permissions that is often needed, also without script.
func TestSettings_presets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(w.nora)
	v.get("/settings/keys/new").want(200, "Sends templates").lacks("checked")
	for preset, want := range map[string][]desk.Permission{
		"crm":       {desk.ContactsRead, desk.ContactsWrite, desk.AttributesRead, desk.MembersRead},
		"templates": {desk.MessagesSend, desk.TemplatesRead, desk.ChannelsRead, desk.AttemptsRead},
		"reads":     {desk.ContactsRead, desk.AttributesRead, desk.BroadcastsRead, desk.ConversationsRead, desk.TemplatesRead, desk.ChannelsRead, desk.MembersRead, desk.EventsRead, desk.WebhooksRead, desk.AttemptsRead},
		"nonsense":  nil,
	} {
		g := v.get("/settings/keys/new?preset=" + preset).want(200)
		var ticked []desk.Permission
		for _, found := range regexp.MustCompile(`value="([a-z:]+)" checked`).FindAllStringSubmatch(g.body, -1) {
			ticked = append(ticked, desk.Permission(found[1]))
		}
		if slices.Sort(ticked); !slices.Equal(ticked, slices.Sorted(slices.Values(want))) {
			t.Errorf("the preset %s ticks %q, want %q", preset, ticked, want)
		}
		if want != nil && !strings.Contains(g.body, `data-ticks="`+string(want[0])) {
			t.Errorf("the preset %s has no boxes for the script", preset)
		}
	}
	// If the form was sent, its values are shown, not those of the preset.
	v.post("/settings/keys/new?preset=reads", "name", "", "permissions", "contacts:write", "expires", "never").want(422, `value="contacts:write" checked`).lacks(`value="contacts:read" checked`)
}

// TestSettings_manyKeys: many keys are shown in pages, those in use first. A key that is revoked
// between two pages hides no other.
func TestSettings_manyKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss, err := w.app.Access.Member(t.Context(), w.ws, w.nora.ID)
	if err != nil {
		t.Fatal(err)
	}
	const half = keyRows + 10
	ids := make([]string, 2*half)
	for i := range ids {
		name, permissions := fmt.Sprintf("key %03d", i), "contacts:read"
		_, k, err := w.app.CreateKey(t.Context(), boss, app.KeyEdit{Name: &name, Permissions: &permissions})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = k.ID.String()
		if i < half {
			if _, err := w.app.RevokeKey(t.Context(), boss, k.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := w.as(w.nora)
	w.clock.Add(2000)
	next := func(page got) string {
		return html.UnescapeString(regexp.MustCompile(`href="([^"]*)" data-next`).FindStringSubmatch(page.body)[1])
	}
	page := v.get("/settings/keys").want(200, "key 060", "key 109", "Next 50").lacks("key 059", "key 110", "From the first")
	if len(page.body) > maxPageBytes {
		t.Errorf("%d bytes", len(page.body))
	}
	v.post("/settings/keys/" + ids[109] + "/revoke").want(303)
	w.clock.Add(2000)
	page = v.get(next(page)).want(200, "key 110", "key 119", "Revoked and expired (61)", "key 109", "key 059", "key 021", "From the first").lacks("key 108", "key 020")
	v.get(next(page)).want(200, "key 020", "key 000", "Revoked and expired (61)", "From the first").lacks("key 021", "No key is in use", "Next 50")
}

func TestSettings_keys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	v.get("/settings/keys").want(200, "No key is in use").golden("settings/keys-none")
	v.get("/settings/keys/new").want(200).lacks("checked").golden("settings/key-new")
	v.post("/settings/keys/new", "name", "CRM", "expires", "never").want(422, "Tick at least one permission", `value="CRM"`).lacks("checked")
	v.post("/settings/keys/new", "name", "", "permissions", "contacts:read", "expires", "never").want(422, "Give 1 to 255 characters")
	v.post("/settings/keys/new", "name", "CRM", "permissions", "workspace:administer", "expires", "never").want(422)
	g := v.post("/settings/keys/new", "name", "CRM <b>", "permissions", "contacts:read", "expires", "30").want(200, "not shown again", "CRM &lt;b&gt;")
	text := regexp.MustCompile(`prl_live_[A-Za-z0-9_]+`).FindString(g.body)
	if !strings.Contains(g.body, "curl -H &#39;Authorization: Bearer "+text+"&#39; &#39;http://example.com/v1/contacts?limit=1&#39;") {
		t.Errorf("no curl in %s", g.body)
	}
	if strings.Contains(regexp.MustCompile(`<title>.*</title>`).FindString(g.body), "prl_live") {
		t.Error("the key is in the title")
	}
	g.golden("settings/key-made")
	p, err := w.app.Access.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.app.Access.StoreKeyUses(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := "/settings/keys/" + p.Key.ID.String()
	v.get("/settings/keys").want(200, "CRM &lt;b&gt;", "prl_live_"+p.Key.PublicID+"…", "Read contacts", "11 Apr").lacks(text).golden("settings/keys")
	v.get(path).want(200, "last used", "As now: 11 Apr (UTC)").lacks(text).golden("settings/key")
	v.post(path, "name", "CRM", "permissions", "members:read", "expires", "keep").sends("/settings/keys?done=saved")
	k := w.operator().Settings.Key(p.Key.ID)
	if k.Name != "CRM" || len(k.Permissions) != 1 || k.Permissions[0] != desk.MembersRead || k.ExpiresAt != p.Key.ExpiresAt {
		t.Errorf("the key is %+v", k)
	}
	v.post(path, "name", "CRM", "expires", "keep").want(422, "Tick at least one permission")
	v.post(path, "name", "CRM", "permissions", "members:read", "expires", "never").sends("/settings/keys?done=saved")
	if k = w.operator().Settings.Key(p.Key.ID); k.ExpiresAt != 0 {
		t.Errorf("the key is %+v", k)
	}
	v.get(path+"/revoke").want(200, "refused from their next request on").golden("settings/key-revoke")
	if _, err := w.app.Access.Authenticate(t.Context(), text); err != nil {
		t.Error("asking revokes the key")
	}
	v.post(path + "/revoke").sends("/settings/keys?done=revoked")
	if _, err := w.app.Access.Authenticate(t.Context(), text); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("after the revocation: %v", err)
	}
	v.get("/settings/keys").want(200, "No key is in use", "Revoked and expired (1)")
	v.get(path).want(200, "Programs that use it are refused").lacks(`<form method="post"`)

	// An expired key can get a new expiry.
	name, all, short := "Old", "all", time.Hour
	_, old, err := w.app.CreateKey(t.Context(), w.operator(), app.KeyEdit{Name: &name, Permissions: &all, Expires: &short})
	if err != nil {
		t.Fatal(err)
	}
	w.later(2 * time.Hour)
	v.get("/settings/keys").want(200, "No key is in use", "Expired")
	v.get("/settings/keys/"+old.ID.String()).want(200, "A new expiry makes it work again")
}

func TestSettings_attributes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	v.get("/settings/attributes").want(200, "No attributes yet").golden("settings/attributes-none")
	v.get("/settings/attributes/new-attribute").want(200).golden("settings/attribute-new")
	add := func(pairs ...string) got { return v.post("/settings/attributes/new-attribute", pairs...) }
	add("label", "", "type", "text").want(422, "Error: ")
	add("label", "Plan", "type", "select", "options", "").want(422, "Error: ").golden("settings/attribute-error")
	add("label", "Plan", "type", "select", "options", "Free\r\nPro\r\n\r\n", "description", "What they pay").sends("/settings/attributes?done=added")
	add("label", "Plan", "key", "plan", "type", "text").want(422, "Another attribute has this key")
	add("label", "Plan", "key", "Bad Key", "type", "text").want(422, "Error: ")
	add("label", "Café préféré!", "type", "text", "options", "ignored").sends("/settings/attributes?done=added")
	add("label", "Plan", "type", "boolean").sends("/settings/attributes?done=added")
	add("label", "新", "type", "date", "key", "new").sends("/settings/attributes?done=added")
	order := func() string {
		var keys []string
		for _, a := range w.operator().Settings.SortedAttributes() {
			keys = append(keys, a.Key)
		}
		return strings.Join(keys, " ")
	}
	if got := order(); got != "plan cafe_prefere plan_2 new" {
		t.Errorf("attributes: %s", got)
	}
	if a := w.operator().Settings.Attributes["plan"]; strings.Join(a.Options, ",") != "Free,Pro" || a.Description != "What they pay" {
		t.Errorf("plan: %+v", a)
	}
	v.get("/settings/attributes").want(200, "Café préféré!", "One of several options").golden("settings/attributes")
	v.post("/settings/attributes/new/move", "up", "yes").sends("/settings/attributes#a-new")
	v.post("/settings/attributes/plan/move", "down", "yes").sends("/settings/attributes#a-plan")
	v.post("/settings/attributes/cafe_prefere/move", "up", "yes").sends("/settings/attributes")
	v.post("/settings/attributes/plan_2/move", "down", "yes").sends("/settings/attributes")
	if got := order(); got != "cafe_prefere plan new plan_2" {
		t.Errorf("after moves: %s", got)
	}
	v.get("/settings/attributes/plan").want(200, "Free\nPro").golden("settings/attribute")
	v.post("/settings/attributes/plan", "label", "", "options", "Free").want(422, "Error: ")
	v.post("/settings/attributes/plan", "label", "Plan", "options", "Free\nPro\nMax", "description", "").sends("/settings/attributes?done=saved")
	v.get("/settings/attributes/new").want(200, "新")
	v.get("/settings/attributes/none").want(404)

	v.get("/settings/attributes/plan/archive").want(200, "stay").golden("settings/attribute-archive")
	v.post("/settings/attributes/plan/archive").sends("/settings/attributes?done=attribute-archived")
	v.get("/settings/attributes").want(200, "Archived", "Restore").golden("settings/attributes-archived")
	v.get("/settings/attributes/plan").want(200, "Archived: values stay").lacks("plan/archive")
	v.post("/settings/attributes/plan/restore").sends("/settings/attributes?done=restored")
	if w.operator().Settings.Attributes["plan"].Archived {
		t.Error("plan is archived still")
	}
}

// TestSettings_orderWithEqualPositions: attributes can be moved even if several of them
// have the same position, which the API allows.
func TestSettings_orderWithEqualPositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []string{"a", "b", "c"} {
		if _, _, err := w.app.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: key, Type: set("text"), Position: desk.Field[int64]{Set: true, Value: 7}}); err != nil {
			t.Fatal(err)
		}
	}
	v := w.signedIn(w.nora)
	v.post("/settings/attributes/c/move", "up", "yes").sends("/settings/attributes#a-c")
	var keys []string
	for _, a := range w.operator().Settings.SortedAttributes() {
		keys = append(keys, a.Key)
	}
	if got := strings.Join(keys, " "); got != "a c b" {
		t.Errorf("attributes: %s", got)
	}
}
