package feed

import (
	"context"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// News collects, for one reader in this process, the workspaces that may have new events. So
// a reader need not ask for the events of all workspaces again and again.
type News struct {
	Woken chan struct{} // has an element if there may be news

	mu  sync.Mutex
	all bool
	of  map[desk.ID]bool
}

// Take returns the workspaces that may have new events since the last call. If all is true,
// any workspace may have new events.
func (n *News) Take() (list []desk.ID, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ws := range n.of {
		list = append(list, ws)
	}
	all, n.all = n.all, false
	clear(n.of)
	return list, all
}

// Workspaces is Take that lists all workspaces if any may have news.
func (n *News) Workspaces(ctx context.Context, s store.Store) ([]desk.ID, error) {
	list, all := n.Take()
	if !all {
		return list, nil
	}
	workspaces, err := s.Workspaces(ctx)
	if err != nil {
		n.Add(nil, true)
		return nil, err
	}
	list = make([]desk.ID, len(workspaces))
	for i, w := range workspaces {
		list[i] = w.ID
	}
	return list, nil
}

// Add gives news back which the reader has taken, but could not use.
func (n *News) Add(list []desk.ID, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = n.all || all
	for _, ws := range list {
		n.of[ws] = true
	}
}

// tell adds news, and wakes the reader.
func (n *News) tell(list []desk.ID, all bool) {
	n.Add(list, all)
	steps.Wake(n.Woken)
}

// news finds the workspaces with new events: this process's own commits tell it, and it asks
// the store for those of other processes.
type news struct {
	mu      sync.Mutex
	readers []*News

	looking sync.Mutex // held during a look
	mark    store.Mark // of the last look; 0: none
	newest  map[desk.ID]int64
	allAt   time.Time // the last look at all workspaces
}

// reader returns a News for a new reader.
func (n *news) reader() *News {
	reader := &News{Woken: make(chan struct{}, 1), all: true, of: map[desk.ID]bool{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.readers = append(n.readers, reader)
	return reader
}

// allEvery is how often the newest events of all workspaces are read, also of those that seem
// to have none: the mark may miss some (store.Events.NewestEvents).
const allEvery = 30 * time.Second

func (n *news) tell(list []desk.ID, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, reader := range n.readers {
		reader.tell(list, all)
	}
}

// look tells the readers which workspaces have new events; wake is called for each of these
// before. The first look only finds what is there, so it tells them to look at all
// workspaces.
func (n *news) look(ctx context.Context, s store.Store, wake func(desk.ID)) error {
	n.looking.Lock()
	defer n.looking.Unlock()
	began, first, mark := time.Now(), n.mark == 0, n.mark
	whole := first || began.Sub(n.allAt) >= allEvery
	if whole {
		mark = 0
	}
	newest, mark, err := s.NewestEvents(ctx, mark)
	if err != nil {
		return err
	}
	var changed []desk.ID
	for ws, event := range newest {
		if before, known := n.newest[ws]; !known || before != event {
			changed = append(changed, ws)
			if !first {
				wake(ws)
			}
		}
	}
	n.mark = mark
	if whole {
		n.newest, n.allAt = newest, began
	} else {
		for _, ws := range changed {
			n.newest[ws] = newest[ws]
		}
	}
	if first {
		n.tell(nil, true)
	} else if len(changed) > 0 {
		n.tell(changed, false)
	}
	return nil
}
