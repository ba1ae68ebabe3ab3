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

// A dialError says why there is no connection.
type dialError struct {
	word string
	err  error
}

func (e *dialError) Error() string { return e.word + ": " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

var errRefused = errors.New("the address is refused")

// refuses tells whether an address is refused. Exempt addresses are open. Only they are
// open to plain http.
func (p *Poster) refuses(addr netip.Addr, plain bool) bool {
	decides := inside(addr)
	if slices.ContainsFunc(p.config.Allow, func(prefix netip.Prefix) bool { return prefix.Contains(decides) }) {
		return false
	}
	return plain || Refused(addr)
}

// Refused tells whether attempts to an address are certain to be refused, so that a URL
// with this address is useless. With a proxy, the proxy decides.
func (p *Poster) Refused(addr netip.Addr) bool {
	return p.config.Proxy == nil && p.refuses(addr, false)
}

// Dial connects to HOST:PORT like a webhook: the guard and the proxy decide. plain is
// true for http without TLS.
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

// dial connects to an address, or lets the proxy do so. For each connection, the guard
// checks the address after the name was resolved. So neither another spelling nor a second
// response of a name server gets past the guard. A reused connection was checked when it
// was made.
func (p *Poster) dial(ctx context.Context, address string, plain bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bounds.connect)
	defer cancel()
	if p.config.Proxy != nil {
		if plain && len(p.config.Allow) == 0 {
			return nil, &dialError{AddressRefused, errRefused} // plain http is not allowed
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

// dialFailed returns a dialError for an error of a dialer.
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

// secure starts TLS on a connection. If this fails, it closes the connection.
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

// tunnel lets the proxy connect to an address. Go's own client uses CONNECT only for
// https; for http, it would send the request itself to the proxy.
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

// connect sends a CONNECT and reads the response.
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
		// If the proxy sent bytes after its header, it is not a tunnel: a tunnel must be
		// silent until the client speaks.
		return &dialError{Connect, fmt.Errorf("the proxy answered CONNECT with %s", resp.Status)}
	}
	resp.Body.Close() // a response to CONNECT has no body
	return nil
}

// proxyAddress returns the proxy's HOST:PORT.
func proxyAddress(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}
