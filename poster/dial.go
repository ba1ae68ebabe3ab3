package poster

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// A dialError is why there is no connection.
type dialError struct {
	word string
	err  error
}

func (e *dialError) Error() string { return e.word + ": " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

var errRefused = errors.New("the address is refused")

// refuses tells whether an address is refused. Those that the operator exempts are open,
// and only they to http.
func (p *Poster) refuses(addr netip.Addr, plain bool) bool {
	decides := inside(addr)
	if slices.ContainsFunc(p.config.Allow, func(prefix netip.Prefix) bool { return prefix.Contains(decides) }) {
		return false
	}
	return plain || Refused(addr)
}

// Refused tells whether attempts to an address are sure to be refused, so that a URL with
// it is of no use. A proxy judges by itself.
func (p *Poster) Refused(addr netip.Addr) bool {
	return p.config.Proxy == nil && p.refuses(addr, false)
}

// Dial connects to HOST:PORT as for a webhook: the guard and the proxy decide. plain says
// that http will be spoken, not TLS.
func (p *Poster) Dial(ctx context.Context, address string, plain bool) (net.Conn, error) {
	return p.dial(ctx, address, plain)
}

// dialPlain connects for an http URL.
func (p *Poster) dialPlain(ctx context.Context, _, address string) (net.Conn, error) {
	return p.dial(ctx, address, true)
}

// dialTLS connects for an https URL.
func (p *Poster) dialTLS(ctx context.Context, _, address string) (net.Conn, error) {
	conn, err := p.dial(ctx, address, false)
	if err != nil {
		return nil, err
	}
	return p.secure(ctx, conn, address)
}

// dial connects to an address, or has the proxy do so. The guard sees the very address of
// each connect, after the name was resolved: no spelling and no second answer of a name
// server gets past it. A connection that is used again was judged when it was made.
func (p *Poster) dial(ctx context.Context, address string, plain bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bounds.connect)
	defer cancel()
	if p.config.Proxy != nil {
		if plain && len(p.config.Allow) == 0 {
			return nil, &dialError{AddressRefused, errRefused} // http is closed
		}
		return p.tunnel(ctx, address)
	}
	dialer := &net.Dialer{
		Resolver: p.config.Resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || p.refuses(at.Addr(), plain) {
				return errRefused
			}
			return nil
		},
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, dialFailed(err)
	}
	return conn, nil
}

// dialFailed finds the word for an error of a dialer.
func dialFailed(err error) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, errRefused):
		return &dialError{AddressRefused, err}
	case errors.As(err, &dns):
		return &dialError{DNS, err}
	}
	return &dialError{Connect, err}
}

// secure begins TLS on a connection, which it closes if that fails.
func (p *Poster) secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		_ = conn.Close()
		return nil, &dialError{TLS, err}
	}
	config := p.tls.Clone()
	config.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, p.bounds.tls)
	defer cancel()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &dialError{TLS, err}
	}
	return secure, nil
}

// tunnel has the proxy connect to an address. Go's own client would use CONNECT for https
// only, and would leave it to the proxy to understand http.
func (p *Poster) tunnel(ctx context.Context, address string) (net.Conn, error) {
	proxy := proxyAddress(p.config.Proxy)
	dialer := &net.Dialer{Resolver: p.config.Resolver}
	conn, err := dialer.DialContext(ctx, "tcp", proxy)
	if err != nil {
		return nil, &dialError{Connect, err}
	}
	if p.config.Proxy.Scheme == "https" {
		if conn, err = p.secure(ctx, conn, proxy); err != nil {
			return nil, &dialError{Connect, err}
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := p.connect(conn, address); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// connect sends a CONNECT and reads the answer.
func (p *Poster) connect(conn net.Conn, address string) error {
	req := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: address},
		Host:   address,
		Header: http.Header{"User-Agent": {p.agent}},
	}
	if user := p.config.Proxy.User; user != nil {
		password, _ := user.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		req.Header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	if err := req.Write(conn); err != nil {
		return &dialError{Connect, err}
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxHeader))
	resp, err := http.ReadResponse(reader, req)
	switch {
	case err != nil:
		return &dialError{Connect, err}
	case resp.StatusCode == http.StatusForbidden:
		return &dialError{AddressRefused, errRefused}
	case resp.StatusCode != http.StatusOK || reader.Buffered() > 0:
		// With bytes after the header, the proxy is not silent until the client speaks.
		return &dialError{Connect, fmt.Errorf("the proxy answered CONNECT with %s", resp.Status)}
	}
	resp.Body.Close() // of no length
	return nil
}

// proxyAddress is where to connect to the proxy.
func proxyAddress(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}
