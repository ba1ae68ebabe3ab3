package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/sandbox"
)

// An eventLog reads the new events of the feed. It writes each event as one line, with
// names in place of ids.
type eventLog struct {
	*deskServer
	t      *testing.T
	cursor string
	names  map[string]string // of ids
	seen   map[string]bool   // types
}

// since returns a line for each event after the last call: type, actor, subject with its
// conversation and contact, changed fields, and whether it has data. The data must be equal
// to the record as another route returns it.
func (l *eventLog) since() (lines []string) {
	l.t.Helper()
	for more := true; more; {
		page := l.events("?limit=200&cursor=" + l.cursor)
		for _, e := range page.Data {
			if e.ID <= l.cursor {
				l.t.Errorf("%s comes after %s", e.ID, l.cursor)
			}
			l.cursor, l.seen[e.Type] = e.ID, true
			line := e.Type + " by " + e.Actor.Kind
			if e.Actor.ID != "" {
				line += "=" + l.name(e.Actor.ID) + "/" + e.Actor.Name
			}
			line += " of " + l.name(e.Subject.ID)
			if e.Subject.Kind+"." != e.Type[:len(e.Subject.Kind)+1] {
				l.t.Errorf("%s of a %s", e.Type, e.Subject.Kind)
			}
			for _, of := range []string{e.Subject.ConversationID, e.Subject.ContactID} {
				if of != "" {
					line += " " + l.name(of)
				}
			}
			if len(e.Changed) > 0 {
				line += " [" + strings.Join(e.Changed, " ") + "]"
			}
			if want := l.record(e); want != string(e.Data) {
				l.t.Errorf("%s: the data is\n%s\nand the record\n%s", e.Type, e.Data, want)
			}
			if string(e.Data) == "null" {
				line += " gone"
			}
			if at, err := time.Parse("2006-01-02T15:04:05.000Z", e.Timestamp); err != nil || at.IsZero() {
				l.t.Errorf("the time %q", e.Timestamp)
			}
			lines = append(lines, line)
		}
		l.cursor, more = page.Cursor, page.More
	}
	return lines
}

// name returns the name of an id, or of a subject that contains an id.
func (l *eventLog) name(id string) string {
	for known, name := range l.names {
		id = strings.ReplaceAll(id, known, name)
	}
	if len(id) == 36 {
		return "new"
	}
	return id
}

// record returns the record of an event as another route answers it, "null" if no
// route does.
func (l *eventLog) record(e event) string {
	l.t.Helper()
	one := func(path string) string {
		r := l.do("GET /v1/"+path, "")
		if r.status == 404 {
			return "null"
		}
		return strings.TrimSuffix(strings.TrimPrefix(string(r.body), `{"data":`), "}")
	}
	in := func(path, member, id string) string {
		var list struct{ Data []json.RawMessage }
		if err := json.Unmarshal(l.do("GET /v1/"+path, "").body, &list); err != nil {
			l.t.Fatal(err)
		}
		for _, r := range list.Data {
			if strings.Contains(string(r), `"`+member+`":"`+id+`"`) {
				return string(r)
			}
		}
		return "null"
	}
	switch e.Subject.Kind {
	case "contact":
		return one("contacts/" + e.Subject.ID)
	case "conversation":
		return one("conversations/" + e.Subject.ID)
	case "message":
		return in("conversations/"+e.Subject.ConversationID+"/messages", "id", e.Subject.ID)
	case "send":
		return one("attempts/" + e.Subject.ID)
	case "merge":
		return one("merges/" + e.Subject.ID)
	case "conflict":
		return one("conflicts/" + e.Subject.ID)
	case "note":
		return in("conversations/"+e.Subject.ConversationID+"/notes", "id", e.Subject.ID)
	case "attribute":
		return in("attributes?archived=all", "key", e.Subject.ID)
	case "channel":
		return one("channels/" + e.Subject.ID)
	case "policy":
		if e.Subject.ID == l.ws.String() {
			return one("policy")
		}
		return one("channels/" + e.Subject.ID + "/policy")
	case "snippet":
		return in("snippets", "shortcut", e.Subject.ID)
	case "segment":
		return in("segments", "key", e.Subject.ID)
	case "webhook":
		return one("webhooks/" + e.Subject.ID)
	case "broadcast":
		return one("broadcasts/" + e.Subject.ID)
	case "member":
		return in("members", "member_id", e.Subject.ID)
	case "template":
		parts := strings.Split(e.Subject.ID, "/")
		return in("templates?status=all&channel_id="+parts[0], "name", parts[1])
	case "workspace":
		var me struct {
			Data struct{ Workspace json.RawMessage }
		}
		if err := json.Unmarshal(l.want(200, "GET /v1/me", ""), &me); err != nil {
			l.t.Fatal(err)
		}
		return string(me.Data.Workspace)
	}
	return "null"
}

// until is a loop: it processes inbound items until the feed has n new events, and returns
// them.
func (l *eventLog) until(n int) []string {
	l.t.Helper()
	var lines []string
	waitUntil(l.t, fmt.Sprint(n, " events"), func() bool {
		if err := l.app.TakeInbound(l.t.Context(), l.ws); err != nil {
			l.t.Fatal(err)
		}
		lines = append(lines, l.since()...)
		return len(lines) >= n
	})
	return lines
}

// TestEveryEvent makes an event of every type. For each event it checks the actor, the
// record, the names of the changed fields, the data, and the place in the order.
func TestEveryEvent(t *testing.T) {
	s := newDesk(t, func(d *app.Deps) {
		library, _ := d.Store.(sandbox.Library)
		d.Providers[desk.SandboxChannel] = sandbox.New(sandbox.Config{Library: library, Now: d.Now, NewID: d.NewID, Pace: time.Millisecond})
	})
	keys := s.operator(s.ws).Settings.Keys()
	l := &eventLog{deskServer: s, t: t, cursor: s.events("?cursor=latest").Cursor, seen: map[string]bool{}, names: map[string]string{
		s.ws.String(): "acme", s.channel.String(): "channel", keys[0].ID.String(): "key",
		s.members[0].ID.String(): "ada", s.members[1].ID.String(): "grace", s.members[2].ID.String(): "alan",
	}}
	ctx := t.Context()
	operator := func() desk.Principal { return s.operator(s.ws) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(act string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", act, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// after is a helper that runs an act and compares its events.
	after := func(act string, do func(), want ...string) {
		t.Helper()
		do()
		expect(act, l.since(), want...)
	}
	call := func(status int, call, body string) func() {
		return func() { t.Helper(); s.want(status, call, body) }
	}
	id := func(body []byte, name string) string {
		id := contact(t, body).ID
		l.names[id] = name
		return id
	}

	// Attributes.
	after("create an attribute", call(201, "POST /v1/attributes", `{"key":"plan","type":"select","options":["free","pro"]}`), "attribute.created by key=key/test of plan")
	after("edit it", call(200, "POST /v1/attributes", `{"key":"plan","label":"Plan","description":"d","options":["free","pro","max"],"position":9}`),
		"attribute.updated by key=key/test of plan [description label options position]")
	after("archive it", call(200, "DELETE /v1/attributes/plan", ""), "attribute.updated by key=key/test of plan [archived]")
	after("restore it", call(200, "DELETE /v1/attributes/plan?restore=true", ""), "attribute.updated by key=key/test of plan [archived]")

	// The reply policy.
	after("set a policy", call(200, "PUT /v1/policy", `{"assign":{"mode":"round_robin","members":["ada@example.com"]},"auto_reply":{"away":"Away"}}`), "policy.updated by key=key/test of acme [assign auto_reply owner_away]")
	after("give what an absent owner would get to others", call(200, "PUT /v1/policy", `{"assign":{"mode":"round_robin","members":["ada@example.com"]},"auto_reply":{"away":"Away"},"owner_away":"pool"}`), "policy.updated by key=key/test of acme [owner_away]")
	after("or not", call(200, "PUT /v1/policy", `{"assign":{"mode":"round_robin","members":["ada@example.com"]},"auto_reply":{"away":"Away"},"owner_away":null}`), "policy.updated by key=key/test of acme [owner_away]")
	after("the same again", call(200, "PUT /v1/policy", `{"assign":{"mode":"round_robin","members":["ADA@example.com"],"max_open":null},"auto_reply":{"away":"Away","every_hours":12},"hours":null}`))
	after("a channel's own", call(200, "PUT /v1/channels/"+s.channel.String()+"/policy", `{"hours":{"time_zone":"UTC"},"auto_reply":{"away":"Away"}}`),
		"policy.updated by key=key/test of channel [assign channel_id hours]")
	after("clear the channel's", call(204, "DELETE /v1/channels/"+s.channel.String()+"/policy", ""), "policy.updated by key=key/test of channel [assign channel_id hours]")
	after("clear it again", call(204, "DELETE /v1/channels/"+s.channel.String()+"/policy", ""))
	after("turn all off", call(200, "PUT /v1/policy", `{}`), "policy.updated by key=key/test of acme [assign auto_reply]")

	// Saved replies.
	after("create a saved reply", call(201, "PUT /v1/snippets/hi", `{"text":"Hi {{customer_name}}"}`), "snippet.created by key=key/test of hi")
	after("change it", call(200, "PUT /v1/snippets/hi", `{"text":"Hello"}`), "snippet.updated by key=key/test of hi [text]")
	after("the same again", call(200, "PUT /v1/snippets/hi", `{"text":"Hello"}`))
	after("delete it", call(204, "DELETE /v1/snippets/hi", ""), "snippet.deleted by key=key/test of hi gone")
	after("delete it again", call(404, "DELETE /v1/snippets/hi", ""))

	// Segments.
	segment := func(status int, name, is string) func() {
		return call(status, "PUT /v1/segments/named", `{"name":"`+name+`","filter":{"all":[{"field":"name","is":"`+is+`"}]}}`)
	}
	after("create a segment", segment(201, "Named", "present"), "segment.created by key=key/test of named")
	after("change its name", segment(200, "With a name", "present"), "segment.updated by key=key/test of named [name]")
	after("change all", segment(200, "Nameless", "absent"), "segment.updated by key=key/test of named [filter name]")
	after("the same again", segment(200, "Nameless", "absent"))
	after("delete it", call(204, "DELETE /v1/segments/named", ""), "segment.deleted by key=key/test of named gone")
	after("delete it again", call(404, "DELETE /v1/segments/named", ""))

	// Contacts. The data of an event is the record as it is now, so each act is read alone.
	var ada, bob string
	after("create a contact", func() {
		ada = id(s.want(201, "POST /v1/contacts", `{"external_id":"a","email":"Ada@example.com","phone":"+12022243441","name":"Ada","attributes":{"plan":"pro"}}`), "Ada")
	}, "contact.created by key=key/test of Ada Ada")
	after("match it", call(200, "POST /v1/contacts", `{"email":"Ada@example.com","note":"n","attributes":{"plan":"free"},"owner":"grace@example.com","identities":[{"kind":"twitter","value":"t"}]}`),
		"contact.updated by key=key/test of Ada Ada [attributes.plan identities note owner]")
	after("patch it", call(200, "PATCH /v1/contacts/"+ada, `{"name":"B","email":"b@example.com","phone":"+12022243442","external_id":"b"}`),
		"contact.updated by key=key/test of Ada Ada [email external_id name phone]")
	after("remove an identity", call(200, "DELETE /v1/contacts/"+ada+"/identities?kind=twitter&value=t", ""), "contact.updated by key=key/test of Ada Ada [identities]")
	after("clear the owner", call(200, "DELETE /v1/contacts/"+ada+"/owner", ""), "contact.updated by key=key/test of Ada Ada [owner]")
	after("set the owner", call(200, "PUT /v1/contacts/"+ada+"/owner", `{"owner":"`+s.members[0].ID.String()+`"}`), "contact.updated by key=key/test of Ada Ada [owner]")
	after("clear the attributes", call(200, "PATCH /v1/contacts/"+ada, `{"attributes":null}`), "contact.updated by key=key/test of Ada Ada [attributes.plan]")
	after("a batch", func() {
		body := s.want(200, "POST /v1/contacts/batch", `{"operations":[{"op":"upsert","data":{"external_id":"bob","phone":"+12022243450"}},{"op":"upsert","data":{"external_id":"c"}},{"op":"assign","external_id":"bob","owner":"alan@example.com"},
			{"op":"nonsense"},{"op":"upsert","data":{"external_id":"bob"}},{"op":"delete","external_id":"c"}]}`)
		for i, m := range ids(t, []byte(strings.Replace(string(body), `"results"`, `"data"`, 1))) {
			if i == 0 {
				bob = m
				l.names[m] = "Bob"
			} else if l.names[m] == "" && m != "" {
				l.names[m] = "Cem"
			}
		}
	}, "contact.created by key=key/test of Bob Bob", "contact.created by key=key/test of Cem Cem gone", "contact.updated by key=key/test of Bob Bob [owner]", "contact.deleted by key=key/test of Cem Cem gone")

	// Inbound messages.
	hear := func(from, text string) func() {
		return func() {
			t.Helper()
			c := s.hear(s.channel, from, text)
			if l.names[c.ID.String()] == "" {
				l.names[c.ID.String()] = "talk" + fmt.Sprint(strings.Count(strings.Join(allNames(l.names), " "), "talk")+1)
			}
			if l.names[c.ContactID.String()] == "" {
				l.names[c.ContactID.String()] = "Dora"
			}
		}
	}
	after("a first message of an owned contact", hear("12022243450", "Hello"), "conversation.created by provider=channel/sandbox of talk1 talk1 Bob", "message.received by provider=channel/sandbox of new talk1 Bob")
	after("a second one", hear("12022243450", "Hello?"), "message.received by provider=channel/sandbox of new talk1 Bob")
	after("a first message of a new person, who wants nothing", hear("12022243460", "STOP"),
		"contact.created by provider=channel/sandbox of Dora Dora", "conversation.created by provider=channel/sandbox of talk2 talk2 Dora",
		"message.received by provider=channel/sandbox of new talk2 Dora", "contact.opted_out by provider=channel/sandbox of Dora Dora")
	after("stop again", hear("12022243460", "stop!"), "message.received by provider=channel/sandbox of new talk2 Dora")
	after("start", hear("12022243460", "Start"), "message.received by provider=channel/sandbox of new talk2 Dora", "contact.opted_in by provider=channel/sandbox of Dora Dora")
	after("start again", hear("12022243460", "Start"), "message.received by provider=channel/sandbox of new talk2 Dora")

	// Conversations.
	talk1 := ""
	for id, name := range l.names {
		if name == "talk1" {
			talk1 = id
		}
	}
	after("assign", call(200, "PUT /v1/conversations/"+talk1+"/assignee", `{"member":"grace@example.com"}`), "conversation.updated by key=key/test of talk1 talk1 Bob [assigned_member_id assigned_via]")
	after("assign to another", call(200, "PUT /v1/conversations/"+talk1+"/assignee", `{"member":"ada@example.com"}`), "conversation.updated by key=key/test of talk1 talk1 Bob [assigned_member_id]")
	var note string
	after("write a note", func() {
		note = id(s.want(201, "POST /v1/conversations/"+talk1+"/notes", `{"text":"Wants a refund","member":"grace@example.com"}`), "note")
	}, "note.created by key=key/test of note talk1 Bob")
	after("delete it", call(204, "DELETE /v1/conversations/"+talk1+"/notes/"+note, ""), "note.deleted by key=key/test of note talk1 Bob gone")
	after("delete it again", call(404, "DELETE /v1/conversations/"+talk1+"/notes/"+note, ""))
	after("close", call(200, "PUT /v1/conversations/"+talk1+"/status", `{"status":"closed"}`), "conversation.updated by key=key/test of talk1 talk1 Bob [status]")
	after("a message reopens none", hear("12022243450", "Again"), "conversation.created by provider=channel/sandbox of talk3 talk3 Bob", "message.received by provider=channel/sandbox of new talk3 Bob")

	// Merges.
	var fay, gus, merge string
	after("two records of one person", func() {
		fay = id(s.want(201, "POST /v1/contacts", `{"email":"fay@example.com"}`), "Fay")
		gus = id(s.want(201, "POST /v1/contacts", `{"phone":"+12022243480","name":"Fay"}`), "Gus")
	}, "contact.created by key=key/test of Fay Fay", "contact.created by key=key/test of Gus Gus")
	after("who writes", hear("12022243480", "Hello"), "conversation.created by provider=channel/sandbox of talk4 talk4 Gus", "message.received by provider=channel/sandbox of new talk4 Gus")
	after("merge them", func() {
		merge = id(s.want(200, "POST /v1/contacts/"+fay+"/merge", `{"from":"`+gus+`"}`), "merge")
	}, "contact.updated by key=key/test of Fay Fay [name phone]", "contact.deleted by key=key/test of Gus Gus gone",
		"conversation.updated by key=key/test of talk4 talk4 Fay [contact_id]", "merge.created by key=key/test of merge Fay")
	after("merge them again", call(200, "POST /v1/contacts/"+fay+"/merge", `{"from":"`+gus+`"}`))
	after("try to undo it", call(200, "POST /v1/merges/"+merge+"/undo", `{"dry_run":true}`))
	after("undo it", call(200, "POST /v1/merges/"+merge+"/undo", `{}`), "contact.updated by key=key/test of Fay Fay [name phone]", "contact.created by key=key/test of Gus Gus",
		"conversation.updated by key=key/test of talk4 talk4 Gus [contact_id]", "merge.undone by key=key/test of merge Fay")
	after("undo it again", call(200, "POST /v1/merges/"+merge+"/undo", `{}`))

	// Conflicts.
	refuse := func() {
		s.want(409, "POST /v1/contacts", `{"email":"fay@example.com","phone":"+12022243480"}`)
		s.app.Conflicts.StoreNow(ctx)
	}
	var conflict string
	after("a write between them", func() {
		refuse()
		conflict = ids(t, s.want(200, "GET /v1/conflicts", ""))[0]
		l.names[conflict] = "conflict"
	}, "conflict.created by key=key/test of conflict")
	after("again", refuse)
	after("dismiss it", call(200, "POST /v1/conflicts/"+conflict+"/resolve", `{"action":"dismiss"}`), "conflict.updated by key=key/test of conflict [status]")
	after("dismiss it again", call(200, "POST /v1/conflicts/"+conflict+"/resolve", `{"action":"dismiss"}`))
	after("a write between them, after that", refuse)

	// Sends.
	send := func(key, body string) func() {
		return func() {
			t.Helper()
			r := s.outbound(key, body)
			if r.status != 201 {
				t.Fatalf("%d %s", r.status, r.body)
			}
			var sent struct {
				Data struct {
					Conversation struct {
						ID        string
						ContactID string `json:"contact_id"`
					}
				}
			}
			must(json.Unmarshal(r.body, &sent))
			if c := sent.Data.Conversation; l.names[c.ID] == "" && c.ID != "" {
				l.names[c.ID] = "sent"
			}
			for _, c := range ids(t, s.want(200, "GET /v1/conversations?limit=200", "")) {
				if l.names[c] == "" {
					l.names[c] = "sent"
				}
			}
			for _, c := range ids(t, s.want(200, "GET /v1/contacts?limit=200", "")) {
				if l.names[c] == "" {
					l.names[c] = "Emil"
				}
			}
		}
	}
	after("send to a new person", send("k1", message(`"to":{"phone":"+12022243470"}`, `"contact":{"name":"Emil"}`, `"assignee":"grace@example.com"`)),
		"contact.created by key=key/test of Emil Emil", "conversation.created by key=key/test of sent sent Emil", "message.sent by key=key/test of new sent Emil")
	expect("its statuses", l.until(2), "message.delivered by provider=channel/sandbox of new sent Emil [delivery_status]", "message.read by provider=channel/sandbox of new sent Emil [delivery_status]")
	after("the same send again", send("k1", message(`"to":{"phone":"+12022243470"}`, `"contact":{"name":"Emil"}`, `"assignee":"grace@example.com"`)))
	after("send to who is there, assigned", send("k2", message(`"to":{"phone":"+12022243470"}`, `"assignee":"alan@example.com"`)),
		"conversation.updated by key=key/test of sent sent Emil [assigned_member_id]", "message.sent by key=key/test of new sent Emil")
	l.until(2)
	after("send to a number that fails", send("k3", message(`"to":{"phone":"+12022240004"}`)),
		"contact.created by key=key/test of Emil Emil", "conversation.created by key=key/test of sent sent Emil", "message.sent by key=key/test of new sent Emil")
	expect("the failure", l.until(1), "message.failed by provider=channel/sandbox of new sent Emil [delivery_status failure]")

	// Sends whose outcome is unknown.
	lose := func(key, name, to string) func() {
		return func() {
			t.Helper()
			if r := s.outbound(key, message(`"to":`+to)); r.status != 503 {
				t.Fatalf("%d %s", r.status, r.body)
			}
			l.names[s.attempts("&phase=in_doubt")[0].ID] = name
		}
	}
	release := func(name, sent string) func() {
		return func() {
			t.Helper()
			for id, known := range l.names {
				if known == name {
					s.want(200, "POST /v1/attempts/"+id+"/release", `{"sent":`+sent+`}`)
				}
			}
		}
	}
	lost := id(s.want(201, "POST /v1/contacts", `{"phone":"+12022250003"}`), "Lost")
	l.since()
	after("a lost answer", lose("k4", "send1", `{"contact_id":"`+lost+`"}`), "send.in_doubt by key=key/test of send1 Lost")
	after("the same send again", func() { s.outbound("k4", message(`"to":{"contact_id":"`+lost+`"}`)) })
	after("it was not sent", release("send1", "false"), "send.settled by key=key/test of send1 Lost")
	after("the same again", release("send1", "false"))
	after("another lost answer", lose("k5", "send2", `{"contact_id":"`+lost+`"}`), "send.in_doubt by key=key/test of send2 Lost")
	after("it was sent", func() {
		release("send2", "true")()
		l.names[ids(t, s.want(200, "GET /v1/conversations?contact_id="+lost, ""))[0]] = "sent2"
	}, "conversation.created by key=key/test of sent2 sent2 Lost", "message.sent by key=key/test of new sent2 Lost", "send.settled by key=key/test of send2 sent2 Lost")
	after("to a new person", lose("k6", "send3", `{"phone":"+12022260003"}`), "send.in_doubt by key=key/test of send3 new")

	// Templates.
	put := func(name, status, body string) {
		t.Helper()
		_, err := s.app.PutTemplate(ctx, operator(), s.channel, []byte(`{"name":"`+name+`","language":"en_US","category":"UTILITY","status":"`+status+`","components":[{"type":"BODY","text":"`+body+`"}]}`))
		must(err)
	}
	after("a new template", func() { put("fresh", "APPROVED", "Hi") }, "template.created by provider=channel/sandbox of channel/fresh/en_US")
	after("another body", func() { put("fresh", "PENDING", "Hi {{1}}") }, "template.updated by provider=channel/sandbox of channel/fresh/en_US [body sendable status variable_hints variables]")
	after("the same template", func() { put("fresh", "PENDING", "Hi {{1}}") })
	after("a deleted template", func() { put("fresh", "DELETED", "Hi {{1}}") }, "template.deleted by provider=channel/sandbox of channel/fresh/en_US")

	// What the command line does.
	name, country, role, email, permissions := "Acme 2", "TR", "admin", "new@example.com", "contacts:read"
	after("edit the workspace", func() {
		_, err := s.app.EditWorkspace(ctx, operator(), app.WorkspaceEdit{Name: &name, Country: &country})
		must(err)
	}, "workspace.updated by cli of acme [country name]")
	fixed := true
	after("fix external ids", func() {
		_, err := s.app.EditWorkspace(ctx, operator(), app.WorkspaceEdit{FixedExternalIDs: &fixed})
		must(err)
	}, "workspace.updated by cli of acme [external_ids]")
	var member desk.Member
	after("add a member", func() {
		var err error
		member, err = s.app.AddMember(ctx, operator(), "Fay", "fay@example.com", "agent")
		must(err)
		l.names[member.ID.String()] = "fay"
	}, "member.created by cli of fay")
	after("a member goes away", call(200, "PUT /v1/members/"+member.ID.String()+"/availability", `{"available":false}`), "member.updated by key=key/test of fay [available]")
	after("a second time", call(200, "PUT /v1/members/"+member.ID.String()+"/availability", `{"available":false}`))
	after("edit it", func() {
		_, err := s.app.EditMember(ctx, operator(), member.ID, app.MemberEdit{Name: &name, Email: &email, Role: &role})
		must(err)
	}, "member.updated by cli of fay [email name role]")
	s.want(200, "PUT /v1/contacts/"+bob+"/owner", `{"owner":"new@example.com"}`)
	open := ids(t, s.want(200, "GET /v1/conversations?status=open&contact_id="+bob, ""))[0]
	s.want(200, "PUT /v1/conversations/"+open+"/assignee", `{"member":"new@example.com"}`)
	l.since()
	must(s.app.RemoveMember(ctx, operator(), member.ID))
	removed := l.since()
	slices.Sort(removed[:min(2, len(removed))]) // on PostgreSQL, both are released side by side
	expect("remove it", removed,
		"contact.updated by cli of Bob Bob [owner]", "conversation.updated by cli of talk3 talk3 Bob [assigned_member_id assigned_via]", "member.deleted by cli of fay gone")
	var key desk.APIKey
	after("create a key", func() {
		var err error
		_, key, err = s.app.CreateKey(ctx, operator(), app.KeyEdit{Name: &name, Permissions: &permissions})
		must(err)
		l.names[key.ID.String()] = "second"
	}, "key.created by cli of second gone")
	soon, other := time.Hour, "other"
	after("edit it", func() {
		_, err := s.app.EditKey(ctx, operator(), key.ID, app.KeyEdit{Name: &other, Expires: &soon})
		must(err)
	}, "key.updated by cli of second [expires_at name] gone")
	after("revoke it", func() { _, err := s.app.RevokeKey(ctx, operator(), key.ID); must(err) }, "key.updated by cli of second [revoked_at] gone")
	after("add a channel", func() { l.names[s.addSandbox("second").String()] = "channel2" }, "channel.created by cli of channel2")
	after("disable it", func() {
		for id, name := range l.names {
			if name == "channel2" {
				parsed, _ := desk.ParseID(id)
				s.enable(parsed, false)
			}
		}
	}, "channel.updated by cli of channel2 [enabled]")
	after("bind a variable", func() {
		_, err := s.app.EditChannel(ctx, operator(), s.channel, app.ChannelEdit{Bindings: map[desk.BindingPlace]desk.Binding{{Template: "offer", Language: "en_US", Address: "offer"}: desk.AgentName}})
		must(err)
	}, "channel.updated by cli of channel [bindings]")

	var webhook string
	after("add a webhook", func() {
		webhook = addWebhook(t, s.server, s.key, `{"url":"https://example.com","types":["contact.*"]}`)
		l.names[webhook] = "webhook"
	}, "webhook.created by key=key/test of webhook")
	after("change it", call(200, "PATCH /v1/webhooks/"+webhook, `{"url":"https://example.com/2","enabled":false}`),
		"webhook.updated by key=key/test of webhook [disabled_reason enabled url]")
	after("rotate its secret", call(200, "POST /v1/webhooks/"+webhook+"/rotate", `{}`), "webhook.updated by key=key/test of webhook [secret]")
	after("change nothing of it", call(200, "PATCH /v1/webhooks/"+webhook, `{"url":"https://example.com/2","types":["contact.*"],"enabled":false}`))
	after("what is refused", func() {
		call(409, "POST /v1/webhooks", `{"url":"https://example.com/2"}`)()
		call(400, "PATCH /v1/webhooks/"+webhook, `{"types":["*"],"url":"x"}`)()
		call(400, "POST /v1/webhooks/"+webhook+"/rotate", `{"overlap_s":-1}`)()
	})
	after("remove it", call(204, "DELETE /v1/webhooks/"+webhook, ""), "webhook.deleted by key=key/test of webhook gone")

	var broadcast string
	after("draft a broadcast", func() {
		broadcast = idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"greeting","language":"en_US"}}`))
		l.names[broadcast] = "broadcast"
	}, "broadcast.created by key=key/test of broadcast")
	after("change it", call(200, "PATCH /v1/broadcasts/"+broadcast, `{"name":"Summer"}`), "broadcast.updated by key=key/test of broadcast [name]")
	after("change nothing of it", call(200, "PATCH /v1/broadcasts/"+broadcast, `{"name":"Summer"}`))
	after("delete it", call(204, "DELETE /v1/broadcasts/"+broadcast, ""), "broadcast.deleted by key=key/test of broadcast gone")

	// Events of a deleted contact have no data any more. The records that were deleted with
	// the contact have no events.
	after("delete a contact", call(204, "DELETE /v1/contacts/"+bob, ""), "contact.deleted by key=key/test of Bob Bob gone")
	erased := s.events("?limit=200&types=contact.*,conversation.*,message.*")
	for _, e := range erased.Data {
		if e.Subject.ContactID == bob && string(e.Data) != "null" {
			t.Errorf("data of a deleted contact: %+v", e)
		}
	}

	// Nothing.
	talk := ids(t, s.want(200, "GET /v1/conversations?status=open&limit=1", ""))[0]
	s.want(200, "PUT /v1/conversations/"+talk+"/assignee", `{"member":"ada@example.com"}`)
	l.since()
	after("what changes nothing", func() {
		nothing(t, s, ada, talk)
		same := []func() error{
			func() error {
				_, err := s.app.EditWorkspace(ctx, operator(), app.WorkspaceEdit{Name: &name, Country: &country, FixedExternalIDs: &fixed})
				return err
			},
			func() error {
				v := "Ada Lovelace"
				_, err := s.app.EditMember(ctx, operator(), s.members[0].ID, app.MemberEdit{Name: &v})
				return err
			},
			func() error {
				_, err := s.app.EditKey(ctx, operator(), keys[0].ID, app.KeyEdit{Name: &keys[0].Name})
				return err
			},
			func() error { _, err := s.app.RevokeKey(ctx, operator(), key.ID); return err },
			func() error { s.enable(s.channel, true); return nil },
			func() error { _, _, err := s.app.SyncChannel(ctx, operator(), s.channel); return err },
			func() error {
				_, err := s.app.EditChannel(ctx, operator(), s.channel, app.ChannelEdit{Bindings: map[desk.BindingPlace]desk.Binding{{Template: "offer", Language: "en_US", Address: "offer"}: desk.AgentName}})
				return err
			},
		}
		for _, do := range same {
			must(do())
		}
	})
	later := map[desk.EventType]bool{desk.MessageUpdated: true, desk.WebhookDisabled: true}
	for _, e := range desk.EventTypes {
		if !l.seen[string(e)] && !later[e] {
			t.Errorf("no %s was made", e)
		}
	}
}

func allNames(m map[string]string) (list []string) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// The helper nothing makes requests that must have no event: they change nothing, or are
// refused.
func nothing(t *testing.T, s *deskServer, ada, talk string) {
	t.Helper()
	tried := 0
	for _, c := range []struct {
		status int
		call   string
		body   string
	}{
		{200, "POST /v1/contacts", `{"external_id":"b"}`},
		{200, "POST /v1/contacts", `{"external_id":"b","email":"b@example.com","name":" B "}`},
		{200, "PATCH /v1/contacts/{ada}", `{}`},
		{200, "PATCH /v1/contacts/{ada}", `{"name":"B","note":"n","phone":"+1 202 224 3442"}`},
		{200, "PATCH /v1/contacts/{ada}", `{"attributes":{}}`},
		{200, "PATCH /v1/contacts/{ada}", `{"attributes":{"plan":null}}`},
		{200, "PATCH /v1/contacts/{ada}", `{"attributes":null,"identities":null}`},
		{200, "PATCH /v1/contacts/{ada}", `{"identities":[{"kind":"email","value":"b@example.com"}]}`},
		{200, "PUT /v1/contacts/{ada}/owner", `{"owner":"ada@example.com"}`},
		{200, "POST /v1/contacts/batch", `{"operations":[{"op":"upsert","data":{"external_id":"b"}},{"op":"assign","external_id":"b","owner":"ada@example.com"},{"op":"delete","external_id":"nobody"}]}`},
		{200, "POST /v1/attributes", `{"key":"plan"}`},
		{200, "POST /v1/attributes", `{"key":"plan","type":"select","label":"Plan"}`},
		{200, "DELETE /v1/attributes/plan?restore=true", ``},
		{200, "PUT /v1/conversations/{talk}/assignee", `{"member":"ada@example.com"}`},
		{200, "PUT /v1/conversations/{talk}/status", `{"status":"open"}`},
		// Reads.
		{200, "GET /v1/contacts", ``}, {200, "GET /v1/contacts/{ada}", ``}, {200, "GET /v1/conversations", ``}, {200, "GET /v1/me", ``}, {200, "GET /v1/events", ``},
		// Refusals.
		{400, "POST /v1/contacts", `{}`}, {400, "POST /v1/contacts", `{"external_id":"n","phone":"x"}`}, {400, "POST /v1/contacts", `no json`},
		{422, "POST /v1/contacts", `{"external_id":"n","attributes":{"none":1}}`}, {400, "POST /v1/contacts", `{"external_id":"n","owner":"nobody@example.com"}`},
		{409, "PATCH /v1/contacts/{ada}", `{"phone":"+12022243460"}`}, {404, "DELETE /v1/contacts/0196f2a0-0000-7000-8000-000000000000", ``},
		{404, "PATCH /v1/contacts/0196f2a0-0000-7000-8000-000000000000", `{"name":"x"}`}, {409, "POST /v1/attributes", `{"key":"plan","type":"text"}`},
		{404, "DELETE /v1/attributes/none", ``}, {400, "PUT /v1/conversations/{talk}/assignee", `{"member":"nobody@example.com"}`},
		{400, "PUT /v1/conversations/{talk}/status", `{"status":"gone"}`}, {404, "PUT /v1/conversations/{ada}/status", `{"status":"closed"}`},
	} {
		tried++
		if r := s.do(strings.NewReplacer("{ada}", ada, "{talk}", talk).Replace(c.call), c.body); r.status != c.status {
			t.Errorf("%s %s: %d %s", c.call, c.body, r.status, r.body)
		}
	}
	// Sends that are refused, by parley and by the provider, and one that is in doubt already.
	for key, c := range map[string]struct {
		body   string
		status int
	}{
		"refused": {message(`"to":{"phone":"+12022240001"}`), 422}, "later": {message(`"to":{"phone":"+12022240002"}`), 502},
		"no_opt_in": {message(`"opt_in_confirmed"`), 422},
		"k6":        {message(`"to":{"phone":"+12022260003"}`), 503}, "k1": {message(), 409}, "unknown": {message(`"template":{"name":"none","language":"en_US"}`), 404},
	} {
		tried++
		if r := s.send("POST", "/v1/conversations/outbound", http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": {key}}, c.body); r.status != c.status {
			t.Errorf("a send that is %s: %d %s", key, r.status, r.body)
		}
	}
	if tried < 39 {
		t.Errorf("only %d calls", tried)
	}
}
