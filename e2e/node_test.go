package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// nodeProgram copies a program for Node to a directory of its own, with the packages that its
// package-lock.json names. Without Node and npm, the test is skipped.
func nodeProgram(t testing.TB, source string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "program")
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	addPackages(t, dir)
	return dir
}

// packages has a function for each package-lock.json that installs what it names.
var packages sync.Map // of func() (string, error), by hash

// addPackages lets the program in a directory use the packages that its package-lock.json
// names. As with Go's packages, they are kept in the user's cache for the next run.
func addPackages(t testing.TB, dir string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(lock)
	key := hex.EncodeToString(hash[:16])
	install, _ := packages.LoadOrStore(key, sync.OnceValues(func() (string, error) { return installPackages(key, dir) }))
	kept, err := install.(func() (string, error))()
	if err == nil {
		err = os.Symlink(filepath.Join(kept, "node_modules"), filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// installPackages installs what the package-lock.json in a directory names, unless the cache has
// it. It returns the directory of the cache. Several processes may do so at once.
func installPackages(key, from string) (kept string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "parley-e2e")
	kept = filepath.Join(cache, key)
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), text, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir, npm.Env = work, environment()
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(work, kept); err != nil {
		if _, there := os.Stat(kept); there != nil { // no other process was faster
			return "", err
		}
	}
	return kept, nil
}
