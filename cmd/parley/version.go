package main

import "runtime"

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
