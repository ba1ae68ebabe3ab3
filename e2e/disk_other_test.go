//go:build !linux

package e2e_test

import "testing"

// smallDisk is for Linux: see disk_test.go.
func smallDisk(t *testing.T, _ int) string {
	t.Helper()
	t.Skip("only Linux mounts a disk of a few KiB")
	return ""
}
