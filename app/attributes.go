package app

import (
	"context"

	"parley/desk"
)

// PutAttribute creates an attribute or updates its definition; created tells
// which. It returns InvalidRequest or TypeConflict.
func (a *App) PutAttribute(ctx context.Context, p Principal, in desk.AttributeInput) (attribute desk.Attribute, created bool, err error) {
	err = a.update(ctx, p, desk.AttributesWrite, func(s *desk.Settings) (desk.Change, error) {
		next := 0
		for _, other := range s.Attributes {
			next = max(next, other.Position+1)
		}
		existing := s.Attributes[in.Key]
		var err error
		attribute, err = in.Apply(existing, len(s.Attributes), next)
		created = existing == nil
		return desk.Change{Attribute: changed(existing, &attribute)}, err
	})
	return attribute, created, err
}

// ArchiveAttribute archives an attribute, or restores it; either may be repeated.
// It returns NotFound for an unknown key.
func (a *App) ArchiveAttribute(ctx context.Context, p Principal, key string, archived bool) (attribute desk.Attribute, err error) {
	err = a.update(ctx, p, desk.AttributesWrite, func(s *desk.Settings) (desk.Change, error) {
		existing := s.Attributes[key]
		if existing == nil {
			return desk.Change{}, desk.NotFoundf("no attribute of this workspace has this key; GET /attributes?archived=all lists them")
		}
		attribute = *existing
		attribute.Archived = archived
		return desk.Change{Attribute: changed(existing, &attribute)}, nil
	})
	return attribute, err
}

// changed returns next, or nil when it equals what is stored.
func changed(existing, next *desk.Attribute) *desk.Attribute {
	if existing != nil && existing.Equal(next) {
		return nil
	}
	return next
}

// update edits the principal's workspace, checking the key inside the transaction.
func (a *App) update(ctx context.Context, p Principal, needs desk.Permission, decide func(*desk.Settings) (desk.Change, error)) error {
	return a.store.UpdateSettings(ctx, p.Workspace(), func(s *desk.Settings) (desk.Change, error) {
		if err := p.still(s, needs, a.now()); err != nil {
			return desk.Change{}, err
		}
		return decide(s)
	})
}
