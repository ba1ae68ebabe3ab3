// Package logs keeps the log short when the same warning is repeated, for example
// because the database is away.
//
//	logs.go  a handler that counts equal warnings
package logs

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// The bounds of a Handler.
const (
	// tellEvery is the time between two lines about equal warnings.
	tellEvery = time.Minute

	// maxSubjects is how many subjects of one message have their own lines. maxMessages is
	// how many messages are counted.
	maxSubjects = 16
	maxMessages = 256
)

// A Handler passes on the first of several equal warnings at once, and counts the following
// ones. A minute later, it passes on the newest warning. Its attribute repeated is the
// number of counted warnings.
//
// Two warnings are equal if they have the same message, belong to the same work, and
// concern the same records: attributes whose names end in _id have the same values. Other
// values may differ, because an error may contain a port or a time. If a message has more
// than sixteen subjects in a minute, the warnings of further subjects count as one. Errors
// of further subjects are passed on as they are, since each may be of interest. Records
// below Warn or above Error, and records of a request (with a request_id), are also passed
// on as they are.
type Handler struct {
	next   slog.Handler
	tables *tables
	with   []slog.Attr
	group  bool
}

// tables are shared by all handlers that are derived from one.
type tables struct {
	mu       sync.Mutex
	messages map[string]*message
}

// A message has the lines of one message and its work.
type message struct {
	subjects map[string]*line
}

// A line counts equal warnings.
type line struct {
	count  int // of the warnings that were not passed on
	newest slog.Record
	to     slog.Handler // with the attributes of the newest warning
	timer  *time.Timer
}

// New returns a handler that passes records on to another one.
func New(next slog.Handler) *Handler {
	return &Handler{next: next, tables: &tables{messages: map[string]*message{}}}
}

// Enabled asks the next handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// WithAttrs returns a handler whose records have the attributes.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs), h.tables, slices.Concat(h.with, attrs), h.group}
}

// WithGroup returns a handler that passes records on without counting.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.tables, h.with, true}
}

// Handle passes a record on, or counts it.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if h.group || r.Level < slog.LevelWarn || r.Level > slog.LevelError {
		return h.next.Handle(ctx, r)
	}
	what, subject := r.Level.String()+" "+r.Message, ""
	ofRequest := false
	look := func(a slog.Attr) bool {
		switch {
		case a.Key == "request_id":
			ofRequest = true
		case a.Key == "work":
			what += " " + a.Value.String()
		case strings.HasSuffix(a.Key, "_id"):
			subject += " " + a.Value.String()
		}
		return !ofRequest
	}
	for _, a := range h.with {
		look(a)
	}
	r.Attrs(look)
	if ofRequest || !h.tables.count(h.next, what, subject, r) {
		return h.next.Handle(ctx, r)
	}
	return nil
}

// count counts a record. It returns true if the record need not be passed on.
func (t *tables) count(to slog.Handler, what, subject string, r slog.Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.messages[what]
	if m == nil {
		if len(t.messages) == maxMessages {
			return false
		}
		m = &message{map[string]*line{}}
		t.messages[what] = m
	}
	l := m.subjects[subject]
	if l == nil && len(m.subjects) >= maxSubjects {
		if r.Level == slog.LevelError {
			return false
		}
		subject = "others"
		l = m.subjects[subject]
	}
	if l == nil {
		l = &line{}
		l.timer = time.AfterFunc(tellEvery, func() { t.tell(what, subject) })
		m.subjects[subject] = l
		return false
	}
	l.count++
	l.newest, l.to = r.Clone(), to
	return true
}

// tell passes on the newest record of a line, with the number of counted records. If no
// record was counted, the line is forgotten.
func (t *tables) tell(what, subject string) {
	t.mu.Lock()
	m := t.messages[what]
	if m == nil || m.subjects[subject] == nil {
		t.mu.Unlock()
		return
	}
	l := m.subjects[subject]
	counted := *l
	if l.count == 0 {
		if delete(m.subjects, subject); len(m.subjects) == 0 {
			delete(t.messages, what)
		}
	} else {
		*l = line{timer: l.timer}
		l.timer.Reset(tellEvery)
	}
	t.mu.Unlock()
	counted.pass()
}

func (l *line) pass() {
	if l.count == 0 {
		return
	}
	if l.count > 1 {
		l.newest.AddAttrs(slog.Int("repeated", l.count))
	}
	_ = l.to.Handle(context.Background(), l.newest) // no caller waits for this error
}

// Flush passes on all counted warnings now.
func (h *Handler) Flush() {
	t := h.tables
	t.mu.Lock()
	var left []*line
	for _, m := range t.messages {
		for _, l := range m.subjects {
			l.timer.Stop()
			left = append(left, l)
		}
	}
	clear(t.messages)
	t.mu.Unlock()
	for _, l := range left {
		l.pass()
	}
}
