package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/provider"
	"parley/sandbox"
)

// A Sandbox implements the interfaces of a provider for conversations.
var _ interface {
	provider.Provider
	provider.Talker
} = (*sandbox.Sandbox)(nil)

// hears is a callback that accepts all announced properties of a file.
func hears(provider.FetchedMedia) error { return nil }

// files is a store with one file, in one workspace.
type files struct{}

var fileID = desk.ID{0xF1}

func (files) Media(_ context.Context, ws, id desk.ID) (*desk.Media, error) {
	if ws != (desk.ID{0x15}) || id != fileID {
		return nil, nil
	}
	return &desk.Media{MIME: "text/plain", Size: 7, SHA256: []byte{1}}, nil
}

func (files) OpenContent(context.Context, desk.ID, []byte) (io.ReadSeekCloser, error) {
	return content{strings.NewReader("content")}, nil
}

type content struct{ io.ReadSeeker }

func (content) Close() error { return nil }

func withFiles() *sandbox.Sandbox {
	return sandbox.New(sandbox.Config{Files: files{}, Now: still, NewID: func() desk.ID { return desk.ID{1} }})
}

func TestFetch(t *testing.T) {
	t.Parallel()
	const failed, gone = "failed", "gone"
	for _, c := range []struct {
		fault string
		size  int64
		want  []string // the result of each try
	}{
		{"fail:2", 7, []string{failed, failed, "content"}},
		{"truncate:1", 7, []string{"con" + failed, "content"}},
		{"gone", 0, []string{gone, gone}},
		{"size:10", 10, []string{"content\x00\x00\x00"}},
		{"size:3", 3, []string{"con"}},
	} {
		s := withFiles()
		ref, err := s.FileRef(fileID, c.fault)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			var got bytes.Buffer
			told, err := s.Fetch(t.Context(), dispatch("").Access, ref, hears, &got)
			switch {
			case errors.Is(err, provider.ErrMediaGone):
				got.WriteString(gone)
			case err != nil:
				got.WriteString(failed)
			}
			if got.String() != want || told.Size != c.size || (told.SHA256 == nil) != (c.fault == "gone" || strings.HasPrefix(c.fault, "size")) {
				t.Errorf("%s, try %d: %q, %+v, %v", c.fault, i+1, got.String(), told, err)
			}
		}
	}
	s := withFiles()
	elsewhere, _ := s.FileRef(desk.ID{2}, "fail:1")
	for _, ref := range []string{"", "x", elsewhere} {
		if _, err := s.Fetch(t.Context(), dispatch("").Access, ref, hears, io.Discard); !errors.Is(err, provider.ErrMediaGone) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := newSandbox(still).Fetch(t.Context(), dispatch("").Access, elsewhere, hears, io.Discard); !errors.Is(err, provider.ErrMediaGone) {
		t.Errorf("without files: %v", err)
	}
}

func TestFetch_slowly(t *testing.T) {
	t.Parallel()
	for patience, taken := range map[time.Duration]bool{time.Minute: true, 5 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s, began := withFiles(), time.Now()
			ref, _ := s.FileRef(fileID, "slow:10s")
			_, err := s.Fetch(ctx, dispatch("").Access, ref, hears, io.Discard)
			if took := time.Since(began); took != min(patience, 10*time.Second) || (err == nil) != taken {
				t.Errorf("it took %v: %v", took, err)
			}
		})
	}
}

func TestFileRef_refuses(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"", "boom", "fail", "fail:0", "fail:x", "truncate:-1", "gone:1", "size:0", "size:x", "slow:", "slow:0s", "slow:2h", "slow:10"} {
		if ref, err := withFiles().FileRef(fileID, fault); !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%q: %q, %v", fault, ref, err)
		}
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	s := withFiles()
	if ref, err := s.Upload(t.Context(), provider.Access{}, "text/plain", "a.txt", 3, strings.NewReader("abc")); err != nil || ref == "" {
		t.Errorf("%q, %v", ref, err)
	}
	if _, err := s.Upload(t.Context(), provider.Access{}, "text/plain", "a.txt", 4, strings.NewReader("abc")); err == nil {
		t.Error("a short file is taken")
	}
	if err := s.MarkRead(t.Context(), provider.Access{}, "sandbox.1"); err != nil {
		t.Error(err)
	}
}
