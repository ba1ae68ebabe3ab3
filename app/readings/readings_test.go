package readings

import (
	"testing"

	"parley/desk"
	"parley/provider"
)

// TestCache: what is kept has a bound, and what was dropped or replaced counts no longer.
func TestCache(t *testing.T) {
	t.Parallel()
	var c Cache
	put := func(n, body int) { c.Put(desk.ID{byte(n >> 8), byte(n)}, &Reading{}, body) }
	for n := range 2 * most / least {
		put(n, 1)
		if len(c.byID) > most/least {
			t.Fatalf("%d are kept", len(c.byID))
		}
	}
	for range 10 {
		put(1, most)
	}
	if c.bytes != most || len(c.byID) != 1 {
		t.Errorf("%d bytes of %d", c.bytes, len(c.byID))
	}
	put(2, 2*most)
	if c.Get(desk.ID{0, 1}) != nil || c.Get(desk.ID{0, 2}) == nil {
		t.Error("a long one is not kept alone")
	}
	for range 2 {
		c.Drop(desk.ID{0, 2})
	}
	if c.bytes != 0 || len(c.byID) != 0 {
		t.Errorf("at the end, %d bytes of %d", c.bytes, len(c.byID))
	}
}

func TestStatusesOnly(t *testing.T) {
	t.Parallel()
	status, message := provider.Update{Status: &desk.StatusUpdate{}}, provider.Update{Message: &provider.InboundMessage{}}
	for _, c := range []struct {
		told []provider.Update
		want bool
	}{{nil, false}, {[]provider.Update{status, status}, true}, {[]provider.Update{status, message}, false}} {
		if got := (&Reading{Told: c.told}).StatusesOnly(); got != c.want {
			t.Errorf("%+v: %v", c.told, got)
		}
	}
}
