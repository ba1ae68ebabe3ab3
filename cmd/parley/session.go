package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/api"
	"parley/app"
	"parley/config"
	"parley/desk"
	"parley/poster"
	"parley/provider"
	"parley/sandbox"
	"parley/store"
	"parley/store/postgres"
	"parley/store/sqlite"
	"parley/whatsapp"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// shared are the flags of every command.
type shared struct {
	Data     string `help:"The data directory, by default ${default}." placeholder:"DIR" default:"./parley-data" env:"PARLEY_DATA"`
	Database string `help:"The URL of a PostgreSQL database; without it, the database is SQLite in the data directory." placeholder:"URL" env:"PARLEY_DATABASE_URL"`
	Media    string `help:"With PostgreSQL: the directory in which all servers keep the content of files; without it, the database does." placeholder:"DIR" env:"PARLEY_MEDIA"`
	JSON     bool   `help:"Answer with one JSON object on standard output." name:"json"`
}

// A usageError is a usage mistake that the flag parser can't detect.
type usageError string

func (e usageError) Error() string { return string(e) }

// A session is one run of the program: the shared flags, and the writers for results and
// logs.
type session struct {
	flags          shared
	typed          typed
	stdin          io.Reader
	stdout, stderr io.Writer
	webhooks       poster.Config // how webhooks are reached
}

// typed says which shared flags are on the command line. A flag in the environment does
// not count.
type typed struct{ data, database bool }

// command returns a command line that the operator can run next. It repeats the flags
// that name the place of the data, so that it uses the same installation. It replaces a
// password in the database's URL by PASSWORD, because the output may be stored in a log.
func (s *session) command(format string, args ...any) string {
	line := "parley " + fmt.Sprintf(format, args...)
	if s.typed.data {
		line += " --data " + quoted(s.flags.Data)
	}
	if s.typed.database {
		line += " --database " + quoted(config.HidePassword(s.flags.Database))
	}
	return line
}

// answer prints the result of a command: with --json the record, otherwise the text. It
// makes the values in the text printable.
func (s *session) answer(record any, format string, args ...any) error {
	if !s.flags.JSON {
		for i, arg := range args {
			if text, ok := arg.(string); ok {
				args[i] = printable(text)
			}
		}
		_, err := fmt.Fprintf(s.stdout, format, args...)
		return err
	}
	encoder := json.NewEncoder(s.stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(record)
}

// list is the JSON result of a command that lists records.
type list[T any] struct {
	Data []T `json:"data"`
}

// A most is the value of the flag --limit: the greatest number of records.
type most int

func (m *most) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return errors.New("give a number of 1 or more")
	}
	*m = most(n)
	return nil
}

// page returns the number of records that the next request should ask for, if have
// records are there already. 0 means that the list is full.
func (m most) page(have int) int { return min(max(int(m)-have, 0), desk.MaxLimit) }

// answerList prints records. For people, it prints a table: the headings, and one row for
// each record.
func answerList[T any](s *session, records []T, headings []string, row func(T) []string) error {
	var rows [][]string
	for _, r := range records {
		rows = append(rows, row(r))
	}
	return s.answer(list[T]{append([]T{}, records...)}, "%s", tableOf(headings, rows))
}

// A block is a text of several lines that is already printable. answer does not change
// it.
type block string

// tableOf formats a table for people.
func tableOf(headings []string, rows [][]string) block {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{headings}, rows...) {
		clean := make([]string, len(cells))
		for i, cell := range cells {
			clean[i] = printable(cell)
		}
		_, _ = fmt.Fprintln(w, strings.Join(clean, "\t"))
	}
	_ = w.Flush() // writing to a builder does not fail
	return block(text.String())
}

// printable escapes the characters that control a terminal, as in a Go string: line
// breaks, escapes, and characters that set the direction of text. Otherwise a name could
// change the text that the operator sees. The two joiners stay, because names in some
// scripts need them.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsGraphic(r) && r != utf8.RuneError || r == '\u200c' || r == '\u200d':
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// quoted returns a word with the quotes that a shell needs.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@%+=,", r))
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// orDash returns a text, or a dash if the text is null: the cell of a table is never
// empty.
func orDash(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

// momentOf returns a time as text, or null for the zero time.
func momentOf(t desk.Time) *string {
	if t == 0 {
		return nil
	}
	return unlessEmpty(t.String())
}

// unlessEmpty returns a text, or null if the text is empty.
func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// A database stores the data of an installation.
type database interface {
	store.Store
	sandbox.Library
	// BindSecret stores the fingerprint of the installation's secret key. Once one is
	// stored, it refuses every other key.
	BindSecret(ctx context.Context, fingerprint string) error
	// Run does the database's own background work until ctx ends.
	Run(ctx context.Context) error
	Close() error
}

// secretEnv is the variable with the secret key. There is no flag for it, because other
// users could read it in the list of processes.
const secretEnv = "PARLEY_SECRET_KEY"

// An installation is an open database, with the app on it.
type installation struct {
	storage     config.Storage
	store       database
	app         *app.App
	at          func(now func() time.Time) *app.App // another app on the same database, with another clock
	fingerprint string                              // of the secret key
}

// storage returns the place of the data. It refuses --data for a SQLite database if the
// environment names another database: the command could change the wrong database.
func (s *session) storage() (config.Storage, error) {
	storage, err := config.NewStorage(s.flags.Data, s.flags.Database)
	if err == nil && storage.URL != "" && s.typed.data && !s.typed.database && storage.HoldsSQLite() {
		err = usageError(fmt.Sprintf("--data names %s, which holds a SQLite database, and PARLEY_DATABASE_URL names %s: unset PARLEY_DATABASE_URL to use the first, or give --database to use the second",
			storage.Dir, storage))
	}
	if err == nil && storage.URL == "" && s.flags.Media != "" {
		err = usageError("--media and PARLEY_MEDIA are for PostgreSQL: with SQLite, files lie beside the database")
	}
	storage.Media = s.flags.Media
	return storage, err
}

// onPostgres returns the place of the data, which must be a PostgreSQL database.
func (s *session) onPostgres() (config.Storage, error) {
	storage, err := s.storage()
	if err == nil && storage.URL == "" {
		err = usageError("give the database of the installation, with --database or PARLEY_DATABASE_URL")
	}
	return storage, err
}

// makeDir creates the data directory if it is missing and needed.
func makeDir(storage config.Storage) error {
	if storage.URL != "" && os.Getenv(secretEnv) != "" {
		return nil
	}
	if err := storage.MakeDir(); err != nil {
		return fmt.Errorf("data directory: %w; choose another with --data", err)
	}
	return nil
}

// The values of mayMake: whether a command creates a missing database (contract §1).
const (
	makes    = true
	makesNot = false
)

// fileLimits are numbers of bytes: the most of one file, the most of a workspace's files
// together (0: no limit), and the number that must stay free on the file system.
type fileLimits struct{ most, perWorkspace, keepFree int64 }

var defaultFileLimits = fileLimits{desk.DefaultMaxMedia, desk.DefaultMediaPerWorkspace, desk.DefaultKeepFree}

// open opens an installation and migrates it. If there is no installation, it makes one.
// With makesNot, it returns an error that wraps fs.ErrNotExist instead, and leaves
// nothing behind.
func open(ctx context.Context, storage config.Storage, log *slog.Logger, mayMake bool, webhooks poster.Config, rules desk.DeliveryRules, files fileLimits) (_ installation, err error) {
	if mayMake {
		err = makeDir(storage)
	} else {
		err = exists(ctx, storage)
	}
	if err != nil {
		return installation{}, err
	}
	secret, err := storage.Secret(os.Getenv(secretEnv), mayMake)
	if err != nil {
		return installation{}, err
	}
	store, err := openStore(ctx, storage, secret, log)
	if err != nil {
		return installation{}, err
	}
	if err := store.BindSecret(ctx, secret.Fingerprint()); err != nil {
		return installation{}, errors.Join(err, store.Close())
	}
	webhooks.Version = versionOf()
	posts, err := poster.New(webhooks)
	if err != nil {
		return installation{}, errors.Join(err, store.Close())
	}
	at := func(now func() time.Time) *app.App {
		return app.New(app.Deps{
			Store: store,
			Providers: map[desk.ChannelKind]provider.Provider{
				desk.SandboxChannel:  sandbox.New(sandbox.Config{Library: store, Files: store, Now: now, NewID: newID}),
				desk.WhatsAppChannel: newWhatsApp(now, log, posts, webhooks),
			},
			Answer:      api.SendAnswer,
			ReadContact: api.ReadContact,
			ReadRow:     api.ReadRow,
			ReadOptOut:  api.ReadOptOut,
			Now:         now,
			NewID:       newID,
			Random:      func(b []byte) { _, _ = rand.Read(b) }, // rand.Read never returns an error: it would end the process instead
			Secret:      secret[:],
			Log:         log,

			MaxMedia: files.most, MediaPerWorkspace: files.perWorkspace, KeepFree: files.keepFree,

			Poster:         appPoster{posts},
			Event:          api.Event,
			Deliveries:     rules,
			AddressRefused: posts.Refused,
			PlainHTTP:      len(webhooks.Allow) > 0,
		})
	}
	a := at(time.Now)
	if err := a.SealAnew(ctx); err != nil {
		return installation{}, errors.Join(err, store.Close())
	}
	return installation{storage, store, a, at, secret.Fingerprint()}, nil
}

// newWhatsApp makes the provider of WhatsApp channels. A tenant may set the address of
// the API. Then the provider connects only to addresses that webhooks may have.
func newWhatsApp(now func() time.Time, log *slog.Logger, posts *poster.Poster, webhooks poster.Config) *whatsapp.Provider {
	return whatsapp.New(whatsapp.Config{Now: now, Log: log, Dial: posts.Dial, Opened: len(webhooks.Allow) > 0})
}

// exists returns fs.ErrNotExist if there is no installation.
func exists(ctx context.Context, storage config.Storage) error {
	there := storage.HoldsSQLite()
	if storage.URL != "" {
		var err error
		if there, err = postgres.Exists(ctx, storage.URL); err != nil {
			return unopened(storage, err)
		}
	}
	if !there {
		return fs.ErrNotExist
	}
	return nil
}

func openStore(ctx context.Context, storage config.Storage, secret config.Secret, log *slog.Logger) (database, error) {
	if storage.URL == "" {
		return sqlite.Open(ctx, sqlite.Config{Path: storage.Database(), Log: log, Key: secret.Key("erased messages")})
	}
	s, err := postgres.Open(ctx, postgres.Config{URL: storage.URL, Media: storage.Media, MaxConns: storage.MaxConns(), Log: log, Key: secret.Key("erased messages"), Release: versionOf()})
	if err != nil {
		return nil, unopened(storage, err)
	}
	return s, nil
}

// unopened explains why a PostgreSQL database could not be opened.
func unopened(storage config.Storage, err error) error {
	if errors.As(err, new(*pgconn.ConnectError)) {
		return fmt.Errorf("open %s (does the server run, and is the URL in --database or PARLEY_DATABASE_URL right?): %w", storage, err)
	}
	return fmt.Errorf("open %s: %w", storage, err)
}

func init() {
	// Ids are made while data is written, so one read of randomness serves many ids.
	uuid.EnableRandPool()
}

// newID makes a UUIDv7. Of two ids of one process, the later one is greater.
func newID() desk.ID { return desk.ID(uuid.Must(uuid.NewV7())) }

// do runs an operator's action on the installation, whether or not a server is running.
func (s *session) do(ctx context.Context, action func(*app.App) error) error {
	return s.doOn(ctx, makesNot, action)
}

// doOn is like do. With makes, it makes the installation if there is none.
func (s *session) doOn(ctx context.Context, mayMake bool, action func(*app.App) error) error {
	return s.on(ctx, mayMake, func(in installation, _ *slog.Logger) error { return action(in.app) })
}

// on opens the installation for an action.
func (s *session) on(ctx context.Context, mayMake bool, action func(installation, *slog.Logger) error) (err error) {
	storage, err := s.storage()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	in, err := open(ctx, storage, log, mayMake, s.webhooks, desk.DefaultDeliveryRules(), defaultFileLimits)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no parley installation: name the right one with --data or --database, or make one with %s",
			storage, s.command("workspace create --name NAME"))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.store.Close()) }()
	return action(in, log)
}

// inWorkspace runs an operator's action in the workspace with this id.
func (s *session) inWorkspace(ctx context.Context, id string, action func(*app.App, desk.Principal) error) error {
	return s.do(ctx, func(a *app.App) error {
		p, err := a.Operator(ctx, idOf(id))
		if err != nil {
			return s.unknownWorkspace(err, id)
		}
		return action(a, p)
	})
}

// onRecord runs an operator's action in the workspace of a member, key, channel or
// webhook. If there is no such record, the function unknown makes the error.
func (s *session) onRecord(ctx context.Context, id string, unknown func(error, string) error, action func(*app.App, desk.Principal) error) error {
	return s.do(ctx, func(a *app.App) error {
		p, err := a.OperatorOf(ctx, idOf(id))
		if err == nil {
			err = action(a, p)
		}
		return unknown(err, id)
	})
}

// idOf reads an id. An invalid text becomes the zero id, which no record has. So the
// error is the same as for an unknown id.
func idOf(text string) desk.ID {
	id, _ := desk.ParseID(text)
	return id
}

// unknown returns the error for an id that was not found. It says which command lists the
// right ids. It also names the database, because a wrong database is a common cause.
func (s *session) unknown(err error, what, id, shownBy string) error {
	if !desk.IsType(err, desk.NotFound) {
		return err
	}
	storage, err := config.NewStorage(s.flags.Data, s.flags.Database)
	if err != nil {
		return err
	}
	return fmt.Errorf("no %s has the id %q in %s; %s shows them", what, id, storage, s.command("%s", shownBy))
}

func (s *session) unknownWorkspace(err error, id string) error {
	return s.unknown(err, "workspace", id, "workspace list")
}

// version is set when a release is built: -ldflags '-X main.version=v1.2.3'.
var version string

// versionOf returns the binary's version. A build without the flag has the version that
// Go derives from the commit.
func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
