// Package vault encrypts secrets before they are stored, with AES-256-GCM.
package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// A Vault encrypts and decrypts. Its methods are safe for concurrent use.
type Vault struct {
	aead   cipher.AEAD
	random func([]byte)
}

// New returns a Vault with a key of 32 bytes. random fills with random bytes.
func New(key []byte, random func([]byte)) *Vault {
	block, err := aes.NewCipher(key)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCM(block); err == nil {
			return &Vault{aead, random}
		}
	}
	panic(err) // the key does not have 32 bytes
}

// Encrypt returns a text that only Decrypt with the same bound can read.
func (v *Vault) Encrypt(plain, bound []byte) []byte {
	nonce := make([]byte, v.aead.NonceSize())
	v.random(nonce)
	return v.aead.Seal(nonce, nonce, plain, bound)
}

// Decrypt returns the plain text of a text that Encrypt has made.
func (v *Vault) Decrypt(sealed, bound []byte) ([]byte, error) {
	size := v.aead.NonceSize()
	if len(sealed) < size {
		return nil, errors.New("they are cut short")
	}
	return v.aead.Open(nil, sealed[:size], sealed[size:], bound)
}
