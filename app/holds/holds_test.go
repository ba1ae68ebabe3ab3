package holds_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/app/holds"
	"parley/desk"
)

// A caller enters with one key.
type caller struct {
	t    *testing.T
	keys holds.Keys
	late <-chan time.Time
	down chan struct{}
}

func (c *caller) enter(hash byte) (*holds.Hold, error) {
	return c.keys.Enter(context.Background(), desk.ID{1}, "k", [32]byte{hash}, c.late, c.down)
}

// TestEnter: a call with another body is refused once the holder has the key for itself, and no
// sooner; one with the same body gets the holder's refusal, if it may.
func TestEnter(t *testing.T) {
	t.Parallel()
	refusal := desk.Errorf(desk.InvalidVariables, "no")
	type outcome struct {
		entered bool
		err     error
	}
	for name, c := range map[string]struct {
		hash  byte
		plans bool
		ends  bool
		with  error
		want  desk.ErrorType // "": the call looks again
	}{
		"another body, the holder only looks":     {hash: 2, ends: true},
		"another body":                            {hash: 2, plans: true, want: desk.IdempotencyKeyReused},
		"the same body":                           {hash: 1, plans: true, ends: true},
		"the same body, refused":                  {hash: 1, plans: true, ends: true, with: refusal, want: desk.InvalidVariables},
		"the same body, the database was away":    {hash: 1, plans: true, ends: true, with: desk.Errorf(desk.Unavailable, "no")},
		"the same body, who may not":              {hash: 1, plans: true, ends: true, with: desk.Errorf(desk.Forbidden, "no")},
		"the same body, another error":            {hash: 1, plans: true, ends: true, with: errors.New("stale")},
		"the same body, the holder takes long":    {hash: 1, plans: true, want: desk.SendInProgress},
		"another body, the holder looks for long": {hash: 2, want: desk.SendInProgress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all := &caller{t: t, late: time.After(time.Minute)}
				first, err := all.enter(1)
				if first == nil || err != nil {
					t.Fatalf("the first call: %v %v", first, err)
				}
				got := make(chan outcome, 1)
				go func() {
					hold, err := all.enter(c.hash)
					got <- outcome{hold != nil, err}
				}()
				synctest.Wait()
				if len(got) > 0 {
					t.Fatalf("it did not wait: %v", <-got)
				}
				if c.plans {
					first.Plan()
				}
				if c.ends {
					first.Leave(c.with)
				}
				o := <-got
				if o.entered || c.want == "" && o.err != nil || c.want != "" && !desk.IsType(o.err, c.want) {
					t.Errorf("%v", o)
				}
				if c.ends {
					if hold, err := all.enter(3); hold == nil || err != nil {
						t.Errorf("the next call: %v %v", hold, err)
					}
				}
			})
		})
	}
}

// TestEnter_drained: a server that stops lets nobody wait.
func TestEnter_drained(t *testing.T) {
	t.Parallel()
	all := &caller{t: t, down: make(chan struct{})}
	if hold, err := all.enter(1); hold == nil || err != nil {
		t.Fatalf("%v %v", hold, err)
	}
	close(all.down)
	if _, err := all.enter(1); !desk.IsType(err, desk.SendInProgress) {
		t.Errorf("%v", err)
	}
}
