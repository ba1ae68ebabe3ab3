//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
	"parley/whatsapp/whatsapptest"
)

var (
	nodeStops = flag.Int("node-stops", 1, "how often TestStoppedNode stops a node beside others. Long run: -node-stops 10 -stop-for 40s -timeout 20m")
	stopFor   = flag.Duration("stop-for", 7*time.Second, "for how long TestStoppedNode stops the node each time; see -node-stops")
)

// stoppedWait is the longest time that a caller may wait for a stopped node.
const stoppedWait = 8 * time.Second

// A waits has the times that callers of the running nodes have waited.
type waits struct {
	mu      sync.Mutex
	longest map[string]time.Duration
	n       map[string]int
	refused map[string]int // by the kind of call and the status
}

func (w *waits) note(what string, took time.Duration, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest[what] = max(w.longest[what], took)
	w.n[what]++
	if status >= 400 {
		w.refused[fmt.Sprint(what, " ", status)]++
	}
}

// TestStoppedNode stops one of three nodes (SIGSTOP) under load, while it writes, sends
// and assigns in a workspace that all nodes use. At the other nodes, writes, sends and
// inbound messages wait for a few seconds at most. In the end all of them succeed.
func TestStoppedNode(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	joint := "?"
	if strings.Contains(database, "?") {
		joint = "&"
	}
	w := newWhatsApp(t, database+joint+"pool_max_conns=8", templatesOf(1))
	nodes := []*server{w.server, w.serve(t), w.serve(t)}
	w.connect(t, w.server, "--per-second", "1000")
	member := w.command(t, 0, "member", "add", "--workspace", w.ws, "--name", "Ada", "--email", "ada@example.com")["member_id"].(string)
	clients := make([]*client, len(nodes))
	for i, s := range nodes {
		clients[i] = s.client(t, w.key, 16)
	}
	clients[0].must(t, 200, "PUT", "/policy", `{"assign":{"mode":"least_open","members":["`+member+`"]}}`)

	waited := &waits{longest: map[string]time.Duration{}, n: map[string]int{}, refused: map[string]int{}}
	load, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var next atomic.Int64
	keep := func(of int, what string, do func(c *client, n int64) (int, error)) {
		all.Go(func() {
			for load.Err() == nil {
				began := time.Now()
				status, err := do(clients[of], next.Add(1))
				switch {
				case of == len(nodes)-1: // a call of the node that is stopped
				case err != nil && load.Err() == nil:
					t.Errorf("%s, after %v: %v", what, time.Since(began), err)
				case err == nil:
					waited.note(what, time.Since(began), status)
				}
			}
		})
	}
	write := func(c *client, n int64) (int, error) {
		r, err := c.send("POST", "/contacts", fmt.Sprintf(`{"phone":"+9053%08d","name":"Person"}`, n))
		return r.status, err
	}
	sends := func(c *client, n int64) (int, error) {
		time.Sleep(250 * time.Millisecond) // each send has several statuses, and an inbound message would wait behind them
		r, err := c.send("POST", "/conversations/outbound", outbound(fmt.Sprintf("+9054%08d", n), "Ada"), "Idempotency-Key", fmt.Sprint("k", n))
		return r.status, err
	}
	inbound := func(c *client, n int64) (int, error) {
		from := fmt.Sprintf("9055%08d", n)
		if d := w.sim.Inbound(whatsapptest.Inbound{From: from, Text: "Hello"}); d.Wait() != 200 {
			return 0, fmt.Errorf("a callback was answered %v", d.Answers())
		}
		for ; load.Err() == nil; time.Sleep(20 * time.Millisecond) {
			r, err := c.send("GET", "/contacts?phone=%2B"+from, "")
			if err != nil || r.status == 200 && !bytes.Contains(r.body, []byte(`"data":[]`)) {
				return r.status, err
			}
		}
		return 0, load.Err()
	}
	for i := range nodes {
		for range 3 {
			keep(i, "write", write)
			keep(i, "send", sends)
		}
	}
	keep(0, "inbound", inbound)
	keep(1, "inbound", inbound)
	victim := nodes[len(nodes)-1]
	for range *nodeStops {
		time.Sleep(time.Second)
		if err := victim.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(*stopFor)
		if err := victim.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the node to answer again", func() bool { return victim.status(t, "/healthz") == 200 })
	}
	end()
	all.Wait()
	for what, took := range waited.longest {
		t.Logf("%s: %d, the longest %v", what, waited.n[what], took.Round(time.Millisecond))
		if took > stoppedWait {
			t.Errorf("a %s waited %v", what, took)
		}
	}
	if len(waited.refused) > 0 {
		t.Errorf("refused: %v", waited.refused)
	}
}
