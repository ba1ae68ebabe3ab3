//go:build linux || darwin

package web

import (
	"net"

	"golang.org/x/sys/unix"
)

// limitUnsent bounds what the system takes of an answer that the client does not read.
// Without it, the system keeps megabytes for each connection: memory that no budget counts.
// What is on its way is not limited, so a fast client far away is as fast.
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
