package broadcast

import (
	"cmp"
	"context"
	"time"

	"parley/desk"
)

const (
	// outcomesEvery is how often the newest outcomes of a broadcast are looked at; after
	// desk.LeastOutcomes bad ones, at once. While fewer than fewSent messages were sent since the
	// last look, they are looked at every slowEvery, and every idleEvery while nothing has been
	// sent for twice reportWait: a process may have hundreds of broadcasts that go slowly.
	outcomesEvery = time.Second
	slowEvery     = 5 * time.Second
	fewSent       = 16
	idleEvery     = 15 * time.Second

	// A provider says within reportWait of most messages whether they arrived.
	reportWait = 10 * time.Second
)

// mustPause looks at what the provider answered, and at the newest outcomes.
func (a *Service) mustPause(ctx context.Context, d *drive, s *desk.Settings, b *desk.Broadcast, r *runner) (desk.BroadcastReason, error) {
	if b.TooMany() {
		return desk.PausedTooMany, nil
	}
	r.mu.Lock()
	every := outcomesEvery
	switch {
	case time.Since(r.flew) > 2*reportWait:
		every = idleEvery
	case r.sent < fewSent:
		every = slowEvery
	}
	why, halt, look := r.pause, r.halt, time.Since(r.looked) > every || r.bad >= desk.LeastOutcomes
	r.pause, r.halt = "", nil
	if look {
		r.bad, r.sent = 0, 0
	}
	if halt != nil {
		r.drop()
	}
	r.mu.Unlock()
	if why != "" || !look {
		return why, nil
	}
	r.looked = time.Now()
	channel := s.Channel(b.Channel)
	rows, err := a.Store.NewestClaims(ctx, d.ws, b.ID, b.ResumedAt, a.claimsToLookAt(channel))
	if err != nil {
		r.looked = time.Time{} // at once, when the database is back
		return "", err
	}
	effects := make([]desk.Effect, len(rows))
	for i, row := range rows {
		if row.Failure != nil && channel != nil {
			effects[i] = a.Machine.EffectOf(channel, row.Failure)
		}
		if row.Status == desk.RowFailed || row.Status == desk.RowRefused {
			if why := pausedBy(effects[i]); why != "" {
				return why, nil
			}
		}
	}
	if tooManyFailed(b, rows, effects) {
		return desk.PausedFailures, nil
	}
	return "", nil
}

// claimsToLookAt is how many of the newest claims the look at outcomes reads: desk.FailureWindow of
// those about which the provider should have reported by now, and all after them.
func (a *Service) claimsToLookAt(channel *desk.Channel) int {
	const newest, most = desk.FailureWindow + desk.BroadcastFlights, 2000
	if channel == nil {
		return newest
	}
	perSecond := a.Machine.PerSecond(channel)
	if perSecond == 0 {
		return newest + most
	}
	return newest + min(most, int(perSecond*share*reportWait.Seconds()))
}

// tooManyFailed tells whether too many of desk.FailureWindow outcomes in a row are bad: of the newest
// ones, or, as it may not be known yet that these fail, of those that were the newest at any time
// within reportWait. rows begin with the newest; effects are those of their failures.
func tooManyFailed(b *desk.Broadcast, rows []*desk.BroadcastRow, effects []desk.Effect) bool {
	type outcome struct {
		bad int // 1: it is bad
		at  desk.Time
	}
	var list []outcome
	var newest desk.Time
	for i, row := range rows {
		at := cmp.Or(row.SentAt, row.At) // what was not sent was refused at once
		newest = max(newest, at)
		if bad, counts := row.Outcome(effects[i]); bad && counts {
			list = append(list, outcome{1, at})
		} else if counts {
			list = append(list, outcome{0, at})
		}
	}
	n, bad := min(len(list), desk.FailureWindow), 0
	for _, o := range list[:n] {
		bad += o.bad
	}
	for i, o := range list[n:] {
		if b.TooManyFailed(bad, n) {
			return true
		}
		if newest-list[i+1].at > desk.Time(reportWait.Milliseconds()) {
			return false
		}
		bad += o.bad - list[i].bad
	}
	return b.TooManyFailed(bad, n)
}

// pausedBy is the reason for which a failure pauses a broadcast; "": it does not.
func pausedBy(effect desk.Effect) desk.BroadcastReason {
	switch effect {
	case desk.TemplateEffect:
		return desk.PausedTemplate
	case desk.FileEffect:
		return desk.PausedFile
	case desk.ChannelEffect:
		return desk.PausedChannel
	}
	return ""
}
