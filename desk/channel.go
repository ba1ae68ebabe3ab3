package desk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// A ChannelKind names what a channel talks to.
type ChannelKind string

// The kinds. All of them are chat apps, and have templates.
const (
	SandboxChannel  ChannelKind = "sandbox"  // plays a provider without leaving the machine
	WhatsAppChannel ChannelKind = "whatsapp" // the WhatsApp Cloud API
)

// A Channel is a connection to a provider (spec, Channel). It is part of the
// workspace's Settings, and never removed.
type Channel struct {
	ID         ID
	Kind       ChannelKind
	ExternalID string // the provider's handle for it
	Enabled    bool
	CreatedAt  Time
	Library    int64                    // version of its templates: grows whenever they change
	Bindings   map[BindingPlace]Binding // what the workspace configured; never changed in place
	Account    Account
}

// An Account is the provider's side of a channel. Of a sandbox channel it is zero.
type Account struct {
	BusinessID string // the business account's id (WABA), which owns templates and numbers
	BaseURL    string // of the provider's API; "": the provider's own
	Version    string // of the provider's API, as v26.0
	PerSecond  int    // how many messages a second the number may send; 0: the provider's default
	Sealed     []byte // its secrets, encrypted

	Blocked      string // why the provider lets it send nothing; "": it does
	BlockedUntil Time   // 0: until the provider says otherwise
	StandingAt   Time   // when the provider said that, or that it does no more
}

// BlockedAt says why the provider lets the account send nothing at a time; "": it does.
func (a *Account) BlockedAt(now Time) string {
	if a.BlockedUntil != 0 && a.BlockedUntil <= now {
		return ""
	}
	return a.Blocked
}

// SupportsTemplates tells whether the channel has a template library.
func (c *Channel) SupportsTemplates() bool { return true }

// A BindingPlace is one variable of one template.
type BindingPlace struct{ Template, Language, Address string }

// ParseBindingPlace reads TEMPLATE/LANGUAGE/ADDRESS, and the binding after "=".
// The binding "guess" is answered as "": nothing configured.
func ParseBindingPlace(s string) (place BindingPlace, b Binding, err error) {
	where, what, found := strings.Cut(s, "=")
	parts := strings.Split(where, "/")
	if !found || len(parts) != 3 || slices.Contains(parts, "") {
		return place, "", Invalidf("%q is no binding: write TEMPLATE/LANGUAGE/ADDRESS=BINDING, as order_update/en_US/header.1=customer_first_name", s)
	}
	if what != "guess" {
		b, err = ParseBinding(what)
	}
	return BindingPlace{parts[0], parts[1], parts[2]}, b, err
}

// Binds returns what fills each variable of a template, in their order: what the
// workspace configured, else a guess (contract §6).
func (c *Channel) Binds(t *Template) []Binding {
	bindings := GuessBindings(t.Variables)
	for i, v := range t.Variables {
		if b, ok := c.Bindings[BindingPlace{t.Name, t.Language, v.Address()}]; ok {
			bindings[i] = b
		}
	}
	return bindings
}

// Channel returns the channel with this id, or nil.
func (s *Settings) Channel(id ID) *Channel { return s.channels[id] }

// ChannelOf returns the channel of a kind with this handle of the provider's, or nil.
func (s *Settings) ChannelOf(kind ChannelKind, externalID string) *Channel {
	for _, c := range s.channels {
		if c.Kind == kind && c.ExternalID == externalID {
			return c
		}
	}
	return nil
}

// Channels lists the channels by age.
func (s *Settings) Channels() []*Channel {
	return slices.SortedFunc(maps.Values(s.channels), func(a, b *Channel) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
}

// PickChannel returns the channel with this id, or, when id is nil, the only
// chat-app channel: of the enabled ones, or of all when none is enabled. It returns
// NotFound, or AmbiguousChannel naming the channels to choose from (contract §5).
func (s *Settings) PickChannel(id *ID) (*Channel, error) {
	if id != nil {
		if c := s.channels[*id]; c != nil {
			return c, nil
		}
		return nil, NoChannel()
	}
	all := s.Channels()
	list := slices.DeleteFunc(slices.Clone(all), func(c *Channel) bool { return !c.Enabled })
	if len(list) == 0 {
		list = all
	}
	switch len(list) {
	case 0:
		return nil, NotFoundf("this workspace has no chat-app channel: add one with parley channel add")
	case 1:
		return list[0], nil
	}
	e := Errorf(AmbiguousChannel, "this workspace has %d chat-app channels: say which one with channel_id; details lists them", len(list))
	e.Details = list
	return nil, e
}

// NoChannel is the answer for an id that no channel of the workspace has.
func NoChannel() *Error {
	return NotFoundf("no channel in this workspace has this id; GET /channels lists them")
}

// A TemplateSource is one template in the provider's own JSON form.
type TemplateSource struct{ Name, Language, Source string }

var errNoObject = errors.New("the source of a template is no JSON object")

// DeletedStatus is the provider's word for a template that is gone.
const DeletedStatus = "DELETED"

// WithStatus returns the template with another status, as the provider spells it. Its
// error is of a source that is no JSON object.
func (t TemplateSource) WithStatus(status string) (TemplateSource, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(t.Source), &members); err != nil || members == nil {
		return t, cmp.Or(err, errNoObject)
	}
	word, err := json.Marshal(status)
	if err != nil || string(members["status"]) == string(word) {
		return t, err
	}
	members["status"] = word
	source, err := json.Marshal(members)
	t.Source = string(source)
	return t, err
}
