package app_test

import (
	"testing"

	"parley/desk"
)

// TestErase: the contacts of the list go, everything of them too, and what is not there is
// remembered as well. Again: nothing is left to do.
func TestErase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stays := w.put(identified("external_id", "1"))
	goes := w.put(identified("phone", "+905321110000"))
	other := w.another()
	theirs := other.put(identified("external_id", "1"))
	absent := desk.Erasure{ID: desk.ID{1}, At: 5}
	list := []desk.Erasure{{ID: goes.ID, At: 9}, absent, {ID: theirs.ID, At: 3}, {ID: goes.ID, At: 7}}
	for _, want := range []int{1, 0} {
		if erased, err := w.Erase(t.Context(), w.operator(), list); erased != want || err != nil {
			t.Errorf("%d are erased, %v; want %d", erased, err, want)
		}
	}
	if _, err := w.Contact(t.Context(), w.caller(), goes.ID); !desk.IsType(err, desk.NotFound) {
		t.Errorf("the contact: %v", err)
	}
	if w.contact(stays.ID) == nil || other.contact(theirs.ID) == nil {
		t.Error("another contact is gone")
	}
	times := map[desk.ID]desk.Time{}
	must(t, w.Exports.Erasures(t.Context(), w.operator(), func(page []desk.Erasure) error {
		for _, e := range page {
			times[e.ID] = e.At
		}
		return nil
	}))
	if len(times) != 3 || times[goes.ID] != 7 || times[absent.ID] != 5 || times[theirs.ID] != 3 {
		t.Errorf("erasures: %v", times)
	}
	p, key := w.caller(), desk.APIKey{Permissions: []desk.Permission{desk.ContactsWrite}}
	p.Key = &key
	if _, err := w.Erase(t.Context(), p, []desk.Erasure{{ID: stays.ID}}); !desk.IsType(err, desk.Forbidden) && !desk.IsType(err, desk.Unauthorized) || w.contact(stays.ID) == nil {
		t.Errorf("without the permission: %v", err)
	}
}
