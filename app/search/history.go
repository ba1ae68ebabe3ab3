package search

import (
	"context"
	"encoding/binary"

	"parley/app/cursors"
	"parley/desk"
)

// History returns a page of the history of a contact, newest first: the creation and the newest
// changes of it, and of each contact that was merged into it. It also returns the cursor of the next page, "" if there is none. The caller has
// read the contact.
func (a *Service) History(ctx context.Context, p desk.Principal, contact desk.ID, cursor string, limit int) ([]desk.FeedEvent, string, error) {
	list, before := cursors.List{Workspace: p.Workspace(), Name: "history", Filter: contact.String()}, int64(0)
	if cursor != "" {
		place, err := a.Cursors.Open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		before = int64(binary.BigEndian.Uint64(place))
	}
	parts, err := a.Store.MergedInto(ctx, p.Workspace(), contact)
	if err != nil {
		return nil, "", err
	}
	events, err := a.Store.History(ctx, p.Workspace(), append(parts, contact), before, limit+1)
	if err != nil {
		return nil, "", err
	}
	size := desk.NewPageSize(limit)
	for i := range events {
		if i == limit || !size.Add(events[i].EventBytes()) {
			return events[:i], a.Cursors.Seal(list, binary.BigEndian.AppendUint64(nil, uint64(events[i-1].Place.Seq))), nil
		}
		events[i].ID = a.Feed.EventID(p.Workspace(), events[i].Place)
	}
	return events, "", nil
}
