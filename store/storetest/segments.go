package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"parley/desk"
	"parley/store"
)

func segments(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	var filter desk.Filter
	must(t, json.Unmarshal([]byte(`{"all":[{"field":"name","is":"present"},{"any":[{"field":"attributes.plan","is":"in","values":["pro","ü\"\\"]},
		{"field":"attributes.score","is":"below","value":-12.5},{"field":"attributes.b","is":"in","values":[true,false]}]},{"field":"wrote_at","is":"older","days":90}]}`), &filter))
	list := []desk.Segment{{Key: "a-b", Name: "1", Filter: filter, UpdatedAt: 1}, {Key: "a_b", Name: "2", Filter: filter, UpdatedAt: 2}, {Key: "ab", Name: "ü\u2028", Filter: filter, UpdatedAt: 3}}
	check := func(ws desk.ID, want ...desk.Segment) {
		t.Helper()
		got, err := s.Segments(t.Context(), ws)
		must(t, err)
		equal(t, "segments", got, want)
		for i := range want {
			one, err := s.Segment(t.Context(), ws, want[i].Key)
			must(t, err)
			equal(t, "segment", one, &want[i])
		}
		missing(s.Segment(t.Context(), ws, "none"))(t)
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.Segments()
			equal(t, "segments in a transaction", got, want)
			return err
		})
	}
	check(ws)
	commit(t, s, ws, func(tx store.Tx) error {
		for i := range list {
			if err := tx.PutSegment(list[len(list)-1-i]); err != nil {
				return err
			}
		}
		return nil
	})
	check(ws, list...)
	check(other)
	list[1].Name, list[1].Filter, list[1].UpdatedAt = "New", desk.Filter{All: filter.All[:1]}, 9
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutSegment(list[1]) })
	commit(t, s, other, func(tx store.Tx) error {
		if err := tx.DropSegment("ab"); err != nil {
			return err
		}
		return tx.PutSegment(list[0])
	})
	check(ws, list...)
	commit(t, s, ws, func(tx store.Tx) error { return tx.DropSegment("a-b") })
	check(ws, list[1], list[2])
	check(other, list[0])
}

// segmentRaces: many transactions count the segments before they store one, but together they
// do not exceed a limit.
func segmentRaces(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const most, writers = 3, 8
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
				list, err := tx.Segments()
				if err != nil || len(list) >= most {
					return err
				}
				return tx.PutSegment(desk.Segment{Key: fmt.Sprint("s", n), Name: "S", UpdatedAt: 1})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	list, err := s.Segments(t.Context(), ws)
	must(t, err)
	equal(t, "number of segments", len(list), most)
}
