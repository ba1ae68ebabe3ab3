package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A team is a workspace with a sandbox channel and a template. Its members use the
// console of one server. With PostgreSQL, they use two servers.
type team struct {
	t         *testing.T
	dir       string
	flags     []string
	workspace string
	key       string
	channel   string
	nodes     []*server
}

// newTeam makes a workspace and starts its servers. flags name the database.
func newTeam(t *testing.T, dir string, flags []string, serving ...string) *team {
	t.Helper()
	m := &team{t: t, dir: dir, flags: flags}
	m.workspace = m.must("workspace", "create", "--name", "Harbour Books")["workspace_id"].(string)
	m.key = m.must("key", "create", "--workspace", m.workspace, "--name", "test", "--permissions", "all")["key"].(string)
	m.channel = m.must("channel", "add", "sandbox", "--workspace", m.workspace)["channel_id"].(string)
	file := filepath.Join(t.TempDir(), "template.json")
	template := `{"name":"hello","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"BODY","text":"Hello!"}]}`
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	m.must("template", "put", "--channel", m.channel, "--file", file)
	nodes := 1
	if flags != nil {
		nodes = 2
	}
	for range nodes {
		m.nodes = append(m.nodes, serve(t, dir, append(serving, flags...)...))
	}
	return m
}

// must runs a command on the team's database.
func (m *team) must(args ...string) map[string]any {
	m.t.Helper()
	return must(m.t, m.dir, append(args, m.flags...)...)
}

// member adds a member and returns its id.
func (m *team) member(name, role string) string {
	m.t.Helper()
	return m.must("member", "add", "--workspace", m.workspace, "--name", name, "--email", emailOf(name), "--role", role)["member_id"].(string)
}

func emailOf(name string) string { return strings.ToLower(name) + "@harbour.example" }

// link makes a sign-in link and returns its path.
func (m *team) link(name string) string {
	m.t.Helper()
	link, err := url.Parse(m.must("login-link", "--workspace", m.workspace, "--member", emailOf(name))["url"].(string))
	if err != nil {
		m.t.Fatal(err)
	}
	return link.Path
}

// visitor returns a browser in which a member has signed in at one of the servers.
func (m *team) visitor(name string, node int) *visitor {
	m.t.Helper()
	v := newVisitor(m.t, m.nodes[node%len(m.nodes)].url)
	v.mustPost(m.t, 303, m.link(name), nil)
	return v
}

// A visitor is a browser that runs no script. It keeps cookies and does not follow
// redirects. Several goroutines may use it.
type visitor struct {
	http *http.Client
	url  string
	host string // the host in the address line; "" means the host of url
	old  bool   // the browser sends only the origin of a form, as over plain HTTP
}

func newVisitor(t testing.TB, url string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	follow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &visitor{http: &http.Client{Transport: transport, Jar: jar, CheckRedirect: follow, Timeout: patience}, url: url}
}

// at returns the same browser for another server on the same host. Browsers use the same
// cookies for all ports of a host.
func (v *visitor) at(url string) *visitor {
	other := *v
	other.url = url
	return &other
}

// request makes a request as the browser would. If form is nil, it is a GET.
func (v *visitor) request(path string, form url.Values, header ...string) (*http.Request, error) {
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(context.Background(), method, v.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = v.host
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		origin := v.url
		if v.host != "" {
			origin = r.URL.Scheme + "://" + v.host
		}
		r.Header.Set("Origin", origin)
		if !v.old {
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r, nil
}

// send makes a request, and returns the response.
func (v *visitor) send(path string, form url.Values, header ...string) (reply, error) {
	r, err := v.request(path, form, header...)
	if err != nil {
		return reply{}, err
	}
	answer, err := v.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, body}, err
}

func (v *visitor) mustGet(t testing.TB, status int, path string) string {
	t.Helper()
	r, err := v.send(path, nil)
	if err != nil || r.status != status {
		t.Fatalf("GET %s: %d to %q, want %d; %v\n%s", path, r.status, r.header.Get("Location"), status, err, r.body)
	}
	return string(r.body)
}

// mustPost sends a form and returns the path of the redirect.
func (v *visitor) mustPost(t testing.TB, status int, path string, form url.Values) string {
	t.Helper()
	if form == nil {
		form = url.Values{}
	}
	r, err := v.send(path, form)
	if err != nil || r.status != status {
		t.Fatalf("POST %s: %d to %q, want %d; %v\n%s", path, r.status, r.header.Get("Location"), status, err, r.body)
	}
	return r.header.Get("Location")
}

var (
	formElement = regexp.MustCompile(`(?s)<form method="post"[^>]*>.*?</form>`)
	formAction  = regexp.MustCompile(`action="([^"]*)"`)
	hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// A filled has the fields of a form on a page. It lacks the values that a person types,
// and the button.
type filled struct {
	action string
	values url.Values
}

// formOf returns the first form of a page whose text contains all the given words.
func formOf(page []byte, words ...string) (filled, error) {
next:
	for _, element := range formElement.FindAll(page, -1) {
		for _, word := range words {
			if !bytes.Contains(element, []byte(word)) {
				continue next
			}
		}
		f := filled{values: url.Values{}}
		if action := formAction.FindSubmatch(element); action != nil {
			f.action = html.UnescapeString(string(action[1]))
		}
		for _, input := range hiddenInput.FindAllSubmatch(element, -1) {
			f.values.Add(html.UnescapeString(string(input[1])), html.UnescapeString(string(input[2])))
		}
		return f, nil
	}
	return filled{}, fmt.Errorf("the page has no form with %q: %w\n%.3000s", words, errNoForm, page)
}

var errNoForm = errors.New("no such form")

// with returns the form with additional fields, as pairs of name and value.
func (f filled) with(pairs ...string) filled {
	values := url.Values{}
	for name, list := range f.values {
		values[name] = list
	}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return filled{f.action, values}
}
