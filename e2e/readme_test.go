package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"parley/desk"
)

// An example is a shell block of a document with its output. The output is the block
// after it, or "" if there is none.
type example struct{ shell, prints string }

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// examples returns the sh blocks of a document. A json or text block is the output of the
// sh block before it. A block without a language is only for the reader.
func examples(document string) (list []example) {
	for _, block := range fence.FindAllStringSubmatch(document, -1) {
		switch language, body := block[1], block[2]; {
		case language == "sh":
			list = append(list, example{shell: body})
		case language != "" && len(list) > 0:
			list[len(list)-1].prints = body
		}
	}
	return list
}

// TestTour pastes the examples of docs/tour.md into one shell, in order, beside a running
// demo, as a reader would. The output must be as in the tour, except for ids, times and
// cursors. Where the tour shows an id twice, the output must also have one id twice.
func TestTour(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "sed", "awk", "curl", "python3"} {
		if _, err := exec.LookPath(tool); err != nil || runtime.GOOS == "windows" {
			t.Skipf("no %s here", tool)
		}
	}
	text, err := os.ReadFile("../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	list := examples(string(text))
	const end = "=== the next example"
	var script strings.Builder
	for _, e := range list {
		script.WriteString(e.shell + "echo '" + end + "'\n")
	}

	// go run would build the binary again, so the test uses the binary that is already
	// built. The demo listens on another port.
	home := t.TempDir()
	if err := os.CopyFS(filepath.Join(home, "docs"), os.DirFS("../docs")); err != nil {
		t.Fatal(err)
	}
	p := demo(t, filepath.Join(home, "parley-data"), "Ctrl-C")
	address := regexp.MustCompile(`http://(\S+)/v1`).FindStringSubmatch(p.stdout.String())[1]
	pasted := script.String()
	for old, replacement := range map[string]string{`go run ./cmd/parley "$@"`: `command parley "$@"`, "127.0.0.1:8480": address, "8900": freePort(t)} {
		if !strings.Contains(pasted, old) {
			t.Fatalf("the tour's examples do not hold %s any more", old)
		}
		pasted = strings.ReplaceAll(pasted, old, replacement)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // an example waits for a status
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-eu")
	shell.Dir = home
	scratch := t.TempDir()
	shell.Env = environment("PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+scratch)
	shell.Stdin = strings.NewReader(pasted)
	var stderr bytes.Buffer
	shell.Stderr = &stderr
	out, err := shell.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v\n%s\n%s", err, stderr.String(), out)
	}
	for dir, want := range map[string][]string{home: {"docs", "parley-data"}, scratch: nil} { // the tour must leave no other files
		var left []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if !slices.Equal(left, want) {
			t.Errorf("the tour leaves %q, want %q", left, want)
		}
	}
	printed := strings.Split(string(out), end+"\n")
	if len(printed) != len(list)+1 {
		t.Fatalf("%d examples, %d answers:\n%s", len(list), len(printed)-1, out)
	}

	var got, want masker
	for i, e := range list {
		if e.prints == "" {
			continue
		}
		if g, w := got.mask(t, printed[i]), want.mask(t, e.prints); g != w {
			t.Errorf("the tour's example\n%sprints\n%s\nwhere the tour has\n%s", e.shell, g, w)
		}
	}
	p.stop(t)
}

// A masker replaces values that differ from run to run. An id becomes the number of its
// first appearance. A time or a cursor becomes a word.
type masker struct{ ids map[string]int }

var (
	anyID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyEvent  = regexp.MustCompile(`evt_[0-9a-v]{32}`)
	anyTime   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	anyCursor = regexp.MustCompile(`"next_cursor":"[\w-]+"`)
)

// mask replaces the values in a text. It writes JSON with one value on each line.
func (m *masker) mask(t *testing.T, text string) string {
	t.Helper()
	if strings.HasPrefix(text, "{") {
		text = compact(t, text)
	}
	text = anyTime.ReplaceAllString(text, "TIME")
	text = anyEvent.ReplaceAllString(text, "EVENT")
	text = anyCursor.ReplaceAllString(text, `"next_cursor":"CURSOR"`)
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		if m.ids == nil {
			m.ids = map[string]int{}
		}
		if m.ids[id] == 0 {
			m.ids[id] = len(m.ids) + 1
		}
		return fmt.Sprintf("ID-%d", m.ids[id])
	})
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	for d := json.NewDecoder(strings.NewReader(text)); ; b.WriteByte('\n') {
		var value json.RawMessage
		err := d.Decode(&value)
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err == nil {
			err = json.Compact(&b, value)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
}

// TestAPIDocument sends the values in the tables of docs/contacts.md, and compares the
// responses with the tables. docs/errors.md must have every type of error.
// docs/sending.md must have every reason of desk, and its stop words and start words.
func TestAPIDocument(t *testing.T) {
	t.Parallel()
	contacts, sending, errorTypes := docsPage(t, "contacts.md"), docsPage(t, "sending.md"), docsPage(t, "errors.md")
	dir := newDir(t)
	s := serve(t, dir)
	keys := map[string]string{} // an API key for each country
	keyIn := func(country string) string {
		if keys[country] == "" {
			_, keys[country] = newWorkspace(t, dir, "--country="+country)
		}
		return keys[country]
	}

	phones := table(t, contacts, "| sent | country | read as |")
	for _, row := range phones {
		sent, country, want := code(row[0]), strings.Trim(row[1], "—"), row[2]
		status, answer := s.call(t, keyIn(country), "POST", "/contacts", fmt.Sprintf(`{"phone":%q}`, sent))
		ok := status == http.StatusBadRequest && strings.HasPrefix(want, "400")
		if status < 300 {
			ok = decode[struct{ Data struct{ Phone string } }](t, []byte(answer)).Data.Phone == code(want)
		}
		if !ok {
			t.Errorf("%q in %q: %d %s, want %s", sent, country, status, answer, want)
		}
	}

	values := table(t, contacts, "| type | sent | answered |")
	key := keyIn("")
	for i, row := range values {
		kind, sent, want := code(row[0]), code(row[1]), row[2]
		name := fmt.Sprintf("v%d", i)
		options := ""
		if strings.HasSuffix(kind, "select") {
			options = `,"options":["a","b"]`
		}
		s.want(t, 201, key, "POST", "/attributes", fmt.Sprintf(`{"key":%q,"type":%q%s}`, name, kind, options))
		_, answer := s.call(t, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":"value-%d","attributes":{%q:%s}}`, i, name, sent))
		if reason, refused := strings.CutPrefix(want, "refused: "); refused {
			want = fmt.Sprintf(`{"key":%q,"message":%q}`, name, code(reason))
		} else if want == "cleared" {
			want = `"attributes":{}`
		} else {
			want = fmt.Sprintf(`"attributes":{%q:%s}`, name, code(want))
		}
		if !strings.Contains(answer, want) {
			t.Errorf("%s %s: %s, want %s", kind, sent, answer, want)
		}
	}
	if len(phones) < 10 || len(values) < 20 {
		t.Errorf("docs/contacts.md has %d phones and %d values", len(phones), len(values))
	}

	first := func(rows [][]string) (cells []string) {
		for _, row := range rows {
			cells = append(cells, code(row[0]))
		}
		return cells
	}
	if reasons := first(table(t, sending, "| reason | the template |")); !slices.Equal(reasons, desk.TemplateReasons) {
		t.Errorf("docs/sending.md has the reasons %v, want %v", reasons, desk.TemplateReasons)
	}
	types := first(table(t, errorTypes, "| type | status | it means | what to do |"))
	for _, kind := range desk.ErrorTypes {
		if !slices.Contains(types, string(kind)) {
			t.Errorf("docs/errors.md does not explain %s", kind)
		}
	}
	for i, row := range table(t, sending, "| words | |") {
		for word := range strings.SplitSeq(row[1], ", ") {
			if want := []desk.OptChange{desk.OptOut, desk.OptInAgain}[i]; desk.OptWord(word) != want {
				t.Errorf("docs/sending.md has %s among the words to %s", word, row[0])
			}
		}
	}
}

// TestDocumentsNameWhatExists: the tests and Go files that README.md and docs/ name must
// exist. The help of each of the tests' flags must name a test, and this test must also
// exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	files, tests, documents, help := map[string]bool{}, []string{}, []string{"../README.md"}, map[string]string{}
	testFunc := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testFlag := regexp.MustCompile(`flag\.\w+\("([\w-]+)", [^\n]*, "([^"\n]+)"\)`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && name != ".." {
			return filepath.SkipDir
		}
		switch {
		case strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md"):
			documents = append(documents, path)
		case strings.HasSuffix(name, ".go"):
			files[name], files[filepath.Base(path)] = true, true
		}
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "store/storetest/") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range testFlag.FindAllStringSubmatch(string(source), -1) {
			if match[1] != "update" && match[1] != "seed" { // these two flags are for many tests
				help[match[1]] = match[2]
			}
		}
		for _, match := range testFunc.FindAllStringSubmatch(string(source), -1) {
			tests = append(tests, match[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	span := regexp.MustCompile("`[^`\n]+`")
	named := regexp.MustCompile(`(-run '?)?\b(Test[A-Z]\w*)|[\w./-]+\.go\b`)
	seen := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range span.FindAllString(string(text), -1) {
			for _, match := range named.FindAllStringSubmatch(code, -1) {
				seen++
				there := files[match[0]]
				if test := match[2]; test != "" {
					there = slices.ContainsFunc(tests, func(name string) bool {
						return name == test || match[1] != "" && strings.HasPrefix(name, test)
					})
				}
				if !there {
					t.Errorf("%s names %s in %s, which does not exist", document, match[0], code)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d names were found in %v", seen, documents)
	}

	aTest := regexp.MustCompile(`\bTest[A-Z]\w*`)
	for flag, text := range help {
		names := aTest.FindAllString(text, -1)
		for _, name := range names {
			if !slices.Contains(tests, name) {
				t.Errorf("the help of -%s names %s, which does not exist", flag, name)
			}
		}
		if names == nil {
			t.Errorf("the help of -%s names no test: %s", flag, text)
		}
	}
	if len(help) < 50 {
		t.Errorf("only %d flags of tests were found", len(help))
	}
}

var (
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	mdCode    = regexp.MustCompile("`[^`\n]*`")
	mdBlock   = regexp.MustCompile("(?m)^    .*$")
)

// prose returns a document without its code.
func prose(text string) string {
	return mdCode.ReplaceAllString(mdBlock.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), "")
}

// anchors returns the headings of a document in the form in which links name them: in
// lower case, without punctuation, with hyphens instead of spaces.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range mdHeading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(match[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		found[b.String()] = true
	}
	return found
}

// TestDocumentLinks: each link of a document leads to a file and a heading that exist.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("../docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	documents = append(append(documents, decisions...), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md")
	seen := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range mdLink.FindAllStringSubmatch(prose(string(text)), -1) {
			path, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			seen++
			target := document
			if path != "" {
				target = filepath.Join(filepath.Dir(document), path)
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s links to %s, which does not exist", document, match[1])
				continue
			}
			if anchor == "" || info.IsDir() {
				continue
			}
			if there, err := os.ReadFile(target); err != nil || !anchors(string(there))[anchor] {
				t.Errorf("%s links to %s, where no heading is %s", document, match[1], anchor)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d links were found in %d documents", seen, len(documents))
	}
}

// TestNamedPages: each page of docs/ that a file names must exist. README.md must link to
// every page.
func TestNamedPages(t *testing.T) {
	t.Parallel()
	named, seen := regexp.MustCompile(`\bdocs/[\w/-]+\.md\b`), 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && !slices.Contains([]string{"..", ".ci"}, entry.Name()) {
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".go", ".json", ".md", ".html", ".txtar", ".py", ""}, filepath.Ext(path)) || !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, page := range named.FindAllString(string(text), -1) {
			seen++
			if _, err := os.Stat(filepath.Join("..", page)); err != nil {
				t.Errorf("%s names %s, which does not exist", path, page)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("only %d names of pages were found", seen)
	}

	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if link := "(docs/" + filepath.Base(page) + ")"; !strings.Contains(string(readme), link) {
			t.Errorf("README.md does not link to %s", page)
		}
	}
}

// docsPage returns the text of a page of docs/.
func docsPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table returns the rows of a table. head is the first line of the table.
func table(t *testing.T, text, head string) (rows [][]string) {
	t.Helper()
	_, after, found := strings.Cut(text, "\n"+head+"\n")
	if !found {
		t.Fatalf("no table %s", head)
	}
	for i, line := range strings.Split(after, "\n") {
		switch {
		case i == 0: // the line below the head
		case !strings.HasPrefix(line, "|"):
			return rows
		default:
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			rows = append(rows, cells)
		}
	}
	return rows
}

// code removes the code marks from a cell.
func code(cell string) string { return strings.Trim(cell, "`") }
