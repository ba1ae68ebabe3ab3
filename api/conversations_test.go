package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/sandbox"
	"parley/store"
	"parley/work"
)

// TestConversations compares answers with golden files. In each case there are two
// contacts. A message was exchanged with the first one: {first} is their conversation,
// {ada} the contact.
func TestConversations(t *testing.T) {
	const unknown = "0196f2a0-0000-7000-8000-000000000000"
	for _, tc := range []struct {
		name   string
		before []string // "METHOD /path body", which must succeed
		call   string
		body   string
		status int
	}{
		{"of_contact", nil, "GET /v1/contacts/{ada}/conversations", ``, 200},
		{"of_contact_open", nil, "GET /v1/contacts/{ada}/conversations?status=open", ``, 200},
		{"of_contact_archived", nil, "GET /v1/contacts/{ada}/conversations?status=archived", ``, 200},
		{"of_contact_without", nil, "GET /v1/contacts/{bob}/conversations", ``, 200},
		{"of_contact_unknown", nil, "GET /v1/contacts/" + unknown + "/conversations", ``, 404},
		{"of_contact_bad_query_first", nil, "GET /v1/contacts/" + unknown + "/conversations?status=new", ``, 400},
		{"of_contact_empty_status", nil, "GET /v1/contacts/{ada}/conversations?status=", ``, 400},
		{"of_contact_unknown_parameter", nil, "GET /v1/contacts/{ada}/conversations?channel_id=" + unknown, ``, 400},
		{"of_contact_limit", nil, "GET /v1/contacts/{ada}/conversations?limit=0", ``, 400},
		{"of_contact_cursor", nil, "GET /v1/contacts/{ada}/conversations?cursor=abc", ``, 400},

		{"list", nil, "GET /v1/conversations", ``, 200},
		{"list_status", nil, "GET /v1/conversations?status=closed", ``, 200},
		{"list_bad_status", nil, "GET /v1/conversations?status=Open", ``, 400},
		{"list_assignee", []string{`PUT /v1/conversations/{first}/assignee {"member":"ada@example.com"}`}, "GET /v1/conversations?assignee=ADA@example.com", ``, 200},
		{"list_assignee_other", nil, "GET /v1/conversations?assignee=ada@example.com", ``, 200},
		{"list_unassigned", nil, "GET /v1/conversations?assignee=none", ``, 200},
		{"list_assignee_unknown", nil, "GET /v1/conversations?assignee=nobody@example.com", ``, 400},
		{"list_assignee_empty", nil, "GET /v1/conversations?assignee=", ``, 400},
		{"list_channel", nil, "GET /v1/conversations?channel_id={channel}&contact_id={ada}&status=open&assignee=none&limit=1", ``, 200},
		{"list_channel_unknown", nil, "GET /v1/conversations?channel_id=" + unknown, ``, 200},
		{"list_channel_zero", nil, "GET /v1/conversations?channel_id=00000000-0000-0000-0000-000000000000", ``, 200},
		{"list_channel_malformed", nil, "GET /v1/conversations?channel_id=x", ``, 400},
		{"list_contact", nil, "GET /v1/conversations?contact_id={bob}", ``, 200},
		{"list_contact_unknown", nil, "GET /v1/conversations?contact_id=" + unknown, ``, 200},
		{"list_contact_zero", nil, "GET /v1/conversations?contact_id=00000000-0000-0000-0000-000000000000", ``, 200},
		{"list_contact_malformed", nil, "GET /v1/conversations?contact_id=", ``, 400},
		{"list_unknown_parameter", nil, "GET /v1/conversations?contact=x", ``, 400},
		{"list_repeated_parameter", nil, "GET /v1/conversations?status=open&status=open", ``, 400},
		{"list_cursor", nil, "GET /v1/conversations?cursor=abc", ``, 400},

		{"get", nil, "GET /v1/conversations/{first}", ``, 200},
		{"get_ignores_query", nil, "GET /v1/conversations/{first}?x=1", ``, 200},
		{"get_unknown", nil, "GET /v1/conversations/" + unknown, ``, 404},
		{"get_outbound", nil, "GET /v1/conversations/outbound", ``, 404},

		{"messages", nil, "GET /v1/conversations/{first}/messages", ``, 200},
		{"messages_page", nil, "GET /v1/conversations/{first}/messages?limit=1", ``, 200},
		{"messages_unknown", nil, "GET /v1/conversations/" + unknown + "/messages", ``, 404},
		{"messages_limit", nil, "GET /v1/conversations/" + unknown + "/messages?limit=x", ``, 400},
		{"messages_unknown_parameter", nil, "GET /v1/conversations/{first}/messages?direction=inbound", ``, 400},
		{"messages_cursor", nil, "GET /v1/conversations/{first}/messages?cursor=abc", ``, 400},

		{"assign", nil, "PUT /v1/conversations/{first}/assignee", `{"member":"GRACE@example.com"}`, 200},
		{"assign_again", []string{`PUT /v1/conversations/{first}/assignee {"member":"grace@example.com"}`}, "PUT /v1/conversations/{first}/assignee", `{"member":" grace@example.com "}`, 200},
		{"assign_other", []string{`PUT /v1/conversations/{first}/assignee {"member":"grace@example.com"}`}, "PUT /v1/conversations/{first}/assignee", `{"member":"ada@example.com"}`, 200},
		{"assign_nobody", nil, "PUT /v1/conversations/{first}/assignee", `{"member":"nobody@example.com"}`, 400},
		{"assign_null", nil, "PUT /v1/conversations/{first}/assignee", `{"member":null}`, 400},
		{"assign_missing", nil, "PUT /v1/conversations/" + unknown + "/assignee", `{}`, 400},
		{"assign_unknown_member", nil, "PUT /v1/conversations/{first}/assignee", `{"assignee":"ada@example.com"}`, 400},
		{"assign_number", nil, "PUT /v1/conversations/{first}/assignee", `{"member":7}`, 400},
		{"assign_no_body", nil, "PUT /v1/conversations/{first}/assignee", ``, 400},
		{"assign_unknown", nil, "PUT /v1/conversations/" + unknown + "/assignee", `{"member":"nobody@example.com"}`, 404},

		{"close", nil, "PUT /v1/conversations/{first}/status", `{"status":"closed"}`, 200},
		{"close_again", []string{`PUT /v1/conversations/{first}/status {"status":"closed"}`}, "PUT /v1/conversations/{first}/status", `{"status":"closed"}`, 200},
		{"archive", nil, "PUT /v1/conversations/{first}/status", `{"status":"archived"}`, 200},
		{"reopen", []string{`PUT /v1/conversations/{first}/status {"status":"archived"}`}, "PUT /v1/conversations/{first}/status", `{"status":"open"}`, 200},
		{"reopen_beside_another", []string{`PUT /v1/conversations/{first}/status {"status":"closed"}`, `HEAR Hello again`}, "PUT /v1/conversations/{first}/status", `{"status":"open"}`, 409},
		{"status_bad", nil, "PUT /v1/conversations/" + unknown + "/status", `{"status":"Closed"}`, 400},
		{"status_null", nil, "PUT /v1/conversations/{first}/status", `{"status":null}`, 400},
		{"status_missing", nil, "PUT /v1/conversations/{first}/status", `{}`, 400},
		{"status_unknown_member", nil, "PUT /v1/conversations/{first}/status", `{"status":"open","reason":"x"}`, 400},
		{"status_unknown", nil, "PUT /v1/conversations/" + unknown + "/status", `{"status":"closed"}`, 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newDesk(t)
			ada := contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243441","name":"Ada"}`)).ID
			bob := contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243442","name":"Bob"}`)).ID
			s.outbound("first", message())
			first := s.hear(s.channel, "+12022243441", " Thank\n you! ")
			fill := strings.NewReplacer("{ada}", ada, "{bob}", bob, "{first}", first.ID.String(), "{channel}", s.channel.String())
			for _, call := range tc.before {
				if text, ok := strings.CutPrefix(call, "HEAR "); ok {
					s.hear(s.channel, "+12022243441", text)
					continue
				}
				method, rest, _ := strings.Cut(fill.Replace(call), " ")
				path, body, _ := strings.Cut(rest, " ")
				s.want(200, method+" "+path, body)
			}
			r := s.do(fill.Replace(tc.call), tc.body)
			if r.status != tc.status {
				t.Errorf("status = %d, want %d", r.status, tc.status)
			}
			golden(t, r)
		})
	}
}

// TestConversationLists: pages of every size hold the same records in the same order,
// and a cursor is bound to its workspace, list, record and filters.
func TestConversationLists(t *testing.T) {
	s := newDesk(t)
	var contacts, conversations []string
	for i := range 7 {
		c := s.hear(s.channel, fmt.Sprintf("+1202224344%d", i), "Hello")
		contacts, conversations = append(contacts, c.ContactID.String()), append([]string{c.ID.String()}, conversations...)
	}
	for i := range 5 { // one contact has five conversations, another's has five more messages
		s.want(200, "PUT /v1/conversations/"+conversations[0]+"/status", `{"status":"closed"}`)
		conversations = append([]string{s.hear(s.channel, "+12022243446", fmt.Sprint(i)).ID.String()}, conversations...)
	}
	for i := range 5 {
		s.hear(s.channel, "+12022243440", fmt.Sprint(i))
	}
	conversations = append(conversations[len(conversations)-1:], conversations[:len(conversations)-1]...)
	if got := ids(t, s.want(200, "GET /v1/conversations", "")); !slices.Equal(got, conversations) {
		t.Errorf("%v\nwant, newest first: %v", got, conversations)
	}
	lists := map[string]int{ // how many records
		"/v1/conversations?": 12, "/v1/conversations?status=closed&": 5, "/v1/conversations?assignee=none&": 12,
		"/v1/conversations?channel_id=" + s.channel.String() + "&":    12,
		"/v1/conversations?contact_id=" + contacts[6] + "&":           6,
		"/v1/contacts/" + contacts[6] + "/conversations?":             6,
		"/v1/contacts/" + contacts[6] + "/conversations?status=open&": 1,
		"/v1/contacts/" + contacts[0] + "/conversations?":             1,
		"/v1/conversations/" + conversations[0] + "/messages?":        6,
		"/v1/conversations/" + conversations[1] + "/messages?":        1,
	}
	const nobody = "00000000-0000-7000-8000-0000000000ff"
	for _, list := range []string{"/v1/contacts/" + nobody + "/conversations", "/v1/conversations/" + nobody + "/messages"} {
		s.want(400, "GET "+list+"?cursor=junk", "") // the shape of the request comes first
		s.want(404, "GET "+list, "")
	}
	cursors := map[string]string{}
	for list, want := range lists {
		whole := ids(t, s.want(200, "GET "+list+"limit=200", ""))
		if len(whole) != want {
			t.Errorf("%s: %d records, want %d", list, len(whole), want)
		}
		for _, size := range []int{1, 2, 5, want - 1, want, want + 1} {
			if size == 0 {
				continue
			}
			var walked []string
			next := ""
			for range want + 1 {
				var page struct {
					NextCursor string `json:"next_cursor"`
				}
				body := s.want(200, fmt.Sprintf("GET %slimit=%d%s", list, size, next), "")
				decodeJSON(t, body, &page)
				walked = append(walked, ids(t, body)...)
				if page.NextCursor == "" {
					break
				}
				cursors[list] = page.NextCursor
				next = "&cursor=" + page.NextCursor
			}
			if !slices.Equal(walked, whole) {
				t.Errorf("%s in pages of %d: %v\nwant %v", list, size, walked, whole)
			}
		}
	}
	if len(cursors) != 7 {
		t.Errorf("%d lists have a second page", len(cursors))
	}
	_, foreign := s.workspace("Other", "US")
	for from, cursor := range cursors {
		for to := range lists {
			want := map[bool]int{true: 200, false: 400}[from == to]
			if r := s.do("GET "+to+"cursor="+cursor, ""); r.status != want {
				t.Errorf("the cursor of %s in %s: %d, want %d", from, to, r.status, want)
			}
		}
		for _, spoilt := range []string{cursor + "%0A", cursor[:9] + "%0D%0A" + cursor[9:], cursor + "%3D", cursor[1:]} {
			if r := s.do("GET "+from+"cursor="+spoilt, ""); r.status != 400 {
				t.Errorf("the cursor of %s as %q: %d", from, spoilt, r.status)
			}
		}
		if r := s.as(foreign, "GET "+from+"cursor="+cursor, ""); r.status != 400 && r.status != 404 {
			t.Errorf("the cursor of %s in another workspace: %d", from, r.status)
		}
	}
}

// TestFailedMessage: a failure that the provider reports later is shown on the message.
func TestFailedMessage(t *testing.T) {
	s := newDesk(t, func(d *app.Deps) {
		library, _ := d.Store.(sandbox.Library)
		d.Providers[desk.SandboxChannel] = sandbox.New(sandbox.Config{Library: library, Now: d.Now, NewID: d.NewID, Pace: time.Millisecond})
	})
	s.outbound("fails", message(`"to":{"phone":"+12022240004"}`))
	s.outbound("read", message())
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { work.Run(ctx, work.Of(s.app), work.Keep{}, slog.New(slog.DiscardHandler)) })
	defer running.Wait()
	defer stop()
	var statuses []string
	waitUntil(t, "one to be read and one to fail", func() bool {
		statuses = nil
		for _, id := range ids(t, s.want(200, "GET /v1/conversations", "")) {
			var list struct {
				Data []struct {
					DeliveryStatus string `json:"delivery_status"`
					Failure        json.RawMessage
				}
			}
			decodeJSON(t, s.want(200, "GET /v1/conversations/"+id+"/messages", ""), &list)
			statuses = append(statuses, list.Data[0].DeliveryStatus+" "+string(list.Data[0].Failure))
		}
		return statuses[0] == "read null" && strings.HasPrefix(statuses[1], "failed")
	})
	want := []string{"read null", `failed {"code":131026,"title":"Message undeliverable","fix":"Check the number or reach the person another way."}`}
	if !slices.Equal(statuses, want) {
		t.Errorf("%q\nwant %q", statuses, want)
	}
	// The stored answer to the send does not change.
	if r := s.outbound("fails", message(`"to":{"phone":"+12022240004"}`)); !strings.Contains(string(r.body), `"delivery_status":"sent"`) {
		t.Errorf("%s", r.body)
	}
}

// A lateChannel is a store in which a channel and its conversation appear after a
// request's settings were read.
type lateChannel struct {
	store.Store
	appear func() *desk.Conversation
}

func (l *lateChannel) Conversation(ctx context.Context, ws, id desk.ID) (*desk.Conversation, error) {
	if l.appear != nil {
		id = l.appear().ID
	}
	return l.Store.Conversation(ctx, ws, id)
}

func TestConversationOnNewChannel(t *testing.T) {
	late := &lateChannel{}
	s := newDesk(t, func(d *app.Deps) { late.Store, d.Store = d.Store, late })
	late.appear = func() *desk.Conversation {
		late.appear = nil
		return s.hear(s.addChannel("sandbox-2"), "+12022243441", "Hello")
	}
	if body := s.want(200, "GET /v1/conversations/0196f2a0-0000-7000-8000-000000000000", ""); !strings.Contains(string(body), `"source_type":"sandbox"`) {
		t.Errorf("%s", body)
	}
}

func TestChannels(t *testing.T) {
	for _, tc := range []struct{ name, call string }{
		{"list", "GET /v1/channels"}, {"list_ignores_query", "GET /v1/channels?limit=x"}, {"get", "GET /v1/channels/{channel}"},
		{"get_unknown", "GET /v1/channels/0196f2a0-0000-7000-8000-000000000000"}, {"get_malformed", "GET /v1/channels/x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newDesk(t)
			s.enable(s.addChannel(`"2"`), false)
			golden(t, s.do(strings.Replace(tc.call, "{channel}", s.channel.String(), 1), ""))
		})
	}
	if body := newServer(t).want(200, "GET /v1/channels", ""); string(body) != `{"data":[]}` {
		t.Errorf("%s", body)
	}
}
