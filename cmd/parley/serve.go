package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"parley/api"
	"parley/config"
	"parley/console"
	"parley/desk"
	"parley/logs"
	"parley/mcp"
	"parley/web"
	"parley/work"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
)

// An address is the value of a flag: HOST:PORT.
type address string

func (a *address) UnmarshalText(text []byte) error {
	listen, err := config.ParseListen(string(text))
	*a = address(listen)
	return err
}

// A publicURL is the value of a flag: a URL without a slash at the end.
type publicURL string

func (u *publicURL) UnmarshalText(text []byte) error {
	checked, err := config.ParsePublicURL(string(text))
	*u = publicURL(checked)
	return err
}

type serveCmd struct {
	Listen         address       `help:"Where to listen, by default ${default}; port 0 picks a free one." placeholder:"HOST:PORT" default:"127.0.0.1:8480" env:"PARLEY_LISTEN"`
	TLSCert        string        `help:"The certificate with its chain, in PEM: then the server speaks TLS. Needs --tls-key." name:"tls-cert" placeholder:"FILE"`
	TLSKey         string        `help:"The private key of --tls-cert, in PEM. If the two files change, the server uses the new ones within ten seconds." name:"tls-key" placeholder:"FILE"`
	MetricsListen  *address      `help:"Where to listen for /metrics, which --listen then does not answer." placeholder:"HOST:PORT"`
	PublicURL      publicURL     `help:"The address at which others reach this server." name:"public-url" placeholder:"URL"`
	TrustedProxy   []prefix      `help:"The networks of proxies whose X-Forwarded-For tells the caller's address, separated by commas, such as 10.1.0.0/16. Only the limit of tries to sign in uses it." name:"trusted-proxy" placeholder:"CIDR"`
	DrainWait      time.Duration `help:"How long to go on serving after the signal to stop, while /readyz answers 503; by default ${default}." placeholder:"TIME" default:"0s"`
	RateLimit      int           `help:"How many requests a second each key may make; by default ${default}, which means no limit." placeholder:"N" default:"0"`
	MaxMedia       int64         `help:"The greatest size of a file in bytes; by default ${default}." name:"max-media" placeholder:"BYTES" default:"${maxMedia}"`
	KeepRows       age           `help:"How long the rows of a broadcast are kept after its end, at least 30d; its counts stay; by default ${default}." name:"keep-rows" placeholder:"TIME" default:"90d"`
	KeepMessages   age           `help:"How long messages and notes are kept, such as 730d, with the files that only they have; 0 keeps them for ever; by default ${default}." name:"keep-messages" placeholder:"TIME" default:"0"`
	KeepMedia      age           `help:"How long the content of files is kept, such as 365d; 0 keeps it for ever; by default ${default}." name:"keep-media" placeholder:"TIME" default:"0"`
	EventRetention time.Duration `help:"How long events stay in the feed; 0 keeps them for ever; by default ${default}." placeholder:"TIME" default:"${keepEvents}"`
	LogLevel       string        `help:"The lowest level that is logged: ${enum}; by default ${default}." enum:"debug,info,warn,error" placeholder:"LEVEL" default:"info"`

	roomFlags    `embed:""`
	webhookFlags `embed:""`
	deliverFlags `embed:""`
}

// roomFlags are the flags that limit the room for files.
type roomFlags struct {
	MediaPerWorkspace int64 `help:"How many bytes the files of a workspace may have; 0 means no limit; by default ${default}, which is 20 GiB." name:"media-per-workspace" placeholder:"BYTES" default:"${mediaPerWorkspace}"`
	KeepFree          int64 `help:"How many bytes stay free on the file system that has the files, at most a twentieth of it: with less, no file is stored; by default ${default}, which is 1 GiB." name:"keep-free" placeholder:"BYTES" default:"${keepFree}"`
}

// Help shows examples.
func (*serveCmd) Help() string {
	return examples(
		`parley serve`,
		`parley serve --data /var/lib/parley --listen 0.0.0.0:8480 --public-url https://parley.example.com`,
		`parley serve --database 'postgres://parley:PASSWORD@db.example.com/parley?sslmode=verify-full'`,
		`parley serve --listen :443 --tls-cert fullchain.pem --tls-key privkey.pem --public-url https://parley.example.com --metrics-listen 127.0.0.1:9480`,
		`parley serve --drain-wait 10s --rate-limit 200 --log-level warn`,
	)
}

// Validate refuses negative numbers, and half a pair of files.
func (c *serveCmd) Validate() error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert, --tls-key: give both")
	}
	if c.DrainWait < 0 {
		return errors.New("--drain-wait: give a time of 0s or more")
	}
	if c.MaxMedia < 1 {
		return errors.New("--max-media: give a number of bytes")
	}
	if c.MediaPerWorkspace < 0 {
		return errors.New("--media-per-workspace: give a number of bytes, or 0")
	}
	if c.KeepFree < 0 {
		return errors.New("--keep-free: give a number of bytes, or 0")
	}
	if c.EventRetention < 0 {
		return errors.New("--event-retention: give a time of 0s or more")
	}
	if c.RateLimit < 0 {
		return errors.New("--rate-limit: give a number of 0 or more")
	}
	return c.check()
}

// Run serves until a signal stops it.
func (c *serveCmd) Run(ctx context.Context, s *session) error {
	return s.serve(ctx, c, func(_ installation, base string) error {
		if !s.flags.JSON {
			return nil // the log already shows this address
		}
		return s.answer(struct {
			BaseURL string `json:"base_url"`
		}{base}, "")
	})
}

// keep says how long data stays.
func (c *serveCmd) keep() work.Keep {
	return work.Keep{
		Events: c.EventRetention, Messages: time.Duration(c.KeepMessages), Media: time.Duration(c.KeepMedia),
		Rows: max(time.Duration(c.KeepRows), desk.LeastKeepRows),
	}
}

// serve serves the installation until a signal stops it. Before the first request is
// accepted, it calls ready with the base URL of the API.
func (s *session) serve(ctx context.Context, c *serveCmd, ready func(in installation, base string) error) (err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // it was stopped while it was starting
		}
	}()

	storage, err := s.storage()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	handler := logs.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: level}))
	defer handler.Flush()
	log := slog.New(handler)
	var certificate *web.Certificate
	scheme := "http://"
	if c.TLSCert != "" {
		if certificate, err = web.LoadCertificate(c.TLSCert, c.TLSKey); err != nil {
			return fmt.Errorf("--tls-cert %s, --tls-key %s: %w", c.TLSCert, c.TLSKey, err)
		}
		scheme = "https://"
	}
	// Listen first: if the address is in use, the command must not leave a new
	// installation behind.
	listener, err := listen(ctx, c.Listen, "--listen")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the server has closed it already, if it was started
	var metrics net.Listener
	if c.MetricsListen != nil {
		if metrics, err = listen(ctx, *c.MetricsListen, "--metrics-listen"); err != nil {
			return err
		}
		defer func() { _ = metrics.Close() }()
	}
	fresh := errors.Is(exists(ctx, storage), fs.ErrNotExist)
	tuneGC(storage)
	if err := makeDir(storage); err != nil {
		return err
	}
	unlock, err := lock(storage)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	in, err := open(ctx, storage, log, makes, c.config(), c.rules(), fileLimits{c.MaxMedia, c.MediaPerWorkspace, c.KeepFree})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.store.Close()) }()
	server := web.New(web.Config{Log: log, NewID: newID, Ready: in.app.Ready, Drain: in.app.Drain, Version: versionOf(), Certificate: certificate, MetricsApart: metrics != nil})
	assistants, err := mcp.New(mcp.Config{API: server.Handler(), Description: api.Description(), Version: versionOf()})
	if err != nil {
		return err
	}
	pages, err := console.New(console.Config{App: in.app, Web: server, PublicURL: string(c.PublicURL), Fingerprint: in.fingerprint, Now: time.Now, Trusted: networks(c.TrustedProxy), TLS: certificate != nil, Export: api.Export})
	if err != nil {
		return err
	}
	api.New(api.Config{App: in.app, Web: server, RateLimit: c.RateLimit, MCP: assistants.Handler(), PublicURL: string(c.PublicURL), Browser: pages.Unknown})

	root := string(c.PublicURL)
	if root == "" {
		root = scheme + config.LocalHost(listener.Addr())
	}
	base := root + "/v1"
	if err := ready(in, base); err != nil {
		return err
	}
	log.InfoContext(ctx, "parley is ready", "address", listener.Addr().String(), "base_url", base, "place", storage.String(), "version", versionOf())
	if metrics != nil {
		log.InfoContext(ctx, "the metrics are ready", "address", metrics.Addr().String())
	}
	if u, err := url.Parse(string(c.PublicURL)); err == nil && u.Path != "" {
		log.WarnContext(ctx, "--public-url has a path, but the console works at the root of its host only", "public_url", string(c.PublicURL))
	}
	if fresh {
		log.InfoContext(ctx, "a new installation was created: API keys of other installations are refused", "place", storage.String())
	}

	// Background work goes on after the signal, because the server still finishes
	// requests.
	background, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer done()
		return server.Serve(ctx, listener, c.DrainWait)
	})
	if metrics != nil {
		group.Go(func() error { return server.ServeMetrics(background, metrics) })
	}
	if certificate != nil {
		group.Go(func() error {
			certificate.Run(background, log)
			return nil
		})
	}
	group.Go(func() error { return in.store.Run(background) })
	group.Go(func() error {
		work.Run(background, work.Of(in.app), c.keep(), log)
		in.app.Close()
		return nil
	})
	err = group.Wait()
	log.InfoContext(background, "parley has stopped")
	return err
}

// listen listens on the address of a flag.
func listen(ctx context.Context, at address, flag string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", string(at))
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with %s, whose port 0 picks a free one", err, flag)
	}
	return l, nil
}

// lock prevents a second server on a SQLite database. Starting one is always a mistake:
// each server would count requests for itself. Servers may share a PostgreSQL database.
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

// How a server trades memory for CPU. The heap may grow to four times the memory in use
// before it is collected. Above memoryLimit (in bytes), the collector works harder and
// may use half the CPU, so the process does not stay large after many large batches.
// SQLite's page caches are not in this heap. With PostgreSQL there are no such caches,
// so the heap may be larger.
const (
	gcPercent   = 300
	memoryLimit = 160 << 20

	gcPercentPostgres   = 800
	memoryLimitPostgres = 256 << 20
)

// tuneGC applies these values, unless the operator has set GOGC or GOMEMLIMIT.
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
