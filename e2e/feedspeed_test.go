package e2e_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

var feedSpeed = flag.Int("feed-speed", 3000, "among how many events TestFeedSpeed measures what the feed, streams and webhooks cost; from 100,000 on it also judges. Long run: -feed-speed 1000000 -speed 3s -timeout 60m")

// judgesSpeed reports whether TestFeedSpeed checks speeds. If it does, no other test may
// run at the same time.
func judgesSpeed() bool { return *feedSpeed >= 100_000 }

// speedRounds is the number of rounds. In each round, TestFeedSpeed measures both tasks.
func speedRounds() int {
	if judgesSpeed() {
		return 9
	}
	return 1
}

// TestFeedSpeed measures the cost of the feed, its streams and its webhooks. In turn with
// each of them, it measures a similar task, and compares the two. With few events it only
// checks the results, because machines differ.
func TestFeedSpeed(t *testing.T) {
	if !judgesSpeed() {
		t.Parallel()
	}
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		workspace := must(t, dir, append([]string{"workspace", "create", "--name", "Test"}, flags...)...)["workspace_id"].(string)
		key := must(t, dir, append([]string{"key", "create", "--workspace", workspace, "--name", "test", "--permissions", "all"}, flags...)...)["key"].(string)
		start := func() *server { return serve(t, dir, append([]string{"--webhook-allow", "127.0.0.0/8"}, flags...)...) }
		t.Run("pages", func(t *testing.T) { pageSpeed(t, key, start) })
		t.Run("deliveries", func(t *testing.T) { deliverySpeed(t, key, start()) })
	})
	t.Run("creates", func(t *testing.T) {
		eachStore(t, func(t *testing.T, dir string, flags []string) { createSpeed(t, dir, flags) })
	})
}

// ratio logs the rates of two tasks that were measured in turn. It checks the median of
// their ratios.
func ratio(t *testing.T, what, beside string, rates, others []float64, least float64) {
	t.Helper()
	var ratios []float64
	for i := range rates {
		ratios = append(ratios, rates[i]/others[i])
	}
	t.Logf("%s %.0f/s, %s %.0f/s: ratio %.2f, of %.2f", what, median(rates), beside, median(others), median(ratios), ratios)
	if judgesSpeed() && median(ratios) < least {
		t.Errorf("want at least %.2f", least)
	}
}

// makeEvents stores n events of contacts, in batches. Among them is one event of an
// attribute.
func makeEvents(t *testing.T, c *client, n int) {
	t.Helper()
	const batch = 1000
	people := min(20*batch, n/2)
	rows := make([]string, 0, batch)
	for made := range n {
		if made == n/2 {
			c.must(t, 201, "POST", "/attributes", `{"key":"one_of_many","type":"text"}`)
		}
		who := made % people
		rows = append(rows, fmt.Sprintf(`{"external_id":"p-%d","email":"p.%[1]d@example.com","phone":"+1212%07[1]d","name":"Person %d"}`, who, made))
		if len(rows) == batch || made == n-1 {
			c.mustBatch(t, rows)
			rows = rows[:0]
		}
	}
}

// pageSpeed reads all events in pages of 200, and compares this with the list of
// contacts. Then it searches for one event.
func pageSpeed(t *testing.T, key string, start func() *server) {
	const size = 200
	s := start()
	begun := time.Now()
	makeEvents(t, s.client(t, key, 1), *feedSpeed)
	t.Logf("%d events were made in %v, with %d MB of memory", *feedSpeed, time.Since(begun).Round(time.Second), s.peak(t)>>20)
	s.stop(t)
	s = start()
	c := s.client(t, key, 1)

	cursor, more, contacts, last := "oldest", true, 0, ""
	feedPages := func(n int) (took []time.Duration) {
		for ; n > 0 && more; n-- {
			begun := time.Now()
			body := c.must(t, 200, "GET", fmt.Sprintf("/events?limit=%d&cursor=%s", size, cursor), "")
			took = append(took, time.Since(begun))
			page := decode[feedPage](t, body)
			for _, e := range page.Data {
				if e.ID <= last {
					t.Fatalf("after %s comes %s", last, e.ID)
				}
				if last = e.ID; strings.HasPrefix(e.Type, "contact.") {
					contacts++
				}
			}
			cursor, more = page.Cursor, page.More
		}
		return took
	}
	next := ""
	listPages := func(n int) (took []time.Duration) {
		for ; n > 0; n-- {
			begun := time.Now()
			body := c.must(t, 200, "GET", fmt.Sprintf("/contacts?limit=%d%s", size, next), "")
			took = append(took, time.Since(begun))
			next = ""
			if page := decode[struct {
				NextCursor string `json:"next_cursor"`
			}](t, body); page.NextCursor != "" {
				next = "&cursor=" + url.QueryEscape(page.NextCursor)
			}
		}
		return took
	}
	perSecond := func(took []time.Duration) float64 {
		sum := time.Duration(0)
		for _, d := range took {
			sum += d
		}
		return float64(len(took)) / sum.Seconds()
	}
	var all []time.Duration
	var feed, list []float64
	turn := *feedSpeed/size/speedRounds() + 1
	listPages(turn) // fills the caches of both tasks
	for more {
		took := feedPages(turn)
		beside := listPages(len(took))
		all, feed, list = append(all, took...), append(feed, perSecond(took)), append(list, perSecond(beside))
	}
	if contacts != *feedSpeed {
		t.Errorf("%d events of contacts, want %d", contacts, *feedSpeed)
	}
	ratio(t, "pages of the feed", "pages of GET /contacts", feed, list, 0.25)
	tenth := len(all) / 10
	first, end := percentile(all[:max(1, tenth)], 50), percentile(all[len(all)-max(1, tenth):], 50)
	t.Logf("p50 of the first tenth %v, of the last %v: %.2f; %d MB of memory", first, end, float64(end)/float64(first), s.peak(t)>>20)
	if judgesSpeed() && float64(end) > 1.3*float64(first) {
		t.Error("the last tenth takes longer, want at most 1.3 times")
	}
	if judgesSpeed() && s.peak(t) > 250<<20 {
		t.Error("want at most 250 MB")
	}

	var found int
	var took []time.Duration
	for cursor, more = "oldest", true; more; {
		begun := time.Now()
		body := c.must(t, 200, "GET", "/events?types=attribute.*&cursor="+cursor, "")
		took = append(took, time.Since(begun))
		page := decode[feedPage](t, body)
		found, cursor, more = found+len(page.Data), page.Cursor, page.More
	}
	if least := *feedSpeed / 10_000; found != 1 || len(took) < least || len(took) > least+2 {
		t.Errorf("found %d in %d requests, want 1 in %d", found, len(took), least+1)
	}
	t.Logf("one of %d events found by %d requests: p50 %v, max %v", *feedSpeed, len(took), percentile(took, 50), percentile(took, 100))
	s.stop(t)
}

// deliverySpeed measures deliveries to a receiver that answers at once. It compares them
// with a bare loop that posts the same bodies. The events are those of pageSpeed.
func deliverySpeed(t *testing.T, key string, s *server) {
	const connections = 8
	c, sink := s.client(t, key, connections), startBare(t, nil)
	place := decode[feedPage](t, c.must(t, 200, "GET", "/events?cursor=latest", "")).Cursor
	rows, batches := make([]string, 100), 2
	if judgesSpeed() {
		rows, batches = make([]string, 1000), 10
	}
	for n := range batches {
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"external_id":"d-%d","name":"Delivered %d"}`, i, n)
		}
		c.mustBatch(t, rows)
	}
	var events []json.RawMessage
	for at, more := place, true; more; {
		page := decode[struct {
			Data   []json.RawMessage
			Cursor string
			More   bool
		}](t, c.must(t, 200, "GET", "/events?limit=200&cursor="+at, ""))
		events, at, more = append(events, page.Data...), page.Cursor, page.More
	}
	n := int64(len(events))
	if want := len(rows) * batches; len(events) != want {
		t.Fatalf("%d events, want %d", len(events), want)
	}
	webhook := decode[struct {
		Data struct{ ID, Secret string }
	}](t, c.must(t, 201, "POST", "/webhooks", `{"url":"`+sink+`/in","types":["contact.*"],"enabled":false}`)).Data
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(webhook.Secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	posted := func() int64 {
		answer, err := http.Get(sink + "/posts")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		count, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	var delivered, bare []float64
	for range speedRounds() {
		before := posted()
		c.must(t, 200, "POST", "/webhooks/"+webhook.ID+"/replay", `{"cursor":"`+place+`"}`)
		begun := time.Now()
		c.must(t, 200, "PATCH", "/webhooks/"+webhook.ID, `{"enabled":true}`)
		for count, moved := before, begun; count < before+n; {
			if now := posted(); now > count {
				count, moved = now, time.Now()
			} else if time.Since(moved) > patience {
				t.Fatalf("%d of %d events were delivered", count-before, n)
			}
			time.Sleep(time.Millisecond)
		}
		delivered = append(delivered, float64(n)/time.Since(begun).Seconds())
		c.must(t, 200, "PATCH", "/webhooks/"+webhook.ID, `{"enabled":false}`)

		begun = time.Now()
		var next atomic.Int64
		together(connections, func(int) {
			for i := next.Add(1) - 1; i < n && !t.Failed(); i = next.Add(1) - 1 {
				if err := signAndPost(c.http, sink+"/in", secret, fmt.Sprintf("evt_%d", i), events[i]); err != nil {
					t.Error(err)
				}
			}
		})
		bare = append(bare, float64(n)/time.Since(begun).Seconds())
	}
	ratio(t, "deliveries", "a bare loop", delivered, bare, 0.1)
}

// signAndPost does only the work without which no event can be delivered.
func signAndPost(h *http.Client, to string, secret []byte, id string, body []byte) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", at)
	request.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	response, err := h.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// createSpeed creates contacts in two workspaces, each on its own server. One of the
// workspaces has a stream and a webhook, which match none of the events.
func createSpeed(t *testing.T, dir string, flags []string) {
	const writers = 64
	var clients [2]*client
	var servers [2]*server
	sink := startBare(t, nil)
	for i := range clients {
		own, more := dir, flags
		if i == 1 {
			own = newDir(t)
			if flags != nil {
				more = []string{"--database", pgtest.Database(t)}
			}
		}
		workspace := must(t, own, append([]string{"workspace", "create", "--name", "Test"}, more...)...)["workspace_id"].(string)
		key := must(t, own, append([]string{"key", "create", "--workspace", workspace, "--name", "test", "--permissions", "all"}, more...)...)["key"].(string)
		servers[i] = serve(t, own, append([]string{"--webhook-allow", "127.0.0.0/8"}, more...)...)
		clients[i] = servers[i].client(t, key, writers)
	}
	clients[1].must(t, 201, "POST", "/webhooks", `{"url":"`+sink+`/in","types":["member.*"]}`)
	stream := servers[1].stream(t, clients[1].key, "?types=member.*")
	ended := make(chan string, 1)
	go func() {
		last, _ := lastOf(t, stream, new(atomic.Int64))
		ended <- last
	}()
	var next atomic.Int64
	create := func(c *client) float64 {
		return rate(t, writers, func() error {
			n := next.Add(1)
			_, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"s-%d","email":"s.%[1]d@example.com","phone":"+1212%07[1]d","name":"Speed %[1]d"}`, n), 201)
			return err
		})
	}
	var rates [2][]float64
	for round := range speedRounds() {
		for i := range clients {
			i = (i + round) % len(clients)
			rates[i] = append(rates[i], create(clients[i]))
		}
	}
	ratio(t, "creates beside a stream and a webhook that match nothing", "without", rates[1], rates[0], 0.8)
	servers[1].stop(t)
	if last := <-ended; last != "" {
		t.Errorf("the stream has %s", last)
	}
}
