package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestImpatient: a write that nobody reads ends, and so does one when the command is
// interrupted.
func TestImpatient(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if n, err := (&impatient{t.Context(), &b, time.Hour}).Write([]byte("abc")); n != 3 || err != nil || b.String() != "abc" {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
	reader, stuck := io.Pipe() // its writes wait for a reader
	defer reader.Close()
	if _, err := (&impatient{t.Context(), stuck, time.Millisecond}).Write([]byte("abc")); err == nil || !strings.Contains(err.Error(), "nobody has read") {
		t.Errorf("nobody reads: %v", err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := (&impatient{ctx, stuck, time.Hour}).Write([]byte("abc")); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestExportInto: an export that fails leaves neither its own file nor another one, and the
// file that was there stays.
func TestExportInto(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "out.csv")
	c := exportFlags{Out: name}
	write := func(text string, err error) error {
		return c.into(t.Context(), nil, func(w io.Writer) error {
			_, e := io.WriteString(w, text)
			return errors.Join(e, err)
		})
	}
	failed := errors.New("failed")
	if err := write("half", failed); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v is left, %v", files, err)
	}
	if err := write("whole", nil); err != nil {
		t.Error(err)
	}
	if err := write("half", failed); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	files, err := os.ReadDir(dir)
	if content, e := os.ReadFile(name); err != nil || e != nil || string(content) != "whole" || len(files) != 1 {
		t.Errorf("%q, %v, %v, %v", content, files, err, e)
	}
}
