//go:build unix

package e2e_test

import (
	"flag"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
	"parley/whatsapp/whatsapptest"
)

var (
	castRows    = flag.Int("cast-rows", 100, "how many people TestBroadcastKilled, TestBroadcastControlled and TestBroadcastRows send to. Long run: -cast-rows 20000 -cast-kills 10 -timeout 60m")
	castKills   = flag.Int("cast-kills", 1, "how often TestBroadcastKilled kills a server; see -cast-rows")
	castPauses  = flag.Int("cast-pauses", 2, "how often TestBroadcastControlled pauses a broadcast. Long run: -cast-rows 20000 -cast-pauses 200 -cast-cancels 50 -cast-starts 500 -cast-stops 3 -timeout 60m")
	castCancels = flag.Int("cast-cancels", 1, "how many broadcasts TestBroadcastControlled cancels; see -cast-pauses")
	castStarts  = flag.Int("cast-starts", 20, "how many calls at once start the broadcast of TestBroadcastControlled; see -cast-pauses")
	castStops   = flag.Int("cast-stops", 0, "how often TestBroadcastControlled stops the node that sends for longer than its lease; see -cast-pauses")
	castErased  = flag.Int("cast-erased", 8, "how many contacts are deleted in TestBroadcastErased, of four times as many. Long run: -cast-erased 200")
	castClients = flag.Int("cast-clients", 4, "how many clients post the rows of TestBroadcastRows. Long run: -cast-rows 20000 -cast-clients 16 -timeout 60m")
)

// A cast is a broadcast as the API shows it.
type cast struct {
	ID, State string
	Reason    *string
	Counts    map[string]any
}

// count returns one of the counts.
func (c cast) count(name string) int {
	n, _ := c.Counts[name].(float64)
	return int(n)
}

// A castRow is a row of a broadcast as the API shows it.
type castRow struct {
	ID, Status string
	Contact    string `json:"contact_id"`
	To         *string
	Reason     *string
	Failure    *struct{ Code int }
}

// cast makes a draft of a template to numbers.
func (c *client) cast(t testing.TB, template, more string, numbers ...string) (id string) {
	t.Helper()
	body := c.must(t, 201, "POST", "/broadcasts", `{"name":"Spring","template":{"name":"`+template+`","language":"tr"},"variables":{"musteri_adi":{"value":"Ayşe"}},"consent":{"confirmed":true}`+more+`}`)
	id = decode[struct{ Data cast }](t, body).Data.ID
	for part := range slices.Chunk(numbers, 1000) {
		c.must(t, 200, "POST", "/broadcasts/"+id+"/rows", castRowsOf(part...))
	}
	return id
}

func castRowsOf(numbers ...string) string {
	rows := make([]string, len(numbers))
	for i, number := range numbers {
		rows[i] = fmt.Sprintf(`{"to":{"phone":%q}}`, number)
	}
	return `{"rows":[` + strings.Join(rows, ",") + `]}`
}

func (c *client) castNow(t testing.TB, id string) cast {
	t.Helper()
	return decode[struct{ Data cast }](t, c.must(t, 200, "GET", "/broadcasts/"+id, "")).Data
}

// castUntil waits until a broadcast has a state and a reason, and nothing is being sent.
func (c *client) castUntil(t testing.TB, id, state, reason string) (now cast) {
	t.Helper()
	until := time.Now().Add(castPatience())
	for ; ; <-time.After(20 * time.Millisecond) {
		now = c.castNow(t, id)
		is := ""
		if now.Reason != nil {
			is = *now.Reason
		}
		if now.State == state && is == reason && now.count("sending") == 0 {
			return now
		}
		if time.Now().After(until) {
			t.Fatalf("it is %s as %q: %v; still waiting for %s, %q", now.State, is, now.Counts, state, reason)
		}
	}
}

// castDelivered waits until the provider's last report about each message is counted. Rows of
// deleted contacts keep the status that they had: they have lost their message.
func (c *client) castDelivered(t testing.TB, id string) {
	t.Helper()
	until, before := time.Now().Add(castPatience()), -1
	for ; ; <-time.After(200 * time.Millisecond) {
		now := c.castNow(t, id)
		left := now.count("sent") + now.count("delivered")
		if left == 0 || left == before && !slices.ContainsFunc(c.castList(t, id), func(r castRow) bool {
			return r.To != nil && (r.Status == "sent" || r.Status == "delivered")
		}) {
			return
		}
		before = left
		if time.Now().After(until) {
			t.Fatalf("still waiting for deliveries: %v", now.Counts)
		}
	}
}

// caughtUp waits until a server has processed all that the provider has sent about a broadcast.
func (c *client) caughtUp(t testing.TB, id string, s *server) {
	t.Helper()
	for p := (progress{}); s.metric(t, "parley_inbound_waiting") > 0; <-time.After(200 * time.Millisecond) {
		if p.ended(c.castNow(t, id)) {
			t.Fatal("inbound items are not processed")
		}
	}
}

// A progress tells whether the counts of a broadcast still change: what follows it may take long,
// but not without a change.
type progress struct {
	counts map[string]any
	stop   time.Time
}

// ended notes the counts. It returns true once they have been the same for too long.
func (p *progress) ended(now cast) bool {
	if !maps.EqualFunc(now.Counts, p.counts, reflect.DeepEqual) {
		p.counts, p.stop = now.Counts, time.Now().Add(patience)
	}
	return time.Now().After(p.stop)
}

// castPatience is how long a test waits for a broadcast.
func castPatience() time.Duration {
	return 2*patience + time.Duration(max(*castRows, *castCost, *castsStored, 20**castSlow, 200**castMany))*50*time.Millisecond
}

// takes waits until the provider has taken so many messages.
func (w *whatsApp) takes(t testing.TB, messages int) {
	t.Helper()
	for stop := time.Now().Add(castPatience()); w.sim.AcceptedTotal() < messages; <-time.After(5 * time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("the provider has taken %d of %d messages", w.sim.AcceptedTotal(), messages)
		}
	}
}

func (c *client) castList(t testing.TB, id string) (list []castRow) {
	t.Helper()
	for cursor := ""; ; {
		page := decode[struct {
			Data       []castRow
			NextCursor string `json:"next_cursor"`
		}](t, c.must(t, 200, "GET", "/broadcasts/"+id+"/rows?limit=200"+cursor, ""))
		list = append(list, page.Data...)
		if page.NextCursor == "" {
			return list
		}
		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// castCounted waits until the counts of a broadcast are those of its rows, and returns the
// rows. Both follow the statuses that still come.
func (c *client) castCounted(t testing.TB, id string) []castRow {
	t.Helper()
	for p := (progress{}); ; {
		rows, want := c.castList(t, id), map[string]int{}
		for _, r := range rows {
			want["rows"]++
			want[r.Status]++
		}
		now, wrong := c.castNow(t, id), ""
		for _, name := range []string{"rows", "pending", "sending", "sent", "delivered", "read", "failed", "refused", "in_doubt", "skipped", "cancelled"} {
			if got := now.count(name); got != want[name] {
				wrong += fmt.Sprintf("; %d are counted as %s, and %d are", got, name, want[name])
			}
		}
		if wrong == "" {
			return rows
		}
		if p.ended(now) {
			t.Fatalf("the counts of %d rows%s", len(rows), wrong)
		}
	}
}

// castNumbers are n numbers; which tells them apart from those of other broadcasts.
func castNumbers(which, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("+9053%d%07d", which, i))
	}
	return list
}

// sentTo counts the messages that the provider has taken for each number, by its digits.
func (w *whatsApp) sentTo() map[string]int {
	n := map[string]int{}
	for _, s := range w.sim.Sends() {
		n[strings.TrimPrefix(s.To, "+")]++
	}
	return n
}

// TestBroadcastCodes: what WhatsApp's codes mean for a broadcast, answered and reported later.
func TestBroadcastCodes(t *testing.T) {
	t.Parallel()
	overBoth(t, 1, func(t *testing.T, w *whatsApp, _ []*server) { broadcastCodes(t, w) })
}

func broadcastCodes(t *testing.T, w *whatsApp) {
	c := w.server.client(t, w.key, 4)
	const people = 20
	rule := func(m whatsapptest.Match, o whatsapptest.Outcome) {
		w.sim.AddRule(whatsapptest.Rule{Match: m, Outcome: o})
	}
	for i, test := range []struct {
		name   string
		before func(template string)
		state  string
		reason string
		count  string // which rows are counted then
		n      int
		after  func(template string) // then it is resumed, and ends
	}{
		{"131048", func(string) {
			rule(whatsapptest.Match{}, whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 131048})
		}, "paused", "channel", "pending", people, func(string) {}},
		{"131049", func(template string) {
			rule(whatsapptest.Match{Template: template}, whatsapptest.Outcome{Kind: whatsapptest.RefuseRecipient, Code: 131049})
		}, "done", "", "failed", people, nil},
		{"131056", func(string) {
			rule(whatsapptest.Match{To: castNumbers(2, 1)[0], Next: 1}, whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 131056})
		}, "done", "", "read", people, nil},
		{"132015", func(template string) { w.patch(t, template, "PAUSED", true) }, "paused", "template", "sent", 0, func(template string) { w.patch(t, template, "APPROVED", false) }},
		{"132016", func(template string) { w.patch(t, template, "DISABLED", true) }, "paused", "template", "sent", 0, func(template string) { w.patch(t, template, "APPROVED", false) }},
		{"held, and released", func(string) { rule(whatsapptest.Match{}, whatsapptest.Outcome{Kind: whatsapptest.AcceptHeld}) }, "done", "", "read", people, nil},
		{"held, and dropped", func(string) {
			rule(whatsapptest.Match{Next: 1}, whatsapptest.Outcome{Kind: whatsapptest.AcceptHeld, Code: 132015})
		}, "paused", "template", "failed", 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			template := fmt.Sprintf("template_%03d", i)
			if i == 4 {
				template = greeting // that is how templatesOf names the middle one
			}
			more := ""
			if test.name == "held, and dropped" {
				more = `,"pace":{"people":10,"minutes":60}` // so that it still runs when the provider reports
			}
			id := c.cast(t, template, more, castNumbers(i, people)...)
			defer w.sim.ClearRules()
			if strings.HasPrefix(test.name, "1320") { // the start refuses such a template: it is paused after that
				c.must(t, 200, "PATCH", "/broadcasts/"+id, `{"pace":{"people":1,"minutes":1}}`)
				rule(whatsapptest.Match{Next: 1}, whatsapptest.Outcome{Kind: whatsapptest.Accept})
				c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
				waitFor(t, "the first", func() bool { return c.castNow(t, id).count("pending") == people-1 })
				test.before(template)
				c.must(t, 200, "PATCH", "/broadcasts/"+id, `{"pace":null}`)
			} else {
				test.before(template)
				c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
			}
			c.castUntil(t, id, test.state, test.reason)
			waitFor(t, "the counts", func() bool {
				now := c.castNow(t, id)
				return test.count == "sent" && now.count("pending") == people-1 || now.count(test.count) == test.n
			})
			if test.after != nil {
				w.sim.ClearRules()
				waitFor(t, "the fetch that the refusal caused", func() bool { // or it would take back what is reported next
					return test.reason != "template" || !strings.Contains(string(c.must(t, 200, "GET", "/templates", "")), fmt.Sprintf("%q", template))
				})
				test.after(template)
				waitFor(t, "a resume", func() bool {
					r, err := c.send("POST", "/broadcasts/"+id+"/resume", `{}`)
					return err == nil && r.status == 200
				})
				c.castUntil(t, id, "done", "")
			}
			w.settled(t)
			if test.state == "done" || test.after != nil {
				for number, n := range w.sentTo() {
					if n != 1 && strings.HasPrefix(number, castNumbers(i, 1)[0][1:6]) {
						t.Errorf("%s got %d messages", number, n)
					}
				}
			}
			c.castDelivered(t, id)
			c.castCounted(t, id)
		})
	}
	if twice := w.sim.Duplicates(); len(twice) > 0 {
		t.Errorf("sent twice: %q", twice)
	}
}

// patch changes the status of a template. quiet: the provider does not report it.
func (w *whatsApp) patch(t testing.TB, template, status string, quiet bool) {
	t.Helper()
	if err := w.sim.TemplateSet(template, "tr", whatsapptest.TemplatePatch{Status: status, Quiet: quiet}); err != nil {
		t.Fatal(err)
	}
}

// overBoth runs a test on both databases, with so many servers on PostgreSQL, and one on SQLite.
func overBoth(t *testing.T, servers int, test func(t *testing.T, w *whatsApp, nodes []*server)) {
	t.Helper()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWhatsApp(t, database(t), templatesOf(8))
			nodes := []*server{w.server}
			for name == "postgres" && len(nodes) < servers {
				nodes = append(nodes, w.serve(t))
			}
			w.connect(t, w.server, "--per-second", "1000")
			test(t, w, nodes)
		})
	}
}

// TestBroadcastKilled: servers are killed while they send, a tenth of the answers is lost, and
// a twentieth of the messages is refused for now. Nobody gets the message twice. Who is in
// doubt lost the answer, or was being sent to by a server that was killed.
func TestBroadcastKilled(t *testing.T) {
	t.Parallel()
	overBoth(t, 3, func(t *testing.T, w *whatsApp, nodes []*server) {
		w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Share: 0.05}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 131056}})
		w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Share: 0.1}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.AcceptLoseResponse, Statuses: []string{}}})
		rng := random(newSeed(t), 0)
		c := nodes[len(nodes)-1].client(t, w.key, 4)
		id := c.cast(t, greeting, `,"max_failed_percent":100`, castNumbers(2, *castRows)...)
		c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
		killed := 0
		for i := range *castKills {
			enough := (i + 1) * *castRows / (*castKills + 2)
			w.takes(t, enough)
			victim := rng.IntN(len(nodes))
			<-time.After(time.Duration(rng.IntN(20)) * time.Millisecond)
			nodes[victim].kill()
			killed++
			nodes[victim] = w.serve(t)
			c = nodes[victim].client(t, w.key, 4)
		}
		w.sim.SetWebhook(nodes[0].url+w.callbacks, waVerify)
		c.castUntil(t, id, "done", "")
		w.settled(t)
		c.caughtUp(t, id, nodes[0])
		lost := map[string]bool{}
		for _, s := range w.sim.Sends() {
			lost[strings.TrimPrefix(s.To, "+")] = s.Outcome == whatsapptest.AcceptLoseResponse
		}
		sent, doubts := w.sentTo(), 0
		for number, n := range sent {
			if n != 1 {
				t.Errorf("%s got %d messages", number, n)
			}
		}
		rows := c.castCounted(t, id)
		if len(rows) != *castRows {
			t.Errorf("there are %d rows", len(rows))
		}
		for _, r := range rows {
			number := strings.TrimPrefix(*r.To, "+")
			switch r.Status {
			case "in_doubt":
				if !lost[number] {
					doubts++
				}
			case "sent", "delivered", "read":
				if sent[number] != 1 {
					t.Errorf("%s is %s, and nothing was sent", number, r.Status)
				}
			default:
				t.Errorf("%s is %s", number, r.Status)
			}
		}
		if doubts > killed*64 {
			t.Errorf("%d are in doubt whose answer was not lost, and %d servers were killed", doubts, killed)
		}
		t.Logf("%d messages, %d kills, %d in doubt by them", len(sent), killed, doubts)
	})
}

// TestBroadcastControlled: starts at once are one run. Once a pause or a cancel from another
// node is answered, nothing is claimed any more, also not by a node that was stopped for longer
// than its lease.
func TestBroadcastControlled(t *testing.T) {
	t.Parallel()
	overBoth(t, 2, func(t *testing.T, w *whatsApp, nodes []*server) {
		c := nodes[len(nodes)-1].client(t, w.key, *castStarts)
		claimed := func(id string) int {
			now := c.castNow(t, id)
			return now.count("rows") - now.count("pending") - now.count("cancelled")
		}
		// quiet checks that no row is claimed after a call was answered.
		quiet := func(id, state, reason string) {
			t.Helper()
			before := claimed(id)
			c.castUntil(t, id, state, reason)
			if after := claimed(id); after != before {
				t.Errorf("%d rows were claimed after it was %s", after-before, state)
			}
		}
		id := c.cast(t, greeting, "", castNumbers(2, *castRows)...)
		together(*castStarts, func(int) {
			if _, err := c.expect("POST", "/broadcasts/"+id+"/start", `{}`, 200); err != nil {
				t.Error(err)
			}
		})
		for i := range *castPauses {
			enough := (i + 1) * *castRows / (*castPauses + 2)
			w.takes(t, enough)
			r, err := c.expect("POST", "/broadcasts/"+id+"/pause", `{}`, 200, 409)
			if err != nil {
				t.Fatal(err)
			}
			if r.status == 409 { // it is done
				break
			}
			quiet(id, "paused", "asked")
			c.must(t, 200, "POST", "/broadcasts/"+id+"/resume", `{}`)
		}
		for range *castStops {
			c.must(t, 200, "PATCH", "/broadcasts/"+id, `{"pace":{"people":1,"minutes":1}}`)
			victim := nodes[0]
			victim.signal(t, syscall.SIGSTOP)
			<-time.After(20 * time.Second) // longer than the lease
			if len(nodes) > 1 {
				c.must(t, 200, "POST", "/broadcasts/"+id+"/pause", `{}`)
			}
			victim.signal(t, syscall.SIGCONT)
			if len(nodes) > 1 {
				quiet(id, "paused", "asked")
				c.must(t, 200, "POST", "/broadcasts/"+id+"/resume", `{}`)
			}
			c.must(t, 200, "PATCH", "/broadcasts/"+id, `{"pace":null}`)
		}
		c.castUntil(t, id, "done", "")
		c.castDelivered(t, id)
		c.castCounted(t, id)
		for i := range *castCancels {
			id := c.cast(t, greeting, "", castNumbers(3, *castRows)...)
			before := w.sim.AcceptedTotal()
			c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
			w.takes(t, before+i%50+1)
			c.must(t, 200, "POST", "/broadcasts/"+id+"/cancel", `{}`)
			quiet(id, "cancelled", "")
			c.castDelivered(t, id)
			c.castCounted(t, id)
		}
		if twice := w.sim.Duplicates(); len(twice) > 0 {
			t.Errorf("sent twice: %q", twice)
		}
		for number, n := range w.sentTo() {
			if strings.HasPrefix(number, "90532") && n != 1 {
				t.Errorf("%s got %d messages", number, n)
			}
		}
	})
}

// TestBroadcastRows: clients post the same rows at the same time, each in another order and
// spelling. In the run, contacts are merged and separated again, deleted, and get other numbers.
// Nobody gets the message twice, by number or by contact.
func TestBroadcastRows(t *testing.T) {
	t.Parallel()
	overBoth(t, 2, func(t *testing.T, w *whatsApp, nodes []*server) {
		seed := newSeed(t)
		numbers := castNumbers(2, *castRows)
		clients := make([]*client, len(nodes))
		for i, n := range nodes {
			clients[i] = n.client(t, w.key, *castClients)
		}
		c := clients[0]
		// Every other person is a contact; every fourth one has another number, too.
		ids := make([]string, len(numbers))
		for i := 0; i < len(numbers); i += 2 {
			more := ""
			if i%4 == 0 {
				more = fmt.Sprintf(`,"identities":[{"kind":"phone","value":"+9054%08d"}]`, i)
			}
			body := c.must(t, 201, "POST", "/contacts", fmt.Sprintf(`{"external_id":"p%d","phone":%q%s}`, i, numbers[i], more))
			ids[i] = contactOf(t, body).ID
		}
		spell := func(i, how int) string {
			switch {
			case how == 1:
				return fmt.Sprintf(`{"to":{"phone":"%s %s %s"}}`, numbers[i][:3], numbers[i][3:6], numbers[i][6:])
			case how == 2 && i%2 == 0:
				return fmt.Sprintf(`{"to":{"contact_id":%q}}`, ids[i])
			case how == 3 && i%2 == 0:
				return fmt.Sprintf(`{"to":{"external_id":"p%d"}}`, i)
			case how == 4 && i%4 == 0:
				return fmt.Sprintf(`{"to":{"phone":"+9054%08d"}}`, i)
			}
			return fmt.Sprintf(`{"to":{"phone":%q}}`, numbers[i])
		}
		id := c.cast(t, greeting, "")
		together(*castClients, func(worker int) {
			rng := random(seed, uint64(worker))
			for part := range slices.Chunk(rng.Perm(len(numbers)), 1000) {
				var rows []string
				for _, i := range part {
					rows = append(rows, spell(i, rng.IntN(5)))
				}
				if _, err := clients[worker%len(clients)].expect("POST", "/broadcasts/"+id+"/rows", `{"rows":[`+strings.Join(rows, ",")+`]}`, 200); err != nil {
					t.Error(err)
				}
			}
		})
		if n := c.castNow(t, id).count("rows"); n != len(numbers) {
			t.Errorf("there are %d rows for %d people", n, len(numbers))
		}
		c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
		var all sync.WaitGroup
		var changes atomic.Int64
		for worker := range *castClients {
			all.Go(func() {
				rng := random(seed, uint64(1000+worker))
				c := clients[worker%len(clients)]
				for range max(4, *castRows/50) {
					one, other := ids[2*rng.IntN(len(ids)/2)], ids[2*rng.IntN(len(ids)/2)]
					switch rng.IntN(4) {
					case 0:
						if r, err := c.send("POST", "/contacts/"+one+"/merge", fmt.Sprintf(`{"from":%q}`, other)); err == nil && r.status < 300 {
							changes.Add(1)
							if rng.IntN(2) == 0 {
								merge := decode[struct{ Data struct{ ID string } }](t, r.body).Data.ID
								_, _ = c.send("POST", "/merges/"+merge+"/undo", `{}`)
							}
						}
					case 1:
						if r, err := c.send("DELETE", "/contacts/"+one, ""); err == nil && r.status == 204 {
							changes.Add(1)
						}
					default:
						if r, err := c.send("PATCH", "/contacts/"+one, fmt.Sprintf(`{"phone":%q}`, numbers[rng.IntN(len(numbers))])); err == nil && r.status == 200 {
							changes.Add(1)
						}
					}
				}
			})
		}
		all.Wait()
		c.castUntil(t, id, "done", "")
		w.settled(t)
		for number, n := range w.sentTo() {
			if n != 1 {
				t.Errorf("%s got %d messages", number, n)
			}
		}
		c.castDelivered(t, id)
		skipped := map[string]int{}
		for _, r := range c.castCounted(t, id) {
			if r.Reason != nil {
				skipped[*r.Reason]++
			}
		}
		t.Logf("%d rows, %d changes; skipped: %v", len(numbers), changes.Load(), slices.Sorted(maps.Keys(skipped)))
	})
}

// TestBroadcastErased: contacts are deleted while a broadcast sends to them, and while it is paused.
// After that, no table has anything of them. Nobody gets the message twice.
func TestBroadcastErased(t *testing.T) {
	t.Parallel()
	overBoth(t, 2, func(t *testing.T, w *whatsApp, nodes []*server) {
		w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Share: 0.1}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 131056}})
		w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Share: 0.2}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.AcceptLoseResponse}})
		people := 4 * *castErased
		c, other := nodes[0].client(t, w.key, 4), nodes[len(nodes)-1].client(t, w.key, 4)
		word := func(kind string, n int) string { return fmt.Sprintf("%s-of-person-%05d", kind, n) }
		made := func(n int) string {
			return contactOf(t, c.must(t, 201, "POST", "/contacts", fmt.Sprintf(`{"external_id":%q,"phone":%q,"name":%q}`, word("external", n), phoneOf(n), word("name", n)))).ID
		}
		draft := c.must(t, 201, "POST", "/broadcasts", `{"name":"Spring","template":{"name":"`+greeting+`","language":"tr"},"consent":{"confirmed":true},"max_failed_percent":100}`)
		id := decode[struct{ Data cast }](t, draft).Data.ID
		// A row names a contact by its number or its id, or a number that only later is a contact's:
		// before the start, or when the message is sent.
		var rows []string
		for n := range people {
			to := fmt.Sprintf(`{"phone":%q}`, phoneOf(n))
			switch n % 4 {
			case 0:
				made(n)
			case 1:
				to = fmt.Sprintf(`{"contact_id":%q}`, made(n))
			}
			rows = append(rows, fmt.Sprintf(`{"to":%s,"variables":{"musteri_adi":%q},"contact":{"name":%q}}`, to, word("text", n), word("newname", n)))
		}
		for part := range slices.Chunk(rows, 1000) {
			c.must(t, 200, "POST", "/broadcasts/"+id+"/rows", `{"rows":[`+strings.Join(part, ",")+`]}`)
		}
		var gone []int
		for n := range people {
			if n%4 == 2 {
				made(n)
			}
			if n%16 < 4 { // some of each kind
				gone = append(gone, n)
			}
		}
		erase := func(some []int) {
			together(4, func(worker int) {
				for i := worker; i < len(some); i += 4 {
					r, err := other.expect("POST", "/contacts", fmt.Sprintf(`{"phone":%q}`, phoneOf(some[i])), 200, 201) // its id
					if err != nil {
						t.Error(err)
						continue
					}
					if _, err := other.expect("DELETE", "/contacts/"+contactOf(t, r.body).ID, "", 204); err != nil {
						t.Error(err)
					}
				}
			})
		}
		forgotten := func(some []int) {
			t.Helper()
			left := []string{""}
			for stop := time.Now().Add(patience); len(left) > 0; <-time.After(100 * time.Millisecond) { // a callback can be on its way
				left = nil
				subject := false
				for table, content := range w.dump(t) {
					found := tracesIn(content)
					subject = subject || found[word("text", people-1)]
					for _, n := range some {
						for _, trace := range []string{word("external", n), word("name", n), word("text", n), word("newname", n), strings.TrimPrefix(phoneOf(n), "+")} {
							if found[trace] {
								left = append(left, table+" has "+trace)
							}
						}
					}
				}
				if !subject {
					t.Fatal("the one who stays is not found: the test has lost its subject")
				}
				if time.Now().After(stop) {
					t.Fatalf("left of those who are deleted: %q", left)
				}
			}
		}
		third := len(gone) / 3
		c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
		w.takes(t, people/8)
		erase(gone[:third])
		c.must(t, 200, "POST", "/broadcasts/"+id+"/pause", `{}`)
		then := c.castNow(t, id).Counts
		forgotten(gone[:third])
		erase(gone[third : 2*third])
		forgotten(gone[:2*third])
		c.must(t, 200, "POST", "/broadcasts/"+id+"/resume", `{}`)
		erase(gone[2*third:])
		c.castUntil(t, id, "done", "")
		w.settled(t)
		forgotten(gone)
		for number, n := range w.sentTo() {
			if n != 1 {
				t.Errorf("%s got %d messages", number, n)
			}
		}
		c.castCounted(t, id)
		for _, n := range nodes {
			n.stop(t)
		}
		forgotten(gone)
		t.Logf("%d of %d people are deleted, a third of them in the run, and the next when it was paused: %v", len(gone), people, then)
	})
}
