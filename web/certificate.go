package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// A Certificate is a certificate with its private key, in two files that may change. It is
// safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	used              atomic.Pointer[tls.Certificate]
	tried             pair // the newest content of the files that was read twice, or is used
}

// A pair is the content of both files, or the error of reading them.
type pair struct {
	cert, key []byte
	err       string
}

func (p pair) equal(q pair) bool {
	return bytes.Equal(p.cert, q.cert) && bytes.Equal(p.key, q.key) && p.err == q.err
}

// lookAtFiles is the time between two looks at the files. A pair counts from the first look
// on that shows it whole, which is within the 10 s of the contract.
const lookAtFiles = 3 * time.Second

// LoadCertificate reads a certificate with its chain, and its private key, both in PEM.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	c.tried = c.read()
	return c, c.use(c.tried)
}

// Run uses changed files, until ctx ends. If they are not a pair, the old certificate stays
// in use, and this is logged.
func (c *Certificate) Run(ctx context.Context, log *slog.Logger) {
	look := time.NewTicker(lookAtFiles)
	defer look.Stop()
	before := c.tried
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now := c.read()
		seen := now.equal(before)
		before = now
		if now.equal(c.tried) {
			continue
		}
		// A pair that does not fit may be half written: one of its files comes first. So it is a
		// mistake only if the next look shows it again.
		if err := c.use(now); err == nil {
			c.tried = now
			log.InfoContext(ctx, "the certificate was read anew", "file", c.certFile, "expires", c.used.Load().Leaf.NotAfter.UTC())
		} else if seen {
			c.tried = now
			log.WarnContext(ctx, "the certificate can't be read anew: the old one stays in use", "file", c.certFile, "key", c.keyFile, "err", err)
		}
	}
}

func (c *Certificate) read() (p pair) {
	var certErr, keyErr error
	p.cert, certErr = os.ReadFile(c.certFile)
	p.key, keyErr = os.ReadFile(c.keyFile)
	if err := errors.Join(certErr, keyErr); err != nil {
		p.err = err.Error()
	}
	return p
}

func (c *Certificate) use(p pair) error {
	if p.err != "" {
		return errors.New(p.err)
	}
	certificate, err := tls.X509KeyPair(p.cert, p.key)
	if err == nil {
		c.used.Store(&certificate)
	}
	return err
}

// config returns how connections are encrypted. HTTP/2 is not offered, because the limits of
// conn and listener count connections: in HTTP/2, many requests share one.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.used.Load(), nil },
	}
}
