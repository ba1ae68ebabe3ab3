package sqlite

import (
	"context"
	"errors"
	"fmt"

	"parley/desk"
	"parley/store/internal/stored"
)

// CopyTo copies a database, as it is at one moment, into a new file. Others may write
// meanwhile.
func CopyTo(ctx context.Context, path, to string) (err error) {
	s, err := OpenToRead(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.read(ctx, pointRead, func(c conn) error {
		c.SetInterrupt(ctx.Done())
		return failed("copy the database", c.stmt(`VACUUM INTO ?`).text(to).run())
	})
}

// A File is content that a copied database names.
type File struct {
	Workspace desk.ID
	SHA256    []byte
}

// Files lists the content that a copied database names, by workspace and hash.
func Files(ctx context.Context, path string) (list []File, err error) {
	err = within(ctx, path, func(c conn) error {
		list, err = all("contents", c.stmt(`SELECT workspace_id, sha256 FROM media_contents ORDER BY workspace_id, sha256`), func(s *stmt) File { return File{s.readID(), s.readBlob()} })
		return err
	})
	return list, err
}

// within opens a database that nobody else uses, and calls f. Afterwards the database is one
// file, without a log.
func within(ctx context.Context, path string, f func(conn) error) (err error) {
	c, err := open(path, readerCache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, failed("close", c.Close())) }()
	c.SetInterrupt(ctx.Done())
	if err := c.stmt("BEGIN IMMEDIATE").run(); err != nil {
		return failed("begin", err)
	}
	if err := f(c); err != nil {
		return err // closing rolls back
	}
	return failed("commit", c.stmt("COMMIT").run())
}

// Finish completes a copied database: files whose content is gone become deleted ones. It
// checks the file, and returns the fingerprint of the secret key and the rows of some tables.
func Finish(ctx context.Context, path string, gone []File) (fingerprint string, counts map[string]int, err error) {
	counts = map[string]int{}
	err = within(ctx, path, func(c conn) error {
		for _, f := range gone {
			for _, query := range []string{
				`UPDATE media SET status = 'deleted', sha256 = x'' WHERE workspace_id = ?1 AND sha256 = ?2 AND status = 'ready'`,
				leaveMediaQuery,
				dropContentQuery,
			} {
				if err := c.stmt(query).id(f.Workspace).bytes(f.SHA256).run(); err != nil {
					return failed("delete files", err)
				}
			}
		}
		for _, table := range []string{"workspaces", "contacts", "conversations", "messages", "notes", "media"} {
			n, err := one("rows", c.stmt(`SELECT count(*) FROM `+table), (*stmt).readInt)
			if err != nil {
				return err
			}
			counts[table] = int(n)
		}
		fingerprint, err = one("fingerprint", c.stmt(`SELECT fingerprint FROM installation`), (*stmt).readText)
		return err
	})
	if err == nil {
		err = sound(ctx, path)
	}
	return fingerprint, counts, err
}

func sound(ctx context.Context, path string) (err error) {
	s, err := OpenToRead(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	wrong, _, err := s.Damage(ctx)
	if err == nil && wrong != nil {
		err = fmt.Errorf("the database is damaged: %s", wrong[0])
	}
	return err
}

// stopBroadcastsQuery pauses the broadcasts that would go on. A backup does not know what was
// sent after it was taken.
const stopBroadcastsQuery = `UPDATE broadcasts SET state = '` + string(desk.BroadcastPaused) + `', due_at = NULL,
	body = json_set(body, '$.Reason', '` + string(desk.PausedStopped) + `', '$.ResumesAt', 0)
	WHERE state IN ('` + string(desk.BroadcastRunning) + `', '` + string(desk.BroadcastScheduled) + `')`

// Restored checks a database that was restored, and deletes what must not come back: sessions
// and sign-in links. It pauses broadcasts. With drill, it disables all channels and webhooks.
func Restored(ctx context.Context, path, fingerprint string, drill bool) error {
	if err := sound(ctx, path); err != nil {
		return err
	}
	steps, err := stored.Migrations(makeVersions, migrations)
	if err != nil {
		return err
	}
	return within(ctx, path, func(c conn) error {
		ran, err := migrationsRun(c)
		if err == nil {
			_, err = stored.Pending("the backup", steps, ran)
		}
		if err != nil {
			return err
		}
		if is, err := one("fingerprint", c.stmt(`SELECT fingerprint FROM installation`), (*stmt).readText); err != nil || is != fingerprint {
			return errors.Join(errors.New("its database belongs to another secret key"), err)
		}
		queries := []string{`DELETE FROM sessions`, `DELETE FROM login_links`, `DELETE FROM directory WHERE kind IN ('session', 'login_link')`}
		if drill {
			queries = append(queries, `UPDATE channels SET enabled = 0`, `UPDATE webhooks SET enabled = 0, disabled_reason = 'owner' WHERE enabled = 1`,
				`UPDATE workspaces SET settings_version = settings_version + 1`)
		}
		if broadcasts, err := one("table", c.stmt(`SELECT count(*) FROM sqlite_schema WHERE name = 'broadcasts'`), (*stmt).readInt); err != nil {
			return err
		} else if broadcasts > 0 { // a backup of an older release has none
			queries = append(queries, stopBroadcastsQuery)
		}
		for _, query := range queries {
			if err := c.stmt(query).run(); err != nil {
				return failed("prepare the database", err)
			}
		}
		return nil
	})
}
