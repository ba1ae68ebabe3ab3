package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// All ways in which an attempt ends are here. Each is one transaction that first reads the
// stored attempt. If two actors settle an attempt at once, the first commit wins, and the
// other actor returns what is stored.

// accepted stores that the provider accepted the message of an attempt. It returns the
// attempt as stored, or nil after an error.
func (a *App) accepted(ctx context.Context, ws desk.ID, mine *desk.Attempt, r provider.Receipt) (*desk.Attempt, error) {
	var at *desk.Attempt
	err := a.inTx(ctx, ws, func(tx store.Tx, then *afterwards) (err error) {
		if at, err = asStored(tx, mine); err != nil {
			return err
		}
		if at.Erased {
			at.Plan.Text = mine.Plan.Text // for the caller, whose process sent it
		}
		for _, later := range r.Later {
			if err := tx.PutInbound(itemOf(later, mine.Plan.Channel, a.newID(), tx.Now())); err != nil {
				return err
			}
			*then = append(*then, func() { a.inboundDue.after(ws, later.Wait) })
		}
		now := a.now()
		return a.accept(ctx, tx, at, a.person(tx, at.Plan.Channel, r.Number, r.UserID), r.ExternalID, now, now, then)
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}

// asStored returns an attempt of this process in its present state.
func asStored(tx store.Tx, mine *desk.Attempt) (*desk.Attempt, error) {
	untouched, err := tx.Untouched(mine.ID)
	if untouched || err != nil {
		at := *mine
		return &at, err
	}
	at, err := tx.Attempt(mine.ID)
	if err == nil && at == nil {
		err = fmt.Errorf("the attempt %s is gone", mine.ID)
	}
	return at, err
}

// accept finishes an unsettled attempt. If the attempt is done already, it keeps its
// answer. If it was given up, this is an incident: the person has the message. The
// parameter to is the person whom the provider names. The contact learns this person's ids
// first, because the contact's event comes before those of the message.
func (a *App) accept(ctx context.Context, tx store.Tx, at *desk.Attempt, to person, externalID string, sent, now desk.Time, then *afterwards) error {
	if at.Phase == desk.Done && !at.Erased {
		if err := a.remember(tx, at.Plan.Contact, to, byProvider(at.Plan.Channel)); err != nil {
			return err
		}
	}
	switch {
	case !at.Phase.Settled():
		return a.finish(ctx, tx, at, to, externalID, sent, now, byProvider(at.Plan.Channel), then)
	case at.Phase == desk.Done && !at.Erased && at.ExternalID == "" && externalID != "":
		return a.bind(tx, at, externalID)
	case at.Phase == desk.Done && (at.Erased || at.ExternalID == externalID || externalID == ""):
		return nil // of an erased one's message nothing is known any more
	}
	note := at.TookAnother(externalID)
	if slices.Contains(at.Notes, note) {
		return nil
	}
	at.Notes = append(at.Notes, note)
	if at.Erased {
		externalID = ""
	}
	ws := tx.Settings().ID
	*then = append(*then, func() {
		a.log.ErrorContext(ctx, "incident: the provider accepted a message whose attempt was settled otherwise; the person may get it twice",
			"workspace_id", ws, "attempt_id", at.ID, "phase", string(at.Phase), "message", at.ExternalID, "other_message", externalID)
	})
	return tx.PutAttempt(at)
}

// bind stores the provider's id of a finished attempt's message. This id was not known when
// a person decided that the message was sent.
func (a *App) bind(tx store.Tx, at *desk.Attempt, externalID string) error {
	at.ExternalID = externalID
	if err := tx.PutAttempt(at); err != nil {
		return err
	}
	m, err := tx.Message(at.Plan.Conversation, at.Plan.Message)
	if err != nil || m == nil {
		return err
	}
	m.ExternalID = externalID
	was := m.IsAnswer()
	early, err := a.takeEarly(tx, m)
	if err != nil {
		return err
	}
	if err := tx.PutMessage(m); err != nil {
		return err
	}
	if m.IsAnswer() != was {
		if err := failedOrNot(tx, m); err != nil {
			return err
		}
	}
	return tx.Append(early...)
}

// takeEarly applies the statuses that came before the message was stored, adds the
// provider's ids in them to the contact, and returns the events of the message.
func (a *App) takeEarly(tx store.Tx, m *desk.Message) (events []desk.Event, err error) {
	if m.ExternalID == "" {
		return nil, nil
	}
	early, err := tx.TakeStatuses(m.ChannelID, m.ExternalID)
	if err != nil {
		return nil, err
	}
	for _, n := range early {
		events = append(events, a.reach(m, n)...)
		if err := a.remember(tx, m.ContactID, a.person(tx, m.ChannelID, "", n.UserID), byProvider(m.ChannelID)); err != nil {
			return nil, err
		}
	}
	return events, a.failedBy(tx, m)
}

// reach moves a message forward to a reported status. It returns the event of this change,
// or nil if nothing changed.
func (a *App) reach(m *desk.Message, n desk.StatusUpdate) []desk.Event {
	changed := m.Reach(n.Delivery, n.Failure)
	if changed == nil {
		return nil
	}
	e := m.Event(deliveryEvents[n.Delivery], byProvider(m.ChannelID), a.now())
	e.Changed = changed
	return []desk.Event{e}
}

// finish stores all consequences of an accepted message: contact, conversation, message,
// assignment and answer. It refuses nothing: data that is no longer valid is left out, and
// a note says so. If the contact was deleted meanwhile, the answer is made from the plan
// and no rows are stored. Message and conversation have the time of the send. All other
// times are the present, so that clients who follow changes see them. The parameter by is
// the actor who says that the message was sent.
func (a *App) finish(ctx context.Context, tx store.Tx, at *desk.Attempt, to person, externalID string, sent, now desk.Time, by desk.Actor, then *afterwards) error {
	plan, was := at.Plan, at.Phase
	contact, before, err := a.reached(tx, at, now)
	if err != nil {
		return err
	}
	switch {
	case contact == nil:
		before = nil
	case plan.Reply != nil:
		if before == nil { // it was closed, and deleted because it was empty
			before, err = tx.OpenConversation(plan.Channel, contact.ID)
		}
	default:
		before, err = a.threadFor(tx, at, contact, now)
	}
	if err != nil {
		return err
	}
	var m *desk.SentMessage
	switch {
	case plan.Reply == nil:
		m = thread(tx.Settings(), at, contact, before, externalID, sent)
	case before == nil:
		m = replied(tx.Settings(), at, &desk.Conversation{ID: plan.Conversation, ChannelID: plan.Channel, ContactID: plan.Contact, Status: desk.StatusOpen, CreatedAt: sent}, externalID, sent)
	default:
		m = replied(tx.Settings(), at, before, externalID, sent)
	}
	if !m.Message.Media.IsZero() {
		if m.Message.Attachment, err = tx.Media(m.Message.Media); err != nil {
			return err
		}
		if m.Message.Attachment == nil { // it was erased meanwhile
			m.Message.Media = desk.ID{}
		}
	}
	conversation, message := &m.Conversation, m.Message
	if at.Broadcast.IsZero() { // nobody asks again for the answer of a broadcast's message
		at.Response = a.answer(m)
	}
	if contact == nil && !at.Erased { // a server of the previous release takes the key without a look at the contact
		at.Erase()
	}
	if !at.Erased {
		at.ExternalID = externalID
	}
	at.Plan.Contact, at.Plan.Conversation = conversation.ContactID, conversation.ID
	at.Settle(desk.Done, now)
	if err := tx.PutAttempt(at); err != nil {
		return err
	}
	if err := a.Broadcasts.Follow(tx, at, false); err != nil {
		return err
	}
	if contact == nil {
		return tx.Append(settledEvents(at, was, by, now)...)
	}
	message.ContactID = contact.ID
	if err := a.remember(tx, contact.ID, to, byProvider(plan.Channel)); err != nil {
		return err
	}
	early, err := a.takeEarly(tx, &message)
	if err != nil {
		return err
	}
	if err := tx.PutMessage(&message); err != nil {
		return err
	}
	if err := answers(tx, conversation, &message); err != nil {
		return err
	}
	if plan.Reply != nil && message.Author.Type != desk.AuthorRule {
		unread := conversation.Talk.Unread
		if err := a.replyOfPerson(tx, conversation, sent); err != nil {
			return err
		}
		if conversation.Talk.Unread != unread {
			if err := a.receiptFor(ctx, tx, conversation, conversation.Talk.Read, then); err != nil {
				return err
			}
		}
	}
	if err := tx.PutConversation(conversation); err != nil {
		return err
	}
	events := append(messageEvents(conversation, before, &message, at.Actor, now), early...)
	return tx.Append(append(events, settledEvents(at, was, by, now)...)...)
}

// thread returns the message that an accepted send becomes, in the open conversation with
// the contact or in a new one. contact is nil if it was deleted.
func thread(s *desk.Settings, at *desk.Attempt, contact *desk.Contact, open *desk.Conversation, externalID string, sent desk.Time) *desk.SentMessage {
	plan := &at.Plan
	m := &desk.SentMessage{Kind: s.Channel(plan.Channel).Kind, Existing: open != nil}
	switch {
	case open != nil:
		m.Conversation = *open
		if at.Broadcast.IsZero() && open.Dormant && contact != nil {
			m.Conversation.Wake(contact)
		}
	case contact != nil:
		m.Conversation = desk.NewConversation(plan.Conversation, plan.Channel, contact, sent)
	default:
		m.Conversation = desk.NewConversation(plan.Conversation, plan.Channel, &desk.Contact{ID: plan.Contact}, sent)
	}
	if open == nil && !at.Broadcast.IsZero() { // nobody has to answer until the person does
		m.Conversation.Status, m.Conversation.Dormant = desk.StatusArchived, true
		m.Conversation.Unassign()
	}
	if !plan.Assignee.IsZero() {
		switch {
		case s.Member(plan.Assignee) == nil:
			at.Notes = append(at.Notes, "the assignee was removed meanwhile")
		default:
			m.Conversation.Assign(plan.Assignee)
		}
	}
	m.Message = desk.Message{
		ID: plan.Message, ConversationID: m.Conversation.ID, ChannelID: plan.Channel, Direction: desk.Outbound,
		ExternalID: externalID, Text: plan.Text, Delivery: desk.Sent, TS: sent, OptIn: &plan.OptIn,
		Template: plan.Template + "/" + plan.Language, Kind: desk.KindTemplate, Author: authorOf(s, at), Attempt: at.ID, Media: plan.Media,
	}
	if plan.Links != nil {
		m.Message.Extra = &desk.Extra{Links: plan.Links}
	}
	m.Conversation.Note(&m.Message)
	return m
}

// authorOf returns the author of an attempt's message.
func authorOf(s *desk.Settings, at *desk.Attempt) desk.Author {
	if !at.Broadcast.IsZero() {
		return desk.Author{Type: desk.AuthorBroadcast, ID: at.Broadcast, Name: at.Plan.Sender}
	}
	return s.AuthorOf(at.Actor)
}

// threadFor returns the conversation into which a template goes; nil if a new one opens. It is
// the open one. If there is none, it is a dormant one: a broadcast leaves it dormant, and any
// other send opens it (contract-broadcast §5).
func (a *App) threadFor(tx store.Tx, at *desk.Attempt, contact *desk.Contact, now desk.Time) (*desk.Conversation, error) {
	c, err := tx.OpenConversation(at.Plan.Channel, contact.ID)
	switch {
	case c != nil || err != nil:
		return c, err
	case !at.Broadcast.IsZero():
		return tx.DormantConversation(at.Plan.Channel, contact.ID)
	case !at.Plan.Known && contact.ID == at.Plan.Contact:
		return nil, nil // a new person: the send has just made the contact
	}
	return dormant(tx, at.Plan.Channel, contact.ID, now)
}

// dormant returns the newest conversation with a contact on a channel, if it is dormant and
// may be opened again.
func dormant(tx store.Tx, channel, contact desk.ID, now desk.Time) (*desk.Conversation, error) {
	c, err := tx.NewestConversation(channel, contact)
	if err != nil || c == nil || !c.Wakes(now) {
		return nil, err
	}
	return c, nil
}

// reached returns the contact to which a finished attempt was sent, and the conversation of a
// reply. It creates the contact if none has the number, and returns nil if it was deleted
// meanwhile.
func (a *App) reached(tx store.Tx, at *desk.Attempt, now desk.Time) (*desk.Contact, *desk.Conversation, error) {
	plan := at.Plan
	if at.Erased {
		at.Notes = append(at.Notes, "the contact was deleted meanwhile: no message is stored")
		return nil, nil, nil
	}
	if plan.Known {
		return recipientNow(tx, &plan)
	}
	profile := plan.Profile
	for {
		op := findByNumber(desk.Identity{Kind: desk.KindPhone, Value: plan.Number}, profile)
		book, err := tx.Book(op.Lookup())
		if err != nil {
			return nil, nil, err
		}
		if c := book.Oldest(desk.Identity{Kind: desk.KindPhone, Value: plan.Number}); c != nil {
			return c, nil, nil
		}
		op.New = true
		outcome, err := book.Apply(op, at.Actor, now, func() desk.ID { return plan.Contact })
		if err == nil {
			return outcome.Contact, nil, tx.Flush(book)
		}
		if profile == nil {
			return nil, nil, err
		}
		var note string
		profile, note = withoutInvalid(profile, err)
		at.Notes = append(at.Notes, note)
	}
}

// recipientNow returns the contact to which an accepted message belongs now: contacts may have
// been merged, or separated again, since the message was planned. A reply belongs to the
// contact of its conversation, which is returned too, a template to the one that holds its
// number. It returns nil if the contact was deleted.
func recipientNow(tx store.Tx, plan *desk.Plan) (*desk.Contact, *desk.Conversation, error) {
	contact, err := tx.Contact(plan.Contact)
	if err != nil {
		return nil, nil, err
	}
	if contact == nil {
		m, err := tx.MergeOf(plan.Contact)
		if err != nil {
			return nil, nil, err
		}
		if m != nil {
			if contact, err = tx.Contact(m.Survivor); err != nil {
				return nil, nil, err
			}
		}
	}
	if plan.Reply != nil {
		c, err := tx.Conversation(plan.Conversation)
		if err == nil && c != nil && (contact == nil || c.ContactID != contact.ID) {
			contact, err = tx.Contact(c.ContactID)
		}
		return contact, c, err
	}
	if contact != nil && slices.Contains(contact.Numbers(), plan.Canonical()) {
		return contact, nil, nil
	}
	number := desk.Identity{Kind: desk.KindPhone, Value: plan.Number}
	book, err := tx.Book(desk.Lookup{Identities: []desk.Identity{number}})
	if err != nil {
		return nil, nil, err
	}
	if holder := book.Oldest(number); holder != nil {
		return holder, nil, nil
	}
	return contact, nil, nil
}

// withoutInvalid removes from a profile the parts that a contact rule now refuses, and
// returns a note that names them. If the refused part is not known, it removes the whole
// profile.
func withoutInvalid(w *desk.ContactWrite, refusal error) (*desk.ContactWrite, string) {
	rest := *w
	switch e := desk.AsError(refusal); details := e.Details.(type) {
	case []desk.AttributeProblem:
		var keys []string
		for _, p := range details {
			keys = append(keys, p.Key)
		}
		rest.Attributes.Value = slices.DeleteFunc(slices.Clone(w.Attributes.Value), func(a desk.AttributeWrite) bool { return slices.Contains(keys, a.Key) })
		return &rest, "no longer storable, and left out: the attributes " + strings.Join(keys, ", ")
	case []desk.Identity:
		taken := func(i desk.Identity) bool { return slices.ContainsFunc(details, i.Same) }
		rest.Sent = slices.DeleteFunc(slices.Clone(w.Sent), taken)
		rest.Identities.Value = slices.DeleteFunc(slices.Clone(w.Identities.Value), taken)
		if taken(desk.Identity{Kind: desk.KindExternalID, Value: w.ExternalID.Value}) {
			rest.ExternalID = desk.Field[string]{}
		}
		if taken(desk.EmailIdentity(w.Email.Value)) {
			rest.Email = desk.Field[string]{}
		}
		if len(rest.Sent) < len(w.Sent) {
			return &rest, "taken by another contact meanwhile, and left out: identities of the profile"
		}
	default:
		if w.Owner.Has() {
			rest.Owner = desk.Field[desk.Reference]{}
			return &rest, "the owner was removed meanwhile"
		}
	}
	return nil, "the profile is no longer valid, and was left out"
}

// refuse settles an attempt that was certainly not sent, and frees its key. Its results are
// those of settle.
func (a *App) refuse(ctx context.Context, ws, id desk.ID, r *desk.Refusal) (*desk.Attempt, error) {
	return a.settle(ctx, ws, id, func(tx store.Tx, at *desk.Attempt) error {
		was, now := at.Phase, a.now()
		at.Refusal = r
		at.Settle(desk.Refused, now)
		if err := tx.FreeKey(at.Key); err != nil {
			return err
		}
		if !at.Erased && a.ClosesWindow(tx.Settings(), at.Plan.Channel, r.Failure) {
			if err := shut(tx, at.Plan.Channel, at.Plan.Contact, at.CreatedAt, desk.ByTheProvider); err != nil {
				return err
			}
		}
		if err := tx.PutAttempt(at); err != nil {
			return err
		}
		if err := a.Broadcasts.Follow(tx, at, false); err != nil {
			return err
		}
		return tx.Append(settledEvents(at, was, byProvider(at.Plan.Channel), now)...)
	})
}

// giveUp refuses an attempt if it is unknown whether its hold was stored. If the hold was
// not stored, giveUp stores the refused attempt in its place. If the hold is still being
// committed, giveUp waits for that commit, or the commit fails.
func (a *App) giveUp(ctx context.Context, ws desk.ID, mine *desk.Attempt) error {
	now := a.now()
	return a.store.InTx(ctx, ws, func(tx store.Tx) error {
		stored, err := tx.Attempt(mine.ID)
		if err != nil || stored != nil && stored.Phase.Settled() {
			return err
		}
		at := *mine
		if stored != nil {
			at = *stored // its person may have been erased meanwhile
		} else if at.Plan.Known {
			contact, _, err := recipientNow(tx, &at.Plan)
			if err != nil {
				return err
			}
			if contact == nil {
				at.Erase()
			} else {
				at.Plan.Contact = contact.ID // it may have been merged meanwhile
			}
		}
		at.Refusal = provider.NotSent()
		at.Settle(desk.Refused, now)
		if err := tx.PutAttempt(&at); err != nil {
			return err
		}
		if err := a.Broadcasts.Follow(tx, &at, false); err != nil {
			return err
		}
		if stored != nil {
			if err := tx.Append(settledEvents(&at, stored.Phase, at.Actor, now)...); err != nil {
				return err
			}
		}
		held, err := tx.AttemptOfKey(at.Key)
		if err != nil || held == nil || held.ID != at.ID {
			return err
		}
		return tx.FreeKey(at.Key)
	})
}

// doubt marks an attempt as in doubt: it is unknown whether the message was sent. The
// attempt's process does nothing more, so the lease ends too. But if the lease is void, the
// process may still be running. Then, for the length of another lease, nobody may decide
// that the message was not sent. died tells that the process has ended. The results of doubt
// are those of settle.
func (a *App) doubt(ctx context.Context, ws, id desk.ID, died bool) (*desk.Attempt, error) {
	return a.settle(ctx, ws, id, func(tx store.Tx, at *desk.Attempt) error {
		was, void := at.Phase, at.Lease.Void(tx.Now(), a.bounds.lease())
		at.Phase, at.Lease = desk.InDoubt, 0
		if void {
			at.Lease = desk.LeaseFor(tx.Now(), a.bounds.lease())
		}
		if err := tx.PutAttempt(at); err != nil || was == desk.InDoubt {
			return err
		}
		if err := a.Broadcasts.Follow(tx, at, died); err != nil {
			return err
		}
		return tx.Append(sendEvent(desk.SendInDoubt, at, at.Actor, a.now()))
	})
}

// settle applies a change to an unsettled attempt, and returns the attempt as stored. It
// returns nil if the attempt was never stored, and after an error.
func (a *App) settle(ctx context.Context, ws, id desk.ID, do func(store.Tx, *desk.Attempt) error) (*desk.Attempt, error) {
	var at *desk.Attempt
	err := a.store.InTx(ctx, ws, func(tx store.Tx) (err error) {
		if at, err = tx.Attempt(id); err != nil || at == nil || at.Phase.Settled() {
			return err
		}
		return do(tx, at)
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}
