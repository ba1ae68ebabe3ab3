package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/app"
	"parley/desk"
)

func openBench(b *testing.B) (*Store, desk.ID) {
	b.Helper()
	s, err := Open(b.Context(), Config{Path: b.TempDir() + "/parley.db"})
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

// BenchmarkCreate is one contact with one identity, a commit each.
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

// finishSend stores what follows from the n-th accepted message: a conversation, the
// message, the settled attempt and two events.
func finishSend(tx app.Tx, n int) error {
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
		ID: id, Key: external, Actor: desk.ID{2}, Phase: desk.Done, CreatedAt: 1, SettledAt: 1, ExternalID: external, Response: bytes.Repeat([]byte("body "), 120),
		Plan: desk.Plan{Channel: desk.ID{1}, Contact: id, Conversation: id, Message: id, Template: "order_update", Language: "en_US", OptIn: *m.OptIn, Known: true},
	}
	return errors.Join(tx.PutAttempt(&a), tx.PutConversation(&c), tx.PutMessage(&m),
		tx.Append(desk.Event{Kind: desk.ConversationCreated, Subject: id}, desk.Event{Kind: desk.MessageCreated, Subject: id}))
}

// BenchmarkFinishSend is that one transaction, by one caller and by many who share
// commits.
func BenchmarkFinishSend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s, ws := openBench(b)
			n := 0
			for b.Loop() {
				var group sync.WaitGroup
				for i := range callers {
					group.Go(func() {
						if err := s.InTx(b.Context(), ws, func(tx app.Tx) error { return finishSend(tx, n+i) }); err != nil {
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

// BenchmarkRefuse is a transaction that reads and is refused.
func BenchmarkRefuse(b *testing.B) {
	s, ws := openBench(b)
	refusal := desk.Invalidf("no")
	for b.Loop() {
		_ = s.InTx(b.Context(), ws, func(tx app.Tx) error {
			if _, err := tx.AttemptOfKey("k"); err != nil {
				b.Error(err)
			}
			return refusal
		})
	}
}
