package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
	"parley/transfer"
)

// readRow reads a row of a test's file.
func readRow(body []byte, _ *desk.Settings) (*desk.Op, error) {
	var in map[string]string
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	op := &desk.Op{Kind: desk.OpUpsert}
	for name, value := range in {
		if name == "name" {
			if value == "bad" {
				return nil, desk.InvalidAt("/name", "this is no name").Advise(desk.ListMembers)
			}
			op.Write.Name = desk.Field[string]{Set: true, Value: value}
			continue
		}
		identified(name, value)(&op.Write)
	}
	return op, nil
}

// readPerson reads a row of a test's file of people of a broadcast.
func readPerson(body []byte, _ *desk.Settings) (r desk.RowInput, err error) {
	var in struct {
		To        struct{ Phone string }
		Variables map[string]string
	}
	err = json.Unmarshal(body, &in)
	for address, value := range in.Variables {
		r.Values = append(r.Values, desk.NamedValue{Address: address, Value: value})
	}
	if r.Find = phoneOf(in.To.Phone); in.To.Phone == "bad" {
		err = desk.InvalidAt("/to/phone", "this is no number")
	}
	return r, err
}

// readOptOut reads a row of a test's file of opt-outs.
func readOptOut(body []byte, _ *desk.Settings) (row *desk.OptOutRow, err error) {
	err = json.Unmarshal(body, &row)
	return row, err
}

// table returns a file of rows, in which each hundredth is rejected.
func table(rows int) string {
	var b strings.Builder
	b.WriteString("Own id;Name\n")
	for n := range rows {
		name := fmt.Sprint("Person ", n)
		if n%100 == 7 {
			name = "bad"
		}
		fmt.Fprintf(&b, "row-%d;%s\n", n, name)
	}
	return b.String()
}

// phones is table for people of a broadcast.
func phones(rows int, value string) string {
	var b strings.Builder
	b.WriteString("Phone;Code\n")
	for n, number := range numbersFrom(0, rows) {
		if n%100 == 7 {
			number = "bad"
		}
		fmt.Fprintf(&b, "%s;%s\n", number, value)
	}
	return b.String()
}

var chosenPeople = transfer.Options{Kind: desk.ImportPeople, Delimiter: ";", Fields: []string{"phone", "variables.1"}}

var chosen = transfer.Options{Kind: desk.ImportContacts, Delimiter: ";", Fields: []string{"external_id", "name"}}

// admin returns the principal of a member who is an admin.
func (w *world) admin() desk.Principal {
	w.t.Helper()
	role := string(desk.RoleAdmin)
	_, err := w.EditMember(w.t.Context(), w.operator(), w.ada.ID, app.MemberEdit{Role: &role})
	must(w.t, err)
	return w.as(w.ada.ID)
}

// as returns the principal of a member.
func (w *world) as(member desk.ID) desk.Principal {
	w.t.Helper()
	p, err := desk.MemberPrincipal(w.operator().Settings, member)
	must(w.t, err)
	return p
}

// uploaded uploads a file of contacts to import.
func (w *world) uploaded(p desk.Principal, text string) *desk.Upload {
	w.t.Helper()
	m, err := w.Media.Upload(w.t.Context(), p, desk.FileHead{Name: "people.csv"}, strings.NewReader(text))
	must(w.t, err)
	u, err := w.Imports.Add(w.t.Context(), p, m, desk.ID{}, chosen)
	must(w.t, err)
	return u
}

// uploadedFor uploads a file of people of a broadcast, and starts its import or a check.
func (w *world) uploadedFor(p desk.Principal, b *desk.Broadcast, text string, state desk.UploadState) *desk.Upload {
	w.t.Helper()
	m, err := w.Media.Upload(w.t.Context(), p, desk.FileHead{Name: "people.csv"}, strings.NewReader(text))
	must(w.t, err)
	u, err := w.Imports.Add(w.t.Context(), p, m, b.ID, chosenPeople)
	must(w.t, err)
	must(w.t, w.Imports.Start(w.t.Context(), p, u.ID, chosenPeople, state))
	return u
}

// works lets a process work on the next upload, and reports whether there was one.
func (w *world) works(a *app.App) bool {
	w.t.Helper()
	had, err := a.Imports.NextUpload(w.t.Context(), w.ws)
	must(w.t, err)
	return had
}

// wantUpload checks an upload, and returns it.
func (w *world) wantUpload(id desk.ID, state desk.UploadState, counts desk.ImportCounts) *desk.Upload {
	w.t.Helper()
	u, _, err := w.Imports.Upload(w.t.Context(), w.operator(), id)
	if must(w.t, err); u.State != state || u.Run.ImportCounts != counts {
		w.t.Errorf("%s %q %+v, want %s %+v", u.State, u.Problem, u.Run.ImportCounts, state, counts)
	}
	return u
}

// rejected returns the file of rejected rows.
func (w *world) rejected(u *desk.Upload) string {
	w.t.Helper()
	var b bytes.Buffer
	must(w.t, w.Imports.Rejected(w.t.Context(), w.operator(), u, &b))
	return b.String()
}

// TestUpload checks and imports an upload.
func TestUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.admin()
	u := w.uploaded(p, table(1500))
	file, rows, err := w.Imports.Peek(t.Context(), p, u, transfer.Options{Kind: desk.ImportContacts})
	if must(t, err); file.Delimiter != ';' || len(rows) != 20 || len(file.Headers) != 2 {
		t.Errorf("%c %q %d", file.Delimiter, file.Headers, len(rows))
	}
	if w.works(w.App) {
		t.Error("there is work before anything was started")
	}

	wrong := chosen
	wrong.Fields = []string{"-", "-"}
	must(t, w.Imports.Start(t.Context(), p, u.ID, wrong, desk.UploadChecking))
	w.works(w.App)
	if u := w.wantUpload(u.ID, desk.UploadOpen, desk.ImportCounts{}); u.Problem != "no column is known" {
		t.Errorf("problem %q", u.Problem)
	}

	must(t, w.Imports.Start(t.Context(), p, u.ID, chosen, desk.UploadChecking))
	refused(t, w.Imports.Start(t.Context(), p, u.ID, chosen, desk.UploadImporting), desk.Changed)
	refused(t, w.Imports.Choose(t.Context(), p, u.ID, chosen), desk.Changed)
	w.works(w.App)
	checked := w.wantUpload(u.ID, desk.UploadOpen, desk.ImportCounts{Rows: 1500, Created: 1485, Rejected: 15})
	if !checked.Checked() || checked.Rows != 1500 || checked.Problem != "" {
		t.Errorf("%+v", checked)
	}
	w.holds(0, 0, 0)
	first, err := w.Imports.FirstRejected(t.Context(), p, checked, chosen)
	if must(t, err); len(first) != 15 || first[0].Line != 9 || first[0].Reason != "name: this is no name" || first[0].Cells[0] != "row-7" {
		t.Errorf("%+v", first)
	}

	must(t, w.Imports.Start(t.Context(), p, u.ID, chosen, desk.UploadImporting))
	w.works(w.App)
	if done := w.wantImported(u.ID, 1500); done.Run.ErrorBytes != checked.Run.ErrorBytes {
		t.Errorf("%d bytes of rejected rows, and the check had %d", done.Run.ErrorBytes, checked.Run.ErrorBytes)
	}
	refused(t, w.Imports.Choose(t.Context(), p, u.ID, chosen), desk.Changed)
	refused(t, w.Imports.Stop(t.Context(), p, u.ID, desk.UploadImporting), desk.Changed) // it has ended
	if m, err := w.file.Media(t.Context(), w.ws, u.MediaID); m != nil || err != nil {
		t.Errorf("the file is left: %v, %v", m, err)
	}
	if by := w.createdBy(); by[p.Actor] != 1485 || len(by) != 1 {
		t.Errorf("created by %v", by)
	}
}

// wantImported checks what is stored after an import of some rows.
func (w *world) wantImported(id desk.ID, rows int64) *desk.Upload {
	w.t.Helper()
	bad := rows / 100
	u := w.wantUpload(id, desk.UploadDone, desk.ImportCounts{Rows: rows, Created: rows - bad, Rejected: bad})
	if text := w.rejected(u); strings.Count(text, "\r\n") != 1+int(bad) || !strings.HasPrefix(text, "\uFEFFOwn id;Name;_line;_error;_reason\r\nrow-7;bad;9;invalid_request;name: this is no name\r\n") {
		w.t.Errorf("rejected rows: %.300q", text)
	}
	if n := w.countContacts(); n != int(rows-bad) {
		w.t.Errorf("%d contacts", n)
	}
	return u
}

func (w *world) countContacts() (n int) {
	w.t.Helper()
	for cursor := ""; ; {
		list, next, err := w.Contacts(context.Background(), w.operator(), desk.ContactFilter{}, cursor, 500)
		must(w.t, err)
		if n, cursor = n+len(list), next; next == "" {
			return n
		}
	}
}

// createdBy returns who created contacts, and how many.
func (w *world) createdBy() map[desk.Actor]int {
	w.t.Helper()
	by := map[desk.Actor]int{}
	page, err := w.Feed.Page(context.Background(), w.operator(), feed.Query{Cursor: "oldest", Limit: 2000, Bare: true})
	must(w.t, err)
	for _, e := range page.Events {
		if e.Type == desk.ContactCreated {
			by[e.Actor]++
		}
	}
	return by
}

// TestUpload_overtaken: a process sleeps in the middle of an upload, longer than its lease.
// Meanwhile another one goes on. The one that slept stores nothing more.
func TestUpload_overtaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.admin()
	other := w.node(w.file, app.Bounds{})
	u := w.uploaded(p, table(2500))
	must(t, w.Imports.Start(t.Context(), p, u.ID, chosen, desk.UploadImporting))
	sleep := func() {
		t.Helper()
		w.store.in(3, begin, func() error { // 1 stores the number of rows, 2 the first thousand
			w.clock.advance(desk.ImportLease + time.Second)
			if !w.works(other) {
				t.Error("the other process does not go on")
			}
			return nil
		})
		if w.works(w.App) {
			t.Error("the process that slept says that it did the work")
		}
	}
	sleep()
	w.wantImported(u.ID, 2500)
	b := w.draft()
	u = w.uploadedFor(p, b, phones(2500, "x"), desk.UploadImporting)
	sleep()
	w.wantPeople(b, u.ID, desk.ImportCounts{Rows: 2500, Created: 2475, Rejected: 25})
}

// TestUpload_killed: a process dies in the middle of an upload. Another one waits for its
// lease to end, and goes on.
func TestUpload_killed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.admin()
	other := w.node(w.file, app.Bounds{})
	u := w.uploaded(p, table(1500))
	for n, state := range []desk.UploadState{desk.UploadChecking, desk.UploadImporting} {
		must(t, w.Imports.Start(t.Context(), p, u.ID, chosen, state))
		w.store.in(3-n, begin, lost) // with the second group; the check has stored the number of rows before
		if had, err := w.Imports.NextUpload(t.Context(), w.ws); had || err == nil {
			t.Errorf("no fault: %v, %v", had, err)
		}
		if u, _, err := w.Imports.Upload(t.Context(), p, u.ID); err != nil || u.Run.Rows != 1000 {
			t.Errorf("%+v, %v", u.Run, err)
		}
		if w.works(other) {
			t.Error("another process works during the lease")
		}
		w.clock.advance(desk.ImportLease + time.Second)
		if !w.works(other) {
			t.Error("another process does not go on")
		}
	}
	w.wantImported(u.ID, 1500)
}

// wantPeople checks what is stored after an import of people of a broadcast without any.
func (w *world) wantPeople(b *desk.Broadcast, upload desk.ID, counts desk.ImportCounts) {
	w.t.Helper()
	w.wantUpload(upload, desk.UploadDone, counts)
	if now, rows := w.broadcastNow(b.ID), w.rowsOf(b.ID); now.Rows != counts.Created || len(rows) != int(counts.Created) || now.Counts.Total() != counts.Created {
		w.t.Errorf("%d rows, %d counted, %d stored, want %d", now.Rows, now.Counts.Total(), len(rows), counts.Created)
	}
}

// TestUpload_people checks and imports people of a broadcast, again, and with other values.
func TestUpload_people(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, b := w.admin(), w.draft()
	checked := w.uploadedFor(p, b, phones(1500, "a"), desk.UploadChecking)
	w.works(w.App)
	w.wantUpload(checked.ID, desk.UploadOpen, desk.ImportCounts{Rows: 1500, Created: 1485, Rejected: 15})
	if now, rows := w.broadcastNow(b.ID), w.rowsOf(b.ID); now.Rows != 0 || len(rows) != 0 {
		t.Errorf("a check has stored %d rows, %d are there", now.Rows, len(rows))
	}
	must(t, w.Imports.Start(t.Context(), p, checked.ID, chosenPeople, desk.UploadImporting))
	w.works(w.App)
	w.wantPeople(b, checked.ID, desk.ImportCounts{Rows: 1500, Created: 1485, Rejected: 15})
	done := w.wantUpload(checked.ID, desk.UploadDone, desk.ImportCounts{Rows: 1500, Created: 1485, Rejected: 15})
	if text := w.rejected(done); strings.Count(text, "\r\n") != 16 || !strings.HasPrefix(text, "\uFEFFPhone;Code;_line;_error;_reason\r\nbad;a;9;invalid_request;phone: this is no number\r\n") {
		t.Errorf("rejected rows: %.300q", text)
	}
	if m, err := w.file.Media(t.Context(), w.ws, done.MediaID); m != nil || err != nil {
		t.Errorf("the file is left: %v, %v", m, err)
	}
	first := w.rowsOf(b.ID)
	for _, c := range []struct {
		value string
		want  desk.ImportCounts
	}{{"a", desk.ImportCounts{Rows: 1500, Unchanged: 1485, Rejected: 15}}, {"b", desk.ImportCounts{Rows: 1500, Updated: 1485, Rejected: 15}}} {
		u := w.uploadedFor(p, b, phones(1500, c.value), desk.UploadChecking)
		w.works(w.App)
		w.wantUpload(u.ID, desk.UploadOpen, c.want)
		must(t, w.Imports.Start(t.Context(), p, u.ID, chosenPeople, desk.UploadImporting))
		w.works(w.App)
		w.wantUpload(u.ID, desk.UploadDone, c.want)
	}
	again := w.rowsOf(b.ID)
	if len(again) != len(first) || again[700].ID != first[700].ID || again[700].Data.Values[0] != (desk.NamedValue{Address: "1", Value: "b"}) {
		t.Errorf("%d rows after %d, %+v", len(again), len(first), again[700])
	}
	w.holds(0, 0, 0) // no contact is made
}

// TestUpload_peopleEnd: an import of people ends, with the reason, when its broadcast takes no more.
func TestUpload_peopleEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, part := w.admin(), desk.ImportCounts{Rows: 1000, Created: 990, Rejected: 10}
	ended := func(u *desk.Upload, counts desk.ImportCounts, problem string) {
		t.Helper()
		if u := w.wantUpload(u.ID, desk.UploadFailed, counts); u.Problem != problem {
			t.Errorf("problem %q, want %q", u.Problem, problem)
		}
		if m, err := w.file.Media(t.Context(), w.ws, u.MediaID); m != nil || err != nil {
			t.Errorf("the file is left: %v, %v", m, err)
		}
		w.clock.advance(desk.ImportLease + time.Second)
	}
	interrupted := func(b *desk.Broadcast, do func() error) *desk.Upload {
		t.Helper()
		u := w.uploadedFor(p, b, phones(2000, "x"), desk.UploadImporting)
		w.store.in(3, begin, do)
		_, err := w.Imports.NextUpload(t.Context(), w.ws)
		must(t, err)
		return u
	}

	b := w.draft()
	u := interrupted(b, func() error {
		_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
		return err
	})
	ended(u, part, "the broadcast is not a draft any more")
	for _, of := range []*desk.Broadcast{b, w.another().draft()} {
		if err := w.Imports.Room(t.Context(), p, of.ID); !desk.IsType(err, desk.BroadcastInState) && !desk.IsType(err, desk.NotFound) {
			t.Errorf("a file for a broadcast that has begun, or of another workspace: %v", err)
		}
	}

	b = w.draft()
	u = interrupted(b, func() error { return w.Broadcasts.Delete(t.Context(), w.caller(), b.ID) })
	ended(u, part, "the broadcast was deleted")
	b = w.draft()
	u = w.uploadedFor(p, b, phones(10, "x"), desk.UploadChecking)
	w.works(w.App)
	must(t, w.Broadcasts.Delete(t.Context(), w.caller(), b.ID)) // nothing is at work
	ended(u, desk.ImportCounts{}, "the broadcast was deleted")  // what a check found would look like what was imported

	b = w.draft()
	u = interrupted(b, func() error {
		in := &desk.BroadcastInput{Audience: desk.Field[desk.Audience]{Set: true, Value: desk.Audience{Segment: "s"}}, AtMost: desk.Field[int64]{Set: true, Value: 5}}
		if err := w.Broadcasts.Clear(t.Context(), w.caller(), b.ID); err != nil {
			return err
		}
		_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, in)
		return err
	})
	ended(u, part, "the people of this broadcast are its audience: it takes no rows")

	b = w.draft()
	u = interrupted(b, func() error { // another admin takes the role away
		role := string(desk.RoleAgent)
		_, err := w.EditMember(t.Context(), w.operator(), w.ada.ID, app.MemberEdit{Role: &role})
		return err
	})
	ended(u, part, "the member who started it is no longer an admin")
	refused(t, w.Imports.Room(t.Context(), w.as(w.ada.ID), b.ID), desk.Forbidden)
	p = w.admin()

	// Of a broadcast that is nearly full, a check finds it, too.
	b = w.draft()
	commit := func(rows int64) {
		must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
			b, err := tx.Broadcast(b.ID)
			if err == nil {
				b.Rows = rows
				err = tx.PutBroadcast(b)
			}
			return err
		}))
	}
	commit(desk.MaxBroadcastRows - 1500)
	for state, counts := range map[desk.UploadState]desk.ImportCounts{desk.UploadChecking: {}, desk.UploadImporting: part} {
		u = w.uploadedFor(p, b, phones(2000, "x"), state)
		w.works(w.App)
		ended(u, counts, "a broadcast has at most 1000000 rows")
	}
	must(t, w.Imports.Room(t.Context(), p, desk.ID{}))
}

// TestUpload_ends: however an upload ends, its file goes and its slot is free again.
func TestUpload_ends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.admin()
	none := desk.ImportCounts{}

	var list []*desk.Upload
	for n := range desk.MaxUploads {
		list = append(list, w.uploaded(p, table(2000+n)))
	}
	refused(t, w.Imports.Room(t.Context(), p, desk.ID{}), desk.InvalidRequest)
	refused(t, w.Imports.Room(t.Context(), p, w.draft().ID), desk.InvalidRequest)
	m, err := w.Media.Upload(t.Context(), p, desk.FileHead{}, strings.NewReader("Name\nAda\n"))
	must(t, err)
	_, err = w.Imports.Add(t.Context(), p, m, desk.ID{}, chosen)
	refused(t, err, desk.InvalidRequest)
	must(t, w.Media.Delete(t.Context(), p, m.ID))
	refused(t, w.Imports.Stop(t.Context(), w.as(w.grace.ID), list[0].ID, desk.UploadOpen), desk.Forbidden)
	refused(t, w.Imports.Start(t.Context(), w.as(w.grace.ID), list[0].ID, chosen, desk.UploadImporting), desk.Forbidden)

	must(t, w.Imports.Stop(t.Context(), p, list[0].ID, desk.UploadOpen)) // discarded
	w.wantUpload(list[0].ID, desk.UploadStopped, none)

	must(t, w.Imports.Start(t.Context(), p, list[1].ID, chosen, desk.UploadChecking))
	refused(t, w.Imports.Stop(t.Context(), p, list[1].ID, desk.UploadOpen), desk.Changed) // the check began meanwhile
	must(t, w.Imports.Stop(t.Context(), p, list[1].ID, desk.UploadChecking))              // the check only
	w.wantUpload(list[1].ID, desk.UploadOpen, none)

	must(t, w.Imports.Start(t.Context(), p, list[1].ID, chosen, desk.UploadImporting))
	w.store.in(3, begin, func() error { return w.Imports.Stop(t.Context(), p, list[1].ID, desk.UploadImporting) })
	if w.works(w.App) {
		t.Error("a stopped import went on")
	}
	w.wantUpload(list[1].ID, desk.UploadStopped, desk.ImportCounts{Rows: 1000, Created: 990, Rejected: 10})
	w.clock.advance(desk.ImportLease + time.Second)

	must(t, w.Imports.Start(t.Context(), p, list[2].ID, chosen, desk.UploadImporting))
	w.store.in(2, begin, func() error { // another admin takes the role away
		role := string(desk.RoleAgent)
		_, err := w.EditMember(t.Context(), w.operator(), w.ada.ID, app.MemberEdit{Role: &role})
		return err
	})
	w.works(w.App)
	if u := w.wantUpload(list[2].ID, desk.UploadFailed, none); u.Problem != "the member who started it is no longer an admin" {
		t.Errorf("problem %q", u.Problem)
	}
	p = w.admin()

	must(t, w.Imports.Start(t.Context(), p, list[3].ID, chosen, desk.UploadImporting))
	must(t, w.Media.Delete(t.Context(), p, list[3].MediaID))
	w.works(w.App)
	if u := w.wantUpload(list[3].ID, desk.UploadFailed, none); u.Problem != "the file is not there any more" {
		t.Errorf("problem %q", u.Problem)
	}

	full := w.uploaded(p, strings.Repeat("row;bad\n", desk.MaxRejected+1500))
	for _, state := range []desk.UploadState{desk.UploadChecking, desk.UploadImporting} {
		must(t, w.Imports.Start(t.Context(), p, full.ID, chosen, state))
		w.works(w.App)
		ended := map[desk.UploadState]desk.UploadState{desk.UploadChecking: desk.UploadOpen, desk.UploadImporting: desk.UploadFull}[state]
		w.wantUpload(full.ID, ended, desk.ImportCounts{Rows: desk.MaxRejected, Rejected: desk.MaxRejected})
	}
	for _, u := range append(list, full) {
		if m, err := w.file.Media(t.Context(), w.ws, u.MediaID); m != nil || err != nil {
			t.Errorf("the file of %s is left: %v", u.ID, err)
		}
	}
	must(t, w.Imports.Room(t.Context(), p, desk.ID{}))
}

// TestUpload_forgotten: a file goes after a day, and a record a week after its end.
func TestUpload_forgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.admin()
	u := w.uploaded(p, table(300))
	must(t, w.Imports.Start(t.Context(), p, u.ID, chosen, desk.UploadChecking))
	w.works(w.App)
	w.clock.advance(24*time.Hour - time.Minute)
	must(t, w.Forget(t.Context()))
	w.wantUpload(u.ID, desk.UploadOpen, desk.ImportCounts{Rows: 300, Created: 297, Rejected: 3})
	w.clock.advance(2 * time.Minute)
	must(t, w.Imports.Start(t.Context(), p, u.ID, chosen, desk.UploadImporting))
	w.works(w.App)
	if u := w.wantUpload(u.ID, desk.UploadFailed, desk.ImportCounts{}); u.Problem != "the file was deleted after a day" {
		t.Errorf("problem %q", u.Problem)
	}
	rests := w.uploaded(p, table(300))
	w.clock.advance(24*time.Hour + time.Minute)
	must(t, w.Forget(t.Context()))
	w.wantUpload(rests.ID, desk.UploadFailed, desk.ImportCounts{})
	w.clock.advance(desk.KeepUpload - 25*time.Hour)
	must(t, w.Forget(t.Context()))
	w.wantUpload(u.ID, desk.UploadFailed, desk.ImportCounts{})
	w.clock.advance(2 * time.Hour)
	must(t, w.Forget(t.Context()))
	list, err := w.Imports.List(t.Context(), p)
	if must(t, err); len(list) != 1 || list[0].ID != rests.ID {
		t.Errorf("%d uploads are left", len(list))
	}
}
