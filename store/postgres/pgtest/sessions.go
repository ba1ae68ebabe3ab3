package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// mostKept is the number of idle sessions that are kept for a database.
const mostKept = 24

// sessions forwards connections to a database. When a client leaves, its session is cleaned,
// and the next client with the same parameters gets it. A new session costs a process that
// first reads the catalogue of each table: that was half the time of tests over PostgreSQL.
type sessions struct {
	server string // HOST:PORT
	mu     sync.Mutex
	idle   map[string][]*session // by their parameters
	kept   int                   // how many are idle
	ended  bool
}

// A session is a connection to the server.
type session struct {
	net.Conn
	in       *bufio.Reader
	greeting []byte // what the server sent until it was ready
}

// keepSessions returns the URL of a database at which its sessions are kept until the test
// ends. The server must trust everybody: the second client of a session sends no password.
func keepSessions(t testing.TB, database string) string {
	t.Helper()
	listener, there, server := inFront(t, database)
	k := &sessions{server: server, idle: map[string][]*session{}}
	go accept(listener, func(client net.Conn) { _ = k.lead(client) }) // the client sees that its connection has ended
	t.Cleanup(func() {
		_ = listener.Close()
		k.end()
	})
	return there
}

// end ends the idle sessions. The others end with their clients.
func (k *sessions) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	for _, list := range k.idle {
		for _, s := range list {
			_ = s.Close()
		}
	}
}

// lead forwards what a new connection asks for.
func (k *sessions) lead(client net.Conn) error {
	asks := pgproto3.NewBackend(client, client)
	m, err := asks.ReceiveStartupMessage()
	if _, tls := m.(*pgproto3.SSLRequest); tls && err == nil {
		if _, err = client.Write([]byte("N")); err == nil {
			m, err = asks.ReceiveStartupMessage()
		}
	}
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *pgproto3.StartupMessage:
		return k.join(client, m)
	case *pgproto3.CancelRequest:
		return k.cancel(m)
	}
	return fmt.Errorf("a %T", m)
}

// cancel forwards a request to cancel the statement of a session.
func (k *sessions) cancel(m *pgproto3.CancelRequest) error {
	server, err := net.Dial("tcp", k.server)
	if err != nil {
		return err
	}
	defer server.Close()
	if _, err = server.Write(encoded(m)); err == nil {
		_, err = server.Read(make([]byte, 1)) // the server closes the connection when it has done it
	}
	return err
}

// join gives a client a session, until one of the two leaves.
func (k *sessions) join(client net.Conn, m *pgproto3.StartupMessage) error {
	kind := fmt.Sprint(m.Parameters) // in the order of their names
	s, err := k.take(kind, m)
	if err != nil {
		return err
	}
	if _, err = client.Write(s.greeting); err != nil {
		return errors.Join(err, s.Close())
	}
	var left atomic.Bool
	clean := make(chan bool, 1)
	go func() { clean <- s.answer(client, &left) }()
	if err = s.request(client); err == nil {
		left.Store(true)
		_, err = s.Write(discard)
	}
	if err != nil {
		_ = s.Close() // and the answers end
	}
	if !<-clean || err != nil {
		return errors.Join(err, s.Close())
	}
	k.put(kind, s)
	return nil
}

// take returns an idle session of a kind, or a new one.
func (k *sessions) take(kind string, m *pgproto3.StartupMessage) (*session, error) {
	for {
		s := k.pop(kind)
		switch {
		case s == nil:
			return k.start(m)
		case s.lives():
			return s, nil
		}
		_ = s.Close()
	}
}

func (k *sessions) pop(kind string) *session {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.idle[kind]
	if len(list) == 0 {
		return nil
	}
	k.idle[kind] = list[:len(list)-1]
	k.kept--
	return list[len(list)-1]
}

func (k *sessions) put(kind string, s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended || k.kept == mostKept {
		_ = s.Close()
		return
	}
	k.idle[kind] = append(k.idle[kind], s)
	k.kept++
}

func (k *sessions) start(m *pgproto3.StartupMessage) (*session, error) {
	server, err := net.Dial("tcp", k.server)
	if err != nil {
		return nil, err
	}
	s := &session{Conn: server, in: bufio.NewReaderSize(server, 32<<10)}
	_, err = s.Write(encoded(m))
	for err == nil {
		var message []byte
		if message, err = s.next(); err == nil {
			s.greeting = append(s.greeting, message...)
			if message[0] == readyForQuery || message[0] == errorResponse {
				return s, nil
			}
		}
	}
	return nil, errors.Join(err, s.Close())
}

// The first bytes of messages of the server.
const (
	readyForQuery = 'Z'
	errorResponse = 'E'
)

var (
	terminate = encoded(&pgproto3.Terminate{})
	discard   = encoded(&pgproto3.Query{String: "DISCARD ALL"})
	discarded = encoded(&pgproto3.CommandComplete{CommandTag: []byte("DISCARD ALL")})
)

func encoded(m interface{ Encode([]byte) ([]byte, error) }) []byte {
	b, err := m.Encode(nil)
	if err != nil {
		panic(err)
	}
	return b
}

// lives tells whether an idle session is still there. The server sends something only when it
// ends the session.
func (s *session) lives() bool {
	_ = s.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := s.in.Peek(1)
	_ = s.SetReadDeadline(time.Time{})
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// next reads a message of the server.
func (s *session) next() ([]byte, error) {
	head, err := s.in.Peek(5)
	if err != nil {
		return nil, err
	}
	message := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(s.in, message)
	return message, err
}

// request forwards what the client sends until it leaves. Its last message says so, and is not
// forwarded. A client that leaves without it has lost its session.
func (s *session) request(client net.Conn) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := client.Read(buffer)
		part, leaves := bytes.CutSuffix(buffer[:n], terminate)
		if len(part) > 0 {
			if _, err := s.Write(part); err != nil {
				return err
			}
		}
		switch {
		case leaves:
			return nil
		case err != nil:
			return err
		}
	}
}

// answer forwards what the server sends. Once the client has left, it returns true when the
// session is clean, which it can't be inside a transaction.
func (s *session) answer(client net.Conn, left *atomic.Bool) bool {
	var out []byte
	for last := []byte(nil); ; {
		message, err := s.next()
		if err != nil || message[0] == errorResponse && left.Load() {
			_ = client.Close()
			return false
		}
		if message[0] == readyForQuery && bytes.Equal(last, discarded) && left.Load() {
			return true
		}
		last = message
		if out = append(out, message...); s.in.Buffered() == 0 || len(out) > 32<<10 {
			_, _ = client.Write(out) // it may have left
			out = out[:0]
		}
	}
}
