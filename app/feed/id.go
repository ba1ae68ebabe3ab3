package feed

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"parley/desk"
)

// The id of an event is evt_ and 32 characters: its number, its tag, and a signature that
// binds both to the workspace (contract-events §1). Its byte order is the order of the
// numbers. It is also the cursor of the place after the event.
const (
	eventIDPrefix = "evt_"
	eventIDPlace  = 6 + 6 // bytes of number and tag
	eventIDLength = eventIDPlace + 8
)

var eventIDText = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// EventID returns the id of the event at a place.
func (a *Service) EventID(ws desk.ID, place desk.EventPlace) string {
	id := binary.BigEndian.AppendUint64(nil, uint64(place.Seq)<<16)[:6]
	id = append(id, binary.BigEndian.AppendUint64(nil, uint64(place.Tag)<<16)[:6]...)
	return eventIDPrefix + eventIDText.EncodeToString(append(id, a.signEvent(ws, id)...))
}

func (a *Service) signEvent(ws desk.ID, place []byte) []byte {
	mac := hmac.New(sha256.New, a.Key)
	mac.Write(ws[:])
	mac.Write(place)
	return mac.Sum(nil)[:eventIDLength-eventIDPlace]
}

// EventPlace returns the place of an event's id; ok is false for a text that is not an id of
// an event of the workspace.
func (a *Service) EventPlace(ws desk.ID, id string) (place desk.EventPlace, ok bool) {
	text, found := strings.CutPrefix(id, eventIDPrefix)
	b, err := eventIDText.DecodeString(text)
	if !found || err != nil || len(b) != eventIDLength || len(text) != eventIDText.EncodedLen(eventIDLength) || !hmac.Equal(b[eventIDPlace:], a.signEvent(ws, b[:eventIDPlace])) {
		return place, false
	}
	number := func(b []byte) int64 { return int64(binary.BigEndian.Uint64(append([]byte{0, 0}, b...))) }
	return desk.EventPlace{Seq: number(b[:6]), Tag: number(b[6:12])}, true
}
