package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/desk"
)

// bySystem is the actor of what parley does by itself: what the reply policy assigns and
// sends.
func bySystem() desk.Actor { return desk.Actor{Kind: desk.BySystem} }

// answerByPolicy assigns the conversation of a new inbound message by the reply policy that
// is in force, and returns the policy and what else it does. The conversation is not stored
// yet.
func (a *App) answerByPolicy(tx Tx, c *desk.Conversation, contact *desk.Contact, m *desk.Message) (*desk.Policy, desk.Decision, error) {
	p := tx.Settings().Policy(c.ChannelID)
	if p == nil {
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
// assigns. It comes before all other locks, so that nobody who has a conversation waits for
// it.
func lockAssignment(tx Tx) error {
	for p := range tx.Settings().Policies() {
		if p.Assign != nil && p.Assign.Mode != desk.AssignNone {
			return tx.LockAssignment()
		}
	}
	return nil
}

// assignByRule assigns a conversation that nobody holds to whom a policy chooses, and tells
// whether somebody was eligible.
func (a *App) assignByRule(tx Tx, p *desk.Policy, c *desk.Conversation) (bool, error) {
	here := p.Assign.Here(tx.Settings())
	if len(here) == 0 {
		return false, nil
	}
	loads, err := tx.Loads(p.Channel, here, p.Assign.Counted())
	if err != nil {
		return false, err
	}
	member, ok := p.Assign.Choose(loads)
	if !ok {
		return false, nil
	}
	c.AssignByRule(member)
	return true, tx.PutTurn(p.Channel, member)
}

// autoReply stores the job of an automatic reply to an inbound message, unless there is a
// cause for silence. w is the window after the message.
func (a *App) autoReply(tx Tx, p *desk.Policy, kind desk.AutoKind, m *desk.Message, in InboundMessage, w desk.Window) error {
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

// hasOptedOut tells whether a contact has opted out, by any of its numbers or provider's
// ids, or by the number from which it just wrote.
func (a *App) hasOptedOut(tx Tx, contact desk.ID, number string) (bool, error) {
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

const (
	// autoReplyEvery is how often a process looks for automatic replies to send.
	autoReplyEvery = time.Second

	// maxAutoReplying is how many of them a process sends at a time, and maxAutoReplyingOf
	// how many of one workspace.
	maxAutoReplying   = 8
	maxAutoReplyingOf = 4

	// autoReplyLease is how long a process has one: longer than sending takes, and waiting
	// for another process that sends the same.
	autoReplyLease = 2 * time.Minute

	// longestAutoReply is longer than any of them waits.
	longestAutoReply = 10 * time.Minute
)

// SendAutoReplies sends automatic replies until ctx ends.
func (a *App) SendAutoReplies(ctx context.Context) {
	a.runCrew(ctx, crew{
		work: "send automatic replies", every: autoReplyEvery, most: maxAutoReplying, mostOf: maxAutoReplyingOf, next: a.sendAutoReply,
		due: func(ctx context.Context) ([]desk.ID, error) {
			waits, err := a.store.AutoRepliesDue(ctx, longestAutoReply)
			return dueNow(waits), err
		},
	})
}

// errSilent is why an automatic reply is given up that was decided.
var errSilent = errors.New("a person replied meanwhile, or the customer opted out")

// sendAutoReply sends the next automatic reply of a workspace, if one is due, and tells
// whether one was. It is an ordinary reply, whose key is made of the message that it
// answers: whichever process sends it again gets the first one's answer.
func (a *App) sendAutoReply(ctx context.Context, ws desk.ID) (had bool, err error) {
	defer caught("automatic reply", &err)
	job, err := a.store.TakeAutoReply(ctx, ws, autoReplyLease, longestAutoReply)
	if err != nil || job == nil {
		return false, err
	}
	refused := error(nil)
	if taken := job.Due - desk.Time(autoReplyLease.Milliseconds()); !job.Late(taken) {
		refused = a.replyByRule(ctx, ws, job)
	}
	if refused != nil && ctx.Err() != nil && desk.IsType(refused, desk.SendInProgress) {
		return false, nil // the process stops; the lease ends
	}
	err = a.store.InTx(context.WithoutCancel(ctx), ws, func(tx Tx) error {
		next, err := tx.AutoReply(job.Contact, job.Message)
		if err != nil || next == nil {
			return err // the person was erased, or another process was faster
		}
		if forNow(refused) && next.Again(tx.Now()) {
			return tx.PutAutoReply(*next)
		}
		return tx.DropAutoReply(job.Contact, job.Message)
	})
	if refused != nil && !forNow(refused) {
		a.log.InfoContext(ctx, "an automatic reply was not sent", "workspace_id", ws, "conversation_id", job.Conversation, "message_id", job.Message, "err", refused)
	}
	return true, err
}

// forNow tells whether a send that was refused may be taken later.
func forNow(err error) bool {
	for _, t := range []desk.ErrorType{desk.ProviderUnavailable, desk.RateLimited, desk.Unavailable, desk.SendInProgress} {
		if desk.IsType(err, t) {
			return true
		}
	}
	return false
}

func (a *App) replyByRule(ctx context.Context, ws desk.ID, job *desk.AutoReplyJob) error {
	settings, err := a.store.Settings(ctx, ws)
	if err != nil {
		return err
	}
	key := job.Key()
	r := &desk.ReplyRequest{Key: key, Hash: a.BodyHash([]byte(key)), Conversation: job.Conversation, Text: job.Text, Rule: job.Kind}
	_, err = a.Reply(ctx, Principal{Actor: bySystem(), Settings: settings}, r, desk.ID{}, nil)
	return err
}

const (
	// poolEvery is how often a process looks for conversations that wait for somebody to
	// be eligible: they are assigned within 10 seconds.
	poolEvery = 2 * time.Second

	// poolStep is how many are assigned in one transaction, which others wait for.
	poolStep = 50

	maxPools = 4 // workspaces at a time
)

// longest is the order in which conversations are assigned.
var longest = desk.ConversationFilter{Longest: true}

// AssignWaiting assigns what waits and nobody holds, until ctx ends: capacity was freed,
// somebody came back, the hours have begun, or the policy was changed.
func (a *App) AssignWaiting(ctx context.Context) {
	a.runCrew(ctx, crew{work: "assign waiting conversations", every: poolEvery, most: maxPools, mostOf: 1, due: a.store.Pools, next: a.assignSome})
}

// assignSome assigns waiting conversations of a workspace, those who have waited longest
// first, and tells whether there may be more.
func (a *App) assignSome(ctx context.Context, ws desk.ID) (more bool, err error) {
	defer caught("waiting conversations", &err)
	now, _, err := a.store.Clock(ctx)
	if err != nil {
		return false, err
	}
	settings, err := a.store.Settings(ctx, ws)
	if err != nil || len(assigning(settings, now)) == 0 {
		return false, err
	}
	err = a.store.InTx(ctx, ws, func(tx Tx) error {
		more = false
		if err := tx.LockAssignment(); err != nil {
			return err
		}
		var pool []*desk.Conversation
		for _, channel := range assigning(tx.Settings(), tx.Now()) {
			list, err := tx.Pool(channel, poolStep)
			if err != nil {
				return err
			}
			pool = append(pool, list...)
		}
		slices.SortFunc(pool, func(v, w *desk.Conversation) int { return v.PlaceIn(longest).Compare(w.PlaceIn(longest)) })
		nobody := map[desk.ID]bool{} // is eligible, by the policy's channel
		assigned := 0
		for _, c := range pool {
			p := tx.Settings().Policy(c.ChannelID)
			if nobody[p.Channel] || assigned == poolStep {
				continue
			}
			before := *c
			ok, err := a.assignByRule(tx, p, c)
			if err != nil {
				return err
			}
			if !ok {
				nobody[p.Channel] = true
				continue
			}
			if err := tx.PutConversation(c); err != nil {
				return err
			}
			if err := tx.Append(conversationEvents(c, &before, bySystem(), a.now())...); err != nil {
				return err
			}
			assigned++
		}
		more = assigned > 0
		return nil
	})
	return more, err
}

// assigning returns the channels whose policy assigns now: the hours are open, and
// somebody of its list is there.
func assigning(s *desk.Settings, now desk.Time) (list []desk.ID) {
	for _, c := range s.Channels() {
		if p := s.Policy(c.ID); p != nil && len(p.Assign.Here(s)) > 0 && p.Hours.Open(now) {
			list = append(list, c.ID)
		}
	}
	return list
}
