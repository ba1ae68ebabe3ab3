package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestAttributes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before []string
		call   string
		body   string
		status int
	}{
		{"create", nil, "POST /v1/attributes", `{"key":"plan","label":"Plan","type":"select","options":["free","pro"],"description":"d","position":7}`, 201},
		{"create_defaults", []string{`{"key":"a","type":"text"}`}, "POST /v1/attributes", `{"key":"b","type":"number"}`, 201},
		{"update", []string{`{"key":"plan","label":"Plan","type":"select","options":["free"],"description":"d"}`}, "POST /v1/attributes", `{"key":"plan","options":["free","pro"],"label":null}`, 200},
		{"type_conflict", []string{`{"key":"a","type":"text"}`}, "POST /v1/attributes", `{"key":"a","type":"number"}`, 409},
		{"no_type", nil, "POST /v1/attributes", `{"key":"a"}`, 400},
		{"no_key", nil, "POST /v1/attributes", `{"type":"text"}`, 400},
		{"bad_key", nil, "POST /v1/attributes", `{"key":"A","type":"text"}`, 400},
		{"no_options", nil, "POST /v1/attributes", `{"key":"a","type":"select"}`, 400},
		{"options_of_text", nil, "POST /v1/attributes", `{"key":"a","type":"text","options":["x"]}`, 400},
		{"position_fraction", nil, "POST /v1/attributes", `{"key":"a","type":"text","position":1.5}`, 400},
		{"position_string", nil, "POST /v1/attributes", `{"key":"a","type":"text","position":"1"}`, 400},
		{"archive", []string{`{"key":"a","type":"text"}`}, "DELETE /v1/attributes/a", ``, 200},
		{"restore", []string{`{"key":"a","type":"text"}`}, "DELETE /v1/attributes/a?restore=true", ``, 200},
		{"restore_guess", []string{`{"key":"a","type":"text"}`}, "DELETE /v1/attributes/a?restore=1", ``, 400},
		{"archive_unknown", nil, "DELETE /v1/attributes/a", ``, 404},
		{"list", []string{`{"key":"b","type":"text"}`, `{"key":"a","type":"text","position":0}`}, "GET /v1/attributes", ``, 200},
		{"list_bad", nil, "GET /v1/attributes?archived=yes", ``, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			for _, body := range tc.before {
				s.want(201, "POST /v1/attributes", body)
			}
			r := s.do(tc.call, tc.body)
			if r.status != tc.status {
				t.Errorf("status = %d, want %d", r.status, tc.status)
			}
			golden(t, r)
		})
	}
}

// TestArchivedValuesStay follows spec.md's states of an attribute.
func TestArchivedValuesStay(t *testing.T) {
	s := newServer(t)
	s.want(201, "POST /v1/attributes", `{"key":"a","type":"text"}`)
	id := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"x","attributes":{"a":"kept"}}`)).ID
	for range 2 { // archiving is idempotent
		s.want(200, "DELETE /v1/attributes/a", "")
	}
	for _, value := range []string{`"new"`, `null`, `""`} {
		r := s.do("PATCH /v1/contacts/"+id, `{"attributes":{"a":`+value+`}}`)
		if r.status != 422 || errorType(r.body) != "invalid_attributes" {
			t.Errorf("writing %s: %d %s", value, r.status, r.body)
		}
	}
	if c := contact(t, s.want(200, "PATCH /v1/contacts/"+id, `{"attributes":null}`)); string(c.Attributes["a"]) != `"kept"` {
		t.Errorf("attributes = %s", c.Attributes)
	}
	for archived, want := range map[string]int{"": 0, "?archived=false": 0, "?archived=true": 1, "?archived=all": 1} {
		var list struct{ Data []any }
		decodeJSON(t, s.want(200, "GET /v1/attributes"+archived, ""), &list)
		if len(list.Data) != want {
			t.Errorf("GET /attributes%s lists %d", archived, len(list.Data))
		}
	}
	s.want(200, "POST /v1/attributes", `{"key":"a","label":"A"}`) // and stays archived
	s.want(200, "DELETE /v1/attributes/a?restore=true", "")
	s.want(200, "PATCH /v1/contacts/"+id, `{"attributes":{"a":"new"}}`)
}

func TestAttributeLimit(t *testing.T) {
	s := newServer(t)
	for i := range 300 {
		s.want(201, "POST /v1/attributes", fmt.Sprintf(`{"key":"a%d","type":"text"}`, i))
	}
	if r := s.do("POST /v1/attributes", `{"key":"b","type":"text"}`); r.status != 400 || errorType(r.body) != "invalid_request" {
		t.Errorf("the 301st: %d %s", r.status, r.body)
	}
	s.want(200, "POST /v1/attributes", `{"key":"a7","label":"Seven"}`)
}

func TestMembers(t *testing.T) {
	s := newServer(t)
	golden(t, s.do("GET /v1/members", ""))
	var names []string
	next := ""
	for range 5 {
		var page struct {
			Data       []struct{ Name string }
			NextCursor string `json:"next_cursor"`
		}
		decodeJSON(t, s.want(200, "GET /v1/members?limit=1"+next, ""), &page)
		names = append(names, page.Data[0].Name)
		if page.NextCursor == "" {
			break
		}
		next = "&cursor=" + page.NextCursor
	}
	if fmt.Sprint(names) != "[Ada Lovelace Alan Turing Grace Hopper]" {
		t.Errorf("walk: %v", names)
	}
}

func TestAvailability(t *testing.T) {
	s := newServer(t)
	ada := s.members[0].ID.String()
	for _, c := range []struct {
		id, body, want string
		status         int
	}{
		{ada, `{"available":false}`, `"role":"agent","available":false}`, 200},
		{ada, `{"available":false}`, `"available":false`, 200},
		{strings.ToUpper(ada), `{"available":true}`, `"available":true`, 200},
		{ada, `{}`, "/available", 400},
		{ada, `{"available":null}`, "/available", 400},
		{ada, `{"available":"false"}`, "/available", 400},
		{ada, `{"available":true,"role":"admin"}`, "/role", 400},
		{"x", `{"available":0}`, "/available", 400},
		{"x", `{"available":true}`, "not_found", 404},
		{s.ws.String(), `{"available":true}`, "not_found", 404},
	} {
		r := s.do("PUT /v1/members/"+c.id+"/availability", c.body)
		if r.status != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s %s: %d %s", c.id, c.body, r.status, r.body)
		}
	}
}

// TestMemberRemoved: the contacts of a removed member go to the shared pool.
func TestMemberRemoved(t *testing.T) {
	s := newServer(t)
	for i := range 5 {
		s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"external_id":"x%d","owner":"ada@example.com"}`, i))
	}
	if err := s.app.RemoveMember(t.Context(), s.operator(s.ws), s.members[0].ID); err != nil {
		t.Fatal(err)
	}
	var list struct{ Data []struct{ Owner any } }
	decodeJSON(t, s.want(200, "GET /v1/contacts", ""), &list)
	for _, c := range list.Data {
		if c.Owner != nil {
			t.Errorf("owner = %v", c.Owner)
		}
	}
	if r := s.do("POST /v1/contacts", `{"external_id":"x1","owner":"ada@example.com"}`); r.status != 400 {
		t.Errorf("a removed member owns again: %d", r.status)
	}
}
