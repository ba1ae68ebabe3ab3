//go:build unix

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/whatsapp/whatsapptest"
)

var (
	against       = flag.String("against", "", "the binary of an earlier commit that TestAgainst compares with; by default the one under test. Long run, which checks the goal: -against FILE -against-rounds 9 -speed 1s -parallel 1 -timeout 60m")
	againstRounds = flag.Int("against-rounds", 1, "how often TestAgainst measures each binary; see -against")
)

// A contender is a server that TestAgainst measures.
type contender struct {
	c       *client
	channel string
	sim     *whatsapptest.Simulator
	s       *server
	next    atomic.Int64
}

// newContender starts a server of a program, with a sandbox and a number of WhatsApp.
func newContender(t *testing.T, program string, d deployment) *contender {
	t.Helper()
	v := &contender{sim: whatsapptest.New(whatsapptest.Config{Token: waToken, AppSecret: waAppSecret, VerifyToken: waVerify, Templates: templatesOf(1)})}
	graph := httptest.NewServer(v.sim)
	t.Cleanup(func() {
		v.sim.Close()
		graph.Close()
	})
	command := func(args ...string) (answer map[string]any) {
		t.Helper()
		r := runProgram(t, program, []string{"WA_TOKEN=" + waToken, "WA_SECRET=" + waAppSecret, "WA_VERIFY=" + waVerify}, append(args, "--data", d.dir, "--database", d.database, "--json")...)
		if err := json.Unmarshal([]byte(r.stdout), &answer); r.code != 0 || err != nil {
			t.Fatalf("parley %s: exit %d, %v\n%s%s", strings.Join(args, " "), r.code, err, r.stdout, r.stderr)
		}
		return answer
	}
	ws := command("workspace", "create", "--name", "Test", "--country", "TR")["workspace_id"].(string)
	key := command("key", "create", "--workspace", ws, "--name", "test", "--permissions", "all")["key"].(string)
	v.channel = command("channel", "add", "sandbox", "--workspace", ws)["channel_id"].(string)
	file := filepath.Join(t.TempDir(), "template.json")
	check(t, os.WriteFile(file, []byte(`{"name":"hello","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"BODY","text":"Hello!"}]}`), 0o600))
	command("template", "put", "--channel", v.channel, "--file", file)
	s := serveProgram(t, program, nil, "--data", d.dir, "--database", d.database)
	v.c = s.client(t, key, 64)
	v.s = s
	ids := v.sim.IDs()
	number := command("channel", "add", "whatsapp", "--workspace", ws, "--phone-number-id", ids.PhoneNumberID, "--waba-id", ids.BusinessID,
		"--app-secret-env", "WA_SECRET", "--token-env", "WA_TOKEN", "--verify-token-env", "WA_VERIFY", "--graph-url", graph.URL)["channel_id"].(string)
	v.sim.SetWebhook(s.url+"/hooks/whatsapp/"+number, waVerify)
	check(t, v.sim.VerifyWebhook(t.Context()))
	return v
}

func (v *contender) creates() error {
	n := v.next.Add(1)
	_, err := v.c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"s-%d","email":"s.%d@example.com","phone":"+9053%08d","name":"Speed %d"}`, n, n, n, n), 201)
	return err
}

func (v *contender) batches() error {
	first := v.next.Add(1000) - 1000
	rows := make([]string, 1000)
	for i := range rows {
		n := first + int64(i)
		rows[i] = fmt.Sprintf(`{"external_id":"s-%d","email":"s.%d@example.com","phone":"+9053%08d","name":"Speed %d"}`, n, n, n, n)
	}
	_, err := v.c.expect("POST", "/contacts/batch", upserts(rows), 200)
	return err
}

func (v *contender) sends() error {
	n := v.next.Add(1)
	_, err := v.c.sentTo("/conversations/outbound", fmt.Sprint("speed-", n), fmt.Sprintf(`{"channel_id":%q,"to":{"phone":"+9054%07d9"},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`, v.channel, n))
	return err
}

// hears takes a message from one of a thousand customers in.
func (v *contender) hears() error {
	n := v.next.Add(1)
	if status := v.sim.Inbound(whatsapptest.Inbound{From: fmt.Sprintf("90555%07d", n%1000), Text: fmt.Sprint("Hello ", n)}).Wait(); status != 200 {
		return fmt.Errorf("a callback is answered %d", status)
	}
	return nil
}

// turn returns how many calls a second are answered, or done, if they are done later. It waits
// until the server has nothing left to do, such as for the search: else that would slow the other
// contender down.
func (v *contender) turn(t *testing.T, clients int, do func(*contender) error, later bool) float64 {
	t.Helper()
	first, began := v.next.Load(), time.Now()
	answered := rate(t, clients, func() error { return do(v) })
	const pause = 200 * time.Millisecond
	for spent := v.s.cpu(t); ; {
		<-time.After(pause)
		now := v.s.cpu(t)
		if now-spent < pause/10 || time.Since(began) > 10*patience {
			break
		}
		spent = now
	}
	if !later {
		return answered
	}
	return float64(v.next.Load()-first) / (time.Since(began) - pause).Seconds()
}

// TestAgainst compares the speed of the server with that of an earlier one, in turns.
func TestAgainst(t *testing.T) {
	t.Parallel()
	before := *against
	if before == "" {
		before = binary
	}
	onBothStores(t, func(t *testing.T, d deployment) {
		other := deployment{dir: newDir(t)}
		if d.database != "" {
			other = newDeployment(t)
		}
		both := [2]*contender{newContender(t, before, other), newContender(t, binary, d)}
		for _, m := range []struct {
			name    string
			clients int
			do      func(*contender) error
			later   bool // it is done after the answer
		}{
			{"sends/64", 64, (*contender).sends, false},
			{"inbound/16", 16, (*contender).hears, true},
			{"create/64", 64, (*contender).creates, false},
			{"batch/4", 4, (*contender).batches, false},
		} {
			var rates [2][]float64
			for round := range *againstRounds {
				for turn := range both {
					i := (turn + round) % 2
					rates[i] = append(rates[i], both[i].turn(t, m.clients, m.do, m.later))
				}
			}
			t.Logf("%s a second: before %.0f, now %.0f", m.name, rates[0], rates[1])
			ratio := median(rates[1]) / median(rates[0])
			defer wantRatio(t, *against != "" && *againstRounds >= 9, m.name, ratio, true, 0.98) // a failure would end what is measured next
		}
	})
}
