package transfer

import (
	"bufio"
	"bytes"
	"io"
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

// Reject writes a row, and before the first one the headers.
func (e *ErrorsFile) Reject(row Row, kind desk.ErrorType, reason string, object []byte) error {
	if e.of.Options.JSONL {
		return e.write(rejectedLine(row, object))
	}
	var b strings.Builder
	if e.n == 0 {
		b.WriteString("\uFEFF")
		appendRecord(&b, append(e.of.kept(e.of.Headers), "_line", "_error", "_reason"), e.of.Delimiter)
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

// kept returns the cells of the columns that an earlier file of rejected rows has not added.
func (f *File) kept(cells []string) (list []string) {
	for i, cell := range cells {
		if h := f.Headers[i]; h != "_line" && h != "_error" && h != "_reason" {
			list = append(list, cell)
		}
	}
	return list
}

// rejectedLine returns an object with its line and its error, or with the text as it was if
// that is no object.
func rejectedLine(row Row, object []byte) []byte {
	text, line := bytes.TrimSpace(row.Body), strconv.Itoa(row.Line)
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
