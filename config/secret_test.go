package config_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"parley/config"
)

// key contains every byte value in which the two base64 alphabets differ.
var key = append(bytes.Repeat([]byte{0xfb, 0xff}, 8), []byte("0123456789abcdef")...)

func TestParseSecret(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"hex":                  hex.EncodeToString(key),
		"hex in capitals":      strings.ToUpper(hex.EncodeToString(key)),
		"base64":               base64.StdEncoding.EncodeToString(key),
		"base64 unpadded":      base64.RawStdEncoding.EncodeToString(key),
		"base64 for URLs":      base64.URLEncoding.EncodeToString(key),
		"with space around it": " " + hex.EncodeToString(key) + "\n",
	} {
		got, err := config.ParseSecret(text)
		if err != nil || !bytes.Equal(got[:], key) {
			t.Errorf("%s: ParseSecret(%q) = %x, %v", name, text, got, err)
		}
	}
	for name, text := range map[string]string{
		"empty":        "",
		"a password":   "correct horse battery staple",
		"31 bytes":     hex.EncodeToString(key[:31]),
		"33 bytes":     hex.EncodeToString(append(key, 0)),
		"16 bytes":     hex.EncodeToString(key[:16]),
		"31 in base64": base64.StdEncoding.EncodeToString(key[:31]),
	} {
		_, err := config.ParseSecret(text)
		if err == nil {
			t.Errorf("%s: ParseSecret(%q) is no error", name, text)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error repeats the secret: %v", name, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	a, b := config.Secret{1}, config.Secret{2}
	if a.Fingerprint() != (config.Secret{1}).Fingerprint() || a.Fingerprint() == b.Fingerprint() {
		t.Errorf("fingerprints do not tell keys apart: %s, %s", a.Fingerprint(), b.Fingerprint())
	}
	if n := len(a.Fingerprint()); n != 16 {
		t.Errorf("a fingerprint has %d characters, want 16", n)
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	t.Run("given", func(t *testing.T) {
		t.Parallel()
		s := newDir(t)
		got, err := s.Secret(hex.EncodeToString(key), true)
		if err != nil || !bytes.Equal(got[:], key) {
			t.Errorf("Secret = %x, %v", got, err)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "secret.key")); err == nil {
			t.Error("a key that is given was written to the directory")
		}
	})
	t.Run("given_wrong", func(t *testing.T) {
		t.Parallel()
		if _, err := newDir(t).Secret("nonsense", true); err == nil || !strings.Contains(err.Error(), "PARLEY_SECRET_KEY") {
			t.Errorf("Secret(nonsense): %v", err)
		}
	})
	t.Run("made_once", func(t *testing.T) {
		t.Parallel()
		s := newDir(t)
		first, err := s.Secret("", true)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Secret("", true)
		if err != nil || again != first {
			t.Errorf("the second Secret = %x, %v; the first %x", again, err, first)
		}
		wantMode(t, s.Dir, 0o700)
		wantMode(t, filepath.Join(s.Dir, "secret.key"), 0o600)
		if entries, _ := os.ReadDir(s.Dir); len(entries) != 1 {
			t.Errorf("something else is left in the directory: %v", entries)
		}
	})
	t.Run("made_by_many_at_once", func(t *testing.T) {
		t.Parallel()
		for range 50 {
			s := newDir(t)
			var got [8]config.Secret
			var wg sync.WaitGroup
			for i := range got {
				wg.Go(func() {
					var err error
					if got[i], err = s.Secret("", true); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, other := range got {
				if other != got[0] {
					t.Fatalf("two processes have two keys: %x", got)
				}
			}
		}
	})
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		s := newDir(t)
		if err := os.WriteFile(s.Database(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Secret("", true); err == nil || !strings.Contains(err.Error(), "bring back") {
			t.Errorf("Secret beside a database without a key: %v", err)
		}
		s.URL = "postgres://db/parley" // then the SQLite file has no effect
		if _, err := s.Secret("", true); err != nil {
			t.Errorf("Secret of a PostgreSQL database, beside a file of SQLite: %v", err)
		}
	})
	t.Run("not_made", func(t *testing.T) {
		t.Parallel()
		s := newDir(t)
		s.URL = "postgres://db/parley"
		if _, err := s.Secret("", false); err == nil || !strings.Contains(err.Error(), "PARLEY_SECRET_KEY") {
			t.Errorf("Secret of an installation that has no secret.key: %v", err)
		}
		if entries, _ := os.ReadDir(s.Dir); len(entries) != 0 {
			t.Errorf("something was made in the directory: %v", entries)
		}
	})
	t.Run("open_to_others", func(t *testing.T) {
		t.Parallel()
		if runtime.GOOS == "windows" {
			return
		}
		s := newDir(t)
		first, err := s.Secret("", true)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(s.Dir, "secret.key")
		for _, mode := range []os.FileMode{0o640, 0o604, 0o644, 0o620} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Secret("", true); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
				t.Errorf("Secret from a file of mode %o: %v", mode, err)
			}
		}
		if err := os.Chmod(path, 0o400); err != nil {
			t.Fatal(err)
		}
		if again, err := s.Secret("", true); err != nil || again != first {
			t.Errorf("Secret from a file that only its owner can read: %v", err)
		}
	})
	t.Run("spoilt", func(t *testing.T) {
		t.Parallel()
		s := newDir(t)
		if err := os.WriteFile(filepath.Join(s.Dir, "secret.key"), []byte("short"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Secret("", true); err == nil || !strings.Contains(err.Error(), "secret.key") {
			t.Errorf("Secret from a spoilt file: %v", err)
		}
	})
}

func TestMakeDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "wide")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := config.Storage{Dir: dir}
	makeDir(t, s)
	wantMode(t, dir, 0o700) // the directory was empty, so its mode is changed

	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	makeDir(t, s)
	wantMode(t, dir, 0o750) // the operator has set this mode
}

func TestReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(newDir(t).Dir, "file")
	for _, content := range []string{"one", "two"} {
		if err := config.Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("read %q, %v; want %q", got, err, content)
		}
	}
	wantMode(t, path, 0o600)
	if err := config.WriteNew(path, []byte("three")); !os.IsExist(err) {
		t.Errorf("WriteNew over a file: %v", err)
	}
}

func newDir(t *testing.T) config.Storage {
	t.Helper()
	s := config.Storage{Dir: filepath.Join(t.TempDir(), "deep", "data")}
	makeDir(t, s)
	return s
}

func makeDir(t *testing.T, s config.Storage) {
	t.Helper()
	if err := s.MakeDir(); err != nil {
		t.Fatal(err)
	}
}

func wantMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want && runtime.GOOS != "windows" {
		t.Errorf("%s has mode %o, want %o", path, got, want)
	}
}
