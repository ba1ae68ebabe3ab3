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

// uploaded uploads a file to import.
func (w *world) uploaded(p desk.Principal, text string) *desk.Upload {
	w.t.Helper()
	m, err := w.Media.Upload(w.t.Context(), p, desk.FileHead{Name: "people.csv"}, strings.NewReader(text))
	must(w.t, err)
	u, err := w.Imports.Add(w.t.Context(), p, m, chosen)
	must(w.t, err)
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
	must(t, w.Imports.Stop(t.Context(), p, u.ID)) // nothing to stop
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
	w.wantImported(u.ID, 2500)
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
	refused(t, w.Imports.Room(t.Context(), p), desk.InvalidRequest)
	m, err := w.Media.Upload(t.Context(), p, desk.FileHead{}, strings.NewReader("Name\nAda\n"))
	must(t, err)
	_, err = w.Imports.Add(t.Context(), p, m, chosen)
	refused(t, err, desk.InvalidRequest)
	must(t, w.Media.Delete(t.Context(), p, m.ID))
	refused(t, w.Imports.Stop(t.Context(), w.as(w.grace.ID), list[0].ID), desk.Forbidden)
	refused(t, w.Imports.Start(t.Context(), w.as(w.grace.ID), list[0].ID, chosen, desk.UploadImporting), desk.Forbidden)

	must(t, w.Imports.Stop(t.Context(), p, list[0].ID)) // discarded
	w.wantUpload(list[0].ID, desk.UploadStopped, none)

	must(t, w.Imports.Start(t.Context(), p, list[1].ID, chosen, desk.UploadChecking))
	must(t, w.Imports.Stop(t.Context(), p, list[1].ID)) // the check only
	w.wantUpload(list[1].ID, desk.UploadOpen, none)

	must(t, w.Imports.Start(t.Context(), p, list[1].ID, chosen, desk.UploadImporting))
	w.store.in(3, begin, func() error { return w.Imports.Stop(t.Context(), p, list[1].ID) })
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
	must(t, w.Imports.Room(t.Context(), p))
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
