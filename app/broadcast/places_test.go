package broadcast

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
)

// TestPlaces: workspaces share the places of a process. One that comes later has its turn soon, and
// however many there are, each is served as often as the others.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		ctx, cancel := context.WithCancel(t.Context())
		const workspaces = flights + 64
		sent, most := make([]atomic.Int64, workspaces), make([]atomic.Int64, workspaces)
		drive := func(n int) {
			ws := desk.ID{byte(n >> 8), byte(n), 1}
			for ctx.Err() == nil {
				within, end := context.WithTimeout(ctx, lookEvery)
				taken := p.take(within, ws)
				end()
				if !taken {
					time.Sleep(time.Duration(200+n%7) * time.Millisecond)
					continue
				}
				sent[n].Add(1)
				most[n].Store(max(most[n].Load(), int64(p.of(ws))))
				go func() {
					time.Sleep(time.Second)
					p.leave(ws)
				}()
			}
		}
		for n := range 4 {
			go drive(n)
		}
		time.Sleep(1500 * time.Millisecond)
		for n := range 4 {
			if most := most[n].Load(); most != desk.BroadcastFlights {
				t.Errorf("one of four workspaces has %d places, want %d", most, desk.BroadcastFlights)
			}
		}
		go drive(4)
		time.Sleep(1500 * time.Millisecond) // in which the places of the others become free
		if sent[4].Load() == 0 {
			t.Error("a fifth workspace has to wait for long")
		}
		for n := 5; n < workspaces; n++ {
			go drive(n)
		}
		time.Sleep(10 * time.Second)
		before := make([]int64, workspaces)
		for n := range sent {
			before[n] = sent[n].Load()
		}
		time.Sleep(20 * time.Second)
		cancel()
		synctest.Wait()
		total := int64(0)
		for n := range sent {
			got := sent[n].Load() - before[n]
			if total += got; got < 8 || got > 32 {
				t.Errorf("workspace %d of %d was served %d times in 20 seconds", n, workspaces, got)
			}
		}
		if total < 19*flights || total > 21*flights {
			t.Errorf("%d messages in 20 seconds, want %d", total, 20*flights)
		}
		time.Sleep(2 * time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.taken) != 0 {
			t.Errorf("%d workspaces are left", len(p.taken))
		}
	})
}

// TestPlaces_share: of five workspaces that send, each has a fifth of the places, so that the last one
// need not wait for a place of the first.
func TestPlaces_share(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	const workspaces = 5
	for n := range workspaces {
		p.asks(desk.ID{byte(n)})
	}
	for n := range workspaces {
		ws := desk.ID{byte(n)}
		for range flights / workspaces {
			if !p.take(t.Context(), ws) {
				t.Fatalf("workspace %d has %d places, and gets no more", n, p.of(ws))
			}
		}
		if p.take(t.Context(), ws) {
			t.Errorf("workspace %d has more than its share", n)
		}
	}
}
