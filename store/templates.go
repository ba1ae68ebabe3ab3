package store

import (
	"context"

	"parley/desk"
)

// Templates keeps copies of template libraries.
type Templates interface {
	// Templates returns a channel's templates in no order, and the version of its
	// library at that moment, or NotFound.
	Templates(ctx context.Context, ws, channel desk.ID) (version int64, list []desk.TemplateSource, err error)
}
