package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// busy is the time for which TestBatchesBesideSingles keeps the server busy.
const busy = 3 * time.Second

// TestBatchesBesideSingles: one client sends batches of 1000, one after the other.
// Meanwhile 16 others create single contacts. The times of these creates are logged, but
// not checked, because machines differ.
func TestBatchesBesideSingles(t *testing.T) {
	const singles = 16
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	c := serve(t, dir).client(t, key, singles+1)
	end := time.Now().Add(busy)
	var batches int
	var took [singles][]time.Duration
	together(singles+1, func(i int) {
		for n := 0; time.Now().Before(end); n++ {
			if i == singles {
				rows := make([]string, 1000)
				for r := range rows {
					rows[r] = fmt.Sprintf(`{"external_id":"batch-%d-%d","email":"b.%d.%d@example.com","name":"Batch Row"}`, n, r, n, r)
				}
				if _, err := c.expect("POST", "/contacts/batch", upserts(rows), 200); err != nil {
					t.Error(err)
					return
				}
				batches++
				continue
			}
			start := time.Now()
			if _, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"single-%d-%d","email":"s.%d.%d@example.com"}`, i, n, i, n), 201); err != nil {
				t.Error(err)
				return
			}
			took[i] = append(took[i], time.Since(start))
		}
	})
	var all []time.Duration
	for _, list := range took {
		all = append(all, list...)
	}
	if batches == 0 || len(all) < singles {
		t.Errorf("%d batches, %d singles", batches, len(all))
	}
	t.Logf("beside %d batches of 1000 in %v: %d single creates, p50 %v, p99 %v, max %v",
		batches, busy, len(all), percentile(all, 50), percentile(all, 99), percentile(all, 100))
}

// TestRevokeBesideWriters: an operator revokes a key while 64 writers use it. Once the
// command has returned, new requests with this key are refused.
func TestRevokeBesideWriters(t *testing.T) {
	const writers, revocations = 64, 3
	dir := newDir(t)
	workspace, _ := newWorkspace(t, dir)
	s := serve(t, dir)
	var took []time.Duration
	for round := range revocations {
		made := must(t, dir, "key", "create", "--workspace", workspace, "--name", "test", "--permissions", "all")
		c := s.client(t, made["key"].(string), writers)
		var done atomic.Int64
		var revoked, over atomic.Bool
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				path := ""
				for n := 0; !over.Load(); n++ {
					late := revoked.Load()
					var r reply
					var err error
					if n%4 == 3 { // one request of four is a read
						r, err = c.expect("GET", path, "", 200, 401)
					} else {
						r, err = c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"%d-%d-%d"}`, round, w, n), 201, 401)
					}
					if err != nil {
						t.Error(err)
						return
					}
					if r.status == 401 {
						return
					}
					if late {
						t.Errorf("a request that began after the revocation was answered %d", r.status)
						return
					}
					if r.status == 201 {
						path = "/contacts/" + contactOf(t, r.body).ID
					}
					done.Add(1)
				}
			})
		}
		waitFor(t, "the writers to be at work", func() bool { return done.Load() > 10*writers })
		start := time.Now()
		must(t, dir, "key", "revoke", made["key_id"].(string))
		took = append(took, time.Since(start))
		revoked.Store(true)
		stopped := make(chan struct{})
		go func() { defer close(stopped); wg.Wait() }()
		select {
		case <-stopped:
		case <-time.After(patience):
			t.Error("a writer is still let in")
			over.Store(true)
			<-stopped
		}
	}
	t.Logf("parley key revoke beside %d writers: median %v, max %v", writers, percentile(took, 50), percentile(took, 100))
	if worst := percentile(took, 100); worst > 10*time.Second { // longer means that requests are practically blocked
		t.Errorf("parley key revoke took %v", worst)
	}
}

// TestSlowClients: from time to time, each of a thousand clients sends one byte of a
// header or a body. Eight other clients are not affected. A client that never ends its
// header is disconnected.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	const slow, normal, requests = 1000, 8, 100
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	address := strings.TrimPrefix(s.url, "http://")

	conns := make([]net.Conn, slow)
	for i := range conns {
		c, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[i] = c
		if err := c.SetDeadline(time.Now().Add(2 * patience)); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, err = io.WriteString(c, "POST /v1/contacts HTTP/1.1\r\nHost: parley\r\nX-Slow: ")
		} else {
			_, err = fmt.Fprintf(c, "POST /v1/contacts HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n", key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < slow; i += 2 { // the server is reading the body of this client
		if answer, err := bufio.NewReader(conns[i]).ReadString('\n'); err != nil || !strings.HasPrefix(answer, "HTTP/1.1 100") {
			t.Fatalf("connection %d: %q, %v", i, answer, err)
		}
	}

	// Each client sends one byte, one client after the other, until the test is over.
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(100 * time.Microsecond); ; {
			for _, c := range conns {
				select {
				case <-over:
					tick.Stop()
					return
				case <-tick.C:
					_, _ = c.Write([]byte(" ")) // the server may have closed the connection
				}
			}
		}
	}()
	c := s.client(t, key, normal)
	took := make([][]time.Duration, normal)
	together(normal, func(i int) {
		for n := range requests {
			start := time.Now()
			_, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"%d-%d"}`, i, n), 201)
			if err == nil {
				_, err = c.expect("GET", "/contacts?limit=10", "", 200)
			}
			if err != nil {
				t.Error(err)
				return
			}
			took[i] = append(took[i], time.Since(start))
		}
	})
	var all []time.Duration
	for _, list := range took {
		all = append(all, list...)
	}
	t.Logf("beside %d slow connections: a create and a list, p50 %v, max %v", slow, percentile(all, 50), percentile(all, 100))

	start := time.Now()
	if _, err := io.Copy(io.Discard, conns[0]); err != nil && time.Since(start) > patience {
		t.Errorf("a header that grows for ever is still read after %v", patience)
	}
	close(over)
	<-stopped
}
