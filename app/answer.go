package app

import (
	"errors"
	"slices"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// bySystem is the actor of parley itself: the reply policy assigns and sends as this actor.
func bySystem() desk.Actor { return desk.Actor{Kind: desk.BySystem} }

// answerByPolicy assigns the conversation of a new inbound message by the reply policy in
// force. It returns the policy and its decision. The caller must store the conversation.
func (a *App) answerByPolicy(tx store.Tx, c *desk.Conversation, contact *desk.Contact, m *desk.Message) (*desk.Policy, desk.Decision, error) {
	p := tx.Settings().Policy(c.ChannelID)
	if p == nil || c.Status != desk.StatusOpen { // it stays dormant
		return nil, desk.Decision{}, nil
	}
	arrival := desk.Arrival{
		Reaction: m.Kind == desk.KindReaction, Held: !c.AssignedMember.IsZero(), Absent: c.Absent(contact), Open: p.Hours.Open(tx.Now()),
	}
	chosen, err := false, error(nil)
	if arrival.Free() {
		chosen, err = a.assignByRule(tx, p, c)
	}
	return p, p.Answer(arrival, chosen), err
}

// lockAssignment locks a workspace's assignment by policy, if there is a policy that
// assigns. It must be the first lock of a transaction, so that no transaction waits for it
// while it holds a conversation.
func lockAssignment(tx store.Tx) error {
	for p := range tx.Settings().Policies() {
		if p.Assign != nil && p.Assign.Mode != desk.AssignNone {
			return tx.LockAssignment()
		}
	}
	return nil
}

// assignByRule assigns an unassigned conversation to the member whom a policy chooses, and
// tells whether a member was eligible.
func (a *App) assignByRule(tx store.Tx, p *desk.Policy, c *desk.Conversation) (bool, error) {
	here := p.Assign.Here(tx.Settings())
	if len(here) == 0 {
		return false, nil
	}
	loads, err := tx.Loads(p.Channel, p.Assign.Members, p.Assign.Counted())
	if err != nil {
		return false, err
	}
	for id, load := range loads {
		load.Away = !slices.Contains(here, id)
		loads[id] = load
	}
	member, ok := p.Assign.Choose(loads)
	if !ok {
		return false, nil
	}
	c.AssignByRule(member)
	return true, tx.PutTurn(p.Channel, member)
}

// autoReply stores the job of an automatic reply to an inbound message, unless there is a
// reason for silence. w is the window after the message.
func (a *App) autoReply(tx store.Tx, p *desk.Policy, kind desk.AutoKind, m *desk.Message, in provider.InboundMessage, w desk.Window) error {
	now := tx.Now()
	moment := desk.Moment{
		Now: now, TS: in.At, Text: in.Text, Unsupported: m.Kind == desk.KindUnsupported,
		Unusable: a.usableToReply(tx.Settings().Channel(m.ChannelID)) != nil, Window: w,
	}
	if p.Silent(kind, moment) != "" {
		return nil
	}
	out, err := a.hasOptedOut(tx, m.ContactID, in.Number)
	if err != nil || out {
		return err
	}
	w.AutoReplied(now)
	if err := tx.PutWindow(m.ChannelID, m.ContactID, w); err != nil {
		return err
	}
	return tx.PutAutoReply(desk.AutoReplyJob{
		Message: m.ID, Channel: m.ChannelID, Contact: m.ContactID, Conversation: m.ConversationID, Kind: kind, Text: p.Text(kind), DecidedAt: now, Due: now,
	})
}

// hasOptedOut reports whether an opt-out is stored for any of a contact's numbers or
// provider's ids, or for the number from which the contact just wrote.
func (a *App) hasOptedOut(tx store.Tx, contact desk.ID, number string) (bool, error) {
	c, err := tx.Contact(contact)
	if err != nil || c == nil {
		return c == nil, err
	}
	handles := []string{number}
	for _, i := range c.Identities() {
		if i.OfProvider() || i.Claim().Kind == desk.KindPhone {
			handles = append(handles, i.Value)
		}
	}
	for _, handle := range handles {
		if handle == "" {
			continue
		}
		choice, err := tx.OptOut(a.handleHash(tx.Settings().ID, handle))
		if err != nil || choice.Since != 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// errSilent means that an automatic reply is given up, although the policy had decided to
// send it.
var errSilent = errors.New("a person replied meanwhile, or the customer opted out")
