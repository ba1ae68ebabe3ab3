//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/api"
	"parley/desk"
	"parley/provider"
	"parley/web"
)

var sendKeys = flag.Int("send-keys", 200, "how many idempotency keys TestSendRetries uses")

// A countingProvider counts the messages that it accepts for each number. It refuses and
// delays some messages, and loses some of its responses.
type countingProvider struct {
	provider.Provider
	mu    sync.Mutex
	taken map[string]int
	calls atomic.Int64
}

func (p *countingProvider) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	p.calls.Add(1)
	switch rand.IntN(20) {
	case 0:
		return provider.Receipt{}, &desk.Refusal{Type: desk.ProviderUnavailable, Message: "not now", Failure: &desk.Failure{Code: 130429}, RetryAfter: 1}
	case 1:
		<-time.After(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	r, err := p.Provider.Send(ctx, d)
	if err != nil {
		return r, err
	}
	p.mu.Lock()
	p.taken[d.Number]++
	p.mu.Unlock()
	if rand.IntN(100) == 0 {
		return provider.Receipt{}, errors.New("the answer was lost")
	}
	return r, nil
}

// TestSendRetries makes each call eight times at the same time, as an impatient client
// does, and repeats it until it has an answer. The provider never accepts the message of
// a key twice. All successful answers of a key have the same bytes. Every second call is
// a reply.
func TestSendRetries(t *testing.T) {
	t.Parallel()
	const retries, atOnce = 8, 16 // atOnce is the number of keys in use at a time
	dir := t.TempDir()
	n := openNode(t, dir, sendFault{})
	counting := &countingProvider{Provider: n.brokenProvider, taken: map[string]int{}}
	n.counting.Store(counting)
	ws, channel := n.workspace(t)
	key, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	edge := web.New(web.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), NewID: n.app.NewID, Ready: n.app.Ready, Drain: n.app.Drain})
	api.New(api.Config{App: n.app, Web: edge})
	server := httptest.NewServer(edge.Handler())
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: retries * atOnce}}
	t.Cleanup(client.CloseIdleConnections)

	var answered, other atomic.Int64
	number := func(i int) string { return fmt.Sprintf("90533%07d", 1_000_000+i*10+7) }
	asks := func(i int) (path string) { // returns the path of a reply to a person who has written
		in := provider.InboundMessage{ExternalID: "asks-" + number(i), Number: number(i), Text: "Is it ready?", At: desk.TimeOf(time.Now())}
		c, err := n.app.Receive(t.Context(), ws, channel, in)
		if err != nil {
			t.Error(err)
			return ""
		}
		return "/v1/conversations/" + c.ID.String() + "/messages"
	}
	send := func(i int, path string) (status int, body []byte) {
		body = fmt.Appendf(nil, `{"to":{"phone":"+%s"},"template":{"name":"order_ready","language":"en_US","variables":["A-%d"]},"opt_in_confirmed":true}`, number(i), i)
		if path != "" {
			body = fmt.Appendf(nil, `{"text":"A-%d is ready"}`, i)
		} else {
			path = "/v1/conversations/outbound"
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		r.Header.Set("Authorization", "Bearer "+string(key))
		r.Header.Set("Idempotency-Key", fmt.Sprintf("retry-%d", i))
		resp, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		defer resp.Body.Close()
		if body, err = io.ReadAll(resp.Body); err != nil {
			t.Error(err)
		}
		return resp.StatusCode, body
	}
	var next atomic.Int64
	together(atOnce, func(int) {
		for i := int(next.Add(1)) - 1; i < *sendKeys && !t.Failed(); i = int(next.Add(1)) - 1 {
			var mu sync.Mutex
			var first []byte
			path := ""
			if i%2 == 1 {
				path = asks(i)
			}
			together(retries, func(int) {
				for start := time.Now(); time.Since(start) < patience; {
					status, body := send(i, path)
					if status != http.StatusCreated {
						other.Add(1)
						if status != http.StatusBadGateway && status != http.StatusServiceUnavailable {
							t.Errorf("key %d: %d %s", i, status, body)
							return
						}
						<-time.After(5 * time.Millisecond)
						continue
					}
					answered.Add(1)
					mu.Lock()
					defer mu.Unlock()
					if first == nil {
						first = body
					}
					if !bytes.Equal(first, body) {
						t.Errorf("key %d has two answers:\n%s\n%s", i, first, body)
					}
					return
				}
				t.Errorf("key %d has no answer", i)
			})
		}
	})
	for number, count := range counting.taken {
		if count != 1 {
			t.Errorf("the provider took %d messages to %s", count, number)
		}
	}
	if len(counting.taken) != *sendKeys {
		t.Errorf("%d numbers were reached, want %d", len(counting.taken), *sendKeys)
	}
	t.Logf("%d keys: %d successful answers, %d others, %d calls of the provider", *sendKeys, answered.Load(), other.Load(), counting.calls.Load())
}
