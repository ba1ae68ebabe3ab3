// Package search finds contacts by a text, and keeps the terms by which they are found.
//
//	search.go  the Service
//	find.go    pages of what a text finds
//	follow.go  keeping the terms: the follower of each workspace's changes
package search

import (
	"log/slog"
	"sync"

	"parley/app/cursors"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store   store.Store
	Feed    *feed.Service
	Cursors cursors.Sealer
	Log     *slog.Logger
}

// A Service finds contacts. Its methods are safe for concurrent use.
type Service struct {
	Deps
	news *feed.News

	pace pace // only Step uses it

	mu       sync.Mutex
	followed map[desk.ID]followed
}

// New builds a Service.
func New(d Deps) *Service {
	return &Service{Deps: d, news: d.Feed.News(), followed: map[desk.ID]followed{}}
}

// changes are the events after which a contact may have other terms.
var changes = []desk.EventType{desk.ContactCreated, desk.ContactUpdated, desk.ContactDeleted}

// Behind is how many changes of contacts this process knows of that are not indexed yet, in
// all workspaces.
func (a *Service) Behind() (n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.followed {
		n += f.behind
	}
	return n
}
