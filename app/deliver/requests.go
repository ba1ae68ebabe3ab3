package deliver

import (
	"time"

	"parley/desk"
	"parley/store"
)

// requests are those of this process to one endpoint, of deliveries and of pings. They are
// forgotten when nobody makes any.
type requests struct {
	places chan struct{} // has an element for each that is under way
	users  int
	pings  int           // under way, or waiting for that
	ping   int           // the number of the newest one, by which its bucket is found
	until  time.Duration // no ping is allowed before, by the monotonic clock
}

// maxIdleRequests is how many endpoints are remembered because they were pinged too often.
const maxIdleRequests = 1000

// useRequests returns the requests to an endpoint, which leaveRequests must follow. The
// caller holds the lock.
func (a *Service) useRequests(ref store.WebhookRef) *requests {
	r := a.requests[ref]
	if r == nil {
		r = &requests{places: make(chan struct{}, desk.MaxInFlight)}
		a.requests[ref] = r
	}
	r.users++
	return r
}

func (a *Service) leaveRequests(ref store.WebhookRef) {
	r := a.requests[ref]
	if r.users--; r.users == 0 && (r.until == 0 || len(a.requests) > maxIdleRequests) {
		delete(a.requests, ref)
	}
}
