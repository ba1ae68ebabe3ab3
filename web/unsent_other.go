//go:build !linux && !darwin

package web

import "net"

// limitUnsent does nothing on systems that have no such limit.
func limitUnsent(*net.TCPConn) {}
