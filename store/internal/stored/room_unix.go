//go:build unix

package stored

import "golang.org/x/sys/unix"

// roomOf returns how many bytes a process without privileges may still store in the file
// system of a directory, and the total size of the file system.
func roomOf(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	block := int64(s.Bsize) //nolint:unconvert // not an int64 on every system
	return int64(s.Bavail) * block, int64(s.Blocks) * block, nil
}
