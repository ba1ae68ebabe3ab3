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

// How often passwords may be tried, including successful tries. For one e-mail: SignInTries
// at once, and after these one try in each SignInEvery. From one address: AddressTries at
// once, and after these one try in each AddressEvery. The limits of an e-mail also apply
// when a member changes the password.
const (
	SignInTries, SignInEvery   = 5, 30 * time.Second
	AddressTries, AddressEvery = 20, 5 * time.Second
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
