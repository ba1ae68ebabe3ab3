package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Table is a table that is filled from another database.
type Table struct {
	Name    string
	Columns []string // the columns of the key come first, in the key's order
	Key     int      // how many columns the key has
}

// importLock is the advisory lock that lets only one process at a time import.
const importLock = migrationLock + 1

// The table migration_progress marks a database with an unfinished import, and has the
// fingerprint of the source. The other tables show how far the import got: rows come in
// the order of keys, batch by batch. copied is set when they are complete.
const (
	makeProgress = `CREATE TABLE IF NOT EXISTS migration_progress (fingerprint text NOT NULL);
		ALTER TABLE migration_progress ADD COLUMN IF NOT EXISTS copied bytea`
	dropProgress = `DROP TABLE migration_progress`
	// placeProgress puts the table on all servers of a cluster.
	placeProgress = `SELECT create_reference_table('migration_progress') WHERE 'migration_progress'::regclass NOT IN (SELECT logicalrelid FROM pg_dist_partition)`
)

// An Import fills the database with the content of another one.
type Import struct {
	c     *pgxpool.Conn
	files *stored.Files       // the files of content; nil: content goes into the database
	types map[string][]uint32 // the types of each table's columns
}

// Import calls f. If f succeeds, the import is finished; otherwise a later import
// continues it. Import returns InvalidRequest if the database contains anything other
// than an unfinished import from the installation with this fingerprint.
func (s *Store) Import(ctx context.Context, fingerprint string, f func(*Import) error) (err error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return failed("connect", err)
	}
	defer func() { // closing the connection releases the lock
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		err = errors.Join(err, c.Hijack().Close(closing))
	}()
	if on, err := lookAround(ctx, c.Conn()); err != nil || on.citus && !on.coordinator {
		return cmp.Or(err, errWorker)
	}
	if err := takeImportLock(ctx, c); err != nil {
		return err
	}
	if err := s.claim(ctx, c, fingerprint); err != nil {
		return err
	}
	if err := f(&Import{c, s.files, map[string][]uint32{}}); err != nil {
		return err
	}
	if err := analyze(ctx, c.Conn()); err != nil {
		return failed("analyze", err)
	}
	_, err = c.Exec(ctx, dropProgress)
	return failed("end the import", err)
}

// analyze gathers the statistics of all tables. Right after many rows have come, plans without
// them are bad, and PostgreSQL itself does it only some minutes later.
func analyze(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `ANALYZE `+strings.Join(slices.Sorted(maps.Keys(placements)), ", "))
	return err
}

// Copied stores the sum of all that was copied, unless an earlier run has done so, and returns
// the stored sum. A sum of nil only asks: the answer nil means that the copy is not complete.
func (i *Import) Copied(ctx context.Context, sum []byte) (stored []byte, err error) {
	err = i.c.QueryRow(ctx, `UPDATE migration_progress SET copied = coalesce(copied, $1) RETURNING copied`, sum).Scan(&stored)
	return stored, failed("end the copy", err)
}

// importing tells whether an import is unfinished.
func (s *Store) importing(ctx context.Context) (bool, error) {
	return readOne(ctx, s, "import", scanned[bool], `SELECT to_regclass('migration_progress') IS NOT NULL`)
}

// takeImportLock waits for a short time: the server may not have noticed yet that an
// earlier import was killed.
func takeImportLock(ctx context.Context, c *pgxpool.Conn) error {
	_, err := c.Exec(ctx, `SET lock_timeout = '3s'; SET statement_timeout = 0; SET `+idleParameter+` = '`+longIdle+`'`) // a page of callbacks may have gigabytes
	if err == nil {
		_, err = c.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(importLock))
	}
	if sqlState(err) == lockNotAvailable {
		return desk.Invalidf("another process is copying an installation into the database: wait for it to end")
	}
	return failed("lock", err)
}

// claim marks the database for the import. It fails if the database is already in use.
func (s *Store) claim(ctx context.Context, c *pgxpool.Conn, fingerprint string) error {
	err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, makeProgress); err != nil {
			return err
		}
		if s.citus { // so that servers at the workers see it
			if _, err := tx.Exec(ctx, placeProgress); err != nil {
				return err
			}
		}
		var of, bound string
		var used bool
		err := tx.QueryRow(ctx, `SELECT coalesce((SELECT fingerprint FROM migration_progress LIMIT 1), ''),
			coalesce((SELECT fingerprint FROM installation), ''), EXISTS (SELECT 1 FROM workspaces)`).Scan(&of, &bound, &used)
		switch {
		case err != nil:
			return err
		case of == fingerprint:
			return nil
		case of != "":
			return desk.Invalidf("the copy of another installation has begun in the database (its secret key has the fingerprint %s, not %s): finish that one, or give an empty database", of, fingerprint)
		case used:
			return desk.Invalidf("the database holds a workspace already: give an empty one")
		case bound != "" && bound != fingerprint:
			return desk.Invalidf("the database belongs to an installation with another secret key (fingerprint %s, not %s): give an empty one", bound, fingerprint)
		}
		_, err = tx.Exec(ctx, `INSERT INTO migration_progress (fingerprint) VALUES ($1)`, fingerprint)
		return err
	})
	if err == nil {
		err = s.bind(ctx, fingerprint)
	}
	return failed("begin the import", err)
}

// Last returns the last key of a table, or nil if the table is empty.
func (i *Import) Last(ctx context.Context, t Table) (key []any, err error) {
	columns := t.Columns[:t.Key]
	query := fmt.Sprintf("SELECT %s FROM %s ORDER BY %s DESC LIMIT 1",
		strings.Join(columns, ", "), t.Name, strings.Join(columns, " DESC, "))
	err = i.rows(ctx, t, query, nil, func(row []any) { key = row })
	return key, err
}

// Each calls f for up to limit rows, one after the other, in the order of keys. They
// follow the row whose key is after (nil: they begin with the first row). A value is nil,
// an int64, a string or a []byte.
func (i *Import) Each(ctx context.Context, t Table, after []any, limit int, f func(row []any)) error {
	return i.rows(ctx, t, pageQuery(t, after != nil, limit), after, f)
}

func pageQuery(t Table, after bool, limit int) string {
	key, where := strings.Join(t.Columns[:t.Key], ", "), ""
	if after {
		places := make([]string, t.Key)
		for n := range places {
			places[n] = fmt.Sprintf("$%d", n+1)
		}
		where = fmt.Sprintf(" WHERE (%s) > (%s)", key, strings.Join(places, ", "))
	}
	return fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT %d", strings.Join(t.Columns, ", "), t.Name, where, key, limit)
}

func (i *Import) rows(ctx context.Context, t Table, query string, args []any, f func([]any)) error {
	rows, err := i.c.Query(ctx, query, args...)
	if err != nil {
		return failed("read "+t.Name, err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return failed("read "+t.Name, err)
		}
		for n, v := range row {
			switch v := v.(type) {
			case [16]byte:
				row[n] = v[:]
			case bool:
				row[n] = int64(0)
				if v {
					row[n] = int64(1)
				}
			}
		}
		f(row)
	}
	return failed("read "+t.Name, rows.Err())
}

// Put stores rows that come after all rows of the table. It stores all of them or none.
func (i *Import) Put(ctx context.Context, t Table, rows [][]any) error {
	types, err := i.typesOf(ctx, t)
	if err != nil {
		return err
	}
	source := pgx.CopyFromSlice(len(rows), func(n int) ([]any, error) {
		row := make([]any, len(t.Columns))
		for c, v := range rows[n] {
			if number, ok := v.(int64); ok && types[c] == pgtype.BoolOID {
				v = number != 0
			}
			row[c] = v
		}
		return row, nil
	})
	err = pgx.BeginFunc(ctx, i.c, func(tx pgx.Tx) error {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.Columns, source); err != nil {
			return err
		}
		switch t.Name {
		case "events", "event_floors": // the first columns of both tables are the workspace and a number
			return putCounters(ctx, tx, rows)
		}
		return nil
	})
	return failed("store "+t.Name, err)
}

// putCounters sets the number of each workspace's newest event. The first columns of the
// rows are the workspace and a number that is in use.
func putCounters(ctx context.Context, tx pgx.Tx, events [][]any) error {
	batch := &pgx.Batch{}
	for n, row := range events {
		if n+1 < len(events) && string(events[n+1][0].([]byte)) == string(row[0].([]byte)) {
			continue // the next row of this workspace is newer
		}
		batch.Queue(`INSERT INTO event_counters (workspace_id, seq) VALUES ($1, $2)
			ON CONFLICT (workspace_id) DO UPDATE SET seq = GREATEST(event_counters.seq, excluded.seq)`, row[0], row[1])
	}
	return tx.SendBatch(ctx, batch).Close()
}

func (i *Import) typesOf(ctx context.Context, t Table) ([]uint32, error) {
	if known := i.types[t.Name]; known != nil {
		return known, nil
	}
	described, err := i.c.Conn().Prepare(ctx, "", fmt.Sprintf("SELECT %s FROM %s", strings.Join(t.Columns, ", "), t.Name))
	if err != nil {
		return nil, failed("describe "+t.Name, err)
	}
	for _, field := range described.Fields {
		i.types[t.Name] = append(i.types[t.Name], field.DataTypeOID)
	}
	return i.types[t.Name], nil
}

// PutContent stores content that has a row, unless the content is stored already. The
// function read opens the content.
func (i *Import) PutContent(ctx context.Context, ws, sum []byte, read func() (io.ReadCloser, error)) (err error) {
	if there, err := i.hasContent(ctx, ws, sum); there || err != nil {
		return err
	}
	from, err := read()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if i.files == nil {
		return i.putChunks(ctx, ws, sum, from)
	}
	d, err := i.files.New()
	if err != nil {
		return err
	}
	defer d.Drop()
	if _, err := io.Copy(d, from); err != nil {
		return err
	}
	got, _, err := d.Finish()
	if err != nil {
		return err
	}
	if !bytes.Equal(got, sum) {
		return errDamaged
	}
	return d.Place(desk.ID(ws), sum)
}

var errDamaged = errors.New("its bytes are not those that were stored: restore it from a backup")

func (i *Import) hasContent(ctx context.Context, ws, sum []byte) (there bool, err error) {
	if i.files != nil {
		f, err := i.files.Open(desk.ID(ws), sum)
		if desk.IsType(err, desk.NotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, f.Close()
	}
	err = i.c.QueryRow(ctx, `SELECT chunks IS NOT NULL FROM media_contents WHERE workspace_id = $1 AND sha256 = $2`, ws, sum).Scan(&there)
	return there, failed("content", err)
}

func (i *Import) putChunks(ctx context.Context, ws, sum []byte, from io.Reader) error {
	var id desk.ID
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	if _, err := i.c.Exec(ctx, putDraftQuery, ws, uuid(id)); err != nil {
		return failed("store content", err)
	}
	hash, buf := sha256.New(), make([]byte, chunkBytes)
	for n := int64(0); ; n++ {
		got, err := io.ReadFull(from, buf)
		_, _ = hash.Write(buf[:got])
		if got > 0 {
			if _, err := i.c.Exec(ctx, putChunkQuery, ws, uuid(id), n, buf[:got]); err != nil {
				return failed("store content", err)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(hash.Sum(nil), sum) {
		return errDamaged
	}
	return failed("store content", pgx.BeginFunc(ctx, i.c, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE media_contents SET chunks = $3 WHERE workspace_id = $1 AND sha256 = $2`, ws, sum, uuid(id))
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM media_drafts WHERE workspace_id = $1 AND chunks = $2`, ws, uuid(id))
		}
		return err
	}))
}

// CheckContent reads stored content, and returns an error if the content does not match
// its hash.
func (i *Import) CheckContent(ctx context.Context, ws, sum []byte) error {
	hash := sha256.New()
	if i.files != nil {
		f, err := i.files.Open(desk.ID(ws), sum)
		if err != nil {
			return err
		}
		if _, err := io.Copy(hash, f); err != nil {
			return errors.Join(err, f.Close())
		}
		if err := f.Close(); err != nil {
			return err
		}
	} else {
		var id desk.ID
		if err := i.c.QueryRow(ctx, `SELECT chunks FROM media_contents WHERE workspace_id = $1 AND sha256 = $2`, ws, sum).Scan(into(&id)); err != nil {
			return failed("content", err)
		}
		for n := int64(0); ; n++ {
			var chunk []byte
			err := i.c.QueryRow(ctx, `SELECT bytes FROM media_chunks WHERE workspace_id = $1 AND chunks = $2 AND n = $3`, ws, uuid(id), n).Scan(&chunk)
			if errors.Is(err, pgx.ErrNoRows) {
				break
			}
			if err != nil {
				return failed("content", err)
			}
			_, _ = hash.Write(chunk)
		}
	}
	if !bytes.Equal(hash.Sum(nil), sum) {
		return errDamaged
	}
	return nil
}
