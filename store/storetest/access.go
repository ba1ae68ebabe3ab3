package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"parley/desk"
	"parley/store"
)

// sessionOf returns the session with this hash, or nil.
func sessionOf(t *testing.T, s store.Store, hash string) *store.Session {
	t.Helper()
	session, settings, err := s.Session(t.Context(), hash)
	must(t, err)
	if session != nil && (settings == nil || settings.ID != session.Workspace) {
		t.Errorf("the session %s comes with the settings %+v", hash, settings)
	}
	return session
}

func beginSession(t *testing.T, s store.Store, hash string, v store.Session, most int) {
	t.Helper()
	commit(t, s, v.Workspace, func(tx store.Tx) error { return tx.BeginSession(hash, v, most) })
}

func sessions(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	other, eve := newWorkspace(t, s)
	one := store.Session{Workspace: ws, Member: ada.ID, BegunAt: 10, ExpiresAt: 20, Data: []byte("a\x00b")}
	if sessionOf(t, s, "one") != nil {
		t.Error("there is an unknown session")
	}
	beginSession(t, s, "one", one, 3)
	beginSession(t, s, "eve", store.Session{Workspace: other, Member: eve.ID, BegunAt: 1, ExpiresAt: 20}, 3)
	equal(t, "session", sessionOf(t, s, "one"), &one)
	one.ExpiresAt, one.Data = 30, []byte("c")
	keep := func(ws desk.ID, hash string) (kept bool) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) (err error) { kept, err = tx.KeepSession(hash, one); return err })
		return kept
	}
	if !keep(ws, "one") || keep(ws, "two") || keep(ws, "eve") {
		t.Error("of the sessions, one was to be kept")
	}
	equal(t, "session", sessionOf(t, s, "one"), &one)
	if got := sessionOf(t, s, "eve"); got == nil || got.ExpiresAt != 20 {
		t.Errorf("a session of another workspace was changed: %+v", got)
	}
	// A new session beyond the limit deletes the oldest ones.
	for n := range 4 {
		beginSession(t, s, fmt.Sprint("more", n), store.Session{Workspace: ws, Member: ada.ID, BegunAt: desk.Time(5 + n), ExpiresAt: 99}, 3)
	}
	there := func(hashes ...string) (found []string) {
		t.Helper()
		for _, hash := range hashes {
			if sessionOf(t, s, hash) != nil {
				found = append(found, hash)
			}
		}
		return found
	}
	all := []string{"one", "more0", "more1", "more2", "more3", "eve"}
	equal(t, "sessions", there(all...), []string{"one", "more2", "more3", "eve"})
	commit(t, s, ws, func(tx store.Tx) error { return errors.Join(tx.EndSession("more3"), tx.EndSession("eve")) })
	equal(t, "sessions", there(all...), []string{"one", "more2", "eve"})
	if keep(ws, "more3") {
		t.Error("a session that was ended was kept")
	}
	must(t, s.ForgetAccess(t.Context(), ws, 98))
	must(t, s.ForgetAccess(t.Context(), ws, 98))
	equal(t, "sessions", there(all...), []string{"more2", "eve"})
	// Storing a member with a larger SessionsFrom ends all sessions, whatever time they
	// have as their beginning.
	beginSession(t, s, "ahead", store.Session{Workspace: ws, Member: ada.ID, BegunAt: 95, ExpiresAt: 99}, 3)
	ada.SessionsFrom = 50
	if m := edit(t, s, ws, desk.Change{Member: ada}).Member(ada.ID); *m != *ada {
		t.Errorf("member = %+v, want %+v", m, ada)
	}
	equal(t, "sessions", there("more2", "ahead", "eve"), []string{"eve"})
	beginSession(t, s, "late", store.Session{Workspace: ws, Member: ada.ID, BegunAt: 40, ExpiresAt: 99}, 3)
	ada.Name = "Ada L."
	edit(t, s, ws, desk.Change{Member: ada})
	equal(t, "sessions", there("late", "eve"), []string{"late", "eve"})
	edit(t, s, ws, desk.Change{RemoveMember: ada})
	must(t, s.DeleteWorkspace(t.Context(), other, func(string) error { return nil }))
	equal(t, "sessions", there("late", "eve"), []string(nil))
}

func loginLinks(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	other, eve := newWorkspace(t, s)
	put := func(ws, member desk.ID, hash string) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			return tx.PutLoginLink(hash, store.LoginLink{Workspace: ws, Member: member, ExpiresAt: 30})
		})
	}
	owner := func(hash string) *store.LoginLink {
		t.Helper()
		l, settings, err := s.LoginLink(t.Context(), hash)
		must(t, err)
		if l != nil && settings.ID != l.Workspace {
			t.Errorf("the link %s comes with other settings", hash)
		}
		return l
	}
	for _, hash := range []string{"a", "b", "c"} {
		put(ws, ada.ID, hash)
	}
	put(other, eve.ID, "eve")
	want := &store.LoginLink{Workspace: ws, Member: ada.ID, ExpiresAt: 30}
	equal(t, "link", owner("a"), want)
	take := func(hash string) (l *store.LoginLink) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) (err error) { l, err = tx.TakeLoginLink(hash); return err })
		return l
	}
	equal(t, "link", take("a"), want)
	if take("a") != nil || owner("a") != nil || take("eve") != nil {
		t.Error("a link was taken that is spent, or another workspace's")
	}
	// If the transaction fails, the link is not used up.
	failure := errors.New("no")
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		_, err := tx.TakeLoginLink("b")
		return errors.Join(err, failure)
	}); !errors.Is(err, failure) {
		t.Error(err)
	}
	equal(t, "link", owner("b"), want)
	must(t, s.ForgetAccess(t.Context(), ws, 29))
	equal(t, "link", owner("b"), want)
	must(t, s.ForgetAccess(t.Context(), ws, 30))
	if owner("b") != nil || owner("eve") == nil {
		t.Error("forgotten: not the links that have expired")
	}
	// Ending a member's sessions also deletes the links. Other edits do not.
	put(ws, ada.ID, "d")
	ada.Name = "Ada L."
	edit(t, s, ws, desk.Change{Member: ada})
	if owner("d") == nil {
		t.Error("an edit of a member ends a link")
	}
	ada.SessionsFrom = 10
	edit(t, s, ws, desk.Change{Member: ada})
	if owner("d") != nil || owner("eve") == nil {
		t.Error("not the member's links have ended with the sessions")
	}
	put(ws, ada.ID, "d")
	edit(t, s, ws, desk.Change{Member: ada})
	if owner("d") == nil {
		t.Error("an edit of a member ends a link")
	}
	edit(t, s, ws, desk.Change{RemoveMember: ada})
	must(t, s.DeleteWorkspace(t.Context(), other, func(string) error { return nil }))
	if owner("d") != nil || owner("eve") != nil {
		t.Error("links of a removed member, or a deleted workspace, are there")
	}
}

// spentOnce: if many callers take the same link at once, only one of them gets it.
func spentOnce(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	for round := range 5 {
		hash := fmt.Sprint("link", round)
		commit(t, s, ws, func(tx store.Tx) error {
			return tx.PutLoginLink(hash, store.LoginLink{Workspace: ws, Member: ada.ID, ExpiresAt: 30})
		})
		var racers sync.WaitGroup
		var won atomic.Int64
		for range 50 {
			racers.Go(func() {
				var mine *store.LoginLink
				if err := s.InTx(t.Context(), ws, func(tx store.Tx) (err error) { mine, err = tx.TakeLoginLink(hash); return err }); err != nil {
					t.Error(err)
				} else if mine != nil {
					won.Add(1)
				}
			})
		}
		racers.Wait()
		if won.Load() != 1 {
			t.Errorf("%d racers got the link", won.Load())
		}
	}
}

func memberAccess(t *testing.T, s store.Store) {
	ctx := t.Context()
	ws, ada := newWorkspace(t, s)
	other, eve := newWorkspace(t, s)
	find := func(email string, want ...store.MemberRef) {
		t.Helper()
		list, err := s.MembersByEmail(ctx, email, 5)
		must(t, err)
		var got []store.MemberRef
		for _, m := range list {
			got = append(got, m.MemberRef)
		}
		slices.SortFunc(want, func(a, b store.MemberRef) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		if !slices.Equal(got, want) {
			t.Errorf("members with %s: %v, want %v", email, got, want)
		}
	}
	a, e := store.MemberRef{Workspace: ws, ID: ada.ID}, store.MemberRef{Workspace: other, ID: eve.ID}
	find("ada@example.com", a, e)
	find("ada@example.co")
	eve.Email = "Évé@example.com"
	edit(t, s, other, desk.Change{Member: eve})
	find("ada@example.com", a)
	find(desk.CanonicalEmail("évé@example.com"), e)

	password := func(ws, member desk.ID, want string) {
		t.Helper()
		got, err := s.Password(ctx, ws, member)
		must(t, err)
		if got != want {
			t.Errorf("password = %q, want %q", got, want)
		}
	}
	seen := func(want map[desk.ID]desk.Time) {
		t.Helper()
		got, err := s.LastSeen(ctx, ws)
		must(t, err)
		if !maps.Equal(got, want) {
			t.Errorf("seen = %v, want %v", got, want)
		}
	}
	note := func(at desk.Time) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error { return tx.NoteSeen(ada.ID, at) })
	}
	password(ws, ada.ID, "")
	edit(t, s, ws, desk.Change{Member: ada, Password: "first"})
	password(ws, ada.ID, "first")
	seen(map[desk.ID]desk.Time{})
	note(50)
	note(40)
	seen(map[desk.ID]desk.Time{ada.ID: 50})
	edit(t, s, ws, desk.Change{Member: ada})
	password(ws, ada.ID, "first")
	edit(t, s, ws, desk.Change{Member: ada, Password: "second"})
	password(ws, ada.ID, "second")
	password(other, ada.ID, "")
	seen(map[desk.ID]desk.Time{ada.ID: 50})
	edit(t, s, ws, desk.Change{RemoveMember: ada})
	password(ws, ada.ID, "")
	seen(map[desk.ID]desk.Time{})
	find("ada@example.com")
	must(t, s.DeleteWorkspace(ctx, other, func(string) error { return nil }))
	find(desk.CanonicalEmail("évé@example.com"))
}

// recipes tests MostRecipes: it counts the recipes of one e-mail in all workspaces.
func recipes(t *testing.T, s store.Store) {
	ctx := t.Context()
	const tail = len("#12")
	most := func(want int) {
		t.Helper()
		if got, err := s.MostRecipes(ctx, tail); err != nil || got != want {
			t.Errorf("one e-mail has %d recipes (%v), want %d", got, err, want)
		}
	}
	most(0)
	var holders []store.MemberAccess
	for i, password := range []string{"a#12", "b#12", "a#34", ""} {
		ws, ada := newWorkspace(t, s)
		ada.SessionsFrom = desk.Time(10 + i)
		edit(t, s, ws, desk.Change{Member: ada, Password: password})
		holders = append(holders, store.MemberAccess{MemberRef: store.MemberRef{Workspace: ws, ID: ada.ID}, SessionsFrom: ada.SessionsFrom, Password: password})
		ada.ID, ada.Name, ada.Email = newID(), "Eve", fmt.Sprint("eve", i, "@example.com")
		edit(t, s, ws, desk.Change{Member: ada, Password: fmt.Sprint("c", i, "#12")})
	}
	most(2)
	slices.SortFunc(holders, func(a, b store.MemberAccess) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for limit, want := range map[int][]store.MemberAccess{5: holders, 2: holders[:2]} {
		got, err := s.MembersByEmail(ctx, "ada@example.com", limit)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("up to %d members with the e-mail: %+v, want %+v", limit, got, want)
		}
	}
	for _, m := range holders {
		must(t, s.MovePassword(ctx, m.Workspace, m.ID, "b#12", "a#56"))
		must(t, s.MovePassword(ctx, m.Workspace, m.ID, "replaced#12", "d#56"))
	}
	most(1)
	got, err := s.MembersByEmail(ctx, "ada@example.com", 5)
	must(t, err)
	for i, m := range got {
		want := holders[i].Password
		if want == "b#12" {
			want = "a#56"
		}
		if m.Password != want {
			t.Errorf("the password %q has become %q", holders[i].Password, m.Password)
		}
	}
}

// held tests Held: the contacts and the conversations of a member are counted up to a
// bound.
func held(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	count := func(most, wantContacts, wantConversations int) {
		t.Helper()
		contacts, conversations, err := s.Held(t.Context(), ws, ada.ID, most)
		must(t, err)
		if contacts != wantContacts || conversations != wantConversations {
			t.Errorf("held: %d contacts, %d conversations, want %d, %d", contacts, conversations, wantContacts, wantConversations)
		}
	}
	count(100, 0, 0)
	for n := range 3 {
		op := upsert(fmt.Sprint(n, "@example.com"), "")
		op.Write.Owner = refer(ada.ID.String())
		put(t, s, ws, op)
		c := newConversation(newID(), newID())
		c.AssignedMember, c.AssignedVia = ada.ID, desk.ViaMember
		if n == 0 {
			c.Status = desk.StatusClosed
		}
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutConversation(c) })
	}
	put(t, s, ws, upsert("pool@example.com", ""))
	count(100, 3, 2)
	count(2, 2, 2)
	count(1, 1, 1)
}
