package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// MakeDir makes the data directory, which only its owner may look into. A
// directory that was made empty by hand becomes as private; one that holds files
// already keeps the mode that somebody gave it.
func (s Storage) MakeDir() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if entries, err := os.ReadDir(s.Dir); err == nil && len(entries) == 0 {
		// A mount that belongs to another user refuses this, and can be used anyway.
		_ = os.Chmod(s.Dir, 0o700)
	}
	return nil
}

// WriteNew makes a file that only its owner may read, whole or not at all; when
// there is one already it returns fs.ErrExist and leaves that one alone.
func WriteNew(path string, content []byte) error { return write(path, content, os.Link) }

// Replace makes such a file, or puts it in the place of the one there is.
func Replace(path string, content []byte) error { return write(path, content, os.Rename) }

// write fills a file beside path, and place then gives it its name.
func write(path string, content []byte, place func(from, to string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		// After a rename the name is gone, which is as good.
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

// syncDir makes a new name in a directory survive a loss of power.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // it has no such call, and needs none
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
