package sqlite

import (
	"context"

	"parley/desk"
)

// now returns the time of the database's clock.
func (s *Store) now() desk.Time { return desk.TimeOf(s.clock()) }

const (
	hourQuery = `SELECT hour FROM uptime WHERE one = 1`
	// thisHour is hourQuery as a subquery.
	thisHour = `(` + hourQuery + `)`
)

// Clock returns the time of the database's clock, and the database's counter of hours.
func (s *Store) Clock(ctx context.Context) (now desk.Time, hour int64, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		hour, err = one("hour", c.stmt(hourQuery), (*stmt).readInt)
		return err
	})
	return s.now(), hour, err
}

const raiseHourQuery = `UPDATE uptime SET hour = hour + 1 WHERE one = 1 AND hour = ?`

// RaiseHour adds one to the counter of hours, if the counter is still equal to seen.
func (s *Store) RaiseHour(ctx context.Context, seen int64) error {
	return s.write(ctx, func(c conn) error { return failed("raise the hour", c.stmt(raiseHourQuery).int(seen).run()) })
}

// Hour returns the counter of hours.
func (e *Export) Hour() (int64, error) { return one("hour", e.c.stmt(hourQuery), (*stmt).readInt) }
