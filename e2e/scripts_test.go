package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"parley/store/postgres/pgtest"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/*.txtar. Each script starts without a data directory, with
// PARLEY_DATA set. $PLACE matches the name of the database in messages. Lines after
// [sqlite] are for SQLite only. In addition to testscript's own commands, scripts have:
//
//	parley ARGS        succeeds; with --json it prints one JSON object
//	fails CODE ARGS    runs parley, which exits with CODE, prints one line on standard error
//	                   and nothing on standard output
//	field NAME VAR     puts a field of the last JSON object into $VAR; NAME may be a path
//	                   such as data.0.key
//	serve ARGS         starts a server on the data directory, with its URL in $URL
//	shutdown           stops it with SIGTERM; it must exit with 0
//	call STATUS KEY METHOD PATH [BODY]
//	                   calls the server's API; standard output has the response's body
//	send STATUS KEY IDEMPOTENCY-KEY FILE
//	                   calls POST /conversations/outbound with the file as its body
//	mode PERM FILE     checks the permissions of a file
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	runScripts(t, files, nil)
}

// TestScriptsPostgres runs the scripts that open a database again, over PostgreSQL.
func TestScriptsPostgres(t *testing.T) {
	t.Parallel()
	pgtest.Database(t) // skips the test if there is no server
	var files []string
	for _, name := range []string{"attempt", "channel", "events", "export", "key", "mcp", "member", "sandbox", "template", "webhook", "workspace"} {
		files = append(files, filepath.Join("testdata", name+".txtar"))
	}
	runScripts(t, files, pgtest.Database)
}

// runScripts runs scripts. Each script has its own database. It comes from the function
// database. If the function is nil, the database is SQLite.
func runScripts(t *testing.T, files []string, database func(testing.TB) string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Files:              files,
		RequireUniqueNames: true,
		Condition: func(name string) (bool, error) {
			if name != "sqlite" {
				return false, fmt.Errorf("there is no condition [%s]", name)
			}
			return database == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("PARLEY_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("PLACE", "the data directory .*data")
			if database != nil {
				env.Setenv("PARLEY_DATABASE_URL", database(env.T().(testing.TB)))
				env.Setenv("PLACE", "the database parley_.*")
			}
			env.Setenv("UNKNOWN", "01980000-0000-7000-8000-000000000000")
			env.Values[scriptKey{}] = &script{t: env.T().(testing.TB)}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"parley":   scriptParley,
			"fails":    scriptFails,
			"field":    scriptField,
			"serve":    scriptServe,
			"shutdown": scriptShutdown,
			"call":     scriptCall,
			"send":     scriptSend,
			"until":    scriptUntil,
			"mode":     scriptMode,
		},
	})
}

// A script is the state of one script between its commands.
type script struct {
	t      testing.TB
	server *server
}

type scriptKey struct{}

func scriptOf(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

func scriptParley(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("use fails CODE, which looks at the code too")
	}
	ts.Check(ts.Exec("parley", args...))
	if stderr := ts.ReadFile("stderr"); stderr != "" {
		ts.Fatalf("a command that succeeds has something to say on standard error: %s", stderr)
	}
	for _, arg := range args {
		if arg == "--json" {
			answerOf(ts)
		}
	}
}

func scriptFails(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("parley", args[1:]...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("something is on standard output: %s", out)
	}
	if line := ts.ReadFile("stderr"); strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "parley: ") {
		ts.Fatalf("standard error is not one line: %s", line)
	}
}

// answerOf reads the standard output. It must be one JSON object and nothing else.
func answerOf(ts *testscript.TestScript) map[string]any {
	var object map[string]any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &object); err != nil {
		ts.Fatalf("standard output is not one JSON object: %v", err)
	}
	return object
}

func scriptField(ts *testscript.TestScript, _ bool, args []string) {
	var value any = answerOf(ts)
	for name := range strings.SplitSeq(args[0], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i < len(v) {
				value = v[i]
			}
		}
	}
	text, ok := value.(string)
	if !ok {
		ts.Fatalf("the answer has no text %s", args[0])
	}
	ts.Setenv(args[1], text)
}

func scriptServe(ts *testscript.TestScript, _ bool, args []string) {
	s := scriptOf(ts)
	database := "PARLEY_DATABASE_URL=" + ts.Getenv("PARLEY_DATABASE_URL")
	s.server = serveWith(s.t, []string{database}, append([]string{"--data", ts.Getenv("PARLEY_DATA")}, args...)...)
	ts.Setenv("URL", s.server.url)
}

func scriptShutdown(ts *testscript.TestScript, _ bool, _ []string) {
	s := scriptOf(ts)
	s.server.stop(s.t)
}

func scriptCall(ts *testscript.TestScript, _ bool, args []string) {
	args = append(args, "")
	scriptRequest(ts, args[0], args[1], args[2], args[3], args[4])
}

// scriptUntil repeats a request until the response matches.
func scriptUntil(ts *testscript.TestScript, _ bool, args []string) {
	s, want := scriptOf(ts), regexp.MustCompile(args[2])
	waitFor(s.t, args[2], func() bool {
		status, answer := s.server.call(s.t, args[0], "GET", args[1], "")
		return status == http.StatusOK && want.MatchString(answer)
	})
}

func scriptSend(ts *testscript.TestScript, _ bool, args []string) {
	scriptRequest(ts, args[0], args[1], "POST", "/conversations/outbound", ts.ReadFile(args[3]), "Idempotency-Key", args[2])
}

func scriptRequest(ts *testscript.TestScript, want, key, method, path, body string, header ...string) {
	s := scriptOf(ts)
	status, answer := s.server.call(s.t, key, method, path, body, header...)
	_, err := fmt.Fprintln(ts.Stdout(), answer)
	ts.Check(err)
	if strconv.Itoa(status) != want {
		ts.Fatalf("status %d, want %s: %s", status, want, answer)
	}
}

func scriptMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] && runtime.GOOS != "windows" {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}
