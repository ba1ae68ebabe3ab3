package broadcast

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

// A shelf is a store with one broadcast, and with rows that were claimed, newest first: At is when.
type shelf struct {
	store.Store
	b    desk.Broadcast
	rows []*desk.BroadcastRow
	ours bool // the process has the lease
	puts int  // how often the broadcast was stored
}

func (s *shelf) NewestClaims(_ context.Context, _, _ desk.ID, since desk.Time, limit int) ([]*desk.BroadcastRow, error) {
	rows := slices.DeleteFunc(slices.Clone(s.rows), func(r *desk.BroadcastRow) bool { return r.At < since })
	return rows[:min(len(rows), limit)], nil
}

func (s *shelf) InTx(_ context.Context, _ desk.ID, f func(store.Tx) error) error {
	return f(shelfTx{s: s})
}

type shelfTx struct {
	store.Tx
	s *shelf
}

func (tx shelfTx) Leased(task string, holder desk.ID) (int64, bool, error) {
	return 0, tx.s.ours && task == desk.BroadcastTask && holder == desk.ID{2}, nil
}

func (tx shelfTx) Broadcast(desk.ID) (*desk.Broadcast, error) {
	b := tx.s.b
	return &b, nil
}

func (tx shelfTx) PutBroadcast(b *desk.Broadcast) error {
	tx.s.b = *b
	tx.s.puts++
	return nil
}

func (shelfTx) Append(...desk.Event) error { return nil }

// TestUpdate_lease: a process that has lost its lease changes nothing of a broadcast: neither its
// state, nor what it waits for, nor when it was driven.
func TestUpdate_lease(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Service, *desk.Broadcast) error{
		"pause": func(a *Service, b *desk.Broadcast) error {
			return a.pause(context.Background(), &drive{}, b, desk.PausedTemplate)
		},
		"wait": func(a *Service, b *desk.Broadcast) error {
			return a.waits(context.Background(), &drive{}, b, desk.WaitsForPace, 9)
		},
		"driven": func(a *Service, b *desk.Broadcast) error {
			return a.update(context.Background(), &drive{}, b.ID, b.State, func(_ store.Tx, b *desk.Broadcast) error {
				b.DrivenAt = 9
				return nil
			})
		},
	} {
		for _, ours := range []bool{true, false} {
			s := &shelf{b: desk.Broadcast{ID: desk.ID{1}, State: desk.BroadcastRunning}, ours: ours}
			a := &Service{Deps: Deps{Store: s, Now: func() desk.Time { return 1 }, Log: slog.New(slog.DiscardHandler)}, holder: func() desk.ID { return desk.ID{2} }}
			read := s.b
			if err := change(a, &read); err != nil || (s.puts == 1) != ours {
				t.Errorf("%s: stored %d times, %v; it has the lease: %t", what, s.puts, err, ours)
			}
		}
	}
}

// TestMustPause: of the outcomes since the start of the run, the newest 200 pause a broadcast,
// however many messages are under way. So do 200 that were the newest while the provider may still
// have had to report them.
func TestMustPause(t *testing.T) {
	t.Parallel()
	const bad, good, sent, flying = desk.RowFailed, desk.RowDelivered, desk.RowSent, desk.RowSending
	const fast, slow = 12, 10_001 // milliseconds between two claims
	type part struct {
		n  int
		is desk.RowStatus
	}
	for name, c := range map[string]struct {
		newest []part
		run    int // how many of them are of this run
		apart  desk.Time
		want   desk.BroadcastReason
	}{
		"few bad ones":                 {[]part{{159, good}, {40, bad}, {1, good}, {64, bad}}, 264, slow, ""},
		"one more":                     {[]part{{159, good}, {41, bad}, {64, good}}, 264, slow, desk.PausedFailures},
		"old bad ones":                 {[]part{{200, good}, {64, bad}}, 264, slow, ""},
		"behind those under way":       {[]part{{64, flying}, {136, good}, {64, bad}}, 264, slow, desk.PausedFailures},
		"of an earlier run":            {[]part{{10, good}, {100, bad}}, 10, slow, ""},
		"too few, with an earlier run": {[]part{{49, bad}, {100, bad}}, 49, slow, ""},
		"enough of this run":           {[]part{{50, bad}, {150, good}}, 50, slow, desk.PausedFailures},
		"reported late":                {[]part{{64, flying}, {1, good}, {335, sent}, {60, bad}, {40, sent}}, 500, fast, desk.PausedFailures},
		"reported late, few":           {[]part{{64, flying}, {1, good}, {335, sent}, {40, bad}, {200, sent}}, 640, fast, ""},
		"none older than a report":     {[]part{{800, sent}, {1, good}, {14, bad}, {249, sent}}, 1064, fast, ""},
		"too old to be reported":       {[]part{{64, flying}, {1000, sent}, {200, bad}}, 1264, fast, ""},
	} {
		const now = 1e7
		s := &shelf{}
		for _, p := range c.newest {
			for range p.n {
				s.rows = append(s.rows, &desk.BroadcastRow{Status: p.is, At: now - c.apart*desk.Time(len(s.rows))})
			}
		}
		a := &Service{Deps: Deps{Store: s, Machine: hundred{}}}
		channel := desk.Channel{ID: desk.ID{1}}
		settings := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, []desk.Channel{channel})
		b := &desk.Broadcast{Channel: channel.ID, ResumedAt: now - c.apart*desk.Time(c.run-1), MaxFailed: desk.UsualMaxFailed}
		why, err := a.mustPause(t.Context(), &drive{}, settings, b, newRunner())
		if err != nil || why != c.want {
			t.Errorf("%s: %q, %v; want %q", name, why, err, c.want)
		}
	}
}
