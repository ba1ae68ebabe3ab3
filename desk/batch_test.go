package desk_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/desk"
)

func TestCheckBatch(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		1:         "",
		999:       "",
		1000:      "",
		1001:      "has 1001: send them in 2 requests",
		2000:      "has 2000: send them in 2 requests",
		2001:      "has 2001: send them in 3 requests",
		2500:      "has 2500: send them in 3 requests",
		1_000_000: "has 1000000: send them in 1000 requests",
		1_000_001: "has 1000001: send them in 1001 requests",
	} {
		err := desk.CheckBatch(n)
		if want == "" {
			if err != nil {
				t.Errorf("%d: %v", n, err)
			}
			continue
		}
		if !desk.IsType(err, desk.TooManyOperations) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d: %v, want %s", n, err, want)
		}
	}
	if err := desk.CheckBatch(0); !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), "/operations: a batch holds 1 to 1000 operations") {
		t.Errorf("0: %v", err)
	}
}

func TestSummary_counts(t *testing.T) {
	t.Parallel()
	var s desk.Summary
	for n, status := range []desk.Status{desk.StatusCreated, desk.StatusUpdated, desk.StatusDeleted, desk.StatusAssigned, ""} {
		for range n + 1 {
			s.Count(status)
		}
	}
	if got, want := fmt.Sprintf("%+v", s), "{Total:15 Created:1 Updated:2 Deleted:3 Assigned:4 Errors:5}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
