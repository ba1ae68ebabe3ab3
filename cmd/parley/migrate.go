package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/app/broadcast"
	"parley/config"
	"parley/desk"
	"parley/store/postgres"
	"parley/store/sqlite"

	"github.com/jackc/pgx/v5/pgconn"
)

// A migrationSource is the value of a flag: a data directory with a SQLite database.
type migrationSource string

func (m *migrationSource) UnmarshalText(text []byte) error {
	dir, ok := strings.CutPrefix(string(text), "sqlite:")
	if !ok || dir == "" {
		return errors.New("give the data directory of the installation to copy, such as sqlite:./parley-data")
	}
	*m = migrationSource(dir)
	return nil
}

// A migrationTarget is the value of a flag: the URL of a PostgreSQL database.
type migrationTarget string

func (m *migrationTarget) UnmarshalText(text []byte) error {
	*m = migrationTarget(text)
	if len(text) == 0 {
		return errors.New("give the URL of an empty database, such as postgres://USER:PASSWORD@HOST:5432/NAME")
	}
	return config.CheckURL(string(text))
}

type migrateCmd struct {
	From migrationSource `help:"The data directory to copy, whose database is SQLite. Its data does not change; its schema is upgraded to this release." required:"" placeholder:"sqlite:DIR"`
	To   migrationTarget `help:"The URL of an empty PostgreSQL database." required:"" placeholder:"URL"`
}

// Help shows examples.
func (*migrateCmd) Help() string {
	return paragraphs(
		"Take a backup and stop the server first. If the copy is interrupted, run the same command again; it continues. At the end both databases are read again and compared.",
		"The servers on the new database need the same secret key: PARLEY_SECRET_KEY, or the file secret.key in their data directory.",
		examples(
			`parley migrate --from sqlite:./parley-data --to 'postgres://parley:PASSWORD@db.example.com/parley?sslmode=verify-full'`,
			`parley migrate --from sqlite:/var/lib/parley --to postgres://parley@localhost/parley --json`,
		),
	)
}

// migrationBatch is the number of rows that are copied, or compared, in one step.
const migrationBatch = 2000

// A migratedTable has the number of rows of a copied table.
type migratedTable struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

// Run copies the installation.
func (c *migrateCmd) Run(ctx context.Context, s *session) (err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	p := &progress{to: s.stderr, last: time.Now()}
	m := migration{batch: migrationBatch, step: p.show}
	m.from, err = config.NewStorage(string(c.From), "")
	if err == nil {
		m.to, err = config.NewStorage("", string(c.To))
		m.to.Media = s.flags.Media
	}
	if err != nil {
		return err
	}
	tables, fingerprint, err := m.run(ctx)
	p.clear()
	if err != nil {
		return err
	}
	var rows [][]string
	for _, t := range tables {
		rows = append(rows, []string{t.Name, strconv.Itoa(t.Rows)})
	}
	return s.answer(struct {
		Tables   []migratedTable `json:"tables"`
		Verified bool            `json:"verified"`
	}{tables, true}, `Copied %s to %s:

%s
Verified: each table has the same rows, and the same SHA-256 of them, on both sides.

The secret key stays the same (fingerprint %s). Give it to the servers: by
PARLEY_SECRET_KEY, or as the file secret.key in their data directory.
`, m.from, m.to, tableOf([]string{"TABLE", "ROWS"}, rows), fingerprint)
}

// A migration copies an installation from SQLite to PostgreSQL.
type migration struct {
	from, to config.Storage
	batch    int
	step     func(doing, table string, rows int) // called after each batch
}

// run does the migration. It returns the copied tables, and the fingerprint of the secret
// key.
func (m *migration) run(ctx context.Context) (tables []migratedTable, fingerprint string, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errors.New("interrupted: the same command goes on with the copy")
		}
	}()
	if _, err := os.Stat(m.from.Database()); err != nil {
		return nil, "", fmt.Errorf("%s holds no SQLite database to copy (%w); give the data directory of a server", m.from, err)
	}
	unlock, err := lock(m.from)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	from, err := sqlite.Open(ctx, sqlite.Config{Path: m.from.Database()})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if fingerprint, err = from.Fingerprint(ctx); err != nil {
		return nil, "", err
	}
	if fingerprint == "" {
		return nil, "", fmt.Errorf("%s holds no installation to copy", m.from)
	}
	to, err := postgres.Open(ctx, postgres.Config{URL: m.to.URL, Media: m.to.Media, MaxConns: max(2, m.to.MaxConns())})
	if errors.As(err, new(*pgconn.ConnectError)) {
		return nil, "", fmt.Errorf("open %s (does the server run, and is the URL in --to right?): %w", m.to, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", m.to, err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	err = from.Export(ctx, func(source *sqlite.Export) error {
		return to.Import(ctx, fingerprint, func(target *postgres.Import) error {
			tables, err = m.fill(ctx, from, source, target)
			if err != nil {
				return err
			}
			// Nobody knows on this side what the other one has sent since. While the import has
			// not ended, no server starts here.
			return broadcast.StopAll(ctx, to, time.Now())
		})
	})
	return tables, fingerprint, err
}

// stepChecked is the step after which the copy is complete.
const stepChecked = "checked"

// fill copies everything, and compares the two sides. An earlier run may have done that
// already, and have begun to change the copy; then fill only checks that the source is still
// the same.
func (m *migration) fill(ctx context.Context, from *sqlite.Store, source *sqlite.Export, target *postgres.Import) (tables []migratedTable, err error) {
	complete, err := target.Copied(ctx, nil)
	if err != nil {
		return nil, err
	}
	if complete == nil {
		for _, t := range sqlite.Tables() {
			if err := m.copy(ctx, t, source, target); err != nil {
				return nil, err
			}
		}
		if err := m.copyContent(ctx, from, source, target); err != nil {
			return nil, err
		}
		hour, err := source.Hour()
		if err == nil {
			err = target.SetHour(ctx, hour)
		}
		if err != nil {
			return nil, err
		}
	}
	all := newDigest()
	for _, t := range sqlite.Tables() {
		theirs, err := m.read(t, source)
		if err == nil && complete == nil {
			err = m.compare(ctx, t, theirs, target)
		}
		if err != nil {
			return nil, err
		}
		_, _ = all.Write(theirs.Sum(nil))
		all.rows += theirs.rows
		tables = append(tables, migratedTable{t.Name, theirs.rows})
	}
	sum := all.Sum(nil)
	stored, err := target.Copied(ctx, sum)
	if err == nil && !bytes.Equal(stored, sum) {
		err = fmt.Errorf("%s was written to since the copy was complete: make %s anew, empty, and run the command again", m.from, m.to)
	}
	if err == nil {
		m.step(stepChecked, "all tables", all.rows)
	}
	return tables, err
}

// copy copies a table. It begins after the last row that an earlier run has stored.
func (m *migration) copy(ctx context.Context, t sqlite.Table, source *sqlite.Export, target *postgres.Import) error {
	last, err := target.Last(ctx, postgres.Table(t))
	if err != nil {
		return err
	}
	for n := 0; ; {
		rows, err := source.Page(t, last, m.batch)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := target.Put(ctx, postgres.Table(t), rows); err != nil {
			return err
		}
		n, last = n+len(rows), rows[len(rows)-1][:t.Key]
		m.step("copied", t.Name, n)
	}
}

// copyContent copies the content of files, except content that an earlier run has copied.
// It reads each content on the other side again, to check it.
func (m *migration) copyContent(ctx context.Context, from *sqlite.Store, source *sqlite.Export, target *postgres.Import) error {
	at := slices.IndexFunc(sqlite.Tables(), func(t sqlite.Table) bool { return t.Name == "media_contents" })
	t := sqlite.Tables()[at]
	for last, n := []any(nil), 0; ; {
		rows, err := source.Page(t, last, m.batch)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			ws, sum, unused := row[0].([]byte), row[1].([]byte), row[3] != int64(0)
			err := target.PutContent(ctx, ws, sum, func() (io.ReadCloser, error) { return from.Content(ws, sum) })
			if unused && desk.IsType(err, desk.NotFound) {
				continue // the content is being deleted
			}
			if err == nil {
				err = target.CheckContent(ctx, ws, sum)
			}
			if err != nil {
				return fmt.Errorf("the content %x of a file: %w", sum, err)
			}
			n++
			m.step("copied", "content of files", n)
		}
		last = rows[len(rows)-1][:t.Key]
	}
}

// read reads a table of the source.
func (m *migration) read(t sqlite.Table, source *sqlite.Export) (theirs *digest, err error) {
	theirs = newDigest()
	for last := []any(nil); ; {
		rows, err := source.Page(t, last, m.batch)
		if err != nil || len(rows) == 0 {
			return theirs, err
		}
		for _, row := range rows {
			theirs.add(row)
		}
		last = rows[len(rows)-1][:t.Key]
		m.step("read", t.Name, theirs.rows)
	}
}

// compare reads a table of the copy and compares it with that of the source.
func (m *migration) compare(ctx context.Context, t sqlite.Table, theirs *digest, target *postgres.Import) error {
	ours := newDigest()
	for last, read := []any(nil), -1; read != ours.rows; {
		read = ours.rows
		err := target.Each(ctx, postgres.Table(t), last, m.batch, func(row []any) {
			ours.add(row)
			last = row[:t.Key]
		})
		if err != nil {
			return err
		}
		m.step("compared", t.Name, ours.rows)
	}
	if ours.rows != theirs.rows || string(ours.Sum(nil)) != string(theirs.Sum(nil)) {
		return fmt.Errorf("the copy differs in the table %s (%d rows, %d in %s): one of the two was written to since the copy began; make %s anew, empty, and run the command again",
			t.Name, ours.rows, theirs.rows, m.from, m.to)
	}
	return nil
}

// A digest is the SHA-256 of rows.
type digest struct {
	hash.Hash
	rows int
}

func newDigest() *digest { return &digest{Hash: sha256.New()} }

// add adds a row. Of each value, it writes the kind, the length and the bytes, so that
// different rows never have the same bytes.
func (d *digest) add(row []any) {
	d.rows++
	for _, value := range row {
		kind, content := byte('?'), []byte(nil)
		switch v := value.(type) {
		case nil:
			kind = 'n'
		case int64:
			kind, content = 'i', binary.BigEndian.AppendUint64(nil, uint64(v))
		case string:
			kind, content = 't', []byte(v)
		case []byte:
			kind, content = 'b', v
		}
		// A hash's Write never fails.
		_, _ = d.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(content))))
		_, _ = d.Write(content)
	}
}

// A progress shows how much has been copied. A terminal shows it in one line that
// changes. Elsewhere, it is printed as a new line from time to time.
type progress struct {
	to    io.Writer
	last  time.Time
	shown int // the length of the line on the terminal
}

// progressEvery is the time between two lines of progress. A copy that takes less time
// shows no progress.
const progressEvery = time.Second

func (p *progress) show(doing, table string, rows int) {
	if p.due() {
		p.line(fmt.Sprintf("%s: %s %d rows", table, doing, rows))
	}
}

// due tells whether it is time for the next line.
func (p *progress) due() bool {
	if time.Since(p.last) < progressEvery {
		return false
	}
	p.last = time.Now()
	return true
}

// line shows a line at once.
func (p *progress) line(line string) {
	if !isTerminal(p.to) {
		_, _ = fmt.Fprintln(p.to, line) // a failure to write the progress does not stop the copy
		return
	}
	p.clear()
	p.shown = len(line)
	_, _ = io.WriteString(p.to, line)
}

// clear removes the text of the line on the terminal.
func (p *progress) clear() {
	if p.shown > 0 {
		_, _ = io.WriteString(p.to, "\r"+strings.Repeat(" ", p.shown)+"\r")
		p.shown = 0
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
