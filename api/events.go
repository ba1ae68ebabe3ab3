package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/app/feed"
	"parley/desk"
)

func (s *Server) getMe(c *call) (answer, error) {
	b := append(appendWorkspace(append(c.out, `{"data":{"workspace":`...), c.principal.Settings), `,"key":`...)
	return answer{http.StatusOK, append(appendKey(b, c.principal.Key), `}}`...)}, nil
}

func appendWorkspace(b []byte, s *desk.Settings) []byte {
	b = appendID(append(b, `{"id":`...), s.ID)
	b = desk.AppendJSONString(append(b, `,"name":`...), s.Name)
	return append(appendText(append(b, `,"country":`...), s.Country), '}')
}

func appendKey(b []byte, k *desk.APIKey) []byte {
	b = appendID(append(b, `{"id":`...), k.ID)
	b = desk.AppendJSONString(append(b, `,"name":`...), k.Name)
	b = appendArray(append(b, `,"permissions":`...), k.Permissions, func(b []byte, p desk.Permission) []byte {
		return desk.AppendJSONString(b, string(p))
	})
	b = appendTime(append(b, `,"created_at":`...), k.CreatedAt)
	b = append(b, `,"expires_at":`...)
	if k.ExpiresAt == 0 {
		return append(b, "null}"...)
	}
	return append(appendTime(b, k.ExpiresAt), '}')
}

// maxWait is how long a read may wait for events, in seconds.
const maxWait = 60

func (s *Server) listEvents(c *call) (answer, error) {
	stream := accepts(c.r.Header.Values("Accept"), eventStream)
	known := []string{"cursor", "types", "limit", "wait"}
	if stream {
		known = known[:2]
	}
	q, err := query(c.r.URL.RawQuery, known...)
	if err != nil {
		return answer{}, err
	}
	f := feed.Query{Cursor: q.Get("cursor"), Limit: desk.DefaultLimit}
	if q.Has("cursor") && f.Cursor == "" {
		return answer{}, desk.InvalidAt("/cursor", "it is empty; leave it out to begin with the oldest event")
	}
	if q.Has("types") {
		if f.Types, err = desk.ParseEventFilter(strings.Split(q.Get("types"), ",")); err != nil {
			return answer{}, desk.InvalidAt("/types", "%v", err)
		}
	}
	if stream {
		return s.streamEvents(c, f)
	}
	wait := 0
	if q.Has("limit") {
		if f.Limit, err = number(q.Get("limit"), 1, desk.MaxLimit, "/limit"); err != nil {
			return answer{}, err
		}
	}
	if q.Has("wait") {
		if wait, err = number(q.Get("wait"), 0, maxWait, "/wait"); err != nil {
			return answer{}, err
		}
	}
	page, err := s.eventPage(c, f, time.Duration(wait)*time.Second)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, appendEventPage(c.out, s.app.Feed, page)}, nil
}

// accepts tells whether a header Accept names a media type.
func accepts(accept []string, mediaType string) bool {
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil || name != mediaType {
			continue
		}
		if q, err := strconv.ParseFloat(parameters["q"], 64); err != nil || q > 0 {
			return true
		}
	}
	return false
}

// number reads a whole number of a query.
func number(text string, least, most int, at string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != text {
		return 0, desk.InvalidAt(at, "send a whole number from %d to %d", least, most)
	}
	return n, nil
}

// eventPage reads a page, and waits for its first event. During the wait, it has no memory
// reserved, and reads no records.
func (s *Server) eventPage(c *call, q feed.Query, wait time.Duration) (*feed.Page, error) {
	if wait > 0 && c.from == "" {
		if err := s.awaitEvents(c, q, wait); err != nil {
			return nil, err
		}
	}
	if c.from != "" { // it has waited already
		q.Cursor = c.from
	}
	if !c.reserved {
		if err := c.reserve(pageOf); err != nil {
			return nil, err
		}
		c.reserved = true
	}
	return s.app.Feed.Page(c.r.Context(), c.principal, q)
}

// awaitEvents waits until a page has an event, and notes where the page begins.
func (s *Server) awaitEvents(c *call, q feed.Query, wait time.Duration) error {
	ctx := c.r.Context()
	q.Bare = true
	f, page, err := s.app.Feed.Follow(ctx, c.principal, q)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(page.Events) > 0 || page.More {
		return nil
	}
	if err := c.w.Patient(); err != nil {
		return err
	}
	if page, err = f.Await(ctx, wait); err != nil {
		return err
	}
	c.from = s.app.Feed.EventID(c.principal.Workspace(), page.Start)
	return nil
}

func appendEventPage(b []byte, f *feed.Service, page *feed.Page) []byte {
	b = append(b, `{"data":[`...)
	for i := range page.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEvent(b, page, &page.Events[i])
	}
	b = desk.AppendJSONString(append(b, `],"cursor":`...), f.Cursor(page))
	return append(strconv.AppendBool(append(b, `,"more":`...), page.More), '}')
}

// Event is the JSON of an event. Webhooks also get it.
func Event(page *feed.Page, e *desk.FeedEvent) []byte { return appendEvent(nil, page, e) }

func appendEvent(b []byte, page *feed.Page, e *desk.FeedEvent) []byte {
	s := page.Settings
	b = append(append(b, `{"id":"`...), e.ID...)
	b = append(append(b, `","type":"`...), e.Type...)
	b = appendTime(append(b, `","timestamp":`...), e.At)
	b = appendActor(append(b, `,"actor":`...), e.Actor, s)
	b = append(append(b, `,"subject":{"kind":"`...), e.Type.Kind()...)
	b = append(b, `","id":`...)
	if e.Key != "" {
		b = desk.AppendJSONString(b, e.Key)
	} else {
		b = appendID(b, e.Subject)
	}
	conversation, contact := e.Of()
	b = appendIDOrNull(append(b, `,"conversation_id":`...), conversation)
	b = appendIDOrNull(append(b, `,"contact_id":`...), contact)
	b = appendArray(append(b, `},"changed":`...), e.Changed, desk.AppendJSONString)
	return append(appendEventData(append(b, `,"data":`...), page, e), '}')
}

// appendEventData appends the record of an event in the form that its own list has; null if
// the record no longer exists.
func appendEventData(b []byte, page *feed.Page, e *desk.FeedEvent) []byte {
	s := page.Settings
	switch e.Type.Kind() {
	case "contact":
		if c := page.Contacts[e.Subject]; c != nil {
			return appendContact(b, c)
		}
	case "merge":
		if m := page.Merges[e.Subject]; m != nil {
			return appendMerge(b, m, s)
		}
	case "conflict":
		if v := page.Conflicts[e.Subject]; v != nil {
			return appendConflict(b, v, page.ConflictNames, s)
		}
	case "conversation":
		if c := page.Conversations[e.Subject]; c != nil {
			if channel := s.Channel(c.ChannelID); channel != nil {
				return appendConversation(b, c, channel.Kind)
			}
		}
	case "message":
		if m := page.Messages[e.Subject]; m != nil {
			return appendMessage(b, m, page.Settings)
		}
	case "send":
		if at := page.Attempts[e.Subject]; at != nil {
			return appendSendAttempt(b, at, s)
		}
	case "note":
		if n := page.Notes[e.Subject]; n != nil {
			return appendNote(b, n)
		}
	case "template":
		if channel, t := page.Template(e); t != nil {
			return appendTemplate(b, channel, t)
		}
	case "snippet":
		if v := page.Snippets[e.Key]; v != nil {
			return appendSnippet(b, v, "")
		}
	case "segment":
		if v := page.Segments[e.Key]; v != nil {
			return appendSegment(b, v)
		}
	case "attribute":
		if a := s.Attributes[e.Key]; a != nil {
			return appendAttribute(b, a)
		}
	case "channel":
		if c := s.Channel(e.Subject); c != nil {
			return appendChannel(b, c)
		}
	case "policy":
		if e.Subject == s.ID {
			return appendPolicy(b, s.Policy(desk.ID{}))
		}
		if s.Channel(e.Subject) != nil {
			return appendPolicy(b, s.Policy(e.Subject))
		}
	case "member":
		if m := s.Member(e.Subject); m != nil {
			return appendMember(b, m)
		}
	case "broadcast":
		if v := page.Broadcasts[e.Subject]; v != nil {
			return appendBroadcast(b, v, s)
		}
	case "workspace":
		return appendWorkspace(b, s)
	case "webhook":
		if w := page.Webhooks[e.Subject]; w != nil {
			return appendWebhook(b, w)
		}
	}
	return append(b, "null"...)
}

// eventStream is the media type of a stream.
const eventStream = "text/event-stream"

// idle is the time without events after which a stream sends a sign that it still works.
const idle = 15 * time.Second

// streamEvents answers with a stream of events.
func (s *Server) streamEvents(c *call, q feed.Query) (answer, error) {
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		q.Cursor = last
	}
	q.Limit = desk.MaxLimit
	f, page, err := s.app.Feed.Follow(c.r.Context(), c.principal, q)
	if err != nil {
		return answer{}, err
	}
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.stream = func() error {
		defer f.Close()
		first := page
		page = nil // otherwise the page would be kept as long as the stream
		return s.stream(c, f, first)
	}
	return answer{}, nil
}

// stream sends events until the client leaves, the key is refused or the server stops.
func (s *Server) stream(c *call, f *feed.Follower, page *feed.Page) error {
	ctx, ws := c.r.Context(), c.principal.Workspace()
	if err := c.w.Stream(eventStream); err != nil || c.r.Method == http.MethodHead {
		return nil // the client has left
	}
	// The first block is the place where the stream begins: a client that is cut off
	// before the first event goes on from there.
	cursor := s.app.Feed.EventID(ws, page.Start)
	head := appendCursorBlock([]byte("retry: 2000\n\n"), cursor)
	for {
		b := s.appendEvents(head, page)
		if n := len(b); !c.w.TryRoom(n, ws) {
			// Neither b nor page is used any more. So many streams that wait for memory do not
			// hold memory.
			err := c.w.Reserve(n, ws)
			if err == nil {
				page, err = f.Again(ctx)
			}
			if err != nil {
				return streamEnd(err)
			}
			b = s.appendEvents(head, page)
			c.w.Room(len(b), ws)
		}
		if n := len(page.Events); n > 0 {
			cursor = page.Events[n-1].ID
		}
		err := c.w.Part(b, f.Still(ctx))
		if err != nil || s.app.Draining() {
			return nil
		}
		head = nil
		if page, err = f.Next(ctx, idle); err != nil {
			return streamEnd(err)
		}
		if len(page.Events) > 0 {
			continue
		}
		if next := s.app.Feed.Cursor(page); next != cursor {
			cursor, head = next, appendCursorBlock(nil, next)
		} else {
			head = []byte(":\n\n")
		}
	}
}

// appendEvents appends the events of a page as a stream has them.
func (s *Server) appendEvents(b []byte, page *feed.Page) []byte {
	for i := range page.Events {
		e := &page.Events[i]
		b = append(append(append(b, "id: "...), e.ID...), "\ndata: "...)
		b = append(appendEvent(b, page, e), "\n\n"...)
	}
	return b
}

func appendCursorBlock(b []byte, cursor string) []byte {
	b = append(append(b, "event: cursor\nid: "...), cursor...)
	return append(append(append(b, "\ndata: {\"cursor\":\""...), cursor...), "\"}\n\n"...)
}

// streamEnd returns the error of a stream that has ended. It returns nil for every reason
// that is not a bug.
func streamEnd(err error) error {
	if e := (*desk.Error)(nil); errors.As(err, &e) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
