package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

var (
	distributeContacts = flag.Int("distribute-contacts", 200, "how many contacts TestDistributeKilled moves to a cluster. Long run, on Citus: -distribute-contacts 100000 -distribute-messages 50000 -distribute-kills 5")
	distributeMessages = flag.Int("distribute-messages", 20, "how many messages TestDistributeKilled moves; see -distribute-contacts")
	distributeKills    = flag.Int("distribute-kills", 2, "how often TestDistributeKilled kills the command; see -distribute-contacts")
)

// TestDistributeKilled: an installation on one server moves to a cluster by a command that is
// killed in the middle. Then the API answers the same as before. Without a cluster, the
// command says what is missing, and changes nothing.
func TestDistributeKilled(t *testing.T) {
	t.Parallel()
	database, join := pgtest.BeforeCitus(t)
	d := deployment{newDir(t), database}
	ws, key := d.workspace(t)
	d.sandbox(t, ws)
	s := serve(t, d.dir, "--database", database)
	s.fill(t, key, *distributeContacts, *distributeMessages)
	for left := *distributeMessages * 2; left > 0; {
		before := left
		waitFor(t, "what the sandbox reports of messages", func() bool { left = rowsIn(t, database, "inbound_items"); return left == 0 || left < before })
	}
	want := d.told(t, s, ws, key)
	s.stop(t)

	join()
	command := []string{"citus", "distribute", "--data", d.dir, "--database", database, "--json"}
	if !pgtest.Citus() {
		refused(t, nil, command, "CREATE EXTENSION citus")
	} else {
		for range *distributeKills {
			before, last := rowsIn(t, database, "pg_dist_partition"), time.Now()
			p := launch(t, nil, command...)
			waitFor(t, "more tables to move", func() bool {
				return p.ended() || rowsIn(t, database, "pg_dist_partition") > before || time.Since(last) > patience/2
			})
			time.Sleep(rand.N(200 * time.Millisecond)) // so that the kill falls into the move of a table
			p.kill()
			if left := rowsIn(t, database, "pg_dist_partition"); left <= before {
				t.Errorf("%d tables are distributed, %d were before", left, before)
			}
			if r := parley(t, nil, "serve", "--data", d.dir, "--database", database, "--listen", "127.0.0.1:0"); r.code != 1 || !strings.Contains(r.stderr, "citus distribute") {
				t.Errorf("a server on a half of the tables: exit %d: %s", r.code, r.stderr)
			}
		}
		began := time.Now()
		if r := parley(t, nil, command...); r.code != 0 || r.stdout == "" {
			t.Fatalf("after %d kills: exit %d: %s", *distributeKills, r.code, r.stderr)
		}
		t.Logf("the last run took %v", time.Since(began))
	}

	s = serve(t, d.dir, "--database", database)
	wantSame(t, "afterwards", d.told(t, s, ws, key), want)
	s.want(t, 200, key, "POST", "/contacts", `{"external_id":"m1","note":"found"}`)
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"after"}`)
	s.stop(t)
}

// rowsIn counts the rows of a table.
func rowsIn(t *testing.T, database, table string) int {
	t.Helper()
	return askDatabase[int](t, database, `SELECT count(*) FROM `+table)
}

// fill makes contacts, and sends messages to other people.
func (s *server) fill(t *testing.T, key string, contacts, messages int) {
	t.Helper()
	const clients = 8
	c := s.client(t, key, clients)
	for from := 0; from < contacts; from += 1000 {
		var people []string
		for i := from; i < min(contacts, from+1000); i++ {
			people = append(people, fmt.Sprintf(`{"external_id":"m%d","name":"Ünal %d","email":"person%d@example.com","note":"emoji 🎈","identities":[{"kind":"crm","value":"c-%d"}]}`, i, i, i, i))
		}
		if got := summaryOf(t, c.must(t, 200, "POST", "/contacts/batch", upserts(people))); got.Created != len(people) {
			t.Fatalf("a batch of %d people: %+v", len(people), got)
		}
	}
	var sends sync.WaitGroup
	for from := range clients {
		sends.Go(func() {
			for i := from; i < messages; i += clients {
				if _, err := c.sent(fmt.Sprint("key-", i), phoneOf(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sends.Wait()
}

// told returns all that a workspace's lists and exports say.
func (d deployment) told(t *testing.T, s *server, ws, key string) map[string]string {
	t.Helper()
	c, all := s.client(t, key, 1), map[string]string{}
	for _, path := range []string{"/members?limit=200", "/templates?status=all", "/contacts?limit=200", "/conversations?limit=200", "/inbox?limit=200", "/events?limit=200"} {
		page := 0
		c.eachPage(t, path, func(body []byte) {
			all[fmt.Sprint(path, " page ", page)] = string(body)
			page++
		})
	}
	for _, what := range []string{"contacts", "conversations", "messages", "notes"} {
		all[what] = d.run(t, "export", what, "--workspace", ws).stdout
	}
	return all
}
