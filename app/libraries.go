package app

import (
	"slices"
	"sync"

	"parley/desk"
)

// maxLibraries limits how many channels' libraries are kept.
const maxLibraries = 1000

// libraries keeps the newest library of each channel. Its version is part of the
// settings, so an old one is never used.
type libraries struct {
	mu        sync.RWMutex
	byChannel map[desk.ID]*desk.Library
	loading   sync.Mutex // one at a time reads and parses
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

// stale are the channels whose library should be fetched soon.
type stale struct {
	mu       sync.Mutex
	channels []desk.ID
	changed  chan struct{} // has an element when there are any
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

// again adds channels that could not be checked, for the next time.
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
