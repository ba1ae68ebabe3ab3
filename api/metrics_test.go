package api_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/app"
)

// TestFigures: /metrics shows the sends of this process and gauges of the whole database,
// by their exact names. Besides the ids of channels, there are only a few labels.
func TestFigures(t *testing.T) {
	t.Parallel()
	s := newCallbackServer(t)
	silent := s.addSandbox("")
	enabled := false
	if _, err := s.app.EditChannel(t.Context(), s.operator(s.ws), silent, app.ChannelEdit{Enabled: &enabled}); err != nil {
		t.Fatal(err)
	}
	bare(t, "a callback", s.post(s.channel.String(), signed("{}"), "{}"), 200)
	s.want(201, "POST /v1/broadcasts", `{"name":"Spring","template":{"name":"thanks","language":"en_US"}}`)
	s.clock.Store(1_000_000_000_000) // in 2001, long before the database's clock
	if err := s.app.Clock.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	metrics := string(s.as("", "GET /metrics", "").body)
	for _, want := range []string{
		`parley_channel_up\{channel="` + s.channel.String() + `"\} 1`,
		`parley_channel_up\{channel="` + silent.String() + `"\} 0`,
		`parley_callback_age_seconds\{channel="` + s.channel.String() + `"\} \d[\d.e+]*`,
		`parley_sends_total\{outcome="accepted"\} 0`,
		`parley_sends_total\{outcome="refused"\} 0`,
		`parley_sends_total\{outcome="unavailable"\} 0`,
		`parley_sends_total\{outcome="in_doubt"\} 0`,
		`parley_sends_in_doubt 0`,
		`parley_inbound_waiting 1`,
		`parley_events_total\{type="channel\.created"\} 2`,
		`parley_events_total\{type="channel\.updated"\} 1`,
		`parley_events_total\{type="message\.received"\} 0`,
		`parley_event_streams 0`,
		`parley_webhook_attempts_total\{result="delivered"\} 0`,
		`parley_webhook_attempts_total\{result="address_refused"\} 0`,
		`parley_webhook_attempts_total\{result="timeout"\} 0`,
		`parley_webhook_attempts_total\{result="gone"\} 0`,
		`parley_webhook_attempts_total\{result="status"\} 0`,
		`parley_webhook_lag_seconds 0`,
		`parley_webhook_endpoints\{state="failing"\} 0`,
		`parley_broadcasts\{state="draft"\} 1`,
		`parley_broadcasts\{state="running"\} 0`,
		`parley_clock_ahead_seconds -\d\.\d+e\+08`,
		`parley_database_bytes [1-9][\d.e+]+`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(metrics) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if ages := strings.Count(metrics, "parley_callback_age_seconds{"); ages != 1 {
		t.Errorf("%d channels have an age, want the one that was called", ages)
	}
	if t.Failed() {
		t.Log(metrics)
	}
}

// TestCallbackAge: the age is measured by the database's clock, even on a node whose clock
// is an hour ahead of it or behind.
func TestCallbackAge(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCallbackServer(t)
			bare(t, "a callback", s.post(s.channel.String(), signed("{}"), "{}"), 200)
			now, _, err := s.store.Clock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := int64(now) + off.Milliseconds()
			age := func() float64 {
				t.Helper()
				s.clock.Store(at)
				found := regexp.MustCompile(`(?m)^parley_callback_age_seconds\{.*\} (.*)$`).FindSubmatch(s.as("", "GET /metrics", "").body)
				if found == nil {
					t.Fatal("there is no age")
				}
				n, err := strconv.ParseFloat(string(found[1]), 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			first := age()
			at += 4_000 // the figures are from before, and the age is not
			if second := age(); first > 600 || second < first+3 || second > first+5 {
				t.Errorf("%v s, and %v s after 4 s", first, second)
			}
		})
	}
}
