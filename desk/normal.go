package desk

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the normal forms (contract §3). Characters are Unicode code points,
// counted after trimming.
const (
	MaxEmail  = 254 // bytes
	MaxHandle = 255 // characters of an external id, or of an identity of any other kind
	MaxName   = 255 // characters
	MaxNote   = 10_000
)

// The errors of this file are fragments that follow a JSON pointer and a colon. None
// repeats the value, because they are logged and logs contain no personal data.

// ParseKind accepts the name of an identity's kind, [a-z][a-z0-9_]{0,31}.
func ParseKind(s string) error {
	if !isWord(s, 32) {
		return errors.New("a kind is a lower-case letter and up to 31 lower-case letters, digits or _")
	}
	return nil
}

// isWord tells whether s is [a-z][a-z0-9_]* of at most limit bytes.
func isWord(s string, limit int) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || !isDigit(c) && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

// ParseExternalID returns the caller's own id, trimmed: 1 to 255 characters, none of
// them a format character.
func ParseExternalID(s string) (string, error) {
	s, err := parseText(s, "an external id", 1, MaxHandle)
	if err == nil {
		err = checkFormat(s)
	}
	if err != nil {
		return "", err
	}
	return s, nil
}

// ParseName returns a name, trimmed: at most 255 characters. An empty name clears the
// field.
func ParseName(s string) (string, error) { return parseText(s, "a name", 0, MaxName) }

// ParseNote returns a note, trimmed: at most 10,000 characters. An empty note clears the
// field.
func ParseNote(s string) (string, error) { return parseText(s, "a note", 0, MaxNote) }

// parseText trims s and checks its number of characters. Errors name the field with the
// text in what.
func parseText(s, what string, least, most int) (string, error) {
	s = strings.TrimSpace(s)
	if err := checkStorable(s); err != nil {
		return "", err
	}
	n := len(s)
	if n > most { // n bytes are at most n characters
		n = utf8.RuneCountInString(s)
	}
	switch {
	case n >= least && n <= most && (least == 0 || !Blank(s)):
		return s, nil
	case least == 0:
		return "", fmt.Errorf("%s has at most %d characters, this one has %d", what, most, n)
	}
	if n <= most {
		n = 0 // the text has only invisible characters
	}
	return "", fmt.Errorf("%s has %d to %d characters, this one has %d", what, least, most, n)
}

// checkStorable refuses texts that a database refuses, so that no write fails later for
// that reason.
func checkStorable(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("the text holds U+0000, which can't be stored")
	}
	if !utf8.ValidString(s) {
		return errors.New("the text is not valid UTF-8")
	}
	return nil
}

// ParseEmail returns an e-mail as it was sent, trimmed: one @ with something on
// both sides, no white space, control or format characters, at most 254 bytes, and no
// dot at the end.
func ParseEmail(s string) (string, error) {
	s = strings.TrimSpace(s)
	if err := checkStorable(s); err != nil {
		return "", err
	}
	if len(s) > MaxEmail {
		return "", fmt.Errorf("an e-mail has at most %d bytes, this one has %d", MaxEmail, len(s))
	}
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return "", errors.New("an e-mail holds no spaces or control characters, this one does")
		}
	}
	local, domain, _ := strings.Cut(s, "@")
	if local == "" || domain == "" || strings.Contains(domain, "@") {
		return "", errors.New("an e-mail has one @ with something on both sides")
	}
	if err := checkEmail(s); err != nil {
		return "", err
	}
	return s, nil
}
