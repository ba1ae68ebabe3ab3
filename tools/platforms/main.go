// Platforms checks that the program has no error of types on any of some platforms.
//
//	go run -C tools ./platforms [-dir DIR] OS/ARCH...
//
// The checker reads the sources of the program and of all it imports, as the compiler
// does for that platform, and makes no code. This takes a tenth of a build's time. It
// finds what differs between platforms in a program without assembly and without C: a
// file that is missing on one, and a name or a type that one does not have. DIR is the
// root of the module, by default the directory above this module.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("dir", "..", "the root of the module")
	flag.Parse()
	failed := false
	for _, platform := range flag.Args() {
		fmt.Println(platform)
		if err := check(*dir, platform, "./..."); err != nil {
			fmt.Fprintf(os.Stderr, "platforms: %s:\n%v\n", platform, err)
			failed = true
		}
	}
	if failed || flag.NArg() == 0 {
		os.Exit(1)
	}
}

// check returns the errors of the packages in dir, and of all they import, on a platform.
func check(dir, platform, pattern string) error {
	system, arch, _ := strings.Cut(platform, "/")
	roots, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax,
		Dir:  dir,
		Env:  append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
	}, pattern)
	if err != nil {
		return err
	}
	var found []error
	packages.Visit(roots, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			found = append(found, e)
		}
	})
	return errors.Join(found...)
}
