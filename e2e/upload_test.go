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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

var (
	uploadRows  = flag.Int("upload-rows", 4000, "how many rows TestUploadKilled and TestUploadOfPeople import in the console. Long run: -upload-rows 1000000 -upload-kills 10 -upload-stop 30s -timeout 60m")
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

// uploads sends the form of a page with a file to import, and returns the address of the import.
func (c *plainClient) uploads(page, name, text string) string {
	c.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	_ = m.WriteField("member", c.member)
	part, err := m.CreateFormFile("people", name)
	check(c.t, err)
	_, err = io.WriteString(part, text)
	check(c.t, err)
	check(c.t, m.Close())
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+page, &body)
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

// An importing has the servers that import what an admin uploads in the console.
type importing struct {
	ws, key string
	serves  func() *server
	nodes   []*server
	ada     *plainClient
}

// newImporting starts a server, and on PostgreSQL two.
func newImporting(t *testing.T, d deployment) *importing {
	t.Helper()
	i := &importing{serves: func() *server { return serve(t, d.dir, "--database", d.database) }}
	i.ws, i.key = d.workspace(t)
	d.must(t, "member", "add", "--workspace", i.ws, "--name", "Ada", "--email", "ada@example.com", "--role", "admin")
	i.nodes = []*server{i.serves()}
	if d.database != "" {
		i.nodes = append(i.nodes, i.serves())
	}
	url := i.nodes[0].url
	link := d.must(t, "login-link", "--workspace", i.ws, "--member", "ada@example.com", "--public-url", url)["url"].(string)
	i.ada = signInPlainly(t, url, strings.TrimPrefix(link, url))
	return i
}

// begins uploads a file on a page, chooses how it is read, looks at it, and starts its import. It
// returns the address of the import.
func (i *importing) begins(t *testing.T, page, text string, options ...string) (at string) {
	t.Helper()
	at = i.ada.uploads(page, "people.csv", text)
	for _, do := range []string{"show", "import"} { // another encoding starts nothing
		if a := i.ada.post(at, append(options[:len(options):len(options)], "do", do)...); a.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %.500s", do, a.status, a.body)
		}
	}
	return at
}

// killed kills the servers again and again while they import, and then stops them for longer than the
// lease of an import.
func (i *importing) killed(t *testing.T, at string) {
	t.Helper()
	rng := random(newSeed(t), 0)
	done := 0
	goesOn := func() bool { // false: it has come to its end
		for stop := time.Now().Add(2 * patience); time.Now().Before(stop); <-time.After(20 * time.Millisecond) {
			is := uploadProgress.FindStringSubmatch(i.ada.get(at).body)
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
		for n := range i.nodes { // one of them works on it, and nobody knows which
			i.nodes[n].kill()
			i.nodes[n] = i.serves()
			i.ada.url = i.nodes[n].url
		}
		kills++
	}
	if *uploadStop > 0 && goesOn() {
		for _, s := range i.nodes {
			s.signal(t, syscall.SIGSTOP)
			<-time.After(*uploadStop)
			s.signal(t, syscall.SIGCONT)
		}
	}
	t.Logf("%d kills, the last one after %d rows", kills, done)
}

// ends waits for the end of an import, and returns its page and the rejected rows with their header.
func (i *importing) ends(t *testing.T, at string) (page string, rejected [][]string) {
	t.Helper()
	for stop := time.Now().Add(2*patience + time.Duration(*uploadRows)*time.Millisecond); ; <-time.After(100 * time.Millisecond) {
		if page = i.ada.get(at).body; strings.Contains(page, "What happened") {
			break
		}
		if time.Now().After(stop) {
			_, main, _ := strings.Cut(page, "<main")
			t.Fatalf("the import does not end: %s", main)
		}
	}
	rejected, err := csvOf(strings.TrimPrefix(i.ada.get(at+"rejected").body, "\uFEFF"))
	check(t, err)
	return page, rejected
}

// TestUploadKilled imports files in the console while the server that does it is killed again
// and again, and then stopped for longer than its lease. Another one takes over; on SQLite, the
// same one is started again. The counts, the contacts and the rejected rows are as from one run.
func TestUploadKilled(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, d deployment) {
		i := newImporting(t, d)
		at := i.begins(t, "/contacts/import", peopleTable(*uploadRows), "encoding", "", "delimiter", ";", "columns.0", "external_id", "columns.1", "name", "columns.2", "email", "columns.3", "phone", "dates", "")
		each := eachIsWrong(*uploadRows)
		bad := (*uploadRows + each - 4) / each
		good := *uploadRows - bad
		i.killed(t, at)
		_, rejected := i.ends(t, at)
		i.nodes[0].createdOnce(t, i.key, good)
		seen := map[string]bool{}
		for _, row := range rejected[1:] {
			seen[row[0]] = true
		}
		if len(rejected) != 1+bad || len(seen) != bad {
			t.Errorf("%d rejected rows, %d different; want %d", len(rejected)-1, len(seen), bad)
		}
		if list := i.ada.get("/contacts/import").body; !strings.Contains(list, fmt.Sprintf("%s rows, %s rejected", thousands(*uploadRows), thousands(bad))) {
			t.Errorf("the list of imports: %.3000s", list)
		}
	})
}

// TestUploadOfPeople is TestUploadKilled for people of a broadcast. Before, it imports a few people
// from files of three encodings, by numbers and by the own ids of contacts of whom two were merged.
func TestUploadOfPeople(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, d deployment) {
		i := newImporting(t, d)
		file := filepath.Join(t.TempDir(), "branch.json")
		check(t, os.WriteFile(file, []byte(`{"name":"branch","language":"tr","category":"UTILITY","status":"APPROVED","components":[{"type":"BODY","text":"Yeni şube: {{1}}.","example":{"body_text":[["Kadıköy"]]}}]}`), 0o600))
		channel := d.sandbox(t, i.ws)
		d.must(t, "template", "put", "--channel", channel, "--file", file)
		c := i.nodes[0].client(t, i.key, 1)
		draft := func() string {
			body := c.must(t, 201, "POST", "/broadcasts", `{"name":"Spring","channel_id":"`+channel+`","template":{"name":"branch","language":"tr"},"consent":{"confirmed":true}}`)
			return decode[struct{ Data cast }](t, body).Data.ID
		}
		var contacts []string
		for n := range 3 {
			body := c.must(t, 201, "POST", "/contacts", fmt.Sprintf(`{"external_id":"crm-%d","phone":%q}`, n, phoneOf(n+1)))
			contacts = append(contacts, decode[struct{ Data struct{ ID string } }](t, body).Data.ID)
		}
		c.must(t, 200, "POST", "/contacts/"+contacts[0]+"/merge", `{"from":"`+contacts[1]+`"}`)

		byNumber := "Telefon;Şube\r\n" + phoneOf(1) + ";İstanbul Çağlayan\r\n12;Ş\r\n" + phoneOf(3) + ";Göztepe\r\n"
		byID := "Müşteri;Şube\r\ncrm-0;İstanbul Çağlayan\r\ncrm-1;Ğ\r\nnobody;Ş\r\ncrm-2;" + strings.Repeat("ü", 5000) + "\r\ncrm-2;Göztepe\r\n"
		for name, writes := range map[string]*encoding.Encoder{
			"": unicode.UTF8.NewEncoder(), "windows-1254": charmap.Windows1254.NewEncoder(), "utf-16le": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder(),
		} {
			for _, of := range []struct {
				table, who string
				wrong      int
				want       []string // the first person has two rows of the file, of which the last one counts
			}{
				{byNumber, "phone", 1, []string{"Yeni şube: İstanbul Çağlayan.", "Yeni şube: Göztepe."}},
				{byID, "external_id", 2, []string{"Yeni şube: Ğ.", "Yeni şube: Göztepe."}},
			} {
				id := draft()
				text, err := writes.String(of.table)
				check(t, err)
				at := i.begins(t, "/broadcasts/"+id+"/import", text, "encoding", name, "delimiter", ";", "columns.0", of.who, "columns.1", "variables.1")
				page, rejected := i.ends(t, at)
				if len(rejected) != 1+of.wrong {
					t.Errorf("%s by %s: %d rejected rows, want %d: %.3000s", name, of.who, len(rejected)-1, of.wrong, page)
				}
				var got []string
				for _, sample := range decode[struct {
					Data struct{ Samples []struct{ Text string } }
				}](t, c.must(t, 200, "POST", "/broadcasts/"+id+"/check", `{}`)).Data.Samples {
					got = append(got, sample.Text)
				}
				if !slices.Equal(got, of.want) {
					t.Errorf("%s by %s: the messages %q, want %q", name, of.who, got, of.want)
				}
			}
		}

		id := draft()
		rows := min(*uploadRows, 1_000_000)
		each := eachIsWrong(rows)
		bad := (rows + each - 4) / each
		var b strings.Builder
		b.WriteString("Telefon;Şube\r\n")
		for n := range rows {
			number := fmt.Sprintf("+9054%08d", n)
			if n%each == 3 {
				number = "12"
			}
			fmt.Fprintf(&b, "%s;Kadıköy %d\r\n", number, n)
		}
		at := i.begins(t, "/broadcasts/"+id+"/import", b.String(), "encoding", "", "delimiter", ";", "columns.0", "phone", "columns.1", "variables.1")
		i.killed(t, at)
		page, rejected := i.ends(t, at)
		if len(rejected) != 1+bad {
			t.Errorf("%d rejected rows, want %d: %.3000s", len(rejected)-1, bad, page)
		}
		c = i.nodes[0].client(t, i.key, 1)
		list := c.castList(t, id)
		if now := c.castNow(t, id); len(list) != rows-bad || now.count("rows") != rows-bad || now.count("pending") != rows-bad {
			t.Errorf("%d rows, want %d: %v", len(list), rows-bad, now.Counts)
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
