package broadcast

import (
	"context"

	"parley/desk"
)

// A found person fits an audience.
type found struct {
	at  desk.ID            // the place of the person
	row *desk.BroadcastRow // without an id
}

// A page has the people who fit an audience, in order, among those up to a place.
type page struct {
	list []found
	next desk.ID // the place of the last person that was looked at
	more bool    // others come after them
}

// audience returns how far the people of a broadcast's audience are written down when it begins
// or goes on; nil if its people are rows. It refuses an audience that does not exist.
func (a *Service) audience(ctx context.Context, s *desk.Settings, b *desk.Broadcast) (*desk.Collect, error) {
	switch {
	case b.Collects():
	case b.Rows == 0:
		return nil, noPeople("the broadcast has no rows: add some")
	default:
		return b.Collect, nil
	}
	source, err := a.source(ctx, s.ID, b.Audience)
	if err != nil {
		return nil, err
	}
	fit := int64(0)
	for _, status := range b.Audience.Status {
		fit += source.Counts.As(source.State).ByStatus[status]
	}
	if source.Rows == 0 || fit == 0 {
		return nil, noPeople("nobody in the broadcast that the audience names is among these")
	}
	if b.Collect != nil {
		return b.Collect, nil
	}
	return &desk.Collect{}, nil
}

func noPeople(message string) error { return desk.Errorf(desk.BroadcastEmpty, "%s", message) }

// source returns the ended broadcast whose people an audience takes.
func (a *Service) source(ctx context.Context, ws desk.ID, of *desk.Audience) (*desk.Broadcast, error) {
	source, err := a.Store.Broadcast(ctx, ws, of.Broadcast)
	switch {
	case err != nil:
		return nil, err
	case source == nil:
		return nil, desk.InvalidAt("/audience/broadcast", "no broadcast has this id")
	case !source.State.Ended():
		return nil, desk.InvalidAt("/audience/broadcast", "this broadcast is %s: it must have ended", source.State)
	}
	return source, nil
}

// people returns who fits a broadcast's audience among up to limit people after a place.
func (a *Service) people(ctx context.Context, s *desk.Settings, b *desk.Broadcast, after desk.ID, limit int) (p page, err error) {
	source, err := a.source(ctx, s.ID, b.Audience)
	if err != nil {
		return p, err
	}
	rows, next, err := a.Store.BroadcastRows(ctx, s.ID, source.ID, desk.RowFilter{}, after, limit)
	if err != nil {
		return p, err
	}
	for _, r := range rows {
		p.next = r.ID
		if seen := r.As(source); b.Audience.TakesRow(&seen) {
			p.list = append(p.list, found{r.ID, seen.Again(a.Now())})
		}
	}
	p.more = next != nil
	return p, nil
}

// rows returns the rows of the people.
func (p *page) rows() []*desk.BroadcastRow {
	rows := make([]*desk.BroadcastRow, len(p.list))
	for i, f := range p.list {
		rows[i] = f.row
	}
	return rows
}

// nextPeople returns the next people that a check judges: pending rows, or who fits an audience
// that is not written down yet.
func (a *Service) nextPeople(ctx context.Context, s *desk.Settings, b *desk.Broadcast, after desk.ID, limit int) (p page, err error) {
	if b.Collects() {
		return a.people(ctx, s, b, after, limit)
	}
	rows, err := a.Store.PendingRows(ctx, s.ID, b.ID, false, after, limit)
	for _, r := range rows {
		p.list, p.next = append(p.list, found{r.ID, r}), r.ID
	}
	p.more = len(rows) == limit
	return p, err
}
