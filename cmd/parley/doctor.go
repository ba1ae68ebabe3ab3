package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"parley/config"
	"parley/doctor"
	"parley/store"
	"parley/store/postgres"
	"parley/store/sqlite"
)

type doctorCmd struct {
	Deep bool `help:"Also read all pages of the database, all contacts, and look for all files; this may take minutes."`
}

// Help shows examples.
func (*doctorCmd) Help() string {
	return paragraphs(
		"The server may run meanwhile. Nothing is changed or migrated, so this also works on an installation that does not start. The exit code is 1 if a check fails; warnings don't count.",
		examples(`parley doctor`, `parley doctor --deep --data /var/lib/parley`, `parley doctor --json`),
	)
}

type doctorRecord struct {
	OK     bool           `json:"ok"`
	Checks []doctor.Check `json:"checks"`
}

// Run examines the installation.
func (c *doctorCmd) Run(ctx context.Context, s *session) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	storage, err := s.storage()
	if err != nil {
		return err
	}
	checks, err := doctor.Examine(ctx, doctor.Patient{
		Storage: storage, Secret: os.Getenv(secretEnv), Deep: c.Deep, Now: time.Now, Free: sqlite.Free,
		Open: func(ctx context.Context) (store.Examined, error) { return openToRead(ctx, storage) },
	})
	if err != nil {
		return err
	}
	var rows [][]string
	failed := 0
	for _, check := range checks {
		if check.Status == doctor.Fail {
			failed++
		}
		rows = append(rows, []string{check.ID, string(check.Status), check.Message})
		if check.Fix != "" {
			rows = append(rows, []string{"", "", "→ " + check.Fix})
		}
	}
	if err := s.answer(doctorRecord{doctor.Well(checks), checks}, "%s", tableOf([]string{"CHECK", "STATUS", "FOUND"}, rows)); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%d of %d checks failed", failed, len(checks))
}

// openToRead opens a database without changing it.
func openToRead(ctx context.Context, storage config.Storage) (store.Examined, error) {
	if err := exists(ctx, storage); err != nil {
		return nil, err
	}
	if storage.URL == "" {
		return sqlite.OpenUntouched(storage.Database())
	}
	return postgres.OpenToRead(ctx, postgres.Config{URL: storage.URL, Media: storage.Media})
}
