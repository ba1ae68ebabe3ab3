package console

import (
	"fmt"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

// snippet returns the text of a saved reply, or "".
func (w *world) snippet(shortcut string) string {
	w.t.Helper()
	list, _, err := w.app.Snippets(w.t.Context(), w.operator(), app.SnippetQuery{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range list {
		if v.Shortcut == shortcut {
			return v.Text
		}
	}
	return ""
}

func TestSnippets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(w.nora)
	v.get("/settings/snippets").want(200, "No saved replies yet").golden("snippets/none")
	v.get("/settings/snippets/new").want(200, "{{customer_first_name}}", "for example <bdi>Nora Lindqvist</bdi>", "Nothing written yet").golden("snippets/new")
	add := func(pairs ...string) got { return v.post("/settings/snippets/new", pairs...) }
	add("shortcut", "", "text", "Hi").want(422, "Error: ", "A shortcut is 1 to 32 characters")
	add("shortcut", "Hi", "text", "Hi <b>").want(422, "A shortcut is 1 to 32 characters", "Hi &lt;b&gt;").golden("snippets/error")
	add("shortcut", "hi", "text", " ").want(422, "Give a text of 1 to 4096 characters")
	add("shortcut", "hi", "text", "Hi {{name}}").want(422, "is no placeholder").lacks(": use {{")
	add("shortcut", "hi", "text", strings.Repeat("x", 4097)).want(422, "at most 4096 characters")
	add("shortcut", "hi", "text", "Hi {{customer_first_name}}", "preview", "1").want(200, "Hi Ada</p>")
	if w.snippet("hi") != "" {
		t.Error("a preview stores the saved reply")
	}
	add("shortcut", "hi", "text", "Hi {{customer_first_name}},\r\nwe are *{{agent_name}}*.").sends("/settings/snippets?done=added")
	add("shortcut", "hi", "text", "Other").want(422, "Another saved reply has this shortcut", "Other")
	if got := w.snippet("hi"); got != "Hi {{customer_first_name}},\nwe are *{{agent_name}}*." {
		t.Errorf("stored: %q", got)
	}
	add("shortcut", "new", "text", "A shortcut like a path").sends("/settings/snippets?done=added")
	v.get("/settings/snippets/new").want(200, "New saved reply")
	v.get("/settings/snippets/new/edit").want(200, "A shortcut like a path")
	v.get("/settings/snippets?done=added").want(200, "Added.", "/hi", "Hi {{customer_first_name}}, we are *{{agent_name}}*.").golden("snippets/list")

	path := "/settings/snippets/hi/edit"
	seen := "Hi {{customer_first_name}},\r\nwe are *{{agent_name}}*."
	v.get(path).want(200, "Hi Ada,\nwe are <strong>Nora Lindqvist</strong>.").golden("snippets/edit")
	v.post(path, "seen", seen, "text", "").want(422, "Give a text")
	v.post(path, "seen", seen, "text", "Hello").sends("/settings/snippets?done=saved")
	// Another member has saved first.
	v.post(path, "seen", seen, "text", "Mine").want(409, "changed this saved reply meanwhile", "The text is now", "Save anyway", `name="seen" value="Hello"`, ">Mine</textarea>").golden("snippets/changed")
	if got := w.snippet("hi"); got != "Hello" {
		t.Errorf("stored: %q", got)
	}
	v.post(path, "seen", "Hello", "text", "Mine").sends("/settings/snippets?done=saved")
	v.post(path, "seen", "Hello", "text", "Mine").sends("/settings/snippets?done=saved") // the same text once more
	v.get("/settings/snippets/gone/edit").want(404)
	v.post("/settings/snippets/gone/edit", "seen", "", "text", "x").want(404)

	v.get("/settings/snippets/hi/delete").want(200, "Delete /hi?", "Mine").golden("snippets/delete")
	if w.snippet("hi") == "" {
		t.Error("asking deletes")
	}
	v.post("/settings/snippets/hi/delete").sends("/settings/snippets?done=deleted")
	v.post("/settings/snippets/hi/delete").want(404)
	v.get("/settings/events").want(200, `href="/settings/snippets/new/edit"`, "removed the saved reply")
	w.as(w.mei).get("/settings/snippets").want(403, "An admin can do it")
}

// TestSnippets_many: a long list has several pages. When the workspace has as many saved
// replies as it can have, the page says so.
func TestSnippets_many(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range desk.MaxSnippets {
		if _, _, err := w.app.PutSnippet(t.Context(), w.operator(), fmt.Sprintf("s%03d", i), strings.Repeat("word ", 800)); err != nil {
			t.Fatal(err)
		}
	}
	v := w.as(w.nora)
	g := v.get("/settings/snippets").want(200, "You have 500 saved replies", "/s099<", "?after=s099").lacks("/s100<", "New saved reply")
	if len(g.body) > 60<<10 {
		t.Errorf("the page has %d bytes", len(g.body))
	}
	v.get("/settings/snippets?after=s399").want(200, "/s400<", "/s499<", "From the first").lacks("Next 100")
	v.get("/settings/snippets?after=zzz").want(200)
	v.post("/settings/snippets/new", "shortcut", "one-more", "text", "x").want(422, "no more are possible")
}
