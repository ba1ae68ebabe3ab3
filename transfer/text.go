package transfer

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"parley/desk"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/transform"
)

// errEncoding is returned for bytes that are not of the file's encoding.
var errEncoding = errors.New("bytes of another encoding")

// runes are the characters of a file.
type runes interface {
	// next returns the next character, io.EOF at the end, or errEncoding.
	next() (rune, error)
}

// textOf returns the characters of a file, after its byte order mark. Without one, the
// encoding is the label's (as the web names encodings), or UTF-8. named is the encoding.
func textOf(r io.Reader, label string) (text runes, named string, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, _ := b.Peek(3) // fewer at the end of the file
	switch {
	case len(head) >= 3 && head[0] == 0xEF && head[1] == 0xBB && head[2] == 0xBF:
		_, _ = b.Discard(3)
		return utf8Text{b}, "utf-8", nil
	case len(head) >= 2 && head[0] == 0xFF && head[1] == 0xFE:
		_, _ = b.Discard(2)
		return &utf16Text{b: b, high: 1}, "utf-16le", nil
	case len(head) >= 2 && head[0] == 0xFE && head[1] == 0xFF:
		_, _ = b.Discard(2)
		return &utf16Text{b: b, high: 0}, "utf-16be", nil
	case label == "":
		return utf8Text{b}, "utf-8", nil
	}
	from, err := htmlindex.Get(label)
	if err != nil || from == encoding.Replacement { // the web reads no text of these labels
		return nil, "", desk.InvalidAt("/encoding", "no encoding has the name %s; names are such as utf-8, windows-1252 and windows-1254", desk.Quote(label))
	}
	if named, err = htmlindex.Name(from); err != nil {
		return nil, "", err
	}
	switch named {
	case "utf-8":
		return utf8Text{b}, named, nil
	case "utf-16le":
		return &utf16Text{b: b, high: 1}, named, nil
	case "utf-16be":
		return &utf16Text{b: b, high: 0}, named, nil
	}
	if from == simplifiedchinese.GBK {
		from = simplifiedchinese.GB18030 // so the web reads it: it has all of GBK
	}
	return legacyText{bufio.NewReader(transform.NewReader(b, from.NewDecoder()))}, named, nil
}

type utf8Text struct{ b *bufio.Reader }

func (t utf8Text) next() (rune, error) {
	r, size, err := t.b.ReadRune()
	if r == utf8.RuneError && size == 1 {
		return 0, errEncoding
	}
	return r, err
}

// A utf16Text has its more significant byte at high.
type utf16Text struct {
	b    *bufio.Reader
	high int
}

func (t *utf16Text) unit() (rune, error) {
	var pair [2]byte
	n, err := io.ReadFull(t.b, pair[:])
	if n == 1 {
		return 0, errEncoding
	}
	return rune(pair[t.high])<<8 | rune(pair[1-t.high]), err
}

func (t *utf16Text) next() (rune, error) {
	r, err := t.unit()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	low, err := t.unit()
	if r = utf16.DecodeRune(r, low); err != nil || r == utf8.RuneError {
		return 0, errEncoding
	}
	return r, nil
}

// A legacyText is of an encoding that has no U+FFFD: its decoder puts this character for
// bytes that mean nothing.
type legacyText struct{ b *bufio.Reader }

func (t legacyText) next() (rune, error) {
	r, _, err := t.b.ReadRune()
	if err == nil && r == utf8.RuneError {
		return 0, errEncoding
	}
	return r, err
}
