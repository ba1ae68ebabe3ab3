package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestPlace: a file gets its name also where there are no links, and never replaces another one.
func TestPlace(t *testing.T) {
	for name, link := range map[string]func(from, to string) error{
		"links":    os.Link,
		"no links": func(string, string) error { return &os.LinkError{Op: "link", Err: errors.ErrUnsupported} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			for n, want := range []error{nil, fs.ErrExist} {
				if err := os.WriteFile(from, []byte{byte('0' + n)}, 0o600); err != nil {
					t.Fatal(err)
				}
				err := place(from, to, link)
				if (err == nil) != (want == nil) {
					t.Errorf("file %d: %v", n, err)
				}
				_ = os.Remove(from) // in the first round, it may have been renamed
				if text, err := os.ReadFile(to); err != nil || string(text) != "0" {
					t.Errorf("after file %d: %q, %v", n, text, err)
				}
			}
		})
	}
}
