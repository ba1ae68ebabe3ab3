package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"parley/desk"
	"parley/store"
)

// maxLibraries limits how many channels' libraries are kept.
const maxLibraries = 1000

// libraries caches the newest library of each channel. The settings have the current
// version, so an outdated library is never used.
type libraries struct {
	store store.Store
	log   *slog.Logger
	stale stale

	mu        sync.RWMutex
	byChannel map[desk.ID]*desk.Library
	loading   sync.Mutex // held while a library is read and parsed
}

func (l *libraries) get(c *desk.Channel) *desk.Library {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if known := l.byChannel[c.ID]; known != nil && known.Version >= c.Library {
		return known
	}
	return nil
}

func (l *libraries) put(channel desk.ID, library *desk.Library) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byChannel == nil || len(l.byChannel) >= maxLibraries {
		l.byChannel = map[desk.ID]*desk.Library{}
	}
	l.byChannel[channel] = library
}

// of returns the channel's templates, in the version of its settings or a newer
// one.
func (l *libraries) of(ctx context.Context, ws desk.ID, c *desk.Channel) (*desk.Library, error) {
	if known := l.get(c); known != nil {
		return known, nil
	}
	l.loading.Lock()
	defer l.loading.Unlock()
	if known := l.get(c); known != nil {
		return known, nil
	}
	version, sources, err := l.store.Templates(ctx, ws, c.ID)
	if err != nil {
		return nil, err
	}
	templates := make([]*desk.Template, 0, len(sources))
	for _, s := range sources {
		t, err := desk.ParseTemplate([]byte(s.Source))
		if err != nil { // templates are parsed before they are stored: another version of this program stored this one
			l.log.WarnContext(ctx, "a template can't be read; it is left out", "channel_id", c.ID, "template", s.Name, "language", s.Language, "err", err)
			continue
		}
		templates = append(templates, t)
	}
	library := desk.NewLibrary(version, templates)
	l.put(c.ID, library)
	return library, nil
}

// stale are the channels whose library should be fetched soon.
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
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// again adds channels that could not be checked, without waking the check.
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
