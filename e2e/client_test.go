package e2e_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A client calls one server's API over connections that stay open. Unlike server.call,
// it may be used by many goroutines, so it returns errors.
type client struct {
	http     *http.Client
	url, key string
}

// client returns a client that keeps this many connections open.
func (s *server) client(t testing.TB, key string, connections int) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: connections}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{&http.Client{Transport: transport, Timeout: patience}, s.url + "/v1", key}
}

// A reply is the response to a request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send makes a request. If body is "", the request has no body. header is a list in which
// each name is followed by its value.
func (c *client) send(method, path, body string, header ...string) (reply, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, answer}, err
}

// expect makes a request. The response must have one of the statuses.
func (c *client) expect(method, path, body string, statuses ...int) (reply, error) {
	r, err := c.send(method, path, body)
	if err == nil && !slices.Contains(statuses, r.status) {
		err = fmt.Errorf("%s %s %.500s\nanswers %d, want one of %d: %.500s", method, path, body, r.status, statuses, r.body)
	}
	return r, err
}

// must makes a request. The response must have the status; must returns its body.
func (c *client) must(t testing.TB, status int, method, path, body string) []byte {
	t.Helper()
	r, err := c.expect(method, path, body, status)
	if err != nil {
		t.Fatal(err)
	}
	return r.body
}

// A contact has those fields of a contact that these tests read.
type contact struct {
	ID         string `json:"id"`
	ExternalID string `json:"external_id"`
	Note       string `json:"note"`
	UpdatedAt  string `json:"updated_at"`
}

// decode reads the body of a response. If it can't be read, the test fails.
func decode[T any](t testing.TB, body []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %.500s", err, body)
	}
	return v
}

// contactOf reads a response with one contact.
func contactOf(t testing.TB, body []byte) contact {
	t.Helper()
	return decode[struct{ Data contact }](t, body).Data
}

// eachPage reads a list, or the feed, to its end. The path has a query.
func (c *client) eachPage(t testing.TB, path string, read func(body []byte)) {
	t.Helper()
	for at := path; at != ""; {
		body := c.must(t, 200, "GET", at, "")
		read(body)
		page := decode[struct {
			NextCursor string `json:"next_cursor"`
			Cursor     string // of the feed
			More       bool
		}](t, body)
		next := page.NextCursor
		if page.More {
			next = page.Cursor
		}
		if at = ""; next != "" {
			at = path + "&cursor=" + url.QueryEscape(next)
		}
	}
}

// contacts reads all pages of GET /contacts.
func (c *client) contacts(t testing.TB) (all []contact) {
	t.Helper()
	seen := map[string]bool{}
	for cursor := ""; ; {
		path := "/contacts?limit=200"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		page := decode[struct {
			Data       []contact
			NextCursor string `json:"next_cursor"`
		}](t, c.must(t, 200, "GET", path, ""))
		for _, one := range page.Data {
			if seen[one.ID] {
				t.Fatalf("the contact %s is listed twice", one.ID)
			}
			seen[one.ID] = true
		}
		all = append(all, page.Data...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// A summary has the numbers of a batch's rows, by result.
type summary struct{ Total, Created, Updated, Deleted, Assigned, Errors int }

// upserts returns a batch that upserts the contacts, which are given as JSON.
func upserts(contacts []string) string {
	rows := make([]string, len(contacts))
	for i, data := range contacts {
		rows[i] = `{"op":"upsert","data":` + data + `}`
	}
	return `{"operations":[` + strings.Join(rows, ",") + `]}`
}

// summaryOf reads the response to a batch.
func summaryOf(t testing.TB, body []byte) summary {
	t.Helper()
	return decode[struct{ Summary summary }](t, body).Summary
}

// together calls f n times at the same time, and waits until all calls have returned.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

var seedFlag = flag.Uint64("seed", 0, "the seed of what campaigns draw at random; 0 for a new one")

// newSeed returns the seed of a test's random numbers, and logs it.
func newSeed(t testing.TB) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	return seed
}

// random returns a source of random numbers. A seed gives many different streams of them.
func random(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// percentile returns the shortest duration that p of 100 durations do not exceed. It
// sorts the list.
func percentile(of []time.Duration, p int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(len(of)-1, len(of)*p/100)]
}

// wantSound checks the database of a server that has stopped.
func wantSound(t testing.TB, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "parley.db"))+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, check := range []string{
		`SELECT group_concat(integrity_check, char(10)) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
		`SELECT group_concat("table", char(10)) FROM pragma_foreign_key_check`,
	} {
		var found sql.NullString
		if err := db.QueryRowContext(t.Context(), check).Scan(&found); err != nil || found.Valid {
			t.Errorf("the database is damaged: %v\n%s\n%s", err, check, found.String)
		}
	}
}
