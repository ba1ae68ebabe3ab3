package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

var nodeKeys = flag.Int("node-keys", 20, "how many idempotency keys TestNodesSendOnce uses, each in repeated calls to two servers. Long run: -node-keys 2000")

// A deployment is an installation with PostgreSQL: a database for all its servers, and a
// directory with the secret key for commands.
type deployment struct{ dir, database string }

func newDeployment(t testing.TB) deployment {
	t.Helper()
	return deployment{newDir(t), pgtest.Database(t)}
}

// must runs a command on the database.
func (d deployment) must(t testing.TB, args ...string) map[string]any {
	t.Helper()
	if d.database == "" { // without PostgreSQL, the database is in the directory
		return must(t, d.dir, args...)
	}
	return must(t, d.dir, append(args, "--database", d.database)...)
}

// workspace makes a workspace with a key that has all permissions.
func (d deployment) workspace(t testing.TB) (workspace, key string) {
	t.Helper()
	workspace = d.must(t, "workspace", "create", "--name", "Test")["workspace_id"].(string)
	return workspace, d.key(t, workspace)["key"].(string)
}

func (d deployment) key(t testing.TB, workspace string) map[string]any {
	t.Helper()
	return d.must(t, "key", "create", "--workspace", workspace, "--name", "test", "--permissions", "all")
}

// nodes starts two servers.
func (d deployment) nodes(t testing.TB) (nodes [2]*server) {
	t.Helper()
	for i := range nodes {
		nodes[i] = serve(t, d.dir, "--database", d.database)
	}
	return nodes
}

// TestNodesRace: through two servers, clients write the same people at the same time. No
// person is created twice.
func TestNodesRace(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	_, key := d.workspace(t)
	nodes := d.nodes(t)
	race(t, nodes[0].client(t, key, racers), nodes[1].client(t, key, racers))
	for _, n := range nodes {
		n.stop(t)
	}
}

// TestNodesSendOnce makes each call eight times at the same time, over two servers, and
// repeats it until it is answered. The answers of a call have the same bytes, and each
// number gets one message.
func TestNodesSendOnce(t *testing.T) {
	t.Parallel()
	const retries, atOnce = 8, 8 // atOnce is the number of keys in use at a time
	d := newDeployment(t)
	ws, key := d.workspace(t)
	channel := d.sandbox(t, ws)
	var nodes [2]*client
	for i, n := range d.nodes(t) {
		nodes[i] = n.client(t, key, retries*atOnce)
	}
	for from := 0; from < *nodeKeys && !t.Failed(); from += atOnce {
		together(min(atOnce, *nodeKeys-from)*retries, func(i int) {
			k := from + i/retries
			// Each person gets two sends with different keys. Both use the same
			// conversation.
			if _, err := nodes[i%2].sent(fmt.Sprintf("key-%d", k), phoneOf(k/2)); err != nil {
				t.Error(err)
			}
		})
	}
	messages := map[string]int{}
	for k := range *nodeKeys {
		messages[phoneOf(k/2)]++
		first, err := nodes[0].sent(fmt.Sprintf("key-%d", k), phoneOf(k/2))
		again, err2 := nodes[1].sent(fmt.Sprintf("key-%d", k), phoneOf(k/2))
		if err != nil || err2 != nil || !bytes.Equal(first, again) {
			t.Errorf("key %d has two answers: %v %v\n%s\n%s", k, err, err2, first, again)
		}
	}
	// Replies to a few people, who each get several.
	people := max(5, *nodeKeys/100)
	conversations := make([]string, people)
	for i := range conversations {
		r := d.must(t, "sandbox", "inbound", "--channel", channel, "--from", phoneOf(i), "--text", "Hello")
		conversations[i] = r["conversation_id"].(string)
		messages[phoneOf(i)]++
	}
	for from := 0; from < *nodeKeys && !t.Failed(); from += atOnce {
		together(min(atOnce, *nodeKeys-from)*retries, func(i int) {
			k := from + i/retries
			if _, err := nodes[i%2].replied(fmt.Sprintf("reply-%d", k), conversations[k%people]); err != nil {
				t.Error(err)
			}
		})
	}
	for k := range *nodeKeys {
		messages[phoneOf(k%people)]++
	}
	for phone, want := range messages {
		if got := nodes[0].messagesTo(t, phone); got != want {
			t.Errorf("%s has %d messages, want %d", phone, got, want)
		}
	}
}

// sandbox adds a sandbox channel with one template.
func (d deployment) sandbox(t testing.TB, workspace string) (channel string) {
	t.Helper()
	channel = d.must(t, "channel", "add", "sandbox", "--workspace", workspace)["channel_id"].(string)
	file := filepath.Join(t.TempDir(), "template.json")
	template := `{"name":"hello","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"BODY","text":"Hello!"}]}`
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	d.must(t, "template", "put", "--channel", channel, "--file", file)
	return channel
}

// phoneOf returns the number of a person. The sandbox simulates no fault for it.
func phoneOf(person int) string { return fmt.Sprintf("+4930%06d7", person) }

// sent repeats a send until a response has the message. It returns this response.
func (c *client) sent(key, phone string) ([]byte, error) {
	return c.sentTo("/conversations/outbound", key, helloTo(phone))
}

// helloTo is the body of a send of the template of deployment.sandbox.
func helloTo(phone string) string {
	return fmt.Sprintf(`{"to":{"phone":"%s"},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`, phone)
}

// replied repeats a reply until a response has the message. It returns this response.
func (c *client) replied(key, conversation string) ([]byte, error) {
	return c.sentTo("/conversations/"+conversation+"/messages", key, `{"text":"Hi"}`)
}

func (c *client) sentTo(path, key, body string) ([]byte, error) {
	last := ""
	for start := time.Now(); time.Since(start) < 3*patience; <-time.After(5 * time.Millisecond) {
		r, err := c.send("POST", path, body, "Idempotency-Key", key)
		switch {
		case err != nil:
			return nil, err
		case r.status == http.StatusCreated:
			return r.body, nil
		case r.status != http.StatusServiceUnavailable:
			return nil, fmt.Errorf("%s to %s answers %d %s", key, path, r.status, r.body)
		}
		last = string(r.body)
	}
	return nil, fmt.Errorf("%s to %s has no answer but %s", key, path, last)
}

// messagesTo counts the messages to a number. The number belongs to one contact, whose
// messages are all in one conversation.
func (c *client) messagesTo(t testing.TB, phone string) int {
	t.Helper()
	type list struct{ Data []struct{ ID string } }
	contacts := decode[list](t, c.must(t, 200, "GET", "/contacts?phone="+url.QueryEscape(phone), "")).Data
	if len(contacts) != 1 {
		t.Fatalf("%d contacts have the number %s", len(contacts), phone)
	}
	conversations := decode[list](t, c.must(t, 200, "GET", "/contacts/"+contacts[0].ID+"/conversations", "")).Data
	if len(conversations) != 1 {
		t.Fatalf("%s has %d conversations", phone, len(conversations))
	}
	return len(decode[list](t, c.must(t, 200, "GET", "/conversations/"+conversations[0].ID+"/messages?limit=200", "")).Data)
}

// TestNodesSeeCommands: when a command has changed something, the next request to any
// server sees the change.
func TestNodesSeeCommands(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	ws, admin := d.workspace(t)
	nodes := d.nodes(t)
	for range 3 {
		made := d.key(t, ws)
		for _, n := range nodes {
			n.want(t, 200, made["key"].(string), "GET", "/contacts", "")
		}
		d.must(t, "key", "revoke", made["key_id"].(string))
		for i, n := range nodes {
			if status, _ := n.call(t, made["key"].(string), "GET", "/contacts", ""); status != http.StatusUnauthorized {
				t.Errorf("server %d answers %d to a revoked key", i, status)
			}
		}
	}

	// A change that one server makes also takes effect at the other server.
	nodes[0].want(t, 201, admin, "POST", "/attributes", `{"key":"plan","type":"text"}`)
	nodes[1].want(t, 201, admin, "POST", "/contacts", `{"external_id":"1","attributes":{"plan":"pro"}}`)
	nodes[1].want(t, 200, admin, "DELETE", "/attributes/plan", "")
	nodes[0].want(t, 422, admin, "POST", "/contacts", `{"external_id":"1","attributes":{"plan":"free"}}`)
}

// TestNodesShareCursors: a client begins a list at one server and continues it at
// another.
func TestNodesShareCursors(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	_, key := d.workspace(t)
	nodes := d.nodes(t)
	const contacts = 7
	for i := range contacts {
		nodes[i%2].want(t, 201, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%d"}`, i))
	}
	seen, path := map[string]bool{}, "/contacts?limit=1"
	for i := 0; path != ""; i++ {
		page := decode[struct {
			Data       []contact
			NextCursor string `json:"next_cursor"`
		}](t, []byte(nodes[i%2].want(t, 200, key, "GET", path, "")))
		for _, c := range page.Data {
			seen[c.ExternalID] = true
		}
		if path = ""; page.NextCursor != "" {
			path = "/contacts?limit=1&cursor=" + url.QueryEscape(page.NextCursor)
		}
	}
	if len(seen) != contacts {
		t.Errorf("the pages of two servers hold %v, want %d contacts", seen, contacts)
	}
}

func TestNodesShareTheSecretKey(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	first := serveWith(t, []string{oneKey}, "--data", newDir(t), "--database", database)
	for _, args := range opening(newDir(t)) {
		args = append(args, "--database", database)
		refused(t, []string{anotherKey}, args, "secret key", "PARLEY_SECRET_KEY")
		refused(t, nil, args, "PARLEY_SECRET_KEY") // serve and demo would make another key, and other commands make no key
	}
	if got := first.status(t, "/readyz"); got != http.StatusOK {
		t.Errorf("/readyz of the first server: status %d", got)
	}

	// If the key is in the environment, nothing is stored in the directory. The directory
	// need not exist.
	dir := newDir(t)
	serveWith(t, []string{oneBase64, "PARLEY_DATABASE_URL=" + database}, "--data", dir).stop(t)
	if _, err := os.Stat(dir); err == nil {
		t.Error("a server that keeps nothing in its data directory has made it")
	}
}

// TestNodesShareTheMediaDirectory: two servers store files in the same directory. A
// server with another directory, or without one, is refused.
func TestNodesShareTheMediaDirectory(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	_, key := d.workspace(t)
	shared, other := newDir(t), newDir(t)
	args := []string{"serve", "--data", d.dir, "--database", d.database, "--listen", "127.0.0.1:0"}
	var nodes [2]*server
	for i := range nodes {
		nodes[i] = serve(t, d.dir, "--database", d.database, "--media", shared)
	}
	content := strings.Repeat("shared ", 400_000)
	for i, n := range nodes {
		status, answer := n.call(t, key, "POST", "/media", fmt.Sprint(i)+content)
		if status != 201 {
			t.Fatalf("%d %s", status, answer)
		}
		id := decode[struct{ Data struct{ ID string } }](t, []byte(answer)).Data.ID
		if got := nodes[1-i].want(t, 200, key, "GET", "/media/"+id+"/content", ""); got != fmt.Sprint(i)+content {
			t.Errorf("%d bytes come back from the other server", len(got))
		}
	}
	for _, wrong := range []string{other, filepath.Join(shared, "drafts")} {
		refused(t, nil, append(args, "--media", wrong), "is not the directory in which this installation keeps files", wrong)
	}
	refused(t, nil, args, "keeps files in a directory", "--media")
	if entries, err := os.ReadDir(other); err == nil && len(entries) > 0 {
		t.Errorf("the other directory has %v", entries)
	}
}

// TestNodesFirstCommandsAtOnce: ten processes start at the same time and make only one
// installation.
func TestNodesFirstCommandsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	together(10, func(int) {
		if r := parley(t, nil, "workspace", "create", "--name", "Test", "--data", d.dir, "--database", d.database); r.code != 0 {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
	})
	if n := len(d.must(t, "workspace", "list")["data"].([]any)); n != 10 {
		t.Errorf("%d workspaces, want 10", n)
	}
}

func TestDatabaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	there, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	there.User = url.UserPassword(there.User.Username(), "hunter2")
	another := *there
	another.Path = "/nowhere"
	for database, word := range map[string]string{"postgres://ada:hunter2@127.0.0.1:1/parley": "127.0.0.1:1", another.String(): "nowhere"} {
		for _, args := range opening(newDir(t)) {
			began := time.Now()
			refused(t, []string{oneKey}, append(args, "--database", database), word)
			if r := parley(t, []string{oneKey}, append(args, "--database", database)...); strings.Contains(r.stderr, "hunter2") {
				t.Errorf("the line repeats the password: %s", r.stderr)
			}
			if took := time.Since(began); took > patience {
				t.Errorf("it took %v to say so", took)
			}
		}
	}
}

func TestNodesRefuseADatabaseOfANewerParley(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.must(t, "workspace", "create", "--name", "A")
	conn, err := pgx.Connect(t.Context(), d.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`); err != nil {
		t.Fatal(err)
	}
	for _, args := range opening(d.dir) {
		refused(t, nil, append(args, "--database", d.database), "newer", "99999")
	}
}

// TestNodesBackup makes a dump while a server is in use, as docs/postgresql.md describes.
// The dump has all data that was acknowledged before it began.
func TestNodesBackup(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Cluster(t)
	d, restored := deployment{newDir(t), cluster.Database(t)}, cluster.Database(t)
	_, key := d.workspace(t)
	c := serve(t, d.dir, "--database", d.database).client(t, key, 2)
	var acked atomic.Int32
	var done atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; !done.Load(); i++ {
			if _, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"%d"}`, i), 201); err != nil {
				t.Error(err)
				return
			}
			acked.Add(1)
		}
	})
	waitFor(t, "some contacts", func() bool { return acked.Load() >= 100 || t.Failed() })
	before := int(acked.Load())
	dump := filepath.Join(t.TempDir(), "parley.dump")
	for _, args := range [][]string{
		{"pg_dump", "--format=custom", "--file=" + dump, d.database},
		{"pg_restore", "--no-owner", "--exit-on-error", "--dbname=" + restored, dump},
	} {
		if out, err := exec.Command(cluster.Program(args[0]), args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	done.Store(true)
	writer.Wait()
	if t.Failed() {
		return
	}
	contacts := serve(t, d.dir, "--database", restored).client(t, key, 1).contacts(t)
	if len(contacts) < before || len(contacts) > int(acked.Load())+1 {
		t.Errorf("%d contacts are restored; %d were acknowledged before the dump, and %d in the end", len(contacts), before, acked.Load())
	}
}
