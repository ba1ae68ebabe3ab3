package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"parley/store/sqlite"
)

// A Restoration says what is restored, and how.
type Restoration struct {
	File, Dir string                           // the backup; the directory, which must be absent or empty
	Drill     bool                             // channels and webhooks are disabled
	Fits      func(fingerprint string) error   // tells whether the secret key is that of a fingerprint
	Place     func(dir string) error           // adds the secret key, in a directory that is not used yet
	Step      func(doing string, done, of int) // is told how far it is
}

// Restore puts a backup in place. Sessions and sign-in links do not come back. If Restore
// fails, the directory is as before.
func Restore(ctx context.Context, r Restoration) (m Manifest, err error) {
	file, dir := r.File, r.Dir
	from, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer func() { _ = from.Close() }()
	made, err := prepare(dir)
	if err != nil {
		return m, err
	}
	scratch, err := os.MkdirTemp(dir, ".restore-*")
	if err != nil {
		return m, errors.Join(err, unmake(dir, made))
	}
	placed := []string{}
	defer func() {
		err = errors.Join(err, os.RemoveAll(scratch))
		if err != nil {
			for _, path := range placed {
				err = errors.Join(err, os.RemoveAll(path))
			}
			err = errors.Join(err, unmake(dir, made))
		}
	}()
	n := 0
	err = read(from, func(of Manifest) error {
		m = of
		if err := r.Fits(m.Fingerprint); err != nil {
			return err
		}
		free, err := sqlite.Free(dir)
		if err == nil && free < m.size() {
			err = fmt.Errorf("the backup needs %d MB, and %d MB are free in the file system of %s", m.size()/1e6, free/1e6, dir)
		}
		return err
	}, func(f File, content io.Reader) error {
		r.Step("files", n, len(m.Files))
		n++
		return errors.Join(ctx.Err(), put(filepath.Join(scratch, filepath.FromSlash(f.Name)), content))
	})
	if err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	r.Step("checking the database", 0, 0)
	if err := sqlite.Restored(ctx, filepath.Join(scratch, databaseName), m.Fingerprint, r.Drill); err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	if err := r.Place(scratch); err != nil {
		return m, err
	}
	for _, name := range []string{"media", "secret.key", databaseName} { // the database last: without it, there is no installation
		to := filepath.Join(dir, name)
		err := os.Rename(filepath.Join(scratch, name), to)
		if name != databaseName && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return m, err
		}
		placed = append(placed, to)
	}
	return m, syncDir(dir)
}

// prepare makes the directory if it is absent. It refuses a directory with files, and a link
// to one.
func prepare(dir string) (made bool, err error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return false, err
	}
	list, err := os.ReadDir(dir)
	switch {
	case !info.IsDir():
		return false, fmt.Errorf("%s is no directory: name one that is empty or absent", dir)
	case err == nil && len(list) > 0:
		return false, fmt.Errorf("%s is not empty (it has %s): name an empty directory, or one that is absent", dir, list[0].Name())
	}
	return false, err
}

func unmake(dir string, made bool) error {
	if !made {
		return nil
	}
	return os.Remove(dir)
}

// put writes a new file, durably.
func put(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Sync(), f.Close())
}

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
