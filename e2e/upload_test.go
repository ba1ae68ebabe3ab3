//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	uploadRows  = flag.Int("upload-rows", 4000, "how many rows TestUploadKilled imports in the console. Long run: -upload-rows 1000000 -upload-kills 10 -upload-stop 30s -timeout 60m")
	uploadKills = flag.Int("upload-kills", 1, "how often TestUploadKilled kills the server that imports; see -upload-rows")
	uploadStop  = flag.Duration("upload-stop", 0, "for how long TestUploadKilled then stops the server that imports, longer than its lease, which is 15s; see -upload-rows")
	hugeCell    = flag.Int("huge-cell", 16, "how many MB the cell has that TestImport_huge imports. Long run: -huge-cell 1000")
	badRows     = flag.Int("bad-rows", 500, "how many rows TestImport_mended imports, of which a tenth is wrong in 12 ways. Long run: -bad-rows 5000")
)

// uploadProgress finds how many rows were read, on the page of an import that is at work.
var uploadProgress = regexp.MustCompile(`value="(\d+)" aria-label="Rows read"`)

// eachIsWrong tells which rows of peopleTable are wrong: one in so many. At most 5,000 are: an
// upload ends at 10,000 rejected rows.
func eachIsWrong(rows int) int { return max(50, rows/5000) }

// peopleTable is a file of contacts, of which some are wrong.
func peopleTable(rows int) string {
	var b strings.Builder
	b.WriteString("external_id;name;email;phone\r\n")
	for n := range rows {
		phone := ""
		if n%eachIsWrong(rows) == 3 {
			phone = "12"
		}
		fmt.Fprintf(&b, "u-%d;Person %d;u%d@example.com;%s\r\n", n, n, n, phone)
	}
	return b.String()
}

// uploads sends the form with a file to import, and returns the address of its page.
func (c *plainClient) uploads(name, text string) string {
	c.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	_ = m.WriteField("member", c.member)
	part, err := m.CreateFormFile("people", name)
	check(c.t, err)
	_, err = io.WriteString(part, text)
	check(c.t, err)
	check(c.t, m.Close())
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/contacts/import", &body)
	check(c.t, err)
	r.Header.Set("Content-Type", m.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := c.http.Do(r)
	check(c.t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		text, _ := io.ReadAll(answer.Body)
		c.t.Fatalf("the upload: %d %.500s", answer.StatusCode, text)
	}
	return answer.Header.Get("Location")
}

// TestUploadKilled imports files in the console while the server that does it is killed again
// and again, and then stopped for longer than its lease. Another one takes over; on SQLite, the
// same one is started again. The counts, the contacts and the rejected rows are as from one run.
func TestUploadKilled(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		d.must(t, "member", "add", "--workspace", ws, "--name", "Ada", "--email", "ada@example.com", "--role", "admin")
		serves := func() *server { return serve(t, d.dir, "--database", d.database) }
		nodes := []*server{serves()}
		if d.database != "" {
			nodes = append(nodes, serves())
		}
		link := d.must(t, "login-link", "--workspace", ws, "--member", "ada@example.com", "--public-url", nodes[0].url)["url"].(string)
		ada := signInPlainly(t, nodes[0].url, strings.TrimPrefix(link, nodes[0].url))

		at := ada.uploads("people.csv", peopleTable(*uploadRows))
		if a := ada.post(at, "encoding", "", "delimiter", ";", "columns.0", "external_id", "columns.1", "name", "columns.2", "email", "columns.3", "phone", "dates", "", "do", "import"); a.status != http.StatusSeeOther {
			t.Fatalf("the start: %d %.500s", a.status, a.body)
		}
		each := eachIsWrong(*uploadRows)
		bad := (*uploadRows + each - 4) / each
		good := *uploadRows - bad
		rng := random(newSeed(t), 0)
		replace := func(i int) {
			nodes[i] = serves()
			ada.url = nodes[i].url
		}
		done := 0
		goesOn := func() bool { // false: it has come to its end
			for stop := time.Now().Add(2 * patience); time.Now().Before(stop); <-time.After(20 * time.Millisecond) {
				is := uploadProgress.FindStringSubmatch(ada.get(at).body)
				if is == nil {
					return false
				}
				if n, err := strconv.Atoi(is[1]); err == nil && n > done {
					done = n
					return true
				}
			}
			t.Fatal("the import does not go on")
			return false
		}
		kills := 0
		for kills < *uploadKills && goesOn() {
			<-time.After(time.Duration(rng.IntN(100)) * time.Millisecond)
			for i := range nodes { // one of them works on it, and nobody knows which
				nodes[i].kill()
				replace(i)
			}
			kills++
		}
		if *uploadStop > 0 && goesOn() {
			for _, s := range nodes {
				s.signal(t, syscall.SIGSTOP)
				<-time.After(*uploadStop)
				s.signal(t, syscall.SIGCONT)
			}
		}
		t.Logf("%d kills, the last one after %d rows", kills, done)
		var page string
		for stop := time.Now().Add(2*patience + time.Duration(*uploadRows)*time.Millisecond); ; <-time.After(100 * time.Millisecond) {
			if page = ada.get(at).body; strings.Contains(page, "What happened") {
				break
			}
			if time.Now().After(stop) {
				t.Fatalf("the import does not end: %.3000s", page)
			}
		}
		nodes[0].createdOnce(t, key, good)
		rejected, err := csvOf(strings.TrimPrefix(ada.get(at+"rejected").body, "\uFEFF"))
		check(t, err)
		seen := map[string]bool{}
		for _, row := range rejected[1:] {
			seen[row[0]] = true
		}
		if len(rejected) != 1+bad || len(seen) != bad {
			t.Errorf("%d rejected rows, %d different; want %d", len(rejected)-1, len(seen), bad)
		}
		if list := ada.get("/contacts/import").body; !strings.Contains(list, fmt.Sprintf("%s rows, %s rejected", thousands(*uploadRows), thousands(bad))) {
			t.Errorf("the list of imports: %.3000s", list)
		}
	})
}

// thousands writes a number as the console does.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func csvOf(text string) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = ';'
	return r.ReadAll()
}

// TestImport_huge: a file with a cell that is far too large, or with a million columns, is
// refused with its line, and the command takes little memory.
func TestImport_huge(t *testing.T) {
	t.Parallel()
	d := deployment{dir: newDir(t)}
	ws, _ := d.workspace(t)
	for name, write := range map[string]func(w io.Writer){
		"cell": func(w io.Writer) {
			_, _ = io.WriteString(w, "external_id;name\n1;Ada\n2;\"")
			for part, n := strings.Repeat("x", 1<<20), 0; n < *hugeCell; n++ {
				_, _ = io.WriteString(w, part)
			}
			_, _ = io.WriteString(w, "\"\n")
		},
		"columns": func(w io.Writer) {
			_, _ = io.WriteString(w, "external_id;name\n1;Ada\n"+strings.Repeat("x;", 1_000_000)+"\n")
		},
	} {
		file := filepath.Join(t.TempDir(), name+".csv")
		f, err := os.Create(file)
		check(t, err)
		write(f)
		check(t, f.Close())
		cmd := exec.CommandContext(t.Context(), binary, "import", "contacts", "--workspace", ws, file, "--data", d.dir)
		cmd.Env = environment()
		out, peak := watched(t, cmd)
		if cmd.ProcessState.ExitCode() != 1 || !bytes.Contains(bytes.ToLower(out), []byte("line 3")) {
			t.Errorf("%s: exit %d, %s", name, cmd.ProcessState.ExitCode(), out)
		}
		if peak > 200<<20 || peak == 0 && runtime.GOOS == "linux" {
			t.Errorf("%s: the command took %d bytes", name, peak)
		}
	}
	if all := serve(t, d.dir).client(t, d.key(t, ws)["key"].(string), 1).contacts(t); len(all) != 0 {
		t.Errorf("%d contacts were stored", len(all))
	}
}

// watched runs a command, and returns its output, and the most memory that it was seen to have.
// (Its rusage would count the memory of this process, too, as which it began.)
func watched(t *testing.T, cmd *exec.Cmd) (out []byte, peak int) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	check(t, cmd.Start())
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is refused: cmd.ProcessState has the code
		close(over)
	}()
	for {
		select {
		case <-over:
			return said.Bytes(), peak
		case <-time.After(2 * time.Millisecond):
		}
		if now, err := peakOf(cmd); err == nil { // else it has just ended
			peak = max(peak, now)
		}
	}
}

// TestImport_mended: a tenth of the rows is wrong, in twelve ways, each with its own reason. The
// file of rejected rows is mended by a program and imported: then all are in.
func TestImport_mended(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		s := serve(t, d.dir, "--database", d.database)
		c := s.client(t, key, 2)
		for _, attribute := range []string{`{"key":"plan","type":"select","options":["free","pro"]}`, `{"key":"born","type":"date"}`, `{"key":"score","type":"number"}`, `{"key":"vip","type":"boolean"}`, `{"key":"site","type":"url"}`} {
			c.must(t, 201, "POST", "/attributes", attribute)
		}
		c.must(t, 201, "POST", "/contacts", `{"email":"one@example.com"}`)
		c.must(t, 201, "POST", "/contacts", `{"email":"two@example.com"}`)
		header := []string{"external_id", "name", "email", "phone", "note", "owner", "identities", "attributes.plan", "attributes.born", "attributes.score", "attributes.vip", "attributes.site"}
		wrong := []map[int]string{ // by column
			{3: "12"},
			{2: "no address"},
			{3: "9.05E+11"},
			{5: "nobody@example.com"},
			{6: "crm"},
			{6: "phone:abc"},
			{7: "gold"},
			{8: "31.31.2026"},
			{9: "many"},
			{10: "perhaps"},
			{11: "ftp://x.example"},
			{2: "one@example.com", 6: `[{"kind":"email","value":"two@example.com"}]`},
		}
		row := func(n int) []string {
			return []string{fmt.Sprint("m-", n), fmt.Sprint("Person ", n), fmt.Sprintf("m%d@example.com", n), fmt.Sprintf("+90532%07d", 2_000_000+n), "note", "", fmt.Sprintf("crm:%d", n), "pro", "2026-01-31", "1.5", "yes", "https://x.example"}
		}
		var table bytes.Buffer
		w := csv.NewWriter(&table)
		check(t, w.Write(header))
		for n := range *badRows {
			cells := row(n)
			if n%10 == 3 {
				for column, cell := range wrong[n/10%len(wrong)] {
					cells[column] = cell
				}
			}
			check(t, w.Write(cells))
		}
		w.Flush()
		file := filepath.Join(t.TempDir(), "people.csv")
		check(t, os.WriteFile(file, table.Bytes(), 0o600))
		bad := int64(*badRows / 10)
		got := d.imports(t, 3, ws, file)
		if got.Rows != int64(*badRows) || got.Created != int64(*badRows)-bad || got.Rejected != bad {
			t.Fatalf("%+v", got)
		}
		rejected, err := os.ReadFile(*got.ErrorsFile)
		check(t, err)
		list, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(rejected, []byte("\uFEFF")))).ReadAll()
		check(t, err)
		reasons := map[string]bool{}
		var mended bytes.Buffer
		w = csv.NewWriter(&mended)
		check(t, w.Write(list[0]))
		for _, cells := range list[1:] {
			reasons[cells[len(header)+2]] = true
			var n int
			if _, err := fmt.Sscanf(cells[0], "m-%d", &n); err != nil {
				t.Fatal(cells, err)
			}
			for column := range wrong[n/10%len(wrong)] {
				cells[column] = row(n)[column]
			}
			check(t, w.Write(cells))
		}
		w.Flush()
		if len(reasons) != len(wrong) {
			t.Errorf("%d reasons, want %d: %v", len(reasons), len(wrong), reasons)
		}
		check(t, os.WriteFile(file, mended.Bytes(), 0o600))
		if got := d.imports(t, 0, ws, file); got.Rows != bad || got.Created != bad {
			t.Errorf("mended: %+v", got)
		}
		if n := len(c.contacts(t)); n != 2+*badRows {
			t.Errorf("%d contacts", n)
		}
	})
}
