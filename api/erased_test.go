package api_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

var erasedPeople = flag.Int("erased-people", 8, "how many people TestErased stores, merges and deletes. Long run: ./api -run 'TestErased$|TestPostgres/TestErased$' -erased-people 1000 -timeout 60m")

// marks are the words that this test stores about a person, also as bytes in hexadecimal or
// decimal numbers.
var (
	marks        = regexp.MustCompile(`mark-[a-z]+-[0-9]+-`)
	hexMarks     = regexp.MustCompile(`6d61726b2d(?:6[0-9a-f]|7[0-9a-f])+2d(?:3[0-9])+2d`)
	decimalMarks = regexp.MustCompile(`\b109 97 114 107 45 (?:(?:9[7-9]|1[0-2][0-9]) )+45 (?:(?:4[89]|5[0-7]) )+45\b`)
)

// marked returns the tables in which each mark is, also if it is in bytes.
func (s *server) marked() map[string][]string {
	s.t.Helper()
	found := map[string][]string{}
	for table, rows := range s.tables() {
		here := marks.FindAllString(rows, -1)
		for _, text := range hexMarks.FindAllString(rows, -1) {
			mark, err := hex.DecodeString(text)
			if err != nil {
				s.t.Fatal(err)
			}
			here = append(here, string(mark))
		}
		for _, text := range decimalMarks.FindAllString(rows, -1) {
			var mark []byte
			for _, number := range strings.Fields(text) {
				n, err := strconv.ParseUint(number, 10, 8)
				if err != nil {
					s.t.Fatal(err)
				}
				mark = append(mark, byte(n))
			}
			here = append(here, string(mark))
		}
		slices.Sort(here)
		for _, mark := range slices.Compact(here) {
			found[mark] = append(found[mark], table)
		}
	}
	return found
}

// TestErased: every second contact is merged into the one before it, with which it was
// mistaken before. A contact's export has all that any table has of the person, and after the
// deletion no table has anything, also if the followers of events are behind. The exceptions
// are the stored answers of sends (docs/backup.md).
func TestErased(t *testing.T) {
	t.Parallel()
	s := newDesk(t)
	kinds := []string{"name", "note", "crm", "attribute", "text", "remark", "file", "answer", "lost", "callback", "response", "row", "choice"}
	people := *erasedPeople
	s.want(201, "POST /v1/attributes", `{"key":"about","type":"text"}`)
	broadcast, _ := desk.ParseID(idOf(t, s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"}}`)))
	var ids []string
	for n := range people {
		mark := func(kind string) string { return fmt.Sprintf("mark-%s-%d-", kind, n) }
		place := fmt.Sprintf("+1%d%d", []int{202, 203, 205, 206, 207, 208, 209, 210, 212, 213, 214, 215, 216}[n/80], 220+n%80)
		lost, other := place+"0003", place+"3441"
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
	crm := func(n int) string { return fmt.Sprintf(`{"kind":"crm","value":"mark-crm-%d-"}`, n) }
	for n := 0; n < people; n += 2 { // both are also mistaken for the first of the next two
		for _, others := range []string{crm(n + 1), crm((n + 2) % people)} {
			s.want(409, "POST /v1/contacts", `{"identities":[`+crm(n)+`,`+others+`]}`)
		}
		s.app.Conflicts.StoreNow(t.Context())
		s.want(200, "POST /v1/contacts/"+ids[n]+"/merge", `{"from":"`+ids[n+1]+`"}`)
	}
	stored := s.marked()
	if len(stored) != len(kinds)*people {
		t.Errorf("%d marks are stored, want %d", len(stored), len(kinds)*people)
	}
	for n := 0; n < people; n += 2 {
		export := string(s.want(200, "GET /v1/contacts/"+ids[n]+"/export", ""))
		held := map[string]bool{"callback": true, "lost": true, "row": true} // of these, only the size and the record are told
		for _, kind := range kinds {
			for of := n; of < n+2; of++ {
				if mark := fmt.Sprintf("mark-%s-%d-", kind, of); !held[kind] && !strings.Contains(export, mark) {
					t.Errorf("%s is in %v, and not in the export", mark, stored[mark])
				}
			}
		}
		for _, mark := range marks.FindAllString(export, -1) {
			// Of others, a conflict names the contact and the handle.
			if of := strings.Split(mark, "-"); of[1] != "name" && of[1] != "crm" && of[2] != fmt.Sprint(n) && of[2] != fmt.Sprint(n+1) {
				t.Errorf("the export of %d has %s", n, mark)
			}
		}
		for part, want := range map[string]int{`"callbacks":[{"received_at"`: 1, `"phase":"in_doubt"`: 2, `"broadcasts":[{"id"`: 1, `"merges":[{"id"`: 1, `"conflicts":[{"id"`: 1} {
			if got := strings.Count(export, part); got < want {
				t.Errorf("the export of %d has %q %d times, want %d: %s", n, part, got, want, export)
			}
		}
	}
	for n := 0; n < people; n += 2 {
		s.want(204, "DELETE /v1/contacts/"+ids[n], "")
	}
	s.indexed() // the followers come after the deletions
	if err := s.app.Media.DropContents(t.Context()); err != nil {
		t.Fatal(err)
	}
	for mark, tables := range s.marked() {
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
