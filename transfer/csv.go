package transfer

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxRecord = 4 << 20 // bytes of a record
	maxCells  = 1000    // cells of a record

	// A file of rejected rows (see reasonColumns) may have more, since each row comes with the
	// reason.
	slackCells  = 3
	slackRecord = 64 << 10

	// sampled is how many records tell the delimiter.
	sampled = 20

	// peekBytes is how much of a file tells the delimiter, and how much Peek reads. The row that is
	// there is read to its end.
	peekBytes = 1 << 20
)

// delimiters are those that a file may have without saying so, the likeliest first.
var delimiters = []rune{',', ';', '\t', '|'}

// A record is a row of a CSV file.
type record struct {
	line  int // in which it begins
	cells []string
	size  int // in bytes, without the line end
}

// blank tells whether all cells are blank.
func (r record) blank() bool {
	for _, cell := range r.cells {
		if strings.TrimSpace(cell) != "" {
			return false
		}
	}
	return true
}

// reasonColumns follow the columns of a file in the file of its rejected rows.
var reasonColumns = []string{"_line", "_error", "_reason"}

// hasReasons tells whether a record is the headers of a file of rejected rows.
func (r record) hasReasons() bool {
	return !slices.ContainsFunc(reasonColumns, func(name string) bool { return !slices.Contains(r.cells, name) })
}

// A FileError says why a file can't be read.
type FileError struct {
	Line    int // 0: not of one line
	Message string
	Flag    string // what a command's flag can do about it; "": nothing
	At      string // the option that can mend it: encoding or delimiter; "": none
}

func (e *FileError) Error() string {
	text := e.Message
	if e.Line > 0 {
		text = fmt.Sprintf("line %d %s", e.Line, e.Message)
	}
	return withFlag(text, e.Flag)
}

// A ColumnError says why columns can't be taken as they are.
type ColumnError struct {
	Columns []int // their indexes; none: the file as a whole
	Message string
	Flag    string // what a command's flag can do about it; "": nothing
}

func (e *ColumnError) Error() string { return withFlag(e.Message, e.Flag) }

func columnError(column int, flag, format string, args ...any) error {
	return &ColumnError{[]int{column}, fmt.Errorf(format, args...).Error(), flag}
}

func withFlag(text, flag string) string {
	if flag == "" {
		return text
	}
	return text + ": " + flag
}

// noRune is not a character.
const noRune rune = -1

// A csvReader reads records. Records end by CR, LF or CRLF; within quotes these stay.
type csvReader struct {
	text      runes
	encoding  string // for errors
	delimiter rune
	line      int  // of the next character
	back      rune // a character that was read too early; noRune: none
	ended     bool
	cell      strings.Builder
}

func newCSV(text runes, encoding string, delimiter rune) *csvReader {
	return &csvReader{text: text, encoding: encoding, delimiter: delimiter, line: 1, back: noRune}
}

func (c *csvReader) next() (r rune, err error) {
	if c.back != noRune {
		r, c.back = c.back, noRune
		return r, nil
	}
	r, err = c.text.next()
	if errors.Is(err, errEncoding) {
		return 0, &FileError{Line: c.line, Message: "is not " + c.encoding, Flag: "name the file's encoding with --encoding, such as --encoding windows-1252", At: "encoding"}
	}
	return r, err
}

// newline reads the rest of a line end, and counts the line.
func (c *csvReader) newline(r rune) error {
	c.line++
	if r != '\r' {
		return nil
	}
	next, err := c.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err == nil && next != '\n' {
		c.back = next
	}
	return nil
}

// check returns an error for a record that is too large. With withReason, it may have the reason
// of a rejected row besides.
func (r record) check(withReason bool) error {
	size, cells := maxRecord, maxCells
	if withReason {
		size, cells = size+slackRecord, cells+slackCells
	}
	switch {
	case len(r.cells) > cells:
		return &FileError{Line: r.line, Message: fmt.Sprintf("has more than %d cells", maxCells), Flag: "is it a CSV file, with the delimiter that --delimiter names?", At: "delimiter"}
	case r.size > size:
		return &FileError{Line: r.line, Message: fmt.Sprintf("begins a row of more than %d MiB: is a quote not closed?", maxRecord>>20)}
	}
	return nil
}

// read returns the next record, or io.EOF. The record may be as large as a rejected row with its
// reason: the caller, who knows the headers, checks it again.
func (c *csvReader) read() (rec record, err error) {
	if c.ended {
		return rec, io.EOF
	}
	rec.line = c.line
	quoted, any := false, false
	c.cell.Reset()
	end := func() error {
		rec.cells = append(rec.cells, c.cell.String())
		c.cell.Reset()
		quoted = false
		return rec.check(true)
	}
	for {
		r, err := c.next()
		if errors.Is(err, io.EOF) {
			c.ended = true
			if !any && len(rec.cells) == 0 {
				return rec, io.EOF
			}
			return rec, end()
		}
		if err != nil {
			return rec, err
		}
		any = true
		if r != '\n' && r != '\r' {
			rec.size += utf8.RuneLen(r)
		}
		if rec.size > maxRecord+slackRecord {
			return rec, rec.check(true)
		}
		switch {
		case r == '"' && c.cell.Len() == 0 && !quoted:
			quoted = true
			if err := c.quotedCell(&rec); err != nil {
				return rec, err
			}
		case r == c.delimiter:
			if err := end(); err != nil {
				return rec, err
			}
		case r == '\n' || r == '\r':
			if err := c.newline(r); err != nil {
				return rec, err
			}
			return rec, end()
		default:
			c.cell.WriteRune(r)
		}
	}
}

// quotedCell reads a cell after its first quote, up to the last one.
func (c *csvReader) quotedCell(rec *record) error {
	for {
		r, err := c.next()
		if errors.Is(err, io.EOF) {
			return &FileError{Line: rec.line, Message: "begins a row with a quote that nothing closes"}
		}
		if err != nil {
			return err
		}
		if rec.size += utf8.RuneLen(r); rec.size > maxRecord+slackRecord {
			return rec.check(true)
		}
		switch r {
		case '"':
			next, err := c.next()
			if err == nil && next == '"' {
				c.cell.WriteByte('"')
				continue
			}
			if err == nil {
				c.back = next
			} else if !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		case '\n', '\r':
			c.cell.WriteRune(r)
			c.line++
			if r == '\r' {
				next, err := c.next()
				if err == nil && next == '\n' {
					c.cell.WriteByte('\n')
				} else if err == nil {
					c.back = next
				} else if !errors.Is(err, io.EOF) {
					return err
				}
			}
		default:
			c.cell.WriteRune(r)
		}
	}
}

// formulas match cells that a spreadsheet may compute; plainNumber those of them that are only
// numbers.
var (
	formulas    = regexp.MustCompile(`^'*[=+\-@\t\r\n＝＋－＠]`)
	guarded     = regexp.MustCompile(`^'+[=+\-@\t\r\n＝＋－＠]`)
	plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)
)

// guard returns a cell that no spreadsheet computes.
func guard(cell string) string {
	if formulas.MatchString(cell) && !plainNumber.MatchString(cell) {
		return "'" + cell
	}
	return cell
}

// unguard returns the cell that guard was given.
func unguard(cell string) string {
	if guarded.MatchString(cell) {
		return cell[1:]
	}
	return cell
}

// delimiterOf returns the delimiter that splits most of the first records into as many cells
// as the first one, and at least two.
func delimiterOf(open func() (io.ReadCloser, error), encoding string) (rune, error) {
	best, most := delimiters[0], 0
	for _, d := range delimiters {
		n, err := alike(open, encoding, d)
		if err != nil {
			return 0, err
		}
		if n > most {
			best, most = d, n
		}
	}
	return best, nil
}

// A counted reader counts what was read.
type counted struct {
	io.Reader
	n int
}

// Read reads a part.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// alike counts the first records that have as many cells as the first one.
func alike(open func() (io.ReadCloser, error), encoding string, delimiter rune) (n int, err error) {
	file, err := open()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	read := &counted{Reader: file}
	text, named, err := textOf(read, encoding)
	if err != nil {
		return 0, err
	}
	c, first := newCSV(text, named, delimiter), 0
	for records := 0; records < sampled && read.n <= peekBytes; {
		rec, err := c.read()
		if err != nil { // the end; or what is wrong is said when the file is read through
			break
		}
		if rec.blank() {
			continue
		}
		records++
		switch {
		case first == 0:
			first = len(rec.cells)
			n = 1
		case len(rec.cells) == first:
			n++
		}
	}
	if first < 2 {
		return 0, nil
	}
	return n, nil
}
