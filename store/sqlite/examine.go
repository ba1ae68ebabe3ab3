package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"
	"zombiezen.com/go/sqlite"
)

// OpenToRead opens a database as it is: it migrates nothing, and its connections can't
// write. Methods that write must not be called.
func OpenToRead(path string) (_ *Store, err error) {
	s := &Store{path: path, files: filesBeside(path), clock: time.Now, readers: make(chan conn, 1), turn: flock.New(turnPath(path)), rules: stored.NewRules(desk.IdentityRules(), slog.New(slog.DiscardHandler))}
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, failed("open", err)
	}
	c.SetBusyTimeout(busyTimeout)
	s.readers <- conn{Conn: c, prepared: map[string]*sqlite.Stmt{}, newest: map[desk.ID]int64{}, erased: new(bool)}
	return s, nil
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
			if is != want.value {
				list = append(list, fmt.Sprintf("%s is %s, not %s", want.pragma, is, want.value))
			}
		}
		return nil
	})
	return list, err
}

const (
	// Among so many events, the next change is looked for.
	unindexedEvents  = `SELECT at FROM events WHERE workspace_id = ?1 AND seq > ?2 AND seq <= ?2 + 100000 AND kind IN (SELECT value FROM json_each(?3)) ORDER BY seq LIMIT 1`
	unindexedContact = `SELECT updated_at FROM contacts WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT 1`
	strayClaimsQuery = `SELECT count(*) FROM claims c WHERE workspace_id = ?1 AND NOT EXISTS (SELECT 1 FROM contacts WHERE workspace_id = ?1 AND id = c.contact_id)`
	claimedQuery     = `SELECT contact_id FROM claims WHERE workspace_id = ? AND kind = ? AND value = ?`
	contentsQuery    = `SELECT sha256, size FROM media_contents WHERE workspace_id = ? AND sha256 > ? ORDER BY sha256 LIMIT +?`
)

// Unindexed returns the time of the oldest change that the search does not know.
func (s *Store) Unindexed(ctx context.Context, ws desk.ID, types []desk.EventType) (at desk.Time, err error) {
	names, err := json.Marshal(types)
	if err != nil {
		return 0, err
	}
	err = s.read(ctx, pointRead, func(c conn) error {
		place, err := searchPlace(c, ws)
		if err != nil {
			return err
		}
		if place.Building || place.Rules < desk.SearchRules {
			at, err = one("contact to index", c.stmt(unindexedContact).id(ws).id(place.Built), (*stmt).readTime)
			if err != nil || at != 0 {
				return err
			}
		}
		at, err = one("change to index", c.stmt(unindexedEvents).id(ws).int(place.Event.Seq).text(string(names)), (*stmt).readTime)
		return err
	})
	return at, err
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
			return store.Content{SHA256: s.readBlob(), Size: s.readInt()}
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
