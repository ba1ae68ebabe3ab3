//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// trace attaches strace to the threads of the server, and to threads that begin later.
// The server runs on. The returned function detaches strace, and returns what strace has
// logged.
func (s *server) trace(t *testing.T, args ...string) (detach func() string) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed (on Debian: apt-get install strace)")
	}
	file := filepath.Join(t.TempDir(), "strace.log")
	var said buffer
	cmd := exec.Command("strace", append([]string{"-f", "-p", strconv.Itoa(s.cmd.Process.Pid), "-o", file}, args...)...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it ends by a signal
	}()
	stopped := false
	detach = func() string {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended with the server
			<-ended
		}
		text, _ := os.ReadFile(file)
		return string(text)
	}
	t.Cleanup(func() { detach() })
	waitFor(t, "strace to attach", func() bool {
		if strings.Contains(said.String(), "Operation not permitted") {
			t.Skipf("strace may not attach to a process here: %s", said.String())
		}
		return strings.Contains(said.String(), " attached")
	})
	return detach
}

var syncCall = regexp.MustCompile(`\bf(data)?sync\(`)

// TestAcknowledgedIsSynced: a response is sent only when its write is on the disk. A test
// with a kill can't show this, because the kernel keeps the writes of a killed process.
// Many creates, one after the other, need a sync each. A request that changes nothing
// needs no sync.
func TestAcknowledgedIsSynced(t *testing.T) {
	t.Parallel()
	const n = 50
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	c := s.client(t, key, 1)

	detach := s.trace(t, "-e", "trace=fsync,fdatasync")
	var ids []string
	for i := range n {
		ids = append(ids, contactOf(t, c.must(t, 201, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%d"}`, i))).ID)
	}
	if log := detach(); len(syncCall.FindAllString(log, -1)) < n {
		t.Errorf("%d creates cost %d syncs:\n%s", n, len(syncCall.FindAllString(log, -1)), log)
	}

	quiet := func() string {
		detach := s.trace(t, "-e", "trace=fsync,fdatasync")
		for i, id := range ids {
			c.must(t, 200, "GET", "/contacts/"+id, "")
			c.must(t, 200, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%d"}`, i))
		}
		return detach()
	}
	// From time to time, the log is copied into the database. This may happen during the
	// test.
	log := quiet()
	if syncCall.MatchString(log) {
		log = quiet()
	}
	if syncCall.MatchString(log) {
		t.Errorf("reads and upserts that change nothing cost syncs:\n%s", log)
	}
}
