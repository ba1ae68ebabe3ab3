package app_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/app/access"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// asMember returns the principal of a member of the world, with this role.
func (w *world) asMember(id desk.ID, role desk.Role) desk.Principal {
	w.t.Helper()
	as := string(role)
	_, err := w.EditMember(w.t.Context(), w.operator(), id, app.MemberEdit{Role: &as})
	must(w.t, err)
	p, err := w.Access.Member(w.t.Context(), w.ws, id)
	must(w.t, err)
	return p
}

// signIn begins a session of a member.
func (w *world) signIn(token string, p desk.Principal) {
	w.t.Helper()
	s := w.Access.NewSession(p)
	s.ExpiresAt, s.Data = s.BegunAt+1_000_000, []byte(token)
	must(w.t, w.Access.PutSession(w.t.Context(), token, *s))
}

// signedIn lists the tokens whose sessions are valid.
func (w *world) signedIn(tokens ...string) (list []string) {
	w.t.Helper()
	for _, token := range tokens {
		s, err := w.Access.Session(w.t.Context(), token)
		must(w.t, err)
		if s != nil {
			list = append(list, token)
		}
	}
	return list
}

func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ada, boss := w.asMember(w.ada.ID, desk.RoleAgent), w.asMember(w.grace.ID, desk.RoleAdmin)
	want := func(what string, tokens ...string) {
		t.Helper()
		if got := w.signedIn("a", "b", "c", "boss", "boss2"); !slices.Equal(got, tokens) {
			t.Errorf("%s: signed in are %v, want %v", what, got, tokens)
		}
	}
	want("at first")
	for _, token := range []string{"a", "b"} {
		w.signIn(token, ada)
	}
	w.signIn("boss", boss)
	want("signed in", "a", "b", "boss")
	s, err := w.Access.Session(ctx, "a")
	must(t, err)
	if s.Workspace != w.ws || s.Member != w.ada.ID || string(s.Data) != "a" {
		t.Errorf("session: %+v", s)
	}
	s.ExpiresAt += 1000
	must(t, w.Access.PutSession(ctx, "a", *s))
	must(t, w.Access.EndSession(ctx, "a"))
	must(t, w.Access.EndSession(ctx, "a"))
	want("a signed out", "b", "boss")
	if err := w.Access.PutSession(ctx, "a", *s); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("a session that was ended is kept: %v", err)
	}
	seen, err := w.Access.LastSeen(ctx, boss)
	must(t, err)
	if len(seen) != 2 || seen[w.ada.ID] == 0 {
		t.Errorf("last seen: %v", seen)
	}

	// If all sessions are ended, a session that begins afterwards stays, even if it begins at
	// the same moment.
	stale, err := w.Access.Session(ctx, "b")
	must(t, err)
	if err := w.Access.EndSessions(ctx, ada, w.grace.ID); !desk.IsType(err, desk.Forbidden) {
		t.Errorf("an agent ended an admin's sessions: %v", err)
	}
	must(t, w.Access.EndSessions(ctx, ada, w.ada.ID))
	want("ada ended hers", "boss")
	if err := w.Access.PutSession(ctx, "b", *stale); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("a void session is stored: %v", err)
	}
	if ada, err = w.Access.Member(ctx, w.ws, w.ada.ID); err != nil {
		t.Fatal(err)
	}
	w.signIn("c", ada)
	w.signIn("boss2", boss)
	must(t, w.Access.EndSessions(ctx, boss, w.ada.ID))
	want("the boss ended ada's", "boss", "boss2")
	must(t, w.Access.EndSessions(ctx, w.operator(), w.grace.ID))
	want("all are ended")

	// If all sessions are ended, a session from a server whose clock is ahead ends also.
	ahead := w.Access.NewSession(w.asMember(w.ada.ID, desk.RoleAgent))
	ahead.BegunAt, ahead.ExpiresAt = ahead.BegunAt+45_000, ahead.BegunAt+1_000_000
	must(t, w.Access.PutSession(ctx, "a", *ahead))
	want("by a clock that is ahead", "a")
	must(t, w.Access.EndSessions(ctx, w.operator(), w.ada.ID))
	want("ended by a clock that is behind")

	// A session is not valid if the member was removed, or if it has expired.
	w.signIn("a", w.asMember(w.ada.ID, desk.RoleAgent))
	w.signIn("boss", w.asMember(w.grace.ID, desk.RoleAdmin))
	must(t, w.RemoveMember(ctx, w.operator(), w.ada.ID))
	want("ada is removed", "boss")
	if err := w.Access.PutSession(ctx, "b", access.MemberSession{Session: store.Session{Workspace: w.ws, Member: w.ada.ID, BegunAt: 1, ExpiresAt: 2}}); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("a session of a removed member: %v", err)
	}
	w.clock.advance(time.Hour)
	want("later")
	must(t, w.Forget(ctx))
}

func TestLoginLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ada, boss := w.asMember(w.ada.ID, desk.RoleAgent), w.asMember(w.grace.ID, desk.RoleAdmin)
	for what, p := range map[string]desk.Principal{"an agent": ada, "a key": w.caller()} {
		if _, _, err := w.Access.MakeLink(ctx, p, w.ada.ID); !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s made a link: %v", what, err)
		}
	}
	if _, _, err := w.Access.MakeLink(ctx, boss, desk.ID{9}); !desk.IsType(err, desk.NotFound) {
		t.Errorf("a link for nobody: %v", err)
	}
	link := func(p desk.Principal) string {
		t.Helper()
		token, _, err := w.Access.MakeLink(ctx, p, w.ada.ID)
		must(t, err)
		return token
	}
	first, other := link(boss), link(w.operator())
	if first == other || len(first) != 43 {
		t.Errorf("links: %s, %s", first, other)
	}
	page, err := w.Feed.Page(ctx, w.operator(), feed.Query{Cursor: "oldest", Limit: 200})
	must(t, err)
	made := page.Events[len(page.Events)-2]
	if made.Type != desk.MemberUpdated || made.Subject != w.ada.ID || made.Actor != boss.Actor || !slices.Equal(made.Changed, []string{"link"}) {
		t.Errorf("the event: %+v", made)
	}
	spent := func(what, token string) {
		t.Helper()
		if _, err := w.Access.LinkOwner(ctx, token); !desk.IsType(err, desk.NotFound) {
			t.Errorf("the owner of a link that is %s: %v", what, err)
		}
		if _, err := w.Access.SpendLink(ctx, token); !desk.IsType(err, desk.NotFound) {
			t.Errorf("spending a link that is %s: %v", what, err)
		}
	}
	for range 3 {
		if p, err := w.Access.LinkOwner(ctx, first); err != nil || p.Member.ID != w.ada.ID {
			t.Errorf("the owner is %+v, %v", p.Actor, err)
		}
	}
	if p, err := w.Access.SpendLink(ctx, first); err != nil || p.Member.ID != w.ada.ID || p.Workspace() != w.ws {
		t.Errorf("spent: %+v, %v", p.Actor, err)
	}
	spent("spent", first)
	spent("unknown", "x")
	w.clock.advance(desk.LinkLife)
	spent("expired", other)
	gone := link(w.operator())
	must(t, w.RemoveMember(ctx, w.operator(), w.ada.ID))
	spent("a removed member's", gone)
}

// TestLinkIsSpentOnce: if many calls on two nodes use one link at once, only one call gets
// the link's member.
func TestLinkIsSpentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := []*app.App{w.App, w.node(w.file, app.Bounds{})}
	t.Cleanup(nodes[1].Close)
	token, _, err := w.Access.MakeLink(t.Context(), w.operator(), w.ada.ID)
	must(t, err)
	var racers sync.WaitGroup
	var won atomic.Int64
	for n := range 50 {
		racers.Go(func() {
			p, err := nodes[n%len(nodes)].Access.SpendLink(context.WithoutCancel(t.Context()), token)
			switch {
			case err == nil && p.Member.ID == w.ada.ID:
				won.Add(1)
			case !desk.IsType(err, desk.NotFound):
				t.Error(err)
			}
		})
	}
	racers.Wait()
	if won.Load() != 1 {
		t.Errorf("%d racers spent the link", won.Load())
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.asMember(w.grace.ID, desk.RoleAdmin)
	if _, _, err := w.Access.Held(t.Context(), w.asMember(w.ada.ID, desk.RoleAgent), w.ada.ID); !desk.IsType(err, desk.Forbidden) {
		t.Errorf("Held by an agent: %v", err)
	}
	if contacts, conversations, err := w.Access.Held(t.Context(), boss, w.ada.ID); contacts != 0 || conversations != 0 || err != nil {
		t.Errorf("held: %d, %d, %v", contacts, conversations, err)
	}
}
