package api_test

import (
	"strings"
	"testing"
)

// TestMerges: the calls that merge contacts, and every answer about one that was merged.
func TestMerges(t *testing.T) {
	s := newDesk(t)
	into := contact(t, s.want(201, "POST /v1/contacts", `{"email":"ada@example.com","name":"Ada L.","owner":"grace@example.com"}`)).ID
	from := contact(t, s.want(201, "POST /v1/contacts", `{"email":"lovelace@example.com","name":"Ada Lovelace","phone":"+12022243441","owner":"ada@example.com","external_id":"77"}`)).ID
	talk := s.hear(s.channel, "+12022243441", "Hello")
	cast := idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"spring","language":"es"}}`))
	path := "POST /v1/contacts/" + into + "/merge"
	undo := func() string { return "POST /v1/merges/" + ids(t, s.want(200, "GET /v1/merges", ""))[0] + "/undo" }
	for _, c := range []struct{ name, call, body string }{
		{"itself", path, `{"from":"` + into + `"}`},
		{"unknown_field", path, `{"from":"` + from + `","take":["name","nose"]}`},
		{"no_from", path, `{"take":["name"]}`},
		{"unknown_member", path, `{"from":"` + from + `","Take":[]}`},
		{"nobody", path, `{"from":"0196f2a0-0000-7000-8000-000000000000"}`},
		{"tried", path, `{"from":"` + from + `","take":["name"],"dry_run":true}`},
		{"merged", path, `{"from":"` + from + `","take":["name"]}`},
		{"merged_again", path, `{"from":"` + from + `"}`},
		{"survivor", "GET /v1/contacts/" + into, ``},
		{"its_identities", "GET /v1/contacts/" + into + "/identities", ``},
		{"merged_id", "GET /v1/contacts/" + from, ``},
		{"merged_id_changed", "PATCH /v1/contacts/" + from, `{"name":"x"}`},
		{"merged_id_in_a_batch", "POST /v1/contacts/batch", `{"operations":[{"op":"delete","id":"` + from + `"}]}`},
		{"merged_id_written_to", outbound, message(`"to":{"contact_id":"` + from + `"}`)},
		{"merged_id_exported", "GET /v1/contacts/" + from + "/export", ``},
		{"merged_id_in_a_row", "POST /v1/broadcasts/" + cast + "/rows", `{"rows":[{"to":{"contact_id":"` + from + `"}}]}`},
		{"its_conversations", "GET /v1/contacts/" + from + "/conversations", ``},
		{"moved_conversation", "GET /v1/conversations/" + talk.ID.String(), ``},
		{"list", "GET /v1/merges?contact_id=" + from, ``},
		{"list_of_another", "GET /v1/merges?contact_id=0196f2a0-0000-7000-8000-000000000000", ``},
		{"undo_tried", "undo", `{"dry_run":true}`},
		{"undone", "undo", `{}`},
		{"undone_again", "undo", ``},
		{"back", "GET /v1/contacts/" + from, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.call == "undo" {
				c.call = undo()
			}
			if c.call == outbound {
				golden(t, s.outbound("k", c.body))
				return
			}
			golden(t, s.do(c.call, c.body))
		})
	}
}

// TestMerges_without_reading: a key that may only merge gets the answers to its own decisions, also
// when it tries them first or repeats them.
func TestMerges_without_reading(t *testing.T) {
	s := newDesk(t)
	crm := func(list ...string) string {
		var b []string
		for _, v := range list {
			b = append(b, `{"kind":"crm","value":"`+v+`"}`)
		}
		return `{"identities":[` + strings.Join(b, ",") + `]}`
	}
	var people []string
	for _, v := range []string{"1", "2", "3", "4"} {
		people = append(people, contact(t, s.want(201, "POST /v1/contacts", crm(v))).ID)
	}
	key := s.newKey(s.ws, "contacts:merge")
	decided := func(call, body string) {
		t.Helper()
		tried := strings.Replace(strings.Replace(body, "{", `{"dry_run":true,`, 1), ",}", "}", 1)
		for _, sent := range []string{tried, body, tried, body} {
			if r := s.as(key, call, sent); r.status != 200 {
				t.Errorf("%s %s: %d %s", call, sent, r.status, r.body)
			}
		}
	}
	decided("POST /v1/contacts/"+people[0]+"/merge", `{"from":"`+people[1]+`"}`)
	s.want(409, "POST /v1/contacts", crm("3", "4"))
	s.app.Conflicts.StoreNow(t.Context())
	decided("POST /v1/conflicts/"+ids(t, s.want(200, "GET /v1/conflicts", ""))[0]+"/resolve", `{"action":"dismiss"}`)
	decided("POST /v1/merges/"+ids(t, s.want(200, "GET /v1/merges", ""))[0]+"/undo", `{}`)
}
