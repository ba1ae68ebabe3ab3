package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
	"parley/store/sqlite"
)

var leaps = flag.Bool("leaps", false, "let TestClocks try every leap of every clock: by a minute to a year, before, during and after a send")

// TestClocks: no change of a clock makes parley send a message twice, or hold a lease or a
// place in the pace for longer than its bound.
func TestClocks(t *testing.T) {
	t.Parallel()
	over := strings.HasPrefix(t.Name(), overPostgres)
	c := &campaign{T: t, oneMachine: !over, calls: map[string]int{}}
	if over {
		d := clocked(t, databases.Database(t))
		c.store, c.setDatabase = opened(t, d.open), d.set
	} else {
		var ahead atomic.Int64
		c.setDatabase = func(d time.Duration) { ahead.Store(int64(d)) }
		c.store = opened(t, func() (worldStore, error) {
			return sqlite.Open(t.Context(), sqlite.Config{
				Serves: true, Path: filepath.Join(t.TempDir(), "parley.db"), Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			})
		})
	}
	c.begin()
	now, _, err := c.store.Clock(t.Context())
	must(t, err)
	c.setDatabase(time.Hour)
	if later, _, err := c.store.Clock(t.Context()); err != nil || later < now+3_600_000 {
		t.Fatalf("the clock is set an hour ahead, from %d to %d, %v", now, later, err)
	}
	day := 24 * time.Hour
	by := []time.Duration{time.Minute, 365 * day}
	if *leaps {
		by = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, day, 29 * day, 30 * day, 31 * day, 365 * day}
	}
	for _, whose := range []clocks{{true, true, true}, {false, true, false}, {true, false, false}} {
		if c.oneMachine && whose != (clocks{true, true, true}) {
			continue // two servers on one machine have the same clock
		}
		for _, b := range by {
			for _, ahead := range []time.Duration{b, -b} {
				for _, when := range []leapTime{beforeSend, insideSend, afterSend} {
					for _, lost := range []bool{false, true} {
						c.leap(whose, ahead, when, lost)
					}
				}
				c.bounds(whose, ahead)
			}
		}
	}
	c.live()
}

// clocks are the clocks that are set to a wrong time.
type clocks struct{ database, first, second bool }

// A leapTime is the moment of a send at which the clocks are set.
type leapTime string

const (
	beforeSend leapTime = "before"
	insideSend leapTime = "inside"
	afterSend  leapTime = "after"
)

type campaign struct {
	*testing.T
	store       store.Store
	setDatabase func(time.Duration)
	oneMachine  bool // all servers use the same clock as the store
	nodes       [2]*app.App
	ahead       [2]atomic.Int64 // of the nodes' clocks
	up          atomic.Int64    // of the monotonic clock
	made        atomic.Int64
	ws          desk.ID
	key         string

	inside func()         // called while a message is on its way
	lost   bool           // the provider's answer is lost
	calls  map[string]int // calls of the provider, by the text that was sent
	keys   []string       // all keys, in the order of their sends
	done   []string       // the keys whose message the provider accepted
}

func (c *campaign) begin() {
	c.Helper()
	for n := range c.nodes {
		c.nodes[n] = app.New(app.Deps{
			Store: c.store, Providers: map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: (*campaignProvider)(c)},
			Answer: func(m *desk.SentMessage) []byte { return []byte(m.Message.ID.String()) },
			Now:    func() time.Time { return time.Now().Add(time.Duration(c.ahead[n].Load())) },
			Uptime: func() time.Duration { return time.Duration(c.up.Load()) },
			NewID: func() (id desk.ID) { // as UUIDv7 of the node's clock
				at := desk.TimeOf(time.Now().Add(time.Duration(c.ahead[n].Load())))
				binary.BigEndian.PutUint64(id[:], uint64(at)<<16)
				binary.BigEndian.PutUint64(id[8:], uint64(c.made.Add(1)))
				return id
			},
			Random: func(b []byte) { _, _ = rand.Read(b) }, Secret: bytes.Repeat([]byte{1}, 32), Log: slog.New(slog.DiscardHandler),
		})
	}
	a, ctx := c.nodes[0], c.Context()
	w, err := a.CreateWorkspace(ctx, "Acme", "TR")
	must(c.T, err)
	c.ws = w.ID
	name, all := "test", "all"
	operator, err := a.Operator(ctx, c.ws)
	must(c.T, err)
	c.key, _, err = a.CreateKey(ctx, operator, app.KeyEdit{Name: &name, Permissions: &all})
	must(c.T, err)
	_, _, err = a.AddChannel(ctx, operator, app.NewChannel{Kind: desk.SandboxChannel, ExternalID: "test"})
	must(c.T, err)
}

// A campaignProvider counts the messages that it gets.
type campaignProvider campaign

func (p *campaignProvider) Send(_ context.Context, d provider.Dispatch) (provider.Receipt, error) {
	p.calls[d.Components[0].Parameters[0].Text]++
	if p.inside != nil {
		p.inside()
	}
	if p.lost {
		return provider.Receipt{}, errors.New("the connection was lost")
	}
	return provider.Receipt{ExternalID: d.Attempt.String()}, nil
}

func (*campaignProvider) Templates(context.Context, provider.Access) ([]desk.TemplateSource, error) {
	return []desk.TemplateSource{{Name: "t", Language: "en", Source: `{"name":"t","language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"BODY","text":"Hi {{1}}"}]}`}}, nil
}

func (*campaignProvider) Read(desk.InboundItem) ([]provider.Update, *provider.Later, error) {
	return nil, nil, nil
}

func (*campaignProvider) Check(context.Context, provider.Access) ([]provider.Problem, error) {
	return nil, nil
}

func (*campaignProvider) CheckAccount(*desk.Channel, *provider.Secrets) error { return nil }

func (*campaignProvider) Limits(*desk.Channel, func() string) provider.Limits {
	return provider.Limits{}
}

func (*campaignProvider) Identities(string, string) []desk.Identity { return nil }

// set sets some clocks ahead, and corrects the others.
func (c *campaign) set(whose clocks, ahead time.Duration) {
	pick := func(leaps bool) time.Duration {
		if leaps {
			return ahead
		}
		return 0
	}
	c.setDatabase(pick(whose.database))
	c.ahead[0].Store(int64(pick(whose.first)))
	c.ahead[1].Store(int64(pick(whose.second)))
}

// send makes a call with this key on a node.
func (c *campaign) send(node int, key string) error {
	p, err := c.nodes[node].Access.Authenticate(c.Context(), c.key)
	if err != nil {
		return err
	}
	_, err = c.nodes[node].Send(c.Context(), p, &desk.SendRequest{
		Key: key, Phone: desk.Identity{Kind: desk.KindPhone, Value: "905321112233"}, Template: "t", Language: "en", OptInConfirmed: true,
		Variables: desk.TemplateValues{List: []string{key}},
	}, desk.ID{})
	return err
}

// repeat runs the background work, and then repeats all calls on both nodes.
func (c *campaign) repeat(when string, keys ...string) {
	c.Helper()
	for n, a := range c.nodes {
		must(c.T, a.Sweep(c.Context()))
		must(c.T, a.Forget(c.Context()))
		for _, key := range keys {
			if err := c.send(n, key); err != nil && !desk.IsType(err, desk.SendOutcomeUnknown) && !desk.IsType(err, desk.SendInProgress) {
				c.Errorf("%s, %s: %v", key, when, err)
			}
			if c.calls[key] != 1 {
				c.Errorf("%s, %s: sent %d times", key, when, c.calls[key])
			}
		}
	}
}

// leap makes a call while some clocks are wrong, and repeats it after they are corrected.
func (c *campaign) leap(whose clocks, ahead time.Duration, when leapTime, lost bool) {
	c.Helper()
	key := fmt.Sprintf("%v by %v, %s, lost %v", whose, ahead, when, lost)
	c.keys, c.lost, c.inside = append(c.keys, key), lost, nil
	if !lost {
		c.done = append(c.done, key)
	}
	switch when {
	case beforeSend:
		c.set(whose, ahead)
	case insideSend:
		c.inside = func() { c.set(whose, ahead) }
	}
	if err := c.send(0, key); lost != desk.IsType(err, desk.SendOutcomeUnknown) || !lost && err != nil {
		c.Errorf("%s: %v", key, err)
	}
	c.inside = nil
	c.set(whose, ahead)
	c.repeat("while the clocks are off", key)
	c.set(clocks{}, 0)
	c.repeat("when they are right again", key)
	c.lost = false
}

// bounds takes leases and places while some clocks are wrong. After the clocks are
// corrected, no lease or place is held for longer than its bound.
func (c *campaign) bounds(whose clocks, ahead time.Duration) {
	c.Helper()
	ctx, name := c.Context(), fmt.Sprintf("%v by %v", whose, ahead)
	bucket := desk.Bucket{Name: name, Interval: time.Second, Burst: 2}
	at := &desk.Attempt{ID: randomID(), Key: name, Actor: desk.Actor{Kind: desk.ByKey, ID: randomID()}, Phase: desk.Dispatching, CreatedAt: 1, Plan: desk.Plan{
		Channel: randomID(), Contact: randomID(), Conversation: randomID(), Message: randomID(), Template: "t", Language: "en", Number: "905321112233",
	}}
	c.set(whose, ahead)
	for range 3 {
		_, _, err := c.store.Pace(ctx, c.ws, []desk.Bucket{bucket}, 2*time.Second)
		must(c.T, err)
	}
	got, err := c.store.Lease(ctx, c.ws, name, 30_000)
	must(c.T, err)
	if !got {
		c.Fatalf("%s: there is no lease", name)
	}
	must(c.T, c.store.InTx(ctx, c.ws, func(tx store.Tx) error { // the lease of a process that dies now
		at.Lease = desk.LeaseFor(tx.Now(), 30_000)
		if err := tx.PutAttempt(at); err != nil {
			return err
		}
		return tx.TakeKey(name, at.ID)
	}))
	c.set(clocks{}, 0)
	wait, _, err := c.store.Pace(ctx, c.ws, []desk.Bucket{bucket}, 2*time.Second)
	must(c.T, err)
	if wait > 4*time.Second {
		c.Errorf("%s: a place is held for %v", name, wait)
	}
	const bound = 36 * time.Second // a lease, and the margin
	c.set(clocks{database: true, first: c.oneMachine, second: c.oneMachine}, bound)
	if got, err := c.store.Lease(ctx, c.ws, name, 30_000); err != nil || !got {
		c.Errorf("%s: the lease still holds: %v", name, err)
	}
	must(c.T, c.nodes[1].Sweep(ctx))
	held, err := c.store.AttemptOfKey(ctx, c.ws, name)
	must(c.T, err)
	if held == nil || held.Phase != desk.InDoubt {
		c.Errorf("%s: the attempt of a dead process is %+v", name, held)
	}
	c.set(clocks{}, 0)
}

// randomID returns an id that does not depend on a time.
func randomID() (id desk.ID) {
	_, _ = rand.Read(id[:])
	return id
}

// live simulates 29 days of service, with repeated calls and wrong clocks. Two days after
// that, the same calls send new messages.
func (c *campaign) live() {
	c.Helper()
	hours := func(n int) {
		for range n {
			c.up.Add(int64(time.Hour))
			for range 2 { // the second look sees that the counter was raised
				for _, a := range c.nodes {
					must(c.T, a.Clock.Look(c.Context()))
				}
			}
		}
	}
	hours(1)
	for _, days := range []int{1, 6, 21, 1} { // 29 in all
		hours(24 * days)
		c.set(clocks{true, true, true}, 400*24*time.Hour)
		c.repeat("days later, a year ahead", c.keys...)
		c.set(clocks{true, true, true}, -400*24*time.Hour)
		c.repeat("days later, a year behind", c.keys...)
		c.set(clocks{}, 0)
		c.repeat("days later", c.keys...)
	}
	hours(48)
	for _, key := range c.keys {
		if err := c.send(1, key); err != nil && !desk.IsType(err, desk.SendOutcomeUnknown) {
			c.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range c.done {
		if c.calls[key] != 2 {
			c.Errorf("%s: sent %d times after its key has expired", key, c.calls[key])
		}
		c.calls[key] = 1
	}
	for _, key := range c.keys {
		if c.calls[key] != 1 {
			c.Errorf("%s: sent %d times, though nobody knows whether it went out", key, c.calls[key])
		}
	}
}
