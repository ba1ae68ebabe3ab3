package broadcast

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"

	"golang.org/x/time/rate"
)

const (
	// noteEvery is how often it is noted that a broadcast is driven, and restoreEvery how often
	// rows that were left behind are looked for.
	noteEvery    = time.Minute
	restoreEvery = 5 * time.Second

	// turn is how many rows of a broadcast are begun before the next broadcast has its turn.
	turn = 16

	// longestShare is how long the other broadcasts of the workspace wait for a place in the share
	// of a number's places.
	longestShare = 100 * time.Millisecond
)

// step does something for a broadcast, and returns how long there is nothing more to do.
func (a *Service) step(ctx context.Context, d *drive, s *desk.Settings, b *desk.Broadcast, r *runner) (time.Duration, error) {
	switch b.State {
	case desk.BroadcastScheduled:
		return 0, a.begins(ctx, d, s, b)
	case desk.BroadcastRunning:
		return a.run(ctx, d, s, b, r)
	}
	return a.aside(ctx, d, &d.tidying, func() error {
		_, err := a.tidy(ctx, d.ws, b)
		return err
	}), nil
}

// begins starts a scheduled broadcast. If it or its template is not as it was when it was started, or
// as many broadcasts as may be run or are paused by now, it does not begin.
func (a *Service) begins(ctx context.Context, d *drive, s *desk.Settings, b *desk.Broadcast) error {
	why, r := desk.BroadcastReason(""), ready{}
	if a.Now()-b.SendAt > desk.Time(desk.BroadcastStopped.Milliseconds()) {
		why = desk.PausedStopped
	} else if s.StillMay(b.StartedBy, desk.BroadcastsSend, a.Now()) != nil {
		why = desk.PausedStarter
	} else {
		var err error
		if r, err = a.prepare(ctx, s, b); err != nil {
			if desk.AsError(err).Type == desk.Internal || desk.IsType(err, desk.Unavailable) {
				return err
			}
			why = refusedStart(err)
		}
		if r.template != nil && r.template.BroadcastShape() != b.Shape {
			why = desk.PausedTemplate
		}
	}
	return a.update(ctx, d, b.ID, desk.BroadcastScheduled, func(tx store.Tx, now *desk.Broadcast) error {
		use, err := tx.BroadcastUse()
		switch {
		case err != nil:
			return err
		case now.UpdatedAt != b.UpdatedAt: // the next round looks at it again
		case why != "":
			now.Pause(why)
		case use.Active >= desk.MaxActiveBroadcasts:
			now.Pause(desk.PausedAsked)
		default:
			r.begin(now, now.StartedBy, max(a.Now(), now.SendAt))
			now.DrivenAt = tx.Now()
		}
		return nil
	})
}

// refusedStart is the reason of a broadcast whose start at its time was refused, and whose template
// is as it was.
func refusedStart(err error) desk.BroadcastReason {
	e := desk.AsError(err)
	switch e.Type {
	case desk.ChannelNotUsable:
		return desk.PausedChannel
	case desk.TemplateNotSendable:
		return desk.PausedTemplate
	case desk.MediaUnavailable, desk.MediaNotSendable:
		return desk.PausedFile
	case desk.NotFound:
		if _, ofTemplate := e.Details.(desk.Languages); ofTemplate {
			return desk.PausedTemplate
		}
		return desk.PausedChannel
	}
	return desk.PausedAsked
}

// run gives a running broadcast a turn.
func (a *Service) run(ctx context.Context, d *drive, s *desk.Settings, b *desk.Broadcast, r *runner) (time.Duration, error) {
	now := a.Now()
	if stopped, err := a.noteDriven(ctx, d, b, r); stopped || err != nil {
		return 0, err
	}
	late := b.StopAt > 0 && now >= b.StopAt
	if why, err := a.mustPause(ctx, d, s, b, r); err != nil {
		return 0, err
	} else if why != "" {
		return 0, a.pause(ctx, d, b, why)
	}
	channel := s.Channel(b.Channel)
	var t *desk.Template
	if !late {
		var halt *halted
		err := a.still(s, b)
		if errors.As(err, &halt) {
			return 0, a.pause(ctx, d, b, halt.why)
		}
		t, err = a.template(ctx, d.ws, channel, b)
		switch {
		case desk.IsType(err, desk.NotFound), desk.IsType(err, desk.TemplateNotSendable), err == nil && t.BroadcastShape() != b.Shape:
			return 0, a.pause(ctx, d, b, desk.PausedTemplate)
		case err != nil:
			return 0, err
		}
	}
	if b.Collects() {
		return a.aside(ctx, d, &d.collecting, func() error { return a.collect(ctx, d, s, b) }), nil
	}
	if !late {
		if wait, err := a.mustWait(ctx, d, b, r, now); err != nil {
			return 0, err
		} else if wait.length > 0 {
			if left, _, err := a.left(ctx, d, b); err != nil || !left {
				return a.finish(ctx, d, b, r) // there is nobody for whom to wait
			}
			return wait.length, a.waits(ctx, d, b, wait.why, wait.until)
		}
	}
	if late { // so are the rows that were judged before
		r.mu.Lock()
		r.drop()
		r.mu.Unlock()
	}
	if err := a.fill(ctx, d, s, b, t, r); err != nil {
		return 0, err
	}
	if r.empty() {
		return a.finish(ctx, d, b, r)
	}
	if late {
		return lookEvery, nil // a flight that ends wakes the drive
	}
	return a.launch(ctx, d, channel, b, t, r), nil
}

// noteDriven notes from time to time that the broadcast is driven. If nobody did so for too
// long, it pauses the broadcast. That may have been this process, which was stopped: then its
// monotonic clock may have stood still.
func (a *Service) noteDriven(ctx context.Context, d *drive, b *desk.Broadcast, r *runner) (stopped bool, err error) {
	if time.Since(r.noted) < noteEvery && a.Now()-r.notedAt < 2*desk.Time(noteEvery.Milliseconds()) {
		return false, nil
	}
	now, _, err := a.Store.Clock(ctx)
	if err != nil {
		return false, err
	}
	if r.noted.IsZero() {
		if r.probing = b.Reason == desk.WaitsForProvider; r.probing && b.ResumesAt > a.Now() {
			r.wait(time.Duration(b.ResumesAt-a.Now())*time.Millisecond, a.Uptime(), a.Now())
		}
	}
	if b.Stopped(now) {
		return true, a.pause(ctx, d, b, desk.PausedStopped)
	}
	r.noted, r.notedAt = time.Now(), a.Now()
	return false, a.update(ctx, d, b.ID, desk.BroadcastRunning, func(_ store.Tx, b *desk.Broadcast) error {
		b.DrivenAt = now
		return nil
	})
}

// A waiting says for what a broadcast waits; its zero value: it need not wait.
type waiting struct {
	length time.Duration
	why    desk.BroadcastReason
	until  desk.Time
}

// mustWait tells for what a broadcast has to wait. If it need not wait, that is noted.
func (a *Service) mustWait(ctx context.Context, d *drive, b *desk.Broadcast, r *runner, now desk.Time) (waiting, error) {
	if !b.Hours.Open(now) {
		until, _ := b.Hours.Until(now)
		return waiting{lookEvery, desk.WaitsForHours, until}, nil
	}
	r.mu.Lock()
	until, left := r.resumes, r.until-a.Uptime()
	r.mu.Unlock()
	if left > 0 {
		return waiting{min(left, lookEvery), desk.WaitsForProvider, until}, nil
	}
	if b.Pace != nil {
		if loaded, err := a.loadClaims(ctx, d, b, r, now); err != nil {
			return waiting{}, err
		} else if !loaded {
			return waiting{lookEvery, b.Reason, b.ResumesAt}, nil
		}
		r.mu.Lock()
		room, at := r.room(b.Pace, now)
		flights := r.flights
		r.mu.Unlock()
		switch {
		case room == 0 && flights > 0: // a flight that ends wakes the drive
			return waiting{lookEvery, b.Reason, b.ResumesAt}, nil
		case room == 0:
			return waiting{lookEvery, desk.WaitsForPace, at}, nil
		}
	}
	if b.Reason == desk.WaitsForProvider && r.probes() {
		return waiting{}, nil // until one is taken
	}
	return waiting{}, a.waits(ctx, d, b, "", 0)
}

func (r *runner) probes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.probing
}

// loadClaims reads the claims of earlier drivers that the pace counts, and those before a change of
// the pace. A claim that is under way may be stored or not, so it waits for the flights to end.
func (a *Service) loadClaims(ctx context.Context, d *drive, b *desk.Broadcast, r *runner, now desk.Time) (loaded bool, err error) {
	if r.paced == *b.Pace {
		return true, nil
	}
	r.mu.Lock()
	flights := r.flights
	r.mu.Unlock()
	if flights > 0 {
		return false, nil
	}
	times, err := a.Store.ClaimTimes(ctx, d.ws, b.ID, now-desk.Time(b.Pace.Minutes)*60_000, b.Pace.People)
	if err != nil {
		return false, err
	}
	slices.Sort(times)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims, r.paced = nil, *b.Pace
	for _, at := range times {
		r.claimed(at)
	}
	return true, nil
}

// nextRows reads the next pending rows. After the last row it begins with the first again: some
// may be pending again.
func (a *Service) nextRows(ctx context.Context, d *drive, b *desk.Broadcast, r *runner) ([]*desk.BroadcastRow, error) {
	for {
		rows, err := a.Store.PendingRows(ctx, d.ws, b.ID, false, r.after, lookStep)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			r.after = rows[len(rows)-1].ID
			return rows, nil
		}
		if r.after.IsZero() {
			return nil, nil
		}
		r.after = desk.ID{}
	}
}

// fill judges the next rows if there are none to send. Those that are skipped are stored.
func (a *Service) fill(ctx context.Context, d *drive, s *desk.Settings, b *desk.Broadcast, t *desk.Template, r *runner) error {
	for round := 0; round < desk.BroadcastSkips/lookStep && len(r.buffer) == 0; round++ {
		rows, err := a.Store.PendingRows(ctx, d.ws, b.ID, true, desk.ID{}, lookStep)
		if err != nil {
			return err
		}
		fresh, err := a.nextRows(ctx, d, b, r)
		if err != nil {
			return err
		}
		r.mu.Lock()
		rows = slices.DeleteFunc(append(rows, fresh...), func(row *desk.BroadcastRow) bool { return r.busy[row.ID] })
		r.mu.Unlock()
		if len(rows) == 0 {
			return nil
		}
		looks, err := a.look(storeReader{a.Store, ctx, d.ws}, s, b, t, rows, a.Now())
		if err != nil {
			return err
		}
		if err := a.skip(ctx, d, b, looks); err != nil {
			return err
		}
		r.mu.Lock()
		for _, l := range looks {
			if l.Verdict.Reason == "" {
				r.busy[l.Row.ID] = true
				r.buffer = append(r.buffer, l)
			}
		}
		r.mu.Unlock()
	}
	return nil
}

// skip stores that rows are skipped.
func (a *Service) skip(ctx context.Context, d *drive, b *desk.Broadcast, looks []look) error {
	verdicts := map[desk.ID]desk.RowVerdict{}
	var rows []*desk.BroadcastRow
	for _, l := range looks {
		if l.Verdict.Reason != "" {
			verdicts[l.Row.ID], rows = l.Verdict, append(rows, l.Row)
		}
	}
	if rows == nil {
		return nil
	}
	n := 0
	err := a.Store.InTx(ctx, d.ws, func(tx store.Tx) error {
		n = 0
		if err := a.maySkip(tx, b.ID); err != nil {
			return err
		}
		pending, err := stillPending(tx, rows...)
		if err != nil {
			return err
		}
		var changes []store.RowChange
		for _, row := range pending {
			changes = append(changes, store.Change(row))
			row.Skip(verdicts[row.ID].Reason, verdicts[row.ID].Failure, a.Now())
		}
		n = len(changes)
		return tx.PutRows(b.ID, changes)
	})
	var halt *halted
	switch {
	case err == nil:
		a.count(desk.RowSkipped, n)
	case errors.As(err, &halt) && halt.why == otherHolder:
		d.cancel()
		return nil
	case errors.As(err, &halt):
		return nil // the next round finds that it does not run any more
	}
	return err
}

func (r *runner) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.buffer) == 0 && r.flights == 0
}

// launch begins to send rows, as far as there are places. It returns how long to wait for one.
func (a *Service) launch(ctx context.Context, d *drive, channel *desk.Channel, b *desk.Broadcast, t *desk.Template, r *runner) time.Duration {
	for range turn {
		r.mu.Lock()
		switch {
		case len(r.buffer) == 0 && r.flights > 0:
			r.mu.Unlock()
			return lookEvery // a flight that ends wakes the drive
		case len(r.buffer) == 0 || r.halt != nil || r.pause != "" || a.Uptime() < r.until:
			r.mu.Unlock()
			return 0
		case r.probing && r.flights > 0:
			r.mu.Unlock()
			return lookEvery
		}
		if b.Pace != nil {
			if room, _ := r.room(b.Pace, a.Now()); room == 0 {
				r.mu.Unlock()
				return 0
			}
		}
		r.mu.Unlock()
		within, cancel := context.WithTimeout(ctx, lookEvery)
		entered := a.places.take(within, d.ws)
		cancel()
		switch {
		case !entered && a.places.of(d.ws) > 0:
			return lookEvery // a flight that ends wakes the drive
		case !entered:
			return 0
		}
		if wait := a.placeOf(ctx, d, channel); wait > 0 {
			a.places.leave(d.ws)
			return wait
		}
		r.mu.Lock()
		l := r.buffer[0]
		r.buffer = r.buffer[1:]
		r.flights++
		r.sent++
		r.mu.Unlock()
		d.flying.Go(func() {
			a.fly(ctx, d, channel, b, t, r, l)
			a.places.leave(d.ws)
			steps.Wake(d.woken)
		})
	}
	return 0
}

// placeOf waits for a place in the share of a channel's places. If that takes long, it takes
// none, and returns how long it takes.
func (a *Service) placeOf(ctx context.Context, d *drive, c *desk.Channel) time.Duration {
	perSecond := a.Machine.PerSecond(c)
	if perSecond == 0 {
		return 0
	}
	limit := rate.Limit(perSecond * share)
	l := d.limits[c.ID]
	if l == nil {
		l = rate.NewLimiter(limit, 1)
		d.limits[c.ID] = l
	} else if l.Limit() != limit {
		l.SetLimit(limit)
	}
	place := l.Reserve()
	wait := place.Delay()
	if wait > longestShare {
		place.Cancel()
		return wait
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return 0
}

// fly sends to one person, and notes what that means for the broadcast.
func (a *Service) fly(ctx context.Context, d *drive, channel *desk.Channel, b *desk.Broadcast, t *desk.Template, r *runner, l look) {
	at, err := a.send(ctx, d, channel, b, t, l)
	claimed := at > 0
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, l.Row.ID)
	r.flights--
	if claimed {
		r.claimed(at)
		r.flew = time.Now()
	}
	var halt *halted
	e := desk.AsError(err)
	switch {
	case err == nil:
		r.taken()
	case errors.Is(err, ErrNotClaimed), ctx.Err() != nil && !claimed:
	case errors.As(err, &halt):
		r.halt = halt
		if halt.why == otherHolder {
			d.cancel()
		}
		if halt.why == desk.PausedStarter || halt.why == desk.PausedChannel || halt.why == desk.PausedStopped {
			r.pause = halt.why
		}
	case e.Type == desk.SendOutcomeUnknown:
	case !claimed && e.Type == desk.ChannelNotUsable:
		r.pause = desk.PausedChannel
	case !claimed && (e.Type == desk.MediaUnavailable || e.Type == desk.MediaNotSendable || e.Type == desk.ProviderRejected || e.Type == desk.NotFound):
		r.pause = desk.PausedFile
	case !claimed && e.Type == desk.ProviderUnavailable: // it does not take the file now
		r.refused(e.RetryAfter, a.Uptime(), a.Now())
	case !claimed: // the database is away, or the number has no place
		r.wait(time.Duration(max(1, e.RetryAfter))*time.Second, a.Uptime(), a.Now())
	default:
		effect := desk.NoEffect
		if f, ok := e.Details.(desk.Failure); ok {
			effect = a.Machine.EffectOf(channel, &f)
		}
		row := *l.Row // the stored one was changed with its attempt
		row.Refuse(&desk.Refusal{Type: e.Type}, effect, desk.BroadcastRunning, a.Now())
		if why := pausedBy(effect); why != "" {
			r.pause = why
		} else if effect != desk.PersonEffect && row.Status == desk.RowPending {
			r.refused(e.RetryAfter, a.Uptime(), a.Now())
		}
		if row.Status == desk.RowRefused {
			r.bad++
		}
		a.count(row.Status, 1)
		return
	}
	if err == nil {
		a.count(desk.RowSent, 1)
	} else if e.Type == desk.SendOutcomeUnknown {
		r.bad++
		a.count(desk.RowInDoubt, 1)
	}
}

// send waits for places, claims a row and sends its message. It returns when it claimed the row, or
// 0 if it did not.
func (a *Service) send(ctx context.Context, d *drive, channel *desk.Channel, b *desk.Broadcast, t *desk.Template, l look) (at desk.Time, err error) {
	if err := a.pace(ctx, d, channel, b, l); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	leave, err := a.claiming.wait(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	skipped := false
	err = a.Machine.Fly(ctx, d.ws, b, t, l.Row.NextKey(), func(tx store.Tx, plan func(Sending) (*desk.Attempt, error)) (bool, error) {
		defer leave() // the provider's answer may take long
		claimed, skips, err := a.claim(tx, b.ID, l.Row, t, plan)
		if at, skipped = 0, skips; claimed {
			at = a.Now()
		}
		return claimed, err
	})
	if skipped && errors.Is(err, ErrNotClaimed) {
		a.count(desk.RowSkipped, 1)
	}
	var halt *halted
	if errors.As(err, &halt) || errors.Is(err, ErrNotClaimed) {
		at = 0
	}
	return at, err
}

// pace waits until the provider's limits allow a message to a row's person. If one of them does not,
// it finds out which.
func (a *Service) pace(ctx context.Context, d *drive, channel *desk.Channel, b *desk.Broadcast, l look) error {
	place := func(of func(desk.Bucket) bool) (time.Duration, bool, error) {
		return a.Machine.Pace(ctx, d.ws, channel, l.Verdict.Number, of)
	}
	ofPerson := func(b desk.Bucket) bool { return b.Person }
	if _, ok, err := place(func(desk.Bucket) bool { return true }); ok || err != nil {
		return err
	}
	if wait, ok, err := place(ofPerson); err != nil {
		return err
	} else if !ok {
		return a.hold(ctx, d, b, l.Row, wait)
	}
	wait, ok, err := place(func(b desk.Bucket) bool { return !ofPerson(b) })
	if err == nil && !ok {
		e := desk.Errorf(desk.Unavailable, "the number has no place")
		e.RetryAfter = int(wait/time.Second) + 1
		err = e
	}
	return err
}

// hold lets a row wait that the provider's limit for one person holds back.
func (a *Service) hold(ctx context.Context, d *drive, b *desk.Broadcast, row *desk.BroadcastRow, wait time.Duration) error {
	refused := false
	err := a.Store.InTx(ctx, d.ws, func(tx store.Tx) error {
		refused = false
		if _, err := a.mayClaim(tx, b.ID); err != nil {
			return err
		}
		pending, err := stillPending(tx, row)
		if err != nil || pending == nil {
			return err
		}
		now := pending[0]
		change := store.Change(now)
		if refused = !now.Hold(int(wait/time.Second)+1, tx.Now()); refused {
			now.Status, now.At = desk.RowRefused, a.Now()
			now.Failure = &desk.Failure{Title: "Held back for this person", Fix: "Send to this person more slowly."}
		}
		return tx.PutRows(b.ID, []store.RowChange{change})
	})
	if err == nil {
		if refused {
			a.count(desk.RowRefused, 1)
		}
		err = ErrNotClaimed
	}
	return err
}

// finish ends a broadcast in which nothing is left to send.
func (a *Service) finish(ctx context.Context, d *drive, b *desk.Broadcast, r *runner) (time.Duration, error) {
	if time.Since(r.restored) > restoreEvery {
		r.restored = time.Now()
		if err := a.restore(ctx, d, b); err != nil {
			return 0, err
		}
	}
	sending, err := a.Store.ClaimedRows(ctx, d.ws, b.ID, desk.RowSending, desk.ID{}, 1)
	if err != nil || len(sending) > 0 {
		return lookEvery, err
	}
	if left, soon, err := a.left(ctx, d, b); err != nil || soon {
		return 0, err
	} else if left {
		return lookEvery, nil
	}
	return 0, a.update(ctx, d, b.ID, desk.BroadcastRunning, func(_ store.Tx, b *desk.Broadcast) error {
		b.End(desk.BroadcastDone, a.Now())
		return nil
	})
}

// left tells whether rows of a broadcast are pending, and soon whether none of them waits for
// its time.
func (a *Service) left(ctx context.Context, d *drive, b *desk.Broadcast) (left, soon bool, err error) {
	at, err := a.Store.NextRow(ctx, d.ws, b.ID)
	if err != nil || at > 0 {
		return at > 0, false, err
	}
	rows, err := a.Store.PendingRows(ctx, d.ws, b.ID, false, desk.ID{}, 1)
	return len(rows) > 0, len(rows) > 0, err
}
