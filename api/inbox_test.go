package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/provider"
)

var inboxConversations = flag.Int("inbox-conversations", 120, "how many conversations TestInboxOfMany has; from 100,000 on it also judges the time of a page. Long run: -run 'TestInboxOfMany|TestPostgres/TestInboxOfMany' -inbox-conversations 100000 -timeout 30m")

// TestInboxOfMany: each page of a long inbox is fast, and each state agrees with the
// messages.
func TestInboxOfMany(t *testing.T) {
	s := newServer(t)
	channel := s.addSandbox("")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	unread := make([]int, *inboxConversations)
	ids := make([]desk.ID, *inboxConversations)
	work := make(chan int)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range work {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				at := desk.TimeOf(time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)) - desk.Time(r.Int64N(200_000_000))
				for k := range 1 + r.IntN(4) {
					in := provider.InboundMessage{ExternalID: fmt.Sprintf("in.%d.%d", i, k), Number: fmt.Sprintf("1202%07d", i), Text: "Hello", At: at + desk.Time(1000*k)}
					if in.Echo = k > 0 && r.IntN(3) == 0; in.Echo {
						unread[i] = 0
					} else {
						unread[i]++
					}
					c, err := s.app.Receive(t.Context(), s.ws, channel, in)
					if err != nil {
						t.Error(err)
						return
					}
					ids[i] = c.ID
				}
				if r.IntN(4) == 0 {
					unread[i] = 0
					if _, err := s.app.MarkRead(t.Context(), s.operator(s.ws), ids[i], desk.ID{}, false); err != nil {
						t.Error(err)
					}
				}
				if i%5 == 0 {
					if _, err := s.app.SetStatus(t.Context(), s.operator(s.ws), ids[i], desk.StatusClosed, nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range ids {
		work <- i
	}
	close(work)
	all.Wait()
	number := map[string]int{}
	for i, id := range ids {
		number[id.String()] = i
	}

	type item struct {
		Conversation struct{ ID string }
		State        struct {
			Unread        int
			WaitingSince  *string `json:"waiting_since"`
			LastDirection string  `json:"last_direction"`
		}
	}
	seen := map[string]item{}
	for _, query := range []string{"", "&status=closed", "&order=waiting", "&waiting=true", "&unread=true", "&assignee=none", "&unread=true&order=waiting", "&assignee=ada@example.com"} {
		var times []time.Duration
		found := 0
		for cursor := ""; ; {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/inbox?limit=100"+query+cursor, http.NoBody)
			r.Header.Set("Authorization", "Bearer "+s.key)
			w := httptest.NewRecorder()
			began := time.Now()
			s.handler.ServeHTTP(w, r)
			times = append(times, time.Since(began))
			var page struct {
				Data []item
				Next *string `json:"next_cursor"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", query, w.Code, w.Body)
			}
			for _, one := range page.Data {
				seen[one.Conversation.ID] = one
			}
			if found += len(page.Data); page.Next == nil {
				break
			}
			cursor = "&cursor=" + *page.Next
		}
		slices.Sort(times)
		t.Logf("%q: %d conversations on %d pages, half in %s, 99 of 100 in %s, the slowest %s", query, found, len(times), times[len(times)/2], times[len(times)*99/100], times[len(times)-1])
		if p99 := times[len(times)*99/100]; *inboxConversations >= 100_000 && p99 > 50*time.Millisecond {
			t.Errorf("%q: a page takes %s", query, p99)
		}
	}
	if len(seen) != len(ids) {
		t.Errorf("the lists have %d of %d conversations", len(seen), len(ids))
	}
	for id, one := range seen {
		messages, _, err := s.app.Messages(t.Context(), s.operator(s.ws), ids[number[id]], "", 100)
		if err != nil {
			t.Fatal(err)
		}
		var answered desk.ID
		waiting := desk.Time(0)
		for _, m := range messages {
			if m.IsAnswer() && m.ID.Compare(answered) > 0 {
				answered = m.ID
			}
		}
		for _, m := range messages {
			if m.IsWaitedOn() && m.ID.Compare(answered) > 0 && (waiting == 0 || m.TS < waiting) {
				waiting = m.TS
			}
		}
		got := ""
		if one.State.WaitingSince != nil {
			got = *one.State.WaitingSince
		}
		if want := map[bool]string{true: waiting.String()}[waiting > 0]; got != want || one.State.Unread != unread[number[id]] || one.State.LastDirection != string(messages[0].Direction) {
			t.Errorf("%s is %+v (waiting since %s); want %d unread, waiting since %q, %s", id, one.State, got, unread[number[id]], want, messages[0].Direction)
		}
	}
}
