package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module writes a module with one package. It returns the package's graph.
func module(t *testing.T, files map[string]string) graph {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module house\n\ngo 1.24\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 1 {
		t.Fatalf("%d packages", len(packages))
	}
	g, err := graphOf(packages[0])
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGraph: names, methods and fields count where they are declared. Names that a file
// declares itself, and names of other packages, do not count.
func TestGraph(t *testing.T) {
	g := module(t, map[string]string{"room/a.go": `package room

import "strings"

func run(d door) string { return strings.ToUpper(d.name) + d.open() + own() }

func own() string { return "" }
`, "room/b.go": `package room

type door struct{ name string }
`, "room/c.go": `package room

func (d door) open() string { return d.name }
`})
	want := map[arrow]string{{"a.go", "b.go"}: "door name", {"a.go", "c.go"}: "open", {"c.go", "b.go"}: "door name"}
	for a, names := range want {
		if got := strings.Join(g.uses[a], " "); got != names {
			t.Errorf("%v: %q", a, got)
		}
	}
	if len(g.uses) != len(want) || len(g.back) != 0 || !slices.Equal(g.files, []string{"a.go", "c.go", "b.go"}) {
		t.Errorf("%v, back %v, order %v", g.uses, g.back, g.files)
	}
}

// TestOrder: a circle of three files has one arrow back up, and two circles have two. A
// file stands above the files that it uses.
func TestOrder(t *testing.T) {
	edges := make([][]bool, 7)
	for i := range edges {
		edges[i] = make([]bool, 7)
	}
	for _, e := range [][2]int{{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 3}, {2, 3}, {5, 0}, {5, 4}, {6, 5}} {
		edges[e[0]][e[1]] = true
	}
	o := order(edges)
	if n := backUp(edges, o); n != 2 || o[0] != 6 || o[1] != 5 {
		t.Errorf("%d back up in %v", n, o)
	}
	if again := order(edges); !slices.Equal(o, again) {
		t.Errorf("%v, then %v", o, again)
	}
}

// TestCheck: the check reports a package that exceeds a bound, and a bound that is higher
// than needed.
func TestCheck(t *testing.T) {
	limits, err := parseBounds(strings.NewReader("# of all\nroom 1\nhall 0 9000 # large\ngone 0\nslack 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(path string, lines, back int) graph {
		return graph{path: path, files: []string{"a.go"}, lines: map[string]int{"a.go": lines}, back: make([]arrow, back)}
	}
	got := limits.check([]graph{of("room", 700, 2), of("hall", 8500, 0), of("slack", 701, 1), of("new", 8001, 1)})
	for i, part := range []string{"room has 2 arrows", "hall/a.go has 8500 lines", "slack has only 1", "slack/a.go has 701", "new has 1 arrows", "new has 8001 lines", "new/a.go", "gone has a bound"} {
		if i >= len(got) || !strings.HasPrefix(got[i], part) {
			t.Errorf("no %q in %q", part, got)
		}
	}
	for _, bad := range []string{"room", "room x", "room 1\nroom 2"} {
		if _, err := parseBounds(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
