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
	"runtime"
	"strings"
)

// A Secret is an installation's secret key. Values that were signed or encrypted with it
// can only be read with the same key, so an installation always keeps its first key.
type Secret [32]byte

var errSecret = errors.New("the secret key must be 32 bytes, written as 64 hexadecimal digits or in base64; openssl rand -hex 32 makes one")

// ParseSecret reads the text of a secret key: 32 bytes in hex or base64, with or
// without padding, in the standard or the URL alphabet. Its error never contains the
// text.
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

// Fingerprint identifies the key without revealing it.
func (s Secret) Fingerprint() string {
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte("fingerprint"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// Key derives a key for one purpose.
func (s Secret) Key(purpose string) []byte {
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// Secret returns the installation's key. text is the value of PARLEY_SECRET_KEY. If it is
// empty, the key is read from secret.key in the data directory. For a new installation
// this file is created if mayMake is set. Processes that do this at the same time all get
// the same key.
func (s Storage) Secret(text string, mayMake bool) (Secret, error) {
	if text != "" {
		secret, err := ParseSecret(text)
		if err != nil {
			return Secret{}, fmt.Errorf("PARLEY_SECRET_KEY: %w", err)
		}
		return secret, nil
	}
	// An installation's key is created before its database. So a database without a key is
	// not a new installation: its key is somewhere else. The database must be checked
	// before the key. Otherwise another process could create both between the two checks,
	// and its installation would look like one without a key. A PostgreSQL database is
	// opened later, and its fingerprint of the key is compared then.
	_, err := os.Stat(s.Database())
	old := err == nil && s.URL == ""
	secret, err := s.readSecret()
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if old {
		return Secret{}, fmt.Errorf("%s holds a database but no secret.key: set PARLEY_SECRET_KEY to the key it was made with, or bring back %s", s.Dir, s.secretFile())
	}
	if !mayMake {
		return Secret{}, fmt.Errorf("there is no %s: set PARLEY_SECRET_KEY to the key that %s was made with, or name the directory that has it with --data", s.secretFile(), s)
	}
	var fresh Secret
	_, _ = rand.Read(fresh[:]) // never fails: it would crash the process instead
	err = WriteNew(s.secretFile(), []byte(hex.EncodeToString(fresh[:])+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Secret{}, fmt.Errorf("make the secret key (PARLEY_SECRET_KEY can hold it instead): %w", err)
	}
	return s.readSecret() // another process may have been first
}

func (s Storage) readSecret() (Secret, error) {
	info, err := os.Stat(s.secretFile())
	if err != nil {
		return Secret{}, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // Windows has no such bits
		return Secret{}, fmt.Errorf("other users of this machine can read %s, and with it they could open every secret of the installation: chmod 600 %[1]s", s.secretFile())
	}
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
