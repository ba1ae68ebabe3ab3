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
// have them. merged are those that are part of another contact: once all others are deleted, maybe
// that one too, they are for EraseMerged. Erase may be repeated.
func (a *App) Erase(ctx context.Context, p desk.Principal, list []desk.Erasure) (erased int, merged []desk.ID, err error) {
	list = slices.SortedFunc(slices.Values(list), func(x, y desk.Erasure) int { return cmp.Or(x.ID.Compare(y.ID), cmp.Compare(x.At, y.At)) })
	list = slices.CompactFunc(list, func(x, y desk.Erasure) bool { return x.ID == y.ID })
	ops := make([]*desk.Op, len(list))
	for n, e := range list {
		ops[n] = erasing(e.ID)
	}
	_, errs, err := a.WriteAll(ctx, p, ops)
	if err != nil {
		return 0, nil, err
	}
	for n, err := range errs {
		if err == nil {
			erased++
			continue
		}
		if _, part := desk.AsError(err).Details.(desk.Merged); part {
			merged = append(merged, list[n].ID)
		} else if !desk.IsType(err, desk.NotFound) {
			return erased, merged, err
		}
	}
	return erased, merged, a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error { return tx.PutErasures(list) })
}

// EraseMerged deletes a contact that is part of another one, and tells whether it was there. It is
// separated first, with all that was merged into the other one later. EraseMerged returns
// UndoExpired if it can't be separated any more.
func (a *App) EraseMerged(ctx context.Context, p desk.Principal, contact desk.ID) (erased bool, err error) {
	err = a.Merges.Separate(ctx, p, contact)
	if err == nil {
		_, err = a.Write(ctx, p, erasing(contact))
	}
	if desk.IsType(err, desk.NotFound) { // it went with the other one
		return false, nil
	}
	return err == nil, err
}

func erasing(contact desk.ID) *desk.Op {
	return &desk.Op{Kind: desk.OpDelete, ByID: true, Target: contact}
}
