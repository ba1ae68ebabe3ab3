package desk

import (
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"strings"
)

// The text of an API key (contract §7): the prefix, 10 characters that identify the
// key, "_", 32 of secret, and 6 of CRC-32 over everything before, so that a scanner can
// recognise real keys.
const (
	keyPrefix    = "prl_live_"
	publicLength = 10
	secretLength = 32
	crcLength    = 6
	keyLength    = len(keyPrefix) + publicLength + 1 + secretLength + crcLength
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// A Credential has the parts of a key that a caller sent: the key's public id, and the hash
// of its secret.
type Credential struct {
	PublicID string
	hash     [32]byte
}

// Proves tells whether the credential's secret is that of the key k. It compares in
// constant time.
func (c Credential) Proves(k *APIKey) bool {
	return subtle.ConstantTimeCompare(c.hash[:], k.SecretHash[:]) == 1
}

// NewKey makes a key's text and its credential from random bytes. It uses 42 of them,
// and skips bytes that would favour some characters, so pass more. ok is false if there
// were too few.
func NewKey(random []byte) (text string, c Credential, ok bool) {
	var b strings.Builder
	b.WriteString(keyPrefix)
	for _, r := range random {
		if b.Len() == len(keyPrefix)+publicLength {
			b.WriteByte('_')
		}
		if b.Len() == keyLength-crcLength {
			break
		}
		if int(r) < 256/len(base62)*len(base62) {
			b.WriteByte(base62[int(r)%len(base62)])
		}
	}
	if b.Len() != keyLength-crcLength {
		return "", Credential{}, false
	}
	text = b.String() + keyChecksum(b.String())
	c, ok = ParseKey(text)
	return text, c, ok
}

// ParseKey reads the text of a key. It returns false for a text that can't be a key.
func ParseKey(s string) (Credential, bool) {
	if len(s) != keyLength || !strings.HasPrefix(s, keyPrefix) {
		return Credential{}, false
	}
	body, crc := s[:keyLength-crcLength], s[keyLength-crcLength:]
	if keyChecksum(body) != crc {
		return Credential{}, false
	}
	public, secret, ok := strings.Cut(body[len(keyPrefix):], "_")
	if !ok || len(public) != publicLength || !isBase62(public) || !isBase62(secret) {
		return Credential{}, false
	}
	return Credential{PublicID: public, hash: sha256.Sum256([]byte(secret))}, true
}

func isBase62(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !isDigit(s[i]) && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Hash is the stored hash of the secret.
func (c Credential) Hash() [32]byte { return c.hash }

func keyChecksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var b [crcLength]byte
	for i := crcLength - 1; i >= 0; i-- {
		b[i] = base62[sum%62]
		sum /= 62
	}
	return string(b[:])
}

// An APIKey is the record of a credential. Only a hash of the secret is stored.
type APIKey struct {
	ID          ID
	PublicID    string // the part of the key that identifies it
	Name        string
	Permissions []Permission
	SecretHash  [32]byte
	CreatedAt   Time
	ExpiresAt   Time // 0: never
	RevokedAt   Time // 0: not revoked
}

// Valid tells whether the key may be used at now.
func (k *APIKey) Valid(now Time) bool {
	return k.RevokedAt == 0 && (k.ExpiresAt == 0 || now < k.ExpiresAt)
}
