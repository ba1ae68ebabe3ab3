package postgres

import (
	"context"
	"encoding/json"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	// segmentsLock locks a workspace's segments (see snippetsLock).
	segmentsLock = `SELECT pg_advisory_xact_lock(hashtextextended('segments' || $1::uuid::text, 0))` + ofWorkspace

	segmentsQuery = `SELECT key, name, filter, updated_at FROM segments WHERE workspace_id = $1 ORDER BY key`
	segmentQuery  = `SELECT key, name, filter, updated_at FROM segments WHERE workspace_id = $1 AND key = $2`
)

func readSegment(row pgx.Row) (*desk.Segment, error) {
	var s desk.Segment
	var filter string
	err := row.Scan(&s.Key, &s.Name, &filter, (*int64)(&s.UpdatedAt))
	if err == nil {
		err = json.Unmarshal([]byte(filter), &s.Filter)
	}
	return &s, err
}

func segments(p *pipe, ws desk.ID) (list []desk.Segment, err error) {
	found, err := all(p, "segments", readSegment, segmentsQuery, uuid(ws))
	for _, s := range found {
		list = append(list, *s)
	}
	return list, err
}

// Segments lists the segments of a workspace by key.
func (s *Store) Segments(ctx context.Context, ws desk.ID) (list []desk.Segment, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err = segments(p, ws)
		return err
	})
	return list, err
}

// Segment returns a segment, or nil.
func (s *Store) Segment(ctx context.Context, ws desk.ID, key string) (*desk.Segment, error) {
	return readOne(ctx, s, "segment", readSegment, segmentQuery, uuid(ws), key)
}

func (t *tx) Segments() ([]desk.Segment, error) {
	t.put(segmentsLock, uuid(t.ws))
	return segments(t.pipe, t.ws)
}

func (t *tx) PutSegment(s desk.Segment) error {
	t.put(`INSERT INTO segments (workspace_id, key, name, filter, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace_id, key) DO UPDATE SET name = excluded.name, filter = excluded.filter, updated_at = excluded.updated_at`,
		uuid(t.ws), s.Key, s.Name, string(s.Filter.AppendJSON(nil)), int64(s.UpdatedAt))
	return t.fail
}

func (t *tx) DropSegment(key string) error {
	t.put(`DELETE FROM segments WHERE workspace_id = $1 AND key = $2`, uuid(t.ws), key)
	return t.fail
}
