package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: an error is found on the platform that has it, and on no other.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example\n\ngo 1.26\n",
		"all.go":        "package example\n\nvar _ = name\n",
		"on_linux.go":   "package example\n\nconst name = 1\n",
		"on_windows.go": "package example\n\nimport \"syscall\"\n\nconst name = syscall.SIGUSR1\n", // windows has none
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for platform, want := range map[string]string{"linux/arm64": "", "windows/amd64": "SIGUSR1", "darwin/arm64": "undefined: name"} {
		err := check(dir, platform, "./...")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", platform, err, want)
		}
	}
}
