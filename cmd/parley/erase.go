package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
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
	Erased int      `json:"erased"`
	Absent int      `json:"absent"`
	Kept   []string `json:"kept"` // part of another contact, from which they can't be separated any more
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
		done := erased{Kept: []string{}}
		var list []desk.Erasure
		var merged []desk.ID
		interrupted := func() error {
			if ctx.Err() != nil {
				return errors.New("interrupted: run the command again")
			}
			return nil
		}
		flush := func() error {
			if err := interrupted(); err != nil {
				return err
			}
			n, parts, err := a.Erase(ctx, p, list)
			if err != nil {
				return err
			}
			merged = append(merged, parts...)
			done.Erased, done.Absent = done.Erased+n, done.Absent+len(list)-len(parts)-n
			list = list[:0]
			shown.show("read", c.File, done.Erased+done.Absent+len(merged))
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
		// Now the contacts are deleted of which these may be part. why has a line for each that is kept.
		var why []string
		for n, id := range merged {
			if err := interrupted(); err != nil {
				return err
			}
			there, err := a.EraseMerged(ctx, p, id)
			switch {
			case desk.IsType(err, desk.UndoExpired):
				done.Kept, why = append(done.Kept, id.String()), append(why, sentence(err)+"\n")
			case err != nil:
				return err
			case there:
				done.Erased++
			default:
				done.Absent++
			}
			shown.show("separated", c.File, n+1)
		}
		shown.clear()
		if err := s.answer(done, "Deleted %d contacts. %d others are not there.\n%s", done.Erased, done.Absent, block(strings.Join(why, ""))); err != nil || len(why) == 0 {
			return err
		}
		return fmt.Errorf("not deleted: %d contacts, each of which is part of another one that was merged too long ago: delete those", len(why))
	})
}

// each calls do for each line of the file.
func (c *eraseCmd) each(file *os.File, do func(desk.Erasure) error) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return fileProblem(c.File, transfer.Erasures(file, do))
}
