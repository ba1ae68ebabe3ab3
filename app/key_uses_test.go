package app_test

import (
	"testing"
	"time"

	"parley/app"
	"parley/desk"
)

// TestKeyUses: StoreKeyUses stores the newest use of a key, also a use by a presumed
// principal.
func TestKeyUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name, all := "crm", "all"
	text, k, err := w.CreateKey(t.Context(), w.operator(), app.KeyEdit{Name: &name, Permissions: &all})
	must(t, err)
	stored := func() desk.Time {
		t.Helper()
		must(t, w.Access.StoreKeyUses(t.Context()))
		uses, err := w.Access.KeyUses(t.Context(), w.operator())
		must(t, err)
		return uses[k.ID]
	}
	if at := stored(); at != 0 {
		t.Errorf("used at %v before any use", at)
	}
	authenticate := func() {
		t.Helper()
		_, err := w.Access.Authenticate(t.Context(), text)
		must(t, err)
	}
	authenticate()
	first := stored()
	if first == 0 {
		t.Fatal("the use was not stored")
	}
	w.clock.advance(1500 * time.Millisecond)
	if _, ok := w.Access.Presume(text); !ok {
		t.Fatal("the key is not known")
	}
	if at := stored(); at < first+1500 {
		t.Errorf("used at %v, want a later time than %v", at, first)
	}
	if _, err := w.Access.Authenticate(t.Context(), text[:len(text)-1]+"!"); err == nil {
		t.Fatal("a wrong key was accepted")
	}
	before := stored()
	w.clock.advance(time.Hour)
	_, _ = w.Access.Authenticate(t.Context(), text[:len(text)-2]+"00")
	if at := stored(); at != before {
		t.Error("a wrong secret counts as a use")
	}
}
