package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// TestImport_again: a mended file of rejected rows is imported with the flags that the command
// names.
func TestImport_again(t *testing.T) {
	t.Parallel()
	i := newImportTest(t)
	for first, advice := range map[string]string{"": "with the same flags.", "sep=^\n": "with --delimiter '^' and the other flags that are the same."} {
		file := i.file("people.csv", first+strings.ReplaceAll("name,phone\nAda,12\n", ",", "^"))
		var flags []string
		if first == "" {
			flags = []string{"--delimiter", "^"}
		}
		wantWords(t, i.words(3, file, flags...), advice)
		rejected := strings.TrimSuffix(file, ".csv") + ".errors.csv"
		text, err := os.ReadFile(rejected)
		if err != nil {
			t.Fatal(err)
		}
		mended := i.file("mended.csv", strings.Replace(string(text), "^12^", "^+905321234567^", 1))
		i.words(0, mended, "--delimiter", "^")
	}
}
