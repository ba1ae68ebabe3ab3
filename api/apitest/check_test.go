package apitest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"parley/api/apitest"
)

const (
	contact = `{"id":"019a8f3c-5b1e-7c42-9d07-3f6a1b2c4d5e","external_id":"c-1","name":null,"email":"Ada@example.com","phone":"+12025550147","note":null,` +
		`"attributes":{"plan":"pro","seats":12.5,"topics":["a"]},"owner":null,"created_at":"2026-03-02T09:30:12.418Z","updated_at":"2026-03-04T16:02:55.007Z"}`
	one      = `{"data":` + contact + `}`
	id       = "/v1/contacts/019a8f3c-5b1e-7c42-9d07-3f6a1b2c4d5e"
	notFound = `{"error":{"type":"not_found","message":"no such contact"}}`
	invalid  = `{"error":{"type":"invalid_request","message":"/x"}}`
	upserts  = `{"operations":[{"op":"upsert","data":{"external_id":"c-1"}},{"op":"merge"},7]}`
	summary  = `{"summary":{"total":3,"created":1,"updated":0,"deleted":0,"assigned":0,"errors":2},"results":`
	created  = `{"index":0,"op":"upsert","status":"created","id":"019a8f3c-5b1e-7c42-9d07-3f6a1b2c4d5e"}`
	failed1  = `{"index":1,"op":"merge","status":"error","error":{"type":"invalid_request","message":"/op"}}`
	send     = `{"to":{"phone":"+12025550147"},"template":{"name":"t","language":"tr"},"opt_in_confirmed":true}`
	taken    = `{"data":{"conversation":{"id":"019a8f52-9e07-7f10-a3c8-5d21b6e4f092","channel_id":"019a8e10-4c21-7e55-8b2f-71d0c3a9e810","status":"open",` +
		`"created_at":"2026-03-04T16:02:55.007Z","assigned_member_id":null,"assigned_via":null,"last_message_preview":"x","last_message_at":"2026-03-04T16:02:55.007Z",` +
		`"contact_id":"019a8f3c-5b1e-7c42-9d07-3f6a1b2c4d5e","source_type":"sandbox"},"existing_conversation":false,` +
		`"message":{"id":"019a8f52-9e07-7f11-8c4d-0a9b7e6d5c31","external_id":"m","text":"x","delivery_status":"sent","ts":"2026-03-04T16:02:55.007Z"}}}`
	failed2 = `{"index":2,"op":null,"status":"error","error":{"type":"invalid_request","message":"no object"}}`
)

var load = sync.OnceValues(func() (*apitest.Document, error) {
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		return nil, err
	}
	return apitest.Load(text)
})

func description(t testing.TB) *apitest.Document {
	t.Helper()
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// nested returns a JSON object that is nested as deep as levels says.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	d := description(t)
	for _, tc := range []struct {
		name, call, send string
		status           int
		headers          string // "Name: value" lines, in addition to the headers of every answer; an empty value removes a header
		body             string
		want             string // part of the error; "" when the answer fits
	}{
		// Answers
		{"created", "POST /v1/contacts", `{"external_id":"c-1"}`, 201, "", one, ""},
		{"read", "GET " + id, "", 200, "", one, ""},
		{"read with a query that is ignored", "GET " + id + "?x=1&x=2", "", 200, "", one, ""},
		{"deleted", "DELETE " + id, "", 204, "Content-Type:", "", ""},
		{"unlisted status", "GET " + id, "", 409, "", notFound, "does not list this status"},
		{"unlisted method not allowed", "GET " + id, "", 405, "Allow: GET", `{"error":{"type":"method_not_allowed","message":"x"}}`, "does not list this status"},
		{"wrong type for the status", "GET " + id, "", 404, "", invalid, "/error/type"},
		{"missing field", "GET " + id, "", 200, "", strings.Replace(one, `"note":null,`, "", 1), "note"},
		{"extra field", "GET " + id, "", 200, "", strings.Replace(one, `"note"`, `"age":1,"note"`, 1), "age"},
		{"extra member beside data", "GET " + id, "", 200, "", strings.Replace(one, `{"data"`, `{"ok":true,"data"`, 1), "ok"},
		{"time without milliseconds", "GET " + id, "", 200, "", strings.Replace(one, ".418Z", "Z", 1), "created_at"},
		{"impossible time", "GET " + id, "", 200, "", strings.Replace(one, "03-02T", "02-30T", 1), "created_at"},
		{"upper-case id", "GET " + id, "", 200, "", strings.Replace(one, "9d07", "9D07", 1), "/data/id"},
		{"cleared attribute still there", "GET " + id, "", 200, "", strings.Replace(one, `"pro"`, `null`, 1), "plan"},
		{"duplicate member", "GET " + id, "", 200, "", strings.Replace(one, `"note":null`, `"note":null,"note":null`, 1), "strict JSON"},
		{"trailing data", "GET " + id, "", 200, "", one + "{}", "strict JSON"},
		{"invalid UTF-8", "GET " + id, "", 200, "", strings.Replace(one, "pro", "pr\xff", 1), "strict JSON"},
		{"no body", "GET " + id, "", 200, "", "", "strict JSON"},
		{"body where none belongs", "DELETE " + id, "", 204, "Content-Type:", "{}", "must be empty"},
		{"content type", "GET " + id, "", 200, "Content-Type: application/json", one, "Content-Type"},
		{"no request id", "GET " + id, "", 200, "X-Request-Id:", one, "X-Request-Id"},
		{"next_cursor null", "GET /v1/contacts", "", 200, "", `{"data":[],"next_cursor":null}`, "next_cursor"},
		{"select without options", "GET /v1/attributes", "", 200, "", `{"data":[{"key":"k","label":"K","description":"","type":"select","options":[],"position":0,"archived":false}]}`, "options"},
		{"conflict without details", "PATCH " + id, "{}", 409, "", `{"error":{"type":"identity_conflict","message":"x"}}`, "details"},
		{"unknown reason", "PATCH " + id, "{}", 422, "", `{"error":{"type":"invalid_attributes","message":"x","details":[{"key":"k","message":"bad"}]}}`, "message"},

		// Headers
		{"unauthorized", "GET " + id, "", 401, "WWW-Authenticate: Bearer", `{"error":{"type":"unauthorized","message":"x"}}`, ""},
		{"unauthorized without scheme", "GET " + id, "", 401, "", `{"error":{"type":"unauthorized","message":"x"}}`, "WWW-Authenticate is missing"},
		{"unauthorized with another scheme", "GET " + id, "", 401, "WWW-Authenticate: Basic", `{"error":{"type":"unauthorized","message":"x"}}`, "WWW-Authenticate"},
		{"unavailable", "GET " + id, "", 503, "Retry-After: 1", `{"error":{"type":"unavailable","message":"x"}}`, ""},
		{"unavailable with a date", "GET " + id, "", 503, "Retry-After: soon", `{"error":{"type":"unavailable","message":"x"}}`, "no integer"},
		{"forbidden", "GET " + id, "", 403, "", `{"error":{"type":"forbidden","message":"lacks contacts:read"}}`, ""},
		{"forbidden without the permission", "GET " + id, "", 403, "", `{"error":{"type":"forbidden","message":"lacks it"}}`, "contacts:read"},

		// Paths and methods outside the description
		{"unknown path", "GET /v1/nothing", "", 404, "", notFound, ""},
		{"unknown path taken", "GET /v1/nothing", "", 200, "", one, "no such operation"},
		{"unknown path forbidden", "GET /v1/nothing", "", 403, "", `{"error":{"type":"forbidden","message":"x"}}`, "no such operation"},
		{"unknown path with a loose error", "GET /v1/nothing", "", 404, "", `{"error":"not found"}`, "/error"},
		{"unknown path with text", "GET /v1/nothing", "", 404, "Content-Type: text/plain", "404 page not found", "Content-Type"},
		{"double slash", "GET /v1//contacts", "", 404, "", notFound, ""},
		{"double slash redirected", "GET /v1//contacts", "", 301, "", "", "no such operation"},
		{"trailing slash taken", "GET /v1/contacts/", "", 200, "", `{"data":[]}`, "no such operation"},
		{"dots taken", "GET /v1/x/../contacts", "", 200, "", `{"data":[]}`, "no such operation"},
		{"dots with a wrong method", "PUT /v1/contacts/..", "", 405, "Allow: GET", `{"error":{"type":"method_not_allowed","message":"x"}}`, "no such operation"},
		{"outside the prefix", "GET /contacts", "", 404, "", notFound, ""},
		{"unknown path called a wrong method", "PUT /v1/nothing", "", 405, "Allow: GET", `{"error":{"type":"method_not_allowed","message":"x"}}`, "no such operation"},
		{"wrong method", "PUT " + id, "", 405, "Allow: GET, HEAD, PATCH, DELETE", `{"error":{"type":"method_not_allowed","message":"x"}}`, ""},
		{"wrong method called unknown path", "PUT " + id, "", 404, "", notFound, "no such operation"},
		{"wrong method without Allow", "PUT " + id, "", 405, "", `{"error":{"type":"method_not_allowed","message":"x"}}`, "Allow is missing"},
		{"wrong method with too short an Allow", "PUT " + id, "", 405, "Allow: GET, PATCH", `{"error":{"type":"method_not_allowed","message":"x"}}`, "lacks DELETE"},
		{"wrong method with too long an Allow", "PUT " + id, "", 405, "Allow: GET, PATCH, DELETE, PUT", `{"error":{"type":"method_not_allowed","message":"x"}}`, "no PUT there"},
		{"batch read as an id", "GET /v1/contacts/batch", "", 404, "", notFound, ""},
		{"batch read as the batch", "GET /v1/contacts/batch", "", 405, "Allow: POST", `{"error":{"type":"method_not_allowed","message":"x"}}`, ""},
		{"escaped letter", "GET /v1/c%6Fntacts", "", 200, "", `{"data":[]}`, ""},
		{"escaped letter taken literally", "GET /v1/c%6Fntacts", "", 404, "", notFound, ""},
		{"escaped slash in an id", "PUT /v1/contacts/a%2Fb", "", 404, "", notFound, ""},
		{"escaped id of an operation", "GET /v1/contacts/a%2Fb", "", 404, "", notFound, ""},
		{"head like get", "HEAD " + id, "", 200, "", "", ""},
		{"head refused", "HEAD " + id, "", 405, "Allow: DELETE, GET, PATCH", "", ""},
		{"head with an unlisted status", "HEAD " + id, "", 409, "", "", "does not list"},
		{"head with a body", "HEAD " + id, "", 200, "", one, "must be empty"},

		// Requests that the server took
		{"id that is no UUID", "GET /v1/contacts/7", "", 200, "", one, "id:"},
		{"id without dashes", "GET /v1/contacts/019a8f3c5b1e7c429d073f6a1b2c4d5e", "", 200, "", one, "id:"},
		{"upper-case UUID", "GET " + "/v1/contacts/" + strings.ToUpper(id[len("/v1/contacts/"):]), "", 200, "", one, ""},
		{"filters", "GET /v1/contacts?limit=200&email=a%40b&updated_since=2026-03-01T00%3A00%3A00%2B01%3A00", "", 200, "", `{"data":[]}`, ""},
		{"unknown parameter", "GET /v1/contacts?page=1", "", 200, "", `{"data":[]}`, `"page" does not exist`},
		{"repeated parameter", "GET /v1/contacts?limit=1&limit=1", "", 200, "", `{"data":[]}`, "limit is repeated"},
		{"limit too large", "GET /v1/contacts?limit=201", "", 200, "", `{"data":[]}`, "limit"},
		{"limit no integer", "GET /v1/contacts?limit=1.0", "", 200, "", `{"data":[]}`, "no integer"},
		{"limit with a leading zero", "GET /v1/contacts?limit=01", "", 200, "", `{"data":[]}`, "no integer"},
		{"empty filter", "GET /v1/contacts?email=", "", 200, "", `{"data":[]}`, "email"},
		{"trimmed filter", "GET /v1/contacts?external_id=+x", "", 200, "", `{"data":[]}`, ""},
		{"day for a time", "GET /v1/contacts?updated_since=2026-03-01", "", 200, "", `{"data":[]}`, "updated_since"},
		{"broken query", "GET /v1/contacts?limit=%zz", "", 200, "", `{"data":[]}`, "the query"},
		{"U+0000 in the query", "GET /v1/contacts?external_id=a%00", "", 200, "", `{"data":[]}`, "U+0000"},
		{"invalid UTF-8 in the query", "GET /v1/contacts?external_id=a%ff", "", 200, "", `{"data":[]}`, "invalid UTF-8"},
		{"sent", "POST /v1/conversations/outbound", send, 201, "Idempotency-Key: k", taken, ""},
		{"sent with a long key", "POST /v1/conversations/outbound", send, 201, "Idempotency-Key: " + strings.Repeat("k", 201), taken, "Idempotency-Key"},
		{"replayed, perhaps", "POST /v1/conversations/outbound", send, 201, "Idempotent-Replayed: false", taken, "Idempotent-Replayed"},
		{"sent without the opt-in", "POST /v1/conversations/outbound", strings.Replace(send, "true", "false", 1), 201, "Idempotency-Key: k", taken, "opt_in_confirmed"},
		{"sent to two", "POST /v1/conversations/outbound", strings.Replace(send, `"to":{`, `"to":{"contact_id":"019a8f3c-5b1e-7c42-9d07-3f6a1b2c4d5e",`, 1), 201, "Idempotency-Key: k", taken, "/to"},
		{"held by nobody, somehow", "POST /v1/conversations/outbound", send, 201, "Idempotency-Key: k", strings.Replace(taken, `"assigned_via":null`, `"assigned_via":"member"`, 1), "assigned_via"},
		{"missing parameter", "DELETE " + id + "/identities?kind=crm", "", 200, "", one, "value is missing"},
		{"restore that is a guess", "DELETE /v1/attributes/k?restore=1", "", 200, "", `{"data":{"key":"k","label":"K","description":"","type":"text","options":[],"position":0,"archived":true}}`, "restore"},
		{"refused rightly", "POST /v1/contacts", `{"nam":1}`, 400, "", invalid, ""},
		{"no identity", "POST /v1/contacts", `{"name":"Ada"}`, 201, "", one, "server accepted this"},
		{"null identity", "POST /v1/contacts", `{"email":null}`, 201, "", one, "server accepted this"},
		{"unknown member", "PATCH " + id, `{"nam":"Ada"}`, 200, "", one, "nam"},
		{"wrong JSON type", "PATCH " + id, `{"name":1}`, 200, "", one, "name"},
		{"no object", "PATCH " + id, `[]`, 200, "", one, "server accepted this"},
		{"no body in the request", "PATCH " + id, ``, 200, "", one, "body of the request"},
		{"trailing data in the request", "PATCH " + id, `{} x`, 200, "", one, "body of the request"},
		{"duplicate member in the request", "PATCH " + id, `{"name":"a","name":"b"}`, 200, "", one, "body of the request"},
		{"lone surrogate in the request", "PATCH " + id, `{"name":"\ud800"}`, 200, "", one, "body of the request"},
		{"U+0000 in the request", "PATCH " + id, `{"name":"a\u0000"}`, 200, "", one, "U+0000"},
		{"too long", "PATCH " + id, `{"name":"` + strings.Repeat("é", 256) + `"}`, 200, "", one, "name"},
		{"as long as it may be", "PATCH " + id, `{"name":"  ` + strings.Repeat("é", 255) + `  "}`, 200, "", one, ""},
		{"too many identities", "PATCH " + id, `{"identities":[` + strings.Repeat(`{"kind":"a","value":"b"},`, 50) + `{"kind":"a","value":"b"}]}`, 200, "", one, "identities"},
		{"long phone with separators", "PATCH " + id, `{"identities":[{"kind":"phone","value":"202` + strings.Repeat("-", 300) + `5550147"}]}`, 200, "", one, ""},
		{"long value", "PATCH " + id, `{"identities":[{"kind":"crm","value":"` + strings.Repeat("x", 256) + `"}]}`, 200, "", one, "value"},
		{"owner null", "PUT " + id + "/owner", `{"owner":null}`, 200, "", one, "owner"},

		// The batch
		{"rows", "POST /v1/contacts/batch", upserts, 200, "", summary + "[" + created + "," + failed1 + "," + failed2 + "]}", ""},
		{"row missing", "POST /v1/contacts/batch", upserts, 200, "", summary + "[" + created + "," + failed1 + "]}", "3 elements got 2 rows"},
		{"rows out of order", "POST /v1/contacts/batch", upserts, 200, "", summary + "[" + created + "," + failed2 + "," + failed1 + "]}", "has the index"},
		{"op not echoed", "POST /v1/contacts/batch", strings.Replace(upserts, "merge", "mrege", 1), 200, "", summary + "[" + created + "," + failed1 + "," + failed2 + "]}", "does not echo"},
		{"op made up", "POST /v1/contacts/batch", upserts, 200, "", summary + "[" + created + "," + failed1 + "," + strings.Replace(failed2, "null", `"7"`, 1) + "]}", "does not echo"},
		{"row with a bad element taken", "POST /v1/contacts/batch", strings.Replace(upserts, "external_id", "externalId", 1), 200, "", summary + "[" + created + "," + failed1 + "," + failed2 + "]}", "accepted row 0"},
		{"row with U+0000 taken", "POST /v1/contacts/batch", strings.Replace(upserts, "c-1", `c\u0000`, 1), 200, "", summary + "[" + created + "," + failed1 + "," + failed2 + "]}", "accepted row 0"},
		{"row with id and error", "POST /v1/contacts/batch", upserts, 200, "", summary + "[" + created + "," + strings.Replace(failed1, `"error":{`, `"id":null,"error":{`, 1) + "," + failed2 + "]}", "/results/1"},
		{"no operations", "POST /v1/contacts/batch", `{"operations":[]}`, 200, "", summary + "[" + created + "]}", "operations"},
		{"deep as allowed", "POST /v1/contacts/batch", `{"operations":[` + nested(30) + `]}`, 200, "", summary + `[` + strings.Replace(failed2, `"index":2`, `"index":0`, 1) + "]}", ""},
		{"too deep", "POST /v1/contacts/batch", `{"operations":[` + nested(31) + `]}`, 200, "", summary + `[` + strings.Replace(failed2, `"index":2`, `"index":0`, 1) + "]}", "deeper than 32"},
		{"too many operations", "POST /v1/contacts/batch", "{}", 400, "", `{"error":{"type":"too_many_operations","message":"x"}}`, ""},
		{"too many operations elsewhere", "POST /v1/contacts", "{}", 400, "", `{"error":{"type":"too_many_operations","message":"x"}}`, "type"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			method, target, _ := strings.Cut(tc.call, " ")
			req := httptest.NewRequest(method, target, nil)
			header := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {"r-1"}}
			if name, value, ok := strings.Cut(tc.headers, ":"); ok {
				header.Set(name, strings.TrimSpace(value))
				req.Header.Set(name, strings.TrimSpace(value)) // which of the two it belongs to is plain
			}
			err := d.Check(req, []byte(tc.send), tc.status, header, []byte(tc.body))
			if tc.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestCheck_requestID: the header is required even where the description forgets it.
func TestCheck_requestID(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := apitest.Load([]byte(strings.ReplaceAll(string(text), `X-Request-Id"`, `X-Other"`)))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Other": {"r-1"}}
	err = d.Check(httptest.NewRequest(http.MethodGet, id, nil), nil, 200, header, []byte(one))
	if err == nil || !strings.Contains(err.Error(), "X-Request-Id is missing") {
		t.Errorf("error = %v", err)
	}
}

func TestLoad_refuses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		damage func(doc map[string]any)
		want   string
	}{
		{"no OpenAPI document", func(doc map[string]any) { delete(doc, "info") }, "no valid OpenAPI"},
		{"no permission", func(doc map[string]any) {
			delete(doc["paths"].(map[string]any)["/members"].(map[string]any)["get"].(map[string]any), "x-permission")
		}, "GET /members: x-permission"},
		{"no answer for unknown paths", func(doc map[string]any) {
			delete(doc["components"].(map[string]any)["responses"].(map[string]any), "MethodNotAllowed")
		}, "MethodNotAllowed"},
		{"two servers", func(doc map[string]any) { doc["servers"] = append(doc["servers"].([]any), doc["servers"].([]any)[0]) }, "2 servers"},
		{"a cookie parameter", func(doc map[string]any) {
			get := doc["paths"].(map[string]any)["/members"].(map[string]any)["get"].(map[string]any)
			get["parameters"] = []any{map[string]any{"name": "X-A", "in": "cookie", "schema": map[string]any{"type": "string"}}}
		}, "X-A is in cookie"},
		{"half of x-rows", func(doc map[string]any) {
			post := doc["paths"].(map[string]any)["/contacts/batch"].(map[string]any)["post"].(map[string]any)
			post["x-rows"] = map[string]any{"operations": "operations"}
		}, "x-rows"},
		{"a status that is no number", func(doc map[string]any) {
			get := doc["paths"].(map[string]any)["/members"].(map[string]any)["get"].(map[string]any)
			get["responses"].(map[string]any)["4XX"] = map[string]any{"description": "x"}
		}, "4XX"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var doc map[string]any
			if err := json.Unmarshal(text, &doc); err != nil {
				t.Fatal(err)
			}
			tc.damage(doc)
			damaged, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := apitest.Load(damaged); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := apitest.Load([]byte("{")); err == nil {
		t.Error("half a JSON text was loaded")
	}
}

func BenchmarkCheck(b *testing.B) {
	d := description(b)
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {"r-1"}}
	list := `{"data":[` + strings.Repeat(contact+",", 9) + contact + `]}`
	for _, bc := range []struct {
		name, call, send, body string
		status                 int
	}{
		{"contact", "POST /v1/contacts", `{"external_id":"c-1","email":"Ada@example.com","attributes":{"plan":"pro"},"identities":[{"kind":"crm","value":"A-77"}]}`, one, 201},
		{"refusal", "GET " + id, "", notFound, 404},
		{"list=10", "GET /v1/contacts?limit=10", "", list, 200},
	} {
		b.Run(bc.name, func(b *testing.B) {
			method, target, _ := strings.Cut(bc.call, " ")
			req := httptest.NewRequest(method, target, nil)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Check(req, []byte(bc.send), bc.status, header, []byte(bc.body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("batch=1000", func(b *testing.B) {
		var send, rows []string
		for i := range 1000 {
			send = append(send, fmt.Sprintf(`{"op":"upsert","data":{"external_id":"c-%d","name":"Ada"}}`, i))
			rows = append(rows, strings.Replace(created, `"index":0`, fmt.Sprintf(`"index":%d`, i), 1))
		}
		req := httptest.NewRequest(http.MethodPost, "/v1/contacts/batch", nil)
		body := []byte(summary + "[" + strings.Join(rows, ",") + "]}")
		b.ReportAllocs()
		for b.Loop() {
			if err := d.Check(req, []byte(`{"operations":[`+strings.Join(send, ",")+"]}"), 200, header, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
