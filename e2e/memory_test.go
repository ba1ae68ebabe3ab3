package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var attackFull = flag.Bool("memory-full", false, "let TestMemory attack the memory with full sizes, and judge what a neighbour waits")

// attackMemory is the most memory that a server may use under any attack.
const attackMemory = 400 << 20

// full returns count for a full attack, and small for an ordinary run.
func full(count, small int) int {
	if *attackFull {
		return count
	}
	return small
}

var peakField = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the most memory that the process has used, in bytes. It returns 0 if the
// system does not report it.
func (p *process) peak(t testing.TB) int {
	t.Helper()
	used, err := peakOf(p.cmd)
	if os.IsNotExist(err) {
		t.Log("this system does not tell the memory of a process")
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// peakOf returns the most memory that a command has had, in bytes. It is an error once the
// command has ended.
func peakOf(cmd *exec.Cmd) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	match := peakField.FindSubmatch(status)
	if match == nil {
		return 0, fmt.Errorf("no peak of memory: %s", status)
	}
	kib, err := strconv.Atoi(string(match[1]))
	return kib << 10, err
}

// A victim is a server with two workspaces: one attacks it, and the other one uses it.
type victim struct {
	*server
	attacker *client
	user     *client
}

func newVictim(t *testing.T, connections int) *victim {
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	_, other := newWorkspace(t, dir)
	s := serve(t, dir)
	v := &victim{server: s, attacker: s.client(t, key, connections), user: s.client(t, other, 2)}
	v.attacker.http.Timeout = 5 * time.Minute
	return v
}

// beside runs an attack while a neighbour reads and writes. It checks two bounds: of the
// server's memory, and of the times that the neighbour waits.
func (v *victim) beside(t *testing.T, p99, slowest time.Duration, attack func()) {
	t.Helper()
	id := contactOf(t, v.user.must(t, 201, "POST", "/contacts", `{"external_id":"neighbour"}`)).ID
	var reads, writes []time.Duration
	over := make(chan struct{})
	var wg sync.WaitGroup
	measure := func(took *[]time.Duration, call func(n int) error) {
		wg.Go(func() {
			for n := 0; ; n++ {
				start := time.Now()
				if err := call(n); err != nil {
					t.Error(err)
					return
				}
				*took = append(*took, time.Since(start))
				select {
				case <-over:
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
		})
	}
	measure(&reads, func(int) error {
		_, err := v.user.expect("GET", "/contacts/"+id, "", 200)
		return err
	})
	measure(&writes, func(n int) error {
		_, err := v.user.expect("PATCH", "/contacts/"+id, fmt.Sprintf(`{"name":"%d"}`, n), 200)
		return err
	})
	before := v.peak(t)
	start := time.Now()
	attack()
	took := time.Since(start)
	close(over)
	wg.Wait()
	peak := v.peak(t)
	t.Logf("%v of attack: %d MB at most (%d before); a neighbour's reads p50 %v, p99 %v, max %v, writes p50 %v, p99 %v, max %v", took.Round(time.Millisecond),
		peak>>20, before>>20, percentile(reads, 50), percentile(reads, 99), percentile(reads, 100), percentile(writes, 50), percentile(writes, 99), percentile(writes, 100))
	if peak > attackMemory {
		t.Errorf("%d MB of memory, want at most %d", peak>>20, attackMemory>>20)
	}
	if !*attackFull {
		return // times prove nothing if other tests run at the same time
	}
	all := slices.Concat(reads, writes)
	if p99 > 0 && percentile(all, 99) > p99 {
		t.Errorf("a neighbour's p99 is %v, want at most %v", percentile(all, 99), p99)
	}
	if slowest > 0 && percentile(all, 100) > slowest {
		t.Errorf("a neighbour waits %v, want at most %v", percentile(all, 100), slowest)
	}
}

// texts defines n text attributes: k0, k1, and so on.
func (c *client) texts(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		c.must(t, 201, "POST", "/attributes", fmt.Sprintf(`{"key":"k%d","type":"text"}`, i))
	}
}

// mustBatch sends rows as a batch of upserts. All rows must succeed.
func (c *client) mustBatch(t *testing.T, rows []string) {
	t.Helper()
	body := c.must(t, 200, "POST", "/contacts/batch", upserts(rows))
	if !strings.Contains(string(body), fmt.Sprintf(`"total":%d,`, len(rows))) || !strings.Contains(string(body), `"errors":0}`) {
		t.Fatalf("%.600s", body)
	}
}

// fill makes n contacts. Each has nearly 256 KiB of attributes, and the given number of
// further identities.
func (c *client) fill(t *testing.T, n, further int) {
	t.Helper()
	c.texts(t, 65)
	var values []string
	for k := range 64 {
		values = append(values, fmt.Sprintf(`"k%d":"%s"`, k, strings.Repeat("x", 4000)))
	}
	var rows []string
	size := 0
	send := func(row string, last bool) {
		if rows, size = append(rows, row), size+len(row); size > 12<<20 || last {
			c.mustBatch(t, rows)
			rows, size = nil, 0
		}
	}
	for i := range n {
		send(fmt.Sprintf(`{"external_id":"c%d","attributes":{%s}}`, i, strings.Join(values, ",")), i == n-1)
	}
	long := strings.Repeat("\U0001F600", 245)
	for i := range n {
		for first := 0; first < further; first += 50 {
			var list []string
			for k := range 50 {
				list = append(list, fmt.Sprintf(`{"kind":"crm","value":"%d-%d-%s"}`, i, first+k, long))
			}
			send(fmt.Sprintf(`{"external_id":"c%d","identities":[%s]}`, i, strings.Join(list, ",")), i == n-1 && first+50 >= further)
		}
	}
}

// TestMemory sends requests that took gigabytes of memory in an earlier version.
func TestMemory(t *testing.T) {
	const slow = 2 * time.Second
	const quick = 250 * time.Millisecond

	t.Run("one_large_contact_a_thousand_times", func(t *testing.T) {
		v := newVictim(t, 1)
		v.attacker.fill(t, 1, 0)
		var rows []string
		for n := range full(1000, 300) {
			rows = append(rows, fmt.Sprintf(`{"external_id":"c0","attributes":{"k0":"%d"}}`, n))
		}
		v.beside(t, 0, slow, func() { v.attacker.mustBatch(t, rows) })
	})

	large := func(t *testing.T, contacts, further int) {
		v := newVictim(t, 1)
		v.attacker.fill(t, contacts, further)
		var rows []string
		for n := range contacts {
			rows = append(rows, fmt.Sprintf(`{"external_id":"c%d","attributes":{"k0":"%d"}}`, n, n))
		}
		v.beside(t, 0, slow, func() { v.attacker.mustBatch(t, rows) })
	}
	t.Run("a_thousand_large_contacts", func(t *testing.T) { large(t, full(1000, 80), 0) })
	t.Run("with_a_thousand_identities_each", func(t *testing.T) { large(t, full(1000, 10), 1000) })

	// The same contacts are sent in single requests. Several of them share a flush.
	t.Run("a_thousand_large_contacts_one_by_one", func(t *testing.T) {
		const clients = 250
		v := newVictim(t, clients)
		contacts := full(1000, clients)
		v.attacker.fill(t, contacts, 0)
		var taken, refused atomic.Int64
		v.beside(t, 0, slow, func() {
			together(clients, func(i int) {
				for n := i; n < contacts; n += clients {
					r, err := v.attacker.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"c%d","attributes":{"k0":"%d"}}`, n, n), 200, 503)
					switch {
					case err != nil:
						t.Errorf("%.600v", err)
					case r.status == 200:
						taken.Add(1)
					default:
						refused.Add(1) // the server has no memory for the response
					}
				}
			})
		})
		t.Logf("%d requests were answered with 200, %d with 503", taken.Load(), refused.Load())
		if taken.Load() == 0 {
			t.Error("no request was answered")
		}
	})

	t.Run("junk_attributes", func(t *testing.T) {
		const clients = 8
		v := newVictim(t, clients)
		bytes := full(16<<20, 4<<20) - 1024
		bodies := []string{batchOf(1, bytes, shortNames), batchOf(1000, bytes, shortNames), batchOf(15, bytes, longNames), batchOf(500, bytes, lists)}
		v.attacker.texts(t, 10)
		var counts [clients]struct{ taken, refused int }
		v.beside(t, quick, 0, func() {
			together(clients, func(i int) {
				count := &counts[i]
				// When the memory for request bodies is used up, the response is 503. The
				// client then sends its body again.
				for round := 0; round < full(4, 1) || count.taken == 0 && round < 20; round++ {
					r, err := v.attacker.expect("POST", "/contacts/batch", bodies[(i+round)%len(bodies)], 200, 503)
					switch {
					case err != nil:
						t.Errorf("%.600v", err)
					case r.status == 200:
						count.taken++
					default:
						count.refused++
					}
				}
			})
		})
		t.Logf("bodies that were taken, and refused for want of room, of each client: %v", counts)
		for i, count := range counts {
			if count.taken == 0 {
				t.Errorf("no body of client %d was taken", i)
			}
		}
	})

	t.Run("mistakes_with_long_reasons", func(t *testing.T) {
		v := newVictim(t, 8)
		var options []string
		for n := range 500 {
			options = append(options, fmt.Sprintf(`"%03d%s"`, n, strings.Repeat("\U0001F600", 252)))
		}
		made := 0
		for n := range 60 {
			r, err := v.attacker.expect("POST", "/attributes", fmt.Sprintf(`{"key":"s%d","type":"select","options":[%s]}`, n, strings.Join(options, ",")), 201, 400)
			if err != nil {
				t.Fatal(err)
			}
			if r.status == 201 {
				made++
			}
		}
		if body := v.attacker.must(t, 200, "GET", "/attributes", ""); made != 8 || len(body) > 4<<20 {
			t.Errorf("%d attributes of half a megabyte, answered in %d bytes", made, len(body))
		}
		var rows []string
		for range 1000 {
			rows = append(rows, `{"external_id":"a","attributes":{"s0":"x"}}`)
		}
		v.beside(t, quick, 0, func() {
			together(8, func(int) {
				for range full(20, 2) {
					r, err := v.attacker.expect("POST", "/contacts/batch", upserts(rows), 200, 503)
					if err != nil || len(r.body) > 6<<20 {
						t.Errorf("%d bytes, %v", len(r.body), err)
					}
				}
			})
		})
	})
}

// batchOf returns a batch with this many rows and bytes. member writes the members of a
// row.
func batchOf(rows, bytes int, member func(b *strings.Builder, n int)) string {
	var b strings.Builder
	b.WriteString(`{"operations":[`)
	for row := range rows {
		if row > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"op":"upsert","data":{"external_id":"%d","attributes":{"k0":""`, row)
		var one strings.Builder
		for n, end := 0, bytes*(row+1)/rows-100; ; n++ {
			one.Reset()
			member(&one, n)
			if b.Len()+one.Len() > end {
				break
			}
			b.WriteByte(',')
			b.WriteString(one.String())
		}
		b.WriteString("}}}")
	}
	b.WriteString("]}")
	return b.String()
}

func shortNames(b *strings.Builder, n int) {
	b.WriteByte('"')
	b.WriteString(strings.ToUpper(strconv.FormatInt(int64(n), 36))) // in capitals, so that it is no name of an attribute
	b.WriteString(`":0`)
}

func longNames(b *strings.Builder, n int) {
	fmt.Fprintf(b, `"%d%s":0`, n, strings.Repeat("\\u0001", 3000))
}

func lists(b *strings.Builder, n int) {
	fmt.Fprintf(b, `"l%d":[%s0]`, n, strings.Repeat(`"",`, 4000))
}
