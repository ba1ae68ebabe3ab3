package broadcast

import (
	"context"
	"slices"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// Create stores a new broadcast as a draft.
func (a *Service) Create(ctx context.Context, p desk.Principal, in *desk.BroadcastInput) (*desk.Broadcast, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	if err := checkAudience(p, in); err != nil {
		return nil, err
	}
	now := a.Now()
	b := &desk.Broadcast{ID: a.NewID(), State: desk.BroadcastDraft, CreatedBy: p.Actor, CreatedAt: now}
	if err := b.Edit(in, now); err != nil {
		return nil, err
	}
	b.Category = a.category(ctx, p, b)
	err := a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.BroadcastsWrite, a.Now()); err != nil {
			return err
		}
		use, err := tx.BroadcastUse()
		if err != nil {
			return err
		}
		if use.Planned >= desk.MaxPlannedBroadcasts {
			return desk.Invalidf("the workspace has %d drafts and scheduled broadcasts, and may not have more: delete some", use.Planned)
		}
		stored := *b
		stored.UpdatedAt = now
		if err := tx.PutBroadcast(&stored); err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: desk.BroadcastCreated, Subject: b.ID, Actor: p.Actor, At: now})
	})
	if err != nil {
		return nil, err
	}
	return a.Get(ctx, p, b.ID)
}

// checkAudience checks the filter of an audience, and makes it canonical.
func checkAudience(p desk.Principal, in *desk.BroadcastInput) error {
	if !in.Audience.Has() {
		return nil
	}
	return in.Audience.Value.Check(p.Settings)
}

// category returns the category of a broadcast's template; "" if it is not known.
func (a *Service) category(ctx context.Context, p desk.Principal, b *desk.Broadcast) string {
	channel, err := p.Settings.PickChannel(idOrNil(b.Channel))
	if err != nil {
		return ""
	}
	library, err := a.Machine.LibraryOf(ctx, p.Workspace(), channel)
	if err != nil {
		return ""
	}
	if t := library.Find(b.Template, b.Language); t != nil {
		return t.Category
	}
	return ""
}

func idOrNil(id desk.ID) *desk.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

// Get returns a broadcast with its counts, or NotFound.
func (a *Service) Get(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Broadcast, error) {
	b, err := a.Store.Broadcast(ctx, p.Workspace(), id)
	if err == nil && b == nil {
		err = desk.NoBroadcast()
	}
	if err != nil {
		return nil, err
	}
	a.recategorize(ctx, p, b)
	return b, nil
}

// recategorize gives a draft the category that its template has by now.
func (a *Service) recategorize(ctx context.Context, p desk.Principal, b *desk.Broadcast) {
	if b.State == desk.BroadcastDraft {
		b.Category = a.category(ctx, p, b)
	}
}

// List returns a page of broadcasts in a state ("": in any), newest first, and the cursor of
// the next page, "" if there is none.
func (a *Service) List(ctx context.Context, p desk.Principal, state desk.BroadcastState, cursor string, limit int) ([]*desk.Broadcast, string, error) {
	if err := p.Allow(desk.BroadcastsRead); err != nil {
		return nil, "", err
	}
	list := cursors.List{Workspace: p.Workspace(), Name: "broadcasts", Filter: string(state)}
	before, err := a.Cursors.OpenID(list, cursor)
	if err != nil {
		return nil, "", err
	}
	found, next, err := a.Store.Broadcasts(ctx, p.Workspace(), state, before, limit)
	for _, b := range found {
		a.recategorize(ctx, p, b)
	}
	return found, a.Cursors.SealID(list, next), err
}

// PauseWithout returns the broadcasts that pause when starter may not send any more.
func (a *Service) PauseWithout(ctx context.Context, p desk.Principal, starter desk.Actor) (paused []*desk.Broadcast, err error) {
	for _, state := range []desk.BroadcastState{desk.BroadcastRunning, desk.BroadcastScheduled} {
		for cursor, more := "", true; more; more = cursor != "" {
			list, next, err := a.List(ctx, p, state, cursor, desk.MaxLimit)
			if err != nil {
				return nil, err
			}
			for _, b := range list {
				if b.StartedBy == starter {
					paused = append(paused, b)
				}
			}
			cursor = next
		}
	}
	return paused, nil
}

// change changes a broadcast in a transaction. do may leave it as it is.
func (a *Service) change(ctx context.Context, p desk.Principal, needs desk.Permission, id desk.ID, do func(tx store.Tx, b *desk.Broadcast) error) (*desk.Broadcast, error) {
	if err := p.Allow(needs); err != nil {
		return nil, err
	}
	err := a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), needs, a.Now()); err != nil {
			return err
		}
		b, err := existing(tx, id)
		if err != nil {
			return err
		}
		before := *b
		if err := do(tx, b); err != nil {
			return err
		}
		return put(tx, &before, b, p.Actor, a.Now())
	})
	if err != nil {
		return nil, err
	}
	return a.Get(ctx, p, id)
}

// existing returns a broadcast, or NotFound. It returns BroadcastInState if the broadcast is in
// none of the states in; without them, any state will do.
func existing(tx store.Tx, id desk.ID, in ...desk.BroadcastState) (*desk.Broadcast, error) {
	b, err := tx.Broadcast(id)
	switch {
	case err != nil:
		return nil, err
	case b == nil || b.State == desk.BroadcastDeleted:
		return nil, desk.NoBroadcast()
	case in != nil && !slices.Contains(in, b.State):
		return nil, b.InState()
	}
	return b, nil
}

// put stores a changed broadcast with its event, unless nothing has changed. Each change gives it
// another UpdatedAt, also if the clock of this server is behind that of another one: by it, a start
// knows that the broadcast is still the one that was checked.
func put(tx store.Tx, before, b *desk.Broadcast, by desk.Actor, now desk.Time) error {
	changed := b.Changes(before)
	if changed == nil {
		return nil
	}
	b.UpdatedAt = max(now, before.UpdatedAt+1)
	if err := tx.PutBroadcast(b); err != nil {
		return err
	}
	return tx.Append(desk.Event{Type: desk.BroadcastUpdated, Subject: b.ID, Actor: by, At: now, Changed: changed})
}

// Edit changes a broadcast: a draft wholly, a later one in part (contract-broadcast §2).
func (a *Service) Edit(ctx context.Context, p desk.Principal, id desk.ID, in *desk.BroadcastInput) (*desk.Broadcast, error) {
	if p.Allow(desk.BroadcastsWrite) != nil && p.Allow(desk.BroadcastsSend) != nil {
		return nil, p.Allow(desk.BroadcastsWrite)
	}
	known, err := a.Get(ctx, p, id)
	unknown := desk.IsType(err, desk.NotFound)
	if err != nil && !unknown {
		return nil, err
	}
	needs := desk.BroadcastsWrite
	if !unknown {
		if known.State != desk.BroadcastDraft {
			needs = desk.BroadcastsSend
		}
		if err := p.Allow(needs); err != nil {
			return nil, err
		}
	}
	if err := checkAudience(p, in); err != nil {
		return nil, err
	}
	if err := in.CheckShape(a.Now()); err != nil {
		return nil, err
	}
	if unknown {
		return nil, err
	}
	category := ""
	if known.State == desk.BroadcastDraft {
		edited := *known
		if err := edited.Edit(in, a.Now()); err != nil {
			return nil, err
		}
		category = a.category(ctx, p, &edited)
	}
	return a.change(ctx, p, needs, id, func(_ store.Tx, b *desk.Broadcast) error {
		if (b.State == desk.BroadcastDraft) != (known.State == desk.BroadcastDraft) {
			return desk.Errorf(desk.Unavailable, "the broadcast has changed meanwhile: try again")
		}
		switch {
		case b.State == desk.BroadcastDraft:
		case !in.OnlyLater(), b.State.Ended() && !in.OnlyName():
			return b.InState()
		}
		if err := b.Edit(in, a.Now()); err != nil {
			return err
		}
		if b.State == desk.BroadcastDraft {
			b.Category = category
		}
		return nil
	})
}

// Delete deletes a draft, or a broadcast that has ended. Its rows go soon after.
func (a *Service) Delete(ctx context.Context, p desk.Principal, id desk.ID) error {
	if err := p.Allow(desk.BroadcastsWrite); err != nil {
		return err
	}
	return a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.BroadcastsWrite, a.Now()); err != nil {
			return err
		}
		b, err := existing(tx, id, desk.BroadcastDraft, desk.BroadcastDone, desk.BroadcastCancelled)
		if err != nil {
			return err
		}
		b.State, b.Untidy, b.UpdatedAt = desk.BroadcastDeleted, true, a.Now()
		if err := tx.PutBroadcast(b); err != nil {
			return err
		}
		if err := a.Deleted(tx, id); err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: desk.BroadcastDeletedEvent, Subject: id, Actor: p.Actor, At: b.UpdatedAt})
	})
}

// A ready is what a broadcast needs to send.
type ready struct {
	channel  *desk.Channel
	template *desk.Template
	collect  *desk.Collect // of its audience; nil: its people are its rows
	last     desk.ID       // the newest contact, if its audience are contacts
}

// into notes it in a broadcast.
func (r *ready) into(b *desk.Broadcast) {
	b.Channel, b.Category, b.Shape = r.channel.ID, r.template.Category, r.template.BroadcastShape()
	if b.Collect == nil && r.collect != nil {
		collect := *r.collect
		b.Collect = &collect
	}
}

// begin lets a broadcast begin or go on.
func (r *ready) begin(b *desk.Broadcast, by desk.Actor, at desk.Time) {
	r.into(b)
	b.Begin(by, at)
	if b.State == desk.BroadcastRunning && b.Collects() && b.Collect.Upto.IsZero() {
		b.Collect.Upto = r.last
	}
}

// prepare makes the checks of a start, in order: consent, channel, template, variables,
// file, audience. The broadcast is not changed.
func (a *Service) prepare(ctx context.Context, settings *desk.Settings, b *desk.Broadcast) (r ready, err error) {
	if err := b.CheckConsent(settings); err != nil {
		return r, err
	}
	if r.channel, err = settings.PickChannel(idOrNil(b.Channel)); err != nil {
		return r, err
	}
	if err := a.Machine.Usable(r.channel); err != nil {
		return r, err
	}
	if r.template, err = a.template(ctx, settings.ID, r.channel, b); err != nil {
		return r, err
	}
	if err := b.CheckTemplate(r.template, settings); err != nil {
		return r, err
	}
	if err := a.Machine.CheckFile(ctx, settings, b, r.template); err != nil {
		return r, refusedFile(err)
	}
	r.collect, r.last, err = a.audience(ctx, settings, b)
	return r, err
}

// refusedFile says what to do about a refusal of the file in the template's title.
func refusedFile(err error) error {
	e := *desk.AsError(err)
	switch e.Type {
	case desk.NotFound, desk.MediaUnavailable, desk.MediaNotSendable:
		e.Message = "the file of the template's title can't be sent: " + e.Message
		return e.Advise(desk.ReplaceFile)
	}
	return err
}

// template returns a broadcast's template if it can be sent.
func (a *Service) template(ctx context.Context, ws desk.ID, channel *desk.Channel, b *desk.Broadcast) (*desk.Template, error) {
	library, err := a.Machine.LibraryOf(ctx, ws, channel)
	if err != nil {
		return nil, err
	}
	t := library.Find(b.Template, b.Language)
	if t == nil {
		return nil, library.NoTemplate(b.Template, b.Language)
	}
	if !t.Fillable() {
		e := desk.Errorf(desk.TemplateNotSendable, "the template can't be sent: it must be approved, and need no more than a file and the ends of links").Advise(desk.SeeDetails)
		e.Details = desk.Unsendable{Status: t.Status, Reasons: b.ReasonsAgainst(t)}
		return nil, e
	}
	return t, nil
}

// Start starts a draft, now or at its time. Resume lets a paused broadcast go on.
func (a *Service) Start(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Broadcast, error) {
	return a.begin(ctx, p, id, -1, desk.BroadcastDraft)
}

// StartFor is Start, if the broadcast has so many rows: what a person has confirmed. An audience
// may have at most so many people.
func (a *Service) StartFor(ctx context.Context, p desk.Principal, id desk.ID, rows int64) (*desk.Broadcast, error) {
	return a.begin(ctx, p, id, rows, desk.BroadcastDraft)
}

// Resume lets a paused broadcast go on where it stood.
func (a *Service) Resume(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Broadcast, error) {
	return a.begin(ctx, p, id, -1, desk.BroadcastPaused)
}

// goesOn has the states in which the driver works on a broadcast, now or at its time.
var goesOn = []desk.BroadcastState{desk.BroadcastRunning, desk.BroadcastScheduled}

// begin lets a broadcast begin or go on, if it has so many rows (-1: any number). If it does so
// already, nothing changes.
func (a *Service) begin(ctx context.Context, p desk.Principal, id desk.ID, rows int64, from desk.BroadcastState) (*desk.Broadcast, error) {
	if err := p.Allow(desk.BroadcastsSend); err != nil {
		return nil, err
	}
	known, err := a.Get(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if slices.Contains(goesOn, known.State) {
		return known, nil
	}
	if known.State != from {
		return nil, known.InState()
	}
	r, err := a.prepare(ctx, p.Settings, known)
	if err != nil {
		return nil, err
	}
	return a.change(ctx, p, desk.BroadcastsSend, id, func(tx store.Tx, b *desk.Broadcast) error {
		switch {
		case slices.Contains(goesOn, b.State):
			return nil
		case b.State != from:
			return b.InState()
		case rows >= 0 && b.Audience == nil && b.Rows != rows:
			return desk.Errorf(desk.Changed, "the broadcast has other people by now: %d", b.Rows)
		case b.UpdatedAt != known.UpdatedAt || b.Audience == nil && b.Rows == 0:
			return desk.Errorf(desk.Unavailable, "the broadcast has changed meanwhile: try again")
		}
		use, err := tx.BroadcastUse()
		if err != nil {
			return err
		}
		if rows >= 0 && b.Audience != nil {
			b.AtMost = min(rows, desk.MaxBroadcastPeople)
		}
		r.begin(b, p.Actor, a.Now())
		if err := hasRoom(use, from, b.State); err != nil {
			return err
		}
		b.DrivenAt = tx.Now()
		return tx.BeginBroadcasts()
	})
}

// hasRoom refuses that a broadcast goes from a state into one of goesOn if the workspace may not
// have more of these.
func hasRoom(use store.BroadcastUse, from, to desk.BroadcastState) error {
	switch {
	case to == desk.BroadcastScheduled && from != desk.BroadcastDraft && use.Planned >= desk.MaxPlannedBroadcasts:
		return desk.Invalidf("the workspace has %d drafts and scheduled broadcasts, and may not have more: delete some", use.Planned)
	case to == desk.BroadcastScheduled:
	case from == desk.BroadcastDraft && use.Active >= desk.MaxActiveBroadcasts:
		return desk.Invalidf("%d broadcasts of the workspace run or are paused, and there may not be more: wait, or cancel some", use.Active)
	case use.Running >= desk.MaxActiveBroadcasts:
		return desk.Invalidf("%d broadcasts of the workspace run, and there may not be more: wait, or pause some", use.Running)
	}
	return nil
}

// Unschedule makes a scheduled broadcast a draft again.
func (a *Service) Unschedule(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Broadcast, error) {
	return a.change(ctx, p, desk.BroadcastsWrite, id, func(_ store.Tx, b *desk.Broadcast) error {
		switch b.State {
		case desk.BroadcastDraft:
		case desk.BroadcastScheduled:
			b.State, b.StartedBy, b.Collect = desk.BroadcastDraft, desk.Actor{}, nil
		default:
			return b.InState()
		}
		return nil
	})
}

// Pause pauses a broadcast. Once it has returned, no claim commits on any node.
func (a *Service) Pause(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Broadcast, error) {
	return a.change(ctx, p, desk.BroadcastsWrite, id, func(_ store.Tx, b *desk.Broadcast) error {
		switch b.State {
		case desk.BroadcastPaused:
		case desk.BroadcastRunning, desk.BroadcastScheduled:
			b.Pause(desk.PausedAsked)
		default:
			return b.InState()
		}
		return nil
	})
}

// PauseAll pauses the broadcasts of a workspace that run or are scheduled, and returns how
// many these were.
func (a *Service) PauseAll(ctx context.Context, p desk.Principal) (n int, err error) {
	err = whileAny(ctx, a.Store, p.Workspace(), func(list []*desk.Broadcast) error {
		for _, b := range list {
			_, err := a.Pause(ctx, p, b.ID)
			switch {
			case err == nil:
				n++
			case !desk.IsType(err, desk.BroadcastInState) && !desk.IsType(err, desk.NotFound):
				return err
			}
		}
		return nil
	})
	return n, err
}

// whileAny calls do with the broadcasts of a workspace that run or are scheduled, until there
// are none: do pauses them.
func whileAny(ctx context.Context, s store.Store, ws desk.ID, do func([]*desk.Broadcast) error) error {
	for _, state := range goesOn {
		for {
			list, _, err := s.Broadcasts(ctx, ws, state, nil, desk.MaxLimit)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				break
			}
			if err := do(list); err != nil {
				return err
			}
		}
	}
	return nil
}

// Cancel ends a broadcast. Once it has returned, no claim commits on any node.
func (a *Service) Cancel(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Broadcast, error) {
	return a.change(ctx, p, desk.BroadcastsWrite, id, func(_ store.Tx, b *desk.Broadcast) error {
		switch b.State {
		case desk.BroadcastCancelled:
		case desk.BroadcastRunning, desk.BroadcastScheduled, desk.BroadcastPaused:
			b.End(desk.BroadcastCancelled, a.Now())
		default:
			return b.InState()
		}
		return nil
	})
}

// A Released says how many rows in doubt were released, and how many are left.
type Released struct{ Released, Left int64 }

// Release records one decision on the rows in doubt of a broadcast, oldest first. Those whose
// message may still be under way are left.
func (a *Service) Release(ctx context.Context, p desk.Principal, id desk.ID, sent bool) (r Released, err error) {
	if err := p.Allow(desk.AttemptsWrite); err != nil {
		return r, err
	}
	if _, err := a.Get(ctx, p, id); err != nil {
		return r, err
	}
	rows, err := a.Store.ClaimedRows(ctx, p.Workspace(), id, desk.RowInDoubt, desk.ID{}, desk.MaxReleased)
	if err != nil {
		return r, err
	}
	for _, row := range rows {
		_, err := a.Machine.Release(ctx, p, row.Attempt, sent)
		switch {
		case err == nil:
			r.Released++
		case desk.IsType(err, desk.SendInProgress), desk.IsType(err, desk.AttemptSettled), desk.IsType(err, desk.NotFound):
		default:
			return r, err
		}
	}
	b, err := a.Get(ctx, p, id)
	if err != nil {
		return r, err
	}
	r.Left = b.Counts.ByStatus[desk.RowInDoubt]
	return r, nil
}
