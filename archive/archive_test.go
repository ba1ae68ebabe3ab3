package archive_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/archive"
	"parley/store/sqlite"

	"github.com/klauspost/compress/zstd"
)

func quiet(string, int, int) {}

// pack makes a backup of entries as they are given.
func pack(t *testing.T, manifest any, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range append([]tar.Header{{Name: "manifest.json", Size: int64(len(text)), Typeflag: tar.TypeReg}}, entries...) {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		content := text
		if h.Name != "manifest.json" {
			content = bytes.Repeat([]byte("x"), int(h.Size))
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func restore(t *testing.T, file []byte, dir string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := archive.Restore(t.Context(), archive.Restoration{
		File: path, Dir: dir, Step: quiet, Fits: func(string) error { return nil }, Place: func(string) error { return nil },
	})
	return err
}

// TestRestore_hostile: a backup that parley did not write is refused, and leaves nothing.
func TestRestore_hostile(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("x"))
	x := hex.EncodeToString(sum[:])
	db, media := archive.File{Name: "parley.db", Size: 1, SHA256: x}, archive.File{Name: "media/01900000-0000-7000-8000-000000000001/" + x[:2] + "/" + x, Size: 1, SHA256: x}
	regular := func(name string, size int64) tar.Header {
		return tar.Header{Name: name, Size: size, Typeflag: tar.TypeReg}
	}
	of := func(files ...archive.File) archive.Manifest { return archive.Manifest{Format: 1, Files: files} }
	for name, file := range map[string][]byte{
		"nothing":             nil,
		"no archive":          []byte(strings.Repeat("no archive", 1000)),
		"no manifest":         pack(t, "text"),
		"no files":            pack(t, of()),
		"later format":        pack(t, archive.Manifest{Format: 2, Files: []archive.File{db}}, regular("parley.db", 1)),
		"no database":         pack(t, of(media), regular(media.Name, 1)),
		"climbing":            pack(t, of(db, archive.File{Name: "../evil", Size: 1, SHA256: x}), regular("parley.db", 1), regular("../evil", 1)),
		"climbing media":      pack(t, of(db, archive.File{Name: "media/../../evil", Size: 1, SHA256: x}), regular("parley.db", 1), regular("media/../../evil", 1)),
		"absolute":            pack(t, of(db, archive.File{Name: "/etc/evil", Size: 1, SHA256: x}), regular("parley.db", 1), regular("/etc/evil", 1)),
		"another key":         pack(t, of(db, archive.File{Name: "secret.key", Size: 1, SHA256: x}), regular("parley.db", 1), regular("secret.key", 1)),
		"twice":               pack(t, of(db, media, media), regular("parley.db", 1), regular(media.Name, 1), regular(media.Name, 1)),
		"link":                pack(t, of(db), tar.Header{Name: "parley.db", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}),
		"hard link":           pack(t, of(db), tar.Header{Name: "parley.db", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}),
		"other name":          pack(t, of(db), regular("parley.db-wal", 1)),
		"other size":          pack(t, of(db), regular("parley.db", 2)),
		"other bytes":         pack(t, of(archive.File{Name: "parley.db", Size: 1, SHA256: strings.Repeat("0", 64)}), regular("parley.db", 1)),
		"other order":         pack(t, of(db, media), regular(media.Name, 1), regular("parley.db", 1)),
		"missing":             pack(t, of(db, media), regular("parley.db", 1)),
		"one more":            pack(t, of(db), regular("parley.db", 1), regular("more", 1)),
		"bytes at the end":    append(pack(t, of(db), regular("parley.db", 1)), pack(t, of())...),
		"too large for a sum": pack(t, of(archive.File{Name: "parley.db", Size: math.MaxInt64, SHA256: x}, archive.File{Name: "media/" + x[:2] + "/" + x, Size: 2, SHA256: x}), regular("parley.db", 1)),
		"too large":           pack(t, of(archive.File{Name: "parley.db", Size: 1 << 60, SHA256: x}), regular("parley.db", 1)),
		"no SQLite":           pack(t, of(db), regular("parley.db", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			above := t.TempDir()
			empty := filepath.Join(above, "empty")
			if err := os.Mkdir(empty, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{filepath.Join(above, "absent"), empty} {
				if err := restore(t, file, dir); err == nil {
					t.Errorf("%s: it was restored", filepath.Base(dir))
				}
			}
			if left, err := filepath.Glob(filepath.Join(above, "*")); err != nil || len(left) != 1 {
				t.Errorf("left: %v %v", left, err)
			}
			if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

// TestBackup_refused: a file that exists, a link and a directory with files are left alone.
func TestBackup_refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "parley.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err == nil {
		err = errors.Join(s.BindSecret(t.Context(), "00"), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "backup")
	if _, err := archive.Backup(t.Context(), path, to, "test", quiet); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := archive.Backup(t.Context(), path, to, "test", quiet); err == nil {
		t.Error("a backup was replaced")
	}
	file, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, link, to} {
		if err := restore(t, file, dir); err == nil {
			t.Errorf("it was restored into %s", dir)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(to), "*")); err != nil || len(left) != 1 {
		t.Errorf("left: %v %v", left, err)
	}
}
