package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/desk"

	"pgregory.net/rapid"
)

// dump returns the content of all tables.
func dump(t *testing.T, s *Store) (lines []string) {
	t.Helper()
	check(t, s.Export(t.Context(), func(e *Export) error {
		for _, table := range Tables() {
			for after := []any(nil); ; {
				rows, err := e.Page(table, after, 1000)
				if err != nil || len(rows) == 0 {
					if err != nil {
						return err
					}
					break
				}
				for _, row := range rows {
					lines = append(lines, fmt.Sprint(table.Name, row))
				}
				after = rows[len(rows)-1][:table.Key]
			}
		}
		return nil
	}))
	return lines
}

func mark(t *testing.T, s *Store) int64 {
	t.Helper()
	state, err := scrubState(s.writer)
	check(t, err)
	return state
}

// TestScrubBeside clears gaps again and again while people are stored, changed and
// deleted. The database must stay sound, also after a kill, and must have the same
// content as a database that was never scrubbed.
func TestScrubBeside(t *testing.T) {
	t.Parallel()
	said := map[bool][]string{}
	for _, scrubbing := range []bool{false, true} {
		path := NewFile(t)
		s := openAt(t, path)
		other := openAt(t, path) // like the store of another process
		s.writer.forgets.now = func() desk.Time { return 1 }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			for scrubbing && ctx.Err() == nil {
				err := other.write(t.Context(), wantScrub)
				if err == nil {
					err = other.scrub(ctx, 0)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for seed := range uint64(3) {
			ws := desk.ID{9, byte(seed)}
			check(t, s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws}))
			erase(t, s, ws, populate(t, s, ws, rand.New(rand.NewPCG(seed, 2)), 8))
		}
		if scrubbing { // the files as a kill would leave them now
			copied := filepath.Join(t.TempDir(), "parley.db")
			check(t, s.write(t.Context(), func(conn) error { // no other write runs meanwhile
				for name, body := range files(t, filepath.Dir(path)) {
					if err := os.WriteFile(filepath.Join(filepath.Dir(copied), name), body, 0o600); err != nil {
						return err
					}
				}
				return nil
			}))
			wantSound(t, openAt(t, copied))
		}
		stop()
		check(t, <-done)
		wantSound(t, s)
		said[scrubbing] = dump(t, s)
		*other.writer.erased, *s.writer.erased = false, false // prevents a scrub when they close
	}
	if len(said[false]) < 20 || !slices.Equal(said[false], said[true]) {
		t.Errorf("the scrubbed database has %d rows, the other one %d, and they are not the same", len(said[true]), len(said[false]))
	}
}

func wantSound(t *testing.T, s *Store) {
	t.Helper()
	if got := pragma(t, s.writer, "integrity_check"); got != "ok" {
		t.Errorf("integrity_check: %s", got)
	}
}

// TestScrubIsDue: only a deletion makes a scrub due. A deletion during a scrub makes
// another one due. A scrub that a process did not finish is done after the next start.
func TestScrubIsDue(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	people := populate(t, s, ws, rand.New(rand.NewPCG(1, 3)), 4)
	if got := mark(t, s); got != scrubbed {
		t.Errorf("nobody was deleted, and the mark is %d", got)
	}
	check(t, s.scrub(t.Context(), 0)) // does nothing
	erase(t, s, ws, people[:3])
	if got := mark(t, s); got != scrubDue {
		t.Errorf("after a deletion the mark is %d", got)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, s.scrub(cancelled, 1<<40))
	if got := mark(t, s); got != scrubUnderWay {
		t.Errorf("after a scrub that was stopped the mark is %d", got)
	}
	erase(t, s, ws, people[3:])
	check(t, s.write(t.Context(), endScrub))
	if got := mark(t, s); got != scrubDue {
		t.Errorf("after a deletion during a scrub the mark is %d", got)
	}
	check(t, s.scrub(t.Context(), 0))
	if got := mark(t, s); got != scrubbed {
		t.Errorf("after a scrub the mark is %d", got)
	}
	other := desk.ID{8}
	check(t, s.CreateWorkspace(t.Context(), desk.Workspace{ID: other, Name: "B"}))
	populate(t, s, other, rand.New(rand.NewPCG(1, 4)), 1)
	check(t, s.DeleteWorkspace(t.Context(), other, func(string) error { return nil }))
	for n := 1; n > 0; {
		var err error
		n, err = s.EraseWorkspace(t.Context(), other, 10)
		check(t, err)
	}
	if got := mark(t, s); got != scrubDue {
		t.Errorf("after a workspace was deleted the mark is %d", got)
	}
	check(t, s.write(t.Context(), func(c conn) error { return c.stmt("PRAGMA user_version = 1").run() }))
	again := openAt(t, s.path)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- again.Run(ctx) }()
	for limit := time.Now().Add(time.Minute); mark(t, s) != scrubbed && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	if got := mark(t, s); got != scrubbed {
		t.Errorf("a minute after the next start the mark is %d", got)
	}
	stop()
	check(t, <-ran)
}

// TestClearGap: in any page, only bytes between the cell pointers and the cells change,
// and they become zero.
func TestClearGap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		page := make([]byte, pageSize)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "page"), 1))
		for n := range page {
			page[n] = byte(random.Uint32())
		}
		kind := rapid.SampledFrom([]byte{0, 1, 2, 3, 5, 10, 13, 255}).Draw(t, "type")
		header := 8
		if kind == 2 || kind == 5 {
			header = 12
		}
		count := rapid.IntRange(0, 40).Draw(t, "cells")
		content := rapid.IntRange(header+2*count-3, pageSize+3).Draw(t, "content")
		page[0] = kind
		binary.BigEndian.PutUint16(page[1:], uint16(rapid.SampledFrom([]int{0, 0, content - 1, content, content + 8}).Draw(t, "free block")))
		binary.BigEndian.PutUint16(page[3:], uint16(count))
		binary.BigEndian.PutUint16(page[5:], uint16(content))
		valid := (kind == 2 || kind == 5 || kind == 10 || kind == 13) && header+2*count <= content && content <= pageSize
		if free := int(binary.BigEndian.Uint16(page[1:])); free != 0 && free < content {
			valid = false
		}
		for n := range count {
			at := rapid.IntRange(min(content, pageSize-4)-rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "below"), pageSize-4).Draw(t, "cell")
			binary.BigEndian.PutUint16(page[header+2*n:], uint16(at))
			valid = valid && at >= content
		}
		before := bytes.Clone(page)
		changed := clearGap(page)
		if !valid {
			if changed || !bytes.Equal(page, before) {
				t.Fatal("a page that is not as the format says was changed")
			}
			return
		}
		want := bytes.Clone(before)
		clear(want[header+2*count : content])
		if !bytes.Equal(page, want) || changed == bytes.Equal(page, before) {
			t.Fatalf("changed %t, and the page is not as it should be", changed)
		}
		if clearGap(page) {
			t.Fatal("it is clear, and is changed again")
		}
	})
}

// TestScrubLeavesOtherFormats: a file in another format is not changed.
func TestScrubLeavesOtherFormats(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	page := make([]byte, pageSize)
	count, err := scrubPages(s.writer, page)
	if err != nil || count < firstScrubbed {
		t.Fatal(count, err)
	}
	for _, statement := range []string{"PRAGMA auto_vacuum = FULL", "VACUUM"} {
		check(t, s.writer.stmt(statement).run())
	}
	check(t, s.write(t.Context(), wantScrub))
	if err := s.scrub(t.Context(), 0); err == nil || mark(t, s) == scrubbed {
		t.Error("a file with auto-vacuum was scrubbed")
	}
}
