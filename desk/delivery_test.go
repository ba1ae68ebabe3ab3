package desk

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tried applies a try that takes no time.
func tried(rules DeliveryRules, s *WebhookState, d *WebhookDelivery, r WebhookResult) Verdict {
	r.Steps = d.Steps
	return rules.Tried(s, d, &r)
}

func failedAt(at Time) WebhookResult {
	return WebhookResult{WebhookTry: WebhookTry{At: at, StatusCode: 500, Error: "status"}}
}

func answeredAt(at Time) WebhookResult {
	return WebhookResult{WebhookTry: WebhookTry{At: at, StatusCode: 200}}
}

// TestDeliverySchedule: an event that always fails has 11 tries in 52 to 62 hours, while
// other events succeed.
func TestDeliverySchedule(t *testing.T) {
	t.Parallel()
	for jitter, total := range map[float64]time.Duration{
		0: 51*time.Hour + 42*time.Minute + 35*time.Second,
		1: 62*time.Hour + 3*time.Minute + 6*time.Second,
	} {
		rules, s := DefaultDeliveryRules(), &WebhookState{}
		d := &WebhookDelivery{Status: DeliveryPending}
		now := Time(1_000_000)
		attempts := 0
		for d.Status == DeliveryPending {
			if attempts++; attempts > 1 {
				now = d.DueAt
			}
			r := failedAt(now)
			r.Jitter = jitter
			if v := tried(rules, s, d, r); v != (Verdict{}) {
				t.Fatalf("attempt %d: %+v", attempts, v)
			}
			tried(rules, s, &WebhookDelivery{Status: DeliveryPending}, answeredAt(now)) // another event
		}
		if d.Status != DeliveryFailed || attempts != 11 || d.SettledAt != now || len(d.Tries) != 11 || s.FailingSince != 0 {
			t.Errorf("%d attempts: %+v", attempts, d)
		}
		if took := time.Duration(now-1_000_000) * time.Millisecond; took != total {
			t.Errorf("with a jitter of %v they took %v, want %v", jitter, took, total)
		}
	}
}

// TestHolds: 429, and Retry-After on any failure, hold the whole endpoint.
func TestHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code  int
		retry time.Duration
		want  time.Duration
	}{
		"unsaid":       {429, 0, time.Minute},
		"said":         {429, 7 * time.Second, 7 * time.Second},
		"another code": {503, 20 * time.Second, 20 * time.Second},
		"too long":     {503, 5 * time.Hour, time.Hour},
		"none":         {500, 0, 0},
	} {
		const start = Time(1e9)
		s, d := &WebhookState{}, &WebhookDelivery{Status: DeliveryPending}
		other := &WebhookDelivery{Status: DeliveryPending}
		r := failedAt(start)
		r.StatusCode, r.RetryAfter = c.code, c.retry
		rules := DefaultDeliveryRules()
		tried(rules, s, d, r)
		held := Time(0)
		if c.want > 0 {
			held = start + millis(c.want)
		}
		if s.HeldUntil != held || s.Failures != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		next, _ := rules.Next(s, []*WebhookDelivery{other}, start+1)
		if (next == nil) != (held > start+1) || s.MayBegin(1, start+1) != (held == 0) {
			t.Errorf("%s: %v begins", name, next)
		}
		if next, _ := rules.Next(s, []*WebhookDelivery{other}, max(held, start)); next != other || !s.MayBegin(1, max(held, start)) {
			t.Errorf("%s: nothing begins after the hold", name)
		}
		if at := d.NextTry(&Webhook{Enabled: true}, s, false); at != max(d.DueAt, held) {
			t.Errorf("%s: the next attempt is at %d", name, at)
		}
		// After the clock was set back, the hold does not last longer than an hour.
		if next, _ := rules.Next(s, []*WebhookDelivery{other}, held-millis(2*time.Hour)); held != 0 && next != other {
			t.Errorf("%s: held by a clock", name)
		}
	}
}

// TestSchedule_clock_set_back: after the clock was set back by hours, a delivery that was to
// wait for seconds does not wait for hours. One that was to wait for hours may.
func TestSchedule_clock_set_back(t *testing.T) {
	t.Parallel()
	rules := DefaultDeliveryRules()
	const start = Time(1e9)
	for steps, pause := range rules.Schedule {
		s, d := &WebhookState{}, &WebhookDelivery{Status: DeliveryPending, Steps: steps}
		r := failedAt(start)
		r.Jitter = 1
		tried(rules, s, d, r)
		if next, _ := rules.Next(s, []*WebhookDelivery{d}, start); next != nil {
			t.Errorf("after %d steps it does not wait", steps)
		}
		if next, _ := rules.Next(s, []*WebhookDelivery{d}, start-millis(pause)-2000); next != d {
			t.Errorf("after %d steps it waits for more than %v", steps, pause)
		}
	}
}

// TestFailingEndpoint: after 10 failures in a row only probes begin, one at a time, with
// the delivery tried longest ago. A success makes all deliveries due; after 72 hours the
// endpoint is disabled.
func TestFailingEndpoint(t *testing.T) {
	t.Parallel()
	rules, s := DefaultDeliveryRules(), &WebhookState{}
	a := &WebhookDelivery{ID: ID{1}, Status: DeliveryPending}
	b := &WebhookDelivery{ID: ID{2}, Status: DeliveryPending}
	pending := []*WebhookDelivery{a, b}
	now := Time(1000)
	for n := range 10 {
		if s.Failing() {
			t.Fatalf("failing after %d", n)
		}
		tried(rules, s, pending[n%2], failedAt(now+Time(n)))
	}
	now += 9
	steps := [2]int{a.Steps, b.Steps}
	for n, pause := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		if next, _ := rules.Next(s, pending, now+millis(pause)-1); next != nil || s.MayBegin(2, now+millis(pause)-1) {
			t.Fatalf("probe %d: something begins early", n)
		}
		now += millis(pause)
		next, probe := rules.Next(s, pending, now)
		if next != pending[n%2] || !probe {
			t.Fatalf("probe %d is of %v (%v)", n, next, probe)
		}
		next.Trying = true
		if again, _ := rules.Next(s, pending, now); again != nil || s.MayBegin(2, now) {
			t.Fatalf("beside probe %d begins %v", n, again)
		}
		next.Trying = false
		w := &Webhook{Enabled: true}
		if at := pending[(n+1)%2].NextTry(w, s, false); at != 0 {
			t.Errorf("a paused delivery is planned at %d", at)
		}
		if at := next.NextTry(w, s, true); at != now {
			t.Errorf("the probe is planned at %d, want %d", at, now)
		}
		r := failedAt(now)
		r.Probe = true
		tried(rules, s, next, r)
	}
	if got := [2]int{a.Steps, b.Steps}; got != steps {
		t.Errorf("probes used up the schedule: %v, want %v", got, steps)
	}
	if !s.MayBegin(0, s.HeldUntil) { // otherwise nothing could probe the endpoint
		t.Error("without a pending delivery nothing can ever begin")
	}
	b.Redeliver(now)
	if next, probe := rules.Next(s, pending, now); next != b || probe {
		t.Errorf("a redelivery waits: %v", next)
	}
	if v := tried(rules, s, b, failedAt(now)); v != (Verdict{}) || b.Steps != 1 {
		t.Errorf("after a redelivery: %+v, %d steps", v, b.Steps)
	}
	last := *s
	r := failedAt(s.FailingSince + millis(72*time.Hour))
	r.Probe = true
	if v := tried(rules, &last, a, r); v.Disable != DisabledFailing {
		t.Errorf("after 72 hours: %+v", v)
	}
	r.At--
	last = *s
	if v := tried(rules, &last, a, r); v.Disable != "" {
		t.Errorf("before 72 hours: %+v", v)
	}
	pinged := *s
	if v := pinged.Pinged(&WebhookResult{WebhookTry: WebhookTry{Error: "timeout"}}); v != (Verdict{}) || pinged != *s {
		t.Errorf("a ping that fails: %+v", v)
	}
	ok := answeredAt(now)
	if v := pinged.Pinged(&ok); !v.Recovered || pinged != (WebhookState{}) {
		t.Errorf("a ping that succeeds: %+v, %+v", v, pinged)
	}
	if v := tried(rules, s, a, answeredAt(now)); !v.Recovered || *s != (WebhookState{}) || a.Status != DeliveryDelivered {
		t.Errorf("a success: %+v, %+v", v, s)
	}
}

// TestRedeliver_while_trying: if a person asks for a delivery while a try is under way,
// another try follows, whatever the outcome of the first one. This is so even if a person
// also asked for the first one. The request ends with the result of its own try.
func TestRedeliver_while_trying(t *testing.T) {
	t.Parallel()
	rules := DefaultDeliveryRules()
	const asked = Time(2e9)
	for name, result := range map[string]WebhookResult{"success": answeredAt(asked - 10), "failure": failedAt(asked - 10), "late": failedAt(asked + 10)} {
		for before, d := range map[string]*WebhookDelivery{
			"first attempt": {Status: DeliveryPending}, "last attempt": {Status: DeliveryPending, Steps: len(rules.Schedule)}, "asked for": {Status: DeliveryDelivered, Steps: -3},
		} {
			s := &WebhookState{}
			if before == "asked for" {
				d.Redeliver(asked - 100)
			}
			r := result
			r.Steps = d.Steps
			d.Redeliver(asked)
			rules.Tried(s, d, &r)
			if d.Status != DeliveryPending || d.DueAt != asked || d.SettledAt != 0 || !d.Asked() || len(d.Tries) != 1 {
				t.Errorf("%s, %s: %+v", before, name, d)
			}
			if next, _ := rules.Next(s, []*WebhookDelivery{d}, asked); next != d {
				t.Errorf("%s, %s: it does not begin", before, name)
			}
			r = answeredAt(asked + 20)
			r.Steps = d.Steps
			if rules.Tried(s, d, &r); d.Status != DeliveryDelivered || d.Asked() {
				t.Errorf("%s, %s: after what was asked for: %+v", before, name, d)
			}
		}
	}
}

// TestGone: the answer 410 disables the endpoint at once, also as the answer to a ping.
func TestGone(t *testing.T) {
	t.Parallel()
	s, d := &WebhookState{}, &WebhookDelivery{Status: DeliveryPending}
	r := failedAt(5)
	r.StatusCode, r.Error = 410, TryGone
	if v := tried(DefaultDeliveryRules(), s, d, r); v.Disable != DisabledGone || d.Status != DeliveryPending {
		t.Errorf("%+v, %+v", v, d)
	}
	if v := s.Pinged(&r); v.Disable != DisabledGone {
		t.Errorf("a ping: %+v", v)
	}
}

// TestDeliveryRules checks any sequence of tries: a delivery ends after one try more than
// the schedule has steps, keeps at most 12 tries, and plans tries as the schedule says.
func TestDeliveryRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := DeliveryRules{GiveUp: 1000 * time.Hour}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			rules.Schedule = append(rules.Schedule, time.Duration(rapid.IntRange(1, 100).Draw(t, "pause"))*time.Second)
		}
		s, d := &WebhookState{}, &WebhookDelivery{Status: DeliveryPending}
		now, counted := Time(1), 0
		for range rapid.IntRange(0, 60).Draw(t, "attempts") {
			if d.Status != DeliveryPending {
				break
			}
			if rapid.IntRange(0, 9).Draw(t, "redeliver") == 0 {
				d.Redeliver(now)
				counted = 0
			}
			next, probe := rules.Next(s, []*WebhookDelivery{d}, now)
			if next == nil {
				at := d.NextTry(&Webhook{Enabled: true}, s, true)
				if at <= now || at > now+millis(longestHold)+millis(120*time.Second) {
					t.Fatalf("nothing begins at %d, and the next is planned at %d", now, at)
				}
				now = at
				if next, probe = rules.Next(s, []*WebhookDelivery{d}, now); next == nil {
					t.Fatalf("nothing begins when it is planned: %+v %+v", s, d)
				}
			}
			r := failedAt(now)
			r.Probe, r.Jitter = probe, rapid.Float64Range(0, 1).Draw(t, "jitter")
			if rapid.IntRange(0, 14).Draw(t, "ok") == 0 {
				r = answeredAt(now)
			} else if rapid.IntRange(0, 5).Draw(t, "hold") == 0 {
				r.StatusCode = 429
			}
			if !probe {
				counted++
			}
			tried(rules, s, d, r)
			switch {
			case len(d.Tries) > keptTries:
				t.Fatalf("%d attempts are kept", len(d.Tries))
			case r.Error == "" && d.Status != DeliveryDelivered:
				t.Fatalf("a success left it %s", d.Status)
			case r.Error != "" && (d.Status == DeliveryFailed) != (!probe && counted == len(rules.Schedule)+1):
				t.Fatalf("%s after %d of %d attempts", d.Status, counted, len(rules.Schedule)+1)
			}
		}
	})
}
