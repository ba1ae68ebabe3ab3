package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A heldOpen has requests that never end, each on its own connection. Such a request has
// a header, and only a part of the announced body. The responses are counted by status.
type heldOpen struct {
	t     *testing.T
	conns []net.Conn
	wg    sync.WaitGroup
	mu    sync.Mutex
	codes map[int]int
}

// hold opens n connections for such requests. header must not end with a newline.
func (s *server) hold(t *testing.T, n int, request, header string, announced, sent int) *heldOpen {
	t.Helper()
	h := &heldOpen{t: t, codes: map[int]int{}}
	for range n {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.url, "http://"), patience)
		if err != nil {
			t.Fatal(err)
		}
		h.conns = append(h.conns, c)
		if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: parley\r\n%s\r\nContent-Length: %d\r\n\r\n", request, header, announced); err != nil {
			t.Fatal(err)
		}
		h.wg.Go(func() { _, _ = io.Copy(c, io.LimitReader(spaces{}, int64(sent))) }) // until the server stops reading
		h.wg.Go(func() {
			if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				answer.Body.Close()
				h.mu.Lock()
				defer h.mu.Unlock()
				h.codes[answer.StatusCode]++
			}
		})
	}
	return h
}

// end closes the connections, and returns the number of responses by status.
func (h *heldOpen) end() map[int]int {
	for _, c := range h.conns {
		c.Close()
	}
	h.wg.Wait()
	return h.codes
}

// spaces is a body of spaces without end: the JSON never begins.
type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// large sends several batches of n KiB, one after the other. All of them must be stored.
func (c *client) large(t *testing.T, rounds, n int) (slowest time.Duration) {
	t.Helper()
	for range rounds {
		begun := time.Now()
		body := strings.Replace(upserts([]string{`{"external_id":"large"}`}), "{", "{"+strings.Repeat(" ", n<<10-100), 1)
		c.must(t, 200, "POST", "/contacts/batch", body)
		slowest = max(slowest, time.Since(begun))
	}
	return slowest
}

// TestMemoryOfBodies: requests that announce large bodies, or have them, use no more
// memory than is reserved for them. Meanwhile other requests succeed, even those with
// large bodies.
func TestMemoryOfBodies(t *testing.T) {
	batch, callback := "POST /v1/contacts/batch", "POST /hooks/whatsapp/0196f2a0-0000-7000-8000-000000000000"
	for _, c := range []struct {
		name            string
		n               int
		request         string
		key             bool
		announced, sent int
	}{
		{"announced", full(300, 100), batch, true, 16 << 20, 1},
		{"callbacks", full(200, 40), callback, false, 4 << 20, 4<<20 - 1},
		{"still", 16, batch, true, 16 << 20, 16<<20 - 1},
		{"still without a key", 16, batch, false, 16 << 20, 16<<20 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVictim(t, 2)
			header := "X-Key: none"
			if c.key {
				header = "Authorization: Bearer " + v.attacker.key
			}
			v.beside(t, 250*time.Millisecond, 0, func() {
				held := v.hold(t, c.n, c.request, header, c.announced, c.sent)
				others := v.user.large(t, full(20, 4), 8<<10)
				own := v.attacker.large(t, full(20, 4), 500)
				t.Logf("another workspace's batches of 8 MiB take %v at most, its own of 500 KiB %v; the bodies were answered %v", others, own, held.end())
			})
		})
	}
}
