package console

import (
	"strings"
	"testing"

	"parley/desk"
)

// TestAvailability: a member sets the member's own availability. An admin can also set
// that of other members.
func TestAvailability(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei, nora := w.as(w.mei), w.as(w.nora)
	mei.get("/me").want(200, "I am away").lacks("I am here again")
	mei.post("/me/availability", "available", "no").sends("/me?done=away")
	if !w.operator().Settings.Member(w.mei.ID).Away {
		t.Error("Mei is not away")
	}
	mei.get("/me?done=away").want(200, "I am here again", "nothing new is given to you").golden("me/away")
	mei.get("/inbox").want(200, `<span class="pill warn">Away</span>`)
	// The list of assignees shows who is away. The reply form of another member's
	// conversation names its holder.
	held := "/inbox/" + w.writes("+34 612 34 56 70", "Sofia", "Hello").ID.String()
	g := nora.get(held).want(200, "Mei Tanaka (away)</option>", `placeholder="Reply to Sofia"`)
	nora.post(held+"/assign", "to", w.mei.ID.String(), "seen_message", value(t, g.body, "seen_message"), "seen_status", "open")
	nora.get(held).want(200, `placeholder="Reply to Sofia (held by Mei Tanaka)"`)
	nora.get("/inbox").want(200).lacks(`<span class="pill warn">Away</span>`)
	nora.get("/settings/members").want(200, `<span class="pill warn">Away</span>`)
	path := "/settings/members/" + w.mei.ID.String()
	nora.get(path).want(200, "They are here again")
	nora.post(path+"/availability", "available", "yes").sends(path + "?done=they-are-here")
	nora.post(path+"/availability", "available", "no").sends(path + "?done=they-are-away")
	mei.post(path+"/availability", "available", "yes").want(403)
	mei.post("/me/availability", "available", "yes").sends("/me?done=here")
	if w.operator().Settings.Member(w.mei.ID).Away {
		t.Error("Mei is away still")
	}
}

// TestWaiting: the navigation and the title of every page have the number of the member's
// own conversations in which a customer waits. The number is kept up to date.
func TestWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	mei.get("/contacts").want(200, ">Contacts · Harbour Books · parley<").lacks("of yours waiting")
	for _, phone := range []string{"+34 612 34 56 70", "+34 612 34 56 71"} {
		id := w.writes(phone, "Sofia", "Hello").ID
		if _, err := w.app.Assign(t.Context(), w.operator(), id, w.mei.ID.String(), nil); err != nil {
			t.Fatal(err)
		}
	}
	w.writes("+34 612 34 56 72", "Bruno", "Hello") // unassigned
	for path, status := range map[string]int{"/contacts": 200, "/overview": 200, "/me": 200, "/inbox?view=closed": 200, "/sends": 200, "/settings": 403} {
		mei.get(path).want(status, `data-status="of yours waiting">2</b>`, ">(2) ")
	}
	w.as(w.nora).get("/contacts").want(200).lacks("of yours waiting")
	mei.header.Set("Parley-Part", "waiting")
	mei.get("/me/news").want(200, `<div id="waiting"><b class="count" data-status="of yours waiting">2</b>`).lacks("Sofia")
}

// TestSound: the sound is a setting of each browser.
func TestSound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	mei.get("/me").want(200, `name="sound"`).lacks("data-sound")
	g := mei.post("/me/look", "sound", "yes").sends("/me?done=saved")
	if set := strings.Join(g.header.Values("Set-Cookie"), "\n"); !strings.Contains(set, "sound=on") || !strings.Contains(set, "keys=off") {
		t.Errorf("cookies %q", set)
	}
	mei.header.Set("Cookie", "sound=on")
	mei.get("/contacts").want(200, ` data-sound="on"`)
	mei.get("/me").want(200, `id="f-sound" name="sound" type="checkbox" value="yes" checked`)
}

// TestNews: the page lists the unread messages of the member's own conversations and of
// unassigned ones.
func TestNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	mei.get("/me/news").want(200, "Nothing new").golden("me/news-none")
	mine := w.writes("+34 612 34 56 70", "Sofia <b>", "Secret words")
	theirs := w.writes("+34 612 34 56 71", "Bruno", "Hello")
	read := w.writes("+34 612 34 56 72", "Carla", "Hello")
	w.writes("+34 612 34 56 73", "Diego", "Hello")
	for id, member := range map[desk.ID]desk.ID{mine.ID: w.mei.ID, theirs.ID: w.tomas.ID} {
		if _, err := w.app.Assign(t.Context(), w.operator(), id, member.String(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.app.MarkRead(t.Context(), w.operator(), read.ID, desk.ID{}, false); err != nil {
		t.Fatal(err)
	}
	mei.get("/me/news").want(200, "Sofia &lt;b&gt;", "yours", "Diego", "unassigned").lacks("Bruno", "Carla", "Secret words", "Hello").golden("me/news")
	mei.header.Set("Parley-Part", "news")
	mei.get("/me/news").want(200, `<div id="news"><ul`).lacks("<html")
}

// TestEnterSends: whether Enter sends is a setting of each browser.
func TestEnterSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	mei.get("/me").want(200, `name="enter" type="checkbox" value="yes" aria-describedby`).lacks(`data-enter="on"`)
	set := strings.Join(mei.post("/me/look", "theme", "", "keys", "yes", "enter", "yes").sends("/me?done=saved").header["Set-Cookie"], "\n")
	if !strings.Contains(set, "enter=on;") {
		t.Errorf("cookies: %s", set)
	}
	mei.header.Set("Cookie", "enter=on")
	mei.get("/me").want(200, `data-enter="on"`, `name="enter" type="checkbox" value="yes" checked`)
	if set = strings.Join(mei.post("/me/look", "theme", "").header["Set-Cookie"], "\n"); !strings.Contains(set, "enter=off;") {
		t.Errorf("cookies: %s", set)
	}
}
