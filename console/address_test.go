package console

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// TestAddressOf: behind trusted proxies, the caller is the last address in
// X-Forwarded-For that is not a trusted proxy's. Entries that a caller adds to the
// header have no effect.
func TestAddressOf(t *testing.T) {
	t.Parallel()
	s := &Server{trusted: unmappedAll([]netip.Prefix{netip.MustParsePrefix("10.1.2.3/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::ffff:192.0.2.0/120")})}
	for _, c := range []struct {
		from  string
		lines []string
		want  string
	}{
		{"203.0.113.9:5", nil, "203.0.113.9"},
		{"203.0.113.9:5", []string{"198.51.100.1"}, "203.0.113.9"},
		{"[::ffff:203.0.113.9]:5", []string{"198.51.100.1"}, "203.0.113.9"},
		{"[2001:db8::1]:5", []string{"198.51.100.1"}, "2001:db8::1"},
		{"@", []string{"198.51.100.1"}, "@"},
		{"10.1.0.1:5", nil, "10.1.0.1"},
		{"10.1.0.1:5", []string{""}, "10.1.0.1"},
		{"10.1.0.1:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[::ffff:10.1.0.1]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[fd00::1%eth0]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"192.0.2.7:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"1.1.1.1, 2.2.2.2,198.51.100.1"}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"198.51.100.1, 10.1.9.9, fd00::2 ,"}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"1.1.1.1", "198.51.100.1, 10.1.9.9", "10.1.0.2"}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"2001:db8::7"}, "2001:db8::7"},
		{"10.1.0.1:5", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"10.1.0.1:5", []string{"[2001:db8::7%x]:4711"}, "2001:db8::7"},
		{"10.1.0.1:5", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"198.51.100.1, unknown"}, "10.1.0.1"},
		{"10.1.0.1:5", []string{"198.51.100.1, unknown, 10.1.0.2"}, "10.1.0.1"},
		{"10.1.0.1:5", []string{"unknown, 198.51.100.1"}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"10.1.0.7, 10.1.0.2"}, "10.1.0.1"},
		{"10.1.0.1:5", []string{"198.51.100.1" + strings.Repeat(", 10.1.0.2", 31)}, "198.51.100.1"},
		{"10.1.0.1:5", []string{"198.51.100.1" + strings.Repeat(", 10.1.0.2", 32)}, "10.1.0.1"},
		{"10.1.0.1:5", []string{"198.51.100.1" + strings.Repeat(",", 100_000)}, "10.1.0.1"},
		{"10.1.0.1:5", []string{strings.Repeat("9", 100_000)}, "10.1.0.1"},
		{"10.1.0.1:5", []string{strings.Repeat(" ", 100_000)}, "10.1.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.from, Header: http.Header{"X-Forwarded-For": c.lines}}
		if got := s.addressOf(r); got != c.want {
			t.Errorf("from %s with %.60q: %s, want %s", c.from, c.lines, got, c.want)
		}
	}
	if got := (&Server{}).addressOf(&http.Request{RemoteAddr: "10.1.0.1:5", Header: http.Header{"X-Forwarded-For": {"198.51.100.1"}}}); got != "10.1.0.1" {
		t.Errorf("without a trusted proxy: %s", got)
	}
}
