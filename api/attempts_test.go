package api_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/desk"
)

// sentAttempt is the record of an attempt.
type sentAttempt struct {
	ID             string `json:"attempt_id"`
	Key, Phase     string
	Address        *string
	Template       *string
	Refusal        *struct{ Type, Message, Title string }
	ConversationID *string `json:"conversation_id"`
	MessageID      *string `json:"message_id"`
	Kind           string
}

func (s *server) attempts(query string) (list []sentAttempt) {
	s.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Data []sentAttempt
			Next string `json:"next_cursor"`
		}
		decodeJSON(s.t, s.want(200, "GET /v1/attempts?limit=3"+query+cursor, ""), &page)
		if list = append(list, page.Data...); page.Next == "" {
			return list
		}
		cursor = "&cursor=" + page.Next
	}
}

// TestAttempts: the list of attempts shows the outcome of each send. A person decides about
// those that are in doubt.
func TestAttempts(t *testing.T) {
	s := newDesk(t)
	for n := range 4 {
		if r := s.outbound(fmt.Sprint("lost ", n), message(fmt.Sprintf(`"to":{"phone":"+120222%d0003"}`, 40+n))); r.status != 503 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if r := s.outbound("refused", message(`"to":{"phone":"+12022240001"}`)); r.status != 422 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	sent := s.outbound("sent", message())
	var answer struct {
		Data struct{ Conversation, Message struct{ ID string } }
	}
	decodeJSON(t, sent.body, &answer)

	for id, want := range map[string]int{"none": 6, "00000000-0000-0000-0000-000000000000": 0, "01900000-0000-7000-8000-000000000000": 0} {
		if n := len(s.attempts("&broadcast_id=" + id)); n != want {
			t.Errorf("the broadcast %s has %d attempts, want %d", id, n, want)
		}
	}

	list := s.attempts("")
	if len(list) != 6 || list[0].Key != "sent" || list[5].Key != "lost 0" || !slices.IsSortedFunc(list, func(a, b sentAttempt) int { return strings.Compare(b.ID, a.ID) }) {
		t.Fatalf("attempts %+v", list)
	}
	if at := list[0]; at.Phase != "done" || at.Address != nil || at.ConversationID == nil || *at.ConversationID != answer.Data.Conversation.ID || *at.MessageID != answer.Data.Message.ID || at.Kind != "template" {
		t.Errorf("a sent one: %+v", at)
	}
	if at := list[1]; at.Phase != "refused" || at.Address != nil || at.Refusal == nil || at.Refusal.Type != "provider_rejected" || at.Refusal.Title == "" || at.MessageID != nil {
		t.Errorf("a refused one: %+v", at)
	}
	doubtful := list[2:]
	for _, at := range doubtful {
		if at.Phase != "in_doubt" || at.Address == nil || !strings.HasSuffix(*at.Address, "0003") || at.ConversationID != nil || at.MessageID != nil || at.Refusal != nil {
			t.Errorf("one in doubt: %+v", at)
		}
		var one struct{ Data sentAttempt }
		decodeJSON(t, s.want(200, "GET /v1/attempts/"+strings.ToUpper(at.ID), ""), &one)
		if one.Data.ID != at.ID || *one.Data.Address != *at.Address {
			t.Errorf("read alone: %+v", one.Data)
		}
	}
	for phase, want := range map[string]int{"in_doubt": 4, "done": 1, "refused": 1, "released": 0, "dispatching": 0} {
		if got := s.attempts("&phase=" + phase); len(got) != want {
			t.Errorf("%d attempts are %s, want %d", len(got), phase, want)
		}
	}
	const unknown = "0196f2a0-0000-7000-8000-000000000000"
	for call, status := range map[string]int{
		"?phase=": 400, "?phase=Done": 400, "?state=done": 400, "?limit=0": 400, "?cursor=abc": 400, "/" + unknown: 404, "/no-uuid": 404,
	} {
		s.want(status, "GET /v1/attempts"+call, "")
	}

	// A decision, the same decision again, and the opposite one.
	release := func(at sentAttempt, status int, sent bool) reply {
		t.Helper()
		r := s.do("POST /v1/attempts/"+at.ID+"/release", fmt.Sprintf(`{"sent":%t}`, sent))
		if r.status != status || status == 409 && errorType(r.body) != "attempt_settled" {
			t.Errorf("release of %s as %t: %d %s", at.Key, sent, r.status, r.body)
		}
		return r
	}
	for n, as := range []bool{true, false} {
		at := doubtful[n]
		before := s.state()
		first := release(at, 200, as)
		settled := s.state()
		if (before == settled) == as {
			t.Errorf("released as %t: %s\nbefore: %s", as, settled, before)
		}
		if again := release(at, 200, as); string(again.body) != string(first.body) {
			t.Errorf("the same again: %s, first %s", again.body, first.body)
		}
		phase := map[bool]string{true: "done", false: "released"}[as]
		if r := release(at, 409, !as); !strings.Contains(string(r.body), `"details":{"phase":"`+phase+`"}`) {
			t.Errorf("the other one: %s", r.body)
		}
		var one struct{ Data sentAttempt }
		decodeJSON(t, first.body, &one)
		if one.Data.Phase != phase || one.Data.Address != nil || (one.Data.MessageID != nil) != as {
			t.Errorf("released as %t: %+v", as, one.Data)
		}
		if s.state() != settled {
			t.Error("a refused decision has changed something")
		}
	}
	release(list[0], 200, true)
	release(list[0], 409, false)
	release(list[1], 409, true)
	release(list[1], 409, false)
	for body, status := range map[string]int{``: 400, `{}`: 400, `{"sent":null}`: 400, `{"sent":"true"}`: 400, `{"sent":true,"x":1}`: 400} {
		s.want(status, "POST /v1/attempts/"+doubtful[2].ID+"/release", body)
		s.want(status, "POST /v1/attempts/"+unknown+"/release", body)
	}
	s.want(404, "POST /v1/attempts/"+unknown+"/release", `{"sent":true}`)

	// A key that may only read attempts can't settle one, and another workspace has none.
	reader := s.newKey(s.ws, "attempts:read")
	if r := s.as(reader, "POST /v1/attempts/"+doubtful[2].ID+"/release", `{"sent":true}`); r.status != 403 {
		t.Errorf("a reader's decision: %d %s", r.status, r.body)
	}
	if r := s.as(reader, "GET /v1/attempts", ""); r.status != 200 || len(s.attempts("&phase=in_doubt")) != 2 {
		t.Errorf("a reader's list: %d %s", r.status, r.body)
	}
	_, stranger := s.workspace("Other", "US")
	if r := s.as(stranger, "GET /v1/attempts", ""); r.status != 200 || string(r.body) != `{"data":[]}` {
		t.Errorf("a stranger's list: %d %s", r.status, r.body)
	}
	for _, call := range []string{"GET /v1/attempts/" + doubtful[2].ID, "POST /v1/attempts/" + doubtful[2].ID + "/release"} {
		if r := s.as(stranger, call, map[bool]string{true: `{"sent":true}`}[strings.HasPrefix(call, "POST")]); r.status != 404 {
			t.Errorf("a stranger's %s: %d %s", call, r.status, r.body)
		}
	}

	// The address of a deleted person is removed at once, and no data of the person are
	// stored later.
	person := contact(t, s.want(201, "POST /v1/contacts", `{"phone":"`+*doubtful[2].Address+`"}`)).ID
	s.want(204, "DELETE /v1/contacts/"+person, "")
	for _, at := range s.attempts("&phase=in_doubt") {
		if erased := at.ID == doubtful[2].ID; erased != (at.Address == nil) {
			t.Errorf("after the deletion: %+v", at)
		}
	}
	var one struct{ Data sentAttempt }
	decodeJSON(t, release(doubtful[2], 200, true).body, &one)
	if one.Data.MessageID != nil || one.Data.ConversationID != nil {
		t.Errorf("of a deleted person: %+v", one.Data)
	}
}

// TestAttemptUnderWay: nobody can settle an attempt while its process may still send it.
func TestAttemptUnderWay(t *testing.T) {
	s, g := newGatedDesk(t, time.Minute)
	var first reply
	var calls sync.WaitGroup
	calls.Go(func() { first = s.outbound("key", message()) })
	g.reached(t)
	list := s.attempts("&phase=dispatching")
	if len(list) != 1 || list[0].Address == nil {
		t.Fatalf("under way: %+v", list)
	}
	for _, sent := range []string{"true", "false"} {
		r := s.do("POST /v1/attempts/"+list[0].ID+"/release", `{"sent":`+sent+`}`)
		if wait, err := strconv.Atoi(r.header.Get("Retry-After")); r.status != 503 || errorType(r.body) != string(desk.SendInProgress) || err != nil || wait < 1 {
			t.Errorf("%d %v %s", r.status, r.header, r.body)
		}
	}
	close(g.opened)
	calls.Wait()
	if first.status != 201 || len(s.attempts("&phase=done")) != 1 {
		t.Errorf("%d %s", first.status, first.body)
	}
}

// TestAttempts_opt_in: an attempt says who confirmed that the person agreed, and when, until
// the contact is deleted.
func TestAttempts_opt_in(t *testing.T) {
	s := newDesk(t)
	sent := s.outbound("sent", message())
	var answer struct {
		Data struct {
			Conversation struct {
				ContactID string `json:"contact_id"`
			}
		}
	}
	decodeJSON(t, sent.body, &answer)
	optIns := func() (list []string) {
		t.Helper()
		var page struct {
			Data []struct {
				ID    string `json:"attempt_id"`
				OptIn *struct {
					ConfirmedAt string `json:"confirmed_at"`
					Actor       struct{ Kind, ID, Name string }
				} `json:"opt_in"`
			}
		}
		decodeJSON(t, s.want(200, "GET /v1/attempts", ""), &page)
		for _, at := range page.Data {
			text := "null"
			if o := at.OptIn; o != nil {
				text = o.Actor.Kind + " " + o.Actor.Name
				if _, ok := desk.ParseTime(o.ConfirmedAt); !ok || len(o.Actor.ID) != 36 {
					t.Errorf("opt-in: %+v", o)
				}
			}
			list = append(list, text)
		}
		return list
	}
	if got := optIns(); !slices.Equal(got, []string{"key test"}) {
		t.Errorf("opt-ins: %q", got)
	}
	s.want(204, "DELETE /v1/contacts/"+answer.Data.Conversation.ContactID, "")
	if got := optIns(); !slices.Equal(got, []string{"null"}) {
		t.Errorf("once the contact is deleted: %q", got)
	}
}
