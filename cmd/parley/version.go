package main

import (
	"runtime"
	"runtime/debug"
)

// version is set when a release is built: -ldflags '-X main.version=v1.2.3'.
var version string

// versionOf returns the binary's version. A build without the flag has the version that
// Go derives from the commit.
func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

type versionCmd struct{}

// Help shows examples.
func (*versionCmd) Help() string { return examples(`parley version`, `parley version --json`) }

// Run prints the version.
func (*versionCmd) Run(s *session) error {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	return s.answer(struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{versionOf(), runtime.Version(), platform}, "parley %s %s %s\n", versionOf(), runtime.Version(), platform)
}
