package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"parley/desk"
)

// person stores a contact in the same way as a program. It returns the path of the
// contact's page.
func (w *world) person(phone, name, owner string) (path string, id desk.ID) {
	w.t.Helper()
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.Phone = desk.Field[string]{Set: true, Value: phone}
	op.Write.Name = desk.Field[string]{Set: true, Value: name}
	op.Write.Sent = []desk.Identity{{Kind: desk.KindPhone, Value: phone}}
	if owner != "" {
		op.Write.Owner = desk.Field[desk.Reference]{Set: true, Value: desk.ReferTo(owner)}
	}
	o, err := w.app.Write(context.Background(), w.operator(), op)
	if err != nil {
		w.t.Fatal(err)
	}
	return "/contacts/" + o.ID.String(), o.ID
}

// indexed lets the search read what has changed.
func (w *world) indexed() {
	w.t.Helper()
	for {
		wait, err := w.app.Search.Step(context.Background())
		if err != nil {
			w.t.Fatal(err)
		}
		if wait < 0 {
			return
		}
	}
}

// attribute makes an attribute of the workspace.
func (w *world) attribute(key, label string, kind desk.AttributeType, options ...string) {
	w.t.Helper()
	in := desk.AttributeInput{Key: key, Label: desk.Field[string]{Set: true, Value: label}, Type: desk.Field[string]{Set: true, Value: string(kind)}}
	if options != nil {
		in.Options = desk.Field[[]string]{Set: true, Value: options}
	}
	if _, _, err := w.app.PutAttribute(context.Background(), w.operator(), in); err != nil {
		w.t.Fatal(err)
	}
}

func TestContacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	mei.get("/contacts").want(200, "No contacts yet", "New contact").golden("contacts/none")
	first, _ := w.person("34612345678", "Lucía Fernández", "mei@harbour.example")
	w.person("34612345679", "سارة الخطيب", "")
	mei.get("/contacts").want(200, "Lucía Fernández", "34 612 34 56 78", "you").lacks("Next 50").golden("contacts/list")
	nora.get("/contacts?owner="+w.mei.ID.String()).want(200, "Lucía", "Mei Tanaka").lacks("سارة")
	nora.get("/contacts?owner="+w.nora.ID.String()).want(200, "This member owns no contact")
	w.attribute("plan", "Plan", desk.SelectAttribute, "free", "pro")
	w.attribute("vip", "VIP", desk.BooleanAttribute)
	mei.get("/contacts?q=lucia").want(200, "Nobody fits", "The search is 2 changes behind")
	w.indexed()
	for _, find := range []string{"612 34 56 78", "+34612345678", " 0034 612-345-678 ", "lucia", "FERNANDEZ lu", "5678"} {
		mei.get("/contacts?q="+url.QueryEscape(find)).want(200, "Lucía", "1 found").lacks("سارة", "behind")
	}
	mei.get("/contacts?q=lucia").golden("contacts/found")
	mei.get("/contacts?q=luzia").want(200, "Nobody fits").golden("contacts/not_found")
	mei.get("/contacts?q=+").want(200, "Lucía", "سارة").lacks("found for")
	mei.get("/contacts?q=a+b+c+d+e+f+g+h+i").want(200, "That is too much to search for")
	mei.get("/contacts?q=lucia&owner="+w.mei.ID.String()).want(200, "1 found", `name="q" value="lucia"`)
	mei.get("/contacts?q=lucia&owner="+w.nora.ID.String()).want(200, "Nobody fits")
	mei.get("/contacts?attribute=plan:pro").want(200, "Nobody fits", `value="plan:pro" selected`, "VIP: yes")
	mei.get("/contacts?attribute=nothing:x").want(200, "No such attribute")
	mei.get("/contacts?q=3461234&after=x").want(200, "2 found")

	mei.get("/search").want(200, `href="/inbox"`, `href="/sends?doubt=yes"`).lacks("Settings: members").golden("contacts/search")
	nora.get("/search?q=mem").want(200, "Settings: members").lacks("Lucía")
	nora.get("/search?q=import").want(200, `href="/contacts/import"`, "Import contacts")
	mei.get("/search?q=import").want(200, "Nothing fits")
	mei.get("/search?q=lucia").want(200, "Lucía", first)
	mei.get("/search?q=nothing+at+all").want(200, "Nothing fits")
	for i := range pageRows + 1 {
		w.person("3461234"+string(rune('0'+i/10))+string(rune('0'+i%10))+"99", "Person", "")
	}
	page := mei.get("/contacts").want(200, "Next 50").lacks("سارة").body
	next := regexp.MustCompile(`href="(/contacts\?after=[^"]+)"`).FindStringSubmatch(page)[1]
	mei.get(next).want(200, "Lucía", "سارة", "Newest").lacks("Next 50")
	nora.get(strings.Replace(next, "?", "?owner="+w.mei.ID.String()+"&", 1)).want(200, "Lucía")

	mei.get(first).want(200, "Lucía Fernández").lacks("Delete")
	mei.get(first+"/delete").want(403, "Nora Lindqvist")
	mei.post(first + "/delete").want(403)
	nora.get(first+"/delete").want(200, "Delete Lucía Fernández?").golden("contacts/delete")
	nora.post(first + "/delete").sends("/contacts?done=deleted")
	nora.get(first).want(404, "Not here")
}

// sent returns the fields that a browser would send: the values of the page, with the
// given values in place of some of them.
func sent(t *testing.T, page string, replaced ...string) (pairs []string) {
	t.Helper()
	return sentBy(t, page, `<form id="contact"`, replaced...)
}

// sentBy is sent for the form with this beginning.
func sentBy(t *testing.T, page, begin string, replaced ...string) (pairs []string) {
	t.Helper()
	_, form, ok := strings.Cut(page, begin)
	if !ok {
		t.Fatalf("no form in %s", page)
	}
	form, _, _ = strings.Cut(form, "</form>")
	values := url.Values{}
	for _, m := range regexp.MustCompile(`<input [^>]*name="([^"]+)"(?: type="([^"]+)")? value="([^"]*)"([^>]*)>`).FindAllStringSubmatch(form, -1) {
		values.Set(m[1], unescape(m[3]))
	}
	for _, m := range regexp.MustCompile(`<input type="(hidden|checkbox|radio)" name="([^"]+)" value="([^"]*)"([^>]*)>`).FindAllStringSubmatch(form, -1) {
		if m[1] == "hidden" {
			values.Set(m[2], unescape(m[3]))
			continue
		}
		if values.Has(m[2]) && !values.Has("box."+m[2]) {
			values.Del(m[2])
		}
		values.Set("box."+m[2], "")
		if strings.Contains(m[4], "checked") {
			values.Add(m[2], unescape(m[3]))
		}
	}
	for _, m := range regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]+)"[^>]*>(.*?)</textarea>`).FindAllStringSubmatch(form, -1) {
		values.Set(m[1], unescape(m[2]))
	}
	for _, m := range regexp.MustCompile(`(?s)<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>`).FindAllStringSubmatch(form, -1) {
		if o := regexp.MustCompile(`value="([^"]*)" selected`).FindStringSubmatch(m[2]); o != nil {
			values.Set(m[1], unescape(o[1]))
		}
	}
	for i := 0; i+1 < len(replaced); i += 2 {
		values.Del(replaced[i])
	}
	for i := 0; i+1 < len(replaced); i += 2 {
		values.Add(replaced[i], replaced[i+1])
	}
	for name, list := range values {
		for _, v := range list {
			if name != "member" && !strings.HasPrefix(name, "box.") {
				pairs = append(pairs, name, v)
			}
		}
	}
	return pairs
}

func unescape(s string) string {
	return strings.NewReplacer("&#43;", "+", "&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

func (w *world) stored(id desk.ID) *desk.Contact {
	w.t.Helper()
	c, err := w.app.Contact(context.Background(), w.operator(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func TestContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	w.attribute("plan", "Plan", desk.SelectAttribute, "free", "pro")
	w.attribute("visits", "Visits", desk.NumberAttribute)
	w.attribute("born", "Born", desk.DateAttribute)
	w.attribute("last", "Last visit", desk.DatetimeAttribute)
	w.attribute("vip", "Guest of honour", desk.BooleanAttribute)
	w.attribute("tags", "Tags", desk.MultiselectAttribute, "books", "maps", "<b>")
	w.attribute("site", "Site", desk.URLAttribute)
	w.attribute("about", "About", desk.TextAttribute)
	path, id := w.person("34612345678", "Lucía Fernández", "")
	w.writes("+34 612 34 56 78", "", "Hello")
	page := mei.get(path).want(200, "Conversations", "Sandbox, unassigned", "Send a template").golden("contacts/contact").body

	// A form without changes stores nothing.
	before := *w.stored(id)
	mei.post(path, sent(t, page)...).sends(path + "?done=saved")
	if after := *w.stored(id); after.Version != before.Version || after.UpdatedAt != before.UpdatedAt {
		t.Errorf("stored %+v, was %+v", after, before)
	}

	mei.post(path, sent(t, page, "name", "Lucía F.", "email", "Lucia@Example.com", "external_id", "crm-7", "owner", w.mei.ID.String(), "note", "Likes maps.\r\nCall back.",
		"attributes.plan", "pro", "attributes.visits", "3.50", "attributes.born", "1990-02-03", "attributes.last", "2026-03-01T10:00", "attributes.vip", "true",
		"attributes.tags", "<b>", "attributes.tags", "books", "attributes.site", "https://example.com/?a=1&b=2", "attributes.about", "One\nTwo",
		"add_kind", "phone", "add_value", "+34 612 34 56 99")...).sends(path + "?done=saved")
	c := w.stored(id)
	if c.Name != "Lucía F." || c.Email != "Lucia@Example.com" || c.ExternalID != "crm-7" || c.Owner.ID != w.mei.ID || c.Note != "Likes maps.\nCall back." || c.Phone != "34612345678" {
		t.Errorf("%+v", c)
	}
	const attributes = `{"about":"One\nTwo","born":"1990-02-03","last":"2026-03-01T10:00:00.000Z","plan":"pro","site":"https://example.com/?a=1&b=2","tags":["<b>","books"],"vip":true,"visits":3.5}`
	if got := c.Attributes.JSON(); got != attributes {
		t.Errorf("attributes %s, want %s", got, attributes)
	}
	page = mei.get(path+"?done=saved").want(200, "Saved.", "34 612 34 56 99", "Remove").golden("contacts/full").body
	version := c.Version
	mei.post(path, sent(t, page)...).sends(path + "?done=saved")
	if w.stored(id).Version != version {
		t.Error("a form that nobody changed stored something")
	}
	mei.post(path, sent(t, page, "owner", "", "email", "", "attributes.tags", "maps", "attributes.vip", "", "attributes.last", "")...).sends(path + "?done=saved")
	c = w.stored(id)
	if c.Owner != nil || c.Email != "" || !strings.Contains(c.Attributes.JSON(), `"tags":["maps"],"visits"`) {
		t.Errorf("%+v", c)
	}
	mei.post(path+"/remove", "kind", "phone", "value", "34612345699").sends(path + "?done=removed")
	mei.post(path+"/remove", "kind", "phone", "value", "34612345699").want(404)
	if c = w.stored(id); len(c.Further) != 0 {
		t.Errorf("%+v", c.Further)
	}

	// If a value can't be read or stored, the page says so beside its field, and nothing
	// is stored.
	version = c.Version
	page = mei.get(path).body
	mei.post(path, sent(t, page, "name", "New", "phone", "call me", "attributes.born", "1990")...).want(422, "Error: ", `value="call me"`, "f-phone-error")
	mei.post(path, sent(t, page, "name", "New", "attributes.visits", "many", "attributes.site", "nowhere")...).
		want(422, "f-attributes-visits-error", "f-attributes-site-error", `value="New"`).golden("contacts/refused")
	if w.stored(id).Version != version {
		t.Error("a refused form stored something")
	}
	mei.get("/contacts/"+w.newID().String()).want(404, "Not here")
}

// TestContact_zone: a time is read in the zone in which the form has shown it.
func TestContact_zone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attribute("visit", "Last visit", desk.DatetimeAttribute)
	path, id := w.person("34612345678", "Lucía", "")
	mei := w.as(w.mei)
	mei.header.Set("Cookie", "tz=Europe/Madrid")
	page := mei.get(path).want(200, `name="zone" value="Europe/Madrid"`).body
	fields := sent(t, page, "attributes.visit", "2026-03-14T10:00")
	mei.header.Set("Cookie", "tz=Asia/Tokyo") // the computer travels
	mei.post(path, fields...).sends(path + "?done=saved")
	visit := func() any { return attributesOf(w.stored(id))["visit"] }
	if got := visit(); got != "2026-03-14T09:00:00.000Z" {
		t.Errorf("%v", got)
	}
	// Nobody has changed the time, so saving something else is no conflict.
	page = mei.get(path).want(200, `value="2026-03-14T18:00"`).body
	mei.header.Set("Cookie", "tz=Europe/Madrid")
	mei.post(path, sent(t, page, "name", "Lucía F.")...).sends(path + "?done=saved")
	if got := visit(); got != "2026-03-14T09:00:00.000Z" {
		t.Errorf("%v", got)
	}
}

// TestContact_talks: a person with many conversations has all of them on the page, in parts; the
// panel beside a thread leads there.
func TestContact_talks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	var all []*desk.Conversation
	for range otherConversations + 2 {
		c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Hello")
		all = append(all, c)
		if _, err := w.app.SetStatus(t.Context(), w.operator(), c.ID, desk.StatusClosed, nil); err != nil {
			t.Fatal(err)
		}
	}
	oldest, newest := "/inbox/"+all[0].ID.String(), "/inbox/"+all[len(all)-1].ID.String()
	path := "/contacts/" + all[0].ContactID.String()
	page := mei.get(path).want(200, newest, `#talks" aria-label="Conversations further back">Further back`).lacks(oldest)
	_, next, _ := strings.Cut(page.body, `href="`+path+"?talks=")
	next, _, _ = strings.Cut(next, `#`)
	mei.get(path+"?talks="+next).want(200, oldest, `href="`+path+`#talks" aria-label="Newest conversations">Newest</a>`).lacks(newest, "Further back")
	mei.get(path+"?talks=nonsense").want(200, newest)
	mei.get(newest).want(200, `<a href="`+path+`#talks">All conversations</a>`)
}

// TestContact_timeline: the page of a contact shows what was changed, by whom, and pages through
// it.
func TestContact_timeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	w.attribute("plan", "Plan", desk.SelectAttribute, "free", "pro")
	path, _ := w.person("34612345678", "Lucía Fernández", "")
	page := mei.get(path).want(200, "Changes", "None yet.").body
	mei.post(path, sent(t, page, "note", "Likes maps.", "attributes.plan", "pro")...).sends(path + "?done=saved")
	w.writes("+34 612 34 56 78", "", "STOP")
	w.indexed()
	mei.get(path).want(200, "Plan, note", "Mei Tanaka", "Created", "the command line", "Opted out").lacks("Further back", "Newest").golden("contacts/timeline")
	for i := range timelineRows {
		w.person("34612345678", fmt.Sprint("Lucía ", i), "")
	}
	w.indexed()
	next := regexp.MustCompile(`href="([^"]+\?after=[^"]+)">Further back`).FindStringSubmatch(mei.get(path).want(200).lacks("Created").body)
	if next == nil {
		t.Fatal("there is no way to the earlier changes")
	}
	mei.get(next[1]).want(200, "Created", "Newest").lacks("Further back")
	mei.get(path+"?after=x").want(200, "Further back").lacks("Newest", "All data")
	nora := w.as(w.nora)
	nora.get(path).want(200, `href="`+path+`/export"`)
	nora.get(path+"/export").want(200, `{"data":`, "Lucía 9")
	mei.get(path + "/export").want(403)
	nora.get("/contacts/"+w.newID().String()+"/export").want(404, "Not here")
}

// TestContact_both: two members change the same contact. The second member sees the changes
// of the first, and chooses. A field that only one of them has changed keeps this change.
func TestContact_both(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei, nora := w.as(w.mei), w.as(w.nora)
	path, id := w.person("34612345678", "Lucía", "")
	page := mei.get(path).body
	nora.post(path, sent(t, page, "name", "Lucía Nora", "note", "by Nora")...).sends(path + "?done=saved")
	form := sent(t, page, "name", "Lucía Mei", "email", "lucia@example.com")
	refused := mei.post(path, form...).want(409, "Somebody has changed this meanwhile", "Lucía Nora", `value="Lucía Mei"`).golden("contacts/both")
	if c := w.stored(id); c.Name != "Lucía Nora" || c.Email != "" {
		t.Errorf("%+v", c)
	}
	mei.post(path, sent(t, refused.body)...).want(409) // the member has made no choice
	mei.post(path, sent(t, refused.body, "choose.name", "keep")...).sends(path + "?done=saved")
	if c := w.stored(id); c.Name != "Lucía Nora" || c.Email != "lucia@example.com" || c.Note != "by Nora" {
		t.Errorf("%+v", c)
	}
	nora.post(path, sent(t, mei.get(path).body, "name", "Third")...).sends(path + "?done=saved")
	mei.post(path, sent(t, refused.body, "choose.name", "mine")...).want(409, "Third") // after the choice, the value has changed again
	refused = mei.post(path, form...).want(409)
	mei.post(path, sent(t, refused.body, "choose.name", "mine")...).sends(path + "?done=saved")
	if c := w.stored(id); c.Name != "Lucía Mei" {
		t.Errorf("%+v", c)
	}
}

// TestContact_races: if two members save at the same time, one of them is told about the
// other's change.
func TestContact_races(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, id := w.person("34612345678", "Lucía", "")
	pages := [2]*visitor{w.signedIn(w.mei), w.signedIn(w.nora)}
	for n := range 20 {
		page := pages[0].get(path).body
		var answers [2]got
		var both sync.WaitGroup
		for i, b := range pages {
			both.Go(func() { answers[i] = b.post(path, sent(t, page, "name", fmt.Sprint("By ", i, n))...) })
		}
		both.Wait()
		saved := 0
		for i, a := range answers {
			if a.status == http.StatusSeeOther {
				saved = i
			}
		}
		if answers[saved].status != http.StatusSeeOther || answers[1-saved].status != http.StatusConflict || !strings.Contains(answers[1-saved].body, "Choose which to keep") || w.stored(id).Name != fmt.Sprint("By ", saved, n) {
			t.Fatalf("%d and %d; named %s", answers[0].status, answers[1].status, w.stored(id).Name)
		}
	}
}

// TestContact_holders: an address is refused if another contact already has it, and the
// page names this contact. The member can leave the address out, or open the other
// contact. Contacts are not merged.
func TestContact_holders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	path, id := w.person("34612345678", "Lucía", "")
	other, _ := w.person("34612345679", "Olivia", "")
	page := mei.get(path).body
	mei.post(path, sent(t, page, "name", "Lucía F.", "phone", "612 34 56 79")...).want(409, "is <a href=\""+other, "Olivia", `name="leave" value="phone"`, "Open theirs").golden("contacts/held")
	mei.post(path, sent(t, page, "add_value", "+34612345679")...).want(409, `name="leave" value="add_value"`)
	mei.post(path, sent(t, page, "name", "Lucía F.", "phone", "612 34 56 79", "leave", "phone")...).sends(path + "?done=saved")
	if c := w.stored(id); c.Phone != "34612345678" || c.Name != "Lucía F." {
		t.Errorf("%+v", c)
	}

	page = mei.get("/contacts/new").want(200, "New contact").golden("contacts/new").body
	mei.post("/contacts/new", sent(t, page, "name", "Nobody")...).want(422, "nobody could find this contact again")
	mei.post("/contacts/new", sent(t, page, "name", "Not Olivia", "phone", "612 34 56 79", "email", "new@example.com")...).want(409, other, `value="Not Olivia"`)
	made := mei.post("/contacts/new", sent(t, page, "name", "Not Olivia", "phone", "612 34 56 79", "email", "new@example.com", "owner", w.mei.ID.String(), "leave", "phone")...)
	at := made.header.Get("Location")
	mei.get(at).want(200, "Created.", "Not Olivia", "new@example.com")
	if list, err := w.app.ContactsHolding(context.Background(), w.operator(), []desk.Identity{{Kind: desk.KindPhone, Value: "34612345679"}}); err != nil || len(list) != 1 || list[0].Name != "Olivia" {
		t.Errorf("%v, %v", list, err)
	}
}

// TestContact_moved: an address of another contact is moved from the refused form. The page asks
// first, keeps what was typed, and saves it with the move. Sent twice, it changes nothing more.
func TestContact_moved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	path, id := w.person("34612345678", "Lucía", "")
	other, from := w.person("34612345679", "Olivia", "")
	_, third := w.person("34612345680", "Ana", "")
	form := mei.get(path).body
	send := func(button string, typed ...string) got {
		return mei.post(path, sent(t, form, append(typed, button, from.String()+":phone:34612345679")...)...)
	}
	typed := []string{"name", "Lucía F.", "phone", "+34 612 34 56 79"}
	mei.post(path, sent(t, form, typed...)...).want(409, `name="ask" value="`+from.String()+`:phone:34612345679"`).lacks(`name="move"`)
	w.app.Conflicts.StoreNow(t.Context())
	send("ask", "phone", "none").want(422, "Not everything could be saved").lacks(`name="move"`)
	send("ask", typed...).want(409, "34 612 34 56 79 to", "There is no undo", `name="move" value="`+from.String(), `value="Lucía F."`).golden("contacts/move")
	if c := w.stored(from); c.Phone != "34612345679" {
		t.Errorf("the question has moved it: %+v", c)
	}
	send("move", "name", "Lucía F.").sends(path + "?done=saved") // the address was not typed
	if c := w.stored(from); c.Phone != "34612345679" {
		t.Errorf("an address that was not typed has moved: %+v", c)
	}
	for range 2 {
		send("move", typed...).sends(path + "?done=saved")
		if c, o := w.stored(id), w.stored(from); c.Phone != "34612345679" || c.Name != "Lucía F." || len(c.Further) != 0 || o.Phone != "" || o.Name != "Olivia" {
			t.Errorf("%+v, %+v", c, o)
		}
	}
	mei.get("/conflicts").want(200, "No open conflicts")
	mei.get("/conflicts?status=resolved").want(200, "Olivia")

	// It is another's by now: the page asks again. Of two, one is moved, and the page says so.
	form = mei.get(other).body
	mei.post(other, sent(t, form, "email", "o@example.com", "phone", "612 34 56 79", "add_value", "612 34 56 80", "move", from.String()+":phone:34612345679")...).want(409, `name="ask" value="`+id.String()).lacks(`name="move"`)
	mei.post(other, sent(t, form, "email", "o@example.com", "phone", "612 34 56 79", "add_value", "612 34 56 80", "move", id.String()+":phone:34612345679")...).
		want(409, "34 612 34 56 79</bdi></b> was moved to <bdi>Olivia", "nothing else was saved", `name="ask" value="`+third.String(), `value="o@example.com"`).lacks(`value="` + id.String()).golden("contacts/moved_one")
	if c, o := w.stored(from), w.stored(id); c.Phone != "" || len(c.Further) != 1 || c.Email != "" || o.Phone != "" {
		t.Errorf("%+v, %+v", c, o)
	}

	// A new contact can't get an address yet.
	form = mei.get("/contacts/new").body
	for _, button := range []string{"leave", "ask", "move"} {
		mei.post("/contacts/new", sent(t, form, "phone", "612 34 56 80", button, third.String()+":phone:34612345680")...).want(409, "Leave it out").lacks(`name="ask"`, `name="move"`)
	}
}

// TestContactForm_long: options of attributes for which the form has no room are typed.
func TestContactForm_long(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, kind := range []desk.AttributeType{desk.SelectAttribute, desk.SelectAttribute, desk.MultiselectAttribute} {
		var options []string
		for i := range desk.MaxOptions {
			options = append(options, fmt.Sprintf("%s%d", strings.Repeat("+", 250), i))
		}
		w.attribute(fmt.Sprint("long_", n), fmt.Sprint("Long ", n), kind, options...)
	}
	nora := w.as(w.nora)
	page := nora.get("/contacts/new").want(200, `<select id="f-attributes-long_0"`, "Type one of its options.", "Type those of its options that fit, each on its own line.")
	if n := len(page.body); n < maxPage || n > 4<<20 {
		t.Errorf("%d bytes", n)
	}
	typed := strings.Repeat("+", 250)
	at := nora.post("/contacts/new", "name", "Ada", "email", "ada@example.com", "attributes.long_1", typed+"7", "attributes.long_2", typed+"1\r\n"+typed+"12").header.Get("Location")
	nora.post("/contacts/new", "name", "Bob", "attributes.long_1", "none of them").want(422, "none of them")
	nora.get(strings.TrimSuffix(at, "?done=created")).want(200, strings.Repeat("&#43;", 250)+"12")
}
