package desk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A ChannelKind is the kind of a channel's provider.
type ChannelKind string

// The kinds. All are chat apps, and have templates.
const (
	SandboxChannel  ChannelKind = "sandbox"  // simulates a provider
	WhatsAppChannel ChannelKind = "whatsapp" // the WhatsApp Cloud API
)

// A Channel is a connection to a provider (spec, Channel). It is part of the
// workspace's Settings, and is never removed.
type Channel struct {
	ID         ID
	Kind       ChannelKind
	ExternalID string // the provider's id of the channel
	Name       string // by which people tell channels apart; "": none, see ParseChannelName
	Enabled    bool
	CreatedAt  Time
	Library    int64                    // version of its templates: grows whenever they change
	Bindings   map[BindingPlace]Binding // what the workspace configured; never changed in place
	Account    Account
	Status     AccountStatus
}

// PerSecond is the default number of messages that a phone number sends in a second.
// MaxPerSecond is the greatest number that an operator may set, because a provider can
// raise its limit so far.
const (
	PerSecond    = 80
	MaxPerSecond = 1000
)

// MaxChannelName is the greatest number of characters in a channel's name (contract §1).
const MaxChannelName = 100

// ParseChannelName trims the name by which people tell two channels apart. "" means that
// the channel has no name. A name need not be unique, and the API's record of a channel
// does not show it.
func ParseChannelName(s string) (string, error) {
	return parseText(s, "a channel's name", 0, MaxChannelName)
}

// An Account is the provider's data of a channel. It is zero for a sandbox channel.
type Account struct {
	BusinessID string // the business account's id (WABA), which owns templates and numbers
	BaseURL    string // of the provider's API; "": the provider's own
	BaseOf     Setter // who set BaseURL
	Version    string // of the provider's API, such as v26.0
	PerSecond  int    // how many messages a second the number may send; 0: the provider's default
	Sealed     []byte // its secrets, encrypted
}

// A Setter says who set an address.
type Setter string

// The setters of an address; "" is unknown: an earlier release stored the address.
const (
	SetByOperator Setter = "operator" // with the command line of the server
	SetByTenant   Setter = "tenant"   // a member of the workspace
)

// Guarded tells whether a tenant set the address of a channel's API. If so, parley connects
// to this address, and to URLs that its answers name, only if a webhook may use them.
// Without this limit, the tenant could read from the server's own network. opened says that
// the operator has opened addresses to webhooks. Earlier releases did not store who set an
// address, but a tenant could set one only if the operator had opened addresses.
func (a *Account) Guarded(opened bool) bool {
	return a.BaseURL != "" && (a.BaseOf == SetByTenant || a.BaseOf == "" && opened)
}

// An AccountStatus says whether the provider lets a channel's account send. It is
// stored with the channel as part of the settings. So it survives a restart, and every
// node knows it on its next request. The zero AccountStatus means that the provider
// reported nothing.
//
// Read it from a workspace's Settings, as Channel(id).Status, and ask BlockedAt. To
// change it, see App.noteAccountStatus.
type AccountStatus struct {
	Blocked string // why the account may not send; "": it may
	Replies bool   // the account may still reply to people who wrote
	Code    int    // the provider's code for the block; 0: none
	Trace   string // an id by which the provider's support finds the call; "": unknown
	Token   bool   // the token is refused, so reading fails too
	Until   Time   // when the block ends; 0: when the provider reports its end
	Since   Time   // when the provider reported the block, or its end
	ByCall  bool   // learned from a failed call, not from a callback: the next call is still tried
}

// BlockedAt returns why the account may not send at a time; "": it may. Some blocked
// accounts may still reply: see RepliesBlockedAt.
func (s *AccountStatus) BlockedAt(now Time) string {
	if s.Until != 0 && s.Until <= now {
		return ""
	}
	return s.Blocked
}

// RepliesBlockedAt is like BlockedAt, for replies, including automatic replies.
func (s *AccountStatus) RepliesBlockedAt(now Time) string {
	if s.Replies {
		return ""
	}
	return s.BlockedAt(now)
}

// Refuses tells whether sends are refused at a time without asking the provider.
func (s *AccountStatus) Refuses(now Time) bool { return !s.ByCall && s.BlockedAt(now) != "" }

// RefusesReplies is like Refuses, for replies.
func (s *AccountStatus) RefusesReplies(now Time) bool {
	return !s.ByCall && s.RepliesBlockedAt(now) != ""
}

// Next returns the status after a report, and whether it differs. It does not differ if
// the report is late or repeated, or if a failed call reports what the provider has
// reported already.
func (s AccountStatus) Next(news AccountStatus) (AccountStatus, bool) {
	same := s.Blocked == news.Blocked && s.Code == news.Code && s.Replies == news.Replies
	if news.ByCall && (same || s.Blocked != "" && !s.ByCall) || !news.ByCall && (s.Since > news.Since || same && s.Since == news.Since) {
		return s, false
	}
	return news, true
}

// An AccountRefusal is a provider's answer that refuses all calls of an account, not
// one message. Examples are an expired token and a locked account. Calls go on, because
// only a call can show that the refusal is over.
type AccountRefusal struct {
	Code  int    // the provider's code
	Title string // what the code means
	Trace string // an id by which the provider's support finds the call
	Token bool   // the token is refused, so reading fails too
}

// Error implements error, so that a provider's error can contain an AccountRefusal.
func (r *AccountRefusal) Error() string {
	return fmt.Sprintf("the provider refuses the account's calls: code %d, fbtrace_id %q", r.Code, r.Trace)
}

// Status is the account status after a call that got this refusal. A nil receiver means
// that the call was not refused.
func (r *AccountRefusal) Status(now Time) AccountStatus {
	if r == nil {
		return AccountStatus{Since: now, ByCall: true}
	}
	return AccountStatus{Blocked: r.Title, Code: r.Code, Trace: r.Trace, Token: r.Token, Since: now, ByCall: true}
}

// Up tells whether messages can be sent on the channel, as far as parley knows: the
// channel is enabled, and the provider lets its account send. A channel whose account may
// only reply is not up.
func (c *Channel) Up(now Time) bool { return c.Enabled && c.Status.BlockedAt(now) == "" }

// ChannelSigns are the times at which a channel last worked, by the database's clock;
// 0: never.
type ChannelSigns struct {
	Synced Time // when its templates were fetched
	Asked  Time // when the provider verified the callback URL
}

// SupportsTemplates tells whether the channel has a template library.
func (c *Channel) SupportsTemplates() bool { return true }

// A BindingPlace is one variable of one template.
type BindingPlace struct{ Template, Language, Address string }

// ParseBindingPlace reads TEMPLATE/LANGUAGE/ADDRESS=BINDING. For the binding "guess" it
// returns "": nothing is configured.
func ParseBindingPlace(s string) (place BindingPlace, b Binding, err error) {
	where, what, found := strings.Cut(s, "=")
	parts := strings.Split(where, "/")
	if !found || len(parts) != 3 || slices.Contains(parts, "") {
		return place, "", InvalidAt("/bind", "%q is no binding: write TEMPLATE/LANGUAGE/ADDRESS=BINDING, as order_update/en_US/header.1=customer_first_name", s)
	}
	if what != "guess" {
		b, err = ParseBinding(what)
	}
	return BindingPlace{parts[0], parts[1], parts[2]}, b, err
}

// Binds returns the binding of each variable of a template, in their order: the
// configured one, otherwise a guess (contract §6).
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

// ChannelOf returns the channel of a kind with this external id, or nil.
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

// PickChannel returns the channel with this id. If id is nil, it returns the only
// chat-app channel: the only enabled one, or the only one if none is enabled. It
// returns NotFound, or AmbiguousChannel with the channels to choose from (contract §5).
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
		return nil, NotFoundf("this workspace has no chat-app channel").Advise(AddChannel)
	case 1:
		return list[0], nil
	}
	choice := details[*Channel]{}
	for _, c := range list {
		choice.add(c, c.ID.String(), string(c.Kind), c.ExternalID)
	}
	e := choice.seen(Errorf(AmbiguousChannel, "this workspace has %d chat-app channels: name one", len(list)))
	e.At = "/channel_id"
	return nil, e
}

// NoChannel is the answer for an id that no channel of the workspace has.
func NoChannel() *Error {
	return NotFoundf("no channel in this workspace has this id").Advise(ListChannels)
}

// A TemplateSource is one template in the provider's own JSON form.
type TemplateSource struct{ Name, Language, Source string }

var errNoObject = errors.New("the source of a template is no JSON object")

// DeletedStatus is the provider's status of a deleted template.
const DeletedStatus = "DELETED"

// WithStatus returns the template with another status, in the provider's spelling. It
// returns an error if the source is not a JSON object.
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
