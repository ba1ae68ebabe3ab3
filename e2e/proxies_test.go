package e2e_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// publicHost is the name of the host in the samples of docs/proxy.md.
const publicHost = "parley.example.com"

// TestProxies runs the samples of docs/proxy.md in front of a server. The proxy passes
// the console, its stream, the stream of events, batches, and files of 100 MB. It does
// not pass the paths for monitoring.
func TestProxies(t *testing.T) {
	t.Parallel()
	for _, sample := range []struct {
		language, program string
		start             func(t *testing.T, p *proxied, config string)
	}{
		{"nginx", "nginx", startNginx},
		{"caddy", "caddy", startCaddy},
	} {
		t.Run(sample.program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(sample.program); err != nil {
				t.Skipf("%s is not installed", sample.program)
			}
			p := &proxied{team: newTeam(t, newDir(t), nil, "--public-url", "https://"+publicHost), scratch: t.TempDir()}
			p.certify(t)
			sample.start(t, p, sampleOf(t, "../docs/proxy.md", sample.language))
			p.open(t)
			p.console(t)
			p.api(t)
			p.shut(t)
		})
	}
}

// sampleOf returns the code block of a page that is in a language. There must be only
// one.
func sampleOf(t *testing.T, file, language string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "\n```"+language+"\n")
	sample, rest, closed := strings.Cut(after, "```\n")
	if !found || !closed || strings.Contains(rest, "\n```"+language+"\n") {
		t.Fatalf("%s does not have one block of %s", file, language)
	}
	return sample
}

// replaced returns a sample in which words are replaced. The sample must have each word.
func replaced(t *testing.T, sample string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(sample, pairs[i]) {
			t.Fatalf("the sample lacks %q:\n%s", pairs[i], sample)
		}
		sample = strings.ReplaceAll(sample, pairs[i], pairs[i+1])
	}
	return sample
}

// A proxied is a team whose server is behind a proxy.
type proxied struct {
	*team
	scratch           string
	certFile, keyFile string
	roots             *x509.CertPool
	address           string // the address of the proxy
	http              *http.Client
}

func (p *proxied) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(p.scratch, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certify makes a certificate for the public host.
func (p *proxied) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: publicHost}, DNSNames: []string{publicHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.certFile = p.file(t, "cert.pem", string(certificate))
	p.keyFile = p.file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	p.roots = x509.NewCertPool()
	p.roots.AppendCertsFromPEM(certificate)
}

// upstream returns the address of the server behind the proxy.
func (p *proxied) upstream() string { return strings.TrimPrefix(p.nodes[0].url, "http://") }

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func startNginx(t *testing.T, p *proxied, sample string) {
	p.address = freeAddress(t)
	site := p.file(t, "site.conf", replaced(t, sample, "listen 443 ssl", "listen "+p.address+" ssl",
		"/etc/ssl/parley.example.com.pem", p.certFile, "/etc/ssl/parley.example.com.key", p.keyFile, "127.0.0.1:8480", p.upstream()))
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	var temp strings.Builder
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "%s_temp_path %s;\n", name, filepath.Join(p.scratch, name))
	}
	config := p.file(t, "nginx.conf", user+"daemon off;\nmaster_process off;\nerror_log stderr;\npid "+filepath.Join(p.scratch, "nginx.pid")+
		";\nevents {}\nhttp {\naccess_log off;\n"+temp.String()+"include "+site+";\n}\n")
	launchProgram(t, "nginx", nil, "-p", p.scratch, "-e", "stderr", "-c", config)
}

func startCaddy(t *testing.T, p *proxied, sample string) {
	p.address = freeAddress(t)
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	config := p.file(t, "Caddyfile", "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"+
		replaced(t, sample, publicHost+" {\n", "https://"+publicHost+":"+port+" {\n\tbind 127.0.0.1\n\ttls "+p.certFile+" "+p.keyFile+"\n", "127.0.0.1:8480", p.upstream()))
	launchProgram(t, "caddy", []string{"HOME=" + p.scratch, "XDG_DATA_HOME=" + p.scratch, "XDG_CONFIG_HOME=" + p.scratch},
		"run", "--config", config, "--adapter", "caddyfile")
}

// open makes a client that connects to the proxy when it calls the public host. It waits
// until the proxy answers.
func (p *proxied) open(t *testing.T) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: p.roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, p.address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	p.http = &http.Client{Transport: transport, Jar: jar, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	waitFor(t, "the proxy", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+publicHost+"/sign-in", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := p.http.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// begin sends a request and returns the response without reading its body.
func (p *proxied) begin(t *testing.T, method, path string, body io.Reader, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+publicHost+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := p.http.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func (p *proxied) want(t *testing.T, status int, method, path string, body io.Reader, header ...string) []byte {
	t.Helper()
	answer := p.begin(t, method, path, body, header...)
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Fatalf("%s %s: %d, want %d, %v: %.300s", method, path, answer.StatusCode, status, err, text)
	}
	return text
}

// form posts a form like a browser.
func (p *proxied) form(t *testing.T, status int, path string, values url.Values) {
	t.Helper()
	p.want(t, status, http.MethodPost, path, strings.NewReader(values.Encode()), "Content-Type", "application/x-www-form-urlencoded",
		"Origin", "https://"+publicHost)
}

// pdf returns a file of n bytes that is recognized as a PDF.
func pdf(n int) []byte {
	file := bytes.Repeat([]byte("parley proxied "), n/15+1)[:n]
	copy(file, "%PDF-1.7\n")
	return file
}

// largestFile is the default of serve --max-media.
const largestFile = 100_000_000

// console uses the console through the proxy: it signs in by a link, posts forms, opens
// the stream, and sends a file of 100 MB.
func (p *proxied) console(t *testing.T) {
	t.Helper()
	p.member("Nora", "admin")
	p.form(t, 303, p.link("Nora"), url.Values{})
	talk := p.must("sandbox", "inbound", "--channel", p.channel, "--from", "+1 202 555 0143", "--text", "Where is it?")["conversation_id"].(string)
	p.want(t, 200, http.MethodGet, "/inbox?view=unassigned", http.NoBody)
	page := p.want(t, 200, http.MethodGet, "/inbox/"+talk, http.NoBody)

	stream := p.begin(t, http.MethodGet, "/live", http.NoBody, "Accept", "text/event-stream")
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("/live: %d", stream.StatusCode)
	}
	heard := make(chan string, 1)
	go func() {
		var all []byte
		buf := make([]byte, 4096)
		for {
			n, err := stream.Body.Read(buf)
			all = append(all, buf[:n]...)
			if err != nil || bytes.Contains(all, []byte("conversation:"+talk)) {
				heard <- string(all)
				return
			}
		}
	}()
	answer, err := formOf(page, `action="/inbox/`+talk+`/reply`)
	if err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, values := range answer.with("text", "").values {
		if err := form.WriteField(name, values[0]); err != nil {
			t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("file", "manual.pdf")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(pdf(largestFile)); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	p.want(t, 303, http.MethodPost, "/inbox/"+talk+"/reply", &body, "Content-Type", form.FormDataContentType(), "Origin", "https://"+publicHost)
	select {
	case said := <-heard:
		if !strings.Contains(said, "conversation:"+talk) {
			t.Errorf("the stream ended after %q", said)
		}
	case <-time.After(patience):
		t.Error("the stream does not name the conversation that was answered")
	}
	if page := p.want(t, 200, http.MethodGet, "/inbox/"+talk, http.NoBody); !bytes.Contains(page, []byte("manual.pdf")) {
		t.Error("the thread does not have the file")
	}
}

// api uses the API through the proxy: it reads the stream of events, uploads and
// downloads a file of 100 MB, and sends a large batch.
func (p *proxied) api(t *testing.T) {
	t.Helper()
	auth := []string{"Authorization", "Bearer " + p.key}
	stream := p.begin(t, http.MethodGet, "/v1/events?cursor=latest&types=contact.created", http.NoBody, append(auth, "Accept", "text/event-stream")...)
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("/v1/events: %d", stream.StatusCode)
	}
	p.want(t, 201, http.MethodPost, "/v1/contacts", strings.NewReader(`{"external_id":"behind-a-proxy"}`), auth...)
	var said []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(said, []byte("behind-a-proxy")) {
		n, err := stream.Body.Read(buf)
		if said = append(said, buf[:n]...); err != nil {
			t.Fatalf("the stream of events: %v after %q", err, said)
		}
	}

	file := pdf(largestFile)
	made := decode[struct{ Data struct{ ID string } }](t, p.want(t, 201, http.MethodPost, "/v1/media?name=manual.pdf", bytes.NewReader(file), auth...))
	got := sha256.New()
	content := p.begin(t, http.MethodGet, "/v1/media/"+made.Data.ID+"/content", http.NoBody, auth...)
	if _, err := io.Copy(got, content.Body); err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256(file); !bytes.Equal(got.Sum(nil), want[:]) {
		t.Error("the file came back with other bytes")
	}

	row := `{"op":"upsert","data":{"external_id":"%d","note":"` + strings.Repeat("n", 9000) + `"}}`
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = fmt.Sprintf(row, i)
	}
	p.want(t, 200, http.MethodPost, "/v1/contacts/batch", strings.NewReader(`{"operations":[`+strings.Join(rows, ",")+`]}`), auth...)
	p.want(t, 401, http.MethodPost, "/mcp", strings.NewReader("{}"))
	p.want(t, 403, http.MethodGet, "/hooks/whatsapp/00000000-0000-7000-8000-000000000001?hub.mode=subscribe", http.NoBody)
	p.want(t, 200, http.MethodGet, "/openapi.json", http.NoBody)
}

// shut checks that the paths for monitoring are refused, in several spellings.
func (p *proxied) shut(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/metrics?x=1", "/%6detrics", "/healt%68z"} {
		answer := p.begin(t, http.MethodGet, path, http.NoBody)
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusNotFound || bytes.Contains(text, []byte("parley_")) {
			t.Errorf("%s: %d, %v: %.200s", path, answer.StatusCode, err, text)
		}
	}
	// With these spellings, the paths are pages that do not exist.
	for _, path := range []string{"//metrics", "/metrics/", "/x/../metrics", "/Metrics"} {
		answer := p.begin(t, http.MethodGet, path, http.NoBody)
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode == http.StatusOK || bytes.Contains(text, []byte("parley_")) {
			t.Errorf("%s: %d, %v: %.200s", path, answer.StatusCode, err, text)
		}
	}
	if p.nodes[0].status(t, "/metrics") != http.StatusOK {
		t.Error("the monitoring does not reach the server itself")
	}
}
