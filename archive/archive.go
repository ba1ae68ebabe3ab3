// Package archive writes a backup of an installation on SQLite into one file, and restores
// it.
//
// A backup is a tar file, compressed with zstd. Its first entry is manifest.json, which names
// all others in their order, with sizes and hashes: parley.db, and media/WORKSPACE/ab/SHA256.
//
//	archive.go  the manifest, and reading a backup
//	backup.go   writing one
//	restore.go  putting one in place
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A Manifest says what a backup contains.
type Manifest struct {
	Format      int            `json:"format"`
	Version     string         `json:"version"` // of parley
	TakenAt     time.Time      `json:"taken_at"`
	Fingerprint string         `json:"fingerprint"` // of the secret key
	Counts      map[string]int `json:"counts"`      // rows by table
	Files       []File         `json:"files"`
}

// A File is an entry of a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	format       = 1
	manifestName = "manifest.json"
	databaseName = "parley.db"

	maxManifest = 256 << 20 // about a million files
	window      = 8 << 20   // of zstd: how much memory a backup may take when it is read
)

var mediaName = regexp.MustCompile(`^media/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/([0-9a-f]{2})/([0-9a-f]{64})$`)

// check refuses a manifest with a file that parley does not write.
func (m Manifest) check() error {
	if m.Format != format {
		return fmt.Errorf("it has the format %d, and this release reads %d", m.Format, format)
	}
	known, left := map[string]bool{}, int64(math.MaxInt64)
	for n, f := range m.Files {
		part := mediaName.FindStringSubmatch(f.Name)
		ok := n == 0 && f.Name == databaseName || n > 0 && part != nil && part[2][:2] == part[1] && part[2] == f.SHA256
		if !ok || known[f.Name] || f.Size < 0 || f.Size > left || len(f.SHA256) != 64 {
			return fmt.Errorf("its manifest names %q, which no backup contains", f.Name)
		}
		known[f.Name] = true
		left -= f.Size
	}
	if len(m.Files) == 0 {
		return errors.New("it contains no database")
	}
	return nil
}

// size is the number of bytes of all files.
func (m Manifest) size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// read reads a backup. It calls begin with the manifest, and then put for each file. The
// bytes must be those that the manifest names, and nothing else may be in the backup.
func read(from io.Reader, begin func(Manifest) error, put func(File, io.Reader) error) error {
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	archive := tar.NewReader(z)
	head, err := archive.Next()
	if err != nil {
		return fmt.Errorf("this is no backup: %w", err)
	}
	if head.Name != manifestName || head.Typeflag != tar.TypeReg || head.Size > maxManifest {
		return errors.New("this is no backup: it does not begin with a manifest")
	}
	var m Manifest
	text, err := io.ReadAll(archive)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return fmt.Errorf("its manifest can't be read: %w", err)
	}
	if err := m.check(); err != nil {
		return err
	}
	if err := begin(m); err != nil {
		return err
	}
	for _, f := range m.Files {
		head, err := archive.Next()
		if err != nil {
			return fmt.Errorf("%s is missing: %w", f.Name, err)
		}
		if head.Name != f.Name || head.Typeflag != tar.TypeReg || head.Size != f.Size {
			return fmt.Errorf("it contains %q where its manifest names %s", head.Name, f.Name)
		}
		hash := sha256.New()
		if err := put(f, io.TeeReader(archive, hash)); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := io.Copy(hash, archive); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if hex.EncodeToString(hash.Sum(nil)) != f.SHA256 {
			return fmt.Errorf("%s has other bytes than its manifest says", f.Name)
		}
	}
	if head, err := archive.Next(); err == nil {
		return fmt.Errorf("it contains %q, which its manifest does not name", head.Name)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(z, 1)); err != nil || n > 0 {
		return errors.Join(errors.New("bytes follow its end"), err)
	}
	return nil
}
