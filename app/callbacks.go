package app

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/app/readings"
	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// MaxCallback is how long a callback's body may be, in bytes.
const MaxCallback = 4 << 20

// CallbackKinds lists the kinds of channels whose providers send callbacks.
func (a *App) CallbackKinds() (kinds []desk.ChannelKind) {
	for kind, p := range a.providers {
		if _, ok := p.(provider.CallbackProvider); ok {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// CallbackPath is the path of a channel's callback URL.
func CallbackPath(kind desk.ChannelKind, channel string) string {
	return "/hooks/" + string(kind) + "/" + channel
}

// VerifyCallback returns the answer to a provider that verifies the callback URL of a
// channel. kind is one of CallbackKinds. The request must contain the verify token, which
// the operator gave to parley and to the provider. Otherwise it returns Forbidden.
func (a *App) VerifyCallback(ctx context.Context, kind desk.ChannelKind, channel desk.ID, query func(string) string) (answer string, err error) {
	token, answer, ok := a.providers[kind].(provider.CallbackProvider).Handshake(query)
	if !ok {
		return "", desk.Errorf(desk.Forbidden, "the request does not verify a callback URL")
	}
	at, known, err := a.calledBack(ctx, kind, channel)
	if err != nil {
		return "", err
	}
	want := at.Secrets.VerifyToken.Reveal()
	if !known || want == "" || subtle.ConstantTimeCompare([]byte(token), []byte(want)) != 1 {
		return "", desk.Errorf(desk.Forbidden, "the verify token is not the channel's")
	}
	return answer, a.store.NoteChannel(ctx, at.Workspace, channel, store.SignAsked)
}

// ReceiveCallback stores a callback durably. The callback is processed soon after. kind is
// one of CallbackKinds. It returns Unauthorized if the provider did not sign the callback
// with the secrets of this channel, or if the channel is of another kind. Neither the
// answer nor its duration shows whether the channel exists.
func (a *App) ReceiveCallback(ctx context.Context, kind desk.ChannelKind, channel desk.ID, header func(string) string, body []byte) error {
	at, known, err := a.calledBack(ctx, kind, channel)
	if err != nil {
		return err
	}
	if !known {
		at = provider.Access{Secrets: provider.Secrets{AppSecret: provider.NewSecret("of a channel that does not exist")}}
	}
	if !a.providers[kind].(provider.CallbackProvider).Signed(at, header, body) || !known {
		return desk.Errorf(desk.Unauthorized, "the callback's signature is not the channel's")
	}
	return a.storeCallback(ctx, at.Workspace, at.Channel, body)
}

// calledBack returns the channel to which a callback was sent, and whether this channel
// exists.
func (a *App) calledBack(ctx context.Context, kind desk.ChannelKind, channel desk.ID) (at provider.Access, known bool, err error) {
	_, at, err = a.accessOf(ctx, channel)
	if desk.IsType(err, desk.NotFound) {
		return at, false, nil
	}
	return at, err == nil && at.Channel.Kind == kind, err
}

func (a *App) storeCallback(ctx context.Context, ws desk.ID, channel *desk.Channel, body []byte) error {
	n := desk.InboundItem{Channel: channel.ID, ID: a.newID(), Body: body}
	reports := a.providers[channel.Kind].(provider.CallbackProvider).OnlyReports(body)
	err := a.store.InTx(store.Patiently(ctx), ws, func(tx store.Tx) error {
		n.Came(tx.Now(), reports)
		if err := tx.PutCallback(n); err != nil {
			return err
		}
		return tx.PutInbound(n)
	})
	if err != nil {
		return err
	}
	wait := time.Duration(0)
	if len(body) <= maxGathered {
		if one, err := a.read(channel.Kind, n); err == nil && one.StatusesOnly() { // otherwise the worker meets the bug
			wait = gathered
		}
	}
	a.inboundDue.after(ws, wait)
	return nil
}

// read reads a callback's body. If a bug makes it panic, the body stays unread.
func (a *App) read(kind desk.ChannelKind, n desk.InboundItem) (one *readings.Reading, err error) {
	defer steps.Caught("inbound item", &err)
	one = &readings.Reading{}
	if n.Body != nil { // otherwise it was deleted
		one.Told, _, one.Err = a.providers[kind].Read(n)
		if reader, ok := a.providers[kind].(provider.CallbackProvider); ok && one.Err == nil {
			one.People = reader.People(n.Body)
		}
	}
	a.readings.Put(n.ID, one, len(n.Body))
	return one, nil
}

// updateTemplate stores the new status of a template of a business account. After other
// changes, it schedules a fetch of the library.
func (a *App) updateTemplate(ctx context.Context, ws desk.ID, kind desk.ChannelKind, business string, news provider.TemplateUpdate) {
	a.ofBusiness(ctx, ws, kind, business, func(c *desk.Channel) error {
		a.libraries.stale.add(c.ID)
		if news.Status == "" {
			return nil
		}
		return a.setTemplateStatus(ctx, ws, c.ID, news)
	})
}

// setAccountStatus stores whether a business account may send.
func (a *App) setAccountStatus(ctx context.Context, ws desk.ID, kind desk.ChannelKind, business string, news provider.AccountStatus) {
	a.ofBusiness(ctx, ws, kind, business, func(c *desk.Channel) error {
		status := desk.AccountStatus{Blocked: news.Blocked, Replies: news.Replies, Until: news.Until, Since: news.At}
		changed, err := a.noteAccountStatus(ctx, ws, c.ID, status)
		if changed && c.Status.Blocked != status.Blocked {
			a.logAccountStatus(ctx, ws, c.ID, status)
		}
		return err
	})
}

// ofBusiness calls the function do for each channel of a business account, and logs its
// errors.
func (a *App) ofBusiness(ctx context.Context, ws desk.ID, kind desk.ChannelKind, business string, do func(*desk.Channel) error) {
	s, err := a.store.Settings(ctx, ws)
	if err == nil {
		for _, c := range s.Channels() {
			if c.Kind == kind && c.Account.BusinessID == business {
				err = errors.Join(err, do(c))
			}
		}
	}
	if err != nil {
		a.log.ErrorContext(ctx, "a provider's report about an account can't be stored", "workspace_id", ws, "err", err)
	}
}

// setTemplateStatus changes the status of a stored template.
func (a *App) setTemplateStatus(ctx context.Context, ws, channel desk.ID, news provider.TemplateUpdate) error {
	version, stored, err := a.store.Templates(ctx, ws, channel)
	if err != nil {
		return err
	}
	for i, t := range stored {
		// Callbacks sometimes spell en_US as en-US.
		if t.Name != news.Name || strings.ReplaceAll(t.Language, "-", "_") != strings.ReplaceAll(news.Language, "-", "_") {
			continue
		}
		changed, err := t.WithStatus(news.Status)
		if err != nil || changed == t {
			return err
		}
		list := slices.Clone(stored)
		list[i] = changed
		if err := a.replaceLibrary(ctx, ws, channel, version, stored, list); !errors.Is(err, errMoved) {
			return err
		}
		return a.setTemplateStatus(ctx, ws, channel, news)
	}
	return nil // the template is not stored yet: the next fetch stores it
}
