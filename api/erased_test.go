package api_test

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

// marks are the words that this test stores about a person.
var marks = regexp.MustCompile(`mark-[a-z]+-[0-9]+-`)

// marked returns the tables in which each mark is, also if it is in bytes.
func (s *server) marked(kinds []string, people int) map[string][]string {
	s.t.Helper()
	found := map[string][]string{}
	for table, rows := range s.tables() {
		for _, kind := range kinds {
			for n := range people {
				mark := fmt.Sprintf("mark-%s-%d-", kind, n)
				numbers := strings.Trim(fmt.Sprintf("%d", []byte(mark)), "[]")
				if strings.Contains(rows, mark) || strings.Contains(rows, numbers) || strings.Contains(rows, hex.EncodeToString([]byte(mark))) {
					found[mark] = append(found[mark], table)
				}
			}
		}
	}
	return found
}

// TestErased: a contact's export has all that any table has of the person, and after the
// deletion no table has anything, also if the followers of events are behind. The exceptions
// are the stored answers of sends (docs/backup.md).
func TestErased(t *testing.T) {
	t.Parallel()
	s := newDesk(t)
	kinds := []string{"name", "note", "crm", "attribute", "text", "remark", "file", "answer", "lost", "callback", "response", "row", "choice"}
	const people = 4
	s.want(201, "POST /v1/attributes", `{"key":"about","type":"text"}`)
	broadcast, _ := desk.ParseID(idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"}}`)))
	var ids []string
	for n := range people {
		mark := func(kind string) string { return fmt.Sprintf("mark-%s-%d-", kind, n) }
		lost, other := fmt.Sprintf("+120222%d0003", n+4), fmt.Sprintf("+120222%d3441", n+4)
		id := contact(t, s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"name":%q,"phone":%q,"note":%q,"attributes":{"about":%q},"identities":[{"kind":"phone","value":%q},{"kind":"crm","value":%q}]}`,
			mark("name"), lost, mark("note"), mark("attribute"), other, mark("crm")))).ID
		ids = append(ids, id)
		contactID, _ := desk.ParseID(id)
		talk := s.hear(s.channel, lost[1:], mark("text"))
		s.want(201, "POST /v1/conversations/"+talk.ID.String()+"/notes", fmt.Sprintf(`{"text":%q}`, mark("remark")))
		file, err := s.app.Media.Upload(t.Context(), s.operator(s.ws), desk.FileHead{Name: mark("file") + ".jpg"}, strings.NewReader(jpeg+mark("file")))
		if err != nil {
			t.Fatal(err)
		}
		template := `"template":{"name":"order_update","language":"en_US","variables":[%q,"Ada","x"]}`
		if r := s.outbound(fmt.Sprint("sent", n), message(fmt.Sprintf(`"to":{"phone":%q}`, other), fmt.Sprintf(template, mark("answer")))); r.status != 201 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if r := s.outbound(fmt.Sprint("lost", n), message(fmt.Sprintf(`"to":{"phone":%q}`, lost), fmt.Sprintf(template, mark("lost")))); r.status != 503 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		s.inTx(func(tx store.Tx) error {
			m := desk.Message{ID: s.newID(), ConversationID: talk.ID, ChannelID: s.channel, Direction: desk.Outbound, Delivery: desk.Sent, Kind: desk.KindImage, TS: 1, Media: file.ID, Text: "[image]"}
			if err := tx.PutMessage(&m); err != nil {
				return err
			}
			row := &desk.BroadcastRow{ID: s.newID(), Broadcast: broadcast, Contact: contactID, Number: lost[1:], To: lost[1:], Status: desk.RowSent, At: 1, Data: desk.RowData{
				Values: []desk.NamedValue{{Address: "1", Value: mark("row")}}, Reply: desk.RowReply{At: 2, Choice: mark("choice"), ChosenAt: 2}}}
			if err := tx.PutRows(broadcast, []store.RowChange{{Row: row}}); err != nil {
				return err
			}
			item := desk.InboundItem{Channel: s.channel, ID: s.newID(), Due: 10, ReceivedAt: 10, Body: []byte(mark("callback"))}
			if err := tx.PutCallback(item); err != nil {
				return err
			}
			if err := tx.PutCallbackPeople(item, []string{lost[1:]}); err != nil {
				return err
			}
			d := &desk.WebhookDelivery{ID: s.newID(), Event: desk.EventPlace{Seq: int64(n + 1), Tag: 1}, Type: desk.ContactUpdated, Contact: contactID, Status: desk.DeliveryFailed, CreatedAt: 1, TriedAt: 1, SettledAt: 2,
				Tries: []desk.WebhookTry{{At: 1, StatusCode: 503, Error: "status", Response: mark("response")}}}
			return tx.PutDeliveries(s.newID(), []*desk.WebhookDelivery{d})
		})
		if n == people/2 {
			s.indexed() // the followers have had one half of the people
		}
	}
	stored := s.marked(kinds, people)
	if len(stored) != len(kinds)*people {
		t.Errorf("%d marks are stored, want %d: %v", len(stored), len(kinds)*people, stored)
	}
	for n, id := range ids {
		export := string(s.want(200, "GET /v1/contacts/"+id+"/export", ""))
		held := map[string]bool{"callback": true, "lost": true, "row": true} // of these, only the size and the record are told
		for _, kind := range kinds {
			if mark := fmt.Sprintf("mark-%s-%d-", kind, n); !held[kind] && !strings.Contains(export, mark) {
				t.Errorf("%s is in %v, and not in the export", mark, stored[mark])
			}
		}
		for _, mark := range marks.FindAllString(export, -1) {
			if !strings.HasSuffix(mark, fmt.Sprintf("-%d-", n)) {
				t.Errorf("the export of %d has %s", n, mark)
			}
		}
		if !strings.Contains(export, `"callbacks":[{"received_at"`) || !strings.Contains(export, `"phase":"in_doubt"`) || !strings.Contains(export, `"broadcasts":[{"id"`) {
			t.Errorf("no callback, no attempt or no row: %s", export)
		}
	}
	for _, id := range ids {
		s.want(204, "DELETE /v1/contacts/"+id, "")
	}
	s.indexed() // the followers come after the deletions
	if err := s.app.Media.DropContents(t.Context()); err != nil {
		t.Fatal(err)
	}
	for mark, tables := range s.marked(kinds, people) {
		if !strings.HasPrefix(mark, "mark-answer-") || len(tables) != 1 || tables[0] != "attempts" {
			t.Errorf("%s of a deleted person is in %v", mark, tables)
		}
	}
	history := s.tables()["history"]
	for _, id := range ids {
		if b, ok := desk.ParseID(id); !ok || strings.Contains(history, id) || strings.Contains(history, strings.Trim(fmt.Sprintf("%d", b[:]), "[]")) {
			t.Errorf("the history has the deleted contact %s", id)
		}
	}
}
