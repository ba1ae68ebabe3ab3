package storetest

import (
	"testing"

	"parley/desk"
	"parley/store"
)

// examine: what parley doctor asks. A sound database has no doubt but those of the tests'
// server.
func examine(t *testing.T, of store.Store) {
	s := of.(store.Examined)
	ws, _ := newWorkspace(t, s)
	has, knows, err := s.Schema(t.Context())
	if must(t, err); has != knows || has < 30 {
		t.Errorf("schema %d of %d", has, knows)
	}
	_, err = s.Doubts(t.Context())
	must(t, err)
	if wrong, _, err := s.Damage(t.Context()); err != nil || wrong != nil {
		t.Errorf("damage: %v %v", wrong, err)
	}
	ada := put(t, s, ws, called("Ada", 1))
	claims := append(ada.Claims(), desk.Claim{Kind: "email", Value: "nobody@example.com"})
	claimed, err := s.Claimed(t.Context(), ws, claims)
	must(t, err)
	for _, claim := range ada.Claims() {
		equal(t, "claimed", claimed[claim], []desk.ID{ada.ID})
	}
	if n := len(claimed[claims[len(claims)-1]]); n > 0 {
		t.Errorf("%d contacts have an e-mail of nobody", n)
	}
	stray, err := s.StrayClaims(t.Context(), ws)
	must(t, err)
	equal(t, "stray claims", stray, int64(0))
}

// contents: the content of a workspace, by its hashes.
func contents(t *testing.T, of store.Store) {
	s := of.(store.Examined)
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	var sums [2][]byte
	for n, text := range []string{"one", "three"} {
		d, err := s.NewContent(t.Context(), ws)
		must(t, err)
		_, err = d.Write([]byte(text))
		must(t, err)
		sums[n], _, err = d.Keep(t.Context(), 0)
		must(t, err)
	}
	one, two := sums[0], sums[1]
	if string(one) > string(two) {
		one, two = two, one
	}
	for after, want := range map[string]string{"": string(one), string(one): string(two), string(two): ""} {
		list, err := s.Contents(t.Context(), ws, []byte(after), 1)
		must(t, err)
		got := ""
		if len(list) > 0 {
			if got = string(list[0].SHA256); list[0].Size != 3 && list[0].Size != 5 {
				t.Errorf("content of %d bytes", list[0].Size)
			}
		}
		equal(t, "content", got, want)
	}
	if list, err := s.Contents(t.Context(), other, nil, 1); err != nil || len(list) > 0 {
		t.Errorf("content of another workspace: %v %v", list, err)
	}
}
