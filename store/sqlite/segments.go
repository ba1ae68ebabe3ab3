package sqlite

import (
	"context"
	"encoding/json"

	"parley/desk"
)

const (
	segmentsQuery   = `SELECT key, name, filter, updated_at FROM segments WHERE workspace_id = ? ORDER BY key`
	segmentQuery    = `SELECT key, name, filter, updated_at FROM segments WHERE workspace_id = ? AND key = ?`
	putSegmentQuery = `REPLACE INTO segments (workspace_id, key, name, filter, updated_at) VALUES (?, ?, ?, ?, ?)`
)

func readSegment(s *stmt) *desk.Segment {
	segment := &desk.Segment{Key: s.readText(), Name: s.readText()}
	filter := s.readText()
	segment.UpdatedAt = s.readTime()
	if err := json.Unmarshal([]byte(filter), &segment.Filter); err != nil {
		s.fail = err
	}
	return segment
}

func segments(c conn, ws desk.ID) (list []desk.Segment, err error) {
	found, err := all("segments", c.stmt(segmentsQuery).id(ws), readSegment)
	for _, s := range found {
		list = append(list, *s)
	}
	return list, err
}

// Segments lists the segments of a workspace by key.
func (s *Store) Segments(ctx context.Context, ws desk.ID) (list []desk.Segment, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = segments(c, ws)
		return err
	})
	return list, err
}

// Segment returns a segment, or nil.
func (s *Store) Segment(ctx context.Context, ws desk.ID, key string) (found *desk.Segment, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		found, err = one("segment", c.stmt(segmentQuery).id(ws).text(key), readSegment)
		return err
	})
	return found, err
}

func (t *tx) Segments() ([]desk.Segment, error) { return segments(t.c, t.ws) }

func (t *tx) PutSegment(s desk.Segment) error {
	return failed("segment", t.c.stmt(putSegmentQuery).id(t.ws).text(s.Key).text(s.Name).text(string(s.Filter.AppendJSON(nil))).time(s.UpdatedAt).run())
}

func (t *tx) DropSegment(key string) error {
	return failed("segment", t.c.stmt(`DELETE FROM segments WHERE workspace_id = ? AND key = ?`).id(t.ws).text(key).run())
}
