package pgtest

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

var citus = flag.String("citus", "", "the `URL` of a database of a Citus cluster, at its coordinator; the tests make their databases on that cluster")

// making lets one test at a time make a database on the cluster, or join one.
var making sync.Mutex

// Citus tells whether the tests run on a Citus cluster.
func Citus() bool { return *citus != "" }

// createOnCitus makes a database on all servers of the cluster, without joining them. It
// returns its name, and the URLs of the servers.
func createOnCitus(t testing.TB) (name string, servers []string) {
	t.Helper()
	servers = Servers(t)
	name = createOn(t, servers)
	t.Cleanup(func() {
		for _, server := range servers {
			statement(t, server, "DROP DATABASE "+name+" WITH (FORCE)")
		}
	})
	return name, servers
}

// createOn makes a database on several servers.
func createOn(t testing.TB, servers []string) (name string) {
	t.Helper()
	making.Lock()
	defer making.Unlock()
	name = create(t, servers[0])
	for _, server := range servers[1:] {
		statement(t, server, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'")
	}
	return name
}

// joinOn joins the databases of a name on the servers of a cluster, the coordinator first.
func joinOn(t testing.TB, servers []string, name string) {
	t.Helper()
	making.Lock()
	defer making.Unlock()
	for i, server := range servers {
		statement(t, sibling(t, server, name), "CREATE EXTENSION citus")
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		join := "citus_add_node"
		if i == 0 {
			join = "citus_set_coordinator_host"
		}
		statement(t, sibling(t, servers[0], name), fmt.Sprintf("SELECT %s('%s', %s)", join, u.Hostname(), u.Port()))
	}
	// Few shards: each test distributes every table.
	statement(t, sibling(t, servers[0], name), "ALTER DATABASE "+name+" SET citus.shard_count = 4")
}

// Servers lists the URLs of the servers of the cluster, the coordinator first.
func Servers(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, *citus)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, _ := conn.Query(ctx, `SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid`) // an error also appears in the rows
	hosts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(hosts) < 2 {
		t.Fatalf("-citus: the servers of the cluster are %v: %v", hosts, err)
	}
	for i, host := range hosts {
		u, err := url.Parse(*citus)
		if err != nil {
			t.Fatal("-citus is no URL") // the error is left out, because it may contain a password
		}
		u.Host = host
		hosts[i] = u.String()
	}
	return hosts
}

// Entrance returns the URL of a database at another server of the cluster. Without a
// cluster, it returns the same URL.
func Entrance(t testing.TB, database string, n int) string {
	t.Helper()
	if !Citus() {
		return database
	}
	servers := Servers(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal("the database's URL is none")
	}
	s, err := url.Parse(servers[n%len(servers)])
	if err != nil {
		t.Fatal(err)
	}
	u.Host = s.Host
	return u.String()
}

// Set sets a setting of the coordinator until the test ends.
func Set(t testing.TB, setting, value string) {
	t.Helper()
	change := func(to string) {
		statement(t, *citus, "ALTER SYSTEM "+to)
		statement(t, *citus, "SELECT pg_reload_conf()")
	}
	change("SET " + setting + " = " + value)
	t.Cleanup(func() { change("RESET " + setting) })
}
