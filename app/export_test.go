package app

import (
	"context"
	"encoding/base64"

	"parley/desk"
	"parley/provider"

	"golang.org/x/crypto/argon2"
)

// FailedLooked is failedLooked.
const FailedLooked = failedLooked

// ErrLeaseLost is errLeaseLost.
var ErrLeaseLost = errLeaseLost

// HashOf is the hash of a password with a salt, as an older release stored it.
func HashOf(password, salt string) string {
	key := argon2.IDKey([]byte(password), []byte(salt), 2, 19456, 1, 32)
	text := base64.RawStdEncoding.EncodeToString
	return "$argon2id$v=19$m=19456,t=2,p=1$" + text([]byte(salt)) + "$" + text(key)
}

// HandOver gives a file to the provider of a channel.
func (a *App) HandOver(ctx context.Context, at provider.Access, talker provider.Talker, m *desk.Media) (string, error) {
	return a.handOver(ctx, at, talker, m)
}

// SendAutoReply sends the next automatic reply of a workspace, if one is due.
func (a *App) SendAutoReply(ctx context.Context, ws desk.ID) (bool, error) {
	return a.sendAutoReply(ctx, ws)
}

// AssignSome assigns waiting conversations of a workspace.
func (a *App) AssignSome(ctx context.Context, ws desk.ID) (bool, error) {
	return a.assignSome(ctx, ws)
}

// EnterTransfer takes a slot of the uploads and downloads under way.
func (a *App) EnterTransfer(ctx context.Context, ws desk.ID) (leave func(), err error) {
	return a.transfers.enter(ctx, ws)
}

// FetchesDue are the workspaces whose files are fetched now.
func (a *App) FetchesDue(ctx context.Context) ([]desk.ID, error) { return a.fetchesDue(ctx) }

// FetchNext fetches the next file of a workspace.
func (a *App) FetchNext(ctx context.Context, ws desk.ID) (bool, error) { return a.fetchNext(ctx, ws) }
