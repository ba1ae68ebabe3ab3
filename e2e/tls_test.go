package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var certificateSwaps = flag.Int("certificate-swaps", 1, "how often TestTLS replaces the certificate under load. Long run: -certificate-swaps 20")

// A certificateFile is a certificate with its key, in two files.
type certificateFile struct {
	cert, key string
	serial    int64
}

// replace writes a new certificate, and then its key.
func (c *certificateFile) replace(t *testing.T) {
	t.Helper()
	c.serial++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(c.serial), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []struct {
		path  string
		block pem.Block
	}{{c.cert, pem.Block{Type: "CERTIFICATE", Bytes: der}}, {c.key, pem.Block{Type: "PRIVATE KEY", Bytes: secret}}} {
		if err := os.WriteFile(file.path, pem.EncodeToMemory(&file.block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTLS: a server speaks TLS, and its certificate is replaced while clients make new
// connections. No request fails. A file that is no certificate changes nothing. The cookies
// of the console are secure.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir, scratch := newDir(t), t.TempDir()
	workspace, key := newWorkspace(t, dir)
	must(t, dir, "member", "add", "--workspace", workspace, "--name", "Ada", "--email", "ada@example.com", "--role", "admin")
	files := &certificateFile{cert: filepath.Join(scratch, "cert.pem"), key: filepath.Join(scratch, "key.pem")}
	files.replace(t)
	p := launch(t, nil, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--tls-cert", files.cert, "--tls-key", files.key)
	base := strings.Replace(p.address(t), "http://", "https://", 1)
	if !strings.Contains(p.stderr.String(), "base_url="+base+"/v1 ") {
		t.Errorf("logged: %s", p.stderr.String())
	}

	var served atomic.Int64 // the serial number of the newest certificate that a client got
	transport := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // the serial number is checked
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol == "h2" {
				return fmt.Errorf("the server speaks HTTP/2")
			}
			served.Store(state.PeerCertificates[0].SerialNumber.Int64())
			return nil
		},
	}}
	client := &http.Client{Transport: transport, Timeout: patience}
	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/me", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+key)
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s %w", answer.StatusCode, body, err)
		}
		return nil
	}
	waitFor(t, "the first answer", func() bool { return get() == nil })

	over := make(chan struct{})
	var clients sync.WaitGroup
	var requests atomic.Int64
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if err := get(); err != nil {
					t.Error(err)
				}
				requests.Add(1)
			}
		})
	}
	for range *certificateSwaps {
		files.replace(t)
		begun := time.Now()
		waitFor(t, "the new certificate", func() bool { return served.Load() == files.serial })
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the new certificate counts after %v", took)
		}
	}
	if err := os.WriteFile(files.cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the warning", func() bool { return strings.Contains(p.stderr.String(), "the old one stays in use") })
	before := requests.Load()
	waitFor(t, "more requests", func() bool { return requests.Load() > before+4 })
	close(over)
	clients.Wait()
	if served.Load() != files.serial {
		t.Errorf("certificate %d is in use", served.Load())
	}

	link := must(t, dir, "login-link", "--workspace", workspace, "--member", "ada@example.com", "--public-url", base)["url"].(string)
	v := newVisitor(t, base)
	v.http.Transport = transport
	r, err := v.send(strings.TrimPrefix(link, base), url.Values{})
	if c := r.header.Get("Set-Cookie"); err != nil || r.status != 303 || !strings.HasPrefix(c, "__Host-parley_") || !strings.Contains(c, "; Secure") {
		t.Errorf("%d %q %v %s", r.status, c, err, r.body)
	}
	if answer, err := http.Get(strings.Replace(base, "https://", "http://", 1) + "/healthz"); err != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: %v %v", answer, err)
	} else {
		answer.Body.Close()
	}
	p.stop(t)
}

// TestTLS_refused: a server with a wrong pair of files does not start, and leaves nothing.
func TestTLS_refused(t *testing.T) {
	t.Parallel()
	dir, scratch := newDir(t), t.TempDir()
	one := &certificateFile{cert: filepath.Join(scratch, "cert.pem"), key: filepath.Join(scratch, "key.pem")}
	two := &certificateFile{cert: filepath.Join(scratch, "cert2.pem"), key: filepath.Join(scratch, "key2.pem")}
	one.replace(t)
	two.replace(t)
	for _, c := range []struct {
		code int
		args []string
	}{
		{1, []string{"--tls-cert", one.cert, "--tls-key", two.key}},
		{1, []string{"--tls-cert", one.cert, "--tls-key", filepath.Join(scratch, "none.pem")}},
		{2, []string{"--tls-cert", one.cert}},
		{2, []string{"--tls-key", one.key}},
	} {
		r := parley(t, nil, append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0"}, c.args...)...)
		if r.code != c.code || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "--tls-") {
			t.Errorf("%v: exit %d: %s", c.args, r.code, r.stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was made in the data directory")
	}
}

// TestMetricsListen: /metrics has an address of its own, and is not at the other.
func TestMetricsListen(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir, "--metrics-listen", "127.0.0.1:0")
	var match []string
	waitFor(t, "the address of the metrics in the log", func() bool {
		_, line, _ := strings.Cut(s.stderr.String(), "the metrics are ready")
		match = addressField.FindStringSubmatch(line)
		return match != nil
	})
	metrics := &server{url: "http://" + match[1]}
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 404, "/v1/contacts": 404} {
		if got := metrics.status(t, path); got != want {
			t.Errorf("%s at the address of the metrics: %d", path, got)
		}
	}
	if got := s.status(t, "/metrics"); got == http.StatusOK {
		t.Error("/metrics is at the address of the API")
	}
	r := parley(t, nil, "serve", "--data", newDir(t), "--listen", "127.0.0.1:0", "--metrics-listen", match[1])
	if r.code != 1 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "--metrics-listen") {
		t.Errorf("on a taken port: exit %d: %s", r.code, r.stderr)
	}
	s.stop(t)
}
