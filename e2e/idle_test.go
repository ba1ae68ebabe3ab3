package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
	database "parley/store"
	"parley/store/postgres/pgtest"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var (
	idleWorkspaces = flag.Int("idle-workspaces", 40, "how many workspaces TestIdle has. Long run: -idle-workspaces 10000 -idle-for 1m -idle-messages 300 -timeout 1h")
	idleFor        = flag.Duration("idle-for", 3*time.Second, "for how long TestIdle measures the use of the processor; see -idle-workspaces")
	idleMessages   = flag.Int("idle-messages", 10, "how many messages TestIdle takes in, each in a workspace where nothing has happened; see -idle-workspaces")
)

// TestIdle: a server has many workspaces in which nothing happens. Each has a webhook, and a
// policy whose hours are closed, and conversations in which somebody waits. The test logs
// the time of a start, the memory, and the use of the processor. A message that another
// process takes in, in any of them, gets to its webhook within two seconds.
func TestIdle(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		arrived := make(chan string, *idleMessages*(len(hello)+1))
		sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // a body that is cut off comes again
			arrived <- r.URL.Path
		}))
		t.Cleanup(sink.Close)
		chosen, says, resting := d.crowd(t, sink.URL)

		s := d.delivering(t)
		for range len(chosen) * len(hello) { // the messages from before the first start
			receive(t, arrived)
		}
		if *idleFor >= time.Minute { // in a short run, the server still serves the webhooks of the messages from before
			for began := time.Now(); !resting(); time.Sleep(10 * time.Second) { // it reads all webhooks
				if time.Since(began) > 30*time.Minute {
					t.Fatal("webhooks for which nothing happens do not rest")
				}
			}
		}
		s.stop(t)
		began := time.Now()
		s = d.delivering(t)
		took := time.Since(began)
		time.Sleep(*idleFor) // what a start does once
		before, other := s.cpu(t), d.databaseCPU(t)
		time.Sleep(*idleFor)
		load := func(from, to time.Duration) float64 { return 100 * float64(to-from) / float64(*idleFor) }
		t.Logf("%d idle workspaces: start %v, memory %d MB, processor %.2f %%, PostgreSQL %.2f %%",
			*idleWorkspaces, took, s.peak(t)>>20, load(before, s.cpu(t)), load(other, d.databaseCPU(t)))

		var ways []time.Duration
		for _, c := range chosen {
			began := time.Now()
			if err := says(c, 0, "Hello again"); err != nil {
				t.Fatal(err)
			}
			if path := receive(t, arrived); path != "/"+c.workspace.String() {
				t.Errorf("%s has a delivery, not /%s", path, c.workspace)
			}
			ways = append(ways, time.Since(began))
		}
		p99 := percentile(ways, 99)
		t.Logf("from a message to its webhook: median %v, p99 %v", percentile(ways, 50), p99)
		if p99 > 2*time.Second {
			t.Error("this is more than 2 s")
		}
	})
}

// receive waits for a delivery.
func receive(t *testing.T, arrived <-chan string) (path string) {
	t.Helper()
	select {
	case path = <-arrived:
	case <-time.After(patience):
		t.Fatal("a delivery does not come")
	}
	return path
}

// hello are the messages that each workspace of a crowd has.
var hello = []string{"Hello", "Is anybody there?"}

// An idler is a workspace of a crowd, with its channel.
type idler struct{ workspace, channel desk.ID }

// crowd makes the workspaces of TestIdle. It returns those whose webhooks want messages;
// the webhooks of the others want other events. It also returns a function by which a
// person writes to a workspace, and one that tells whether no webhook is busy.
func (d deployment) crowd(t *testing.T, url string) (chosen []idler, says func(w idler, person int, text string) error, resting func() bool) {
	t.Helper()
	d.workspace(t) // it makes the installation: a later start does not look into all workspaces
	d.leave(t)
	text, err := os.ReadFile(filepath.Join(d.dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	store, err := openNodeStore(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	newID := func() desk.ID { return desk.ID(uuid.Must(uuid.NewV7())) }
	a := app.New(app.Deps{
		Store: store, Providers: map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: sandbox.New(sandbox.Config{Library: store, Now: time.Now, NewID: newID, Pace: time.Hour})},
		Answer: api.SendAnswer, Now: time.Now, NewID: newID, Random: func(b []byte) { _, _ = rand.Read(b) }, Secret: secret,
		Log: slog.New(slog.DiscardHandler), PlainHTTP: true, AddressRefused: func(netip.Addr) bool { return false },
	})
	t.Cleanup(func() {
		a.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	says = func(w idler, person int, text string) error {
		p, err := a.Operator(t.Context(), w.workspace)
		if err == nil {
			_, _, err = a.Simulate(t.Context(), p, w.channel, app.Simulated{From: fmt.Sprintf("+90532123450%d", person), Name: "Ann", Text: text})
		}
		return err
	}
	one := func(ctx context.Context, i int) (idler, error) {
		w, err := a.CreateWorkspace(ctx, fmt.Sprintf("Shop %d", i), "TR")
		if err != nil {
			return idler{}, err
		}
		operator := func() desk.Principal { // with the settings of now
			p, failed := a.Operator(ctx, w.ID)
			if err == nil {
				err = failed
			}
			return p
		}
		at, _, err := a.AddChannel(ctx, operator(), app.NewChannel{Kind: desk.SandboxChannel})
		if err != nil {
			return idler{}, err
		}
		ada, err := a.AddMember(ctx, operator(), "Ada", fmt.Sprintf("ada%d@example.com", i), "agent")
		if err != nil {
			return idler{}, err
		}
		mode, utc := string(desk.AssignRoundRobin), "UTC"
		policy := desk.PolicyInput{Assign: &desk.AssignInput{Mode: &mode, Members: []desk.Reference{desk.ReferTo(ada.ID.String())}}, Hours: &desk.HoursInput{TimeZone: &utc, Week: map[string][][]string{}}}
		if _, err := a.SetPolicy(ctx, operator(), desk.ID{}, policy); err != nil {
			return idler{}, err
		}
		types, to := []string{string(desk.MessageReceived)}, url+"/"+w.ID.String()
		if i >= *idleMessages {
			types = []string{string(desk.MessageFailed)}
		}
		if _, _, err := a.Deliver.AddWebhook(ctx, operator(), desk.WebhookEdit{URL: &to, Types: &types}, nil); err != nil {
			return idler{}, err
		}
		made := idler{w.ID, at.Channel.ID}
		for n, text := range hello {
			if err := says(made, n, text); err != nil {
				return idler{}, err
			}
		}
		return made, err
	}
	made := make([]idler, *idleWorkspaces)
	const makers = 16
	var group sync.WaitGroup
	for maker := range makers {
		group.Go(func() {
			for i := maker; i < len(made) && !t.Failed(); i += makers {
				var err error
				if made[i], err = one(t.Context(), i); err != nil {
					t.Errorf("workspace %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	resting = func() bool {
		list, err := store.EnabledWebhooks(t.Context())
		if err != nil {
			t.Error(err)
		}
		return !slices.ContainsFunc(list, func(w database.EnabledWebhook) bool { return w.Busy })
	}
	return made[:min(*idleMessages, len(made))], says, resting
}

// databaseCPU is the processor time that the servers of the database have used; 0 without
// PostgreSQL, and if the system does not report it.
func (d deployment) databaseCPU(t testing.TB) (sum time.Duration) {
	t.Helper()
	if d.database == "" {
		return 0
	}
	urls := []string{d.database}
	if pgtest.Citus() {
		urls = pgtest.Servers(t)
	}
	for _, url := range urls {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		var file string // whose first line is the number of the server's process
		if err := conn.QueryRow(ctx, "SELECT pg_read_file('postmaster.pid')").Scan(&file); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(file, "\n")
		server, err := strconv.Atoi(first)
		if err != nil {
			t.Fatal(err)
		}
		sum += cpuOf(t, server, true)
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", server)) // no error: another system
		for _, child := range strings.Fields(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			sum += cpuOf(t, pid, false)
		}
	}
	return sum
}
