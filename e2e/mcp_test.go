package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/store/postgres/pgtest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAssistants uses every tool with the clients of two SDKs of the Model Context
// Protocol. It does so over stdio and over HTTP, at the same time and on the same data.
func TestAssistants(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		testAssistants(t, nil)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		testAssistants(t, []string{"PARLEY_DATABASE_URL=" + pgtest.Database(t)})
	})
}

func testAssistants(t *testing.T, env []string) {
	dir := newDir(t)
	env = append(env, "PARLEY_DATA="+dir)
	run := func(args ...string) map[string]any {
		t.Helper()
		r := parley(t, env, append(args, "--json")...)
		var answer map[string]any
		if err := json.Unmarshal([]byte(r.stdout), &answer); r.code != 0 || err != nil {
			t.Fatalf("parley %v: exit %d, %v\n%s%s", args, r.code, err, r.stdout, r.stderr)
		}
		return answer
	}
	workspace := run("workspace", "create", "--name", "Test", "--country", "US")["workspace_id"].(string)
	newKey := func(permissions string) string {
		return run("key", "create", "--workspace", workspace, "--name", "assistant", "--permissions", permissions)["key"].(string)
	}
	key, few := newKey("all"), newKey("contacts:read")
	run("member", "add", "--workspace", workspace, "--name", "Grace Hopper", "--email", "grace@example.com")
	template := filepath.Join(t.TempDir(), "template.json")
	if err := os.WriteFile(template, []byte(generatedTemplate), 0o600); err != nil {
		t.Fatal(err)
	}
	run("template", "put", "--channel", run("channel", "add", "sandbox", "--workspace", workspace)["channel_id"].(string), "--file", template)
	s := serveWith(t, env)

	stdio := exec.CommandContext(t.Context(), binary, "mcp")
	stdio.Env = environment(append(env, "PARLEY_API_KEY="+key)...)
	for name, transport := range map[string]mcp.Transport{
		"stdio": &mcp.CommandTransport{Command: stdio},
		"http":  &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearing(key)}, DisableStandaloneSSE: true},
	} {
		t.Run("go/"+name, func(t *testing.T) {
			t.Parallel()
			session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(context.WithoutCancel(t.Context()), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "upsert_contact", Arguments: map[string]any{"external_id": name, "name": "Ada"}})
				if err != nil || r.IsError {
					t.Fatal(r, err)
				}
			}
			if err := session.Close(); err != nil { // this fails unless parley mcp exits with 0
				t.Error(err)
			}
		})
	}
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), "node", "main.js")
		cmd.Dir = nodeProgram(t, "testdata/clients/mcp")
		cmd.Env = environment(append(env, "PARLEY="+binary, "BASE="+s.url, "KEY="+key, "FEW="+few)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

// A bearing is a transport that adds a key to each request.
type bearing string

func (key bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(key))
	return http.DefaultTransport.RoundTrip(r)
}

// TestAssistantEnds: when its input ends, and on SIGTERM, parley mcp still answers all
// requests and then exits with 0.
func TestAssistantEnds(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	start := func() (*exec.Cmd, io.Closer) {
		cmd := exec.CommandContext(t.Context(), binary, "mcp", "--data", dir)
		cmd.Env = environment("PARLEY_API_KEY=" + key)
		var out buffer
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		} {
			if _, err := io.WriteString(in, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, "the list of tools", func() bool { return strings.Contains(out.String(), `"send_template"`) })
		return cmd, in
	}
	cmd, in := start()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("its input ended: %v", err)
	}
	cmd, _ = start()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
