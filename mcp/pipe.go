package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// lastAnswers is how long a pipe waits for the last responses after the input has ended.
const lastAnswers = 30 * time.Second

// A pipe is a client's two streams, with one message on each line. When the input ends,
// the SDK ends the session and the running calls. So a pipe lets the input end only once
// all requests have a response: the response to a running send must not be lost.
type pipe struct {
	ctx     context.Context
	in      *bufio.Reader
	out     io.Writer
	line    []byte       // of the input, not read yet
	written []byte       // the beginning of a line of the output
	open    atomic.Int64 // requests without a response
	changed chan struct{}
}

func newPipe(ctx context.Context, in io.Reader, out io.Writer) *pipe {
	return &pipe{ctx: ctx, in: bufio.NewReader(in), out: out, changed: make(chan struct{}, 1)}
}

// A message has the fields that a pipe looks at. Requests have an id and a method,
// responses have no method, and notifications have no id.
type message struct {
	ID     json.RawMessage
	Method string
}

func parseMessage(line []byte) (m message) {
	if json.Unmarshal(line, &m) != nil {
		return message{}
	}
	return m
}

func (p *pipe) Read(b []byte) (int, error) {
	if len(p.line) == 0 {
		line, err := p.in.ReadBytes('\n')
		if m := parseMessage(line); m.ID != nil && m.Method != "" {
			p.open.Add(1)
		}
		if p.line = line; len(line) == 0 {
			if errors.Is(err, io.EOF) {
				p.await()
			}
			return 0, err
		}
	}
	n := copy(b, p.line)
	p.line = p.line[n:]
	return n, nil
}

// await waits until all requests have a response.
func (p *pipe) await() {
	enough := time.NewTimer(lastAnswers)
	defer enough.Stop()
	for p.open.Load() > 0 {
		select {
		case <-p.changed:
		case <-enough.C:
			return
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	p.written = append(p.written, b[:n]...)
	for {
		line, rest, whole := bytes.Cut(p.written, []byte{'\n'})
		if !whole {
			return n, err
		}
		if m := parseMessage(line); m.ID != nil && m.Method == "" {
			p.open.Add(-1)
			select {
			case p.changed <- struct{}{}:
			default:
			}
		}
		p.written = append(p.written[:0], rest...)
	}
}

// Close leaves the streams open, because they belong to the process.
func (p *pipe) Close() error { return nil }
