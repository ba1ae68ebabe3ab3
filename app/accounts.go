package app

import (
	"context"
	"errors"

	"parley/desk"
	"parley/store"
)

// accountAnswered stores the account status that a call to the provider shows. The
// parameter refused is the provider's refusal, or nil if the call worked. The parameter
// channel is the channel as it was before the call. If its status has changed since then,
// the result of the call is older, and is ignored. If the status is already stored, nothing
// is written.
func (a *App) accountAnswered(ctx context.Context, ws desk.ID, channel *desk.Channel, refused *desk.AccountRefusal) {
	if refused == nil && channel.Status.Blocked == "" {
		return
	}
	news := refused.Status(a.now())
	if _, changes := channel.Status.Next(news); !changes {
		return
	}
	changed := false
	err := store.UpdateSettings(ctx, a.store, ws, byProvider(channel.ID), a.now, func(s *desk.Settings) (desk.Change, error) {
		edited := *s.Channel(channel.ID)
		if changed = edited.Status == channel.Status; !changed {
			return desk.Change{}, nil
		}
		edited.Status = news
		return desk.Change{Channel: &edited}, nil
	})
	switch {
	case err != nil: // the next call reports it again
		a.log.WarnContext(ctx, "a channel's account status can't be stored", "workspace_id", ws, "channel_id", channel.ID, "err", err)
	case changed:
		a.logAccountStatus(ctx, ws, channel.ID, news)
	}
}

// logAccountStatus logs that a channel's account status has changed.
func (a *App) logAccountStatus(ctx context.Context, ws, channel desk.ID, now desk.AccountStatus) {
	switch {
	case now.Blocked == "":
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes messages", "workspace_id", ws, "channel_id", channel)
	case now.ByCall:
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes no messages", "workspace_id", ws, "channel_id", channel, "code", now.Code, "fbtrace_id", now.Trace)
	case now.Replies:
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes only replies", "workspace_id", ws, "channel_id", channel, "reason", now.Blocked)
	default:
		a.log.WarnContext(ctx, "a channel's account status has changed: its provider takes no messages", "workspace_id", ws, "channel_id", channel, "reason", now.Blocked)
	}
}

// fetchAnswered is like accountAnswered, for a fetch of templates. A fetch can succeed
// while sending is blocked, so its result only counts for the status of the token.
func (a *App) fetchAnswered(ctx context.Context, ws desk.ID, channel *desk.Channel, err error) {
	var refused *desk.AccountRefusal
	if errors.As(err, &refused) && refused.Token || err == nil && channel.Status.Token {
		a.accountAnswered(ctx, ws, channel, refused)
	}
}

// noteAccountStatus stores a report on a channel's account, and reports whether the status
// changed. A ByCall status without Blocked means that a call succeeded.
func (a *App) noteAccountStatus(ctx context.Context, ws, channel desk.ID, news desk.AccountStatus) (changed bool, err error) {
	err = store.UpdateSettings(ctx, a.store, ws, byProvider(channel), a.now, func(s *desk.Settings) (desk.Change, error) {
		edited := *s.Channel(channel)
		if edited.Status, changed = edited.Status.Next(news); !changed {
			return desk.Change{}, nil
		}
		return desk.Change{Channel: &edited}, nil
	})
	return changed && err == nil, err
}
