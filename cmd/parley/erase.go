package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"parley/app"
	"parley/desk"
	"parley/transfer"
)

type eraseCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"W"`
	File      string `arg:"" help:"A file that parley export erasures has written."`
}

// Help shows examples.
func (*eraseCmd) Help() string {
	return paragraphs(
		"A backup has contacts that were deleted after it was made. After a restore, and before you serve, this command deletes them again. It may be interrupted and repeated.",
		examples(
			`parley export erasures --workspace W --out erasures.jsonl`,
			`parley erase --workspace W erasures.jsonl`,
		),
	)
}

// erased is the result of parley erase.
type erased struct {
	Erased int `json:"erased"`
	Absent int `json:"absent"`
}

// Run deletes the contacts. It reads the whole file first, so that nothing is deleted by
// another file.
func (c *eraseCmd) Run(ctx context.Context, s *session) (err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // a pipe could be read only once
		return errors.Join(err, fmt.Errorf("%s is no regular file: write the erasures to a file first", c.File))
	}
	if err := c.each(file, func(desk.Erasure) error { return nil }); err != nil {
		return err
	}
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		shown := &progress{to: s.stderr, last: time.Now()}
		defer shown.clear()
		var done erased
		var list []desk.Erasure
		flush := func() error {
			if ctx.Err() != nil {
				return errors.New("interrupted: run the command again")
			}
			n, err := a.Erase(ctx, p, list)
			if err != nil {
				return err
			}
			done.Erased, done.Absent = done.Erased+n, done.Absent+len(list)-n
			list = list[:0]
			shown.show("read", c.File, done.Erased+done.Absent)
			return nil
		}
		err := c.each(file, func(e desk.Erasure) error {
			if list = append(list, e); len(list) < app.EraseTogether {
				return nil
			}
			return flush()
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return err
		}
		shown.clear()
		return s.answer(done, "Deleted %d contacts. %d others are not there.\n", done.Erased, done.Absent)
	})
}

// each calls do for each line of the file.
func (c *eraseCmd) each(file *os.File, do func(desk.Erasure) error) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return fileProblem(c.File, transfer.Erasures(file, do))
}
