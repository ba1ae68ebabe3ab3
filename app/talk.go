package app

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// State returns how a conversation stands, or NotFound.
func (a *App) State(ctx context.Context, p desk.Principal, id desk.ID) (*desk.State, error) {
	c, err := a.store.Conversation(ctx, p.Workspace(), id)
	if err != nil {
		return nil, err
	}
	people, err := a.ContactsByID(ctx, p, []desk.ID{c.ContactID})
	if err != nil {
		return nil, err
	}
	states, err := a.states(ctx, p, []*desk.Conversation{c}, people)
	if err != nil {
		return nil, err
	}
	return &states[0], nil
}

// states returns how conversations stand, in their order.
func (a *App) states(ctx context.Context, p desk.Principal, list []*desk.Conversation, people map[desk.ID]*desk.Contact) ([]desk.State, error) {
	ws, now := p.Workspace(), a.now()
	refs := make([]desk.WindowRef, len(list))
	handles := map[desk.ID][]store.NumberHash{}
	var all []store.NumberHash
	for i, c := range list {
		refs[i] = desk.WindowRef{Channel: c.ChannelID, Contact: c.ContactID}
		if contact := people[c.ContactID]; contact != nil && handles[contact.ID] == nil {
			handles[contact.ID] = a.choiceHandles(ws, contact.Address(), contact)
			all = append(all, handles[contact.ID]...)
		}
	}
	windows, err := a.store.Windows(ctx, ws, slices.Compact(slices.SortedFunc(slices.Values(refs), compareRefs)))
	if err != nil {
		return nil, err
	}
	since, err := a.store.OptedOut(ctx, ws, all)
	if err != nil {
		return nil, err
	}
	states := make([]desk.State, len(list))
	for i, c := range list {
		window := windows[refs[i]]
		states[i] = desk.State{Conversation: c.ID, Window: window.State(now), Talk: c.Talk, OptedOutSince: firstChoice(since, handles[c.ContactID])}
	}
	return states, nil
}

func compareRefs(a, b desk.WindowRef) int {
	if n := a.Contact.Compare(b.Contact); n != 0 {
		return n
	}
	return a.Channel.Compare(b.Channel)
}

// An InboxItem is a conversation as a team's inbox shows it.
type InboxItem struct {
	Conversation *desk.Conversation
	Contact      *desk.Contact // nil: deleted meanwhile
	State        desk.State
}

// Inbox returns a page of conversations with their contacts and how they stand, and
// the cursor of the next page, "" if there is none. Its errors are those of Conversations.
func (a *App) Inbox(ctx context.Context, p desk.Principal, f desk.ConversationFilter, cursor string, limit int) ([]InboxItem, string, error) {
	list, next, err := a.filtered(ctx, p, "inbox", f, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	ids := make([]desk.ID, len(list))
	for i, c := range list {
		ids[i] = c.ContactID
	}
	people, err := a.ContactsByID(ctx, p, ids)
	if err != nil {
		return nil, "", err
	}
	states, err := a.states(ctx, p, list, people)
	if err != nil {
		return nil, "", err
	}
	items := make([]InboxItem, len(list))
	for i, c := range list {
		items[i] = InboxItem{Conversation: c, Contact: people[c.ContactID], State: states[i]}
	}
	return items, next, nil
}

// MarkRead marks the messages of a conversation as read for everybody, up to a message
// (zero: to the newest), and returns how the conversation stands then. If receipt is set,
// the provider is told in the background. It returns NotFound if there is no such
// conversation or no such message in it.
func (a *App) MarkRead(ctx context.Context, p desk.Principal, id, message desk.ID, receipt bool) (*desk.State, error) {
	err := a.inTx(ctx, p.Workspace(), func(tx store.Tx, then *afterwards) error {
		if err := p.Still(tx.Settings(), desk.ConversationsWrite, a.now()); err != nil {
			return err
		}
		c, err := tx.Conversation(id)
		if err != nil {
			return err
		}
		if c == nil {
			return desk.NoConversation()
		}
		var upTo desk.MessagePlace
		if message.IsZero() {
			upTo, err = tx.NewestMessage(id, math.MinInt64, math.MaxInt64)
		} else {
			var m *desk.Message
			if m, err = tx.Message(id, message); err == nil && m == nil {
				err = desk.NoMessage()
			}
			if m != nil {
				upTo = m.Place()
			}
		}
		if err != nil {
			return err
		}
		before := *c
		if err := a.markUpTo(tx, c, upTo); err != nil || c.Talk == before.Talk {
			return err
		}
		if err := tx.PutConversation(c); err != nil || c.Talk.Unread == before.Talk.Unread {
			return err
		}
		if receipt {
			if err := a.receiptFor(ctx, tx, c, upTo, then); err != nil {
				return err
			}
		}
		return tx.Append(desk.Event{Type: desk.ConversationUpdated, Subject: c.ID, Contact: c.ContactID, Actor: p.Actor, At: a.now(), Changed: []string{"unread"}})
	})
	if err != nil {
		return nil, err
	}
	return a.State(ctx, p, id)
}

// markUpTo marks the messages of a conversation that are not after a position.
func (a *App) markUpTo(tx store.Tx, c *desk.Conversation, upTo desk.MessagePlace) error {
	if c.Talk.Unread > 0 {
		n, err := tx.MarkRead(c.ID, upTo, c.Talk.Unread)
		if err != nil {
			return err
		}
		c.Talk.Unread -= n
	}
	if upTo.After(c.Talk.Read) {
		c.Talk.Read = upTo
	}
	return nil
}

// markAll marks all messages of a conversation, as somebody does who answers.
func (a *App) markAll(tx store.Tx, c *desk.Conversation) error {
	newest, err := tx.NewestMessage(c.ID, math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	return a.markUpTo(tx, c, newest)
}

// replyOfPerson marks all messages of a conversation, in which a person has just replied,
// and notes when: that keeps automatic replies silent.
func (a *App) replyOfPerson(tx store.Tx, c *desk.Conversation, at desk.Time) error {
	if err := a.markAll(tx, c); err != nil {
		return err
	}
	w, err := tx.Window(c.ChannelID, c.ContactID)
	if err != nil {
		return err
	}
	w.Replied(at)
	return tx.PutWindow(c.ChannelID, c.ContactID, w)
}

// answers counts a stored message of ours in how the conversation stands.
func answers(tx store.Tx, c *desk.Conversation, m *desk.Message) (err error) {
	if m.IsAnswer() && !c.Talk.Answer(m) {
		c.Talk.Answered, c.Talk.WaitingSince, err = tx.Waiting(c.ID)
	}
	return err
}

// failedOrNot counts that a message has failed, or that it was delivered after all.
func failedOrNot(tx store.Tx, m *desk.Message) error {
	c, err := tx.Conversation(m.ConversationID)
	if err != nil || c == nil {
		return err
	}
	switch {
	case m.IsAnswer():
		err = answers(tx, c, m)
	case m.ID == c.Talk.Answered:
		c.Talk.Answered, c.Talk.WaitingSince, err = tx.Waiting(c.ID)
	}
	if err != nil {
		return err
	}
	return tx.PutConversation(c)
}

// ClosesWindow tells whether a failure on a channel says that the person can't be answered
// freely any more.
func (a *App) ClosesWindow(s *desk.Settings, channel desk.ID, f *desk.Failure) bool {
	c := s.Channel(channel)
	if c == nil || f == nil {
		return false
	}
	talker, ok := a.providers[c.Kind].(provider.Talker)
	return ok && talker.ClosesWindow(f.Code)
}

// shutBy closes the window if the provider did not deliver a message for that reason.
func (a *App) shutBy(tx store.Tx, m *desk.Message) error {
	if m.Delivery != desk.Failed || !a.ClosesWindow(tx.Settings(), m.ChannelID, m.Failure) {
		return nil
	}
	return shut(tx, m.ChannelID, m.ContactID, m.TS, desk.ByTheProvider)
}

// shut closes the window of a contact for what was written up to some time.
func shut(tx store.Tx, channel, contact desk.ID, at desk.Time, by desk.WindowReason) error {
	w, err := tx.Window(channel, contact)
	if err != nil || !w.Shut(at, by) {
		return err
	}
	return tx.PutWindow(channel, contact, w)
}

// Unassign gives a conversation back to the pool; one that nobody holds stays as it is. It
// returns the errors of Assign.
func (a *App) Unassign(ctx context.Context, p desk.Principal, id desk.ID, seen *Seen) (*desk.Conversation, error) {
	return a.changeConversation(ctx, p, id, seen, func(_ store.Tx, c *desk.Conversation) error {
		c.Unassign()
		return nil
	})
}

// receipts are those on their way to providers.
type receipts struct {
	mu sync.Mutex
	of map[desk.ID]int // by workspace
	n  int
}

const (
	// maxReceipts is how many receipts are on their way at a time, and maxReceiptsOf those
	// of one workspace: further ones are left out.
	maxReceipts   = 64
	maxReceiptsOf = 16
	// receiptLife is how old a message may be for its receipt, in milliseconds.
	receiptLife = desk.Time(30 * 24 * 60 * 60 * 1000)
)

// receiptWaits are the waits between the tries of a receipt.
var receiptWaits = [...]time.Duration{time.Second, 5 * time.Second}

func (r *receipts) enter(ws desk.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n >= maxReceipts || r.of[ws] >= maxReceiptsOf {
		return false
	}
	if r.of == nil {
		r.of = map[desk.ID]int{}
	}
	r.n++
	r.of[ws]++
	return true
}

func (r *receipts) leave(ws desk.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	if r.of[ws]--; r.of[ws] == 0 {
		delete(r.of, ws)
	}
}

// receiptFor tells the provider, after the transaction, that the newest message of the
// person up to a position was read; the provider takes that for all before it too.
func (a *App) receiptFor(ctx context.Context, tx store.Tx, c *desk.Conversation, upTo desk.MessagePlace, then *afterwards) error {
	channel := tx.Settings().Channel(c.ChannelID)
	talker, ok := a.providers[channel.Kind].(provider.Talker)
	if !ok || !channel.Enabled {
		return nil
	}
	m, err := tx.NewestInbound(c.ID, upTo)
	if err != nil || m == nil || m.TS < a.now()-receiptLife {
		return err
	}
	ws := tx.Settings().ID
	*then = append(*then, func() { a.sendReceipt(context.WithoutCancel(ctx), ws, channel, talker, m.ExternalID) })
	return nil
}

func (a *App) sendReceipt(ctx context.Context, ws desk.ID, channel *desk.Channel, talker provider.Talker, externalID string) {
	if !a.receipts.enter(ws) {
		return
	}
	a.retries.Go(func() {
		defer a.receipts.leave(ws)
		at, err := a.access(ws, channel)
		for try := 0; err == nil; try++ {
			if err = a.tellRead(ctx, talker, at, externalID); err == nil || try == len(receiptWaits) {
				break
			}
			select {
			case <-time.After(receiptWaits[try]):
				err = nil
			case <-a.stopped:
				return
			}
		}
		if err != nil {
			a.log.InfoContext(ctx, "the provider was not told that a message was read", "workspace_id", ws, "channel_id", channel.ID, "err", err)
		}
	})
}

func (a *App) tellRead(ctx context.Context, talker provider.Talker, at provider.Access, externalID string) (err error) {
	defer steps.Caught("provider", &err)
	ctx, cancel := context.WithTimeout(ctx, a.bounds.Provider)
	defer cancel()
	if err = talker.MarkRead(ctx, at, externalID); err != nil {
		return fmt.Errorf("read receipt: %w", err)
	}
	return nil
}
