//go:build unix

package e2e_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	dataCost     = flag.Int("data-cost", 2000, "how many contacts TestDataCost imports. Long run, which checks the goals: -data-cost 1000000 -data-messages 100000 -data-files 9990 -speed 5s -parallel 1 -timeout 90m")
	dataMessages = flag.Int("data-messages", 40, "how many messages the contact has that TestDataCost merges into another; a multiple of 10; see -data-cost")
	dataFiles    = flag.Int("data-files", 20, "how many files the contact has that TestDataCost merges into another; see -data-cost")
)

// peopleOf returns rows of new contacts as JSON.
func peopleOf(kind string, n int) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"external_id":"%s-%d","name":"Person n%dx","email":"%s%d@example.com"}`, kind, i, i, kind, i)
	}
	return rows
}

// TestDataCost: what imports and merges cost, as ratios and times (contract-data §9).
func TestDataCost(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		channel := d.sandbox(t, ws)
		s := serve(t, d.dir, "--database", d.database)
		c := s.client(t, key, 64)
		importCosts(t, d, c, ws)
		mergeCosts(t, d, c, channel)
	})
}

func importCosts(t *testing.T, d deployment, c *client, ws string) {
	t.Helper()
	part := max(1000, *dataCost/5)
	began := time.Now()
	for rows := range slices.Chunk(peopleOf("batch", part), 1000) {
		c.mustBatch(t, rows)
	}
	batch := float64(part) / time.Since(began).Seconds()

	// imports imports contacts by the command, and returns how many a second, and the most memory.
	imports := func(kind string, n int) (perSecond float64, peak int) {
		file := filepath.Join(t.TempDir(), kind+".jsonl")
		check(t, os.WriteFile(file, []byte(strings.Join(peopleOf(kind, n), "\n")+"\n"), 0o600))
		cmd := exec.CommandContext(t.Context(), binary, "import", "contacts", "--workspace", ws, file, "--data", d.dir, "--database", d.database)
		cmd.Env = environment()
		began := time.Now()
		out, peak := watched(t, cmd)
		if cmd.ProcessState.ExitCode() != 0 {
			t.Fatalf("the import: exit %d: %s", cmd.ProcessState.ExitCode(), out)
		}
		return float64(n) / time.Since(began).Seconds(), peak
	}
	long := *dataCost >= 1_000_000                                                           // a failure would end what is measured next, so ratios come last
	level := func() { c.searchLevel(t, patience+time.Duration(*dataCost)*time.Millisecond) } // each measure begins so
	level()
	alone, _ := imports("alone", part)
	t.Logf("%d contacts: %.0f a second imported, and %.0f by batches of one client", part, alone, batch)
	defer wantRatio(t, long, "an import, of batch/1", alone/batch, true, 0.8)

	var n, created atomic.Int64
	create := func() error {
		_, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"one-%d"}`, n.Add(1)), 201)
		created.Add(1)
		return err
	}
	level()
	creates := rate(t, 16, create)
	level()
	var done atomic.Bool
	var creating sync.WaitGroup
	creating.Go(func() {
		together(16, func(int) {
			for !done.Load() {
				if err := create(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	})
	created.Store(0)
	began = time.Now()
	beside, _ := imports("beside", part)
	with := float64(created.Load()) / time.Since(began).Seconds()
	done.Store(true)
	creating.Wait()
	t.Logf("16 clients created %.0f contacts a second alone, and %.0f beside an import of %.0f a second", creates, with, beside)
	defer wantRatio(t, long, "an import beside 16 clients, of alone", beside/alone, true, 0.25)
	defer wantRatio(t, long, "16 clients beside an import, of alone", with/creates, true, 0.25)

	all, peak := imports("all", *dataCost)
	t.Logf("%d contacts: %.0f a second imported, with %d MB at most", *dataCost, all, peak>>20)
	if peak > 200<<20 || peak == 0 && runtime.GOOS == "linux" {
		t.Errorf("the command took %d bytes, want 200 MB at most", peak)
	}
}

func mergeCosts(t *testing.T, d deployment, c *client, channel string) {
	t.Helper()
	const others, talks = 4, 10
	writes := func(phone string) string {
		return d.must(t, "sandbox", "inbound", "--channel", channel, "--from", phone, "--text", "Hello")["conversation_id"].(string)
	}
	contactOf := func(conversation string) string {
		return decode[struct {
			Data struct {
				Contact string `json:"contact_id"`
			}
		}](t, c.must(t, 200, "GET", "/conversations/"+conversation, "")).Data.Contact
	}
	// many calls do so often, by 64 clients.
	many := func(times int, do func(n int) error) {
		var next atomic.Int64
		together(64, func(int) {
			for n := int(next.Add(1)); n <= times && !t.Failed(); n = int(next.Add(1)) {
				if err := do(n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var talk string
	for i := range talks { // of one person, one after the other
		talk = writes(phoneOf(1))
		many(*dataMessages/talks, func(n int) error {
			_, err := c.replied(fmt.Sprintf("cost-%d-%d", i, n), talk)
			return err
		})
		if i < talks-1 {
			for _, status := range []string{"closed", "archived"} {
				c.must(t, 200, "PUT", "/conversations/"+talk+"/status", `{"status":"`+status+`"}`)
			}
		}
	}
	withMessages := contactOf(talk)
	files := writes(phoneOf(2))
	many(*dataFiles, func(n int) error {
		r, err := c.send("POST", "/media?name=a.txt", fmt.Sprint("file ", n), "Content-Type", "text/plain")
		if err == nil && r.status == http.StatusCreated {
			id := decode[struct{ Data struct{ ID string } }](t, r.body).Data.ID
			_, err = c.sentTo("/conversations/"+files+"/messages", fmt.Sprintf("file-%d", n), fmt.Sprintf(`{"attachment":{"media_id":%q}}`, id))
		}
		if err == nil && r.status != http.StatusCreated {
			err = fmt.Errorf("an upload answers %d %s", r.status, r.body)
		}
		return err
	})
	withFiles := contactOf(files)
	into := decode[struct{ Data struct{ ID string } }](t, c.must(t, 201, "POST", "/contacts", `{"external_id":"survivor"}`)).Data.ID

	var of [others]string
	for i := range of {
		of[i] = writes(phoneOf(10 + i))
	}
	// merged merges a contact and undoes it, a few times, while others answer. It returns the median
	// time of a merge, and the longest of an answer.
	merged := func(from string) (took, longest time.Duration) {
		var done atomic.Bool
		var slowest [others]time.Duration
		var answering sync.WaitGroup
		answering.Go(func() {
			together(others, func(i int) {
				for n := 0; !done.Load(); n++ {
					began := time.Now()
					if _, err := c.replied(fmt.Sprintf("%s-%d-%d", from, i, n), of[i]); err != nil {
						t.Error(err)
						return
					}
					slowest[i] = max(slowest[i], time.Since(began))
				}
			})
		})
		var times []time.Duration
		for range 5 {
			began := time.Now()
			body := c.must(t, 200, "POST", "/contacts/"+into+"/merge", `{"from":"`+from+`"}`)
			times = append(times, time.Since(began))
			id := decode[struct{ Data struct{ ID string } }](t, body).Data.ID
			c.must(t, 200, "POST", "/merges/"+id+"/undo", `{}`)
		}
		done.Store(true)
		answering.Wait()
		return percentile(times, 50), slices.Max(slowest[:])
	}
	for _, m := range []struct {
		what     string
		from     string
		long     bool
		most     time.Duration // of the merge; 0: no goal
		mostWait time.Duration // of others
	}{
		{fmt.Sprintf("%d messages in %d conversations", *dataMessages, talks), withMessages, *dataMessages >= 100_000, 50 * time.Millisecond, time.Second},
		{fmt.Sprintf("%d files", *dataFiles), withFiles, *dataFiles >= 9990, 0, time.Second},
	} {
		took, wait := merged(m.from)
		t.Logf("a merge of %s took %v, and others waited %v at most", m.what, took, wait)
		if m.long && (m.most > 0 && took > m.most || wait > m.mostWait) {
			t.Errorf("a merge of %s misses its goal", m.what)
		}
	}
}
