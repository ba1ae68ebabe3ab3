package app

import (
	"context"

	"parley/desk"
	"parley/store"
)

// afterwards are callbacks that run after the commit. The transaction's closure itself may
// run again or roll back.
type afterwards []func()

// inTx is Store.InTx, and then runs the callbacks that f has added.
func (a *App) inTx(ctx context.Context, ws desk.ID, f func(store.Tx, *afterwards) error) error {
	var then afterwards
	err := a.store.InTx(ctx, ws, func(tx store.Tx) error {
		then = nil
		return f(tx, &then)
	})
	if err == nil {
		for _, do := range then {
			do()
		}
	}
	return err
}
