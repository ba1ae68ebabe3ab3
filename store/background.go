package store

import "context"

type (
	inBackground struct{}
	patient      struct{}
)

// InBackground marks what is done with a context as background work: neither a person nor a program
// waits for it.
func InBackground(ctx context.Context) context.Context {
	return context.WithValue(ctx, inBackground{}, true)
}

// Patiently marks background work that consists of many small changes, none of which is urgent. While
// people and programs write, a store may let such a change wait for a short time and then store it
// together with others, so that it doesn't keep the disk from them. What makes its changes one after
// the other should not be marked: each may wait.
func Patiently(ctx context.Context) context.Context {
	return context.WithValue(InBackground(ctx), patient{}, true)
}

// IsBackground tells whether InBackground or Patiently has marked a context.
func IsBackground(ctx context.Context) bool { return ctx.Value(inBackground{}) != nil }

// IsPatient tells whether Patiently has marked a context.
func IsPatient(ctx context.Context) bool { return ctx.Value(patient{}) != nil }
