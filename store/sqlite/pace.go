package sqlite

import (
	"context"
	"time"

	"parley/desk"
)

const paceQuery = `SELECT until_us FROM pace WHERE workspace_id = ? AND bucket = ?`

// Pace takes one place in each of the buckets, and returns how long the caller must wait
// before it goes on. If this wait would be longer than most, it takes no place.
func (s *Store) Pace(ctx context.Context, ws desk.ID, buckets []desk.Bucket, most time.Duration) (wait time.Duration, ok bool, err error) {
	err = s.write(ctx, func(c conn) error {
		now, longest := s.clock().UnixMicro(), int64(0)
		until := make([]int64, len(buckets))
		for i, b := range buckets {
			taken, err := one("pace", c.stmt(paceQuery).id(ws).text(b.Name), (*stmt).readInt)
			if err != nil {
				return err
			}
			every := b.Interval.Microseconds()
			if taken > now+most.Microseconds()+int64(b.Burst)*every {
				taken = now // the clock was set back since the place was taken
			}
			until[i] = max(taken, now) + every
			longest = max(longest, until[i]-now-int64(b.Burst)*every)
		}
		wait, ok = time.Duration(longest)*time.Microsecond, longest <= most.Microseconds()
		if !ok {
			return nil
		}
		for i, b := range buckets {
			if err := c.stmt(`REPLACE INTO pace (workspace_id, bucket, until_us) VALUES (?, ?, ?)`).id(ws).text(b.Name).int(until[i]).run(); err != nil {
				return failed("pace", err)
			}
		}
		return nil
	})
	return wait, ok && err == nil, err
}

// ForgetPace deletes the buckets of a workspace whose places are all in the past. It also
// deletes buckets with places further ahead than longest, because such places are
// impossible.
func (s *Store) ForgetPace(ctx context.Context, ws desk.ID, longest time.Duration) error {
	return s.write(ctx, func(c conn) error {
		return failed("forget pace", c.stmt(`DELETE FROM pace WHERE workspace_id = ? AND (until_us <= ? OR until_us > ?)`).
			id(ws).int(s.clock().UnixMicro()).int(s.clock().Add(longest).UnixMicro()).run())
	})
}
