package e2e_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

var held = flag.Int("held", 2000, "how many contacts the server of TestStart has when it starts. Long run: -held 100000")

// TestStart measures the time from exec to the first 200 of /healthz. The database has
// contacts. The time is logged, but not checked.
func TestStart(t *testing.T) {
	const starts = 5
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	c := s.client(t, key, 1)
	fill := func(name string, n int) {
		for done := 0; done < n; {
			rows := make([]string, min(1000, n-done))
			for i := range rows {
				rows[i] = fmt.Sprintf(`{"external_id":"%s-%d","email":"%s.%d@example.com","name":"Contact %d","identities":[{"kind":"crm","value":"%s/%d"}]}`,
					name, done, name, done, done, name, done)
				done++
			}
			if got := summaryOf(t, c.must(t, 200, "POST", "/contacts/batch", upserts(rows))); got.Created != len(rows) {
				t.Fatalf("%+v, want %d created", got, len(rows))
			}
		}
	}
	fill("held", *held)
	s.stop(t)
	var took []time.Duration
	for range starts {
		took = append(took, start(t, dir))
	}
	t.Logf("start with %d contacts: median %v of %v", *held, percentile(took, 50), took)

	s = serve(t, dir)
	c = s.client(t, key, 1)
	fill("more", 1000)
	s.kill()
	t.Logf("start after a kill, with a log to recover: %v", start(t, dir))
}

// start starts a server, stops it, and returns the time that the start took. It reads
// each line of the log at once, because serve reads the log only from time to time.
func start(t *testing.T, dir string) time.Duration {
	t.Helper()
	cmd := exec.Command(binary, "serve", "--data", dir, "--listen", "127.0.0.1:0")
	cmd.Env = environment()
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(log)
	line, err := lines.ReadString('\n')
	match := addressField.FindStringSubmatch(line)
	if err != nil || match == nil {
		_ = cmd.Process.Kill()
		rest, _ := io.ReadAll(lines)
		t.Fatalf("the first line of the log names no address: %s%s", line, rest)
	}
	s := &server{url: "http://" + strings.TrimSpace(match[1])}
	status := s.status(t, "/healthz")
	took := time.Since(began)
	if status != 200 {
		t.Errorf("/healthz of a server that says it is ready: status %d", status)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, lines)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended: %v", err)
	}
	return took
}
