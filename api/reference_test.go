package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestLongReference: a reference of 150 KB of different letters gets the answer for an
// unknown member, and as fast, wherever a member can be named.
func TestLongReference(t *testing.T) {
	s := newDesk(t)
	talk := s.hear(s.channel, "+12022243441", "Hello").ID.String()
	id := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"x"}`)).ID
	var letters strings.Builder
	for i := range 50_000 {
		letters.WriteRune(rune(0x4e00 + i%20_000))
	}
	long, short := "a@"+letters.String()+".com", "nobody@example.com"
	inQuery := url.QueryEscape("a@" + letters.String()[:18_000] + ".com")
	for _, c := range []struct {
		call, body string
		status     int
	}{
		{"POST /v1/contacts", `{"external_id":"y","owner":"%s"}`, 400},
		{"PATCH /v1/contacts/" + id, `{"owner":"%s"}`, 400},
		{"PUT /v1/contacts/" + id + "/owner", `{"owner":"%s"}`, 400},
		{"POST /v1/contacts/batch", `{"operations":[{"op":"upsert","contact":{"external_id":"y","owner":"%s"}},{"op":"assign","external_id":"x","owner":"%[1]s"}]}`, 200},
		{"GET /v1/contacts?owner=%s", "", 400},
		{"GET /v1/conversations?assignee=%s", "", 400},
		{"GET /v1/inbox?assignee=%s", "", 400},
		{"GET /v1/templates?agent=%s", "", 200},
		{"GET /v1/snippets?agent=%s", "", 200},
		{"PUT /v1/conversations/" + talk + "/assignee", `{"member":"%s"}`, 400},
		{"POST /v1/conversations/" + talk + "/notes", `{"text":"a","member":"%s"}`, 400},
		{"POST /v1/conversations/" + talk + "/messages", `{"text":"a","member":"%s"}`, 400},
		{"POST /v1/conversations/outbound", `{"to":{"phone":"+12022243441"},"template":{"name":"thanks","language":"en_US"},"opt_in_confirmed":true,"assignee":"%s"}`, 400},
		{"PUT /v1/policy", `{"assign":{"mode":"least_open","members":["%s"]}}`, 400},
	} {
		answer := func(ref, escaped string) (int, string) {
			call, body := strings.ReplaceAll(c.call, "%s", escaped), c.body
			if body != "" {
				body = fmt.Sprintf(body, ref)
			}
			method, target, _ := strings.Cut(call, " ")
			r := s.send(method, target, http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": {"k"}}, body)
			return r.status, string(r.body)
		}
		status, want := answer(short, url.QueryEscape(short))
		begun := time.Now()
		_, got := answer(long, inQuery)
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("%s: took %v", c.call, took)
		}
		if status != c.status || got != want {
			t.Errorf("%s: the answer is %.200s, and for an unknown member %d %.200s", c.call, got, status, want)
		}
	}
}
