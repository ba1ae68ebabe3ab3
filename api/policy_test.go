package api_test

import (
	"strings"
	"testing"
)

func TestPolicy(t *testing.T) {
	s := newDesk(t)
	ada, alan, channel := s.members[0].ID.String(), s.members[2].ID.String(), s.channel.String()
	const none = `{"data":{"channel_id":null,"assign":null,"owner_away":null,"hours":null,"auto_reply":null,"updated_at":null}}`
	const hours = `"hours":{"time_zone":"Europe/Istanbul","week":{"mon":[["09:00","12:30"],["13:30","18:00"]],"sat":[]},"exceptions":[{"date":"2026-12-31","open":[]}]}`
	const replies = `"auto_reply":{"away":"We are back at nine.","queued":null,"every_hours":12,"when_held":false}`
	own := "/v1/channels/" + channel + "/policy"
	for _, c := range []struct {
		call, body string
		status     int
		want       string
	}{
		{"GET /v1/policy", "", 200, none},
		{"GET " + own, "", 200, none},
		{"GET /v1/channels/" + channel + "/hours", "", 200, `{"data":{"open":true,"until":null}}`},
		{"PUT /v1/policy", `{}`, 200, none},
		{"PUT /v1/policy", `{"owner_away":"keep"}`, 200, none},
		{"DELETE " + own, "", 204, ""},
		{"PUT /v1/policy", `{"assign":{"mode":"least_open","members":["ADA@example.com","` + alan + `"],"max_open":20},` + hours + `,"auto_reply":{"away":"We are back at nine."}}`, 200,
			`{"data":{"channel_id":null,"assign":{"mode":"least_open","members":["` + ada + `","` + alan + `"],"max_open":20},"owner_away":"keep",` + hours + `,` + replies + `,"updated_at":"2`},
		{"GET /v1/policy", "", 200, replies},
		{"GET " + own, "", 200, `{"data":{"channel_id":null,"assign":{"mode":"least_open"`},
		{"GET /v1/channels/" + channel + "/hours?at=2026-11-23T06:00:00Z", "", 200, `{"data":{"open":true,"until":"2026-11-23T09:30:00.000Z"}}`},
		{"GET /v1/channels/" + channel + "/hours?at=1970-01-01T00:00:00Z", "", 200, `{"data":{"open":false,"until":"1970-01-05T07:00:00.000Z"}}`},
		{"GET /v1/channels/" + channel + "/hours?at=yesterday", "", 400, "at: "},
		{"GET /v1/channels/x/hours?at=yesterday", "", 400, "at: "},
		{"GET /v1/channels/x/hours", "", 404, "not_found"},
		{"GET /v1/channels/" + channel + "/hours?to=x", "", 400, "unknown"},
		{"PUT " + own, `{"hours":{"time_zone":"UTC","week":null,"exceptions":null}}`, 200, `{"data":{"channel_id":"` + channel + `","assign":null,"owner_away":"keep","hours":{"time_zone":"UTC","week":{},"exceptions":[]},"auto_reply":null,"updated_at":"`},
		{"GET /v1/channels/" + channel + "/hours", "", 200, `{"data":{"open":false,"until":null}}`},
		{"GET " + own, "", 200, `{"data":{"channel_id":"` + channel + `","assign":null,`},
		{"GET /v1/policy", "", 200, replies},
		{"PUT /v1/channels/00000000-0000-0000-0000-000000000000/policy", `{}`, 404, "not_found"},
		{"PUT /v1/channels/x/policy", `{"assign":{"mode":"none","members":["nobody"]}}`, 404, "not_found"},
		{"PUT /v1/channels/x/policy", `{"assign":{"mode":"some"}}`, 400, "/assign/mode"},
		{"PUT /v1/policy", `{"assign":{"mode":"round_robin","members":["nobody"]}}`, 400, "/assign/members/0"},
		{"PUT /v1/policy", `{"assign":{"mode":"round_robin","members":["` + ada + `","ada@example.com"]}}`, 400, "/assign/members/1"},
		{"PUT /v1/policy", `{"assign":{"mode":"round_robin","members":[7]}}`, 400, "/assign/members/0"},
		{"PUT /v1/policy", `{"assign":{"max_open":1.5}}`, 400, "/assign/max_open"},
		{"PUT /v1/policy", `{"assign":[]}`, 400, "/assign"},
		{"PUT /v1/policy", `{"hours":{"time_zone":"Mars"}}`, 400, "/hours/time_zone"},
		{"PUT /v1/policy", `{"hours":{"time_zone":"UTC","week":{"mon":[["9:00","10:00"]]}}}`, 400, "/hours/week/mon/0/0"},
		{"PUT /v1/policy", `{"hours":{"time_zone":"UTC","week":{"mon":null}}}`, 400, "/hours/week/mon"},
		{"PUT /v1/policy", `{"hours":{"time_zone":"UTC","week":{"monday":[]}}}`, 400, "monday"},
		{"PUT /v1/policy", `{"hours":{"time_zone":"UTC","exceptions":[{"date":"2026-12-31"}]}}`, 400, "/hours/exceptions/0/open"},
		{"PUT /v1/policy", `{"owner_away":"nobody"}`, 400, "/owner_away"},
		{"PUT /v1/policy", `{"owner_away":true}`, 400, "/owner_away"},
		{"PUT " + own, `{"owner_away":"pool"}`, 200, `{"data":{"channel_id":"` + channel + `","assign":null,"owner_away":"pool","hours":null,"auto_reply":null,"updated_at":"`},
		{"GET " + own, "", 200, `"owner_away":"pool"`},
		{"PUT " + own, `{"owner_away":null}`, 200, `"owner_away":"keep"`},
		{"PUT /v1/policy", `{"auto_reply":{"away":""}}`, 400, "/auto_reply/away"},
		{"PUT /v1/policy", `{"auto_reply":{"every_hours":0}}`, 400, "/auto_reply/every_hours"},
		{"PUT /v1/policy", `{"auto_reply":{"awa":""}}`, 400, "did you mean away"},
		{"PUT /v1/policy", `{"channel_id":null}`, 400, "/channel_id"},
		{"PUT /v1/policy", ``, 400, "no body"},
	} {
		r := s.do(c.call, c.body)
		if r.status != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.call, c.body, r.status, r.body, c.status, c.want)
		}
	}
	s.want(204, "DELETE "+own, "")
	before := string(s.want(200, "GET "+own, ""))
	if err := s.app.RemoveMember(t.Context(), s.operator(s.ws), s.members[0].ID); err != nil {
		t.Fatal(err)
	}
	if after := string(s.want(200, "GET "+own, "")); !strings.Contains(before, ada) || !strings.Contains(after, `"members":["`+alan+`"]`) {
		t.Errorf("a removed member stays in\n%s\nbefore\n%s", after, before)
	}
	page := s.events("?limit=200").Data
	if last, one := page[len(page)-1], page[len(page)-2]; last.Type != "member.deleted" || one.Type != "policy.updated" || one.Actor.Kind != "cli" || strings.Join(one.Changed, " ") != "assign" {
		t.Errorf("the last events: %+v, %+v", one, last)
	}
}
