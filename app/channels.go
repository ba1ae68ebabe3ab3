package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/desk"
	"parley/provider"
)

// checkHandle refuses a channel if another channel has the same external id.
func checkHandle(s *desk.Settings, c *desk.Channel) error {
	if other := s.ChannelOf(c.Kind, c.ExternalID); other != nil {
		return desk.InvalidAt("/external_id", "the channel %s of this workspace has it already", other.ID)
	}
	return nil
}

// A NewChannel is a channel to add.
type NewChannel struct {
	Kind       desk.ChannelKind
	ExternalID string
	Name       string           // "": none
	Account    desk.Account     // without Sealed
	Secrets    provider.Secrets // an empty VerifyToken is replaced by a new one
}

// OwnAddresses reports whether members may set an address for a provider's API. This needs
// the operator's setting that opens such addresses to webhooks. Connections to such an
// address are guarded like those to webhooks (desk.Account.Guarded).
func (a *App) OwnAddresses() bool { return a.addresses.PlainHTTP }

// AddChannel adds a channel, subscribes to callbacks, and fetches the templates. First
// it asks the provider whether the channel can be used. If it can't, AddChannel returns
// InvalidRequest and stores nothing. It returns the channel with its secrets, and the
// problems that do not prevent its use.
func (a *App) AddChannel(ctx context.Context, p desk.Principal, n NewChannel) (at provider.Access, problems []provider.Problem, err error) {
	c := &desk.Channel{ID: a.newID(), Kind: n.Kind, ExternalID: n.ExternalID, Enabled: true, CreatedAt: a.now(), Library: 1, Account: n.Account}
	at = provider.Access{Workspace: p.Workspace(), Channel: c, Secrets: n.Secrets}
	if err := p.Allow(desk.Administer); err != nil {
		return at, nil, err
	}
	if c.Account.BaseOf = ""; n.Account.BaseURL != "" {
		c.Account.BaseOf = desk.SetByTenant
		if p.Actor.Kind == desk.ByCLI {
			c.Account.BaseOf = desk.SetByOperator
		}
	}
	if c.Account.BaseOf == desk.SetByTenant {
		if err := a.addresses.CheckBase(n.Account.BaseURL); err != nil {
			return at, nil, err
		}
	}
	if c.Name, err = channelName(n.Name); err != nil {
		return at, nil, err
	}
	impl := a.providers[n.Kind]
	if err := impl.CheckAccount(c, &at.Secrets); err != nil {
		return at, nil, err
	}
	if err := checkHandle(p.Settings, c); err != nil {
		return at, nil, err
	}
	elsewhere := false
	if _, calls := impl.(provider.CallbackProvider); calls {
		if at.Secrets.VerifyToken == (provider.Secret{}) {
			token := make([]byte, 16)
			a.random(token)
			at.Secrets.VerifyToken = provider.NewSecret(hex.EncodeToString(token))
		}
		if elsewhere, err = a.connectedElsewhere(ctx, at.Workspace, c); err != nil {
			return at, nil, err
		}
	}
	if problems, err = a.connect(ctx, at); err != nil {
		return at, nil, err
	}
	if elsewhere {
		problems = append(problems, provider.Problem{Text: "another workspace has connected this number, too: the provider sends callbacks to only one of the two channels, the one whose path is in its callback URL"})
	}
	if at.Secrets != (provider.Secrets{}) {
		c.Account.Sealed = a.seal(at.Workspace, c, at.Secrets)
	}
	err = a.configure(ctx, p, func(s *desk.Settings) (desk.Change, error) {
		return desk.Change{Channel: c}, checkHandle(s, c)
	})
	if err != nil {
		return at, nil, err
	}
	if _, simulated := impl.(provider.Simulator); !simulated {
		if _, _, err := a.sync(ctx, at.Workspace, c.ID); err != nil { // the channel exists all the same
			problems = append(problems, provider.Problem{Text: fmt.Sprintf("the templates could not be fetched: %v", err), Advice: desk.Advice{Kind: desk.SyncChannel, Arg: c.ID.String()}})
		}
	}
	return at, problems, nil
}

// channelName reads the name of a channel.
func channelName(text string) (string, error) {
	name, err := desk.ParseChannelName(text)
	if err != nil {
		return "", desk.InvalidAt("/name", "%v", err)
	}
	return name, nil
}

// connectedElsewhere reports whether another workspace has a channel with the same number.
func (a *App) connectedElsewhere(ctx context.Context, ws desk.ID, c *desk.Channel) (bool, error) {
	refs, err := a.store.ChannelsOfKind(ctx, c.Kind)
	for _, ref := range refs {
		if err != nil || ref.Workspace == ws {
			continue
		}
		var s *desk.Settings
		if s, err = a.store.Settings(ctx, ref.Workspace); err == nil && s.ChannelOf(c.Kind, c.ExternalID) != nil {
			return true, nil
		}
	}
	return false, err
}

// connect subscribes a channel to callbacks, and returns its problems, or InvalidRequest if
// the channel can't be used. It subscribes last, and only if there is no other blocking
// problem, so that a refused channel leaves no subscription at the provider.
func (a *App) connect(ctx context.Context, at provider.Access) ([]provider.Problem, error) {
	impl := a.providers[at.Channel.Kind]
	problems, err := impl.Check(ctx, at)
	inTheWay := slices.ContainsFunc(problems, func(p provider.Problem) bool { return p.Blocking && !p.Unsubscribed })
	unsubscribed := slices.ContainsFunc(problems, func(p provider.Problem) bool { return p.Unsubscribed })
	// If Subscribe fails, the problems of the first check are returned: they say why.
	if caller, ok := impl.(provider.CallbackProvider); ok && err == nil && unsubscribed && !inTheWay && caller.Subscribe(ctx, at) == nil {
		problems, err = impl.Check(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	if texts := blocking(problems); texts != nil {
		return nil, desk.Invalidf("the channel would not work, so nothing was stored: %s", strings.Join(texts, "; "))
	}
	return problems, nil
}

func blocking(problems []provider.Problem) (texts []string) {
	for _, p := range problems {
		if p.Blocking {
			texts = append(texts, p.Text)
		}
	}
	return texts
}

// A ChannelEdit has the new values of a channel's fields; nil means no change. A binding ""
// means: guess it from the variable's name.
type ChannelEdit struct {
	Enabled   *bool
	Name      *string          // "": none
	PerSecond *int             // 0: the provider's default
	Secrets   provider.Secrets // non-empty secrets replace the old ones
	Bindings  map[desk.BindingPlace]desk.Binding
}

// EditChannel changes the fields that the edit sets, or returns NotFound. A binding must be
// for a variable of one of the channel's templates. New secrets are tried at the provider
// first. The old app secret stays valid beside a new one for some time, because callbacks
// under way are signed with it.
func (a *App) EditChannel(ctx context.Context, p desk.Principal, id desk.ID, edit ChannelEdit) (c desk.Channel, err error) {
	channel, err := administered(p, id)
	if err != nil {
		return c, err
	}
	library, err := a.libraries.of(ctx, p.Workspace(), channel)
	if err != nil {
		return c, err
	}
	for place, b := range edit.Bindings {
		if channel.Bindings[place] != "" && b == "" {
			continue // a binding can be removed even if its template no longer exists
		}
		if err := checkPlace(id, library, place); err != nil {
			return c, err
		}
	}
	name := ""
	if edit.Name != nil {
		if name, err = channelName(*edit.Name); err != nil {
			return c, err
		}
	}
	c = *channel
	at, err := a.editAccount(p.Workspace(), &c, edit)
	if err != nil {
		return c, err
	}
	if edit.Secrets.Token != (provider.Secret{}) || edit.Secrets.AppSecret != (provider.Secret{}) {
		if _, err := a.connect(ctx, at); err != nil {
			return c, err
		}
	}
	err = a.configure(ctx, p, func(s *desk.Settings) (desk.Change, error) {
		c = *s.Channel(id)
		if edit.Enabled != nil {
			c.Enabled = *edit.Enabled
		}
		if edit.Name != nil {
			c.Name = name
		}
		if _, err := a.editAccount(s.ID, &c, edit); err != nil {
			return desk.Change{}, err
		}
		isNew := !bytes.Equal(c.Account.Sealed, s.Channel(id).Account.Sealed)
		if edit.Secrets.Token != (provider.Secret{}) && (c.Status.Blocked == "" && isNew || c.Status.Blocked != "" && c.Status.ByCall) { // the provider has just accepted it
			c.Status = (*desk.AccountRefusal)(nil).Status(a.now())
		}
		c.Bindings = maps.Clone(c.Bindings)
		for place, b := range edit.Bindings {
			if b == "" {
				delete(c.Bindings, place)
				continue
			}
			if c.Bindings == nil {
				c.Bindings = map[desk.BindingPlace]desk.Binding{}
			}
			c.Bindings[place] = b
		}
		return desk.Change{Channel: &c}, nil
	})
	return c, err
}

// editAccount changes a channel's account and secrets, if its provider has these settings.
// It returns the channel with its secrets, if the edit has new ones.
func (a *App) editAccount(ws desk.ID, c *desk.Channel, edit ChannelEdit) (at provider.Access, err error) {
	if edit.PerSecond == nil && edit.Secrets == (provider.Secrets{}) {
		return at, nil
	}
	if edit.PerSecond != nil {
		c.Account.PerSecond = *edit.PerSecond
	}
	if edit.Secrets == (provider.Secrets{}) {
		return at, a.providers[c.Kind].CheckAccount(c, nil)
	}
	if at, err = a.access(ws, c); err != nil {
		return at, err
	}
	before := at.Secrets
	if at.Secrets = before.Replaced(edit.Secrets, a.now()+desk.Time(desk.KeepCallback.Milliseconds())); at.Secrets != before {
		c.Account.Sealed = a.seal(ws, c, at.Secrets)
	}
	return at, a.providers[c.Kind].CheckAccount(c, &at.Secrets)
}

func checkPlace(channel desk.ID, l *desk.Library, place desk.BindingPlace) error {
	t := l.Find(place.Template, place.Language)
	if t == nil {
		return desk.InvalidAt("/bind", "the channel has no template %s/%s", place.Template, place.Language).Advise(desk.SyncChannel, channel.String())
	}
	for _, v := range t.Variables {
		if v.Address() == place.Address {
			return nil
		}
	}
	return desk.InvalidAt("/bind", "the template %s/%s has no variable %s", place.Template, place.Language, place.Address)
}

// CheckChannel returns the problems of a channel, or NotFound. A channel without problems
// works.
func (a *App) CheckChannel(ctx context.Context, p desk.Principal, id desk.ID) ([]provider.Problem, error) {
	channel, err := administered(p, id)
	if err != nil {
		return nil, err
	}
	at, err := a.access(p.Workspace(), channel)
	var sealed *sealedError
	if errors.As(err, &sealed) {
		return []provider.Problem{{Text: err.Error(), Blocking: true}}, nil
	}
	if err != nil {
		return nil, err
	}
	problems, err := a.providers[at.Channel.Kind].Check(ctx, at)
	if _, simulated := a.providers[channel.Kind].(provider.Simulator); !simulated && err == nil {
		var more []provider.Problem
		more, err = a.checkSigns(ctx, at)
		problems = append(problems, more...)
	}
	if !at.Channel.Enabled {
		problems = append(problems, provider.Problem{Text: "the channel is disabled, so nothing is sent", Blocking: true, Advice: desk.Advice{Kind: desk.EnableChannel, Arg: id.String()}})
	}
	return problems, err
}

// checkSigns checks whether callbacks of the provider arrive.
func (a *App) checkSigns(ctx context.Context, at provider.Access) (problems []provider.Problem, err error) {
	id := at.Channel.ID
	signs, now, err := a.store.ChannelSigns(ctx, at.Workspace, id)
	if err != nil {
		return nil, err
	}
	if status := &at.Channel.Status; status.ByCall && status.Blocked != "" {
		problems = append(problems, provider.Problem{Blocking: true, Text: fmt.Sprintf("since %s the provider has refused all messages of the channel (code %d, %s; fbtrace_id %s): the channel works again after the provider accepts a message",
			status.Since, status.Code, status.Blocked, cmp.Or(status.Trace, "unknown"))})
	} else if why := status.BlockedAt(a.now()); why != "" {
		text := "the provider blocks the account: " + why
		if status.Replies {
			text += "; people who wrote are still answered"
		}
		problems = append(problems, provider.Problem{Text: text, Blocking: true})
	}
	switch {
	case signs.Synced == 0:
		problems = append(problems, provider.Problem{Text: "the templates were never fetched", Blocking: true, Advice: desk.Advice{Kind: desk.SyncChannel, Arg: id.String()}})
	case now-signs.Synced > 3*desk.Time(syncEvery.Milliseconds()):
		problems = append(problems, provider.Problem{Text: "the templates were fetched last on " + signs.Synced.String() + ", but a running server fetches them every hour", Advice: desk.Advice{Kind: desk.SyncChannel, Arg: id.String()}})
	}
	caller, calls := a.providers[at.Channel.Kind].(provider.CallbackProvider)
	if !calls {
		return problems, nil
	}
	newest, err := a.store.NewestCallback(ctx, at.Workspace, id)
	if err != nil {
		return problems, err
	}
	report := caller.ReportingAdvice(CallbackPath(at.Channel.Kind, id.String()))
	// The provider verifies the callback URL when it is entered. After that, it calls only
	// to report something.
	if now-max(signs.Asked, at.Channel.CreatedAt, newest) > desk.Time(desk.KeepCallback.Milliseconds()) {
		problems = append(problems, provider.Problem{Text: "no callback has come in the last seven days, so statuses and customers' messages may not arrive: " + report})
	} else if signs.Asked == 0 && newest == 0 {
		problems = append(problems, provider.Problem{Text: "no callback has come yet, and the provider has not asked for the callback URL: " + report})
	}
	return problems, nil
}

// A ChannelHealth says when a channel last worked, by the database's clock; 0: never.
type ChannelHealth struct {
	desk.ChannelSigns
	Callback  desk.Time // the newest callback
	Reporting string    // advice on how to get callbacks from the provider; "": it sends none
}

// ChannelHealth returns the health of a channel as far as it is stored, without a call to
// the provider, or NotFound.
func (a *App) ChannelHealth(ctx context.Context, p desk.Principal, id desk.ID) (h ChannelHealth, err error) {
	channel, err := administered(p, id)
	if err != nil {
		return h, err
	}
	if h.ChannelSigns, _, err = a.store.ChannelSigns(ctx, p.Workspace(), id); err != nil {
		return h, err
	}
	if h.Reporting = a.Reporting(channel); h.Reporting != "" {
		h.Callback, err = a.store.NewestCallback(ctx, p.Workspace(), id)
	}
	return h, err
}

// Reporting returns advice on how to get callbacks from a channel's provider, or "" if it
// sends none.
func (a *App) Reporting(c *desk.Channel) string {
	if caller, calls := a.providers[c.Kind].(provider.CallbackProvider); calls {
		return caller.ReportingAdvice(CallbackPath(c.Kind, c.ID.String()))
	}
	return ""
}
