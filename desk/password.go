package desk

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// How many characters a password has.
const (
	MinPassword = 15
	MaxPassword = 256
)

// How often passwords may be tried, also with success. A member's changes of the password have
// the limits of an e-mail.
const (
	SignInTries  = 5 // for an e-mail, and then one in SignInEvery
	SignInEvery  = 30 * time.Second
	AddressTries = 20 // from an address, and then one in AddressEvery
	AddressEvery = 5 * time.Second
)

// NormalPassword is a password as it is hashed: keyboards differ in how they compose
// characters.
func NormalPassword(s string) string { return norm.NFC.String(s) }

// ParsePassword checks a new password of a member with this e-mail, and returns it in
// normal form. It may have any characters.
func ParsePassword(s, email string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("it is not valid text")
	}
	s = NormalPassword(s)
	switch n := utf8.RuneCountInString(s); {
	case n < MinPassword:
		return "", fmt.Errorf("use at least %d characters; a few words do", MinPassword)
	case n > MaxPassword:
		return "", fmt.Errorf("use at most %d characters", MaxPassword)
	case CanonicalEmail(strings.TrimSpace(s)) == CanonicalEmail(email):
		return "", errors.New("use something else than your e-mail")
	}
	return s, nil
}
