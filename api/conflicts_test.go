package api_test

import "testing"

// TestConflicts: a refused write is remembered, and decided about.
func TestConflicts(t *testing.T) {
	s := newDesk(t)
	a := contact(t, s.want(201, "POST /v1/contacts", `{"email":"a@example.com","name":"Ada"}`)).ID
	b := contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243441"}`)).ID
	c := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"c"}`)).ID
	refuse := func(call, body string) string {
		t.Helper()
		before := ids(t, s.want(200, "GET /v1/conflicts", ""))
		s.want(409, call, body)
		s.app.Conflicts.StoreNow(t.Context())
		list := ids(t, s.want(200, "GET /v1/conflicts", ""))
		for _, id := range list {
			if len(before) == 0 || id != before[0] {
				return "/v1/conflicts/" + id
			}
		}
		return "/v1/conflicts/" + list[0]
	}
	two := refuse("POST /v1/contacts", `{"email":"A@example.com","phone":"+12022243441"}`)
	if again := refuse("PATCH /v1/contacts/"+a, `{"phone":"+12022243441"}`); again != two {
		t.Errorf("the same set is another conflict: %s, %s", two, again)
	}
	three := refuse("POST /v1/contacts", `{"email":"a@example.com","phone":"+12022243441","external_id":"c"}`)
	s.want(200, "POST /v1/contacts", `{"email":"a@example.com"}`)
	for _, call := range []struct{ name, call, body string }{
		{"open", "GET /v1/conflicts", ``},
		{"one", "GET " + two, ``},
		{"none_resolved", "GET /v1/conflicts?status=resolved", ``},
		{"bad_status", "GET /v1/conflicts?status=closed", ``},
		{"unknown", "GET /v1/conflicts/0196f2a0-0000-7000-8000-000000000000", ``},
		{"no_action", "POST " + two + "/resolve", `{}`},
		{"action", "POST " + two + "/resolve", `{"action":"forget"}`},
		{"merge_into_nobody", "POST " + two + "/resolve", `{"action":"merge"}`},
		{"merge_into_another", "POST " + two + "/resolve", `{"action":"merge","into":"` + c + `"}`},
		{"move_to_another", "POST " + two + "/resolve", `{"action":"move","identity":{"kind":"email","value":"a@example.com"},"to":"` + c + `"}`},
		{"move_another", "POST " + two + "/resolve", `{"action":"move","identity":{"kind":"external_id","value":"c"},"to":"` + a + `"}`},
		{"move_tried", "POST " + two + "/resolve", `{"action":"move","identity":{"kind":"email","value":"a@example.com"},"to":"` + b + `","dry_run":true}`},
		{"moved", "POST " + two + "/resolve", `{"action":"move","identity":{"kind":"email","value":"a@example.com"},"to":"` + b + `"}`},
		{"moved_again", "POST " + two + "/resolve", `{"action":"move","identity":{"kind":"email","value":"A@example.com"},"to":"` + b + `"}`},
		{"closed", "POST " + two + "/resolve", `{"action":"dismiss"}`},
		{"got_it", "GET /v1/contacts/" + b + "/identities", ``},
		{"lost_it", "GET /v1/contacts/" + a, ``},
		{"merge_tried", "POST " + three + "/resolve", `{"action":"merge","into":"` + c + `","dry_run":true}`},
		{"merged", "POST " + three + "/resolve", `{"action":"merge","into":"` + c + `"}`},
		{"survivor", "GET /v1/contacts/" + c + "/identities", ``},
		{"gone", "GET /v1/contacts/" + a, ``},
		{"resolved", "GET /v1/conflicts?status=resolved", ``},
	} {
		t.Run(call.name, func(t *testing.T) { golden(t, s.do(call.call, call.body)) })
	}
	merge := ids(t, s.want(200, "GET /v1/merges", ""))[0]
	s.want(200, "POST /v1/merges/"+merge+"/undo", `{}`)
	t.Run("open_again", func(t *testing.T) { golden(t, s.do("GET /v1/conflicts", "")) })
	s.want(204, "DELETE /v1/contacts/"+c, "")
	t.Run("gone_with_a_contact", func(t *testing.T) { golden(t, s.do("GET /v1/conflicts", "")) })
}
