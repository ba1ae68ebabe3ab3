package desk

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A Workspace is a tenant: every record and every key belongs to one.
type Workspace struct {
	ID      ID
	Name    string
	Country string // ISO 3166 alpha-2 in which local phone numbers are read; "" for none
}

// A Role is what a member may do in the console.
type Role string

// The roles.
const (
	RoleAdmin Role = "admin"
	RoleAgent Role = "agent"
)

// A Member is a teammate of a workspace.
type Member struct {
	ID    ID
	Name  string
	Email string // as it was given; matched without regard to case
	Role  Role
}

// A Permission is what a key must hold to use an endpoint.
type Permission string

// The permissions (contract §7).
const (
	ContactsRead       Permission = "contacts:read"
	ContactsWrite      Permission = "contacts:write"
	AttributesRead     Permission = "attributes:read"
	AttributesWrite    Permission = "attributes:write"
	ConversationsRead  Permission = "conversations:read"
	ConversationsWrite Permission = "conversations:write"
	MessagesSend       Permission = "messages:send"
	TemplatesRead      Permission = "templates:read"
	ChannelsRead       Permission = "channels:read"
	MembersRead        Permission = "members:read"
)

// Permissions lists all of them, in the order in which they are shown.
var Permissions = []Permission{
	ContactsRead, ContactsWrite, AttributesRead, AttributesWrite, ConversationsRead, ConversationsWrite,
	MessagesSend, TemplatesRead, ChannelsRead, MembersRead,
}

// ParsePermissions reads "all" or a comma-separated list.
func ParsePermissions(s string) ([]Permission, error) {
	if strings.TrimSpace(s) == "all" {
		return slices.Clone(Permissions), nil
	}
	var list []Permission
	for word := range strings.SplitSeq(s, ",") {
		p := Permission(strings.TrimSpace(word))
		if !slices.Contains(Permissions, p) {
			return nil, Invalidf("%q is no permission: use all, or some of %s", p, JoinPermissions(Permissions))
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list, nil
}

// JoinPermissions is the comma-separated form that ParsePermissions reads.
func JoinPermissions(list []Permission) string {
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = string(p)
	}
	return strings.Join(words, ",")
}

// An APIKey is a credential's record; of the secret itself only a hash is kept.
type APIKey struct {
	ID          ID
	PublicID    string // the part of the key that names it
	Name        string
	Permissions []Permission
	SecretHash  [32]byte
	CreatedAt   Time
	ExpiresAt   Time // 0: never
	RevokedAt   Time // 0: not revoked
}

// Valid tells whether the key may be used at now.
func (k *APIKey) Valid(now Time) bool {
	return k.RevokedAt == 0 && (k.ExpiresAt == 0 || now < k.ExpiresAt)
}

// Settings are all that a workspace has configured, as one version of it. They
// are shared between readers: never change one.
type Settings struct {
	Workspace
	Version    int64                 // grows with every change of the configuration
	Attributes map[string]*Attribute // by key, archived ones too
	members    map[ID]*Member
	byEmail    map[string]*Member
	keys       map[ID]*APIKey
	byPublicID map[string]*APIKey
	channels   map[ID]*Channel
}

// NewSettings gathers a workspace's configuration.
func NewSettings(w Workspace, version int64, attributes []Attribute, members []Member, keys []APIKey, channels []Channel) *Settings {
	s := &Settings{
		Workspace:  w,
		Version:    version,
		Attributes: make(map[string]*Attribute, len(attributes)),
		members:    make(map[ID]*Member, len(members)),
		byEmail:    make(map[string]*Member, len(members)),
		keys:       make(map[ID]*APIKey, len(keys)),
		byPublicID: make(map[string]*APIKey, len(keys)),
		channels:   make(map[ID]*Channel, len(channels)),
	}
	for i := range attributes {
		s.Attributes[attributes[i].Key] = &attributes[i]
	}
	for i := range members {
		s.members[members[i].ID] = &members[i]
		s.byEmail[FoldEmail(members[i].Email)] = &members[i]
	}
	for i := range keys {
		s.keys[keys[i].ID] = &keys[i]
		s.byPublicID[keys[i].PublicID] = &keys[i]
	}
	for i := range channels {
		s.channels[channels[i].ID] = &channels[i]
	}
	return s
}

// Member returns the member with this id, or nil.
func (s *Settings) Member(id ID) *Member { return s.members[id] }

// ResolveMember finds a member by id or by e-mail in any case, or returns nil.
func (s *Settings) ResolveMember(ref string) *Member {
	ref = strings.TrimSpace(ref)
	if id, ok := ParseID(ref); ok {
		return s.members[id]
	}
	return s.byEmail[FoldEmail(ref)]
}

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

// KeyByPublicID returns the key that a credential names, or nil.
func (s *Settings) KeyByPublicID(public string) *APIKey { return s.byPublicID[public] }

// Keys lists the keys by age.
func (s *Settings) Keys() []*APIKey {
	return slices.SortedFunc(maps.Values(s.keys), func(a, b *APIKey) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
}

// A Change is what one edit does to a workspace's configuration; nil fields stay
// as they are.
type Change struct {
	Workspace    *Workspace
	Attribute    *Attribute
	Member       *Member
	RemoveMember *Member // who owns no contact and holds no open conversation any more
	Key          *APIKey
	Channel      *Channel // its Library is not written, see Templates
	Templates    *ChannelLibrary
}

// A ChannelLibrary is all the templates of a channel, in the place of those it had.
type ChannelLibrary struct {
	Channel   ID
	Templates []TemplateSource // name and language together are distinct
}
