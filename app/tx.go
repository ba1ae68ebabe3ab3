package app

import (
	"context"

	"parley/desk"
	"parley/store"
)

// Callbacks run after commit; the closure may run again or roll back.
type afterwards []func()

// inTx is Store.InTx, followed by the callbacks that f has added.
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
