package deliver

import (
	"time"

	"parley/desk"
	"parley/store"
)

// requests are the requests of this process to one endpoint, for deliveries and for pings.
// The record is deleted when nobody uses it.
type requests struct {
	places chan struct{} // has an element for each request under way
	users  int
	pings  int           // pings that are under way or wait for a place
	ping   int           // the number of the newest ping; its bucket has the same number
	until  time.Duration // until this time no ping is allowed, by the monotonic clock
}

// maxIdleRequests is how many endpoints without requests are remembered because they were
// pinged too often.
const maxIdleRequests = 1000

// useRequests returns the requests to an endpoint. The caller holds the lock, and must call
// leaveRequests later.
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
