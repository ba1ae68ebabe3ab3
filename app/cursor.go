package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"parley/desk"
)

// macLength is how much of the HMAC a cursor carries, in bytes.
const macLength = 16

// cursors seals positions in lists: a client can keep a cursor but not make one. Every
// process with the same secret key can open it.
type cursors struct{ key []byte }

// A cursorList is what a cursor is bound to: the workspace, the list and the filters.
// The page size is not part of it.
type cursorList struct {
	workspace    desk.ID
	name, filter string
}

func (c cursors) sign(l cursorList, place []byte) []byte {
	mac := hmac.New(sha256.New, c.key)
	_, _ = fmt.Fprintf(mac, "%s %q %q ", l.workspace, l.name, l.filter)
	mac.Write(place)
	return mac.Sum(nil)[:macLength]
}

// seal returns the cursor of a position in a list.
func (c cursors) seal(l cursorList, place []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(c.sign(l, place), place...))
}

// open returns the position that was sealed for the same list, or InvalidRequest for
// any other string.
func (c cursors) open(l cursorList, cursor string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || strings.ContainsAny(cursor, "\r\n") || // the decoder ignores these characters
		len(b) < macLength || !hmac.Equal(b[:macLength], c.sign(l, b[macLength:])) {
		return nil, desk.InvalidAt("/cursor", "this service did not give it out for this list with these filters; start again without a cursor")
	}
	return b[macLength:], nil
}
