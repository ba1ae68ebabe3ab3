package postgres

import (
	"context"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// TestLockAssignment_of_nodes: while a transaction of one process assigns, a transaction
// of another process waits, and then counts the new assignment. storetest's
// one_assigns_at_a_time tests the same within one process.
func TestLockAssignment_of_nodes(t *testing.T) {
	t.Parallel()
	nodes := openTwo(t)
	ws, member := newWorkspace(t, nodes[0]), newTestID(9)
	now := desk.TimeOf(time.Now())
	// assign assigns one more conversation to the member, and returns how many the member
	// had before.
	assign := func(node int, then func()) (had int, err error) {
		err = nodes[node].InTx(context.WithoutCancel(t.Context()), ws, func(tx store.Tx) error {
			if err := tx.LockAssignment(); err != nil {
				return err
			}
			loads, err := tx.Loads(desk.ID{}, []desk.ID{member}, 100)
			if err != nil {
				return err
			}
			had = loads[member].Open
			then()
			id := byte(20 + node)
			c := &desk.Conversation{ID: newTestID(id), ChannelID: newTestID(4), ContactID: newTestID(id), Status: desk.StatusOpen, CreatedAt: now, LastMessageAt: now}
			c.AssignByRule(member)
			return tx.PutConversation(c)
		})
		return had, err
	}
	counted, goOn, first := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := assign(0, func() {
			close(counted)
			<-goOn
		})
		first <- err
	}()
	<-counted
	type result struct {
		had int
		err error
	}
	second := make(chan result, 1)
	go func() {
		had, err := assign(1, func() {})
		second <- result{had, err}
	}()
	waiting := 0
	for waiting == 0 && len(second) == 0 {
		waiting = lockWaits(t, nodes[0])
	}
	if waiting == 0 {
		t.Error("the second did not wait for the first")
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if r := <-second; r.err != nil || r.had != 1 {
		t.Errorf("the second counts %d, %v; want the one that the first assigned", r.had, r.err)
	}
}
