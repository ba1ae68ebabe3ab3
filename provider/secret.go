package provider

import (
	"fmt"
	"io"
	"log/slog"

	"parley/desk"
)

// An Access is a channel with its secrets.
type Access struct {
	Workspace desk.ID
	Channel   *desk.Channel
	Secrets   Secrets
}

// Secrets are the secrets of a channel at its provider. The provider's CheckAccount checks
// that the secrets which it needs are set.
type Secrets struct {
	Token        Secret // for the API
	AppSecret    Secret // signs callbacks
	OldAppSecret Secret // the previous one, which may still sign
	OldUntil     desk.Time
	VerifyToken  Secret // answers the handshake of the callback URL
}

// A Secret is a text that is never printed, logged or made into JSON.
type Secret struct{ text string }

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for sending it to the provider.
func (s Secret) Reveal() string { return s.text }

const hidden = "(secret)"

// Format hides the text for every verb; LogValue and MarshalText do the same.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// SameApp tells whether both channels have an app secret in common. Old app secrets also
// count, because a secret is replaced on one channel after the other.
func (s Secrets) SameApp(other Secrets) bool {
	for _, a := range [2]Secret{s.AppSecret, s.OldAppSecret} {
		if a != (Secret{}) && (a == other.AppSecret || a == other.OldAppSecret) {
			return true
		}
	}
	return false
}

// Replaced returns the secrets after a change: each secret that is not empty in by replaces
// the old one. The previous app secret stays valid until oldUntil, because the provider
// repeats callbacks that it has signed with it.
func (s Secrets) Replaced(by Secrets, oldUntil desk.Time) Secrets {
	if by.Token != (Secret{}) {
		s.Token = by.Token
	}
	if by.AppSecret != (Secret{}) {
		if s.AppSecret != by.AppSecret {
			s.OldAppSecret, s.OldUntil = s.AppSecret, oldUntil
		}
		s.AppSecret = by.AppSecret
	}
	if by.VerifyToken != (Secret{}) {
		s.VerifyToken = by.VerifyToken
	}
	return s
}
