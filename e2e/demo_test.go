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

	"parley/store/postgres/pgtest"
)

// demo starts parley demo, and waits until all its text is printed.
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
	for _, caption := range regexp.MustCompile(`(?m)^#.*$`).FindAllString(p.stdout.String(), -1) {
		// In an interactive zsh, the line is not a comment.
		if strings.ContainsAny(caption[1:], "#;'\"&|()<>*?![]{}$`\\~") {
			t.Errorf("zsh would make something of: %s", caption)
		}
	}
	messages := wantDemo(t, p, base, key)

	// The lines can be pasted without a change.
	lines := regexp.MustCompile(`(?m)^\s*curl .*$`).FindAllString(p.stdout.String(), -1)
	if len(lines) != 4 {
		t.Fatalf("%d curl lines, want 4:\n%s", len(lines), p.stdout.String())
	}
	for _, line := range lines[:2] { // the lines also work when there is a second channel
		if !strings.Contains(line, "channel_id") {
			t.Errorf("this line names no channel: %s", line)
		}
	}
	var templates struct {
		Agent   struct{ Name string }
		Contact struct {
			ContactID string `json:"contact_id"`
			Name      string
		}
		Data []struct {
			Name          string
			VariableHints []struct{ Source *string } `json:"variable_hints"`
		}
	}
	read(t, paste(t, lines[0]), &templates)
	person := templates.Contact.ContactID
	sources := map[string]bool{}
	for _, template := range templates.Data {
		for _, hint := range template.VariableHints {
			if hint.Source != nil {
				sources[*hint.Source] = true
			}
		}
	}
	if templates.Agent.Name == "" || templates.Contact.Name == "" || len(templates.Data) != 5 || !sources["member"] || !sources["contact"] {
		t.Errorf("the first line lists no templates with hints: %+v", templates)
	}

	var sent struct {
		Data struct {
			Conversation struct {
				ID        string
				ContactID string `json:"contact_id"`
			}
			Message struct {
				Status string `json:"delivery_status"`
			}
		}
	}
	answer := paste(t, lines[1])
	read(t, answer, &sent)
	if sent.Data.Message.Status != "sent" || sent.Data.Conversation.ContactID != person {
		t.Errorf("the second line sends nothing to %s: %s", person, answer)
	}
	if again := paste(t, lines[1]); again != answer {
		t.Errorf("pasted again, the second line answers %s, want %s", again, answer)
	}

	var conversations struct {
		Data []struct {
			ID      string
			Preview string `json:"last_message_preview"`
		}
	}
	read(t, paste(t, lines[2]), &conversations)
	if len(conversations.Data) != 1 || conversations.Data[0].ID != sent.Data.Conversation.ID || !strings.Contains(conversations.Data[0].Preview, "appointment") {
		t.Errorf("the third line does not show the conversation: %+v", conversations)
	}

	var found struct {
		Data struct{ ID, Name string }
	}
	read(t, paste(t, lines[3]), &found)
	if found.Data.ID != person || found.Data.Name != templates.Contact.Name {
		t.Errorf("the fourth line finds %+v, want %s", found, person)
	}
	// All these calls have created only one message.
	if n := wantDemo(t, p, base, key); n != messages+1 {
		t.Errorf("there are %d messages, want one more than %d", n, messages)
	}
	p.stop(t)
	if want := "\nStopped; everything is in the data directory " + dir + ".\n"; !strings.HasSuffix(p.stdout.String(), want) {
		t.Errorf("once stopped it has printed\n%s\nwant at its end %s", p.stdout.String(), want)
	}

	// A second start changes nothing.
	file := filepath.Join(dir, "demo.json")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("demo.json has mode %o", info.Mode().Perm())
	}
	var again struct {
		BaseURL     string `json:"base_url"`
		Key         string `json:"key"`
		WorkspaceID string `json:"workspace_id"`
	}
	reopen := func() {
		t.Helper()
		p = demo(t, dir, "}\n", "--json")
		read(t, p.stdout.String(), &again)
		if n := wantDemo(t, p, again.BaseURL, again.Key); n != messages+1 {
			t.Errorf("opened again there are %d messages, want %d", n, messages+1)
		}
		p.stop(t)
	}
	reopen()
	workspace := again.WorkspaceID
	if again.Key != key || workspace == "" {
		t.Errorf("opened again it has another key: %+v", again)
	}

	// A release without conversations has written a file with other fields. It leads to
	// the same key.
	text, err := json.Marshal(map[string]string{"workspace_id": workspace, "key": key})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	reopen()
	if again.Key != key || again.WorkspaceID != workspace {
		t.Errorf("with an older demo.json: %+v; want the same key", again)
	}

	// Without the file, as after a first start that was interrupted, the next start
	// completes the demo.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	reopen()
	if again.Key == key || again.WorkspaceID != workspace {
		t.Errorf("without demo.json: %+v; want another key to the same workspace", again)
	}
}

// TestDemoPlace: the demo refuses a database that has workspaces but no demo workspace.
// If a workspace was added beside the demo's, the demo still opens its own.
func TestDemoPlace(t *testing.T) {
	t.Parallel()
	databases := map[string][]string{"sqlite": nil, "postgres": {"--database", pgtest.Database(t)}}
	for store, where := range databases {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			yours := newDir(t)
			flags := append([]string{"--data", yours}, where...)
			if r := parley(t, nil, append([]string{"workspace", "create", "--name", "Ours"}, flags...)...); r.code != 0 {
				t.Fatal(r.stderr)
			}
			r := parley(t, nil, append([]string{"demo", "--listen", "127.0.0.1:0"}, flags...)...)
			if r.code != 1 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "holds workspaces of yours") || r.stdout != "" {
				t.Errorf("demo in an installation of ours: exit %d: %s%s", r.code, r.stdout, r.stderr)
			}
			r = parley(t, nil, append([]string{"workspace", "list", "--json"}, flags...)...)
			if strings.Count(r.stdout, "workspace_id") != 1 {
				t.Errorf("the refused demo has left something: %s", r.stdout)
			}
			if _, err := os.Stat(filepath.Join(yours, "demo.json")); err == nil {
				t.Error("the refused demo has left demo.json")
			}
		})
	}

	dir := newDir(t)
	demo(t, dir, "Ctrl-C").stop(t)
	newWorkspace(t, dir)
	demo(t, dir, "Ctrl-C").stop(t)
}

// wantDemo checks the content of the demo workspace, and counts its messages.
func wantDemo(t *testing.T, p *process, base, key string) (messages int) {
	t.Helper()
	s := &server{p, strings.TrimSuffix(base, "/v1")}
	var contacts, attributes, members, channels, templates, conversations struct {
		Data []struct {
			ID       string
			Type     string
			Owner    *struct{}
			Status   string
			Assignee *string `json:"assigned_member_id"`
			Sendable bool
		}
	}
	read(t, s.want(t, 200, key, "GET", "/contacts?limit=200", ""), &contacts)
	read(t, s.want(t, 200, key, "GET", "/attributes", ""), &attributes)
	read(t, s.want(t, 200, key, "GET", "/members", ""), &members)
	read(t, s.want(t, 200, key, "GET", "/channels", ""), &channels)
	read(t, s.want(t, 200, key, "GET", "/templates?status=all", ""), &templates)
	waitFor(t, "a broadcast that has run, and a draft", func() bool {
		var list struct{ Data []struct{ State string } }
		read(t, s.want(t, 200, key, "GET", "/broadcasts", ""), &list)
		return len(list.Data) == 2 && list.Data[0].State == "draft" && list.Data[1].State == "done"
	})
	read(t, s.want(t, 200, key, "GET", "/conversations?limit=100", ""), &conversations)
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
	sendable := 0
	for _, template := range templates.Data {
		if template.Sendable {
			sendable++
		}
	}
	kinds, talks, broadcasts := map[string]bool{}, 0, 0
	for _, c := range conversations.Data {
		var page struct {
			Data []struct{ Author struct{ Type string } }
		}
		read(t, s.want(t, 200, key, "GET", "/conversations/"+c.ID+"/messages", ""), &page)
		if len(page.Data) == 1 && page.Data[0].Author.Type == "broadcast" {
			broadcasts++
			continue
		}
		talks++
		messages += len(page.Data)
		kinds[c.Status] = true
		if c.Assignee == nil {
			kinds["unassigned"] = true
		}
	}
	if len(channels.Data) != 1 || len(templates.Data) != 10 || sendable != 5 || talks != 18 || broadcasts < 10 || len(kinds) != 4 {
		t.Errorf("the demo has %d channels, %d templates (%d sendable), %d conversations of these kinds: %v; and %d messages of a broadcast",
			len(channels.Data), len(templates.Data), sendable, talks, kinds, broadcasts)
	}
	return messages
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// paste runs a line as a person would. On a machine without curl, it makes the same
// request itself.
func paste(t *testing.T, line string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err == nil && runtime.GOOS != "windows" {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v: %s", line, err, out)
		}
		return string(out)
	}
	method, url, body, key, header := "GET", "", "", "", []string{}
	words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	for i := 1; i < len(words); i++ {
		switch word := strings.Trim(words[i], "'"); word {
		case "-sS":
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(strings.Trim(words[i], "'"), ": ")
			if bearer, ok := strings.CutPrefix(value, "Bearer "); ok {
				key = bearer
			} else {
				header = append(header, name, value)
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
	status, answer := (&server{url: root}).call(t, key, method, path, body, header...)
	if status >= 400 {
		t.Errorf("%s\nanswers %d %s", line, status, answer)
	}
	return answer
}
