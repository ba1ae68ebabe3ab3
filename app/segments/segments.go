// Package segments finds the contacts that fit a filter, and keeps filters with names.
//
//	segments.go  the Service: segments, changing them
//	find.go      contacts that fit
package segments

import (
	"context"
	"slices"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store   store.Store
	Cursors cursors.Sealer
	Now     func() desk.Time
}

// A Service keeps segments. Its methods are safe for concurrent use.
type Service struct{ Deps }

// New builds a Service.
func New(d Deps) *Service { return &Service{d} }

// Segments lists the workspace's segments by key.
func (a *Service) Segments(ctx context.Context, p desk.Principal) ([]desk.Segment, error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, err
	}
	return a.Store.Segments(ctx, p.Workspace())
}

// Segment returns a segment, or NotFound.
func (a *Service) Segment(ctx context.Context, p desk.Principal, key string) (*desk.Segment, error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, err
	}
	s, err := a.segment(ctx, p.Workspace(), key)
	if err == nil && s == nil {
		err = desk.NoSegment()
	}
	return s, err
}

// segment returns a segment, or nil.
func (a *Service) segment(ctx context.Context, ws desk.ID, key string) (*desk.Segment, error) {
	if !desk.IsSegmentKey(key) { // PostgreSQL refuses some texts
		return nil, nil
	}
	return a.Store.Segment(ctx, ws, key)
}

// An Edit is a segment as it was sent.
type Edit struct {
	Key, Name string
	Filter    desk.Filter

	// Seen is the segment that the caller has seen. Put returns Changed, with the segment as
	// it is, if it is another one now. The zero Segment means that there was none; nil accepts
	// any.
	Seen *desk.Segment
}

// Put stores a segment, and replaces one with the same key. created is true if there was none.
// It returns InvalidRequest, also if there is no room.
func (a *Service) Put(ctx context.Context, p desk.Principal, e Edit) (s desk.Segment, created bool, err error) {
	now := a.Now()
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.SegmentsWrite, now); err != nil {
			return err
		}
		if s, err = desk.NewSegment(tx.Settings(), e.Key, e.Name, e.Filter, now); err != nil {
			return err
		}
		list, err := tx.Segments()
		if err != nil {
			return err
		}
		stored := find(list, e.Key)
		event := desk.Event{Type: desk.SegmentCreated, Key: e.Key, Actor: p.Actor, At: now}
		if created = stored == nil; !created {
			event.Type, event.Changed = desk.SegmentUpdated, s.Changes(stored)
		}
		switch {
		case e.Seen != nil && (created != (e.Seen.Key == "") || !created && stored.Changes(e.Seen) != nil && event.Changed != nil):
			return changed(stored)
		case !created && event.Changed == nil:
			s = *stored
			return nil
		}
		if err := desk.RoomForSegment(list, &s); err != nil {
			return err
		}
		if err := tx.PutSegment(s); err != nil {
			return err
		}
		return tx.Append(event)
	})
	return s, created, err
}

func find(list []desk.Segment, key string) *desk.Segment {
	if i := slices.IndexFunc(list, func(s desk.Segment) bool { return s.Key == key }); i >= 0 {
		return &list[i]
	}
	return nil
}

func changed(stored *desk.Segment) error {
	e := desk.Errorf(desk.Changed, "the segment has changed meanwhile: nothing was stored")
	e.Details = stored
	return e
}

// Delete deletes a segment, or returns NotFound.
func (a *Service) Delete(ctx context.Context, p desk.Principal, key string) error {
	now := a.Now()
	return a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.SegmentsWrite, now); err != nil {
			return err
		}
		list, err := tx.Segments()
		if err != nil {
			return err
		}
		if find(list, key) == nil {
			return desk.NoSegment()
		}
		if err := tx.DropSegment(key); err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: desk.SegmentDeleted, Key: key, Actor: p.Actor, At: now})
	})
}
