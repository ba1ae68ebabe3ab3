package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

var besideRows = flag.Int("beside-rows", 2000, "how many contacts TestImportBeside imports beside a team. Long run, which checks the goal: -beside-rows 1000000 -speed 20s -parallel 1 -timeout 60m")

// TestImportBeside imports many contacts while a team answers customers. They are found then, and
// exported; and what a backup, restored elsewhere, exports is the same.
func TestImportBeside(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Cluster(t)
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		importBeside(t, deployment{newDir(t), ""}, func(d deployment) deployment {
			file, dir := filepath.Join(t.TempDir(), "parley.tar.zst"), filepath.Join(t.TempDir(), "restored")
			d.run(t, "backup", "--to", file)
			if r := parley(t, nil, "restore", file, "--data", dir, "--secret-key-file", filepath.Join(d.dir, "secret.key")); r.code != 0 {
				t.Fatalf("exit %d: %s", r.code, r.stderr)
			}
			return deployment{dir, ""}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		importBeside(t, deployment{newDir(t), cluster.Database(t)}, func(d deployment) deployment {
			dump, restored := filepath.Join(t.TempDir(), "parley.dump"), cluster.Database(t)
			for _, args := range [][]string{
				{"pg_dump", "--format=custom", "--file=" + dump, d.database},
				{"pg_restore", "--no-owner", "--exit-on-error", "--dbname=" + restored, dump},
			} {
				if out, err := exec.Command(cluster.Program(args[0]), args[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			return deployment{d.dir, restored}
		})
	})
}

func importBeside(t *testing.T, d deployment, restore func(deployment) deployment) {
	t.Helper()
	const team = 4
	ws, key := d.workspace(t)
	channel := d.sandbox(t, ws)
	c := serve(t, d.dir, "--database", d.database).client(t, key, team)
	var talks [team]string
	for i := range talks {
		talks[i] = d.must(t, "sandbox", "inbound", "--channel", channel, "--from", phoneOf(i), "--text", "Hello")["conversation_id"].(string)
	}
	var next atomic.Int64
	// answers lets the team answer until it is over, and returns how long the replies took.
	answers := func(over func() bool) (times []time.Duration) {
		var of [team][]time.Duration
		together(team, func(i int) {
			for !over() {
				began := time.Now()
				if _, err := c.replied(fmt.Sprintf("beside-%d", next.Add(1)), talks[i]); err != nil {
					t.Error(err)
					return
				}
				of[i] = append(of[i], time.Since(began))
				<-time.After(50 * time.Millisecond)
			}
		})
		for _, list := range of {
			times = append(times, list...)
		}
		return times
	}
	stop := time.Now().Add(*speed)
	alone := answers(func() bool { return time.Now().After(stop) })

	var lines bytes.Buffer
	for n := range *besideRows {
		fmt.Fprintf(&lines, `{"external_id":"own-%d","name":"Person n%dx","email":"p%d@example.com","phone":"+9053%08d"}`+"\n", n, n, n, n)
	}
	file := filepath.Join(t.TempDir(), "people.jsonl")
	check(t, os.WriteFile(file, lines.Bytes(), 0o600))
	var done atomic.Bool
	defer done.Store(true)
	var beside []time.Duration
	var answering sync.WaitGroup
	answering.Go(func() { beside = answers(done.Load) })
	began := time.Now()
	got := d.imports(t, 0, ws, file)
	took := time.Since(began)
	done.Store(true)
	answering.Wait()
	if got.Created != int64(*besideRows) {
		t.Errorf("%+v", got)
	}
	one, two := percentile(alone, 99), percentile(beside, 99)
	t.Logf("%d contacts were imported in %v, beside %d replies: median %v and p99 %v alone, %v and %v beside it", *besideRows, took, len(beside), percentile(alone, 50), one, percentile(beside, 50), two)
	wantRatio(t, *besideRows >= 1_000_000, "p99 of replies", float64(two)/float64(one), false, 2)

	began = time.Now()
	c.searchLevel(t, patience+time.Duration(*besideRows)*2*time.Millisecond)
	t.Logf("the search was level %v later", time.Since(began))
	for n := range 20 {
		id := strconv.Itoa(n * (*besideRows / 20))
		if body := string(c.must(t, 200, "GET", "/contacts?q=n"+id+"x", "")); strings.Count(body, `"external_id"`) != 1 || !strings.Contains(body, `"own-`+id+`"`) {
			t.Errorf("person %s is not found: %s", id, body)
		}
	}
	exported := func(d deployment) []byte {
		began := time.Now()
		out := filepath.Join(t.TempDir(), "out.jsonl")
		d.run(t, "export", "contacts", "--workspace", ws, "--format", "jsonl", "--out", out)
		content, err := os.ReadFile(out)
		check(t, err)
		t.Logf("exported %d bytes in %v", len(content), time.Since(began))
		return content
	}
	all := exported(d)
	if n := bytes.Count(all, []byte("\n")); n != *besideRows+team {
		t.Errorf("%d contacts were exported", n)
	}
	began = time.Now()
	other := restore(d)
	t.Logf("backed up and restored in %v", time.Since(began))
	if !bytes.Equal(exported(other), all) {
		t.Error("what is restored is not what was stored")
	}
	examined(t, 0, "--data", other.dir, "--database", other.database)
}
