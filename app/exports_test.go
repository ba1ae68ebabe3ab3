package app_test

import (
	"errors"
	"fmt"
	"testing"

	"parley/app/exports"
	"parley/app/imports"
	"parley/desk"
	"parley/store"
)

// TestExport_optOuts: exported are the opt-outs of numbers that contacts have, each once in the
// spelling of its contact. The others are counted.
func TestExport_optOuts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(identified("phone", "+905321110000"), identified("whatsapp", "905321110000")) // one number
	w.put(identified("external_id", "1"), identified("whatsapp", "905321110001"))
	w.put(identified("phone", "+905321110002"))
	gone := w.put(identified("phone", "+905321110003"))
	run, err := w.Imports.Begin(t.Context(), w.operator(), [32]byte{1})
	must(t, err)
	var rows []imports.Row
	for n, number := range []string{"905321110000", "905321110001", "905321110003", "905321110009"} {
		rows = append(rows, imports.Row{OptOut: &desk.OptOutRow{Number: number, Since: desk.Time(1000 + n), OptedOut: true}})
	}
	must(t, run.Store(t.Context(), rows, true, func(store.Tx, []error) (int64, error) { return 0, nil }))
	must(t, run.End(t.Context()))
	w.deleteContact(gone.ID)
	got := map[string]desk.Time{}
	others, err := w.Exports.OptOuts(t.Context(), w.caller(), func(page []desk.OptOutRow) error {
		for _, o := range page {
			if _, twice := got[o.Number]; twice || !o.OptedOut {
				t.Errorf("%+v", o)
			}
			got[o.Number] = o.Since
		}
		return nil
	})
	must(t, err)
	if want := (map[string]desk.Time{"905321110000": 1000, "905321110001": 1001}); fmt.Sprint(got) != fmt.Sprint(want) || others != 2 {
		t.Errorf("%v and %d others, want %v and 2", got, others, want)
	}
}

// TestExport_allowed: a caller without the permission gets nothing, and an error of the writer
// ends the export.
func TestExport_allowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(identified("external_id", "1"))
	failed := errors.New("no more")
	if err := w.Exports.Contacts(t.Context(), w.caller(), func([]*desk.Contact) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	p, key := w.caller(), desk.APIKey{Permissions: []desk.Permission{desk.ContactsWrite}}
	p.Key = &key
	if err := w.Exports.Contacts(t.Context(), p, func([]*desk.Contact) error { return failed }); !desk.IsType(err, desk.Forbidden) {
		t.Errorf("without a permission: %v", err)
	}
}

// TestExport_begin: exports that go to browsers are few, of a workspace and of all.
func TestExport_begin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ends []func()
	count := func(ws byte, want int) {
		t.Helper()
		for n := 0; ; n++ {
			end, err := w.Exports.BeginAll(desk.ID{ws})
			if err != nil {
				if n != want || !desk.IsType(err, desk.RateLimited) {
					t.Errorf("%d exports, %v; want %d", n, err, want)
				}
				return
			}
			ends = append(ends, end)
		}
	}
	for ws := range byte(desk.MaxExportsHere / exports.MaxPeople) {
		count(ws, exports.MaxPeople)
	}
	count(99, 0)
	for _, end := range ends {
		end()
	}
	count(99, exports.MaxPeople)
}
