package api

import (
	"context"
	"net/http"
	"net/url"

	"parley/desk"
)

func (s *Server) listContactConversations(c *call) (answer, error) {
	q, page, err := listQuery(c.r.URL.RawQuery, "status")
	if err != nil {
		return answer{}, err
	}
	status, err := statusFilter(q)
	if err != nil {
		return answer{}, err
	}
	list, next, err := s.app.ContactConversations(c.r.Context(), c.principal, c.id(), status, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, appendContactConversation, next)}, nil
}

func (s *Server) listConversations(c *call) (answer, error) {
	q, page, err := listQuery(c.r.URL.RawQuery, conversationFilters...)
	if err != nil {
		return answer{}, err
	}
	f, err := conversationFilter(c, q)
	if err != nil {
		return answer{}, err
	}
	list, next, err := s.app.Conversations(c.r.Context(), c.principal, f, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	if err := s.knowChannels(c, list...); err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, c.appendConversation, next)}, nil
}

// conversationFilters are the query parameters that conversationFilter reads.
var conversationFilters = []string{"status", "assignee", "channel_id", "contact_id", "active_since"}

func conversationFilter(c *call, q url.Values) (f desk.ConversationFilter, err error) {
	if f.Status, err = statusFilter(q); err != nil {
		return f, err
	}
	switch ref := q.Get("assignee"); {
	case ref == "none":
		f.Unassigned = true
	case q.Has("assignee"):
		assignee := c.principal.Settings.ResolveMember(desk.ReferTo(ref))
		if assignee == nil {
			return f, desk.InvalidAt("/assignee", "send none, or the id or e-mail of a member of this workspace").Advise(desk.ListMembers)
		}
		f.Assignee = assignee.ID
	}
	if f.Channel, err = idFilter(q, "channel_id"); err != nil {
		return f, err
	}
	if f.Contact, err = idFilter(q, "contact_id"); err != nil {
		return f, err
	}
	f.ActiveSince, err = sinceFilter(q, "active_since")
	return f, err
}

func (s *Server) getConversation(c *call) (answer, error) {
	found, err := s.app.Conversation(c.r.Context(), c.principal, c.id())
	return s.conversation(c, found, err)
}

func (s *Server) listMessages(c *call) (answer, error) {
	_, page, err := listQuery(c.r.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	list, next, err := s.app.Messages(c.r.Context(), c.principal, c.id(), page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, messagesOf(c.principal.Settings), next)}, nil
}

func (s *Server) setAssignee(c *call) (answer, error) {
	member, err := c.decodeOnly("member", "give a member's id or e-mail")
	if err != nil {
		return answer{}, err
	}
	found, err := s.app.Assign(c.r.Context(), c.principal, c.id(), member, nil)
	return s.conversation(c, found, err)
}

func (s *Server) clearAssignee(c *call) (answer, error) {
	found, err := s.app.Unassign(c.r.Context(), c.principal, c.id(), nil)
	return s.conversation(c, found, err)
}

func (s *Server) setStatus(c *call) (answer, error) {
	text, err := c.decodeOnly("status", "send open, closed or archived")
	if err != nil {
		return answer{}, err
	}
	status, err := desk.ParseConversationStatus(text)
	if err != nil {
		return answer{}, err
	}
	found, err := s.app.SetStatus(c.r.Context(), c.principal, c.id(), status, nil)
	return s.conversation(c, found, err)
}

// conversation answers with one conversation, or with the error.
func (s *Server) conversation(c *call, found *desk.Conversation, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	if err := s.knowChannels(c, found); err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, found, c.appendConversation)}, nil
}

// knowChannels loads newer settings if the principal's settings lack a channel of the
// conversations: the channel may have been added after the request began.
func (s *Server) knowChannels(c *call, list ...*desk.Conversation) error {
	for _, found := range list {
		if c.principal.Settings.Channel(found.ChannelID) != nil {
			continue
		}
		p, err := s.app.Access.Authenticate(context.WithoutCancel(c.r.Context()), bearer(c.r))
		if err != nil {
			return err
		}
		c.principal = p
		return nil
	}
	return nil
}

func (c *call) appendConversation(b []byte, v *desk.Conversation) []byte {
	return appendConversation(b, v, c.principal.Settings.Channel(v.ChannelID).Kind)
}

// decodeOnly reads a body of one member, a string; hint says what to send.
func (c *call) decodeOnly(member, hint string) (text string, err error) {
	there := false
	err = c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name != member {
				return d.unknown(name, member)
			}
			there = true
			if d.PeekKind() == 'n' {
				return desk.InvalidAt("/"+member, "null can't be set here: %s", hint)
			}
			text, err = d.text()
			return err
		})
	})
	if err == nil && !there {
		err = desk.InvalidAt("/"+member, "missing; %s", hint)
	}
	return text, err
}

func statusFilter(q url.Values) (desk.ConversationStatus, error) {
	if !q.Has("status") {
		return "", nil
	}
	return desk.ParseConversationStatus(q.Get("status"))
}

// noID is an id that no record has.
var noID = desk.ID{15: 1}

// idFilter reads an id to filter by; without one, it is zero. A zero id in the request
// would match everything, so it is replaced by another id that no record has.
func idFilter(q url.Values, name string) (desk.ID, error) {
	id, err := idParameter(q, name)
	switch {
	case id == nil:
		return desk.ID{}, err
	case id.IsZero():
		return noID, nil
	}
	return *id, nil
}
