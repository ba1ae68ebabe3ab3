package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// maxLibraries limits how many libraries are kept in memory. maxLibrariesBytes limits the
// size of the providers' JSON from which they were read.
const (
	maxLibraries      = 1000
	maxLibrariesBytes = 128 << 20
)

// libraries caches the newest library of each channel. The settings have the current
// version, so an outdated library is never used.
type libraries struct {
	store store.Store
	log   *slog.Logger
	stale stale

	fetches steps.Turns   // the fetches of this process, at most one for each workspace
	queue   queue         // of SyncStale
	slots   chan struct{} // has an element for each fetch of SyncStale
	reads   steps.Turns   // reads from the store, at most one for each workspace
	parsing sync.Mutex    // held while a library is parsed, to limit memory

	mu        sync.RWMutex
	byChannel map[desk.ID]keptLibrary
	bytes     int
}

// A keptLibrary is a library, and how many bytes of the provider's JSON it was read from.
type keptLibrary struct {
	*desk.Library
	bytes int
}

func (l *libraries) get(c *desk.Channel) *desk.Library {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if known := l.byChannel[c.ID]; known.Library != nil && known.Version >= c.Library {
		return known.Library
	}
	return nil
}

func (l *libraries) put(channel desk.ID, library *desk.Library, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byChannel == nil || len(l.byChannel) >= maxLibraries {
		l.byChannel, l.bytes = map[desk.ID]keptLibrary{}, 0
	}
	l.bytes -= l.byChannel[channel].bytes
	delete(l.byChannel, channel)
	for len(l.byChannel) > 0 && l.bytes+bytes > maxLibrariesBytes { // drop the largest library, because most channels have small ones
		var largest desk.ID
		for id, kept := range l.byChannel {
			if kept.bytes >= l.byChannel[largest].bytes {
				largest = id
			}
		}
		l.bytes -= l.byChannel[largest].bytes
		delete(l.byChannel, largest)
	}
	l.byChannel[channel] = keptLibrary{library, bytes}
	l.bytes += bytes
}

// The method of returns the channel's templates, in the version of its settings or a newer
// one.
func (l *libraries) of(ctx context.Context, ws desk.ID, c *desk.Channel) (*desk.Library, error) {
	if known := l.get(c); known != nil {
		return known, nil
	}
	end, err := l.reads.Begin(ctx, ws)
	if err != nil {
		return nil, err
	}
	defer end()
	if known := l.get(c); known != nil {
		return known, nil
	}
	version, sources, err := l.store.Templates(ctx, ws, c.ID)
	if err != nil {
		return nil, err
	}
	l.parsing.Lock()
	defer l.parsing.Unlock()
	templates := make([]*desk.Template, 0, len(sources))
	bytes := 0
	for _, s := range sources {
		bytes += len(s.Source)
		t, err := desk.ParseTemplate([]byte(s.Source))
		if err != nil { // templates are parsed before they are stored, so another version of this program stored this one
			l.log.WarnContext(ctx, "a template can't be read; it is left out", "channel_id", c.ID, "template", s.Name, "language", s.Language, "err", err)
			continue
		}
		templates = append(templates, t)
	}
	library := desk.NewLibrary(version, templates)
	l.put(c.ID, library, bytes)
	return library, nil
}

// stale has the channels whose library should be fetched soon.
type stale struct {
	mu       sync.Mutex
	channels []desk.ID
	changed  chan struct{} // has an element when channels were added
}

func (s *stale) add(channel desk.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.channels, channel) {
		s.channels = append(s.channels, channel)
	}
	steps.Wake(s.changed)
}

// again puts back channels that could not be checked. It does not wake the check.
func (s *stale) again(channels []desk.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels = append(s.channels, channels...)
}

func (s *stale) take() (channels []desk.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channels, s.channels = s.channels, nil
	return channels
}

// A queue has the workspaces whose templates SyncStale fetches, or waits to fetch.
type queue struct {
	mu   sync.Mutex
	list map[desk.ID]bool // true: one of its channels has changed since
}

// enter adds a workspace. It returns false if the workspace was there already.
func (q *queue) enter(ws desk.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, there := q.list[ws]; there {
		return false
	}
	if q.list == nil {
		q.list = map[desk.ID]bool{}
	}
	q.list[ws] = false
	return true
}

// again records that one of the workspace's channels has changed, so that leave reports it.
func (q *queue) again(ws desk.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, there := q.list[ws]; there {
		q.list[ws] = true
	}
}

// leave removes a workspace. It reports whether one of its channels has changed since
// enter.
func (q *queue) leave(ws desk.ID) (changed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	changed = q.list[ws]
	delete(q.list, ws)
	return changed
}
