package media

import (
	"context"
	"errors"
	"io"

	"parley/desk"
	"parley/store"
)

// Upload stores a file while it is read. The claimed type counts only if the content does
// not show the type. If head has a size for which the workspace has no room, the file is
// refused before its first byte is read. Upload returns InvalidRequest for an empty file,
// PayloadTooLarge, and MediaQuota. It returns an error of content unchanged.
func (a *Service) Upload(ctx context.Context, p desk.Principal, head desk.FileHead, content io.Reader) (*desk.Media, error) {
	leave, err := a.transfers.enter(ctx, p.Workspace())
	if err != nil {
		return nil, err
	}
	defer leave()
	in, err := a.Store.NewContent(ctx, p.Workspace())
	if err != nil {
		return nil, err
	}
	defer in.Drop()
	room := &hold{a: a, ws: p.Workspace()}
	defer room.leave()
	if err := room.take(ctx, max(1, head.Size)); err != nil { // before the first byte is read
		return nil, err
	}
	room.size = 0
	sniffer := desk.NewSniffer(head.Type)
	n, err := io.CopyBuffer(io.MultiWriter(held{ctx, room}, in, sniffer), io.LimitReader(content, a.MaxSize+1), make([]byte, copyBytes))
	switch {
	case err != nil:
		return nil, err
	case n > a.MaxSize:
		return nil, a.tooLarge()
	case n == 0:
		return nil, desk.Invalidf("the file is empty")
	}
	m := &desk.Media{ID: a.NewID(), Name: desk.MediaName(head.Name), Status: desk.MediaReady, CreatedAt: a.Now()}
	if m.SHA256, m.Size, err = in.Keep(ctx, a.PerWorkspace); err != nil {
		return nil, err
	}
	m.MIME, m.Trait = sniffer.Type()
	m.Kind = desk.KindOfMedia(m.MIME)
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.MessagesSend, a.Now()); err != nil {
			return err
		}
		if err := tx.UseContent(m.SHA256); err != nil {
			return err
		}
		return tx.PutMedia(m)
	})
	if err != nil && !errors.Is(err, store.ErrCommitLost) {
		// If this fails, the content is deleted after an hour, as after a crash.
		_ = a.Store.InTx(context.WithoutCancel(ctx), p.Workspace(), func(tx store.Tx) error { return dropKept(tx, m.SHA256) })
	}
	return m, err
}

// A held is a writer that reserves room for bytes before the next writer stores them.
type held struct {
	ctx  context.Context
	room *hold
}

func (h held) Write(p []byte) (int, error) {
	if err := h.room.take(h.ctx, int64(len(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// dropKept marks stored content that no file will use, so that DropContents deletes it.
func dropKept(tx store.Tx, sum []byte) error {
	if err := tx.UseContent(sum); err != nil {
		return err
	}
	return tx.ReleaseContent(sum)
}

// copyBytes is the size of the buffer through which content is copied.
const copyBytes = 32 << 10

func (a *Service) tooLarge() error {
	return desk.Errorf(desk.PayloadTooLarge, "the file is larger than the %d bytes that this server takes", a.MaxSize)
}
