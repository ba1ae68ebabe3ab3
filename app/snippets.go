package app

import (
	"context"

	"parley/desk"
	"parley/store"
)

// A SnippetQuery names the people whose values are put into the snippets.
type SnippetQuery struct {
	Contact *desk.ID
	Agent   *string // a member's id or e-mail
}

// Asked reports whether the snippets are to be filled in at all.
func (q SnippetQuery) Asked() bool { return q.Contact != nil || q.Agent != nil }

// Snippets lists the workspace's snippets by shortcut, and the values for their
// placeholders. It returns NotFound for an unknown contact; an unknown agent has no values.
func (a *App) Snippets(ctx context.Context, p desk.Principal, q SnippetQuery) ([]desk.Snippet, map[desk.Binding]desk.HintValue, error) {
	var agent *desk.Member
	if q.Agent != nil {
		agent = p.Settings.ResolveMember(desk.ReferTo(*q.Agent))
	}
	customer := ""
	if q.Contact != nil {
		c, err := a.contact(ctx, p.Workspace(), *q.Contact)
		if err != nil {
			return nil, nil, err
		}
		customer = c.Name
	}
	list, err := a.store.Snippets(ctx, p.Workspace())
	return list, desk.HintValues(agent, customer, desk.FromContact), err
}

// PutSnippet stores a snippet, and replaces one with the same shortcut. created is true if
// there was none. It returns InvalidRequest, also if there is no room.
func (a *App) PutSnippet(ctx context.Context, p desk.Principal, shortcut, text string) (s desk.Snippet, created bool, err error) {
	return a.EditSnippet(ctx, p, shortcut, text, nil)
}

// EditSnippet is like PutSnippet, for a caller who has seen the old text. A seen text ""
// means that there was no snippet; nil accepts any old text. If the text is another one
// now, EditSnippet returns Changed, with the snippet as it is.
func (a *App) EditSnippet(ctx context.Context, p desk.Principal, shortcut, text string, seen *string) (s desk.Snippet, created bool, err error) {
	s, err = desk.NewSnippet(shortcut, text, a.now())
	if err != nil {
		return s, false, err
	}
	now := s.UpdatedAt
	err = a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.SnippetsWrite, now); err != nil {
			return err
		}
		stored, count, err := tx.Snippet(shortcut)
		if err != nil {
			return err
		}
		s.UpdatedAt, created = now, stored == nil
		event := desk.Event{Type: desk.SnippetCreated, Key: shortcut, Actor: p.Actor, At: now}
		switch {
		case seen != nil && (created != (*seen == "") || !created && stored.Text != *seen && stored.Text != text):
			return changedSnippet(stored)
		case created && count >= desk.MaxSnippets:
			return desk.Invalidf("the workspace has %d saved replies, and no more are possible: delete one first", desk.MaxSnippets)
		case !created && stored.Text == text:
			s = *stored
			return nil
		case !created:
			event.Type, event.Changed = desk.SnippetUpdated, []string{"text"}
		}
		if err := tx.PutSnippet(s); err != nil {
			return err
		}
		return tx.Append(event)
	})
	return s, created, err
}

func changedSnippet(stored *desk.Snippet) error {
	e := desk.Errorf(desk.Changed, "the saved reply has changed meanwhile: nothing was stored")
	e.Details = stored
	return e
}

// DeleteSnippet deletes a snippet, or returns NotFound.
func (a *App) DeleteSnippet(ctx context.Context, p desk.Principal, shortcut string) error {
	now := a.now()
	return a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.SnippetsWrite, now); err != nil {
			return err
		}
		stored, _, err := tx.Snippet(shortcut)
		if err != nil {
			return err
		}
		if stored == nil {
			return desk.NoSnippet()
		}
		if err := tx.DropSnippet(shortcut); err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: desk.SnippetDeleted, Key: shortcut, Actor: p.Actor, At: now})
	})
}
