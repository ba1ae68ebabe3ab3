package app

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"parley/desk"
)

// What follows is the operator's side of channels, as in admin.go.

// AddSandbox adds a sandbox channel. externalID may be "", which makes one up.
func (a *App) AddSandbox(ctx context.Context, ws desk.ID, externalID string) (desk.Channel, error) {
	c := desk.Channel{ID: a.newID(), Kind: desk.SandboxChannel, ExternalID: externalID, Enabled: true, CreatedAt: a.now(), Library: 1}
	if externalID == "" {
		c.ExternalID = "sandbox-" + c.ID.String()
	}
	if _, err := desk.ParseExternalID(c.ExternalID); err != nil {
		return c, desk.Invalidf("external-id: %v", err)
	}
	return c, a.addChannel(ctx, ws, &c, "external-id")
}

func (a *App) addChannel(ctx context.Context, ws desk.ID, c *desk.Channel, handle string) error {
	return a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		return desk.Change{Channel: c}, checkHandle(s, c, handle)
	})
}

// checkHandle refuses a channel whose handle at the provider another one has. The flag
// that gives it is named.
func checkHandle(s *desk.Settings, c *desk.Channel, flag string) error {
	if other := s.ChannelOf(c.Kind, c.ExternalID); other != nil {
		return desk.Invalidf("%s: the channel %s of this workspace has it already", flag, other.ID)
	}
	return nil
}

// A WhatsAppAccount is what connects a number of the WhatsApp Cloud API.
type WhatsAppAccount struct {
	PhoneNumberID string
	Account       desk.Account // all but Sealed and Blocked
	Secrets       Secrets      // a VerifyToken that is empty is made up
}

// AddWhatsApp adds a channel to a WhatsApp number, has the provider report to it, and
// fetches its templates. First it asks the provider whether the number can be used: it
// returns InvalidRequest, and stores nothing, when it can't. What else is wrong it returns.
func (a *App) AddWhatsApp(ctx context.Context, ws desk.ID, w WhatsAppAccount) (c desk.Channel, secrets Secrets, problems []Problem, err error) {
	c = desk.Channel{ID: a.newID(), Kind: desk.WhatsAppChannel, ExternalID: w.PhoneNumberID, Enabled: true, CreatedAt: a.now(), Library: 1, Account: w.Account}
	if err := checkAccount(&c); err != nil {
		return c, w.Secrets, nil, err
	}
	if w.Secrets.Token == (Secret{}) || w.Secrets.AppSecret == (Secret{}) {
		return c, w.Secrets, nil, desk.Invalidf("the access token and the app secret must not be empty")
	}
	if w.Secrets.VerifyToken == (Secret{}) {
		token := make([]byte, 16)
		a.random(token)
		w.Secrets.VerifyToken = NewSecret(hex.EncodeToString(token))
	}
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return c, w.Secrets, nil, err
	}
	if err := checkHandle(s, &c, "phone-number-id"); err != nil {
		return c, w.Secrets, nil, err
	}
	if problems, err = a.connect(ctx, Access{ws, &c, w.Secrets}); err != nil {
		return c, w.Secrets, nil, err
	}
	elsewhere, err := a.connectedElsewhere(ctx, ws, &c)
	if err != nil {
		return c, w.Secrets, nil, err
	}
	if elsewhere {
		problems = append(problems, Problem{"another workspace has connected this number, too: only the one hears anything whose path is Meta's callback URL", false})
	}
	c.Account.Sealed = a.seal(ws, c.ID, w.Secrets)
	if err := a.addChannel(ctx, ws, &c, "phone-number-id"); err != nil {
		return c, w.Secrets, nil, err
	}
	if _, _, err := a.SyncChannel(ctx, c.ID); err != nil { // the channel is there all the same
		problems = append(problems, Problem{fmt.Sprintf("the templates could not be fetched: %v; parley channel sync %s tries again", err, c.ID), false})
	}
	return c, w.Secrets, problems, nil
}

// connectedElsewhere tells whether a channel's number is also in another workspace.
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

// connect has the provider report to a channel, and returns what is wrong with it, or
// InvalidRequest when it could not work.
func (a *App) connect(ctx context.Context, at Access) ([]Problem, error) {
	provider := a.providers[at.Channel.Kind]
	problems, err := provider.Check(ctx, at)
	// That nobody has subscribed may be all; when it can't be done, the check says why.
	if err == nil && blocking(problems) != nil && provider.Subscribe(ctx, at) == nil {
		problems, err = provider.Check(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	if texts := blocking(problems); texts != nil {
		return nil, desk.Invalidf("the channel would not work, so nothing was stored: %s", strings.Join(texts, "; "))
	}
	return problems, nil
}

func blocking(problems []Problem) (texts []string) {
	for _, p := range problems {
		if p.Blocking {
			texts = append(texts, p.Text)
		}
	}
	return texts
}

// checkAccount refuses what can't be a WhatsApp number's.
func checkAccount(c *desk.Channel) error {
	for _, id := range [2]struct{ name, value string }{{"phone-number-id", c.ExternalID}, {"waba-id", c.Account.BusinessID}} {
		if id.value == "" || len(id.value) > 32 || strings.Trim(id.value, "0123456789") != "" {
			return desk.Invalidf("%s: give the number by which Meta's WhatsApp manager names it, digits only; it is not the phone number", id.name)
		}
	}
	if v := c.Account.Version; v != "" && (len(v) < 4 || v[0] != 'v' || strings.Trim(v[1:], "0123456789.") != "") {
		return desk.Invalidf("graph-version: give a version such as v26.0")
	}
	if base := c.Account.BaseURL; base != "" {
		if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return desk.Invalidf("graph-url: give a URL such as https://graph.facebook.com")
		}
	}
	if n := c.Account.PerSecond; n < 0 || n > 1000 {
		return desk.Invalidf("per-second: give 1 to 1000")
	}
	return nil
}

// ChannelsOf lists a workspace's channels, oldest first.
func (a *App) ChannelsOf(ctx context.Context, ws desk.ID) ([]*desk.Channel, error) {
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return nil, err
	}
	return s.Channels(), nil
}

// A ChannelEdit says what to change of a channel; nil stays. A binding "" goes back
// to the guess.
type ChannelEdit struct {
	Enabled   *bool
	PerSecond *int    // 0: the provider's default
	Secrets   Secrets // those that are not empty take the place of the old ones
	Bindings  map[desk.BindingPlace]desk.Binding
}

// EditChannel changes what the edit names, or returns NotFound. A binding must be of
// a variable that a template of the channel has. New secrets are tried out at the provider
// first. A new app secret counts beside the old one: webhooks that are on their way are
// signed by that.
func (a *App) EditChannel(ctx context.Context, id desk.ID, edit ChannelEdit) (c desk.Channel, err error) {
	settings, channel, err := a.channelOf(ctx, id)
	if err != nil {
		return c, err
	}
	library, err := a.library(ctx, settings.ID, channel)
	if err != nil {
		return c, err
	}
	for place, b := range edit.Bindings {
		if channel.Bindings[place] != "" && b == "" {
			continue // it can be taken back though its template is gone
		}
		if err := checkPlace(library, place); err != nil {
			return c, err
		}
	}
	if channel.Kind == desk.SandboxChannel && (edit.PerSecond != nil || edit.Secrets != (Secrets{})) {
		return c, desk.Invalidf("a sandbox channel has no token, no secrets and no limits: only its bindings, and whether it is enabled, can be changed")
	}
	if edit.Secrets.Token != (Secret{}) || edit.Secrets.AppSecret != (Secret{}) {
		at, err := a.access(settings.ID, channel)
		if err != nil {
			return c, err
		}
		at.Secrets = at.Secrets.replaced(edit.Secrets, a.now())
		if _, err := a.connect(ctx, at); err != nil {
			return c, err
		}
	}
	err = a.store.UpdateSettings(ctx, settings.ID, func(s *desk.Settings) (desk.Change, error) {
		c = *s.Channel(id)
		if edit.Enabled != nil {
			c.Enabled = *edit.Enabled
		}
		if edit.PerSecond != nil {
			c.Account.PerSecond = *edit.PerSecond
			if err := checkAccount(&c); err != nil {
				return desk.Change{}, err
			}
		}
		if edit.Secrets != (Secrets{}) {
			at, err := a.access(s.ID, &c)
			if err != nil {
				return desk.Change{}, err
			}
			c.Account.Sealed = a.seal(s.ID, id, at.Secrets.replaced(edit.Secrets, a.now()))
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

func checkPlace(l *desk.Library, place desk.BindingPlace) error {
	t := l.Find(place.Template, place.Language)
	if t == nil {
		return desk.Invalidf("bind: the channel has no template %s/%s; parley channel sync fetches the library", place.Template, place.Language)
	}
	for _, v := range t.Variables {
		if v.Address() == place.Address {
			return nil
		}
	}
	return desk.Invalidf("bind: the template %s/%s has no variable %s", place.Template, place.Language, place.Address)
}

// CheckChannel says what is wrong with a channel; nothing when it works. It returns
// NotFound.
func (a *App) CheckChannel(ctx context.Context, id desk.ID) ([]Problem, error) {
	_, at, err := a.accessOf(ctx, id)
	if err != nil {
		return nil, err
	}
	problems, err := a.providers[at.Channel.Kind].Check(ctx, at)
	if at.Channel.Kind == desk.WhatsAppChannel && err == nil {
		var more []Problem
		more, err = a.checkSigns(ctx, at)
		problems = append(problems, more...)
	}
	if !at.Channel.Enabled {
		problems = append(problems, Problem{"the channel is disabled, so nothing is sent: parley channel edit " + id.String() + " --enabled=true", true})
	}
	return problems, err
}

// checkSigns looks for signs of life: what the provider has told this installation.
func (a *App) checkSigns(ctx context.Context, at Access) (problems []Problem, err error) {
	id, now := at.Channel.ID, a.now()
	if why := at.Channel.Account.BlockedAt(now); why != "" {
		problems = append(problems, Problem{"the provider blocks the account: " + why, true})
	}
	switch synced, err := a.store.LeaseOf(ctx, at.Workspace, syncedTask(id)); {
	case err != nil:
		return nil, err
	case synced == 0:
		problems = append(problems, Problem{"the templates were never fetched: parley channel sync " + id.String(), true})
	case now-synced > 3*desk.Time(syncEvery.Milliseconds()):
		problems = append(problems, Problem{"the templates were fetched last on " + synced.String() + ": is a server running? parley channel sync " + id.String() + " fetches them now", false})
	}
	newest, err := a.store.NewestWebhook(ctx, at.Workspace, id)
	if err != nil || newest != 0 {
		return problems, err
	}
	// The provider asks for the address when it is entered, and says nothing until there is
	// something to say.
	asked, err := a.store.LeaseOf(ctx, at.Workspace, handshakeTask(id))
	if err == nil && now-max(asked, at.Channel.CreatedAt) > keepWebhook {
		problems = append(problems, Problem{"no webhook has come in the last seven days, so statuses and customers' messages may not arrive: " + hookAdvice(id), false})
	} else if err == nil && asked == 0 {
		problems = append(problems, Problem{"no webhook has come yet, and Meta has not asked for the callback URL: " + hookAdvice(id), false})
	}
	return problems, err
}

func hookAdvice(channel desk.ID) string {
	return "in Meta's app, under WhatsApp, Configuration, set the callback URL to the server's public address with the path " + WebhookPath(channel) + ", and subscribe to the fields " + WebhookFields
}

// WebhookFields are those that Meta's app must be subscribed to.
const WebhookFields = "messages, message_template_status_update, message_template_components_update, message_template_quality_update, template_category_update, phone_number_quality_update, account_update, user_preferences, user_id_update"

func handshakeTask(channel desk.ID) string { return "handshake " + channel.String() }

// WebhookPath is where a WhatsApp channel's provider reports to.
func WebhookPath(channel desk.ID) string { return "/hooks/whatsapp/" + channel.String() }

// channelOf finds a channel, and its workspace's settings, by its id alone.
func (a *App) channelOf(ctx context.Context, id desk.ID) (*desk.Settings, *desk.Channel, error) {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return nil, nil, err
	}
	if c := s.Channel(id); c != nil {
		return s, c, nil
	}
	return nil, nil, desk.NotFoundf("no channel has this id; parley channel list shows them")
}

// ReceiveSandbox plays a customer's message into a sandbox channel. from is a phone
// number as people write it. It returns NotFound, and InvalidRequest for another
// kind of channel and for what can't be a message.
func (a *App) ReceiveSandbox(ctx context.Context, channel desk.ID, from, name, text string) (*desk.Conversation, error) {
	s, c, err := a.channelOf(ctx, channel)
	if err != nil {
		return nil, err
	}
	if c.Kind != desk.SandboxChannel {
		return nil, desk.Invalidf("channel: customers write to a %s channel themselves; only a sandbox channel can be played into", c.Kind)
	}
	in := InboundMessage{ExternalID: "sandbox." + a.newID().String(), At: a.now()}
	if in.Number, err = desk.ParsePhone(from, s.Country); err != nil {
		return nil, desk.Invalidf("from: %v", err)
	}
	if in.Name, err = desk.ParseName(name); err != nil {
		return nil, desk.Invalidf("name: %v", err)
	}
	if in.Text, err = desk.ParseMessage(text); err != nil {
		return nil, desk.Invalidf("text: %v", err)
	}
	return a.Receive(ctx, s.ID, channel, in)
}
