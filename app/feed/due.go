package feed

import (
	"context"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
)

// Due finds the workspaces with due jobs of one kind. Each such job is stored together with an
// event. So the store, which has to look at all workspaces, is asked only after news, when a
// job is due that the last look found, and every allEvery: news may be missed, and a clock may
// be set. A job that is repeated later comes without an event: whoever does it calls Again, and
// while there are jobs, the store is asked every knownEvery.
type Due struct {
	// Ask returns the workspaces with jobs, and how long to wait until the first job of each
	// is due (0: it is due).
	Ask func(ctx context.Context) (map[desk.ID]time.Duration, error)

	news  *News
	mu    sync.Mutex
	askAt time.Time // when the first known job is due
}

// knownEvery is how often the store is asked while jobs are known that are not due yet.
const knownEvery = 5 * time.Second

// Due returns a Due for jobs that ask finds.
func (a *Service) Due(ask func(ctx context.Context) (map[desk.ID]time.Duration, error)) *Due {
	return &Due{Ask: ask, news: a.News()}
}

// Again lets the next call of Now ask the store: a job was done, or is to be repeated.
func (d *Due) Again() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.askAt = time.Time{}
}

// Now returns the workspaces that have a job now.
func (d *Due) Now(ctx context.Context) ([]desk.ID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	began := time.Now()
	news, all := d.news.Take()
	if len(news) == 0 && !all && began.Before(d.askAt) {
		return nil, nil
	}
	waits, err := d.Ask(ctx)
	if err != nil {
		d.news.Add(news, true)
		return nil, err
	}
	first := allEvery
	for _, wait := range waits {
		first = min(first, wait, knownEvery) // another process may end its lease earlier
	}
	d.askAt = began.Add(first)
	return steps.DueNow(waits), nil
}
