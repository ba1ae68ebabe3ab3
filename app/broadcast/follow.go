package broadcast

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// Follow gives the row of an attempt the attempt's outcome, in the transaction that stores it. died
// is set if the attempt is in doubt because its process ended.
func (a *Service) Follow(tx store.Tx, at *desk.Attempt, died bool) error {
	if at.Broadcast.IsZero() {
		return nil
	}
	state, effect := desk.BroadcastRunning, desk.NoEffect
	if at.Phase == desk.Refused {
		b, _, err := tx.BroadcastToClaim(at.Broadcast, desk.ID{}) // whoever drives it
		if err != nil {
			return err
		}
		if b != nil {
			state = b.State
		}
		if channel := tx.Settings().Channel(at.Plan.Channel); channel != nil && at.Refusal != nil && at.Refusal.Failure != nil {
			effect = a.Machine.EffectOf(channel, at.Refusal.Failure)
		}
	}
	list, err := tx.RowsToChange(at.Broadcast, []desk.ID{at.Row()})
	row := list[at.Row()]
	if err != nil || row == nil {
		return err
	}
	change := store.Change(row)
	if row.Data.Died = died; !row.Follow(at, effect, state, tx.Now()) {
		return nil
	}
	return tx.PutRows(at.Broadcast, []store.RowChange{change})
}

// restore gives rows that a server of an older release has left behind the outcomes of their
// attempts.
func (a *Service) restore(ctx context.Context, d *drive, b *desk.Broadcast) error {
	for after := (desk.ID{}); ; {
		rows, err := a.Store.ClaimedRows(ctx, d.ws, b.ID, desk.RowSending, after, lookStep)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.ID
			at, err := a.Store.Attempt(ctx, d.ws, row.Attempt)
			if err != nil {
				return err
			}
			if at == nil || at.Phase == desk.Dispatching {
				continue
			}
			err = a.Store.InTx(ctx, d.ws, func(tx store.Tx) error { return a.Follow(tx, at, false) })
			if err != nil {
				return err
			}
		}
		if len(rows) < lookStep {
			return nil
		}
	}
}

// tidy cancels or deletes some rows of a broadcast that has ended, was deleted, or is a draft whose
// rows were cleared. It returns whether there may be more.
func (a *Service) tidy(ctx context.Context, ws desk.ID, b *desk.Broadcast) (more bool, err error) {
	cancelled := 0
	err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
		more, cancelled = false, 0
		now, err := tx.Broadcast(b.ID)
		if err != nil || now == nil || now.State != b.State {
			return err
		}
		n := 0
		switch b.State {
		case desk.BroadcastDraft:
			if now.Rows > 0 { // it was tidy, and others were added
				return nil
			}
			n, err = tx.DropRows(b.ID, true, desk.BroadcastSkips)
		case desk.BroadcastDeleted:
			n, err = tx.DropRows(b.ID, false, desk.BroadcastSkips)
		case desk.BroadcastCancelled:
			n, err = tx.CancelRows(b.ID, now.EndedAt, desk.BroadcastSkips)
			cancelled = n
		}
		if err != nil {
			return err
		}
		numbers, err := tx.DropNumbers(b.ID, desk.BroadcastSkips)
		if more = n+numbers > 0; err != nil || more {
			return err
		}
		if b.State == desk.BroadcastDeleted {
			return tx.DropBroadcast(b.ID)
		}
		now.Untidy = false
		return tx.PutBroadcast(now)
	})
	if err == nil {
		a.count(desk.RowCancelled, cancelled)
	}
	return more, err
}

// ForgetRows deletes the rows of broadcasts that ended longer ago than keep. Their counts
// stay.
func (a *Service) ForgetRows(ctx context.Context, keep time.Duration) error {
	workspaces, err := a.Store.Workspaces(ctx)
	if err != nil {
		return err
	}
	now, _, err := a.Store.Clock(ctx)
	if err != nil {
		return err
	}
	before := desk.Ago(keep, now, a.Now())
	return steps.Abreast(ctx, workspaces, func(w desk.Workspace) error {
		ids, err := a.Store.EndedBroadcasts(ctx, w.ID, before, lookStep)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := a.forgetRows(ctx, w.ID, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *Service) forgetRows(ctx context.Context, ws, id desk.ID) error {
	return steps.InGroups(ctx, desk.BroadcastSkips, func(limit int) (n int, err error) {
		err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
			b, err := tx.Broadcast(id)
			if err != nil || b == nil || !b.State.Ended() {
				return err
			}
			if n, err = tx.DropRows(id, false, limit); err != nil || n == limit {
				return err
			}
			b.Rows = 0
			return tx.PutBroadcast(b)
		})
		return n, err
	})
}

// StopAll pauses all broadcasts that run or are scheduled: the data come from a backup or from
// another database, and do not tell what was sent later.
func StopAll(ctx context.Context, s store.Store, at time.Time) error {
	workspaces, err := s.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		if err := whileAny(ctx, s, w.ID, func(list []*desk.Broadcast) error { return stop(ctx, s, w.ID, list, desk.TimeOf(at)) }); err != nil {
			return err
		}
	}
	return nil
}

func stop(ctx context.Context, s store.Store, ws desk.ID, list []*desk.Broadcast, now desk.Time) error {
	return s.InTx(ctx, ws, func(tx store.Tx) error {
		for _, listed := range list {
			b, err := tx.Broadcast(listed.ID)
			if err != nil {
				return err
			}
			before := *b
			b.Pause(desk.PausedStopped)
			if err := put(tx, &before, b, desk.Actor{Kind: desk.BySystem}, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// followed are the events that change how far a row's message got, and what its person did.
var followed = []desk.EventType{desk.MessageDelivered, desk.MessageRead, desk.MessageFailed, desk.MessageReceived, desk.ContactOptedOut}

const (
	followEvery = 500 * time.Millisecond
	followGroup = 300

	// A place may be this far behind without being stored, if no row has changed.
	far = 1000
)

// FollowDeliveries gives rows the delivery statuses of their messages, and what their people
// did, until ctx ends.
func (a *Service) FollowDeliveries(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := a.followAll(ctx); err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "follow deliveries of broadcasts", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (a *Service) followAll(ctx context.Context) error {
	list, err := a.news.Workspaces(ctx, a.Store)
	if err != nil || len(list) == 0 {
		a.behind.Store(0)
		return err
	}
	places, err := a.Store.BroadcastPlaces(ctx, list)
	if err != nil {
		a.news.Add(list, false)
		return err
	}
	var failed []error
	behind := int64(0)
	for ws, place := range places {
		left, err := a.follow(ctx, ws, place)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			failed = append(failed, err)
			left = max(left, 1)
		}
		if left > 0 {
			behind += left
			a.news.Add([]desk.ID{ws}, false)
		}
	}
	a.behind.Store(behind)
	return errors.Join(failed...)
}

// follow takes in a group of events of a workspace, and returns how many follow.
func (a *Service) follow(ctx context.Context, ws desk.ID, place desk.EventPlace) (left int64, err error) {
	q := store.EventQuery{From: store.FromPlace, After: place, Limit: followGroup}
	if seen := a.seen[ws]; seen.Seq > place.Seq {
		q.After = seen
	}
	which := func(*desk.Settings) ([]desk.EventType, error) { return followed, nil }
	page, err := a.Store.Events(ctx, ws, q, which)
	if err == nil && page.Expired != "" && q.After != place { // the database was restored
		q.After = place
		page, err = a.Store.Events(ctx, ws, q, which)
	}
	if err == nil && page.Expired != "" {
		q.From = store.FromOldest
		page, err = a.Store.Events(ctx, ws, q, which)
	}
	if err != nil {
		return 0, err
	}
	left = page.Newest.Seq - page.Next.Seq
	rows, err := a.newsOf(ctx, ws, page)
	if err != nil {
		return left, err
	}
	if len(rows) == 0 && page.Next.Seq-place.Seq < far {
		a.seen[ws] = page.Next
		return left, nil // it is not worth a write
	}
	paused := map[desk.ID]desk.BroadcastReason{}
	err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
		clear(paused)
		moved, err := tx.MoveBroadcasts(place, page.Next)
		if err != nil || !moved {
			return err // another process was faster
		}
		for rest := rows; len(rest) > 0; {
			of := rest[0].of.Broadcast
			n := slices.IndexFunc(rest, func(news *rowNews) bool { return news.of.Broadcast != of })
			if n < 0 {
				n = len(rest)
			}
			why, err := a.note(tx, of, rest[:n])
			if err != nil {
				return err
			}
			if why != "" {
				paused[of] = why
			}
			rest = rest[n:]
		}
		return nil
	})
	if err == nil {
		for id, why := range paused {
			a.warnPaused(ctx, ws, id, why)
		}
	}
	return left, err
}

// note changes the rows of a broadcast as events say. It pauses the broadcast if one of them says
// that no more can be sent, and returns the reason.
func (a *Service) note(tx store.Tx, broadcast desk.ID, list []*rowNews) (desk.BroadcastReason, error) {
	var b *desk.Broadcast
	var err error
	if slices.ContainsFunc(list, func(news *rowNews) bool { return a.stops(tx.Settings(), news.message) != "" }) {
		if b, err = tx.Broadcast(broadcast); err != nil { // before its rows, as a claim
			return "", err
		}
	}
	var ids []desk.ID
	for _, news := range list {
		ids = append(ids, news.of.Row)
	}
	rows, err := tx.RowsToChange(broadcast, ids)
	if err != nil {
		return "", err
	}
	var why desk.BroadcastReason
	var changes []store.RowChange
	for _, news := range list {
		row := rows[news.of.Row]
		if row == nil {
			continue
		}
		change := store.Change(row)
		changed := news.message != nil && row.Message == news.message.ID && row.Reach(news.message, a.Now())
		if changed && b != nil && b.State == desk.BroadcastRunning && row.SentAt >= b.ResumedAt {
			why = cmp.Or(why, a.stops(tx.Settings(), news.message))
		}
		for _, h := range news.heard {
			changed = row.Hear(h) || changed
		}
		if changed {
			changes = append(changes, change)
		}
	}
	if err := tx.PutRows(broadcast, changes); err != nil || why == "" {
		return "", err
	}
	before := *b
	b.Pause(why)
	return why, put(tx, &before, b, desk.Actor{Kind: desk.BySystem}, a.Now())
}

// stops is the reason for which the failure of a message (nil: none) pauses its broadcast; "": it
// does not.
func (a *Service) stops(s *desk.Settings, m *desk.Message) desk.BroadcastReason {
	if m == nil || m.Delivery != desk.Failed || m.Failure == nil {
		return ""
	}
	channel := s.Channel(m.ChannelID)
	if channel == nil {
		return ""
	}
	return pausedBy(a.Machine.EffectOf(channel, m.Failure))
}

// A rowNews is what a page of events says about a row.
type rowNews struct {
	of      store.RowRef
	message *desk.Message // the row's message, if its delivery status changed
	heard   []desk.Heard
}

// A told is something that a person did, and where.
type told struct {
	desk.Heard
	place store.TalkPlace
}

// newsOf returns what a page of events says about rows, in the order of the rows' ids.
func (a *Service) newsOf(ctx context.Context, ws desk.ID, page *store.EventPage) ([]*rowNews, error) {
	list, err := a.toldIn(ctx, ws, page)
	if err != nil {
		return nil, err
	}
	var messages []desk.ID
	for id, m := range page.Messages {
		if m != nil && m.Author.Type == desk.AuthorBroadcast {
			messages = append(messages, id)
		}
	}
	for _, t := range list {
		if !t.Quotes.IsZero() {
			messages = append(messages, t.Quotes)
		}
	}
	news := map[store.RowRef]*rowNews{}
	about := func(r *desk.BroadcastRow) *rowNews {
		ref := store.RowRef{Broadcast: r.Broadcast, Row: r.ID}
		if news[ref] == nil {
			news[ref] = &rowNews{of: ref}
		}
		return news[ref]
	}
	ofMessage := map[desk.ID]*desk.BroadcastRow{}
	if len(messages) > 0 {
		found, err := a.Store.RowsOfMessages(ctx, ws, messages)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			ofMessage[r.Message] = r
			if m := page.Messages[r.Message]; m != nil {
				about(r).message = m
			}
		}
	}
	var others []told
	var places []store.TalkPlace
	for _, t := range list {
		if r := ofMessage[t.Quotes]; r != nil {
			n := about(r)
			n.heard = append(n.heard, t.Heard)
			continue
		}
		others, places = append(others, t), append(places, t.place)
	}
	if len(places) > 0 {
		before, err := a.Store.RowsBefore(ctx, ws, places)
		if err != nil {
			return nil, err
		}
		for i, r := range before {
			if r != nil {
				n := about(r)
				n.heard = append(n.heard, others[i].Heard)
			}
		}
	}
	return slices.SortedFunc(maps.Values(news), func(x, y *rowNews) int {
		return cmp.Or(x.of.Broadcast.Compare(y.of.Broadcast), x.of.Row.Compare(y.of.Row))
	}), nil
}

// toldIn returns what people did in a page of events: wrote, or opted out at the provider. A
// stop word is in the message that they wrote.
func (a *Service) toldIn(ctx context.Context, ws desk.ID, page *store.EventPage) (list []told, err error) {
	var people []desk.ID // who opted out
	for i := range page.Events {
		switch e := &page.Events[i]; e.Type {
		case desk.MessageReceived:
			if m := page.Messages[e.Subject]; m != nil {
				if h, counts := m.Heard(); counts {
					list = append(list, told{h, store.TalkPlace{Channel: m.ChannelID, Conversation: m.ConversationID, At: m.TS}})
				}
			}
		case desk.ContactOptedOut:
			if e.TS > 0 {
				people = append(people, e.Subject)
				list = append(list, told{desk.Heard{At: e.TS, OptedOut: true}, store.TalkPlace{Channel: e.Actor.ID, Contact: e.Subject, At: e.TS}})
			}
		}
	}
	if people == nil {
		return list, nil
	}
	merged, err := a.Store.Merged(ctx, ws, people)
	for i := range list {
		if into, gone := merged[list[i].place.Contact]; gone {
			list[i].place.Contact = into.Into
		}
	}
	return list, err
}
