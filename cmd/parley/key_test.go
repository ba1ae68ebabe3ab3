package main

import (
	"testing"
	"time"
)

func TestExpiry(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0":      0,
		"0d":     0,
		"720h":   720 * time.Hour,
		"30d":    720 * time.Hour,
		"90m":    90 * time.Minute,
		"36500d": maxExpiry,
	} {
		var e expiry
		if err := e.UnmarshalText([]byte(text)); err != nil || time.Duration(e) != want {
			t.Errorf("%q = %v, %v; want %v", text, time.Duration(e), err, want)
		}
	}
	for _, text := range []string{"", "d", "30", "-1h", "-1d", "1.5d", "36501d", "99999999999999d", "900000h", "tomorrow"} {
		var e expiry
		if err := e.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q = %v, want an error", text, time.Duration(e))
		}
	}
}
