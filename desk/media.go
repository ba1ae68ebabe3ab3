package desk

import (
	"bytes"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A MediaStatus says whether a file's bytes are available.
type MediaStatus string

// The statuses of media.
const (
	MediaPending MediaStatus = "pending" // not yet fetched from the provider
	MediaReady   MediaStatus = "ready"
	MediaFailed  MediaStatus = "failed" // the file could not be fetched: see the reason
	MediaDeleted MediaStatus = "deleted"
)

// A MediaReason says why a file could not be fetched.
type MediaReason string

// The reasons.
const (
	MediaGone     MediaReason = "gone"      // the provider no longer has the file
	MediaTooLarge MediaReason = "too_large" // larger than this server accepts
	MediaProvider MediaReason = "provider"  // the provider could not get the file from the sender's device
	MediaExpired  MediaReason = "expired"   // the file could not be fetched in time
)

// A Media is the record of a file (contract-talk §4): of an upload, or of a file that a
// person sent.
type Media struct {
	ID        ID
	Kind      MessageKind // image, video, audio, document or sticker
	MIME      string      // as found in the content; "" unless ready
	Trait     MediaTrait  // a property of the content besides its type
	Name      string      // "": none
	Size      int64
	SHA256    []byte // nil unless ready
	Status    MediaStatus
	Reason    MediaReason // of a failure; else ""
	CreatedAt Time
	ContactID ID // the person who sent it; zero: an upload
}

// The defaults of limits that an operator can set, in bytes (contract-talk §4).
const (
	DefaultMaxMedia          = 100e6    // size of a file
	DefaultMediaPerWorkspace = 20 << 30 // total size of a workspace's files
	DefaultKeepFree          = 1 << 30  // free space on the file system with the files
)

// A FileHead is the data that a sender gives about a file before its content.
type FileHead struct {
	Name string
	Type string // "": not said
	Size int64  // in bytes; 0 or less: not said
}

// FetchLife is how long parley tries to fetch a file, from the time of the file's message.
const FetchLife = 7 * 24 * time.Hour

// UploadLife is how long an upload is kept if no message and no broadcast uses it.
const UploadLife = 24 * time.Hour

// InUse returns the refusal to delete a file: a message has the file, or one whose outcome is
// not known yet, or a broadcast that has not ended.
func (*Media) InUse() *Error {
	return Errorf(MediaInUse, "this file is in a message, in one that is being sent, or in a broadcast that has not ended")
}

// A UsedMedia has the number of bytes that the files of a workspace may have together, and
// the number that they have now.
type UsedMedia struct{ Limit, Used int64 }

// FreeFloor returns how many bytes must stay free on the file system with the files. It is
// the operator's setting keep, but at most a twentieth of total, the size of the file
// system.
func FreeFloor(keep, total int64) int64 { return min(keep, total/20) }

// MediaFull is the refusal of a file for which the workspace has no room.
func MediaFull(limit, used int64) *Error {
	e := Errorf(MediaQuota, "this workspace has %d bytes of files, and may have %d: delete uploads that are in no message, or ask the operator for more", used, limit)
	e.Details = UsedMedia{limit, used}
	return e
}

// NoMedia is the answer for an id that no file of the workspace has.
func NoMedia() *Error { return NotFoundf("no file in this workspace has this id") }

// attachmentRoom is more than the length of an attachment's JSON. The file's name is the
// longest part.
const attachmentRoom = recordRoom + 6*utf8.UTFMax*MaxMediaName

// KindOfMedia is the kind of a file of a type.
func KindOfMedia(mime string) MessageKind {
	family, _, _ := strings.Cut(mime, "/")
	switch {
	case mime == typeWebP:
		return KindSticker
	case family == "image":
		return KindImage
	case family == "video":
		return KindVideo
	case family == "audio":
		return KindAudio
	}
	return KindDocument
}

// MaxMediaName is the greatest number of characters in a file's name.
const MaxMediaName = 255

// MediaName is the name of a file as it is stored: the last element of a path, without
// control characters and characters that change the direction of writing; "" if nothing
// is left.
func MediaName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if n := 0; utf8.RuneCountInString(name) > MaxMediaName {
		for i := range name {
			if n++; n > MaxMediaName {
				name = strings.TrimSpace(name[:i])
				break
			}
		}
	}
	if name == "." || name == ".." {
		return ""
	}
	return name
}

// mostSent is the greatest size of a file that is sent, in bytes, by the file's type.
var mostSent = map[string]int64{
	typeJPEG: 5e6, typePNG: 5e6, typeWebP: 100e3,
	typeMP4: 16e6, type3GPP: 16e6,
	typeAAC: 16e6, typeAMR: 16e6, typeMPEG: 16e6, typeAudioMP4: 16e6, typeOgg: 16e6,
	typeText: 100e6, typePDF: 100e6,
	typeDOCX: 100e6, typeXLSX: 100e6, typePPTX: 100e6, typeDOC: 100e6, typeXLS: 100e6, typePPT: 100e6,
}

// mostAnimated is the same limit for an animated sticker.
const mostAnimated = 500e3

// Unsendable says why a ready file can't be sent, or returns nil if it can. caption tells
// whether the message has a caption.
func (m *Media) Unsendable(caption bool) *UnsendableMedia {
	most := mostSent[m.MIME]
	switch {
	case m.MIME == typeWebP && m.Trait == TraitAnimated:
		most = mostAnimated
	case m.MIME == typeOgg && m.Trait != TraitOpus:
		most = 0
	}
	why := &UnsendableMedia{MIME: m.MIME, Size: m.Size, Max: most}
	switch {
	case most == 0:
		why.Reason = "type"
	case m.Size > most:
		why.Reason = "size"
	case caption && (m.Kind == KindAudio || m.Kind == KindSticker):
		why.Reason = "caption"
	default:
		return nil
	}
	return why
}

// Same tells whether two files have the same content.
func (m *Media) Same(other *Media) bool {
	return len(m.SHA256) > 0 && bytes.Equal(m.SHA256, other.SHA256)
}

// Unavailable is the refusal to use a file that is not ready, or nil if it is ready. For a
// pending file, the refusal says when to retry.
func (m *Media) Unavailable() error {
	if m.Status == MediaReady {
		return nil
	}
	what := "this file is still being fetched from the provider"
	switch m.Status {
	case MediaFailed:
		what = "this file could not be fetched from the provider"
	case MediaDeleted:
		what = "the content of this file was deleted"
	}
	e := Errorf(MediaUnavailable, "%s", what)
	e.Details = UnavailableMedia{string(m.Status), string(m.Reason)}
	if m.Status == MediaPending {
		e.RetryAfter = mediaRetry
	}
	return e
}

// mediaRetry is the number of seconds after which a client should ask again for a pending
// file.
const mediaRetry = 5

// UnavailableMedia is the detail of an error about a file that is not ready: its status, and
// why it failed.
type UnavailableMedia struct{ Status, Reason string }

// UnsendableMedia is the detail of an error about a file that the provider does not accept,
// because of its type, size or caption.
type UnsendableMedia struct {
	Reason, MIME string
	Size, Max    int64 // in bytes; Max 0: the type is not accepted
}
