package poster

import (
	"crypto/x509"
	"net/netip"
	"time"
)

// Trust makes a Poster trust certificates of a test.
func (p *Poster) Trust(roots *x509.CertPool) { p.tls.RootCAs = roots }

// Hurry shortens the bounds of an attempt.
func (p *Poster) Hurry(post, connect, tls time.Duration) { p.bounds = bounds{post, connect, tls} }

// Refuses tells whether the guard refuses an address to http (plain) or https.
func (p *Poster) Refuses(addr netip.Addr, plain bool) bool { return p.refuses(addr, plain) }
