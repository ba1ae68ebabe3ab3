package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

var (
	importRows  = flag.Int("import-rows", 12_000, "how many rows TestImportKilled imports. Long run: -import-rows 1000000")
	importKills = flag.Int("import-kills", 3, "how often TestImportKilled kills the command. Long run: -import-kills 10")
)

// An imported is the result of parley import --json.
type imported struct {
	ImportID                                    *string `json:"import_id"`
	Rows, Created, Updated, Unchanged, Rejected int64
	ErrorsFile                                  *string `json:"errors_file"`
}

func bothStores(t *testing.T, test func(*testing.T, deployment)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, deployment{newDir(t), ""})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, deployment{newDir(t), pgtest.Database(t)})
	})
}

// imports runs parley import contacts, which must exit with a code.
func (d deployment) imports(t testing.TB, code int, ws, file string, flags ...string) (got imported) {
	t.Helper()
	args := append([]string{"import", "contacts", "--workspace", ws, file, "--json", "--data", d.dir, "--database", d.database}, flags...)
	r := parley(t, nil, args...)
	if r.code != code {
		t.Fatalf("parley %s: exit %d, want %d: %s", strings.Join(args, " "), r.code, code, r.stderr)
	}
	if code == 0 || code == 3 {
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatal(err, r.stdout)
		}
	}
	return got
}

// TestImport imports a file with mistakes beside a server, mends its file of rejected rows,
// and imports that. The same file again changes nothing and makes no event.
func TestImport(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		s := serve(t, d.dir, "--database", d.database)
		c := s.client(t, key, 4)
		c.must(t, 201, "POST", "/attributes", `{"key":"plan","type":"select","options":["free","pro"]}`)
		file := filepath.Join(t.TempDir(), "people.csv")
		write := func(name, content string) {
			t.Helper()
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var table strings.Builder
		table.WriteString("Own id;Ad;Soyad;Telefon;Plan\n")
		for n := range 1500 {
			phone, plan := fmt.Sprintf("+90532%07d", 1_000_000+n), []string{"free", "pro"}[n%2]
			switch n % 100 {
			case 7:
				phone = "12"
			case 8:
				plan = "gold"
			}
			fmt.Fprintf(&table, "c-%d;Ayşe;Yılmaz %d;%s;%s\n", n, n, phone, plan)
		}
		write(file, table.String())
		flags := []string{"--map", "Own id=external_id"}
		d.imports(t, 1, ws, file)
		if got := d.imports(t, 3, ws, file, append(flags, "--dry-run")...); got.ImportID != nil || got.Created != 1470 || got.Rejected != 30 || len(c.contacts(t)) != 0 {
			t.Errorf("a dry run: %+v", got)
		}
		got := d.imports(t, 3, ws, file, flags...)
		if got.Rows != 1500 || got.Created != 1470 || got.Rejected != 30 || got.ErrorsFile == nil {
			t.Fatalf("%+v", got)
		}
		newest := len(s.events(t, key, "oldest"))
		if got := d.imports(t, 3, ws, file, flags...); got.Unchanged != 1470 || got.Rejected != 30 {
			t.Errorf("again: %+v", got)
		}
		if n := len(s.events(t, key, "oldest")); n != newest {
			t.Errorf("%d events for nothing", n-newest)
		}
		rejected, err := os.ReadFile(*got.ErrorsFile)
		if err != nil {
			t.Fatal(err)
		}
		mended := strings.NewReplacer(";12;", ";;", ";gold;", ";pro;").Replace(string(rejected))
		write(file, mended)
		if got := d.imports(t, 0, ws, file, flags...); got.Rows != 30 || got.Created != 30 || got.ErrorsFile != nil {
			t.Errorf("mended: %+v", got)
		}
		if n := len(c.contacts(t)); n != 1500 {
			t.Errorf("%d contacts", n)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.part")); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
		write(file, "phone,since,opted_out\n+905320000001,2026-01-31,\n+905320000002,2026-01-31T10:00:00Z,yes\n7,,\n+905320000003,,false\n")
		r := parley(t, nil, "import", "opt-outs", "--workspace", ws, file, "--json", "--data", d.dir, "--database", d.database)
		if r.code != 3 || !strings.Contains(r.stdout, `"rows":4,"created":0,"updated":2,"unchanged":1,"rejected":1`) {
			t.Errorf("opt-outs: exit %d, %s%s", r.code, r.stdout, r.stderr)
		}
	})
}

// TestImportKilled kills the command again and again. In the end all is as after one run: the
// contacts, the counts, and the file of rejected rows. A second command waits for a killed one.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, d deployment) {
		ws, k := d.workspace(t)
		var lines bytes.Buffer
		for n := range *importRows {
			name := fmt.Sprintf("%q", fmt.Sprint("Person ", n))
			if n%50 == 3 {
				name = "7"
			}
			fmt.Fprintf(&lines, `{"external_id":"k-%d","name":%s,"email":"k%d@example.com"}`+"\n", n, name, n)
		}
		file := filepath.Join(t.TempDir(), "people.jsonl")
		if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		kills := 0
		for kills < *importKills {
			cmd := exec.CommandContext(t.Context(), binary, "import", "contacts", "--workspace", ws, file, "--json", "--data", d.dir, "--database", d.database)
			progress, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			soon := func() {
				time.AfterFunc(time.Duration(100+rand.IntN(400))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
			if kills == 0 || *importRows < 100_000 {
				soon() // a later one first waits for the lease of the killed one
			}
			for lines := bufio.NewScanner(progress); lines.Scan(); {
				if kills > 0 && strings.Contains(lines.Text(), " rows, ") {
					soon()
				}
			}
			if cmd.Wait() != nil && cmd.ProcessState.ExitCode() < 0 {
				kills++
				continue
			}
			break // it was faster than the kill
		}
		got := d.imports(t, 3, ws, file)
		bad := int64((*importRows + 46) / 50)
		if got.Rows != int64(*importRows) || got.Created != int64(*importRows)-bad || got.Rejected != bad {
			t.Errorf("after %d kills: %+v", kills, got)
		}
		rejected, err := os.ReadFile(*got.ErrorsFile)
		if err != nil {
			t.Fatal(err)
		}
		if n := int64(bytes.Count(rejected, []byte("\n"))); n != bad {
			t.Errorf("%d rows are in the file of rejected rows, want %d", n, bad)
		}
		serve(t, d.dir, "--database", d.database).createdOnce(t, k, *importRows-int(bad))
		t.Logf("after %d kills: %+v", kills, got)
	})
}

// createdOnce fails unless a workspace has so many contacts, which differ, each created once.
func (s *server) createdOnce(t testing.TB, key string, want int) {
	t.Helper()
	all := s.client(t, key, 2).contacts(t)
	names := map[string]bool{}
	for _, c := range all {
		names[c.ExternalID] = true
	}
	created := 0
	for _, e := range s.events(t, key, "oldest") {
		if e.Type == "contact.created" {
			created++
		}
	}
	if len(all) != want || len(names) != want || created != want {
		t.Errorf("%d contacts, %d different, %d were created; want %d", len(all), len(names), created, want)
	}
}
