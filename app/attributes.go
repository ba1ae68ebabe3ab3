package app

import (
	"context"
	"slices"

	"parley/desk"
	"parley/store"
)

// PutAttribute creates an attribute or updates its definition. created is true if the
// attribute is new. It returns InvalidRequest or TypeConflict.
func (a *App) PutAttribute(ctx context.Context, p desk.Principal, in desk.AttributeInput) (attribute desk.Attribute, created bool, err error) {
	if err := in.Check(); err != nil { // before a lock is held
		return attribute, false, err
	}
	err = store.UpdateSettingsAs(ctx, a.store, p, desk.AttributesWrite, a.now, func(s *desk.Settings) (desk.Change, error) {
		next := 0
		for _, other := range s.Attributes {
			next = max(next, other.Position+1)
		}
		existing := s.Attributes[in.Key]
		var err error
		attribute, err = in.Apply(existing, len(s.Attributes), next)
		if err == nil {
			err = s.CheckAttributes(&attribute)
		}
		created = existing == nil
		return desk.Change{Attribute: &attribute}, err
	})
	return attribute, created, err
}

// ArchiveAttribute archives or restores an attribute; repeating it changes nothing. It
// returns NotFound for an unknown key.
func (a *App) ArchiveAttribute(ctx context.Context, p desk.Principal, key string, archived bool) (attribute desk.Attribute, err error) {
	err = store.UpdateSettingsAs(ctx, a.store, p, desk.AttributesWrite, a.now, func(s *desk.Settings) (desk.Change, error) {
		existing := s.Attributes[key]
		if existing == nil {
			return desk.Change{}, desk.NotFoundf("no attribute of this workspace has this key").Advise(desk.ListAttributes)
		}
		attribute = *existing
		attribute.Archived = archived
		return desk.Change{Attribute: &attribute}, nil
	})
	return attribute, err
}

// OrderAttributes gives the attributes the positions of their keys in the list. Each
// position is stored on its own; if the call is interrupted, another call continues.
func (a *App) OrderAttributes(ctx context.Context, p desk.Principal, keys []string) error {
	places := make([]int, len(keys)) // the present positions, if no two are the same
	for i, key := range keys {
		if existing := p.Settings.Attributes[key]; existing != nil {
			places[i] = existing.Position
		}
	}
	slices.Sort(places)
	if len(slices.Compact(slices.Clone(places))) < len(places) {
		for i := range places {
			places[i] = i
		}
	}
	for i, key := range keys {
		if existing := p.Settings.Attributes[key]; existing != nil && existing.Position == places[i] {
			continue
		}
		if err := store.UpdateSettingsAs(ctx, a.store, p, desk.AttributesWrite, a.now, func(s *desk.Settings) (desk.Change, error) {
			existing := s.Attributes[key]
			if existing == nil {
				return desk.Change{}, desk.NotFoundf("no attribute of this workspace has this key").Advise(desk.ListAttributes)
			}
			moved := *existing
			moved.Position = places[i]
			return desk.Change{Attribute: &moved}, nil
		}); err != nil {
			return err
		}
	}
	return nil
}
