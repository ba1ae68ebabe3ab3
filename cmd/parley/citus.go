package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/store/postgres"
)

type citusCmd struct {
	Distribute citusDistributeCmd `cmd:"" help:"Move the tables of an installation to all servers of its Citus cluster."`
}

type citusDistributeCmd struct{}

// Help shows examples.
func (*citusDistributeCmd) Help() string {
	return paragraphs(
		"A new installation on a database with the extension citus is distributed from the start. This command is for an installation that has data, and for a cluster that got a new server. Take a backup and stop all servers first. Tables are moved one after the other, and servers don't start meanwhile. If it is interrupted, run it again; it continues.",
		"docs/scaling.md tells how to set up a cluster.",
		examples(
			`parley citus distribute --database 'postgres://parley:PASSWORD@coordinator.example.com/parley?sslmode=verify-full'`,
			`parley citus distribute --json`,
		),
	)
}

// Run distributes the tables.
func (*citusDistributeCmd) Run(ctx context.Context, s *session) error {
	storage, err := s.onPostgres()
	if err != nil {
		return err
	}
	if err := exists(ctx, storage); err != nil {
		return fmt.Errorf("%s holds no parley installation: a new one is distributed by itself, with %s", storage, s.command("workspace create --name NAME"))
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	p := &progress{to: s.stderr}
	d, err := postgres.Distribute(ctx, postgres.Config{URL: storage.URL, Media: storage.Media, Release: versionOf()}, func(table string, n, of int) {
		p.line(fmt.Sprintf("%d of %d tables: %s", n, of, table))
	})
	p.clear()
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted: the same command continues")
	case err != nil:
		return unopened(storage, err)
	}
	done := "All tables were distributed already."
	if n := len(d.Tables); n > 0 {
		done = fmt.Sprintf("Distributed %d tables.", n)
	}
	return s.answer(struct {
		Distributed int      `json:"distributed"`
		Tables      []string `json:"tables"`
		Servers     []string `json:"servers"`
	}{len(d.Tables), append([]string{}, d.Tables...), d.Servers}, "%s The servers of the cluster: %s.\n", done, strings.Join(d.Servers, ", "))
}
