package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"time"

	"parley/desk"
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
	limits := a.providers[d.Channel.Kind].Limits(d.Channel, func() string {
		hash := a.handleHash(d.Workspace, cmp.Or(d.Number, d.UserID))
		return hex.EncodeToString(hash[:16])
	})
	if len(limits.Buckets) == 0 {
		return nil
	}
	wait, ok, err := a.store.Pace(ctx, d.Workspace, limits.Buckets, longestPace)
	if err != nil {
		return err
	}
	if !ok {
		a.Metrics.sends.unavailable.Add(1)
		e := limits.HeldBack.Answer()
		e.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
		return e
	}
	if wait > 0 {
		<-time.After(wait) // at most longestPace, so a server that drains can wait for it
	}
	return nil
}
