package app

import (
	"context"
	"slices"

	"parley/desk"
	"parley/store"
)

// State returns the state of a conversation, or NotFound.
func (a *App) State(ctx context.Context, p desk.Principal, id desk.ID) (*desk.State, error) {
	c, err := a.Conversation(ctx, p, id)
	if err != nil {
		return nil, err
	}
	people, err := a.ContactsByID(ctx, p, []desk.ID{c.ContactID})
	if err != nil {
		return nil, err
	}
	states, err := a.states(ctx, p, []*desk.Conversation{c}, people)
	if err != nil {
		return nil, err
	}
	return &states[0], nil
}

// states returns the states of conversations, in their order.
func (a *App) states(ctx context.Context, p desk.Principal, list []*desk.Conversation, people map[desk.ID]*desk.Contact) ([]desk.State, error) {
	ws, now := p.Workspace(), a.now()
	refs := make([]desk.WindowRef, len(list))
	handles := map[desk.ID][]store.NumberHash{}
	var all []store.NumberHash
	for i, c := range list {
		refs[i] = desk.WindowRef{Channel: c.ChannelID, Contact: c.ContactID}
		if contact := people[c.ContactID]; contact != nil && handles[contact.ID] == nil {
			handles[contact.ID] = a.choiceHandles(ws, contact.Address(), contact)
			all = append(all, handles[contact.ID]...)
		}
	}
	windows, err := a.store.Windows(ctx, ws, slices.Compact(slices.SortedFunc(slices.Values(refs), compareRefs)))
	if err != nil {
		return nil, err
	}
	choices, err := a.store.Choices(ctx, ws, all)
	if err != nil {
		return nil, err
	}
	states := make([]desk.State, len(list))
	for i, c := range list {
		window := windows[refs[i]]
		states[i] = desk.State{Conversation: c.ID, Window: window.State(now), Talk: c.Talk, OptedOutSince: firstOptOut(choices, handles[c.ContactID])}
	}
	return states, nil
}

func compareRefs(a, b desk.WindowRef) int {
	if n := a.Contact.Compare(b.Contact); n != 0 {
		return n
	}
	return a.Channel.Compare(b.Channel)
}

// An InboxItem is a conversation with the data that a team's inbox shows.
type InboxItem struct {
	Conversation *desk.Conversation
	Contact      *desk.Contact // nil: deleted meanwhile
	State        desk.State
}

// Inbox returns a page of conversations with their contacts and states, and the cursor of
// the next page, "" if there is none. Its errors are those of Conversations.
func (a *App) Inbox(ctx context.Context, p desk.Principal, f desk.ConversationFilter, cursor string, limit int) ([]InboxItem, string, error) {
	list, next, err := a.filtered(ctx, p, "inbox", f, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	ids := make([]desk.ID, len(list))
	for i, c := range list {
		ids[i] = c.ContactID
	}
	people, err := a.ContactsByID(ctx, p, ids)
	if err != nil {
		return nil, "", err
	}
	states, err := a.states(ctx, p, list, people)
	if err != nil {
		return nil, "", err
	}
	items := make([]InboxItem, len(list))
	for i, c := range list {
		items[i] = InboxItem{Conversation: c, Contact: people[c.ContactID], State: states[i]}
	}
	return items, next, nil
}
