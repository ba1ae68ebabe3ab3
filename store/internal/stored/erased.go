package stored

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"

	"parley/desk"
)

// An ErasedHash stands for a message of a deleted person.
type ErasedHash [16]byte

// HashErased returns a keyed hash of a workspace, a channel and a message's id at the
// provider. It is a hash because the provider's id may contain the person's number.
func HashErased(key []byte, ws desk.ID, m desk.MessageRef) (h ErasedHash) {
	mac := hmac.New(sha256.New, key)
	mac.Write(ws[:])
	mac.Write(m.Channel[:])
	mac.Write([]byte(m.ExternalID))
	var sum [sha256.Size]byte
	copy(h[:], mac.Sum(sum[:0]))
	return h
}

// SortErased sorts hashes: rows are stored faster in the order of their keys.
func SortErased(list []ErasedHash) {
	slices.SortFunc(list, func(a, b ErasedHash) int { return slices.Compare(a[:], b[:]) })
}

// ErasedPage is how many messages of deleted people are read in one step.
const ErasedPage = 1000
