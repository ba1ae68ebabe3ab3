package sqlite

import "sync"

// A watcher tells whether others have changed the file.
type watcher struct {
	mu sync.Mutex
	c  conn
}

func (w *watcher) version() (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return one("version of the data", w.c.stmt("PRAGMA data_version"), (*stmt).readInt)
}
