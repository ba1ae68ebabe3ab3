package postgres

import (
	"context"
	"time"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// readBound is the time limit of a read, including the wait for a connection.
	readBound = 20 * time.Second
	// readTries is how many dead connections a read tries before it gives up.
	readTries = 3
)

// read runs f on a connection. f must only read, and it may run again.
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
		return false, stored.Unavailable(err)
	}
	defer c.Release()
	err = f(s.newPipe(ctx, c))
	if err != nil && c.Conn().IsClosed() {
		return true, stored.Unavailable(err)
	}
	return false, err
}

// A pipe is a connection with the statements that wait for the next round trip. It keeps
// the first error.
type pipe struct {
	ctx     context.Context
	c       *pgxpool.Conn
	waiting *pgx.Batch
	fail    error
	citus   bool // see Store.citus
}

func (s *Store) newPipe(ctx context.Context, c *pgxpool.Conn) *pipe {
	return &pipe{ctx: ctx, c: c, waiting: &pgx.Batch{}, citus: s.citus}
}

// put queues a statement. Its arguments must not change before it is sent.
func (p *pipe) put(query string, args ...any) *pgx.QueuedQuery {
	return p.waiting.Queue(query, args...)
}

// form returns the form of a statement for a single server, or the one for a Citus
// cluster. Citus refuses some statements that are the best ones for a single server. Most
// of them look rows up by ctid, because a single server keeps a plan that was made for an
// empty table (see parameters). With Citus, each execution is planned anew.
func form(citus bool, single, cluster string) string {
	if citus {
		return cluster
	}
	return single
}

// send sends all queued statements in one round trip.
func (p *pipe) send(doing string) error {
	if p.fail == nil && p.waiting.Len() > 0 {
		batch := p.waiting
		p.waiting = &pgx.Batch{}
		p.fail = p.c.SendBatch(p.ctx, batch).Close()
	}
	return failed(doing, p.fail)
}

// each queues a query. When the rows arrive, the callback read is called for each row.
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

// each queues a query. Once it is sent, each row, as the callback read has read it, goes to add.
func each[T any](p *pipe, read func(pgx.Row) (T, error), add func(T), query string, args ...any) {
	p.each(func(row pgx.Row) error {
		v, err := read(row)
		if err == nil {
			add(v)
		}
		return err
	}, query, args...)
}

// one sends a query and returns its only row, as the callback read has read it. If there
// is no row, it returns the zero T.
func one[T any](p *pipe, doing string, read func(pgx.Row) (T, error), query string, args ...any) (v T, err error) {
	p.each(func(row pgx.Row) (err error) { v, err = read(row); return err }, query, args...)
	return v, p.send(doing)
}

// all sends a query and returns its rows, each as the callback read has read it.
func all[T any](p *pipe, doing string, read func(pgx.Row) (T, error), query string, args ...any) (list []T, err error) {
	each(p, read, func(v T) { list = append(list, v) }, query, args...)
	return list, p.send(doing)
}

// readOne is one in a read of its own.
func readOne[T any](ctx context.Context, s *Store, doing string, read func(pgx.Row) (T, error), query string, args ...any) (v T, err error) {
	err = s.read(ctx, func(p *pipe) error {
		v, err = one(p, doing, read, query, args...)
		return err
	})
	return v, err
}

// readAll is all in a read of its own.
func readAll[T any](ctx context.Context, s *Store, doing string, read func(pgx.Row) (T, error), query string, args ...any) (list []T, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, doing, read, query, args...)
		return err
	})
	return list, err
}

// scanned reads a row of one column.
func scanned[T any](row pgx.Row) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

func readID(row pgx.Row) (id desk.ID, err error) { return id, row.Scan(into(&id)) }

func readTime(row pgx.Row) (at desk.Time, err error) {
	err = row.Scan((*int64)(&at))
	return at, err
}

// A uuid is an id in a statement or a row. NULL is the zero id.
type uuid desk.ID

func (u uuid) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: u, Valid: true}, nil }

func (u *uuid) ScanUUID(v pgtype.UUID) error { *u = v.Bytes; return nil }

// ofEach2 and ofEach3 begin a look-up of the ids in the parameter $2 or $3, each once, key by
// key (see wantedContacts).
const (
	ofEach2 = ` FROM (SELECT DISTINCT unnest($2::uuid[])) u (i) CROSS JOIN LATERAL `
	ofEach3 = ` FROM (SELECT DISTINCT unnest($3::uuid[])) u (i) CROSS JOIN LATERAL `
)

// uuids returns ids as a parameter.
func uuids(list []desk.ID) pgtype.FlatArray[uuid] {
	ids := make(pgtype.FlatArray[uuid], len(list))
	for i, id := range list {
		ids[i] = uuid(id)
	}
	return ids
}

// into returns a pointer to an id as the target of a scan.
func into(id *desk.ID) *uuid { return (*uuid)(id) }

// orNull returns an id as a parameter; the zero id is NULL.
func orNull(id desk.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }

// A hash is 32 bytes from the database.
type hash [32]byte

func (h *hash) ScanBytes(v []byte) error { copy(h[:], v); return nil }

// A jsonText is a value as JSON. It is encoded at once, because the value may change
// later.
type jsonText struct {
	text []byte
	err  error
}

// asJSON encodes v as JSON, and nil as "".
func asJSON(v any) jsonText {
	text, err := json.Marshal(v, stored.JSON)
	if string(text) == "null" {
		text = nil
	}
	return jsonText{text, err}
}

// TextValue implements pgtype.TextValuer.
func (j jsonText) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(j.text), Valid: true}, j.err
}

// A document is the target of a scan for a text from asJSON. It fills a nil or zero
// value.
type document struct{ into any }

// ScanText implements pgtype.TextScanner.
func (d document) ScanText(text pgtype.Text) error {
	if text.String == "" {
		return nil
	}
	return json.Unmarshal([]byte(text.String), d.into)
}
