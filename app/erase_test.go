package app_test

import (
	"testing"
	"time"

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
		if erased, _, err := w.Erase(t.Context(), w.operator(), list); erased != want || err != nil {
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
	if _, _, err := w.Erase(t.Context(), p, []desk.Erasure{{ID: stays.ID}}); !desk.IsType(err, desk.Forbidden) && !desk.IsType(err, desk.Unauthorized) || w.contact(stays.ID) == nil {
		t.Errorf("without the permission: %v", err)
	}
}

// TestErase_merged: a backup has a person as a part of another contact, whose merge was undone
// before the person was deleted. The person is separated again, and goes; what was merged later
// into the same contact is separated, too.
func TestErase_merged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	into := w.put(mailed("ada@example.com"))
	goes := w.writes(number, "my secret").ContactID
	later := w.put(mailed("eve@example.com"))
	w.merge(into, w.contact(goes))
	w.merge(w.contact(into.ID), later)
	top := w.put(mailed("top@example.com"))
	w.merge(top, w.contact(into.ID))
	for _, want := range []int{1, 0} {
		if erased, err := w.eraseAll(goes); erased != want || err != nil {
			t.Fatalf("%d are erased, %v; want %d", erased, err, want)
		}
	}
	for _, id := range []desk.ID{into.ID, later.ID, top.ID} {
		if c := w.contact(id); len(c.Numbers()) > 0 {
			t.Errorf("%s has the number of the deleted person", c.Email)
		}
	}

	// A merge that can't be undone any more is told, and not passed over, unless the list deletes
	// the other contact, too.
	goes = w.put(phoned("905321110099")).ID
	w.merge(w.contact(into.ID), w.contact(goes))
	w.clock.advance(desk.UndoMerge + time.Hour)
	if erased, err := w.eraseAll(goes); erased != 0 || !desk.IsType(err, desk.UndoExpired) {
		t.Errorf("%d are erased, %v", erased, err)
	}
	if erased, err := w.eraseAll(goes, into.ID); erased != 1 || err != nil {
		t.Errorf("with the other contact: %d are erased, %v", erased, err)
	}
}

// eraseAll erases contacts one by one, and then those that were part of another one.
func (w *world) eraseAll(contacts ...desk.ID) (erased int, err error) {
	var merged []desk.ID
	for _, id := range contacts {
		n, parts, err := w.Erase(w.t.Context(), w.operator(), []desk.Erasure{{ID: id, At: 9}})
		must(w.t, err)
		erased, merged = erased+n, append(merged, parts...)
	}
	for _, id := range merged {
		there, err := w.EraseMerged(w.t.Context(), w.operator(), id)
		if err != nil {
			return erased, err
		}
		if there {
			erased++
		}
	}
	return erased, nil
}
