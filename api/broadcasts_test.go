package api_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/store"
)

// idOf returns the id of the record in an answer.
func idOf(t testing.TB, body []byte) string {
	t.Helper()
	var v struct{ Data struct{ ID string } }
	if err := json.Unmarshal(body, &v); err != nil || v.Data.ID == "" {
		t.Fatalf("no id in %s: %v", body, err)
	}
	return v.Data.ID
}

// TestBroadcasts: a draft, its rows, what a start checks and in which order, a run, and what is
// left of it.
func TestBroadcasts(t *testing.T) {
	s := newDesk(t)
	const draftID = "01980000-0000-7000-8000-000000000001"
	const draft = `{"name":"Spring","template":{"name":"thanks","language":"en_US"}`
	for body, at := range map[string]string{
		`{}`: "/name", `{"name":"x"}`: "/template", draft + `,"variables":{"1":{}}}`: "/variables/1", draft + `,"variables":{"1":{"value":"a","from":"row"}}}`: "/variables/1",
		draft + `,"consent":{}}`: "/consent", draft + `,"consent":{"attribute":"Ok!"}}`: "/consent/attribute", draft + `,"consent":{"attribute":"` + strings.Repeat("x", 65) + `"}}`: "/consent/attribute", draft + `,"consent":{"confirmed":false}}`: "/consent", draft + `,"pace":{"people":0,"minutes":1}}`: "/pace/people", draft + `,"pace":{"people":1,"minutes":1441}}`: "/pace/minutes",
		draft + `,"max_failed_percent":0}`: "/max_failed_percent", draft + `,"audience":{"rows":false}}`: "/audience", draft + `,"send_at":"tomorrow"}`: "/send_at", draft + `,"at_most":0}`: "/at_most", draft + `,"audience":{}}`: "/audience", draft + `,"audience":{"rows":true,"code":1}}`: "/audience",
		draft + `,"at_most":5,"audience":{"broadcast":"nonsense","status":["read"]}}`: "/audience/broadcast", draft + `,"at_most":5,"audience":{"broadcast":"` + draftID + `","status":["in_doubt"]}}`: "/audience/status",
		draft + `,"at_most":5,"audience":{"broadcast":"` + draftID + `","status":["read"],"code":0}}`: "/audience/code", draft + `,"audience":{"broadcast":"` + draftID + `","status":["read"]}}`: "/at_most", draft + `,"audience":{"people":1}}`: "/audience/people",
		draft + `,"at_most":5,"audience":{"segment":""}}`: "/audience/segment", draft + `,"at_most":5,"audience":{"segment":"No"}}`: "/audience/segment", draft + `,"at_most":5,"audience":{"segment":"a","status":["read"]}}`: "/audience",
		draft + `,"at_most":5,"audience":{"filter":{"all":[{"field":"attributes.none","is":"present"}]}}}`: "/audience/filter/all/0/field", draft + `,"at_most":5,"audience":{"filter":{"all":[]}}}`: "/audience/filter/all",
		draft + `,"channel_id":"nonsense"}`: "/channel_id", draft + `,"channel_id":"00000000-0000-0000-0000-000000000000"}`: "/channel_id",
		draft + `,"send_at":"2999-01-01T00:00:00Z"}`: "/send_at", draft + `,"hours":{}}`: "/hours/time_zone",
	} {
		if got := string(s.want(400, "POST /v1/broadcasts", body)); !strings.Contains(got, at) {
			t.Errorf("%s: %s", body, got)
		}
	}
	id := idOf(t, s.want(201, "POST /v1/broadcasts", draft+`}`))
	route := "/v1/broadcasts/" + id
	start := func(status int, kind string) {
		t.Helper()
		for _, path := range []string{"/start", "/check"} {
			if got := string(s.want(status, "POST "+route+path, `{}`)); !strings.Contains(got, `"`+kind+`"`) {
				t.Errorf("%s: %s, want %s", path, got, kind)
			}
		}
	}
	start(422, "opt_in_required")
	s.want(200, "PATCH "+route, `{"consent":{"confirmed":true},"template":{"name":"nothing","language":"en_US"},"variables":{"nonsense":{"value":"x"}}}`)
	start(404, "not_found")
	s.want(200, "PATCH "+route, `{"template":{"name":"thanks","language":"en_US"}}`)
	start(422, "invalid_variables")
	s.want(200, "PATCH "+route, `{"variables":null}`)
	start(422, "broadcast_empty")

	rows := string(s.want(200, "POST "+route+"/rows", `{"rows":[{"to":{"phone":"+1 202 555 0142"}},{"to":{"phone":"1"}},{"to":{"external_id":"nobody"}},{"to":{}},{"to":{"phone":"+12025550142"}},{"rubbish":1}]}`))
	if !strings.Contains(rows, `{"summary":{"total":6,"added":1,"replaced":0,"unchanged":1,"errors":4}`) || !strings.Contains(rows, "/rows/1/to/phone") || !strings.Contains(rows, `"not_found"`) {
		t.Errorf("rows: %s", rows)
	}
	if got := string(s.want(200, "POST "+route+"/rows", `{"rows":[{"to":{"phone":"+12025550149"},"contact":{"attributes":{"nosuch":true}}}]}`)); !strings.Contains(got, `"errors":1}`) || !strings.Contains(got, `"invalid_attributes"`) || !strings.Contains(got, `"nosuch"`) {
		t.Errorf("an attribute that can't be stored: %s", got)
	}
	if got := string(s.want(200, "POST "+route+"/rows", `{"rows":[{"to":{"phone":"+12025550149"},"contact":{"owner":"nobody@example.com"}}]}`)); !strings.Contains(got, `"errors":1}`) || !strings.Contains(got, "/rows/0/contact/owner") {
		t.Errorf("an owner who is no member: %s", got)
	}
	s.want(400, "POST "+route+"/rows", `{"rows":[]}`)
	s.want(204, "DELETE "+route+"/rows", "")
	start(422, "broadcast_empty")

	if r := s.as(s.newKey(s.ws, "broadcasts:read"), "POST "+route+"/check", `{"x":1}`); r.status != 403 || !strings.Contains(string(r.body), "contacts:read") {
		t.Errorf("a check without contacts:read: %d %s", r.status, r.body)
	}
}

// TestBroadcasts_rowSize: a row may have 4,096 bytes, wherever it stands, and whatever is around it.
func TestBroadcasts_rowSize(t *testing.T) {
	s := newDesk(t)
	route := "/v1/broadcasts/" + idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"}}`)) + "/rows"
	row := func(bytes int) string {
		const begin, end = `{"to":{"phone":"+12025550142"},"variables":{"1":"`, `"}}`
		return begin + strings.Repeat("a", bytes-len(begin)-len(end)) + end
	}
	fits, long := row(desk.MaxRowBytes), row(desk.MaxRowBytes+1)
	for body, errors := range map[string]string{
		fits: `"errors":0`, fits + "," + fits: `"errors":0`, fits + " ,\n\t " + fits + " ": `"errors":0`,
		long: `"errors":1`, fits + "," + long: `"errors":1`,
	} {
		if got := string(s.want(200, "POST "+route, `{"rows":[`+body+`]}`)); !strings.Contains(got, errors) {
			t.Errorf("%d bytes: %s, want %s", len(body), got, errors)
		}
	}
}

// TestBroadcasts_run: a broadcast through the sandbox, by the API alone.
func TestBroadcasts_run(t *testing.T) {
	s := newDesk(t)
	id := idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"},"consent":{"confirmed":true}}`))
	route := "/v1/broadcasts/" + id
	s.want(200, "POST "+route+"/rows", `{"rows":[{"to":{"phone":"+12025550142"}}]}`)
	s.want(200, "POST "+route+"/start", `{}`)
	s.want(200, "POST "+route+"/start", `{}`)
	s.want(409, "POST "+route+"/rows", `{"rows":[{"to":{"phone":"+12025550143"}}]}`)
	s.want(409, "PATCH "+route, `{"consent":null}`)
	s.want(200, "PATCH "+route, `{"pace":{"people":5,"minutes":1}}`)
	s.want(409, "POST "+route+"/unschedule", `{}`)
	s.want(409, "DELETE "+route, "")
	s.want(200, "POST "+route+"/pause", `{}`)
	got := string(s.want(200, "POST "+route+"/pause", `{}`))
	if !strings.Contains(got, `"state":"paused","reason":"asked"`) || !strings.Contains(got, `"counts":{"rows":1,"pending":1,`) {
		t.Errorf("paused: %s", got)
	}
	s.want(200, "POST "+route+"/check", `{}`)
	s.want(200, "POST "+route+"/resume", `{}`)
	s.want(200, "POST "+route+"/cancel", `{}`)
	if got := string(s.want(409, "POST "+route+"/check", `{}`)); !strings.Contains(got, `"broadcast_state"`) {
		t.Errorf("check of one that has ended: %s", got)
	}
	got = string(s.want(200, "GET "+route+"/rows?status=cancelled", ""))
	if !strings.Contains(got, `"to":"+12025550142","status":"cancelled"`) {
		t.Errorf("rows: %s", got)
	}
	s.want(200, "POST "+route+"/release", `{"sent":true}`)
	s.want(204, "DELETE "+route, "")
	s.want(404, "GET "+route, "")
	if got := string(s.want(200, "GET /v1/broadcasts?state=cancelled", "")); got != `{"data":[]}` {
		t.Errorf("after the deletion: %s", got)
	}
}

// TestBroadcasts_matrix: each route of broadcasts in each state, with a key that may do it, with keys
// that lack one of its permissions, and with a key of another workspace (contract-broadcast §11.9).
func TestBroadcasts_matrix(t *testing.T) {
	s := newDesk(t)
	_, others := s.workspace("Other", "US")
	all := []desk.BroadcastState{desk.BroadcastDraft, desk.BroadcastScheduled, desk.BroadcastRunning, desk.BroadcastPaused, desk.BroadcastDone, desk.BroadcastCancelled}
	moved := func(id string, state desk.BroadcastState) {
		parsed, _ := desk.ParseID(id)
		s.inTx(func(tx store.Tx) error {
			b, err := tx.Broadcast(parsed)
			if b == nil || err != nil {
				return err
			}
			b.State, b.EndedAt = state, 0
			if state.Ended() {
				b.EndedAt = b.CreatedAt
			}
			return tx.PutBroadcast(b)
		})
	}
	keys := map[string]string{}
	key := func(may string) string {
		if keys[may] == "" {
			keys[may] = s.newKey(s.ws, may)
		}
		return keys[may]
	}
	tried := map[string]bool{}
	for _, c := range []struct {
		call, body string
		needs      string // permissions; "PATCH": broadcasts:write for a draft, broadcasts:send later
		want       [6]int // by state, in the order above
	}{
		{"GET ", "", "broadcasts:read", [6]int{200, 200, 200, 200, 200, 200}},
		{"PATCH ", `{"name":"Autumn"}`, "PATCH", [6]int{200, 200, 200, 200, 200, 200}},
		{"PATCH ", `{"pace":{"people":1,"minutes":1}}`, "PATCH", [6]int{200, 200, 200, 200, 409, 409}},
		{"PATCH ", `{"max_failed_percent":7,"at_most":5,"hours":null,"stop_at":null}`, "PATCH", [6]int{200, 200, 200, 200, 409, 409}},
		{"PATCH ", `{"skip_open":true}`, "PATCH", [6]int{200, 409, 409, 409, 409, 409}},
		{"PATCH ", `{"consent":null}`, "PATCH", [6]int{200, 409, 409, 409, 409, 409}},
		{"DELETE ", "", "broadcasts:write", [6]int{204, 409, 409, 409, 204, 204}},
		{"GET /rows", "", "broadcasts:read,contacts:read", [6]int{200, 200, 200, 200, 200, 200}},
		{"POST /rows", `{"rows":[{"to":{"phone":"+12025550143"}}]}`, "broadcasts:write,contacts:read", [6]int{200, 409, 409, 409, 409, 409}},
		{"DELETE /rows", "", "broadcasts:write", [6]int{204, 409, 409, 409, 409, 409}},
		{"POST /check", `{}`, "broadcasts:read,contacts:read", [6]int{200, 200, 200, 200, 409, 409}},
		{"POST /start", `{}`, "broadcasts:send", [6]int{200, 200, 200, 409, 409, 409}},
		{"POST /resume", `{}`, "broadcasts:send", [6]int{409, 200, 200, 200, 409, 409}},
		{"POST /unschedule", `{}`, "broadcasts:write", [6]int{200, 200, 409, 409, 409, 409}},
		{"POST /pause", `{}`, "broadcasts:write", [6]int{409, 200, 200, 200, 409, 409}},
		{"POST /cancel", `{}`, "broadcasts:write", [6]int{409, 200, 200, 200, 409, 200}},
		{"POST /release", `{"sent":false}`, "attempts:write", [6]int{200, 200, 200, 200, 200, 200}},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		tried[method+" /v1/broadcasts/{id}"+path] = true
		for i, state := range all {
			needs := strings.Split(c.needs, ",")
			if c.needs == "PATCH" {
				needs = []string{"broadcasts:send"}
				if state == desk.BroadcastDraft {
					needs = []string{"broadcasts:write"}
				}
			}
			id := idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"},"consent":{"confirmed":true}}`))
			route := "/v1/broadcasts/" + id
			s.want(200, "POST "+route+"/rows", `{"rows":[{"to":{"phone":"+12025550142"}}]}`)
			moved(id, state)
			call := method + " " + route + path
			for _, without := range needs {
				before := string(s.want(200, "GET "+route, ""))
				if r := s.as(key(allBut(without)), call, c.body); r.status != 403 || !strings.Contains(string(r.body), without) {
					t.Errorf("%s of a %s one without %s: %d %s", c.call, state, without, r.status, r.body)
				}
				if r := s.as(others, call, c.body); r.status != 404 {
					t.Errorf("%s of a %s one of another workspace: %d %s", c.call, state, r.status, r.body)
				}
				if after := string(s.want(200, "GET "+route, "")); after != before {
					t.Errorf("%s of a %s one was refused, and changed %s to %s", c.call, state, before, after)
				}
			}
			r := s.as(key(strings.Join(needs, ",")), call, c.body)
			if r.status != c.want[i] {
				t.Errorf("%s of a %s one: %d %s, want %d", c.call, state, r.status, r.body, c.want[i])
			}
			if r.status == 409 && (errorType(r.body) != "broadcast_state" || !strings.Contains(string(r.body), `"state":"`+string(state)+`"`)) {
				t.Errorf("%s of a %s one: %s", c.call, state, r.body)
			}
			moved(id, desk.BroadcastDraft) // not too many may run at once
			s.as(s.key, "DELETE "+route, "")
		}
	}
	for _, op := range operations(t) {
		if call := op.Method + " " + op.Path; strings.Contains(op.Path, "/broadcasts/{id}") && !tried[call] {
			t.Errorf("%s is not tried", call)
		}
	}
}

// TestBroadcasts_replies: what people answered, in the record of a broadcast and in its rows.
func TestBroadcasts_replies(t *testing.T) {
	s := newDesk(t)
	text := idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"}}`))
	id, _ := desk.ParseID(text)
	s.inTx(func(tx store.Tx) error {
		var rows []store.RowChange
		for _, reply := range []desk.RowReply{{}, {At: 1_000, Choice: "Yes", ChosenAt: 2_000}, {At: 1_000, OptedOut: true}} {
			rows = append(rows, store.RowChange{Row: &desk.BroadcastRow{ID: s.newID(), Broadcast: id, Status: desk.RowRead, At: 1, Data: desk.RowData{Reply: reply}}})
		}
		return tx.PutRows(id, rows)
	})
	got := string(s.want(200, "GET /v1/broadcasts/"+text, ""))
	if !strings.Contains(got, `"failures":[],"choices":[{"title":"Yes","count":1}],"replied":2,"opted_out":1},"created_by"`) {
		t.Errorf("counts: %s", got)
	}
	got = string(s.want(200, "GET /v1/broadcasts/"+text+"/rows", ""))
	for _, want := range []string{`"replied_at":null,"choice":null}`, `"replied_at":"1970-01-01T00:00:01.000Z","choice":"Yes"}`, `"replied_at":"1970-01-01T00:00:01.000Z","choice":null}`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("rows: %s, want %s", got, want)
		}
	}
}

// TestBroadcasts_author: the message of a broadcast names it as its author.
func TestBroadcasts_author(t *testing.T) {
	s := newDesk(t)
	text := idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"}}`))
	broadcast, _ := desk.ParseID(text)
	talk := s.hear(s.channel, "12022240003", "Hello")
	s.inTx(func(tx store.Tx) error {
		m := desk.Message{ID: s.newID(), ConversationID: talk.ID, ChannelID: s.channel, Direction: desk.Outbound, Delivery: desk.Sent, Kind: desk.KindTemplate, TS: 1, Text: "Thanks!"}
		m.Author = desk.Author{Type: desk.AuthorBroadcast, ID: broadcast, Name: "Spring"}
		return tx.PutMessage(&m)
	})
	got := string(s.want(200, "GET /v1/conversations/"+talk.ID.String()+"/messages", ""))
	if !strings.Contains(got, `"author":{"type":"broadcast","id":"`+text+`","name":"Spring"}`) {
		t.Errorf("messages: %s", got)
	}
}

// TestBroadcasts_audience: a broadcast to the people of an ended one, as a record and as a check.
func TestBroadcasts_audience(t *testing.T) {
	s := newDesk(t)
	const draft = `{"name":"Spring","template":{"name":"thanks","language":"en_US"},"consent":{"confirmed":true}`
	source := idOf(t, s.want(201, "POST /v1/broadcasts", draft+`}`))
	s.want(200, "POST /v1/broadcasts/"+source+"/rows", `{"rows":[{"to":{"phone":"+12025550142"}}]}`)
	audience := `{"broadcast":"` + source + `","status":["cancelled","failed"],"code":131026}`
	got := s.want(201, "POST /v1/broadcasts", draft+`,"at_most":7,"audience":`+audience+`}`)
	if !strings.Contains(string(got), `"audience":`+audience+`,"consent":{"confirmed":true},"at_most":7,`) {
		t.Errorf("made: %s", got)
	}
	route := "/v1/broadcasts/" + idOf(t, got)
	if got := string(s.want(400, "POST "+route+"/start", `{}`)); !strings.Contains(got, "/audience/broadcast") {
		t.Errorf("of a draft: %s", got)
	}
	s.want(200, "POST /v1/broadcasts/"+source+"/start", `{}`)
	s.want(200, "POST /v1/broadcasts/"+source+"/cancel", `{}`)
	s.want(400, "POST "+route+"/rows", `{"rows":[{"to":{"phone":"+12025550143"}}]}`)
	if got := string(s.want(200, "POST "+route+"/check", `{}`)); got != `{"data":{"looked_at":0,"sendable":0,"skips":{},"samples":[]}}` {
		t.Errorf("nobody has the code: %s", got)
	}
	for _, audience := range []string{`{"broadcast":"` + source + `","status":["read"],"replied":true}`, `{"segment":"nobody"}`, `{"filter":{"all":[{"field":"name","is":"absent"}]}}`} {
		if got := string(s.want(200, "PATCH "+route, `{"audience":`+audience+`}`)); !strings.Contains(got, `"audience":`+audience+`,`) {
			t.Errorf("changed: %s", got)
		}
	}
	s.want(422, "POST "+route+"/check", `{}`) // there are no contacts
	s.want(201, "POST /v1/contacts", `{"phone":"+12025550150"}`)
	if got := string(s.want(200, "POST "+route+"/check", `{}`)); !strings.Contains(got, `{"data":{"looked_at":1,"sendable":1,`) {
		t.Errorf("of the filter: %s", got)
	}
	s.want(200, "PATCH "+route, `{"audience":{"segment":"nobody"}}`)
	if got := string(s.want(400, "POST "+route+"/start", `{}`)); !strings.Contains(got, "/audience/segment") {
		t.Errorf("of no segment: %s", got)
	}
	s.want(200, "PATCH "+route, `{"audience":{"broadcast":"`+source+`","status":["cancelled"]}}`)
	if got := string(s.want(200, "POST "+route+"/check", `{}`)); !strings.Contains(got, `{"data":{"looked_at":1,"sendable":1,`) {
		t.Errorf("checked: %s", got)
	}
	if got := string(s.want(200, "POST "+route+"/start", `{}`)); !strings.Contains(got, `"state":"running","reason":"collecting","resumes_at":null`) {
		t.Errorf("started: %s", got)
	}
	s.want(409, "PATCH "+route, `{"audience":null}`)
	s.want(400, "PATCH "+route, `{"at_most":null}`)
	s.want(200, "PATCH "+route, `{"at_most":9}`)
	s.want(200, "POST "+route+"/cancel", `{}`)
	s.want(200, "PATCH "+route, `{"name":"Summer"}`)
	s.want(409, "PATCH "+route, `{"at_most":10}`)
}

// TestBroadcasts_advice: what refuses a start says what to do next.
func TestBroadcasts_advice(t *testing.T) {
	s := newRichDesk(t)
	route := "/v1/broadcasts/" + idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"spring","language":"en_US"},"consent":{"confirmed":true}}`))
	deleted := s.uploads(s.ws, jpegFile)
	s.inTx(func(tx store.Tx) error {
		m, err := tx.Media(deleted.ID)
		if err != nil {
			return err
		}
		m.Status, m.SHA256 = desk.MediaDeleted, nil
		return tx.PutMedia(m)
	})
	const advice = `; upload a file with POST /media, and name it as header.media in the variables; a broadcast that was started takes no other file: make a new one`
	for _, c := range []struct {
		file   string // the value of header.media; "": none
		status int
		want   string
	}{
		{"", 422, `"invalid_variables","message":"1 of the broadcast's variables can't be filled; see details","details":[{"address":"header.media","message":"the file is missing; name an uploaded image by value"}]`},
		{"nonsense", 404, `"not_found","message":"the file of the template's title can't be sent: no file in this workspace has this id` + advice},
		{s.uploads(s.ws, pdfFile).ID.String(), 422, `"media_not_sendable","message":"the file of the template's title can't be sent: the template's title takes a JPEG or PNG picture` + advice + `","details":{"reason":"type",`},
		{deleted.ID.String(), 409, `"media_unavailable","message":"the file of the template's title can't be sent: the content of this file was deleted` + advice + `","details":{`},
	} {
		variables := "null"
		if c.file != "" {
			variables = `{"header.media":{"value":"` + c.file + `"}}`
		}
		s.want(200, "PATCH "+route, `{"variables":`+variables+`}`)
		for _, path := range []string{"/check", "/start"} {
			if got := string(s.want(c.status, "POST "+route+path, `{}`)); !strings.Contains(got, c.want) {
				t.Errorf("%s with %q: %s, want %s", path, c.file, got, c.want)
			}
		}
	}
	for _, path := range []string{"/start", "/resume", "/pause", "/cancel", "/unschedule", "/check"} {
		for _, body := range []string{"", " \n"} {
			if got := string(s.want(400, "POST "+route+path, body)); !strings.Contains(got, "the request has no body: send {}") {
				t.Errorf("%s without a body: %s", path, got)
			}
		}
	}
}

// TestReadRow reads rows of files as those of a request.
func TestReadRow(t *testing.T) {
	t.Parallel()
	s := &desk.Settings{Workspace: desk.Workspace{Country: "ES"}}
	r, err := api.ReadRow([]byte(`{"to":{"phone":"612 34 56 78"},"variables":{"1":"A-17"},"contact":{"name":"Lucia"}}`), s)
	if err != nil || r.Find != (desk.Identity{Kind: desk.KindPhone, Value: "34612345678"}) || len(r.Values) != 1 || r.Person.Name.Value != "Lucia" {
		t.Errorf("%+v, %v", r, err)
	}
	for body, at := range map[string]string{
		`{"to":{"phone":"1"},"variables":{}}`: "/to/phone",
		`{"to":{},"variables":{}}`:            "/to",
		`{"variables":{}}`:                    "/to",
		`{"to":{"phone":"+34612345678"},"contact":{"name":"` + strings.Repeat("a", 5) + `\u0000"}}`: "/contact/name",
		`{"to":{"phone":"+34612345678"},"variables":{"1":"` + strings.Repeat("a", 5000) + `"}}`:     "",
		`[1,{"to":2}]`: "",
	} {
		if _, err := api.ReadRow([]byte(body), s); err == nil || desk.AsError(err).At != at || !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%.60s: %v, %q", body, err, desk.AsError(err).At)
		}
	}
}

// TestBroadcastsGiveWay: broadcasts go slowly while somebody writes something else, but not because
// somebody reads, looks after broadcasts, or may not write.
func TestBroadcastsGiveWay(t *testing.T) {
	t.Parallel()
	var uptime atomic.Int64
	s := newServerWith(t, api.Config{}, func(d *app.Deps) {
		d.Uptime = func() time.Duration { return time.Duration(uptime.Load()) }
	})
	reader := s.newKey(s.ws, "contacts:read")
	for _, c := range []struct {
		call, body, key string
		slow            bool
	}{
		{"POST /v1/contacts", `{"email":"ada@example.com"}`, s.key, true},
		{"POST /v1/contacts/batch", `{"operations":[]}`, s.key, true},
		{"DELETE /v1/attributes/none", "", s.key, true},
		{"GET /v1/contacts", "", s.key, false},
		{"POST /v1/broadcasts", `{}`, s.key, false},
		{"POST /v1/contacts", `{"email":"ada@example.com"}`, reader, false},
		{"POST /v1/contacts", `{"email":"ada@example.com"}`, "nobody's", false},
	} {
		uptime.Add(int64(time.Hour))
		s.as(c.key, c.call, c.body)
		if s.app.Broadcasts.Slow() != c.slow {
			t.Errorf("%s: broadcasts go slowly: %v, want %v", c.call, !c.slow, c.slow)
		}
		if uptime.Add(int64(desk.BroadcastsBesideFor)); s.app.Broadcasts.Slow() {
			t.Errorf("%s: broadcasts go slowly later", c.call)
		}
	}
}
