package transfer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"parley/desk"

	"github.com/go-json-experiment/json"
)

// maxErasure is how long a line of a file of erasures may be.
const maxErasure = 4096

// Erasures calls do for each line of a file of erasures, as an export has written it. It
// returns a *FileError for another file.
func Erasures(r io.Reader, do func(desk.Erasure) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxErasure), maxErasure)
	line := 0
	for lines.Scan() {
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var in struct {
			ID string `json:"id"`
			At string `json:"at"`
		}
		err := json.Unmarshal(text, &in, json.RejectUnknownMembers(true))
		id, isID := desk.ParseID(in.ID)
		at, isTime := desk.ParseTime(in.At)
		if err != nil || !isID || !isTime {
			return &FileError{Line: line, Message: `is no line of an export of erasures, such as {"id":"01980000-0000-7000-8000-000000000001","at":"2026-01-31T09:30:00.000Z"}`}
		}
		if err := do(desk.Erasure{ID: id, At: at}); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return &FileError{Line: line + 1, Message: fmt.Sprintf("can't be read: %v", err)}
	}
	return nil
}
