package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/transfer"
)

// An importTest is a workspace, and a directory of files to import into it.
type importTest struct {
	migrationTest
	t  *testing.T
	ws string
}

func newImportTest(t *testing.T) importTest {
	t.Helper()
	i := importTest{migrationTest: migrationTest{dir: t.TempDir()}, t: t}
	var made struct {
		ID string `json:"workspace_id"`
	}
	if err := json.Unmarshal([]byte(i.parley(t, 0, "workspace", "create", "--name", "Acme")), &made); err != nil {
		t.Fatal(err)
	}
	i.ws = made.ID
	return i
}

// file writes a file to import.
func (i importTest) file(name, content string) string {
	i.t.Helper()
	path := filepath.Join(i.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return path
}

// words runs parley import contacts, and returns what it prints for people.
func (i importTest) words(code int, file string, flags ...string) string {
	i.t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(i.t.Context(), append([]string{"import", "contacts", "--workspace", i.ws, "--data", i.dir, file}, flags...), nil, &stdout, &stderr); got != code {
		i.t.Fatalf("exit %d, want %d: %s%s", got, code, &stdout, &stderr)
	}
	return stdout.String()
}

// TestImport_again: a mended file of rejected rows is imported with the same flags, whether they or
// the file named the delimiter.
func TestImport_again(t *testing.T) {
	t.Parallel()
	i := newImportTest(t)
	for _, c := range []struct {
		first string
		flags []string
	}{{"", []string{"--delimiter", "^"}}, {"sep=^\n", nil}, {"sep=^\n", []string{"--delimiter", ","}}} {
		file := i.file("people.csv", c.first+strings.ReplaceAll("name,phone\nAda,12\n", ",", "^"))
		wantWords(t, i.words(3, file, c.flags...), "with the same flags.")
		rejected := strings.TrimSuffix(file, ".csv") + ".errors.csv"
		text, err := os.ReadFile(rejected)
		if err != nil {
			t.Fatal(err)
		}
		mended := i.file("mended.csv", strings.Replace(string(text), "^12^", "^+905321234567^", 1))
		i.words(0, mended, c.flags...)
	}
}

// TestImport_errorsDevice: a device, or the like, is not replaced by the file of rejected rows.
func TestImport_errorsDevice(t *testing.T) {
	t.Parallel()
	i := newImportTest(t)
	file := i.file("people.csv", "name,phone\nAda,12\n")
	name := filepath.Join(filepath.Dir(file), "s")
	socket, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	for _, flags := range [][]string{{}, {"--dry-run"}} {
		i.words(2, file, append(flags, "--errors", name)...)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Errorf("it is %v, %v", info, err)
	}
	i.words(3, file, "--errors", filepath.Join(filepath.Dir(file), "rejected.csv"))
}

// TestImport_dryStopped: a dry run that is interrupted leaves no file.
func TestImport_dryStopped(t *testing.T) {
	t.Parallel()
	i := newImportTest(t)
	name := i.file("people.csv", "name,phone\nAda,12\nBob,+905321234567\n")
	file, err := transfer.Open(name, transfer.Options{Kind: desk.ImportContacts})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{flags: shared{Data: i.dir}, typed: typed{data: true}, stderr: io.Discard}
	err = s.inWorkspace(t.Context(), i.ws, func(a *app.App, p desk.Principal) error {
		if err := file.Columns(p.Settings.Attributes); err != nil {
			return err
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		return (&importer{app: a, p: p, file: file, flags: &importFlags{File: name, DryRun: true}}).run(ctx)
	})
	if list := i.parts(name); err == nil || len(list) > 0 {
		t.Errorf("%v; %q are left", err, list)
	}
}

// json runs parley import contacts --json, and returns what it says.
func (i importTest) json(code int, file string) (got importResult) {
	i.t.Helper()
	text := i.parley(i.t, code, "import", "contacts", "--workspace", i.ws, file)
	if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), &got); err != nil && code != 1 {
		i.t.Fatal(err, text)
	}
	return got
}

// parts are the files in which rejected rows of a file are collected.
func (i importTest) parts(file string) []string {
	i.t.Helper()
	list, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.part"))
	if err != nil {
		i.t.Fatal(err)
	}
	return list
}

// stuck imports a file with a rejected row up to the last row, but its file of rejected rows
// can't get its name, as if the command was killed then. It returns the file, what undoes that, and
// the name of the rejected rows.
func (i importTest) stuck() (file, name string, free func()) {
	i.t.Helper()
	file = i.file("people.csv", "name,phone\nAda,+905321234567\nBob,12\n")
	name = strings.TrimSuffix(file, ".csv") + ".errors.csv"
	if err := os.MkdirAll(filepath.Join(name, "full"), 0o700); err != nil {
		i.t.Fatal(err)
	}
	i.json(1, file)
	return file, name, func() {
		i.t.Helper()
		if err := os.RemoveAll(name); err != nil {
			i.t.Fatal(err)
		}
	}
}

// whole fails unless a result is as from one run, and nothing but it is left.
func (i importTest) whole(file, name string, got importResult) {
	i.t.Helper()
	if got.Rows != 2 || got.Created != 1 || got.Unchanged != 0 || got.Rejected != 1 || got.ErrorsFile == nil || *got.ErrorsFile != name {
		i.t.Errorf("%+v", got)
	}
	if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), "\r\nBob,12,3,invalid_request,") {
		i.t.Errorf("rejected rows: %q, %v", text, err)
	}
	if list := i.parts(file); len(list) > 0 {
		i.t.Errorf("%q are left", list)
	}
}

// TestImport_killedAtTheEnd: a command that is killed after the last row is stored tells all when it
// is run again, also if the rejected rows have their name already. Then it begins anew.
func TestImport_killedAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		i := newImportTest(t)
		file, name, free := i.stuck()
		free()
		if named {
			if err := os.Rename(i.parts(file)[0], name); err != nil {
				t.Fatal(err)
			}
		}
		got := i.json(3, file)
		i.whole(file, name, got)
		again := i.json(3, file)
		if again.Unchanged != 1 || again.Rejected != 1 || *again.ImportID == *got.ImportID {
			t.Errorf("an import that has ended does not begin anew: %+v", again)
		}
	}
}

// TestImport_notTold: an import whose result nobody has got tells it when the command is run again.
func TestImport_notTold(t *testing.T) {
	t.Parallel()
	i := newImportTest(t)
	file := i.file("people.csv", "name,phone\nAda,+905321234567\nBob,12\n")
	var stderr bytes.Buffer
	args := []string{"import", "contacts", "--workspace", i.ws, "--data", i.dir, file}
	if code := run(t.Context(), args, nil, closedPipe{}, &stderr); code != 1 {
		t.Errorf("exit %d: %s", code, &stderr)
	}
	i.whole(file, strings.TrimSuffix(file, ".csv")+".errors.csv", i.json(3, file))
}

// A closedPipe has no reader.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestImport_anew: an import whose rejected rows are gone begins anew, and goes on if it is killed
// again.
func TestImport_anew(t *testing.T) {
	t.Parallel()
	i := newImportTest(t)
	file, _, free := i.stuck()
	before := i.parts(file)
	if err := os.Remove(before[0]); err != nil {
		t.Fatal(err)
	}
	i.json(1, file)
	parts := i.parts(file)
	free()
	got := i.json(3, file)
	if len(parts) != 1 || parts[0] == before[0] || !strings.Contains(parts[0], *got.ImportID) || got.Unchanged != 1 || got.Rejected != 1 {
		t.Errorf("%q after %q, and %+v", parts, before, got)
	}
}
