package access_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"parley/app/access"
	"parley/desk"
	"parley/store"
	"parley/store/sqlite"
	"parley/store/sqlite/sqlitetest"

	"golang.org/x/crypto/argon2"
)

const password, password2 = "correct horse battery", "another horse battery"

// A world is a Service over a SQLite file, with a workspace of two members. Its clocks and
// the database's clock stand still until a test sets them.
type world struct {
	*access.Service
	t          *testing.T
	store      *lyingStore
	clock      atomic.Int64 // milliseconds
	up         atomic.Int64 // nanoseconds
	made       atomic.Uint64
	ws         desk.ID
	ada, grace desk.Member
}

// A lyingStore returns a session even if its member was removed.
type lyingStore struct {
	store.Store
	session  *store.Session
	settings *desk.Settings
}

func (s *lyingStore) Session(ctx context.Context, hash string) (*store.Session, *desk.Settings, error) {
	if s.session != nil {
		return s.session, s.settings, nil
	}
	return s.Store.Session(ctx, hash)
}

// newFile makes a file with all tables.
var newFile = sqlitetest.Copies(func(path string) (io.Closer, error) {
	return sqlite.Open(context.Background(), sqlite.Config{Serves: true, Path: path})
})

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	w.clock.Store(time.Date(2026, 3, 12, 9, 30, 0, 0, time.UTC).UnixMilli())
	now := func() time.Time { return time.UnixMilli(w.clock.Load()) }
	file, err := sqlite.Open(t.Context(), sqlite.Config{Serves: true, Path: newFile(t), Now: now})
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	w.store = &lyingStore{Store: file}
	w.Service = access.New(access.Deps{
		Store: w.store, Log: slog.New(slog.DiscardHandler),
		Now:    func() desk.Time { return desk.TimeOf(now()) },
		Uptime: func() time.Duration { return time.Duration(w.up.Load()) },
		Random: func(b []byte) {
			clear(b)
			binary.BigEndian.PutUint64(b, w.made.Add(1))
		},
		Derive: func(purpose string, parts ...[]byte) []byte {
			mac := hmac.New(sha256.New, []byte(purpose))
			for _, part := range parts {
				mac.Write(part)
			}
			return mac.Sum(nil)
		},
	})
	w.ws = w.workspace("Acme")
	w.ada = w.member(w.ws, "Ada", "ada@example.com")
	w.grace = w.member(w.ws, "Grace", "grace@example.com")
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) newID() (id desk.ID) {
	binary.BigEndian.PutUint64(id[8:], w.made.Add(1))
	id[6], id[8] = 0x70, 0x80
	return id
}

func (w *world) workspace(name string) desk.ID {
	w.t.Helper()
	id := w.newID()
	must(w.t, w.store.CreateWorkspace(w.t.Context(), desk.Workspace{ID: id, Name: name}))
	return id
}

func (w *world) change(ws desk.ID, c desk.Change) {
	w.t.Helper()
	must(w.t, w.store.UpdateSettings(w.t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return c, nil }))
}

func (w *world) member(ws desk.ID, name, email string) desk.Member {
	w.t.Helper()
	m := desk.Member{ID: w.newID(), Name: name, Email: email, Role: desk.RoleAgent}
	w.change(ws, desk.Change{Member: &m})
	return m
}

// as returns the principal of a member, with the current settings.
func (w *world) as(ws desk.ID, m desk.Member) desk.Principal {
	w.t.Helper()
	p, err := w.Member(w.t.Context(), ws, m.ID)
	must(w.t, err)
	return p
}

// operator returns the principal of the command line in the world's workspace.
func (w *world) operator() desk.Principal {
	w.t.Helper()
	settings, err := w.store.Settings(w.t.Context(), w.ws)
	must(w.t, err)
	return desk.Principal{Actor: desk.Actor{Kind: desk.ByCLI}, Settings: settings}
}

func (w *world) later(d time.Duration) { w.clock.Add(d.Milliseconds()) }

// TestPutSession: a session can't begin if the member signed in before the member's sessions
// were ended, or if the member was removed.
func TestPutSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(*world)
		refused   bool
	}{
		"nothing happens":       {func(*world) {}, false},
		"the member is renamed": {func(w *world) { m := w.ada; m.Name = "Ada L."; w.change(w.ws, desk.Change{Member: &m}) }, false},
		"another's are ended":   {func(w *world) { must(w.t, w.EndSessions(w.t.Context(), w.operator(), w.grace.ID)) }, false},
		"sessions are ended":    {func(w *world) { must(w.t, w.EndSessions(w.t.Context(), w.operator(), w.ada.ID)) }, true},
		"a password is set": {func(w *world) {
			_, err := w.SetPassword(w.t.Context(), w.as(w.ws, w.ada), "", true, password)
			must(w.t, err)
		}, true},
		"the member is removed": {func(w *world) { w.change(w.ws, desk.Change{RemoveMember: &w.ada}) }, true},
		"the workspace is deleted": {func(w *world) {
			must(w.t, w.store.DeleteWorkspace(w.t.Context(), w.ws, func(string) error { return nil }))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.NewSession(w.as(w.ws, w.ada))
			s.ExpiresAt = s.BegunAt + 1000
			c.meanwhile(w)
			if err := w.PutSession(t.Context(), "hash", *s); desk.IsType(err, desk.Unauthorized) != c.refused || err != nil && !c.refused {
				t.Errorf("a session is begun: %v", err)
			}
			if s, err := w.Session(t.Context(), "hash"); err != nil || (s == nil) != c.refused {
				t.Errorf("the session: %+v, %v", s, err)
			}
		})
	}
}

// TestSession_void: a session that is still stored is not valid if its member was removed, or
// once it has expired.
func TestSession_void(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := w.newID()
	settings := w.operator().Settings
	for name, c := range map[string]struct {
		member desk.ID
		left   desk.Time
		holds  bool
	}{"of a member": {w.ada.ID, 1, true}, "expired": {w.ada.ID, 0, false}, "of nobody": {gone, 1, false}} {
		w.store.session = &store.Session{Workspace: w.ws, Member: c.member, ExpiresAt: desk.Time(w.clock.Load()) + c.left}
		w.store.settings = settings
		if s, err := w.Session(t.Context(), "hash"); err != nil || (s != nil) != c.holds {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// TestMakeLink_hashed: a person who reads the database can't sign in by the stored hash of a
// link.
func TestMakeLink_hashed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token, _, err := w.MakeLink(t.Context(), w.operator(), w.ada.ID)
	must(t, err)
	sum := sha256.Sum256([]byte(token))
	hash := hex.EncodeToString(sum[:])
	for key, stored := range map[string]bool{token: false, hash: true} {
		if l, _, err := w.store.LoginLink(t.Context(), key); err != nil || (l != nil) != stored {
			t.Errorf("stored by %q: %+v, %v", key, l, err)
		}
	}
	if _, err := w.SpendLink(t.Context(), hash); !desk.IsType(err, desk.NotFound) {
		t.Errorf("the hash of a link is a link: %v", err)
	}
	if p, err := w.SpendLink(t.Context(), token); err != nil || p.Member.ID != w.ada.ID {
		t.Errorf("the link: %+v, %v", p.Member, err)
	}
}

// oldHash returns the hash of a password as an older release stored it: with a salt of its
// own.
func oldHash(password, salt string) string {
	text := base64.RawStdEncoding.EncodeToString
	return "$argon2id$v=19$m=19456,t=2,p=1$" + text([]byte(salt)) + "$" + text(argon2.IDKey([]byte(password), []byte(salt), 2, 19456, 1, 32))
}

// TestSignIn_work: the number of hashes does not show whether an e-mail belongs to members, in
// how many workspaces, or whether the password is right.
func TestSignIn_work(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	other := w.workspace("Other")
	twin := w.member(other, "Ada Too", "ada@example.com")
	for ws, m := range map[desk.ID]desk.Member{w.ws: w.ada, other: twin} {
		_, err := w.SetPassword(ctx, w.as(ws, m), "", true, password)
		must(t, err)
	}
	signIns := func(what string, want int64) {
		t.Helper()
		for _, c := range []struct{ email, password string }{
			{"nobody@example.com", password}, {"", ""}, {"grace@example.com", password}, {"ada@example.com", password2}, {"ada@example.com", password},
		} {
			w.later(time.Minute)
			before := w.Hashed()
			_, err := w.SignIn(ctx, c.email, c.password, "192.0.2.1")
			if err != nil && !desk.IsType(err, desk.Unauthorized) {
				t.Fatal(err)
			}
			if n := w.Hashed() - before; n != want {
				t.Errorf("%s: %q with %q makes %d hashes, want %d", what, c.email, c.password, n, want)
			}
		}
	}
	signIns("one recipe", 1)
	stored, err := w.store.Password(ctx, other, twin.ID)
	must(t, err)
	must(t, w.store.MovePassword(ctx, other, twin.ID, stored, oldHash("a third horse battery", "another salt....")))
	w.up.Add(int64(time.Hour)) // the number of recipes is counted again
	signIns("two recipes", 2)
}

// TestSignInThrottle: with one e-mail, 5 tries are allowed at once, then one in half a
// minute. From one address, 20 tries are allowed at once, then one in 5 s. Links and
// sessions are not throttled.
func TestSignInThrottle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, err := w.SetPassword(ctx, w.as(w.ws, w.ada), "", true, password)
	must(t, err)
	// tries makes n sign-ins. It returns how many were not throttled, and after how many
	// seconds the next one is allowed.
	tries := func(n int, email, from func(int) string) (tried, after int) {
		t.Helper()
		for i := range n {
			_, err := w.SignIn(ctx, email(i), "a wrong password!", from(i))
			switch {
			case desk.IsType(err, desk.Unauthorized):
				tried++
			case desk.IsType(err, desk.RateLimited):
				after = desk.AsError(err).RetryAfter
			default:
				t.Fatal(err)
			}
		}
		return tried, after
	}
	want := func(what string, tried, after, wantTried, wantAfter int) {
		t.Helper()
		if tried != wantTried || after != wantAfter {
			t.Errorf("%s: %d tries, the next after %d s, want %d, %d s", what, tried, after, wantTried, wantAfter)
		}
	}
	one := func(text string) func(int) string { return func(int) string { return text } }
	many := func(format string) func(int) string { return func(n int) string { return fmt.Sprintf(format, n) } }
	tried, after := tries(100, one("ada@example.com"), many("198.51.%d.7"))
	want("an e-mail", tried, after, 5, 30)
	if _, err := w.SignIn(ctx, "Ada@Example.com", password, "192.0.2.9"); !desk.IsType(err, desk.RateLimited) {
		t.Errorf("the right password after too many tries: %v", err)
	}
	token, _, err := w.MakeLink(ctx, w.operator(), w.ada.ID)
	must(t, err)
	if _, err := w.SpendLink(ctx, token); err != nil {
		t.Errorf("a link meanwhile: %v", err)
	}
	w.later(30*time.Second - time.Millisecond)
	tried, after = tries(1, one("ada@example.com"), one("192.0.2.9"))
	want("nearly half a minute later", tried, after, 0, 1)
	w.later(time.Millisecond)
	if _, err := w.SignIn(ctx, "ada@example.com", password, "192.0.2.9"); err != nil {
		t.Errorf("half a minute later: %v", err)
	}
	// All addresses of a /64 count as one.
	tried, after = tries(60, many("x%d@example.com"), many("2001:db8:1:2::%d"))
	want("an address", tried, after, 20, 5)
	tried, _ = tries(1, one("fresh@example.com"), one("2001:db8:1:3::1"))
	want("another network", tried, 0, 1, 0)
	w.later(5 * time.Second)
	tried, after = tries(2, many("y%d@example.com"), many("2001:db8:1:2:a::%d"))
	want("an address, 5 s later", tried, after, 1, 5)
}
