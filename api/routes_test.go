package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/api"
	"parley/api/apitest"
	"parley/app"
	"parley/desk"
	"parley/store"
)

func operations(t *testing.T) []apitest.Operation {
	t.Helper()
	doc, err := description()
	if err != nil {
		t.Fatal(err)
	}
	return doc.Operations()
}

// fillIn puts an id or key into a path's slots.
func fillIn(path, id, key string) string {
	return strings.NewReplacer("{id}", id, "{key}", key, "{shortcut}", key, "{note_id}", id).Replace(path)
}

// bodies returns a valid body for each operation that takes one.
func bodies(s *server) map[string]string {
	return map[string]string{
		"POST /v1/contacts":               `{"email":"new@example.com"}`,
		"PATCH /v1/contacts/{id}":         `{"name":"Eve"}`,
		"PUT /v1/contacts/{id}/owner":     `{"owner":"` + s.members[0].ID.String() + `"}`,
		"POST /v1/contacts/batch":         `{"operations":[{"op":"upsert","data":{"email":"new@example.com"}}]}`,
		"POST /v1/contacts/{id}/merge":    `{"from":"` + s.members[0].ID.String() + `"}`,
		"POST /v1/conflicts/{id}/resolve": `{"action":"dismiss"}`,
		"POST /v1/merges/{id}/undo":       `{}`,
		"POST /v1/attributes":             `{"key":"size","type":"text"}`,

		"POST /v1/conversations/outbound":      message(),
		"POST /v1/attempts/{id}/release":       `{"sent":true}`,
		"PUT /v1/conversations/{id}/assignee":  `{"member":"` + s.members[0].ID.String() + `"}`,
		"PUT /v1/conversations/{id}/status":    `{"status":"closed"}`,
		"POST /v1/conversations/{id}/notes":    `{"text":"Called"}`,
		"PUT /v1/conversations/{id}/read":      `{}`,
		"POST /v1/conversations/{id}/messages": `{"text":"Hello"}`,

		"POST /v1/webhooks":       `{"url":"https://example.com"}`,
		"PATCH /v1/webhooks/{id}": `{"enabled":true}`,

		"PUT /v1/members/{id}/availability": `{"available":false}`,
		"PUT /v1/snippets/{shortcut}":       `{"text":"Hi"}`,
		"PUT /v1/segments/{key}":            `{"name":"Named","filter":{"all":[{"field":"name","is":"present"}]}}`,
		"PUT /v1/policy":                    `{}`,
		"PUT /v1/channels/{id}/policy":      `{"assign":{"mode":"none"}}`,

		"POST /v1/webhooks/{id}/rotate": `{}`,

		"POST /v1/broadcasts/{id}/start":      `{}`,
		"POST /v1/broadcasts/{id}/resume":     `{}`,
		"POST /v1/broadcasts/{id}/unschedule": `{}`,
		"POST /v1/broadcasts/{id}/pause":      `{}`,
		"POST /v1/broadcasts/{id}/cancel":     `{}`,
		"POST /v1/broadcasts/{id}/check":      `{}`,
		"POST /v1/broadcasts/{id}/rows":       `{"rows":[{"to":{"phone":"+12022243441"}}]}`,
		"POST /v1/broadcasts/{id}/release":    `{"sent":true}`,
		"PATCH /v1/broadcasts/{id}":           `{"name":"Spring"}`,
	}
}

func TestRoutesAreInTheDescription(t *testing.T) {
	described := map[string]desk.Permission{}
	for _, op := range operations(t) {
		described[op.Method+" "+op.Path] = desk.Permission(op.Permission)
	}
	routes := api.Routes()
	for pattern, needs := range routes {
		if described[pattern] != needs {
			t.Errorf("%s needs %q, the description says %q", pattern, needs, described[pattern])
		}
	}
	if len(described) != len(routes) {
		t.Errorf("%d operations are described, %d routes exist", len(described), len(routes))
	}
}

func TestEveryErrorTypeHasAStatus(t *testing.T) {
	for _, e := range desk.ErrorTypes {
		if api.Status(e) == 0 {
			t.Errorf("%s has no status", e)
		}
	}
}

// TestDescriptionNamesEveryErrorType: the schema of errors and the table for people have
// every error type that callers get.
func TestDescriptionNamesEveryErrorType(t *testing.T) {
	t.Parallel()
	var described struct {
		Info       struct{ Description string }
		Components struct {
			Schemas struct {
				Error struct {
					Properties struct {
						Error struct {
							Properties struct {
								Type struct{ Enum []desk.ErrorType }
							}
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(api.Description(), &described); err != nil {
		t.Fatal(err)
	}
	enum := described.Components.Schemas.Error.Properties.Error.Properties.Type.Enum
	for _, e := range desk.ErrorTypes {
		if !slices.Contains(enum, e) {
			t.Errorf("the schema Error lacks %s", e)
		}
		if row := fmt.Sprintf("| `%s` | %d |", e, api.Status(e)); !strings.Contains(described.Info.Description, row) {
			t.Errorf("the table of errors lacks %s", row)
		}
	}
	if len(enum) != len(desk.ErrorTypes) {
		t.Errorf("the schema Error has %d types, there are %d", len(enum), len(desk.ErrorTypes))
	}
}

// TestDescriptionOfAPublicURL: the server in the description is absolute if the operator
// has set a public URL.
func TestDescriptionOfAPublicURL(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{"": "/v1", "https://parley.example.com": "https://parley.example.com/v1"} {
		var described struct {
			Servers []struct{ URL string }
			Paths   map[string]any
		}
		if err := json.Unmarshal(api.Describe(public), &described); err != nil {
			t.Fatal(err)
		}
		if len(described.Servers) != 1 || described.Servers[0].URL != want || len(described.Paths) == 0 {
			t.Errorf("%q: %+v, want %s", public, described.Servers, want)
		}
	}
}

func TestUnauthorizedIsTheSameBytes(t *testing.T) {
	s := newServer(t)
	revoked, expired := s.newKey(s.ws, "all"), s.newKey(s.ws, "all")
	keys := s.operator(s.ws).Settings.Keys()
	if _, err := s.app.RevokeKey(t.Context(), s.operator(s.ws), keys[1].ID); err != nil {
		t.Fatal(err)
	}
	soon := 5 * time.Millisecond
	if _, err := s.app.EditKey(t.Context(), s.operator(s.ws), keys[2].ID, app.KeyEdit{Expires: &soon}); err != nil {
		t.Fatal(err)
	}
	s.clock.Add(10)
	unknown := s.key[:len(s.key)-1] + "x"
	var first []byte
	for name, header := range map[string]http.Header{
		"missing":       {},
		"empty":         {"Authorization": {""}},
		"malformed":     {"Authorization": {"Bearer nonsense"}},
		"basic":         {"Authorization": {"Basic " + s.key}},
		"no_scheme":     {"Authorization": {s.key}},
		"twice":         {"Authorization": {"Bearer " + s.key, "Bearer " + s.key}},
		"bad_crc":       {"Authorization": {"Bearer " + unknown}},
		"other_install": {"Authorization": {"Bearer " + newServer(t).newKeyOfOther(t)}},
		"trailing":      {"Authorization": {"Bearer " + s.key + "x"}},
		"revoked":       {"Authorization": {"Bearer " + revoked}},
		"expired":       {"Authorization": {"Bearer " + expired}},
	} {
		for _, op := range append(operations(t), apitest.Operation{Method: "GET", Path: "/v1/nowhere"}, apitest.Operation{Method: "PATCH", Path: "/v1/contacts"}) {
			r := s.send(op.Method, fillIn(op.Path, "x", "x"), header.Clone(), "no json")
			if first == nil {
				first = r.body
			}
			if r.status != 401 || !bytes.Equal(r.body, first) || r.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s, %s %s: %d %s", name, op.Method, op.Path, r.status, r.body)
			}
		}
	}
	if r := s.send("GET", "/v1/members", http.Header{"Authorization": {"bEaReR " + s.key}}, ""); r.status != 200 {
		t.Errorf("the scheme's letter case matters: %d", r.status)
	}
}

// newKeyOfOther is a well-formed key that another installation made.
func (s *server) newKeyOfOther(t *testing.T) string {
	t.Helper()
	for range 50 { // the counting random source would repeat the first installation's keys
		s.ids.Add(1)
	}
	return s.newKey(s.ws, "all")
}

// allBut lists all permissions but one.
func allBut(permission string) string {
	var others []string
	for _, p := range desk.Permissions {
		if string(p) != permission {
			others = append(others, string(p))
		}
	}
	return strings.Join(others, ",")
}

func TestMissingPermissionIsNamed(t *testing.T) {
	s := newServer(t)
	for _, op := range operations(t) {
		if op.Permission == "" {
			continue
		}
		key := s.newKey(s.ws, allBut(op.Permission))
		// Bad ids, bodies and queries are refused after the permission was checked.
		r := s.as(key, op.Method+" "+fillIn(op.Path, "x", "x")+"?nonsense=1", "no json")
		if r.status != 403 || errorType(r.body) != "forbidden" || !bytes.Contains(r.body, []byte(op.Permission)) ||
			!bytes.Contains(r.body, []byte("in the console under Settings, Keys")) {
			t.Errorf("%s %s without %s: %d %s", op.Method, op.Path, op.Permission, r.status, r.body)
		}
	}
}

// TestOtherWorkspace: at every place for an id, the answer to another workspace's id has
// the same bytes as the answer to an unknown id.
func TestOtherWorkspace(t *testing.T) {
	s := newDesk(t)
	mine := s.hear(s.channel, "+12022243441", "Hello")
	other, otherKey := s.workspace("Other", "US")
	theirs := *s.server
	filled := bodies(s.server)
	theirs.ws = other
	theirChannel := theirs.addChannel("theirs")
	theirMember, err := s.app.AddMember(t.Context(), s.operator(other), "Eve", "eve@example.com", "agent")
	if err != nil {
		t.Fatal(err)
	}
	theirConversation := theirs.hear(theirChannel, "+12022243442", "Hello")
	foreign := contact(t, s.as(otherKey, "POST /v1/contacts", `{"external_id":"theirs","email":"a@other.example","identities":[{"kind":"twitter","value":"them"}]}`).body).ID
	if r := s.as(otherKey, "POST /v1/attributes", `{"key":"theirs","type":"text"}`); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for call, body := range map[string]string{"PUT /v1/snippets/theirs": `{"text":"Hi"}`, "PUT /v1/segments/theirs": filled["PUT /v1/segments/{key}"]} {
		if r := s.as(otherKey, call, body); r.status != 201 {
			t.Fatalf("%s: %d %s", call, r.status, r.body)
		}
	}
	theirWebhook := addWebhook(t, s.server, otherKey, `{"url":"https://example.com"}`)
	theirNote := noteOf(t, s.as(otherKey, "POST /v1/conversations/"+theirConversation.ID.String()+"/notes", `{"text":"Theirs"}`).body).ID
	theirMedia := theirs.uploads(other, jpeg).ID.String()
	theirMessage := ids(t, s.as(otherKey, "GET /v1/conversations/"+theirConversation.ID.String()+"/messages", "").body)[0]
	theirAttempt := desk.ID{0x77, 1}
	if err := s.store.InTx(t.Context(), other, func(tx store.Tx) error {
		return tx.PutAttempt(&desk.Attempt{ID: theirAttempt, Key: "theirs", Phase: desk.InDoubt, CreatedAt: 1, Plan: desk.Plan{Channel: theirChannel, Text: "Theirs", Number: "12022243442"}})
	}); err != nil {
		t.Fatal(err)
	}
	before := s.dump()
	const unknown = "0196f2a0-0000-7000-8000-000000000000"
	tried := 0
	for _, op := range operations(t) {
		call := op.Method + " " + op.Path
		if !strings.Contains(op.Path, "{") || call == "PUT /v1/snippets/{shortcut}" || call == "PUT /v1/segments/{key}" { // these calls create a record
			continue
		}
		tried++
		query := ""
		if op.Method == "DELETE" && strings.HasSuffix(op.Path, "/identities") {
			query = "?kind=twitter&value=them"
		}
		body := filled[op.Method+" "+op.Path]
		do := func(id, other string) reply {
			return s.send(op.Method, fillIn(op.Path, id, other)+query, http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": {"k"}}, body)
		}
		want := do(unknown, "unknown")
		for _, id := range []string{foreign, strings.ToUpper(foreign), theirConversation.ID.String(), theirChannel.String(), theirWebhook, theirNote, theirMedia, theirMessage, theirAttempt.String(), theirMember.ID.String(), other.String(), "no-uuid", "%00"} {
			got := do(id, "theirs")
			if got.status != 404 || !bytes.Equal(got.body, want.body) {
				t.Errorf("%s %s with %s: %d %s, want %d %s", op.Method, op.Path, id, got.status, got.body, want.status, want.body)
			}
		}
	}
	if tried != 61 {
		t.Errorf("%d operations have an id slot, want 61: is one new?", tried)
	}
	// Ids inside bodies and queries.
	replying := "POST /v1/conversations/" + mine.ID.String() + "/messages"
	member := s.members[0].ID.String()
	for name, call := range map[string][2]string{
		"send_contact":      {outbound, message(`"to":{"contact_id":"%s"}`)},
		"send_channel":      {outbound, message(`"channel_id":"%s"`)},
		"send_assignee":     {outbound, message(`"assignee":"%s"`)},
		"send_owner":        {outbound, message(`"contact":{"owner":"%s"}`)},
		"body_member":       {"PUT /v1/conversations/" + mine.ID.String() + "/assignee", `{"member":"%s"}`},
		"query_assignee":    {"GET /v1/conversations?assignee=%s", ``},
		"query_contact":     {"GET /v1/conversations?contact_id=%s", ``},
		"query_channel":     {"GET /v1/conversations?channel_id=%s", ``},
		"templates_contact": {"GET /v1/templates?contact_id=%s", ``},
		"templates_channel": {"GET /v1/templates?channel_id=%s", ``},
		"snippets_contact":  {"GET /v1/snippets?contact_id=%s", ``},
		"snippets_agent":    {"GET /v1/snippets?agent=%s", ``},
		"templates_agent":   {"GET /v1/templates?agent=%s", ``},
		"batch_delete":      {"POST /v1/contacts/batch", `{"operations":[{"op":"delete","id":"%s"}]}`},
		"batch_assign":      {"POST /v1/contacts/batch", `{"operations":[{"op":"assign","id":"%s","owner":"` + member + `"}]}`},
		"body_owner":        {"POST /v1/contacts", `{"email":"x@example.com","owner":"%s"}`},
		"query_owner":       {"GET /v1/contacts?owner=%s", ``},
		"note_of_ours":      {"DELETE /v1/conversations/" + mine.ID.String() + "/notes/%s", ``},
		"read_message":      {"PUT /v1/conversations/" + mine.ID.String() + "/read", `{"message_id":"%s"}`},
		"note_member":       {"POST /v1/conversations/" + mine.ID.String() + "/notes", `{"text":"x","member":"%s"}`},
		"policy_member":     {"PUT /v1/policy", `{"assign":{"mode":"round_robin","members":["%s"]}}`},
		"inbox_assignee":    {"GET /v1/inbox?assignee=%s", ``},
		"inbox_contact":     {"GET /v1/inbox?contact_id=%s", ``},
		"inbox_channel":     {"GET /v1/inbox?channel_id=%s", ``},
		"reply_media":       {replying, `{"attachment":{"media_id":"%s"}}`},
		"reply_message":     {replying, `{"text":"x","reply_to":"%s"}`},
		"reply_member":      {replying, `{"text":"x","member":"%s"}`},
		"batch_external":    {"POST /v1/contacts/batch", `{"operations":[{"op":"delete","external_id":"%s"}]}`},
	} {
		their := foreign
		switch _, what, _ := strings.Cut(name, "_"); what {
		case "external":
			their = "theirs"
		case "channel":
			their = theirChannel.String()
		case "owner", "assignee", "member", "agent":
			their = theirMember.ID.String()
		case "media":
			their = theirMedia
		case "message":
			their = theirMessage
		case "of_ours":
			their = theirNote
		}
		sub := func(id string) reply {
			if call[0] == outbound {
				return s.outbound("key", strings.Replace(call[1], "%s", id, 1))
			}
			if call[0] == replying {
				return s.replyTo(mine.ID, "key", strings.Replace(call[1], "%s", id, 1))
			}
			return s.do(strings.Replace(call[0], "%s", id, 1), strings.Replace(call[1], "%s", id, 1))
		}
		got, want := sub(their), sub(unknown)
		if got.status != want.status || !bytes.Equal(got.body, want.body) {
			t.Errorf("%s: %d %s, want %d %s", name, got.status, got.body, want.status, want.body)
		}
	}
	if after := s.dump(); after != before {
		t.Errorf("something was changed:\n%s\nwas\n%s", after, before)
	}
}

func TestUnknownRoutes(t *testing.T) {
	s := newServer(t)
	id := contact(t, s.want(201, "POST /v1/contacts", `{"email":"a@example.com"}`)).ID
	for _, path := range []string{
		"/v1", "/v1/", "/v1/nowhere", "/v1/contacts/", "/v1//contacts", "/v1/contacts//" + id, "/v1/x/../contacts",
		"/v1/./contacts", "/v1/contacts/" + id + "/", "/v1/contacts/" + id + "/nothing", "/v1/%2e%2e/contacts", "/nowhere", "//", "/v1/attributes/a/b",
	} {
		r := s.do("GET "+path, "")
		if r.status != 404 || errorType(r.body) != "not_found" {
			t.Errorf("GET %s: %d %s", path, r.status, r.body)
		}
	}
	for call, allow := range map[string]string{
		"PUT /v1/contacts":           "GET, HEAD, POST",
		"OPTIONS /v1/contacts/" + id: "GET, HEAD, PATCH, DELETE",
		"TRACE /v1/members":          "GET, HEAD",
		"QUERY /v1/attributes":       "GET, HEAD, POST",
		"POST /healthz":              "GET, HEAD",
	} {
		r := s.do(call, "")
		if r.status != 405 || r.header.Get("Allow") != allow || errorType(r.body) != "method_not_allowed" {
			t.Errorf("%s: %d, Allow %q, want %q: %s", call, r.status, r.header.Get("Allow"), allow, r.body)
		}
	}
}

func TestPages(t *testing.T) {
	s := newServer(t)
	const html = "text/html; charset=utf-8"
	for path, want := range map[string]struct{ text, contentType string }{
		"/docs": {"/docs/parley.js", html}, "/docs/": {"/docs/parley.js", html},
		"/docs/parley.js": {"SwaggerUIBundle", "text/javascript; charset=utf-8"}, "/docs/swagger-ui-bundle.js": {"swagger", "application/javascript"},
		"/docs/swagger-ui.css": {".swagger-ui", "text/css; charset=utf-8"},
		"/openapi.json":        {`"openapi": "3.1.0"`, "application/json; charset=utf-8"},
		"/healthz":             {`{"status":"ok"}`, "application/json; charset=utf-8"}, "/readyz": {`{"status":"ok"}`, "application/json; charset=utf-8"},
		"/metrics": {"parley_http_requests_total", ""},
	} {
		s.do("GET /v1/members", "")
		r := s.as("", "GET "+path, "")
		if r.status != 200 || !bytes.Contains(bytes.ToLower(r.body), []byte(strings.ToLower(want.text))) {
			t.Errorf("GET %s: %d, no %s in %.200s", path, r.status, want.text, r.body)
		}
		if r.header.Get("X-Request-Id") == "" {
			t.Errorf("GET %s: no request id", path)
		}
		if want.contentType != "" && r.header.Get("Content-Type") != want.contentType {
			t.Errorf("GET %s: Content-Type %s", path, r.header.Get("Content-Type"))
		}
		if !strings.HasPrefix(path, "/docs") {
			continue
		}
		may := r.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(may, "default-src 'none'") || !strings.Contains(may, "frame-ancestors 'none'") || strings.Contains(may, "script-src 'self' 'unsafe") ||
			r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("GET %s: %v", path, r.header)
		}
		if want.contentType == html && bytes.Contains(r.body, []byte("<script>")) {
			t.Errorf("GET %s: a script in the page, which its policy forbids", path)
		}
	}
}

func TestRateLimit(t *testing.T) {
	s := newServerWith(t, api.Config{RateLimit: 3})
	counts := map[int]int{}
	for range 50 {
		r := s.do("GET /v1/members", "")
		counts[r.status]++
		if r.status == 429 && (errorType(r.body) != "rate_limited" || r.header.Get("Retry-After") == "") {
			t.Errorf("429: %v %s", r.header, r.body)
		}
	}
	if counts[200] < 3 || counts[429] == 0 {
		t.Errorf("answers %v", counts)
	}
	if r := s.as(s.newKey(s.ws, "all"), "GET /v1/members", ""); r.status != 200 {
		t.Errorf("another key is limited too: %d", r.status)
	}
}

// TestRateLimitCountsARequestOnce: a request counts once, even if it starts again because
// the workspace has changed.
func TestRateLimitCountsARequestOnce(t *testing.T) {
	s := newServerWith(t, api.Config{RateLimit: 2})
	s.want(201, "POST /v1/contacts", `{"external_id":"x"}`)
	if _, err := s.app.AddMember(t.Context(), s.operator(s.ws), "New", "new@example.com", "agent"); err != nil {
		t.Fatal(err)
	}
	s.want(200, "POST /v1/contacts", `{"external_id":"x"}`)
}
