package steps_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// TestInGroups: further steps run as long as each step processes a whole group. They end
// with the first error, even if the failing step processed a whole group.
func TestInGroups(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx   context.Context
		steps []int
		err   error // of the last step
	}{
		"nothing":                {t.Context(), []int{0}, nil},
		"less than a group":      {t.Context(), []int{4}, nil},
		"groups and less":        {t.Context(), []int{5, 5, 1}, nil},
		"groups and nothing":     {t.Context(), []int{5, 0}, nil},
		"a failure":              {t.Context(), []int{5, 0}, failed},
		"a failure of a full":    {t.Context(), []int{5, 5}, failed},
		"a failure of the first": {t.Context(), []int{5}, failed},
		"no time":                {ended, nil, nil},
	} {
		calls := 0
		err := steps.InGroups(c.ctx, 5, func(limit int) (int, error) {
			if limit != 5 || calls == len(c.steps) {
				t.Errorf("%s: step %d, limit %d", name, calls, limit)
				return 0, nil
			}
			calls++
			if calls == len(c.steps) {
				return c.steps[calls-1], c.err
			}
			return c.steps[calls-1], nil
		})
		if !errors.Is(err, c.err) || calls != len(c.steps) {
			t.Errorf("%s: %v after %d steps", name, err, calls)
		}
	}
}

// TestAbreast: each element gets its step, not too many at a time, and all errors are
// returned, but not that a workspace was deleted. After the end of the context, no step begins.
func TestAbreast(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	var mu sync.Mutex
	seen, running, most := 0, 0, 0
	full := make(chan struct{})
	step := func(n int) error {
		mu.Lock()
		seen++
		running++
		if most = max(most, running); running == 4 && seen == 4 {
			close(full)
		}
		mu.Unlock()
		<-full // four steps run at the same time
		mu.Lock()
		running--
		mu.Unlock()
		if n%2 == 0 {
			return failed
		}
		return nil
	}
	err := steps.Abreast(t.Context(), []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, step)
	if !errors.Is(err, failed) || seen != 9 || most != 4 {
		t.Errorf("%v; %d steps, %d at a time", err, seen, most)
	}
	for err, want := range map[error]bool{store.ErrNoWorkspace: false, desk.NotFoundf("no such file"): true} {
		if got := steps.Abreast(t.Context(), []int{1}, func(int) error { return err }); (got != nil) != want {
			t.Errorf("of %v, it returns %v", err, got)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := steps.Abreast(ended, []int{1, 2}, step); err != nil || seen != 9 {
		t.Errorf("%v; %d steps after the end", err, seen-9)
	}
}
