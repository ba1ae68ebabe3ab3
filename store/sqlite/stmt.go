package sqlite

import (
	"errors"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/go-json-experiment/json"
	"zombiezen.com/go/sqlite"
)

// A conn is one connection with its prepared statements, used by one goroutine at
// a time.
type conn struct {
	*sqlite.Conn
	prepared map[string]*sqlite.Stmt
	newest   map[desk.ID]int64 // number of each workspace's newest event, as far as this transaction has seen
	erased   *bool             // this connection has deleted people
	forgets  *forgets          // of the writer
	changing bool              // only to be used inside a transaction
}

// errRolledBack is the error of a change that continues after one of its statements
// failed.
var errRolledBack = stored.Unavailable(errors.New("the database has rolled the transaction back"))

// A stmt is a prepared statement, bound from left to right. run or done returns the
// first error.
type stmt struct {
	s    *sqlite.Stmt
	n    int // parameters bound
	col  int // columns read of this row
	fail error
}

// stmt returns the prepared statement of query, ready to be bound. Its last use has
// reset it (run, done), and all parameters are bound again, so it need not be cleared;
// with six statements for a contact, clearing is measurable.
//
// A parameter by whose value SQLite would choose another plan is written as +?, such as
// LIMIT +?: otherwise SQLite plans the statement again at each use.
//
// If the disk is full or fails, SQLite may roll back by itself. Anything that a change
// writes after that would be stored at once and alone, so the change gets no more
// statements.
func (c conn) stmt(query string) stmt {
	if c.changing && c.AutocommitEnabled() {
		return stmt{fail: errRolledBack}
	}
	if s := c.prepared[query]; s != nil {
		return stmt{s: s}
	}
	s, err := c.Prepare(query)
	if err == nil {
		c.prepared[query] = s
	}
	return stmt{s: s, fail: err}
}

func (s stmt) text(v string) stmt {
	if s.fail == nil {
		s.n++
		s.s.BindText(s.n, v)
	}
	return s
}

func (s stmt) int(v int64) stmt {
	if s.fail == nil {
		s.n++
		s.s.BindInt64(s.n, v)
	}
	return s
}

func (s stmt) time(v desk.Time) stmt { return s.int(int64(v)) }

// timeOrNull stores 0 as NULL, which is read as 0.
func (s stmt) timeOrNull(v desk.Time) stmt {
	if v == 0 {
		return s.null()
	}
	return s.time(v)
}

func (s stmt) bytes(v []byte) stmt {
	if s.fail == nil {
		s.n++
		s.s.BindBytes(s.n, v)
	}
	return s
}

func (s stmt) id(v desk.ID) stmt { return s.bytes(v[:]) }

// idOrNull binds the zero id as NULL.
func (s stmt) idOrNull(v desk.ID) stmt {
	if v.IsZero() {
		return s.null()
	}
	return s.id(v)
}

func (s stmt) null() stmt {
	if s.fail == nil {
		s.n++
		s.s.BindNull(s.n)
	}
	return s
}

// json binds v as JSON, and nil as "".
func (s stmt) json(v any) stmt {
	text, err := json.Marshal(v, stored.JSON)
	if s.fail == nil {
		s.fail = err
	}
	if string(text) == "null" {
		text = nil
	}
	return s.text(string(text))
}

// run executes a statement that returns no rows.
func (s stmt) run() error {
	for s.next() {
	}
	return s.done()
}

// next steps to the next row.
func (s *stmt) next() bool {
	if s.fail != nil {
		return false
	}
	row, err := s.s.Step()
	s.fail, s.col = err, 0
	return row
}

// done ends the statement, which releases its read lock.
func (s *stmt) done() error {
	if s.s == nil {
		return s.fail
	}
	if err := s.s.Reset(); s.fail == nil {
		s.fail = err
	}
	return s.fail
}

func (s *stmt) readText() string {
	s.col++
	return s.s.ColumnText(s.col - 1)
}

func (s *stmt) readInt() int64 {
	s.col++
	return s.s.ColumnInt64(s.col - 1)
}

func (s *stmt) readTime() desk.Time { return desk.Time(s.readInt()) }

// readID reads an id; NULL is the zero one.
func (s *stmt) readID() (id desk.ID) {
	s.readBytes(id[:])
	return id
}

func (s *stmt) readBytes(into []byte) {
	s.col++
	s.s.ColumnBytes(s.col-1, into)
}

func (s *stmt) readBlob() []byte {
	b := make([]byte, s.s.ColumnLen(s.col))
	s.readBytes(b)
	if len(b) == 0 {
		return nil
	}
	return b
}

// readJSON reads what json bound into what is still nil or zero.
func (s *stmt) readJSON(into any) {
	if text := s.readText(); text != "" && s.fail == nil {
		s.fail = json.Unmarshal([]byte(text), into)
	}
}

// one runs a statement and returns what read makes of its only row, or nil.
func one[T any](doing string, s stmt, read func(*stmt) T) (v T, err error) {
	if s.next() {
		v = read(&s)
	}
	return v, failed(doing, s.done())
}

// all runs a statement and returns what read makes of each row.
func all[T any](doing string, s stmt, read func(*stmt) T) (list []T, err error) {
	for s.next() {
		list = append(list, read(&s))
	}
	return list, failed(doing, s.done())
}
