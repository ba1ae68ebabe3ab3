// Package media stores files: uploads, files of inbound messages, and the room for both.
//
//	upload.go     uploads
//	fetch.go      fetching the files of inbound messages
//	handover.go   handing a file to a provider
//	forget.go     deleting files: by callers, and when they are old
//	reading.go    reading records and content
//	room.go       how much room there is for files: of a workspace, on the server
//	media.go      the Service and its dependencies
//	reserved.go   the bytes that transfers of this process have reserved
//	transfers.go  how many uploads and downloads there are at a time
package media

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/app/feed"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// fetchLease is the length of the lease with which a process fetches a file. The process
// extends the lease after every third of this time.
const fetchLease = time.Minute

// longestFetchWait is longer than any job to fetch a file waits. If a job is due later, the
// clock was set back after it was stored.
const longestFetchWait = 2 * time.Hour

// Deps are the parts of a Service. All are required, except those with a default.
type Deps struct {
	Store     store.Store
	Feed      *feed.Service
	Providers map[desk.ChannelKind]provider.Provider
	Access    func(ws desk.ID, c *desk.Channel) (provider.Access, error) // opens a channel's secrets
	Now       func() desk.Time
	NewID     func() desk.ID // new ids; they grow with time
	Log       *slog.Logger

	MaxSize      int64         // the greatest size of a file in bytes; 0: desk.DefaultMaxMedia
	PerWorkspace int64         // how many bytes the files of a workspace may have; 0: no limit
	KeepFree     int64         // how many bytes stay free on the file system with the files
	Lease        time.Duration // length of the lease to fetch a file; 0: fetchLease
}

// A Service stores and reads files. Its methods are safe for concurrent use.
type Service struct {
	Deps
	due       *feed.Due // files to fetch
	transfers transfers
	fetching  fetching
	reserved  reserved
}

// New builds a Service.
func New(d Deps) *Service {
	d.MaxSize, d.Lease = cmp.Or(d.MaxSize, desk.DefaultMaxMedia), cmp.Or(d.Lease, fetchLease)
	due := d.Feed.Due(func(ctx context.Context) (map[desk.ID]time.Duration, error) {
		return d.Store.MediaDue(ctx, longestFetchWait)
	})
	return &Service{Deps: d, due: due}
}

// changed returns the event of a message whose attachment has changed.
func changed(m *desk.Message, by desk.Actor, now desk.Time) desk.Event {
	e := m.Event(desk.MessageUpdated, by, now)
	e.Changed = []string{"attachments"}
	return e
}

// fetching has the number of tries to fetch files, by result.
type fetching struct{ ready, again, failed, storage atomic.Int64 }

// FetchCounts are the tries of this process to fetch files from providers, by result.
type FetchCounts struct {
	Ready   int64 // the file was stored
	Again   int64 // the provider failed; another try follows
	Failed  int64 // the file was given up
	Storage int64 // our storage failed
}

// FetchCounts returns the counts for /metrics.
func (a *Service) FetchCounts() FetchCounts {
	f := &a.fetching
	return FetchCounts{f.ready.Load(), f.again.Load(), f.failed.Load(), f.storage.Load()}
}
