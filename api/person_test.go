package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
	"parley/web"
)

// TestExport: all that is stored about a contact, with the items of the lists (contract-data §7).
func TestExport(t *testing.T) {
	t.Parallel()
	s := newDesk(t)
	id := contact(t, s.want(201, "POST /v1/contacts", `{"name":"Ada","phone":"+12022240003","note":"likes maps","identities":[{"kind":"phone","value":"+12022243441"},{"kind":"crm","value":"A-7"}]}`)).ID
	s.hear(s.channel, "12022240003", "STOP")
	talk := s.hear(s.channel, "12022240003", "Hello from Ada")
	s.want(201, "POST /v1/conversations/"+talk.ID.String()+"/notes", `{"text":"a note about Ada"}`)
	file := s.uploads(s.ws, jpeg)
	if r := s.outbound("sent", message(`"to":{"phone":"+12022243441"}`)); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for n := range 2 { // one file in two messages
		s.inTx(func(tx store.Tx) error {
			m := desk.Message{ID: s.newID(), ConversationID: talk.ID, ChannelID: s.channel, Direction: desk.Outbound, Delivery: desk.Sent, Kind: desk.KindImage, TS: desk.Time(n + 1), Media: file.ID, Text: "[image]"}
			return tx.PutMessage(&m)
		})
	}
	if r := s.outbound("lost", message(`"to":{"phone":"+12022240003"}`)); r.status != 503 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	s.inTx(func(tx store.Tx) error {
		n := desk.InboundItem{Channel: s.channel, ID: s.newID(), Due: 10, ReceivedAt: 10, Body: []byte("about Ada")}
		if err := tx.PutCallback(n); err != nil {
			return err
		}
		return tx.PutCallbackPeople(n, []string{"12022240003"})
	})
	broadcast := idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"}}`))
	s.want(200, "POST /v1/broadcasts/"+broadcast+"/rows", `{"rows":[{"to":{"phone":"+12022240003"}},{"to":{"phone":"+12022240009"}},{"to":{"contact_id":"`+id+`"}}]}`)
	s.indexed()
	body := s.want(200, "GET /v1/contacts/"+id+"/export", "")
	var all struct{ Data map[string]json.RawMessage }
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	same := func(member, call string) {
		t.Helper()
		var list struct{ Data json.RawMessage }
		if err := json.Unmarshal(s.want(200, call, ""), &list); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(all.Data[member], list.Data) {
			t.Errorf("%s is %s, want %s", member, all.Data[member], list.Data)
		}
	}
	same("contact", "GET /v1/contacts/"+id)
	same("identities", "GET /v1/contacts/"+id+"/identities")
	same("history", "GET /v1/contacts/"+id+"/history")
	same("attempts", "GET /v1/attempts?phase=in_doubt")
	own := `,"broadcast_id":"` + broadcast + `"`
	if rows := all.Data["broadcasts"]; !bytes.Contains(rows, []byte(own)) {
		t.Errorf("broadcasts are %s", rows)
	}
	all.Data["broadcasts"] = bytes.ReplaceAll(all.Data["broadcasts"], []byte(own), nil)
	same("broadcasts", "GET /v1/broadcasts/"+broadcast+"/rows?contact_id="+id)
	var talks []map[string]json.RawMessage
	if err := json.Unmarshal(all.Data["conversations"], &talks); err != nil || len(talks) != 1 {
		t.Fatalf("%d conversations, %v", len(talks), err)
	}
	for member, path := range map[string]string{"messages": "/messages", "notes": "/notes", "state": "/state"} {
		var list struct{ Data json.RawMessage }
		if err := json.Unmarshal(s.want(200, "GET /v1/conversations/"+talk.ID.String()+path, ""), &list); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(talks[0][member], list.Data) {
			t.Errorf("%s are %s, want %s", member, talks[0][member], list.Data)
		}
	}
	for member, want := range map[string]string{
		"media":     `[{"id":"` + file.ID.String() + `"`,
		"opt_ins":   `[{"message_id":"`,
		"opt_outs":  `[{"phone":"+12022240003","since":"`,
		"responses": `[]`,
		"callbacks": `[{"received_at":"1970-01-01T00:00:00.010Z","channel_id":"` + s.channel.String() + `","bytes":9}]`,
	} {
		got := string(all.Data[member])
		if !strings.HasPrefix(got, want) || member == "media" && strings.Count(got, file.ID.String()) != 1 {
			t.Errorf("%s is %s, want %s", member, got, want)
		}
	}
	if r := s.as(s.newKey(s.ws, "contacts:read"), "GET /v1/contacts/"+id+"/export", ""); r.status != 403 || !strings.Contains(string(r.body), "conversations:read") {
		t.Errorf("without conversations:read: %d %s", r.status, r.body)
	}
	if r := s.send("HEAD", "/v1/contacts/"+id+"/export", http.Header{"Authorization": {"Bearer " + s.key}}, ""); r.status != 200 || len(r.body) > 0 {
		t.Errorf("HEAD: %d %s", r.status, r.body)
	}

	var ends []func()
	for range 4 {
		end, err := s.app.Exports.Begin(s.ws)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if r := s.do("GET /v1/contacts/"+id+"/export", ""); r.status != 429 || errorType(r.body) != "rate_limited" || r.header.Get("Retry-After") == "" {
		t.Errorf("a fifth export: %d %s", r.status, r.body)
	}
	ends[0]()
	s.want(200, "GET /v1/contacts/"+id+"/export", "")
}

// TestExport_cut: an export is cut off when its contact is deleted, and when its client does not
// read. A client never takes a part for the whole.
func TestExport_cut(t *testing.T) {
	t.Parallel()
	s := newDesk(t)
	s.bound(web.Bounds{Write: 500 * time.Millisecond})
	url, _ := s.listen(t)
	begin := func() (io.ReadCloser, string) {
		t.Helper()
		talk := s.hear(s.channel, "12025550143", "x")
		for n := range 60 { // more than the buffers of the connection hold
			s.inTx(func(tx store.Tx) error {
				for i := range 20 {
					m := desk.Message{ID: s.newID(), ConversationID: talk.ID, ChannelID: s.channel, Direction: desk.Inbound, Kind: desk.KindText, TS: desk.Time(n*100 + i), Text: strings.Repeat("long ", 1500)}
					if err := tx.PutMessage(&m); err != nil {
						return err
					}
				}
				return nil
			})
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/contacts/"+talk.ContactID.String()+"/export", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.key)
		r, err := http.DefaultClient.Do(req)
		if err != nil || r.StatusCode != 200 {
			t.Fatal(r, err)
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		return r.Body, talk.ContactID.String()
	}
	body, id := begin()
	s.want(204, "DELETE /v1/contacts/"+id, "")
	if rest, err := io.ReadAll(body); err == nil || slices.Contains(rest, 0) {
		t.Errorf("%d bytes came after the deletion, without an error", len(rest))
	}
	_ = body.Close()
	body, _ = begin()
	defer func() { _ = body.Close() }()
	deadline := time.Now().Add(20 * time.Second)
	for { // its place is free as soon as the server has cut it off
		var ends []func()
		for {
			end, err := s.app.Exports.Begin(s.ws)
			if err != nil {
				break
			}
			ends = append(ends, end)
		}
		for _, end := range ends {
			end()
		}
		if len(ends) == 4 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an export that nobody reads goes on")
		}
	}
	if rest, err := io.ReadAll(body); err == nil {
		t.Errorf("%d bytes, without an error", len(rest))
	}
}
