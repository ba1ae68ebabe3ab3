package feed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
)

// TestDue: the store is asked at first, after news, when a known job is due, and every
// allEvery; after an error, it is asked again at once.
func TestDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ws, other := desk.ID{1}, desk.ID{2}
		asked, waits, broken := 0, map[desk.ID]time.Duration{}, error(nil)
		s := &Service{}
		due := s.Due(func(context.Context) (map[desk.ID]time.Duration, error) {
			asked++
			return waits, broken
		})
		look := func(times, found int) {
			t.Helper()
			asked = 0
			list, err := due.Now(t.Context())
			if asked != times || len(list) != found || !errors.Is(err, broken) {
				t.Errorf("asked %d times, found %d, %v; want %d, %d, %v", asked, len(list), err, times, found, broken)
			}
		}
		look(1, 0) // at first
		look(0, 0) // nothing is known
		s.news.tell([]desk.ID{ws}, false)
		waits = map[desk.ID]time.Duration{ws: 0, other: 5 * time.Second}
		look(1, 1) // news
		look(1, 1) // the job is still due
		delete(waits, ws)
		look(1, 0)
		time.Sleep(5*time.Second - 1)
		look(0, 0)
		time.Sleep(time.Nanosecond)
		waits[other] = 0
		look(1, 1) // its time has come
		clear(waits)
		look(1, 0)
		waits[other] = allEvery
		due.Again()
		look(1, 0) // a job was repeated
		time.Sleep(knownEvery)
		look(1, 0) // a job is known
		clear(waits)
		time.Sleep(knownEvery)
		look(1, 0)
		time.Sleep(allEvery - 1)
		look(0, 0)
		time.Sleep(time.Nanosecond)
		look(1, 0) // all is asked from time to time
		s.news.tell([]desk.ID{ws}, false)
		broken = errors.New("away")
		look(1, 0)
		look(1, 0)
		broken = nil
		look(1, 0)
		look(0, 0)
	})
}
