// Package cursors signs positions in lists: a client can keep a cursor but not make one.
package cursors

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"parley/desk"
)

// macLength is how many bytes of the HMAC a cursor has.
const macLength = 16

// A Sealer seals positions in lists. Every process with the same secret key can open them.
type Sealer struct{ key []byte }

// NewSealer returns a Sealer with a key.
func NewSealer(key []byte) Sealer { return Sealer{key} }

// A List has everything to which a cursor is bound: the workspace, the list and the
// filters. A cursor is not bound to the page size.
type List struct {
	Workspace    desk.ID
	Name, Filter string
}

func (c Sealer) sign(l List, place []byte) []byte {
	mac := hmac.New(sha256.New, c.key)
	_, _ = fmt.Fprintf(mac, "%s %q %q ", l.Workspace, l.Name, l.Filter)
	mac.Write(place)
	return mac.Sum(nil)[:macLength]
}

// Seal returns the cursor of a position in a list.
func (c Sealer) Seal(l List, place []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(c.sign(l, place), place...))
}

// Open returns the position that was sealed for the same list, or InvalidRequest for
// any other string.
func (c Sealer) Open(l List, cursor string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || strings.ContainsAny(cursor, "\r\n") || // the decoder ignores these characters
		len(b) < macLength || !hmac.Equal(b[:macLength], c.sign(l, b[macLength:])) {
		return nil, desk.InvalidAt("/cursor", "this service did not give it out for this list with these filters; start again without a cursor")
	}
	return b[macLength:], nil
}

// SealID returns the cursor of a list whose positions are ids, or "" if there is no next
// page.
func (c Sealer) SealID(l List, next *desk.ID) string {
	if next == nil {
		return ""
	}
	return c.Seal(l, next[:])
}

// OpenID returns the id that SealID sealed, or nil for "", which is the first page.
func (c Sealer) OpenID(l List, cursor string) (*desk.ID, error) {
	if cursor == "" {
		return nil, nil
	}
	place, err := c.Open(l, cursor)
	if err != nil {
		return nil, err
	}
	return (*desk.ID)(place), nil
}
