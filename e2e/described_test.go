package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"parley/api/apitest"
)

// An inspector is an endpoint that compares each request with the API description. Of
// every second event, it refuses the first try.
type inspector struct {
	*httptest.Server
	mu    sync.Mutex
	tries map[string]int    // by event
	types map[string]string // of the accepted events and pings
}

func newInspector(t *testing.T) *inspector {
	t.Helper()
	text, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	description, err := apitest.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	i := &inspector{tries: map[string]int{}, types: map[string]string{}}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		name, err := description.CheckDelivery(r, body)
		if err != nil {
			t.Errorf("outside the API description: %v\n%.600s", err, body)
		}
		var e struct{ ID, Type string }
		if err := json.Unmarshal(body, &e); err != nil || e.ID != r.Header.Get("Webhook-Id") || (name == "ping") != (e.Type == "webhook.ping") {
			t.Errorf("%v: %s as %s with the id %q", err, body, name, r.Header.Get("Webhook-Id"))
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.tries[e.ID]++; len(i.tries)%2 == 0 && i.tries[e.ID] == 1 && name == "event" {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		i.types[e.ID] = e.Type
	}))
	t.Cleanup(i.Close)
	return i
}

// got returns the types of the events and pings that the inspector has accepted.
func (i *inspector) got() (types []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range i.types {
		types = append(types, name)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// TestDeliveriesFitTheDescription: the requests of a server to an endpoint match the
// webhooks in the API description: for every kind of event, and for a ping.
func TestDeliveriesFitTheDescription(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir, "--country", "US")
	channel := must(t, dir, "channel", "add", "sandbox", "--workspace", workspace)["channel_id"].(string)
	s := serve(t, dir, "--webhook-allow", "127.0.0.0/8", "--webhook-schedule", "100ms,100ms,100ms")
	endpoint := newInspector(t)
	answer := s.want(t, 201, key, "POST", "/webhooks", fmt.Sprintf(`{"url":%q}`, endpoint.URL))
	var webhook struct{ Data struct{ ID string } }
	if err := json.Unmarshal([]byte(answer), &webhook); err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(t.TempDir(), "template.json")
	if err := os.WriteFile(template, []byte(generatedTemplate), 0o600); err != nil {
		t.Fatal(err)
	}
	contact := func(externalID string) string {
		t.Helper()
		var c struct{ Data struct{ ID string } }
		body := s.want(t, 201, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":%q}`, externalID))
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		return c.Data.ID
	}
	s.want(t, 201, key, "POST", "/attributes", `{"key":"plan","type":"select","options":["free","pro"]}`)
	s.want(t, 200, key, "POST", "/attributes", `{"key":"plan","label":"Plan"}`)
	s.want(t, 200, key, "PATCH", "/contacts/"+contact("kept"), `{"name":"Ada","attributes":{"plan":"pro"}}`)
	s.want(t, 204, key, "DELETE", "/contacts/"+contact("gone"), "")
	must(t, dir, "template", "put", "--channel", channel, "--file", template)
	member := must(t, dir, "member", "add", "--workspace", workspace, "--name", "Grace", "--email", "grace@example.com")["member_id"].(string)
	must(t, dir, "member", "edit", member, "--name", "Grace Hopper")
	must(t, dir, "workspace", "edit", workspace, "--name", "Acme")
	must(t, dir, "sandbox", "inbound", "--channel", channel, "--from", "+1 202 555 0143", "--text", "STOP")
	must(t, dir, "sandbox", "inbound", "--channel", channel, "--from", "+1 202 555 0143", "--text", "start")
	var talks struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.want(t, 200, key, "GET", "/conversations", "")), &talks); err != nil || len(talks.Data) != 1 {
		t.Fatal(err, talks)
	}
	s.want(t, 200, key, "PUT", "/conversations/"+talks.Data[0].ID+"/assignee", `{"member":"grace@example.com"}`)
	for n, number := range []string{"+12025550143", "+12025550004"} { // the send to the second number fails
		status, body := s.call(t, key, "POST", "/conversations/outbound", fmt.Sprintf(
			`{"to":{"phone":%q},"opt_in_confirmed":true,"template":{"name":"order_ready","language":"en_US","variables":["Ada","77"]}}`, number), "Idempotency-Key", fmt.Sprint(n))
		if status != 201 {
			t.Fatalf("%d %s", status, body)
		}
	}
	must(t, dir, "member", "remove", member)
	must(t, dir, "key", "create", "--workspace", workspace, "--name", "other", "--permissions", "contacts:read")
	s.want(t, 200, key, "PATCH", "/webhooks/"+webhook.Data.ID, `{"types":["*","contact.*"]}`)
	s.want(t, 200, key, "POST", "/webhooks/"+webhook.Data.ID+"/rotate", `{}`)
	s.want(t, 200, key, "POST", "/webhooks/"+webhook.Data.ID+"/ping", "")
	want := []string{
		"attribute.created", "attribute.updated", "contact.created", "contact.deleted", "contact.opted_in", "contact.opted_out", "contact.updated",
		"conversation.created", "conversation.updated", "key.created", "member.created", "member.deleted", "member.updated",
		"message.delivered", "message.failed", "message.read", "message.received", "message.sent", "template.created",
		"webhook.ping", "webhook.updated", "workspace.updated",
	}
	waitFor(t, "every type", func() bool {
		got := endpoint.got()
		return !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(got, name) })
	})
}
