package app

import (
	"cmp"
	"context"
	"slices"

	"parley/desk"
	"parley/store"
)

// EraseTogether is how many contacts Erase should be asked to delete at a time.
const EraseTogether = 100

// Erase deletes the contacts that were deleted before a restore brought them back, and returns
// how many these are. It also stores the erasures of those that are absent: another backup may
// have them. Whoever is part of another contact there is separated first, with all that was merged
// into that one later. It may be repeated.
func (a *App) Erase(ctx context.Context, p desk.Principal, list []desk.Erasure) (erased int, err error) {
	list = slices.SortedFunc(slices.Values(list), func(x, y desk.Erasure) int { return cmp.Or(x.ID.Compare(y.ID), cmp.Compare(x.At, y.At)) })
	list = slices.CompactFunc(list, func(x, y desk.Erasure) bool { return x.ID == y.ID })
	ops := make([]*desk.Op, len(list))
	for n, e := range list {
		ops[n] = &desk.Op{Kind: desk.OpDelete, ByID: true, Target: e.ID}
	}
	_, errs, err := a.WriteAll(ctx, p, ops)
	if err != nil {
		return 0, err
	}
	for n, err := range errs {
		if _, merged := desk.AsError(err).Details.(desk.Merged); err != nil && merged {
			if err = a.Merges.Separate(ctx, p, list[n].ID); err == nil {
				_, err = a.Write(ctx, p, ops[n])
			}
		}
		switch {
		case err == nil:
			erased++
		case !desk.IsType(err, desk.NotFound):
			return erased, err
		}
	}
	return erased, a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error { return tx.PutErasures(list) })
}
