// Package broadcast sends one template to each person of many, at most once
// (contract-broadcast).
//
//	broadcast.go  the Service
//	records.go    broadcasts: making, changing, starting, pausing
//	rows.go       their rows: adding, listing, checking, releasing
//	people.go     who the people of a broadcast are, if they are not rows yet
//	collect.go    writing them down as rows
//	turn.go       a row's turn: who the person is, what is decided
//	claim.go      the transaction that claims a row
//	drive.go      which process drives which workspace
//	run.go        one step of a broadcast that runs
//	outcomes.go   whether its newest outcomes pause it
//	note.go       what the driver stores of a broadcast: why it waits or is paused
//	places.go     how many messages are sent at a time, and whose
//	beside.go     leaving room for people and programs that write meanwhile
//	runner.go     what a process remembers of a broadcast: its pace, its waits
//	follow.go     outcomes, deliveries, replies, and what is left to do after the end
package broadcast

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/app/cursors"
	"parley/app/feed"
	"parley/app/segments"
	"parley/desk"
	"parley/store"
)

// A Machine is what a broadcast needs of the one send machine, which App has.
type Machine interface {
	// Usable returns ChannelNotUsable if no template can be sent on a channel now.
	Usable(c *desk.Channel) error

	// LibraryOf returns the channel's templates.
	LibraryOf(ctx context.Context, ws desk.ID, c *desk.Channel) (*desk.Library, error)

	// ChoiceHandles returns the hashes by which a person's marketing choice is stored.
	// NumberHash is a hash of a canonical number for one broadcast.
	ChoiceHandles(ws desk.ID, number string, c *desk.Contact) []store.NumberHash
	NumberHash(ws, broadcast desk.ID, canonical string) store.NumberHash

	// EffectOf says what a failure means.
	EffectOf(c *desk.Channel, f *desk.Failure) desk.Effect

	// PerSecond is how many messages the channel's number may send in a second; 0: no limit.
	PerSecond(c *desk.Channel) float64

	// Pace waits until those of the provider's limits that of returns true for allow a message.
	// It returns false, and how long to wait, if that would take too long.
	Pace(ctx context.Context, ws desk.ID, c *desk.Channel, number string, of func(desk.Bucket) bool) (wait time.Duration, ok bool, err error)

	// CheckFile refuses a file in the template's title that can't be sent.
	CheckFile(ctx context.Context, s *desk.Settings, b *desk.Broadcast, t *desk.Template) error

	// Fly sends a message. claim claims the row in a transaction: it calls plan with what is
	// sent, and stores the attempt that plan returns as the row's. If it returns false, or an
	// error, nothing is sent. Fly returns ErrNotClaimed, or the refusal, or nil if the provider
	// has taken the message.
	Fly(ctx context.Context, ws desk.ID, b *desk.Broadcast, t *desk.Template, key string, claim func(tx store.Tx, plan func(Sending) (*desk.Attempt, error)) (bool, error)) error

	// Release records that an attempt's message was sent, or not.
	Release(ctx context.Context, p desk.Principal, id desk.ID, sent bool) (*desk.Attempt, error)
}

// A Sending is a message of a row as the transaction that claims it knows it.
type Sending struct {
	Broadcast *desk.Broadcast
	Row       *desk.BroadcastRow
	Template  *desk.Template
	Contact   *desk.Contact // nil: the send creates one
	Verdict   desk.RowVerdict
}

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store    store.Store
	Feed     *feed.Service
	Cursors  cursors.Sealer
	Segments *segments.Service
	Machine  Machine
	Now      func() desk.Time
	Uptime   func() time.Duration // a monotonic clock
	NewID    func() desk.ID
	Deleted  func(tx store.Tx, broadcast desk.ID) error // in the transaction that deletes a broadcast
	Log      *slog.Logger
	Lease    time.Duration // with which a process drives a workspace; 0: desk.BroadcastLease
}

// A Service has the broadcasts. Its methods are safe for concurrent use.
type Service struct {
	Deps
	due      *feed.Due
	news     *feed.News
	claiming *claiming
	holder   func() desk.ID // of leases; made when it is first needed
	places   *places
	behind   atomic.Int64
	sent     [6]atomic.Int64 // outcomes of rows: see rowOutcomes

	seen map[desk.ID]desk.EventPlace // events up to here have no news of rows; only FollowDeliveries uses it

	mu     sync.Mutex
	driven map[desk.ID]*drive
}

// share is how much of a number's places its broadcasts take together.
const share = 0.75

// New builds a Service.
func New(d Deps) *Service {
	if d.Lease == 0 {
		d.Lease = desk.BroadcastLease
	}
	a := &Service{Deps: d, holder: sync.OnceValue(d.NewID), places: newPlaces(), claiming: newClaiming(d.Uptime), driven: map[desk.ID]*drive{}, seen: map[desk.ID]desk.EventPlace{}, news: d.Feed.News()}
	a.due = d.Feed.Due(d.Store.BroadcastsDue)
	return a
}

// GiveWay lets the broadcasts of this process go slowly for desk.BroadcastsBesideFor: a person or a
// program has sent a write, and waits for its answer.
func (a *Service) GiveWay() { a.claiming.giveWay() }

// Slow tells whether the broadcasts of this process go slowly now.
func (a *Service) Slow() bool { return a.claiming.slow() }

// Behind is how many events this process knows of whose deliveries are not counted yet.
func (a *Service) Behind() int64 { return a.behind.Load() }

// rowOutcomes are the outcomes of rows that this process counts for metrics.
var rowOutcomes = [6]desk.RowStatus{desk.RowSent, desk.RowRefused, desk.RowInDoubt, desk.RowSkipped, desk.RowPending, desk.RowCancelled}

// Outcomes is how many rows of this process's turns got each status. Pending are those that
// the provider refused for now, cancelled those that were left of cancelled broadcasts.
func (a *Service) Outcomes() map[desk.RowStatus]int64 {
	counts := map[desk.RowStatus]int64{}
	for i, status := range rowOutcomes {
		counts[status] = a.sent[i].Load()
	}
	return counts
}

func (a *Service) count(status desk.RowStatus, n int) {
	for i, counted := range rowOutcomes {
		if counted == status {
			a.sent[i].Add(int64(n))
		}
	}
}
