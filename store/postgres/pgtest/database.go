package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is the timeout of all steps, for a busy machine.
const patience = time.Minute

func create(t testing.TB, server string) (name string) {
	t.Helper()
	name = "parley_" + strings.ToLower(rand.Text())
	statement(t, server, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'")
	return name
}

// statement runs SQL on a connection of its own.
func statement(t testing.TB, server, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, sql)
	if closing := conn.Close(ctx); err == nil {
		err = closing
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// sibling returns the URL of another database on the same server.
func sibling(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("TEST_POSTGRES_URL is no URL") // the error is left out, because it may contain a password
	}
	u.Path = "/" + name
	return u.String()
}
