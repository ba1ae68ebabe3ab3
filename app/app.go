package app

import (
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"parley/desk"
)

// ErrOwns is returned by a Store asked to remove a member who still owns contacts or
// holds open conversations.
var ErrOwns = errors.New("the member still owns contacts or holds open conversations")

// Deps are what an App is built from. All are required, save for Bounds.
type Deps struct {
	Store     Store
	Providers map[desk.ChannelKind]Provider
	Answer    func(*desk.SentMessage) []byte // renders the answer to a send, which is stored
	Now       func() time.Time               // the clock
	NewID     func() desk.ID                 // new ids; they grow with time
	Random    func([]byte)                   // fills with unguessable bytes
	Secret    []byte                         // the installation's secret key, 32 bytes
	Log       *slog.Logger
	Bounds    Bounds // of a send; what is 0 gets its default
}

// An App carries out user actions against a store.
type App struct {
	store     Store
	providers map[desk.ChannelKind]Provider
	answer    func(*desk.SentMessage) []byte
	clock     func() time.Time
	newID     func() desk.ID
	random    func([]byte)
	secret    []byte
	log       *slog.Logger
	bounds    Bounds
	writer    *writer
	cursors   cursors
	vault     cipher.AEAD // of channels' secrets
	known     known
	libraries libraries
	flights   flights
	claims    claims
	agenda    agenda
	readings  readings
	stale     stale
	drained   chan struct{} // closed by Drain
	drain     sync.Once
	insisting sync.WaitGroup // what is repeated until it is stored
	stopped   chan struct{}  // closed when Run ends
}

// New builds an App.
func New(d Deps) *App {
	a := &App{
		store: d.Store, providers: d.Providers, answer: d.Answer, clock: d.Now, newID: d.NewID, random: d.Random,
		secret: d.Secret, log: d.Log, bounds: d.Bounds.orDefaults(), drained: make(chan struct{}), stopped: make(chan struct{}),
	}
	a.cursors = cursors{a.derive("cursor")}
	a.vault = newVault(a.derive("channel secrets"))
	a.writer = &writer{store: d.Store, now: a.now, newID: d.NewID, lanes: map[desk.ID]*lane{}}
	a.agenda.changed, a.stale.changed = make(chan struct{}, 1), make(chan struct{}, 1)
	return a
}

// caught makes a panic of what is being done into its error. It is deferred.
func caught(doing string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: panic: %v\n%s", doing, p, debug.Stack())
	}
}

// derive returns the key for one purpose.
func (a *App) derive(purpose string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, a.secret)
	mac.Write([]byte(purpose))
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

func (a *App) now() desk.Time { return desk.TimeOf(a.clock()) }

// NewID returns a new id.
func (a *App) NewID() desk.ID { return a.newID() }

// Ready tells whether the database can answer now.
func (a *App) Ready(ctx context.Context) error { return a.store.Ready(ctx) }

// Drain tells calls that wait for another call's send to give up now.
func (a *App) Drain() { a.drain.Do(func() { close(a.drained) }) }
