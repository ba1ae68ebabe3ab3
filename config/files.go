package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// MakeDir creates the data directory, with access only for its owner. An existing empty
// directory gets this mode too. If the directory has files, its mode stays.
func (s Storage) MakeDir() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if entries, err := os.ReadDir(s.Dir); err == nil && len(entries) == 0 {
		// This fails on a mount that belongs to another user. The directory can still be
		// used.
		_ = os.Chmod(s.Dir, 0o700)
	}
	return nil
}

// Private lists the files of the data directory that no other user may read.
func (s Storage) Private() []string {
	return []string{s.secretFile(), s.Database(), s.Database() + "-wal", s.Database() + "-shm", filepath.Join(s.Dir, "media")}
}

// WriteNew creates a file that only its owner may read. The file is written completely or
// not at all. If it exists, WriteNew returns fs.ErrExist and does not change it.
func WriteNew(path string, content []byte) error { return write(path, content, os.Link) }

// Replace is like WriteNew, but replaces an existing file.
func Replace(path string, content []byte) error { return write(path, content, os.Rename) }

// write writes a temporary file beside path. The function place then gives the file its
// name.
func write(path string, content []byte, place func(from, to string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		// After a rename, there is nothing to remove.
		if rm := os.Remove(f.Name()); rm != nil && !errors.Is(rm, os.ErrNotExist) && err == nil {
			err = rm
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a new name in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows has no such call, and does not need one
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
