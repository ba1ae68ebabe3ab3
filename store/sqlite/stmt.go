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
	forgets  *forgets          // only for the writer
	changing bool              // statements are allowed only inside a transaction
}

// errRolledBack is the error of a change that goes on after SQLite has rolled back its
// transaction.
var errRolledBack = stored.Unavailable(errors.New("the database has rolled the transaction back"))

// A stmt is a prepared statement whose parameters are bound from left to right. run and
// done return the first error.
type stmt struct {
	s    *sqlite.Stmt
	n    int // parameters bound
	col  int // columns read of this row
	fail error
}

// stmt returns the prepared statement of query, ready to be bound. It does not clear the
// bindings of the last use: that use has reset the statement (run, done), and the next
// use binds all parameters again. With six statements for each contact, clearing would
// take measurable time.
//
// A parameter whose value could change SQLite's plan is written as +?, for example LIMIT
// +?. Otherwise SQLite plans the statement again at each use.
//
// If the disk is full or fails, SQLite may roll back by itself. Later writes of the
// change would then be stored at once, without the earlier ones. So the change gets no
// further statements.
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

// timeOrNull stores 0 as NULL. Reading NULL gives 0.
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

// readID reads an id. NULL is the zero id.
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

// readJSON reads a value that was bound by json. into must point to a nil or zero value.
func (s *stmt) readJSON(into any) {
	if text := s.readText(); text != "" && s.fail == nil {
		s.fail = json.Unmarshal([]byte(text), into)
	}
}

// one returns the only row of a statement, as the callback read has read it. If there is
// no row, it returns the zero value.
func one[T any](doing string, s stmt, read func(*stmt) T) (v T, err error) {
	if s.next() {
		v = read(&s)
	}
	return v, failed(doing, s.done())
}

// all returns the rows of a statement, each as the callback read has read it.
func all[T any](doing string, s stmt, read func(*stmt) T) (list []T, err error) {
	for s.next() {
		list = append(list, read(&s))
	}
	return list, failed(doing, s.done())
}
