package logs_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/logs"
)

// A book collects the lines of a log.
type book struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns the lines since the last call, without times.
func (b *book) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.TrimSpace(b.text.String())
	b.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func newLog() (*slog.Logger, *logs.Handler, *book) {
	b := new(book)
	h := logs.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return slog.New(h), h, b
}

func want(t *testing.T, b *book, lines ...string) {
	t.Helper()
	if got := b.take(); strings.Join(got, "\n") != strings.Join(lines, "\n") {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// TestRepeated: a repeated warning makes one line at once, and then one line a minute,
// with their number and the newest error. When it stops, the last number is logged, and
// the next such warning is logged at once.
func TestRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _, b := newLog()
		fails := func(n int) { log.Warn("failed", "work", "sweep", "err", fmt.Errorf("port %d", n)) }
		fails(0)
		want(t, b, `level=WARN msg=failed work=sweep err="port 0"`)
		time.Sleep(time.Millisecond / 2) // so that the minute ends between two warnings
		for n := range 100_000 {
			fails(n + 1)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		want(t, b, `level=WARN msg=failed work=sweep err="port 60000" repeated=60000`)
		time.Sleep(time.Minute)
		want(t, b, `level=WARN msg=failed work=sweep err="port 100000" repeated=40000`)
		time.Sleep(time.Minute)
		want(t, b)
		fails(7)
		want(t, b, `level=WARN msg=failed work=sweep err="port 7"`)
		time.Sleep(2 * time.Minute)
		want(t, b)
	})
}

// TestSubjects: other messages, other work and other records have their own lines, up to
// a limit.
func TestSubjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, h, b := newLog()
		for range 3 {
			log.Warn("failed", "work", "a", "webhook_id", 1)
			log.Warn("failed", "work", "b", "webhook_id", 1)
			log.With("webhook_id", 2).Warn("failed", "work", "a")
			log.Error("failed", "work", "a", "webhook_id", 1)
			log.Info("failed", "work", "a", "webhook_id", 1)
			log.Warn("refused", "request_id", 5, "err", errors.New("away"))
		}
		got := b.take()
		if len(got) != 4+3+3 {
			t.Errorf("logged\n%s", strings.Join(got, "\n"))
		}
		h.Flush()
		if got = b.take(); len(got) != 4 || !strings.HasSuffix(got[0], "repeated=2") {
			t.Errorf("flushed\n%s", strings.Join(got, "\n"))
		}
		for n := range 10_000 {
			log.Warn("failed", "work", "a", "webhook_id", n)
			if n < 30 {
				log.Error("incident", "attempt_id", n)
			}
		}
		if got = b.take(); len(got) != 17+30 {
			t.Errorf("%d lines of many subjects", len(got))
		}
		time.Sleep(3 * time.Minute)
		want(t, b, `level=WARN msg=failed work=a webhook_id=9999 repeated=9983`)
		for n := range 10_000 { // messages do not contain values; this tests what would happen if they did
			log.Warn(fmt.Sprint("message ", n))
			log.Warn(fmt.Sprint("message ", n))
		}
		if got = b.take(); len(got) != 2*10_000-256 {
			t.Errorf("%d lines of many messages", len(got))
		}
		h.Flush()
	})
}

// TestAtOnce: if many log at the same time, no warning is lost or counted twice.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	log, h, b := newLog()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				log.Warn("failed")
			}
		})
	}
	all.Wait()
	h.Flush()
	want(t, b, `level=WARN msg=failed`, `level=WARN msg=failed repeated=7999`)
}
