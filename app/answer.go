package app

import (
	"context"
	"errors"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// bySystem is the actor of what parley does by itself: what the reply policy assigns and
// sends.
func bySystem() desk.Actor { return desk.Actor{Kind: desk.BySystem} }

// answerByPolicy assigns the conversation of a new inbound message by the reply policy that
// is in force, and returns the policy and what else it does. The conversation is not stored
// yet.
func (a *App) answerByPolicy(tx store.Tx, c *desk.Conversation, contact *desk.Contact, m *desk.Message) (*desk.Policy, desk.Decision, error) {
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
func lockAssignment(tx store.Tx) error {
	for p := range tx.Settings().Policies() {
		if p.Assign != nil && p.Assign.Mode != desk.AssignNone {
			return tx.LockAssignment()
		}
	}
	return nil
}

// assignByRule assigns a conversation that nobody holds to whom a policy chooses, and tells
// whether somebody was eligible.
func (a *App) assignByRule(tx store.Tx, p *desk.Policy, c *desk.Conversation) (bool, error) {
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

// hasOptedOut tells whether a contact has opted out, by any of its numbers or provider's
// ids, or by the number from which it just wrote.
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

const (
	// autoReplyEvery is how often a process looks for automatic replies to send.
	autoReplyEvery = time.Second

	// maxAutoReplying is how many of them a process sends at a time, and maxAutoReplyingOf
	// how many of one workspace.
	maxAutoReplying   = 8
	maxAutoReplyingOf = 4

	// autoReplyLease is how long a process has one without extending its lease, which it does
	// in every autoReplyHold-th part of that time while it sends. So what a killed process
	// had is soon sent by another. Should two send one, its key is for one send.
	autoReplyLease = 20 * time.Second
	autoReplyHold  = 4

	// longestAutoReply is longer than any of them waits.
	longestAutoReply = 10 * time.Minute
)

// SendAutoReplies sends automatic replies until ctx ends.
func (a *App) SendAutoReplies(ctx context.Context) {
	steps.Jobs{
		Work: "send automatic replies", Every: autoReplyEvery, Most: maxAutoReplying, MostOf: maxAutoReplyingOf, Next: a.sendAutoReply,
		Due: func(ctx context.Context) ([]desk.ID, error) {
			waits, err := a.store.AutoRepliesDue(ctx, longestAutoReply)
			return steps.DueNow(waits), err
		},
	}.Run(ctx, a.log)
}

// errSilent is why an automatic reply is given up that was decided.
var errSilent = errors.New("a person replied meanwhile, or the customer opted out")

// sendAutoReply sends the next automatic reply of a workspace, if one is due, and tells
// whether one was. It is an ordinary reply, whose key is made of the message that it
// answers: whichever process sends it again gets the first one's answer.
func (a *App) sendAutoReply(ctx context.Context, ws desk.ID) (had bool, err error) {
	defer steps.Caught("automatic reply", &err)
	lease := a.bounds.AutoReply
	job, err := a.store.TakeAutoReply(ctx, ws, lease, longestAutoReply)
	if err != nil || job == nil {
		return false, err
	}
	refused := error(nil)
	held := job.Due
	if taken := job.Due - desk.Time(lease.Milliseconds()); !job.Late(taken) {
		end := a.holdAutoReply(ctx, ws, job, lease)
		refused = a.replyByRule(ctx, ws, job)
		held = end()
	}
	if refused != nil && ctx.Err() != nil && desk.IsType(refused, desk.SendInProgress) {
		return false, nil // the process stops; the lease ends
	}
	err = a.store.InTx(context.WithoutCancel(ctx), ws, func(tx store.Tx) error {
		next, err := tx.AutoReply(job.Contact, job.Message)
		if err != nil || next == nil {
			return err // the person was erased, or another process was faster
		}
		if forNow(refused) && next.Due != held {
			return nil // another process has it now
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

// holdAutoReply extends the lease of an automatic reply that this process sends, until end is
// called, which returns when the lease ends. If another process has the job meanwhile, it is
// left to that one.
func (a *App) holdAutoReply(ctx context.Context, ws desk.ID, job *desk.AutoReplyJob, lease time.Duration) (end func() desk.Time) {
	ctx, stop := context.WithCancel(ctx)
	until, ended := job.Due, make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lease / autoReplyHold)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			extended := until
			err := a.store.InTx(ctx, ws, func(tx store.Tx) error {
				extended = until
				now, err := tx.AutoReply(job.Contact, job.Message)
				if err != nil || now == nil || now.Due != until {
					return err
				}
				now.Due = tx.Now() + desk.Time(lease.Milliseconds())
				extended = now.Due
				return tx.PutAutoReply(*now)
			})
			if err == nil {
				until = extended
			}
		}
	}()
	return func() desk.Time {
		stop()
		<-ended
		return until
	}
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
	_, err = a.Reply(ctx, desk.Principal{Actor: bySystem(), Settings: settings}, r, desk.ID{}, nil)
	return err
}
