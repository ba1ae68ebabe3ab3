package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	mergeKills = flag.Int("merge-kills", 2, "how often TestMergesKilled kills a server. Long run: -merge-kills 50 -merge-ring 64 -timeout 1h")
	mergeRing  = flag.Int("merge-ring", 8, "how many contacts and clients TestMergesKilled has; see -merge-kills")
)

// TestMergesKilled: clients merge contacts that stand in a ring, undo merges, and send
// messages to the contacts' numbers, while servers are killed. What was acknowledged is
// there after each kill: merges, undone merges, messages. No identity, conversation or
// message is lost or there twice. When all merges are undone, each contact is as it was.
func TestMergesKilled(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		d.sandbox(t, ws)
		nodes := make([]*server, 1)
		if d.database != "" {
			nodes = make([]*server, 2)
		}
		clients := make([]*client, len(nodes))
		start := func(i int) {
			nodes[i] = serve(t, d.dir, "--database", d.database)
			clients[i] = nodes[i].client(t, key, *mergeRing)
		}
		for i := range nodes {
			start(i)
		}
		r := newMergeRun(t, clients[0])
		before := r.picture(t, clients[0])

		seed, total := newSeed(t), 0
		rng := random(seed, 0)
		for kill := range *mergeKills {
			victim, after := rng.IntN(len(nodes)), int32(1+rng.IntN(8**mergeRing))
			due, killed := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(killed)
				select {
				case <-due:
				case <-time.After(patience):
					t.Error("the clients are stuck")
				}
				<-time.After(time.Duration(rng.IntN(5000)) * time.Microsecond)
				nodes[victim].kill()
			}()
			var answers atomic.Int32
			together(*mergeRing, func(i int) {
				rng := random(seed, uint64(1+kill**mergeRing+i))
				for {
					answered, err := r.act(clients[i%len(clients)], rng, i)
					if err != nil {
						t.Errorf("kill %d: %v", kill, err)
					}
					select {
					case <-killed:
						return
					default:
					}
					if answered {
						if answers.Add(1) == after {
							close(due)
						}
						continue
					}
					select { // only a server that is being killed doesn't answer
					case <-due:
					default:
						t.Errorf("kill %d: no answer before it", kill)
					}
					<-killed
					return
				}
			})
			<-killed
			total += int(answers.Load())
			start(victim)
			r.check(t, clients[victim])
			if t.Failed() {
				return
			}
		}
		r.undoAll(t, clients[0])
		r.check(t, clients[0])
		if after := r.picture(t, clients[0]); !slices.Equal(after, before) {
			t.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
		t.Logf("%d kills among %d answers: %d merges, %d messages, %d sends without an answer", *mergeKills, total, len(r.merges), len(r.messages), r.lost)
	})
}

// A mergeRun is a ring of contacts, and what servers have acknowledged about them.
type mergeRun struct {
	ids   []string          // of the contacts
	talks map[string]string // the contact of each first conversation
	held  int               // how many identities all contacts have

	mu       sync.Mutex
	merges   map[string]bool // whether it was undone, by id
	unsure   map[string]bool // merges whose undoing may have been lost with its answer
	messages map[string]bool // by id
	sends    int
	lost     int // how many sends had no answer
}

// newMergeRun makes the contacts. Each has a conversation with a message.
func newMergeRun(t *testing.T, c *client) *mergeRun {
	t.Helper()
	r := &mergeRun{ids: make([]string, *mergeRing), talks: map[string]string{}, merges: map[string]bool{}, unsure: map[string]bool{}, messages: map[string]bool{}}
	for i := range r.ids {
		body := fmt.Sprintf(`{"external_id":"ring-%d","name":"Ring %d","email":"ring%d@example.com","phone":%q}`, i, i, i, phoneOf(i))
		r.ids[i] = contactOf(t, c.must(t, 201, "POST", "/contacts", body)).ID
		if _, err := r.send(c, i); err != nil {
			t.Fatal(err)
		}
		for _, conversation := range listed(t, c, "/contacts/"+r.ids[i]+"/conversations") {
			r.talks[conversation] = r.ids[i]
		}
		r.held += len(identitiesOf(t, c, r.ids[i]))
	}
	return r
}

// act makes a request for the contact with this number in the ring, or its neighbour. It
// returns whether the server has answered.
func (r *mergeRun) act(c *client, rng *rand.Rand, i int) (answered bool, err error) {
	from := (i + rng.IntN(2)) % len(r.ids)
	switch rng.IntN(4) {
	case 0:
		return r.send(c, from)
	case 1:
		return r.undo(c, r.inForce(rng))
	}
	answer, err := c.send("POST", "/contacts/"+r.ids[(from+1)%len(r.ids)]+"/merge", `{"from":"`+r.ids[from]+`"}`)
	switch {
	case err != nil:
		return false, nil
	case answer.status == http.StatusOK:
		var merge struct{ Data struct{ ID string } }
		if err := json.Unmarshal(answer.body, &merge); err != nil {
			return true, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, known := r.merges[merge.Data.ID]; !known { // else another client may have undone it by now
			r.merges[merge.Data.ID] = false
		}
		return true, nil
	case answer.status == http.StatusNotFound: // one of the two is part of another contact
		return true, nil
	}
	return true, fmt.Errorf("a merge is answered %d %s", answer.status, answer.body)
}

// inForce chooses a merge that was not undone, as far as the clients know.
func (r *mergeRun) inForce(rng *rand.Rand) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for id, undone := range r.merges {
		if !undone {
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return list[rng.IntN(len(list))]
}

// undo undoes a merge, unless the id is "".
func (r *mergeRun) undo(c *client, id string) (answered bool, err error) {
	if id == "" {
		return true, nil
	}
	r.mu.Lock()
	r.unsure[id] = true
	r.mu.Unlock()
	answer, err := c.send("POST", "/merges/"+id+"/undo", "{}")
	switch {
	case err != nil:
		return false, nil
	case answer.status == http.StatusOK:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.merges[id] = true
		return true, nil
	case answer.status == http.StatusConflict: // a newer merge comes first
		return true, nil
	}
	return true, fmt.Errorf("undoing %s is answered %d %s", id, answer.status, answer.body)
}

// send sends a message to the number that a contact of the ring had at the beginning.
func (r *mergeRun) send(c *client, i int) (answered bool, err error) {
	r.mu.Lock()
	r.sends++
	key := fmt.Sprintf("ring-%d", r.sends)
	r.mu.Unlock()
	answer, err := c.send("POST", "/conversations/outbound", helloTo(phoneOf(i)), "Idempotency-Key", key)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.lost++
		return false, nil
	case answer.status != http.StatusCreated:
		return true, fmt.Errorf("a send is answered %d %s", answer.status, answer.body)
	}
	var sent struct {
		Data struct {
			Message struct{ ID string }
		}
	}
	if err := json.Unmarshal(answer.body, &sent); err != nil {
		return true, err
	}
	r.messages[sent.Data.Message.ID] = true
	return true, nil
}

// check compares what is stored with what was acknowledged.
func (r *mergeRun) check(t *testing.T, c *client) {
	t.Helper()
	stored := map[string]bool{}
	c.eachPage(t, "/merges?limit=200", func(body []byte) {
		for _, m := range decode[struct {
			Data []struct {
				ID       string
				UndoneAt *string `json:"undone_at"`
			}
		}](t, body).Data {
			stored[m.ID] = m.UndoneAt != nil
		}
	})
	for id, undone := range r.merges {
		if is, there := stored[id]; !there || undone && !is || is && !r.unsure[id] {
			t.Errorf("the merge %s, whose undoing was acknowledged: %v, is stored: %v, undone: %v", id, undone, there, is)
		}
	}
	r.merges = stored // with those whose answers were lost

	left := map[string]bool{}
	held, talks, messages := map[string]int{}, map[string]int{}, map[string]int{}
	var parts []string
	for _, id := range r.ids {
		answer, err := c.expect("GET", "/contacts/"+id, "", 200, 404)
		if err != nil {
			t.Fatal(err)
		}
		if answer.status == http.StatusNotFound {
			parts = append(parts, decode[struct {
				Error struct {
					Details struct {
						Into string `json:"merged_into"`
					}
				}
			}](t, answer.body).Error.Details.Into)
			continue
		}
		left[id] = true
		for _, one := range identitiesOf(t, c, id) {
			held[one]++
		}
		for _, talk := range listed(t, c, "/contacts/"+id+"/conversations") {
			talks[talk]++
			for _, message := range listed(t, c, "/conversations/"+talk+"/messages") {
				messages[message]++
			}
		}
	}
	for _, into := range parts {
		if !left[into] {
			t.Errorf("a contact is part of %q, which is not there", into)
		}
	}
	if len(held) != r.held {
		t.Errorf("%d identities are there, want %d", len(held), r.held)
	}
	for talk := range r.talks {
		if talks[talk] == 0 {
			t.Errorf("the conversation %s is lost", talk)
		}
	}
	for message := range r.messages {
		if messages[message] == 0 {
			t.Errorf("the message %s is lost", message)
		}
	}
	if n := len(messages); n > len(r.messages)+r.lost {
		t.Errorf("%d messages are there; %d sends were answered, and %d were not", n, len(r.messages), r.lost)
	}
	for _, of := range []map[string]int{held, talks, messages} {
		for what, n := range of {
			if n > 1 {
				t.Errorf("%s is there %d times", what, n)
			}
		}
	}
}

// undoAll undoes all merges.
func (r *mergeRun) undoAll(t *testing.T, c *client) {
	t.Helper()
	for more := true; more; {
		more = false
		for id, undone := range r.merges {
			if undone {
				continue
			}
			more = true
			if _, err := r.undo(c, id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// picture returns what each contact is, and whose the first conversations are.
func (r *mergeRun) picture(t *testing.T, c *client) (lines []string) {
	t.Helper()
	for _, id := range r.ids {
		one := decode[struct{ Data map[string]any }](t, c.must(t, 200, "GET", "/contacts/"+id, "")).Data
		delete(one, "updated_at")
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(string(text), " ", identitiesOf(t, c, id)))
		for _, talk := range listed(t, c, "/contacts/"+id+"/conversations") {
			if whose, first := r.talks[talk]; first && whose != id {
				t.Errorf("the conversation %s of %s belongs to %s", talk, whose, id)
			}
		}
	}
	return lines
}

// listed returns the ids of a list.
func listed(t *testing.T, c *client, path string) (ids []string) {
	t.Helper()
	c.eachPage(t, path+"?limit=200", func(body []byte) {
		for _, one := range decode[struct{ Data []struct{ ID string } }](t, body).Data {
			ids = append(ids, one.ID)
		}
	})
	return ids
}

// identitiesOf returns a contact's identities, each as KIND:VALUE.
func identitiesOf(t *testing.T, c *client, id string) (list []string) {
	t.Helper()
	for _, one := range decode[struct {
		Data []struct{ Kind, Value string }
	}](t, c.must(t, 200, "GET", "/contacts/"+id+"/identities", "")).Data {
		list = append(list, one.Kind+":"+one.Value)
	}
	return list
}
