package media

import (
	"context"
	"errors"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
)

// refLife is how long a provider's id of a file is used, in milliseconds. handOverTime is
// how long handing a file over may take.
const (
	refLife      = desk.Time(29 * 24 * 60 * 60 * 1000)
	handOverTime = time.Minute
)

// HandOver gives a ready file to the provider of a channel, unless the provider has it
// already, and returns the provider's id of the file, and whether it gave it now. Its errors are those
// of Send, and Unavailable.
func (a *Service) HandOver(ctx context.Context, at provider.Access, talker provider.Talker, m *desk.Media) (ref string, handed bool, err error) {
	defer steps.Caught("provider", &err)
	ref, since, err := a.Store.MediaRef(ctx, at.Workspace, m.ID, at.Channel.ID)
	if now := a.Now(); err != nil || ref != "" && since <= now && since > now-refLife {
		return ref, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	leave, err := a.transfers.enter(ctx, at.Workspace)
	if err != nil {
		return "", false, err
	}
	defer leave()
	content, err := a.openContent(ctx, at.Workspace, m)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	began := a.Now()
	if ref, err = talker.Upload(ctx, at, m.MIME, m.Name, m.Size, content); err != nil {
		return "", false, err
	}
	return ref, true, a.Store.PutMediaRef(context.WithoutCancel(ctx), at.Workspace, m.ID, at.Channel.ID, ref, began)
}
