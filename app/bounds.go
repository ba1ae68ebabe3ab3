package app

import (
	"time"

	"parley/desk"
)

// Bounds are the time limits of sends and of background work.
type Bounds struct {
	FirstByte time.Duration // from the hold until the first byte is sent; default 5 s
	Provider  time.Duration // of the call to the provider; default 20 s
	Margin    time.Duration // added to leases, for inexact clocks and schedulers; default 5 s
	Fetch     time.Duration // of the lease with which a process fetches a file; default 1 min
	AutoReply time.Duration // of the lease with which a process sends an automatic reply; default 20 s
	Templates time.Duration // of a fetch of a channel's templates; default 10 min
	Rest      time.Duration // after the last event of a webhook, until the process drops its lease; default 30 s
	Wait      time.Duration // how long to wait for another call with the same key; default 25 s
	Broadcast time.Duration // of the lease with which a process drives a workspace's broadcasts; default 15 s
}

// autoReplyLease is the length of the lease to send an automatic reply. While a process
// sends, it extends the lease after each 1/autoReplyHold of this time. The lease is short,
// so that another process soon takes over from a killed one. If two processes send the same
// reply, its key ensures that only one message is sent.
const autoReplyLease = 20 * time.Second

func (b Bounds) orDefaults() Bounds {
	for _, d := range []struct {
		bound *time.Duration
		value time.Duration
	}{{&b.FirstByte, 5 * time.Second}, {&b.Provider, desk.CallTime}, {&b.Margin, 5 * time.Second}, {&b.Wait, 25 * time.Second}, {&b.Templates, 10 * time.Minute}, {&b.AutoReply, autoReplyLease}} {
		if *d.bound == 0 {
			*d.bound = d.value
		}
	}
	return b
}

// lease is the length of the lease with which a send holds its key. It is longer than the
// send can take.
func (b Bounds) lease() desk.Time {
	return desk.Time((b.FirstByte + b.Provider + b.Margin).Milliseconds())
}

// plansAgain is how often a send is planned again because the templates have changed
// meanwhile, and a reply because its conversation has another contact.
const plansAgain = 3
