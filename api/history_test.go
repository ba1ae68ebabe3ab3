package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
)

// historyOf returns the history of a contact, page by page.
func (s *server) historyOf(id, limit string) (items []map[string]any) {
	s.t.Helper()
	for path := "/v1/contacts/" + id + "/history?limit=" + limit; path != ""; {
		var page struct {
			Data []map[string]any
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(s.want(200, "GET "+path, ""), &page); err != nil {
			s.t.Fatal(err)
		}
		items = append(items, page.Data...)
		if path = ""; page.Next != "" {
			path = "/v1/contacts/" + id + "/history?limit=" + limit + "&cursor=" + url.QueryEscape(page.Next)
		}
	}
	return items
}

// TestHistory: the creation and the changes of a contact, with the ids of their events, also
// after the events have expired (contract-data §7).
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.indexed()
	ada := contact(t, s.want(201, "POST /v1/contacts", `{"name":"Ada","external_id":"1"}`)).ID
	bob := contact(t, s.want(201, "POST /v1/contacts", `{"name":"Bob","external_id":"2"}`)).ID
	s.want(200, "PATCH /v1/contacts/"+ada, `{"name":"Ada L.","note":"x"}`)
	s.want(200, "PATCH /v1/contacts/"+ada, `{"name":"Ada L.","note":"x"}`) // changes nothing
	s.want(200, "PUT /v1/contacts/"+ada+"/owner", `{"owner":"ada@example.com"}`)
	var feed struct {
		Data []struct {
			ID, Type, Timestamp string
			Actor               map[string]any
			Subject             struct{ ID string }
		}
	}
	if err := json.Unmarshal(s.want(200, "GET /v1/events?types=contact.*", ""), &feed); err != nil {
		t.Fatal(err)
	}
	s.indexed()
	if err := s.app.Feed.Forget(t.Context(), -time.Hour); err != nil { // all have expired
		t.Fatal(err)
	}
	if page := string(s.want(200, "GET /v1/events", "")); !strings.HasPrefix(page, `{"data":[]`) {
		t.Errorf("events are left: %s", page)
	}
	all := s.historyOf(ada, "50")
	if len(all) != 3 || len(s.historyOf(bob, "50")) != 1 {
		t.Fatalf("%d and %d items, want 3 and 1", len(all), len(s.historyOf(bob, "50")))
	}
	if paged := s.historyOf(ada, "1"); len(paged) != 3 || paged[2]["id"] != all[2]["id"] {
		t.Errorf("by pages: %v", paged)
	}
	for i, want := range []string{`contact.updated ["owner"]`, `contact.updated ["name","note"]`, `contact.created []`} {
		changed, _ := json.Marshal(all[i]["changed"])
		if got := all[i]["type"].(string) + " " + string(changed); got != want {
			t.Errorf("item %d is %s, want %s", i, got, want)
		}
		found := false
		for _, e := range feed.Data {
			if e.ID == all[i]["id"] {
				found = e.Subject.ID == ada && e.Type == all[i]["type"] && e.Timestamp == all[i]["timestamp"] && e.Actor["id"] == all[i]["actor"].(map[string]any)["id"]
			}
		}
		if !found || all[i]["contact_id"] != ada {
			t.Errorf("item %d is not the event: %v", i, all[i])
		}
	}
	s.want(400, "GET /v1/contacts/"+ada+"/history?order=oldest", "")
	s.want(400, "GET /v1/contacts/"+bob+"/history?cursor=x", "")
	s.want(204, "DELETE /v1/contacts/"+ada, "")
	s.want(404, "GET /v1/contacts/"+ada+"/history", "")
}
