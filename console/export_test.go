package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/app/exports"
	"parley/desk"
)

// TestExport: an admin gets all contacts as a file in each format, and an agent gets none.
func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	w.attribute("plan", "Plan", desk.SelectAttribute, "pro")
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.Name, op.Write.Email = desk.Field[string]{Set: true, Value: "=Lucía"}, desk.Field[string]{Set: true, Value: "lucia@x.example"}
	op.Write.Sent = []desk.Identity{desk.EmailIdentity("lucia@x.example")}
	if _, err := w.app.Write(t.Context(), w.operator(), op); err != nil {
		t.Fatal(err)
	}
	nora.get("/contacts").want(200, `href="/contacts/export"`)
	mei.get("/contacts").lacks("/contacts/export")
	mei.get("/contacts/export").want(403)
	mei.get("/contacts/export/file?format=csv").want(403).lacks("luc")
	nora.get("/contacts/export").want(200, "format=csv", "format=excel", "format=jsonl").golden("contacts/export")
	nora.get("/contacts/export/file?format=xml").want(404)
	for format, want := range map[string][]string{
		"csv":   {"external_id,name,email,phone,note,owner,identities,attributes.plan,parley_id,", "\r\n,'=Lucía,lucia@x.example,"},
		"excel": {"\xFF\xFEe\x00x\x00t\x00", "a\x00\t\x00l\x00u\x00c\x00i\x00a\x00@\x00"},
		"jsonl": {`{"name":"=Lucía","email":"lucia@x.example",`},
	} {
		g := nora.get("/contacts/export/file?format="+format).want(200, want...)
		end := ".csv"
		if format == "jsonl" {
			end = ".jsonl"
		}
		if at := g.header.Get("Content-Disposition"); !strings.HasPrefix(at, "attachment") || !strings.HasSuffix(at, "contacts"+end) {
			t.Errorf("%s: %s", format, at)
		}
	}
	var ends []func()
	for range exports.MaxPeople {
		end, err := w.app.Exports.BeginAll(w.ws)
		if err != nil {
			t.Fatal(err) // an export that has ended still counts
		}
		ends = append(ends, end)
	}
	nora.get("/contacts/export/file?format=csv").want(429)
	ends[0]()
	nora.get("/contacts/export/file?format=csv").want(200, "external_id")
}

// TestExport_signedOut: an export ends when the member is signed out, and the answer is cut off,
// so that nobody takes the file for whole.
func TestExport_signedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.Email, op.Write.Sent = desk.Field[string]{Set: true, Value: "lucia@x.example"}, []desk.Identity{desk.EmailIdentity("lucia@x.example")}
	if _, err := w.app.Write(t.Context(), w.operator(), op); err != nil {
		t.Fatal(err)
	}
	nora.get("/contacts/export/file?format=csv").want(200, "lucia")
	asked, member := 0, w.server.signedIn
	w.server.signedIn = func(c *call) (desk.Principal, error) {
		if asked++; asked > 1 {
			return desk.Principal{}, desk.ErrSignedOut
		}
		return member(c)
	}
	rec := httptest.NewRecorder()
	cut := func() (cut any) {
		defer func() { cut = recover() }()
		w.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/contacts/export/file?format=csv", nil))
		return nil
	}()
	if err, _ := cut.(error); !errors.Is(err, http.ErrAbortHandler) || strings.Contains(rec.Body.String(), "lucia") {
		t.Errorf("%v, %s", cut, rec.Body)
	}
}

// TestPeopleFile: a member gets the people of a broadcast as a file, those who match the filter of
// the page, and how they answered.
func TestPeopleFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	mei := w.as(w.mei)
	b := w.drafted("Spring", nil, numbers(3)...)
	at := broadcastPath(b.ID)
	w.becomes(b, w.started(desk.BroadcastDone, ""), answers(desk.RowReply{At: 1_000, Choice: "=Yes", ChosenAt: 1_000}), failed(desk.RowRefused, desk.Failure{Code: 131026, Title: "Message, undeliverable"}), skipped(desk.SkipOptedOut))
	rows := w.peopleOf(b.ID)
	mei.get(at).want(200, at+"/people/file?format=csv", at+"/people/file?format=excel")
	got := mei.get(at+"/people/file").want(200, "to,status,reason,failure_code,failure_title,at,replied_at,choice,contact_id,conversation_id,message_id,attempt_id,id\r\n",
		"\r\n+34612345700,pending,,,,"+rows[0].At.String()+",1970-01-01T00:00:01.000Z,'=Yes,,,,,"+rows[0].ID.String()+"\r\n",
		"\r\n+34612345701,refused,,131026,\"Message, undeliverable\",", "\r\n+34612345702,skipped,opted_out,")
	if at := got.header.Get("Content-Disposition"); at != `attachment; filename=broadcast.csv` {
		t.Errorf("the file is named by %s", at)
	}
	mei.get(at+"/people/file?format=excel&answer=yes").want(200, "\xFF\xFEt\x00o\x00\t\x00", "Y\x00e\x00s\x00").lacks("1\x003\x001\x000\x002\x006\x00")
	mei.get(at+"/people/file?status=skipped").want(200, "opted_out").lacks("refused")
	mei.get(at + "/people/file?format=jsonl").want(404)
	mei.get(broadcastPath(desk.ID{6: 0x70, 8: 0x80}) + "/people/file").want(404)
}
