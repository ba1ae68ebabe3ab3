//go:build linux || darwin

package web

import (
	"net"

	"golang.org/x/sys/unix"
)

// limitUnsent limits how much of an answer the system takes while the client does not read.
// Without the limit, the system keeps megabytes for each connection, and no budget counts
// this memory. Bytes that are on their way are not limited, so a client that is fast and
// far away stays fast.
func limitUnsent(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) { // a system that can't do it serves as before
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
	})
}

// maxUnsent is how many bytes the system keeps for a client beyond those on their way.
const maxUnsent = 128 << 10
