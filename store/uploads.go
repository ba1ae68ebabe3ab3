package store

import (
	"context"
	"time"

	"parley/desk"
)

// ImportTask is the name of the lease with which one import works in a workspace.
const ImportTask = "import"

// Uploads keeps files that are imported in the console, and their rejected rows.
type Uploads interface {
	// Uploads returns the newest uploads of a workspace, by id, up to limit. Upload returns
	// one, or nil. Each comes with its run.
	Uploads(ctx context.Context, ws desk.ID, limit int) ([]*desk.Upload, error)
	Upload(ctx context.Context, ws, id desk.ID) (*desk.Upload, error)

	// UploadsDue returns the workspaces with queued uploads, and how long to wait until the
	// lease of the import that is at work there ends by the database's clock (0: nothing is
	// at work). If it ends later than a new lease would, the clock was set back: then there
	// is nothing to wait for. NextUpload returns the upload of a workspace that is queued for
	// the longest time, or nil.
	UploadsDue(ctx context.Context, lease time.Duration) (map[desk.ID]time.Duration, error)
	NextUpload(ctx context.Context, ws desk.ID) (*desk.Upload, error)

	// Rejected returns the rejected rows of a run that were put at a place, or nil.
	Rejected(ctx context.Context, ws, run desk.ID, at int64) ([]byte, error)
}

// An UploadTx reads and writes uploads.
type UploadTx interface {
	// Upload returns an upload without its run, or nil. No other transaction changes it
	// meanwhile.
	Upload(id desk.ID) (*desk.Upload, error)

	// UploadsOf returns the uploads of people of a broadcast that have not ended.
	UploadsOf(broadcast desk.ID) ([]*desk.Upload, error)

	// PutUpload stores an upload without its run. If another upload of the workspace has
	// taken its slot meanwhile, the transaction runs again. UploadSlots returns the slots
	// that are taken.
	PutUpload(*desk.Upload) error
	UploadSlots() ([]int, error)

	// OldUploads returns up to limit uploads that have not ended and were made before a
	// moment, or that ended before another moment. DropUpload deletes one with its run.
	OldUploads(made, ended desk.Time, limit int) ([]*desk.Upload, error)
	DropUpload(*desk.Upload) error

	// PutRejected stores rejected rows of a run, which begin at a place of their file.
	// DropRun deletes a run and its rejected rows.
	PutRejected(run desk.ID, at int64, rows []byte) error
	DropRun(run desk.ID) error
}
