//go:build linux

package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/store/postgres/pgtest"
	"parley/whatsapp/whatsapptest"
)

const tmpfsSize, ballastSize = 12 << 20, 6 << 20

// TestFullDisk: the disk fills up while eight clients write. They get 503, but reads go
// on. All acknowledged writes are kept. Once there is space, writes succeed again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("tmpfs", func(t *testing.T) {
		t.Parallel()
		small := t.TempDir()
		if err := syscall.Mount("parley-e2e", small, "tmpfs", 0, fmt.Sprintf("size=%d", tmpfsSize)); err != nil {
			t.Logf("not run, since mounting needs root (%v): file_size_limit stands in for it", err)
			return
		}
		// The unmount is lazy, because the server ends only after it.
		t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
		ballast := filepath.Join(small, "ballast")
		if err := os.WriteFile(ballast, make([]byte, ballastSize), 0o600); err != nil {
			t.Fatal(err)
		}
		f := newFault(t, filepath.Join(small, "data"))
		f.refused(t, 3)
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		f.recovers(t)
	})
	t.Run("file_size_limit", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("prlimit"); err != nil {
			t.Skip("prlimit is not installed (on Debian: apt-get install util-linux)")
		}
		f := newFault(t, newDir(t))
		limit := func(size string) {
			out, err := exec.CommandContext(t.Context(), "prlimit", "--pid", strconv.Itoa(f.s.cmd.Process.Pid), "--fsize="+size+":").CombinedOutput()
			if err != nil {
				t.Fatalf("prlimit: %v: %s", err, out)
			}
		}
		limit(strconv.Itoa(tmpfsSize - ballastSize))
		f.refused(t, 3)
		limit("unlimited")
		f.recovers(t)
	})
}

// TestFailingDisk: faults of the disk come and go while a server runs. strace simulates
// them: a file system on which a server has open files can't be remounted read-only.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	for name, inject := range map[string]string{
		"read_only":   "pwrite64,write,ftruncate,fallocate:error=EROFS",
		"io_error":    "pwrite64,write,ftruncate,fallocate:error=EIO",
		"sync_fails":  "fsync,fdatasync:error=EIO",
		"quota_spent": "pwrite64,write,ftruncate,fallocate:error=EDQUOT",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFault(t, newDir(t))
			f.write(t, 8, 20)
			calls, _, _ := strings.Cut(inject, ":")
			detach := f.s.trace(t, "-e", "trace="+calls, "-e", "inject="+inject,
				"-P", filepath.Join(f.dir, "parley.db"), "-P", filepath.Join(f.dir, "parley.db-wal"))
			f.refused(t, 3)
			if log := detach(); !strings.Contains(log, "(INJECTED)") {
				t.Errorf("strace made no call fail:\n%s", log)
			}
			f.recovers(t)
		})
	}
}

// TestReadOnlyMount: the program refuses a directory on a read-only file system with one
// clear line. It accepts the directory when it is writable.
func TestReadOnlyMount(t *testing.T) {
	t.Parallel()
	mounted := t.TempDir()
	if err := syscall.Mount("parley-e2e", mounted, "tmpfs", 0, "size=64m"); err != nil {
		t.Logf("not run, since mounting needs root (%v)", err)
		return
	}
	t.Cleanup(func() { _ = syscall.Unmount(mounted, syscall.MNT_DETACH) })
	remount := func(flags uintptr) {
		if err := syscall.Mount("", mounted, "", syscall.MS_REMOUNT|flags, "size=64m"); err != nil {
			t.Fatalf("remount: %v", err)
		}
	}
	f := newFault(t, filepath.Join(mounted, "data"))
	f.write(t, 8, 20)
	f.s.stop(t)
	remount(syscall.MS_RDONLY)
	r := parley(t, nil, "serve", "--data", f.dir, "--listen", "127.0.0.1:0")
	if r.code != 1 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "read-only") {
		t.Errorf("serve on a read-only directory: exit %d: %s", r.code, r.stderr)
	}
	remount(0)
	f.restart(t)
	f.recovers(t)
}

// TestLockedDatabase: while another process holds the database's lock, the writes of
// every workspace wait for a while and are refused. Reads continue.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	f := newFault(t, newDir(t))
	f.write(t, 8, 20)
	others := make([]*client, 8)
	for i := range others {
		_, key := newWorkspace(t, f.dir)
		others[i] = f.s.client(t, key, 1)
	}
	db, err := sql.Open("sqlite", filepath.Join(f.dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA busy_timeout = 10000", "BEGIN IMMEDIATE"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	together(len(others), func(i int) {
		if _, err := others[i].expect("POST", "/contacts", `{"external_id":"1"}`, 503); err != nil {
			t.Error(err)
		}
	})
	f.refused(t, 1)
	if _, err := db.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	f.recovers(t)
}

// A fault is a server whose disk has a fault, with the contacts that it has acknowledged.
type fault struct {
	dir, key string
	s        *server
	c        *client

	mu    sync.Mutex
	acked map[string]bool // external ids; false: refused
	next  int
}

func newFault(t *testing.T, dir string) *fault {
	t.Helper()
	_, key := newWorkspace(t, dir)
	f := &fault{dir: dir, key: key, acked: map[string]bool{}}
	f.restart(t)
	return f
}

func (f *fault) restart(t *testing.T) {
	t.Helper()
	f.s = serve(t, f.dir)
	f.c = f.s.client(t, f.key, 8)
}

// create makes one contact.
func (f *fault) create(statuses ...int) (reply, error) {
	f.mu.Lock()
	f.next++
	name := strconv.Itoa(f.next)
	f.mu.Unlock()
	r, err := f.c.expect("POST", "/contacts", `{"external_id":"`+name+`","note":"`+note+`"}`, statuses...)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.acked[name] = r.status == 201
	}
	return r, err
}

// write runs clients. Each of them creates this many contacts.
func (f *fault) write(t *testing.T, clients, each int) {
	t.Helper()
	together(clients, func(int) {
		for range each {
			if _, err := f.create(201); err != nil {
				t.Error(err)
				return
			}
		}
	})
}

// refused runs eight clients that write, until each has got this many responses with 503.
// Meanwhile it reads.
func (f *fault) refused(t *testing.T, times int) {
	t.Helper()
	together(8, func(int) {
		for n, met := 0, 0; met < times; n++ {
			if n == 2000 {
				t.Error("no write is refused")
				return
			}
			r, err := f.create(201, 503)
			if err != nil {
				t.Error(err)
				return
			}
			if r.status == 201 {
				continue
			}
			met++
			if !strings.Contains(string(r.body), `"type":"unavailable"`) || r.header.Get("Retry-After") == "" {
				t.Errorf("%d, Retry-After %q: %s", r.status, r.header.Get("Retry-After"), r.body)
			}
			if _, err := f.c.expect("GET", "/contacts?limit=1", "", 200); err != nil {
				t.Error(err)
			}
		}
	})
	f.all(t)
	if got := f.s.status(t, "/healthz"); got != 200 {
		t.Errorf("/healthz: status %d, though reads are answered", got)
	}
}

// recovers waits until a write succeeds, without a restart. Then it checks that all
// acknowledged contacts exist, before and after a kill.
func (f *fault) recovers(t *testing.T) {
	t.Helper()
	waitFor(t, "a write to be taken", func() bool {
		r, err := f.create(201, 503)
		if err != nil {
			t.Fatal(err)
		}
		return r.status == 201
	})
	f.write(t, 8, 5)
	f.all(t)
	f.s.kill()
	f.restart(t)
	f.all(t)
	f.s.stop(t)
	wantSound(t, f.dir)
}

// all checks that every acknowledged contact exists, and that no refused contact exists.
func (f *fault) all(t *testing.T) {
	t.Helper()
	there := map[string]bool{}
	for _, one := range f.c.contacts(t) {
		there[one.ExternalID] = one.Note == strings.TrimSpace(note)
	}
	for name, acked := range f.acked {
		if there[name] != acked {
			t.Errorf("contact %s is there: %t; it was acknowledged: %t", name, there[name], acked)
		}
	}
}

// TestMediaOnAFullDisk: on a full disk, an upload is refused, and nothing of it stays.
// Once there is space, the upload succeeds.
func TestMediaOnAFullDisk(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	if err := syscall.Mount("parley-e2e", small, "tmpfs", 0, "size=40m"); err != nil {
		t.Logf("not run, since mounting needs root (%v)", err)
		return
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	ballast := filepath.Join(small, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(small, "data")
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	content := strings.Repeat("0123456789abcdef", 2<<16)
	var refused atomic.Int64
	together(20, func(i int) {
		status, answer := s.call(t, key, "POST", "/media", fmt.Sprint(i)+content)
		switch status {
		case 201:
		case 503:
			refused.Add(1)
		default:
			t.Errorf("upload %d: %d %s", i, status, answer)
		}
	})
	if refused.Load() == 0 {
		t.Fatal("the disk was never full")
	}
	wantWholeFiles(t, filepath.Join(dir, "media"))
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	status, answer := s.call(t, key, "POST", "/media", content)
	if status != 201 {
		t.Fatalf("once there is space: %d %s", status, answer)
	}
	id := decode[struct{ Data struct{ ID string } }](t, []byte(answer)).Data.ID
	if _, got := s.call(t, key, "GET", "/media/"+id+"/content", ""); got != content {
		t.Errorf("%d bytes come back", len(got))
	}
}

var fullDiskFiles = flag.Int("full-disk-files", 0, "how many files TestInboundMediaOnAFullDisk has people send; it takes half a minute or more")

// TestInboundMediaOnAFullDisk: while the disk is full, people send files and members
// upload files. No message is lost, and no part of a file is taken for the whole file.
// Once there is space, all files arrive.
func TestInboundMediaOnAFullDisk(t *testing.T) {
	t.Parallel()
	if *fullDiskFiles == 0 {
		t.Log("run it with -full-disk-files 100")
		return
	}
	onBothStores(t, func(t *testing.T, in deployment) {
		small := smallDisk(t, 30<<10+*fullDiskFiles*450)
		f := fullDisk{deployment: deployment{filepath.Join(small, "data"), in.database}, small: small, media: filepath.Join(small, "data", "media")}
		if in.database != "" {
			f.dir, f.media = in.dir, filepath.Join(small, "media")
			f.flags = []string{"--media", f.media}
		}
		f.test(t)
	})
	for name, crashes := range map[string]bool{"database": false, "database_log": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small := smallDisk(t, 300<<10+*fullDiskFiles*2<<10)
			cluster := pgtest.ClusterIn(t, small)
			fullDisk{deployment: deployment{newDir(t), cluster.Database(t)}, small: small, cluster: cluster, crashes: crashes}.test(t)
		})
	}
}

// smallDisk mounts a disk of this many KiB. All users may write to it.
func smallDisk(t *testing.T, size int) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "parley-small-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := syscall.Mount("parley-e2e", dir, "tmpfs", 0, fmt.Sprintf("size=%dk,mode=1777", size)); err != nil {
		t.Skipf("mounting needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// A fullDisk is an installation that has its files, or its database, on a small disk.
type fullDisk struct {
	deployment
	small   string
	media   string         // the directory of the files; "": they are in the database
	cluster *pgtest.Server // the server on the small disk, or nil
	crashes bool           // the cluster crashes, because it can't write its log
	flags   []string
}

// crash makes the database write to its log until there is no room. This ends the
// database.
func (f fullDisk) crash(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.cluster.URL)
	for range 50 {
		if err != nil {
			t.Logf("the database's log finds no room: %v", err)
			return
		}
		_, err = conn.Exec(t.Context(), "SELECT pg_switch_wal(), pg_logical_emit_message(true, 'test', 'x')")
	}
	t.Error("the database's log finds room")
}

// starts starts the database again, unless it has restarted by itself.
func (f fullDisk) starts(t *testing.T) {
	t.Helper()
	alone := true
	waitFor(t, "the database to start", func() bool {
		conn, err := pgx.Connect(t.Context(), f.cluster.URL)
		if err == nil {
			return conn.Close(t.Context()) == nil
		}
		if f.cluster.Start() == nil {
			alone = false
		}
		return false
	})
	t.Logf("the database was up again by itself: %t", alone)
}

func (f fullDisk) test(t *testing.T) {
	patient := make([]time.Duration, 600)
	for i := range patient {
		patient[i] = time.Second
	}
	w := newWhatsAppIn(t, f.deployment, whatsapptest.Config{RetryDelays: patient, Templates: templatesOf(1)}, f.flags...)
	if f.flags != nil {
		w.env = []string{"PARLEY_MEDIA=" + f.media}
	}
	w.connect(t, w.server)
	c := w.server.client(t, w.key, 24)

	// At first there is space for some of the files, later for none.
	ballast := filepath.Join(f.small, "ballast")
	fills := func(leave int64) {
		t.Helper()
		var room syscall.Statfs_t
		if err := syscall.Statfs(f.small, &room); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(ballast, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		_, _ = file.Write(make([]byte, max(0, int64(room.Bavail)*room.Bsize-leave))) // the disk may have no space for the last part
	}
	fills(int64(*fullDiskFiles) * 40 << 10)
	content := func(i int) []byte {
		return append([]byte("\xff\xd8\xff\xe0"), strings.Repeat(fmt.Sprintf("of person %05d ", i), 20_000)...)
	}
	number := func(i int) string { return fmt.Sprintf("90532%07d", i) }
	var uploaded, refused atomic.Int64
	var ids sync.Map
	upload := func(i int) {
		text := fmt.Sprintf("upload %05d ", i) + strings.Repeat("x", 300<<10)
		r, err := c.send("POST", "/media", text)
		switch {
		case err == nil && r.status == 201:
			uploaded.Add(1)
			ids.Store(decode[struct{ Data struct{ ID string } }](t, r.body).Data.ID, text)
		case err == nil && r.status == 503:
			refused.Add(1)
		default:
			t.Errorf("upload %d: %v, %d %s", i, err, r.status, r.body)
		}
	}
	together(8, func(worker int) {
		for i := worker; i < *fullDiskFiles; i += 8 {
			w.sim.Inbound(whatsapptest.Inbound{From: number(i), Type: "image", File: content(i), MIME: "image/jpeg"})
			if i%5 == 0 {
				upload(i)
			}
			if i == *fullDiskFiles/2 {
				fills(200 << 10) // space for messages, but not for files
				if f.crashes {
					f.crash(t)
				}
			}
		}
	})
	waitFor(t, "the storage to be full", func() bool {
		metrics := w.server.metrics(t)
		files := strings.Contains(metrics, `parley_media_fetches_total{result="storage"}`) && !strings.Contains(metrics, `parley_media_fetches_total{result="storage"} 0`)
		if f.flags == nil { // the database may also have no room for messages and jobs
			files = files || strings.Contains(w.server.stderr.String(), "background work failed")
		}
		return files && refused.Load() > 0
	})
	if f.crashes {
		waitFor(t, "/readyz to tell that the database is away", func() bool { return w.server.status(t, "/readyz") == http.StatusServiceUnavailable })
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if f.cluster != nil {
		f.starts(t)
	}
	began := time.Now()
	for left := *fullDiskFiles; left > 0; <-time.After(200 * time.Millisecond) {
		if left = 0; time.Since(began) > 2*time.Minute {
			t.Fatalf("after %v, files are missing", time.Since(began))
		}
		for i := range *fullDiskFiles {
			all := c.bubbles(t, "+"+number(i))
			if len(all) != 1 || len(all[0].Attachments) != 1 || all[0].Attachments[0].Status != "ready" {
				left++
			}
		}
	}
	t.Logf("all %d files were ready %v after there was room; %d uploads were taken, %d refused", *fullDiskFiles, time.Since(began), uploaded.Load(), refused.Load())
	if refused.Load() == 0 {
		t.Error("the disk was never full")
	}
	for i := range *fullDiskFiles {
		id := c.bubbles(t, "+"+number(i))[0].Attachments[0].MediaID
		if got := c.must(t, 200, "GET", "/media/"+id+"/content", ""); !bytes.Equal(got, content(i)) {
			t.Errorf("the file of person %d has %d bytes", i, len(got))
		}
	}
	ids.Range(func(id, text any) bool {
		if got := c.must(t, 200, "GET", "/media/"+id.(string)+"/content", ""); string(got) != text.(string) {
			t.Errorf("the upload %s has %d bytes", id, len(got))
		}
		return true
	})
	if f.media == "" {
		return
	}
	wantWholeFiles(t, f.media)
	if left, err := os.ReadDir(filepath.Join(f.media, "drafts")); err != nil || len(left) != 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
}

// wantWholeFiles checks that each file has the hash in its name.
func wantWholeFiles(t *testing.T, media string) {
	t.Helper()
	err := filepath.WalkDir(media, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "parley-media.id" {
			return err
		}
		b, err := os.ReadFile(path)
		sum := sha256.Sum256(b)
		if d.Name() != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has other bytes", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
