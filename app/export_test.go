package app

import (
	"context"
	"encoding/base64"

	"parley/desk"

	"golang.org/x/crypto/argon2"
)

// FailedLooked exports failedLooked for tests.
const FailedLooked = failedLooked

// HashOf returns the hash of a password with a salt, as an older release stored it.
func HashOf(password, salt string) string {
	key := argon2.IDKey([]byte(password), []byte(salt), 2, 19456, 1, 32)
	text := base64.RawStdEncoding.EncodeToString
	return "$argon2id$v=19$m=19456,t=2,p=1$" + text([]byte(salt)) + "$" + text(key)
}

// SendAutoReply exports sendAutoReply for tests.
func (a *App) SendAutoReply(ctx context.Context, ws desk.ID) (bool, error) {
	return a.sendAutoReply(ctx, ws)
}

// AssignSome exports assignSome for tests.
func (a *App) AssignSome(ctx context.Context, ws desk.ID) (bool, error) {
	return a.assignSome(ctx, ws)
}
