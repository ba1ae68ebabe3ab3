package app_test

import (
	"fmt"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// TestPutSnippet_most: a workspace has at most MaxSnippets saved replies. At the limit they
// can be changed, and deleting one makes room.
func TestPutSnippet_most(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		for i := range desk.MaxSnippets - 1 {
			if err := tx.PutSnippet(desk.Snippet{Shortcut: fmt.Sprint("s", i), Text: "Hello", UpdatedAt: 1}); err != nil {
				return err
			}
		}
		return nil
	}))
	put := func(shortcut, text string) (created bool, err error) {
		_, created, err = w.PutSnippet(t.Context(), w.caller(), shortcut, text)
		return created, err
	}
	if created, err := put("last", "Bye"); !created || err != nil {
		t.Errorf("the last one: %v, %v", created, err)
	}
	_, err := put("more", "Bye")
	refused(t, err, desk.InvalidRequest)
	if created, err := put("last", "Bye bye"); created || err != nil {
		t.Errorf("a change: %v, %v", created, err)
	}
	must(t, w.DeleteSnippet(t.Context(), w.caller(), "s7"))
	if created, err := put("more", "Bye"); !created || err != nil {
		t.Errorf("in the place of another: %v, %v", created, err)
	}
	_, err = put("s7", "Hello")
	refused(t, err, desk.InvalidRequest)
	list, _, err := w.Snippets(t.Context(), w.caller(), app.SnippetQuery{})
	must(t, err)
	if len(list) != desk.MaxSnippets {
		t.Errorf("%d saved replies", len(list))
	}
}
