package desk

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

func checkDigits(digits string) error {
	if n := len(digits); n < MinPhoneDigits || n > MaxPhoneDigits {
		return digitsError(n)
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isDigits tells whether all bytes of s are digits. The empty string has only digits.
func isDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

func fullDigits(n *phonenumbers.PhoneNumber) string {
	return strings.TrimPrefix(phonenumbers.Format(n, phonenumbers.E164), "+")
}
