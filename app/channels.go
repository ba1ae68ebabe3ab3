package app

import (
	"context"
	"maps"

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
	err := a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		for _, other := range s.Channels() {
			if other.Kind == c.Kind && other.ExternalID == c.ExternalID {
				return desk.Change{}, desk.Invalidf("external-id: the channel %s of this workspace has it already", other.ID)
			}
		}
		return desk.Change{Channel: &c}, nil
	})
	return c, err
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
	Enabled  *bool
	Bindings map[desk.BindingPlace]desk.Binding
}

// EditChannel changes what the edit names, or returns NotFound. A binding must be of
// a variable that a template of the channel has.
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
	err = a.store.UpdateSettings(ctx, settings.ID, func(s *desk.Settings) (desk.Change, error) {
		c = *s.Channel(id)
		if edit.Enabled != nil {
			c.Enabled = *edit.Enabled
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

// CheckChannel says what is wrong with a channel, each in a plain sentence; nothing
// when it works. It returns NotFound.
func (a *App) CheckChannel(ctx context.Context, id desk.ID) ([]string, error) {
	s, c, err := a.channelOf(ctx, id)
	if err != nil {
		return nil, err
	}
	problems, err := a.providers[c.Kind].Check(ctx, s.ID, c)
	if !c.Enabled {
		problems = append(problems, "the channel is disabled, so nothing is sent: parley channel edit "+id.String()+" --enabled=true")
	}
	return problems, err
}

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
