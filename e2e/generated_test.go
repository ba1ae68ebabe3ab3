package e2e_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A generatedTemplate has two variables.
const generatedTemplate = `{"name": "order_ready", "language": "en_US", "status": "APPROVED", "category": "UTILITY", "components": [
  {"type": "BODY", "text": "Hello {{1}}, your order {{2}} is ready."}]}`

var alsoOgen = flag.Bool("ogen", false, "let TestGeneratedClients also generate a client with ogen, which takes longest, and use it")

// TestGeneratedClients makes clients from the server's API description, with independent
// generators. Programs use these clients for the main job: create an attribute, write
// contacts alone and in a batch, list, and send a template. The program in TypeScript
// checks every response with schemas that orval makes. Spectral and Redocly find no error
// in the description.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir, "--country", "US")
	must(t, dir, "member", "add", "--workspace", workspace, "--name", "Grace Hopper", "--email", "grace@example.com")
	channel := must(t, dir, "channel", "add", "sandbox", "--workspace", workspace)["channel_id"].(string)
	template := filepath.Join(t.TempDir(), "template.json")
	if err := os.WriteFile(template, []byte(generatedTemplate), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "template", "put", "--channel", channel, "--file", template)
	s := serve(t, dir)
	document, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	// prepare copies the source of a program. It puts the description beside the copy.
	prepare := func(t *testing.T, name string) (run func(t *testing.T, program string, args ...string) string, work string) {
		t.Helper()
		work = filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(work, os.DirFS(filepath.Join("testdata", "clients", name))); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(work, "generated"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, "openapi.json"), document, 0o600); err != nil {
			t.Fatal(err)
		}
		return func(t *testing.T, program string, args ...string) string {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Dir = work
			cmd.Env = environment("BASE="+s.url+"/v1", "KEY="+key, "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s %v: %v\n%s", program, args, err, out)
			}
			t.Logf("%s %v:\n%s", filepath.Base(program), args, out)
			return string(out)
		}, work
	}
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		run, _ := prepare(t, "go")
		run(t, "go", "tool", "oapi-codegen", "-config", "config.yaml", "openapi.json")
		run(t, "go", "run", ".")
	})
	t.Run("ogen", func(t *testing.T) {
		t.Parallel()
		if !*alsoOgen {
			return // the compilation takes minutes
		}
		run, _ := prepare(t, "ogen")
		said := run(t, "go", "tool", "ogen", "--target", "generated", "--package", "generated", "openapi.json")
		if strings.Contains(strings.ToLower(said), "skip") {
			t.Errorf("ogen skips a part of the description:\n%s", said)
		}
		run(t, "go", "run", ".")
	})
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		run, work := prepare(t, "node")
		addPackages(t, work)
		step := func(t *testing.T, name string, args ...string) {
			t.Helper()
			run(t, filepath.Join("node_modules", ".bin", name), args...)
		}
		t.Run("spectral", func(t *testing.T) {
			t.Parallel()
			step(t, "spectral", "lint", "--fail-severity", "error", "openapi.json")
		})
		t.Run("redocly", func(t *testing.T) {
			t.Parallel()
			step(t, "redocly", "lint", "openapi.json")
		})
		t.Run("client", func(t *testing.T) {
			t.Parallel()
			step(t, "openapi-typescript", "openapi.json", "-o", "parley.d.ts")
			step(t, "orval", "--config", "orval.config.cjs")
			step(t, "tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "main.ts")
			run(t, "node", "main.js")
		})
	})
}
