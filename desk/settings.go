package desk

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// Settings are the whole configuration of a workspace, in one version. They are shared
// between readers: never change one.
type Settings struct {
	Workspace
	Version    int64                 // grows with every change of the configuration
	Attributes map[string]*Attribute // by key; includes archived attributes
	members    map[ID]*Member
	byEmail    map[string][]*Member // by canonical form; members of an earlier release may share one
	keys       map[ID]*APIKey
	byPublicID map[string]*APIKey
	channels   map[ID]*Channel
	webhooks   map[ID]*Webhook
	policies   map[ID]*Policy // by channel; zero: the workspace's
}

// NewSettings combines a workspace's configuration.
func NewSettings(w Workspace, version int64, attributes []Attribute, members []Member, keys []APIKey, channels []Channel, webhooks ...Webhook) *Settings {
	s := &Settings{
		Workspace:  w,
		Version:    version,
		Attributes: make(map[string]*Attribute, len(attributes)),
		members:    make(map[ID]*Member, len(members)),
		byEmail:    make(map[string][]*Member, len(members)),
		keys:       make(map[ID]*APIKey, len(keys)),
		byPublicID: make(map[string]*APIKey, len(keys)),
		channels:   make(map[ID]*Channel, len(channels)),
		webhooks:   make(map[ID]*Webhook, len(webhooks)),
	}
	for i := range attributes {
		s.Attributes[attributes[i].Key] = &attributes[i]
	}
	for i := range members {
		s.members[members[i].ID] = &members[i]
		email := CanonicalEmail(members[i].Email)
		s.byEmail[email] = append(s.byEmail[email], &members[i])
	}
	for i := range keys {
		s.keys[keys[i].ID] = &keys[i]
		s.byPublicID[keys[i].PublicID] = &keys[i]
	}
	for i := range channels {
		s.channels[channels[i].ID] = &channels[i]
	}
	for i := range webhooks {
		s.webhooks[webhooks[i].ID] = &webhooks[i]
	}
	return s
}

// Member returns the member with this id, or nil.
func (s *Settings) Member(id ID) *Member { return s.members[id] }

// Members lists the members by name, then id.
func (s *Settings) Members() []*Member {
	return slices.SortedFunc(maps.Values(s.members), func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.ID[:], b.ID[:]))
	})
}

// SortedAttributes lists the attributes by position, then key.
func (s *Settings) SortedAttributes() []*Attribute {
	return slices.SortedFunc(maps.Values(s.Attributes), func(a, b *Attribute) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Key, b.Key))
	})
}

// Key returns the key with this id, or nil.
func (s *Settings) Key(id ID) *APIKey { return s.keys[id] }

// KeyByPublicID returns the key with the public id of a credential, or nil.
func (s *Settings) KeyByPublicID(public string) *APIKey { return s.byPublicID[public] }

// Keys lists the keys by age.
func (s *Settings) Keys() []*APIKey {
	return slices.SortedFunc(maps.Values(s.keys), func(a, b *APIKey) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
}

// Webhook returns the webhook with this id, or nil.
func (s *Settings) Webhook(id ID) *Webhook { return s.webhooks[id] }

// Webhooks lists the webhooks, oldest first.
func (s *Settings) Webhooks() []*Webhook {
	return slices.SortedFunc(maps.Values(s.webhooks), func(a, b *Webhook) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
}
