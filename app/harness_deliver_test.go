package app_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"parley/app"
	"parley/app/deliver"
	"parley/app/feed"
	"parley/desk"
)

// rendered returns an event in the form that the tests' receiver gets.
func rendered(page *feed.Page, e *desk.FeedEvent) []byte {
	_, contact := e.Of()
	told := toldEvent{ID: e.ID, Type: string(e.Type), Subject: e.Subject.String(), Changed: e.Changed}
	if c := page.Contacts[contact]; c != nil {
		told.Data = c.Email
	}
	b, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	return b
}

type toldEvent struct {
	ID, Type, Subject, Data string
	Changed                 []string
}

// A receiver is the server behind all endpoints of webhooks.
type receiver struct {
	mu      sync.Mutex
	posts   []posted
	flying  int
	most    int // the greatest number of tries at one time
	answers func(posted) deliver.Posted
}

// posted is a try that reached the receiver.
type posted struct {
	deliver.Post
	toldEvent
	ctx context.Context //nolint:containedctx // of the try
	n   int             // how many times the event has come to this URL, including this try
}

func (r *receiver) Post(ctx context.Context, p deliver.Post) deliver.Posted {
	got := posted{Post: p, ctx: ctx, n: 1}
	if err := json.Unmarshal(p.Body, &got.toldEvent); err != nil {
		panic(err)
	}
	r.mu.Lock()
	for _, before := range r.posts {
		if before.Post.ID == p.ID && before.URL == p.URL {
			got.n++
		}
	}
	r.posts = append(r.posts, got)
	r.flying++
	r.most = max(r.most, r.flying)
	answers := r.answers
	r.mu.Unlock()
	result := deliver.Posted{StatusCode: 200, Took: time.Millisecond}
	if answers != nil {
		result = answers(got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying--
	return result
}

func (r *receiver) plays(answers func(posted) deliver.Posted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = answers
}

// got returns the tries so far; if URLs are given, only the tries to these URLs.
func (r *receiver) got(urls ...string) []posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.posts), func(p posted) bool { return len(urls) > 0 && !slices.Contains(urls, p.URL) })
}

func refusesWith(code int, response string) deliver.Posted {
	return deliver.Posted{StatusCode: code, Error: "status", Response: response, Took: time.Millisecond}
}

// deliver runs the deliveries of an App. The function that it returns stops them and waits
// for their end. As in a server, the App also looks for events that other nodes have
// stored.
func (w *world) deliver(a *app.App) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Deliver.Run(ctx) })
	running.Go(func() { looksForEvents(ctx, a) })
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); running.Wait() }) }
	w.t.Cleanup(stop)
	return stop
}

// looksForEvents looks for events that other nodes have stored, until ctx ends.
func looksForEvents(ctx context.Context, a *app.App) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = a.Feed.Look(ctx) // this wakes all followers if the store is cut off
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
