package app_test

import (
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
)

// TestClock_apart: if a server's clock is over a minute away from the database's, the
// server logs it once. When the clocks agree again, it logs this once.
func TestClock_apart(t *testing.T) {
	t.Parallel()
	for name, far := range map[string]time.Duration{"ahead": 61 * time.Second, "behind": -400 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			look := func(ahead time.Duration, warnings, ends int) {
				t.Helper()
				w.clock.server.Store(int64(ahead))
				must(t, w.Clock.Look(t.Context()))
				must(t, w.Clock.Look(t.Context()))
				if got := w.Clock.Ahead(); (got - ahead).Abs() > time.Second {
					t.Errorf("it is %v ahead, and says %v", ahead, got)
				}
				if lines := w.log.find("WARN this server's clock differs from the database's"); len(lines) != warnings {
					t.Errorf("%v ahead: warned %q", ahead, lines)
				}
				if lines := w.log.find("INFO this server's clock agrees with the database's again"); len(lines) != ends {
					t.Errorf("%v ahead: %q", ahead, lines)
				}
			}
			look(0, 0, 0)
			look(59*time.Second, 0, 0)
			look(-59*time.Second, 0, 0)
			look(far, 1, 0)
			look(0, 1, 1)
			look(far, 2, 1)
		})
	}
}

// TestClock_of_inbound: the database's clock decides when items are due, even if the
// server's clock is wrong.
func TestClock_of_inbound(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"a year ahead": 8760 * time.Hour, "a year behind": -8760 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			channel := w.connect(metaNumber, metaBusiness)
			w.provider.plays(w.provider.Sandbox.Send)
			m := w.sent("before", on(w.channel))
			w.clock.server.Store(int64(ahead))
			w.callback(channel, inbound(1, number, "", "Hello"))
			other := w.sent("after", on(w.channel))
			w.clock.server.Store(0) // the processing node's clock is right
			w.takeIn()
			if w.writer(channel, 1) == nil {
				t.Error("the callback is not taken in")
			}
			for _, m := range []desk.SentMessage{m, other} {
				waitFor(t, "it to be read", func() bool { return w.message(m).Delivery == desk.Read })
			}
			w.stop()
			w.start(app.Bounds{})
			w.clock.server.Store(int64(ahead)) // and now the processing node's clock is wrong
			w.callback(channel, inbound(2, number, "", "Hello"))
			bad := w.notify(poison)
			w.takeIn()
			if w.writer(channel, 2) == nil {
				t.Error("the second callback is not taken in")
			}
			waitFor(t, "the bad one to be put off", func() bool { return len(w.log.find(bad.ID.String())) == 1 })
			w.stop()
			w.clock.advance(59 * time.Minute)
			if list := w.due(); len(list) != 0 {
				t.Errorf("after 59 minutes %d are due", len(list))
			}
			w.clock.advance(2 * time.Minute)
			if list := w.due(); len(list) != 1 || !strings.HasPrefix(string(list[0].Body), poison) {
				t.Errorf("after an hour: %+v", list)
			}
		})
	}
}
