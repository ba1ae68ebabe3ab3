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

	// FixedExternalIDs: a contact that has an external id gets no other one by a match
	// (contract §3, Takeover).
	FixedExternalIDs bool
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
	Email string // as given; matched in any letter case
	Role  Role
	Away  bool // the reply policy gives them no conversations

	// SessionsFrom is a number that grows when the member's sessions are ended. Who has
	// proved to be the member before that begins no session any more.
	SessionsFrom Time
}

// EndSessions raises SessionsFrom. Storing the member then ends all sessions that are
// stored. Nodes of an older release compare SessionsFrom with when a session has begun, so
// it is a time, too.
func (m *Member) EndSessions(now Time) { m.SessionsFrom = max(now, m.SessionsFrom) + 1 }

// A Permission is what a key or a member needs for an action.
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
	EventsRead         Permission = "events:read"
	WebhooksRead       Permission = "webhooks:read"
	WebhooksWrite      Permission = "webhooks:write"
	AttemptsRead       Permission = "attempts:read"
	AttemptsWrite      Permission = "attempts:write"
	PolicyWrite        Permission = "policy:write"
	SnippetsWrite      Permission = "snippets:write"
	MembersWrite       Permission = "members:write"
)

// The permissions that only members have.
const (
	Administer     Permission = "workspace:administer"   // change the workspace, its members, keys and channels
	ContactsDelete Permission = "contacts:delete"        // for keys, contacts:write includes it
	Simulate       Permission = "conversations:simulate" // write as the customer of a simulated channel
)

// Permissions lists the permissions of keys, in the order in which they are shown.
var Permissions = []Permission{
	ContactsRead, ContactsWrite, AttributesRead, AttributesWrite, ConversationsRead, ConversationsWrite,
	MessagesSend, TemplatesRead, ChannelsRead, MembersRead, EventsRead, WebhooksRead, WebhooksWrite,
	AttemptsRead, AttemptsWrite, PolicyWrite, SnippetsWrite, MembersWrite,
}

var (
	agentPermissions = append(slices.DeleteFunc(slices.Clone(Permissions), func(p Permission) bool {
		switch p {
		case AttributesWrite, WebhooksRead, WebhooksWrite, AttemptsWrite, PolicyWrite, SnippetsWrite, MembersWrite:
			return true
		}
		return false
	}), Simulate)
	adminPermissions = append(slices.Clone(Permissions), Simulate, ContactsDelete, Administer)
)

// Permissions lists what members with the role may do. The caller must not change it.
func (r Role) Permissions() []Permission {
	if r == RoleAdmin {
		return adminPermissions
	}
	return agentPermissions
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
			return nil, InvalidAt("/permissions", "%q is no permission: use all, or some of %s", p, JoinPermissions(Permissions))
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

// An APIKey is the record of a credential. Only a hash of the secret is stored.
type APIKey struct {
	ID          ID
	PublicID    string // the part of the key that identifies it
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

// Settings are the whole configuration of a workspace, in one version. They are shared
// between readers: never change one.
type Settings struct {
	Workspace
	Version    int64                 // grows with every change of the configuration
	Attributes map[string]*Attribute // by key, archived ones too
	members    map[ID]*Member
	byEmail    map[string][]*Member // by canonical form; members of an older release may share one
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
