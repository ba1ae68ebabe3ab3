package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestSnippets(t *testing.T) {
	s := newServer(t)
	ada := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"ada","name":"Ada Lovelace"}`)).ID
	nameless := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"x"}`)).ID
	const text = "Hi {{customer_first_name}}, this is {{agent_name}}"
	for _, c := range []struct {
		call, body string
		status     int
		want       string
	}{
		{"GET /v1/snippets", "", 200, `{"data":[]}`},
		{"PUT /v1/snippets/hi", `{"text":"` + text + `"}`, 201, `{"data":{"shortcut":"hi","text":"` + text + `","filled":null,"updated_at":"`},
		{"PUT /v1/snippets/hi", `{"text":"` + text + `"}`, 200, `"text":"` + text},
		{"PUT /v1/snippets/bye", `{"text":" Bye\n"}`, 201, `"text":" Bye\n"`},
		{"PUT /v1/snippets/bye", `{"text":"Bye {{customer_last_name}}"}`, 200, `"text":"Bye {{customer_last_name}}"`},
		{"GET /v1/snippets?contact_id=" + ada + "&agent=grace@example.com", "", 200,
			`"text":"Bye {{customer_last_name}}","filled":"Bye Lovelace",`},
		{"GET /v1/snippets?contact_id=" + ada + "&agent=grace@example.com", "", 200, `"filled":"Hi Ada, this is Grace Hopper",`},
		{"GET /v1/snippets?contact_id=" + nameless, "", 200, `"filled":"` + text + `"`},
		{"GET /v1/snippets?agent=nobody", "", 200, `"filled":"` + text + `"`},
		{"GET /v1/snippets?agent=%00", "", 400, "agent"},
		{"GET /v1/snippets?contact_id=x", "", 400, "contact_id"},
		{"GET /v1/snippets?contact_id=0196f2a0-0000-7000-8000-000000000000", "", 404, "not_found"},
		{"GET /v1/snippets?limit=5", "", 400, "limit"},
		{"PUT /v1/snippets/Hi", `{"text":"Hi"}`, 400, "/shortcut"},
		{"PUT /v1/snippets/hi", `{"text":"Hi {{name}}"}`, 400, "/text"},
		{"PUT /v1/snippets/hi", `{"text":null}`, 400, "/text"},
		{"PUT /v1/snippets/hi", `{}`, 400, "/text"},
		{"PUT /v1/snippets/hi", `{"text":"a\u0000"}`, 400, "/text"},
		{"PUT /v1/snippets/hi", `{"text":"` + strings.Repeat("x", 4097) + `"}`, 400, "/text"},
		{"DELETE /v1/snippets/bye", "", 204, ""},
		{"DELETE /v1/snippets/bye", "", 404, "not_found"},
		{"DELETE /v1/snippets/B%20", "", 404, "not_found"},
	} {
		r := s.do(c.call, c.body)
		if r.status != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s %s: %d %s", c.call, c.body, r.status, r.body)
		}
	}
	blind := s.newKey(s.ws, "templates:read")
	if r := s.as(blind, "GET /v1/snippets?contact_id="+ada, ""); r.status != 403 || !strings.Contains(string(r.body), "contacts:read") {
		t.Errorf("a contact's name without contacts:read: %d %s", r.status, r.body)
	}
	if r := s.as(blind, "GET /v1/snippets?agent=grace@example.com", ""); r.status != 200 {
		t.Errorf("an agent's name: %d %s", r.status, r.body)
	}
	for i := range 499 {
		s.want(201, fmt.Sprintf("PUT /v1/snippets/s%d", i), `{"text":"x"}`)
	}
	if r := s.do("PUT /v1/snippets/more", `{"text":"x"}`); r.status != 400 || !strings.Contains(string(r.body), "500") {
		t.Errorf("the 501st: %d %s", r.status, r.body)
	}
	s.want(200, "PUT /v1/snippets/s7", `{"text":"y"}`)
}
