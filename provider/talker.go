package provider

import (
	"context"
	"errors"
	"io"
)

// With returns the reported data, together with the data in more, which the provider
// reported later.
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
	// Upload hands over a file and returns the provider's id of it. It returns the same
	// errors as Send.
	Upload(ctx context.Context, at Access, mime, name string, size int64, content io.Reader) (ref string, err error)

	// Fetch writes a file that a person sent to w, and returns the provider's data about the
	// file. The callback told may get these data before the first byte. An error from told or
	// from w ends the call. Fetch returns ErrMediaGone if the provider no longer has the
	// file.
	Fetch(ctx context.Context, at Access, ref string, told func(FetchedMedia) error, w io.Writer) (FetchedMedia, error)

	// MarkRead tells the provider that a message was read.
	MarkRead(ctx context.Context, at Access, externalID string) error

	// ClosesWindow tells whether a failure with this code means that the window is closed.
	ClosesWindow(code int) bool

	// LosesFile tells whether a failure with this code means that the provider could not use
	// the message's file, so that it must get the file again.
	LosesFile(code int) bool
}

// A FetchedMedia has the data that a provider reports about a file.
type FetchedMedia struct {
	MIME   string
	Size   int64  // 0: not reported
	SHA256 []byte // nil: not reported
}

// ErrMediaGone means that the provider no longer has a file, and ErrMediaFailed that the
// provider could not get the file from the person.
var (
	ErrMediaGone   = errors.New("the provider has this file no more")
	ErrMediaFailed = errors.New("the provider could not get this file from the person")
)
