package api_test

import (
	"strings"
	"testing"
)

// TestMessagesSayWhatToDo: after a small mistake, the message tells the caller which
// mistake it was, and what to do.
func TestMessagesSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	narrow := s.newKey(s.ws, "contacts:read,members:read")
	keys := s.operator(s.ws).Settings.Keys()
	id := keys[len(keys)-1].ID.String()
	for name, tc := range map[string]struct {
		key, call, body string
		status          int
		want            string
	}{
		"permission": {narrow, "GET /v1/channels", "", 403,
			"this key lacks the permission channels:read; an admin adds it in the console under Settings, Keys, or an operator with the command parley key edit " + id +
				" --permissions contacts:read,channels:read,members:read, which replaces the whole list; or use another key"},
		"byte order mark":   {s.key, "POST /v1/contacts", "\ufeff{}", 400, "the body begins with a byte order mark: send UTF-8 without one"},
		"value not UTF-8":   {s.key, "POST /v1/contacts", "{\"name\":\"a\xffb\"}", 400, "/name: this is not UTF-8, at byte 10 of the body"},
		"name not UTF-8":    {s.key, "POST /v1/contacts", "{\"n\xff\":1}", 400, "the body: this is not UTF-8, at byte 3 of the body"},
		"cut off":           {s.key, "POST /v1/contacts", "{\"name\":\"a\xc3", 400, "the body ends in the middle of a JSON value"},
		"query not UTF-8":   {s.key, "GET /v1/contacts?email=%ff", "", 400, "the query parameter email is not UTF-8"},
		"query parameter":   {s.key, "GET /v1/contacts?external-id=x", "", 400, `the query parameter \"external-id\" is unknown here: did you mean external_id?`},
		"slash":             {s.key, "POST /v1/contacts/", "{}", 404, "no such route: send it to /v1/contacts, without a slash at the end"},
		"slash after an id": {s.key, "GET /v1/contacts/x/", "", 404, "no such route: send it to /v1/contacts/{id}, without a slash at the end"},
		"two slashes":       {s.key, "GET /v1/contacts//", "", 404, "no such route; /docs lists those there are"},
		"member of a row":   {s.key, "POST /v1/contacts/batch", `{"operations":[{"op":"delete","emial":"x"}]}`, 200, "/operations/0/emial: unknown field: did you mean email?"},
	} {
		if r := s.as(tc.key, tc.call, tc.body); r.status != tc.status || !strings.Contains(string(r.body), `"message":"`+tc.want+`"`) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if metrics := s.send("GET", "/metrics", nil, "").body; !strings.Contains(string(metrics), `parley_http_requests_total{route="POST /v1/contacts",status="500"} 0`) {
		t.Error("a counter of errors is not there before the first error, so a rate does not see it")
	}
}
