package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// ForgetMessages deletes the messages and notes that are older than age, with the files that
// only they have. Then it deletes the conversations that are empty, unless they are open.
// There is no lease: the work also starts with each process, and a second process that does
// the same finds nothing.
func (a *App) ForgetMessages(ctx context.Context, age time.Duration) error {
	workspaces, err := a.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	database, _, err := a.store.Clock(ctx)
	if err != nil {
		return err
	}
	before := desk.Ago(age, database, a.now())
	return steps.Abreast(ctx, workspaces, func(w desk.Workspace) error { return a.forgetOld(ctx, w.ID, before) })
}

func (a *App) forgetOld(ctx context.Context, ws desk.ID, before desk.Time) error {
	if err := steps.InGroups(ctx, desk.ForgottenTogether, func(limit int) (int, error) {
		old, err := a.store.OldMessages(ctx, ws, before, limit)
		if err != nil || len(old) == 0 {
			return 0, err
		}
		return len(old), a.dropMessages(ctx, ws, before, old)
	}); err != nil {
		return err
	}
	if err := steps.InGroups(ctx, desk.ForgottenTogether, func(limit int) (int, error) {
		old, err := a.store.OldNotes(ctx, ws, before, limit)
		if err != nil || len(old) == 0 {
			return 0, err
		}
		return len(old), a.store.InTx(ctx, ws, func(tx store.Tx) error {
			for _, n := range old {
				if _, err := tx.DeleteNote(n.ConversationID, n.ID); err != nil {
					return err
				}
			}
			return nil
		})
	}); err != nil {
		return err
	}
	return errors.Join(
		a.dropEmpty(ctx, ws, desk.StatusClosed, before),
		a.dropEmpty(ctx, ws, desk.StatusArchived, before),
	)
}

// dropMessages deletes messages that are older than before. It locks their conversations
// first, in the order in which a deletion of contacts does. Nobody else then stores a message
// in them, and no file of theirs becomes used or unused.
func (a *App) dropMessages(ctx context.Context, ws desk.ID, before desk.Time, old []*desk.Message) error {
	var conversations, files []desk.ID
	for _, m := range old {
		conversations = append(conversations, m.ConversationID)
		if !m.Media.IsZero() {
			files = append(files, m.Media)
		}
	}
	return a.store.InTx(ctx, ws, func(tx store.Tx) error {
		for _, id := range distinct(conversations) {
			c, err := tx.Conversation(id)
			if err != nil {
				return err
			}
			if c == nil || !c.Forget(before) {
				continue
			}
			if err := tx.PutConversation(c); err != nil {
				return err
			}
		}
		if err := tx.DropMessages(old); err != nil {
			return err
		}
		for _, id := range distinct(files) {
			m, err := tx.Media(id)
			if err != nil {
				return err
			}
			if m == nil {
				continue
			}
			used, err := tx.MediaInUse(id)
			if err != nil {
				return err
			}
			if used {
				if m.ContactID.IsZero() { // an upload: if what needs it now ends, DropUploads finds it again
					if err := tx.PutMedia(m); err != nil {
						return err
					}
				}
				continue
			}
			if err := tx.DropMedia(id); err != nil {
				return err
			}
		}
		return nil
	})
}

// distinct returns the ids in their order, each once.
func distinct(ids []desk.ID) []desk.ID {
	slices.SortFunc(ids, desk.ID.Compare)
	return slices.Compact(ids)
}

// dropEmpty deletes the conversations with a status whose last message is old and that have
// no message or note any more. They may have been emptied while they were open.
func (a *App) dropEmpty(ctx context.Context, ws desk.ID, status desk.ConversationStatus, before desk.Time) error {
	var after desk.ConversationPlace
	return steps.InGroups(ctx, desk.ForgottenTogether, func(limit int) (int, error) {
		old, err := a.store.OldConversations(ctx, ws, status, before, after, limit)
		if err != nil || len(old) == 0 {
			return 0, err
		}
		after = old[len(old)-1].Place()
		return len(old), a.store.InTx(ctx, ws, func(tx store.Tx) error {
			slices.SortFunc(old, func(b, c *desk.Conversation) int { return b.ID.Compare(c.ID) }) // see dropMessages
			for _, c := range old {
				now, err := tx.Conversation(c.ID)
				if err != nil {
					return err
				}
				if now == nil || now.Status == desk.StatusOpen || now.LastMessageAt >= before {
					continue
				}
				if _, err := tx.DropEmpty(c.ID); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
