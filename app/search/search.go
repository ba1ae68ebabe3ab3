// Package search finds contacts by a text. It keeps the terms by which they are found, and
// their history.
//
//	search.go   the Service
//	find.go     pages of what a text finds
//	history.go  pages of a contact's history
//	follow.go   keeping terms and history: the follower of each workspace's changes
package search

import (
	"log/slog"
	"sync"
	"time"

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

// A followed is a workspace as its follower knows it.
type followed struct {
	pending  bool            // it has changes to index, or may have some
	seen     desk.EventPlace // from the stored place up to here no contact has changed; zero: the places of search and history differ
	next     time.Time       // when to index its next group
	behind   int64           // changes that are not indexed, about
	share    float64         // of the events that are changes of contacts, as last read
	group    int             // how many changes are indexed in time
	far      bool            // it was more than backlog events behind at the last step
	storedAt time.Time       // when the place was last stored, or first seen
	taken    bool            // another process has indexed it at the last step
}

// A pace measures how fast contacts change.
type pace struct {
	at     time.Time
	stored int64             // changes that this process had stored
	heads  map[desk.ID]int64 // the newest events then
	rate   float64           // changes a second; other events of other processes count, too
	calm   time.Time         // when the rate was last measured as busy or less
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
