package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/gofrs/flock"
	"zombiezen.com/go/sqlite"
)

// OpenToRead opens a database as it is: it migrates nothing, and its connections can't
// write. Methods that write must not be called.
func OpenToRead(path string) (*Store, error) { return openToRead(path, "") }

// openToRead opens a database with parameters of SQLite's file names.
func openToRead(path, parameters string) (*Store, error) {
	s := &Store{path: path, files: filesBeside(path), clock: time.Now, readers: make(chan conn, 1), turn: flock.New(turnPath(path)), rules: stored.NewRules(desk.IdentityRules(), slog.New(slog.DiscardHandler))}
	name := url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: parameters}
	c, err := sqlite.OpenConn(name.String(), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return nil, failed("open", err)
	}
	c.SetBusyTimeout(busyTimeout)
	s.readers <- conn{Conn: c, prepared: map[string]*sqlite.Stmt{}, newest: map[desk.ID]int64{}, erased: new(bool)}
	return s, nil
}

// OpenUntouched is like OpenToRead, and also changes no byte on the disk, and leaves no file
// behind. So it can read a database on a file system that is full or read-only.
//
// SQLite keeps a log (-wal) as long as a process has the database open, and after a crash. If
// there is no log, nobody has it open, and it can be read without one. Overtaken tells whether
// this is still so. If there is a log, SQLite has to read it, with the index (-shm) that
// belongs to it.
func OpenUntouched(path string) (*Store, error) {
	there := func(suffix string) bool { _, err := os.Stat(path + suffix); return !errors.Is(err, fs.ErrNotExist) }
	was, err := os.Stat(path)
	switch {
	case err == nil && !there("-wal") && !there("-journal"):
		s, err := openToRead(path, "immutable=1")
		if err != nil {
			return nil, err
		}
		s.frozen = &frozen{path, was}
		return s, nil
	case there("-shm"):
		return openToRead(path, "readonly_shm=1")
	}
	return OpenToRead(path)
}

// Overtaken tells whether another process has begun to use the database.
func (s *Store) Overtaken() bool {
	if s.frozen == nil {
		return false
	}
	_, err := os.Stat(s.frozen.path + "-wal")
	now, changed := os.Stat(s.frozen.path)
	return !errors.Is(err, fs.ErrNotExist) || changed != nil || now.Size() != s.frozen.was.Size() || !now.ModTime().Equal(s.frozen.was.ModTime())
}

// walFormat returns whether the header of the file says that the database has a log. A
// connection to a frozen database does not tell.
func (f *frozen) walFormat() (wal bool, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var versions [2]byte // of the format, for writers and for readers
	if _, err := file.ReadAt(versions[:], 18); err != nil {
		return false, err
	}
	return versions == [2]byte{2, 2}, nil
}

// Schema returns the newest migration that has run, and the newest that is known.
func (s *Store) Schema(ctx context.Context) (has, knows int64, err error) {
	steps, err := stored.Migrations(makeVersions, migrations)
	if err != nil {
		return 0, 0, err
	}
	err = s.read(ctx, pointRead, func(c conn) error {
		ran, err := migrationsRun(c)
		if err == nil && len(ran) > 0 {
			has = slices.Max(ran)
		}
		return err
	})
	return has, steps[len(steps)-1].Version, err
}

// Doubts says which settings may lose or spoil data.
func (s *Store) Doubts(ctx context.Context) (list []string, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		for _, want := range []struct{ pragma, value string }{{"journal_mode", "wal"}, {"encoding", "UTF-8"}} {
			is, err := one("pragma", c.stmt("PRAGMA "+want.pragma), (*stmt).readText)
			if err != nil {
				return err
			}
			if want.pragma == "journal_mode" && s.frozen != nil {
				wal, err := s.frozen.walFormat()
				if err != nil {
					return err
				}
				if wal {
					is = want.value
				}
			}
			if is != want.value {
				list = append(list, fmt.Sprintf("%s is %s, not %s", want.pragma, is, want.value))
			}
		}
		return nil
	})
	return list, err
}

const (
	// Among 10,000 events of a workspace, a change is looked for.
	unindexedQuery = `SELECT w.id FROM workspaces w LEFT JOIN search_places p ON p.workspace_id = w.id WHERE NOT w.deleted AND (
		EXISTS (SELECT 1 FROM contacts WHERE workspace_id = w.id AND id > coalesce(p.built, x'') AND updated_at < ?2
			AND (p.rules IS NULL OR p.rules < ?3 OR p.built IS NOT NULL))
		OR EXISTS (SELECT 1 FROM events WHERE workspace_id = w.id AND seq > coalesce(p.seq, 0) AND seq <= coalesce(p.seq, 0) + 10000
			AND kind IN (SELECT value FROM json_each(?1)) AND at < ?2)) LIMIT +?4`
	strayClaimsQuery = `SELECT count(*) FROM claims c WHERE workspace_id = ?1 AND NOT EXISTS (SELECT 1 FROM contacts WHERE workspace_id = ?1 AND id = c.contact_id)`
	claimedQuery     = `SELECT contact_id FROM claims WHERE workspace_id = ? AND kind = ? AND value = ?`
	contentsQuery    = `SELECT k.sha256, coalesce(c.size, 0), c.sha256 IS NULL FROM (
		SELECT sha256 FROM media_contents WHERE workspace_id = ?1 AND sha256 > ?2
		UNION SELECT sha256 FROM media INDEXED BY media_content WHERE workspace_id = ?1 AND status = 'ready' AND sha256 > ?2
		ORDER BY 1 LIMIT +?3) k LEFT JOIN media_contents c ON c.workspace_id = ?1 AND c.sha256 = k.sha256 ORDER BY 1`
)

// Unindexed returns workspaces with old changes that the search does not know.
func (s *Store) Unindexed(ctx context.Context, types []desk.EventType, before desk.Time, limit int) (list []desk.ID, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("changes to index", c.stmt(unindexedQuery).json(types).time(before).int(desk.SearchRules).int(int64(limit)), (*stmt).readID)
		return err
	})
	return list, err
}

// damages is how many faults of the file are listed at most.
const damages = 10

// Damage checks the file.
func (s *Store) Damage(ctx context.Context) (wrong []string, known bool, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		c.SetInterrupt(ctx.Done())
		defer c.SetInterrupt(nil)
		wrong, err = all("check the file", c.stmt(fmt.Sprintf("PRAGMA integrity_check(%d)", damages)), (*stmt).readText)
		return err
	})
	if sqlite.ErrCode(errors.Unwrap(err)) == sqlite.ResultCorrupt || sqlite.ErrCode(err) == sqlite.ResultCorrupt {
		return append(wrong, err.Error()), true, nil
	}
	if slices.Equal(wrong, []string{"ok"}) {
		wrong = nil
	}
	return wrong, true, err
}

// Claimed returns the contacts that have claims.
func (s *Store) Claimed(ctx context.Context, ws desk.ID, claims []desk.Claim) (map[desk.Claim][]desk.ID, error) {
	held := map[desk.Claim][]desk.ID{}
	err := s.read(ctx, pointRead*int64(len(claims)), func(c conn) error {
		for _, claim := range claims {
			list, err := all("claim", c.stmt(claimedQuery).id(ws).text(claim.Kind).text(claim.Value), (*stmt).readID)
			if err != nil {
				return err
			}
			held[claim] = list
		}
		return nil
	})
	return held, err
}

// StrayClaims counts claims without a contact.
func (s *Store) StrayClaims(ctx context.Context, ws desk.ID) (n int64, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		n, err = one("claims", c.stmt(strayClaimsQuery).id(ws), (*stmt).readInt)
		return err
	})
	return n, err
}

// Contents returns a page of the stored contents.
func (s *Store) Contents(ctx context.Context, ws desk.ID, after []byte, limit int) (list []store.Content, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("contents", c.stmt(contentsQuery).id(ws).bytes(after).int(int64(limit)), func(s *stmt) store.Content {
			return store.Content{SHA256: s.readBlob(), Size: s.readInt(), Lost: s.readInt() == 1}
		})
		return err
	})
	return list, err
}

// Free returns how many bytes can still be stored in the file system of a directory, which
// need not exist yet.
func Free(dir string) (int64, error) {
	free, _, err := stored.Files{Dir: dir}.Room()
	return free, err
}
