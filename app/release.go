package app

import (
	"context"
	"time"

	"parley/desk"
	"parley/store"
)

// Releases counts the results of releasing several attempts.
type Releases struct {
	Released  int // released by this call
	Same      int // settled before, with the same result
	Otherwise int // settled before, with another result
	Running   int // may still be under way
}

// ReleaseMany records one decision on several attempts like Release, each in a transaction
// of its own. If an error is not about one of the attempts, ReleaseMany ends early; the
// attempts that it has released stay released.
func (a *App) ReleaseMany(ctx context.Context, p desk.Principal, ids []desk.ID, sent bool) (r Releases, err error) {
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

// releaseStep is how many attempts are read at a time.
const releaseStep = 100

// ReleaseOld records one decision on all attempts of a workspace that are in doubt and
// older than age by the database's clock, oldest first. After each step it calls the
// function done. It returns how many attempts it released, even if it fails. Attempts that
// may still be under way stay. ReleaseOld may be repeated.
func (a *App) ReleaseOld(ctx context.Context, p desk.Principal, age time.Duration, sent bool, done func(released int)) (released int, err error) {
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
			if after = at.ID; at.CreatedAt <= newest { // check each: ids of several processes are not exactly in the order of time
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

// settledAs says in words how a settled attempt ended.
var settledAs = map[desk.Phase]string{
	desk.Done: "the message was sent", desk.Refused: "the message was certainly not sent", desk.Released: "somebody has said that the message was not sent",
}

// Release records a person's decision on an attempt whose outcome is unknown: the message
// was sent, or it was not. The decision that it was not sent frees the key. If the same
// decision is recorded already, nothing changes. Release returns NotFound, AttemptSettled
// for an attempt with another end, and SendInProgress for one that may still be under way.
func (a *App) Release(ctx context.Context, p desk.Principal, id desk.ID, sent bool) (*desk.Attempt, error) {
	at, _, err := a.release(ctx, p, id, sent)
	return at, err
}

// release does the work of Release, and also reports whether it changed the attempt.
func (a *App) release(ctx context.Context, p desk.Principal, id desk.ID, sent bool) (at *desk.Attempt, changed bool, err error) {
	if err := p.Allow(desk.AttemptsWrite); err != nil {
		return nil, false, err
	}
	err = a.inTx(ctx, p.Workspace(), func(tx store.Tx, then *afterwards) (err error) {
		changed = false
		if err := p.Still(tx.Settings(), desk.AttemptsWrite, a.now()); err != nil {
			return err
		}
		if at, err = tx.Attempt(id); err != nil {
			return err
		}
		switch now := tx.Now(); { // by the database's clock
		case at == nil:
			return noAttempt()
		case at.Phase.Settled() && at.As(sent):
			return nil
		case at.Phase.Settled():
			e := desk.Errorf(desk.AttemptSettled, "the attempt is settled already, as %s: %s", at.Phase, settledAs[at.Phase])
			e.Details = desk.SettledAttempt{Phase: at.Phase}
			return e
		case at.Lease.Holds(now, a.bounds.lease()):
			e := desk.Errorf(desk.SendInProgress, "the attempt may still be under way: wait half a minute and try again")
			e.RetryAfter = at.Lease.Seconds(now)
			return e
		}
		changed = true
		now := a.now()
		if at.Phase == desk.Dispatching { // its process died, and Sweep has not marked the attempt yet
			at.Phase = desk.InDoubt
			if err := tx.Append(sendEvent(desk.SendInDoubt, at, at.Actor, now)); err != nil {
				return err
			}
		}
		if sent {
			return a.finish(ctx, tx, at, person{}, "", at.CreatedAt, now, p.Actor, then)
		}
		at.Settle(desk.Released, now)
		if err := tx.FreeKey(at.Key); err != nil {
			return err
		}
		if err := tx.PutAttempt(at); err != nil {
			return err
		}
		if err := a.Broadcasts.Follow(tx, at, false); err != nil {
			return err
		}
		return tx.Append(sendEvent(desk.SendSettled, at, p.Actor, now))
	})
	return at, changed, err
}
