package store

import (
	"context"
	"io"
	"time"

	"parley/desk"
)

// Media keeps files: their records, and their content, which is stored apart and
// once for all files of a workspace that have it.
type Media interface {
	// Media returns the record of a file, or nil.
	Media(ctx context.Context, ws, id desk.ID) (*desk.Media, error)

	// MediaList returns up to limit records, of failed ones only or of all, with ids
	// before the given one (zero: from the newest), newest first by id.
	MediaList(ctx context.Context, ws desk.ID, failed bool, before desk.ID, limit int) ([]*desk.Media, error)

	// MediaUsed returns how many bytes of content a workspace has: equal content counts once.
	// CountMedia counts them anew.
	MediaUsed(ctx context.Context, ws desk.ID) (int64, error)
	CountMedia(ctx context.Context, ws desk.ID) error

	// Room returns the free bytes of the file system that has the content, and all of its
	// bytes; known is false if the database has the content.
	Room() (free, total int64, known bool, err error)

	// NewContent begins to store content. OpenContent opens content for reading; it
	// returns NotFound if it is not there.
	NewContent(ctx context.Context, ws desk.ID) (Draft, error)
	OpenContent(ctx context.Context, ws desk.ID, sha256 []byte) (io.ReadSeekCloser, error)

	// DropContents deletes up to limit contents, of any workspaces, that no file has any
	// more, and returns how many it has looked at.
	DropContents(ctx context.Context, limit int) (int, error)

	// DropDrafts deletes drafts that are older than this.
	DropDrafts(ctx context.Context, age time.Duration) error

	// MediaDue returns the workspaces with files to fetch, and how long to wait until
	// the first of each is due by the database's clock; 0: it is due. A file that is due
	// later than longest from now is due now: the clock was set back.
	MediaDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// TakeMediaJob gives the job of a workspace that has been due for the longest time
	// to a holder until a lease of this length ends. It returns nil if none is due.
	TakeMediaJob(ctx context.Context, ws, holder desk.ID, lease, longest time.Duration) (*MediaJob, error)

	// HoldMediaJob extends the holder's lease. It returns false if the holder does not
	// have the job any more.
	HoldMediaJob(ctx context.Context, ws, media, holder desk.ID, lease time.Duration) (bool, error)

	// MediaRef returns the id by which the provider of a channel knows a file, and when it
	// was handed over; "" if it was not.
	MediaRef(ctx context.Context, ws, media, channel desk.ID) (ref string, at desk.Time, err error)
	PutMediaRef(ctx context.Context, ws, media, channel desk.ID, ref string, at desk.Time) error
}

// A Draft is content that is being stored. Its errors are Unavailable if the machine
// fails.
type Draft interface {
	// Write takes the next bytes.
	io.Writer

	// Keep makes the content durable. It is deleted after KeptContent, unless a Tx has
	// used it (UseContent). It returns MediaQuota if the workspace would then have more
	// bytes of content than most (0: no limit).
	Keep(ctx context.Context, most int64) (sha256 []byte, size int64, err error)

	// Drop deletes a draft that was not kept. It may always be called.
	Drop()
}

// KeptContent is how long content is kept without a file that has it.
const KeptContent = time.Hour

// A MediaJob is a file that is to be fetched from a provider.
type MediaJob struct {
	Media, Channel, Contact, Conversation, Message desk.ID

	TS     desk.Time // of the message
	Ref    string    // the provider's id of the file
	MIME   string    // this and the next two as the provider tells; "", 0 and nil: it does not
	Size   int64
	SHA256 []byte
	Tries  int
	Due    desk.Time // while a process has the job, the end of its lease
	Holder desk.ID   // zero: no process
	Ended  bool      // it has failed for good; it is kept to be begun again by hand
}

// A MediaTx reads and writes records of files. Deleting a contact deletes the files that
// the person sent, and the uploads that no other person's message has; PutMessage makes
// an upload belong to its message.
type MediaTx interface {
	Media(id desk.ID) (*desk.Media, error)
	PutMedia(*desk.Media) error

	// MediaInUse tells whether a message has a file, or a reply that is being sent or whose
	// outcome is unknown. DropMedia deletes the record, with what belongs to it.
	MediaInUse(id desk.ID) (bool, error)
	DropMedia(id desk.ID) error

	// UseContent tells that a file which the transaction stores has kept content. It
	// returns Unavailable if the content was kept too long ago.
	UseContent(sha256 []byte) error

	// PutMediaJob inserts or replaces a job. MediaJob returns it, and DropMediaJob
	// deletes it.
	PutMediaJob(MediaJob) error
	MediaJob(media desk.ID) (*MediaJob, error)
	DropMediaJob(media desk.ID) error

	// OldMedia returns up to limit ready files that were stored before a time, oldest
	// first. DropUploads deletes up to limit uploads from before a time that are in no
	// message, and returns how many it has looked at.
	OldMedia(before desk.Time, limit int) ([]*desk.Media, error)
	DropUploads(before desk.Time, limit int) (int, error)

	// ReleaseContent tells that a file may have been the last with this content, after
	// its record was stored without it.
	ReleaseContent(sha256 []byte) error

	// MessagesOf returns up to limit messages that have a file.
	MessagesOf(media desk.ID, limit int) ([]*desk.Message, error)
}
