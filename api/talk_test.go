package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/api"
	"parley/desk"
	"parley/provider"
)

// TestTalk compares answers about the state of conversations with golden files. {first} is
// a conversation in which a person wrote twice, and {second} one in which somebody
// answered.
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
		{"read_null", nil, "PUT /v1/conversations/{first}/read", `{"message_id":null,"receipt":null}`, 200},
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
			hear := func(from, text string, edit func(*provider.InboundMessage)) *desk.Conversation {
				in := provider.InboundMessage{ExternalID: fmt.Sprint("wamid.", text), Number: from, Name: "Ada", Text: text, At: desk.Time(s.clock.Load())}
				edit(&in)
				c, err := s.app.Receive(t.Context(), s.ws, channel, in)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			first := hear("12025550143", "Hello", func(*provider.InboundMessage) {})
			messages, _, err := s.app.Messages(t.Context(), s.operator(s.ws), first.ID, "", 1)
			if err != nil {
				t.Fatal(err)
			}
			hear("12025550143", "[location] Home", func(in *provider.InboundMessage) {
				in.Kind, in.ReplyTo = desk.KindLocation, "wamid.Hello"
				in.Extra = &desk.Extra{Location: &desk.Location{Latitude: 41.25, Longitude: -0.5, Name: "Home"}}
			})
			hear("12025550143", "[reaction] 👍", func(in *provider.InboundMessage) {
				in.Kind, in.ReplyTo, in.Extra = desk.KindReaction, "wamid.Hello", &desk.Extra{Reaction: &desk.Reaction{Emoji: "👍"}}
			})
			second := hear("12025550144", "Hi", func(*provider.InboundMessage) {})
			hear("12025550144", "Good morning", func(in *provider.InboundMessage) { in.Echo = true })
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

// TestReply compares the answers to replies with golden files. {first} is a conversation in
// which a person wrote {hello} just now, {old} one in which somebody wrote two days ago.
func TestReply(t *testing.T) {
	buttons := func(list string) string { return `{"text":"Hi","buttons":` + list + `}` }
	for _, tc := range []struct {
		name   string
		before []string // "METHOD /path body", which must succeed
		call   string
		body   string
		status int
	}{
		{"text", nil, "{first}", `{"text":" Two left.\nShall I keep one?"}`, 201},
		{"member", nil, "{first}", `{"text":"Hi","member":"ADA@example.com","buttons":null,"reply_to":null}`, 201},
		{"buttons", nil, "{first}", `{"text":"Hi","buttons":[{"id":"a","title":"Yes"},{"id":"b","title":"No"}],"reply_to":"{hello}"}`, 201},
		{"attachment_and_text", nil, "{first}", `{"text":"Hi","attachment":{"media_id":"x"}}`, 400},
		{"attachment_and_buttons", nil, "{first}", `{"attachment":{"media_id":"x"},"buttons":[{"id":"a","title":"A"}]}`, 400},
		{"attachment_without_id", nil, "{first}", `{"attachment":{"caption":"x"}}`, 400},
		{"attachment_empty_caption", nil, "{first}", `{"attachment":{"media_id":"x","caption":""}}`, 400},
		{"attachment_unknown", nil, "{first}", `{"attachment":{"media_id":"x"}}`, 404},
		{"attachment", nil, "{first}", `{"text":null,"attachment":{"media_id":"{picture}","caption":"Our shop"}}`, 201},
		{"attachment_dry_run", nil, "{first}", `{"attachment":{"media_id":"{picture}"},"dry_run":true}`, 200},
		{"attachment_not_sendable", nil, "{first}", `{"attachment":{"media_id":"{page}"}}`, 422},
		{"dry_run", nil, "{first}", `{"text":"Hi","member":"ada@example.com","dry_run":true}`, 200},
		{"dry_run_refused", nil, "{old}", `{"text":"Hi","dry_run":true}`, 422},
		{"expired", nil, "{old}", `{"text":"Hi"}`, 422},
		{"closed", []string{`PUT /v1/conversations/{first}/status {"status":"closed"}`}, "{first}", `{"text":"Hi"}`, 409},
		{"no_text", nil, "{first}", `{}`, 400},
		{"blank", nil, "{first}", `{"text":" "}`, 400},
		{"null_text", nil, "{first}", `{"text":null}`, 400},
		{"too_long", nil, "{first}", `{"text":"` + strings.Repeat("a", 4097) + `"}`, 400},
		{"nul", nil, "{first}", `{"text":"a\u0000"}`, 400},
		{"no_buttons", nil, "{first}", buttons(`[]`), 400},
		{"four_buttons", nil, "{first}", buttons(`[{"id":"a","title":"A"},{"id":"b","title":"B"},{"id":"c","title":"C"},{"id":"d","title":"D"}]`), 400},
		{"same_button", nil, "{first}", buttons(`[{"id":"a","title":"A"},{"id":"a","title":"B"}]`), 400},
		{"half_a_button", nil, "{first}", buttons(`[{"id":"a"}]`), 400},
		{"unknown_member", nil, "{first}", `{"text":"Hi","member":"nobody@example.com"}`, 400},
		{"unknown_reply_to", nil, "{first}", `{"text":"Hi","reply_to":"x"}`, 400},
		{"unknown_name", nil, "{first}", `{"text":"Hi","to":"x"}`, 400},
		{"unknown", nil, "0196f2a0-0000-7000-8000-000000000000", `{"text":"Hi"}`, 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			clock := new(atomic.Int64) // the window is also checked by the store's clock
			s := newServerOn(t, openStore(t, func() time.Time { return time.UnixMilli(clock.Load()) }), clock, api.Config{})
			channel := s.addChannel("100")
			hear := func(from string, at desk.Time) *desk.Conversation {
				c, err := s.app.Receive(t.Context(), s.ws, channel, provider.InboundMessage{ExternalID: "wamid." + from, Number: from, Text: "Hello", At: at})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			now := desk.Time(s.clock.Load())
			first, old := hear("12025550143", now), hear("12025550144", now-2*24*3_600_000)
			messages, _, err := s.app.Messages(t.Context(), s.operator(s.ws), first.ID, "", 1)
			if err != nil {
				t.Fatal(err)
			}
			upload := func(name, content string) string {
				m, err := s.app.Media.Upload(t.Context(), s.operator(s.ws), desk.FileHead{Name: name}, strings.NewReader(content))
				if err != nil {
					t.Fatal(err)
				}
				return m.ID.String()
			}
			fill := strings.NewReplacer("{first}", first.ID.String(), "{old}", old.ID.String(), "{hello}", messages[0].ID.String())
			if strings.Contains(tc.body, "{picture}") || strings.Contains(tc.body, "{page}") {
				fill = strings.NewReplacer("{first}", first.ID.String(), "{picture}", upload("shop.jpg", "\xff\xd8\xff\xe0 a picture"), "{page}", upload("page.html", "<html>"))
			}
			for _, before := range tc.before {
				method, rest, _ := strings.Cut(fill.Replace(before), " ")
				path, body, _ := strings.Cut(rest, " ")
				s.want(200, method+" "+path, body)
			}
			path := "/v1/conversations/" + fill.Replace(tc.call) + "/messages"
			send := func() reply {
				return s.send("POST", path, http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": {"k"}}, fill.Replace(tc.body))
			}
			r := send()
			if r.status != tc.status {
				t.Errorf("status = %d, want %d: %s", r.status, tc.status, r.body)
			}
			golden(t, r)
			if again := send(); tc.status == 201 && (string(again.body) != string(r.body) || again.header.Get("Idempotent-Replayed") != "true") {
				t.Errorf("again: %v %s", again.header, again.body)
			}
		})
	}
}
