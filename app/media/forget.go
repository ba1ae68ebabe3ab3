package media

import (
	"context"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// An unfinished upload that has received no byte for draftLife is deleted, because its
// process has died.
const draftLife = time.Hour

// group is how many files one step of the background work deletes.
const group = 50

// Delete deletes the record of a file that no message has. Other files with the same content
// stay. It returns NotFound and MediaInUse.
func (a *Service) Delete(ctx context.Context, p desk.Principal, id desk.ID) error {
	err := a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.MessagesSend, a.Now()); err != nil {
			return err
		}
		m, err := tx.Media(id)
		if err != nil {
			return err
		}
		if m == nil {
			return desk.NoMedia()
		}
		used, err := tx.MediaInUse(id)
		if err == nil && used {
			err = m.InUse()
		}
		if err != nil {
			return err
		}
		return tx.DropMedia(id)
	})
	if err != nil {
		return err
	}
	// Free the room of the bytes at once. If this fails, the background work does it later.
	if _, err := a.Store.DropContents(context.WithoutCancel(ctx), group); err != nil {
		a.Log.WarnContext(ctx, "the content of a deleted file is still there; it will be deleted later", "workspace_id", p.Workspace(), "media_id", id, "err", err)
	}
	return nil
}

// DropContents deletes content that no file uses.
func (a *Service) DropContents(ctx context.Context) error {
	return steps.InGroups(ctx, group, func(limit int) (int, error) { return a.Store.DropContents(ctx, limit) })
}

// DropDrafts deletes unfinished uploads whose process has died.
func (a *Service) DropDrafts(ctx context.Context) error { return a.Store.DropDrafts(ctx, draftLife) }

// Forget deletes old uploads of a workspace that no message uses, and counts its bytes
// again.
func (a *Service) Forget(ctx context.Context, ws desk.ID) error {
	err := steps.InGroups(ctx, group, func(limit int) (n int, err error) {
		err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
			n, err = tx.DropUploads(desk.Ago(desk.UploadLife, tx.Now(), a.Now()), limit)
			return err
		})
		return n, err
	})
	if err != nil {
		return err
	}
	return a.Store.CountMedia(ctx, ws)
}

// ForgetOld deletes the content of files older than age, unless another process did so
// within the hour. The records stay.
func (a *Service) ForgetOld(ctx context.Context, age time.Duration) error {
	ours, err := a.Store.Lease(ctx, desk.ID{}, "forget media", steps.ForgetAgain)
	if err != nil || !ours {
		return err
	}
	workspaces, err := a.Store.Workspaces(ctx)
	if err != nil {
		return err
	}
	return steps.Abreast(ctx, workspaces, func(w desk.Workspace) error {
		return steps.InGroups(ctx, group, func(limit int) (int, error) { return a.forgetOld(ctx, w.ID, age, limit) })
	})
}

// mostMessages is how many messages with one file get an event when its content is deleted.
// An upload is rarely in more messages. A reader of the other messages notices the deletion
// when they open the file.
const mostMessages = 1000

func (a *Service) forgetOld(ctx context.Context, ws desk.ID, age time.Duration, limit int) (n int, err error) {
	err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
		n = 0
		old, err := tx.OldMedia(desk.Ago(age, tx.Now(), a.Now()), limit)
		if err != nil {
			return err
		}
		for _, m := range old {
			n++
			sum := m.SHA256
			m.Status, m.SHA256 = desk.MediaDeleted, nil
			if err := tx.PutMedia(m); err != nil {
				return err
			}
			if err := tx.ReleaseContent(sum); err != nil {
				return err
			}
			with, err := tx.MessagesOf(m.ID, mostMessages)
			if err != nil {
				return err
			}
			for _, message := range with {
				if err := tx.Append(changed(message, desk.Actor{Kind: desk.BySystem}, a.Now())); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return n, err
}
