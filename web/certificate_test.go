package web_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/web"
)

// newPair makes a certificate with this serial number, and its key, as PEM.
func newPair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"parley"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// A certified is a server that speaks TLS, with the files of its certificate.
type certified struct {
	*server
	certificate       *web.Certificate
	certFile, keyFile string
}

func newCertified(t *testing.T, more ...func(*web.Config)) *certified {
	t.Helper()
	c := &certified{certFile: filepath.Join(t.TempDir(), "cert.pem"), keyFile: filepath.Join(t.TempDir(), "key.pem")}
	cert, key := newPair(t, 1)
	c.write(t, c.certFile, cert)
	c.write(t, c.keyFile, key)
	var err error
	if c.certificate, err = web.LoadCertificate(c.certFile, c.keyFile); err != nil {
		t.Fatal(err)
	}
	c.server = newServerWith(t, func(config *web.Config) {
		config.Certificate = c.certificate
		for _, change := range more {
			change(config)
		}
	})
	return c
}

func (c *certified) write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// connect begins a connection with TLS.
func (c *certified) connect(config *tls.Config) (*tls.Conn, error) {
	client, ours := net.Pipe()
	c.pipes <- ours
	config.InsecureSkipVerify = true // the test reads the serial number
	conn := tls.Client(client, config)
	return conn, conn.Handshake()
}

// serial returns the serial number of the certificate in use.
func (c *certified) serial(t *testing.T) int64 {
	t.Helper()
	conn, err := c.connect(&tls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestTLS: no version before TLS 1.2, and no HTTP/2, even if the client offers it. Requests
// are answered.
func TestTLS(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newCertified(t)
		s.Handle("GET /x", func(w *web.Response, _ *http.Request) error {
			w.Reply(200, "text/plain", []byte("hello"))
			return nil
		}, fail)
		s.start()
		if _, err := s.connect(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
			t.Error("TLS 1.1 was accepted")
		}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			conn, err := s.connect(&tls.Config{MaxVersion: version, NextProtos: []string{"h2", "http/1.1"}})
			if err != nil {
				t.Fatal(err)
			}
			if state := conn.ConnectionState(); state.Version != version || state.NegotiatedProtocol != "http/1.1" {
				t.Errorf("%s %q", tls.VersionName(state.Version), state.NegotiatedProtocol)
			}
			go func() { _, _ = io.WriteString(conn, get) }()
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "hello" {
				t.Errorf("%q %v", body, err)
			}
			_ = conn.Close()
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestTLS_slow: the limits of a client's time hold with TLS too. A client that reads slowly
// gets its answer, one that does not read is cut off, and so is one that does not finish the
// handshake.
func TestTLS_slow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newCertified(t)
		large := bytes.Repeat([]byte("x"), 1<<20)
		ended := make(chan error, 1)
		s.Handle("GET /x", func(w *web.Response, _ *http.Request) error {
			_, err := w.Write(large)
			ended <- err
			return nil
		}, fail)
		s.start()
		slow, err := s.connect(&tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(slow, get) }()
		begun, b := time.Now(), make([]byte, 16<<10)
		for n := 0; n < len(large); {
			time.Sleep(20 * time.Second)
			m, err := slow.Read(b)
			if err != nil {
				t.Fatalf("after %d bytes and %v: %v", n, time.Since(begun), err)
			}
			n += m
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		deaf, err := s.connect(&tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		if _, err := io.WriteString(deaf, get); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || time.Since(begun) > 36*time.Second { // 30 s, and 5 s for the last words
			t.Errorf("a client that does not read: %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		mute := s.dial("\x16\x03\x01")
		if _, err := io.Copy(io.Discard, mute); err != nil || time.Since(begun) != 10*time.Second {
			t.Errorf("a handshake that does not go on: %v after %v", err, time.Since(begun))
		}
		_ = slow.Close()
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestTLS_stop: the server stops in the time for stopping, although many clients do not
// read its last words. Each of them has five seconds for this, one after the other.
func TestTLS_stop(t *testing.T) {
	t.Parallel()
	s := newCertified(t, func(c *web.Config) { c.Bounds.Drain = time.Second })
	s.Handle("GET /x", func(w *web.Response, _ *http.Request) error {
		w.Reply(200, "text/plain", nil)
		return nil
	}, fail)
	s.start()
	for range 3 {
		conn, err := s.connect(&tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, get) }()
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	if err := s.end(); err != nil || time.Since(begun) > 4*time.Second {
		t.Errorf("it took %v: %v", time.Since(begun), err)
	}
}

// TestCertificate: changed files count within ten seconds. While they are not a pair, the
// old certificate stays in use, and one line of the log says so.
func TestCertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newCertified(t)
		s.start()
		go s.certificate.Run(t.Context(), slog.New(slog.NewTextHandler(s.log, nil)))
		const soon = 10 * time.Second
		if n := s.serial(t); n != 1 {
			t.Fatalf("certificate %d is in use", n)
		}
		// The certificate comes first, and the key a moment later: this is no mistake.
		cert, key := newPair(t, 2)
		s.write(t, s.certFile, cert)
		time.Sleep(3 * time.Second)
		synctest.Wait() // a look at the files may be under way
		if n := s.serial(t); n != 1 {
			t.Errorf("certificate %d is in use, whose key was not there", n)
		}
		s.write(t, s.keyFile, key)
		time.Sleep(soon)
		if n := s.serial(t); n != 2 || strings.Contains(s.log.String(), "level=WARN") {
			t.Errorf("certificate %d is in use; logged:\n%s", n, s.log)
		}
		other, _ := newPair(t, 3)
		for _, bad := range []struct {
			name string
			do   func()
		}{
			{"another key's certificate", func() { s.write(t, s.certFile, other) }},
			{"no certificate", func() { s.write(t, s.certFile, []byte("soon")) }},
			{"no file", func() { _ = os.Remove(s.certFile) }},
		} {
			before := strings.Count(s.log.String(), "level=WARN")
			bad.do()
			time.Sleep(soon)
			if n := s.serial(t); n != 2 || strings.Count(s.log.String(), "level=WARN") != before+1 {
				t.Errorf("%s: certificate %d is in use; logged:\n%s", bad.name, n, s.log)
			}
			time.Sleep(time.Minute)
			if strings.Count(s.log.String(), "level=WARN") != before+1 {
				t.Errorf("%s: it is logged again and again:\n%s", bad.name, s.log)
			}
		}
		cert, key = newPair(t, 4)
		s.write(t, s.certFile, cert)
		s.write(t, s.keyFile, key)
		time.Sleep(soon)
		if n := s.serial(t); n != 4 {
			t.Errorf("certificate %d is in use", n)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestLoadCertificate(t *testing.T) {
	t.Parallel()
	s := newCertified(t)
	if _, err := web.LoadCertificate(s.certFile, s.certFile); err == nil {
		t.Error("a certificate was taken for its key")
	}
	if _, err := web.LoadCertificate(s.certFile, s.keyFile+".gone"); err == nil || !strings.Contains(err.Error(), s.keyFile+".gone") {
		t.Errorf("without a key: %v", err)
	}
	_, key := newPair(t, 2)
	s.write(t, s.keyFile, key)
	if _, err := web.LoadCertificate(s.certFile, s.keyFile); err == nil {
		t.Error("another certificate's key was taken")
	}
}

// TestMetricsApart: with a listener of its own, /metrics is there only, and nothing else is.
func TestMetricsApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServerWith(t, func(config *web.Config) { config.MetricsApart = true })
		s.Handle("/", func(w *web.Response, r *http.Request) error { return s.NoRoute(w, r) }, fail)
		if w := s.get("/metrics"); w.Body.String() != "not_found" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		apart, served := pipes{make(chan net.Conn), make(chan struct{}), new(sync.Once)}, make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { served <- s.ServeMetrics(ctx, apart) }()
		for path, want := range map[string]int{"/metrics": 200, "/healthz": 404, "/": 404, "/v1/contacts": 404} {
			client, ours := net.Pipe()
			apart.conns <- ours
			go func() { _, _ = io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: parley\r\n\r\n") }()
			answer, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != want || strings.Contains(string(body), "parley_http_requests_total") != (want == 200) {
				t.Errorf("%s: %d %.200s %v", path, answer.StatusCode, body, err)
			}
			_ = client.Close()
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		taken := pipes{make(chan net.Conn), make(chan struct{}), new(sync.Once)}
		_ = taken.Close()
		if err := s.ServeMetrics(t.Context(), taken); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a listener that fails: %v", err)
		}
	})
}
