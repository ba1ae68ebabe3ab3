package config

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// A Secret is an installation's secret key. What it signs or encrypts can be read
// with the same key only, so an installation keeps the one it was made with.
type Secret [32]byte

var errSecret = errors.New("the secret key must be 32 bytes, written as 64 hexadecimal digits or in base64; openssl rand -hex 32 makes one")

// ParseSecret reads the text of a secret key: 32 bytes in hex or base64, with or
// without padding, of either alphabet. Its error never repeats the text.
func ParseSecret(text string) (s Secret, err error) {
	text = strings.TrimSpace(text)
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(s) {
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
		b, err = base64.RawStdEncoding.DecodeString(plain)
	}
	if err != nil || len(b) != len(s) {
		return Secret{}, errSecret
	}
	copy(s[:], b)
	return s, nil
}

// Fingerprint names the key without giving anything of it away.
func (s Secret) Fingerprint() string {
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte("fingerprint"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// Secret returns the installation's key: from text, the value of
// PARLEY_SECRET_KEY, when there is one, else from secret.key in the data
// directory, which it makes for a new installation. Any number of processes may
// ask at once, and all get the same key.
func (s Storage) Secret(text string) (Secret, error) {
	if text != "" {
		secret, err := ParseSecret(text)
		if err != nil {
			return Secret{}, fmt.Errorf("PARLEY_SECRET_KEY: %w", err)
		}
		return secret, nil
	}
	// Whoever makes an installation makes the key before the database. So a database
	// without a key is no new installation: its key is somewhere else. This is looked
	// at first, or a process that makes both meanwhile would look like one. PostgreSQL
	// is looked into only later; there the fingerprint tells.
	_, err := os.Stat(s.Database())
	old := err == nil && s.URL == ""
	secret, err := s.readSecret()
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if old {
		return Secret{}, fmt.Errorf("%s holds a database but no secret.key: set PARLEY_SECRET_KEY to the key it was made with, or bring back %s", s.Dir, s.secretFile())
	}
	var fresh Secret
	_, _ = rand.Read(fresh[:]) // never fails: it would end the process instead
	err = WriteNew(s.secretFile(), []byte(hex.EncodeToString(fresh[:])+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Secret{}, fmt.Errorf("make the secret key (PARLEY_SECRET_KEY can hold it instead): %w", err)
	}
	return s.readSecret() // another process may have been first
}

func (s Storage) readSecret() (Secret, error) {
	b, err := os.ReadFile(s.secretFile())
	if err != nil {
		return Secret{}, err
	}
	secret, err := ParseSecret(string(b))
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", s.secretFile(), err)
	}
	return secret, nil
}
