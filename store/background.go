package store

import "context"

type inBackground struct{}

// InBackground marks what is done with a context as background work: nobody waits for it. While
// people and programs write, a store may let such a change wait for a short time and then store it
// with theirs, so that it doesn't keep the disk from them.
func InBackground(ctx context.Context) context.Context {
	return context.WithValue(ctx, inBackground{}, true)
}

// IsBackground tells whether InBackground has marked a context.
func IsBackground(ctx context.Context) bool { return ctx.Value(inBackground{}) != nil }
