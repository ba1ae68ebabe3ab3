package app_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/desk"
)

// TestNotesStayInside: a note never reaches a provider, not even with the next message to
// the same person.
func TestNotesStayInside(t *testing.T) {
	w := newWorld(t)
	c := w.writes("905321112233", "Hi")
	_, err := w.AddNote(t.Context(), w.caller(), c.ID, "Pays late", desk.Field[desk.Reference]{})
	must(t, err)
	w.takeIn()
	if sent := w.provider.sent(); len(sent) != 0 {
		t.Errorf("a note was sent: %+v", sent)
	}
	w.sent("k")
	if sent := w.provider.sent(); len(sent) != 1 || strings.Contains(fmt.Sprintf("%+v", sent[0].Components), "Pays late") {
		t.Errorf("with a note, these are sent: %+v", sent)
	}
	if line := w.log.find("Pays late"); line != nil {
		t.Errorf("the log has a note: %s", line)
	}
}

// TestNotesOfARevokedKey: nothing is stored for a key that was revoked after it was read.
func TestNotesOfARevokedKey(t *testing.T) {
	w := newWorld(t)
	c := w.writes("905321112233", "Hi")
	p := w.caller()
	n, err := w.AddNote(t.Context(), p, c.ID, "one", desk.Field[desk.Reference]{})
	must(t, err)
	_, err = w.RevokeKey(t.Context(), w.operator(), w.keyID)
	must(t, err)
	_, err = w.AddNote(t.Context(), p, c.ID, "two", desk.Field[desk.Reference]{})
	refused(t, err, desk.Unauthorized)
	refused(t, w.DeleteNote(t.Context(), p, c.ID, n.ID), desk.Unauthorized)
	page, _, err := w.Notes(t.Context(), w.operator(), c.ID, "", 10)
	must(t, err)
	if len(page) != 1 {
		t.Errorf("%d notes, want 1", len(page))
	}
}
