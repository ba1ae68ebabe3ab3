package app

import (
	"context"

	"parley/desk"
)

// Reply sends a free message into a conversation, once for each Idempotency-Key, as Send
// does. The message goes to the address from which the person wrote last. If the
// conversation is no longer in the seen state (nil: any state is accepted), Reply sends
// nothing and returns Changed.
func (a *App) Reply(ctx context.Context, p desk.Principal, r *desk.ReplyRequest, request desk.ID, seen *Seen) (SendAnswer, error) {
	return a.once(ctx, p, r.Key, r.Hash, func() (*desk.Attempt, *outgoing, error) {
		plan, err := a.planReply(ctx, p, r, request)
		if err != nil {
			return nil, nil, err
		}
		plan.dispatch.seen = seen
		if plan.file != nil {
			_, err = a.attach(ctx, plan.dispatch, plan.file)
		}
		return plan.attempt, plan.dispatch, err
	})
}

// TryReply is Reply as a dry run (contract-data §1).
func (a *App) TryReply(ctx context.Context, p desk.Principal, r *desk.ReplyRequest) ([]byte, error) {
	plan, err := a.planReply(ctx, p, r, desk.ID{})
	if err != nil {
		return nil, err
	}
	m := replied(p.Settings, plan.attempt, plan.conversation, "", plan.attempt.CreatedAt)
	m.Conversation.LastMessageAt, m.Message.Attachment = plan.conversation.LastMessageAt, plan.file
	m.Message.ID, m.Message.TS, m.Message.Delivery = desk.ID{}, 0, ""
	return a.answer(m), nil
}
