package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"parley/api"
	"parley/config"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
)

// An address is a flag's HOST:PORT.
type address string

func (a *address) UnmarshalText(text []byte) error {
	listen, err := config.ParseListen(string(text))
	*a = address(listen)
	return err
}

// A publicURL is a flag's URL without a closing slash.
type publicURL string

func (u *publicURL) UnmarshalText(text []byte) error {
	checked, err := config.ParsePublicURL(string(text))
	*u = publicURL(checked)
	return err
}

type serveCmd struct {
	Listen    address       `help:"Where to listen, by default ${default}; port 0 picks a free one." placeholder:"HOST:PORT" default:"127.0.0.1:8480" env:"PARLEY_LISTEN"`
	PublicURL publicURL     `help:"The address that others reach this server by." name:"public-url" placeholder:"URL"`
	DrainWait time.Duration `help:"How long to go on serving, with /readyz answering 503, once told to stop; by default ${default}." placeholder:"TIME" default:"0s"`
	RateLimit int           `help:"How many requests a second each key may make; by default ${default}, which is any number." placeholder:"N" default:"0"`
	LogLevel  string        `help:"The least that is logged: ${enum}; by default ${default}." enum:"debug,info,warn,error" placeholder:"LEVEL" default:"info"`
}

// Help shows examples.
func (*serveCmd) Help() string {
	return examples(
		`parley serve`,
		`parley serve --data /var/lib/parley --listen 0.0.0.0:8480 --public-url https://parley.example.com`,
		`parley serve --database 'postgres://parley:PASSWORD@db.example.com/parley?sslmode=verify-full'`,
		`parley serve --drain-wait 10s --rate-limit 200 --log-level warn`,
	)
}

// Validate refuses numbers below zero.
func (c *serveCmd) Validate() error {
	if c.DrainWait < 0 {
		return errors.New("--drain-wait: give a time of 0s or more")
	}
	if c.RateLimit < 0 {
		return errors.New("--rate-limit: give a number of 0 or more")
	}
	return nil
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(ctx context.Context, s *session) error {
	return s.serve(ctx, c, func(_ installation, base string) error {
		if !s.flags.JSON {
			return nil // the log says it
		}
		return s.answer(struct {
			BaseURL string `json:"base_url"`
		}{base}, "")
	})
}

// serve serves the installation until SIGTERM or an interrupt. ready is called
// with the base URL of the API before the first request is taken.
func (s *session) serve(ctx context.Context, c *serveCmd, ready func(in installation, base string) error) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // told to stop while it was starting
		}
	}()

	storage, err := s.storage()
	if err != nil {
		return err
	}
	tuneGC(storage)
	unlock, err := lock(storage)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: level}))
	in, err := open(ctx, storage, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.store.Close()) }()
	server := api.New(api.Config{App: in.app, Log: log, RateLimit: c.RateLimit, Version: versionOf()})

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", string(c.Listen))
	if err != nil {
		return fmt.Errorf("%w; choose another address with --listen, whose port 0 picks a free one", err)
	}
	root := string(c.PublicURL)
	if root == "" {
		root = config.LocalURL(listener.Addr())
	}
	base := root + "/v1"
	if err := ready(in, base); err != nil {
		return errors.Join(err, listener.Close())
	}
	log.InfoContext(ctx, "parley is ready", "address", listener.Addr().String(), "base_url", base, "version", versionOf())

	// Background work outlives the signal: requests are still finished.
	background, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer done()
		return server.Serve(ctx, listener, c.DrainWait)
	})
	group.Go(func() error { return in.store.Run(background) })
	group.Go(func() error {
		in.app.Run(background)
		return nil
	})
	err = group.Wait()
	log.InfoContext(background, "parley has stopped")
	return err
}

// lock keeps a second server off a SQLite database: each would answer from settings
// and count requests on its own, and nobody means to start one. Servers that share a
// PostgreSQL database know of each other.
func lock(storage config.Storage) (unlock func() error, err error) {
	if storage.URL != "" {
		return func() error { return nil }, nil
	}
	file := flock.New(storage.ServeLock())
	locked, err := file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("a server holds the data directory %s: stop it first, or choose another one", storage.Dir)
	}
	return file.Close, nil
}

// How a server trades memory for CPU. The heap may grow to four times what is in
// use before it is collected, but above memoryLimit, in bytes, the collector works
// harder instead, as far as half the CPU: a burst of large batches leaves no large
// process behind. SQLite's page caches are not in this heap; beside PostgreSQL there are
// none, and the heap may take their room.
const (
	gcPercent   = 300
	memoryLimit = 96 << 20

	gcPercentPostgres   = 800
	memoryLimitPostgres = 256 << 20
)

// tuneGC applies that, unless the operator has decided by GOGC or GOMEMLIMIT. All
// such settings are here.
func tuneGC(storage config.Storage) {
	percent, limit := gcPercent, int64(memoryLimit)
	if storage.URL != "" {
		percent, limit = gcPercentPostgres, memoryLimitPostgres
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
