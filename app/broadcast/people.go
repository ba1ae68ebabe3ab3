package broadcast

import (
	"context"
	"slices"

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
// or goes on, nil if its people are rows; and the newest contact, if they are contacts. It refuses
// an audience that does not exist.
func (a *Service) audience(ctx context.Context, s *desk.Settings, b *desk.Broadcast) (c *desk.Collect, last desk.ID, err error) {
	switch {
	case !b.Collects() && b.Rows == 0:
		return nil, last, noPeople("the broadcast has no rows: add some")
	case !b.Collects():
		return b.Collect, last, nil
	case b.Collect != nil:
		c = b.Collect
	default:
		if c, err = a.copied(ctx, s.ID, b.Audience); err != nil {
			return nil, last, err
		}
	}
	if b.Audience.Broadcast.IsZero() {
		if _, err := matcher(s, b.Audience, c); err != nil {
			return nil, last, err
		}
		if last, err = a.Store.LastContact(ctx, s.ID); err == nil && last.IsZero() {
			err = noPeople("the workspace has no contacts")
		}
		return c, last, err
	}
	source, err := a.source(ctx, s.ID, b.Audience)
	if err != nil {
		return nil, last, err
	}
	fit := int64(0)
	for _, status := range b.Audience.Status {
		fit += source.Counts.As(source.State).ByStatus[status]
	}
	if source.Rows == 0 || fit == 0 {
		err = noPeople("nobody in the broadcast that the audience names is among these")
	}
	return c, last, err
}

// copied returns what is copied of an audience at the start: the filter that its segment has now.
func (a *Service) copied(ctx context.Context, ws desk.ID, of *desk.Audience) (*desk.Collect, error) {
	if of.Segment == "" {
		return &desk.Collect{}, nil
	}
	segment, err := a.Store.Segment(ctx, ws, of.Segment)
	if err == nil && segment == nil {
		err = desk.InvalidAt("/audience/segment", "no segment has this key")
	}
	if err != nil {
		return nil, err
	}
	return &desk.Collect{Filter: &segment.Filter}, nil
}

// matcher decides who of the contacts belongs to an audience.
func matcher(s *desk.Settings, of *desk.Audience, c *desk.Collect) (*desk.Matcher, error) {
	at, filter := "/audience/filter", of.Filter
	if c.Filter != nil {
		at, filter = "/audience/segment", c.Filter
	}
	m, err := filter.Matcher(s)
	if err != nil {
		return nil, desk.Within(at, err)
	}
	return m, nil
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

// people returns who fits the audience of a broadcast among up to limit people after a place.
func (a *Service) people(ctx context.Context, s *desk.Settings, b *desk.Broadcast, after desk.ID, limit int) (p page, err error) {
	if b.Audience.Broadcast.IsZero() {
		return a.contacts(ctx, s, b, after, limit)
	}
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

// contacts is people of an audience of contacts. Those that came after the start do not belong
// to it.
func (a *Service) contacts(ctx context.Context, s *desk.Settings, b *desk.Broadcast, after desk.ID, limit int) (p page, err error) {
	m, err := matcher(s, b.Audience, b.Collect)
	if err != nil {
		return p, err
	}
	now, upto := a.Now(), b.Collect.Upto
	part, err := a.Segments.Next(ctx, s.ID, m, after, limit, now)
	if err != nil {
		return p, err
	}
	for _, c := range part.Fit {
		if upto.IsZero() || c.ID.Compare(upto) <= 0 {
			p.list = append(p.list, found{c.ID, &desk.BroadcastRow{Contact: c.ID, Status: desk.RowPending, At: now}})
		}
	}
	p.next, p.more = part.Last, part.More && (upto.IsZero() || part.Last.Compare(upto) < 0)
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
	rows, err := a.Store.PendingRows(ctx, s.ID, b.ID, false, after, limit+1) // one more tells whether others come
	if err != nil {
		return p, err
	}
	waiting, err := a.Store.WaitingRows(ctx, s.ID, b.ID, after, limit+1)
	rows = slices.SortedFunc(slices.Values(append(rows, waiting...)), func(x, y *desk.BroadcastRow) int { return x.ID.Compare(y.ID) })
	for _, r := range rows[:min(len(rows), limit)] {
		p.list, p.next = append(p.list, found{r.ID, r}), r.ID
	}
	p.more = len(rows) > limit
	return p, err
}
