package app

import (
	"context"
	"errors"
	"time"

	"parley/desk"
)

// ErrOwns is returned by a Store asked to remove a member who still owns contacts.
var ErrOwns = errors.New("the member still owns contacts")

// Deps are what an App is built from. All are required.
type Deps struct {
	Store  Store
	Now    func() time.Time // the clock
	NewID  func() desk.ID   // new ids; they grow with time
	Random func([]byte)     // fills with unguessable bytes
	Secret []byte           // the installation's secret key, 32 bytes
}

// An App carries out user actions against a store.
type App struct {
	store   Store
	clock   func() time.Time
	newID   func() desk.ID
	random  func([]byte)
	writer  *writer
	cursors cursors
	known   known
}

// New builds an App.
func New(d Deps) *App {
	a := &App{store: d.Store, clock: d.Now, newID: d.NewID, random: d.Random, cursors: newCursors(d.Secret)}
	a.writer = &writer{store: d.Store, now: a.now, newID: d.NewID, lanes: map[desk.ID]*lane{}}
	return a
}

func (a *App) now() desk.Time { return desk.TimeOf(a.clock()) }

// NewID returns a new id.
func (a *App) NewID() desk.ID { return a.newID() }

// Ready tells whether the database can answer now.
func (a *App) Ready(ctx context.Context) error { return a.store.Ready(ctx) }
