package provider

import (
	"context"
	"errors"
	"io"
)

// With is what is told of a file, after the provider told more.
func (f FetchedMedia) With(more FetchedMedia) FetchedMedia {
	if more.MIME != "" {
		f.MIME = more.MIME
	}
	if more.Size != 0 {
		f.Size = more.Size
	}
	if len(more.SHA256) > 0 {
		f.SHA256 = more.SHA256
	}
	return f
}

// A Talker is a Provider through which people can be answered freely.
type Talker interface {
	// Upload hands over a file and returns the provider's id of it. Its errors are those of
	// Send.
	Upload(ctx context.Context, at Access, mime, name string, size int64, content io.Reader) (ref string, err error)

	// Fetch writes a file that a person sent to w, and returns what the provider tells of
	// it: told may be called with that before the first byte, and its error, as w's, ends
	// the call. It returns ErrMediaGone if the provider has it no more.
	Fetch(ctx context.Context, at Access, ref string, told func(FetchedMedia) error, w io.Writer) (FetchedMedia, error)

	// MarkRead tells the provider that a message was read.
	MarkRead(ctx context.Context, at Access, externalID string) error

	// ClosesWindow tells whether a failure with this code says that the person can't be
	// answered freely any more.
	ClosesWindow(code int) bool
}

// A FetchedMedia is what a provider tells of a file.
type FetchedMedia struct {
	MIME   string
	Size   int64  // 0: not told
	SHA256 []byte // nil: not told
}

// ErrMediaGone means that the provider has a file no more, and ErrMediaFailed that it could
// not get it from the person.
var (
	ErrMediaGone   = errors.New("the provider has this file no more")
	ErrMediaFailed = errors.New("the provider could not get this file from the person")
)
