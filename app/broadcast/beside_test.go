package broadcast

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/store"
)

// Slow claims are a machine with a slow database and a provider that is slower still.
type slowClaims struct {
	hundred
	mu                        sync.Mutex
	claims, most, answers, in int
}

func (*slowClaims) Pace(context.Context, desk.ID, *desk.Channel, string, func(desk.Bucket) bool) (time.Duration, bool, error) {
	return 0, true, nil
}

func (m *slowClaims) Fly(_ context.Context, _ desk.ID, _ *desk.Broadcast, _ *desk.Template, _ string, claim func(store.Tx, func(Sending) (*desk.Attempt, error)) (bool, error)) error {
	_, err := claim(slowTx{machine: m}, nil)
	m.mu.Lock()
	m.in++
	m.answers = max(m.answers, m.in)
	m.mu.Unlock()
	time.Sleep(time.Minute)
	return err
}

// A slowTx is a transaction of slowClaims.
type slowTx struct {
	store.Tx
	machine *slowClaims
}

func (tx slowTx) BroadcastToClaim(desk.ID, desk.ID) (*desk.Broadcast, bool, error) {
	m := tx.machine
	m.mu.Lock()
	m.claims++
	m.most = max(m.most, m.claims)
	m.mu.Unlock()
	time.Sleep(time.Second)
	m.mu.Lock()
	m.claims--
	m.mu.Unlock()
	return nil, false, nil
}

// besides returns a service as New makes it, as far as claims need it.
func besides(m Machine) *Service {
	began := time.Now()
	uptime := func() time.Duration { return time.Since(began) }
	return &Service{Deps: Deps{Machine: m, Uptime: uptime}, claiming: newClaiming(uptime), holder: func() desk.ID { return desk.ID{1} }}
}

// TestGiveWay: as long as others write, broadcasts of a process take a limited number of people a
// second, in the order in which they came; before and afterwards there is no limit.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := besides(nil)
		claimFor := func(d time.Duration) (n int) {
			for end := time.Now().Add(d); time.Now().Before(end); n++ {
				leave, err := a.claiming.wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Microsecond)
				leave()
			}
			return n
		}
		if n := claimFor(100 * time.Millisecond); n < 90_000 {
			t.Errorf("%d claims in a tenth of a second while nobody writes", n)
		}
		most := 10 * desk.BroadcastsBeside * runtime.GOMAXPROCS(0)
		if n := func() (n int) {
			for range 20 {
				a.GiveWay()
				n += claimFor(500 * time.Millisecond)
			}
			return n
		}(); n < most*9/10 || n > most+20 {
			t.Errorf("%d claims in ten seconds beside writes, want %d", n, most)
		}
		time.Sleep(desk.BroadcastsBesideFor)
		if n := claimFor(100 * time.Millisecond); n < 90_000 {
			t.Errorf("%d claims in a tenth of a second after the writes", n)
		}
		a.GiveWay()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.claiming.wait(ctx); err == nil {
			t.Error("a process that ends waits for a claim")
		}
	})
}

// TestClaimsAtOnce: a process claims few rows at a time, and the provider's answers don't count.
func TestClaimsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &slowClaims{}
		a := besides(m)
		var sends sync.WaitGroup
		for range 3 * claimsAtOnce {
			sends.Go(func() {
				_, _ = a.send(t.Context(), &drive{}, nil, &desk.Broadcast{}, nil, look{Row: &desk.BroadcastRow{}})
			})
		}
		sends.Wait()
		if m.most != claimsAtOnce || m.answers != 3*claimsAtOnce {
			t.Errorf("%d claims at a time, want %d; %d answers of the provider at a time", m.most, claimsAtOnce, m.answers)
		}
	})
}
