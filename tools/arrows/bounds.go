package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// The bounds that hold if the file of bounds names no other bound.
const (
	maxFile    = 700  // lines of a file
	maxPackage = 8000 // lines of a package
)

// bounds has the bound of each package, by the package's path.
type bounds map[string]bound

type bound struct{ back, lines int }

// parseBounds reads lines of
//
//	PACKAGE BACK [LINES]
//
// LINES is for a package that may have more than maxPackage. Text after # is a comment.
func parseBounds(r io.Reader) (bounds, error) {
	out := bounds{}
	for s, line := bufio.NewScanner(r), 1; s.Scan(); line++ {
		text, _, _ := strings.Cut(s.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		var name string
		b := bound{lines: maxPackage}
		if n, err := fmt.Sscan(text, &name, &b.back, &b.lines); n < 2 {
			return nil, fmt.Errorf("line %d: want PACKAGE BACK [LINES]: %w", line, err)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("line %d: %s has a line already", line, name)
		}
		out[name] = b
	}
	return out, nil
}

// check returns a line for each package that exceeds a bound. A package that the file
// does not name may have no arrow back up. check also reports a bound that is higher than
// needed: it must be lowered, so that the package can't become worse again.
func (b bounds) check(all []graph) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	seen := map[string]bool{}
	for _, g := range all {
		limit, listed := b[g.path]
		if !listed {
			limit.lines = maxPackage
		}
		seen[g.path] = true
		lines, _ := g.total()
		switch {
		case len(g.back) > limit.back:
			say("%s has %d arrows back up, and may have %d; run with -v to see them", g.path, len(g.back), limit.back)
		case len(g.back) < limit.back:
			say("%s has only %d arrows back up: lower its bound from %d", g.path, len(g.back), limit.back)
		}
		if lines > limit.lines {
			say("%s has %d lines, and may have %d", g.path, lines, limit.lines)
		}
		for _, f := range g.files {
			if g.lines[f] > maxFile {
				say("%s/%s has %d lines, and may have %d", g.path, f, g.lines[f], maxFile)
			}
		}
	}
	for name := range b {
		if !seen[name] {
			say("%s has a bound, but is not a package", name)
		}
	}
	return wrong
}
