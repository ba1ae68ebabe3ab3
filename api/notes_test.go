package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

type note struct {
	ID, Text string
	Author   *struct {
		Type string
		ID   *string
		Name string
	}
	CreatedAt string `json:"created_at"`
}

func noteOf(t *testing.T, body []byte) note {
	t.Helper()
	var one struct{ Data note }
	if err := json.Unmarshal(body, &one); err != nil {
		t.Fatal(err)
	}
	return one.Data
}

func TestNotes(t *testing.T) {
	s := newDesk(t)
	talk := s.hear(s.channel, "+12022243441", "Hello")
	other := s.hear(s.channel, "+12022243442", "Hello")
	path := "/v1/conversations/" + talk.ID.String() + "/notes"
	ada := s.members[0]

	// The authors, with the names that they had then.
	by := map[string][2]string{
		`{"text":" Wants a\nrefund "}`:                            {"key", "test"},
		`{"text":"x","member":null}`:                              {"key", "test"},
		`{"text":"x","member":"ADA@example.com"}`:                 {"member", ada.Name},
		`{"member":"` + ada.ID.String() + `","text":"\u263a 🎈 "}`: {"member", ada.Name},
	}
	for body, who := range by {
		n := noteOf(t, s.want(201, "POST "+path, body))
		if n.Author == nil || n.Author.Type != who[0] || n.Author.Name != who[1] || n.Author.ID == nil || (who[0] == "member") != (*n.Author.ID == ada.ID.String()) {
			t.Errorf("%s: %+v", body, n.Author)
		}
		if strings.TrimSpace(n.Text) != n.Text || n.CreatedAt == "" {
			t.Errorf("%s: %+v", body, n)
		}
	}
	name := "Ada King"
	if _, err := s.app.EditMember(t.Context(), s.operator(s.ws), ada.ID, app.MemberEdit{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if list := string(s.want(200, "GET "+path, "")); strings.Contains(list, name) || strings.Count(list, "Ada Lovelace") != 2 {
		t.Errorf("after the member has another name: %s", list)
	}
	long := strings.Repeat("ü", 4000)
	if n := noteOf(t, s.want(201, "POST "+path, `{"text":"`+long+`"}`)); n.Text != long {
		t.Error("a long note was changed")
	}

	// A refused request stores nothing.
	before := string(s.want(200, "GET "+path, ""))
	const unknown = "/v1/conversations/0196f2a0-0000-7000-8000-000000000000/notes"
	for call, status := range map[[2]string]int{
		{path, ``}: 400, {path, `{}`}: 400, {path, `{"text":""}`}: 400, {path, `{"text":" \n "}`}: 400, {path, `{"text":null}`}: 400, {path, `{"text":7}`}: 400,
		{path, `{"text":"` + long + `x"}`}: 400, {path, `{"text":"a\u0000"}`}: 400, {path, `{"text":"x","note":1}`}: 400, {path, `{"text":"x","member":""}`}: 400,
		{path, `{"text":"x","member":"nobody@example.com"}`}: 400, {path, `{"text":"x","member":7}`}: 400, {unknown, `{"text":"x","member":"nobody"}`}: 404, {unknown, `{"text":""}`}: 400,
	} {
		s.want(status, "POST "+call[0], call[1])
	}
	s.want(404, "GET "+unknown, "")
	s.want(400, "GET "+path+"?order=oldest", "")
	if after := string(s.want(200, "GET "+path, "")); after != before {
		t.Errorf("refusals have left\n%s\nbefore\n%s", after, before)
	}

	// Newest first, in pages whose cursors belong to this list.
	all := ids(t, []byte(before))
	if len(all) != 5 || !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Fatalf("%d notes: %v", len(all), all)
	}
	var walked []string
	for cursor := ""; ; {
		var page struct {
			Data []note
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(s.want(200, "GET "+path+"?limit=2"+cursor, ""), &page); err != nil {
			t.Fatal(err)
		}
		for _, n := range page.Data {
			walked = append(walked, n.ID)
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
		s.want(400, "GET /v1/conversations/"+other.ID.String()+"/notes?limit=2"+cursor, "")
		s.want(400, "GET /v1/conversations/"+talk.ID.String()+"/messages?limit=2"+cursor, "")
	}
	if !slices.Equal(walked, all) {
		t.Errorf("the pages have %v, want %v", walked, all)
	}
	s.want(200, "PUT /v1/conversations/"+talk.ID.String()+"/status", `{"status":"archived"}`)
	s.want(201, "POST "+path, `{"text":"also when it is archived"}`)

	// A note can be deleted once, and only through its own conversation.
	s.want(404, "DELETE /v1/conversations/"+other.ID.String()+"/notes/"+all[0], "")
	s.want(404, "DELETE "+path+"/no-uuid", "")
	s.want(204, "DELETE "+path+"/"+strings.ToUpper(all[0]), "")
	s.want(404, "DELETE "+path+"/"+all[0], "")
	if list := ids(t, s.want(200, "GET "+path, "")); len(list) != 5 || slices.Contains(list, all[0]) {
		t.Errorf("after a deletion: %v", list)
	}

	// A member writes notes in the console, by the same rules.
	member, err := s.app.Access.Member(t.Context(), s.ws, ada.ID)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.app.AddNote(t.Context(), member, other.ID, "Called", desk.Field[desk.Reference]{})
	if err != nil || n.Author.ID != ada.ID || n.Author.Name != name {
		t.Errorf("a member's note: %+v, %v", n, err)
	}

	// The notes are deleted together with the person.
	s.want(204, "DELETE /v1/contacts/"+talk.ContactID.String(), "")
	s.want(404, "GET "+path, "")
	s.want(404, "POST "+path, `{"text":"x"}`)
	for _, e := range s.events("?types=note.*&limit=200").Data {
		if gone := e.Subject.ContactID == talk.ContactID.String(); gone != (string(e.Data) == "null") {
			t.Errorf("%s of %s has the data %s", e.Type, e.Subject.ID, e.Data)
		}
	}
}

// TestNotesWithoutWrite: a key that may only read can neither write nor delete notes.
// Another workspace finds none of them.
func TestNotesWithoutWrite(t *testing.T) {
	s := newDesk(t)
	talk := s.hear(s.channel, "+12022243441", "Hello").ID.String()
	path := "/v1/conversations/" + talk + "/notes"
	id := noteOf(t, s.want(201, "POST "+path, `{"text":"x"}`)).ID
	reader := s.newKey(s.ws, "conversations:read")
	_, stranger := s.workspace("Other", "US")
	for call, body := range map[string]string{"GET " + path: "", "POST " + path: `{"text":"x"}`, "DELETE " + path + "/" + id: ""} {
		want := 403
		if body == "" && strings.HasPrefix(call, "GET") {
			want = 200
		}
		if r := s.as(reader, call, body); r.status != want {
			t.Errorf("a reader's %s: %d %s", call, r.status, r.body)
		}
		method, _, _ := strings.Cut(call, " ")
		unknown := s.as(stranger, strings.Replace(call, talk, "0196f2a0-0000-7000-8000-000000000000", 1), body)
		if r := s.as(stranger, call, body); r.status != 404 || string(r.body) != string(unknown.body) {
			t.Errorf("a stranger's %s: %d %s", method, r.status, r.body)
		}
	}
	if n := len(ids(t, s.want(200, "GET "+path, ""))); n != 1 {
		t.Errorf("%d notes, want 1", n)
	}
}

// TestNotesStay: no part of a note reaches a provider, whatever else is sent meanwhile.
func TestNotesStay(t *testing.T) {
	s, l := newListener(t)
	const secret = "wants-a-refund"
	talk := s.hear(s.channel, "+12022243441", "Hello")
	path := "/v1/conversations/" + talk.ID.String()
	for _, body := range []string{`{"text":"` + secret + `"}`, `{"text":"` + secret + `","member":"ada@example.com"}`} {
		s.want(201, "POST "+path+"/notes", body)
	}
	picture := s.uploads(s.ws, jpeg).ID.String()
	for key, body := range map[string]string{
		"text": `{"text":"Hi"}`, "member": `{"text":"Hi","member":"ada@example.com"}`, "file": `{"attachment":{"media_id":"` + picture + `","caption":"Look"}}`,
		"buttons": `{"text":"Hi","buttons":[{"id":"a","title":"A"}]}`,
	} {
		if r := s.replyTo(talk.ID, key, body); r.status != 201 {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if r := s.outbound("template", message()); r.status != 201 {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.want(200, "PUT "+path+"/read", `{}`)
	s.want(200, "PUT "+path+"/assignee", `{"member":"ada@example.com"}`)
	for _, note := range ids(t, s.want(200, "GET "+path+"/notes", "")) {
		s.want(204, "DELETE "+path+"/notes/"+note, "")
	}
	got := fmt.Sprintf("%+v %+v", l.sent, l.uploaded)
	if len(l.sent) != 5 || len(l.uploaded) != 1 || strings.Contains(got, secret) {
		t.Errorf("the provider got %s", got)
	}
	for _, d := range l.sent {
		if text := fmt.Sprintf("%+v %+v %+v", d.Template, d.File, d.Buttons); strings.Contains(text, secret) {
			t.Errorf("the provider got %s", text)
		}
	}
}
