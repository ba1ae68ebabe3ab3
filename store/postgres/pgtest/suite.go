package pgtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Suite runs tests of a package again, as subtests with their names. It fails if the
// package has a test that is neither in tests nor in leftOut. leftOut maps the name of a
// test, or a pattern for file names such as "feed*_test.go", to the reason why the test
// does not run again.
func Suite(t *testing.T, leftOut map[string]string, tests ...func(*testing.T)) {
	t.Helper()
	chosen := map[string]bool{}
	for _, test := range tests {
		chosen[nameOf(test)] = true
	}
	all, err := declared()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range all {
		_, left := leftOut[name]
		for pattern := range leftOut {
			of, err := filepath.Match(pattern, file)
			left = left || of && err == nil
		}
		if name != t.Name() && chosen[name] == left {
			t.Errorf("%s: %s must either run over PostgreSQL or be left out, with a reason", file, name)
		}
	}
	for name := range leftOut {
		if _, there := all[name]; !there && strings.HasPrefix(name, "Test") {
			t.Errorf("%s is left out, and is not there", name)
		}
	}
	for _, test := range tests {
		t.Run(nameOf(test), test)
	}
}

// nameOf returns the name of a function.
func nameOf(test func(*testing.T)) string {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// declared lists the tests of the package in the current directory, each with its file.
func declared() (map[string]string, error) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		return nil, err
	}
	tests := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[f.Name.Name] = path
			}
		}
	}
	return tests, nil
}
