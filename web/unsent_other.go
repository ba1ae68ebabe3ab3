//go:build !linux && !darwin

package web

import "net"

// limitUnsent is for systems that can limit it.
func limitUnsent(*net.TCPConn) {}
