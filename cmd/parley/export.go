package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/transfer"
)

type exportCmd struct {
	Contacts exportContactsCmd `cmd:"" help:"Write all contacts, as a file that can be imported again."`
	OptOuts  exportOptOutsCmd  `cmd:"" name:"opt-outs" help:"Write who has opted out of marketing, as a file that can be imported again."`

	Conversations exportConversationsCmd `cmd:"" help:"Write all conversations."`
	Messages      exportMessagesCmd      `cmd:"" help:"Write the messages of all conversations."`
	Notes         exportNotesCmd         `cmd:"" help:"Write the notes of all conversations."`
	Erasures      exportErasuresCmd      `cmd:"" help:"Write which contacts were deleted, for parley erase after a restore."`
}

// exportFlags are the flags of all exports.
type exportFlags struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"W"`
	Out       string `help:"Write to this file, which is there once it is whole. By default, the rows go to standard output." placeholder:"FILE"`
}

// tableFlags are the flags of exports that spreadsheets can open.
type tableFlags struct {
	exportFlags
	Format string `help:"csv or jsonl (JSON Lines); by default csv." enum:"csv,jsonl" default:"csv" placeholder:"csv|jsonl"`
	Excel  bool   `help:"CSV that spreadsheet programs open without asking: UTF-16, with tabs."`
}

func (f *tableFlags) format() (transfer.Format, error) {
	switch {
	case f.Format == "jsonl" && f.Excel:
		return 0, usageError("--excel is for CSV: leave out --format jsonl")
	case f.Format == "jsonl":
		return transfer.JSONL, nil
	case f.Excel:
		return transfer.Excel, nil
	}
	return transfer.CSV, nil
}

type exportContactsCmd struct{ tableFlags }

// Help shows examples.
func (*exportContactsCmd) Help() string {
	return paragraphs(
		"Archived attributes are left out. A cell that a spreadsheet could take for a formula has a ' in front, which parley import takes off again.",
		examples(
			`parley export contacts --workspace W --out contacts.csv`,
			`parley export contacts --workspace W --excel --out contacts.csv`,
			`parley export contacts --workspace W --format jsonl | gzip > contacts.jsonl.gz`,
		),
	)
}

// Run exports contacts.
func (c *exportContactsCmd) Run(ctx context.Context, s *session) error {
	format, err := c.format()
	if err != nil {
		return err
	}
	return c.run(ctx, s, "contacts", func(e *export) error {
		out, err := transfer.NewContacts(e.to, format, e.p.Settings.Attributes)
		if err != nil {
			return err
		}
		return rows(e, out, e.app.Exports.Contacts, out.Contact)
	})
}

type exportOptOutsCmd struct{ tableFlags }

// Help shows examples.
func (*exportOptOutsCmd) Help() string {
	return paragraphs(
		"These are the opt-outs of numbers that contacts have. Of other numbers parley keeps only a hash; how many these are is said on standard error.",
		examples(`parley export opt-outs --workspace W --out opt-outs.csv`),
	)
}

// Run exports opt-outs.
func (c *exportOptOutsCmd) Run(ctx context.Context, s *session) error {
	format, err := c.format()
	if err != nil {
		return err
	}
	return c.run(ctx, s, "opt-outs", func(e *export) error {
		out, err := transfer.NewOptOuts(e.to, format)
		if err != nil {
			return err
		}
		others := 0
		err = rows(e, out, func(ctx context.Context, p desk.Principal, do func([]desk.OptOutRow) error) (err error) {
			others, err = e.app.Exports.OptOuts(ctx, p, do)
			return err
		}, out.OptOut)
		if err == nil && others > 0 {
			e.progress.clear()
			_, err = fmt.Fprintf(s.stderr, "parley: %d other opt-outs are not in the file: no contact has the numbers, so only their hashes are known\n", others)
		}
		return err
	})
}

// linesFlags are the flags of exports that have no table.
type linesFlags struct {
	exportFlags
	Format string `help:"jsonl: JSON Lines." enum:"jsonl" default:"jsonl" placeholder:"jsonl"`
}

// exportLines writes a line for each record.
func exportLines[T any](e *export, all func(context.Context, desk.Principal, func([]T) error) error, line func([]byte, T) ([]byte, error)) error {
	out := transfer.NewLines(e.to)
	var b []byte
	return rows(e, out, all, func(record T) (err error) {
		if b, err = line(b[:0], record); err != nil {
			return err
		}
		return out.Line(b)
	})
}

type exportConversationsCmd struct{ linesFlags }

// Help shows examples.
func (*exportConversationsCmd) Help() string {
	return paragraphs(
		"Each line is a conversation, as the API shows it.",
		examples(`parley export conversations --workspace W --out conversations.jsonl`),
	)
}

// Run exports conversations.
func (c *exportConversationsCmd) Run(ctx context.Context, s *session) error {
	return c.run(ctx, s, "conversations", func(e *export) error {
		return exportLines(e, e.app.Exports.Conversations, func(b []byte, v *desk.Conversation) ([]byte, error) {
			channel := e.p.Settings.Channel(v.ChannelID)
			if channel == nil { // it is newer than the settings
				var err error
				if e.p, err = e.app.Operator(e.ctx, e.p.Workspace()); err != nil {
					return nil, err
				}
				channel = e.p.Settings.Channel(v.ChannelID)
			}
			return api.ExportedConversation(b, v, channel.Kind), nil
		})
	})
}

type exportMessagesCmd struct{ linesFlags }

// Help shows examples.
func (*exportMessagesCmd) Help() string {
	return paragraphs(
		"Each line is a message, as the API shows it, with conversation_id and contact_id. The messages of a conversation follow each other, the oldest first. Files are named by their ids.",
		examples(`parley export messages --workspace W | gzip > messages.jsonl.gz`),
	)
}

// Run exports messages.
func (c *exportMessagesCmd) Run(ctx context.Context, s *session) error {
	return c.run(ctx, s, "messages", func(e *export) error {
		return exportLines(e, e.app.Exports.Messages, func(b []byte, m *desk.Message) ([]byte, error) {
			return api.ExportedMessage(b, m, e.p.Settings), nil
		})
	})
}

type exportNotesCmd struct{ linesFlags }

// Help shows examples.
func (*exportNotesCmd) Help() string {
	return paragraphs(
		"Each line is a note, as the API shows it, with conversation_id and contact_id.",
		examples(`parley export notes --workspace W --out notes.jsonl`),
	)
}

// Run exports notes.
func (c *exportNotesCmd) Run(ctx context.Context, s *session) error {
	return c.run(ctx, s, "notes", func(e *export) error {
		return exportLines(e, e.app.Exports.Notes, func(b []byte, n *desk.Note) ([]byte, error) { return api.ExportedNote(b, n), nil })
	})
}

type exportErasuresCmd struct{ linesFlags }

// Help shows examples.
func (*exportErasuresCmd) Help() string {
	return paragraphs(
		"Each line has the id of a contact and the time at which it was deleted. parley keeps them for ever. Keep this file apart from your backups: after a restore, parley erase deletes these contacts again.",
		examples(`parley export erasures --workspace W --out erasures.jsonl`),
	)
}

// Run exports erasures.
func (c *exportErasuresCmd) Run(ctx context.Context, s *session) error {
	return c.run(ctx, s, "erasures", func(e *export) error {
		return exportLines(e, e.app.Exports.Erasures, func(b []byte, v desk.Erasure) ([]byte, error) { return api.ExportedErasure(b, v), nil })
	})
}

// An export is one run of an export.
type export struct {
	ctx      context.Context
	app      *app.App
	p        desk.Principal
	to       io.Writer
	what     string
	progress *progress
	rows     int
}

// rows writes all records of a kind.
func rows[T any](e *export, out *transfer.Writer, all func(context.Context, desk.Principal, func([]T) error) error, write func(T) error) error {
	err := all(e.ctx, e.p, func(page []T) error {
		for _, record := range page {
			if err := write(record); err != nil {
				return err
			}
		}
		e.rows += len(page)
		e.progress.show("exported", e.what, e.rows)
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// exportResult is the result of an export to a file.
type exportResult struct {
	File string `json:"file"`
	Rows int    `json:"rows"`
}

// run exports what the function write writes.
func (c *exportFlags) run(ctx context.Context, s *session, what string, write func(*export) error) error {
	if s.flags.JSON && c.Out == "" {
		return usageError("--json needs --out FILE, because without it the rows go to standard output")
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		e := &export{ctx: ctx, app: a, p: p, what: what, progress: &progress{to: s.stderr, last: time.Now()}}
		defer e.progress.clear()
		err := c.into(ctx, s, func(to io.Writer) error {
			e.to = to
			return write(e)
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return errors.New("interrupted: the export is not whole")
		case err != nil || c.Out == "":
			return err
		}
		e.progress.clear()
		return s.answer(exportResult{c.Out, e.rows}, "Exported %d rows to %s.\n", e.rows, c.Out)
	})
}

// into calls write with standard output, or with a file that gets its name when it is whole.
func (c *exportFlags) into(ctx context.Context, s *session, write func(io.Writer) error) (err error) {
	if c.Out == "" {
		return write(&impatient{ctx, s.stdout, desk.ExportStill})
	}
	if was, err := os.Stat(c.Out); err == nil && !was.Mode().IsRegular() { // such as /dev/stdout, which the new file would replace
		return fmt.Errorf("--out: %s is no regular file", c.Out)
	}
	file, err := os.CreateTemp(filepath.Dir(c.Out), "."+filepath.Base(c.Out)+"-*.part") // mode 0600
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), c.Out)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

// An impatient writer gives up a write that blocks for some time, or until ctx ends. Nothing
// can be written after that.
type impatient struct {
	ctx   context.Context
	to    io.Writer
	bound time.Duration
}

func (w *impatient) Write(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := w.to.Write(b)
		done <- result{n, err}
	}()
	late := time.NewTimer(w.bound)
	defer late.Stop()
	select {
	case r := <-done:
		return r.n, r.err
	case <-late.C:
		return 0, fmt.Errorf("nobody has read the output for %d seconds: the export is not whole", int(w.bound.Seconds()))
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	}
}
