package postgres

import (
	"context"
	"time"

	"parley/desk"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// readBound is how long a read may take, with the wait for a connection.
	readBound = 20 * time.Second
	// readTries is how many connections that turn out to be dead a read puts up with.
	readTries = 3
)

// read runs f, which only reads, on a connection. It may run again.
func (s *Store) read(ctx context.Context, f func(*pipe) error) error {
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	for try := 1; ; try++ {
		lost, err := s.readOnce(ctx, f)
		if !lost || try == readTries || ctx.Err() != nil {
			return err
		}
	}
}

func (s *Store) readOnce(ctx context.Context, f func(*pipe) error) (lost bool, err error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, unavailable(err)
	}
	defer c.Release()
	err = f(newPipe(ctx, c))
	if err != nil && c.Conn().IsClosed() {
		return true, unavailable(err)
	}
	return false, err
}

// A pipe is a connection with the statements that wait for the next round trip. The
// first error sticks.
type pipe struct {
	ctx     context.Context
	c       *pgxpool.Conn
	waiting *pgx.Batch
	fail    error
}

func newPipe(ctx context.Context, c *pgxpool.Conn) *pipe {
	return &pipe{ctx: ctx, c: c, waiting: &pgx.Batch{}}
}

// put lets a statement wait. Its arguments must not change any more.
func (p *pipe) put(query string, args ...any) *pgx.QueuedQuery {
	return p.waiting.Queue(query, args...)
}

// send sends all that waits, in one round trip.
func (p *pipe) send(doing string) error {
	if p.fail == nil && p.waiting.Len() > 0 {
		batch := p.waiting
		p.waiting = &pgx.Batch{}
		p.fail = p.c.SendBatch(p.ctx, batch).Close()
	}
	return failed(doing, p.fail)
}

// each lets a query wait, and read its rows when they come.
func (p *pipe) each(read func(pgx.Row) error, query string, args ...any) {
	p.put(query, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := read(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// one sends a query and returns what read makes of its only row, or the zero T.
func one[T any](p *pipe, doing string, read func(pgx.Row) (T, error), query string, args ...any) (v T, err error) {
	p.each(func(row pgx.Row) (err error) { v, err = read(row); return err }, query, args...)
	return v, p.send(doing)
}

// all sends a query and returns what read makes of each row.
func all[T any](p *pipe, doing string, read func(pgx.Row) (T, error), query string, args ...any) (list []T, err error) {
	p.each(func(row pgx.Row) error {
		v, err := read(row)
		list = append(list, v)
		return err
	}, query, args...)
	return list, p.send(doing)
}

func readTime(row pgx.Row) (at desk.Time, err error) {
	err = row.Scan((*int64)(&at))
	return at, err
}

// A uuid is an id on its way to or from the database. NULL is the zero one.
type uuid desk.ID

func (u uuid) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: u, Valid: true}, nil }

func (u *uuid) ScanUUID(v pgtype.UUID) error { *u = v.Bytes; return nil }

// into is where a scan puts an id.
func into(id *desk.ID) *uuid { return (*uuid)(id) }

// orNull is an id of which the zero one is NULL.
func orNull(id desk.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }

// A hash is 32 bytes on their way from the database.
type hash [32]byte

func (h *hash) ScanBytes(v []byte) error { copy(h[:], v); return nil }

// stored is how values without columns of their own are kept, so that they come back
// exactly as they were: what is left out is zero, and null is nil.
var stored = json.JoinOptions(json.OmitZeroStructFields(true), json.FormatNilSliceAsNull(true))

// A jsonText is a value made into JSON, which is to be done before the value changes.
type jsonText struct {
	text []byte
	err  error
}

// asJSON is v as JSON, and nil as "".
func asJSON(v any) jsonText {
	text, err := json.Marshal(v, stored)
	if string(text) == "null" {
		text = nil
	}
	return jsonText{text, err}
}

// TextValue implements pgtype.TextValuer.
func (j jsonText) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(j.text), Valid: true}, j.err
}

// A document is where a scan puts what asJSON made: into what is still nil or zero.
type document struct{ into any }

// ScanText implements pgtype.TextScanner.
func (d document) ScanText(text pgtype.Text) error {
	if text.String == "" {
		return nil
	}
	return json.Unmarshal([]byte(text.String), d.into)
}
