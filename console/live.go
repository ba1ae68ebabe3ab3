package console

import (
	"context"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode"

	"parley/app"
	"parley/app/feed"
	"parley/desk"
)

// The stream of a browser has the names of changed records, but no values. The page then
// fetches its parts that show these records, and the usual permissions apply. All streams
// of a workspace share a hub, which follows the feed.

const (
	streamBeat  = 15 * time.Second       // the longest pause between two parts
	streamWatch = time.Second            // the time between two checks that the session still allows the stream
	streamNames = 4 << 10                // the most bytes of names in one part; if there are more, as during an import, the page renews everything
	hubChanges  = 1000                   // how many changes a hub keeps; a stream that is further behind must renew everything
	hubPause    = 100 * time.Millisecond // the pause between two pages of the feed, so that one page has the changes of many commits
	hubLinger   = time.Minute            // how long a hub stays without streams: a tab that goes to another page then misses nothing

	maxStreams          = 1024 // of one node
	maxWorkspaceStreams = maxStreams / 2
	maxMemberStreams    = 16
)

// hubs are the hubs of this node.
type hubs struct {
	app *app.App

	mu       sync.Mutex
	of       map[desk.ID]*hub
	streams  int
	byMember map[desk.ID]int
}

// A hub keeps the newest changes of a workspace.
type hub struct {
	begin func(context.Context) error // starts the hub at its first call; each stream calls it before it uses the hub
	ended chan struct{}               // closed when the hub stops following

	streams int       // the number of streams; guarded by hubs.mu
	idle    time.Time // the time since which there are no streams; guarded by hubs.mu

	mu      sync.Mutex
	changes []change
	first   int64         // the number of changes[0]
	before  string        // the cursor before changes[0]; "": the hub has not started
	woken   chan struct{} // closed at the next change
	told    map[desk.Role]toldPart
}

// A toldPart is the newest part for a role. It has the changes from place to next.
type toldPart struct {
	place, next int64
	part        []byte
}

// A change is an event, reduced to what streams need.
type change struct {
	cursor string
	names  []name
}

// A name is a kind and an id, with the permission that is needed to see the record.
type name struct {
	needs desk.Permission
	text  string
}

// join adds a member's stream to the hub of the workspace. It returns RateLimited or
// Unavailable if there are too many streams.
func (l *hubs) join(ctx context.Context, ws, member desk.ID) (*hub, error) {
	h, err := l.enter(ws, member)
	if err != nil {
		return nil, err
	}
	if err := h.begin(context.WithoutCancel(ctx)); err != nil {
		l.leave(h, member)
		return nil, err
	}
	return h, nil
}

func (l *hubs) enter(ws, member desk.ID) (*hub, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.of[ws]
	var e *desk.Error
	switch {
	case l.byMember[member] >= maxMemberStreams:
		e = desk.Errorf(desk.RateLimited, "you have %d streams already: close a window first", maxMemberStreams)
	case l.streams >= maxStreams || h != nil && h.streams >= maxWorkspaceStreams:
		e = desk.Errorf(desk.Unavailable, "this server has as many streams as it can take")
	}
	if e != nil {
		e.RetryAfter = 5
		return nil, e
	}
	if l.of == nil {
		l.of, l.byMember = map[desk.ID]*hub{}, map[desk.ID]int{}
	}
	if h == nil {
		h = l.hub(ws)
		l.of[ws] = h
	}
	h.streams++
	l.streams++
	l.byMember[member]++
	return h, nil
}

func (l *hubs) leave(h *hub, member desk.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams--
	if l.byMember[member]--; l.byMember[member] == 0 {
		delete(l.byMember, member)
	}
	if h.streams--; h.streams == 0 {
		h.idle = time.Now()
	}
}

// hub makes the hub of a workspace.
func (l *hubs) hub(ws desk.ID) *hub {
	h := &hub{woken: make(chan struct{}), ended: make(chan struct{})}
	var once sync.Once
	var failed error
	h.begin = func(ctx context.Context) error {
		once.Do(func() {
			if failed = l.follow(ctx, ws, h); failed != nil {
				l.drop(ws, h)
			}
		})
		return failed
	}
	return h
}

// follow starts to follow the feed for a hub. This ends when the hub has had no streams
// for a while, when the server stops, or when the feed can't be read. Then the streams
// end, and the browsers connect again.
func (l *hubs) follow(ctx context.Context, ws desk.ID, h *hub) error {
	p, err := l.app.Operator(ctx, ws)
	if err != nil {
		return err
	}
	f, page, err := l.latest(ctx, p)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.before = l.app.Feed.Cursor(page)
	h.mu.Unlock()
	go func() {
		defer close(h.ended)
		defer l.drop(ws, h)
		defer func() { f.Close() }()
		for behind := 0; !l.over(h); {
			page, err := f.Next(ctx, hubLinger/4)
			if err != nil {
				return
			}
			if behind += len(page.Events); behind > hubChanges { // during an import: skip to the end
				next, at, err := l.latest(ctx, p)
				if err != nil {
					return
				}
				f.Close()
				f, page = next, at
				h.skip(l.app.Feed.Cursor(at))
			} else {
				h.add(page)
			}
			if !page.More {
				behind = 0
				time.Sleep(hubPause)
			}
		}
	}()
	return nil
}

// latest begins to follow the feed at its end.
func (l *hubs) latest(ctx context.Context, p desk.Principal) (*feed.Follower, *feed.Page, error) {
	return l.app.Feed.Follow(ctx, p, feed.Query{Cursor: "latest", Limit: desk.MaxLimit, Bare: true})
}

// over reports whether a hub is no longer needed.
func (l *hubs) over(h *hub) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.app.Draining() || h.streams == 0 && time.Since(h.idle) > hubLinger
}

// drop forgets a hub. The next stream makes a new one.
func (l *hubs) drop(ws desk.ID, h *hub) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[ws] == h {
		delete(l.of, ws)
	}
}

// cursor returns the position where the feed ended a moment ago, or "" if no hub follows
// the feed. A page that is read after this call misses no change if its stream starts at
// this cursor.
func (l *hubs) cursor(ws desk.ID) string {
	l.mu.Lock()
	h := l.of[ws]
	l.mu.Unlock()
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end()
}

// end returns the cursor of the newest change. The caller holds h.mu.
func (h *hub) end() string {
	if n := len(h.changes); n > 0 {
		return h.changes[n-1].cursor
	}
	return h.before
}

// add is called with each page of the feed. It keeps the page's events as changes, and
// wakes the streams.
func (h *hub) add(page *feed.Page) {
	if len(page.Events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range page.Events {
		h.changes = append(h.changes, change{page.Events[i].ID, namesOf(&page.Events[i])})
	}
	if drop := len(h.changes) - hubChanges; drop > 0 {
		h.before = h.changes[drop-1].cursor
		h.changes = append(h.changes[:0:0], h.changes[drop:]...)
		h.first += int64(drop)
	}
	close(h.woken)
	h.woken = make(chan struct{})
}

// skip drops all changes up to a cursor. All streams must then renew everything.
func (h *hub) skip(to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first += int64(len(h.changes)) + 1
	h.changes, h.before = nil, to
	close(h.woken)
	h.woken = make(chan struct{})
}

// namesOf returns the names of an event's record, its conversation and its contact.
func namesOf(e *desk.FeedEvent) []name {
	kind := e.Type.Kind()
	own := name{e.Type.Needs(), kind + ":" + e.Key}
	if kind == "key" {
		own.needs = desk.Administer
	}
	if e.Key == "" {
		own.text += e.Subject.String()
	} else if strings.ContainsFunc(e.Key, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		own.text = kind + ":"
	}
	list := []name{own}
	conversation, contact := e.Of()
	if !conversation.IsZero() && kind != "conversation" {
		list = append(list, name{desk.ConversationsRead, "conversation:" + conversation.String()})
	}
	if !contact.IsZero() && kind != "contact" {
		list = append(list, name{desk.ContactsRead, "contact:" + contact.String()})
	}
	return list
}

// place returns the number of the first change after a cursor. For the cursor "", it
// returns the number that the next change will have. It returns -1 if the hub no longer
// has all changes after the cursor.
func (h *hub) place(cursor string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cursor == "" {
		return h.first + int64(len(h.changes))
	}
	if cursor < h.before {
		return -1
	}
	return h.first + int64(sort.Search(len(h.changes), func(i int) bool { return h.changes[i].cursor > cursor }))
}

// part returns the next part for a stream of a role. The stream already has all changes
// before place. The part is nil if there is nothing to send. next is the stream's new
// place, and woken is closed at the next change.
func (h *hub) part(place int64, role desk.Role, may func(desk.Permission) bool) (part []byte, next int64, woken <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next, woken = h.first+int64(len(h.changes)), h.woken
	// Nearly all streams are at the same place, so they share one part for each role.
	if t, ok := h.told[role]; ok && t.place == place && t.next == next {
		return t.part, next, woken
	}
	part = h.write(place, may)
	if h.told == nil {
		h.told = map[desk.Role]toldPart{}
	}
	h.told[role] = toldPart{place, next, part}
	return part, next, woken
}

// write makes the part with the changes since a place. The caller holds h.mu.
func (h *hub) write(place int64, may func(desk.Permission) bool) []byte {
	if place < h.first {
		return h.block("reset", ".")
	}
	var text []byte
	told := map[string]bool{}
	for i := range h.changes[place-h.first:] {
		for _, n := range h.changes[place-h.first+int64(i)].names {
			if told[n.text] || n.needs != "" && !may(n.needs) {
				continue
			}
			told[n.text] = true
			if len(text) > 0 {
				text = append(text, ' ')
			}
			if text = append(text, n.text...); len(text) > streamNames {
				return h.block("reset", ".")
			}
		}
	}
	if len(text) == 0 {
		return nil
	}
	return h.block("message", string(text))
}

// block returns a part of a stream. Its id is the cursor of the newest change. The caller
// holds h.mu.
func (h *hub) block(event, data string) []byte {
	return []byte("event: " + event + "\nid: " + h.end() + "\ndata: " + data + "\n\n")
}

// beat returns a part without data, which shows that the stream is alive.
func (h *hub) beat() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.block("at", ".")
}
