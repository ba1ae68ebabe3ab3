package app_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// A logbook collects the lines of the log.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logbook) WithGroup(string) slog.Handler            { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// find lists the lines that hold a text.
func (l *logbook) find(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// logged returns the lines that have a text, once there are n. It waits, because a line may
// be written only after its cause is stored.
func (w *world) logged(n int, text string) (lines []string) {
	w.t.Helper()
	waitFor(w.t, "log: "+text, func() bool {
		lines = w.log.find(text)
		return len(lines) >= n
	})
	return lines
}
