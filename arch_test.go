package parley_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms lists every package of the module, with the packages of ours that it may import.
// TestArrows fails for a package that is not here. So whoever adds a room first decides
// which rooms it may use. A room that is not built yet may be listed: only existing rooms
// are checked.
var rooms = map[string][]string{
	"":     {}, // doc.go
	"desk": {},
	"app":  {"app/access", "app/broadcast", "app/clock", "app/conflicts", "app/cursors", "app/daily", "app/deliver", "app/exports", "app/feed", "app/holds", "app/imports", "app/media", "app/merges", "app/readings", "app/search", "app/segments", "app/steps", "app/vault", "desk", "provider", "store"},

	// The services that app is composed of, and packages that several of them need.
	"app/access":    {"desk", "store"},
	"app/clock":     {"desk", "store"},
	"app/daily":     {"app/feed", "desk", "store"},
	"app/deliver":   {"app/cursors", "app/feed", "app/steps", "app/vault", "desk", "provider", "store"},
	"app/feed":      {"app/cursors", "app/steps", "desk", "store"},
	"app/media":     {"app/feed", "app/steps", "desk", "provider", "store"},
	"app/exports":   {"desk", "store"},
	"app/imports":   {"app/broadcast", "app/feed", "app/steps", "desk", "store", "transfer"},
	"app/conflicts": {"app/cursors", "app/merges", "desk", "store"},
	"app/merges":    {"app/cursors", "desk", "store"},
	"transfer":      {"desk"},
	"doctor":        {"config", "desk", "store"},
	"archive":       {"store/sqlite"},
	"app/holds":     {"desk"},
	"app/readings":  {"desk", "provider"},
	"app/search":    {"app/cursors", "app/feed", "app/steps", "desk", "store"},
	"app/segments":  {"app/cursors", "desk", "store"},
	"app/cursors":   {"desk"},
	"app/steps":     {"desk", "store"},
	"app/vault":     {},
	"app/broadcast": {"app/cursors", "app/feed", "app/segments", "app/steps", "desk", "store"},

	// The interfaces to what app needs from outside, with their records.
	"store":    {"desk"},
	"provider": {"desk"},

	// The packages that talk to the outside. None of them may import another one. Those
	// that speak HTTP share web.
	"store/sqlite":              {"desk", "store", "store/internal/stored"},
	"store/postgres":            {"desk", "store", "store/internal/stored", "store/postgres/statistics"},
	"store/postgres/statistics": {},
	"store/internal/stored":     {"desk", "store"},
	"whatsapp":                  {"desk", "provider"},
	"sandbox":                   {"desk", "provider"},
	"poster":                    {"desk"},
	"web":                       {"desk"},
	"work":                      {"app", "desk", "store"},
	"api":                       {"app", "app/broadcast", "app/conflicts", "app/deliver", "app/feed", "app/merges", "app/search", "app/segments", "desk", "provider", "web"},
	"console":                   {"app", "app/access", "app/conflicts", "app/daily", "app/deliver", "app/feed", "app/imports", "app/merges", "app/search", "app/segments", "desk", "provider", "transfer", "web"},
	"mcp":                       {"desk"},
	"config":                    {},
	"logs":                      {},

	// The only package that knows all others.
	"cmd/parley": {"api", "app", "archive", "app/broadcast", "app/imports", "transfer", "app/deliver", "app/feed", "config", "console", "desk", "doctor", "logs", "mcp", "poster", "provider", "sandbox", "store", "store/postgres", "store/sqlite", "web", "whatsapp", "work"},

	// Packages that are linked into tests only.
	"store/postgres/pgtest":                        {},
	"store/sqlite/sqlitetest":                      {},
	"store/storetest":                              {"desk", "provider", "store"},
	"api/apitest":                                  {"api", "app", "desk"},
	"whatsapp/whatsapptest":                        {},
	"whatsapp/whatsapptest/cmd/whatsapp-simulator": {"whatsapp/whatsapptest"},
	"e2e": {"api/apitest", "store/postgres/pgtest", "whatsapp/whatsapptest"},
}

// never lists packages of the standard library that a room must not import, because they
// are for another room's work. A path also stands for all packages below it.
var never = map[string][]string{
	"desk":           {"crypto/rand", "database/sql", "html/template", "log", "math/rand", "net/http", "os"},
	"app":            {"database/sql", "html/template", "net/http", "os"},
	"app/access":     {"database/sql", "html/template", "net/http", "os"},
	"app/clock":      {"database/sql", "html/template", "net/http", "os"},
	"app/broadcast":  {"database/sql", "html/template", "net/http", "os"},
	"app/daily":      {"database/sql", "html/template", "net/http", "os"},
	"app/deliver":    {"database/sql", "html/template", "net/http", "os"},
	"app/feed":       {"database/sql", "html/template", "net/http", "os"},
	"app/imports":    {"database/sql", "html/template", "net/http", "os"},
	"app/exports":    {"database/sql", "html/template", "net/http", "os"},
	"app/search":     {"database/sql", "html/template", "net/http", "os"},
	"app/segments":   {"database/sql", "html/template", "net/http", "os"},
	"app/conflicts":  {"database/sql", "html/template", "net/http", "os"},
	"app/merges":     {"database/sql", "html/template", "net/http", "os"},
	"app/media":      {"database/sql", "html/template", "net/http", "os"},
	"store/sqlite":   {"html/template", "net/http"},
	"store/postgres": {"html/template", "net/http"},
	"whatsapp":       {"database/sql", "html/template"},
	"poster":         {"database/sql", "html/template"},
	"web":            {"database/sql"},
	"work":           {"database/sql", "net/http"},
	"mcp":            {"database/sql", "html/template"},
	"api":            {"database/sql"},
	"console":        {"database/sql"},
}

// deskImports lists everything that desk may import from outside the standard library.
var deskImports = []string{"github.com/nyaruka/phonenumbers", "golang.org/x/text", "golang.org/x/net/idna"}

// testOnly lists packages that must not be linked into the program, neither directly nor
// through other packages.
var testOnly = []string{
	"github.com/chromedp/cdproto",
	"github.com/chromedp/chromedp",
	"github.com/getkin/kin-openapi",
	"github.com/pb33f/libopenapi",
	"github.com/pb33f/libopenapi-validator",
	"github.com/pressly/goose",
	"github.com/rogpeppe/go-internal/testscript",
	"github.com/santhosh-tekuri/jsonschema",
	"net/http/httptest",
	"parley/api/apitest",
	"parley/e2e",
	"parley/store/postgres/pgtest",
	"parley/store/sqlite/sqlitetest",
	"parley/store/storetest",
	"parley/whatsapp/whatsapptest",
	"pgregory.net/rapid",
	"testing",
}

// A pkg has the data of go list about a package.
type pkg struct {
	ImportPath   string
	Imports      []string // of the files that are not tests
	TestImports  []string
	XTestImports []string
}

func TestArrows(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			for _, p := range goList(t, goos, "./...") {
				name := room(p.ImportPath)
				may, listed := rooms[name]
				if !listed {
					t.Errorf("package %s is not in arch_test.go; which packages may it import?", p.ImportPath)
					continue
				}
				for _, imp := range p.Imports {
					if ours(imp) && !slices.Contains(may, room(imp)) {
						t.Errorf("%s imports %s; see docs/architecture.md", name, imp)
					}
					if below(imp, never[name]) {
						t.Errorf("%s imports %s, which is another room's work; see docs/architecture.md", name, imp)
					}
				}
			}
		})
	}
}

// inside lists the packages that single tests of e2e may import in addition.
var inside = map[string][]string{
	// This test breaks a process at every step. The process has a store that fails on
	// demand.
	"fault_test.go": {"api", "app", "desk", "provider", "sandbox", "store", "store/sqlite", "web", "work"},
	// These tests kill processes, which also have such stores. The processes serve files
	// by themselves.
	"mediakill_test.go": {"api", "app", "desk", "provider", "sandbox", "store", "store/postgres", "store/sqlite", "web", "work"},
	"answer_test.go":    {"app", "desk", "provider", "work"},
	// This test makes thousands of workspaces.
	"idle_test.go": {"api", "app", "desk", "provider", "sandbox", "store"},
	// This test calls a server whose provider counts and refuses messages and loses
	// answers.
	"send_test.go": {"api", "app", "desk", "provider", "web"},
	// This test posts requests to the receivers of docs/receivers.md that no server would
	// send: bad signatures, repetitions.
	"receivers_test.go": {"poster"},
	// This test compares tables of docs/ with the lists that the rules use.
	"readme_test.go": {"desk"},
}

// TestE2EStaysOutside: e2e has only tests, and they use the program from outside.
func TestE2EStaysOutside(t *testing.T) {
	t.Parallel()
	watchSources(t)
	for path, file := range parseAll(t, "e2e", parser.ImportsOnly) {
		if !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s is no test", path)
		}
		for _, spec := range file.Imports {
			imp := strings.Trim(spec.Path.Value, `"`)
			if ours(imp) && !slices.Contains(rooms["e2e"], room(imp)) && !slices.Contains(inside[path], room(imp)) {
				t.Errorf("%s imports %s; e2e uses the program from outside", path, imp)
			}
		}
	}
}

// explained finds the lines of a package comment that each explain a file.
var explained = regexp.MustCompile(`(?m)^\t(\w+\.go)\s+\S`)

// TestPackageCommentsListTheirFiles: a package comment lists each file that exists, and
// no other file, so that readers find their way. The comment of e2e lists its tests. A
// package with a few files needs no list.
func TestPackageCommentsListTheirFiles(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t, "linux", "./...") {
		name := room(p.ImportPath)
		var comment, commented string
		var have, want []string
		for path, file := range parseAll(t, filepath.FromSlash(name), parser.ParseComments|parser.PackageClauseOnly) {
			if file.Doc != nil && (commented == "" || !strings.HasSuffix(path, "_test.go")) {
				comment, commented = file.Doc.Text(), path
			}
			if name == "e2e" || !strings.HasSuffix(path, "_test.go") {
				have = append(have, path)
			}
		}
		if comment == "" {
			t.Errorf("package %s has no comment", p.ImportPath)
		}
		for _, match := range explained.FindAllStringSubmatch(comment, -1) {
			want = append(want, match[1])
			if !slices.Contains(have, match[1]) {
				t.Errorf("the comment of package %s lists %s, which is not there", p.ImportPath, match[1])
			}
		}
		for _, path := range have {
			if path != commented && !slices.Contains(want, path) && (len(want) > 0 || len(have) > 4) {
				t.Errorf("the comment of package %s does not list %s", p.ImportPath, path)
			}
		}
	}
}

// parseAll reads the Go files of a directory, and returns them by name.
func parseAll(t *testing.T, dir string, mode parser.Mode) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	files := map[string]*ast.File{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = file
	}
	return files
}

// TestDeskStandsAlone also checks desk's tests: if a rule can't be tested without another
// room, the rule does not belong in desk.
func TestDeskStandsAlone(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t, "linux", "./...") {
		if room(p.ImportPath) != "desk" {
			continue
		}
		for _, imp := range p.Imports {
			if foreign(imp) && !below(imp, deskImports) {
				t.Errorf("desk imports %s; from outside it may import only %s", imp, strings.Join(deskImports, ", "))
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			if ours(imp) && room(imp) != "desk" {
				t.Errorf("desk's tests import %s", imp)
			}
		}
	}
}

func TestProgramLinksNoTestLibrary(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("cmd"); errors.Is(err, fs.ErrNotExist) {
		return // there is no program yet
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, p := range goList(t, goos, "-deps", "./cmd/...") {
			if below(p.ImportPath, testOnly) {
				t.Errorf("on %s the program links %s; `go mod why` names the way", goos, p.ImportPath)
			}
		}
	}
}

// TestLibcIsTheOneThatSQLiteNames: the SQLite driver is C code that was translated to Go,
// and it runs on the module libc. The two are tested together only at the version that
// the driver's own go.mod names. Any other dependency, or `go get -u`, could raise this
// version unnoticed.
func TestLibcIsTheOneThatSQLiteNames(t *testing.T) {
	t.Parallel()
	const sqlite, libc = "modernc.org/sqlite", "modernc.org/libc"
	type module struct{ Path, Version, GoMod string }
	var driver, have module
	for _, m := range decode[module](t, goTool(t, "linux", "list", "-m", "-json", sqlite, libc)) {
		switch m.Path {
		case sqlite:
			driver = m
		case libc:
			have = m
		}
	}

	type modfile struct{ Require []module }
	var want string
	for _, f := range decode[modfile](t, goTool(t, "linux", "mod", "edit", "-json", driver.GoMod)) {
		for _, m := range f.Require {
			if m.Path == libc {
				want = m.Version
			}
		}
	}
	if have.Version != want {
		t.Errorf("go.mod has %s %s, but %s %s names %s; run: go get %s@%s",
			libc, have.Version, sqlite, driver.Version, want, libc, want)
	}
}

func ours(path string) bool { return path == "parley" || strings.HasPrefix(path, "parley/") }

// foreign reports whether a package is from another module: then the first element of its
// path is a host.
func foreign(path string) bool {
	host, _, _ := strings.Cut(path, "/")
	return strings.Contains(host, ".")
}

// room returns a package's folder below the root. For the root itself, it returns "".
func room(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "parley"), "/")
}

// below reports whether a path is one of roots, or inside one of them.
func below(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

func goList(t *testing.T, goos string, args ...string) []pkg {
	t.Helper()
	watchSources(t)
	fields := "-json=ImportPath,Imports,TestImports,XTestImports"
	return decode[pkg](t, goTool(t, goos, append([]string{"list", fields}, args...)...))
}

func goTool(t *testing.T, goos string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	// The program is built like this: without cgo. The caller's GOFLAGS must not matter.
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// decode reads the JSON objects that the go command prints one after the other.
func decode[T any](t *testing.T, out []byte) []T {
	t.Helper()
	var all []T
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var v T
		switch err := dec.Decode(&v); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("reading go's answer: %v", err)
		}
		all = append(all, v)
	}
}

// watchSources opens every Go file of the module, so that go test runs this test again
// when one of them changes. go test only notices the files that this process opens, not
// those that a child process reads. Otherwise it would return a cached result.
func watchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tools"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") && path != "go.mod":
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRulesNameNoEdge: the messages of the rules name neither the API nor the command
// line (docs/adr/0020). Each of these two describes the place and the advice of an error
// in its own words.
func TestRulesNameNoEdge(t *testing.T) {
	t.Parallel()
	edges := regexp.MustCompile(`(GET|PUT|POST|PATCH|DELETE) /|parley [a-z]|--[a-z]|^/[a-z_/]+(:| is )`)
	for _, room := range []string{"desk", "app", "app/access", "app/daily", "app/deliver", "app/feed", "whatsapp", "sandbox"} {
		files, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					if value, err := strconv.Unquote(text.Value); err == nil && edges.MatchString(value) {
						t.Errorf("%s: %q names an edge: use the At and the Advice of desk.Error", set.Position(text.Pos()), value)
					}
				}
				return true
			})
		}
	}
}

// TestDeskHasNoCodes: only a provider knows the codes of its errors and their meaning.
// desk only knows what follows from an error.
func TestDeskHasNoCodes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("desk", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of desk: %v", err)
	}
	codes := regexp.MustCompile(`\.Code\b.*\b[0-9]{3,7}\b|\b1[0-9]{5}\b`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if code := codes.FindString(line); code != "" {
				t.Errorf("%s:%d knows %q: ask the Provider of the channel's kind", file, i+1, code)
			}
		}
	}
}

// TestAppNamesNoProvider: only desk, the provider itself and cmd/parley know a kind of
// channel. So another provider can be added without a change to app.
func TestAppNamesNoProvider(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("app", "*.go"))
	services, servicesErr := filepath.Glob(filepath.Join("app", "*", "*.go"))
	if err != nil || servicesErr != nil || len(files) == 0 || len(services) == 0 {
		t.Fatalf("no files of app and its services: %v, %v", err, servicesErr)
	}
	files = append(files, services...)
	names := regexp.MustCompile(`(?i)whatsapp|sandbox|waba|hub[._-]|\bmeta\b|\bgraph\b`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := names.FindString(line); word != "" {
				t.Errorf("%s:%d names %q: ask the Provider of the channel's kind", file, i+1, word)
			}
		}
	}
}
