package stored

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"parley/desk"
)

// Files keeps content in a directory: each content in a file WORKSPACE/ab/SHA256, where
// ab are the first digits of the hash. Content that is still arriving, or that is being
// deleted, is in the directory drafts.
type Files struct{ Dir string }

const draftsDir = "drafts"

// NoStorage returns the error for a machine that fails to keep or read content.
func NoStorage(err error) error {
	return &desk.Error{
		Type:    desk.Unavailable,
		Message: "the storage of files does not work now: nothing was stored, try again shortly",
		Err:     err,
	}
}

// NoContent returns the error for content that is not stored.
func NoContent() error { return desk.NotFoundf("the content of this file is not stored") }

// HeldContent returns the error for content that may be deleted at any time, because it
// was kept too long ago.
func HeldContent() error {
	return NoStorage(errors.New("the content was kept too long before a file had it"))
}

// A FileDraft is a file that is being written.
type FileDraft struct {
	of   Files
	f    *os.File
	hash hash.Hash
	size int64
}

// New makes a draft.
func (f Files) New() (*FileDraft, error) {
	dir := filepath.Join(f.Dir, draftsDir)
	if err := ensure(dir); err != nil {
		return nil, NoStorage(err)
	}
	file, err := os.CreateTemp(dir, "*")
	if err != nil {
		return nil, NoStorage(err)
	}
	return &FileDraft{of: f, f: file, hash: sha256.New()}, nil
}

func (d *FileDraft) Write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	_, _ = d.hash.Write(p[:n])
	d.size += int64(n)
	if err != nil {
		return n, NoStorage(err)
	}
	return n, nil
}

// Finish syncs the bytes to the disk, and returns their hash and number.
func (d *FileDraft) Finish() (sum []byte, size int64, err error) {
	if err := errors.Join(d.f.Sync(), d.f.Close()); err != nil {
		return nil, 0, NoStorage(err)
	}
	return d.hash.Sum(nil), d.size, nil
}

// Place gives the finished file its name, durably. It replaces a file with the same
// content.
func (d *FileDraft) Place(ws desk.ID, sum []byte) error {
	path := d.of.path(ws, sum)
	if err := ensure(filepath.Dir(path)); err != nil {
		return NoStorage(err)
	}
	err := os.Rename(d.f.Name(), path)
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return NoStorage(err)
	}
	return nil
}

// Drop deletes a draft that has no name yet.
func (d *FileDraft) Drop() {
	_ = d.f.Close() // it may be closed
	_ = os.Remove(d.f.Name())
}

// Room returns how many bytes can still be stored in the file system of the directory,
// and its total size.
func (f Files) Room() (free, total int64, err error) {
	dir := f.Dir
	for {
		free, total, err = roomOf(dir)
		if above := filepath.Dir(dir); !errors.Is(err, fs.ErrNotExist) || above == dir {
			return free, total, err
		}
		dir = filepath.Dir(dir) // the directory is made with the first file
	}
}

func (f Files) path(ws desk.ID, sum []byte) string {
	name := hex.EncodeToString(sum)
	return filepath.Join(f.Dir, ws.String(), name[:2], name)
}

// Open opens content for reading. It returns NotFound if there is none.
func (f Files) Open(ws desk.ID, sum []byte) (io.ReadSeekCloser, error) {
	file, err := os.Open(f.path(ws, sum))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, NoContent()
	case err != nil:
		return nil, NoStorage(err)
	}
	return file, nil
}

// SetAside moves the file of some content to the drafts, if the file exists, and returns
// its new path. Moving a large file takes no longer than moving a small one, so it can be
// done while others wait; deleting a large file takes long. If the process dies before it
// deletes the file, DropDrafts deletes it later.
func (f Files) SetAside(ws desk.ID, sum []byte) (aside string, err error) {
	dir := filepath.Join(f.Dir, draftsDir)
	if err := ensure(dir); err != nil {
		return "", NoStorage(err)
	}
	aside = filepath.Join(dir, ws.String()+"-"+hex.EncodeToString(sum))
	if err := os.Rename(f.path(ws, sum), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", NoStorage(err)
	}
	return aside, nil
}

// DropAside deletes files that SetAside has moved. If that fails, DropDrafts deletes them
// later.
func DropAside(list []string) {
	for _, aside := range list {
		_ = os.Remove(aside)
	}
}

// RemoveAll deletes all content of a workspace.
func (f Files) RemoveAll(ws desk.ID) error {
	if err := os.RemoveAll(filepath.Join(f.Dir, ws.String())); err != nil {
		return NoStorage(err)
	}
	return nil
}

// DropDrafts deletes drafts to which nothing was written for this long: the processes
// that made the drafts, or moved them there, have died.
func (f Files) DropDrafts(ctx context.Context, age time.Duration) error {
	dir := filepath.Join(f.Dir, draftsDir)
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range list {
		if ctx.Err() != nil {
			break
		}
		info, e := entry.Info()
		if e == nil && time.Since(info.ModTime()) > age {
			e = os.Remove(filepath.Join(dir, entry.Name()))
		}
		if e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = e // go on with the other drafts
		}
	}
	if err != nil {
		return NoStorage(err)
	}
	return nil
}

// ensure makes a directory and its parents, durably.
func ensure(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := ensure(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(above)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // directories can't be synced there
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// markFile contains the id of a directory of content.
const markFile = "parley-media.id"

// Mark returns the id of the directory. A directory without an id gets the given one.
func (f Files) Mark(id string) (string, error) {
	if err := ensure(f.Dir); err != nil {
		return "", fmt.Errorf("the directory of media: %w", err)
	}
	d, err := f.New()
	if err != nil {
		return "", err
	}
	defer d.Drop()
	if _, err := d.Write([]byte(id)); err != nil {
		return "", err
	}
	if _, _, err := d.Finish(); err != nil {
		return "", err
	}
	// A link, unlike a rename, does not replace a file: another node may do the same now.
	err = os.Link(d.f.Name(), filepath.Join(f.Dir, markFile))
	if errors.Is(err, fs.ErrExist) {
		return f.MarkOf()
	}
	if err == nil {
		err = syncDir(f.Dir)
	}
	if err != nil {
		return "", fmt.Errorf("the directory of media: %w", err)
	}
	return id, nil
}

// MarkOf returns the id of the directory, or "" if it has none.
func (f Files) MarkOf() (string, error) {
	found, err := os.ReadFile(filepath.Join(f.Dir, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(found), err
}
