package segments

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"parley/app/cursors"
	"parley/desk"
)

const (
	// step is how many contacts a page looks at in one go.
	step = 500

	// patience is how long a page looks for contacts before it ends with those that it has.
	patience = time.Second
)

// Matcher returns what decides which contacts are in a segment, or InvalidRequest.
func (a *Service) Matcher(ctx context.Context, s *desk.Settings, key string) (*desk.Matcher, error) {
	segment, err := a.segment(ctx, s.ID, key)
	if err != nil {
		return nil, err
	}
	if segment == nil {
		return nil, desk.InvalidAt("/segment", "there is no segment with the key %s", desk.Quote(key))
	}
	m, err := segment.Filter.Matcher(s)
	var refused *desk.Error
	if errors.As(err, &refused) { // an attribute was archived
		return nil, desk.InvalidAt("/segment", "its filter is not valid any more: %s: %s", refused.At, refused.Message)
	}
	return m, err
}

// Contacts returns a page of the contacts of a segment in export order, and the cursor of the
// next page, "" if there is none. It looks at up to desk.MaxLooked contacts, so a page may be
// short, or empty, and have a next one. It returns InvalidRequest for an unknown segment, and
// for a cursor of another one.
func (a *Service) Contacts(ctx context.Context, p desk.Principal, key, cursor string, limit int) (found []*desk.Contact, next string, err error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, "", err
	}
	m, err := a.Matcher(ctx, p.Settings, key)
	if err != nil {
		return nil, "", err
	}
	list := cursors.List{Workspace: p.Workspace(), Name: "segment", Filter: key}
	after := desk.ContactPlace{UpdatedAt: -1}
	if cursor != "" {
		place, err := a.Cursors.Open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		after = desk.ContactPlace{UpdatedAt: desk.Time(binary.BigEndian.Uint64(place)), ID: desk.ID(place[8:])}
	}
	seal := func() string {
		return a.Cursors.Seal(list, append(binary.BigEndian.AppendUint64(nil, uint64(after.UpdatedAt)), after.ID[:]...))
	}
	size, now, began := desk.NewPageSize(limit), a.Now(), time.Now()
	for looked := 0; looked < desk.MaxLooked && (looked == 0 || time.Since(began) < patience); {
		page, more, err := a.Store.Contacts(ctx, p.Workspace(), desk.ContactFilter{}, after, min(step, desk.MaxLooked-looked))
		if err != nil {
			return nil, "", err
		}
		fits, err := a.fits(ctx, p.Workspace(), m, page, now)
		if err != nil {
			return nil, "", err
		}
		for i, c := range page {
			if fits[i] && !size.Add(c.ListBytes()) {
				return found, seal(), nil
			}
			if after = c.Place(); fits[i] {
				found = append(found, c)
			}
			if len(found) == limit && (i < len(page)-1 || more != nil) {
				return found, seal(), nil
			}
		}
		if more == nil {
			return found, "", nil
		}
		looked += len(page)
	}
	return found, seal(), nil
}

// A Part has those of some neighbouring contacts that fit a filter.
type Part struct {
	Fit    []*desk.Contact
	Looked int     // how many contacts were looked at
	Last   desk.ID // the last of them; the zero id if there was none
	More   bool    // others follow
}

// Next looks at the next contacts of a workspace after an id, up to most of them, and returns
// those that fit, in the order of ids. It looks at less if the contacts are large.
func (a *Service) Next(ctx context.Context, ws desk.ID, m *desk.Matcher, after desk.ID, most int, now desk.Time) (Part, error) {
	list, more, err := a.Store.ContactsAfter(ctx, ws, after, most)
	if err != nil {
		return Part{}, err
	}
	fits, err := a.fits(ctx, ws, m, list, now)
	if err != nil {
		return Part{}, err
	}
	part := Part{Looked: len(list), More: more}
	for i, c := range list {
		part.Last = c.ID
		if fits[i] {
			part.Fit = append(part.Fit, c)
		}
	}
	return part, nil
}

// mostCounted is up to which number Count counts.
const mostCounted = 1000

// Count counts the contacts that fit now. whole is false if others may fit, too: Count looks at
// up to desk.MaxMemberLooked contacts, and ends at mostCounted.
func (a *Service) Count(ctx context.Context, p desk.Principal, m *desk.Matcher) (n int, whole bool, err error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return 0, false, err
	}
	var after desk.ID
	now, began := a.Now(), time.Now()
	for looked := 0; looked < desk.MaxMemberLooked && n < mostCounted && (looked == 0 || time.Since(began) < patience); {
		part, err := a.Next(ctx, p.Workspace(), m, after, min(step, desk.MaxMemberLooked-looked), now)
		if err != nil {
			return 0, false, err
		}
		n += len(part.Fit)
		if !part.More {
			return min(n, mostCounted), n <= mostCounted, nil
		}
		looked, after = looked+part.Looked, part.Last
	}
	return min(n, mostCounted), false, nil
}

// fits tells which of the contacts fit.
func (a *Service) fits(ctx context.Context, ws desk.ID, m *desk.Matcher, list []*desk.Contact, now desk.Time) ([]bool, error) {
	var wrote map[desk.ID]desk.Time
	if m.Wrote && len(list) > 0 {
		ids := make([]desk.ID, len(list))
		for i, c := range list {
			ids[i] = c.ID
		}
		var err error
		if wrote, err = a.Store.WroteAt(ctx, ws, ids); err != nil {
			return nil, err
		}
	}
	fits := make([]bool, len(list))
	for i, c := range list {
		fits[i] = m.Fits(c, wrote[c.ID], now)
	}
	return fits, nil
}
