package desk_test

import (
	"testing"

	"parley/desk"
)

func TestLease(t *testing.T) {
	t.Parallel()
	const year = desk.Time(365 * 24 * 60 * 60 * 1000)
	given := desk.LeaseFor(1000, 30)
	for name, c := range map[string]struct {
		lease desk.Lease
		now   desk.Time
		holds bool
		void  bool
	}{
		"just given":                   {given, 1000, true, false},
		"at its end":                   {given, 1030, true, false},
		"after its end":                {given, 1031, false, false},
		"a year later":                 {given, 1000 + year, false, false},
		"the clock was set back by 1":  {given, 999, false, true},
		"it was set back by a year":    {desk.LeaseFor(1000+year, 30), 1000, false, true},
		"nobody's":                     {0, 1000, false, false},
		"nobody's, before every clock": {0, -50, false, true},
	} {
		if holds, void := c.lease.Holds(c.now, 30), c.lease.Void(c.now, 30); holds != c.holds || void != c.void {
			t.Errorf("%s: holds %v, void %v", name, holds, void)
		}
	}
}
