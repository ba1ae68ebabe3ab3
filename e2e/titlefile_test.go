//go:build unix

package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/whatsapp/whatsapptest"
)

var (
	titleSends = flag.Int("title-sends", 20, "how many templates with a picture in the title TestTitleFilesKilled sends. Long run: -title-sends 200 -title-kills 5")
	titleKills = flag.Int("title-kills", 1, "how often TestTitleFilesKilled kills the server; see -title-sends")
)

// TestTitleFilesKilled: the server is killed while templates go out, each with a picture of its own.
// Each call is repeated until it has an answer. Nobody gets a message twice, or another's picture.
func TestTitleFilesKilled(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		const clients = 8
		promo := whatsapptest.Template{"name": "promo", "language": "tr", "category": "UTILITY", "status": "APPROVED", "components": []any{
			map[string]any{"type": "HEADER", "format": "IMAGE"}, map[string]any{"type": "BODY", "text": "Merhaba"},
		}}
		w := newWhatsAppIn(t, d, whatsapptest.Config{Templates: []whatsapptest.Template{promo}})
		w.connect(t, w.server, "--per-second", "1000")
		var current atomic.Pointer[client]
		current.Store(w.server.client(t, w.key, clients))
		numbers, pictures := castNumbers(2, *titleSends), make([]string, *titleSends)
		pictureFor := func(number string) string { return "\xff\xd8\xff\xe0 for " + strings.TrimPrefix(number, "+") }
		for i := range pictures {
			body := current.Load().must(t, 201, "POST", "/media?name=sale.jpg", pictureFor(numbers[i]))
			pictures[i] = decode[struct{ Data struct{ ID string } }](t, body).Data.ID
		}
		sent, unknown := make([]bool, *titleSends), atomic.Int64{}
		// send repeats a call until it has an answer, or has long had none.
		send := func(i int) {
			body := fmt.Sprintf(`{"to":{"phone":%q},"template":{"name":"promo","language":"tr","variables":{"header.media":%q}},"opt_in_confirmed":true}`, numbers[i], pictures[i])
			unclear := 0
			for stop := time.Now().Add(2 * patience); time.Now().Before(stop); <-time.After(50 * time.Millisecond) {
				r, err := current.Load().send("POST", "/conversations/outbound", body, "Idempotency-Key", "title "+numbers[i])
				switch {
				case err != nil: // the server is down
				case r.status == 201:
					sent[i] = true
					return
				case bytes.Contains(r.body, []byte("send_outcome_unknown")):
					if unclear++; unclear == 10 {
						unknown.Add(1)
						return
					}
				case r.status < 500:
					t.Errorf("%s: %d %s", numbers[i], r.status, r.body)
					return
				}
			}
			t.Errorf("%s has no answer", numbers[i])
		}
		var next atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			together(clients, func(int) {
				for i := next.Add(1) - 1; i < int64(*titleSends); i = next.Add(1) - 1 {
					send(int(i))
				}
			})
		}()
		server := w.server
		for i := range *titleKills {
			w.takes(t, (i+1)**titleSends/(*titleKills+2))
			server.kill()
			server = w.serve(t)
			w.sim.SetWebhook(server.url+w.callbacks, waVerify)
			current.Store(server.client(t, w.key, clients))
		}
		<-done
		w.settled(t)
		content := map[string]string{}
		for _, m := range w.sim.Media() {
			content[m.ID] = string(m.Content)
		}
		for _, s := range w.sim.Sends() {
			if len(s.Parameters) != 1 || content[s.Parameters[0].Media] != pictureFor(s.To) {
				t.Errorf("%s got %+v", s.To, s.Parameters)
			}
		}
		got := w.sentTo()
		for i, number := range numbers {
			if n := got[strings.TrimPrefix(number, "+")]; n > 1 || sent[i] && n != 1 {
				t.Errorf("%s got %d messages; the call said it was sent: %v", number, n, sent[i])
			}
		}
		if most := int64(*titleKills * clients); unknown.Load() > most {
			t.Errorf("%d are in doubt, more than the %d that were under way", unknown.Load(), most)
		}
		t.Logf("%d people got the message, %d calls are in doubt", len(got), unknown.Load())
	})
}
