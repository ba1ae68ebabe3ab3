// Package doctor examines an installation: parley doctor. It changes nothing.
//
//	doctor.go    the checks, their order, and what each verdict says
//	database.go  checks that ask the database
//	check.go     a check and its result
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// Examine makes all checks, each once, in a fixed order. If another process begins to use the
// database meanwhile, it makes them again.
func Examine(ctx context.Context, p Patient) ([]Check, error) {
	for {
		checks, again, err := examine(ctx, p)
		if err != nil || !again {
			return checks, err
		}
	}
}

func examine(ctx context.Context, p Patient) (checks []Check, again bool, err error) {
	e := &examination{Patient: p}
	db, opened := p.Open(ctx)
	if opened == nil {
		e.db = db
		defer func() {
			again = db.Overtaken()
			err = errors.Join(err, db.Close())
		}()
	}
	e.mode()
	e.space(ctx)
	e.key(ctx)
	e.database(ctx, opened)
	return e.checks, false, ctx.Err()
}

// mode checks that no other user of the machine can read the data.
func (e *examination) mode() {
	const id = "data.mode"
	if runtime.GOOS == "windows" {
		e.add(id, Skip, "", "Windows has no such modes")
		return
	}
	dir, err := os.Stat(e.Storage.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.Storage.URL != "":
		e.add(id, Skip, "", "there is no data directory: the database is %s", e.Storage)
		return
	case err != nil:
		e.deny(id, err)
		return
	case dir.Mode().Perm()&0o027 != 0: // an operator may let a group read, for backups
		e.add(id, Fail, fmt.Sprintf("chmod 700 %s", e.Storage.Dir), "other users can enter the data directory %s, or write in it (mode %o)", e.Storage.Dir, dir.Mode().Perm())
		return
	}
	for _, path := range e.Storage.Private() {
		file, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			e.deny(id, err)
			return
		}
		if file.Mode().Perm()&0o077 != 0 {
			e.add(id, Fail, fmt.Sprintf("chmod go= %s", path), "other users can read %s (mode %o)", path, file.Mode().Perm())
			return
		}
	}
	e.add(id, OK, "", "only this user can read the data in %s", e.Storage.Dir)
}

// space checks the free room of the file systems that parley fills.
func (e *examination) space(ctx context.Context) {
	const id, fix = "disk.space", "free space, or move the data to a larger disk"
	dir := e.Storage.Dir
	if e.Storage.URL != "" {
		if dir = e.Storage.Media; dir == "" {
			e.add(id, Skip, "", "the database's server has all data: watch its disk")
			return
		}
	}
	free, err := e.Free(dir)
	if err != nil {
		e.deny(id, err)
		return
	}
	if free < leastFree {
		e.add(id, Fail, fix, "%s are free in the file system of %s", megabytes(free), dir)
		return
	}
	if e.db != nil && e.Storage.URL == "" {
		if m, err := e.db.Metrics(ctx, 0); err == nil && free < 2*m.Bytes {
			e.add(id, Warn, fix, "%s are free in the file system of %s, which is less than twice the database (%s): a backup or an upgrade may fill it", megabytes(free), dir, megabytes(m.Bytes))
			return
		}
	}
	e.add(id, OK, "", "%s are free in the file system of %s", megabytes(free), dir)
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/1e6) }

// key checks that the secret key is that of the database.
func (e *examination) key(ctx context.Context) {
	const id = "key.fingerprint"
	secret, err := e.Storage.Secret(e.Secret, false)
	if err != nil {
		e.add(id, Fail, "bring back the key that the installation was made with", "%v", err)
		return
	}
	if e.db == nil {
		e.add(id, Skip, "", "the database can't be opened")
		return
	}
	bound, err := e.db.Fingerprint(ctx)
	switch {
	case err != nil:
		e.deny(id, err)
	case bound != secret.Fingerprint():
		e.add(id, Fail, "bring back the key that the installation was made with", "the secret key has the fingerprint %s, and the database was made with %q", secret.Fingerprint(), bound)
	default:
		e.add(id, OK, "", "the secret key is that of the database (fingerprint %s)", bound)
	}
}
