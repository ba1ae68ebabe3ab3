// Package work runs the schedules of parley's background work. app implements the steps;
// this package decides when they run, and how many at a time.
//
//	work.go     Run, and the schedules that repeat
//	inbound.go  processes inbound items, fairly among workspaces
package work
