package api_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

// TestTalk holds answers about how conversations stand to golden files. {first} is a
// conversation in which a person wrote twice, and {second} one in which somebody answered.
func TestTalk(t *testing.T) {
	const unknown = "0196f2a0-0000-7000-8000-000000000000"
	for _, tc := range []struct {
		name   string
		before []string // "METHOD /path body", which must succeed
		call   string
		body   string
		status int
	}{
		{"messages", nil, "GET /v1/conversations/{first}/messages", ``, 200},
		{"state", nil, "GET /v1/conversations/{first}/state", ``, 200},
		{"state_answered", nil, "GET /v1/conversations/{second}/state", ``, 200},
		{"state_unknown", nil, "GET /v1/conversations/" + unknown + "/state", ``, 404},
		{"read", nil, "PUT /v1/conversations/{first}/read", `{}`, 200},
		{"read_twice", []string{`PUT /v1/conversations/{first}/read {}`}, "PUT /v1/conversations/{first}/read", `{"receipt":false}`, 200},
		{"read_one", nil, "PUT /v1/conversations/{first}/read", `{"message_id":"{hello}"}`, 200},
		{"read_of_another", nil, "PUT /v1/conversations/{second}/read", `{"message_id":"{hello}"}`, 404},
		{"read_unknown", nil, "PUT /v1/conversations/{first}/read", `{"message_id":"` + unknown + `"}`, 404},
		{"read_no_id", nil, "PUT /v1/conversations/{first}/read", `{"message_id":"x"}`, 404},
		{"read_null", nil, "PUT /v1/conversations/{first}/read", `{"message_id":null}`, 400},
		{"read_bad_receipt", nil, "PUT /v1/conversations/{first}/read", `{"receipt":"yes"}`, 400},
		{"read_unknown_member", nil, "PUT /v1/conversations/{first}/read", `{"message":"x"}`, 400},
		{"pool", []string{`PUT /v1/conversations/{first}/assignee {"member":"ada@example.com"}`}, "DELETE /v1/conversations/{first}/assignee", ``, 200},
		{"pool_again", nil, "DELETE /v1/conversations/{first}/assignee", ``, 200},
		{"inbox", nil, "GET /v1/inbox", ``, 200},
		{"inbox_unread", []string{`PUT /v1/conversations/{first}/read {}`}, "GET /v1/inbox?unread=true", ``, 200},
		{"inbox_waiting", nil, "GET /v1/inbox?waiting=true", ``, 200},
		{"inbox_order", nil, "GET /v1/inbox?order=waiting&limit=1", ``, 200},
		{"inbox_closed", nil, "GET /v1/inbox?status=closed", ``, 200},
		{"inbox_filters", nil, "GET /v1/inbox?assignee=none&order=newest&active_since=2026-01-31T09:30:00Z&limit=1", ``, 200},
		{"inbox_bad_order", nil, "GET /v1/inbox?order=oldest", ``, 400},
		{"inbox_bad_unread", nil, "GET /v1/inbox?unread=false", ``, 400},
		{"inbox_bad_parameter", nil, "GET /v1/inbox?unred=true", ``, 400},
		{"active_since", nil, "GET /v1/conversations?active_since=2026-02-01T00:00:00Z", ``, 200},
		{"active_since_bad", nil, "GET /v1/conversations?active_since=today", ``, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			channel := s.addChannel("100")
			hear := func(from, text string, edit func(*app.InboundMessage)) *desk.Conversation {
				in := app.InboundMessage{ExternalID: fmt.Sprint("wamid.", text), Number: from, Name: "Ada", Text: text, At: desk.Time(s.clock.Load())}
				edit(&in)
				c, err := s.app.Receive(t.Context(), s.ws, channel, in)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			first := hear("12025550143", "Hello", func(*app.InboundMessage) {})
			messages, _, err := s.app.Messages(t.Context(), s.operator(s.ws), first.ID, "", 1)
			if err != nil {
				t.Fatal(err)
			}
			hear("12025550143", "[location] Home", func(in *app.InboundMessage) {
				in.Kind, in.ReplyTo = desk.KindLocation, "wamid.Hello"
				in.Content = &desk.Content{Location: &desk.Location{Latitude: 41.25, Longitude: -0.5, Name: "Home"}}
			})
			hear("12025550143", "[reaction] 👍", func(in *app.InboundMessage) {
				in.Kind, in.ReplyTo, in.Content = desk.KindReaction, "wamid.Hello", &desk.Content{Reaction: &desk.Reaction{Emoji: "👍"}}
			})
			second := hear("12025550144", "Hi", func(*app.InboundMessage) {})
			hear("12025550144", "Good morning", func(in *app.InboundMessage) { in.Echo = true })
			fill := strings.NewReplacer("{first}", first.ID.String(), "{second}", second.ID.String(), "{hello}", messages[0].ID.String())
			for _, before := range tc.before {
				method, rest, _ := strings.Cut(fill.Replace(before), " ")
				path, body, _ := strings.Cut(rest, " ")
				s.want(200, method+" "+path, body)
			}
			r := s.do(fill.Replace(tc.call), fill.Replace(tc.body))
			if r.status != tc.status {
				t.Errorf("status = %d, want %d: %s", r.status, tc.status, r.body)
			}
			golden(t, r)
		})
	}
	s := newServer(t)
	if r := s.as(s.newKey(s.ws, "conversations:read"), "GET /v1/inbox", ``); r.status != 403 || !strings.Contains(string(r.body), "contacts:read") {
		t.Errorf("without contacts:read: %d %s", r.status, r.body)
	}
}
