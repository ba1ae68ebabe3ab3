package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"parley/store"
)

// When SQLite splits and joins pages, it copies rows. The old bytes stay in the gap of
// the page: the unused space between its cell pointers and its cells. When such a row is
// deleted later, secure_delete overwrites the row, but not the copy in the gap. So after
// people were deleted, the gaps of all pages are cleared in the background
// (docs/adr/0022).

const (
	// scrubEvery is the longest time from a deletion to the clearing of the gaps.
	scrubEvery = time.Hour
	// scrubLook is how many pages one step reads. scrubClear is how many it clears, in one
	// transaction.
	scrubLook, scrubClear = 500, 64
	// scrubPause is the pause between two steps. It leaves most of the disk's time to
	// writes.
	scrubPause = 50 * time.Millisecond
	// scrubAtStop is the longest time for which a stopping process clears gaps. The next
	// start continues.
	scrubAtStop = 3 * time.Second
	// scrubCache is small, in KiB: each page is read once.
	scrubCache = 64
)

// SQLite's user_version in the file tells whether a scrub is due. So the state survives
// a crash, and a server sees that a command has deleted people.
const (
	scrubbed = iota
	scrubDue // people were deleted since the last scrub began
	scrubUnderWay
)

const scrubStateQuery = "PRAGMA user_version"

var setScrubState = [...]string{
	scrubbed:      "PRAGMA user_version = 0",
	scrubDue:      "PRAGMA user_version = 1",
	scrubUnderWay: "PRAGMA user_version = 2",
}

func scrubState(c conn) (int64, error) {
	return one("scrub state", c.stmt(scrubStateQuery), (*stmt).readInt)
}

// wantScrub must be called in a transaction that deletes people. It makes a scrub due.
func wantScrub(c conn) error {
	*c.erased = true
	if state, err := scrubState(c); err != nil || state == scrubDue {
		return err
	}
	return failed("want scrub", c.stmt(setScrubState[scrubDue]).run())
}

// scrubs clears the gaps whenever people were deleted, until ctx ends. A scrub that
// fails (for example, on a full disk) stays due.
func (s *Store) scrubs(ctx context.Context) {
	ctx = store.InBackground(ctx)
	tick := time.NewTicker(scrubEvery)
	defer tick.Stop()
	for {
		_ = s.scrub(ctx, scrubPause)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// scrub clears the gaps of all pages, if people were deleted since the last scrub. It
// reads while others write, and writes in short transactions.
func (s *Store) scrub(ctx context.Context, pause time.Duration) (err error) {
	c, err := open(s.path, scrubCache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if state, err := scrubState(c); err != nil || state == scrubbed {
		return err
	}
	// A deletion from here on makes another scrub due.
	if err := s.write(ctx, func(c conn) error { return c.stmt(setScrubState[scrubUnderWay]).run() }); err != nil {
		return err
	}
	for next := firstScrubbed; next > 0; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if next, err = s.scrubSome(ctx, c, next); err != nil {
			return err
		}
	}
	return s.write(ctx, endScrub)
}

// endScrub stores that nothing is left to clear, unless people were deleted meanwhile.
func endScrub(c conn) error {
	if state, err := scrubState(c); err != nil || state != scrubUnderWay {
		return err
	}
	return failed("end scrub", c.stmt(setScrubState[scrubbed]).run())
}

// firstScrubbed is the second page. The first page has SQLite's header and the schema,
// but no data of people.
const firstScrubbed int64 = 2

// errLayout means that a file is not scrubbed, because the kinds of its pages can't be
// determined safely.
var errLayout = errors.New("not scrubbed: the file is in another format than parley makes, or has 128 GiB")

// scrubSome clears the gaps of some pages, beginning at first. It returns the next page
// to look at, or 0 after the last one.
func (s *Store) scrubSome(ctx context.Context, c conn, first int64) (next int64, err error) {
	var unclear []int64
	page := make([]byte, pageSize)
	count, err := scrubPages(c, page)
	if err != nil {
		return 0, err
	}
	for next = first; next <= count && next < first+scrubLook && len(unclear) < scrubClear; next++ {
		if err := readPage(c, next, page); err != nil {
			return 0, err
		}
		if clearGap(page) {
			unclear = append(unclear, next)
		}
	}
	if next > count {
		next = 0
	}
	if unclear == nil {
		return next, nil
	}
	return next, s.write(ctx, func(c conn) error {
		if _, err := scrubPages(c, page); err != nil {
			return err
		}
		for _, n := range unclear {
			if err := readPage(c, n, page); err != nil { // read again: the page may have changed before this transaction
				return err
			}
			if !clearGap(page) {
				continue
			}
			if err := c.stmt("UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?").bytes(page).int(n).run(); err != nil {
				return failed("clear page", err)
			}
		}
		s.frames += len(unclear) // grew counts fewer pages for this commit
		return nil
	})
}

// readPage reads a page as the connection's transaction sees it.
func readPage(c conn, n int64, into []byte) error {
	row := c.stmt("SELECT data FROM sqlite_dbpage WHERE pgno = ?").int(n)
	clear(into) // for a page that the file no longer has
	if row.next() {
		row.readBytes(into)
	}
	return failed("read page", row.done())
}

// scrubPages returns how many pages the file has, or errLayout. buffer is used to read
// the first page.
//
// A page with cells begins with its type: 2, 5, 10 or 13. Pages of long values and of
// the list of free pages begin with a page number. In a file of less than 128 GiB, the
// first byte of a page number is 0 or 1, so such a page is never taken for a page with
// cells. A file with auto-vacuum, which parley never makes, has further kinds of pages.
func scrubPages(c conn, buffer []byte) (count int64, err error) {
	if err := readPage(c, 1, buffer); err != nil {
		return 0, err
	}
	size, reserved := binary.BigEndian.Uint16(buffer[16:]), buffer[20]
	count = int64(binary.BigEndian.Uint32(buffer[28:]))
	vacuum := binary.BigEndian.Uint32(buffer[52:])
	if size != pageSize || reserved != 0 || vacuum != 0 || count >= 2<<24 {
		return 0, errLayout
	}
	return count, nil
}

// clearGap fills the gap of a page with zeros, and reports whether any byte changed. It
// leaves alone pages without cells, and pages that do not follow SQLite's file format
// (https://sqlite.org/fileformat2.html#b_tree_pages).
func clearGap(page []byte) bool {
	from := 8 // length of the page's header
	switch page[0] {
	case 2, 5: // an inner page of an index, of a table
		from = 12
	case 10, 13: // a leaf page of an index, of a table
	default:
		return false
	}
	free := int(binary.BigEndian.Uint16(page[1:])) // first free block among the cells; 0: none
	cells := from + 2*int(binary.BigEndian.Uint16(page[3:]))
	content := int(binary.BigEndian.Uint16(page[5:]))
	if cells > content || content > len(page) || free != 0 && free < content {
		return false
	}
	for ; from < cells; from += 2 {
		if cell := int(binary.BigEndian.Uint16(page[from:])); cell < content || cell > len(page)-4 {
			return false
		}
	}
	gap, dirty := page[cells:content], false
	for _, b := range gap {
		dirty = dirty || b != 0
	}
	clear(gap)
	return dirty
}
