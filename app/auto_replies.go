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

	// maxAutoReplying is how many automatic replies a process sends at a time;
	// maxAutoReplyingOf is the limit for one workspace.
	maxAutoReplying   = 8
	maxAutoReplyingOf = 4

	// A process that sends extends its lease after each 1/autoReplyHold of the lease's length.
	autoReplyHold = 4

	// longestAutoReply is longer than any automatic reply waits.
	longestAutoReply = 10 * time.Minute
)

// SendAutoReplies sends automatic replies until ctx ends.
func (a *App) SendAutoReplies(ctx context.Context) {
	steps.Jobs{
		Work: "send automatic replies", Every: autoReplyEvery, Most: maxAutoReplying, MostOf: maxAutoReplyingOf, Due: a.autoReplies.Now, Next: a.sendAutoReply,
	}.Run(ctx, a.log)
}

// sendAutoReply sends the next automatic reply of a workspace, if one is due. It reports
// whether there was one. The reply is sent like any other. Its key is made of the message
// that it answers, so a process that sends it again gets the answer of the first send.
func (a *App) sendAutoReply(ctx context.Context, ws desk.ID) (had bool, err error) {
	defer steps.Caught("automatic reply", &err)
	lease := a.bounds.AutoReply
	job, err := a.store.TakeAutoReply(ctx, ws, lease, longestAutoReply)
	if err != nil || job == nil {
		return false, err
	}
	defer a.autoReplies.Again()
	refused := error(nil)
	held := job.Due
	if taken := job.Due - desk.Time(lease.Milliseconds()); !job.Late(taken) {
		end := a.holdAutoReply(ctx, ws, job, lease)
		refused = a.replyByRule(ctx, ws, job)
		held = end()
	}
	if refused != nil && ctx.Err() != nil && desk.IsType(refused, desk.SendInProgress) {
		return false, nil // the process stops; after the lease, another one tries again
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

// holdAutoReply extends the lease of an automatic reply until end is called. end returns when
// the lease ends. If another process has taken the job, the lease is no longer extended.
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

// forNow reports whether a send was refused only for the moment, so that a later try may
// succeed.
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
