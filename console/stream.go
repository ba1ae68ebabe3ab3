package console

import (
	"net/http"
	"time"

	"parley/desk"
)

// live sends the stream.
func (s *Server) live(c *call) error {
	ws, member := c.p.Workspace(), c.p.Actor.ID
	h, err := s.hubs.join(c.r.Context(), ws, member)
	if err != nil {
		return err
	}
	defer s.hubs.leave(h, member)
	c.w.Header().Set("X-Accel-Buffering", "no")
	if err := c.w.Stream("text/event-stream"); err != nil || c.r.Method == http.MethodHead {
		return nil // the client has left
	}
	cursor := c.r.Header.Get("Last-Event-ID")
	if cursor == "" {
		cursor = c.query("cursor")
	}
	if _, ok := s.app.Feed.EventPlace(ws, cursor); !ok && cursor != "" {
		cursor = "?" // before all cursors
	}
	s.stream(c, h, cursor)
	return nil
}

// stream sends the changes after a cursor until the client leaves, is signed out or gets
// another role, the hub ends, or the server stops.
func (s *Server) stream(c *call, h *hub, cursor string) {
	watch, beat := time.NewTicker(streamWatch), time.NewTicker(streamBeat)
	defer watch.Stop()
	defer beat.Stop()
	had := c.p.Member.Role
	still := func() bool {
		p, err := s.signedIn(c)
		return err == nil && p.Member.Role == had
	}
	may := func(needs desk.Permission) bool { return c.p.Allow(needs) == nil }
	part, place, woken := h.part(h.place(cursor), had, may)
	if part == nil {
		part = h.beat()
	}
	part = append([]byte("retry: 2000\n\n"), part...)
	for {
		if part != nil && c.w.Part(part, still) != nil {
			return
		}
		part = nil
		select {
		case <-woken:
			part, place, woken = h.part(place, had, may)
		case <-beat.C:
			part = h.beat()
		case <-watch.C:
			if !still() {
				return
			}
		case <-h.ended:
			return
		case <-s.web.Stopping():
			return
		case <-c.r.Context().Done():
			return
		}
	}
}
