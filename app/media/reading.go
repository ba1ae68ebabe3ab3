package media

import (
	"context"
	"fmt"
	"io"

	"parley/desk"
)

// Record returns the record of a file, or NotFound.
func (a *Service) Record(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Media, error) {
	m, err := a.Store.Media(ctx, p.Workspace(), id)
	if err == nil && m == nil {
		err = desk.NoMedia()
	}
	return m, err
}

// List returns up to limit files, newest first, with ids before the given one (zero: from
// the newest). If failed is set, it returns only failed ones.
func (a *Service) List(ctx context.Context, p desk.Principal, failed bool, before desk.ID, limit int) ([]*desk.Media, error) {
	return a.Store.MediaList(ctx, p.Workspace(), failed, before, limit)
}

// Open opens the content of a file, which the caller must close. It returns
// NotFound, and MediaUnavailable unless the file is ready.
func (a *Service) Open(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Media, io.ReadSeekCloser, error) {
	m, err := a.Record(ctx, p, id)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Unavailable(); err != nil {
		return nil, nil, err
	}
	leave, err := a.transfers.enter(ctx, p.Workspace())
	if err != nil {
		return nil, nil, err
	}
	content, err := a.openContent(ctx, p.Workspace(), m)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return m, &transfer{content, leave}, nil
}

// openContent opens the content of a ready file. Missing content, for example after a
// restore of a backup without files, is Unavailable.
func (a *Service) openContent(ctx context.Context, ws desk.ID, m *desk.Media) (io.ReadSeekCloser, error) {
	content, err := a.Store.OpenContent(ctx, ws, m.SHA256)
	if desk.IsType(err, desk.NotFound) {
		return nil, &desk.Error{Type: desk.Unavailable, Message: "the content of this file can't be found", Err: fmt.Errorf("the content of the file %s is missing", m.ID)}
	}
	return content, err
}
