package storetest

import (
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

// metrics: the values cover all workspaces.
func metrics(t *testing.T, s store.Store) {
	check := func(want store.Metrics) {
		t.Helper()
		got, err := s.Metrics(t.Context(), 1_000)
		must(t, err)
		if got.Bytes <= 0 || got.Bytes > 1<<30 {
			t.Errorf("the database has %d bytes", got.Bytes)
		}
		clock, _, err := s.Clock(t.Context())
		must(t, err)
		if got.Now <= 0 || got.Now > clock {
			t.Errorf("the database's clock was %d, and is %d", got.Now, clock)
		}
		got.Bytes, got.Now, got.Broadcasts = 0, 0, nil // broadcastRecords counts broadcasts
		equal(t, "metrics", got, want)
	}
	check(store.Metrics{})
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)

	free, disabled, blocked, pardoned, expired := newChannel(), newChannel(), newChannel(), newChannel(), newChannel()
	disabled.Enabled = false
	blocked.Status = desk.AccountStatus{Blocked: "a violation", Until: 1_001}
	pardoned.Status = desk.AccountStatus{Blocked: "a violation", Until: 1_000}
	expired.Status = desk.AccountStatus{Blocked: "expired", Code: 190, Trace: "x", Since: 7, ByCall: true, Token: true}
	var channels []store.ChannelMetrics
	for i, c := range []*desk.Channel{free, disabled, blocked, pardoned, expired} {
		c.ExternalID = string(rune('a' + i))
		of := ws
		if c == pardoned {
			of = other
		}
		edit(t, s, of, desk.Change{Channel: c})
		channels = append(channels, store.ChannelMetrics{ID: c.ID, Up: c == free || c == pardoned})
	}
	slices.SortFunc(channels, func(a, b store.ChannelMetrics) int { return slices.Compare(a.ID[:], b.ID[:]) })
	check(store.Metrics{Channels: channels})

	doubted, elsewhere, under, done := newAttempt("1"), newAttempt("1"), newAttempt("1"), newAttempt("1")
	doubted.Phase, elsewhere.Phase = desk.InDoubt, desk.InDoubt
	done.Settle(desk.Done, 5)
	putAttempts(t, s, ws, doubted, under, done)
	putAttempts(t, s, other, elsewhere)
	putInbound(t, s, ws, desk.InboundItem{Channel: free.ID, ID: newID(), Due: 5, Body: []byte("x")})
	putInbound(t, s, other, desk.InboundItem{Channel: pardoned.ID, ID: newID(), Due: 2_000, ReceivedAt: 5})
	for _, at := range []desk.Time{7, 9, 8} {
		putCallback(t, s, ws, newCallback(expired.ID, at))
	}
	putCallback(t, s, other, newCallback(free.ID, 99)) // in another workspace
	for i := range channels {
		if channels[i].ID == expired.ID {
			channels[i].Callback = 9
		}
	}
	newJob(t, s, ws, newID(), 5)
	ended := newJob(t, s, other, newID(), 5)
	ended.Ended = true
	commit(t, s, other, func(tx store.Tx) error { return tx.PutMediaJob(ended) })
	check(store.Metrics{InDoubt: 2, Waiting: 2, Media: 1, Channels: channels})

	// The time of the newest callback is kept after the callback is deleted.
	for n := 1; n > 0; {
		var err error
		n, err = s.ForgetCallbacks(t.Context(), ws, 0, 2)
		must(t, err)
	}
	check(store.Metrics{InDoubt: 2, Waiting: 2, Media: 1, Channels: channels})
}
