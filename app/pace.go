package app

import (
	"context"
	"encoding/hex"
	"math"
	"time"

	"parley/desk"
)

// What the provider takes: of a number so many messages a second, unless the operator
// says otherwise, and to one person ten at once and then one in six seconds.
const (
	perSecond    = 80
	pairInterval = 6 * time.Second
	pairBurst    = 10
)

// longestPace is how long a send is held back at most. What would take longer is refused.
const longestPace = 2 * time.Second

// pace waits until the provider may take one more message, from the channel's number and
// to this person. It counts for all nodes, since the places are kept in the database.
func (a *App) pace(ctx context.Context, d *Dispatch) error {
	if d.Channel.Kind != desk.WhatsAppChannel {
		return nil
	}
	rate := d.Channel.Account.PerSecond
	if rate == 0 {
		rate = perSecond
	}
	hash := a.handleHash(d.Workspace, d.Number)
	channel := d.Channel.ID.String()
	wait, ok, err := a.store.Pace(ctx, d.Workspace, []Bucket{
		{"number " + channel, time.Second / time.Duration(rate), 1},
		{"pair " + channel + " " + hex.EncodeToString(hash[:16]), pairInterval, pairBurst},
	}, longestPace)
	if err != nil {
		return err
	}
	if !ok {
		return tooFast(wait)
	}
	if wait > 0 {
		<-time.After(wait) // which is short, also for a server that drains
	}
	return nil
}

func tooFast(wait time.Duration) error {
	e := desk.Errorf(desk.ProviderUnavailable, "parley holds this message back, since the provider takes only so many a second from a number, and to one person ten at once and then one in six seconds: nothing was sent, send it again later, with the same Idempotency-Key")
	e.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
	e.Details = desk.Failure{Code: 130429, Title: "Held back by parley, to stay within the provider's limits", Fix: "Send more slowly."}
	return e
}
