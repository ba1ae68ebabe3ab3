package app

import (
	"context"
	"encoding/binary"
	"fmt"

	"parley/desk"
)

// Conversation returns a conversation of the principal's workspace, or NotFound.
func (a *App) Conversation(ctx context.Context, p Principal, id desk.ID) (*desk.Conversation, error) {
	return a.store.Conversation(ctx, p.Workspace(), id)
}

// Conversations returns a page of conversations, newest first, and the cursor of the
// next one, "" when there is none. It returns InvalidRequest for a cursor that was
// not given out for this workspace and these filters.
func (a *App) Conversations(ctx context.Context, p Principal, f desk.ConversationFilter, cursor string, limit int) ([]*desk.Conversation, string, error) {
	list := cursorList{p.Workspace(), "conversations", fmt.Sprintf("%q %s %v %s %s", f.Status, f.Assignee, f.Unassigned, f.Channel, f.Contact)}
	return a.conversations(ctx, list, f, cursor, limit)
}

// ContactConversations is Conversations of one contact; it returns NotFound when
// there is no such contact.
func (a *App) ContactConversations(ctx context.Context, p Principal, contact desk.ID, status desk.ConversationStatus, cursor string, limit int) ([]*desk.Conversation, string, error) {
	if _, _, err := a.store.Contact(ctx, p.Workspace(), contact); err != nil {
		return nil, "", err
	}
	list := cursorList{p.Workspace(), "contact conversations", fmt.Sprintf("%s %q", contact, status)}
	return a.conversations(ctx, list, desk.ConversationFilter{Contact: contact, Status: status}, cursor, limit)
}

func (a *App) conversations(ctx context.Context, list cursorList, f desk.ConversationFilter, cursor string, limit int) ([]*desk.Conversation, string, error) {
	var after *desk.ConversationPlace
	if cursor != "" {
		place, err := a.cursors.open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		after = &desk.ConversationPlace{
			LastMessageAt: desk.Time(binary.BigEndian.Uint64(place)),
			CreatedAt:     desk.Time(binary.BigEndian.Uint64(place[8:])),
			ID:            desk.ID(place[16:]),
		}
	}
	page, err := a.store.Conversations(ctx, list.workspace, f, after, limit+1)
	if err != nil || len(page) <= limit {
		return page, "", err
	}
	last := page[limit-1].Place()
	place := binary.BigEndian.AppendUint64(nil, uint64(last.LastMessageAt))
	place = binary.BigEndian.AppendUint64(place, uint64(last.CreatedAt))
	return page[:limit], a.cursors.seal(list, append(place, last.ID[:]...)), nil
}

// Messages returns a page of a conversation's messages, newest first, and the cursor
// of the next one, "" when there is none. It returns NotFound when there is no such
// conversation, and InvalidRequest as Conversations does.
func (a *App) Messages(ctx context.Context, p Principal, conversation desk.ID, cursor string, limit int) ([]*desk.Message, string, error) {
	if _, err := a.store.Conversation(ctx, p.Workspace(), conversation); err != nil {
		return nil, "", err
	}
	list := cursorList{p.Workspace(), "messages", conversation.String()}
	var after *desk.MessagePlace
	if cursor != "" {
		place, err := a.cursors.open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		after = &desk.MessagePlace{TS: desk.Time(binary.BigEndian.Uint64(place)), ID: desk.ID(place[8:])}
	}
	page, err := a.store.Messages(ctx, p.Workspace(), conversation, after, limit+1)
	if err != nil || len(page) <= limit {
		return page, "", err
	}
	last := page[limit-1].Place()
	return page[:limit], a.cursors.seal(list, append(binary.BigEndian.AppendUint64(nil, uint64(last.TS)), last.ID[:]...)), nil
}

// Assign gives a conversation to the member with this id or e-mail, even if another
// holds it. It returns NotFound, InvalidRequest when there is no such member, and
// Unauthorized or Forbidden when the key was changed meanwhile.
func (a *App) Assign(ctx context.Context, p Principal, id desk.ID, member string) (*desk.Conversation, error) {
	return a.changeConversation(ctx, p, id, "assignee", func(tx Tx, c *desk.Conversation) (bool, error) {
		m := tx.Settings().ResolveMember(member)
		if m == nil {
			return false, desk.Invalidf("/member: no member of this workspace has this id or e-mail; GET /members lists them")
		}
		return c.Assign(m.ID), nil
	})
}

// SetStatus moves a conversation to a status. It returns what Assign does, and
// ConversationOpen when it would be the second open one with its contact.
func (a *App) SetStatus(ctx context.Context, p Principal, id desk.ID, status desk.ConversationStatus) (*desk.Conversation, error) {
	return a.changeConversation(ctx, p, id, "status", func(tx Tx, c *desk.Conversation) (bool, error) {
		if c.Status == status {
			return false, nil
		}
		if status == desk.StatusOpen {
			other, err := tx.OpenConversation(c.ChannelID, c.ContactID)
			if err != nil {
				return false, err
			}
			if other != nil {
				return false, desk.Errorf(desk.ConversationOpen, "another conversation with this contact is open on this channel: close %s first", other.ID)
			}
		}
		c.Status = status
		if status == desk.StatusOpen && tx.Settings().Member(c.AssignedMember) == nil {
			c.Unassign() // its holder was removed while it was closed
		}
		return true, nil
	})
}

func (a *App) changeConversation(ctx context.Context, p Principal, id desk.ID, what string, change func(Tx, *desk.Conversation) (bool, error)) (c *desk.Conversation, err error) {
	err = a.store.InTx(ctx, p.Workspace(), func(tx Tx) (err error) {
		if err := p.still(tx.Settings(), desk.ConversationsWrite, a.now()); err != nil {
			return err
		}
		if c, err = tx.Conversation(id); err != nil {
			return err
		}
		if c == nil {
			return desk.NoConversation()
		}
		changed, err := change(tx, c)
		if err != nil || !changed {
			return err
		}
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		return tx.Append(desk.Event{Kind: desk.ConversationUpdated, Subject: id, Actor: p.Key.ID, At: a.now(), Changed: []string{what}})
	})
	return c, err
}

// unassign returns the open conversations that a member holds to the pool, as many
// at a time as a page holds.
func (a *App) unassign(ctx context.Context, ws, member desk.ID) error {
	held := desk.ConversationFilter{Assignee: member, Status: desk.StatusOpen}
	list, err := a.store.Conversations(ctx, ws, held, nil, desk.MaxLimit)
	if err != nil || len(list) == 0 {
		return err
	}
	return a.store.InTx(ctx, ws, func(tx Tx) error {
		for _, listed := range list {
			c, err := tx.Conversation(listed.ID)
			if err != nil {
				return err
			}
			if c == nil || c.AssignedMember != member { // changed since
				continue
			}
			c.Unassign()
			if err := tx.PutConversation(c); err != nil {
				return err
			}
			if err := tx.Append(desk.Event{Kind: desk.ConversationUpdated, Subject: c.ID, At: a.now(), Changed: []string{"assignee"}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Receive takes in a message: it finds or creates the contact and an open
// conversation, which a new one's owner holds, and heeds stop and start words. It
// returns the conversation, and NotFound when there is no such channel.
func (a *App) Receive(ctx context.Context, ws, channel desk.ID, in InboundMessage) (c *desk.Conversation, err error) {
	err = a.store.InTx(ctx, ws, func(tx Tx) error {
		if tx.Settings().Channel(channel) == nil {
			return desk.NoChannel()
		}
		c, err = a.receive(tx, channel, in)
		return err
	})
	return c, err
}

func (a *App) receive(tx Tx, channel desk.ID, in InboundMessage) (*desk.Conversation, error) {
	known, err := tx.MessageBy(channel, in.ExternalID)
	if err != nil {
		return nil, err
	}
	if known != nil {
		return tx.Conversation(known.ConversationID)
	}
	now := a.now()
	contact, err := a.sender(tx, in, now)
	if err != nil {
		return nil, err
	}
	c, err := tx.OpenConversation(channel, contact.ID)
	if err != nil {
		return nil, err
	}
	existing := c != nil
	if !existing {
		opened := desk.NewConversation(a.newID(), channel, contact, now)
		c = &opened
	}
	m := &desk.Message{
		ID: a.newID(), ConversationID: c.ID, ChannelID: channel, Direction: desk.Inbound,
		ExternalID: in.ExternalID, Text: in.Text, TS: in.At,
	}
	c.Note(m)
	if err := tx.PutConversation(c); err != nil {
		return nil, err
	}
	if err := tx.PutMessage(m); err != nil {
		return nil, err
	}
	if err := a.heed(tx, tx.Settings().ID, person{in.Number, in.UserID}, desk.OptWord(in.Text), in.At); err != nil {
		return nil, err
	}
	return c, tx.Append(conversationEvents(c, m, existing, nil, desk.ID{}, now)...)
}

// sender finds or creates the contact of whoever wrote a message.
func (a *App) sender(tx Tx, in InboundMessage, now desk.Time) (*desk.Contact, error) {
	p := person{in.Number, in.UserID}
	book, err := tx.Book(p.find())
	if err != nil {
		return nil, err
	}
	contact := p.known(book)
	if contact != nil {
		if err := learn(book, contact, p.identities(), now); err != nil {
			return nil, err
		}
		return book.Contact(contact.ID), tx.Flush(book)
	}
	w := desk.ContactWrite{Name: desk.Field[string]{Set: in.Name != "", Value: in.Name}}
	if in.Number != "" {
		w.Phone = desk.Field[string]{Set: true, Value: in.Number}
		w.Sent = []desk.Identity{{Kind: desk.KindPhone, Value: in.Number}}
	}
	if in.UserID != "" {
		id := desk.Identity{Kind: desk.KindWhatsAppUser, Value: in.UserID}
		w.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{id}}
		w.Sent = append(w.Sent, id)
	}
	outcome, err := book.Apply(&desk.Op{Kind: desk.OpUpsert, Write: w}, desk.ID{}, now, a.newID)
	if err != nil {
		return nil, err
	}
	return outcome.Contact, tx.Flush(book)
}
