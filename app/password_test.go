package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

const password, password2 = "correct horse battery", "another horse battery"

// must2 returns a check like must, for calls that also return a principal.
func must2(t *testing.T) func(desk.Principal, error) {
	t.Helper()
	return func(_ desk.Principal, err error) {
		t.Helper()
		must(t, err)
	}
}

func second(_ desk.Principal, err error) error { return err }

// signsIn tries a password and returns the members that it signs in.
func (w *world) signsIn(email, password, from string) (names []string, err error) {
	list, err := w.Access.SignIn(w.t.Context(), email, password, from)
	for _, p := range list {
		names = append(names, p.Settings.Name+"/"+p.Member.Name)
	}
	return names, err
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ada := w.asMember(w.ada.ID, desk.RoleAgent)
	try := func(email, password string, want ...string) {
		t.Helper()
		w.clock.advance(time.Minute) // so that the throttle is not reached; access_test.go tests it
		got, err := w.signsIn(email, password, "192.0.2.1")
		if !slices.Equal(got, want) || (err == nil) != (want != nil) || err != nil && !desk.IsType(err, desk.Unauthorized) {
			t.Errorf("%s signs in as %v, %v, want %v", email, got, err, want)
		}
	}
	refused := func(at string, err error) {
		t.Helper()
		var e *desk.Error
		if e = desk.AsError(err); err == nil || e.Type != desk.InvalidRequest || e.At != at {
			t.Errorf("error = %v, want one at %s", err, at)
		}
	}
	try("ada@example.com", "")
	refused("/old", second(w.Access.SetPassword(ctx, ada, "", false, password)))
	refused("/password", second(w.Access.SetPassword(ctx, ada, "", true, "short")))
	refused("/password", second(w.Access.SetPassword(ctx, ada, "", true, "  ADA@Example.com   ")))
	w.signIn("a", ada)
	must2(t)(w.Access.SetPassword(ctx, ada, "", true, password))
	if got := w.signedIn("a"); got != nil {
		t.Error("a session outlives the password")
	}
	page, err := w.Feed.Page(ctx, w.operator(), feed.Query{Cursor: "oldest", Limit: 200})
	must(t, err)
	if e := page.Events[len(page.Events)-1]; e.Type != desk.MemberUpdated || e.Actor != ada.Actor || !slices.Equal(e.Changed, []string{"password"}) {
		t.Errorf("the event: %+v", e)
	}
	try("ADA@example.com ", password, "Acme/Ada Lovelace")
	try("ada@example.com", password2)
	try("ada@example.com", "")
	try("nobody@example.com", password)
	try("", "")
	if _, err := w.Access.SetPassword(ctx, ada, password, false, password2); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("a session from before the password set another: %v", err)
	}
	ada, err = w.Access.Member(ctx, ada.Workspace(), ada.Member.ID)
	must(t, err)
	refused("/old", second(w.Access.SetPassword(ctx, ada, password2, false, password2)))
	must2(t)(w.Access.SetPassword(ctx, ada, password, false, password2))
	try("ada@example.com", password)
	try("ada@example.com", password2, "Acme/Ada Lovelace")

	// The same e-mail in another workspace has a password of its own.
	other, err := w.CreateWorkspace(ctx, "Other", "")
	must(t, err)
	operator, err := w.Operator(ctx, other.ID)
	must(t, err)
	m, err := w.AddMember(ctx, operator, "Ada Too", "ADA@example.com", "admin")
	must(t, err)
	twin, err := w.Access.Member(ctx, other.ID, m.ID)
	must(t, err)
	try("ada@example.com", password2, "Acme/Ada Lovelace")
	must2(t)(w.Access.SetPassword(ctx, twin, "", true, password))
	try("ada@example.com", password, "Other/Ada Too")
	twin, err = w.Access.Member(ctx, other.ID, m.ID)
	must(t, err)
	must2(t)(w.Access.SetPassword(ctx, twin, "", true, password2))
	got, err := w.signsIn("ada@example.com", password2, "192.0.2.1")
	must(t, err)
	if slices.Sort(got); !slices.Equal(got, []string{"Acme/Ada Lovelace", "Other/Ada Too"}) {
		t.Errorf("both: %v", got)
	}

	// A member gets another e-mail, and is removed.
	email := "ada.king@example.com"
	_, err = w.EditMember(ctx, w.operator(), w.ada.ID, app.MemberEdit{Email: &email})
	must(t, err)
	try(email, password2, "Acme/Ada Lovelace")
	try("ada@example.com", password2, "Other/Ada Too")
	must(t, w.RemoveMember(ctx, w.operator(), w.ada.ID))
	try(email, password2)
	if _, err := w.Access.SetPassword(ctx, ada, "", true, password); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("a removed member set a password: %v", err)
	}
	if _, err := w.Access.SetPassword(ctx, w.operator(), "", true, password); !desk.IsType(err, desk.Forbidden) {
		t.Errorf("the operator set a password: %v", err)
	}
}

// TestSignIn_overtaken: a sign-in with the old password fails if the password is replaced
// meanwhile.
func TestSignIn_overtaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ada := w.asMember(w.ada.ID, desk.RoleAgent)
	must2(t)(w.Access.SetPassword(ctx, ada, "", true, password))
	list, err := w.Access.SignIn(ctx, "ada@example.com", password, "")
	must(t, err)
	ada, err = w.Access.Member(ctx, w.ws, w.ada.ID)
	must(t, err)
	must2(t)(w.Access.SetPassword(ctx, ada, password, false, password2))
	w.clock.advance(time.Second)
	if err := w.Access.PutSession(ctx, "a", *w.Access.NewSession(list[0])); !desk.IsType(err, desk.Unauthorized) {
		t.Errorf("a session by a password that was replaced: %v", err)
	}
}

// An overtaken is a store in which somebody else does something in the middle of an action:
// once a sign-in has read the members of an e-mail, or right before the settings change.
type overtaken struct {
	store.Store
	read, change func()
}

func (s *overtaken) MembersByEmail(ctx context.Context, canonical string, most int) ([]store.MemberAccess, error) {
	list, err := s.Store.MembersByEmail(ctx, canonical, most)
	if do := s.read; do != nil {
		s.read = nil
		do()
	}
	return list, err
}

func (s *overtaken) UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error {
	if do := s.change; do != nil {
		s.change = nil
		do()
	}
	return s.Store.UpdateSettings(ctx, ws, decide)
}

// TestPasswords_overtaken: a password is replaced while another process signs in with it, or
// replaces it, too. The other process is refused, and the first new password stays.
func TestPasswords_overtaken(t *testing.T) {
	t.Parallel()
	const third = "a third password, of many words"
	for name, use := range map[string]func(*overtaken, func(), *app.App, desk.Principal) error{
		"a sign-in": func(s *overtaken, replace func(), node *app.App, _ desk.Principal) error {
			s.read = replace
			_, err := node.Access.SignIn(t.Context(), "ada@example.com", password, "")
			return err
		},
		"a change": func(s *overtaken, replace func(), node *app.App, ada desk.Principal) error {
			s.change = replace
			_, err := node.Access.SetPassword(t.Context(), ada, password, false, third)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := t.Context()
			ada, err := w.Access.SetPassword(ctx, w.asMember(w.ada.ID, desk.RoleAgent), "", true, password)
			must(t, err)
			s := &overtaken{Store: w.file}
			err = use(s, func() { must2(t)(w.Access.SetPassword(ctx, ada, password, false, password2)) }, w.node(s, app.Bounds{}), ada)
			if !desk.IsType(err, desk.Unauthorized) {
				t.Errorf("the other process: %v", err)
			}
			if list, err := w.Access.SignIn(ctx, "ada@example.com", password2, ""); err != nil || len(list) != 1 {
				t.Errorf("with the new password: %d members, %v", len(list), err)
			}
		})
	}
}

// TestSignInsAtOnce: passwords are hashed one at a time. No sign-in is refused as long as the
// others are done in time.
func TestSignInsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must2(t)(w.Access.SetPassword(t.Context(), w.asMember(w.ada.ID, desk.RoleAgent), "", true, password))
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := w.Access.SignIn(context.WithoutCancel(t.Context()), "ada@example.com", password, ""); err != nil && !desk.IsType(err, desk.Unavailable) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Access.SignIn(ended, "grace@example.com", password, ""); err == nil {
		t.Error("a caller who has left is signed in")
	}
}

// TestHashes: every sign-in makes the same number of hashes, however many members have its
// e-mail. This also holds while some passwords were hashed by an older release. Their
// hashes are replaced at the next sign-in.
func TestHashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	// Ada is in twenty workspaces, Grace in one.
	const workspaces = 20
	var adas []desk.Principal
	for n := range workspaces {
		ws, err := w.CreateWorkspace(ctx, fmt.Sprint("W", n), "")
		must(t, err)
		operator, err := w.Operator(ctx, ws.ID)
		must(t, err)
		m, err := w.AddMember(ctx, operator, "Ada", "ada@many.example", "agent")
		must(t, err)
		p, err := w.Access.Member(ctx, ws.ID, m.ID)
		must(t, err)
		p, err = w.Access.SetPassword(ctx, p, "", true, password)
		must(t, err)
		adas = append(adas, p)
	}
	must2(t)(w.Access.SetPassword(ctx, w.asMember(w.grace.ID, desk.RoleAgent), "", true, password))
	count := func(what string, want int64) {
		t.Helper()
		for _, c := range []struct {
			email, password string
			opens           int
		}{
			{"nobody@example.com", password, 0}, {"grace@example.com", password2, 0}, {"ada@many.example", "nobody's password", 0}, {"", password, 0},
			{"a@" + strings.Repeat("中", 1000) + ".com", password, 0}, {"nobody@example.com", strings.Repeat("x", 100_000), 0}, {"grace@example.com", password, 1},
		} {
			w.clock.advance(time.Minute)
			before := w.Access.Hashed()
			got, err := w.signsIn(c.email, c.password, "192.0.2.1")
			if n := w.Access.Hashed() - before; n != want || len(got) != c.opens || (err == nil) != (c.opens > 0) {
				t.Errorf("%s: %.30q opens %d members (%v), by %d hashes, want %d by %d", what, c.email, len(got), err, n, c.opens, want)
			}
		}
	}
	opens := func(what, password string, members int, want int64) {
		t.Helper()
		w.clock.advance(time.Minute)
		before := w.Access.Hashed()
		got, err := w.signsIn("ada@many.example", password, "192.0.2.1")
		if n := w.Access.Hashed() - before; err != nil || len(got) != members || n != want {
			t.Errorf("%s: Ada signs in as %d members (%v), by %d hashes, want %d by %d", what, len(got), err, n, members, want)
		}
	}
	count("one salt for an e-mail", 1)
	opens("one salt for an e-mail", password, workspaces, 1)

	// These passwords are stored as by an older release, each with a random salt. Three
	// members have another password.
	for n, p := range adas {
		text := password
		if n < 3 {
			text = password2
		}
		old, err := w.file.Password(ctx, p.Workspace(), p.Member.ID)
		must(t, err)
		must(t, w.file.MovePassword(ctx, p.Workspace(), p.Member.ID, old, app.HashOf(text, fmt.Sprintf("salt %11d", n))))
	}
	w.clock.up.Add(int64(10 * time.Minute))
	count("twenty salts", workspaces)
	opens("twenty salts", password, workspaces-3, workspaces)
	w.clock.up.Add(int64(10 * time.Minute))
	count("one password has moved", 3)
	opens("one password has moved", password, workspaces-3, 3)
	opens("one password has moved", password2, 3, 3)
	w.clock.up.Add(int64(10 * time.Minute))
	count("all have moved", 1)
	opens("all have moved", password, workspaces-3, 1)
	opens("all have moved", password2, 3, 1)
}

// TestPasswordChanges: a member may change the password five times, and then once in half a
// minute. Further changes are refused before a hash is made. An ended session is refused even
// before that, and the changes of one member do not delay sign-ins.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ada := w.asMember(w.ada.ID, desk.RoleAgent)
	grace, err := w.Access.SetPassword(ctx, w.asMember(w.grace.ID, desk.RoleAgent), "", true, password)
	must(t, err)
	before := w.Access.Hashed()
	var all sync.WaitGroup
	var set, ended, limited atomic.Int64
	for range 400 {
		all.Go(func() {
			_, err := w.Access.SetPassword(context.WithoutCancel(ctx), ada, "", true, password)
			switch {
			case err == nil:
				set.Add(1)
			case desk.IsType(err, desk.Unauthorized):
				ended.Add(1)
			case desk.IsType(err, desk.RateLimited):
				limited.Add(1)
			case !desk.IsType(err, desk.Unavailable):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if set.Load() != 1 || ended.Load() == 0 || w.Access.Hashed()-before != 1 {
		t.Errorf("of 400 changes by one session %d were made, %d came after its end, %d hashes", set.Load(), ended.Load(), w.Access.Hashed()-before)
	}
	// Each call has a valid session, which began with the old password.
	before = w.Access.Hashed()
	for range 20 {
		_, err := w.Access.SetPassword(ctx, grace, "a wrong password!", false, password2)
		if desk.IsType(err, desk.RateLimited) {
			limited.Add(1)
		} else if !desk.IsType(err, desk.InvalidRequest) {
			t.Error(err)
		}
	}
	if n := w.Access.Hashed() - before; n > 5 || limited.Load() < 15 {
		t.Errorf("20 changes of a member made %d hashes, %d were refused", n, limited.Load())
	}
	// Grace's sign-ins are counted separately.
	if _, err := w.signsIn("grace@example.com", password, "192.0.2.1"); err != nil {
		t.Errorf("a sign-in beside too many changes: %v", err)
	}
	w.clock.advance(31 * time.Second)
	must2(t)(w.Access.SetPassword(ctx, grace, password, false, password2))
}

// TestLastAdmin: members can't leave their workspace without an admin.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, agent, name := t.Context(), "agent", "Grace H."
	boss := w.asMember(w.grace.ID, desk.RoleAdmin)
	demote := func(p desk.Principal, id desk.ID) error {
		_, err := w.EditMember(ctx, p, id, app.MemberEdit{Role: &agent})
		return err
	}
	for what, err := range map[string]error{"demoted": demote(boss, w.grace.ID), "removed": w.RemoveMember(ctx, boss, w.grace.ID)} {
		if !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("the last admin %s: %v", what, err)
		}
	}
	_, err := w.EditMember(ctx, boss, w.grace.ID, app.MemberEdit{Name: &name})
	must(t, err)
	must(t, demote(boss, w.ada.ID)) // nothing changes: Ada is not an admin
	second := w.asMember(w.ada.ID, desk.RoleAdmin)
	// If two admins demote each other at once, one stays an admin.
	var both sync.WaitGroup
	both.Go(func() { _ = demote(boss, w.ada.ID) })
	both.Go(func() { _ = demote(second, w.grace.ID) })
	both.Wait()
	admins := 0
	for _, m := range w.operator().Settings.Members() {
		if m.Role == desk.RoleAdmin {
			admins++
		}
	}
	if admins != 1 {
		t.Errorf("%d admins are left", admins)
	}
	must(t, demote(w.operator(), w.ada.ID))
	must(t, demote(w.operator(), w.grace.ID))
}
