package app

import (
	"context"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

const (
	// autoReplyEvery is how often a process looks for automatic replies to send.
	autoReplyEvery = time.Second

	// maxAutoReplying is how many of them a process sends at a time, and maxAutoReplyingOf
	// how many of one workspace.
	maxAutoReplying   = 8
	maxAutoReplyingOf = 4

	// autoReplyHold is in which part of its lease a process extends it while it sends.
	autoReplyHold = 4

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
