package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
)

var raceRounds = flag.Int("race-rounds", 200, "how many people TestRace makes by racing clients. Long run: -race-rounds 10000")

// handles is the number of a person's identities. Two sets of manyHandles identities
// always have one in common. So the second writer of a person always names the contact
// that the first writer made.
const (
	handles     = 5
	manyHandles = handles/2 + 1
)

// TestRace: 64 clients write the same people at the same time. Each client names a person
// by some of the identities, in its own order and spelling. In each round, 44 clients
// write a new person. 16 clients update the person of the previous round, some of them by
// only one identity. 4 clients mix identities of the people of the two previous rounds.
func TestRace(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	race(t, serve(t, dir).client(t, key, racers))
}

const racers = 64

// race is TestRace over the given nodes. The clients use the nodes in turn.
func race(t *testing.T, nodes ...*client) {
	t.Helper()
	const clients = racers
	c := nodes[0]
	seed := newSeed(t)
	ids := make([]string, *raceRounds)

	for round := range *raceRounds {
		var writes [clients]string
		var person [clients]int // the number of the person that each client writes; -1: two people
		rng := random(seed, uint64(round))
		for i := range clients {
			switch {
			case round < 2 || i < 44:
				person[i] = round
				writes[i] = personJSON(rng, pick(rng, round, manyHandles+rng.IntN(handles-manyHandles+1)))
			case i < 60:
				person[i] = round - 1
				writes[i] = personJSON(rng, pick(rng, round-1, 1+rng.IntN(handles)))
			default:
				person[i] = -1
				writes[i] = personJSON(rng, append(pick(rng, round-1, 1), pick(rng, round-2, 1+rng.IntN(handles))...))
			}
		}
		writes[0] = personJSON(rng, pick(rng, round, handles)) // this write has all identities, so the person gets all of them

		var created atomic.Int32
		var made [clients]string
		together(clients, func(i int) {
			wanted := []int{200}
			switch person[i] {
			case round:
				wanted = []int{200, 201}
			case -1:
				wanted = []int{409}
			}
			r, err := nodes[i%len(nodes)].expect("POST", "/contacts", writes[i], wanted...)
			if err != nil {
				t.Errorf("round %d: %v", round, err)
				return
			}
			if r.status == 201 {
				created.Add(1)
			}
			if r.status != 409 {
				made[i] = contactOf(t, r.body).ID
			}
		})
		ids[round] = made[0]
		if n := created.Load(); n != 1 {
			t.Errorf("round %d: the person was created %d times", round, n)
		}
		for i, p := range person {
			if p >= 0 && made[i] != ids[p] {
				t.Errorf("round %d: %s\nmade %s of person %d, who is %s", round, writes[i], made[i], p, ids[p])
			}
		}
		if t.Failed() {
			return
		}
	}

	if n := len(c.contacts(t)); n != *raceRounds {
		t.Errorf("%d contacts of %d people", n, *raceRounds)
	}
	type list struct {
		Data []struct{ Kind, Value string }
	}
	for p, id := range ids {
		held := decode[list](t, c.must(t, 200, "GET", "/contacts/"+id+"/identities", "")).Data
		numbers := map[string]bool{} // a phone and a chat account with the same number are one handle
		for _, h := range held {
			if h.Kind == "whatsapp" {
				h.Kind = "phone"
			}
			numbers[h.Kind+h.Value] = true
		}
		if len(numbers) != handles {
			t.Errorf("person %d has %+v, want %d handles", p, held, handles)
		}
	}
}

// A handle is an identity in a request.
type handle struct{ kind, value string }

// pick chooses n of a person's identities, in any order and spelling.
func pick(rng *rand.Rand, person, n int) []handle {
	line := fmt.Sprintf("%07d", person)
	all := []handle{
		{"external_id", fmt.Sprintf("person-%d", person)},
		{"email", fmt.Sprintf("Person.%d@Example.com", person)},
		{"whatsapp_user", fmt.Sprintf("DE.%d", person)},
		{"crm", fmt.Sprintf("crm/%d", person)},
		choose(rng, handle{"phone", "+4930" + line}, handle{"phone", "+49 (30) " + line[:3] + "-" + line[3:]}, handle{"phone", "0049.30." + line},
			handle{"phone", "49 30/" + line}, handle{"whatsapp", "4930" + line}),
	}
	all[1].value = choose(rng, all[1].value, strings.ToLower(all[1].value), strings.ToUpper(all[1].value), "  "+all[1].value+" ")
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

func choose[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// personJSON returns the body of a write. Some identities have a field of their own. Such
// an identity is sometimes written as the field, sometimes as a further identity.
func personJSON(rng *rand.Rand, identities []handle) string {
	type further struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}
	body := map[string]any{}
	var list []further
	for _, h := range identities {
		field := h.kind == "external_id" || h.kind == "email" || h.kind == "phone"
		if _, taken := body[h.kind]; field && !taken && rng.IntN(2) == 0 {
			body[h.kind] = h.value
			continue
		}
		list = append(list, further{h.kind, h.value})
	}
	if list != nil {
		body["identities"] = list
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}
