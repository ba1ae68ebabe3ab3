// Package e2e_test tests the built binary from outside, as an operator and an API
// client use it: processes, signals, files and HTTP. It tests that the parts work
// together; a rule is tested in its own package.
//
//	e2e_test.go      building the binary, starting and stopping it, calling it
//	scripts_test.go  the commands of testdata/*.txtar, one script for each command
//	serve_test.go    one server for each directory, draining, keys that change while they are in use
//	storage_test.go  the data directory, the secret key, the database of a later release
//	demo_test.go     the demo, and the curl lines that it prints
//	readme_test.go   the examples of README.md and docs/
//	mcp_test.go      assistants, over stdio and HTTP
//	receivers_test.go the programs of docs/receivers.md: receivers of webhooks, a reader of the feed
//	described_test.go deliveries to webhooks, compared with the API description
//	settings_test.go requests that are running while a workspace changes
//	attempts_test.go sends in doubt that two nodes settle at the same time
//	nodes_test.go    many servers on one PostgreSQL database
//	migrate_test.go  an installation moved from SQLite to PostgreSQL
//	events_test.go   the feed of events: the command, expiry, a restore
//	browser_test.go  a browser for the console's pages
//	node_test.go     programs for Node, with their packages from npm
//	screenshots_test.go every page of the console, and pictures of them
//	pages_test.go    the console's script in a browser: on a page that the test makes, and on the demo's
//	story_test.go    the main job of the console, with and without script, and with keys only
//	talk_story_test.go a team that replies to a customer, with and without script, and with keys only
//	composer_test.go the form of a reply: drafts, files, a window that closes
//	controls_test.go controls, words, pictures and counts of every page, at four widths
//	thread_test.go   a template, files, Enter and a colleague in a conversation, with and without a script
//	beside_test.go   the person beside a thread, at all widths
//	lead_test.go     a template, four files and an attribute in a conversation: mouse, keys, no script
//	place_test.go    the scroll position in the list of the inbox
//	notify_test.go   the notifications of the console, and its title
//	takeover_test.go a click on a button that a colleague has just changed
//	played_test.go   faults that were found by trying the console: on a phone, with a slash, with scripts of two directions
//	signin_test.go   sessions of several servers, guessed passwords, proxies, plain hosts
//	states_test.go   every page and state of the console
//	access_test.go   pages that everybody can use: axe, large text, forced colours
//	hostile_test.go  texts that could be taken for markup or scripts, and attacks by other sites
//	visitor_test.go  teams and their browsers, which run no script
//
// and long tests, whose length a flag sets:
//
//	client_test.go       a client for many requests, and reading their responses
//	generated_test.go    clients that are generated from the API description, and linters of the description
//	legislators_test.go  the main job on real input
//	streams_test.go      streams whose clients read slowly, or whose keys are revoked
//	erasure_test.go      deleted people in deliveries to webhooks
//	eventsource_test.go  a stream of events that is cut again and again
//	deliveries_test.go   deliveries: servers that are killed, endpoints that fail or hang, rotation
//	together_test.go     members who act on the same conversations; forms that are sent twice or cut off
//	race_test.go         clients racing on the same people
//	kill_test.go         kills in the middle of writes
//	mergekill_test.go    kills while contacts are merged and separated
//	fault_test.go        sends that are broken at every step
//	fault_other_test.go  what other tests need of fault_test.go, for systems without signals
//	answer_test.go       the reply policy on two nodes, and processes killed while they answer
//	send_test.go         many calls with the same keys, and with the same people
//	fuzz_test.go         requests made from the API description, then damaged
//	disk_test.go         a disk that is full, failing, read-only or locked
//	disk_other_test.go   what other tests need of disk_test.go, elsewhere than on Linux
//	whatsapp_test.go     a WhatsApp number, with a simulator as the provider
//	stopped_test.go      a node that is stopped under load, beside two that run
//	outage_test.go       a PostgreSQL that stops under load
//	cluster_test.go      database servers that are killed, and shards that move, under load
//	distribute_test.go   the move of an installation to a cluster, killed in the middle
//	hang_test.go         a PostgreSQL that takes statements and answers none
//	failover_test.go     a standby that takes over and lacks the last commits
//	upgrade_test.go      servers of the previous release that are replaced one by one under load
//	durable_test.go      the number of disk syncs before a response
//	media_test.go        files: hostile ones in a browser, large ones, memory
//	mediakill_test.go    files that a process fetches and deletes while it is killed
//	memory_test.go       requests that use much memory, and how long others wait
//	attack_test.go       a neighbour of a workspace that attacks the server
//	bodies_test.go       bodies that are announced and not sent, or that stop
//	neighbours_test.go   batches beside single requests, revocations, slow clients
//	proxies_test.go      the samples for nginx and Caddy in front of a server
//	slowbase_test.go     webhooks while the database is away, slow, or has lost commits
//	start_test.go        from start to ready
//	idle_test.go         many workspaces in which nothing happens
//	broadcast_test.go    broadcasts: servers that are killed or stopped, pauses, rows of many clients
//	broadcast_cost_test.go broadcasts beside sends, batches, lists and replies; a million rows
//	broadcast_faults_test.go broadcasts with a slow, an absent and a full database, and in many workspaces
//	search_test.go       finding contacts, and how soon changes are found
//	backup_test.go       backups beside writers, restored; flipped bits
//	doctor_test.go       installations that are broken in one way after the other
//	titlefile_test.go    templates with a file, sent once while the server is killed
//	tls_test.go          a certificate that is replaced under load; metrics at an address of their own
//	import_test.go       parley import: files with mistakes, commands that are killed
//	data_cost_test.go    what imports and merges cost
//	import_beside_test.go an import beside a team, then search, export, backup and restore
//	upload_test.go       imports of the console on servers that are killed or stopped; huge and wrong files
//	export_test.go       parley export: what is imported again is the same
//	costs_test.go        the round trips, bytes and processor time of each operation
//	speed_test.go        the speed of sends and templates
//	against_test.go      the speed, compared with that of an earlier commit
//	audience_test.go     tabs of the console that show what customers write
//	feedspeed_test.go    the cost of the feed, streams and webhooks
package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is the longest time that a test waits for something. Normally this takes a
// moment, but the machine may be busy.
const patience = time.Minute

// binary is the program under test.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if call := os.Getenv(faultEnv); call != "" {
		return faultMain(call)
	}
	if call := os.Getenv(mediaEnv); call != "" {
		return mediaMain(call)
	}
	if file := os.Getenv(bareEnv); file != "" {
		return bareMain(file)
	}
	flag.Parse() // with -h, it prints the help and exits: no directory may have been made before
	// Half of the time, a test waits for processes: twice as many at once.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "parley-e2e-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "parley")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-o", binary, "./cmd/parley")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	defer func() {
		for _, stop := range stopBrowsers {
			stop()
		}
	}()
	return m.Run()
}

// environment returns the caller's environment without parley's variables, and with the
// given ones.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PARLEY_") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// newDir returns a data directory that does not exist yet.
func newDir(t testing.TB) string { return filepath.Join(t.TempDir(), "data") }

// A result is the output and the exit code of a finished command.
type result struct {
	stdout, stderr string
	code           int
}

// parley runs a command to its end. env is added to the environment.
func parley(t testing.TB, env []string, args ...string) result {
	t.Helper()
	return runProgram(t, binary, env, args...)
}

func runProgram(t testing.TB, program string, env []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(env...), &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("parley %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command with --json. The command must succeed; must returns the printed
// object.
func must(t testing.TB, dir string, args ...string) map[string]any {
	t.Helper()
	r := parley(t, nil, append(args, "--data", dir, "--json")...)
	var answer map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &answer); r.code != 0 || r.stderr != "" || err != nil {
		t.Fatalf("parley %s: exit %d, %v\n%s%s", strings.Join(args, " "), r.code, err, r.stdout, r.stderr)
	}
	return answer
}

// newWorkspace makes a workspace with a key that has all permissions.
func newWorkspace(t testing.TB, dir string, args ...string) (workspace, key string) {
	t.Helper()
	workspace = must(t, dir, append([]string{"workspace", "create", "--name", "Test"}, args...)...)["workspace_id"].(string)
	return workspace, newKey(t, dir, workspace)
}

func newKey(t testing.TB, dir, workspace string) string {
	t.Helper()
	return must(t, dir, "key", "create", "--workspace", workspace, "--name", "test", "--permissions", "all")["key"].(string)
}

// A process is a running parley.
type process struct {
	stdout, stderr buffer
	cmd            *exec.Cmd
	exited         chan struct{} // closed when it has ended
}

// launch starts a command. If it still runs at the end of the test, it is killed.
func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return launchProgram(t, binary, env, args...)
}

func launchProgram(t testing.TB, program string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = environment(env...), &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("parley %s: %v", strings.Join(args, " "), err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the state has the exit code
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process at once, like a power cut, and waits until it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

// terminate asks the process to end, without waiting.
func (p *process) terminate(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
}

func (p *process) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
}

// wait waits until the process has ended, and returns its exit code.
func (p *process) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("it does not end; its log:\n%s", p.stderr.String())
		return 0
	}
}

// stop stops the process cleanly.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.terminate(t)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d after SIGTERM; its log:\n%s", code, p.stderr.String())
	}
}

// A server is a running parley serve.
type server struct {
	*process
	url string // http://HOST:PORT
}

// serve starts a server on a directory and a free port, and waits until it answers.
func serve(t testing.TB, dir string, args ...string) *server {
	t.Helper()
	return serveWith(t, nil, append([]string{"--data", dir}, args...)...)
}

var addressField = regexp.MustCompile(` address=(\S+)\s`)

// serveWith starts a server with the given environment.
func serveWith(t testing.TB, env []string, args ...string) *server {
	t.Helper()
	return serveProgram(t, binary, env, args...)
}

func serveProgram(t testing.TB, program string, env []string, args ...string) *server {
	t.Helper()
	s := &server{process: launchProgram(t, program, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	s.url = s.address(t)
	waitFor(t, "/healthz", func() bool { return s.status(t, "/healthz") == http.StatusOK })
	return s
}

// address returns the URL in a server's log.
func (p *process) address(t testing.TB) string {
	t.Helper()
	var match []string
	waitFor(t, "the address in the log", func() bool {
		match = addressField.FindStringSubmatch(p.stderr.String())
		return p.ended() || match != nil
	})
	if match == nil {
		t.Fatalf("the log names no address: %s", p.stderr.String())
	}
	return "http://" + match[1]
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// status requests a page without a key; 0 means that there was no response.
func (s *server) status(t testing.TB, path string) int {
	t.Helper()
	answer, err := http.Get(s.url + path)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// call makes a request of the API. path is relative to /v1. If body is "", the request
// has no body. header is a list in which each name is followed by its value.
func (s *server) call(t testing.TB, key, method, path, body string, header ...string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+"/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, string(b)
}

// want makes a request. The response must have the status; want returns its body.
func (s *server) want(t testing.TB, status int, key, method, path, body string) string {
	t.Helper()
	got, answer := s.call(t, key, method, path, body)
	if got != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, answer)
	}
	return answer
}

// waitFor calls ok again and again until it returns true.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for stop := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("still waiting for: %s", what)
		}
	}
}

// A buffer can be read by the test while a process writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
