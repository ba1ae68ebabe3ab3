package app

import (
	"context"
	"time"

	"parley/desk"
)

// Releases counts what became of attempts that were to be released together.
type Releases struct {
	Released  int // now, as the caller says
	Same      int // before, as the caller says
	Otherwise int // settled otherwise meanwhile
	Running   int // may still be under way
}

// ReleaseMany records one decision on several attempts, each in a transaction of its own, as
// Release does. It ends early with an error that is not about one of the attempts; what was
// released by then stays.
func (a *App) ReleaseMany(ctx context.Context, p Principal, ids []desk.ID, sent bool) (r Releases, err error) {
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		_, changed, err := a.release(ctx, p, id, sent)
		switch {
		case err == nil && changed:
			r.Released++
		case err == nil:
			r.Same++
		case desk.IsType(err, desk.AttemptSettled), desk.IsType(err, desk.NotFound):
			r.Otherwise++
		case desk.IsType(err, desk.SendInProgress):
			r.Running++
		default:
			return r, err
		}
	}
	return r, nil
}

// releaseStep is how many attempts are looked for at a time.
const releaseStep = 100

// ReleaseOld records one decision on all attempts of a workspace that are in doubt and were
// made longer ago than age, by the database's clock, oldest first. It returns how many it
// released, also with an error; done is told after each step. Those that may still be under
// way stay. It may be repeated.
func (a *App) ReleaseOld(ctx context.Context, p Principal, age time.Duration, sent bool, done func(released int)) (released int, err error) {
	if err := p.Allow(desk.AttemptsWrite); err != nil {
		return 0, err
	}
	now, _, err := a.store.Clock(ctx)
	if err != nil {
		return 0, err
	}
	newest := now - desk.Time(age.Milliseconds())
	for after, more := (desk.ID{}), true; more; {
		list, err := a.store.OldestInDoubt(ctx, p.Workspace(), after, releaseStep)
		if err != nil {
			return released, err
		}
		var ids []desk.ID
		for _, at := range list {
			if after = at.ID; at.CreatedAt <= newest { // ids of several processes are not quite in the order of time
				ids = append(ids, at.ID)
			}
		}
		r, err := a.ReleaseMany(ctx, p, ids, sent)
		if released += r.Released; err != nil {
			return released, err
		}
		done(released)
		more = len(list) == releaseStep
	}
	return released, nil
}
