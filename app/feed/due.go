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
// be set.
type Due struct {
	// Ask returns the workspaces with jobs, and how long to wait until the first job of each
	// is due (0: it is due).
	Ask func(ctx context.Context) (map[desk.ID]time.Duration, error)

	news  *News
	mu    sync.Mutex
	askAt time.Time // when the first known job is due
}

// Due returns a Due for jobs that ask finds.
func (a *Service) Due(ask func(ctx context.Context) (map[desk.ID]time.Duration, error)) *Due {
	return &Due{Ask: ask, news: a.News()}
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
		first = min(first, wait)
	}
	d.askAt = began.Add(first)
	return steps.DueNow(waits), nil
}
