package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"
	"parley/store"
)

// accountAnswered stores what a call to the provider shows of the channel's account:
// refused, or nil if the call worked. channel is as it was at the time of the call. If
// the status has changed since then, the call's result is older and is ignored. A call
// that shows nothing new costs nothing.
func (a *App) accountAnswered(ctx context.Context, ws desk.ID, channel *desk.Channel, refused *desk.AccountRefusal) {
	if refused == nil && channel.Status.Blocked == "" {
		return
	}
	news := refused.Status(a.now())
	if _, changes := channel.Status.Next(news); !changes {
		return
	}
	changed := false
	err := store.UpdateSettings(ctx, a.store, ws, byProvider(channel.ID), a.now, func(s *desk.Settings) (desk.Change, error) {
		edited := *s.Channel(channel.ID)
		if changed = edited.Status == channel.Status; !changed {
			return desk.Change{}, nil
		}
		edited.Status = news
		return desk.Change{Channel: &edited}, nil
	})
	switch {
	case err != nil: // the next call reports it again
		a.log.WarnContext(ctx, "a channel's account status can't be stored", "workspace_id", ws, "channel_id", channel.ID, "err", err)
	case changed:
		a.logAccountStatus(ctx, ws, channel.ID, news)
	}
}

// logAccountStatus logs that a channel's account status has changed.
func (a *App) logAccountStatus(ctx context.Context, ws, channel desk.ID, now desk.AccountStatus) {
	switch {
	case now.Blocked == "":
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes messages", "workspace_id", ws, "channel_id", channel)
	case now.ByCall:
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes no messages", "workspace_id", ws, "channel_id", channel, "code", now.Code, "fbtrace_id", now.Trace)
	case now.Replies:
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes only replies", "workspace_id", ws, "channel_id", channel, "reason", now.Blocked)
	default:
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes no messages", "workspace_id", ws, "channel_id", channel, "reason", now.Blocked)
	}
}

// fetchAnswered is accountAnswered for a fetch of templates. A fetch works in many
// states in which sending does not, so it says something about the token only.
func (a *App) fetchAnswered(ctx context.Context, ws desk.ID, channel *desk.Channel, err error) {
	var refused *desk.AccountRefusal
	if errors.As(err, &refused) && refused.Token || err == nil && channel.Status.Token {
		a.accountAnswered(ctx, ws, channel, refused)
	}
}

// SendCounts counts the sends of this process by outcome, since it began.
type SendCounts struct {
	Accepted    int64 // the provider accepted the message
	Refused     int64 // the provider refused it for good
	Unavailable int64 // it was not sent for now
	InDoubt     int64 // the outcome is unknown
}

type sendCounts struct{ accepted, refused, unavailable, inDoubt atomic.Int64 }

// count counts a send by its result: nil if the provider accepted it, and a
// *desk.Refusal if it was certainly not sent.
func (c *sendCounts) count(err error) {
	var refusal *desk.Refusal
	switch {
	case err == nil:
		c.accepted.Add(1)
	case errors.As(err, &refusal) && refusal.Type == desk.ProviderRejected:
		c.refused.Add(1)
	case refusal != nil:
		c.unavailable.Add(1)
	default:
		c.inDoubt.Add(1)
	}
}

// SendCounts returns the counts for /metrics.
func (a *App) SendCounts() SendCounts {
	c := &a.sends
	return SendCounts{c.accepted.Load(), c.refused.Load(), c.unavailable.Load(), c.inDoubt.Load()}
}

// A gauging is the last reading of the gauges, shared by all readers of /metrics.
type gauging struct {
	mu    sync.Mutex
	at    time.Time // zero: there was none
	found store.Gauges
	err   error
}

// gaugeEvery is how old the gauges may get.
const gaugeEvery = 5 * time.Second

// gaugeTimeout is how long reading them may take: a reader of /metrics waits.
const gaugeTimeout = 3 * time.Second

// Gauges returns the gauges, which are up to gaugeEvery old but for Now. A database that
// can't be read is not asked more often either.
func (a *App) Gauges(ctx context.Context) (store.Gauges, error) {
	a.gauging.mu.Lock()
	defer a.gauging.mu.Unlock()
	g := &a.gauging
	if g.at.IsZero() || a.clock().Sub(g.at) >= gaugeEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gaugeTimeout)
		defer cancel()
		g.found, g.err = a.store.Gauges(ctx, a.now())
		g.at = a.clock()
	}
	found := g.found
	found.Now += desk.Time(a.clock().Sub(g.at).Milliseconds())
	return found, g.err
}
