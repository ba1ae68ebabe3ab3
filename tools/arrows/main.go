// Arrows counts how the files of each package depend on each other, and checks the
// counts against bounds.
//
//	go run -C tools ./arrows [-v] [-check arrows/bounds.txt] [DIR]
//
// An arrow goes from a file to another file of its package that declares a name the
// first file uses: a constant, a variable, a type, a function, a method or a field.
// Methods and fields count where they are declared. The files of a package are put in an
// order, users above what they use, that leaves few arrows back up. A package without
// arrows back up can be read from top to bottom; files that use each other in a circle
// can't.
//
// The order is found by a heuristic (order.go). It is the same in every run over the same
// files. DIR is the root of the module, by default the directory above this module.
// Tests don't count.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	verbose := flag.Bool("v", false, "print each arrow back up with the names it is made of")
	bounds := flag.String("check", "", "a file of bounds; exit 1 if a package passes one")
	flag.Parse()
	dir := cmp.Or(flag.Arg(0), "..")
	if err := run(os.Stdout, dir, *bounds, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "arrows:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir, bounds string, verbose bool) error {
	packages, err := load(dir)
	if err != nil {
		return err
	}
	var all []graph
	for _, p := range packages {
		g, err := graphOf(p)
		if err != nil {
			return err
		}
		all = append(all, g)
	}
	report(out, all, verbose)
	if bounds == "" {
		return nil
	}
	f, err := os.Open(bounds)
	if err != nil {
		return err
	}
	defer f.Close()
	limits, err := parseBounds(f)
	if err != nil {
		return fmt.Errorf("%s: %w", bounds, err)
	}
	if wrong := limits.check(all); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// A source is a package of the module as go list describes it.
type source struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Export     string            // the file of its compiled interface
	ImportMap  map[string]string // replaces some import paths by others
	Module     *struct{ Main bool }

	exports map[string]string // of all packages, by import path
}

// load lists the module's packages, and compiles what they import.
func load(dir string) ([]source, error) {
	list := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export,ImportMap,Module", "./...")
	list.Dir = dir
	var stderr bytes.Buffer
	list.Stderr = &stderr
	answer, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var ours []source
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(answer)); ; {
		var s source
		switch err := d.Decode(&s); {
		case errors.Is(err, io.EOF):
			return ours, nil
		case err != nil:
			return nil, err
		}
		exports[s.ImportPath] = s.Export
		if s.Module != nil && s.Module.Main {
			s.exports = exports
			ours = append(ours, s)
		}
	}
}

// A graph is a package's files with the arrows between them.
type graph struct {
	path  string             // of the package in the module; "" is the root
	files []string           // in the order that was found for them
	lines map[string]int     // of each file
	uses  map[arrow][]string // the names that make up each arrow, sorted
	back  []arrow            // the arrows that go back up
}

type arrow struct{ from, to string }

// graphOf reads a package.
func graphOf(s source) (graph, error) {
	files := token.NewFileSet()
	g := graph{lines: map[string]int{}, uses: map[arrow][]string{}}
	if _, rest, deeper := strings.Cut(s.ImportPath, "/"); deeper {
		g.path = rest
	}
	var parsed []*ast.File
	for _, name := range s.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(s.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return graph{}, err
		}
		parsed = append(parsed, f)
		g.files = append(g.files, name)
		g.lines[name] = files.File(f.Pos()).LineCount()
	}
	lookup := func(path string) (io.ReadCloser, error) {
		return os.Open(s.exports[cmp.Or(s.ImportMap[path], path)])
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(files, "gc", lookup)}
	if _, err := conf.Check(s.ImportPath, files, parsed, info); err != nil {
		return graph{}, err
	}
	for id, obj := range info.Uses {
		if obj.Pkg() == nil || obj.Pkg().Path() != s.ImportPath || !obj.Pos().IsValid() {
			continue
		}
		from := filepath.Base(files.Position(id.Pos()).Filename)
		to := filepath.Base(files.Position(obj.Pos()).Filename)
		if from == to {
			continue
		}
		a := arrow{from, to}
		if !slices.Contains(g.uses[a], obj.Name()) {
			g.uses[a] = append(g.uses[a], obj.Name())
		}
	}
	for _, names := range g.uses {
		slices.Sort(names)
	}
	g.order()
	return g, nil
}

// order puts the files in their order and collects the arrows back up.
func (g *graph) order() {
	slices.Sort(g.files)
	at := map[string]int{}
	for i, f := range g.files {
		at[f] = i
	}
	n := len(g.files)
	edges := make([][]bool, n)
	for i := range edges {
		edges[i] = make([]bool, n)
	}
	for a := range g.uses {
		edges[at[a.from]][at[a.to]] = true
	}
	place := make(map[string]int, n)
	var files []string
	for i, f := range order(edges) {
		place[g.files[f]] = i
		files = append(files, g.files[f])
	}
	g.files = files
	for a := range g.uses {
		if place[a.from] > place[a.to] {
			g.back = append(g.back, a)
		}
	}
	slices.SortFunc(g.back, func(a, b arrow) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
}

func (g *graph) total() (lines int, longest string) {
	for _, f := range slices.Sorted(slices.Values(g.files)) {
		lines += g.lines[f]
		if longest == "" || g.lines[f] > g.lines[longest] {
			longest = f
		}
	}
	return lines, longest
}

// report prints one line for each package. With verbose, it also prints the arrows back
// up.
func report(out io.Writer, all []graph, verbose bool) {
	w := bufio.NewWriter(out)
	defer w.Flush()
	fmt.Fprintf(w, "%-48s %5s %6s %7s %5s  %s\n", "package", "files", "lines", "arrows", "back", "longest file")
	for _, g := range all {
		lines, longest := g.total()
		fmt.Fprintf(w, "%-48s %5d %6d %7d %5d  %s %d\n", cmp.Or(g.path, "(root)"), len(g.files), lines, len(g.uses), len(g.back), longest, g.lines[longest])
		if !verbose {
			continue
		}
		if len(g.files) > 1 {
			fmt.Fprintf(w, "    order: %s\n", strings.Join(g.files, " "))
		}
		for _, a := range g.back {
			fmt.Fprintf(w, "    %s -> %s: %s\n", a.from, a.to, strings.Join(g.uses[a], " "))
		}
	}
}
