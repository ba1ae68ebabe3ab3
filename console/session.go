package console

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/app"
	"parley/app/access"
	"parley/desk"

	"github.com/alexedwards/scs/v2"
	"github.com/go-json-experiment/json"
)

// touched is the least change of a session's expiry with which the session is stored
// again.
const touched = time.Hour

// The values of a session.
const (
	byLinkAt = "by_link_at" // when the member signed in by a link
	mayBe    = "may_be"     // members of other workspaces with the same password: WORKSPACE/MEMBER, separated by spaces
	provedAt = "proved_at"  // for each of these members, the value of SessionsFrom at the time when the password was given
)

// A session is the caller's session during one request.
type session struct {
	ctx   context.Context       // scs keeps the session's values in it
	found *access.MemberSession // the stored session; nil: there is none
	begun *access.MemberSession // a new session, to be stored
	until time.Time             // its expiry, if this request has stored it
}

type sessionKey struct{}

// A sessionStore is the store of scs. It stores a session only if the session's data has
// changed, or its expiry has moved by an hour; scs itself would store it with each
// request.
type sessionStore struct {
	app *app.App
	now func() time.Time
}

// FindCtx implements scs.CtxStore.
func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	found, err := s.app.Access.Session(ctx, token)
	if err != nil || found == nil {
		return nil, false, err
	}
	ctx.Value(sessionKey{}).(*session).found = found
	return found.Data, true, nil
}

// CommitCtx implements scs.CtxStore. It ignores the expiry of scs, which depends on the
// process's own clock.
func (s sessionStore) CommitCtx(ctx context.Context, token string, data []byte, _ time.Time) error {
	se := ctx.Value(sessionKey{}).(*session)
	v := se.begun
	if v == nil {
		v = se.found
	}
	if v == nil {
		return nil // no member is signed in
	}
	expires := min(desk.TimeOf(s.now().Add(desk.SessionIdle)), v.BegunAt+desk.Time(desk.SessionLife.Milliseconds()))
	if se.begun == nil && bytes.Equal(data, v.Data) && expires-v.ExpiresAt < desk.Time(touched.Milliseconds()) {
		return nil
	}
	stored := *v
	stored.Data, stored.ExpiresAt = data, expires
	if err := s.app.Access.PutSession(ctx, token, stored); err != nil {
		return err
	}
	se.until = time.Now().Add(time.UnixMilli(int64(expires)).Sub(s.now()))
	return nil
}

// DeleteCtx implements scs.CtxStore.
func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.app.Access.EndSession(ctx, token)
}

// Find implements scs.Store.
func (s sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit implements scs.Store.
func (s sessionStore) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete implements scs.Store.
func (s sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// A sessionCodec encodes a session's values, which are texts. Equal values always give
// the same bytes.
type sessionCodec struct{}

// Encode implements scs.Codec.
func (sessionCodec) Encode(_ time.Time, values map[string]any) ([]byte, error) {
	return json.Marshal(values, json.Deterministic(true))
}

// Decode implements scs.Codec. It returns no expiry: sessionStore knows when a session
// expires.
func (sessionCodec) Decode(b []byte) (time.Time, map[string]any, error) {
	values := map[string]any{}
	err := json.Unmarshal(b, &values)
	return time.Now().Add(desk.SessionLife), values, err
}

func newSessions(c Config, secure bool) *scs.SessionManager {
	m := scs.New()
	m.IdleTimeout, m.Lifetime = desk.SessionIdle, desk.SessionLife
	m.Store, m.Codec, m.HashTokenInStore = sessionStore{c.App, c.Now}, sessionCodec{}, true
	m.Cookie.Name, m.Cookie.Secure = "parley_"+c.Fingerprint, secure
	if secure { // with the prefix, neither another host nor a page over HTTP can set the cookie
		m.Cookie.Name = "__Host-" + m.Cookie.Name
	}
	return m
}

// session reads the session of a request.
func (s *Server) session(r *http.Request) (*session, error) {
	token := ""
	if cookie, err := r.Cookie(s.sessions.Cookie.Name); err == nil {
		token = cookie.Value
	}
	se := &session{}
	ctx, err := s.sessions.Load(context.WithValue(r.Context(), sessionKey{}, se), token)
	se.ctx = ctx
	return se, err
}

// bySession finds the member of a request's session, and moves the session's expiry.
// During a stream it is called again, and several goroutines may call it.
func (s *Server) bySession(c *call) (desk.Principal, error) {
	se, err := s.session(c.r)
	if err != nil {
		return desk.Principal{}, err
	}
	if se.found == nil {
		return desk.Principal{}, errSignedOut
	}
	p, err := s.app.Access.Member(se.ctx, se.found.Workspace, se.found.Member)
	if err != nil || c.w.Begun() {
		return p, err
	}
	return p, s.store(c, se)
}

var errSignedOut = desk.Errorf(desk.Unauthorized, "you are signed out")

// store stores a session if it has changed or a new expiry is due. Then it gives the
// browser the cookie.
func (s *Server) store(c *call, se *session) error {
	token, _, err := s.sessions.Commit(se.ctx)
	if err == nil && !se.until.IsZero() {
		s.sessions.WriteSessionCookie(se.ctx, c.w, token, se.until)
	}
	return err
}

// begin signs a member in. A new session replaces the browser's old one.
func (c *call) begin(p desk.Principal, values map[string]string) error {
	se, err := c.s.session(c.r)
	if err == nil {
		err = c.s.sessions.RenewToken(se.ctx)
	}
	if err == nil {
		err = c.s.sessions.Clear(se.ctx)
	}
	if err != nil {
		return err
	}
	for name, value := range values {
		c.s.sessions.Put(se.ctx, name, value)
	}
	se.begun = c.s.app.Access.NewSession(p)
	return c.s.store(c, se)
}

// end ends the browser's session.
func (c *call) end() error {
	se, err := c.s.session(c.r)
	if err == nil {
		err = c.s.sessions.Destroy(se.ctx)
	}
	if err == nil {
		c.s.sessions.WriteSessionCookie(se.ctx, c.w, "", time.Time{})
	}
	return err
}

// sessionText returns a value of the session, or "".
func (c *call) sessionText(name string) (string, error) {
	se, err := c.s.session(c.r)
	if err != nil {
		return "", err
	}
	return c.s.sessions.GetString(se.ctx, name), nil
}

// byLink reports whether the member has signed in by a link a short time ago.
func (c *call) byLink() (bool, error) {
	text, err := c.sessionText(byLinkAt)
	if err != nil || text == "" {
		return false, err
	}
	at, err := strconv.ParseInt(text, 10, 64)
	return err == nil && c.now.UnixMilli()-at < desk.LinkLife.Milliseconds(), nil
}

// others returns the members of other workspaces to whom the browser can switch without
// a password.
func (c *call) others() (list []desk.Principal, err error) {
	se, err := c.s.session(c.r)
	if err != nil || se.found == nil {
		return nil, err
	}
	text := c.s.sessions.GetString(se.ctx, mayBe)
	proved := strings.Fields(c.s.sessions.GetString(se.ctx, provedAt))
	for i, ref := range strings.Fields(text) {
		w, m, _ := strings.Cut(ref, "/")
		ws, _ := desk.ParseID(w)
		id, _ := desk.ParseID(m)
		p, err := c.s.app.Access.Member(c.r.Context(), ws, id)
		if desk.IsType(err, desk.Unauthorized) {
			continue // the member was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		signedOut := se.found.BegunAt < p.Member.SessionsFrom // a session of an older release has no proofs
		if len(proved) > 0 {
			signedOut = i >= len(proved) || proved[i] != numberOf(p)
		}
		if signedOut { // since the password was given, all sessions of this member were ended
			continue
		}
		list = append(list, p)
	}
	return list, nil
}

// numberOf returns the number that the session must have as its proof for a member.
func numberOf(p desk.Principal) string {
	return strconv.FormatInt(int64(p.Member.SessionsFrom), 10)
}

// remember gives the browser a cookie with a setting for the look of pages.
func (c *call) remember(name, value string) {
	http.SetCookie(c.w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: 365 * 24 * 60 * 60, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: c.s.sessions.Cookie.Secure})
}
