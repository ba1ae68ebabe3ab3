package broadcast

import (
	"context"
	"errors"

	"parley/desk"
	"parley/store"
)

// collectStep is how many people one transaction looks at, to write down who fits.
const collectStep = 1000

// collect writes down the next people of a broadcast's audience. It pauses the broadcast if too
// many fit, or if there is no such audience any more.
func (a *Service) collect(ctx context.Context, d *drive, s *desk.Settings, b *desk.Broadcast) error {
	p, err := a.people(ctx, s, b, b.Collect.After, collectStep)
	if desk.IsType(err, desk.InvalidRequest) {
		return a.pause(ctx, d, b, desk.PausedAsked)
	}
	if err != nil {
		return err
	}
	tooMany := false
	err = a.Store.InTx(ctx, d.ws, func(tx store.Tx) error {
		tooMany = false
		use, err := tx.BroadcastUse()
		if err != nil {
			return err
		}
		now, err := a.collecting(tx, b)
		if err != nil {
			return err
		}
		before, collect := *now, *now.Collect
		now.Collect = &collect
		fit, err := strangers(tx, now, &p)
		if err != nil {
			return err
		}
		if room := min(now.AtMost-now.Rows, desk.MaxAllBroadcastRows-use.Rows); int64(len(fit)) > room {
			tooMany = true
			if fit = fit[:max(0, room)]; len(fit) > 0 {
				collect.After = fit[len(fit)-1].at
			}
		} else {
			if collect.After, collect.Done = p.next, !p.more; collect.Done {
				collect.Filter = nil
			}
		}
		changes := make([]store.RowChange, len(fit))
		for i, f := range fit {
			row := *f.row
			row.ID, row.Broadcast = a.NewID(), now.ID
			changes[i] = store.RowChange{Row: &row}
		}
		if err := tx.PutRows(now.ID, changes); err != nil {
			return err
		}
		now.Rows += int64(len(fit))
		switch {
		case tooMany:
			now.Pause(desk.PausedTooMany)
		case collect.Done:
			now.Reason = ""
		default:
			return tx.PutBroadcast(now)
		}
		return put(tx, &before, now, desk.Actor{Kind: desk.BySystem}, a.Now())
	})
	var halt *halted
	if errors.As(err, &halt) {
		if halt.why == otherHolder {
			d.cancel()
		}
		return nil // the next round finds how it is now
	}
	if err == nil && tooMany {
		a.warnPaused(ctx, d.ws, b.ID, desk.PausedTooMany)
	}
	return err
}

// collecting returns a broadcast whose next people this process writes down: it runs, and nobody
// has written down more of them since it was read.
func (a *Service) collecting(tx store.Tx, read *desk.Broadcast) (*desk.Broadcast, error) {
	if _, ours, err := tx.Leased(desk.BroadcastTask, a.holder()); err != nil {
		return nil, err
	} else if !ours {
		return nil, &halted{otherHolder}
	}
	now, err := tx.Broadcast(read.ID)
	if err != nil {
		return nil, err
	}
	if now == nil || now.State != desk.BroadcastRunning || !now.Collects() || now.Collect.After != read.Collect.After {
		return nil, &halted{notRunning}
	}
	return now, nil
}

// strangers returns those of the people who have no row yet, and are not deleted by now. The
// contact of a row may have become part of another contact since.
func strangers(tx store.Tx, b *desk.Broadcast, p *page) (fit []found, err error) {
	rows := p.rows()
	there, err := tx.KeepContactsNext(contactsOf(rows))
	if err != nil {
		return nil, err
	}
	known, err := sameRows(tx, b.ID, rows)
	if err != nil {
		return nil, err
	}
	erased, err := erasedSince(tx, b.Audience.Broadcast, p)
	if err != nil {
		return nil, err
	}
	for _, f := range p.list {
		gone := !f.row.Contact.IsZero() && !there[f.row.Contact] || erased[f.at]
		if !gone && known.of(f.row) == nil {
			known.add(f.row)
			fit = append(fit, f)
		}
	}
	return fit, nil
}

// erasedSince returns those of the rows of an earlier broadcast that named their people only by their
// numbers, and say nothing more by now: the people were deleted.
func erasedSince(tx store.Tx, source desk.ID, p *page) (map[desk.ID]bool, error) {
	erased := map[desk.ID]bool{}
	var places []desk.ID
	for _, f := range p.list {
		if f.row.Contact.IsZero() {
			places = append(places, f.at)
		}
	}
	if places == nil {
		return erased, nil
	}
	rows, err := tx.RowsToChange(source, places)
	for _, place := range places {
		erased[place] = rows[place] == nil || !rows[place].HasPerson()
	}
	return erased, err
}
