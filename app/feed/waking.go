package feed

import (
	"context"
	"errors"
	"sync/atomic"

	"parley/desk"
	"parley/store"
)

// A wakingStore wakes the followers of a workspace after each commit, and counts
// the events that were stored.
type wakingStore struct {
	store.Store
	wake    func(ws desk.ID) // called after each commit
	stored  eventCounts
	webhook func() // called after a webhook may have changed
}

// eventCounts are numbers of stored events, by type. The map itself never changes.
type eventCounts map[desk.EventType]*atomic.Int64

func newEventCounts() eventCounts {
	counts := eventCounts{}
	for _, t := range desk.EventTypes {
		counts[t] = new(atomic.Int64)
	}
	return counts
}

// committed counts events after a commit, and wakes followers.
func (s wakingStore) committed(ws desk.ID, events []desk.Event, err error) {
	if err == nil {
		for i := range events {
			if n := s.stored[events[i].Type]; n != nil {
				n.Add(1)
			}
		}
	}
	if err == nil || errors.Is(err, store.ErrCommitLost) { // after a lost commit, the events may be stored
		s.wake(ws)
	}
}

func (s wakingStore) UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(*desk.Book, int, int)) error {
	var events []desk.Event
	err := s.Store.UpdateContacts(ctx, ws, ops, func(b *desk.Book, from, to int) {
		if from == 0 { // the first run, or a repeated one
			events = nil
		}
		apply(b, from, to)
		if events == nil {
			events = b.Events() // usually there is only one part
		} else {
			events = append(events[:len(events):len(events)], b.Events()...)
		}
	})
	s.committed(ws, events, err)
	return err
}

func (s wakingStore) UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error {
	var events []desk.Event
	webhook := false
	err := s.Store.UpdateSettings(ctx, ws, func(settings *desk.Settings) (desk.Change, error) {
		change, err := decide(settings)
		events, webhook = change.Events, change.Webhook != nil || change.RemoveWebhook != nil
		return change, err
	})
	s.committed(ws, events, err)
	if webhook && (err == nil || errors.Is(err, store.ErrCommitLost)) {
		s.webhook()
	}
	return err
}

func (s wakingStore) DeleteWorkspace(ctx context.Context, ws desk.ID, check func(string) error) error {
	defer s.wake(ws)
	return s.Store.DeleteWorkspace(ctx, ws, check)
}

func (s wakingStore) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	var events []desk.Event
	err := s.Store.InTx(ctx, ws, func(tx store.Tx) error {
		events = nil
		return f(noting{tx, &events})
	})
	s.committed(ws, events, err)
	return err
}

// noting is a Tx that records the appended events.
type noting struct {
	store.Tx
	events *[]desk.Event
}

func (t noting) Append(events ...desk.Event) error {
	*t.events = append(*t.events, events...)
	return t.Tx.Append(events...)
}

func (t noting) Flush(b *desk.Book) error {
	*t.events = append(*t.events, b.Events()...)
	return t.Tx.Flush(b)
}
