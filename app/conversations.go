package app

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// Conversation returns a conversation of the principal's workspace, or NotFound.
func (a *App) Conversation(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Conversation, error) {
	c, err := a.store.Conversation(ctx, p.Workspace(), id)
	if err == nil && c == nil {
		err = desk.NoConversation()
	}
	return c, err
}

// Conversations returns a page of conversations, newest first, and the cursor of the
// next page, "" if there is none. It returns InvalidRequest for a cursor of another
// workspace or other filters.
func (a *App) Conversations(ctx context.Context, p desk.Principal, f desk.ConversationFilter, cursor string, limit int) ([]*desk.Conversation, string, error) {
	return a.filtered(ctx, p, "conversations", f, cursor, limit)
}

func (a *App) filtered(ctx context.Context, p desk.Principal, name string, f desk.ConversationFilter, cursor string, limit int) ([]*desk.Conversation, string, error) {
	list := cursors.List{Workspace: p.Workspace(), Name: name, Filter: fmt.Sprintf("%q %s %v %s %s", f.Status, f.Assignee, f.Unassigned, f.Channel, f.Contact) + fmt.Sprint(f.ActiveSince, f.Unread, f.Waiting, f.Longest)}
	if f.Awake {
		list.Filter += " awake"
	}
	if p.Actor.Kind == desk.ByMember {
		f.Looked = desk.MaxMemberLooked
	}
	if cursor == "" && !f.Channel.IsZero() && p.Settings.Channel(f.Channel) == nil {
		return nil, "", nil // an unknown channel has no conversations
	}
	after, err := a.conversationPlace(list, cursor)
	if err != nil {
		return nil, "", err
	}
	return a.conversations(ctx, list, f, after, limit)
}

// ContactConversations is like Conversations, for one contact. It returns NotFound if there
// is no such contact.
func (a *App) ContactConversations(ctx context.Context, p desk.Principal, contact desk.ID, status desk.ConversationStatus, cursor string, limit int) ([]*desk.Conversation, string, error) {
	list := cursors.List{Workspace: p.Workspace(), Name: "contact conversations", Filter: fmt.Sprintf("%s %q", contact, status)}
	after, err := a.conversationPlace(list, cursor)
	if err == nil {
		_, err = a.contact(ctx, p.Workspace(), contact)
	}
	if err != nil {
		return nil, "", err
	}
	return a.conversations(ctx, list, desk.ConversationFilter{Contact: contact, Status: status}, after, limit)
}

// conversationPlace returns the position of a cursor in a list of conversations, nil for the
// first page.
func (a *App) conversationPlace(list cursors.List, cursor string) (*desk.ConversationPlace, error) {
	if cursor == "" {
		return nil, nil
	}
	place, err := a.cursors.Open(list, cursor)
	if err != nil {
		return nil, err
	}
	return &desk.ConversationPlace{
		LastMessageAt: desk.Time(binary.BigEndian.Uint64(place)),
		CreatedAt:     desk.Time(binary.BigEndian.Uint64(place[8:])),
		ID:            desk.ID(place[16:]),
	}, nil
}

func (a *App) conversations(ctx context.Context, list cursors.List, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, string, error) {
	page, next, err := a.store.Conversations(ctx, list.Workspace, f, after, limit)
	if err != nil || next == nil {
		return page, "", err
	}
	place := binary.BigEndian.AppendUint64(nil, uint64(next.LastMessageAt))
	place = binary.BigEndian.AppendUint64(place, uint64(next.CreatedAt))
	return page, a.cursors.Seal(list, append(place, next.ID[:]...)), nil
}

// InboxCounts counts the open conversations of a channel (zero: of all channels). There are
// four numbers, each up to desk.MaxCount: the caller's conversations, the unassigned ones,
// all, and the caller's conversations in which the person waits.
func (a *App) InboxCounts(ctx context.Context, p desk.Principal, channel desk.ID) (desk.ConversationCounts, error) {
	member := desk.ID{}
	if p.Actor.Kind == desk.ByMember {
		member = p.Actor.ID
	}
	return a.store.CountConversations(ctx, p.Workspace(), member, channel)
}

// A Team has the workloads of a workspace's members.
type Team struct {
	Members []TeamMember
	Pool    desk.Workload // of unassigned conversations
	Later   desk.Time     // if a workload has no Waiting, only waits that began after this time are possible in it; 0: none is
}

// A TeamMember is a member with the member's workload.
type TeamMember struct {
	*desk.Member
	desk.Workload
}

// Team returns the workloads of the members, sorted by name.
func (a *App) Team(ctx context.Context, p desk.Principal) (Team, error) {
	members := p.Settings.Members()
	ids := make([]desk.ID, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	loads, later, err := a.store.Workloads(ctx, p.Workspace(), ids)
	if err != nil {
		return Team{}, err
	}
	t := Team{Members: make([]TeamMember, len(members)), Pool: loads[desk.ID{}], Later: later}
	for i, m := range members {
		t.Members[i] = TeamMember{m, loads[m.ID]}
	}
	return t, nil
}

// Messages returns a page of a conversation's messages, newest first, and the cursor of
// the next page, "" if there is none. It returns NotFound if there is no such
// conversation, and InvalidRequest as Conversations does.
func (a *App) Messages(ctx context.Context, p desk.Principal, conversation desk.ID, cursor string, limit int) ([]*desk.Message, string, error) {
	var after *desk.MessagePlace
	if cursor != "" {
		place, err := a.messagePlace(p, conversation, cursor)
		if err != nil {
			return nil, "", err
		}
		after = &place
	}
	if _, err := a.Conversation(ctx, p, conversation); err != nil {
		return nil, "", err
	}
	page, next, err := a.store.Messages(ctx, p.Workspace(), conversation, after, limit)
	if err != nil || next == nil {
		return page, "", err
	}
	return page, a.cursors.Seal(messageList(p, conversation), append(binary.BigEndian.AppendUint64(nil, uint64(next.TS)), next.ID[:]...)), nil
}

func messageList(p desk.Principal, conversation desk.ID) cursors.List {
	return cursors.List{Workspace: p.Workspace(), Name: "messages", Filter: conversation.String()}
}

// messagePlace returns the position of a cursor in a list of messages.
func (a *App) messagePlace(p desk.Principal, conversation desk.ID, cursor string) (desk.MessagePlace, error) {
	place, err := a.cursors.Open(messageList(p, conversation), cursor)
	if err != nil {
		return desk.MessagePlace{}, err
	}
	return desk.MessagePlace{TS: desk.Time(binary.BigEndian.Uint64(place)), ID: desk.ID(place[8:])}, nil
}

// Message returns a message of a conversation, or NotFound.
func (a *App) Message(ctx context.Context, p desk.Principal, conversation, id desk.ID) (*desk.Message, error) {
	m, err := a.store.Message(ctx, p.Workspace(), conversation, id)
	if err == nil && m == nil {
		err = desk.NoMessage()
	}
	return m, err
}

// Seen is the state of a conversation that a caller saw before it chose an action.
type Seen struct {
	Message  desk.ID // the newest message in the list; zero: none
	Assignee desk.ID
	Status   desk.ConversationStatus // "": any
}

// still checks that the conversation is in the seen state. If it is not, it returns
// Changed, with the current conversation. A nil Seen accepts any state.
func (s *Seen) still(tx store.Tx, c *desk.Conversation) error {
	if s == nil {
		return nil
	}
	newest, err := tx.NewestMessage(c.ID, 0, math.MaxInt64)
	if err != nil || newest.ID == s.Message && c.AssignedMember == s.Assignee && (s.Status == "" || s.Status == c.Status) {
		return err
	}
	return changed(c)
}

func changed(c *desk.Conversation) error {
	e := desk.Errorf(desk.Changed, "the conversation has changed meanwhile: nothing was done")
	e.Details = c
	return e
}

// Assign assigns a conversation to the member with this id or e-mail, even if another
// member has it. It returns NotFound, InvalidRequest if there is no such member, and
// Unauthorized or Forbidden if the caller was changed meanwhile. It returns Changed if the
// conversation is no longer in the seen state (nil: any state is accepted), unless nothing
// would change.
func (a *App) Assign(ctx context.Context, p desk.Principal, id desk.ID, member string, seen *Seen) (*desk.Conversation, error) {
	ref := desk.ReferTo(member)
	return a.changeConversation(ctx, p, id, seen, func(tx store.Tx, c *desk.Conversation) error {
		m, err := memberNamed(tx.Settings(), "/member", ref)
		if err != nil {
			return err
		}
		c.Assign(m.ID)
		return nil
	})
}

// memberNamed returns the member with this id or e-mail, or InvalidRequest. at is the place
// of the reference in the request.
func memberNamed(s *desk.Settings, at string, ref desk.Reference) (*desk.Member, error) {
	m := s.ResolveMember(ref)
	if m == nil {
		return nil, desk.InvalidAt(at, "no member of this workspace has this id or e-mail").Advise(desk.ListMembers)
	}
	return m, nil
}

// SetStatus changes the status of a conversation. It returns the errors of Assign, and
// ConversationOpen if another conversation with the contact on the channel is open.
func (a *App) SetStatus(ctx context.Context, p desk.Principal, id desk.ID, status desk.ConversationStatus, seen *Seen) (*desk.Conversation, error) {
	return a.changeConversation(ctx, p, id, seen, func(tx store.Tx, c *desk.Conversation) error {
		if c.Status == status {
			return nil
		}
		if status == desk.StatusOpen {
			other, err := tx.OpenConversation(c.ChannelID, c.ContactID)
			if err != nil {
				return err
			}
			if other != nil {
				return desk.Errorf(desk.ConversationOpen, "another conversation with this contact is open on this channel: close %s first", other.ID)
			}
		}
		c.Status, c.Dormant = status, false
		if status == desk.StatusOpen && tx.Settings().Member(c.AssignedMember) == nil {
			c.Unassign() // its assignee was removed while it was closed
		}
		return nil
	})
}

func (a *App) changeConversation(ctx context.Context, p desk.Principal, id desk.ID, seen *Seen, change func(store.Tx, *desk.Conversation) error) (c *desk.Conversation, err error) {
	err = a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) (err error) {
		if err := p.Still(tx.Settings(), desk.ConversationsWrite, a.now()); err != nil {
			return err
		}
		if c, err = tx.Conversation(id); err != nil {
			return err
		}
		if c == nil {
			return desk.NoConversation()
		}
		before := *c
		if err := change(tx, c); err != nil {
			return err
		}
		events := conversationEvents(c, &before, p.Actor, a.now())
		if events == nil {
			return nil
		}
		if err := seen.still(tx, &before); err != nil {
			return err
		}
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		return tx.Append(events...)
	})
	return c, err
}

// unassign makes up to limit open conversations of a member unassigned, and returns their
// number. It begins behind the position in after, and sets after to the last conversation.
func (a *App) unassign(ctx context.Context, p desk.Principal, member desk.ID, after **desk.ConversationPlace, limit int) (int, error) {
	var held []*desk.Conversation
	err := a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) (err error) {
		if held, err = tx.HeldConversations(member, *after, limit); err != nil {
			return err
		}
		var events []desk.Event
		for _, c := range held {
			before := *c
			c.Unassign()
			events = append(events, conversationEvents(c, &before, p.Actor, a.now())...)
		}
		if err := tx.PutConversation(held...); err != nil {
			return err
		}
		return tx.Append(events...)
	})
	if err != nil || len(held) == 0 {
		return 0, err
	}
	last := held[len(held)-1].Place()
	*after = &last
	return len(held), nil
}

// Unassign gives a conversation back to the pool. An unassigned conversation stays as it
// is. It returns the errors of Assign.
func (a *App) Unassign(ctx context.Context, p desk.Principal, id desk.ID, seen *Seen) (*desk.Conversation, error) {
	return a.changeConversation(ctx, p, id, seen, func(_ store.Tx, c *desk.Conversation) error {
		c.Unassign()
		return nil
	})
}
