package desk

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// A Change is what one edit changes in a workspace's configuration; nil fields do not
// change.
type Change struct {
	Workspace     *Workspace
	Attribute     *Attribute
	Member        *Member
	RemoveMember  *Member // a member who owns no contact and holds no open conversation
	Password      string  // of Member: the hash of the new one; "" if it does not change
	Key           *APIKey
	Channel       *Channel // its Library is not written, see Templates
	Templates     *ChannelLibrary
	Webhook       *Webhook // its times are set by the method Against
	RemoveWebhook *Webhook
	Policies      []*Policy // their times are set by the method Against
	RemovePolicy  *Policy   // after the removal, a channel uses the workspace's policy, and a workspace has no policy
	Renew         bool      // the webhook is enabled again: forget its failures
	Events        []Event   // set by the method Against
}

// A ChannelLibrary is all templates of a channel. It replaces the stored templates.
type ChannelLibrary struct {
	Channel   ID
	Templates []TemplateSource // no two with the same name and language
	Replaced  []TemplateSource // the templates that were stored before
}

// IsEmpty tells whether nothing changes.
func (c *Change) IsEmpty() bool {
	return c.Workspace == nil && c.Attribute == nil && c.Member == nil && c.RemoveMember == nil && c.Key == nil && c.Channel == nil && c.Templates == nil &&
		c.Webhook == nil && c.RemoveWebhook == nil && c.Policies == nil && c.RemovePolicy == nil
}

// Against returns the change without the parts that are stored already. For each remaining
// part, it adds an event.
func (c Change) Against(s *Settings, actor Actor, at Time) Change {
	add := func(t EventType, subject ID, key string, changed []string) {
		c.Events = append(c.Events, Event{Type: t, Subject: subject, Key: key, Actor: actor, At: at, Changed: changed})
	}
	// put adds the event of a record that is new, or has changed fields. It returns
	// whether the record is to be stored.
	put := func(isNew bool, created, updated EventType, subject ID, key string, changed []string) bool {
		switch {
		case isNew:
			add(created, subject, key, nil)
		case changed != nil:
			add(updated, subject, key, changed)
		}
		return isNew || changed != nil
	}
	if w := c.Workspace; w != nil && !put(false, "", WorkspaceUpdated, w.ID, "", w.changes(&s.Workspace)) {
		c.Workspace = nil
	}
	if a := c.Attribute; a != nil {
		old := s.Attributes[a.Key]
		if !put(old == nil, AttributeCreated, AttributeUpdated, ID{}, a.Key, a.changes(old)) {
			c.Attribute = nil
		}
	}
	if m := c.Member; m != nil {
		old := s.Member(m.ID)
		changed := m.changes(old)
		if c.Password != "" {
			changed = append(changed, "password")
			slices.Sort(changed)
		}
		// A change of SessionsFrom alone ends sessions: it is stored, but has no event.
		if !put(old == nil, MemberCreated, MemberUpdated, m.ID, "", changed) && m.SessionsFrom == old.SessionsFrom {
			c.Member = nil
		}
	}
	if m := c.RemoveMember; m != nil {
		c.Policies = s.policiesWithout(m.ID)
	}
	c.putPolicies(s, at, add)
	if m := c.RemoveMember; m != nil {
		add(MemberDeleted, m.ID, "", nil)
	}
	if k := c.Key; k != nil {
		old := s.Key(k.ID)
		if !put(old == nil, KeyCreated, KeyUpdated, k.ID, "", k.changes(old)) {
			c.Key = nil
		}
	}
	if v := c.Channel; v != nil {
		old := s.Channel(v.ID) // parts of the status that callers can't see are stored without an event
		if !put(old == nil, ChannelCreated, ChannelUpdated, v.ID, "", v.changes(old)) && v.Status == old.Status {
			c.Channel = nil
		}
	}
	if l := c.Templates; l != nil {
		for _, e := range l.events() {
			add(e.Type, ID{}, e.Key, e.Changed)
		}
		if slices.Equal(l.Templates, l.Replaced) {
			c.Templates = nil
		}
	}
	if w := c.Webhook; w != nil {
		old := s.Webhook(w.ID)
		switch changed := w.changes(old); {
		case old != nil && old.Enabled && !w.Enabled && w.DisabledReason != DisabledByOwner:
			add(WebhookDisabled, w.ID, "", nil)
		case !put(old == nil, WebhookCreated, WebhookUpdated, w.ID, "", changed):
			c.Webhook = nil
		}
		if c.Webhook != nil {
			w.UpdatedAt = at
			c.Renew = old != nil && !old.Enabled && w.Enabled
		}
	}
	if w := c.RemoveWebhook; w != nil {
		add(WebhookDeleted, w.ID, "", nil)
	}
	return c
}

// putPolicies adds the events of policies, and leaves out policies that are stored already.
func (c *Change) putPolicies(s *Settings, at Time, add func(t EventType, subject ID, key string, changed []string)) {
	note := func(channel ID, changed []string) {
		subject := channel
		if channel.IsZero() {
			subject = s.ID
		}
		add(PolicyUpdated, subject, "", changed)
	}
	var list []*Policy
	for _, p := range c.Policies {
		if changed := p.changes(s.Policy(p.Channel)); changed != nil {
			p.UpdatedAt = at
			list = append(list, p)
			note(p.Channel, changed)
		}
	}
	c.Policies = list
	if p := c.RemovePolicy; p != nil {
		var then *Policy // the policy in force after the removal
		if !p.Channel.IsZero() {
			then = s.OwnPolicy(ID{})
		}
		if changed := then.changes(p); changed != nil {
			note(p.Channel, changed)
		}
	}
}

// Each method with the name changes returns the sorted names of the fields that differ from
// the stored record, as the API spells them, or nil if none differs.

func (w *Workspace) changes(old *Workspace) []string {
	var f fields
	f.add("country", w.Country != old.Country)
	f.add("external_ids", w.FixedExternalIDs != old.FixedExternalIDs)
	f.add("name", w.Name != old.Name)
	return f
}

func (a *Attribute) changes(old *Attribute) []string {
	if old == nil {
		return nil
	}
	var f fields
	f.add("archived", a.Archived != old.Archived)
	f.add("description", a.Description != old.Description)
	f.add("label", a.Label != old.Label)
	f.add("options", !slices.Equal(a.Options, old.Options))
	f.add("position", a.Position != old.Position)
	f.add("type", a.Type != old.Type)
	return f
}

func (m *Member) changes(old *Member) []string {
	if old == nil {
		return nil
	}
	var f fields
	f.add("available", m.Away != old.Away)
	f.add("email", m.Email != old.Email)
	f.add("name", m.Name != old.Name)
	f.add("role", m.Role != old.Role)
	return f
}

func (k *APIKey) changes(old *APIKey) []string {
	if old == nil {
		return nil
	}
	var f fields
	f.add("expires_at", k.ExpiresAt != old.ExpiresAt)
	f.add("name", k.Name != old.Name)
	f.add("permissions", !slices.Equal(k.Permissions, old.Permissions))
	f.add("revoked_at", k.RevokedAt != old.RevokedAt)
	return f
}

func (c *Channel) changes(old *Channel) []string {
	if old == nil {
		return nil
	}
	var f fields
	a, b := c.Account, old.Account
	f.add("account", a.BusinessID != b.BusinessID || a.BaseURL != b.BaseURL || a.Version != b.Version || a.PerSecond != b.PerSecond ||
		c.Status.Blocked != old.Status.Blocked || c.Status.Code != old.Status.Code || c.Status.Until != old.Status.Until)
	f.add("bindings", !maps.Equal(c.Bindings, old.Bindings))
	f.add("enabled", c.Enabled != old.Enabled)
	f.add("external_id", c.ExternalID != old.ExternalID)
	f.add("name", c.Name != old.Name)
	f.add("secrets", !bytes.Equal(a.Sealed, b.Sealed))
	return f
}

// events returns the events of the templates that differ. A template that the provider no
// longer has stays with the status DeletedStatus.
func (l *ChannelLibrary) events() (list []Event) {
	type place struct{ name, language string }
	deleted := strings.ToLower(DeletedStatus)
	stored := make(map[place]TemplateSource, len(l.Replaced))
	for _, t := range l.Replaced {
		stored[place{t.Name, t.Language}] = t
	}
	for _, t := range l.Templates {
		old, known := stored[place{t.Name, t.Language}]
		if known && old == t {
			continue
		}
		e := Event{Type: TemplateUpdated, Key: strings.Join([]string{l.Channel.String(), t.Name, t.Language}, "/")}
		now, before := t.parsed(), old.parsed()
		is, was := now.Status != deleted, known && before.Status != deleted
		switch {
		case is && !was:
			e.Type = TemplateCreated
		case was && !is:
			e.Type = TemplateDeleted
		default:
			if e.Changed = now.changes(before); e.Changed == nil {
				continue
			}
		}
		list = append(list, e)
	}
	return list
}

// parsed returns the template, or an empty one if the source can't be read.
func (t TemplateSource) parsed() *Template {
	if parsed, err := ParseTemplate([]byte(t.Source)); err == nil {
		return parsed
	}
	return &Template{}
}

func (t *Template) changes(old *Template) []string {
	var f fields
	f.add("body", t.Body != old.Body)
	f.add("category", t.Category != old.Category)
	f.add("header", t.Header != old.Header)
	f.add("sendable", t.Sendable() != old.Sendable())
	f.add("status", t.Status != old.Status)
	differ := !slices.EqualFunc(t.Variables, old.Variables, func(a, b Variable) bool { return a.Address() == b.Address() })
	f.add("variable_hints", differ)
	f.add("variables", differ)
	return f
}
