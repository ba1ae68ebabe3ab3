package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A logged is a line that the program can log. The level is "" if the program chooses it
// at run time.
type logged struct{ level, message string }

// TestLogLinesAreListed compares the code with the table of log lines in docs/logs.md.
// The table has each line that the program logs, with its level, and no other line.
func TestLogLinesAreListed(t *testing.T) {
	t.Parallel()
	var code []logged
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"testdata", "tools", "e2e"}, d.Name()) || path != "." && strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(d.Name(), "test")):
			return fs.SkipDir // these files are not linked into the program
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if line, ok := logCall(t, path, call); ok {
					code = append(code, line)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("docs", "logs.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []logged
	for _, row := range regexp.MustCompile("(?m)^\\| (debug|info|warn|error) \\| `([^`]*)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, logged{row[1], row[2]})
	}
	same := func(a logged) func(logged) bool {
		return func(b logged) bool {
			return a.message == b.message && (a.level == b.level || a.level == "" || b.level == "")
		}
	}
	for _, line := range code {
		if !slices.ContainsFunc(listed, same(line)) {
			t.Errorf("docs/logs.md does not list the %s line %q", line.level, line.message)
		}
	}
	for _, line := range listed {
		if !slices.ContainsFunc(code, same(line)) {
			t.Errorf("docs/logs.md lists the %s line %q, which nothing logs", line.level, line.message)
		}
	}
	if len(listed) < 10 || len(code) < 10 {
		t.Errorf("%d lines are listed, and %d logged: were they looked for rightly?", len(listed), len(code))
	}
}

// logMethod matches the methods of slog that log.
var logMethod = regexp.MustCompile(`^(Debug|Info|Warn|Error)(Context)?$|^(LogAttrs|Log)$`)

// logCall reads a call of such a method, if it is the method of something with the name
// log or Log.
func logCall(t *testing.T, path string, call *ast.CallExpr) (line logged, ok bool) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return line, false
	}
	found := logMethod.FindStringSubmatch(method.Sel.Name)
	on := ""
	switch x := method.X.(type) {
	case *ast.Ident:
		on = x.Name
	case *ast.SelectorExpr:
		on = x.Sel.Name
	case *ast.CallExpr: // for example s.Log().Warn
		if f, ok := x.Fun.(*ast.SelectorExpr); ok {
			on = f.Sel.Name
		}
	}
	if found == nil || !slices.Contains([]string{"log", "Log", "slog"}, on) {
		return line, false
	}
	at := 0
	switch {
	case found[3] != "":
		at = 2
		if level, ok := call.Args[1].(*ast.SelectorExpr); ok {
			line.level = strings.ToLower(strings.TrimPrefix(level.Sel.Name, "Level"))
		}
	case found[2] != "":
		at = 1
	}
	if found[1] != "" {
		line.level = strings.ToLower(found[1])
	}
	message, ok := call.Args[at].(*ast.BasicLit)
	if !ok {
		t.Errorf("%s: a line is logged whose message is no literal, so docs/logs.md can't be held to it", path)
		return line, false
	}
	line.message, _ = strconv.Unquote(message.Value)
	return line, true
}
