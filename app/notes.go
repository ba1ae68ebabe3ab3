package app

import (
	"context"
	"math"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// Notes returns a page of a conversation's notes, newest first, and the cursor of the next
// page, "" if there is none. It returns NotFound if there is no such conversation, and
// InvalidRequest for a cursor that it did not give out.
func (a *App) Notes(ctx context.Context, p desk.Principal, conversation desk.ID, cursor string, limit int) ([]*desk.Note, string, error) {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return nil, "", err
	}
	if _, err := a.Conversation(ctx, p, conversation); err != nil {
		return nil, "", err
	}
	list := cursors.List{Workspace: p.Workspace(), Name: "notes", Filter: conversation.String()}
	before, err := a.cursors.OpenID(list, cursor)
	if err != nil {
		return nil, "", err
	}
	page, next, err := a.store.Notes(ctx, p.Workspace(), conversation, before, limit)
	return page, a.cursors.SealID(list, next), err
}

// Note returns a note, or NotFound.
func (a *App) Note(ctx context.Context, p desk.Principal, conversation, id desk.ID) (*desk.Note, error) {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return nil, err
	}
	if _, err := a.Conversation(ctx, p, conversation); err != nil {
		return nil, err
	}
	after := id.Next()
	page, _, err := a.store.Notes(ctx, p.Workspace(), conversation, &after, 1)
	if err == nil && (len(page) == 0 || page[0].ID != id) {
		err = desk.NoNote()
	}
	if err != nil {
		return nil, err
	}
	return page[0], nil
}

// maxNotesLooked is how many of a conversation's newest notes NotesBeside looks at.
const maxNotesLooked = 200

// NotesBeside returns the notes that belong beside a page of a conversation's messages,
// newest first. The parameter cursor is the cursor of this page. The notes are older than
// the messages of the page before. They are not older than the page's oldest message,
// except on the last page. NotesBeside returns the newest limit notes, and whether there
// may be others. Its errors are those of Messages.
func (a *App) NotesBeside(ctx context.Context, p desk.Principal, conversation desk.ID, cursor string, page []*desk.Message, more bool, limit int) (found []*desk.Note, others bool, err error) {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return nil, false, err
	}
	from, before := desk.Time(math.MinInt64), desk.Time(math.MaxInt64)
	if more && len(page) > 0 {
		from = page[len(page)-1].TS
	}
	if cursor != "" {
		place, err := a.messagePlace(p, conversation, cursor)
		if err != nil {
			return nil, false, err
		}
		before = place.TS
	}
	list, next, err := a.store.Notes(ctx, p.Workspace(), conversation, nil, maxNotesLooked)
	if err != nil {
		return nil, false, err
	}
	for _, n := range list {
		switch {
		case n.CreatedAt < from:
			return found, false, nil
		case n.CreatedAt >= before:
		case len(found) == limit:
			return found, true, nil
		default:
			found = append(found, n)
		}
	}
	return found, next != nil, nil
}

// AddNote stores a note on a conversation. Its author is the given member; if member is
// null or absent, it is the caller. It returns NotFound, InvalidRequest if there is no such
// member, and Unauthorized or Forbidden if the caller was changed meanwhile.
func (a *App) AddNote(ctx context.Context, p desk.Principal, conversation desk.ID, text string, member desk.Field[desk.Reference]) (n *desk.Note, err error) {
	err = a.changeNotes(ctx, p, conversation, func(tx store.Tx, c *desk.Conversation) (desk.EventType, desk.ID, error) {
		author := tx.Settings().AuthorOf(p.Actor)
		if member.Has() {
			m, err := memberNamed(tx.Settings(), "/member", member.Value)
			if err != nil {
				return "", desk.ID{}, err
			}
			author = desk.Author{Type: desk.AuthorMember, ID: m.ID, Name: m.Name}
		}
		n = &desk.Note{ID: a.newID(), ConversationID: c.ID, Text: text, Author: author, CreatedAt: a.now()}
		return desk.NoteCreated, n.ID, tx.PutNote(n)
	})
	return n, err
}

// DeleteNote deletes a note. It returns NotFound, and Unauthorized or Forbidden if the
// caller was changed meanwhile.
func (a *App) DeleteNote(ctx context.Context, p desk.Principal, conversation, id desk.ID) error {
	return a.changeNotes(ctx, p, conversation, func(tx store.Tx, _ *desk.Conversation) (desk.EventType, desk.ID, error) {
		there, err := tx.DeleteNote(conversation, id)
		if err == nil && !there {
			err = desk.NoNote()
		}
		return desk.NoteDeleted, id, err
	})
}

// changeNotes makes a change, and appends its event. A concurrent deletion of the contact
// waits for this transaction, or is visible to it.
func (a *App) changeNotes(ctx context.Context, p desk.Principal, conversation desk.ID, change func(store.Tx, *desk.Conversation) (desk.EventType, desk.ID, error)) error {
	return a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.ConversationsWrite, a.now()); err != nil {
			return err
		}
		c, err := tx.Conversation(conversation)
		if err != nil {
			return err
		}
		if c == nil {
			return desk.NoConversation()
		}
		event, note, err := change(tx, c)
		if err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: event, Subject: note, Conversation: c.ID, Contact: c.ContactID, Actor: p.Actor, At: a.now()})
	})
}
