package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends at the first signal that stops a program. The
// second one ends the process at once.
//
// If the program was started with SIGHUP ignored (nohup), SIGHUP does not stop it: it must
// go on when its terminal closes.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, list...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
