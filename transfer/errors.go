package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"parley/desk"

	"github.com/go-json-experiment/json/jsontext"
)

// An ErrorsFile is a file of rejected rows: as they were read, with the line, the type of the
// error and the reason. Once it is mended, it can be imported.
type ErrorsFile struct {
	of *File
	w  *bufio.Writer
	n  int64 // bytes that were written
}

// NewErrorsFile returns a writer of rejected rows. bytes is how many the file has already.
func (f *File) NewErrorsFile(w io.Writer, bytes int64) *ErrorsFile {
	return &ErrorsFile{of: f, w: bufio.NewWriterSize(w, 64<<10), n: bytes}
}

// Reject writes a row, and before the first one a byte order mark, a line that names the delimiter if
// the file has one, and the headers.
func (e *ErrorsFile) Reject(row Row, kind desk.ErrorType, reason string, object []byte) error {
	var b strings.Builder
	if e.n == 0 {
		b.WriteString("\uFEFF") // or it would be read as of --encoding, like the file
	}
	if e.of.Options.JSONL {
		b.Write(rejectedLine(row, object))
		return e.write([]byte(b.String()))
	}
	if e.n == 0 {
		if e.of.named {
			b.WriteString("sep=" + string(e.of.Delimiter) + "\r\n")
		}
		appendRecord(&b, append(e.of.kept(e.of.Headers), reasonColumns...), e.of.Delimiter)
	}
	cells := append([]string{}, row.Cells...)
	for i := range cells {
		cells[i] = unguard(cells[i]) // they are guarded when they are written
	}
	for len(cells) < len(e.of.Headers) {
		cells = append(cells, "")
	}
	n := len(e.of.Headers)
	written := append(e.of.kept(cells[:n]), strconv.Itoa(row.Line), string(kind), reason)
	appendRecord(&b, append(written, cells[n:]...), e.of.Delimiter)
	return e.write([]byte(b.String()))
}

// A Rejected is a row of a file of rejected rows, in words.
type Rejected struct {
	Line   int
	Reason string
	Cells  []string // shortened; of JSON Lines the line
}

// FirstRejected reads the beginning of a file of rejected rows. o names its delimiter.
func FirstRejected(text []byte, o Options, most int) (list []Rejected, err error) {
	f := &File{Options: Options{JSONL: o.JSONL, Delimiter: o.Delimiter}, open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }}
	add := func(r Rejected) error {
		for i, cell := range r.Cells {
			r.Cells[i] = shortened(cell)
		}
		if list = append(list, r); len(list) == most {
			return errEnough
		}
		return nil
	}
	if o.JSONL {
		err = f.lines(bytes.NewReader(text), func(_ int, b []byte) error {
			var of struct {
				Line  int `json:"_line"`
				Error struct {
					Message string `json:"message"`
				} `json:"_error"`
			}
			if err := json.Unmarshal(b, &of); err != nil {
				return err
			}
			return add(Rejected{of.Line, of.Error.Message, []string{string(without(b, isReason))}})
		})
	} else if f.Delimiter, err = f.delimiter(); err == nil {
		err = f.records(bytes.NewReader(text), func(rec record) error {
			n := len(f.Headers) - len(reasonColumns)
			if n < 0 || len(rec.cells) < len(f.Headers) {
				return &FileError{Line: rec.line, Message: "is no rejected row"}
			}
			line, _ := strconv.Atoi(rec.cells[n])
			for i := range n {
				rec.cells[i] = unguard(rec.cells[i])
			}
			return add(Rejected{line, rec.cells[n+2], rec.cells[:n]})
		})
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, err
}

// kept returns the cells of the columns that an earlier file of rejected rows has not added.
func (f *File) kept(cells []string) (list []string) {
	for i, cell := range cells {
		if !slices.Contains(reasonColumns, f.Headers[i]) {
			list = append(list, cell)
		}
	}
	return list
}

// isReason tells whether a file of rejected rows adds a member to each object.
func isReason(member string) bool { return member == "_line" || member == "_error" }

// rejectedLine returns an object with its line and its error, in place of those that an earlier
// file of rejected rows has added, or with the text as it was if that is no object.
func rejectedLine(row Row, object []byte) []byte {
	text, line := bytes.TrimSpace(without(row.Raw, isReason)), strconv.Itoa(row.Line)
	tail := `"_line":` + line + `,"_error":` + string(object) + "}\n"
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' || !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
		return []byte(`{"_raw":` + quote(string(row.Raw)) + "," + tail)
	}
	b := append([]byte{}, text[:len(text)-1]...)
	if len(bytes.TrimSpace(b)) > 1 {
		b = append(b, ',')
	}
	return append(b, tail...)
}

func (e *ErrorsFile) write(b []byte) error {
	n, err := e.w.Write(b)
	e.n += int64(n)
	return err
}

// Flush writes what is buffered, and returns how many bytes the file has now.
func (e *ErrorsFile) Flush() (int64, error) { return e.n, e.w.Flush() }

// appendRecord appends a record in the form of RFC 4180, guarded.
func appendRecord(b *strings.Builder, cells []string, delimiter rune) {
	for i, cell := range cells {
		if i > 0 {
			b.WriteRune(delimiter)
		}
		cell = guard(cell)
		if cell == "" || !strings.ContainsAny(cell, "\"\r\n;\t,|"+string(delimiter)) && strings.TrimSpace(cell) == cell {
			b.WriteString(cell)
			continue
		}
		b.WriteByte('"')
		b.WriteString(strings.ReplaceAll(cell, `"`, `""`))
		b.WriteByte('"')
	}
	b.WriteString("\r\n")
}
