package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/app/segments"
	"parley/desk"
)

// segment stores a segment with conditions that are JSON.
func (w *world) segment(key, name, conditions string) {
	w.t.Helper()
	e := segments.Edit{Key: key, Name: name}
	err := json.Unmarshal([]byte(`{"all":[`+conditions+`]}`), &e.Filter)
	if err == nil {
		_, _, err = w.app.Segments.Put(w.t.Context(), w.operator(), e)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// storedSegment returns the filter of a segment as JSON, or "".
func (w *world) storedSegment(key string) string {
	w.t.Helper()
	v, err := w.app.Segments.Segment(w.t.Context(), w.operator(), key)
	if desk.IsType(err, desk.NotFound) {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return string(v.Filter.AppendJSON(nil))
}

func TestSegments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("34612345670", "Lucía", "")
	w.person("905321234567", "Deniz", "")
	v := w.as(w.nora)
	v.get("/settings/segments").want(200, "No segments yet").golden("segments/none")
	v.get("/settings/segments/new").want(200, "Complete the conditions", `value="wrote_at">Last wrote`).golden("segments/new")
	add := func(pairs ...string) got { return v.post("/settings/segments/new", pairs...) }
	add("name", "", "c.add", "").want(422, "Error: ", "Add at least one condition.")
	// Lines are added and removed without storing anything.
	add("name", "Iberia", "c.add", "country", "c.new", "yes").want(200, `name="c.0.field" value="country"`, `value="Iberia"`, "Complete the conditions").lacks("Error: ")
	add("name", "Iberia", "c.add", "name", "c.new", "yes").want(200, `name="c.0.field" value="name"`, "contacts fit now.") // as the browser shows it: known
	add("name", "Iberia", "c.0.field", "country", "c.0.is", "in", "c.0.values", "es\r\npt", "c.add", "wrote_at", "c.new", "yes").
		want(200, `name="c.1.field" value="wrote_at"`, ">es\npt</textarea>", "One of them is enough").golden("segments/added")
	lines := []string{"name", "Iberia", "c.0.field", "country", "c.0.is", "in", "c.0.values", "es\r\npt", "c.1.field", "wrote_at", "c.1.join", "and", "c.1.is", "older", "c.1.days", "90",
		"c.2.field", "wrote_at", "c.2.join", "or", "c.2.is", "absent", "c.2.days", "7"}
	add(append(lines, "c.remove", "0")...).want(200, `name="c.0.field" value="wrote_at"`).lacks("c.2.field")
	add(append(lines, "preview", "yes")...).want(200, "1 contact fits now.")
	if w.storedSegment("iberia") != "" {
		t.Error("a preview stores the segment")
	}
	add(lines...).sends("/settings/segments?done=added")
	const want = `{"all":[{"field":"country","is":"in","values":["ES","PT"]},{"any":[{"field":"wrote_at","is":"older","days":90},{"field":"wrote_at","is":"absent"}]}]}`
	if got := w.storedSegment("iberia"); got != want {
		t.Errorf("stored: %s", got)
	}
	add(lines...).sends("/settings/segments?done=added") // another one with this name
	if w.storedSegment("iberia_2") != want {
		t.Error("the second segment of this name has another key")
	}
	add(append(lines, "key", "iberia")...).want(422, "Another segment has this key")
	add(append(lines, "key", "Not a key")...).want(422, "A key is 1 to 32 characters")
	v.get("/settings/segments?done=added").want(200, "Added.", "Country of the number: one of ES, PT; Last wrote: more than 90 days ago, or Last wrote: never").golden("segments/list")

	path := "/settings/segments/iberia/edit"
	seen := valueOf(v.get(path).want(200, "1 contact fits now.", ">ES\nPT</textarea>").golden("segments/edit").body, "seen")
	v.post(path, "seen", seen, "name", "Spain", "c.0.field", "country", "c.0.is", "in", "c.0.values", "ES").sends("/settings/segments?done=saved")
	// Another member has saved first.
	changed := v.post(path, append(lines, "seen", seen)...).want(409, "has changed this segment meanwhile")
	v.post(path, append(lines, "seen", valueOf(changed.body, "seen"))...).sends("/settings/segments?done=saved")
	v.get("/settings/segments/gone/edit").want(404)
	v.post("/settings/segments/gone/edit", lines...).want(404)

	v.get("/settings/segments/iberia/delete").want(200, "Delete Iberia?", "Its contacts stay.").golden("segments/delete")
	v.post("/settings/segments/iberia/delete").sends("/settings/segments?done=deleted")
	v.post("/settings/segments/iberia/delete").want(404)
	v.get("/settings/events").want(200, `href="/settings/segments/iberia_2/edit"`, "removed the segment")
	w.as(w.mei).get("/settings/segments").want(403, "An admin can do it")
}

// TestSegments_zone: times are read in the zone in which the form shows them, so that a filter stays
// as it is when its reader has travelled.
func TestSegments_zone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	w.segment("recent", "Recent", `{"field":"created_at","is":"at_least","value":"2026-03-14T09:00:00.000Z"}`)
	filter := w.storedSegment("recent")
	b := w.drafted("Spring", nil)
	v := w.as(w.nora)
	again := func(path string, changed ...string) got {
		v.header.Set("Cookie", "tz=Europe/Madrid")
		page := v.get(path).want(200, `value="2026-03-14T10:00"`, "In the zone Europe/Madrid.").body
		v.header.Set("Cookie", "tz=Asia/Tokyo")
		return v.post(path, sentBy(t, page, `data-preview="count"`, changed...)...)
	}
	again("/settings/segments/recent/edit", "name", "New ones").sends("/settings/segments?done=saved")
	if got := w.storedSegment("recent"); got != filter {
		t.Errorf("the segment is %s, was %s", got, filter)
	}
	v.header.Set("Cookie", "tz=Europe/Madrid")
	audience := broadcastPath(b.ID) + "/audience"
	v.post(audience, "from", "filter", "c.0.field", "created_at", "c.0.is", "at_least", "c.0.value", "2026-03-14T10:00").want(303)
	again(audience).want(303)
	if got := string(w.broadcastNow(b.ID).Audience.Filter.AppendJSON(nil)); got != filter {
		t.Errorf("the audience is %s", got)
	}
}

// TestSegments_fields: each kind of field is read from the form, shown again, and mistakes stand
// beside it.
func TestSegments_fields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(w.nora)
	for key, kind := range map[string]desk.AttributeType{"word": desk.TextAttribute, "agreed": desk.BooleanAttribute, "spent": desk.NumberAttribute, "born": desk.DateAttribute, "visit": desk.DatetimeAttribute} {
		if _, _, err := w.app.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: key, Type: desk.Field[string]{Set: true, Value: string(kind)}}); err != nil {
			t.Fatal(err)
		}
	}
	for n, c := range []struct {
		field, is string
		sent      []string // of the first line, by the rest of the name
		want      string   // stored, or if it begins with "!", the mistake
	}{
		{"owner", "in", []string{"values", w.mei.ID.String(), "values", w.nora.ID.String()}, `"values":["` + w.mei.ID.String() + `","` + w.nora.ID.String() + `"]`},
		{"owner", "in", []string{"values", w.nora.Email}, `"values":["` + w.nora.ID.String() + `"]`},
		{"owner", "in", []string{"values", "nobody@example.com"}, "!Nobody of the team has the e-mail"},
		{"owner", "in", nil, "!Give 1 to 100 of them."},
		{"owner", "", nil, "!Choose one."},
		{"country", "in", []string{"values", "TR\r\nXX"}, "!Send the code of a country"},
		{"attributes.word", "not_in", []string{"values", " Ünal \r\n\r\nx"}, `"values":["Ünal","x"]`},
		{"attributes.agreed", "in", []string{"values", "true"}, `"values":[true]`},
		{"attributes.spent", "at_least", []string{"value", " 12.50 "}, `"value":12.5`},
		{"attributes.spent", "below", []string{"value", "many"}, "!Send a number."},
		{"attributes.born", "below", []string{"value", "2026-01-31"}, `"value":"2026-01-31"`},
		{"attributes.born", "below", []string{"value", ""}, "!Send a date"},
		{"attributes.visit", "at_least", []string{"value", "2026-01-31T09:30"}, `"value":"2026-01-31T09:30:00.000Z"`},
		{"created_at", "at_least", []string{"value", "2026-01-31T09:30:05.007"}, `"value":"2026-01-31T09:30:05.007Z"`},
		{"created_at", "at_least", []string{"value", "soon"}, "!Give a date and a time."},
		{"created_at", "within", []string{"days", "3651"}, "!Send a whole number from 0 to 3650."},
		{"created_at", "within", []string{"days", "x"}, "!Send a whole number from 0 to 3650."},
		{"attributes.gone", "present", nil, "!There is no attribute with the key"},
	} {
		key := fmt.Sprint("s", n)
		pairs := []string{"name", "S", "key", key, "c.0.field", c.field, "c.0.is", c.is}
		for i := 0; i < len(c.sent); i += 2 {
			pairs = append(pairs, "c.0."+c.sent[i], c.sent[i+1])
		}
		g := v.post("/settings/segments/new", pairs...)
		if mistake, refused := strings.CutPrefix(c.want, "!"); refused {
			g.want(422, mistake, "Error: ")
			continue
		}
		g.sends("/settings/segments?done=added")
		stored := w.storedSegment(key)
		if !strings.Contains(stored, c.want) {
			t.Errorf("%s %s: stored %s", c.field, c.is, stored)
		}
		// The page shows what is stored: saved again, it is the same.
		at := "/settings/segments/" + key + "/edit"
		v.post(at, sentBy(t, v.get(at).want(200).body, `action="`+at+`"`)...).sends("/settings/segments?done=saved")
		if got := w.storedSegment(key); got != stored {
			t.Errorf("saved again: %s, was %s", got, stored)
		}
	}
}

// TestSegments_many: when the workspace has as many segments as it can have, the page says so.
func TestSegments_many(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range desk.MaxSegments {
		w.segment(fmt.Sprintf("s%03d", i), strings.Repeat("n", 100), `{"field":"country","is":"in","values":["TR","ES","US","GB","FR"]}`)
	}
	v := w.as(w.nora)
	g := v.get("/settings/segments").want(200, "You have 200 segments", ">s099<", "?after=s099", "TR, ES, US, 2 more").lacks(">s100<", "New segment")
	if len(g.body) > 60<<10 {
		t.Errorf("the page has %d bytes", len(g.body))
	}
	v.get("/settings/segments?after=s099").want(200, ">s100<", ">s199<", "From the first").lacks("Next 100")
	v.post("/settings/segments/new", "name", "One more", "c.0.field", "name", "c.0.is", "present").want(422, "no more are possible")
}
