package console

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// A busy store refuses transactions and changes of settings while it is on.
type busy struct {
	store.Store
	on atomic.Bool
}

func (s *busy) InTx(ctx context.Context, ws desk.ID, do func(store.Tx) error) error {
	if s.on.Load() {
		return errBusy
	}
	return s.Store.InTx(ctx, ws, do)
}

func (s *busy) UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error {
	if s.on.Load() {
		return errBusy
	}
	return s.Store.UpdateSettings(ctx, ws, decide)
}

var errBusy = desk.Errorf(desk.Unavailable, "the database is busy")

// TestBusy: if the server can't store a form, the page has what was typed.
func TestBusy(t *testing.T) {
	t.Parallel()
	s := &busy{}
	w := newWorldWith(t, func(d *app.Deps) { s.Store, d.Store = d.Store, s })
	w.template(`{"name":"poster","language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"Look"}]}`)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Hello")
	nora := w.as(w.nora)
	seen := seenIn(nora.get("/settings/policy"), "assign")
	file := nora.importsText("people.csv", "name,phone,shoe size\nAnn,+34612345601,42\n").want(303).header.Get("Location")
	s.on.Store(true)
	nora.post("/inbox/"+c.ID.String()+"/notes", "note", "Wants a refund").want(503, "Error: Notes", "Wants a refund</textarea>")
	nora.post("/settings/policy", "part", "assign", "seen", seen, "mode", "least_open", "members", w.mei.ID.String(), "max_open", "17").want(503, "Error: ", `value="17"`)
	nora.sendFile("/broadcasts/new", "a.png", "image/png", png, "channel", w.channel.String(), "template", "poster/en", "name", "Spring sale", "max_failed_percent", "20").want(503, "Error: New broadcast", `value="Spring sale"`)
	nora.post(file, "encoding", "", "delimiter", ",", "columns.0", "name", "columns.1", "phone", "columns.2", "-", "do", "check").want(503, "Error: ", `<option value="-" selected>`)
	s.on.Store(false)
	nora.post("/inbox/"+w.newID().String()+"/notes", "note", "Wants a refund").want(404)
}

// TestLongText: a text that is far too long comes back, also in a form that can have a file.
func TestLongText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Hello")
	mei := w.as(w.mei)
	m := mei.looks(c, "")
	text := strings.Repeat("Dear Lucía. ", 12_000)
	mei.sendFile(m.path+"/reply", "", "application/octet-stream", nil, m.fields(t, "reply", text)...).want(422, text)
}
