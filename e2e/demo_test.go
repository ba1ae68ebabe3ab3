package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// demo starts parley demo and waits until it has printed all.
func demo(t *testing.T, dir, lastWords string, args ...string) *process {
	t.Helper()
	p := launch(t, nil, append([]string{"demo", "--data", dir, "--listen", "127.0.0.1:0"}, args...)...)
	waitFor(t, "the demo", func() bool { return p.ended() || strings.Contains(p.stdout.String(), lastWords) })
	if p.ended() {
		t.Fatalf("the demo ended: %s", p.stderr.String())
	}
	return p
}

func TestDemo(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	p := demo(t, dir, "Ctrl-C")
	key := regexp.MustCompile(`prl_live_\w+`).FindString(p.stdout.String())
	base := regexp.MustCompile(`http://\S+/v1`).FindString(p.stdout.String())
	wantDemo(t, p, base, key)

	// The lines work as they are pasted.
	lines := regexp.MustCompile(`(?m)^\s*curl .*$`).FindAllString(p.stdout.String(), -1)
	if len(lines) != 4 {
		t.Fatalf("%d curl lines, want 4:\n%s", len(lines), p.stdout.String())
	}
	var answers [4]string
	for i, line := range lines {
		answers[i] = paste(t, line)
		if !strings.HasPrefix(answers[i], `{"data":`) {
			t.Errorf("%s\nanswers %s", line, answers[i])
		}
	}
	var page struct {
		Data []struct{ ID string }
	}
	read(t, answers[0], &page)
	if len(page.Data) != 2 {
		t.Errorf("the page holds %d contacts: %s", len(page.Data), answers[0])
	}
	var found, owned struct {
		Data struct {
			ID, Name string
			Owner    struct{ Email string }
		}
	}
	read(t, answers[1], &found)
	read(t, answers[2], &owned)
	if found.Data.Name == "" || found.Data.ID != owned.Data.ID || owned.Data.Owner.Email == "" {
		t.Errorf("the second and third line do not speak of one contact:\n%s\n%s", answers[1], answers[2])
	}
	if !strings.Contains(answers[3], owned.Data.Owner.Email) {
		t.Errorf("the fourth line finds no contact of the owner: %s", answers[3])
	}
	wantDemo(t, p, base, key) // and none of them made a new contact
	p.stop(t)

	// Opened again it is the same.
	info, err := os.Stat(filepath.Join(dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("demo.json has mode %o", info.Mode().Perm())
	}
	p = demo(t, dir, "}\n", "--json")
	var again struct {
		BaseURL     string `json:"base_url"`
		Key         string `json:"key"`
		WorkspaceID string `json:"workspace_id"`
	}
	read(t, p.stdout.String(), &again)
	if again.Key != key || again.WorkspaceID == "" {
		t.Errorf("opened again it has another key: %+v", again)
	}
	wantDemo(t, p, again.BaseURL, key)
	p.stop(t)

	// Without the file, as when the first start was cut short, it is completed.
	if err := os.Remove(filepath.Join(dir, "demo.json")); err != nil {
		t.Fatal(err)
	}
	p = demo(t, dir, "}\n", "--json")
	workspace := again.WorkspaceID
	read(t, p.stdout.String(), &again)
	if again.Key == key || again.WorkspaceID != workspace {
		t.Errorf("without demo.json: %+v; want another key to the same workspace", again)
	}
	wantDemo(t, p, again.BaseURL, again.Key)
}

// wantDemo checks what the demo workspace holds.
func wantDemo(t *testing.T, p *process, base, key string) {
	t.Helper()
	s := &server{p, strings.TrimSuffix(base, "/v1")}
	var contacts, attributes, members struct {
		Data []struct {
			Type  string
			Owner *struct{}
		}
	}
	read(t, s.want(t, 200, key, "GET", "/contacts?limit=200", ""), &contacts)
	read(t, s.want(t, 200, key, "GET", "/attributes", ""), &attributes)
	read(t, s.want(t, 200, key, "GET", "/members", ""), &members)
	types := map[string]bool{}
	for _, a := range attributes.Data {
		types[a.Type] = true
	}
	owned := 0
	for _, c := range contacts.Data {
		if c.Owner != nil {
			owned++
		}
	}
	if len(contacts.Data) != 200 || len(attributes.Data) != 8 || len(types) != 8 || len(members.Data) != 3 || owned < 50 || owned == 200 {
		t.Errorf("the demo has %d contacts (%d owned), %d attributes of %d types, %d members",
			len(contacts.Data), owned, len(attributes.Data), len(types), len(members.Data))
	}
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// paste runs a line as a person would, or, on a machine without curl, does what it
// says.
func paste(t *testing.T, line string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err == nil && runtime.GOOS != "windows" {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v: %s", line, err, out)
		}
		return string(out)
	}
	method, url, body, key := "GET", "", "", ""
	words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	for i := 1; i < len(words); i++ {
		switch word := strings.Trim(words[i], "'"); word {
		case "-sS":
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			if _, after, ok := strings.Cut(strings.Trim(words[i], "'"), "Bearer "); ok {
				key = after
			}
		case "-d":
			i++
			body = strings.Trim(words[i], "'")
			if method == http.MethodGet {
				method = http.MethodPost
			}
		default:
			url = word
		}
	}
	root, path, _ := strings.Cut(url, "/v1")
	status, answer := (&server{url: root}).call(t, key, method, path, body)
	if status >= 400 {
		t.Errorf("%s\nanswers %d %s", line, status, answer)
	}
	return answer
}
