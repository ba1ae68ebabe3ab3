package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"time"

	"parley/desk"
	"parley/provider"
)

// longestPace is how long a send waits at most. If it would have to wait longer, it is
// refused.
const longestPace = 2 * time.Second

// longestHold is how far in the future a place can be.
const longestHold = longestPace + desk.LongestBucket

// pace waits until the provider's limits allow one more message from the channel's
// number and to this person. The limits hold for all nodes together, because the places
// are in the database.
func (a *App) pace(ctx context.Context, d *outgoing) error {
	limits := a.limits(d.Channel, d.Workspace, cmp.Or(d.Number, d.UserID))
	wait, ok, err := a.place(ctx, d.Workspace, limits.Buckets)
	if err == nil && !ok {
		a.Metrics.sends.unavailable.Add(1)
		e := limits.HeldBack.Answer()
		e.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
		return e
	}
	return err
}

// limits returns the provider's limits for messages of a channel to a person.
func (a *App) limits(c *desk.Channel, ws desk.ID, person string) provider.Limits {
	return a.providers[c.Kind].Limits(c, func() string {
		hash := a.handleHash(ws, person)
		return hex.EncodeToString(hash[:16])
	})
}

// place takes a place in the buckets, and waits for its time. If that is too far away, ok is
// false, and wait says how far.
func (a *App) place(ctx context.Context, ws desk.ID, buckets []desk.Bucket) (wait time.Duration, ok bool, err error) {
	if len(buckets) == 0 {
		return 0, true, nil
	}
	wait, ok, err = a.store.Pace(ctx, ws, buckets, longestPace)
	if err == nil && ok && wait > 0 {
		<-time.After(wait) // at most longestPace, so a server that drains can wait for it
	}
	return wait, ok, err
}
