package app

import (
	"context"

	"parley/app/cursors"
	"parley/desk"
)

func noAttempt() error { return desk.NotFoundf("no attempt has this id").Advise(desk.ListAttempts) }

// An AttemptFilter narrows the list of attempts; its zero value matches all.
type AttemptFilter struct {
	Phase     desk.Phase // "": any
	Broadcast *desk.ID   // nil: any; zero: only those of single sends
}

// attemptStep is how many attempts are read at a time when some are left out, and
// attemptsLooked how many are looked at for a page.
const (
	attemptStep    = 100
	attemptsLooked = 1000
)

// Attempts returns a page of a workspace's attempts that match a filter, newest first, and the
// cursor of the next page, "" if there is none. A page may be short, or even empty, although
// there is a next one.
func (a *App) Attempts(ctx context.Context, p desk.Principal, f AttemptFilter, cursor string, limit int) (list []*desk.Attempt, _ string, err error) {
	if err := p.Allow(desk.AttemptsRead); err != nil {
		return nil, "", err
	}
	of := cursors.List{Workspace: p.Workspace(), Name: "attempts", Filter: string(f.Phase)}
	if f.Broadcast != nil {
		of.Filter += " " + f.Broadcast.String()
	}
	before, err := a.cursors.OpenID(of, cursor)
	if err != nil {
		return nil, "", err
	}
	if f.Broadcast == nil {
		found, next, err := a.store.Attempts(ctx, p.Workspace(), f.Phase, before, limit)
		return found, a.cursors.SealID(of, next), err
	}
	for looked := 0; looked < attemptsLooked; {
		page, next, err := a.attemptsOf(ctx, p.Workspace(), f, before)
		if err != nil {
			return nil, "", err
		}
		for _, at := range page {
			if len(list) == limit {
				return list, a.cursors.Seal(of, before[:]), nil
			}
			if before = &at.ID; at.Broadcast == *f.Broadcast && (f.Phase == "" || at.Phase == f.Phase) {
				list = append(list, at)
			}
		}
		if next == nil {
			return list, "", nil
		}
		before, looked = next, looked+len(page)
	}
	return list, a.cursors.Seal(of, before[:]), nil
}

func (a *App) attemptsOf(ctx context.Context, ws desk.ID, f AttemptFilter, before *desk.ID) ([]*desk.Attempt, *desk.ID, error) {
	if f.Broadcast == nil || f.Broadcast.IsZero() {
		return a.store.Attempts(ctx, ws, f.Phase, before, attemptStep)
	}
	return a.store.BroadcastAttempts(ctx, ws, *f.Broadcast, before, attemptStep)
}

// failedLooked is how many attempts are looked at for a page of failed ones.
const failedLooked = 600

// FailedAttempts returns a page of the attempts of a broadcast (nil: of any; zero: of single
// sends) whose message did not reach the person, newest first, and the cursor of the next
// page, "" if there is none. There is no index of failures: a page looks at failedLooked
// attempts. So it may be short, or even empty, although there is a next page.
func (a *App) FailedAttempts(ctx context.Context, p desk.Principal, broadcast *desk.ID, cursor string, limit int) (list []*desk.Attempt, next string, err error) {
	if err := p.Allow(desk.AttemptsRead); err != nil {
		return nil, "", err
	}
	of := cursors.List{Workspace: p.Workspace(), Name: "attempts", Filter: "failed"}
	if broadcast != nil {
		of.Filter += " " + broadcast.String()
	}
	before, err := a.cursors.OpenID(of, cursor)
	if err != nil {
		return nil, "", err
	}
	for looked := 0; looked < failedLooked && len(list) < limit; {
		page, after, err := a.attemptsOf(ctx, p.Workspace(), AttemptFilter{Broadcast: broadcast}, before)
		if err != nil {
			return nil, "", err
		}
		sent, err := a.MessagesSent(ctx, p, page)
		if err != nil {
			return nil, "", err
		}
		for _, at := range page {
			if len(list) == limit {
				return list, a.cursors.Seal(of, before[:]), nil
			}
			if before = &at.ID; at.Failed(sent[at.ID]) && (broadcast == nil || at.Broadcast == *broadcast) {
				list = append(list, at)
			}
		}
		if after == nil {
			return list, "", nil
		}
		looked += len(page)
	}
	return list, a.cursors.Seal(of, before[:]), nil
}

// MessagesSent returns the messages of a page of attempts, by the attempt's id. An attempt
// has no message there if it is not done, if the provider's id of the message is not known,
// or if the contact was deleted.
func (a *App) MessagesSent(ctx context.Context, p desk.Principal, attempts []*desk.Attempt) (map[desk.ID]*desk.Message, error) {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return nil, err
	}
	sent := map[desk.ID]*desk.Message{}
	var refs []desk.MessageRef
	of := map[desk.MessageRef]desk.ID{}
	for _, at := range attempts {
		if at.Phase == desk.Done && at.ExternalID != "" {
			ref := desk.MessageRef{Channel: at.Plan.Channel, ExternalID: at.ExternalID}
			refs, of[ref] = append(refs, ref), at.ID
		}
	}
	if len(refs) == 0 {
		return sent, nil
	}
	found, err := a.store.MessagesBy(ctx, p.Workspace(), refs)
	if err != nil {
		return nil, err
	}
	for _, m := range found {
		sent[of[desk.MessageRef{Channel: m.ChannelID, ExternalID: m.ExternalID}]] = m
	}
	return sent, nil
}

// Attempt returns an attempt, or NotFound.
func (a *App) Attempt(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Attempt, error) {
	if err := p.Allow(desk.AttemptsRead); err != nil {
		return nil, err
	}
	at, err := a.store.Attempt(ctx, p.Workspace(), id)
	if err == nil && at == nil {
		err = noAttempt()
	}
	return at, err
}
