package broadcast

import (
	"context"
	"slices"
	"time"

	"parley/desk"
)

const (
	// outcomesEvery is how often the newest outcomes of a broadcast are looked at; after
	// desk.LeastOutcomes bad ones, at once.
	outcomesEvery = time.Second

	// A provider says within reportWait of most messages whether they arrived.
	reportWait = 10 * time.Second
)

// mustPause looks at what the provider answered, and at the newest outcomes.
func (a *Service) mustPause(ctx context.Context, d *drive, s *desk.Settings, b *desk.Broadcast, r *runner) (desk.BroadcastReason, error) {
	if b.TooMany() {
		return desk.PausedTooMany, nil
	}
	r.mu.Lock()
	why, halt, look := r.pause, r.halt, time.Since(r.looked) > outcomesEvery || r.bad >= desk.LeastOutcomes
	r.pause, r.halt = "", nil
	if look {
		r.bad = 0
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
	if b.TooManyFailed(outcomes(rows, effects)) {
		return desk.PausedFailures, nil
	}
	// Of the newest ones it may not be known yet that they fail.
	if i := slices.IndexFunc(rows, (*desk.BroadcastRow).Reported); i > 0 && b.TooManyFailed(outcomes(rows[i:], effects[i:])) {
		return desk.PausedFailures, nil
	}
	return "", nil
}

// claimsToLookAt is how many of the newest claims the look at outcomes reads: enough to find those
// about which the provider has reported lately.
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

// outcomes counts the newest outcomes, and the bad ones among them. effects are those of the rows'
// failures.
func outcomes(rows []*desk.BroadcastRow, effects []desk.Effect) (bad, n int) {
	for i, row := range rows {
		isBad, counts := row.Outcome(effects[i])
		if !counts {
			continue
		}
		if isBad {
			bad++
		}
		if n++; n == desk.FailureWindow {
			break
		}
	}
	return bad, n
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
