package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"parley/desk"
	"parley/provider"
)

// Files has the files that customers of the simulated provider sent.
type Files interface {
	// Media returns the record of a file, or nil. OpenContent opens content by its SHA-256,
	// or returns NotFound.
	Media(ctx context.Context, ws, id desk.ID) (*desk.Media, error)
	OpenContent(ctx context.Context, ws desk.ID, sha256 []byte) (io.ReadSeekCloser, error)
}

// A fileRef is the simulated provider's reference to a file: the stored file, and the
// fault when it is fetched.
type fileRef struct {
	Media desk.ID `json:"media_id"`
	Fault string  `json:"fault"`
	Times int     `json:"times,omitempty"` // for fail and truncate
	Bytes int64   `json:"bytes,omitempty"` // for size
	Wait  string  `json:"wait,omitempty"`  // for slow
}

// The faults of a file.
const (
	faultFail     = "fail"
	faultTruncate = "truncate"
	faultGone     = "gone"
	faultSize     = "size"
	faultSlow     = "slow"
)

// mostSlow is longer than any fetch of a file may take.
const mostSlow = time.Hour

// FileRef returns the provider's reference to a stored file with a fault (see
// provider.Simulator).
func (*Sandbox) FileRef(file desk.ID, fault string) (string, error) {
	kind, value, _ := strings.Cut(fault, ":")
	r := fileRef{Media: file, Fault: kind}
	var err error
	switch kind {
	case faultFail, faultTruncate:
		if r.Times, err = strconv.Atoi(value); r.Times < 1 {
			err = errors.New("too few")
		}
	case faultSize:
		if r.Bytes, err = strconv.ParseInt(value, 10, 64); r.Bytes < 1 {
			err = errors.New("too few")
		}
	case faultSlow:
		var wait time.Duration
		if wait, err = time.ParseDuration(value); wait <= 0 || wait > mostSlow {
			err = errors.New("too short or too long")
		}
		r.Wait = value
	case faultGone:
		if value != "" {
			err = errors.New("no value")
		}
	default:
		err = errors.New("unknown")
	}
	if err != nil {
		return "", desk.Invalidf("a fault is fail:N (the first N tries fail), truncate:N (the first N tries are cut short), gone, size:BYTES (so many come) or slow:10s")
	}
	body, err := json.Marshal(r)
	return string(body), err
}

// Upload reads a file and discards it (see provider.Talker).
func (s *Sandbox) Upload(_ context.Context, _ provider.Access, _, _ string, size int64, content io.Reader) (string, error) {
	n, err := io.Copy(io.Discard, io.LimitReader(content, size))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return "sandbox." + s.c.NewID().String(), err
}

// ClosesWindow tells whether a failure closes the window; see provider.Talker.
func (*Sandbox) ClosesWindow(code int) bool { return code == windowClosed.Code }

// LosesFile returns false, because the sandbox loses no files; see provider.Talker.
func (*Sandbox) LosesFile(int) bool { return false }

// MarkRead does nothing, because no customer waits to see it; see provider.Talker.
func (*Sandbox) MarkRead(context.Context, provider.Access, string) error { return nil }

// Fetch writes a stored file to w, or simulates the file's fault; see provider.Talker.
func (s *Sandbox) Fetch(ctx context.Context, at provider.Access, ref string, told func(provider.FetchedMedia) error, w io.Writer) (is provider.FetchedMedia, err error) {
	var r fileRef
	if err := json.Unmarshal([]byte(ref), &r); err != nil || s.c.Files == nil || r.Fault == faultGone {
		return is, provider.ErrMediaGone
	}
	m, err := s.c.Files.Media(ctx, at.Workspace, r.Media)
	if err != nil {
		return is, err
	}
	if m == nil {
		return is, provider.ErrMediaGone
	}
	file, err := s.c.Files.OpenContent(ctx, at.Workspace, m.SHA256)
	if desk.IsType(err, desk.NotFound) {
		return is, provider.ErrMediaGone
	}
	if err != nil {
		return is, err
	}
	defer func() { _ = file.Close() }()
	is = provider.FetchedMedia{MIME: m.MIME, Size: m.Size, SHA256: m.SHA256}
	var content io.Reader = file
	try := s.tried(at.Workspace, ref, r.Times)
	switch {
	case r.Fault == faultSize:
		is.Size, is.SHA256 = r.Bytes, nil
		content = io.LimitReader(io.MultiReader(file, zeros{}), r.Bytes)
	case r.Fault == faultFail && try <= r.Times:
		return is, errors.New("sandbox: this try fails")
	case r.Fault == faultTruncate && try <= r.Times:
		content = io.MultiReader(io.LimitReader(file, is.Size/2), broken{})
	}
	if err := told(is); err != nil {
		return is, err
	}
	if r.Fault == faultSlow {
		wait, _ := time.ParseDuration(r.Wait)
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return is, fmt.Errorf("sandbox: a slow file: %w", ctx.Err())
		}
	}
	_, err = io.Copy(w, content)
	return is, err
}

// A broken is a reader that simulates a broken connection.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// maxTries is the greatest number of files for which the sandbox counts tries. When it is
// reached, the sandbox forgets all counts and starts again.
const maxTries = 10_000

// tried counts one more try to fetch a file, and returns the number of tries. times is
// how often fetching the file fails. Each process counts on its own.
func (s *Sandbox) tried(ws desk.ID, ref string, times int) int {
	if times == 0 {
		return 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tries) >= maxTries {
		clear(s.tries)
	}
	key := ws.String() + ref
	s.tries[key]++
	return s.tries[key]
}

// zeros is a reader that returns zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
