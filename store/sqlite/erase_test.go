package sqlite

import (
	"bytes"
	"context"
	"errors"
	goflag "flag" // this package has a function named flag
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

var erased = goflag.Int("erased", 4, "how many people TestErasedPeopleLeaveTheFile stores, of whom it deletes two thirds. Long run: -run TestErasedPeopleLeaveTheFile/seed=0 -erased 2000")

// A trace is the data of one person in the database: words that no other person has.
type trace struct {
	id    desk.ID
	n     int
	words map[string]bool // every word that was ever stored
}

func (p *trace) word(kind string) string {
	w := fmt.Sprintf("%s-of-person-%05d-", kind, p.n)
	p.words[w] = true
	return w
}

func (p *trace) phone() string {
	number := fmt.Sprintf("1202555%05d", p.n)
	p.words[number] = true
	return number
}

// write returns an upsert with a note of some length, and with all other values of a
// person.
func (p *trace) write(length int) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	w := &op.Write
	set := func(v string) desk.Field[string] { return desk.Field[string]{Set: true, Value: v} }
	w.Email, w.Phone, w.Name = set(p.word("email")+"@example.com"), set(p.phone()), set(p.word("name"))
	w.Note = set(strings.Repeat(p.word("note"), 1+length/20))
	further := desk.Identity{Kind: "crm", Value: strings.Repeat(p.word("crm"), 1+length%3*200)} // long ones are stored in large_values, short ones are not
	w.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{further}}
	w.Sent = []desk.Identity{{Kind: desk.KindEmail, Value: w.Email.Value}, {Kind: desk.KindPhone, Value: w.Phone.Value}, further}
	return op
}

func updateAs(s *Store, ws desk.ID, id func() desk.ID, ops ...*desk.Op) (err error) {
	return errors.Join(s.UpdateContacts(context.Background(), ws, ops, func(b *desk.Book, from, to int) {
		for _, op := range ops[from:to] {
			if _, e := b.Apply(op, desk.Actor{}, 1, id); e != nil {
				err = e
			}
		}
	}), err)
}

// populate stores people with conversations, so that pages are split and joined in
// between.
func populate(t *testing.T, s *Store, ws desk.ID, random *rand.Rand, count int) []*trace {
	t.Helper()
	var people []*trace
	channel := desk.ID{3}
	newID := func() (id desk.ID) {
		for i := range id {
			id[i] = byte(random.Uint32())
		}
		return id
	}
	for n := range count {
		p := &trace{n: n, words: map[string]bool{}}
		people = append(people, p)
		if err := updateAs(s, ws, func() desk.ID { p.id = newID(); return p.id }, p.write(random.IntN(1500))); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range random.Perm(3 * count) {
		p := people[n%count]
		if err := updateAs(s, ws, nil, p.write(random.IntN(6000))); err != nil {
			t.Fatal(err)
		}
		err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
			c, err := tx.OpenConversation(channel, p.id)
			if err != nil {
				return err
			}
			if c == nil {
				c = &desk.Conversation{ID: newID(), ChannelID: channel, ContactID: p.id, Status: desk.StatusOpen}
			}
			m := desk.Message{
				ID: newID(), ConversationID: c.ID, ChannelID: channel, Direction: desk.Inbound, TS: desk.Time(n),
				ExternalID: p.word("external") + fmt.Sprint(n), Text: strings.Repeat(p.word("text"), 1+random.IntN(60)),
			}
			c.Note(&m)
			callback := desk.InboundItem{ID: m.ID, Channel: channel, Due: m.TS + 1, ReceivedAt: m.TS + 1, Body: []byte(strings.Repeat(p.word("callback"), 1+random.IntN(200)))}
			attempt := desk.Attempt{
				ID: newID(), Key: fmt.Sprint("key ", n), Phase: desk.InDoubt, CreatedAt: 1,
				Plan: desk.Plan{Channel: channel, Contact: p.id, Known: true, Text: strings.Repeat(p.word("plan"), 20), Number: p.phone()},
			}
			return errors.Join(tx.PutConversation(c), tx.PutMessage(&m), tx.PutCallback(callback), tx.PutCallbackPeople(callback, []string{p.phone()}),
				tx.PutAttempt(&attempt))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return people
}

// erase deletes a third of the people one by one and a third in batches. It returns the
// deleted and the remaining people.
func erase(t *testing.T, s *Store, ws desk.ID, people []*trace) (gone, kept []*trace) {
	t.Helper()
	var batch []*desk.Op
	for n, p := range people {
		op := &desk.Op{Kind: desk.OpDelete, ByID: true, Target: p.id}
		switch n % 3 {
		case 0:
			if err := updateAs(s, ws, nil, op); err != nil {
				t.Fatal(err)
			}
		case 1:
			batch = append(batch, op)
		default:
			kept = append(kept, p)
			continue
		}
		gone = append(gone, p)
	}
	if err := updateAs(s, ws, nil, batch...); err != nil {
		t.Fatal(err)
	}
	return gone, kept
}

// files reads all files of a data directory.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// wordOf matches the words of people.
var wordOf = regexp.MustCompile(`[a-z]+-of-person-\d{5}-|1202555\d{5}`)

// wordsOf returns the words of all these people.
func wordsOf(people []*trace) map[string]bool {
	all := map[string]bool{}
	for _, p := range people {
		maps.Copy(all, p.words)
	}
	return all
}

// wantErased tolerates 0.5 % of the deleted words, as the contract does.
func wantErased(t *testing.T, dir string, gone, kept []*trace) {
	t.Helper()
	found, all := map[string]bool{}, wordsOf(gone)
	for name, body := range files(t, dir) {
		for _, at := range wordOf.FindAllIndex(body, -1) {
			if word := string(body[at[0]:at[1]]); all[word] && !found[word] {
				if found[word] = true; len(found) < 10 {
					t.Logf("%q of a deleted person stands in %s at %d (page %d)", word, name, at[0], 1+at[0]/pageSize)
				}
			}
		}
		if name != "parley.db" {
			continue
		}
		if len(kept) > 0 && !bytes.Contains(body, []byte(kept[0].word("text"))) {
			t.Error("of those who stay, nothing is found either: the test has lost its subject")
		}
		for n := firstScrubbed; n <= int64(len(body)/pageSize); n++ {
			if clearGap(body[(n-1)*pageSize : n*pageSize]) {
				t.Errorf("the gap of page %d is not clear", n)
				break
			}
		}
	}
	t.Logf("%d of %d words are found", len(found), len(all))
	if len(found)*1000 > len(all)*5 {
		t.Errorf("%d of %d words of deleted people are in the file", len(found), len(all))
	}
}

// wantNoneIn allows no word of a deleted person in the copy of a database that a backup takes.
func wantNoneIn(t *testing.T, copied string, gone, kept []*trace) {
	t.Helper()
	body, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	all := wordsOf(gone)
	for _, at := range wordOf.FindAllIndex(body, -1) {
		if word := string(body[at[0]:at[1]]); all[word] {
			t.Errorf("%q of a deleted person is in a backup at %d", word, at[0])
			break
		}
	}
	if !bytes.Contains(body, []byte(kept[0].word("text"))) {
		t.Error("of those who stay, nothing is found in a backup either: the test has lost its subject")
	}
}

// TestErasedPeopleLeaveTheFile: after a clean stop, no file contains data of a deleted
// contact, neither in former rows nor in copies that were left behind when pages were
// split. A backup that is taken right after the deletions has none.
func TestErasedPeopleLeaveTheFile(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			path := NewFile(t)
			dir := filepath.Dir(path)
			s, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			ws := newWorkspace(t, s)
			people := populate(t, s, ws, rand.New(rand.NewPCG(seed, 1)), *erased)
			gone, kept := erase(t, s, ws, people)
			backup := filepath.Join(t.TempDir(), "parley.db")
			if err := CopyTo(t.Context(), path, backup); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			wantErased(t, dir, gone, kept)
			wantNoneIn(t, backup, gone, kept)
		})
	}
}

// TestErasedPeopleLeaveTheFileAfterAKill: data that a killed process left in the log is
// gone once the next server has scrubbed and stopped.
func TestErasedPeopleLeaveTheFileAfterAKill(t *testing.T) {
	t.Parallel()
	path := NewFile(t)
	s := openAt(t, path)
	ws := newWorkspace(t, s)
	gone, kept := erase(t, s, ws, populate(t, s, ws, rand.New(rand.NewPCG(1, 1)), 4))
	dir := t.TempDir() // a copy of the files, as after a kill: no connection was closed
	for name, body := range files(t, filepath.Dir(path)) {
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(t.Context(), Config{Path: filepath.Join(dir, "parley.db")})
	if err != nil {
		t.Fatal(err)
	}
	check(t, again.scrub(t.Context(), 0)) // a server does this at its start
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	wantErased(t, dir, gone, kept)
}
