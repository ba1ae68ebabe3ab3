package api

import (
	"net/http"
	"net/url"
	"slices"

	"parley/app"
	"parley/desk"
)

func (s *Server) getState(c *call) (answer, error) {
	state, err := s.app.State(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, state, appendState)}, nil
}

func (s *Server) markRead(c *call) (answer, error) {
	var message desk.Field[desk.ID]
	receipt := desk.Field[bool]{Value: true}
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			switch name {
			case "message_id":
				err = field(d, &message, d.id)
			case "receipt":
				err = field(d, &receipt, d.bool)
			default:
				err = d.unknown(name, "message_id", "receipt")
			}
			return err
		})
	})
	if err != nil {
		return answer{}, err
	}
	if message.Has() && message.Value.IsZero() {
		message.Value = noID
	}
	state, err := s.app.MarkRead(c.r.Context(), c.principal, c.id(), message.Value, receipt.Value)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, state, appendState)}, nil
}

func (s *Server) listInbox(c *call) (answer, error) {
	if err := c.principal.Allow(desk.ContactsRead); err != nil {
		return answer{}, err
	}
	q, page, err := listQuery(c.r.URL.RawQuery, slices.Concat(conversationFilters, []string{"unread", "waiting", "order"})...)
	if err != nil {
		return answer{}, err
	}
	f, err := conversationFilter(c, q)
	if err != nil {
		return answer{}, err
	}
	if f.Status == "" {
		f.Status = desk.StatusOpen
	}
	if f.Unread, err = onlyFilter(q, "unread"); err != nil {
		return answer{}, err
	}
	if f.Waiting, err = onlyFilter(q, "waiting"); err != nil {
		return answer{}, err
	}
	switch order := q.Get("order"); {
	case order == "waiting":
		f.Longest = true
	case order != "newest" && q.Has("order"):
		return answer{}, desk.InvalidAt("/order", "send newest or waiting")
	}
	list, next, err := s.app.Inbox(c.r.Context(), c.principal, f, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	for i := range list {
		if err := s.knowChannels(c, list[i].Conversation); err != nil {
			return answer{}, err
		}
	}
	return answer{http.StatusOK, listOf(c.out, list, c.appendInboxItem, next)}, nil
}

func (c *call) appendInboxItem(b []byte, item app.InboxItem) []byte {
	name := ""
	if item.Contact != nil {
		name = item.Contact.Name
	}
	b = c.appendConversation(append(b, `{"conversation":`...), item.Conversation)
	b = appendID(append(b, `,"contact":{"id":`...), item.Conversation.ContactID)
	b = appendText(append(b, `,"name":`...), name)
	return append(appendState(append(b, `},"state":`...), &item.State), '}')
}

// onlyFilter reads a filter that can only be true.
func onlyFilter(q url.Values, name string) (bool, error) {
	if q.Has(name) && q.Get(name) != "true" {
		return false, desk.InvalidAt("/"+name, "send true, or leave it out")
	}
	return q.Has(name), nil
}
