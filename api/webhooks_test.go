package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/api"
	"parley/app"
	"parley/desk"
)

// A webhook is the record as clients read it.
type webhook struct {
	ID             string   `json:"id"`
	URL            string   `json:"url"`
	Types          []string `json:"types"`
	Enabled        bool     `json:"enabled"`
	DisabledReason *string  `json:"disabled_reason"`
	FailingSince   *string  `json:"failing_since"`
	Cursor         string   `json:"cursor"`
	UpdatedAt      string   `json:"updated_at"`
	Secret         string   `json:"secret"`
}

func webhookOf(t *testing.T, body []byte) (w webhook) {
	t.Helper()
	if err := json.Unmarshal(body, &struct{ Data any }{&w}); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return w
}

// addWebhook adds a webhook and returns its id.
func addWebhook(t *testing.T, s *server, key, body string) string {
	t.Helper()
	r := s.as(key, "POST /v1/webhooks", body)
	if r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	return webhookOf(t, r.body).ID
}

// TestWebhooks: the life of a webhook, as its record and the feed show it.
func TestWebhooks(t *testing.T) {
	s := newServer(t)
	if body := s.want(200, "GET /v1/webhooks", ""); string(body) != `{"data":[]}` {
		t.Errorf("none: %s", body)
	}
	start := s.events("?cursor=latest").Cursor
	made := s.want(201, "POST /v1/webhooks", `{"url":"https://example.com/in?a=%20"}`)
	w := webhookOf(t, made)
	record := func(body []byte) string { // without the envelope and the secret
		body = regexp.MustCompile(`,"secret":"whsec_[A-Za-z0-9+/]{43}="`).ReplaceAll(body, nil)
		return strings.TrimSuffix(strings.TrimPrefix(string(body), `{"data":`), "}")
	}
	want := regexp.MustCompile(`^\{"id":"[0-9a-f-]{36}","url":"https://example\.com/in\?a=%20","types":\["\*"\],"enabled":true,"disabled_reason":null,"failing_since":null,` +
		`"cursor":"evt_[0-9a-v]{32}","created_at":"([^"]+)","updated_at":"[^"]+"\}$`)
	if !want.MatchString(record(made)) || w.Secret == "" {
		t.Errorf("made: %s", made)
	}
	path := "/v1/webhooks/" + w.ID
	if got := s.want(200, "GET "+path, ""); string(got) != `{"data":`+record(made)+`}` {
		t.Errorf("got %s, made %s", got, made)
	}
	given := desk.WebhookSecretText(bytes.Repeat([]byte{9}, 24))
	second := webhookOf(t, s.want(201, "POST /v1/webhooks", `{"url":"https://example.com/IN?a=%20","types":["message.received","contact.*"],"enabled":false,"secret":"`+given+`"}`))
	if second.Secret != given || second.Enabled || *second.DisabledReason != "owner" || !slices.Equal(second.Types, []string{"message.received", "contact.*"}) {
		t.Errorf("the second: %+v", second)
	}
	if list := s.want(200, "GET /v1/webhooks?limit=1", ""); strings.Index(string(list), w.ID) > strings.Index(string(list), second.ID) || bytes.Contains(list, []byte("whsec_")) {
		t.Errorf("list: %s", list)
	}

	same := s.want(200, "PATCH "+path, `{"url":"https://example.com/in?a=%20","types":["*"],"enabled":true}`)
	if record(same) != record(made) {
		t.Errorf("a patch of nothing: %s", same)
	}
	s.want(200, "PATCH "+path, `{}`)
	s.want(200, "PATCH "+path, `{"types":["key.*"]}`)
	off := webhookOf(t, s.want(200, "PATCH "+path, `{"enabled":false,"url":"https://example.com/2"}`))
	if off.Enabled || *off.DisabledReason != "owner" || off.URL != "https://example.com/2" || off.UpdatedAt <= w.UpdatedAt || off.Cursor != w.Cursor {
		t.Errorf("disabled: %+v", off)
	}
	rotated := webhookOf(t, s.want(200, "POST "+path+"/rotate", `{"overlap_s":0}`))
	on := webhookOf(t, s.want(200, "PATCH "+path, `{"enabled":true}`))
	if rotated.Secret == w.Secret || rotated.Secret == "" || on.DisabledReason != nil || !on.Enabled || on.Secret != "" {
		t.Errorf("rotated %+v, on %+v", rotated, on)
	}
	now := record(s.want(200, "GET "+path, ""))
	page := s.events("?types=webhook.*&cursor=" + start)
	var said []string
	for _, e := range page.Data {
		said = append(said, e.Type+" "+strings.Join(e.Changed, ","))
		if e.Subject.ID == w.ID && string(e.Data) != now {
			t.Errorf("%s has %s, want %s", e.Type, e.Data, now)
		}
	}
	if !slices.Equal(said, []string{"webhook.created ", "webhook.created ", "webhook.updated types", "webhook.updated disabled_reason,enabled,url",
		"webhook.updated secret", "webhook.updated disabled_reason,enabled"}) {
		t.Errorf("events: %q", said)
	}
	if page.Data[0].ID != w.Cursor || page.Data[1].ID != second.Cursor || page.Data[0].Subject.Kind != "webhook" || page.Data[0].Actor.Kind != "key" {
		t.Errorf("the deliveries begin at %s and %s, the webhooks with %s and %s", w.Cursor, second.Cursor, page.Data[0].ID, page.Data[1].ID)
	}
	s.want(204, "DELETE "+path, "")
	for _, call := range []string{"GET " + path, "DELETE " + path, "PATCH " + path, "POST " + path + "/rotate"} {
		s.want(404, call, "{}")
	}
	last := s.events("?types=webhook.*&cursor=" + page.Cursor)
	if len(last.Data) != 1 || last.Data[0].Type != "webhook.deleted" || string(last.Data[0].Data) != "null" {
		t.Errorf("the removal: %+v", last.Data)
	}
}

// TestWebhookRefused: a refusal names the place and the reason.
func TestWebhookRefused(t *testing.T) {
	s := newServerWith(t, api.Config{}, func(d *app.Deps) { d.AddressRefused = netip.Addr.IsPrivate })
	first := addWebhook(t, s, s.key, `{"url":"https://example.com/0"}`)
	second := addWebhook(t, s, s.key, `{"url":"https://example.com/1"}`)
	fifty := strings.TrimSuffix(strings.Repeat(`"*",`, 50), ",")
	const add = "POST /v1/webhooks"
	patch, rotate := "PATCH /v1/webhooks/"+second, "POST /v1/webhooks/"+second+"/rotate"
	for _, c := range []struct {
		call, body string
		status     int
		says       string
	}{
		{add, ``, 400, "no body"},
		{add, `{}`, 400, "/url"},
		{add, `{"url":null}`, 400, "/url"},
		{add, `{"url":5}`, 400, "/url"},
		{add, `{"url":"http://example.com"}`, 400, "https"},
		{add, `{"url":"https://10.0.0.1"}`, 400, "10.0.0.1"},
		{add, `{"url":"https://a@example.com"}`, 400, "user"},
		{add, `{"url":"https://new.example","types":[]}`, 400, "/types"},
		{add, `{"url":"https://new.example","types":null}`, 400, "/types"},
		{add, `{"url":"https://new.example","types":"*"}`, 400, "/types"},
		{add, `{"url":"https://new.example","types":["*",5]}`, 400, "/types/1"},
		{add, `{"url":"https://new.example","types":["contact.nothing"]}`, 400, "contact.nothing"},
		{add, `{"url":"https://new.example","types":[` + fifty + `,"*"]}`, 400, "50"},
		{add, `{"url":"https://new.example","enabled":"true"}`, 400, "/enabled"},
		{add, `{"url":"https://new.example","enabled":null}`, 400, "/enabled"},
		{add, `{"url":"https://new.example","secret":"whsec_abc"}`, 400, "/secret"},
		{add, `{"url":"https://new.example","secret":""}`, 400, "/secret"},
		{add, `{"url":"https://new.example","secret":null}`, 400, "/secret"},
		{add, `{"url":"https://new.example","name":"x"}`, 400, "/name"},
		{add, `{"url":"https://new.example","url":"https://new.example"}`, 400, "twice"},
		{add, `{"url":"https://example.com/0"}`, 409, `"details":{"id":"` + first + `"}`},
		{add, `{"url":"https://example.com/0","secret":"x"}`, 400, "/secret"},
		{patch, `{"url":"https://example.com/0"}`, 409, first},
		{patch, `{"url":""}`, 400, "/url"},
		{patch, `{"url":null}`, 400, "/url"},
		{patch, `{"types":null}`, 400, "/types"},
		{patch, `{"enabled":null}`, 400, "/enabled"},
		{patch, `{"secret":"whsec_"}`, 400, "/secret"},
		{patch, `{"url":"https://192.168.1.1/"}`, 400, "192.168.1.1"},
		{patch, `[]`, 400, "object"},
		{rotate, ``, 400, "no body"},
		{rotate, `{"overlap_s":-1}`, 400, "/overlap_s"},
		{rotate, `{"overlap_s":604801}`, 400, "/overlap_s"},
		{rotate, `{"overlap_s":1.5}`, 400, "/overlap_s"},
		{rotate, `{"overlap_s":null}`, 400, "/overlap_s"},
		{rotate, `{"overlap":1}`, 400, "overlap_s"},
	} {
		r := s.do(c.call, c.body)
		if r.status != c.status || !strings.Contains(string(r.body), c.says) {
			t.Errorf("%s %s: %d %s, want %d that says %q", c.call, c.body, r.status, r.body, c.status, c.says)
		}
	}
	s.want(200, patch, `{"types":[`+fifty+`]}`)
	for n := 2; n < desk.MaxWebhooks; n++ {
		addWebhook(t, s, s.key, fmt.Sprintf(`{"url":"https://example.com/%d"}`, n))
	}
	if r := s.do(add, `{"url":"https://example.com/new"}`); r.status != 400 || !bytes.Contains(r.body, []byte("DELETE /webhooks/{id}")) {
		t.Errorf("one too many: %d %s", r.status, r.body)
	}
	s.want(200, patch, `{"url":"https://example.com/new"}`)
	s.want(204, "DELETE /v1/webhooks/"+first, "")
	s.want(201, add, `{"url":"https://example.com/0"}`)
}

// TestWebhookPermissions: a caller who sets the endpoint for events needs the permissions
// to read these events: the events before the change, and those after it.
func TestWebhookPermissions(t *testing.T) {
	s := newServer(t)
	without := func(lacking ...desk.Permission) string {
		list := slices.DeleteFunc(slices.Clone(desk.Permissions), func(p desk.Permission) bool { return slices.Contains(lacking, p) })
		return s.newKey(s.ws, desk.JoinPermissions(list))
	}
	needed := []desk.Permission{desk.EventsRead}
	for _, e := range desk.EventTypes {
		if p := e.Needs(); p != "" && !slices.Contains(needed, p) {
			needed = append(needed, p)
		}
	}
	all := addWebhook(t, s, s.key, `{"url":"https://example.com/all"}`)
	keys := addWebhook(t, s, s.key, `{"url":"https://example.com/keys","types":["key.*"]}`)
	forbidden := func(key, call, body string, p desk.Permission) {
		t.Helper()
		if r := s.as(key, call, body); r.status != 403 || !bytes.Contains(r.body, []byte("the permission "+string(p))) {
			t.Errorf("%s %s without %s: %d %s", call, body, p, r.status, r.body)
		}
	}
	for _, p := range needed {
		key := without(p)
		one := "workspace.*"
		for _, e := range desk.EventTypes {
			if e.Needs() == p {
				one = string(e)
			}
		}
		for _, body := range []string{ // the first is right; each of the others is wrong in another way
			`{"url":"https://example.com/new"}`, `{}`, `{"url":"http://10.0.0.1"}`, `{"url":"https://example.com/all"}`, `{"url":"https://example.com/new","nothing":1}`,
			`{"enabled":null,"url":5,"types":["key.*","` + one + `"]}`, `{"url":"https://example.com/new","types":["` + one + `"],"secret":"x"}`,
		} {
			forbidden(key, "POST /v1/webhooks", body, p)
		}
		for _, body := range []string{`{}`, `{"url":"https://example.com/new"}`, `{"types":["key.*"]}`, `{"enabled":false}`, `{"types":null}`, `nonsense`} {
			forbidden(key, "PATCH /v1/webhooks/"+all, body, p)
			forbidden(key, "POST /v1/webhooks/"+all+"/rotate", body, p)
		}
		for _, body := range []string{`{"types":["` + one + `"]}`, `{"types":["*"]}`, `{"types":["*"],"url":""}`, `{"nothing":{"a":[1]},"types":["` + one + `"]}`} {
			forbidden(key, "PATCH /v1/webhooks/"+keys, body, p)
		}
		if p == desk.EventsRead {
			forbidden(key, "PATCH /v1/webhooks/"+keys, `{}`, p)
			forbidden(key, "POST /v1/webhooks/"+keys+"/rotate", `{}`, p)
		}
		for _, call := range []string{"PATCH /v1/webhooks/{}", "POST /v1/webhooks/{}/rotate", "DELETE /v1/webhooks/{}"} { // the 404 comes first
			if r := s.as(key, strings.Replace(call, "{}", s.ws.String(), 1), `{"types":["*"]}`); r.status != 404 {
				t.Errorf("%s without %s: %d %s", call, p, r.status, r.body)
			}
		}
	}
	// A key without these permissions can change an endpoint whose types need none.
	narrow := without(needed[1:]...)
	for call, status := range map[string]int{
		"PATCH /v1/webhooks/" + keys: 200, "POST /v1/webhooks/" + keys + "/rotate": 200,
	} {
		if r := s.as(narrow, call, `{}`); r.status != status {
			t.Errorf("%s: %d %s", call, r.status, r.body)
		}
	}
	if r := s.as(narrow, "POST /v1/webhooks", `{"url":"https://example.com/narrow","types":["workspace.updated","key.created"]}`); r.status != 201 {
		t.Errorf("%d %s", r.status, r.body)
	}
	// Reading and removing need nothing else.
	reader, remover := s.newKey(s.ws, "webhooks:read"), s.newKey(s.ws, "webhooks:write")
	for _, call := range []string{"GET /v1/webhooks", "GET /v1/webhooks/" + all} {
		if r := s.as(reader, call, ""); r.status != 200 || !bytes.Contains(r.body, []byte(all)) {
			t.Errorf("%s: %d %s", call, r.status, r.body)
		}
	}
	if r := s.as(remover, "DELETE /v1/webhooks/"+all, ""); r.status != 204 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if n := strings.Count(string(s.want(200, "GET /v1/webhooks", "")), `"id"`); n != 2 {
		t.Errorf("%d webhooks are left, want 2", n)
	}
}

// TestDeliveries: the calls about deliveries, as the description has them.
func TestDeliveries(t *testing.T) {
	s := newServer(t)
	id := addWebhook(t, s, s.key, `{"url":"https://example.com/in"}`)
	at := "/v1/webhooks/" + id
	if body := s.want(200, "GET "+at+"/deliveries", ""); string(body) != `{"data":[]}` {
		t.Errorf("none: %s", body)
	}
	for call, status := range map[string]int{
		"GET " + at + "/deliveries?status=odd":     400,
		"GET " + at + "/deliveries?event_id=evt_1": 400,
		"GET " + at + "/deliveries?cursor=x":       400,
		"POST " + at + "/deliveries/x/redeliver":   404,
		"POST " + at + "x/ping":                    404,
	} {
		s.want(status, call, "")
	}
	s.want(400, "POST "+at+"/replay", `{"cursor":"evt_1"}`)
	s.want(400, "POST "+at+"/replay", `{}`)
	before := s.events("?cursor=latest").Cursor
	if w := webhookOf(t, s.want(200, "POST "+at+"/replay", `{"cursor":"latest"}`)); w.Cursor != before {
		t.Errorf("the cursor is %s, want %s", w.Cursor, before)
	}
	if page := s.events("?cursor=" + before); len(page.Data) != 0 { // it was there already
		t.Errorf("events of a replay that moves nothing: %+v", page.Data)
	}
	s.want(200, "POST "+at+"/replay", `{"cursor":"oldest"}`)
	if page := s.events("?cursor=" + before); len(page.Data) != 1 {
		t.Errorf("a replay's events: %+v", page.Data)
	}
}
