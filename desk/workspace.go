package desk

import (
	"slices"
	"strings"
)

// A Workspace is a tenant: every record and every key belongs to one.
type Workspace struct {
	ID      ID
	Name    string
	Country string // ISO 3166 alpha-2 in which local phone numbers are read; "" for none

	// FixedExternalIDs means that a write which matches a contact by another handle does
	// not replace the contact's external id (contract §3, Takeover).
	FixedExternalIDs bool
}

// A Role decides what a member may do in the console.
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

	// SessionsFrom is a number that grows when the member's sessions are ended. A sign-in
	// that began with an older number is refused.
	SessionsFrom Time
}

// EndSessions raises SessionsFrom. All sessions of the member end when the member is
// stored. SessionsFrom is also a time, because nodes of an earlier release compare it with
// a session's start.
func (m *Member) EndSessions(now Time) { m.SessionsFrom = max(now, m.SessionsFrom) + 1 }

// A Permission allows a key or a member an action.
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
	ContactsMerge      Permission = "contacts:merge"
	BroadcastsRead     Permission = "broadcasts:read"
	BroadcastsWrite    Permission = "broadcasts:write"
	BroadcastsSend     Permission = "broadcasts:send"
	SegmentsWrite      Permission = "segments:write"
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
	AttemptsRead, AttemptsWrite, PolicyWrite, SnippetsWrite, MembersWrite, ContactsMerge,
	BroadcastsRead, BroadcastsWrite, BroadcastsSend, SegmentsWrite,
}

var (
	agentPermissions = append(slices.DeleteFunc(slices.Clone(Permissions), func(p Permission) bool {
		switch p {
		case AttributesWrite, BroadcastsWrite, BroadcastsSend, WebhooksRead, WebhooksWrite, AttemptsWrite, PolicyWrite, SnippetsWrite, MembersWrite, SegmentsWrite:
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
