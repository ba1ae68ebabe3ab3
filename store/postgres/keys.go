package postgres

import (
	"strings"
	"sync"

	"parley/desk"
)

// maxKnownKeys is the greatest number of keys whose workspaces a node remembers. If there
// are more, it begins anew.
const maxKnownKeys = 50_000

// keyPlaces remembers the workspaces of keys. A key never moves to another workspace.
type keyPlaces struct {
	mu sync.Mutex
	of map[string]desk.ID
}

func (k *keyPlaces) get(publicID string) desk.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[publicID]
}

func (k *keyPlaces) put(publicID string, ws desk.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil || len(k.of) >= maxKnownKeys {
		k.of = map[string]desk.ID{}
	}
	k.of[strings.Clone(publicID)] = ws
}
