package broadcast

import (
	"errors"

	"parley/desk"
	"parley/store"
)

// ErrNotClaimed means that a row was not claimed, because it was skipped, or because
// somebody else has it.
var ErrNotClaimed = errors.New("the row was not claimed")

// A halted says why no row of a broadcast can be claimed now.
type halted struct{ why desk.BroadcastReason }

func (h *halted) Error() string { return "the broadcast can't go on: " + string(h.why) }

// notRunning is the reason of a halted broadcast that somebody else has paused or ended.
const notRunning desk.BroadcastReason = "state"

// otherHolder is the reason of one that another process drives.
const otherHolder desk.BroadcastReason = "lease"

// claim claims a row, in a transaction: it checks again all that was checked before, and that
// the broadcast runs, that this process drives it, and that who started it still may. It tells
// whether the row was claimed; if it was not, the row may have been skipped.
func (a *Service) claim(tx store.Tx, id desk.ID, row *desk.BroadcastRow, t *desk.Template, plan func(Sending) (*desk.Attempt, error)) (claimed, skipped bool, err error) {
	b, err := a.mayClaim(tx, id)
	if err != nil {
		return false, false, err
	}
	settings := tx.Settings()
	looks, err := a.look(tx, settings, b, t, []*desk.BroadcastRow{row}, tx.Now())
	if err != nil {
		return false, false, err
	}
	l := &looks[0]
	pending, err := stillPending(tx, row)
	if err != nil || pending == nil {
		return false, false, err
	}
	now := pending[0]
	change := store.Change(now)
	if l.Verdict.Reason == "" {
		if l, err = a.takeNumbers(tx, settings, b, t, l); err != nil {
			return false, false, err
		}
	}
	if l.Verdict.Reason != "" {
		now.Skip(l.Verdict.Reason, l.Verdict.Failure, a.Now())
		return false, true, tx.PutRows(id, []store.RowChange{change})
	}
	at, err := plan(Sending{Broadcast: b, Row: now, Template: t, Contact: l.Contact, Verdict: l.Verdict})
	if err != nil {
		return false, false, err
	}
	now.Claimed(at, a.Now())
	return true, false, tx.PutRows(id, []store.RowChange{change})
}

// takeNumbers claims the numbers of a row that was judged. It returns the row as it is judged then.
func (a *Service) takeNumbers(tx store.Tx, s *desk.Settings, b *desk.Broadcast, t *desk.Template, l *look) (*look, error) {
	ours, err := tx.TakeNumbers(b.ID, l.Row.ID, l.Numbers, l.Passed)
	switch {
	case err != nil:
		return nil, err
	case !ours:
		l.Verdict.Reason = desk.SkipDuplicate
	case l.Passed != nil: // a row that had a number may have been claimed meanwhile; from now on it can't
		looks, err := a.look(tx, s, b, t, []*desk.BroadcastRow{l.Row}, tx.Now())
		if err != nil {
			return nil, err
		}
		return &looks[0], nil
	}
	return l, nil
}

// stillPending returns rows of one broadcast as they are now. It leaves out those that somebody
// else has claimed, and those that a deletion or a merge has changed since: their turn comes again.
func stillPending(tx store.Tx, rows ...*desk.BroadcastRow) (pending []*desk.BroadcastRow, err error) {
	var ids []desk.ID
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	there, err := tx.RowsToChange(rows[0].Broadcast, ids)
	for _, row := range rows {
		now := there[row.ID]
		if now != nil && now.Status == desk.RowPending && now.Data.Claims == row.Data.Claims && now.Contact == row.Contact && now.Data.Phone == row.Data.Phone {
			pending = append(pending, now)
		}
	}
	return pending, err
}

// mayClaim returns a broadcast if its rows may be claimed in this transaction.
func (a *Service) mayClaim(tx store.Tx, id desk.ID) (*desk.Broadcast, error) {
	b, err := a.running(tx, id)
	if err != nil {
		return nil, err
	}
	return b, a.still(tx.Settings(), b)
}

// maySkip is mayClaim for rows that are only skipped.
func (a *Service) maySkip(tx store.Tx, id desk.ID) error {
	_, err := a.running(tx, id)
	return err
}

// running returns a broadcast that runs, and that this process drives and has driven lately.
func (a *Service) running(tx store.Tx, id desk.ID) (*desk.Broadcast, error) {
	b, driven, err := tx.BroadcastToClaim(id, a.holder())
	switch {
	case err != nil:
		return nil, err
	case !driven:
		return nil, &halted{otherHolder}
	case b == nil || b.State != desk.BroadcastRunning:
		return nil, &halted{notRunning}
	case b.Stopped(tx.Now()):
		return nil, &halted{desk.PausedStopped}
	}
	return b, nil
}

// still returns a halted error if who started a broadcast may not send any more, or if its
// channel can't be used.
func (a *Service) still(s *desk.Settings, b *desk.Broadcast) error {
	if err := s.StillMay(b.StartedBy, desk.BroadcastsSend, a.Now()); err != nil {
		return &halted{desk.PausedStarter}
	}
	channel := s.Channel(b.Channel)
	if channel == nil || a.Machine.Usable(channel) != nil {
		return &halted{desk.PausedChannel}
	}
	return nil
}
