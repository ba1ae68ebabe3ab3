package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"parley/desk"
	"parley/store"
)

func snippets(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	check := func(ws desk.ID, want ...desk.Snippet) {
		t.Helper()
		got, err := s.Snippets(t.Context(), ws)
		must(t, err)
		equal(t, "snippets", got, want)
	}
	check(ws)
	hi := desk.Snippet{Shortcut: "hi", Text: " Hi \"{{customer_name}}\",\n\tü\u2028", UpdatedAt: 5}
	list := []desk.Snippet{{Shortcut: "a-b", Text: "1", UpdatedAt: 1}, {Shortcut: "a_b", Text: "2", UpdatedAt: 2}, {Shortcut: "ab", Text: "3", UpdatedAt: 3}, hi}
	commit(t, s, ws, func(tx store.Tx) error {
		for i := range list {
			if err := tx.PutSnippet(list[len(list)-1-i]); err != nil {
				return err
			}
		}
		found, n, err := tx.Snippet("hi")
		if err == nil && (n != 4 || *found != hi) {
			t.Errorf("in its transaction: %+v of %d", found, n)
		}
		return err
	})
	check(ws, list...)
	check(other)
	hi.Text, hi.UpdatedAt = "Hello", 9
	list[3] = hi
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutSnippet(hi) })
	commit(t, s, other, func(tx store.Tx) error {
		found, n, err := tx.Snippet("hi")
		if err != nil {
			return err
		}
		if found != nil || n != 0 {
			t.Errorf("of another workspace: %+v of %d", found, n)
		}
		if err := tx.DropSnippet("hi"); err != nil {
			return err
		}
		return tx.PutSnippet(desk.Snippet{Shortcut: "hi", Text: "theirs", UpdatedAt: 1})
	})
	check(ws, list...)
	commit(t, s, ws, func(tx store.Tx) error { return tx.DropSnippet("a_b") })
	check(ws, list[0], list[2], hi)
	check(other, desk.Snippet{Shortcut: "hi", Text: "theirs", UpdatedAt: 1})
}

// snippetRaces: many transactions count the snippets before they store one, but together
// they do not exceed the limit. If two transactions store the same snippet, only one of
// them finds that it is new.
func snippetRaces(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const most, writers, rounds = 3, 8, 5
	for round := range rounds {
		var group sync.WaitGroup
		var made atomic.Int64
		for n := range writers {
			group.Go(func() {
				added := false
				err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
					shortcut := fmt.Sprint("s", n/2)
					found, count, err := tx.Snippet(shortcut)
					added = err == nil && found == nil && count < most
					if !added {
						return err
					}
					return tx.PutSnippet(desk.Snippet{Shortcut: shortcut, Text: "Hi", UpdatedAt: 1})
				})
				if err != nil {
					t.Error(err)
				} else if added {
					made.Add(1)
				}
			})
		}
		group.Wait()
		list, err := s.Snippets(t.Context(), ws)
		must(t, err)
		if len(list) != most || made.Load() != most {
			t.Fatalf("round %d: %d snippets, %d are new, want %d", round, len(list), made.Load(), most)
		}
		commit(t, s, ws, func(tx store.Tx) error {
			for _, snippet := range list {
				if err := tx.DropSnippet(snippet.Shortcut); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
