//go:build unix

package pgtest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// identity returns the user as which the server runs. initdb refuses to run as root, so
// root uses the user of PostgreSQL's package.
func identity() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return attr, nil
	}
	uid, gid, err := postgresUser()
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, err
}

// own makes the server's user the owner of a directory.
func own(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := postgresUser()
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// memory returns the directory of files in memory, or "" if there is none with enough room.
// A database has hundreds of files; on a disk, making and deleting them takes a quarter of
// the server's time.
func memory() string {
	const dir, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return ""
	}
	return dir
}

func postgresUser() (uid, gid int, err error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, missing("root can't run it, and there is no user postgres")
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}
