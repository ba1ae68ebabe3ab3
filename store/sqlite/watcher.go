package sqlite

import (
	"sync"

	"parley/store"
)

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

// enabledWebhooks is the list at a version of the data. A quiet server does not read it
// again.
type enabledWebhooks struct {
	version int64
	list    []store.EnabledWebhook // read only
}
