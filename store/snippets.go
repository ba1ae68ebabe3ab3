package store

import (
	"context"

	"parley/desk"
)

// Snippets keeps snippets.
type Snippets interface {
	// Snippets lists the snippets of a workspace by shortcut.
	Snippets(ctx context.Context, ws desk.ID) ([]desk.Snippet, error)
}

// A SnippetTx reads and writes snippets.
type SnippetTx interface {
	// Snippet returns the snippet with a shortcut, and the number of snippets in the
	// workspace. Until this transaction ends, other transactions that call Snippet for the
	// workspace wait.
	Snippet(shortcut string) (s *desk.Snippet, count int, err error)
	PutSnippet(desk.Snippet) error
	DropSnippet(shortcut string) error
}
