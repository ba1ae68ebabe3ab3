package pgtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Proxy forwards connections to a database. It can be slow, or refuse to forward. It
// keeps together the data that a client sends at once, so statements that are sent
// together cost one round trip.
type Proxy struct {
	URL string // of the database, through the proxy

	trip     atomic.Int64 // the additional time of a round trip
	requests atomic.Int64
	away     atomic.Bool
	gate     sync.RWMutex // locked while the proxy hangs
	mu       sync.Mutex
	server   string // HOST:PORT
	open     map[net.Conn]bool
}

// NewProxy returns a proxy for the database at a URL. The proxy ends with the test.
func NewProxy(t testing.TB, database string) *Proxy {
	t.Helper()
	listener, there, server := inFront(t, database)
	p := &Proxy{URL: there, server: server, open: map[net.Conn]bool{}}
	go accept(listener, p.lead)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
	})
	return p
}

// inFront listens in the place of a database's server. It returns the URL of the database at that
// place, and the HOST:PORT of the server.
func inFront(t testing.TB, database string) (listener net.Listener, there, server string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal("the database's URL is none") // the error is left out, because it may contain a password
	}
	if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server, u.Host = u.Host, listener.Addr().String()
	return listener, u.String(), server
}

// accept calls lead for each connection until the listener ends. It closes the connection when
// lead returns.
func accept(listener net.Listener, lead func(client net.Conn)) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			lead(client)
		}()
	}
}

// Slow makes every round trip take longer from now on.
func (p *Proxy) Slow(by time.Duration) { p.trip.Store(int64(by)) }

// Requests returns how often a client has sent something after waiting for a response.
// This is about the number of round trips.
func (p *Proxy) Requests() int { return int(p.requests.Load()) }

// Away makes the database unreachable, or reachable again. While it is unreachable,
// connections are closed at once.
func (p *Proxy) Away(away bool) {
	p.away.Store(away)
	if away {
		p.Cut()
	}
}

// Hang makes the proxy keep what it is sent, as a server does whose processor or disk has
// stopped: connections are made and stay open, but nothing comes back. The function that it
// returns ends this, and what was kept is forwarded.
func (p *Proxy) Hang() (resume func()) {
	p.gate.Lock()
	return sync.OnceFunc(p.gate.Unlock)
}

// LeadTo makes the proxy forward new connections to another server.
func (p *Proxy) LeadTo(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = fmt.Sprintf("127.0.0.1:%d", s.port)
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}

func (p *Proxy) lead(client net.Conn) {
	if p.away.Load() {
		return
	}
	p.mu.Lock()
	address := p.server
	p.mu.Unlock()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.open[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, client)
	}()
	var answered atomic.Bool
	answered.Store(true)
	var both sync.WaitGroup
	both.Go(func() {
		p.pass(server, client, func() {
			if answered.Swap(false) {
				p.requests.Add(1)
			}
		})
	})
	both.Go(func() { p.pass(client, server, func() { answered.Store(true) }) })
	both.Wait()
}

// pass copies the data of one direction. Each part is delayed by half a round trip.
func (p *Proxy) pass(to, from net.Conn, came func()) {
	type part struct {
		bytes []byte
		due   time.Time
	}
	parts := make(chan part, 1<<16)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer to.Close()
		failed := false
		for next := range parts {
			if failed {
				continue
			}
			time.Sleep(time.Until(next.due))
			p.gate.RLock()
			p.gate.RUnlock() //nolint:staticcheck // it only waits
			_, err := to.Write(next.bytes)
			failed = err != nil
		}
	})
	for {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			came()
			parts <- part{buffer[:n], time.Now().Add(time.Duration(p.trip.Load()) / 2)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			break
		}
	}
	close(parts)
	writing.Wait()
}
