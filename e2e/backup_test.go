package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var (
	backups      = flag.Int("backups", 2, "how many backups TestBackups makes beside writers. Long run: -backups 20 -backup-writers 32")
	backupWrites = flag.Int("backup-writers", 8, "how many clients write while TestBackups makes backups; see -backups")
)

// TestBackups: backups are made while clients create contacts and files, and delete both.
// Each is restored, and is sound: all files that it names are there, and everything that was
// stored before. A backup with a flipped bit is refused, and nothing is left.
func TestBackups(t *testing.T) {
	t.Parallel()
	dir, scratch := newDir(t), t.TempDir()
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	c := s.client(t, key, *backupWrites)
	over := make(chan struct{})
	var writers sync.WaitGroup
	for w := range *backupWrites {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", w, n)
				contact, err := c.expect("POST", "/contacts", `{"external_id":"`+id+`"}`, 201)
				if err != nil {
					t.Error(err)
					return
				}
				file, err := c.expect("POST", "/media?name=a.txt", "file "+id, 201)
				if err == nil && n%2 == 0 { // erasures
					_, err = c.expect("DELETE", "/media/"+decode[struct{ Data struct{ ID string } }](t, file.body).Data.ID, "", 204)
					if err == nil {
						_, err = c.expect("DELETE", "/contacts/"+decode[struct{ Data struct{ ID string } }](t, contact.body).Data.ID, "", 204)
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var file string
	for n := range *backups {
		before := fmt.Sprintf("before-%d", n)
		s.want(t, 201, key, "POST", "/contacts", `{"external_id":"`+before+`"}`)
		file = filepath.Join(scratch, fmt.Sprintf("%d.tar.zst", n))
		backup := parley(t, nil, "backup", "--to", file, "--data", dir, "--json") // one that takes longer tells its progress on standard error
		if backup.code != 0 {
			t.Fatalf("exit %d: %s", backup.code, backup.stderr)
		}
		made := decode[struct{ Bytes int64 }](t, []byte(backup.stdout))
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != made.Bytes {
			t.Errorf("%v %v %v", info, err, made)
		}
		restored := filepath.Join(scratch, fmt.Sprint(n))
		r := parley(t, nil, "restore", file, "--data", restored, "--secret-key-file", filepath.Join(dir, "secret.key"), "--drill")
		if r.code != 0 || !strings.Contains(r.stderr, "parley erase") {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		for id, status := range examined(t, 0, "--deep", "--data", restored) {
			if status != "ok" && id != "search.behind" && id != "disk.space" {
				t.Errorf("backup %d: %s is %s", n, id, status)
			}
		}
		other := serve(t, restored)
		if answer := other.want(t, 200, key, "GET", "/contacts?external_id="+before, ""); !strings.Contains(answer, before) {
			t.Errorf("backup %d lacks a contact: %s", n, answer)
		}
		other.stop(t)
	}
	close(over)
	writers.Wait()
	s.stop(t)

	whole, err := os.ReadFile(file)
	check(t, err)
	complaint := regexp.MustCompile(`^(\w+: \d.*\n)*parley: .*\n$`) // one line; a slow restore tells its progress before
	for range 10 {
		flipped := append([]byte(nil), whole...)
		at := rand.IntN(len(flipped))
		flipped[at] ^= 1 << rand.IntN(8)
		bad := filepath.Join(scratch, "flipped")
		check(t, os.WriteFile(bad, flipped, 0o600))
		to := filepath.Join(scratch, "never")
		if r := parley(t, nil, "restore", bad, "--data", to, "--secret-key-file", filepath.Join(dir, "secret.key")); r.code != 1 || !complaint.MatchString(r.stderr) {
			t.Errorf("byte %d of %d is flipped: exit %d %s", at, len(flipped), r.code, r.stderr)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("byte %d is flipped: something is left", at)
		}
	}
	refused(t, nil, []string{"restore", file, "--data", filepath.Join(scratch, "keyless")}, "PARLEY_SECRET_KEY")
	refused(t, []string{"PARLEY_SECRET_KEY=" + strings.Repeat("00", 32)}, []string{"restore", file, "--data", filepath.Join(scratch, "keyless")}, "fingerprint")
	refused(t, nil, []string{"backup", "--to", file, "--data", dir}, "exists")
	refused(t, nil, []string{"backup", "--to", filepath.Join(scratch, "pg"), "--database", "postgres://ada:hunter2@db/parley"}, "pg_dump")
}
