package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"parley/api"
	"parley/app"
	"parley/config"
	"parley/desk"
	"parley/sandbox"
	"parley/store/postgres"
	"parley/store/sqlite"
	"parley/whatsapp"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// shared are the flags that every command takes.
type shared struct {
	Data     string `help:"The data directory, by default ${default}." placeholder:"DIR" default:"./parley-data" env:"PARLEY_DATA"`
	Database string `help:"The URL of a PostgreSQL database; without one it is SQLite in the data directory." placeholder:"URL" env:"PARLEY_DATABASE_URL"`
	JSON     bool   `help:"Answer with one JSON object on standard output." name:"json"`
}

// A session is one run of the program: the shared flags, and where answers and
// logs go.
type session struct {
	flags          shared
	stdin          io.Reader
	stdout, stderr io.Writer
}

// answer prints a command's result: the record with --json, else the text.
func (s *session) answer(record any, format string, args ...any) error {
	if !s.flags.JSON {
		_, err := fmt.Fprintf(s.stdout, format, args...)
		return err
	}
	encoder := json.NewEncoder(s.stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(record)
}

// list is what a command that lists answers with --json.
type list[T any] struct {
	Data []T `json:"data"`
}

// answerList prints records, each as a row for people, under the headings.
func answerList[T any](s *session, records []T, headings []string, row func(T) []string) error {
	var rows [][]string
	for _, r := range records {
		rows = append(rows, row(r))
	}
	return s.answer(list[T]{append([]T{}, records...)}, "%s", tableOf(headings, rows))
}

// tableOf is a table for people.
func tableOf(headings []string, rows [][]string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{headings}, rows...) {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a builder takes everything
	return text.String()
}

// orDash fills a table's empty cell.
func orDash(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

// momentOf is the JSON null of a time that never was.
func momentOf(t desk.Time) *string {
	if t == 0 {
		return nil
	}
	return unlessEmpty(t.String())
}

// unlessEmpty is the JSON null of an empty text.
func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// A store is a database that keeps an installation.
type store interface {
	app.Store
	// BindSecret keeps the fingerprint of the secret key that the installation is made
	// with, and refuses any other.
	BindSecret(ctx context.Context, fingerprint string) error
	// Run does the database's own background work until ctx ends.
	Run(ctx context.Context) error
	Close() error
}

// secretEnv holds the secret key. It has no flag: others could read it in the list
// of processes.
const secretEnv = "PARLEY_SECRET_KEY"

// An installation is an open database, with the app on it.
type installation struct {
	storage config.Storage
	store   store
	app     *app.App
}

// storage returns where the flags say that the data is. The data directory is made
// when absent, unless nothing is to be kept in it.
func (s *session) storage() (config.Storage, error) {
	storage, err := config.NewStorage(s.flags.Data, s.flags.Database)
	if err != nil {
		return storage, err
	}
	if storage.URL != "" && os.Getenv(secretEnv) != "" {
		return storage, nil
	}
	if err := storage.MakeDir(); err != nil {
		return storage, fmt.Errorf("data directory: %w; choose another with --data", err)
	}
	return storage, nil
}

// open opens an installation, which it makes or migrates as needed.
func open(ctx context.Context, storage config.Storage, log *slog.Logger) (_ installation, err error) {
	secret, err := storage.Secret(os.Getenv(secretEnv))
	if err != nil {
		return installation{}, err
	}
	store, err := openStore(ctx, storage)
	if err != nil {
		return installation{}, err
	}
	if err := store.BindSecret(ctx, secret.Fingerprint()); err != nil {
		return installation{}, errors.Join(err, store.Close())
	}
	return installation{storage, store, app.New(app.Deps{
		Store: store,
		Providers: map[desk.ChannelKind]app.Provider{
			desk.SandboxChannel:  sandbox.New(sandbox.Config{Library: store, Now: time.Now, NewID: newID}),
			desk.WhatsAppChannel: whatsapp.New(whatsapp.Config{Now: time.Now}),
		},
		Answer: api.SendAnswer,
		Now:    time.Now,
		NewID:  newID,
		Random: func(b []byte) { _, _ = rand.Read(b) }, // it never fails: it would end the process instead
		Secret: secret[:],
		Log:    log,
	})}, nil
}

func openStore(ctx context.Context, storage config.Storage) (store, error) {
	if storage.URL == "" {
		return sqlite.Open(ctx, sqlite.Config{Path: storage.Database()})
	}
	s, err := postgres.Open(ctx, postgres.Config{URL: storage.URL, MaxConns: storage.MaxConns()})
	if errors.As(err, new(*pgconn.ConnectError)) {
		return nil, fmt.Errorf("open %s (does the server run, and is the URL in --database or PARLEY_DATABASE_URL right?): %w", storage, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", storage, err)
	}
	return s, nil
}

func init() {
	// Ids are made in the write path: one read of randomness for many of them.
	uuid.EnableRandPool()
}

// newID makes a UUIDv7: ids of one process grow with time.
func newID() desk.ID { return desk.ID(uuid.Must(uuid.NewV7())) }

// do runs an operator's action on the installation, beside a server or without one.
func (s *session) do(ctx context.Context, action func(*app.App) error) (err error) {
	storage, err := s.storage()
	if err != nil {
		return err
	}
	in, err := open(ctx, storage, slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.store.Close()) }()
	return action(in.app)
}

// idOf reads an id as it was typed. What is no id is the zero one, which no
// record has, so it meets the same answer as an unknown id.
func idOf(text string) desk.ID {
	id, _ := desk.ParseID(text)
	return id
}

// unknown says which id of a workspace, member and so on led nowhere, in which
// database, since that may be the mistake, and what shows the right ones.
func (s *session) unknown(err error, what, id, shownBy string) error {
	if !desk.IsType(err, desk.NotFound) {
		return err
	}
	storage, err := config.NewStorage(s.flags.Data, s.flags.Database)
	if err != nil {
		return err
	}
	return fmt.Errorf("no %s has the id %q in %s; %s shows them", what, id, storage, shownBy)
}

func (s *session) unknownWorkspace(err error, id string) error {
	return s.unknown(err, "workspace", id, "parley workspace list")
}
