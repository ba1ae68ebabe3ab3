// Package segments finds the contacts that fit a filter, and keeps filters with names.
//
//	segments.go  the Service
//	find.go      contacts that fit
package segments

import (
	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store   store.Store
	Cursors cursors.Sealer
	Now     func() desk.Time
}

// A Service keeps segments. Its methods are safe for concurrent use.
type Service struct{ Deps }

// New builds a Service.
func New(d Deps) *Service { return &Service{d} }
