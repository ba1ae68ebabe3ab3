package segments

import (
	"context"

	"parley/desk"
)

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
