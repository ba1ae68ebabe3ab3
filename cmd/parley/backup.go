package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"parley/archive"
	"parley/config"
)

type backupCmd struct {
	To string `help:"The new file." required:"" placeholder:"FILE"`
}

// Help shows examples.
func (*backupCmd) Help() string {
	return paragraphs(
		"The server may run meanwhile. The backup has the database and the files of customers, but not the secret key: keep secret.key apart.",
		examples(`parley backup --to /backup/parley-2026-11-26.tar.zst --data /var/lib/parley`, `parley backup --to backup.tar.zst --json`),
	)
}

// Run makes a backup.
func (c *backupCmd) Run(ctx context.Context, s *session) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	storage, err := s.storage()
	if err != nil {
		return err
	}
	if storage.URL != "" {
		return fmt.Errorf("PostgreSQL makes its own backups: pg_dump --format=custom --file=%s '%s'", quoted(c.To), config.HidePassword(storage.URL))
	}
	if err := exists(ctx, storage); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no parley installation: name the right one with --data", storage)
	} else if err != nil {
		return err
	}
	p := &progress{to: s.stderr, last: time.Now()}
	r, err := archive.Backup(ctx, storage.Database(), c.To, versionOf(), p.steps)
	p.clear()
	if err != nil {
		return err
	}
	return s.answer(r, "Wrote %s: %s bytes, SHA-256 %s.\nKeep secret.key apart from it. To try it: parley restore %s --data NEW --drill\n", r.File, fmt.Sprint(r.Bytes), r.SHA256, quoted(r.File))
}

// steps shows how far a backup is.
func (p *progress) steps(doing string, done, of int) {
	if time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	if of == 0 {
		p.line(doing)
		return
	}
	p.line(fmt.Sprintf("%s: %d of %d", doing, done, of))
}

type restoreCmd struct {
	File          string `arg:"" help:"The backup."`
	SecretKeyFile string `help:"The installation's secret.key, which is copied into the directory; without it, PARLEY_SECRET_KEY is used." placeholder:"F"`
	Drill         bool   `help:"Disable all channels and webhooks: the restored installation sends nothing."`
}

// Help shows examples.
func (*restoreCmd) Help() string {
	return paragraphs(
		"--data names the directory, which must be absent or empty. If the backup can't be restored, the directory is as before.",
		examples(`parley restore backup.tar.zst --data /var/lib/parley --secret-key-file secret.key`, `parley restore backup.tar.zst --data ./drill --secret-key-file secret.key --drill`),
	)
}

type restoreRecord struct {
	Data    string         `json:"data"`
	TakenAt time.Time      `json:"taken_at"`
	Counts  map[string]int `json:"counts"`
	Files   int            `json:"files"`
	Drill   bool           `json:"drill"`
}

// Run restores a backup.
func (c *restoreCmd) Run(ctx context.Context, s *session) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if !s.typed.data {
		return usageError("give the directory to restore into, with --data")
	}
	text := os.Getenv(secretEnv)
	if c.SecretKeyFile != "" {
		b, err := os.ReadFile(c.SecretKeyFile)
		if err != nil {
			return err
		}
		text = string(b)
	}
	if text == "" {
		return errors.New("a backup has no secret key: give the installation's with --secret-key-file, or in PARLEY_SECRET_KEY")
	}
	secret, err := config.ParseSecret(text)
	if err != nil {
		return err
	}
	p := &progress{to: s.stderr, last: time.Now()}
	m, err := archive.Restore(ctx, archive.Restoration{
		File: c.File, Dir: s.flags.Data, Drill: c.Drill, Step: p.steps,
		Fits: func(fingerprint string) error {
			if fingerprint != secret.Fingerprint() {
				return fmt.Errorf("it belongs to the secret key with the fingerprint %s, and the given one has %s", fingerprint, secret.Fingerprint())
			}
			return nil
		},
		Place: func(dir string) error {
			if c.SecretKeyFile == "" {
				return nil
			}
			return config.WriteNew(filepath.Join(dir, "secret.key"), []byte(hex.EncodeToString(secret[:])+"\n"))
		},
	})
	p.clear()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.stderr, `Before you serve it:
- What happened since %s is unknown to it. A call that repeats an Idempotency-Key of a later send sends again.
- API keys that were revoked later are valid: parley key list, parley key revoke.
- People who were deleted later are back: parley erase deletes them again.
`, m.TakenAt.Format(time.RFC3339)); err != nil {
		return err
	}
	return s.answer(restoreRecord{s.flags.Data, m.TakenAt, m.Counts, len(m.Files), c.Drill}, "Restored the backup of %s into %s: %s contacts, %s files.\n",
		m.TakenAt.Format(time.RFC3339), s.flags.Data, fmt.Sprint(m.Counts["contacts"]), fmt.Sprint(len(m.Files)-1))
}
