package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/desk"
)

// Whatever ends an attempt does it here, in one transaction that first looks at the
// attempt as it is stored: of two actors, the first one wins, and the other answers
// what is stored.

// What a transaction has to say waits until what it did is stored: its closure may run
// twice, or in vain.
type afterwards []func()

// inTx is Store.InTx, and then what f left to be done.
func (a *App) inTx(ctx context.Context, ws desk.ID, f func(Tx, *afterwards) error) error {
	var then afterwards
	err := a.store.InTx(ctx, ws, func(tx Tx) error {
		then = nil
		return f(tx, &then)
	})
	if err == nil {
		for _, do := range then {
			do()
		}
	}
	return err
}

// accepted settles an attempt that the provider took, and returns it as it then
// stands, nil after an error.
func (a *App) accepted(ctx context.Context, ws desk.ID, mine *desk.Attempt, r Receipt) (*desk.Attempt, error) {
	var at *desk.Attempt
	err := a.inTx(ctx, ws, func(tx Tx, then *afterwards) (err error) {
		if at, err = tx.Attempt(mine.ID); err != nil {
			return err
		}
		if at == nil {
			return fmt.Errorf("the attempt %s is gone", mine.ID)
		}
		if at.Erased {
			at.Plan.Text = mine.Plan.Text // for the caller, who has just sent it
		}
		for _, n := range r.Notices {
			if err := tx.PutNotice(n); err != nil {
				return err
			}
			*then = append(*then, func() { a.agenda.note(ws, n.Due) })
		}
		now := a.now()
		if err := a.accept(ctx, tx, at, r.ExternalID, now, now, then); err != nil || at.Phase != desk.Done || at.Erased {
			return err
		}
		return a.remember(tx, at.Plan.Contact, person{r.Number, r.UserID})
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}

// accept finishes an unsettled attempt. One that is done already keeps its answer,
// and one that was given up is an incident: the person has the message.
func (a *App) accept(ctx context.Context, tx Tx, at *desk.Attempt, externalID string, sent, now desk.Time, then *afterwards) error {
	switch {
	case !at.Phase.Settled():
		return a.finish(tx, at, externalID, sent, now)
	case at.Phase == desk.Done && at.ExternalID == "" && externalID != "":
		return a.bind(tx, at, externalID)
	case at.Phase == desk.Done && (at.ExternalID == externalID || externalID == ""):
		return nil
	}
	note := "the provider reported another message of this attempt: " + externalID
	if slices.Contains(at.Notes, note) {
		return nil
	}
	at.Notes = append(at.Notes, note)
	ws := tx.Settings().ID
	*then = append(*then, func() {
		a.log.ErrorContext(ctx, "incident: the provider took a message of an attempt that was settled otherwise; the person may have it twice",
			"workspace_id", ws, "attempt_id", at.ID, "phase", string(at.Phase), "message", at.ExternalID, "other_message", externalID)
	})
	return tx.PutAttempt(at)
}

// bind gives the message of a finished attempt the provider's id, which was not
// known when a person said that it was sent.
func (a *App) bind(tx Tx, at *desk.Attempt, externalID string) error {
	at.ExternalID = externalID
	if err := tx.PutAttempt(at); err != nil {
		return err
	}
	m, err := tx.Message(at.Plan.Conversation, at.Plan.Message)
	if err != nil || m == nil {
		return err
	}
	m.ExternalID = externalID
	if err := takeEarly(tx, m); err != nil {
		return err
	}
	return tx.PutMessage(m)
}

// takeEarly moves a message to where what the provider said of it, before we knew
// it, has it.
func takeEarly(tx Tx, m *desk.Message) error {
	if m.ExternalID == "" {
		return nil
	}
	early, err := tx.TakeStatuses(m.ChannelID, m.ExternalID)
	for _, n := range early {
		m.Reach(n.Delivery, n.Failure)
	}
	return err
}

// finish stores all that follows from an accepted message: contact, conversation,
// message, assignment and answer. Nothing refuses any more: what is no longer valid
// is left out and noted. When the contact was deleted meanwhile, the answer is made
// from the plan and no rows are stored. Message and conversation are of the time sent;
// all else is of now, when it is stored, for whoever reads on from the last change seen.
func (a *App) finish(tx Tx, at *desk.Attempt, externalID string, sent, now desk.Time) error {
	plan := at.Plan
	channel := tx.Settings().Channel(plan.Channel)
	contact, err := a.reached(tx, at, now)
	if err != nil {
		return err
	}
	var conversation *desk.Conversation
	if contact != nil {
		if conversation, err = tx.OpenConversation(plan.Channel, contact.ID); err != nil {
			return err
		}
	}
	existing := conversation != nil
	if !existing {
		known := contact
		if known == nil {
			known = &desk.Contact{ID: plan.Contact}
		}
		c := desk.NewConversation(plan.Conversation, plan.Channel, known, sent)
		conversation = &c
	}
	var changed []string
	if !plan.Assignee.IsZero() {
		switch {
		case tx.Settings().Member(plan.Assignee) == nil:
			at.Notes = append(at.Notes, "the assignee was removed meanwhile")
		case conversation.Assign(plan.Assignee):
			changed = append(changed, "assignee")
		}
	}
	message := desk.Message{
		ID: plan.Message, ConversationID: conversation.ID, ChannelID: plan.Channel, Direction: desk.Outbound,
		ExternalID: externalID, Text: plan.Text, Delivery: desk.Sent, TS: sent, OptIn: &plan.OptIn,
	}
	conversation.Note(&message)
	at.Response = a.answer(&desk.SentMessage{Conversation: *conversation, Kind: channel.Kind, Existing: existing, Message: message})
	at.ExternalID = externalID
	at.Plan.Contact, at.Plan.Conversation = conversation.ContactID, conversation.ID
	at.Settle(desk.Done, now)
	if err := tx.PutAttempt(at); err != nil || contact == nil {
		return err
	}
	if err := takeEarly(tx, &message); err != nil {
		return err
	}
	if err := tx.PutConversation(conversation); err != nil {
		return err
	}
	if err := tx.PutMessage(&message); err != nil {
		return err
	}
	return tx.Append(conversationEvents(conversation, &message, existing, changed, at.Actor, now)...)
}

// conversationEvents tells of a message and of what it did to its conversation.
func conversationEvents(c *desk.Conversation, m *desk.Message, existing bool, changed []string, actor desk.ID, now desk.Time) []desk.Event {
	var events []desk.Event
	if !existing {
		events = append(events, desk.Event{Kind: desk.ConversationCreated, Subject: c.ID, Actor: actor, At: now})
	} else if changed != nil {
		events = append(events, desk.Event{Kind: desk.ConversationUpdated, Subject: c.ID, Actor: actor, At: now, Changed: changed})
	}
	return append(events, desk.Event{Kind: desk.MessageCreated, Subject: m.ID, Actor: actor, At: now})
}

// reached returns the contact that a finished attempt was sent to, created when
// nobody has the number; nil when it was deleted meanwhile.
func (a *App) reached(tx Tx, at *desk.Attempt, now desk.Time) (*desk.Contact, error) {
	plan := at.Plan
	if at.Erased {
		at.Notes = append(at.Notes, "the contact was deleted meanwhile: no message is stored")
		return nil, nil
	}
	if plan.Known {
		return tx.Contact(plan.Contact)
	}
	profile := plan.Profile
	for {
		op := findByNumber(plan.Number, profile)
		book, err := tx.Book(op)
		if err != nil {
			return nil, err
		}
		if c := book.Holder(desk.Identity{Kind: desk.KindPhone, Value: plan.Number}); c != nil {
			return c, nil
		}
		outcome, err := introduce(book, op, at.Actor, now, func() desk.ID { return plan.Contact })
		if err == nil {
			return outcome.Contact, tx.Flush(book)
		}
		if profile == nil {
			return nil, err
		}
		var note string
		profile, note = withoutInvalid(profile, err)
		at.Notes = append(at.Notes, note)
	}
}

// withoutInvalid drops from a profile what a contact rule refuses by now, and says
// what that was; the whole profile when it is nothing in particular.
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
		taken := func(kind, value string) bool {
			return slices.Contains(details, desk.Identity{Kind: kind, Value: value})
		}
		rest.Sent = slices.DeleteFunc(slices.Clone(w.Sent), func(i desk.Identity) bool { return taken(i.Kind, i.Value) })
		rest.Identities.Value = slices.DeleteFunc(slices.Clone(w.Identities.Value), func(i desk.Identity) bool { return taken(i.Kind, i.Value) })
		if taken(desk.KindExternalID, w.ExternalID.Value) {
			rest.ExternalID = desk.Field[string]{}
		}
		if taken(desk.KindEmail, desk.FoldEmail(w.Email.Value)) {
			rest.Email = desk.Field[string]{}
		}
		if len(rest.Sent) < len(w.Sent) {
			return &rest, "taken by another contact meanwhile, and left out: identities of the profile"
		}
	default:
		if w.Owner.Has() {
			rest.Owner = desk.Field[string]{}
			return &rest, "the owner was removed meanwhile"
		}
	}
	return nil, "the profile is no longer valid, and was left out"
}

// refuse settles an attempt that was certainly not sent, and frees its key. It
// returns what settle does.
func (a *App) refuse(ctx context.Context, ws, id desk.ID, r *desk.Refusal) (*desk.Attempt, error) {
	return a.settle(ctx, ws, id, func(tx Tx, at *desk.Attempt) error {
		at.Refusal = r
		at.Settle(desk.Refused, a.now())
		if err := tx.FreeKey(at.Key); err != nil {
			return err
		}
		return tx.PutAttempt(at)
	})
}

// giveUp refuses an attempt of which nobody knows whether its claim was stored. Where it
// was not, the refused attempt takes its place: a claim that is still being stored is
// waited for, or fails.
func (a *App) giveUp(ctx context.Context, ws desk.ID, mine *desk.Attempt) error {
	at := *mine
	at.Refusal = NotSent()
	at.Settle(desk.Refused, a.now())
	return a.store.InTx(ctx, ws, func(tx Tx) error {
		stored, err := tx.Attempt(at.ID)
		if err != nil || stored != nil && stored.Phase.Settled() {
			return err
		}
		if err := tx.PutAttempt(&at); err != nil {
			return err
		}
		held, err := tx.AttemptOfKey(at.Key)
		if err != nil || held == nil || held.ID != at.ID {
			return err
		}
		return tx.FreeKey(at.Key)
	})
}

// doubt marks an attempt as one of which nobody knows whether it was sent. Its
// process does nothing more about it, so the lease ends too. It returns what settle
// does.
func (a *App) doubt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error) {
	return a.settle(ctx, ws, id, func(tx Tx, at *desk.Attempt) error {
		at.Phase, at.LeaseUntil = desk.InDoubt, 0
		return tx.PutAttempt(at)
	})
}

// settle does something to an attempt unless it is settled, and returns it as it then
// stands; nil when it was never stored, and after an error.
func (a *App) settle(ctx context.Context, ws, id desk.ID, do func(Tx, *desk.Attempt) error) (*desk.Attempt, error) {
	var at *desk.Attempt
	err := a.store.InTx(ctx, ws, func(tx Tx) (err error) {
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

// Release is a person's word on an attempt whose outcome is unknown: that it was
// sent, or that it was not, which frees its key. It returns NotFound, and
// InvalidRequest for an attempt that is settled or may still be under way.
func (a *App) Release(ctx context.Context, id desk.ID, sent bool) (at *desk.Attempt, err error) {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return nil, err
	}
	err = a.store.InTx(ctx, ws, func(tx Tx) (err error) {
		if at, err = tx.Attempt(id); err != nil {
			return err
		}
		switch {
		case at == nil:
			return desk.NotFoundf("no attempt has this id; parley attempt list shows them")
		case at.Phase.Settled():
			return desk.Invalidf("the attempt is settled; parley attempt list shows what became of it")
		case tx.Now() <= at.LeaseUntil:
			return desk.Invalidf("the attempt may still be under way: wait half a minute and try again")
		case sent:
			return a.finish(tx, at, "", at.CreatedAt, a.now())
		}
		at.Settle(desk.Released, a.now())
		if err := tx.FreeKey(at.Key); err != nil {
			return err
		}
		return tx.PutAttempt(at)
	})
	return at, err
}

// Attempts lists a workspace's attempts, newest first; only those in doubt when
// inDoubt is set.
func (a *App) Attempts(ctx context.Context, ws desk.ID, inDoubt bool, limit int) ([]*desk.Attempt, error) {
	if _, err := a.store.Settings(ctx, ws); err != nil {
		return nil, err
	}
	return a.store.Attempts(ctx, ws, inDoubt, limit)
}
