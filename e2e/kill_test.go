package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

var kills = flag.Int("kills", 3, "how often TestKill kills the server during writes. Long run: -kills 50")

// A set is a few contacts that one writer writes together, in one request. The number of
// the write is the note of each contact. A set of one contact is written without a batch.
type set struct {
	name        string // of its first contact: the contacts have the external ids NAME.0, NAME.1 and so on
	size        int
	acked, sent int    // the number of the last acknowledged write, and of the last write that was sent
	id          string // the id of the contact, if the set has only one
}

// TestKill kills the server while 32 writers use it. It starts the server again on the
// same directory, and checks that it has kept what it acknowledged. A note must be from
// the last acknowledged write, or from the write that was running at the kill. All
// contacts of a set must have the same note.
func TestKill(t *testing.T) {
	t.Parallel()
	const (
		writers = 32
		atOnce  = 20 // the size of a batch
		newSets = 8  // the number of sets that each writer begins between two kills
	)
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	seed := newSeed(t)
	rng := random(seed, 0)
	var sets [writers][]*set
	total, started := 0, 0
	s := serve(t, dir)
	for kill := range *kills {
		for w := range sets {
			for n := range newSets {
				one := &set{name: fmt.Sprintf("%d-%d-%d", kill, w, n), size: 1}
				if w%4 == 3 {
					one.size = atOnce
				}
				sets[w] = append(sets[w], one)
			}
		}

		// The server is killed after this many responses. At this moment it may be
		// anywhere in its work for the next response.
		c := s.client(t, key, writers)
		due, after := make(chan struct{}), int32(1+rng.IntN(2000))
		go func() {
			select {
			case <-due:
			case <-time.After(patience):
				t.Error("the writers are stuck")
			}
			<-time.After(time.Duration(rng.IntN(5000)) * time.Microsecond)
			s.kill()
		}()
		var acked atomic.Int32
		together(writers, func(w int) {
			rng := random(seed, uint64(1+kill*writers+w))
			for {
				recent := sets[w][max(0, len(sets[w])-2*newSets):]
				one := recent[rng.IntN(len(recent))]
				one.sent++
				r, err := one.write(c, rng)
				if err != nil {
					select {
					case <-due: // the kill is due, so the error is expected
					default:
						t.Errorf("kill %d: before it was killed: %v", kill, err)
					}
					return
				}
				if r.status >= 300 || one.size > 1 && summaryOf(t, r.body).Errors > 0 {
					t.Errorf("kill %d: a write of %+v answers %d: %.500s", kill, one, r.status, r.body)
				} else if one.acked = one.sent; one.size == 1 {
					one.id = contactOf(t, r.body).ID
				}
				if acked.Add(1) == after {
					close(due)
				}
			}
		})
		<-s.exited
		total += int(acked.Load())

		if rng.IntN(2) == 0 { // the next start is killed as well, at some moment of its recovery
			p := launch(t, nil, "serve", "--data", dir, "--listen", "127.0.0.1:0")
			<-time.After(time.Duration(rng.IntN(60)) * time.Millisecond)
			p.kill()
			started++
		}
		s = serve(t, dir)
		notes := map[string]string{}
		for _, one := range s.client(t, key, 1).contacts(t) {
			notes[one.ExternalID] = one.Note
		}
		for w := range sets {
			for _, one := range sets[w] {
				if err := one.check(notes); err != nil {
					t.Errorf("kill %d: %v", kill, err)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	s.stop(t)
	wantSound(t, dir)
	t.Logf("%d kills among %d acknowledged writes, and %d of a start", *kills, total, started)
}

// write sends the next write of the set.
func (s *set) write(c *client, rng *rand.Rand) (reply, error) {
	if s.size > 1 {
		rows := make([]string, s.size)
		for i := range rows {
			rows[i] = s.row(i)
		}
		return c.send("POST", "/contacts/batch", upserts(rows))
	}
	if s.id != "" && rng.IntN(2) == 0 {
		return c.send("PATCH", "/contacts/"+s.id, fmt.Sprintf(`{"note":"%d"}`, s.sent))
	}
	return c.send("POST", "/contacts", s.row(0))
}

func (s *set) row(i int) string {
	return fmt.Sprintf(`{"external_id":"%s.%d","email":"%s.%d@example.com","note":"%d"}`, s.name, i, s.name, i, s.sent)
}

// check compares the set with the notes on the server; the note "" means that there is no
// contact. The set then goes on from the stored notes.
func (s *set) check(notes map[string]string) error {
	note := notes[s.name+".0"]
	for i := range s.size {
		if other := notes[fmt.Sprintf("%s.%d", s.name, i)]; other != note {
			return fmt.Errorf("torn: %s.0 has the note %q, and %s.%d has %q", s.name, note, s.name, i, other)
		}
	}
	stored := 0
	if note != "" {
		stored, _ = strconv.Atoi(note)
	}
	if stored < s.acked || stored > s.sent {
		return fmt.Errorf("lost: %s has the note %q; write %d was acknowledged and %d sent", s.name, note, s.acked, s.sent)
	}
	s.acked, s.sent = stored, stored
	return nil
}
