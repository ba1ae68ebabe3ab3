package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/desk"
	"parley/store"
)

func openBench(b *testing.B) (*Store, desk.ID) {
	b.Helper()
	s, err := Open(b.Context(), Config{Path: NewFile(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	ws := desk.ID{7}
	if err := s.CreateWorkspace(b.Context(), desk.Workspace{ID: ws}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	return s, ws
}

// BenchmarkCreate creates contacts with one identity, each in its own commit.
func BenchmarkCreate(b *testing.B) {
	s, ws := openBench(b)
	n := 0
	for b.Loop() {
		if err := createContact(s, ws, n); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// finishSend stores the results of the n-th accepted message: a conversation, the
// message, the settled attempt and two events.
func finishSend(tx store.Tx, n int) error {
	var id desk.ID
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	external := fmt.Sprintf("wamid.HBgMOTA1MzIxMTEyMjMzFQIAERgSN%032d", n)
	c := desk.Conversation{ID: id, ChannelID: desk.ID{1}, ContactID: id, Status: desk.StatusOpen, CreatedAt: desk.Time(n)}
	m := desk.Message{
		ID: id, ConversationID: id, ChannelID: desk.ID{1}, Direction: desk.Outbound, ExternalID: external, Text: strings.Repeat("text ", 40),
		Delivery: desk.Sent, TS: desk.Time(n), OptIn: &desk.OptIn{Key: desk.ID{2}, At: 1, Request: id},
	}
	c.Note(&m)
	a := desk.Attempt{
		ID: id, Key: external, Actor: desk.Actor{Kind: desk.ByKey, ID: desk.ID{2}}, Phase: desk.Done, CreatedAt: 1, SettledAt: 1, ExternalID: external, Response: bytes.Repeat([]byte("body "), 120),
		Plan: desk.Plan{Channel: desk.ID{1}, Contact: id, Conversation: id, Message: id, Template: "order_update", Language: "en_US", OptIn: *m.OptIn, Known: true},
	}
	return errors.Join(tx.PutAttempt(&a), tx.PutConversation(&c), tx.PutMessage(&m),
		tx.Append(desk.Event{Type: desk.ConversationCreated, Subject: id}, desk.Event{Type: desk.MessageReceived, Subject: id}))
}

// BenchmarkFinishSend measures the transaction of finishSend, for one caller and for many
// callers who share commits.
func BenchmarkFinishSend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s, ws := openBench(b)
			n := 0
			for b.Loop() {
				var group sync.WaitGroup
				for i := range callers {
					group.Go(func() {
						if err := s.InTx(b.Context(), ws, func(tx store.Tx) error { return finishSend(tx, n+i) }); err != nil {
							b.Error(err)
						}
					})
				}
				group.Wait()
				n += callers
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/send")
		})
	}
}

// BenchmarkRefuse measures a transaction that reads and is then refused.
func BenchmarkRefuse(b *testing.B) {
	s, ws := openBench(b)
	refusal := desk.Invalidf("no")
	for b.Loop() {
		_ = s.InTx(b.Context(), ws, func(tx store.Tx) error {
			if _, err := tx.AttemptOfKey("k"); err != nil {
				b.Error(err)
			}
			return refusal
		})
	}
}

// upsertOf is an upsert of the n-th contact.
func upsertOf(n int) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.ExternalID = desk.Field[string]{Set: true, Value: fmt.Sprint("x", n)}
	op.Write.Sent = []desk.Identity{{Kind: desk.KindExternalID, Value: op.Write.ExternalID.Value}}
	return op
}

func setText(op *desk.Op, key, text string) {
	op.Write.Attributes.Set = true
	op.Write.Attributes.Value = append(op.Write.Attributes.Value, desk.AttributeWrite{Key: key, Value: desk.Value{Kind: desk.StringValue, Text: text}})
}

// upsertAll carries out upserts in one call.
func upsertAll(b *testing.B, s *Store, ws desk.ID, ops ...*desk.Op) {
	b.Helper()
	if err := updateAs(s, ws, newBenchID, ops...); err != nil {
		b.Fatal(err)
	}
}

var benchIDs atomic.Uint64

func newBenchID() (id desk.ID) {
	binary.BigEndian.PutUint64(id[:], benchIDs.Add(1))
	return id
}

// BenchmarkOrdinary has a contact with a few attributes and two further identities,
// among 10,000 others. The contact is changed alone, changed with 63 others, and read.
func BenchmarkOrdinary(b *testing.B) {
	s, ws := openBench(b)
	defineTexts(b, s, ws, 4)
	const people = 10_000
	fill := func(n int, value string) *desk.Op {
		op := upsertOf(n)
		for k := range 4 {
			setText(op, fmt.Sprint("k", k), value+strings.Repeat("v", 20))
		}
		op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{{Kind: "crm", Value: fmt.Sprint("crm", n)}, {Kind: "web", Value: fmt.Sprint("web", n)}}}
		return op
	}
	for first := 0; first < people; first += 1000 {
		var ops []*desk.Op
		for n := range 1000 {
			ops = append(ops, fill(first+n, ""))
		}
		upsertAll(b, s, ws, ops...)
	}
	n := 0
	for _, group := range []int{1, 64} {
		b.Run(fmt.Sprint("upsert=", group), func(b *testing.B) {
			for b.Loop() {
				var ops []*desk.Op
				for range group {
					n++
					ops = append(ops, fill(n*7%people, fmt.Sprint(n)))
				}
				upsertAll(b, s, ws, ops...)
			}
		})
	}
	list, _, err := s.Contacts(b.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 200)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			n++
			if _, _, err := s.Contact(b.Context(), ws, list[n%len(list)].ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Contacts(b.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 200); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// defineTexts defines n text attributes: k0, k1, and so on.
func defineTexts(t testing.TB, s *Store, ws desk.ID, n int) {
	t.Helper()
	for k := range n {
		err := s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) {
			return desk.Change{Attribute: &desk.Attribute{Key: fmt.Sprint("k", k), Type: desk.TextAttribute}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkLarge changes one attribute of each contact of a group. The contacts have
// attributes of the given size, and the given number of further identities of 1 KB.
func BenchmarkLarge(b *testing.B) {
	for _, size := range []struct{ contacts, kib, further int }{{1000, 2, 0}, {1000, 4, 0}, {1000, 8, 0}, {1000, 16, 0}, {1000, 32, 0}, {500, 250, 0}, {100, 250, 1000}} {
		b.Run(fmt.Sprintf("contacts=%d,kib=%d,further=%d", size.contacts, size.kib, size.further), func(b *testing.B) {
			s, ws := openBench(b)
			defineTexts(b, s, ws, 65)
			long := strings.Repeat("\U0001F600", 245)
			for n := range size.contacts {
				op := upsertOf(n)
				for k := range 64 {
					setText(op, fmt.Sprint("k", k), strings.Repeat("x", size.kib*16-8))
				}
				op.Write.Identities.Set = true
				for k := range size.further {
					op.Write.Identities.Value = append(op.Write.Identities.Value, desk.Identity{Kind: "crm", Value: fmt.Sprint(n, "-", k, "-", long)})
				}
				upsertAll(b, s, ws, op)
			}
			round := 0
			for b.Loop() {
				round++
				var ops []*desk.Op
				for n := range size.contacts {
					op := upsertOf(n)
					setText(op, "k0", fmt.Sprint(round))
					ops = append(ops, op)
				}
				upsertAll(b, s, ws, ops...)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(round*size.contacts)*1000, "ms/1000contacts")
		})
	}
}
