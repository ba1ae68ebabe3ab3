package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley/app"
	"parley/app/imports"
	"parley/desk"
	"parley/store"
	"parley/transfer"
)

// errSomeRejected ends an import in which some rows were rejected. What it says is printed
// before.
var errSomeRejected = errors.New("some rows were rejected")

type importCmd struct {
	Contacts importContactsCmd `cmd:"" help:"Create and update contacts from a CSV file or a file of JSON Lines."`
	OptOuts  importOptOutsCmd  `cmd:"" name:"opt-outs" help:"Store who has opted out of marketing, from a CSV file or a file of JSON Lines."`
}

// importFlags are the flags of all imports.
type importFlags struct {
	Workspace string   `help:"The workspace's id." required:"" placeholder:"W"`
	File      string   `arg:"" help:"The file: NAME.jsonl has JSON Lines; any other is CSV, whose first row names the columns."`
	Map       []string `help:"Which field a column is, such as 'Mobile number=phone' or 'Plan=attributes.plan'; 'COLUMN=-' leaves one out. Can be repeated." sep:"none" placeholder:"COLUMN=FIELD"`
	Delimiter string   `help:"What separates cells: one character, or TAB. By default it is found out." placeholder:"C"`
	Encoding  string   `help:"The file's encoding, such as windows-1254, if it is not UTF-8 and has no byte order mark." placeholder:"E"`
	DryRun    bool     `help:"Judge all rows, and store nothing."`
	Errors    string   `help:"Where the rejected rows go; by default NAME.errors.csv or NAME.errors.jsonl beside the file." placeholder:"FILE"`

	IgnoreUnknown bool    `help:"Leave out columns that nobody knows."`
	Dates         *string `help:"How dates like 31.12.2026 are read: DMY or MDY." enum:"DMY,MDY" placeholder:"DMY|MDY"`
}

type importContactsCmd struct {
	importFlags
	ClearBlank       bool `help:"A blank cell clears the field. By default it changes nothing."`
	DecimalComma     bool `help:"Numbers are written like 1.234,5."`
	CreateAttributes bool `help:"Make an attribute of each column that nobody knows."`
}

// Help shows examples.
func (*importContactsCmd) Help() string {
	return paragraphs(
		"Each row is a POST /contacts: it updates the contact that has one of its identities, or creates one. Rows that are refused go into a file, with the reason; mend that file and import it.",
		"If it is interrupted, the same command goes on where it was.",
		examples(
			`parley import contacts --workspace W customers.csv --dry-run`,
			`parley import contacts --workspace W kunden.csv --encoding windows-1252 --dates DMY --map 'Handy=phone' --create-attributes`,
			`parley import contacts --workspace W customers.jsonl --json`,
		),
	)
}

// Run imports contacts.
func (c *importContactsCmd) Run(ctx context.Context, s *session) error {
	return c.run(ctx, s, transfer.Options{
		Kind: desk.ImportContacts, ClearBlank: c.ClearBlank, DecimalComma: c.DecimalComma, CreateAttributes: c.CreateAttributes,
	})
}

type importOptOutsCmd struct{ importFlags }

// Help shows examples.
func (*importOptOutsCmd) Help() string {
	return paragraphs(
		"The columns are phone, since (a time or a date; by default now) and opted_out (by default true). If a newer choice of a person is known, it stays.",
		examples(`parley import opt-outs --workspace W unsubscribed.csv`),
	)
}

// Run imports opt-outs.
func (c *importOptOutsCmd) Run(ctx context.Context, s *session) error {
	return c.run(ctx, s, transfer.Options{Kind: desk.ImportOptOuts})
}

// importResult is the result of an import.
type importResult struct {
	ImportID   *string `json:"import_id"`
	DryRun     bool    `json:"dry_run"`
	Rows       int64   `json:"rows"`
	Created    int64   `json:"created"`
	Updated    int64   `json:"updated"`
	Unchanged  int64   `json:"unchanged"`
	Rejected   int64   `json:"rejected"`
	ErrorsFile *string `json:"errors_file"`
}

// run imports a file.
func (c *importFlags) run(ctx context.Context, s *session, o transfer.Options) (err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	o.JSONL = strings.EqualFold(filepath.Ext(c.File), ".jsonl")
	if c.Dates != nil {
		o.Dates = transfer.Dates(*c.Dates)
	}
	o.Map, o.Delimiter, o.Encoding, o.IgnoreUnknown = c.Map, c.Delimiter, c.Encoding, c.IgnoreUnknown
	file, err := transfer.Open(c.File, o)
	if err != nil {
		return fileProblem(c.File, err)
	}
	rejected := false
	err = s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		if err := file.Columns(p.Settings.Attributes); err != nil {
			return fileProblem(c.File, err)
		}
		i := &importer{app: a, p: p, file: file, flags: c, progress: &progress{to: s.stderr, last: time.Now()}}
		if info, err := os.Stat(i.errorsFile()); err == nil && !info.Mode().IsRegular() && !info.IsDir() { // such as /dev/null: it would be replaced
			return usageError("the rejected rows need a file, and " + i.errorsFile() + " is a device or the like: name another one with --errors")
		}
		i.tell = func(result importResult) error {
			i.progress.clear()
			rejected = result.Rejected > 0
			return c.tell(s, file, result)
		}
		defer i.progress.clear()
		err := i.run(ctx)
		if err != nil && ctx.Err() != nil {
			err = errors.New("interrupted: the same command goes on with the import")
		}
		return err
	})
	if err == nil && rejected {
		err = errSomeRejected
	}
	return err
}

// tell prints what became of the rows.
func (c *importFlags) tell(s *session, file *transfer.File, result importResult) error {
	text, store := "", "Imported"
	if c.DryRun {
		store = "Nothing is stored. This would be"
		text = "\n" + string(columnsOf(file))
	}
	if result.ErrorsFile != nil {
		text += fmt.Sprintf("\nThe rejected rows are in %s, each with the reason.\nMend them there, and import that file with the same flags.\n", printable(*result.ErrorsFile))
	}
	if result.Rejected > 0 && file.Undated {
		text += "\nSome dates are written like 31.12.2026: --dates DMY or --dates MDY says how they are read.\n"
	}
	return s.answer(result, "%s %d rows: %d created, %d updated, %d unchanged, %d rejected.\n%s", store, result.Rows, result.Created, result.Updated, result.Unchanged, result.Rejected, block(text))
}

// columnsOf shows what each column of a CSV file is taken for.
func columnsOf(file *transfer.File) block {
	var rows [][]string
	for i, to := range file.Taken() {
		if to == "-" {
			to = "left out"
		}
		rows = append(rows, []string{file.Headers[i], to})
	}
	if rows == nil {
		return ""
	}
	return tableOf([]string{"COLUMN", "TAKEN FOR"}, rows)
}

func fileProblem(path string, err error) error {
	if e := (*transfer.FileError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// An importer is one run of an import.
type importer struct {
	app      *app.App
	p        desk.Principal
	file     *transfer.File
	flags    *importFlags
	progress *progress
	tell     func(importResult) error
}

// run imports the rows, or tries them, and tells what became of them.
func (i *importer) run(ctx context.Context) error {
	if here, err := os.Stat(i.errorsFile()); err == nil {
		if file, err := os.Stat(i.flags.File); err == nil && os.SameFile(here, file) {
			return desk.InvalidAt("/errors", "this is the file that is imported: give another one")
		}
	}
	if i.flags.DryRun {
		return i.try(ctx)
	}
	return i.store(ctx)
}

// end gives the rejected rows their place, and tells what became of all rows.
func (i *importer) end(part, id string, n desk.ImportCounts) error {
	name := i.errorsFile()
	result := importResult{DryRun: i.flags.DryRun, Rows: n.Rows, Created: n.Created, Updated: n.Updated, Unchanged: n.Unchanged, Rejected: n.Rejected}
	if id != "" {
		result.ImportID = &id
	}
	if n.Rejected == 0 {
		if err := os.Remove(part); err != nil {
			return err
		}
		return i.tell(result)
	}
	result.ErrorsFile = &name
	if err := os.Rename(part, name); err != nil {
		return err
	}
	return i.tell(result)
}

// partName is the name of the file in which the rejected rows are collected. Each import has its
// own.
func (i *importer) partName(name string) string { return i.errorsFile() + "." + name + ".part" }

// part opens that file.
func (i *importer) part(name string) (*os.File, error) {
	file, err := os.OpenFile(i.partName(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the rejected rows need a file: %w", err)
	}
	return file, nil
}

// errorsFile is where the rejected rows go.
func (i *importer) errorsFile() string {
	if i.flags.Errors != "" {
		return i.flags.Errors
	}
	name := strings.TrimSuffix(i.flags.File, filepath.Ext(i.flags.File))
	if i.file.Options.JSONL {
		return name + ".errors.jsonl"
	}
	return name + ".errors.csv"
}

// key identifies the command: the file's bytes and the options.
func (i *importer) key() [32]byte {
	options, err := json.Marshal(i.file.Options)
	if err != nil {
		panic(err) // it has only texts and booleans
	}
	return sha256.Sum256(append(options, i.file.SHA256[:]...))
}

// begin takes the workspace, and goes on with an import that was interrupted, or begins anew.
func (i *importer) begin(ctx context.Context) (*imports.Import, error) {
	waits := time.AfterFunc(progressEvery, func() {
		_, _ = fmt.Fprintln(i.progress.to, "Another import of this workspace is at work, or was just killed: this one waits up to 20 seconds for it.")
	})
	defer waits.Stop()
	return i.app.Imports.Begin(ctx, i.p, i.key())
}

// store imports the rows, while it has the workspace.
func (i *importer) store(ctx context.Context) error {
	run, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = run.End(ctx) }() // the lease ends by itself, too
	return run.Hold(ctx, func(ctx context.Context) error { return i.storeHeld(ctx, run) })
}

// storeHeld imports the rows. The import ends after all is told: if it is killed before, the same
// command tells it.
func (i *importer) storeHeld(ctx context.Context, run *imports.Import) error {
	rejects, err := i.rejects(ctx, run)
	if err != nil {
		return err
	}
	if err = run.Make(ctx, i.file); err == nil {
		err = run.StoreFile(ctx, i.file, keepIn(rejects), func() {
			if i.progress.due() {
				i.progress.line(fmt.Sprintf("%s: %d of %d rows, %d rejected", i.flags.File, run.Run.Rows, i.file.Rows, run.Run.Rejected))
			}
		})
	}
	if err = errors.Join(err, rejects.Close()); err == nil {
		err = i.end(rejects.Name(), run.Run.ID.String(), run.Run.ImportCounts)
	}
	if err == nil {
		err = run.Finish(ctx)
	}
	return err
}

// rejects opens the file of the rejected rows of an import. If it is gone, the import begins anew,
// because they can't be told again.
func (i *importer) rejects(ctx context.Context, run *imports.Import) (*os.File, error) {
	if err := i.takeBack(run.Run); err != nil {
		return nil, err
	}
	file, err := i.part(run.Run.ID.String())
	if err != nil {
		return nil, err
	}
	state, err := file.Stat()
	if err == nil && (!run.Resumed || state.Size() >= run.Run.ErrorBytes) {
		return file, nil
	}
	err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	if err == nil {
		err = run.Anew(ctx, i.key())
	}
	if err != nil {
		return nil, err
	}
	return i.part(run.Run.ID.String())
}

// takeBack takes the rejected rows of an import back from their place, if the import was killed just
// after they came there.
func (i *importer) takeBack(run desk.ImportRun) error {
	if run.Rows < i.file.Rows || run.Rejected == 0 {
		return nil
	}
	part := i.partName(run.ID.String())
	placed, err := os.Stat(i.errorsFile())
	if _, missing := os.Stat(part); !errors.Is(missing, fs.ErrNotExist) || err != nil || placed.Size() != run.ErrorBytes {
		return nil
	}
	return os.Rename(i.errorsFile(), part)
}

// try judges the rows, a group at a time.
func (i *importer) try(ctx context.Context) error {
	rejects, err := i.part("dry-run-" + strconv.Itoa(os.Getpid()))
	if err != nil {
		return err
	}
	counts, err := i.app.Imports.TryFile(ctx, i.p, i.file, keepIn(rejects))
	if err = errors.Join(err, rejects.Close()); err == nil {
		err = i.end(rejects.Name(), "", counts)
	}
	if err != nil {
		_ = os.Remove(rejects.Name()) // the next dry run begins anew
	}
	return err
}

// keepIn writes rejected rows to a file.
func keepIn(file *os.File) imports.Keep {
	return func(_ store.Tx, before int64, rows []byte) error {
		if err := file.Truncate(before); err != nil {
			return err
		}
		if _, err := file.WriteAt(rows, before); err != nil || len(rows) == 0 {
			return err
		}
		return file.Sync()
	}
}
