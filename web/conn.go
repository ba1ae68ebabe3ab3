package web

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A listener limits the writes of its connections, and knows which connections are open.
type listener struct {
	net.Listener
	bound time.Duration
	open  *sync.Map // of *conn
	log   *slog.Logger
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // http.Server tries again
		l.log.Warn("connections can't be accepted: this process has no file handles left", "err", err)
	}
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		limitUnsent(tcp)
	}
	accepted := &conn{Conn: c, bound: l.bound, open: l.open}
	l.open.Store(accepted, nil)
	return accepted, nil
}

// hurry ends the reading of bodies that stand still, until stop is closed. A server that
// stops does not wait for clients that have stopped sending.
func (l listener) hurry(stop <-chan struct{}) {
	look := time.NewTicker(stillAfter)
	defer look.Stop()
	had := map[*conn]int64{}
	for {
		select {
		case <-stop:
			return
		case <-look.C:
		}
		l.open.Range(func(key, _ any) bool {
			c := key.(*conn)
			w := c.reading.Load()
			if n, looked := had[c]; w != nil && looked && n == c.got.Load() {
				w.stopReading()
			}
			if had[c] = c.got.Load(); w == nil {
				delete(had, c)
			}
			return true
		})
	}
}

// streamsEnd is how long the streams have to end when the server stops.
const streamsEnd = 500 * time.Millisecond

// endStreams waits for streamsEnd. Then it closes the connections whose streams have not
// ended, because their clients do not read.
func (l listener) endStreams(stop <-chan struct{}) {
	select {
	case <-stop:
		return
	case <-time.After(streamsEnd):
	}
	l.open.Range(func(key, _ any) bool {
		if c := key.(*conn); c.streams.Load() {
			_ = c.Close()
		}
		return true
	})
}

// cutOff closes all connections once stop is closed.
func (l listener) cutOff(stop <-chan struct{}) {
	<-stop
	l.open.Range(func(key, _ any) bool {
		_ = key.(*conn).Close()
		return true
	})
}

// A conn gives up a write if the client has read no byte for some time. While bytes
// move, an answer may take as long as it needs. http.Server's WriteTimeout limits the
// whole answer, and would cut off a stream.
type conn struct {
	net.Conn
	bound time.Duration
	held  atomic.Pointer[hold] // the memory of the answer that is being written, if it is large
	open  *sync.Map            // the listener's set of open connections

	until   time.Time                // when a write is checked
	reading atomic.Pointer[Response] // the Response whose body is being read; nil: none
	got     atomic.Int64             // number of bytes received
	streams atomic.Bool              // a stream is being answered
	limited atomic.Bool              // the caller has set a limit for writing
}

// SetWriteDeadline implements net.Conn. It limits all following writes; the zero time ends
// the limit. net/http calls it for the handshake of TLS, and crypto/tls for the last words
// of a connection.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.limited.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.got.Add(int64(n))
	return n, err
}

func (c *conn) Close() error {
	c.open.Delete(c)
	return c.Conn.Close()
}

// CloseWrite tells the client that the answer has ended, before the connection is closed.
// net/http calls it when it hangs up without reading the rest of a request. If the
// connection were closed at once, the system would reset it, and the client would lose the
// answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil // a pipe, in tests
}

// connKey is the key of the conn in a request's context.
type connKey struct{}

// arm sets a deadline at which a write of n bytes is checked. moved is the time at which
// the write last made progress. Most writes are small, and one deadline serves many of
// them.
func (c *conn) arm(n int, moved time.Time) error {
	now, end := time.Now(), moved.Add(c.bound)
	if n <= Free {
		if left := c.until.Sub(now); left > c.bound/2 && left <= c.bound {
			return nil
		}
		c.until = end
	} else if c.until = now.Add(lookEvery); c.until.After(end) {
		c.until = end
	}
	return c.Conn.SetWriteDeadline(c.until)
}

func (c *conn) Write(b []byte) (n int, err error) {
	if c.limited.Load() {
		c.until = time.Time{}
		return c.Conn.Write(b)
	}
	moved := time.Now()
	for {
		if err := c.arm(len(b), moved); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:])
		n += m
		if h := c.held.Load(); h != nil && m > 0 {
			h.progress(m)
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		now := time.Now()
		if m > 0 {
			moved = now
		} else if now.Sub(moved) >= c.bound {
			return n, err
		}
	}
}
