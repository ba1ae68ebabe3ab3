package broadcast

import (
	"context"
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
		const workspaces = 2*flights + 44
		sent, most := make([]int, workspaces), make([]int, workspaces)
		drive := func(n int) {
			ws := desk.ID{byte(n >> 8), byte(n), 1}
			for ctx.Err() == nil {
				within, end := context.WithTimeout(ctx, lookEvery)
				taken := p.take(within, ws)
				end()
				if !taken {
					time.Sleep(time.Duration(50+n%7) * time.Millisecond)
					continue
				}
				sent[n]++
				most[n] = max(most[n], p.of(ws))
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
			if most[n] != desk.BroadcastFlights {
				t.Errorf("one of four workspaces has %d places, want %d", most[n], desk.BroadcastFlights)
			}
		}
		go drive(4)
		time.Sleep(600 * time.Millisecond) // in which the places of the others become free
		if sent[4] == 0 {
			t.Error("a fifth workspace has to wait for long")
		}
		for n := 5; n < workspaces; n++ {
			go drive(n)
		}
		time.Sleep(10 * time.Second)
		before := append([]int(nil), sent...)
		time.Sleep(50 * time.Second)
		cancel()
		synctest.Wait()
		total := 0
		for n := range sent {
			got := sent[n] - before[n]
			if total += got; got < 12 || got > 35 {
				t.Errorf("workspace %d of %d was served %d times in 50 seconds", n, workspaces, got)
			}
		}
		if total < 49*flights || total > 51*flights {
			t.Errorf("%d messages in 50 seconds, want %d", total, 50*flights)
		}
		time.Sleep(2 * time.Second)
		if len(p.taken) != 0 {
			t.Errorf("%d workspaces are left", len(p.taken))
		}
	})
}
