package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"parley/store/sqlite"

	"github.com/klauspost/compress/zstd"
)

// A Report is what a backup is afterwards.
type Report struct {
	File    string    `json:"file"`
	Bytes   int64     `json:"bytes"`
	SHA256  string    `json:"sha256"`
	TakenAt time.Time `json:"taken_at"`
}

// Backup writes a backup of a database and its files to a new file. Servers may write
// meanwhile. A file of the installation that is deleted before it is read comes back as a
// deleted record. If Backup fails, it leaves nothing.
func Backup(ctx context.Context, database, to, version string, step func(doing string, done, of int)) (r Report, err error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s exists: name a new file", to)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(to), ".parley-backup-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	step("copying the database", 0, 0)
	r.TakenAt = time.Now().UTC().Truncate(time.Millisecond)
	db := filepath.Join(scratch, databaseName)
	if err := sqlite.CopyTo(ctx, database, db); err != nil {
		return r, err
	}
	list, err := sqlite.Files(ctx, db)
	if err != nil {
		return r, err
	}

	// The files come first, because only then it is known which of them are there. Parts that
	// are compressed apart make one stream.
	media, err := newPart(filepath.Join(scratch, "media"))
	if err != nil {
		return r, err
	}
	defer func() { _ = media.file.Close() }()
	m := Manifest{Format: format, Version: version, TakenAt: r.TakenAt, Files: []File{{Name: databaseName}}}
	var gone []sqlite.File
	for n, f := range list {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		step("files", n, len(list))
		sum := hex.EncodeToString(f.SHA256)
		name := "media/" + f.Workspace.String() + "/" + sum[:2] + "/" + sum
		size, err := media.addFile(name, filepath.Join(filepath.Dir(database), filepath.FromSlash(name)), sum)
		if errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, f)
			continue
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		m.Files = append(m.Files, File{name, size, sum})
	}
	if err := media.end(true); err != nil {
		return r, err
	}
	if m.Fingerprint, m.Counts, err = sqlite.Finish(ctx, db, gone); err != nil {
		return r, err
	}
	if m.Files[0], err = described(db); err != nil {
		return r, err
	}

	whole, err := newPart(filepath.Join(scratch, "backup"))
	if err != nil {
		return r, err
	}
	defer func() { _ = whole.file.Close() }()
	text, err := json.Marshal(m)
	if err == nil {
		err = whole.add(manifestName, int64(len(text)), func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	if err == nil {
		_, err = whole.addFile(databaseName, db, m.Files[0].SHA256)
	}
	if err == nil {
		err = whole.end(false)
	}
	if err == nil {
		err = whole.join(media.file)
	}
	if err != nil {
		return r, err
	}
	step("verifying", 0, 0)
	if r.Bytes, r.SHA256, err = verify(whole.file); err != nil {
		return r, fmt.Errorf("the backup can't be read again: %w", err)
	}
	r.File = to
	if err := place(filepath.Join(scratch, "backup"), to, os.Link); err != nil {
		return r, err
	}
	return r, syncDir(filepath.Dir(to))
}

// place gives a finished file its name. A link, unlike a rename, does not replace a file that
// somebody has made there meanwhile; file systems without links get a rename.
func place(from, to string, link func(from, to string) error) error {
	err := link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, there := os.Lstat(to); !errors.Is(there, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// verify reads a backup again, and returns its size and hash.
func verify(f *os.File) (size int64, sum string, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, "", err
	}
	hash := sha256.New()
	discard := func(File, io.Reader) error { return nil }
	from := io.TeeReader(f, hash)
	if err := read(from, func(Manifest) error { return nil }, discard); err != nil {
		return 0, "", err
	}
	if _, err := io.Copy(io.Discard, from); err != nil {
		return 0, "", err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, "", err
	}
	return info.Size(), hex.EncodeToString(hash.Sum(nil)), nil
}

// described returns the size and hash of the database.
func described(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	return File{databaseName, n, hex.EncodeToString(hash.Sum(nil))}, err
}

// A part is a compressed part of a backup.
type part struct {
	file *os.File
	z    *zstd.Encoder
	tar  *tar.Writer
}

func newPart(path string) (*part, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window/2))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &part{f, z, tar.NewWriter(z)}, nil
}

func (p *part) add(name string, size int64, write func(io.Writer) error) error {
	if err := p.tar.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	return write(p.tar)
}

// addFile adds a file, whose bytes must have this hash.
func (p *part) addFile(name, path, sum string) (size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	hash := sha256.New()
	err = p.add(name, info.Size(), func(w io.Writer) error {
		_, err := io.Copy(io.MultiWriter(w, hash), f)
		return err
	})
	if err == nil && hex.EncodeToString(hash.Sum(nil)) != sum {
		err = errors.New("it has other bytes than its record says: parley doctor --deep shows more")
	}
	return info.Size(), err
}

// end ends a part, the last one with the end of the tar file.
func (p *part) end(last bool) error {
	err := p.tar.Flush()
	if last {
		err = errors.Join(err, p.tar.Close())
	}
	return errors.Join(err, p.z.Close())
}

// join appends another part, durably.
func (p *part) join(other *os.File) error {
	if _, err := other.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(p.file, other); err != nil {
		return err
	}
	return p.file.Sync()
}
