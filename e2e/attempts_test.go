package e2e_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

var releasedTwice = flag.Int("released-twice", 8, "how many attempts in doubt TestReleasedTwice has, each of which two nodes settle at once")

// TestReleasedTwice: two nodes settle each attempt in doubt at the same time, in the same
// way or in different ways. Only one of the two decisions counts, and both callers learn
// which. The message is stored at most once.
func TestReleasedTwice(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := newDeployment(t)
		ws, key := d.workspace(t)
		d.sandbox(t, ws)
		nodes := d.nodes(t)
		var settle [2]func(string, bool) (int, string)
		for i, n := range nodes {
			settle[i] = n.client(t, key, 8).release
		}
		releaseTwice(t, nodes[0].client(t, key, 8), settle)
	})
	t.Run("sqlite", func(t *testing.T) { // with SQLite, a command takes the place of the second server
		t.Parallel()
		d := deployment{dir: newDir(t)}
		ws, key := d.workspace(t)
		d.sandbox(t, ws)
		c := serve(t, d.dir).client(t, key, 8)
		releaseTwice(t, c, [2]func(string, bool) (int, string){c.release, func(id string, sent bool) (int, string) {
			how := map[bool]string{true: "--sent", false: "--not-sent"}[sent]
			switch r := parley(t, nil, "attempt", "release", id, how, "--data", d.dir); {
			case r.code == 0:
				return http.StatusOK, ""
			case strings.Contains(r.stderr, "no unsettled attempt"): // the other decision came first
				return 0, ""
			default:
				return http.StatusConflict, r.stderr
			}
		}})
	})
}

// release settles an attempt.
func (c *client) release(id string, sent bool) (int, string) {
	r, err := c.send("POST", "/attempts/"+id+"/release", fmt.Sprintf(`{"sent":%t}`, sent))
	if err != nil {
		return -1, err.Error()
	}
	return r.status, string(r.body)
}

func releaseTwice(t *testing.T, c *client, settle [2]func(string, bool) (int, string)) {
	t.Helper()
	type attempt struct {
		ID        string `json:"attempt_id"`
		Phase     string
		MessageID *string `json:"message_id"`
		phone     string
	}
	var list []attempt
	for n := range *releasedTwice {
		phone := fmt.Sprintf("+49301%02d0003", n)
		r, err := c.send("POST", "/conversations/outbound", `{"to":{"phone":"`+phone+`"},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`, "Idempotency-Key", fmt.Sprint("lost ", n))
		if err != nil || r.status != 503 || !strings.Contains(string(r.body), "send_outcome_unknown") {
			t.Fatalf("%d %s %v", r.status, r.body, err)
		}
		list = append(list, attempt{ID: decode[struct {
			Error struct {
				Details struct {
					ID string `json:"attempt_id"`
				}
			}
		}](t, r.body).Error.Details.ID, phone: phone})
	}
	for n, at := range list {
		as := [2]bool{n&1 != 0, n&2 != 0}
		var statuses [2]int
		var bodies [2]string
		together(2, func(i int) { statuses[i], bodies[i] = settle[i](at.ID, as[i]) })
		got := decode[struct{ Data attempt }](t, c.must(t, 200, "GET", "/attempts/"+at.ID, "")).Data
		for i := range 2 {
			want := http.StatusConflict
			if as[i] == (got.Phase == "done") {
				want = http.StatusOK
			}
			if statuses[i] != want && statuses[i] != 0 {
				t.Errorf("attempt %d is %s; node %d says sent %t: %d %s", n, got.Phase, i, as[i], statuses[i], bodies[i])
			}
		}
		if got.Phase != "done" && got.Phase != "released" || as[0] == as[1] && as[0] != (got.Phase == "done") {
			t.Errorf("attempt %d, settled as %v, is %s", n, as, got.Phase)
		}
		stored := 0
		if page := string(c.must(t, 200, "GET", "/contacts?phone="+url.QueryEscape(at.phone), "")); page != `{"data":[]}` {
			stored = c.messagesTo(t, at.phone)
		}
		if stored != map[string]int{"done": 1}[got.Phase] || (got.MessageID != nil) != (stored == 1) {
			t.Errorf("attempt %d is %s, and %d messages are stored", n, got.Phase, stored)
		}
	}
}
