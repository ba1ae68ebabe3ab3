package console

import (
	"context"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	w.as(w.mei).get("/settings/events").want(403, "Nora Lindqvist")
	w.writes("+34 612 34 56 78", "Lucía Fernández", "Hello")
	path, id := w.person("34612345679", "Olivia", "")
	nora.post(path + "/delete").sends("/contacts?done=deleted")
	name, permissions := "CRM", "contacts:read"
	boss, err := w.app.Access.Member(context.Background(), w.ws, w.nora.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.app.CreateKey(context.Background(), boss, app.KeyEdit{Name: &name, Permissions: &permissions}); err != nil {
		t.Fatal(err)
	}
	w.attribute("plan", "Plan", desk.TextAttribute)
	nora.get("/settings/events").want(200, "Nora Lindqvist</bdi></b> made the key", "CRM", "deleted a contact", "received a message of", "Sandbox").
		lacks(id.String()).golden("events/log")
	settings := nora.get("/settings/events?types=settings").want(200, "made the key", "added the attribute", "added the member").lacks("received a message", "deleted a contact").golden("events/settings")
	if n := strings.Count(settings.body, "<tr id="); n < 5 {
		t.Errorf("%d rows", n)
	}
	nora.get("/settings/events?types=webhook").want(200, "Nothing of this kind here")
	nora.get("/settings/events?types=nonsense").want(200, "made the key", "received a message of")
	for range pageRows {
		w.writes("+34 612 34 56 78", "", "Again")
	}
	page := nora.get("/settings/events?types=message").want(200, "Further back").body
	_, next, _ := strings.Cut(page, `href="/settings/events?types=message&amp;after=`)
	next, _, _ = strings.Cut(next, `"`)
	nora.get("/settings/events?types=message&after="+next).want(200, "received a message of", "Newest").lacks("Further back")
	nora.get("/settings/events?types=settings&after="+next).want(200, "made the key")
}

// TestEvents_broadcasts: a broadcast has its name and a link, unless it was deleted.
func TestEvents_broadcasts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora := w.as(w.nora)
	sale, gone := w.drafted("Spring <sale>", nil), w.drafted("Gone", nil)
	nora.post(broadcastPath(gone.ID) + "/delete").sends("/broadcasts?done=deleted")
	nora.get("/settings/events?types=broadcast").want(200, `made the broadcast <a href="`+broadcastPath(sale.ID)+`" data-row><bdi>Spring &lt;sale&gt;</bdi></a>`,
		"made the broadcast <bdi>that was deleted</bdi>", "deleted a broadcast ").lacks(broadcastPath(gone.ID))
}

// TestEventWords: each type of event has words, and is shown by a filter.
func TestEventWords(t *testing.T) {
	t.Parallel()
	for _, e := range desk.EventTypes {
		if eventWords[e] == "" {
			t.Errorf("no words for %s", e)
		}
		shown := false
		for _, f := range eventFilters {
			shown = shown || f.Value == e.Kind()
		}
		if !shown {
			t.Errorf("no filter for %s", e)
		}
	}
	if len(eventWords) != len(desk.EventTypes) {
		t.Errorf("%d words for %d types", len(eventWords), len(desk.EventTypes))
	}
}
