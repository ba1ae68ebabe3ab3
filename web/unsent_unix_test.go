//go:build linux || darwin

package web

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// TestUnsent: the system takes only a small part of an answer that its client does not
// read.
func TestUnsent(t *testing.T) {
	t.Parallel()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	client, err := net.Dial("tcp", open.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := listener{open, time.Second, new(sync.Map), slog.New(slog.DiscardHandler)}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := client.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	if n, err := c.Write(make([]byte, 4*most)); n > most || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were taken, want at most %d; %v", n, most, err)
	}
}
