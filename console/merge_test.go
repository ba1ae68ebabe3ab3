package console

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"parley/desk"
)

// twins makes two records of one person, who has an open conversation with each, and returns
// the paths of their pages.
func (w *world) twins() (stays, other string) {
	w.t.Helper()
	w.attribute("plan", "Plan", desk.SelectAttribute, "free", "pro")
	stays, id := w.person("34612345678", "Lucía Fernández", "mei@harbour.example")
	other, _ = w.person("34612345679", "Lucia F.", "nora@harbour.example")
	w.writes("+34612345678", "", "From the old phone")
	w.writes("+34612345679", "", "From the new phone")
	mei := w.as(w.mei)
	mei.post(stays, "name", "Lucía Fernández", "was.name", "Lucía Fernández", "attributes.plan", "free", "was.attributes.plan", "").sends(stays + "?done=saved")
	mei.post(other, "email", "lucia@example.com", "was.email", "", "attributes.plan", "pro", "was.attributes.plan", "").sends(other + "?done=saved")
	if c := w.stored(id); c.Attributes.JSON() != `{"plan":"free"}` {
		w.t.Fatalf("%s", c.Attributes.JSON())
	}
	w.indexed()
	return stays, other
}

// merging returns the address of the page that merges the contact of another page.
func merging(stays, other string) string {
	return stays + "/merge?with=" + strings.TrimPrefix(other, "/contacts/")
}

var seenVersions = regexp.MustCompile(`name="seen" value="([^"]+)"`)

// undoAt is the link to the undo of a merge on the page of a contact.
var undoAt = regexp.MustCompile(`href="(/contacts/merges/[^"]+/undo)"`)

// TestMerge: an agent finds the other record, sees both side by side, chooses, merges, and
// undoes that.
func TestMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	stays, other := w.twins()
	mei.get(stays).want(200, `href="`+stays+`/merge"`).lacks("<h2>Merged</h2>")
	mei.get(stays+"/merge?q=lucia").want(200, "Lucia F.", `href="`+merging(stays, other)+`"`).lacks(merging(stays, stays)).golden("contacts/merge_find")
	mei.get(stays+"/merge").want(200, `value="Lucía Fernández"`, "Nobody else fits")
	mei.get(stays + "/merge?q=+").want(200).lacks("Nobody else fits")

	at := merging(stays, other)
	page := mei.get(at).want(200, `name="keep.name" value="stays" aria-labelledby="l-name a-name" checked`, `name="keep.attributes.plan"`, `<bdi>lucia@example.com</bdi> <span class="soft">is added`,
		"2 addresses and 1 conversation", "The one of", merging(other, stays)).golden("contacts/merge").body
	if strings.Contains(page, `name="keep.email"`) {
		t.Error("the page asks about a field of which only one has a value")
	}
	seen := seenVersions.FindStringSubmatch(page)[1]
	mei.post(at, "seen", "1.1", "keep.name", "other").want(409, "look again", `value="other" aria-labelledby="l-name b-name" checked`)
	mei.post(at, "seen", seen, "keep.name", "other", "keep.attributes.plan", "stays", "keep.nonsense", "other").sends(stays + "?done=merged")
	mei.post(at, "seen", seen, "keep.name", "other").sends(stays + "?done=merged") // a second click
	page = mei.get(stays+"?done=merged").want(200, "Merged. This can be undone for 30 days.", `value="Lucia F."`, `value="lucia@example.com"`, `value="free" selected`, "34 612 34 56 79", "Mei Tanaka").golden("contacts/merged").body
	for _, gone := range []string{other, at, merging(other, stays), other + "/merge"} {
		mei.get(gone).want(404, "was merged into another one", `href="`+stays+`"`)
	}
	mei.get(other).golden("contacts/merged_away")

	undo := undoAt.FindStringSubmatch(page)[1]
	mei.get(undo).want(200, "Undo the merge of", "2 addresses and 1 conversation", "E-mail, Name.").golden("contacts/unmerge")
	w.as(w.nora).post(undo).sends(undo)
	mei.get(undo).want(200, "The merge is undone", stays, other, "All is as it was before").golden("contacts/unmerged")
	mei.post(undo).sends(undo)
	mei.get(stays).want(200, `value="Lucía Fernández"`).lacks("lucia@example.com", "<h2>Merged</h2>")
	mei.get(other).want(200, "lucia@example.com")
}

// TestMerge_missing: what an undo can't restore is told before and after it.
func TestMerge_missing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	stays, other := w.twins()
	at := merging(stays, other)
	page := mei.get(at).body
	mei.post(at, "seen", seenVersions.FindStringSubmatch(page)[1], "keep.name", "other").sends(stays + "?done=merged")
	mei.post(stays, "name", "L.", "was.name", "Lucia F.").sends(stays + "?done=saved")
	undo := undoAt.FindStringSubmatch(mei.get(stays).body)[1]
	mei.get(undo).want(200, "This can&#39;t be restored:", "Name: was changed since, and stays as it is.").golden("contacts/unmerge_missing")
	mei.post(undo).sends(undo)
	mei.get(undo).want(200, "Not restored", "Name: was changed since").lacks("All is as it was").golden("contacts/unmerged_missing")
}

// TestMerge_refused: what can't be merged or undone is told in words, with the way on.
func TestMerge_refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	stays, id := w.person("34612345678", "Lucía", "")
	other, _ := w.person("34612345679", "Lucia", "")
	third, _ := w.person("34612345680", "L. F.", "")
	w.indexed()
	mei.get(merging(stays, stays)).want(422, "This is the contact itself", `id="f-other"`).golden("contacts/merge_itself")
	mei.post(merging(stays, stays)).want(422, "This is the contact itself")
	mei.get(stays+"/merge?with=nonsense").want(404, "Not here")
	for _, from := range []string{other, third} {
		at := merging(stays, from)
		mei.post(at, "seen", seenVersions.FindStringSubmatch(mei.get(at).body)[1]).sends(stays + "?done=merged")
	}
	undo := undoAt.FindAllStringSubmatch(mei.get(stays).want(200, "Lucia", "L. F.").body, -1)
	if len(undo) != 2 {
		t.Fatalf("%v", undo)
	}
	newer, older := undo[0][1], undo[1][1]
	mei.get(older).want(409, "Not undone", "A later merge of this contact comes first", `href="`+newer+`"`).golden("contacts/unmerge_blocked")
	mei.post(older).want(409, "A later merge", newer)
	w.clock.Add(desk.UndoMerge.Milliseconds())
	mei.get(newer).want(409, "30 days").golden("contacts/unmerge_expired")
	mei.post(newer).want(409, "30 days")
	mei.get(stays).want(200).lacks("<h2>Merged</h2>")
	if c := w.stored(id); c.Name != "Lucía" || len(c.Further) != 2 {
		t.Errorf("%+v", c)
	}
}

// TestMerge_same: only what both have and what differs is a choice.
func TestMerge_same(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stays, _ := w.person("34612345678", "سارة", "mei@harbour.example")
	other, _ := w.person("34612345679", "سارة", "mei@harbour.example")
	w.indexed()
	mei := w.as(w.mei)
	mei.get(stays+"/merge?q="+url.QueryEscape("سارة")).want(200, other[len("/contacts/"):])
	page := mei.get(merging(stays, other)).want(200, `name="keep.phone"`).lacks(`name="keep.name"`, `name="keep.owner"`, "Closed, because", "0 conversation").body
	mei.post(merging(stays, other), "seen", seenVersions.FindStringSubmatch(page)[1]).sends(stays + "?done=merged")
	mei.get(stays).want(200, "34 612 34 56 79</bdi> <span class=\"soft\">by")
}

// TestMerge_log: the log of events names merges.
func TestMerge_log(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stays, other := w.twins()
	at := merging(stays, other)
	w.as(w.mei).post(at, "seen", seenVersions.FindStringSubmatch(w.as(w.mei).get(at).body)[1]).sends(stays + "?done=merged")
	w.as(w.nora).get("/settings/events?types=merge").want(200, "merged another contact into", "Lucía Fernández")
}
